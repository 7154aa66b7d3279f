//! What must hold in every run, whatever the controllers do and whatever is done to them. Some of it is looked at as it
//! happens, the rest at the end.

use std::collections::BTreeMap;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;
use steersman_core::api::{Raw, Request};
use steersman_core::controller::{self, Config, Mapping, Outcome, Run, SourceId};
use steersman_core::manager::{WatchId, WatchPlan};
use steersman_core::object::{Key, Object, Resource};
use steersman_core::store::{Change, Delta};
use steersman_core::time::Time;

use crate::base::Who;
use crate::trace::{Entry, Kind, Lane, Trace};

/// Something that must not be.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Violation {
    /// Which oracle says so: `converges`, `stable`, `lost key`, `one run per key`, `versions`, `store`, `hot loop`,
    /// `only writes`, `always`, `end state`, `program`, `steps`, `panic`.
    pub oracle: &'static str,
    /// When.
    pub at: Time,
    /// What is wrong, in words.
    pub what: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {} (at {:?})", self.oracle, self.what, self.at)
    }
}

impl Violation {
    /// Writes it down as the last thing that happened.
    pub(crate) fn mark(&self, trace: &mut Trace) {
        let text = format!("{}: {}", self.oracle, self.what);
        trace.entries.push(Entry { at: self.at, lane: Lane::Cluster, kind: Kind::Violated, key: None, text });
    }
}

/// What a user allows to be written.
pub(crate) type OnlyWrites = Arc<dyn Fn(&Request<Raw>) -> bool + Send + Sync>;

/// Sees everything.
#[derive(Default)]
pub(crate) struct Eyes {
    pub(crate) violation: Option<Violation>,
    pub(crate) only_writes: Option<OnlyWrites>,
    lives: BTreeMap<usize, Seen>,
    /// Requests that reached a server.
    pub(crate) requests: u64,
    /// Requests that reconciles made, and those of them that change something, by process.
    pub(crate) asked: u64,
    pub(crate) writes: Vec<u64>,
    pub(crate) runs: u64,
    /// How many commits there were.
    pub(crate) made: u64,
    /// Numbers of commits that nobody has dealt with.
    pub(crate) commits: Vec<u64>,
}

/// What is known of one life of a process.
struct Seen {
    life: u64,
    controllers: Vec<Watched>,
    /// By watch: the highest version of each uid.
    versions: Vec<BTreeMap<String, u64>>,
    upto: Vec<u64>,
}

struct Watched {
    config: Config<Object>,
    /// Keys that must run, and by when (in the world's time).
    owed: BTreeMap<Key, Time>,
}

impl Eyes {
    pub(crate) fn new(processes: usize, only_writes: Option<OnlyWrites>) -> Self {
        Self { only_writes, writes: vec![0; processes], ..Self::default() }
    }

    /// The first violation counts; the rest may follow from it.
    pub(crate) fn violated(&mut self, at: Time, oracle: &'static str, what: impl Into<String>) {
        self.violation.get_or_insert_with(|| Violation { oracle, at, what: what.into() });
    }

    pub(crate) fn born(&mut self, who: Who, configs: Vec<Config<Object>>, plan: &WatchPlan) {
        let controllers =
            configs.into_iter().map(|config| Watched { config, owed: BTreeMap::new() }).collect();
        let versions = plan.sources.iter().map(|_| BTreeMap::new()).collect();
        let upto = vec![0; plan.sources.len()];
        self.lives.insert(who.process, Seen { life: who.life, controllers, versions, upto });
    }

    /// A watch tells what has changed: no object may go back.
    pub(crate) fn delta(&mut self, now: Time, who: Who, id: WatchId, delta: &Delta<Object>) {
        let Some(seen) = self.lives.get_mut(&who.process).filter(|s| s.life == who.life) else { return };
        let n = id.0 as usize;
        let mut wrong = None;
        if let Ok(upto) = delta.resource_version.parse::<u64>() {
            if upto < seen.upto[n] {
                wrong = Some(format!("watch {n} went back from {} to {upto}", seen.upto[n]));
            }
            seen.upto[n] = seen.upto[n].max(upto);
        }
        for change in &delta.changes {
            let (Change::Added { new, .. } | Change::Updated { new, .. }) = &change else { continue };
            let Ok(version) = new.resource_version().parse::<u64>() else { continue };
            let highest = seen.versions[n].entry(new.uid().to_owned()).or_default();
            if version < *highest {
                wrong = Some(format!("{} went back from version {highest} to {version}", Resource::key(new)));
            }
            *highest = version.max(*highest);
        }
        if let Some(what) = wrong {
            self.violated(now, "versions", format!("replica {}: {what}", who.process));
        }
    }

