//! What a person is told of a run in which something was violated.

use std::fmt;
use std::path::PathBuf;

use crate::faults::Fault;
use crate::oracle::Violation;
use crate::trace::Trace;

/// A run in which something was violated: the smallest that was found.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Failure {
    /// The seed.
    pub seed: u64,
    /// The faults that it takes.
    pub faults: Vec<Fault>,
    /// How many faults there were at first.
    pub drawn: usize,
    /// How many runs it took to make the list smaller.
    pub shrink_runs: u64,
    /// How many processes it takes.
    pub replicas: usize,
    /// How many followers it takes.
    pub followers: usize,
    /// Who compared it with another run, if somebody did.
    pub adversary: Option<&'static str>,
    /// What was violated.
    pub violation: Violation,
    /// A command that runs it again, as far as the test harness tells which test this is.
    pub replay: String,
    /// Where its page was written to, if somebody wants one; or why it was not.
    pub page: Result<Option<PathBuf>, String>,
    /// Everything that happened.
    pub trace: Trace,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.violation)?;
        writeln!(f, "{}{}", self.summary(), if self.faults.is_empty() { "" } else { ":" })?;
        self.faults.iter().enumerate().try_for_each(|(n, fault)| writeln!(f, "  {n}: {fault}"))?;
        writeln!(f, "replay: {}", self.replay)?;
        match &self.page {
            Ok(Some(page)) => writeln!(f, "page:   {}", page.display())?,
            Ok(None) => {}
            Err(why) => writeln!(f, "page:   not written, {why}")?,
        }
        self.timeline().fmt(f)
    }
}

impl Failure {
    /// Seed, size, and what it took to find them.
    pub(crate) fn summary(&self) -> String {
        let Self { seed, drawn, faults, shrink_runs: runs, .. } = self;
        let by = self.adversary.map(|name| format!(", {name}")).unwrap_or_default();
        let taken = match (drawn, faults.len()) {
            (0, _) => "no faults".to_owned(),
            (_, 0) => format!("it takes none of the {drawn} faults ({runs} more runs)"),
            (_, n) if *runs == 0 => format!("{n} faults"),
            (_, n) => format!("it takes {n} of the {drawn} faults ({runs} more runs)"),
        };
        format!("seed {seed}, replicas {}, followers {}{by}; {taken}", self.replicas, self.followers)
    }
}

impl std::error::Error for Failure {}
