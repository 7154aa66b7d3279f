//! The program `steersman-replay`, for use in programs that have controllers of their own.

use std::fmt::Write as _;
use std::io::Write;
use std::panic::{self, AssertUnwindSafe};
use std::path::{Path, PathBuf};

use steersman_core::controller::{Config, Outcome};
use steersman_core::object::Object;
use steersman_core::record::file::{End, Kind, Recording};
use steersman_core::record::replay::{Comparison, Replay, Replayed};

use crate::files;

/// What it can do.
pub const HELP: &str = "\
usage: steersman-replay [--diff] [--from N] [--until N | --step N] FILE

Makes the decisions of a recording again and prints each step: when, what the machine was told, what it said. Where it says
something else now, `-` is what was recorded and `+` what it says. FILE is any segment of a recording; of a directory, its
recordings and those of the runs in it are listed.

A controller with functions of its own is replayed by a program that has them and calls steersman_record::program::run.

  --diff      print only what differs
  --from N    print from step N on
  --until N   stop after step N and print the state of the machine
  --step N    the same, and print only step N

Exit status: 0 if each step was as it was recorded (or the recording could only be read), 1 if any was not, 2 for an error.
";

#[derive(Debug, Default)]
struct Args {
    diff: bool,
    from: u64,
    until: Option<u64>,
    file: PathBuf,
}

fn parse(args: impl IntoIterator<Item = String>) -> Result<Option<Args>, String> {
    let mut parsed = Args::default();
    let mut file = None;
    let mut args = args.into_iter();
    while let Some(arg) = args.next() {
        let mut number = |name: &str| {
            let text = args.next().ok_or_else(|| format!("{name} needs the number of a step"))?;
            text.parse().map_err(|_| format!("{name} {text}: not the number of a step"))
        };
        match arg.as_str() {
            "--help" | "-h" => return Ok(None),
            "--diff" => parsed.diff = true,
            "--from" => parsed.from = number("--from")?,
            "--until" => parsed.until = Some(number("--until")?),
            "--step" => {
                parsed.from = number("--step")?;
                parsed.until = Some(parsed.from);
            }
            flag if flag.starts_with('-') => return Err(format!("unknown argument {flag}")),
            _ if file.is_none() => file = Some(arg),
            other => return Err(format!("one recording at a time: {other} is a second one")),
        }
    }
    parsed.file = file.ok_or("which recording?")?.into();
    Ok(Some(parsed))
}

/// Runs it with these arguments (without the program's name) and gives its exit status: 0, 1 if something differs, 2 for an
/// error, which is written to `errors` in one line.
///
/// `controllers` gives the configuration of the controller with a name, if the program has it; without one a controller is
/// replayed only if it has no functions of its own.
///
/// ```no_run
/// use std::process::ExitCode;
/// use steersman_core::api::{Api, kinds::ConfigMap};
/// use steersman_core::controller::Builder;
///
/// fn main() -> ExitCode {
///     let mine = Builder::new(Api::<ConfigMap>::all()).filter(|change| true);
///     let controllers = |name: &str| (name == mine.config().name).then(|| mine.config().clone());
///     let (out, errors) = (&mut std::io::stdout(), &mut std::io::stderr());
///     steersman_record::program::run(std::env::args().skip(1), controllers, out, errors).into()
/// }
/// ```
pub fn run(
    args: impl IntoIterator<Item = String>,
    controllers: impl Fn(&str) -> Option<Config<Object>>,
    out: &mut impl Write,
    errors: &mut impl Write,
) -> u8 {
    let result = match parse(args) {
        Ok(None) => write!(out, "{HELP}").map(|()| 0).map_err(|e| e.to_string()),
        Ok(Some(args)) => work(&args, controllers, out, errors),
        Err(e) => Err(e),
    };
    result.unwrap_or_else(|e| {
        // Nobody is left to tell.
        let _ = writeln!(errors, "steersman-replay: {e}");
        2
    })
}

