use alloc::format;
use core::hash::Hasher;
use core::time::Duration;

use super::*;
use crate::object::Key;
use crate::queue::{Config, Queue, Then};
use crate::time::Time;

const T0: Time = Time::ZERO;
const NORMAL: Priority = Priority::NORMAL;

fn key(n: usize) -> Key {
    Key::namespaced(&format!("team-{}", n % 100), &format!("shop-5d8c7-{n}"))
}

fn filled<K: Ord + Hash + Clone>(limit: usize, keys: impl Iterator<Item = K>) -> Queue<K> {
    let mut queue = Queue::new(Config { limit, ..Config::default() }, 1);
    keys.for_each(|key| queue.add(T0, key, NORMAL));
    queue
}

#[test]
fn slots_are_used_again() {
    let mut queue = filled(1, (0..100).map(key));
    for n in 100..20_000 {
        queue.add(T0, key(n), NORMAL);
        let popped = queue.pop(T0).unwrap();
        assert_eq!(popped.key, key(n - 100));
        queue.done(T0, &popped.key, Then::Forget);
        assert_eq!(queue.known(), 100);
    }
    assert!(queue.slots.slots.len() <= 101 + TOGETHER, "{}", queue.slots.slots.len());
    assert!(queue.slots.index.places() <= 512, "{}", queue.slots.index.places());
}

fn assert_small<K>(slots: &Slots<K>) {
    assert!(slots.slots.capacity() <= 1_024, "{} slots", slots.slots.capacity());
    assert!(slots.index.places() <= 1_024, "{} places", slots.index.places());
    assert!(slots.running.places() <= 1_024, "{} places of what runs", slots.running.places());
    assert!(slots.young.capacity() + slots.leaving.capacity() <= 4 * TOGETHER);
}

/// Who stays has other numbers then, wherever it stands.
#[test]
fn a_spike_gives_its_memory_back_and_loses_nobody() {
    const N: usize = 50_000;
    let mut queue = filled(usize::MAX, (0..N).map(key));
    let later = Duration::from_secs(60);
    for n in 0..N {
        let popped = queue.pop(T0).unwrap();
        assert_eq!(popped.key, key(n));
        match n % (N / 4) {
            // These wait, run, are on hold, have failed, ...
            3 => _ = queue.done(T0, &popped.key, Then::After(later)),
            5 => {}
            7 => {
                queue.hold(&popped.key);
                queue.add(T0, popped.key.clone(), NORMAL);
                queue.done(T0, &popped.key, Then::Forget);
            }
            9 => _ = queue.done(T0, &popped.key, Then::Backoff),
            _ => _ = queue.done(T0, &popped.key, Then::Forget),
        }
        // ... or are in line.
        if n % (N / 4) == 11 {
            queue.add(T0, key(N + n), Priority::LOW);
        }
    }
    assert_small(&queue.slots);
    assert_eq!((queue.waiting(), queue.running()), (8, 4));
    let rest: Vec<Key> = core::iter::from_fn(|| queue.pop(T0)).map(|popped| popped.key).collect();
    let quarters = |n| [0, 1, 2, 3].map(|quarter| key(N / 4 * quarter + n));
    assert_eq!(rest, quarters(N + 11));
    quarters(7).iter().for_each(|key| queue.release(T0, key));
    assert_eq!([(); 4].map(|()| queue.pop(T0).unwrap().key), quarters(7));
    quarters(5).iter().for_each(|key| assert!(queue.done(T0, key, Then::After(later)).is_some()));
    for (after, n) in [(Duration::from_millis(5), 9), (later, 3)] {
        assert_eq!(queue.next_deadline().unwrap().at, T0 + after);
        assert_eq!([(); 4].map(|()| queue.pop(T0 + after).unwrap().key), quarters(n));
    }
    assert_eq!([(); 4].map(|()| queue.pop(T0 + later).unwrap().key), quarters(5));
}

#[test]
fn what_a_drain_and_a_shutdown_drop_is_given_back() {
    let mut queue = Queue::new(Config { limit: usize::MAX, ..Config::default() }, 1);
    for n in 0..20_000 {
        queue.add_after(T0, key(n), NORMAL, Duration::from_secs(1));
    }
    queue.add(T0, key(7), NORMAL);
    queue.drain(T0);
    assert_small(&queue.slots);
    assert_eq!((queue.known(), queue.pop(T0).unwrap().key), (1, key(7)));

    let mut queue = filled(1, (0..20_000).map(key));
    let runs = queue.pop(T0).unwrap().key;
    queue.shut_down(T0);
    assert_small(&queue.slots);
    queue.done(T0, &runs, Then::Forget);
    assert!(queue.is_idle() && queue.known() == 0);
}

/// What runs is many, and ends in another order.
#[test]
fn many_run_at_once() {
    let mut queue = filled(usize::MAX, (0..5_000).map(key));
    while queue.pop(T0).is_some() {}
    assert_eq!(queue.running(), 5_000);
    for n in 0..5_000 {
        assert_eq!(queue.done(T0, &key(n * 7 % 5_000), Then::Backoff), Some(Duration::from_millis(5)));
    }
    assert_eq!((queue.running(), queue.waiting()), (0, 5_000));
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Same(u32);

impl Hash for Same {
    fn hash<H: Hasher>(&self, _: &mut H) {}
}

#[test]
fn keys_whose_hashes_are_all_the_same_only_take_longer() {
    let mut queue = filled(1, (0..300).map(Same));
    for n in 0..600 {
        let popped = queue.pop(T0).unwrap();
        assert_eq!(popped.key, Same(n % 300));
        queue.done(T0, &popped.key, if n < 300 { Then::After(Duration::ZERO) } else { Then::Forget });
    }
    assert_eq!((queue.known(), queue.is_idle()), (0, true));
}

#[test]
fn a_key_that_comes_back_before_it_has_left_is_there() {
    let mut queue = filled(1, [1].into_iter());
    for n in 1..200 {
        assert_eq!(queue.pop(T0).unwrap().key, n);
        queue.done(T0, &n, Then::Forget);
        assert_eq!(queue.known(), 0);
        queue.add(T0, n, NORMAL);
        assert_eq!((queue.known(), queue.slots.iter().count()), (1, 1));
        assert_eq!(queue.pop(T0).unwrap().key, n);
        queue.done(T0, &n, Then::Forget);
        queue.forget(&n);
        queue.add(T0, n + 1, NORMAL);
    }
    assert!(queue.slots.slots.len() <= TOGETHER + 2);
}
