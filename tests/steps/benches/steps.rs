//! The time of every step; `elem/s` are operations a second.

use criterion::{Criterion, Throughput};
use steersman_steps::STEPS;

fn main() {
    let mut criterion = Criterion::default().configure_from_args();
    let mut group = criterion.benchmark_group("steps");
    group.throughput(Throughput::Elements(1));
    for step in STEPS {
        // Criterion calls this many times, or not at all.
        let mut prepared = None;
        group.bench_function(step.name, |bencher| {
            let prepared = prepared.get_or_insert_with(|| step.prepare());
            bencher.iter(|| prepared.turn());
        });
    }
    group.finish();
    criterion.final_summary();
}
