//! Whatever happens, in whatever order.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::string::ToString;
use alloc::vec::Vec;
use core::time::Duration;

use quickcheck::{Arbitrary, Gen, TestResult};

use super::*;
use crate::queue::Rate;

#[derive(Clone, Copy, Debug)]
enum Op {
    Start,
    List {
        source: u8,
        objects: u8,
    },
    Apply {
        source: u8,
        name: u8,
        owner: u8,
    },
    Delete {
        source: u8,
        name: u8,
    },
    Trigger(u8),
    Done {
        which: u8,
        how: u8,
    },
    /// A run writes a pod that the watch has not shown yet.
    Wrote {
        which: u8,
        name: u8,
        owner: u8,
    },
    /// A run deletes a pod, which the watch has not shown yet either.
    Removed {
        which: u8,
        name: u8,
    },
    /// The watch shows so many of the writes, in order.
    Show(u8),
    Late(u8),
    Pass(u16),
    Wait,
}

impl Arbitrary for Op {
    fn arbitrary(g: &mut Gen) -> Self {
        let source = u8::arbitrary(g) % 3;
        let name = u8::arbitrary(g) % 5;
        match u8::arbitrary(g) % 24 {
            0 => Self::Start,
            1 | 2 => Self::List { source, objects: u8::arbitrary(g) },
            3..=6 => Self::Apply { source, name, owner: u8::arbitrary(g) % 5 },
            7 | 8 => Self::Delete { source, name },
            9 => Self::Trigger(u8::arbitrary(g) % 7),
            10..=12 => Self::Done { which: u8::arbitrary(g), how: u8::arbitrary(g) },
            13 => Self::Late(u8::arbitrary(g)),
            14 => Self::Pass(u16::arbitrary(g) % 2_000),
            15..=17 => Self::Wrote { which: u8::arbitrary(g), name, owner: u8::arbitrary(g) % 5 },
            18 | 19 => Self::Show(1 + u8::arbitrary(g) % 3),
            20..=22 => Self::Removed { which: u8::arbitrary(g), name },
            _ => Self::Wait,
        }
    }
}

#[derive(Clone, Debug)]
struct Script {
    ops: Vec<Op>,
    limit: usize,
    debounce: bool,
    timeout: bool,
    rate: bool,
}

impl Arbitrary for Script {
    fn arbitrary(g: &mut Gen) -> Self {
        Self {
            ops: Vec::arbitrary(g),
            limit: usize::arbitrary(g) % 4,
            debounce: bool::arbitrary(g),
            timeout: bool::arbitrary(g),
            rate: u8::arbitrary(g) % 4 == 0,
        }
    }

    fn shrink(&self) -> alloc::boxed::Box<dyn Iterator<Item = Self>> {
        let this = self.clone();
        alloc::boxed::Box::new(self.ops.shrink().map(move |ops| Self { ops, ..this.clone() }))
    }
}

/// A write that the watch has not shown.
#[derive(Clone, Debug)]
struct Unshown {
    writer: Key,
    /// As it was written, or as it was at its end.
    pod: Obj,
    gone: bool,
    /// Its writer waits for it.
    counts: bool,
}

/// A bench that knows what must hold.
struct Watchful {
    bench: Bench,
    limit: usize,
    version: u64,
    /// What the primary objects' newest versions are.
    world: BTreeMap<Key, u64>,
    children: [BTreeMap<Key, Obj>; 2],
    /// Keys that something happened to since their last run began; `true` if they must run.
    due: BTreeSet<Key>,
    /// What was done to pods and has not been shown, in order.
    unseen: Vec<Unshown>,
    /// Keys whose present run wrote what is unseen.
    fresh: BTreeSet<Key>,
    /// Keys whose last run did, and until when they are on hold for it.
    holds: BTreeMap<Key, Time>,
    seen_runs: usize,
    ready: bool,
    synced: [bool; 3],
    log: Vec<String>,
}

