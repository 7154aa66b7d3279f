//! The controller machine.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::cmp::Ordering;

use super::config::Config;
use super::mapping::{concerned, concerns_itself, normal, subject};
use super::stats::{
    ControllerPhase, ControllerStatus, Histogram, LastError, OldestRun, Results, RunReads, SourceView,
};
use super::types::{Input, Notice, Outcome, Output, ReconcileId, Run, SourceId};
use super::unseen::{Shown, Unseen, Until, Version, Write};
use crate::api::{Scope, Written, WrittenState};
use crate::guard::guarded;
use crate::machine::{Deadline, Machine, Outputs, Reason};
use crate::object::{Key, Resource, version};
use crate::queue::{self, Priority, Queue, Then};
use crate::store::{Change, Changes, Delta, Snapshot};
use crate::time::{Clock, Time};

/// One controller. See the [module](super).
#[derive(Debug)]
pub struct Controller<T> {
    config: Config<T>,
    scope: Scope,
    clock: Clock,
    phase: ControllerPhase,
    pub(super) queue: Queue<Key>,
    sources: Vec<State<T>>,
    /// Sources without their first full state.
    unsynced: usize,
    /// The views as the last run got them; dropped when one changes.
    views: Option<Arc<[Snapshot<T>]>>,
    runs: BTreeMap<ReconcileId, Active<T>>,
    /// Runs that may still time out, by when.
    timeouts: BTreeSet<(Time, ReconcileId)>,
    next_id: u64,
    sync_notice_at: Option<Time>,
    unseen: Unseen,
    /// While it stops: when waiting ends.
    stop_at: Option<Time>,
    stats: Stats,
}

#[derive(Debug)]
struct State<T> {
    view: Option<Snapshot<T>>,
    synced: bool,
    resource_version: Arc<str>,
    changes: u64,
}

impl<T: Resource> State<T> {
    fn knows(&self, key: &Key) -> bool {
        self.view.as_ref().is_some_and(|view| view.contains(key))
    }

    /// The object, if it is there and no other of its name.
    fn holds(&self, key: &Key, uid: &str) -> bool {
        self.view.as_ref().is_some_and(|view| view.holds(key, uid))
    }

    /// Whether what was written has come to something else without a change that tells: it is not there, or came as
    /// something else.
    fn lost_sight_of(&self, write: &Write, added: &[T]) -> bool {
        let Until::At(version) = &write.until else { return false };
        let otherwise = |new: &T| new.key() == write.object && !version.is(new.resource_version());
        !self.holds(&write.object, &write.uid) || added.iter().any(otherwise)
    }
}

#[derive(Debug)]
struct Active<T> {
    key: Key,
    since: Time,
    handed_out: Time,
    failures: u32,
    /// What it was given.
    views: Arc<[Snapshot<T>]>,
}

#[derive(Debug, Default)]
struct Stats {
    results: Results,
    reads: RunReads,
    timeouts: u64,
    vanished: u64,
    not_shown: u64,
    stray: u64,
    queue_latency: Histogram,
    run_duration: Histogram,
    last_error: Option<LastError>,
}

/// The object is gone.
fn forget(queue: &mut Queue<Key>, unseen: &mut Unseen, key: &Key) {
    queue.forget(key);
    unseen.forget(key);
}

/// What there was before the start waits for what happens now.
const fn priority<T>(change: &Change<T>) -> Priority {
    match change {
        Change::Added { initial: true, .. } => Priority::LOW,
        Change::Added { .. } | Change::Updated { .. } | Change::Deleted { .. } => Priority::NORMAL,
    }
}

