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
use crate::{peer, program, table};

/// A process that has said nothing for so long hangs.
const SILENCE: Duration = Duration::from_secs(600);

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

#[cfg(test)]
impl Contestant {
    /// One who has run.
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
        return Err("--svg: there is a chart of `compare` alone".to_owned());
    }
    let server = args.server()?;
    let contestants = hold(args)?;
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

/// Runs the contest: all contestants in turns, as often as was asked for.
///
/// # Errors
/// If somebody fails: a figure of one who did not do the work would be no figure.
pub(crate) fn hold(args: &Args) -> Result<Vec<Contestant>, String> {
    let mut contestants = contestants(args)?;
    let folder = Folder::new()?;
    let mut running = Server::start(args, &folder.0.join("kubeconfig"))?;
    for run in 0..args.runs {
        for contestant in &mut contestants {
            let figures = running.contest(args, contestant)?;
            eprintln!("run {}: {}: {figures}", run + 1, contestant.name);
            contestant.runs.push(figures);
        }
    }
    Ok(contestants)
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
    if args.limit {
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
        while self.process.lines.try_recv().is_ok() {}
        let started = nanos_since_1970();
        let process = Process::start(&contestant.name, command)?;
        if args.watch {
            process.line()?;
            let go = self.process.input.as_mut().map(|input| input.write_all(b"go\n"));
            go.transpose().map_err(|e| format!("the server is gone: {e}"))?;
        }
        let line = process.line()?;
        let mut figures: Value =
            serde_json::from_str(&line).map_err(|e| format!("{}: {line:?}: {e}", contestant.name))?;
        let asked = self.process.line()?;
        let asked: u64 = asked.strip_prefix("asked ").and_then(|n| n.parse().ok()).ok_or(asked)?;
        figures["start"] = (asked.saturating_sub(started) as f64 / 1e9).into();
        Ok(figures)
    }
}