impl Watchful {
    fn new(script: &Script) -> Self {
        let mut config = Config::new("web", WEBS)
            .concurrency(script.limit)
            .owns(PODS)
            .watches(NODES, |n: &Obj| Vec::from([Key::namespaced("p", n.key.name())]));
        if script.debounce {
            config = config.debounce(Duration::from_millis(100));
        }
        if script.timeout {
            config = config.reconcile_timeout(Duration::from_secs(1));
        }
        if script.rate {
            config.rate = core::num::NonZeroU32::new(5).map(|per_second| Rate { per_second, burst: 2 });
        }
        Self {
            bench: Bench::new(config),
            limit: script.limit.max(1),
            version: 1,
            world: BTreeMap::new(),
            children: [BTreeMap::new(), BTreeMap::new()],
            due: BTreeSet::new(),
            unseen: Vec::new(),
            fresh: BTreeSet::new(),
            holds: BTreeMap::new(),
            seen_runs: 0,
            ready: false,
            synced: [false; 3],
            log: Vec::new(),
        }
    }

    fn key(source: u8, name: u8) -> Key {
        if source == 2 { Key::cluster(&name.to_string()) } else { Key::namespaced("p", &name.to_string()) }
    }

    fn object(&mut self, source: u8, name: u8, owner: u8) -> Obj {
        self.version += 1;
        let mut object = obj(&Self::key(source, name).to_string(), self.version);
        if source == 1 {
            object = object.owned_by(&WEBS, &owner.to_string(), true);
        }
        object
    }

    /// Whom a child concerns.
    fn parent(source: u8, child: &Obj) -> Key {
        match source {
            1 => Key::namespaced("p", &child.owners[0].name),
            _ => Key::namespaced("p", child.key.name()),
        }
    }

    /// The watch of the pods goes on in order: first what was written.
    fn show(&mut self, most: usize) {
        for _ in 0..most.min(self.unseen.len()) {
            let Unshown { writer, pod, gone, .. } = self.unseen.remove(0);
            if !self.unseen.iter().any(|w| w.counts && w.writer == writer) {
                self.holds.remove(&writer);
                self.fresh.remove(&writer);
            }
            let children = &mut self.children[0];
            let old =
                if gone { children.remove(&pod.key) } else { children.insert(pod.key.clone(), pod.clone()) };
            self.expect(old.iter().chain([&pod]).map(|o| Self::parent(1, o)).collect());
            let said = if gone { self.bench.delete(1, pod) } else { self.bench.apply(1, pod) };
            self.check(&said);
            self.log.push(said);
        }
    }

    /// A pod as the server has it.
    fn pod(&self, key: &Key) -> Option<&Obj> {
        match self.unseen.iter().rev().find(|w| w.pod.key == *key) {
            Some(last) => (!last.gone).then_some(&last.pod),
            None => self.children[0].get(key),
        }
    }

    /// Whether a pod was deleted, and the watch has not shown it: who made it anew would make another one.
    fn is_going(&self, key: &Key) -> bool {
        self.unseen.iter().any(|w| w.gone && w.pod.key == *key)
    }

    /// A run that is open.
    fn writer(&self, which: u8) -> Option<Key> {
        let open = &self.bench.open;
        (!open.is_empty()).then(|| open[usize::from(which) % open.len()].key.clone())
    }

    fn wrote(&mut self, write: Unshown) -> String {
        let Unshown { writer, pod, gone, counts } = &write;
        let version = if *gone { "" } else { &*pod.version };
        let said = self.bench.wrote(&writer.to_string(), &PODS, &pod.key.to_string(), version);
        if *counts {
            self.fresh.insert(writer.clone());
        }
        self.unseen.push(write);
        self.forget_the_gone();
        said
    }