impl<T: Resource> Controller<T> {
    /// A controller that has not started. Without any source in `config` it never runs anything. `seed` is for the
    /// jitter of the backoff and the hashes of keys, which whoever knows it can make collide.
    #[must_use]
    pub fn new(config: Config<T>, seed: u64) -> Self {
        let mut queue = Queue::new(
            queue::Config {
                limit: config.concurrency,
                backoff: config.backoff,
                debounce: config.debounce,
                aging: config.aging,
                rate: config.rate,
            },
            seed,
        );
        queue.pause();
        let sources: Vec<_> = config
            .sources
            .iter()
            .map(|_| State { view: None, synced: false, resource_version: "".into(), changes: 0 })
            .collect();
        Self {
            scope: config.primary().map_or(Scope::Namespaced, |p| p.resource.scope),
            clock: Clock::default(),
            phase: ControllerPhase::New,
            queue,
            unsynced: sources.len(),
            sources,
            views: None,
            runs: BTreeMap::new(),
            timeouts: BTreeSet::new(),
            next_id: 0,
            sync_notice_at: None,
            unseen: Unseen::new(config.catch_up),
            stop_at: None,
            stats: Stats::default(),
            config,
        }
    }

    /// How it was set up.
    #[must_use]
    pub const fn config(&self) -> &Config<T> {
        &self.config
    }

    /// Where it stands. Costs a few allocations, whatever it holds.
    #[must_use]
    pub fn status(&self) -> ControllerStatus {
        let stats = &self.stats;
        ControllerStatus {
            name: self.config.name.clone(),
            phase: self.phase,
            concurrency: self.config.concurrency.max(1),
            sources: self
                .config
                .sources
                .iter()
                .zip(&self.sources)
                .zip(0..)
                .map(|((source, state), n)| SourceView {
                    id: SourceId(n),
                    watch: source.watch.clone(),
                    synced: state.synced,
                    objects: state.view.as_ref().map_or(0, Snapshot::len),
                    resource_version: String::from(&*state.resource_version),
                    changes: state.changes,
                })
                .collect(),
            queued: self.queue.ready(),
            waiting: self.queue.waiting(),
            running: self.runs.len(),
            oldest_run: self.runs.first_key_value().map(|(&id, run)| OldestRun {
                id,
                key: run.key.clone(),
                since: run.handed_out,
            }),
            results: stats.results,
            reads: stats.reads,
            timeouts: stats.timeouts,
            vanished: stats.vanished,
            on_hold: self.unseen.on_hold(),
            not_shown: stats.not_shown,
            adds: self.queue.adds(),
            retries: self.queue.retries(),
            stray: stats.stray,
            queue_latency: stats.queue_latency.clone(),
            run_duration: stats.run_duration.clone(),
            last_error: stats.last_error.clone(),
        }
    }

    const fn is_over(&self) -> bool {
        matches!(self.phase, ControllerPhase::Stopped)
    }

    fn start(&mut self, now: Time, out: &mut Outputs<Output<T>>) {
        if self.phase == ControllerPhase::New {
            self.phase = ControllerPhase::Syncing;
            self.sync_notice_at = Some(now + self.config.sync_notice);
            self.open_gate(out);
        }
    }

    /// Lets keys run once it is started and every source has had its first full state.
    fn open_gate(&mut self, out: &mut Outputs<Output<T>>) {
        if self.phase == ControllerPhase::Syncing && self.unsynced == 0 && !self.sources.is_empty() {
            self.phase = ControllerPhase::Running;
            self.sync_notice_at = None;
            self.queue.resume();
            out.push(Output::Ready);
        }
    }

