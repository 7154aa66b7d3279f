//! Runs the contestants in turns against one server and tells what each one cost.

use std::env;
use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{self, Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::Duration;

use serde_json::Value;

use crate::args::Args;
use crate::contestant::nanos_since_1970;
use crate::{limit, peer, program, table};

/// A process that has said nothing for so long hangs.
const SILENCE: Duration = Duration::from_secs(600);

/// Of so many pods one is left after a spike.
const LEFT: u64 = 100;

/// What the server says of each watch that is opened.
const WATCHED: &str = "watched";

/// What a contestant is to steersman.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Itself.
    Ours,
    Peer,
    /// The least that the work can cost.
    Limit,
}

/// One who takes part.
#[derive(Debug)]
pub(crate) struct Contestant {
    pub name: String,
    pub kind: Kind,
    pub program: PathBuf,
    /// Words before those of the job.
    first: &'static [&'static str],
    /// Lines of figures, one a run.
    pub runs: Vec<Value>,
}

impl Contestant {
    /// One who has run, without a program.
    pub(crate) fn of_runs(name: &str, kind: Kind, runs: Vec<Value>) -> Self {
        Self { name: name.to_owned(), kind, program: PathBuf::new(), first: &[], runs }
    }
}

/// Runs the contest and prints its table.
///
/// # Errors
/// Those of [`hold`].
pub(crate) fn run(args: &Args) -> Result<(), String> {
    if args.svg.is_some() {
        return Err("--svg: there are charts of `compare`, `real` and `scale` alone".to_owned());
    }
    let server = args.server()?;
    let contestants = hold(args, None)?;
    print!("{}", table::table(args, &server.pods, &contestants));
    if let Some(path) = &args.json {
        write(path, &(table::json(args, &contestants).to_string() + "\n"))?;
    }
    Ok(())
}

/// Writes a file of figures.
pub(crate) fn write(path: &str, text: &str) -> Result<(), String> {
    fs::write(path, text).map_err(|e| format!("{path}: {e}"))
}

/// Runs the contest: all contestants in turns, as often as was asked for; each of them right after what it does of `base`.
///
/// # Errors
/// If somebody fails: a figure of one who did not do the work would be no figure.
pub(crate) fn hold(args: &Args, base: Option<&Args>) -> Result<Vec<Contestant>, String> {
    let mut contestants = contestants(args)?;
    let folder = Folder::new()?;
    let mut running = Server::start(args, &folder.0.join("kubeconfig"))?;
    let mut before = match base {
        None => None,
        Some(base) => {
            Some((base, self::contestants(base)?, Server::start(base, &folder.0.join("base-kubeconfig"))?))
        }
    };
    for run in 0..args.runs {
        for contestant in &mut contestants {
            let mut without = None;
            if let Some((base, others, server)) = &mut before
                && let Some(other) = others.iter().find(|other| other.name == contestant.name)
            {
                without = Some(server.contest(base, other)?);
            }
            let mut figures = running.contest(args, contestant)?;
            if let Some(without) = without {
                beside(&mut figures, &without);
            }
            eprintln!("run {}: {}: {figures}", run + 1, contestant.name);
            contestant.runs.push(figures);
        }
    }
    Ok(contestants)
}

/// Puts beside a run what there is without what is asked about, `base_cpu` and `base_resident`, and how much more it is.
fn beside(run: &mut Value, base: &Value) {
    for key in ["cpu", "resident"] {
        let (now, before) = (run[key].as_f64(), base[key].as_f64());
        run[format!("base_{key}")] = before.into();
        run[format!("more_{key}")] = now.zip(before).map(|(n, b)| n - b).into();
    }
}

/// Those who take part, with their programs.
///
/// # Errors
/// If one cannot be built.
pub(crate) fn contestants(args: &Args) -> Result<Vec<Contestant>, String> {
    let me = env::current_exe().map_err(|e| e.to_string())?;
    // The program stands in `target/PROFILE`.
    let target = me.ancestors().nth(2).unwrap_or_else(|| Path::new("."));
    let of = |name: &str, kind, program: PathBuf| Contestant {
        name: name.to_owned(),
        kind,
        program,
        first: if kind == Kind::Limit { &["limit"] } else { &[] },
        runs: Vec::new(),
    };
    let mut all = Vec::new();
    for (name, program) in args.executors.iter().zip(program::ours(args, &me)?) {
        all.push(of(name, Kind::Ours, program));
    }
    for (peer, program) in peer::programs(args, target)? {
        all.push(of(peer.name(), Kind::Peer, program));
    }
    if args.limit && limit::takes(args) {
        all.push(of("limit", Kind::Limit, me));
    }
    Ok(all)
}

/// A folder that goes away.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Result<Self, String> {
        let path = env::temp_dir().join(format!("steersman-bench-{}", process::id()));
        fs::create_dir_all(&path).map_err(|e| format!("{}: {e}", path.display()))?;
        Ok(Self(path))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// A child and the lines that it prints.
pub(crate) struct Process {
    pub name: String,
    child: Child,
    input: Option<ChildStdin>,
    lines: Receiver<String>,
}

