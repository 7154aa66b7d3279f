//! Runs the mirror controller from many seeds: `cargo run --release -p steersman-sim --example mirror -- 1000`.

use std::sync::Arc;
use std::time::Instant;

use steersman_core::api::kinds::{ConfigMap, Secret};
use steersman_core::object::ObjectMeta;
use steersman_mirror::{Mirror, plan};
use steersman_sim::Sim;

fn main() {
    let seeds = std::env::args().nth(1).and_then(|n| n.parse().ok()).unwrap_or(1000);
    let sim = Sim::new()
        .replica(|m| m.controller(plan::controller(None).run(Arc::new(Mirror))))
        .given(|cluster| {
            let metadata = ObjectMeta::named("default", "a").label("mirror", "true");
            cluster.put(&ConfigMap { metadata, ..ConfigMap::default() });
        })
        .converges_to(|cluster| {
            cluster.get::<Secret>("default", "a").map(drop).ok_or_else(|| "there is no mirror".to_owned())
        });
    let begun = Instant::now();
    sim.check(0..seeds);
    println!("{seeds} seeds, {:.0} a second", seeds as f64 / begun.elapsed().as_secs_f64());
}
