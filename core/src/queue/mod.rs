//! The work queue: which key runs next, which waits for a moment, which waits for its run to end.
//!
//! [`Queue`] is plain data with `now` as an argument. Its promises:
//!
//! - a key is handed out at most once at a time; any number of adds during a run give exactly one more run;
//! - first come, first served within a priority; a higher priority goes first, but no key starves ([`Aging`]);
//! - a key has at most one place: ready, or waiting for one timer. The earliest time and the highest priority win;
//! - a key on hold waits, and loses nothing meanwhile;
//! - a failing key waits 5 ms, doubling to 1000 s ([`Policy::RECONCILE`]); success forgets that;
//! - every operation costs O(log n) of the keys in the queue, whatever is ready, waiting or running (on average: a table that
//!   grows, or is given back after a spike, is copied);
//! - names chosen by strangers cannot make that dearer.
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

mod entry;
mod hash;
mod index;
mod lines;
mod slots;
mod types;

pub use types::{Aging, Config, Popped, Priority, Rate, Then};

use alloc::vec::Vec;
use core::hash::Hash;
use core::time::Duration;

use self::entry::{Place, Want};
use self::lines::Lines;
use self::slots::{Id, Slots};
use crate::backoff::Policy;
use crate::machine::{Deadline, Reason};
use crate::rng::Rng;
use crate::time::Time;

