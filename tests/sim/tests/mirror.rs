//! The mirror controller in the simulator: alone, disturbed, twice the same, and with a mistake in it.

mod common;

use std::sync::Arc;
use std::time::Duration;

use common::{program, sim};
use steersman_core::controller::Action;
use steersman_core::controller::plan::{Failure, Plan, Planning, Step};
use steersman_mirror::{Mirror, plan};

#[test]
fn undisturbed_it_converges_at_once() {
    let report = sim(program).run_with(1, &[]).unwrap_or_else(|f| panic!("{f}"));
    assert!(report.converged.is_some_and(|at| at.as_nanos() < 10_000_000_000), "{:?}", report.converged);
    assert!(report.writes[0] >= 6, "{:?}", report.writes);
}

#[test]
fn one_seed_is_one_run_to_the_byte() {
    let sim = sim(program).replica(program).follower(Duration::from_millis(1)..Duration::from_secs(2));
    for seed in 0..5 {
        let faults = sim.faults(seed);
        let (one, two) = (sim.traced(seed, &faults), sim.traced(seed, &faults));
        assert!(one.trace.entries.len() > 50);
        assert_eq!(one.trace, two.trace, "seed {seed}");
        let quick = sim.run_with(seed, &faults).unwrap_or_else(|f| panic!("{f}"));
        assert_eq!((one.fingerprint, one.steps), (quick.fingerprint, quick.steps));
        assert_ne!(sim.traced(seed + 100, &faults).trace, one.trace);
    }
}

#[test]
fn alone_through_seeds_of_faults() {
    sim(program).check(0..150);
}

#[test]
fn two_through_seeds_of_faults() {
    sim(program).replica(program).follower(Duration::from_millis(1)..Duration::from_secs(2)).check(150..300);
}

/// Looks at a Secret only when it makes one.
struct MakesOnly;

impl Plan for MakesOnly {
    fn plan(&self, cx: &Planning<'_>) -> Result<Step, Failure> {
        match Mirror.plan(cx)? {
            Step::Send(requests) if requests.iter().all(|r| r.what.starts_with("create")) => {
                Ok(Step::Send(requests))
            }
            Step::Send(_) => Ok(Step::Done(Action::await_change())),
            step => Ok(step),
        }
    }
}

#[test]
fn a_controller_that_does_not_repair_is_caught() {
    let sim = sim(|m| m.controller(plan::controller(None).run(Arc::new(MakesOnly))));
    let failure = sim.run_with(7, &[]).unwrap_err();
    assert_eq!(failure.violation.oracle, "converges");
    assert!(failure.violation.what.contains("holds something else"), "{}", failure.violation);
    assert!(failure.to_string().contains("STEERSMAN_SIM_SEED=7"));
}
