//! The work queue: which key runs next, which waits for a moment, which waits for its run to end.
//!
//! [`Queue`] is plain data with `now` as an argument. Its promises:
//!
//! - a key is handed out at most once at a time; any number of adds during a run give exactly one more run;
//! - first come, first served within a priority; a higher priority goes first, but no key starves ([`Aging`]);
//! - a key has at most one place: ready, or waiting for one timer. The earliest time and the highest priority win;
//! - a key on hold waits, and loses nothing meanwhile;
//! - a failing key waits 5 ms, doubling to 1000 s ([`Policy::RECONCILE`]); success forgets that;
//! - every operation costs O(log n) of the keys in the queue, whatever is ready, waiting or running.
//!
//! The semantics are those of client-go's `workqueue` and of controller-runtime's `priorityqueue`, without the latter's
//! scan over running keys and its starvation of low priorities.
//!
//! ```
//! use core::time::Duration;
//! use steersman_core::queue::{Config, Priority, Queue, Then};
//! use steersman_core::time::Time;
//!
//! let mut queue = Queue::new(Config::default(), 0);
//! let now = Time::ZERO;
//! queue.add(now, "a", Priority::NORMAL);
//! let a = queue.pop(now).unwrap();
//! queue.add(now, "a", Priority::NORMAL); // it changed while it runs
//! assert!(queue.pop(now).is_none());
//! queue.done(now, &"a", Then::Forget);
//! assert_eq!(queue.pop(now).unwrap().key, a.key);
//! queue.done(now, &"a", Then::After(Duration::from_secs(60)));
//! assert_eq!(queue.next_deadline().unwrap().at, Time::from_secs(60));
//! ```

mod types;

pub use types::{Aging, Config, Popped, Priority, Rate, Then};

use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::cmp::Reverse;
use core::time::Duration;

use crate::backoff::Policy;
use crate::machine::{Deadline, Reason};
use crate::rng::Rng;
use crate::time::Time;

/// A queue of keys. See the [module](self).
#[derive(Clone, Debug)]
pub struct Queue<K> {
    config: Config,
    rng: Rng,
    entries: BTreeMap<K, Entry>,
    lines: Lines<K>,
    running: usize,
    phase: Phase,
    paused: bool,
    /// Hand-outs since the last one that went to the longest waiting key although a better one was there.
    passed_over: u32,
    /// With a rate limit: the moment at which all tokens taken so far are paid for.
    paid_until: Time,
    adds: u64,
    retries: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Open,
    /// Adds are refused, what is ready is still handed out.
    Draining,
    /// Adds are refused, nothing is handed out.
    Shut,
}

/// What is known of one key. It is dropped when it says nothing.
#[derive(Clone, Debug, Default)]
struct Entry {
    failures: u32,
    run: Option<Running>,
    want: Option<Want>,
    /// It is not handed out, whatever it wants.
    on_hold: bool,
}

impl Entry {
    const fn may_run(&self) -> bool {
        self.run.is_none() && !self.on_hold
    }

    const fn says_nothing(&self) -> bool {
        self.may_run() && self.want.is_none() && self.failures == 0
    }
}

#[derive(Clone, Debug)]
struct Running {
    priority: Priority,
    /// The key was forgotten during the run: what the run asks for no longer counts.
    forgotten: bool,
}

/// A key's wish to run.
#[derive(Clone, Debug)]
struct Want {
    priority: Priority,
    since: Time,
    place: Place,
}

#[derive(Clone, Copy, Debug)]
enum Place {
    Ready {
        seq: u64,
        arrival: u64,
    },
    Waiting {
        at: Time,
        seq: u64,
    },
    /// It could run if it did not run already, or were not on hold.
    Held,
}

/// Where keys stand in line. Numbers are never used twice, so they make every place unique.
#[derive(Clone, Debug)]
struct Lines<K> {
    ready: BTreeMap<(Reverse<Priority>, u64), K>,
    /// The same keys by arrival, for aging: when they became ready, and their place in `ready`.
    arrivals: BTreeMap<u64, (Time, Priority, u64)>,
    timers: BTreeMap<(Time, u64), (K, Reason)>,
    next: u64,
}

