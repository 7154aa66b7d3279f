mod properties;
mod scenes;
mod written;

use alloc::format;
use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::time::Duration;

use super::*;
use crate::api::{ResourceType, Scope, Written, WrittenState};
use crate::machine::{Machine, Outputs};
use crate::object::{Key, OwnerReference, Resource};
use crate::store::{Delta, Store};
use crate::time::Time;
use crate::watcher::Event;

pub(crate) const WEBS: ResourceType = ResourceType::new("shop.io", "v1", "webs", "Web", Scope::Namespaced);
pub(crate) const ZONES: ResourceType = ResourceType::new("shop.io", "v1", "zones", "Zone", Scope::Cluster);
pub(crate) const PODS: ResourceType = ResourceType::new("", "v1", "pods", "Pod", Scope::Namespaced);
pub(crate) const NODES: ResourceType = ResourceType::new("", "v1", "nodes", "Node", Scope::Cluster);

/// A stand-in for an object.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Obj {
    pub(crate) key: Key,
    pub(crate) uid: String,
    pub(crate) version: String,
    pub(crate) owners: Vec<OwnerReference>,
}

impl Resource for Obj {
    fn key(&self) -> Key {
        self.key.clone()
    }

    fn uid(&self) -> &str {
        &self.uid
    }

    fn resource_version(&self) -> &str {
        &self.version
    }

    fn each_owner(&self, each: &mut dyn FnMut(&OwnerReference)) {
        self.owners.iter().for_each(each);
    }
}

pub(crate) fn obj(key: &str, version: u64) -> Obj {
    Obj {
        key: key.parse().unwrap(),
        uid: format!("uid-{key}"),
        version: version.to_string(),
        owners: Vec::new(),
    }
}

impl Obj {
    pub(crate) fn owned_by(mut self, of: &ResourceType, name: &str, controller: bool) -> Self {
        self.owners.push(OwnerReference {
            api_version: of.api_version(),
            kind: of.kind.to_string(),
            name: name.to_string(),
            controller: controller.then_some(true),
            ..OwnerReference::default()
        });
        self
    }
}

/// A controller, the stores of its sources, and a clock.
pub(crate) struct Bench {
    pub(crate) controller: Controller<Obj>,
    stores: Vec<Store<Obj>>,
    pub(crate) now: Time,
    /// Runs that have not been reported as done.
    pub(crate) open: Vec<Run<Obj>>,
    out: Outputs<Output<Obj>>,
}

impl Bench {
    pub(crate) fn new(config: Config<Obj>) -> Self {
        Self {
            stores: config.sources.iter().map(|_| Store::new()).collect(),
            controller: Controller::new(config, 1),
            now: Time::ZERO,
            open: Vec::new(),
            out: Outputs::new(),
        }
    }

    /// One that has started, with these primary objects and nothing in its other sources; nothing has run yet.
    pub(crate) fn ready(config: Config<Obj>, objects: &[Obj]) -> Self {
        let mut bench = Self::new(config);
        bench.input(Input::Start);
        for n in (0..u32::try_from(bench.stores.len()).unwrap()).rev() {
            bench.list(n, if n == 0 { objects } else { &[] });
        }
        bench
    }

    pub(crate) fn input(&mut self, input: Input<Obj>) -> String {
        self.controller.handle(self.now, input, &mut self.out);
        let mut words = Vec::new();
        for output in self.out.drain() {
            words.push(match output {
                Output::Run(run) => {
                    let word = format!("run {}@{}", run.key, run.object.version);
                    self.open.push(run);
                    word
                }
                Output::Abandon(id) => format!("abandon {id}"),
                Output::Ready => "ready".to_string(),
                Output::Stopped { unfinished } => format!("stopped {unfinished}"),
                Output::Notice(Notice::Failed { key, failures, retry_in, panicked, .. }) => {
                    let how = if panicked { "panicked" } else { "failed" };
                    format!("{how} {key} x{failures} {retry_in:?}")
                }
                Output::Notice(Notice::GaveUp { key, error, .. }) => format!("gave up {key}: {error}"),
                Output::Notice(Notice::TimedOut { key, after, .. }) => format!("timeout {key} {after:?}"),
                Output::Notice(Notice::WaitingForSources(ids)) => {
                    format!("waiting for {:?}", ids.iter().map(|s| s.0).collect::<Vec<_>>())
                }
                Output::Notice(Notice::NotShown { key, source, object, after }) => {
                    format!("{object} not shown to {key} by {} for {after:?}", source.0)
                }
                Output::Notice(Notice::MappingPanicked { source, key, error }) => {
                    format!("mapping {} of {key} panicked: {error}", source.0)
                }
            });
        }
        words.join("; ")
    }

