//! A controller under test: what it saw, and whether that is what there is.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::{Value, json};
use steersman_core::api::kinds::CONFIGMAPS;
use steersman_core::controller::{Action, Builder, WatchSpec};
use steersman_core::manager::status::ManagerStatus;
use steersman_core::manager::{self, ExitReason};
use steersman_core::object::{Key, Object, version};
use steersman_core::source::{Options, SourceStatus};
use steersman_core::store::{Change, Snapshot};

use super::notes::{self, Note};
use super::until;
use crate::lens::Lens;
use crate::realapi::RealApi;
use crate::suite::Executor;
use crate::suite::executor::{Cx, Work};
use crate::suite::stage::Running;

/// The object that a scene changes last: a run that saw this change had a view of all the others.
const ANCHOR: &str = "anchor";

/// What a subject saw, and what was wrong with it.
#[derive(Default)]
struct Record {
    /// The objects, by the changes that its subscriber was told, in order.
    model: BTreeMap<Key, Object>,
    /// The last version that was told of each uid.
    told: BTreeMap<String, String>,
    /// The last version that was reconciled of each uid.
    ran: BTreeMap<String, String>,
    runs: usize,
    deletions: usize,
    /// The view of the last run of the anchor.
    view: Snapshot<Object>,
    /// The state was set back by a restore: until the next check versions may be lower than they were.
    set_back: bool,
    faults: Vec<String>,
}

impl Record {
    fn fault(&mut self, text: String) {
        // The first ones tell; the rest follows from them.
        if self.faults.len() < 10 {
            self.faults.push(text);
        }
    }

    fn forward(&mut self, what: &str, object: &Object, last: Option<String>) {
        let now = object.resource_version();
        if let Some(last) = last.filter(|last| version::is_above(last, now) && !self.set_back) {
            self.fault(format!("{what}: {} went from version {last} to {now}", object.name()));
        }
    }

    fn applied(&mut self, change: &Change<Object>) {
        let (old, new) = match change {
            Change::Added { new, .. } => (None, new),
            Change::Updated { old, new, .. } => (Some(old), new),
            Change::Deleted { .. } => return,
        };
        let key = Key::namespaced(new.namespace().unwrap_or_default(), new.name());
        let known = self.model.insert(key, new.clone());
        let of = |o: Option<&Object>| o.map(|o| (o.uid().to_owned(), o.resource_version().to_owned()));
        if of(known.as_ref()) != of(old) {
            self.fault(format!(
                "{} changed from {:?}, but {:?} was told before",
                new.name(),
                of(old),
                of(known.as_ref())
            ));
        }
        if old.is_some_and(|old| old.uid() != new.uid()) {
            self.fault(format!("{} changed its uid without a deletion", new.name()));
        }
        let last = self.told.insert(new.uid().to_owned(), new.resource_version().to_owned());
        self.forward("told", new, last);
    }

    fn deleted(&mut self, object: &Object) {
        self.deletions += 1;
        let key = Key::namespaced(object.namespace().unwrap_or_default(), object.name());
        let known = self.model.remove(&key);
        if known.as_ref().map(Object::uid) != Some(object.uid()) {
            self.fault(format!("{} was deleted, but not there", object.name()));
        }
        let last = self.told.remove(object.uid());
        self.forward("deleted", object, last);
    }

    fn ran(&mut self, object: &Object, cx: &Cx) {
        self.runs += 1;
        let last = self.ran.insert(object.uid().to_owned(), object.resource_version().to_owned());
        self.forward("reconciled", object, last);
        if object.name() == ANCHOR {
            self.view = cx.view.clone();
        }
    }
}

/// A running manager of any executor.
trait Handle {
    fn status(&self) -> ManagerStatus;
    fn stop(self: Box<Self>);
}

impl<E: Executor> Handle for Running<E> {
    fn status(&self) -> ManagerStatus {
        Self::status(self)
    }

    fn stop(self: Box<Self>) {
        E::stop(&self.0);
        assert_eq!(self.exit(), ExitReason::Stopped);
    }
}