impl<K> Lines<K> {
    const fn number(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    fn ready(&mut self, now: Time, key: K, priority: Priority) -> Place {
        let (seq, arrival) = (self.number(), self.number());
        self.ready.insert((Reverse(priority), seq), key);
        self.arrivals.insert(arrival, (now, priority, seq));
        Place::Ready { seq, arrival }
    }

    fn waiting(&mut self, at: Time, key: K, why: Reason) -> Place {
        let seq = self.number();
        self.timers.insert((at, seq), (key, why));
        Place::Waiting { at, seq }
    }

    fn leave(&mut self, priority: Priority, place: Place) {
        match place {
            Place::Ready { seq, arrival } => {
                self.ready.remove(&(Reverse(priority), seq));
                self.arrivals.remove(&arrival);
            }
            Place::Waiting { at, seq } => {
                self.timers.remove(&(at, seq));
            }
            Place::Held => {}
        }
    }

    /// A ready key moves to the end of a higher priority; it keeps its arrival.
    fn raise(&mut self, from: Priority, to: Priority, seq: u64, arrival: u64) -> Place {
        let new = self.number();
        if let Some(key) = self.ready.remove(&(Reverse(from), seq)) {
            self.ready.insert((Reverse(to), new), key);
        }
        if let Some(a) = self.arrivals.get_mut(&arrival) {
            (a.1, a.2) = (to, new);
        }
        Place::Ready { seq: new, arrival }
    }
}

impl<K: Ord + Clone> Queue<K> {
    /// An empty queue. `seed` is for the jitter of the backoff; with [`Policy::RECONCILE`] there is none.
    #[must_use]
    pub const fn new(config: Config, seed: u64) -> Self {
        Self {
            config,
            rng: Rng::new(seed),
            entries: BTreeMap::new(),
            lines: Lines {
                ready: BTreeMap::new(),
                arrivals: BTreeMap::new(),
                timers: BTreeMap::new(),
                next: 0,
            },
            running: 0,
            phase: Phase::Open,
            paused: false,
            passed_over: 0,
            paid_until: Time::ZERO,
            adds: 0,
            retries: 0,
        }
    }

    /// Something happened to `key` now: it shall run, after the debounce pause if there is one.
    pub fn add(&mut self, now: Time, key: K, priority: Priority) {
        self.add_caused(now, key, priority, now);
    }

    /// As [`add`](Self::add), for something that happened at `since`; from then on the latency counts.
    pub fn add_caused(&mut self, now: Time, key: K, priority: Priority, since: Time) {
        // First come, first served: a timer that ended earlier stands before it.
        self.wake(now);
        let at = now + self.config.debounce;
        self.enqueue(now, key, priority, since.min(now), at, Reason::Debounce);
    }

    /// `key` shall run after `delay`, or earlier if anything else wants so.
    pub fn add_after(&mut self, now: Time, key: K, priority: Priority, delay: Duration) {
        self.wake(now);
        let at = now + delay;
        self.enqueue(now, key, priority, at, at, Reason::Requeue);
    }

    fn enqueue(&mut self, now: Time, key: K, priority: Priority, since: Time, at: Time, why: Reason) {
        if self.phase != Phase::Open {
            return;
        }
        self.adds += 1;
        let Self { entries, lines, .. } = self;
        let entry = entries.entry(key.clone()).or_default();
        let due = at <= now;
        let may_run = entry.may_run();
        let ready = |lines: &mut Lines<K>, priority| {
            if may_run { lines.ready(now, key.clone(), priority) } else { Place::Held }
        };
        match &mut entry.want {
            None => {
                let place = if due { ready(lines, priority) } else { lines.waiting(at, key, why) };
                entry.want = Some(Want { priority, since, place });
            }
            Some(want) => {
                let before = want.priority;
                want.priority = before.max(priority);
                want.since = want.since.min(since);
                match want.place {
                    Place::Ready { seq, arrival } if priority > before => {
                        want.place = lines.raise(before, priority, seq, arrival);
                    }
                    Place::Waiting { .. } if due => {
                        lines.leave(before, want.place);
                        want.place = ready(lines, want.priority);
                    }
                    Place::Waiting { at: old, .. } if at < old => {
                        lines.leave(before, want.place);
                        want.place = lines.waiting(at, key, why);
                    }
                    Place::Ready { .. } | Place::Waiting { .. } | Place::Held => {}
                }
            }
        }
    }

    /// Moves every key whose time has come into line. Adds, [`pop`](Self::pop) and [`done`](Self::done) do that too.
    pub fn wake(&mut self, now: Time) {
        while let Some(first) = self.lines.timers.first_entry() {
            if first.key().0 > now {
                break;
            }
            let (key, _) = first.remove();
            let Some(entry) = self.entries.get_mut(&key) else { continue };
            let may_run = entry.may_run();
            let Some(want) = &mut entry.want else { continue };
            want.place = if may_run { self.lines.ready(now, key, want.priority) } else { Place::Held };
        }
    }