fn work(
    args: &Args,
    controllers: impl Fn(&str) -> Option<Config<Object>>,
    out: &mut impl Write,
    errors: &mut impl Write,
) -> Result<u8, String> {
    let io = |e: std::io::Error| e.to_string();
    if args.file.is_dir() {
        let paths = files::recordings(&args.file)?;
        if paths.is_empty() {
            return Err(named(&args.file, &"there are no recordings in it, nor in runs below it"));
        }
        for path in paths {
            let about = files::read(&path).map_or_else(|e| e, |recording| about(&recording));
            writeln!(out, "{}: {about}", path.display()).map_err(io)?;
        }
        return Ok(0);
    }
    let recording = files::read(&args.file)?;
    writeln!(out, "{}", about(&recording)).map_err(io)?;
    if let Some(until) = args.until.filter(|n| !recording.numbered().any(|(number, _)| number == *n)) {
        return Err(named(&args.file, &format!("there is no step {until}: {}", about(&recording))));
    }
    let mut replay = match begin(&recording, controllers) {
        Ok(replay) => replay,
        Err(e) if args.diff => return Err(named(&args.file, &e)),
        Err(e) => {
            writeln!(errors, "steersman-replay: {e}; this is what was recorded").map_err(io)?;
            Replay::reading(&recording)
        }
    };
    let mut comparison = Comparison::default();
    for record in recording.numbered() {
        if args.until.is_some_and(|until| record.0 > until) {
            break;
        }
        let step = match panic::catch_unwind(AssertUnwindSafe(|| replay.step(record))) {
            Ok(step) => step.map_err(|e| named(&args.file, &e))?,
            // The machine of the recorded program did not, or nothing would follow.
            Err(cause) => {
                let why = Outcome::from_panic(&*cause);
                writeln!(out, "#{}\n  + {why:?}: nothing after it is replayed", record.0).map_err(io)?;
                return Ok(1);
            }
        };
        if step.number >= args.from && (!args.diff || step.difference().is_some()) {
            write!(out, "{}", text(&step)).map_err(io)?;
        }
        comparison.add(step);
    }
    if let Some(until) = args.until {
        writeln!(out, "state after step {until}:\n{}", replay.state().trim_end()).map_err(io)?;
    }
    writeln!(out, "{}", summary(&comparison)).map_err(io)?;
    Ok(u8::from(comparison.different > 0))
}

fn named(path: &Path, e: &impl std::fmt::Display) -> String {
    format!("{}: {e}", path.display())
}

fn begin(
    recording: &Recording,
    controllers: impl Fn(&str) -> Option<Config<Object>>,
) -> Result<Replay, String> {
    let name = recording.header.made["name"].as_str().filter(|_| recording.header.kind == Kind::Controller);
    match name.and_then(controllers) {
        Some(config) => Replay::controller(config, recording).map_err(|e| e.to_string()),
        None => Replay::of(recording).map_err(|e| match recording.header.kind {
            Kind::Controller if recording.is_whole() => {
                format!("{e} (a program of your own can replay it, with steersman_record::program::run)")
            }
            _ => e.to_string(),
        }),
    }
}

/// One line about a recording.
fn about(recording: &Recording) -> String {
    let header = &recording.header;
    let mut text = format!("{}, recorded by steersman {}", header.name, header.steersman);
    let last = header.first + recording.records.len() as u64;
    let _ = write!(text, ", {} records", recording.records.len());
    if !recording.is_whole() {
        let _ = write!(text, " ({} to {}; those before are gone)", header.first, last.saturating_sub(1));
    }
    match &recording.end {
        End::Whole => {}
        End::Torn => text.push_str(", torn off in the middle of the next one"),
        End::Ended(why) => {
            let _ = write!(text, "; ended: {why}");
        }
    }
    text
}

/// One step: a head line, then what was said; where that differs, `-` is what was recorded and `+` what is said now.
fn text(step: &Replayed) -> String {
    let mut text = format!("#{}", step.number);
    if let Some(at) = step.at {
        let _ = write!(text, " {at:?}");
    }
    if let Some(call) = step.call {
        let _ = write!(text, " call {call}");
    }
    let _ = writeln!(text, " {}", step.told);
    match &step.said {
        Some(said) if *said != step.recorded => {
            let differ = |n: usize| step.recorded.get(n) != said.get(n);
            for n in 0..step.recorded.len().max(said.len()) {
                for (sign, lines) in [('-', &step.recorded), ('+', said)] {
                    match lines.get(n) {
                        Some(line) if differ(n) => {
                            let _ = writeln!(text, "  {sign} {line}");
                        }
                        Some(line) if sign == '+' => {
                            let _ = writeln!(text, "    {line}");
                        }
                        _ => {}
                    }
                }
            }
        }
        _ => {
            for line in &step.recorded {
                let _ = writeln!(text, "    {line}");
            }
        }
    }
    text
}

fn summary(comparison: &Comparison) -> String {
    let Comparison { steps, skipped, different, first } = comparison;
    if *steps == 0 {
        return format!("nothing was replayed: {skipped} steps were only read");
    }
    let mut text = format!("{steps} steps replayed, ");
    match first {
        None => text.push_str("each as it was recorded"),
        Some(first) => {
            let _ = write!(text, "{different} differ from what was recorded, the first is {}", first.number);
        }
    }
    if *skipped > 0 {
        let _ = write!(text, "; {skipped} not replayed");
    }
    text
}