    fn delta(&mut self, now: Time, id: SourceId, delta: Delta<T>, out: &mut Outputs<Output<T>>) {
        let Self { config, sources, queue, scope, stats, unseen, .. } = self;
        let (Some(source), Some(state)) = (config.sources.get(id.index()), sources.get_mut(id.index()))
        else {
            stats.stray += 1;
            return;
        };
        let back = version::compare(&delta.resource_version, &state.resource_version) == Some(Ordering::Less);
        state.view = Some(delta.view);
        state.resource_version = delta.resource_version;
        state.changes += delta.changes.len() as u64;
        self.views = None;
        if delta.synced && !state.synced {
            state.synced = true;
            self.unsynced -= 1;
        }
        if id == SourceId::PRIMARY && concerns_itself(source) {
            // (One that the view does not hold after all is dropped when its turn comes.)
            for (change, key) in delta.changes.keys() {
                match change {
                    Change::Deleted { .. } => forget(queue, unseen, &normal(key, *scope)),
                    _ => queue.add_caused(now, normal(key, *scope), priority(&change), delta.received),
                }
            }
        } else {
            // What the primary view does not hold need not be queued: if it comes, it is a change of its own.
            let known = sources.first().filter(|s| s.synced).and_then(|s| s.view.as_ref());
            let mut keys = Vec::new();
            for change in &delta.changes {
                if id == SourceId::PRIMARY && matches!(&change, Change::Deleted { .. }) {
                    forget(queue, unseen, &normal(subject(&change).key(), *scope));
                    continue;
                }
                keys.clear();
                if let Err(error) = guarded(|| concerned(source, &change, *scope, &mut |key| keys.push(key)))
                {
                    let key = subject(&change).key();
                    out.push(Output::Notice(Notice::MappingPanicked { source: id, key, error }));
                    continue;
                }
                for key in keys.drain(..) {
                    if known.is_none_or(|view| view.contains(&key)) {
                        queue.add_caused(now, key, priority(&change), delta.received);
                    }
                }
            }
        }
        self.show(now, id, back, &delta.changes);
        self.open_gate(out);
    }

    /// A run has written: which sources have yet to show it?
    fn wrote(&mut self, now: Time, id: ReconcileId, write: &Written) {
        let Some(Active { key, views, .. }) = self.runs.get(&id) else {
            self.stats.stray += 1;
            return;
        };
        if !self.sources.first().is_some_and(|primary| primary.knows(key)) {
            return; // Who is gone reads nothing any more.
        }
        for ((source, state), n) in self.config.sources.iter().zip(&self.sources).zip(0..) {
            let source_id = SourceId(n);
            let seen = state.holds(&write.key, &write.uid);
            let awaited = self.unseen.awaited(key, source_id, &write.key, &write.uid);
            // What a selector leaves out is never shown.
            let shows = || seen || awaited.is_some() || source.watch.selectors.take(&write.labels);
            if !source.watch.covers(write) || !shows() {
                continue;
            }
            let until = match &write.now {
                WrittenState::Gone => (seen || awaited.is_some()).then_some(Until::Gone(awaited)),
                WrittenState::At(version) => {
                    let reached = Version::new(&state.resource_version);
                    let (Some(version), Some(reached)) = (Version::new(version), reached) else { continue };
                    // (If it is older than the run, the request has changed nothing, and whoever repeats it would never rest.)
                    let begun = views.get(source_id.index()).and_then(|v| Version::new(v.resource_version()));
                    if version <= reached && !seen && begun.is_some_and(|begun| version > begun) {
                        // It came and went before its writer heard of it.
                        self.queue.add(now, key.clone(), Priority::NORMAL);
                    }
                    (version > reached).then_some(Until::At(version))
                }
            };
            if let Some(until) = until {
                let (object, uid) = (write.key.clone(), write.uid.clone());
                self.unseen.wrote(key, Write { source: source_id, object, uid, until, counts: true });
            }
        }
    }

    /// A source has moved on: what of the writes does it show, and what has become of them?
    fn show(&mut self, now: Time, id: SourceId, back: bool, changes: &Changes<T>) {
        // As a rule nobody waits, and this costs a delta nothing.
        let Some(state) = self.sources.get(id.index()).filter(|_| !self.unseen.is_empty()) else { return };
        let mut all = Vec::new();
        if back {
            all = self.unseen.restored(id);
        } else if let Some(version) = Version::new(&state.resource_version) {
            all = self.unseen.reached(id, &version, |object, uid| state.holds(object, uid));
        }
        for old in changes.deleted() {
            all.extend(self.unseen.gone(id, &old.key(), old.uid()));
        }
        let added: Vec<T> = if all.is_empty() { Vec::new() } else { changes.added().collect() };
        for Shown { key, writes, free } in all {
            let missed = back || writes.iter().any(|write| state.lost_sight_of(write, &added));
            if missed && self.sources.first().is_some_and(|primary| primary.knows(&key)) {
                self.queue.add(now, key.clone(), Priority::NORMAL);
            }
            if free {
                self.queue.release(now, &key);
            }
        }
    }