    /// Hands out the next key, if one may run now: not paused, below the concurrency limit, within the rate.
    ///
    /// The key counts as running until [`done`](Self::done).
    pub fn pop(&mut self, now: Time) -> Option<Popped<K>> {
        self.wake(now);
        if !self.may_pop() {
            return None;
        }
        if let Some(rate) = self.config.rate {
            if rate.free_at(self.paid_until) > now {
                return None;
            }
            self.paid_until = self.paid_until.max(now) + rate.interval();
        }
        let at = self.choose(now)?;
        let key = self.lines.ready.remove(&at)?;
        let entry = self.entries.get_mut(&key)?;
        let want = entry.want.take()?;
        self.lines.leave(want.priority, want.place);
        entry.run = Some(Running { priority: want.priority, forgotten: false });
        self.running += 1;
        Some(Popped { key, priority: want.priority, since: want.since, failures: entry.failures })
    }

    fn may_pop(&self) -> bool {
        !self.paused
            && self.phase != Phase::Shut
            && self.running < self.config.limit.max(1)
            && !self.lines.ready.is_empty()
    }

    /// The place of the key to hand out: the best one, or now and then the one that has waited longest.
    fn choose(&mut self, now: Time) -> Option<(Reverse<Priority>, u64)> {
        let best = *self.lines.ready.first_key_value()?.0;
        let Some(aging) = self.config.aging else { return Some(best) };
        let &(ready_at, priority, seq) = self.lines.arrivals.first_key_value()?.1;
        let oldest = (Reverse(priority), seq);
        if oldest == best || now.since(ready_at) < aging.after {
            return Some(best);
        }
        self.passed_over += 1;
        if self.passed_over < aging.every {
            return Some(best);
        }
        self.passed_over = 0;
        Some(oldest)
    }

    /// The run of `key` is over. Gives the pause before its next run if `then` asked for one and nothing earlier is
    /// due; `None` if it is not queued by this call, was forgotten meanwhile, or does not run.
    ///
    /// A key that was added during its run is ready at once, also after a failure: the new state may cure it. The
    /// failure still counts.
    pub fn done(&mut self, now: Time, key: &K, then: Then) -> Option<Duration> {
        self.wake(now);
        let entry = self.entries.get_mut(key)?;
        let run = entry.run.take()?;
        self.running -= 1;
        let then = if run.forgotten { Then::Forget } else { then };
        let again = match then {
            Then::Forget => {
                entry.failures = 0;
                None
            }
            Then::Keep => None,
            Then::After(d) => {
                entry.failures = 0;
                Some((d, Reason::Requeue))
            }
            Then::Backoff => {
                entry.failures = entry.failures.saturating_add(1);
                self.retries += 1;
                Some((pause(&self.config.backoff, entry.failures, &mut self.rng), Reason::Backoff))
            }
        };
        Self::unhold(&mut self.lines, now, key, entry);
        let mut pause = None;
        if let Some((delay, why)) = again {
            let due_already =
                matches!(entry.want, Some(Want { place: Place::Ready { .. } | Place::Held, .. }));
            if self.phase == Phase::Open {
                let at = now + delay;
                self.enqueue(now, key.clone(), run.priority, at, at, why);
                pause = (!due_already).then_some(delay);
            }
        }
        self.tidy(key);
        pause
    }

    /// `key` is not handed out before [`release`](Self::release), though its wishes and timers count meanwhile. Not while
    /// the queue drains: nothing would be left to release it.
    pub fn hold(&mut self, key: &K) {
        if self.phase != Phase::Open {
            return;
        }
        let entry = self.entries.entry(key.clone()).or_default();
        entry.on_hold = true;
        if let Some(want) = &mut entry.want
            && matches!(want.place, Place::Ready { .. })
        {
            self.lines.leave(want.priority, want.place);
            want.place = Place::Held;
        }
    }

    /// Ends a [`hold`](Self::hold): if the key wanted to run meanwhile, it stands in line from now on.
    pub fn release(&mut self, now: Time, key: &K) {
        self.wake(now);
        let Some(entry) = self.entries.get_mut(key) else { return };
        entry.on_hold = false;
        Self::unhold(&mut self.lines, now, key, entry);
        self.tidy(key);
    }

    /// If nothing keeps the key any longer, its wish to run stands in line.
    fn unhold(lines: &mut Lines<K>, now: Time, key: &K, entry: &mut Entry) {
        if entry.may_run()
            && let Some(Want { priority, place: place @ Place::Held, .. }) = &mut entry.want
        {
            *place = lines.ready(now, key.clone(), *priority);
        }
    }

