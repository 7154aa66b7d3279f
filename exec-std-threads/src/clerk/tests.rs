use std::sync::Weak;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use steersman_core::api::kinds::CONFIGMAPS;
use steersman_core::config::{Cluster, Config as ClientConfig};
use steersman_core::controller::{Config, Outcome, WatchSpec};
use steersman_core::manager::status::Board;
use steersman_core::manager::{self, ControllerSpec, WatchPlan};
use steersman_core::object::Key;
use steersman_core::queue::Priority;
use steersman_core::record::file::Header;
use steersman_core::record::{Recorder, Sink};
use steersman_core::store::Store;
use steersman_core::watcher::Event;

use super::*;
use crate::Client;
use crate::controller::Opening;
use crate::manager::Shared;
use crate::reconcile::Dynamic;

/// Nothing of these tests takes so long.
const LIMIT: Duration = Duration::from_secs(60);

const A: ControllerId = ControllerId(0);
const B: ControllerId = ControllerId(1);

/// Panics when its machine is recorded, from the beginning or once it is lit.
#[derive(Default)]
struct Fuse {
    at_once: bool,
    lit: AtomicBool,
}

struct Fused(Arc<Fuse>);

/// Without the message of the hook.
fn panics() -> ! {
    std::panic::resume_unwind(Box::new("as planned"))
}

impl Recorder for Fused {
    fn open(&self, _: Header) -> Arc<dyn Sink> {
        if self.0.at_once {
            panics();
        }
        Arc::clone(&self.0) as Arc<dyn Sink>
    }
}

impl Sink for Fuse {
    fn record(&self, _: Vec<u8>) -> bool {
        if self.lit.load(Ordering::SeqCst) {
            panics();
        }
        true
    }
}

/// Two controllers of one thread.
struct Two {
    inbox: SyncSender<Word>,
    /// Who ran.
    ran: Receiver<ControllerId>,
    /// What the manager was told.
    said: Receiver<manager::Input>,
    desks: [Weak<Desk>; 2],
    clerk: JoinHandle<()>,
}

impl Two {
    /// `outcome` is that of the first.
    fn start(outcome: Outcome, fuse: &Arc<Fuse>) -> Self {
        let configs = ["a", "b"].map(|name| Config::new(name, WatchSpec::all(CONFIGMAPS)));
        let specs = configs.each_ref().map(ControllerSpec::from);
        let (shared, said) = Shared::of(Board::new(&specs, &WatchPlan::build(&specs).unwrap()));
        let (inbox, words) = mpsc::sync_channel(4);
        let (runs, ran) = mpsc::channel();
        let clock = Clock::start();
        let mut all = Vec::new();
        let desks = [(A, outcome), (B, Outcome::AwaitChange)].map(|(controller, outcome)| {
            let runs = runs.clone();
            let reconcile: Dynamic = Arc::new(move |_, _| {
                let _ = runs.send(controller);
                outcome.clone()
            });
            let recorder = Some(Arc::new(Fused(Arc::clone(fuse))) as Arc<dyn Recorder>);
            let opening = Opening {
                reach: Reach { controller, inbox: inbox.clone() },
                config: configs[controller.0 as usize].clone(),
                reconcile,
                client: Client::new(ClientConfig::new(Cluster::parse("http://127.0.0.1:1").unwrap()))
                    .unwrap(),
                clock,
                seed: 0,
                recorder: recorder.filter(|_| controller == A),
                shared: shared.clone(),
            };
            let over = manager::Input::ControllerStopped { controller, unfinished: 0 };
            let last_words = LastWords { shared: shared.clone(), over };
            let Ok(desk) = catch_unwind(AssertUnwindSafe(|| opening.open())) else { return Weak::new() };
            let weak = Arc::downgrade(&desk);
            all.push((controller, Served::new(desk, last_words)));
            weak
        });
        // What comes before the clerk waits for it.
        let both = [(A, SourceId::PRIMARY), (B, SourceId::PRIMARY)];
        inbox.send(Word::Delta(Arc::new(both), one_map())).unwrap();
        let clerk = thread::spawn(move || Clerk::serve(clock, words, all));
        Self { inbox, ran, said, desks, clerk }
    }

