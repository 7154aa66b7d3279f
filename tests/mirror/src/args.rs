//! The command line of the example; small enough to need no library.

use std::time::Duration;

/// What was asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Args {
    /// This kubeconfig instead of the embedded API server.
    pub kubeconfig: Option<String>,
    /// This context of it, or of the kubeconfig that `kubectl` would take.
    pub context: Option<String>,
    /// How many ConfigMaps.
    pub objects: usize,
    /// How many reconciles at a time.
    pub concurrency: usize,
    /// Whether the controller's connections are dropped at random moments.
    pub kill_connections: bool,
    /// The seed of everything random; `None` draws one.
    pub seed: Option<u64>,
    /// How long the work may take.
    pub deadline: Duration,
}

impl Default for Args {
    fn default() -> Self {
        Self {
            kubeconfig: None,
            context: None,
            objects: 1000,
            concurrency: 8,
            kill_connections: false,
            seed: None,
            deadline: Duration::from_secs(120),
        }
    }
}

/// What the program shall do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Command {
    /// The work.
    Run(Args),
    /// Show [`HELP`].
    Help,
}

/// The text of `--help`.
pub const HELP: &str = "\
Mirrors ConfigMaps as Secrets: makes ConfigMaps, runs the controller, changes, deletes and breaks things meanwhile,
waits until all is as it should be, checks every Secret, and prints a table.

Usage: configmap_mirror [OPTIONS]

  --kubeconfig FILE    a real cluster instead of the API server that is embedded in this program
  --context NAME       this context of the kubeconfig (without --kubeconfig: of the one that kubectl takes)
  --objects N          how many ConfigMaps [1000]
  --concurrency N      how many reconciles at a time [8]
  --kill-connections   drop all connections of the controller at random moments
  --seed N             repeat the random choices of another run
  --deadline SECONDS   fail if it takes longer [120]
  --help               this text

It works in a namespace of its own and removes it at the end. RUST_LOG=steersman=debug shows what goes on.
Exit status: 0 all is well, 1 it failed, 2 wrong usage, 130 interrupted.
";

/// Most objects of a run.
const MOST_OBJECTS: u64 = 1_000_000;

impl Args {
    /// Reads arguments, without the name of the program.
    ///
    /// # Errors
    /// One line that says what is wrong.
    pub fn parse(args: impl IntoIterator<Item = String>) -> Result<Command, String> {
        let mut out = Self::default();
        let mut args = args.into_iter();
        while let Some(arg) = args.next() {
            let (name, inline) = match arg.split_once('=') {
                Some((name, value)) if name.starts_with("--") => (name, Some(value.to_owned())),
                _ => (arg.as_str(), None),
            };
            let flag = inline.is_none();
            let mut value = || match inline.clone().or_else(|| args.next()) {
                Some(value) if !value.is_empty() => Ok(value),
                _ => Err(format!("{name} needs a value")),
            };
            match name {
                "--help" | "-h" if flag => return Ok(Command::Help),
                "--kill-connections" if flag => out.kill_connections = true,
                "--help" | "-h" | "--kill-connections" => return Err(format!("{name} takes no value")),
                "--kubeconfig" => out.kubeconfig = Some(value()?),
                "--context" => out.context = Some(value()?),
                "--objects" => out.objects = number(name, &value()?, 1, MOST_OBJECTS)? as usize,
                "--concurrency" => out.concurrency = number(name, &value()?, 1, 1024)? as usize,
                "--seed" => out.seed = Some(number(name, &value()?, 0, u64::MAX)?),
                "--deadline" => out.deadline = Duration::from_secs(number(name, &value()?, 1, 86_400)?),
                _ => return Err(format!("unknown argument {arg:?}; see --help")),
            }
        }
        Ok(Command::Run(out))
    }

    /// Whether the cluster is not our own.
    #[must_use]
    pub const fn foreign(&self) -> bool {
        self.kubeconfig.is_some() || self.context.is_some()
    }
}

fn number(name: &str, text: &str, least: u64, most: u64) -> Result<u64, String> {
    match text.parse() {
        Ok(n) if (least..=most).contains(&n) => Ok(n),
        _ => Err(format!("{name} wants a number from {least} to {most}, not {text:?}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<Command, String> {
        Args::parse(line.split_whitespace().map(str::to_owned))
    }

    #[test]
    fn every_option_is_read_in_both_spellings() {
        assert_eq!(parse(""), Ok(Command::Run(Args::default())));
        let all = Args {
            kubeconfig: Some("f".into()),
            context: Some("c".into()),
            objects: 7,
            concurrency: 2,
            kill_connections: true,
            seed: Some(u64::MAX),
            deadline: Duration::from_secs(5),
        };
        let spaced = "--kubeconfig f --context c --objects 7 --concurrency 2 --kill-connections \
                      --seed 18446744073709551615 --deadline 5";
        let joined = "--kubeconfig=f --context=c --objects=7 --concurrency=2 --kill-connections \
                      --seed=18446744073709551615 --deadline=5";
        assert_eq!(parse(spaced), Ok(Command::Run(all.clone())));
        assert_eq!(parse(joined), Ok(Command::Run(all)));
        assert_eq!(parse("--objects 1 --help"), Ok(Command::Help));
        for option in parse_options() {
            assert!(HELP.contains(option), "{option}");
        }
    }

    fn parse_options() -> [&'static str; 8] {
        let options =
            "--kubeconfig --context --objects --concurrency --kill-connections --seed --deadline --help";
        let mut each = options.split(' ');
        std::array::from_fn(|_| each.next().expect("eight options"))
    }

    #[test]
    fn a_wrong_line_is_told_in_one() {
        for (line, error) in [
            ("--objects", "--objects needs a value"),
            ("--objects=", "--objects needs a value"),
            ("--objects 0", "--objects wants a number from 1 to 1000000, not \"0\""),
            ("--objects -1", "--objects wants a number from 1 to 1000000, not \"-1\""),
            ("--deadline 1e9", "--deadline wants a number from 1 to 86400, not \"1e9\""),
            ("--kill-connections=yes", "--kill-connections takes no value"),
            ("objects", "unknown argument \"objects\"; see --help"),
            ("--object 4", "unknown argument \"--object\"; see --help"),
        ] {
            assert_eq!(parse(line), Err(error.to_owned()), "{line}");
        }
    }
}
