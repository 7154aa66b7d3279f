//! Keys into a queue, and out of it.

use std::hint::black_box;
use std::time::Duration;

use steersman_core::object::Key;
use steersman_core::queue::{Config, Priority, Queue, Then};
use steersman_core::rng::Rng;
use steersman_core::time::Time;

use super::far_apart;
use crate::Prepared;

/// From one operation to the next. So a million keys are through in a second, and none grows so old that it overtakes.
const TICK: Duration = Duration::from_micros(1);

/// Keys that are added, over and over.
struct Keys {
    keys: Vec<Key>,
    next: usize,
    /// So many are read before the first of them is added.
    read_ahead: usize,
}

impl Keys {
    /// As many again as are in line, so that the one that is added is not. They come in the order in which they lie in memory.
    fn new(pending: usize) -> Self {
        let key = |n| Key::namespaced(&format!("team-{:03}", n % 100), &format!("shop-5d8c7-{n:07}"));
        let keys = (0..2 * pending).map(|n| key(far_apart(n, 2 * pending))).collect();
        Self { keys, next: 0, read_ahead: 0 }
    }

    /// They come in any order.
    fn shuffled(mut self) -> Self {
        let mut rng = Rng::new(1);
        for n in (1..self.keys.len()).rev() {
            self.keys.swap(n, rng.below(n as u64 + 1) as usize);
        }
        self
    }

    fn next(&mut self) -> Key {
        let this = self.next;
        self.next = if this + 1 == self.keys.len() { 0 } else { this + 1 };
        if self.read_ahead > 0 && this.is_multiple_of(self.read_ahead) {
            let soon = self.keys[this..].iter().take(self.read_ahead);
            black_box(soon.fold(0, |all, key| all ^ key.name().as_bytes()[0]));
        }
        self.keys[this].clone()
    }
}

/// Each key was made just before the next.
pub(crate) fn queue_turn(pending: usize) -> Prepared {
    turn(pending, Keys::new(pending))
}

/// Neighbours in line lie far apart in memory. Whoever adds a key has read it before.
pub(crate) fn queue_turn_shuffled(pending: usize) -> Prepared {
    turn(pending, Keys { read_ahead: 16, ..Keys::new(pending).shuffled() })
}

/// The same, but nobody has read for long what is added: the wait for that is counted too.
pub(crate) fn queue_turn_cold(pending: usize) -> Prepared {
    turn(pending, Keys::new(pending).shuffled())
}

fn turn(pending: usize, mut keys: Keys) -> Prepared {
    let (mut queue, mut now) = (Queue::new(Config::default(), 1), Time::ZERO);
    for _ in 0..pending {
        queue.add(now, keys.next(), Priority::NORMAL);
    }
    Prepared::new(move || {
        now = now + TICK;
        queue.add(now, keys.next(), Priority::NORMAL);
        let Some(popped) = black_box(queue.pop(now)) else { return false };
        queue.done(now, &popped.key, Then::Forget);
        queue.ready() == pending
    })
}

/// One timer ends each tick, and they come in an order in which neighbours end far apart.
pub(crate) fn timer_turn(waiting: usize) -> Prepared {
    let mut keys = Keys::new(waiting);
    let half = waiting / 2;
    let mut added = 0;
    let mut add = move |queue: &mut Queue<Key>| {
        // The ticks come in blocks; the adds of each fill the block after the next.
        let (block, place) = (added / half, added % half);
        let delay = (block + 2) * half + far_apart(place, half) - added;
        let now = Time::ZERO + TICK * u32::try_from(added).unwrap_or(u32::MAX);
        let delay = TICK * u32::try_from(delay).unwrap_or(u32::MAX);
        queue.add_after(now, keys.next(), Priority::NORMAL, delay);
        added += 1;
        now
    };
    let mut queue = Queue::new(Config::default(), 1);
    for _ in 0..2 * half {
        add(&mut queue);
    }
    Prepared::new(move || {
        let now = add(&mut queue);
        let Some(popped) = black_box(queue.pop(now)) else { return false };
        queue.done(now, &popped.key, Then::Forget);
        queue.waiting() == 2 * half
    })
}
