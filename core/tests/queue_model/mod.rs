//! The queue again, as naively as it can be said: one list of keys, searched from end to end for everything. And a
//! driver that turns bytes into operations on both and compares them after each.

use core::num::NonZeroU32;
use core::time::Duration;

use steersman_core::backoff::Policy;
use steersman_core::machine::{Deadline, Reason};
use steersman_core::queue::{Aging, Config, Popped, Priority, Queue, Rate, Then};
use steersman_core::time::Time;

#[derive(Debug)]
struct Item {
    key: u8,
    failures: u32,
    /// Its priority, and whether it was forgotten meanwhile.
    running: Option<(Priority, bool)>,
    want: Option<Want>,
    on_hold: bool,
}

#[derive(Debug)]
struct Want {
    priority: Priority,
    since: Time,
    /// `None`: could run now.
    timer: Option<(Time, Reason)>,
    /// When it came to stand where it stands: the place within a priority, or among timers of one moment.
    place: u64,
    /// When it became ready, as a time and as a number.
    ready: (Time, u64),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Open,
    Draining,
    Shut,
}

#[derive(Debug)]
struct Model {
    config: Config,
    items: Vec<Item>,
    counter: u64,
    paused: bool,
    phase: Phase,
    passed_over: u32,
    /// The bucket: nanoseconds worth of tokens, and when that was counted.
    credit: (u128, Time),
}

impl Model {
    fn new(config: Config) -> Self {
        let full = config.rate.map_or(0, |r| interval(r) * u128::from(r.burst.max(1)));
        Self {
            config,
            items: Vec::new(),
            counter: 0,
            paused: false,
            phase: Phase::Open,
            passed_over: 0,
            credit: (full, Time::ZERO),
        }
    }

    fn next(&mut self) -> u64 {
        self.counter += 1;
        self.counter
    }

    fn item(&mut self, key: u8) -> &mut Item {
        let at = self.items.iter().position(|i| i.key == key).unwrap_or_else(|| {
            self.items.push(Item { key, failures: 0, running: None, want: None, on_hold: false });
            self.items.len() - 1
        });
        &mut self.items[at]
    }

    fn enqueue(&mut self, now: Time, key: u8, priority: Priority, since: Time, at: Time, why: Reason) {
        if self.phase != Phase::Open {
            return;
        }
        let n = self.next();
        let timer = (at > now).then_some((at, why));
        let item = self.item(key);
        let Some(want) = &mut item.want else {
            item.want = Some(Want { priority, since, timer, place: n, ready: (now, n) });
            return;
        };
        want.since = want.since.min(since);
        if priority > want.priority {
            want.priority = priority;
            if want.timer.is_none() {
                want.place = n;
            }
        }
        match (want.timer, timer) {
            (Some(_), None) => {
                want.timer = None;
                want.place = n;
                want.ready = (now, n);
            }
            (Some((old, _)), Some((new, why))) if new < old => {
                want.timer = Some((new, why));
                want.place = n;
            }
            _ => {}
        }
    }

    fn wake(&mut self, now: Time) {
        loop {
            let n = self.next();
            let due = |i: &&mut Item| {
                i.want
                    .as_ref()
                    .and_then(|w| w.timer.map(|(at, _)| (at, w.place)))
                    .filter(|(at, _)| *at <= now)
            };
            let first = self.items.iter_mut().filter(|i| due(i).is_some()).min_by_key(|i| due(i));
            let Some(want) = first.and_then(|i| i.want.as_mut()) else { break };
            want.timer = None;
            want.place = n;
            want.ready = (now, n);
        }
    }

    fn ready(&self) -> impl Iterator<Item = (u8, &Want)> {
        self.items
            .iter()
            .filter(|i| i.running.is_none() && !i.on_hold)
            .filter_map(|i| i.want.as_ref().filter(|w| w.timer.is_none()).map(|w| (i.key, w)))
    }

    fn running(&self) -> usize {
        self.items.iter().filter(|i| i.running.is_some()).count()
    }

