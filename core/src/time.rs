//! Time as a value: nanoseconds since an origin that the executor chooses. Nothing here can be read from a clock.

use core::fmt;
use core::ops::Add;
use core::time::Duration;

use serde::{Deserialize, Serialize};

/// A point on the monotonic time line of one executor, in nanoseconds since its origin.
///
/// All arithmetic saturates: a deadline that lies beyond 584 years is the last point there is.
///
/// ```
/// use core::time::Duration;
/// use steersman_core::time::Time;
/// let t = Time::from_millis(1_500);
/// assert_eq!((t + Duration::from_secs(1)).since(t), Duration::from_secs(1));
/// assert_eq!(t.since(t + Duration::from_secs(1)), Duration::ZERO);
/// ```
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Time(u64);

impl Time {
    /// The executor's origin.
    pub const ZERO: Self = Self(0);
    /// The last point of the time line.
    pub const MAX: Self = Self(u64::MAX);

    /// `n` nanoseconds after the origin.
    #[must_use]
    pub const fn from_nanos(n: u64) -> Self {
        Self(n)
    }

    /// `n` milliseconds after the origin.
    #[must_use]
    pub const fn from_millis(n: u64) -> Self {
        Self(n.saturating_mul(1_000_000))
    }

    /// `n` seconds after the origin.
    #[must_use]
    pub const fn from_secs(n: u64) -> Self {
        Self(n.saturating_mul(1_000_000_000))
    }

    /// Nanoseconds since the origin.
    #[must_use]
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// How long after `earlier` this is; zero if it is not after it.
    #[must_use]
    pub const fn since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }
}

impl Add<Duration> for Time {
    type Output = Self;

    fn add(self, d: Duration) -> Self {
        Self(self.0.saturating_add(u64::try_from(d.as_nanos()).unwrap_or(u64::MAX)))
    }
}

impl fmt::Debug for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:09}s", self.0 / 1_000_000_000, self.0 % 1_000_000_000)
    }
}

/// Wall-clock time in milliseconds since 1970-01-01T00:00:00Z, for the few places where a protocol needs it
/// (leases, events, dates in `Retry-After`). Never mixed with [`Time`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct UnixMillis(pub i64);

/// Keeps time from running backwards inside one machine: an earlier `now` counts as the last one seen.
///
/// ```
/// use steersman_core::time::{Clock, Time};
/// let mut clock = Clock::default();
/// assert_eq!(clock.advance(Time::from_secs(5)), Time::from_secs(5));
/// assert_eq!(clock.advance(Time::from_secs(3)), Time::from_secs(5));
/// assert_eq!(clock.clamped, 1);
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct Clock {
    last: Time,
    /// How often the executor's time went backwards.
    pub clamped: u64,
}

impl Clock {
    /// The time to use for this input.
    pub fn advance(&mut self, now: Time) -> Time {
        if now < self.last {
            self.clamped += 1;
        } else {
            self.last = now;
        }
        self.last
    }

    /// The latest time seen.
    #[must_use]
    pub const fn now(&self) -> Time {
        self.last
    }
}
