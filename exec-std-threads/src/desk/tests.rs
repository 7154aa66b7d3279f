use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::thread;

use steersman_core::api::kinds::{CONFIGMAPS, SECRETS};
use steersman_core::api::{Written, WrittenState};
use steersman_core::controller::stats::ControllerStatus;
use steersman_core::controller::{Config, MapFn, Outcome, SourceId, WatchSpec};
use steersman_core::manager::status::Board;
use steersman_core::manager::{ControllerId, ControllerSpec, WatchPlan};
use steersman_core::object::Key;
use steersman_core::store::{Delta, Store};
use steersman_core::watcher::Event;

use super::*;
use crate::clerk::Word;

fn object(kind: &str, name: &str) -> Object {
    let json = format!(
        r#"{{"apiVersion":"v1","kind":"{kind}","metadata":{{"namespace":"n","name":"{name}","uid":"{name}","resourceVersion":"5"}}}}"#
    );
    Object::from_json(json.as_bytes()).unwrap()
}

fn delta(kind: &str, names: &[&str]) -> Delta<Object> {
    let (mut store, mut changes) = (Store::new(), Vec::new());
    store.apply(Event::Init, &mut changes);
    for name in names {
        store.apply(Event::InitApply(object(kind, name)), &mut changes);
    }
    store.apply(Event::InitDone { resource_version: "5".into() }, &mut changes);
    Delta {
        changes: changes.into(),
        view: store.snapshot(),
        synced: true,
        resource_version: "5".into(),
        received: Time::ZERO,
    }
}

fn desk(config: Config<Object>) -> (Arc<Desk>, mpsc::Receiver<Word>, Shared) {
    let specs = [ControllerSpec::from(&config)];
    let plan = WatchPlan::build(&specs).unwrap();
    let (shared, _) = Shared::of(Board::new(&specs, &plan));
    let (sender, inbox) = mpsc::sync_channel(8);
    let controller = Recorded::not(Controller::new(config, 0));
    let reach = Reach { controller: ControllerId(0), inbox: sender };
    let desk = Desk::new(reach, (Clock::start(), shared.clone()), controller);
    desk.hear(Input::Start);
    (Arc::new(desk), inbox, shared)
}

fn status(shared: &Shared) -> ControllerStatus {
    let mut status = None;
    shared.board(|board| status = board.status().controllers.first().cloned());
    status.unwrap()
}

fn written(name: &str, version: &str) -> Written {
    Written {
        group: String::new(),
        plural: "configmaps".into(),
        key: Key::namespaced("n", name),
        uid: name.into(),
        labels: BTreeMap::new(),
        now: WrittenState::At(version.into()),
    }
}

fn finish(desk: &Desk, job: &Job) -> Option<Job> {
    let done = Input::Done { id: job.run.id, outcome: Outcome::AwaitChange, started: Time::ZERO };
    desk.done(job.run.id, [done].into_iter())
}

#[test]
fn the_status_is_looked_after_while_workers_are_busy() {
    let (desk, inbox, shared) = desk(Config::new("c", WatchSpec::all(CONFIGMAPS)));
    desk.hear(Input::Delta { source: SourceId(0), delta: delta("ConfigMap", &["a", "b"]) });
    let a = desk.take().unwrap();
    assert!(desk.sleep(true).is_some_and(|at| at <= desk.clock.now() + STATUS_EVERY));
    assert!(!desk.is_due());
    assert_eq!(desk.sleep(true), None, "nothing has changed");
    let b = finish(&desk, &a).unwrap();
    assert_eq!(b.run.key.name(), "b");
    // However long b takes: the clerk is woken, and writes.
    assert!(matches!(inbox.try_recv(), Ok(Word::Input(ControllerId(0), Input::Deadline))));
    desk.hear(Input::Deadline);
    assert!(desk.sleep(true).is_some_and(|at| at <= desk.clock.now() + STATUS_EVERY));
    let heard = status(&shared);
    assert_eq!((heard.results.success, heard.queued), (1, 0), "{:?}", heard.oldest_run);
    // The last one writes itself.
    assert!(finish(&desk, &b).is_none());
    assert_eq!(status(&shared).results.success, 2);
}