/// A queue of keys. See the [module](self).
#[derive(Clone, Debug)]
pub struct Queue<K> {
    config: Config,
    rng: Rng,
    slots: Slots<K>,
    lines: Lines,
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

impl<K: Ord + Hash + Clone> Queue<K> {
    /// An empty queue. `seed` is for the jitter of the backoff (with [`Policy::RECONCILE`] there is none), and for the hashes of
    /// keys, so that nobody who does not know it can choose names whose hashes collide.
    #[must_use]
    pub const fn new(config: Config, seed: u64) -> Self {
        Self {
            config,
            rng: Rng::new(seed),
            slots: Slots::new(seed),
            lines: Lines::new(),
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
        if self.phase == Phase::Open {
            let id = self.slots.enter(key);
            self.want(now, id, priority, since, at, why);
        }
    }

    fn want(&mut self, now: Time, id: Id, priority: Priority, since: Time, at: Time, why: Reason) {
        self.adds += 1;
        let Self { slots, lines, .. } = self;
        let Some(entry) = slots.get_mut(id) else { return };
        let due = at <= now;
        match &mut entry.want {
            None => {
                entry.want = Some(Want { priority, since, place: Place::Held });
                if due { self.line_up(now, id) } else { lines.wait(slots, at, id, why) }
            }
            Some(want) => {
                let before = want.priority;
                want.priority = before.max(priority);
                want.since = want.since.min(since);
                match want.place {
                    Place::Ready(_) if priority > before => lines.raise(slots, id, before, priority),
                    place @ Place::Waiting { .. } if due => {
                        lines.leave(slots, id, before, place);
                        self.line_up(now, id);
                    }
                    place @ Place::Waiting { at: old, .. } if at < old => {
                        lines.leave(slots, id, before, place);
                        lines.wait(slots, at, id, why);
                    }
                    Place::Ready(_) | Place::Waiting { .. } | Place::Held => {}
                }
            }
        }
    }

    /// A key that wants to run stands in line, unless something else keeps it.
    fn line_up(&mut self, now: Time, id: Id) {
        let Some(entry) = self.slots.get_mut(id) else { return };
        let may_run = entry.may_run();
        if let Some(want) = &mut entry.want {
            want.place = Place::Held;
            if may_run {
                self.lines.ready(&mut self.slots, now, id);
            }
        }
    }

    /// Moves every key whose time has come into line. Adds, [`pop`](Self::pop) and [`done`](Self::done) do that too.
    pub fn wake(&mut self, now: Time) {
        while let Some(id) = self.lines.ring(now) {
            if self.slots.is_far()
                && let Some(next) = self.lines.next_waiting()
            {
                self.slots.fetch(&next);
            }
            self.line_up(now, id);
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
        if self.slots.is_far()
            && let Some(next) = self.lines.next_ready(&self.slots)
        {
            self.slots.fetch(&next);
        }
        let id = self.choose(now)?;
        let entry = self.slots.get_mut(id)?;
        let Want { priority, since, place } = entry.want.take()?;
        let popped = Popped { key: entry.key.clone(), priority, since, failures: entry.failures };
        self.slots.begin(id, priority);
        self.lines.leave(&mut self.slots, id, priority, place);
        self.running += 1;
        Some(popped)
    }

    fn may_pop(&self) -> bool {
        !self.paused
            && self.phase != Phase::Shut
            && self.running < self.config.limit.max(1)
            && self.lines.len() > 0
    }

    /// The key to hand out: the best one, or now and then the one that has waited longest.
    fn choose(&mut self, now: Time) -> Option<Id> {
        let best = self.lines.best()?;
        let Some(aging) = self.config.aging else { return Some(best) };
        let oldest = self.lines.oldest();
        if oldest == best {
            return Some(best);
        }
        let Some(Want { place: Place::Ready(since), .. }) = self.slots.get(oldest)?.want else {
            return Some(best);
        };
        if now.since(since) < aging.after {
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
        let id = self.slots.find_running(key)?;
        let run = self.slots.end(id)?;
        let entry = self.slots.get_mut(id)?;
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
        let due_already = matches!(entry.want, Some(Want { place: Place::Ready(_) | Place::Held, .. }));
        self.unhold(now, id);
        let mut pause = None;
        if let Some((delay, why)) = again
            && self.phase == Phase::Open
        {
            let at = now + delay;
            self.want(now, id, run.priority, at, at, why);
            pause = (!due_already).then_some(delay);
        }
        self.tidy(id);
        pause
    }

    /// `key` is not handed out before [`release`](Self::release), though its wishes and timers count meanwhile. Not while
    /// the queue drains: nothing would be left to release it.
    pub fn hold(&mut self, key: &K) {
        if self.phase != Phase::Open {
            return;
        }
        let id = self.slots.enter(key.clone());
        let Some(entry) = self.slots.get_mut(id) else { return };
        entry.on_hold = true;
        if let Some(want) = &mut entry.want
            && matches!(want.place, Place::Ready(_))
        {
            let (priority, place) = (want.priority, core::mem::replace(&mut want.place, Place::Held));
            self.lines.leave(&mut self.slots, id, priority, place);
        }
    }

    /// Ends a [`hold`](Self::hold): if the key wanted to run meanwhile, it stands in line from now on.
    pub fn release(&mut self, now: Time, key: &K) {
        self.wake(now);
        let Some(id) = self.slots.find(key) else { return };
        let Some(entry) = self.slots.get_mut(id) else { return };
        entry.on_hold = false;
        self.unhold(now, id);
        self.tidy(id);
    }

    /// If nothing keeps the key any longer, its wish to run stands in line.
    fn unhold(&mut self, now: Time, id: Id) {
        if let Some(Want { place: Place::Held, .. }) =
            self.slots.get(id).and_then(|entry| entry.want.as_ref())
        {
            self.line_up(now, id);
        }
    }

    /// The key no longer exists: it leaves the queue, its failures are forgotten, and if it runs, what that run asks
    /// for is void. It is not on hold any longer.
    pub fn forget(&mut self, key: &K) {
        let Some(id) = self.slots.find(key) else { return };
        let Some(entry) = self.slots.get_mut(id) else { return };
        entry.failures = 0;
        entry.on_hold = false;
        if let Some(run) = &mut entry.run {
            run.forgotten = true;
        }
        if let Some(want) = entry.want.take() {
            self.lines.leave(&mut self.slots, id, want.priority, want.place);
        }
        self.tidy(id);
    }

    /// Afterwards numbers of slots may be others.
    fn tidy(&mut self, id: Id) {
        self.slots.tidy(id);
        if self.slots.many_leave() {
            self.leave();
        }
    }

    fn leave(&mut self) {
        self.slots.leave();
        if let Some(new) = self.slots.shrink() {
            self.lines.renumber(&new);
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
            for id in self.lines.drop_timers() {
                if let Some(entry) = self.slots.get_mut(id) {
                    entry.want = None;
                }
                self.slots.tidy(id);
            }
            self.leave();
            let mut held: Vec<K> =
                self.slots.iter().filter(|(_, e)| e.on_hold).map(|(_, e)| e.key.clone()).collect();
            held.sort_unstable();
            held.iter().for_each(|key| self.release(now, key));
        }
    }

    /// Refuses adds and hands out nothing from now on; drops what is ready and what waits. Runs may still end.
    pub fn shut_down(&mut self, now: Time) {
        self.drain(now);
        self.phase = Phase::Shut;
        self.lines.clear();
        self.slots.keep_running();
        self.leave();
    }

    /// When [`wake`](Self::wake) and [`pop`](Self::pop) have something to do if nothing else happens.
    #[must_use]
    pub fn next_deadline(&self) -> Option<Deadline> {
        let timer = self.lines.next_timer().map(|(at, why)| Deadline { at, why });
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
        self.slots.find(key).and_then(|id| self.slots.get(id)).map_or(0, |entry| entry.failures)
    }

    /// Keys that could run now.
    #[must_use]
    pub const fn ready(&self) -> usize {
        self.lines.len()
    }

    /// Keys that wait for a timer.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.lines.waiting()
    }

    /// Keys that are handed out.
    #[must_use]
    pub const fn running(&self) -> usize {
        self.running
    }

    /// Keys that the queue remembers anything of; its memory is proportional to this, but for room for a
    /// hundred keys, and for at most eight times as many of them as are known.
    #[must_use]
    pub const fn known(&self) -> usize {
        self.slots.known()
    }

    /// Whether nothing is ready and nothing runs.
    #[must_use]
    pub const fn is_idle(&self) -> bool {
        self.running == 0 && self.lines.len() == 0
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