/// A controller of the ConfigMaps of a namespace of its own.
pub struct Subject {
    /// Executor and kind of list.
    pub name: &'static str,
    /// Its namespace.
    pub namespace: String,
    /// Whether it asks for streaming lists.
    pub streaming: bool,
    lens: Option<Lens>,
    record: Arc<Mutex<Record>>,
    handle: Box<dyn Handle>,
}

impl Subject {
    /// Starts it. Its namespace and anchor are there.
    ///
    /// # Panics
    /// When it does not start.
    #[must_use]
    pub fn start<E: Executor>(
        name: &'static str,
        namespace: String,
        kubeconfig: &Path,
        lens: Option<Lens>,
        options: Options,
    ) -> Self {
        let record = Arc::new(Mutex::new(Record::default()));
        let lock = |r: &Arc<Mutex<Record>>| {
            let record = Arc::clone(r);
            move |f: &mut dyn FnMut(&mut Record)| {
                f(&mut record.lock().unwrap_or_else(PoisonError::into_inner))
            }
        };
        let (applied, deleted, ran) = (lock(&record), lock(&record), lock(&record));
        let maps = WatchSpec::all(CONFIGMAPS).within(namespace.as_str());
        // A second subscriber of the same watch tells every change: the predicate sees what is added or changed and says
        // no, so the mapping sees what is deleted and nothing else.
        let controller = Builder::of(maps.clone())
            .concurrency(4)
            .watches(maps, move |object: &Object| {
                deleted(&mut |r| r.deleted(object));
                Vec::new()
            })
            .filter(move |change| {
                applied(&mut |r| r.applied(change));
                false
            });
        let work: Work<Object> = Arc::new(move |object, cx| {
            ran(&mut |r| r.ran(object, cx));
            Ok(Action::await_change())
        });
        let streaming = options.watcher.streaming;
        let client = E::client(kubeconfig).unwrap_or_else(|e| panic!("{name}: no client: {e}"));
        let manager = E::add(E::manager(client, manager::Config::default(), options), controller, work);
        let handle = E::start(manager).unwrap_or_else(|e| panic!("{name}: no start: {e}"));
        Self { name, namespace, streaming, lens, record, handle: Box::new(Running::<E>(handle)) }
    }

    /// The relay before it.
    ///
    /// # Panics
    /// When the scene gave it none.
    #[must_use]
    pub fn lens(&self) -> &Lens {
        self.lens.as_ref().unwrap_or_else(|| panic!("{} has no lens", self.name))
    }

    fn record(&self) -> MutexGuard<'_, Record> {
        self.record.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn path(&self) -> String {
        format!("/api/v1/namespaces/{}/configmaps", self.namespace)
    }

    /// What its watch says about itself; none before it started.
    #[must_use]
    pub fn status(&self) -> Option<SourceStatus> {
        self.handle.status().sources.swap_remove(0).status
    }

    /// What its watch told, all of it or what has this message.
    #[must_use]
    pub fn told(&self, message: &str) -> Vec<Note> {
        let mut notes = notes::of(&self.path());
        notes.retain(|n| message.is_empty() || n.message == message);
        notes
    }

    /// All that is known of it, for a failure.
    #[must_use]
    pub fn state(&self) -> String {
        let notes = self.told("");
        let notes: Vec<String> =
            notes[notes.len().saturating_sub(15)..].iter().map(ToString::to_string).collect();
        let seen: Vec<String> = self.lens.as_ref().map_or_else(Vec::new, |lens| {
            let seen = lens.seen();
            let last = &seen[seen.len().saturating_sub(8)..];
            last.iter().map(|s| format!("{} {} {:?} {}", s.status, s.target, s.errors, s.refusal)).collect()
        });
        format!("{}: {:?}\nnotes: {notes:#?}\nseen: {seen:#?}", self.name, self.handle.status())
    }

    /// Waits until it is as asked.
    ///
    /// # Panics
    /// When that does not happen.
    pub fn until(&self, what: &str, is: impl Fn(&Self) -> bool) {
        until(what, || self.state(), || is(self).then_some(()));
    }

    /// Waits until its watch has told this at least so often.
    pub fn until_told(&self, message: &str, times: usize) {
        let what = format!("{message:?} is told {times} times");
        self.until(&what, |s| s.told(message).len() >= times);
    }

    /// Waits until it has had its first full state.
    pub fn ready(&self) {
        self.until("ready", |s| s.handle.status().ready().is_ok());
    }

