//! Exponential pauses that grow with failures and reset on progress, never on the mere passing of time.

use core::time::Duration;

use serde::{Deserialize, Serialize};

use crate::rng::Rng;

/// How pauses grow.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Policy {
    /// The first pause.
    pub base: Duration,
    /// No pause before jitter is longer.
    pub cap: Duration,
    /// The share of the pause that is added at random: 1.0 gives a delay in `[d, 2d)`.
    pub jitter: f64,
}

impl Policy {
    /// The pauses of client-go's reflector: 0.8 s doubling to 30 s, jitter up to x2 (`tools/cache/reflector.go`).
    pub const WATCH: Self =
        Self { base: Duration::from_millis(800), cap: Duration::from_secs(30), jitter: 1.0 };
    /// The pauses of a failing key: 5 ms doubling to 1000 s, no jitter (client-go's item exponential limiter).
    pub const RECONCILE: Self =
        Self { base: Duration::from_millis(5), cap: Duration::from_secs(1000), jitter: 0.0 };

    /// The pause after `failures` failures in a row (1 is the first), before jitter.
    ///
    /// ```
    /// use core::time::Duration;
    /// use steersman_core::backoff::Policy;
    /// assert_eq!(Policy::RECONCILE.delay(1), Duration::from_millis(5));
    /// assert_eq!(Policy::RECONCILE.delay(3), Duration::from_millis(20));
    /// assert_eq!(Policy::RECONCILE.delay(1_000), Duration::from_secs(1000));
    /// ```
    #[must_use]
    pub fn delay(&self, failures: u32) -> Duration {
        match failures.checked_sub(1) {
            None => Duration::ZERO,
            Some(n) if n < 63 => self
                .base
                .checked_mul(1u32.checked_shl(n).unwrap_or(u32::MAX))
                .map_or(self.cap, |d| d.min(self.cap)),
            Some(_) => self.cap,
        }
    }
}

/// Counts failures in a row and gives the pause for each.
///
/// ```
/// use core::time::Duration;
/// use steersman_core::{backoff::{Backoff, Policy}, rng::Rng};
/// let mut backoff = Backoff::new(Policy::WATCH);
/// let first = backoff.fail(&mut Rng::new(1));
/// assert!(first >= Duration::from_millis(800) && first < Duration::from_millis(1600));
/// backoff.progress();
/// assert_eq!(backoff.failures(), 0);
/// ```
#[derive(Clone, Debug)]
pub struct Backoff {
    policy: Policy,
    failures: u32,
}

impl Backoff {
    /// No failures yet.
    #[must_use]
    pub const fn new(policy: Policy) -> Self {
        Self { policy, failures: 0 }
    }

    /// One more failure: the pause to make.
    pub fn fail(&mut self, rng: &mut Rng) -> Duration {
        self.failures = self.failures.saturating_add(1);
        let d = self.policy.delay(self.failures);
        let jitter = rng.between(Duration::ZERO, d.mul_f64(self.policy.jitter));
        d.saturating_add(jitter)
    }

    /// Something good happened: the next pause is the first one again.
    pub const fn progress(&mut self) {
        self.failures = 0;
    }

    /// Failures in a row.
    #[must_use]
    pub const fn failures(&self) -> u32 {
        self.failures
    }
}