    fn may_pop(&self) -> bool {
        !self.paused
            && self.phase != Phase::Shut
            && self.running() < self.config.limit.max(1)
            && self.ready().count() > 0
    }

    fn credit(&self, rate: Rate, now: Time) -> u128 {
        let full = interval(rate) * u128::from(rate.burst.max(1));
        (self.credit.0 + now.since(self.credit.1).as_nanos()).min(full)
    }

    fn pop(&mut self, now: Time) -> Option<Popped<u8>> {
        self.wake(now);
        if !self.may_pop() {
            return None;
        }
        if let Some(rate) = self.config.rate {
            let credit = self.credit(rate, now);
            if credit < interval(rate) {
                return None;
            }
            self.credit = (credit - interval(rate), now);
        }
        let best = self.ready().max_by_key(|(_, w)| (w.priority, core::cmp::Reverse(w.place)))?.0;
        let (oldest, since) = self.ready().min_by_key(|(_, w)| w.ready.1).map(|(k, w)| (k, w.ready.0))?;
        let mut key = best;
        if let Some(aging) = self.config.aging
            && oldest != best
            && now.since(since) >= aging.after
        {
            self.passed_over += 1;
            if self.passed_over >= aging.every {
                self.passed_over = 0;
                key = oldest;
            }
        }
        let item = self.item(key);
        let want = item.want.take()?;
        item.running = Some((want.priority, false));
        Some(Popped { key, priority: want.priority, since: want.since, failures: item.failures })
    }

    fn done(&mut self, now: Time, key: u8, then: Then) {
        let n = self.next();
        let backoff = self.config.backoff;
        let item = self.item(key);
        let Some((priority, forgotten)) = item.running.take() else { return };
        if let Some(want) = item.want.as_mut().filter(|w| w.timer.is_none()) {
            want.place = n;
            want.ready = (now, n);
        }
        let again = match if forgotten { Then::Forget } else { then } {
            Then::Forget => {
                item.failures = 0;
                None
            }
            Then::Keep => None,
            Then::After(d) => {
                item.failures = 0;
                Some((d, Reason::Requeue))
            }
            Then::Backoff => {
                item.failures += 1;
                Some((backoff.delay(item.failures), Reason::Backoff))
            }
        };
        if let Some((delay, why)) = again {
            self.enqueue(now, key, priority, now + delay, now + delay, why);
        }
    }

    fn forget(&mut self, key: u8) {
        let item = self.item(key);
        item.want = None;
        item.failures = 0;
        item.on_hold = false;
        if let Some(run) = &mut item.running {
            run.1 = true;
        }
    }

    fn hold(&mut self, key: u8) {
        if self.phase == Phase::Open {
            self.item(key).on_hold = true;
        }
    }

    fn release(&mut self, now: Time, key: u8) {
        self.wake(now);
        let n = self.next();
        let item = self.item(key);
        if std::mem::take(&mut item.on_hold)
            && item.running.is_none()
            && let Some(want) = item.want.as_mut().filter(|w| w.timer.is_none())
        {
            want.place = n;
            want.ready = (now, n);
        }
    }

    fn drain(&mut self, now: Time) {
        if self.phase == Phase::Open {
            self.wake(now);
            self.phase = Phase::Draining;
            for item in &mut self.items {
                item.want.take_if(|w| w.timer.is_some());
            }
            (0..8).for_each(|key| self.release(now, key));
        }
    }

    fn shut_down(&mut self) {
        self.phase = Phase::Shut;
        for item in &mut self.items {
            item.want = None;
            item.on_hold = false;
            if item.running.is_none() {
                item.failures = 0;
            }
        }
    }

    fn next_deadline(&self) -> Option<Deadline> {
        let timer = self
            .items
            .iter()
            .filter_map(|i| i.want.as_ref())
            .filter_map(|w| w.timer.map(|(at, why)| (at, w.place, why)))
            .min()
            .map(|(at, _, why)| Deadline { at, why });
        let token = self.config.rate.filter(|_| self.may_pop()).map(|rate| {
            let missing = interval(rate).saturating_sub(self.credit.0);
            let missing = Duration::from_nanos(u64::try_from(missing).unwrap_or(u64::MAX));
            Deadline { at: self.credit.1 + missing, why: Reason::RateLimit }
        });
        Deadline::earlier(timer, token)
    }

