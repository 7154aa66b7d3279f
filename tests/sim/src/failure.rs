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
    /// Where its page was written to, if it was.
    pub page: Option<PathBuf>,
    /// Everything that happened.
    pub trace: Trace,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.violation)?;
        self.summary(f)?;
        writeln!(f, "replay: {}", self.replay)?;
        if let Some(page) = &self.page {
            writeln!(f, "page:   {}", page.display())?;
        }
        self.timeline().fmt(f)
    }
}

impl Failure {
    /// Seed, faults, and what it took to find them.
    fn summary(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { seed, drawn, faults, shrink_runs, .. } = self;
        write!(f, "seed {seed}, {} replicas, {} followers", self.replicas, self.followers)?;
        if let Some(adversary) = self.adversary {
            write!(f, ", {adversary}")?;
        }
        match (drawn, faults.len()) {
            (0, _) => writeln!(f, "; no faults")?,
            (_, 0) => writeln!(f, "; it takes none of the {drawn} faults ({shrink_runs} more runs)")?,
            (_, n) if *shrink_runs == 0 => writeln!(f, "; {n} faults:")?,
            (_, n) => writeln!(f, "; it takes {n} of the {drawn} faults ({shrink_runs} more runs):")?,
        }
        faults.iter().enumerate().try_for_each(|(n, fault)| writeln!(f, "  {n}: {fault}"))
    }
}

impl std::error::Error for Failure {}
