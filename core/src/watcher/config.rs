//! Settings of a watcher.

use core::time::Duration;

use serde::{Deserialize, Serialize};

use crate::backoff::Policy;
use crate::limits;

/// How fresh the first state must be.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum FirstState {
    /// The most recent one (a quorum read): it is never older than what this process or another one saw before.
    #[default]
    Consistent,
    /// Whatever the server has in its watch cache (`resourceVersion=0`): cheap for the server, but it may be older than
    /// what this program saw before it was restarted. Asked for without pages, since a server ignores `limit` there.
    Cached,
}

/// Settings of a [`Watcher`](super::Watcher). Times that make no sense (zero, absurdly long) are clamped.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Config {
    /// How fresh the first state must be.
    pub first: FirstState,
    /// Objects a page of a list at `""`; `None` for one answer. Lists at a known version are never paged, since a `limit`
    /// would send them past the server's watch cache.
    pub page_size: Option<u32>,
    /// Whether to try streaming lists (`sendInitialEvents`; servers have them since Kubernetes 1.32), with plain lists as
    /// the fallback. On by default: they cost a server far less memory, and come from its watch cache however fresh the
    /// state must be.
    pub streaming: bool,
    /// For how long plain lists are used after a fallback; then a streaming list is tried again.
    pub streaming_again: Duration,
    /// `timeoutSeconds` of a watch is random in this range, so that watches do not all end at once.
    pub timeout: (Duration, Duration),
    /// How much longer than its `timeoutSeconds` a watch may live.
    pub guard: Duration,
    /// Longest silence of a watch that has not sent a bookmark.
    pub idle: Duration,
    /// Longest silence of a watch that has sent one.
    pub idle_after_bookmark: Duration,
    /// Longest silence of a streaming list before its end bookmark.
    pub stall: Duration,
    /// An empty watch that ends sooner is a very short one (client-go: 1 s): its version may be the cause.
    pub very_short: Duration,
    /// A watch that lived this long, even empty, is no failure if it ends in order.
    pub steady: Duration,
    /// Once an unreadable frame has come, the next watch that ends this long after the last list is followed by a list
    /// instead of a watch, because nobody knows what the frame said.
    pub repair: Duration,
    /// How pauses grow.
    pub backoff: Policy,
    /// A longer `Retry-After` counts as this.
    pub retry_after_max: Duration,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            first: FirstState::Consistent,
            page_size: Some(limits::PAGE_SIZE),
            streaming: true,
            streaming_again: limits::STREAMING_AGAIN,
            timeout: limits::WATCH_TIMEOUT,
            guard: limits::WATCH_GUARD,
            idle: limits::WATCH_IDLE,
            idle_after_bookmark: limits::WATCH_IDLE_AFTER_BOOKMARK,
            stall: limits::INITIAL_EVENTS_STALL,
            very_short: Duration::from_secs(1),
            steady: Duration::from_secs(30),
            repair: Duration::from_secs(600),
            backoff: Policy::WATCH,
            retry_after_max: limits::RETRY_AFTER_MAX,
        }
    }
}

impl Config {
    /// What the machine can live with: a deadline that is served must not come back at the same moment, and arithmetic
    /// on floating point must not panic.
    pub(super) fn sane(mut self) -> Self {
        const MOMENT: Duration = Duration::from_millis(1);
        const DAY: Duration = Duration::from_secs(86_400);
        let second = Duration::from_secs(1);
        self.timeout.0 = self.timeout.0.clamp(second, DAY);
        self.timeout.1 = self.timeout.1.clamp(self.timeout.0, DAY);
        for d in [
            &mut self.guard,
            &mut self.idle,
            &mut self.idle_after_bookmark,
            &mut self.stall,
            &mut self.streaming_again,
        ] {
            *d = (*d).clamp(second, DAY);
        }
        self.page_size = self.page_size.filter(|n| *n > 0);
        self.backoff.cap = self.backoff.cap.clamp(MOMENT, DAY);
        self.backoff.base = self.backoff.base.clamp(MOMENT, self.backoff.cap);
        let jitter = self.backoff.jitter;
        self.backoff.jitter = if jitter.is_finite() { jitter.clamp(0.0, 10.0) } else { 0.0 };
        self.retry_after_max = self.retry_after_max.min(DAY);
        self
    }
}