    fn done(
        &mut self,
        now: Time,
        id: ReconcileId,
        outcome: Outcome,
        started: Time,
        out: &mut Outputs<Output<T>>,
    ) {
        let Some(run) = self.runs.remove(&id) else {
            self.stats.stray += 1;
            return;
        };
        if let Some(limit) = self.config.reconcile_timeout {
            self.timeouts.remove(&(run.handed_out + limit, id));
        }
        let started = started.clamp(run.handed_out, now);
        self.stats.queue_latency.record(started.since(run.since));
        self.stats.run_duration.record(now.since(started));
        let results = &mut self.stats.results;
        let Active { key, failures, .. } = run;
        if self.phase == ControllerPhase::Running && self.unseen.ended(now, &key) {
            self.queue.hold(&key);
        }
        match outcome {
            Outcome::AwaitChange => {
                results.success += 1;
                self.queue.done(now, &key, Then::Forget);
            }
            Outcome::Requeue(d) => {
                results.requeue_after += 1;
                self.queue.done(now, &key, Then::After(d));
            }
            Outcome::Terminal(error) => {
                results.terminal += 1;
                self.queue.done(now, &key, Then::Keep);
                self.stats.last_error = Some(LastError { at: now, key: key.clone(), error: error.clone() });
                out.push(Output::Notice(Notice::GaveUp { id, key, error }));
            }
            outcome @ (Outcome::Error(_) | Outcome::Panicked(_)) => {
                let (error, panicked) = match outcome {
                    Outcome::Panicked(error) => (error, true),
                    Outcome::Error(error) | Outcome::Terminal(error) => (error, false),
                    Outcome::AwaitChange | Outcome::Requeue(_) => (String::new(), false),
                };
                *(if panicked { &mut results.panicked } else { &mut results.error }) += 1;
                let retry_in = self.queue.done(now, &key, Then::Backoff);
                self.stats.last_error = Some(LastError { at: now, key: key.clone(), error: error.clone() });
                let failures = failures.saturating_add(1);
                out.push(Output::Notice(Notice::Failed { id, key, error, panicked, failures, retry_in }));
            }
        }
    }

    fn stop(&mut self, now: Time, grace: Option<core::time::Duration>) {
        if self.phase != ControllerPhase::Stopping {
            self.phase = ControllerPhase::Stopping;
            self.sync_notice_at = None;
            self.queue.shut_down(now);
            self.unseen.clear();
        }
        if let Some(at) = grace.map(|g| now + g) {
            self.stop_at = Some(self.stop_at.map_or(at, |old| old.min(at)));
        }
    }