    /// A controller is told what has changed: from now on these keys are owed a run.
    pub(crate) fn told(&mut self, now: Time, who: Who, number: u32, id: SourceId, delta: &Delta<Object>) {
        let Some(watched) = self.watched(who, number) else { return };
        let Watched { config, owed } = watched;
        let Some(source) = config.sources.get(id.0 as usize) else { return };
        for change in &delta.changes {
            if id == SourceId::PRIMARY
                && let Change::Deleted { old, .. } = &change
            {
                owed.remove(&Resource::key(old));
                continue;
            }
            for key in concerned(config, source, &change) {
                owed.entry(key).or_insert(now);
            }
        }
    }

    /// A run begins.
    pub(crate) fn run<'a>(
        &mut self,
        now: Time,
        who: Who,
        number: u32,
        run: &Run<Object>,
        mut running: impl Iterator<Item = &'a Key>,
    ) {
        self.runs += 1;
        if running.any(|key| *key == run.key) {
            self.violated(now, "one run per key", format!("replica {}: {} runs twice", who.process, run.key));
        }
        if let Some(watched) = self.watched(who, number) {
            watched.owed.remove(&run.key);
        }
    }

    /// A run is over; what failed, or wants to be looked at again, is owed another.
    pub(crate) fn done(&mut self, now: Time, who: Who, number: u32, key: &Key, outcome: &Outcome) {
        let Some(watched) = self.watched(who, number) else { return };
        match outcome {
            Outcome::Requeue(d) => drop(watched.owed.entry(key.clone()).or_insert(now + *d)),
            // The pause stands in the notice.
            Outcome::Error(_) | Outcome::Panicked(_) => drop(watched.owed.entry(key.clone()).or_insert(now)),
            Outcome::AwaitChange | Outcome::Terminal(_) => {}
        }
    }

    pub(crate) fn notice(&mut self, now: Time, who: Who, number: u32, notice: &controller::Notice) {
        if let controller::Notice::Failed { key, retry_in: Some(pause), .. } = notice
            && let Some(watched) = self.watched(who, number)
        {
            watched.owed.insert(key.clone(), now + *pause);
        }
    }

    fn watched(&mut self, who: Who, number: u32) -> Option<&mut Watched> {
        let seen = self.lives.get_mut(&who.process).filter(|s| s.life == who.life)?;
        seen.controllers.get_mut(number as usize)
    }

    /// A reconcile makes a request.
    pub(crate) fn asks(&mut self, now: Time, who: Who, request: &Request<Raw>) {
        self.asked += 1;
        if matches!(request.method, steersman_core::api::Method::Get) {
            return;
        }
        self.writes[who.process] += 1;
        if self.only_writes.as_ref().is_some_and(|may| !may(request)) {
            let what = format!("replica {}: {} ({})", who.process, request.what, request.path_and_query);
            self.violated(now, "only writes", what);
        }
    }

    /// A key that should have run for so long, and has not, though it is known.
    pub(crate) fn lost(
        &self,
        now: Time,
        who: Who,
        late: Duration,
        knows: impl Fn(u32, &Key) -> bool,
    ) -> Option<String> {
        let seen = self.lives.get(&who.process).filter(|s| s.life == who.life)?;
        for (watched, number) in seen.controllers.iter().zip(0..) {
            let lost =
                watched.owed.iter().find(|(key, since)| now.since(**since) > late && knows(number, key));
            if let Some((key, since)) = lost {
                let name = &watched.config.name;
                return Some(format!("replica {}: {name} owes {key} a run since {since:?}", who.process));
            }
        }
        None
    }
}

/// The keys that a change concerns, as the documentation of the mappings has it. Made on its own, so that a mistake of
/// the controller's is not repeated here.
fn concerned(
    config: &Config<Object>,
    source: &controller::Source<Object>,
    change: &Change<Object>,
) -> Vec<Key> {
    let mut keys = Vec::new();
    // What panics concerns nobody; the controller says so.
    let _ = catch_unwind(AssertUnwindSafe(|| {
        let (new, old) = match change {
            Change::Added { new, .. } => (Some(new), None),
            Change::Updated { old, new, .. } => (Some(new), Some(old)),
            Change::Deleted { old, .. } => (None, Some(old)),
        };
        if new.is_some() && !source.predicates.iter().all(|p| p(change)) {
            return;
        }
        for object in new.into_iter().chain(old) {
            match &source.mapping {
                Mapping::Primary => keys.push(Resource::key(object)),
                Mapping::Map(map) => keys.extend(map(object)),
                Mapping::Owner { of, controller_only } => object.each_owner(&mut |owner| {
                    let group = owner.api_version.rsplit_once('/').map_or("", |(group, _)| group);
                    let managed = owner.controller == Some(true) || !controller_only;
                    if owner.kind == of.kind && group == of.group && managed && !owner.name.is_empty() {
                        let namespace = object.namespace().unwrap_or_default();
                        keys.push(Key::namespaced(namespace, &owner.name));
                    }
                }),
            }
        }
    }));
    let cluster = config.primary().is_some_and(|p| p.resource.scope == steersman_core::api::Scope::Cluster);
    if cluster {
        keys = keys.into_iter().map(|k| Key::cluster(k.name())).collect();
    }
    keys
}

#[cfg(test)]
mod tests;