    /// The state is about to be set back on purpose: versions may go down until the next [`Subject::settle`].
    pub fn expect_set_back(&self) {
        self.record().set_back = true;
    }

    /// Waits until it has seen all that there is, when nobody writes any more, and compares.
    ///
    /// # Panics
    /// When anything differs, was lost, or went back.
    pub fn settle(&self, api: &RealApi) {
        let ask = |method: &str, path: &str, body: Option<Value>| {
            let body = body.map(|b| b.to_string());
            let headers = [("Content-Type", "application/merge-patch+json")];
            let answer =
                api.client().send(method, path, &headers, body.as_deref().map(str::as_bytes), super::LIMIT);
            let answer = answer.unwrap_or_else(|e| panic!("{method} {path}: {e}"));
            assert_eq!(answer.status, 200, "{method} {path}: {}", String::from_utf8_lossy(&answer.body));
            answer.json()
        };
        let stamp = format!("{:?}", std::time::Instant::now());
        let anchor = ask("PATCH", &format!("{}/{ANCHOR}", self.path()), Some(json!({"data": {"v": stamp}})));
        let text = |v: &Value, field: &str| v["metadata"][field].as_str().unwrap_or_default().to_owned();
        let (uid, version) = (text(&anchor, "uid"), text(&anchor, "resourceVersion"));
        self.until("the last change is reconciled", |s| s.record().ran.get(&uid) == Some(&version));

        let list = ask("GET", &self.path(), None);
        let there: BTreeMap<String, Value> = list["items"]
            .as_array()
            .into_iter()
            .flatten()
            .map(|item| (text(item, "name"), normal(item.clone())))
            .collect();
        assert!(there.len() > 1, "{}: the writer wrote nothing", self.name);
        self.until("the last state of every object is reconciled", |s| {
            let record = s.record();
            there.values().all(|o| record.ran.get(&text(o, "uid")) == Some(&text(o, "resourceVersion")))
        });
        let view: BTreeMap<String, Value> =
            self.record().view.iter().map(|(key, o)| (key.name().to_owned(), json_of(&o))).collect();
        same(self.name, "the view", &view, &there);
        let model: BTreeMap<String, Value> =
            self.record().model.iter().map(|(key, o)| (key.name().to_owned(), json_of(o))).collect();
        same(self.name, "what was told", &model, &there);
        let mut record = self.record();
        assert!(record.faults.is_empty(), "{}: {:#?}", self.name, record.faults);
        record.set_back = false;
        drop(record);
        self.until("the status is well", |s| {
            s.status().is_some_and(|s| {
                s.objects == there.len() && (s.watcher.quarantine.len(), s.watcher.unreadable) == (0, 0)
            })
        });
    }

    /// Ends it; gives a line with its figures.
    #[must_use]
    pub fn stop(self) -> String {
        let status = self.status();
        let (runs, deletions) = {
            let record = self.record();
            (record.runs, record.deletions)
        };
        self.handle.stop();
        status.map_or_else(String::new, |s| {
            format!(
                "{}: {} events, {} relists, {} watches, {} stale, {runs} runs, {deletions} deletions",
                self.name, s.watcher.events, s.watcher.relists, s.watcher.watches, s.stale
            )
        })
    }
}

/// The same object from a list, a watch and a store: only a watch says what kind it is, and a store keeps no field owners.
fn normal(mut object: Value) -> Value {
    if let Some(fields) = object.as_object_mut() {
        fields.remove("kind");
        fields.remove("apiVersion");
    }
    if let Some(metadata) = object["metadata"].as_object_mut() {
        metadata.remove("managedFields");
    }
    object
}

fn json_of(object: &Object) -> Value {
    normal(object.value().unwrap_or_else(|e| panic!("{}: {e}", object.name())))
}

fn same(who: &str, what: &str, ours: &BTreeMap<String, Value>, there: &BTreeMap<String, Value>) {
    let names = |of: &BTreeMap<String, Value>| of.keys().cloned().collect::<Vec<_>>();
    assert_eq!(names(ours), names(there), "{who}: {what}");
    for (name, object) in there {
        assert_eq!(&ours[name], object, "{who}: {what}: {name}");
    }
}