#[test]
fn what_a_reconcile_wrote_is_heard_before_its_end() {
    let (desk, _inbox, shared) = desk(Config::new("c", WatchSpec::all(CONFIGMAPS)));
    desk.hear(Input::Delta { source: SourceId(0), delta: delta("ConfigMap", &["a"]) });
    let a = desk.take().unwrap();
    // As if the machine had been busy.
    lock(&desk.writes).push(Input::Wrote { id: a.run.id, write: written("a", "9") });
    assert!(finish(&desk, &a).is_none());
    assert_eq!(status(&shared).on_hold, 1);
}

#[test]
fn a_panic_of_the_machine_ends_the_controller() {
    let (desk, inbox, _) = desk(Config::new("c", WatchSpec::all(CONFIGMAPS)));
    desk.hear(Input::Delta { source: SourceId(0), delta: delta("ConfigMap", &["a", "b"]) });
    let a = desk.take().unwrap();
    desk.sleep(true);
    let other = Arc::clone(&desk);
    let panics = thread::spawn(move || {
        let _state = other.state();
        panic!("in the machine");
    });
    assert!(panics.join().is_err());
    assert!(finish(&desk, &a).is_none() && desk.take().is_none() && desk.is_closed());
    assert!(inbox.try_recv().is_ok(), "the clerk is woken");
}

#[test]
fn after_the_end_nothing_begins() {
    let (desk, _inbox, _) = desk(Config::new("c", WatchSpec::all(CONFIGMAPS)));
    desk.hear(Input::Delta { source: SourceId(0), delta: delta("ConfigMap", &["a", "b"]) });
    let a = desk.take().unwrap();
    desk.close();
    assert!(a.abandoned.get() && finish(&desk, &a).is_none() && desk.take().is_none());
}

#[test]
fn what_waits_longest_is_taken_first() {
    let mut config = Config::new("c", WatchSpec::all(CONFIGMAPS));
    config.concurrency = 2;
    let (desk, _inbox, _) = desk(config);
    desk.hear(Input::Delta { source: SourceId(0), delta: delta("ConfigMap", &["a", "b", "c", "d"]) });
    let a = desk.take().unwrap();
    let next = finish(&desk, &a).unwrap();
    assert_eq!(next.run.key.name(), "b", "one worker only: b was handed out before");
}

#[test]
fn a_lock_shared_by_mapping_and_reconcile() {
    let cache = Arc::new(Mutex::new(()));
    let entered = Arc::new(AtomicBool::new(false));
    let (c, e) = (Arc::clone(&cache), Arc::clone(&entered));
    let map: MapFn<Object> = Arc::new(move |_: &Object| {
        e.store(true, Ordering::SeqCst);
        drop(lock(&c));
        Vec::new()
    });
    let config = Config::new("c", WatchSpec::all(CONFIGMAPS))
        .watches(WatchSpec::all(SECRETS), move |o: &Object| map(o));
    let (desk, inbox, _) = desk(config);
    let held = lock(&cache);
    let d = Arc::clone(&desk);
    let mapping =
        thread::spawn(move || d.hear(Input::Delta { source: SourceId(1), delta: delta("Secret", &["s"]) }));
    while !entered.load(Ordering::SeqCst) {
        thread::yield_now();
    }
    // The reconcile, which holds the cache, writes; were it to wait for the machine, nothing would ever go on here.
    desk.wrote(Input::Wrote { id: ReconcileId(1), write: written("a", "9") });
    drop(held);
    mapping.join().unwrap();
    assert!(matches!(inbox.try_recv(), Ok(Word::Input(_, Input::Deadline))), "the machine will look for it");
}