    /// The key no longer exists: it leaves the queue, its failures are forgotten, and if it runs, what that run asks
    /// for is void. It is not on hold any longer.
    pub fn forget(&mut self, key: &K) {
        let Some(entry) = self.entries.get_mut(key) else { return };
        if let Some(want) = entry.want.take() {
            self.lines.leave(want.priority, want.place);
        }
        entry.failures = 0;
        entry.on_hold = false;
        if let Some(run) = &mut entry.run {
            run.forgotten = true;
        }
        self.tidy(key);
    }

    fn tidy(&mut self, key: &K) {
        if self.entries.get(key).is_some_and(Entry::says_nothing) {
            self.entries.remove(key);
        }
    }

    /// Hands out nothing until [`resume`](Self::resume); adds go on.
    pub const fn pause(&mut self) {
        self.paused = true;
    }

    /// Ends a [`pause`](Self::pause).
    pub const fn resume(&mut self) {
        self.paused = false;
    }

    /// Refuses adds from now on, drops every timer and ends every hold; what is ready, or was added during its run or
    /// hold, is still handed out. The queue is drained when [`is_idle`](Self::is_idle).
    pub fn drain(&mut self, now: Time) {
        if self.phase == Phase::Open {
            self.wake(now);
            self.phase = Phase::Draining;
            let timers = core::mem::take(&mut self.lines.timers);
            self.drop_wants(timers.into_values().map(|(key, _)| key));
            let held: Vec<K> =
                self.entries.iter().filter(|(_, e)| e.on_hold).map(|(k, _)| k.clone()).collect();
            held.iter().for_each(|key| self.release(now, key));
        }
    }

    /// Refuses adds and hands out nothing from now on; drops what is ready and what waits. Runs may still end.
    pub fn shut_down(&mut self, now: Time) {
        self.drain(now);
        self.phase = Phase::Shut;
        self.lines.arrivals.clear();
        let ready = core::mem::take(&mut self.lines.ready);
        self.drop_wants(ready.into_values());
        self.entries.retain(|_, e| {
            e.want = None;
            e.run.is_some()
        });
    }

    fn drop_wants(&mut self, keys: impl Iterator<Item = K>) {
        for key in keys {
            if let Some(entry) = self.entries.get_mut(&key) {
                entry.want = None;
            }
            self.tidy(&key);
        }
    }

    /// When [`wake`](Self::wake) and [`pop`](Self::pop) have something to do if nothing else happens.
    #[must_use]
    pub fn next_deadline(&self) -> Option<Deadline> {
        let timer = self.lines.timers.first_key_value().map(|(&(at, _), &(_, why))| Deadline { at, why });
        let token = self
            .config
            .rate
            .filter(|_| self.may_pop())
            .map(|r| Deadline { at: r.free_at(self.paid_until), why: Reason::RateLimit });
        Deadline::earlier(timer, token)
    }

    /// Failures in a row of `key`.
    #[must_use]
    pub fn failures(&self, key: &K) -> u32 {
        self.entries.get(key).map_or(0, |e| e.failures)
    }

    /// Keys that could run now.
    #[must_use]
    pub fn ready(&self) -> usize {
        self.lines.ready.len()
    }

    /// Keys that wait for a timer.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.lines.timers.len()
    }

    /// Keys that are handed out.
    #[must_use]
    pub const fn running(&self) -> usize {
        self.running
    }

    /// Keys that the queue remembers anything of; its memory is proportional to this.
    #[must_use]
    pub fn known(&self) -> usize {
        self.entries.len()
    }

    /// Whether nothing is ready and nothing runs.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.running == 0 && self.lines.ready.is_empty()
    }

    /// Adds so far (`workqueue_adds_total`); requeues count too.
    #[must_use]
    pub const fn adds(&self) -> u64 {
        self.adds
    }

    /// Backoffs so far (`workqueue_retries_total`).
    #[must_use]
    pub const fn retries(&self) -> u64 {
        self.retries
    }
}

/// The pause of `policy`; a share of jitter that makes no sense counts as none.
fn pause(policy: &Policy, failures: u32, rng: &mut Rng) -> Duration {
    let d = policy.delay(failures);
    if policy.jitter.is_finite() && policy.jitter > 0.0 {
        let share = policy.jitter.min(1.0);
        d.saturating_add(rng.between(Duration::ZERO, d.mul_f64(share)))
    } else {
        d
    }
}