    fn known(&self) -> usize {
        self.items
            .iter()
            .filter(|i| i.running.is_some() || i.want.is_some() || i.failures > 0 || i.on_hold)
            .count()
    }
}

fn interval(rate: Rate) -> u128 {
    u128::from(1_000_000_000 / rate.per_second.get())
}

/// Reads numbers from bytes; zeros when they are used up.
struct Bytes<'a>(core::slice::Iter<'a, u8>);

impl Bytes<'_> {
    fn next(&mut self) -> u8 {
        self.0.next().copied().unwrap_or(0)
    }

    fn duration(&mut self) -> Duration {
        match self.next() {
            0 => Duration::ZERO,
            255 => Duration::MAX,
            n if n < 128 => Duration::from_millis(u64::from(n)),
            n => Duration::from_secs(u64::from(n - 127)),
        }
    }
}

fn config(bytes: &mut Bytes<'_>) -> Config {
    let flags = bytes.next();
    let limit = usize::from(bytes.next() % 5);
    Config {
        limit,
        backoff: Policy::RECONCILE,
        debounce: Duration::from_millis(if flags & 1 == 0 { 0 } else { 10 }),
        aging: match flags >> 1 & 3 {
            0 => None,
            1 => Some(Aging::DEFAULT),
            2 => Some(Aging { after: Duration::from_millis(50), every: 2 }),
            _ => Some(Aging { after: Duration::ZERO, every: 0 }),
        },
        rate: (flags & 8 != 0).then_some(Rate {
            per_second: NonZeroU32::new(20).unwrap_or(NonZeroU32::MIN),
            burst: u32::from(flags >> 4) % 4,
        }),
    }
}

/// At the very end of time no interval fits any more, and a rate means nothing.
const FAR: Time = Time::from_nanos(u64::MAX / 2);

/// The model's keys are below 8.
const BALLAST: core::ops::RangeInclusive<u8> = 8..=u8::MAX;