    /// Serves every deadline that has come.
    fn tick(&mut self, now: Time, out: &mut Outputs<Output<T>>) {
        self.queue.wake(now);
        for key in self.unseen.overdue(now) {
            self.stats.not_shown += 1;
            let after = self.config.catch_up;
            out.extend(self.unseen.of(&key).iter().rev().take(1).map(|Write { source, object, .. }| {
                let (key, source, object) = (key.clone(), *source, object.clone());
                Output::Notice(Notice::NotShown { key, source, object, after })
            }));
            self.queue.release(now, &key);
        }
        while let Some(&(at, id)) = self.timeouts.first() {
            if at > now {
                break;
            }
            self.timeouts.pop_first();
            if let Some(run) = self.runs.get(&id) {
                self.stats.timeouts += 1;
                let after = now.since(run.handed_out);
                out.push(Output::Notice(Notice::TimedOut { id, key: run.key.clone(), after }));
                out.push(Output::Abandon(id));
            }
        }
        if self.sync_notice_at.is_some_and(|at| at <= now) {
            let behind =
                self.sources.iter().zip(0..).filter(|(s, _)| !s.synced).map(|(_, n)| SourceId(n)).collect();
            out.push(Output::Notice(Notice::WaitingForSources(behind)));
            // A notice without a pause would be a deadline that returns.
            let pause = self.config.sync_notice.max(core::time::Duration::from_secs(1));
            self.sync_notice_at = Some(now + pause).filter(|at| *at > now);
        }
        if self.phase == ControllerPhase::Stopping {
            let over = self.stop_at.is_some_and(|at| at <= now);
            if self.runs.is_empty() || over {
                self.phase = ControllerPhase::Stopped;
                self.stop_at = None;
                self.timeouts.clear();
                let unfinished = self.runs.len();
                out.extend(core::mem::take(&mut self.runs).into_keys().map(Output::Abandon));
                out.push(Output::Stopped { unfinished });
            }
        }
    }

    fn dispatch(&mut self, now: Time, out: &mut Outputs<Output<T>>) {
        while let Some(next) = self.queue.pop(now) {
            let primary = self.sources.first().and_then(|s| s.view.as_ref());
            let Some(object) = primary.and_then(|view| view.get(&next.key)) else {
                self.stats.vanished += 1;
                self.queue.forget(&next.key);
                self.queue.done(now, &next.key, Then::Forget);
                continue;
            };
            let views = self
                .views
                .get_or_insert_with(|| self.sources.iter().filter_map(|s| s.view.clone()).collect());
            self.next_id += 1;
            let id = ReconcileId(self.next_id);
            if let Some(limit) = self.config.reconcile_timeout {
                self.timeouts.insert((now + limit, id));
            }
            self.runs.insert(
                id,
                Active {
                    key: next.key.clone(),
                    since: next.since,
                    handed_out: now,
                    failures: next.failures,
                    views: Arc::clone(views),
                },
            );
            out.push(Output::Run(Run {
                id,
                key: next.key,
                object,
                views: Arc::clone(views),
                since: next.since,
                attempt: next.failures.saturating_add(1),
                priority: next.priority,
            }));
        }
    }
}

impl<T: Resource> Machine for Controller<T> {
    type Input<'a> = Input<T>;
    type Output = Output<T>;

    fn handle(&mut self, now: Time, input: Input<T>, out: &mut Outputs<Output<T>>) {
        let now = self.clock.advance(now);
        if self.is_over() {
            self.stats.stray +=
                u64::from(matches!(input, Input::Done { .. } | Input::Wrote { .. } | Input::Read { .. }));
            return;
        }
        match input {
            Input::Start => self.start(now, out),
            Input::Delta { source, delta } => self.delta(now, source, delta, out),
            Input::Trigger { key, priority } => self.queue.add(now, normal(key, self.scope), priority),
            Input::Wrote { id, write } => self.wrote(now, id, &write),
            Input::Read { id, reads } if self.runs.contains_key(&id) => self.stats.reads.add(reads),
            Input::Read { .. } => self.stats.stray += 1,
            Input::Done { id, outcome, started } => self.done(now, id, outcome, started, out),
            Input::Stop { grace } => self.stop(now, grace),
            Input::Deadline => {}
        }
        self.tick(now, out);
        self.dispatch(now, out);
    }

    fn next_deadline(&self) -> Option<Deadline> {
        let timeout = self.timeouts.first().map(|&(at, _)| Deadline { at, why: Reason::ReconcileTimeout });
        let sync = self.sync_notice_at.map(|at| Deadline { at, why: Reason::FirstSync });
        let stop = self.stop_at.map(|at| Deadline { at, why: Reason::Shutdown });
        let hold = self.unseen.next_deadline();
        [timeout, sync, stop, hold].into_iter().fold(self.queue.next_deadline(), Deadline::earlier)
    }
}
