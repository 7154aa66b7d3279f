//! The executor's clock: the only place where this crate looks at the time.

use std::time::{Instant, SystemTime};

use steersman_core::machine::Deadline;
use steersman_core::time::{Time, UnixMillis};

/// Turns the machine's monotonic clock into the core's [`Time`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    origin: Instant,
}

impl Clock {
    pub(crate) fn start() -> Self {
        Self { origin: Instant::now() }
    }

    pub(crate) fn now(self) -> Time {
        Time::from_nanos(u64::try_from(self.origin.elapsed().as_nanos()).unwrap_or(u64::MAX))
    }

    /// Ends at `deadline`; never without one.
    pub(crate) async fn reach(self, deadline: Option<Deadline>) {
        match deadline.and_then(|d| self.origin.checked_add(d.at.since(Time::ZERO))) {
            Some(at) => drop(async_io::Timer::at(at).await),
            None => futures_lite::future::pending().await,
        }
    }
}

/// Wall-clock time.
pub(crate) fn wall() -> UnixMillis {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    UnixMillis(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
}

/// A seed for jitter, and for what nobody outside shall guess of the hashes of keys: different for every process and every call.
pub(crate) fn seed() -> u64 {
    use std::hash::{BuildHasher, RandomState};
    RandomState::new().hash_one(std::process::id())
}