/// Plays the operations that `data` spells on the queue and on the model.
///
/// # Panics
/// If they differ, if one key is handed out twice at once, if the limit is exceeded, if a served deadline returns, or
/// if a key that wants to run never does.
pub(crate) fn play(data: &[u8]) {
    let mut bytes = Bytes(data.iter());
    let config = config(&mut bytes);
    let limit = config.limit.max(1);
    let mut model = Model::new(config.clone());
    let mut queue = Queue::new(config, 7);
    let mut now = Time::ZERO;
    let mut out: Vec<u8> = Vec::new();
    // Keys of which the model does not know, and that only take room. When they go, the others move together.
    let mut ballast = BALLAST.map(|key| queue.hold(&key)).count();
    // The naive side is slow, and long inputs say nothing new.
    for _ in 0..400 {
        if bytes.0.as_slice().is_empty() {
            break;
        }
        let op = bytes.next();
        if matches!(op & 15, 0..=3 | 8..=10) {
            model.wake(now);
        }
        let key = op >> 4 & 7;
        let priority = if op & 0x80 == 0 { Priority::NORMAL } else { Priority::LOW };
        match op & 15 {
            0 | 1 => {
                queue.add(now, key, priority);
                let at = now + model.config.debounce;
                model.enqueue(now, key, priority, now, at, Reason::Debounce);
            }
            2 => {
                let since = Time::from_nanos(now.as_nanos().saturating_sub(5_000_000));
                queue.add_caused(now, key, priority, since);
                let at = now + model.config.debounce;
                model.enqueue(now, key, priority, since, at, Reason::Debounce);
            }
            3 => {
                let d = bytes.duration();
                queue.add_after(now, key, priority, d);
                model.enqueue(now, key, priority, now + d, now + d, Reason::Requeue);
            }
            4..=7 => {
                let popped = queue.pop(now);
                assert_eq!(popped, model.pop(now), "pop at {now:?}");
                if let Some(p) = popped {
                    assert!(!out.contains(&p.key), "{} was handed out twice", p.key);
                    out.push(p.key);
                    assert!(out.len() <= limit, "the limit does not hold");
                }
            }
            8..=10 => {
                let then = match bytes.next() & 3 {
                    0 => Then::Forget,
                    1 => Then::Keep,
                    2 => Then::After(bytes.duration()),
                    _ => Then::Backoff,
                };
                // Now and then a key that does not run: it is ignored.
                let key = if op & 0x80 == 0 { out.first().copied().unwrap_or(key) } else { key };
                out.retain(|k| *k != key);
                queue.done(now, &key, then);
                model.done(now, key, then);
            }
            11 => {
                queue.forget(&key);
                model.forget(key);
            }
            12 => now = (now + bytes.duration()).min(FAR),
            13 => {
                if let Some(d) = queue.next_deadline().filter(|d| d.at <= FAR) {
                    // A moment before it, nothing is different.
                    let before = now.max(Time::from_nanos(d.at.as_nanos().saturating_sub(1)));
                    queue.wake(before);
                    model.wake(before);
                    assert_eq!(queue.ready(), model.ready().count(), "ready a nanosecond before {d:?}");
                    now = now.max(d.at);
                    queue.wake(now);
                    model.wake(now);
                    while let Some(p) = queue.pop(now) {
                        assert_eq!(Some(p.clone()), model.pop(now));
                        out.push(p.key);
                    }
                    assert_eq!(model.pop(now), None);
                    let next = queue.next_deadline();
                    assert!(
                        next.is_none_or(|n| n.at > now),
                        "{d:?} was served and {next:?} returned at {now:?}"
                    );
                }
            }
            14 => {
                model.paused = op & 0x10 != 0;
                if model.paused { queue.pause() } else { queue.resume() }
            }
            _ => match bytes.next() {
                0 => {
                    queue.drain(now);
                    model.drain(now);
                    ballast = 0;
                }
                1 => {
                    queue.shut_down(now);
                    model.shut_down();
                    ballast = 0;
                }
                n if n >= 128 => {
                    queue.hold(&(n & 7));
                    model.hold(n & 7);
                }
                n if n >= 16 => {
                    queue.release(now, &(n & 7));
                    model.release(now, n & 7);
                }
                15 => {
                    BALLAST.for_each(|key| queue.forget(&key));
                    ballast = 0;
                }
                _ => {
                    queue.wake(now);
                    model.wake(now);
                }
            },
        }
        assert_eq!(queue.ready(), model.ready().count(), "ready");
        assert_eq!(queue.running(), out.len(), "running");
        assert_eq!(queue.running(), model.running(), "running");
        assert_eq!(queue.known(), model.known() + ballast, "known");
        // What is due already may be due since any moment.
        let ahead =
            |d: Option<Deadline>| d.map(|d| if d.at > now { (d.at, Some(d.why)) } else { (now, None) });
        assert_eq!(ahead(queue.next_deadline()), ahead(model.next_deadline()), "deadline at {now:?}");
    }
    settle(&mut queue, now, out);
}

/// Whatever happened before: every key that wants to run does, and then nothing is left of it.
fn settle(queue: &mut Queue<u8>, mut now: Time, mut out: Vec<u8>) {
    queue.resume();
    (0..8).for_each(|key| queue.release(now, &key));
    for _ in 0..100 {
        for key in out.drain(..) {
            queue.done(now, &key, Then::Forget);
        }
        if let Some(d) = queue.next_deadline() {
            now = now.max(d.at);
        }
        while let Some(p) = queue.pop(now) {
            out.push(p.key);
        }
    }
    assert!(queue.is_idle() || queue.ready() > 0 && queue.next_deadline().is_none(), "keys hang");
    assert_eq!(queue.waiting(), 0, "timers are left");
    for key in (0..8).chain(BALLAST) {
        queue.forget(&key);
    }
    assert_eq!(queue.known(), 0, "something is remembered of keys that are gone");
}