    fn play(&mut self, op: Op) {
        match op {
            Op::Apply { source: 1, .. } | Op::Delete { source: 1, .. } => self.show(usize::MAX),
            Op::Show(n) => return self.show(n.into()),
            _ => {}
        }
        // What must run after this, if it exists then.
        let mut due = Vec::new();
        let said = match op {
            Op::Start => self.bench.input(Input::Start),
            Op::List { source, objects } => {
                let names = (0..5).filter(|n| objects >> n & 1 == 1);
                // Half of the names keep the version they have: nothing happened to them.
                let mut list = Vec::new();
                for name in names {
                    let key = Self::key(source, name);
                    let fresh = name % 2 == 0;
                    if source == 0 {
                        let object = match self.world.get(&key) {
                            Some(v) if !fresh => obj(&key.to_string(), *v),
                            _ => self.object(0, name, 0),
                        };
                        let version: u64 = object.version.parse().unwrap();
                        if self.world.get(&key) != Some(&version) {
                            due.push(key);
                        }
                        list.push(object);
                    } else if source == 2 || !self.is_going(&key) {
                        let old = self.children[usize::from(source) - 1].get(&key).cloned();
                        let object = match old {
                            Some(o) if !fresh => o,
                            _ => self.object(source, name, objects % 5),
                        };
                        list.push(object);
                    }
                }
                if source == 0 {
                    self.world = list.iter().map(|o| (o.key.clone(), o.version.parse().unwrap())).collect();
                } else {
                    let now: BTreeMap<_, _> = list.iter().map(|o| (o.key.clone(), o.clone())).collect();
                    let before = core::mem::replace(&mut self.children[usize::from(source) - 1], now.clone());
                    for (key, old) in &before {
                        if now.get(key) != Some(old) {
                            due.push(Self::parent(source, old));
                        }
                    }
                    for (key, new) in &now {
                        if before.get(key) != Some(new) {
                            due.push(Self::parent(source, new));
                        }
                    }
                }
                self.synced[usize::from(source)] = true;
                if source == 1 {
                    // What was written and is not listed came and went: only its writer can know, unless he did it.
                    for (n, Unshown { writer, pod, gone, .. }) in self.unseen.iter().enumerate() {
                        let undone = |w: &Unshown| w.gone && w.writer == *writer && w.pod.key == pod.key;
                        if !gone
                            && !self.children[0].contains_key(&pod.key)
                            && !self.unseen[n..].iter().any(undone)
                        {
                            due.push(writer.clone());
                        }
                    }
                    self.unseen.clear();
                    self.fresh.clear();
                    self.holds.clear();
                }
                self.expect(due);
                due = Vec::new();
                // Versions of a list must not go back.
                self.version += 1;
                let mut events = Vec::from([Event::Init]);
                events.extend(list.into_iter().map(Event::InitApply));
                events.push(Event::InitDone { resource_version: self.version.to_string() });
                self.bench.events(source.into(), events)
            }
            Op::Apply { source, name, owner } if self.synced[usize::from(source)] => {
                let object = self.object(source, name, owner);
                if source == 0 {
                    self.world.insert(object.key.clone(), self.version);
                    due.push(object.key.clone());
                } else {
                    let old =
                        self.children[usize::from(source) - 1].insert(object.key.clone(), object.clone());
                    due.push(Self::parent(source, &object));
                    due.extend(old.map(|o| Self::parent(source, &o)));
                }
                self.expect(due);
                due = Vec::new();
                self.bench.apply(source.into(), object)
            }
            Op::Delete { source, name } if self.synced[usize::from(source)] => {
                let key = Self::key(source, name);
                let mut object = self.object(source, name, 0);
                if source == 0 {
                    if self.world.remove(&key).is_none() {
                        return;
                    }
                    self.due.remove(&key);
                } else {
                    let Some(old) = self.children[usize::from(source) - 1].remove(&key) else { return };
                    object.owners.clone_from(&old.owners);
                    due.push(Self::parent(source, &old));
                }
                self.expect(due);
                due = Vec::new();
                self.bench.delete(source.into(), object)
            }
            Op::Apply { .. } | Op::Delete { .. } => return,
            Op::Trigger(name) => {
                self.expect(Vec::from([Self::key(0, name)]));
                self.bench.trigger(&Self::key(0, name).to_string())
            }
            Op::Done { which, how } => {
                if self.bench.open.is_empty() {
                    return;
                }
                let run = self.bench.open.remove(usize::from(which) % self.bench.open.len());
                let (id, started) = (run.id, self.bench.now);
                let outcome = match how % 6 {
                    0 | 1 => Outcome::AwaitChange,
                    2 => Outcome::Requeue(Duration::from_millis(u64::from(how) * 10)),
                    3 => Outcome::Error("no".to_string()),
                    4 => Outcome::Terminal("never".to_string()),
                    _ => Outcome::Panicked("boom".to_string()),
                };
                self.seen_runs -= 1;
                if self.fresh.remove(&run.key) {
                    self.holds.insert(run.key, started + Duration::from_secs(30));
                }
                self.bench.input(Input::Done { id, outcome, started })
            }
            Op::Wrote { which, name, owner } => {
                let Some(writer) = self.writer(which).filter(|_| !self.is_going(&Self::key(1, name))) else {
                    return;
                };
                let pod = self.object(1, name, owner);
                self.wrote(Unshown { writer, pod, gone: false, counts: true })
            }
            Op::Removed { which, name } => {
                let key = Self::key(1, name);
                let (Some(writer), Some(pod)) = (self.writer(which), self.pod(&key).cloned()) else { return };
                // Who deletes what its views do not have, and what it has not written, has nothing to wait for.
                let wrote = |w: &Unshown| w.writer == writer && w.pod.key == key;
                let counts = self.children[0].contains_key(&key) || self.unseen.iter().any(wrote);
                self.version += 1;
                let pod = Obj { version: self.version.to_string(), ..pod };
                self.wrote(Unshown { writer, pod, gone: true, counts })
            }
            Op::Show(_) => return,
            Op::Late(n) => {
                let gone = ReconcileId(1_000_000 + u64::from(n));
                self.bench.input(Input::Done { id: gone, outcome: Outcome::AwaitChange, started: Time::ZERO })
            }
            Op::Pass(ms) => self.bench.pass(Duration::from_millis(ms.into())),
            Op::Wait => {
                if self.bench.controller.next_deadline().is_none() {
                    return;
                }
                self.bench.wait()
            }
        };
        self.expect(due);
        self.check(&said);
        self.log.push(said);
    }

