//! Keys into a queue, and out of it.

use std::hint::black_box;
use std::time::Duration;

use steersman_core::object::Key;
use steersman_core::queue::{Config, Priority, Queue, Then};
use steersman_core::time::Time;

use super::{far_apart, round};
use crate::Prepared;

/// From one operation to the next. So a million keys are through in a second, and none grows so old that it overtakes.
const TICK: Duration = Duration::from_micros(1);

/// As many again as are in line, so that the one that is added is not.
fn keys(pending: usize) -> Vec<Key> {
    let key = |n| Key::namespaced(&format!("team-{:03}", n % 100), &format!("shop-5d8c7-{n:07}"));
    (0..2 * pending).map(|n| key(far_apart(n, 2 * pending))).collect()
}

pub(crate) fn queue_turn(pending: usize) -> Prepared {
    let (keys, mut next) = (keys(pending), round(2 * pending));
    let (mut queue, mut now) = (Queue::new(Config::default(), 1), Time::ZERO);
    for _ in 0..pending {
        queue.add(now, keys[next()].clone(), Priority::NORMAL);
    }
    Prepared::new(move || {
        now = now + TICK;
        queue.add(now, keys[next()].clone(), Priority::NORMAL);
        let Some(popped) = black_box(queue.pop(now)) else { return false };
        queue.done(now, &popped.key, Then::Forget);
        queue.ready() == pending
    })
}

/// One timer ends each tick, and they come in an order in which neighbours end far apart.
pub(crate) fn timer_turn(waiting: usize) -> Prepared {
    let (keys, mut next) = (keys(waiting), round(2 * waiting));
    let half = waiting / 2;
    let mut added = 0;
    let mut add = move |queue: &mut Queue<Key>| {
        // The ticks come in blocks; the adds of each fill the block after the next.
        let (block, place) = (added / half, added % half);
        let delay = (block + 2) * half + far_apart(place, half) - added;
        let now = Time::ZERO + TICK * u32::try_from(added).unwrap_or(u32::MAX);
        let delay = TICK * u32::try_from(delay).unwrap_or(u32::MAX);
        queue.add_after(now, keys[next()].clone(), Priority::NORMAL, delay);
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