impl Process {
    pub(crate) fn start(name: &str, mut command: Command) -> Result<Self, String> {
        let started = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
        let mut child = started.map_err(|e| format!("{name} does not start: {e}"))?;
        let (input, output) = (child.stdin.take(), child.stdout.take());
        let (sender, lines) = mpsc::channel();
        thread::spawn(move || {
            for line in output.into_iter().flat_map(|o| BufReader::new(o).lines()).map_while(Result::ok) {
                let _ = sender.send(line);
            }
        });
        Ok(Self { name: name.to_owned(), child, input, lines })
    }

    /// Lets it end by itself: closes its input and waits.
    pub(crate) fn end(mut self) {
        drop(self.input.take());
        let _ = self.child.wait();
    }

    fn tell(&mut self, line: &str) -> Result<(), String> {
        let told = self.input.as_mut().map(|input| writeln!(input, "{line}"));
        told.transpose().map(|_| ()).map_err(|e| format!("{} is gone: {e}", self.name))
    }

    fn figures(&self) -> Result<Value, String> {
        let line = self.line()?;
        serde_json::from_str(&line).map_err(|e| format!("{}: {line:?}: {e}", self.name))
    }

    /// Its next line.
    pub(crate) fn line(&self) -> Result<String, String> {
        let failed = |e| format!("{} does not say what it should: {e}", self.name);
        self.lines.recv_timeout(SILENCE).map_err(failed)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        drop(self.input.take());
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

struct Server {
    process: Process,
    kubeconfig: String,
}

impl Server {
    fn start(args: &Args, kubeconfig: &Path) -> Result<Self, String> {
        let kubeconfig = kubeconfig.display().to_string();
        let mut command = Command::new(env::current_exe().map_err(|e| e.to_string())?);
        command.arg("server").args(args.server_words()).args(["--kubeconfig", &kubeconfig]);
        let process = Process::start("the server", command)?;
        process.line()?;
        Ok(Self { process, kubeconfig })
    }

    fn contest(&mut self, args: &Args, contestant: &Contestant) -> Result<Value, String> {
        let mut command = Command::new(&contestant.program);
        command.args(contestant.first).args(args.job_words(&contestant.name, &self.kubeconfig));
        // What others asked for after their end.
        self.said();
        let started = nanos_since_1970();
        let mut process = Process::start(&contestant.name, command)?;
        let mut watches = 0;
        let asked = if args.watch {
            process.line()?;
            let said = self.said();
            watches = said.iter().filter(|line| *line == WATCHED).count();
            for _ in 0..watches.max(1) {
                self.process.tell("go")?;
            }
            said.into_iter().next()
        } else {
            None
        };
        let mut figures = process.figures()?;
        let asked = asked.map_or_else(|| self.process.line(), Ok)?;
        let asked: u64 = asked.strip_prefix("asked ").and_then(|n| n.parse().ok()).ok_or(asked)?;
        let main = figures["main"].as_u64().unwrap_or(started);
        for (name, from, to) in [("start", started, asked), ("exec", started, main), ("ask", main, asked)] {
            figures[name] = (to.saturating_sub(from) as f64 / 1e9).into();
        }
        figures["watches"] = (watches + self.said().iter().filter(|line| *line == WATCHED).count()).into();
        if args.spike {
            self.spike(args, &mut process, &mut figures)?;
        }
        Ok(figures)
    }

    /// What the server has said since it was last asked.
    fn said(&self) -> Vec<String> {
        self.process.lines.try_iter().collect()
    }

    /// All pods are listed anew, as they were; then most of them are gone.
    fn spike(&mut self, args: &Args, process: &mut Process, figures: &mut Value) -> Result<(), String> {
        // What came late of the first list is no part of the second.
        process.tell("")?;
        figures["before_cpu"] = process.figures()?["cpu"].clone();
        for (step, left) in [("relist", args.objects), ("after", (args.objects / LEFT).max(1))] {
            let asked = self.relist(left, Duration::from_secs(args.after), process)?;
            let full = figures["resident"].as_f64().unwrap_or(f64::NAN);
            for key in ["cpu", "resident", "peak"] {
                figures[format!("{step}_{key}")] = asked[key].clone();
            }
            for key in ["resident", "peak"] {
                figures[format!("{step}_{key}_part")] = asked[key].as_f64().map(|n| n / full).into();
            }
        }
        let cpu = |key: &str| figures[key].as_f64().unwrap_or(f64::NAN);
        figures["relist_cpu"] = (cpu("relist_cpu") - cpu("before_cpu")).into();
        // For the next one.
        self.process.tell(&format!("expire {}", args.objects))
    }

    /// The watch of a contestant expires, and it lists so many pods. Says what it held `after` that, and at most.
    fn relist(&mut self, left: u64, after: Duration, process: &mut Process) -> Result<Value, String> {
        self.said();
        self.process.tell(&format!("expire {left}"))?;
        while self.process.line()? != WATCHED {}
        thread::park_timeout(after);
        process.tell("")?;
        process.figures()
    }
}