    /// Applies events to a store and hands on what they change.
    pub(crate) fn events(&mut self, source: u32, events: Vec<Event<Obj>>) -> String {
        let store = &mut self.stores[source as usize];
        let mut changes = Vec::new();
        for event in events {
            store.apply(event, &mut changes);
        }
        let delta = Delta {
            changes: changes.into(),
            view: store.snapshot(),
            synced: store.is_synced(),
            resource_version: store.resource_version().into(),
            received: self.now,
        };
        self.input(Input::Delta { source: SourceId(source), delta })
    }

    pub(crate) fn list(&mut self, source: u32, objects: &[Obj]) -> String {
        let version = objects.iter().map(|o| o.version.parse::<u64>().unwrap()).max().unwrap_or(1);
        let mut events = Vec::from([Event::Init]);
        events.extend(objects.iter().cloned().map(Event::InitApply));
        events.push(Event::InitDone { resource_version: version.to_string() });
        self.events(source, events)
    }

    pub(crate) fn apply(&mut self, source: u32, object: Obj) -> String {
        self.events(source, Vec::from([Event::Apply(object)]))
    }

    pub(crate) fn delete(&mut self, source: u32, object: Obj) -> String {
        self.events(source, Vec::from([Event::Delete(object)]))
    }

    /// Ends the oldest open run of a key.
    pub(crate) fn done(&mut self, key: &str, outcome: Outcome) -> String {
        let at = self.open.iter().position(|r| r.key.to_string() == key).expect("it runs");
        let id = self.open.remove(at).id;
        self.input(Input::Done { id, outcome, started: self.now })
    }

    /// A run has written an object; "" for gone.
    pub(crate) fn wrote(&mut self, key: &str, of: &ResourceType, object: &str, version: &str) -> String {
        self.labelled(key, of, object, version, "")
    }

    /// A run has written an object with the label `app`.
    pub(crate) fn labelled(
        &mut self,
        key: &str,
        of: &ResourceType,
        object: &str,
        version: &str,
        app: &str,
    ) -> String {
        let id = self.open.iter().find(|r| r.key.to_string() == key).expect("it runs").id;
        let now = match version {
            "" => WrittenState::Gone,
            at => WrittenState::At(at.to_string()),
        };
        let (group, plural) = (of.group.to_string(), of.plural.to_string());
        let (key, uid) = (object.parse().unwrap(), format!("uid-{object}"));
        let labels =
            [("app".to_string(), app.to_string())].into_iter().filter(|(_, v)| !v.is_empty()).collect();
        self.input(Input::Wrote { id, write: Written { group, plural, key, uid, labels, now } })
    }

    pub(crate) fn ok(&mut self, key: &str) -> String {
        self.done(key, Outcome::AwaitChange)
    }

    pub(crate) fn both(&mut self, one: &str, other: &str) {
        self.ok(one);
        self.ok(other);
    }

    pub(crate) fn fail(&mut self, key: &str) -> String {
        self.done(key, Outcome::Error("no".to_string()))
    }

    pub(crate) fn trigger(&mut self, key: &str) -> String {
        self.input(Input::Trigger { key: key.parse().unwrap(), priority: Priority::NORMAL })
    }

    pub(crate) fn pass(&mut self, d: Duration) -> String {
        self.now = self.now + d;
        self.input(Input::Deadline)
    }

    /// Waits for the next deadline.
    pub(crate) fn wait(&mut self) -> String {
        let d = self.controller.next_deadline().expect("a deadline");
        self.now = self.now.max(d.at);
        let said = self.input(Input::Deadline);
        let next = self.controller.next_deadline();
        assert!(next.is_none_or(|n| n.at > self.now), "{d:?} was served and {next:?} returned");
        said
    }
}

pub(crate) fn shared<T>(value: T) -> Arc<T> {
    Arc::new(value)
}
