//! Runs the mirror controller from many seeds: `cargo run --release -p steersman-sim --example mirror -- 1000`. Even seeds
//! have one process and one API server; odd ones have two processes, and a follower that lags.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use steersman_core::api::kinds::{ByteString, ConfigMap, Secret};
use steersman_core::object::ObjectMeta;
use steersman_mirror::{Mirror, plan};
use steersman_sim::{Cluster, Replica, Sim};

fn program(m: Replica) -> Replica {
    m.controller(plan::controller(None).run(Arc::new(Mirror)))
}

fn map(name: &str, text: &str) -> ConfigMap {
    let metadata = ObjectMeta::named("default", name).label("mirror", "true");
    ConfigMap { metadata, data: [("text".to_owned(), text.to_owned())].into(), ..ConfigMap::default() }
}

/// Each ConfigMap has a Secret of its name that holds the same, and there are no others.
fn mirrored(cluster: &Cluster<'_>) -> Result<(), String> {
    let wanted: BTreeMap<String, BTreeMap<String, ByteString>> = cluster
        .list::<ConfigMap>()
        .into_iter()
        .map(|m| (m.metadata.name, m.data.iter().map(|(k, v)| (k.clone(), v.as_str().into())).collect()))
        .collect();
    let found: BTreeMap<_, _> =
        cluster.list::<Secret>().into_iter().map(|s| (s.metadata.name, s.data)).collect();
    if found == wanted { Ok(()) } else { Err(format!("there is {found:?}, not {wanted:?}")) }
}

fn main() {
    let seeds: u64 = std::env::args().nth(1).and_then(|n| n.parse().ok()).unwrap_or(1000);
    let one = Sim::new()
        .replica(program)
        .given(|c| ["a", "b"].iter().for_each(|name| c.put(&map(name, "one"))))
        .change(Duration::from_secs(2), |c| c.put(&map("a", "two")))
        .change(Duration::from_secs(3), |c| c.keep_only::<ConfigMap>("default", &["a"]))
        .change(Duration::from_secs(4), |c| c.put(&map("b", "anew")))
        .converges_to(mirrored);
    let two = one.clone().replica(program).follower(Duration::from_millis(1)..Duration::from_secs(2));
    let begun = Instant::now();
    for seed in 0..seeds {
        if seed % 2 == 0 { &one } else { &two }.check(seed..seed + 1);
        if seed % 10_000 == 9_999 {
            println!("{} seeds", seed + 1);
        }
    }
    println!("{seeds} seeds, {:.0} a second", seeds as f64 / begun.elapsed().as_secs_f64());
}
