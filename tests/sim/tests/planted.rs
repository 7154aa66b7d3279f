//! Planted mistakes are found, and the report names the moment that matters; the mended twins pass whatever is done to them.

#[path = "../examples/planted/cases/mod.rs"]
mod cases;

use std::collections::BTreeMap;

use cases::{CASES, first_seed};

#[test]
fn each_class_is_there_twice_and_once_subtle() {
    let mut classes: BTreeMap<&str, (u32, u32)> = BTreeMap::new();
    for case in &CASES {
        let (all, subtle) = classes.entry(case.class).or_default();
        *all += 1;
        *subtle += u32::from(case.subtle);
    }
    assert_eq!(classes.len(), 5, "{classes:?}");
    assert!(classes.values().all(|n| *n == (2, 1)), "{classes:?}");
}

#[test]
fn each_mistake_is_found_by_its_adversary_at_the_right_moment() {
    for case in &CASES {
        let about = format!("{}: {}", case.name, case.mistake);
        let sim = (case.buggy)();
        // Undisturbed, nobody notices.
        sim.run_with(1, &[]).unwrap_or_else(|f| panic!("{about}: {f}"));
        let Err(failure) = case.adversary.run(&sim, 1) else { panic!("{about}: not found") };
        case.is_it(&failure).unwrap_or_else(|e| panic!("{about}: {e}\n{failure}"));
        // The list of faults alone brings it back.
        let again = sim.shrink_runs(0).run_to_same_end(failure.seed, &failure.faults).unwrap_err();
        assert_eq!(again.violation, failure.violation, "{about}");
    }
}

#[test]
fn chance_finds_them_as_well() {
    for case in &CASES {
        assert!(first_seed(&(case.buggy)(), 0..1_000).is_some(), "{}: {}", case.name, case.mistake);
    }
}

#[test]
fn the_twins_pass_every_adversary() {
    for case in &CASES {
        (case.fixed)().every_adversary(1).unwrap_or_else(|f| panic!("{}: {f}", case.name));
    }
}

#[test]
fn the_twins_pass_a_hundred_seeds() {
    for case in &CASES {
        (case.fixed)().check(0..100);
    }
}