    fn expect(&mut self, keys: Vec<Key>) {
        for key in keys {
            if self.world.contains_key(&key) {
                self.due.insert(key);
            }
        }
        self.forget_the_gone();
    }

    /// What a key wrote that is gone, or another's of its name now, concerns nobody.
    fn forget_the_gone(&mut self) {
        let gone = |key: &Key| !self.world.contains_key(key);
        self.due.retain(|k| !gone(k));
        self.holds.retain(|k, _| !gone(k));
        self.fresh.retain(|k| !gone(k));
        for Unshown { writer, .. } in &mut self.unseen {
            if gone(writer) {
                *writer = Key::cluster("nobody");
            }
        }
    }

    fn check(&mut self, said: &str) {
        self.ready |= said.contains("ready");
        let runs = &self.bench.open;
        assert!(
            runs.is_empty() || self.synced == [true; 3] && self.ready,
            "a run before every source synced"
        );
        assert!(runs.len() <= self.limit, "the limit does not hold");
        let keys: BTreeSet<_> = runs.iter().map(|r| &r.key).collect();
        assert_eq!(keys.len(), runs.len(), "two runs of one key");
        for run in &runs[self.seen_runs..] {
            assert_eq!(
                self.world.get(&run.key).map(u64::to_string),
                Some(run.object.version.clone()),
                "it runs with the newest state"
            );
            self.due.remove(&run.key);
            assert!(
                self.holds.remove(&run.key).is_none_or(|until| self.bench.now >= until),
                "{} does not see what it wrote",
                run.key
            );
            assert_eq!(run.views[0].get(&run.key).as_ref(), Some(&run.object));
            for (view, children) in run.views[1..].iter().zip(&self.children) {
                assert!(view.values().eq(children.values().cloned()), "it runs with the newest views");
            }
        }
        self.seen_runs = runs.len();
        let status = self.bench.controller.status();
        assert_eq!(status.running, self.seen_runs);
    }

    /// Lets everything come to rest: no key may be lost.
    fn settle(&mut self) {
        self.play(Op::Start);
        for source in 0..3 {
            if !self.synced[usize::from(source)] {
                self.play(Op::List { source, objects: 255 });
            }
        }
        for _ in 0..2_000 {
            if !self.bench.open.is_empty() {
                self.play(Op::Done { which: 0, how: 0 });
            } else if self.bench.controller.next_deadline().is_some() {
                self.play(Op::Wait);
            } else {
                break;
            }
        }
        assert!(self.due.is_empty(), "lost: {:?}", self.due);
        let status = self.bench.controller.status();
        assert_eq!((status.queued, status.waiting, status.running), (0, 0, 0));
    }
}

