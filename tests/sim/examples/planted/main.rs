//! Ten controllers with one planted mistake each: how soon the simulator finds it, and what their mended twins live through:
//! `cargo run --release -p steersman-sim --example planted -- 10000`.

mod cases;

use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use cases::{CASES, Case, first_seed, moments};
use steersman_sim::{Failure, Sim};

/// The seed of the adversaries.
const SEED: u64 = 1;
/// Most seeds that are tried on a controller with a mistake.
const TRIED: u64 = 5_000;

/// Says how a mistake was found, and how long that took. Whether it was, and is the one.
fn find(by: &str, case: &Case, find: impl FnOnce(&Sim) -> Option<Box<Failure>>) -> bool {
    let runs = Arc::new(AtomicU64::new(0));
    let counter = Arc::clone(&runs);
    let sim = (case.buggy)().given(move |_| {
        counter.fetch_add(1, Ordering::Relaxed);
    });
    let begun = Instant::now();
    let failure = find(&sim);
    let (runs, secs) = (runs.load(Ordering::Relaxed), begun.elapsed().as_secs_f64());
    let Some(failure) = failure else {
        println!("  {by}: NOT FOUND in {runs} runs, {secs:.3} s");
        return false;
    };
    let what = &failure.violation;
    println!("  {by}: found in {runs} runs, {secs:.3} s; {}: {}", what.oracle, what.what);
    failure.faults.iter().for_each(|fault| println!("    {fault}"));
    println!("    of {} faults, after {} more runs", failure.drawn, failure.shrink_runs);
    if by == "seeds" {
        return true;
    }
    moments(&failure).iter().for_each(|moment| println!("    after: {moment}"));
    let is_it = case.is_it(&failure);
    is_it.as_ref().err().iter().for_each(|e| println!("    NOT THE ONE: {e}"));
    is_it.is_ok()
}

fn main() -> ExitCode {
    let mut fine = true;
    let seeds = std::env::args().nth(1).and_then(|n| n.parse().ok()).unwrap_or(1000);
    let only = std::env::args().nth(2).unwrap_or_default();
    for case in CASES.iter().filter(|c| c.name.contains(&only)) {
        let subtle = if case.subtle { " (subtle)" } else { "" };
        println!("{}: {}{subtle}: {}", case.class, case.name, case.mistake);
        fine &= find(&format!("{:?}", case.adversary), case, |sim| case.adversary.run(sim, SEED).err());
        fine &= find("seeds", case, |sim| first_seed(sim, 0..TRIED));
        let (fixed, begun) = ((case.fixed)(), Instant::now());
        match fixed.every_adversary(SEED) {
            Ok(runs) => println!("  the twin passes every adversary, {runs} runs"),
            Err(failure) => {
                fine = false;
                println!("  the twin FAILS:\n{failure}");
            }
        }
        let failed = (0..seeds).filter(|seed| {
            let failure = fixed.run(*seed).err();
            failure.iter().for_each(|f| println!("  the twin FAILS: seed {seed}: {}", f.violation));
            failure.is_some()
        });
        let passed = seeds - failed.count() as u64;
        fine &= passed == seeds;
        println!("  and {passed} of {seeds} seeds, in {:.1} s", begun.elapsed().as_secs_f64());
    }
    if fine { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
