//! Settings of a queue and the words it uses.

use core::num::NonZeroU32;
use core::time::Duration;

use serde::{Deserialize, Serialize};

use crate::backoff::Policy;
use crate::time::Time;

/// Higher goes first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Priority(pub i32);

impl Priority {
    /// Changes, deletions, requeues of such.
    pub const NORMAL: Self = Self(0);
    /// What the initial list brings: controller-runtime's `handler.LowPriority`.
    pub const LOW: Self = Self(-100);
}

/// How a queue behaves.
#[derive(Clone, Debug)]
pub struct Config {
    /// How many keys may run at once; 0 counts as 1. controller-runtime's `MaxConcurrentReconciles` is 1 too.
    pub limit: usize,
    /// The pauses of a failing key.
    pub backoff: Policy,
    /// How long events of one key are collected before it runs, counted from the first of them, so that a key that
    /// changes all the time still runs. Zero by default. Requeues are not delayed by it.
    pub debounce: Duration,
    /// How low priorities are kept from starving; `None` lets them starve.
    pub aging: Option<Aging>,
    /// Most hand-outs per time; none by default. It is charged when a key is handed out, not when it is added, so a
    /// burst of adds does not push later keys into the future (as Kubernetes issue 104554 describes).
    pub rate: Option<Rate>,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            limit: 1,
            backoff: Policy::RECONCILE,
            debounce: Duration::ZERO,
            aging: Some(Aging::DEFAULT),
            rate: None,
        }
    }
}

/// A key that has been ready for `after` gets every `every`-th hand-out, oldest first, whatever its priority.
///
/// So a stream of normal keys cannot hold up the initial list for ever, nor can a long initial list that has grown old
/// push new changes to its end: they still get the other hand-outs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Aging {
    /// How long a key waits before it counts as old.
    pub after: Duration,
    /// Which share of hand-outs old keys get: one of `every`; 0 and 1 mean all.
    pub every: u32,
}

impl Aging {
    /// One of four hand-outs for what has waited for five seconds. There is no precedent: controller-runtime's queue
    /// starves low priorities (its issue 3496).
    pub const DEFAULT: Self = Self { after: Duration::from_secs(5), every: 4 };
}

/// A token bucket: `per_second` on average, `burst` at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rate {
    /// Tokens that come back each second.
    pub per_second: NonZeroU32,
    /// Tokens that are there after a rest; 0 counts as 1.
    pub burst: u32,
}

impl Rate {
    /// Between two tokens.
    pub(super) const fn interval(self) -> Duration {
        Duration::from_nanos(1_000_000_000 / self.per_second.get() as u64)
    }

    /// When the next token is there, if all that were taken are paid for at `paid_until`.
    pub(super) fn free_at(self, paid_until: Time) -> Time {
        let credit = self.interval().saturating_mul(self.burst.saturating_sub(1));
        let credit = u64::try_from(credit.as_nanos()).unwrap_or(u64::MAX);
        Time::from_nanos(paid_until.as_nanos().saturating_sub(credit))
    }
}

/// A key that was handed out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Popped<K> {
    /// The key.
    pub key: K,
    /// The priority with which it was handed out.
    pub priority: Priority,
    /// Since when it wanted to run: the earliest event, or the moment for which it was requeued.
    pub since: Time,
    /// Failures in a row before this run.
    pub failures: u32,
}

/// What becomes of a key whose run is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Then {
    /// All is well: nothing more, failures are forgotten.
    Forget,
    /// Nothing more, but failures stay counted.
    Keep,
    /// All is well: once more after this pause, failures are forgotten.
    After(Duration),
    /// It failed: once more after the backoff pause.
    Backoff,
}