fn run(script: &Script) -> Vec<String> {
    let mut w = Watchful::new(script);
    for op in &script.ops {
        w.play(*op);
    }
    w.settle();
    w.log
}

#[test]
fn no_key_is_lost_none_runs_twice_at_once_and_the_limit_holds() {
    fn holds(script: Script) -> TestResult {
        run(&script);
        TestResult::passed()
    }
    crate::cases::cases(600).quickcheck(holds as fn(Script) -> TestResult);
}

#[test]
fn the_same_inputs_give_the_same_outputs() {
    fn same(script: Script) -> bool {
        run(&script) == run(&script)
    }
    crate::cases::cases(100).quickcheck(same as fn(Script) -> bool);
}

#[test]
fn a_stop_always_ends() {
    fn ends(script: Script, grace: Option<u8>) -> bool {
        let mut w = Watchful::new(&script);
        for op in &script.ops {
            w.play(*op);
        }
        let grace = grace.map(|g| Duration::from_secs(g.into()));
        let mut said = w.bench.input(Input::Stop { grace });
        // Without a grace every run must end by itself.
        while grace.is_none() && !said.contains("stopped") {
            let key = w.bench.open[0].key.to_string();
            said = w.bench.ok(&key);
            assert!(!said.contains("run "), "a run after the stop");
        }
        while w.bench.controller.next_deadline().is_some() {
            said = w.bench.wait();
            assert!(!said.contains("run "), "a run after the stop");
        }
        said.contains("stopped") && w.bench.input(Input::Start).is_empty()
    }
    crate::cases::cases(200).quickcheck(ends as fn(Script, Option<u8>) -> bool);
}

/// One read: what it brings for the objects of five names.
#[derive(Clone, Debug)]
enum Read {
    List(u8),
    /// Each names an object, and whether it is gone.
    Events(Vec<(u8, bool)>),
    Done,
}

impl Arbitrary for Read {
    fn arbitrary(g: &mut Gen) -> Self {
        match u8::arbitrary(g) % 5 {
            0 => Self::List(u8::arbitrary(g)),
            1..=3 => Self::Events(
                Vec::arbitrary(g).into_iter().map(|(n, gone): (u8, bool)| (n % 5, gone)).collect(),
            ),
            _ => Self::Done,
        }
    }
}

/// A controller whose predicate takes everything does what one without a predicate does, which has a shorter way.
#[test]
fn no_predicate_is_one_that_takes_everything() {
    fn holds(cluster: bool, synced: bool, reads: Vec<Read>) -> TestResult {
        let config = || Config::new("c", WatchSpec::all(if cluster { ZONES } else { WEBS }));
        let mut all = config();
        all.sources[0].predicates.push(Arc::new(|_| true));
        let mut both = [config(), all].map(|config| {
            let mut bench = Bench::new(config);
            bench.input(Input::Start);
            if synced {
                bench.list(0, &[]);
            }
            bench
        });
        let mut version = 1;
        let mut object = |n: u8| {
            version += 1;
            obj(&if cluster { format!("o{n}") } else { format!("n/o{n}") }, version)
        };
        for read in reads {
            let events = match read {
                Read::List(names) => {
                    let mut events = Vec::from([Event::Init]);
                    events
                        .extend((0..5).filter(|n| names & 1 << n != 0).map(|n| Event::InitApply(object(n))));
                    events.push(Event::InitDone { resource_version: object(0).version });
                    events
                }
                Read::Events(events) => events
                    .into_iter()
                    .map(|(n, gone)| if gone { Event::Delete(object(n)) } else { Event::Apply(object(n)) })
                    .collect(),
                Read::Done => {
                    let Some(run) = both[0].open.first() else { continue };
                    let key = run.key.to_string();
                    let said = both.each_mut().map(|bench| bench.ok(&key));
                    assert_eq!(said[0], said[1]);
                    continue;
                }
            };
            let said = both.each_mut().map(|bench| bench.events(0, events.clone()));
            assert_eq!(said[0], said[1]);
        }
        let left = both.each_ref().map(|b| (b.controller.next_deadline(), b.controller.status().queued));
        assert_eq!(left[0], left[1]);
        TestResult::passed()
    }
    crate::cases::cases(200).quickcheck(holds as fn(bool, bool, Vec<Read>) -> TestResult);
}
