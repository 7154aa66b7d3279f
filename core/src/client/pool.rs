//! Idle connections that may carry another request.

use alloc::vec::Vec;
use core::time::Duration;

use crate::time::Time;

/// Most idle connections. A controller rarely has more requests under way than reconciles.
pub const MAX_IDLE: usize = 8;
/// A connection that was idle for longer is not used again. API servers close idle ones after 90 s or more, load
/// balancers after 60 s or more; client-go and hyper keep 90 s, and meet the dead ones.
pub const IDLE_AGE: Duration = Duration::from_secs(60);

/// Idle connections of one kind: to one server, as one user. The last one that came back goes out first, so that under
/// little load the others age and close. No I/O: what falls out is the caller's to close.
///
/// An executor should look once whether the other side has ended a connection (a read that does not block) before it
/// hands it out: a request that must not be repeated cannot survive a connection that is found dead too late.
///
/// ```
/// use steersman_core::{client::Pool, time::Time};
/// let mut pool = Pool::default();
/// assert!(pool.put(Time::from_secs(1), "a").is_none());
/// assert_eq!(pool.take(Time::from_secs(2)), Some("a"));
/// pool.put(Time::from_secs(3), "b");
/// assert_eq!(pool.take(Time::from_secs(63)), None);
/// ```
#[derive(Clone, Debug)]
pub struct Pool<C> {
    /// Oldest first.
    idle: Vec<(Time, C)>,
    max_idle: usize,
    age: Duration,
}

impl<C> Default for Pool<C> {
    fn default() -> Self {
        Self::new(MAX_IDLE, IDLE_AGE)
    }
}

impl<C> Pool<C> {
    /// A pool of at most `max_idle` connections, none of them idle for `age` or longer.
    #[must_use]
    pub const fn new(max_idle: usize, age: Duration) -> Self {
        Self { idle: Vec::new(), max_idle, age }
    }

    /// A connection has become idle. Gives back what there is no room for: the one that was idle longest.
    #[must_use]
    pub fn put(&mut self, now: Time, connection: C) -> Option<C> {
        // Time may stand still or go back between two callers; the order must hold.
        let now = self.idle.last().map_or(now, |(t, _)| now.max(*t));
        self.idle.push((now, connection));
        (self.idle.len() > self.max_idle).then(|| self.idle.remove(0).1)
    }

    /// The connection that became idle last, if it is young enough. The others that are too old are dropped.
    pub fn take(&mut self, now: Time) -> Option<C> {
        drop(self.expired(now));
        self.idle.pop().map(|(_, c)| c)
    }

    /// Takes out everything that has been idle for too long.
    pub fn expired(&mut self, now: Time) -> Vec<C> {
        let old = self.idle.partition_point(|(t, _)| now.since(*t) >= self.age);
        self.idle.drain(..old).map(|(_, c)| c).collect()
    }

    /// When the next connection will have been idle for too long.
    #[must_use]
    pub fn next_expiry(&self) -> Option<Time> {
        self.idle.first().map(|(t, _)| *t + self.age)
    }

    /// Takes out everything.
    pub fn clear(&mut self) -> Vec<C> {
        self.idle.drain(..).map(|(_, c)| c).collect()
    }

    /// How many connections are idle.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.idle.len()
    }

    /// Whether none is.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.idle.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn last_in_first_out_with_limits() {
        let mut pool = Pool::new(2, Duration::from_secs(60));
        let t = Time::from_secs;
        assert_eq!(pool.put(t(0), 'a'), None);
        assert_eq!(pool.put(t(10), 'b'), None);
        assert_eq!(pool.put(t(20), 'c'), Some('a'));
        assert_eq!(pool.next_expiry(), Some(t(70)));
        assert_eq!(pool.take(t(69)), Some('c'));
        assert_eq!(pool.take(t(70)), None);
        assert!(pool.is_empty() && pool.next_expiry().is_none());
    }

    #[test]
    fn nothing_too_old_ever_comes_out() {
        fn holds(steps: Vec<(bool, u8)>) -> bool {
            let mut pool = Pool::new(3, Duration::from_secs(60));
            let mut now = Time::ZERO;
            for (put, pause) in steps {
                now = now + Duration::from_secs(u64::from(pause));
                if put {
                    let _ = pool.put(now, now);
                } else if pool.take(now).is_some_and(|since| now.since(since) >= Duration::from_secs(60)) {
                    return false;
                }
                drop(pool.expired(now));
                if pool.len() > 3 || pool.next_expiry().is_some_and(|t| t <= now) {
                    return false;
                }
            }
            true
        }
        quickcheck::quickcheck(holds as fn(Vec<(bool, u8)>) -> bool);
    }

    #[test]
    fn no_room_at_all() {
        let mut pool = Pool::new(0, IDLE_AGE);
        assert_eq!(pool.put(Time::ZERO, 1), Some(1));
        assert_eq!(pool.take(Time::ZERO), None);
    }
}
