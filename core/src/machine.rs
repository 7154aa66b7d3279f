//! The one shape of every machine.
//!
//! **The contract: a machine changes only in [`Machine::handle`]; what follows from an input is appended to the caller's
//! sink before `handle` returns; and once a deadline was served, it does not come back.**
//!
//! 1. Call `handle(now, input, &mut out)` for everything that happens.
//! 2. Perform each output. Report what came of it as another input, whenever it comes.
//! 3. If nothing happens before `next_deadline()`, call `handle` with the machine's `Deadline` input.
//!
//! There is no order of calls to get wrong: every (state, input) pair is defined. Inputs that name an effect which is
//! no longer outstanding are ignored and counted.

use alloc::vec::{self, Vec};
use core::fmt;
use core::slice;

use serde::{Deserialize, Serialize};

use crate::time::Time;

/// A pure state machine.
pub trait Machine {
    /// Everything that can happen to it. One variant is `Deadline`: time moved, nothing else.
    type Input<'a>;
    /// Everything it can ask for or tell.
    type Output;

    /// The only way in. Appends to `out` what follows from `input` at `now`; keeps nothing back.
    fn handle(&mut self, now: Time, input: Self::Input<'_>, out: &mut Outputs<Self::Output>);

    /// When to call again with the `Deadline` input if nothing else happens, and why.
    ///
    /// After `handle(d.at, Deadline)` this is `None` or later than `d.at`.
    fn next_deadline(&self) -> Option<Deadline>;

    /// Whether the deadline has passed. Whoever waits for something else besides asks after each input that came instead: where
    /// there is always one, as on a socket that never pauses, nobody comes to wait for the deadline.
    fn is_due(&self, now: Time) -> bool {
        self.next_deadline().is_some_and(|deadline| deadline.at <= now)
    }
}

/// A point in time at which a machine wants to be called, and the reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Deadline {
    /// When.
    pub at: Time,
    /// What is waited for; it stands in logs and errors.
    pub why: Reason,
}

impl Deadline {
    /// The earlier of two optional deadlines.
    ///
    /// ```
    /// use steersman_core::{machine::{Deadline, Reason}, time::Time};
    /// let a = Some(Deadline { at: Time::from_secs(2), why: Reason::Connect });
    /// let b = Some(Deadline { at: Time::from_secs(1), why: Reason::Backoff });
    /// assert_eq!(Deadline::earlier(a, b), b);
    /// assert_eq!(Deadline::earlier(a, None), a);
    /// ```
    #[must_use]
    pub fn earlier(a: Option<Self>, b: Option<Self>) -> Option<Self> {
        match (a, b) {
            (Some(a), Some(b)) => Some(if b.at < a.at { b } else { a }),
            (a, b) => a.or(b),
        }
    }
}

/// Why a machine waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[non_exhaustive]
pub enum Reason {
    /// TCP and TLS are being set up.
    Connect,
    /// A file that holds a credential is being read.
    Credential,
    /// The request is sent; the head of the response has not come.
    FirstByte,
    /// A response body makes no progress.
    BodyProgress,
    /// A watch is silent for longer than its bookmarks allow.
    WatchIdle,
    /// A watch outlived the `timeoutSeconds` that it was asked with.
    WatchGuard,
    /// The end bookmark of a streaming list has not come.
    InitialEventsEnd,
    /// A pause after a failure.
    Backoff,
    /// A key asked to be reconciled later.
    Requeue,
    /// A key of low priority has waited long enough.
    Aging,
    /// Events are collected for a moment before a key runs.
    Debounce,
    /// A rate limit allows the next one only then.
    RateLimit,
    /// A source has not had its first list.
    FirstSync,
    /// A watch has not shown what a reconcile wrote.
    CatchUp,
    /// A reconcile runs longer than it may.
    ReconcileTimeout,
    /// Running work is given time to end.
    Shutdown,
    /// A bookmark is due on a watch that this server serves.
    Bookmark,
    /// A watch that this server serves ends.
    WatchEnd,
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Connect => "connecting",
            Self::Credential => "reading a credential",
            Self::FirstByte => "waiting for the response",
            Self::BodyProgress => "reading the response body",
            Self::WatchIdle => "waiting for a watch event or bookmark",
            Self::WatchGuard => "waiting for the watch to end",
            Self::InitialEventsEnd => "waiting for the end of the initial events",
            Self::Backoff => "backing off",
            Self::Requeue => "waiting for a requeue",
            Self::Aging => "aging low priorities",
            Self::Debounce => "collecting events",
            Self::RateLimit => "keeping to a rate limit",
            Self::FirstSync => "waiting for the first list",
            Self::CatchUp => "waiting for a watch to show what was written",
            Self::ReconcileTimeout => "waiting for a reconcile",
            Self::Shutdown => "waiting for running work",
            Self::Bookmark => "until the next bookmark",
            Self::WatchEnd => "until the watch ends",
        })
    }
}

/// The sink that a caller owns and reuses; machines append to it.
///
/// ```
/// use steersman_core::machine::Outputs;
/// let mut out = Outputs::new();
/// out.push("one");
/// assert_eq!(out.drain().collect::<Vec<_>>(), ["one"]);
/// assert!(out.is_empty());
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outputs<T>(Vec<T>);

impl<T> Outputs<T> {
    /// An empty sink.
    #[must_use]
    pub const fn new() -> Self {
        Self(Vec::new())
    }

    /// Appends one output.
    pub fn push(&mut self, output: T) {
        self.0.push(output);
    }

    /// Takes everything out in order; the allocation stays.
    pub fn drain(&mut self) -> vec::Drain<'_, T> {
        self.0.drain(..)
    }

    /// Whether nothing is in it.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// How many outputs are in it.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// The outputs in order.
    pub fn iter(&self) -> slice::Iter<'_, T> {
        self.0.iter()
    }

    /// Forgets everything in it.
    pub fn clear(&mut self) {
        self.0.clear();
    }
}

impl<T> Default for Outputs<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> Extend<T> for Outputs<T> {
    fn extend<I: IntoIterator<Item = T>>(&mut self, iter: I) {
        self.0.extend(iter);
    }
}

impl<T> IntoIterator for Outputs<T> {
    type Item = T;
    type IntoIter = vec::IntoIter<T>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

impl<'a, T> IntoIterator for &'a Outputs<T> {
    type Item = &'a T;
    type IntoIter = slice::Iter<'a, T>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.iter()
    }
}
