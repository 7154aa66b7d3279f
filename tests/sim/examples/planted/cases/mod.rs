//! Ten controllers with one mistake each, two of each class that is known to sink controllers, and their mended twins.
//!
//! Each controller is one function of `const FIXED: bool`: what differs between the twins is what stands under
//! `if FIXED`. The classes are those of Sieve (OSDI 2022), Acto (SOSP 2023) and Anvil (OSDI 2024).

mod conflict;
mod crash;
mod events;
mod finalizers;
mod kinds;
mod moments;
mod stale;

use std::ops::Range;
use std::time::Duration;

use serde_json::Value;
use steersman_core::api::{Answer, Api, FromObject, Kind, Patch, PatchParams};
use steersman_sim::{Cluster, Failure, ServerOptions, Sim};

use kinds::NS;
pub(crate) use moments::moments;

/// One controller, twice.
pub(crate) struct Case {
    /// The class of the mistake.
    pub(crate) class: &'static str,
    /// The controller.
    pub(crate) name: &'static str,
    /// The mistake, in words.
    pub(crate) mistake: &'static str,
    /// Whether it is of the kind that passes a review.
    pub(crate) subtle: bool,
    /// Who must find it.
    pub(crate) adversary: Adversary,
    /// Which oracle says so.
    pub(crate) oracle: &'static str,
    /// What happens at the moments that the faults name; see [`moments`].
    pub(crate) moment: &'static [&'static str],
    /// The one with the mistake.
    pub(crate) buggy: fn() -> Sim,
    /// The one without.
    pub(crate) fixed: fn() -> Sim,
}

impl Case {
    /// Whether a failure is the one that the mistake brings about, at the moment that matters.
    pub(crate) fn is_it(&self, failure: &Failure) -> Result<(), String> {
        let oracle = failure.violation.oracle;
        if oracle != self.oracle {
            return Err(format!("{oracle}, and should be {}", self.oracle));
        }
        let found = moments(failure);
        let right = found.iter().zip(self.moment).filter(|(found, wanted)| found.contains(*wanted)).count();
        if right == self.moment.len() && right == found.len() {
            return Ok(());
        }
        Err(format!("at {found:?}, and should be at {:?}", self.moment))
    }
}

/// A systematic adversary of the simulator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Adversary {
    Crash,
    Stale,
    Hide,
    Conflict,
}

impl Adversary {
    pub(crate) fn run(self, sim: &Sim, seed: u64) -> Result<u64, Box<Failure>> {
        match self {
            Self::Crash => sim.crash_at_every_write(seed),
            Self::Stale => sim.stale_read_at_every_restart(seed),
            Self::Hide => sim.hide_every_event(seed),
            Self::Conflict => sim.conflict_at_every_update(seed),
        }
    }
}

/// All of them, by class.
pub(crate) const CASES: [Case; 10] = [
    crash::ISSUER,
    crash::PORTS,
    stale::RING,
    stale::CLEANER,
    events::BACKUPS,
    events::MIGRATIONS,
    conflict::ROUTES,
    conflict::ROLLOUT,
    finalizers::ACCOUNTS,
    finalizers::BUCKETS,
];

/// The first seed of a range whose faults bring something to light.
pub(crate) fn first_seed(sim: &Sim, seeds: Range<u64>) -> Option<Box<Failure>> {
    seeds.into_iter().find_map(|seed| sim.run(seed).err())
}

/// An API server that knows the kinds.
fn cluster() -> Sim {
    Sim::new().server(ServerOptions { resources: kinds::resources(), ..ServerOptions::default() })
}

fn api<K: Kind>() -> Api<K> {
    Api::namespaced(NS)
}

fn millis(n: u64) -> Duration {
    Duration::from_millis(n)
}

/// Somebody changes a part of an object that is there.
fn merge<K: Kind + FromObject + Answer>(c: &mut Cluster<'_>, name: &str, part: Value) {
    let patch = api::<K>().patch(name, &Patch::Merge(part), &PatchParams::default());
    c.send(patch).expect("it is there");
}

/// The names of all objects of a kind.
fn names<K: Kind + FromObject>(c: &Cluster<'_>) -> Vec<String> {
    c.objects(&K::resource_type()).iter().map(|o| o.name().to_owned()).collect()
}

/// There are these objects of a kind and no others.
fn only<K: Kind + FromObject>(c: &Cluster<'_>, wanted: &[&str]) -> Result<(), String> {
    let (kind, found) = (K::resource_type().kind, names::<K>(c));
    if found == wanted { Ok(()) } else { Err(format!("{kind}: {found:?}, and should be {wanted:?}")) }
}