    /// The first runs of both.
    fn ran(self) -> Self {
        let mut first = [(); 2].map(|()| self.ran.recv_timeout(LIMIT).unwrap());
        first.sort();
        assert_eq!(first, [A, B]);
        self
    }

    fn tell(&self, controller: ControllerId, input: Input<Object>) {
        self.inbox.send(Word::Input(controller, input)).unwrap();
    }

    fn trigger(&self, controller: ControllerId) {
        let (key, priority) = (Key::namespaced("n", "a"), Priority::default());
        self.tell(controller, Input::Trigger { key, priority });
    }

    fn is_over(&self, id: ControllerId) {
        // (A machine may say so before the last words do.)
        let over =
            |said| matches!(said, manager::Input::ControllerStopped { controller, .. } if controller == id);
        while !over(self.said.recv_timeout(LIMIT).unwrap()) {}
    }

    /// The second is stopped, and with it the thread.
    fn ends_with_b(self) {
        self.tell(B, Input::Stop { grace: None });
        self.is_over(B);
        self.clerk.join().unwrap();
    }
}

/// A first state with one object.
fn one_map() -> Delta<Object> {
    let json = br#"{"metadata":{"namespace":"n","name":"a","uid":"u","resourceVersion":"5"}}"#;
    let object = Object::from_json(json).unwrap();
    let (mut store, mut changes) = (Store::new(), Vec::new());
    for event in [Event::Init, Event::InitApply(object), Event::InitDone { resource_version: "5".into() }] {
        store.apply(event, &mut changes);
    }
    let view = store.snapshot();
    assert_eq!(view.values().map(|o| o.name().to_owned()).collect::<Vec<_>>(), ["a"]);
    Delta { changes: changes.into(), view, synced: true, resource_version: "5".into(), received: Time::ZERO }
}

#[test]
fn a_machine_that_panics_ends_no_other() {
    let fuse = Arc::new(Fuse::default());
    let two = Two::start(Outcome::AwaitChange, &fuse).ran();
    fuse.lit.store(true, Ordering::SeqCst);
    two.trigger(A);
    two.is_over(A);
    two.trigger(A);
    two.trigger(B);
    assert_eq!(two.ran.recv_timeout(LIMIT), Ok(B));
    two.ends_with_b();
}

#[test]
fn one_that_cannot_be_opened_ends_no_other() {
    let fuse = Arc::new(Fuse { at_once: true, ..Fuse::default() });
    let two = Two::start(Outcome::AwaitChange, &fuse);
    two.is_over(A);
    assert_eq!(two.ran.recv_timeout(LIMIT), Ok(B));
    two.ends_with_b();
}

#[test]
fn what_is_due_does_not_wait_for_others_to_be_silent() {
    let two = Two::start(Outcome::Requeue(Duration::from_millis(1)), &Arc::default()).ran();
    let done = Arc::new(AtomicBool::new(false));
    let always: Vec<_> = (0..2)
        .map(|_| {
            let (inbox, done) = (two.inbox.clone(), Arc::clone(&done));
            thread::spawn(move || {
                while !done.load(Ordering::SeqCst) {
                    inbox.send(Word::Input(B, Input::Deadline)).unwrap();
                }
            })
        })
        .collect();
    for _ in 0..20 {
        assert_eq!(two.ran.recv_timeout(LIMIT), Ok(A));
    }
    done.store(true, Ordering::SeqCst);
    always.into_iter().for_each(|thread| thread.join().unwrap());
    for id in [A, B] {
        two.tell(id, Input::Stop { grace: None });
    }
    two.clerk.join().unwrap();
}

#[test]
fn nothing_keeps_a_desk_after_the_end() {
    let two = Two::start(Outcome::AwaitChange, &Arc::default()).ran();
    let desk = two.desks[0].upgrade().unwrap();
    desk.kill();
    assert!(desk.is_closed() && desk.take().is_none());
    drop(desk);
    two.is_over(A);
    let desks = two.desks.clone();
    two.ends_with_b();
    // Workers go one after the other.
    while desks.iter().any(|desk| desk.strong_count() > 0) {
        thread::yield_now();
    }
}
