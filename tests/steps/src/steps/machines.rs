//! Whole machines.

use std::hint::black_box;
use std::mem;
use std::sync::Arc;
use std::time::Duration;

use steersman_core::auth::Authenticator;
use steersman_core::client::{Effect, Endpoint};
use steersman_core::config::{Cluster, Config};
use steersman_core::controller::{self, Controller, Outcome, SourceId, WatchSpec};
use steersman_core::machine::{Machine, Outputs};
use steersman_core::net::{ConnId, NetEvent};
use steersman_core::object::Object;
use steersman_core::source::{Input, Options, Output, Source};
use steersman_core::store::{Change, Delta, Store};
use steersman_core::time::Time;
use steersman_core::watcher::Event;

use super::store::filled;
use super::wire::HEAD;
use super::{far_apart, round};
use crate::Prepared;
use crate::pods::{self, FIRST_VERSION, PODS};

/// From one operation to the next: no deadline passes.
const TICK: Duration = Duration::from_micros(1);
/// Objects that change; more would only be more memory.
const CHANGING: usize = 500;

/// A source and the only connection of its server.
struct Watched {
    source: Source,
    now: Time,
    conn: ConnId,
    out: Outputs<Output>,
}

impl Watched {
    /// One whose watch has been asked for.
    fn new() -> Self {
        let config = Config::new(Cluster::parse("https://kube:6443").expect("an address"));
        let endpoint = Arc::new(Endpoint::new(&config));
        let spec = WatchSpec::all(PODS);
        let source = Source::new(&spec, Options::default(), endpoint, Authenticator::new(&config), 1);
        let (now, out) = (Time::from_secs(1), Outputs::new());
        let mut this = Self { source, now, conn: ConnId(0), out };
        this.source.handle(now, Input::Start, &mut this.out);
        let connect = this.out.drain().find_map(|output| match output {
            Output::Effect(Effect::Connect { conn, .. }) => Some(conn),
            _ => None,
        });
        this.conn = connect.expect("a source connects");
        this.hear(NetEvent::Connected { reused: false });
        let asked = this.out.drain().any(|output| matches!(output, Output::Effect(Effect::Write { .. })));
        assert!(asked, "a source asks");
        this
    }

    fn hear(&mut self, event: NetEvent<'_>) {
        self.now = self.now + TICK;
        self.source.handle(self.now, Input::Net { conn: self.conn, event }, &mut self.out);
    }

    /// The delta that these bytes make.
    fn delta(&mut self, bytes: &[u8]) -> Option<Delta<Object>> {
        self.hear(NetEvent::Received(bytes));
        let mut deltas = self.out.drain().filter_map(|output| match output {
            Output::Delta(delta) => Some(delta),
            _ => None,
        });
        deltas.next()
    }
}

pub(crate) fn source_event(objects: usize) -> Prepared {
    let mut watched = Watched::new();
    watched.hear(NetEvent::Received(HEAD));
    for n in 0..objects {
        assert!(
            watched.delta(pods::frame("ADDED", n).in_a_chunk().bytes()).is_none(),
            "the state is not whole"
        );
    }
    let end = format!(
        r#"{{"type":"BOOKMARK","object":{{"kind":"Pod","apiVersion":"v1","metadata":{{"resourceVersion":"{FIRST_VERSION}","annotations":{{"k8s.io/initial-events-end":"true"}}}}}}}}"#
    );
    let first = watched.delta(format!("{:x}\r\n{end}\r\n", end.len()).as_bytes());
    let mut held = first.expect("the first full state").view;
    assert_eq!(held.len(), objects);
    let changing = CHANGING.min(objects);
    let mut events: Vec<_> =
        (0..changing).map(|n| pods::frame("MODIFIED", far_apart(n, objects)).in_a_chunk()).collect();
    let (mut version, mut next) = (FIRST_VERSION, round(changing));
    Prepared::new(move || {
        version += 1;
        let event = &mut events[next()];
        event.set_version(version);
        let Some(delta) = watched.delta(black_box(event.bytes())) else { return false };
        let before = mem::replace(&mut held, delta.view);
        let mut changes = delta.changes.iter();
        matches!((changes.next(), changes.next()), (Some(Change::Updated { .. }), None))
            && before.len() == objects
    })
}

pub(crate) fn controller_turn(objects: usize) -> Prepared {
    let mut store = filled((0..objects).map(|n| pods::object(n, FIRST_VERSION)));
    let mut controller = Controller::new(controller::Config::new("pods", WatchSpec::all(PODS)), 1);
    let (mut now, mut out) = (Time::from_secs(1), Outputs::new());
    controller.handle(now, controller::Input::Start, &mut out);
    let added = |new| Change::Added { new, initial: true };
    let first = delta(&store, store.iter().map(|(_, object)| added(object)).collect());
    controller.handle(now, controller::Input::Delta { source: SourceId::PRIMARY, delta: first }, &mut out);
    // Every object is reconciled once.
    let mut runs = 0;
    while let Some(id) = asked(&mut out) {
        runs += 1;
        controller.handle(now, done(id, now), &mut out);
    }
    assert_eq!(runs, objects);

    let changes = (0..CHANGING.min(objects)).map(|n| {
        let mut changes = Vec::new();
        let version = FIRST_VERSION + 1 + n as u64;
        store.apply(Event::Apply(pods::object(far_apart(n, objects), version)), &mut changes);
        changes
    });
    let changes: Vec<_> = changes.collect();
    let deltas: Vec<_> = changes.into_iter().map(|changes| delta(&store, changes)).collect();
    let mut next = round(deltas.len());
    Prepared::new(move || {
        now = now + TICK;
        let delta = Delta { received: now, ..deltas[next()].clone() };
        controller.handle(now, controller::Input::Delta { source: SourceId::PRIMARY, delta }, &mut out);
        let Some(id) = black_box(asked(&mut out)) else { return false };
        controller.handle(now, done(id, now), &mut out);
        out.is_empty()
    })
}

fn delta(store: &Store<Object>, changes: Vec<Change<Object>>) -> Delta<Object> {
    Delta {
        changes: changes.into(),
        view: store.snapshot(),
        synced: true,
        resource_version: store.resource_version().into(),
        received: Time::ZERO,
    }
}

/// The run that the controller asks for, which is its only one.
fn asked(out: &mut Outputs<controller::Output<Object>>) -> Option<controller::ReconcileId> {
    let mut runs = out.drain().filter_map(|output| match output {
        controller::Output::Run(run) => Some(run.id),
        _ => None,
    });
    runs.next()
}

fn done(id: controller::ReconcileId, started: Time) -> controller::Input<Object> {
    controller::Input::Done { id, outcome: Outcome::AwaitChange, started }
}
