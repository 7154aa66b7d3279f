//! A run and its verdict: who fails is shown the smallest run that fails in the same way.

use std::cell::Cell;
use std::panic;
use std::sync::Once;

use crate::end::EndState;
use crate::failure::Failure;
use crate::faults::Fault;
use crate::oracle::Violation;
use crate::replay::Replay;
use crate::run;
use crate::shrink::{Small, shrink};
use crate::sim::{Report, Sim};

thread_local! {
    /// Runs that nobody asked for say nothing.
    static QUIET: Cell<bool> = const { Cell::new(false) };
}

/// Runs this without a word about panics in it: there may be hundreds, and the last run will say it.
fn quietly<T>(run: impl FnOnce() -> T) -> T {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let hook = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            if !QUIET.get() {
                hook(info);
            }
        }));
    });
    let _quiet = Quiet(QUIET.replace(true));
    run()
}

/// Ends the silence, however the run ends; holds what was before.
struct Quiet(bool);

impl Drop for Quiet {
    fn drop(&mut self) {
        QUIET.set(self.0);
    }
}

/// A run that is wanted.
#[derive(Clone, Copy)]
pub(crate) struct Case<'a> {
    pub(crate) seed: u64,
    pub(crate) faults: &'a [Fault],
    /// The state that it must end in.
    pub(crate) end: Option<&'a EndState>,
    /// Who wants it to end so.
    pub(crate) adversary: Option<&'static str>,
}

impl Sim {
    /// One run, and what is wrong with it.
    pub(crate) fn judge(&self, case: Case<'_>) -> Result<Report, Box<Failure>> {
        let replay = Replay::of_environment();
        if replay.means(case.seed, case.adversary)
            && let Some(faults) = &replay.faults
        {
            let sim = replay.part_of(self).unwrap_or_else(|e| panic!("{e}"));
            let report = sim.look(&case, faults, false);
            let Some(violation) = report.violation.clone() else { return Ok(report) };
            let small = Small { faults: faults.clone(), sim, report, runs: 0 };
            return Err(Box::new(self.failure(&case, faults.len(), small, violation)));
        }
        let report = self.look(&case, case.faults, false);
        let Some(violation) = report.violation.clone() else { return Ok(report) };
        let small = shrink(self, &case, report, &violation);
        Err(Box::new(self.failure(&case, case.faults.len(), small, violation)))
    }

    /// One run, without a word of how to see it again.
    fn look(&self, case: &Case<'_>, faults: &[Fault], traced: bool) -> Report {
        let mut report = run::run(self, case.seed, faults, traced);
        if report.violation.is_none()
            && let Some(what) = case.end.and_then(|end| end.difference(&report.end))
        {
            report.violation = Some(Violation { oracle: "end state", at: report.ended, what });
        }
        report
    }

    /// The report of a run that fails as this one does.
    pub(crate) fn same(&self, case: &Case<'_>, faults: &[Fault], violation: &Violation) -> Option<Report> {
        let report = quietly(|| self.look(case, faults, false));
        let same = report.violation.as_ref().is_some_and(|v| v.oracle == violation.oracle);
        same.then_some(report)
    }

    /// Whether a run without faults is well.
    pub(crate) fn is_well_alone(&self, case: &Case<'_>) -> bool {
        quietly(|| self.look(case, &[], false)).violation.is_none()
    }

    /// The same with the first of its processes and followers only.
    pub(crate) fn first(&self, replicas: Option<usize>, followers: Option<usize>) -> Self {
        let mut sim = self.clone();
        sim.programs.truncate(replicas.unwrap_or(usize::MAX));
        sim.followers.truncate(followers.unwrap_or(usize::MAX));
        sim
    }

    fn failure(&self, case: &Case<'_>, drawn: usize, small: Small, original: Violation) -> Failure {
        let Small { faults, sim, report, runs } = small;
        let mut violation = report.violation.unwrap_or(original);
        // The same run once more, with a pen.
        let mut again = sim.look(case, &faults, true);
        if again.fingerprint != report.fingerprint {
            violation.what.push_str(" [and a second run of this seed went another way]");
        }
        violation.mark(&mut again.trace);
        let fewer = |now: usize, before: usize| (now < before).then_some(now);
        let replay = Replay {
            seed: Some(case.seed),
            faults: Some(faults.clone()),
            replicas: fewer(sim.programs.len(), self.programs.len()),
            followers: fewer(sim.followers.len(), self.followers.len()),
            adversary: case.adversary.map(str::to_owned),
        };
        let mut failure = Failure {
            seed: case.seed,
            faults,
            drawn,
            shrink_runs: runs,
            replicas: sim.programs.len(),
            followers: sim.followers.len(),
            adversary: case.adversary,
            violation,
            replay: replay.command(),
            page: Ok(None),
            trace: again.trace,
        };
        failure.write_page();
        failure
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_ends_the_silence() {
        let result = panic::catch_unwind(|| quietly(|| panic!("nobody hears this")));
        assert!(result.is_err() && !QUIET.get());
        // One within another does not end the outer one's.
        assert!(quietly(|| quietly(|| QUIET.get()) && QUIET.get()) && !QUIET.get());
    }
}
