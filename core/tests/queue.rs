//! The queue against a naive model, against the tests of client-go and controller-runtime re-told, and against time.

mod cases;
mod queue_model;

use core::time::Duration;
use std::num::NonZeroU32;

use quickcheck::{Arbitrary, Gen, TestResult, quickcheck};
use steersman_core::machine::Reason;
use steersman_core::queue::{Aging, Config, Priority, Queue, Rate, Then};
use steersman_core::time::Time;

const MS: Duration = Duration::from_millis(1);
const T0: Time = Time::ZERO;

fn queue(limit: usize) -> Queue<&'static str> {
    Queue::new(Config { limit, ..Config::default() }, 1)
}

fn at(ms: u64) -> Time {
    Time::from_millis(ms)
}

fn keys(q: &mut Queue<&'static str>, now: Time) -> Vec<&'static str> {
    std::iter::from_fn(|| q.pop(now)).map(|p| p.key).collect()
}

#[derive(Clone, Debug)]
struct Ops(Vec<u8>);

impl Arbitrary for Ops {
    fn arbitrary(g: &mut Gen) -> Self {
        let n = usize::arbitrary(g) % 600;
        Self((0..n).map(|_| u8::arbitrary(g)).collect())
    }

    fn shrink(&self) -> Box<dyn Iterator<Item = Self>> {
        Box::new(self.0.shrink().map(Self))
    }
}

#[test]
fn it_does_what_the_naive_model_does() {
    fn same(ops: Ops) -> TestResult {
        queue_model::play(&ops.0);
        TestResult::passed()
    }
    cases::cases(1_500).quickcheck(same as fn(Ops) -> TestResult);
}

#[test]
fn two_adds_are_one_run_and_adds_during_a_run_are_one_more() {
    let mut q = queue(4);
    q.add(T0, "a", Priority::NORMAL);
    q.add(T0, "a", Priority::NORMAL);
    assert_eq!(keys(&mut q, T0), ["a"]);
    for _ in 0..5 {
        q.add(T0, "a", Priority::NORMAL);
    }
    assert_eq!(keys(&mut q, T0), [""; 0]);
    q.done(T0, &"a", Then::Forget);
    assert_eq!(keys(&mut q, T0), ["a"]);
    q.done(T0, &"a", Then::Forget);
    assert_eq!(keys(&mut q, T0), [""; 0]);
    assert_eq!(q.known(), 0);
}

#[test]
fn the_earliest_timer_wins() {
    for (first, second) in [(50, 70), (70, 50)] {
        let mut q = queue(1);
        q.add_after(T0, "a", Priority::NORMAL, MS * first);
        q.add_after(T0, "a", Priority::NORMAL, MS * second);
        assert_eq!(q.next_deadline().unwrap().at, at(50));
        assert!(q.pop(Time::from_nanos(at(50).as_nanos() - 1)).is_none());
        assert_eq!(q.pop(at(50)).unwrap().since, at(50));
        q.done(at(50), &"a", Then::Forget);
        assert_eq!(q.next_deadline(), None, "the later timer is forgotten");
    }
}

#[test]
fn timers_end_in_the_order_of_time() {
    let mut q = queue(9);
    for (key, ms) in [("c", 1_000), ("b", 500), ("a", 250)] {
        q.add_after(T0, key, Priority::NORMAL, MS * ms);
    }
    assert_eq!(q.waiting(), 3);
    assert_eq!(keys(&mut q, at(1_000)), ["a", "b", "c"]);
}

#[test]
fn an_event_does_not_wait_for_a_timer() {
    let mut q = queue(1);
    q.add_after(T0, "a", Priority::NORMAL, MS * 3_600_000);
    q.add(at(5), "a", Priority::NORMAL);
    let run = q.pop(at(7)).unwrap();
    assert_eq!((run.key, run.since), ("a", at(5)));
    assert_eq!(q.next_deadline(), None);
}

#[test]
fn a_timer_that_ends_during_the_run_is_one_more_run() {
    let mut q = queue(1);
    q.add(T0, "a", Priority::NORMAL);
    q.pop(T0).unwrap();
    q.add_after(T0, "a", Priority::NORMAL, MS * 10);
    q.wake(at(10));
    assert_eq!(q.next_deadline(), None, "it waits for the run, not for time");
    assert!(q.pop(at(20)).is_none());
    q.done(at(30), &"a", Then::Forget);
    assert_eq!(q.pop(at(30)).unwrap().since, at(10));
}

#[test]
fn priorities_rise_and_do_not_fall() {
    let mut q = queue(9);
    q.add(T0, "low", Priority::LOW);
    q.add(T0, "foo", Priority::LOW);
    q.add(T0, "bar", Priority::NORMAL);
    q.add(T0, "foo", Priority::NORMAL);
    q.add(T0, "bar", Priority::LOW);
    // foo rose after bar had come, so it stands behind it, and both stand before low.
    assert_eq!(keys(&mut q, T0), ["bar", "foo", "low"]);
}

#[test]
fn a_priority_survives_requeues() {
    let mut q = queue(1);
    q.add(T0, "a", Priority::LOW);
    for then in [Then::After(MS), Then::Backoff] {
        assert_eq!(q.pop(at(100)).unwrap().priority, Priority::LOW);
        q.done(T0, &"a", then);
    }
    assert_eq!(q.pop(at(200)).unwrap().priority, Priority::LOW);
}

#[test]
fn a_key_on_hold_waits_and_loses_nothing() {
    let mut q = queue(9);
    q.add(T0, "a", Priority::NORMAL);
    q.hold(&"a");
    q.hold(&"b");
    assert_eq!(keys(&mut q, T0), [""; 0], "also if it stood in line already");
    q.add(at(1), "b", Priority::NORMAL);
    q.add_after(at(1), "c", Priority::NORMAL, MS * 10);
    q.hold(&"c");
    assert_eq!(keys(&mut q, at(20)), [""; 0], "its timers end unheard");
    q.release(at(20), &"c");
    q.release(at(20), &"a");
    assert_eq!(keys(&mut q, at(20)), ["c", "a"]);
    // Held during its run, as a controller does it.
    q.add(at(20), "a", Priority::NORMAL);
    q.hold(&"a");
    q.done(at(20), &"a", Then::Backoff);
    assert_eq!(keys(&mut q, at(100)), [""; 0]);
    q.release(at(100), &"a");
    assert_eq!(q.pop(at(100)).unwrap().failures, 1);
    // What wanted nothing is not remembered.
    q.forget(&"b");
    q.done(at(100), &"a", Then::Forget);
    q.done(at(100), &"c", Then::Forget);
    assert_eq!(q.known(), 0);
}

#[test]
fn backoff_grows_by_key_and_success_forgets_it() {
    let mut q = queue(9);
    let mut now = T0;
    for (failures, ms) in [5, 10, 20, 40, 80].into_iter().enumerate() {
        q.add(now, "a", Priority::NORMAL);
        assert_eq!(q.pop(now).unwrap().failures, failures as u32);
        assert_eq!(q.done(now, &"a", Then::Backoff), Some(MS * ms));
        let d = q.next_deadline().unwrap();
        assert_eq!((d.at, d.why), (now + MS * ms, Reason::Backoff));
        now = now + Duration::from_secs(1);
    }
    q.add(now, "b", Priority::NORMAL);
    assert_eq!(keys(&mut q, now), ["a", "b"]);
    assert_eq!(q.done(now, &"b", Then::Backoff), Some(MS * 5));
    q.done(now, &"a", Then::Keep);
    assert_eq!(q.failures(&"a"), 5, "a terminal error does not forget");
    q.add(now, "a", Priority::NORMAL);
    q.pop(now).unwrap();
    assert_eq!(q.done(now, &"a", Then::After(MS)), Some(MS));
    assert_eq!(q.failures(&"a"), 0);
    assert_eq!(q.retries(), 6);
}

#[test]
fn a_thousand_failures_wait_for_the_longest_pause() {
    let mut q = queue(1);
    let mut now = T0;
    for _ in 0..1_000 {
        q.add(now, "a", Priority::NORMAL);
        q.pop(now).unwrap();
        let pause = q.done(now, &"a", Then::Backoff).unwrap();
        assert!(pause <= Duration::from_secs(1_000));
        now = now + pause;
    }
    assert_eq!(q.next_deadline().unwrap().at, now);
}

#[test]
fn a_key_that_changed_while_it_failed_is_due_at_once() {
    let mut q = queue(1);
    q.add(T0, "a", Priority::NORMAL);
    q.pop(T0).unwrap();
    q.add(at(1), "a", Priority::NORMAL);
    assert_eq!(q.done(at(2), &"a", Then::Backoff), None);
    let again = q.pop(at(2)).unwrap();
    assert_eq!((again.failures, again.since), (1, at(1)));
    assert_eq!(q.done(at(2), &"a", Then::Backoff), Some(MS * 10), "and the backoff goes on growing");
}

#[test]
fn what_was_forgotten_does_not_come_back_by_its_own_run() {
    let mut q = queue(1);
    q.add(T0, "a", Priority::NORMAL);
    q.pop(T0).unwrap();
    q.forget(&"a");
    assert_eq!(q.done(T0, &"a", Then::After(MS)), None);
    assert_eq!((q.known(), q.next_deadline()), (0, None));
    // Unless it was added again.
    q.add(T0, "a", Priority::NORMAL);
    q.pop(T0).unwrap();
    q.forget(&"a");
    q.add(T0, "a", Priority::NORMAL);
    q.done(T0, &"a", Then::Backoff);
    assert_eq!(q.pop(T0).unwrap().failures, 0);
}

#[test]
fn a_debounce_collects_from_the_first_event() {
    let mut q = Queue::new(Config { debounce: MS * 100, ..Config::default() }, 1);
    for ms in (0..100).step_by(10) {
        q.add(at(ms), "a", Priority::NORMAL);
        assert!(q.pop(at(ms)).is_none());
        assert_eq!(q.next_deadline().unwrap().why, Reason::Debounce);
    }
    assert_eq!(q.pop(at(100)).unwrap().since, T0, "constant change does not put it off");
    q.done(at(100), &"a", Then::After(MS));
    assert_eq!(q.next_deadline().unwrap().at, at(101), "requeues are not debounced");
}

#[test]
fn a_rate_is_charged_at_hand_out() {
    let rate = Rate { per_second: NonZeroU32::new(10).unwrap(), burst: 2 };
    let mut q = Queue::new(Config { limit: 100, rate: Some(rate), ..Config::default() }, 1);
    for key in ["a", "b", "c", "d"] {
        q.add(T0, key, Priority::NORMAL);
    }
    assert_eq!(keys(&mut q, T0), ["a", "b"]);
    let d = q.next_deadline().unwrap();
    assert_eq!((d.at, d.why), (at(100), Reason::RateLimit));
    // A burst of adds does not push anything into the future.
    for _ in 0..10_000 {
        q.add(T0, "c", Priority::NORMAL);
    }
    assert_eq!(keys(&mut q, at(100)), ["c"]);
    assert_eq!(keys(&mut q, at(10_000)), ["d"]);
    assert_eq!(q.next_deadline(), None);
}

#[test]
fn the_limit_holds() {
    let mut q = queue(2);
    for key in ["a", "b", "c"] {
        q.add(T0, key, Priority::NORMAL);
    }
    assert_eq!(keys(&mut q, T0), ["a", "b"]);
    q.done(T0, &"b", Then::Forget);
    assert_eq!(keys(&mut q, T0), ["c"]);
    assert_eq!(Queue::<u8>::new(Config { limit: 0, ..Config::default() }, 1).running(), 0);
}

#[test]
fn twenty_hot_keys_at_one_run_a_time_all_run() {
    let names: Vec<u32> = (0..20).collect();
    let mut q = Queue::new(Config::default(), 1);
    for k in &names {
        q.add(T0, *k, Priority::NORMAL);
    }
    let mut runs = [0; 20];
    for n in 0..2_000 {
        let p = q.pop(at(n)).unwrap();
        runs[p.key as usize] += 1;
        q.done(at(n), &p.key, Then::After(Duration::ZERO));
    }
    assert_eq!(runs, [100; 20]);
}

#[test]
fn low_priorities_get_their_share_and_high_ones_keep_theirs() {
    let aging = Aging { after: MS * 100, every: 4 };
    let mut q = Queue::new(Config { aging: Some(aging), ..Config::default() }, 1);
    for k in 1_000..2_000 {
        q.add(T0, k, Priority::LOW);
    }
    let mut low = Vec::new();
    // A flood: there is always a normal key.
    for n in 0..1_000 {
        q.add(at(n), n as i32 % 7, Priority::NORMAL);
        let p = q.pop(at(n)).unwrap();
        if p.priority == Priority::LOW {
            low.push(n);
        }
        q.done(at(n), &p.key, Then::Forget);
    }
    assert!(low.len() >= 220 && low.len() <= 230, "{} low keys of 1000 ran", low.len());
    assert!(low[0] >= 100);

    let mut q = Queue::new(Config { aging: None, ..Config::default() }, 1);
    q.add(T0, 99, Priority::LOW);
    for n in 0..1_000 {
        q.add(at(n), 1, Priority::NORMAL);
        assert_eq!(q.pop(at(n)).unwrap().key, 1);
        q.done(at(n), &1, Then::Forget);
    }
}

#[test]
fn a_drain_hands_out_what_is_ready_and_a_shutdown_does_not() {
    let fill = |q: &mut Queue<&'static str>| {
        q.add(T0, "a", Priority::NORMAL);
        q.pop(T0).unwrap();
        q.add(T0, "a", Priority::NORMAL);
        q.add(T0, "b", Priority::NORMAL);
        q.add_after(T0, "c", Priority::NORMAL, MS);
    };
    let mut q = queue(1);
    fill(&mut q);
    q.drain(T0);
    q.add(T0, "d", Priority::NORMAL);
    q.done(T0, &"a", Then::After(MS));
    assert_eq!(q.next_deadline(), None);
    let mut seen = Vec::new();
    while let Some(p) = q.pop(at(100)) {
        assert!(!q.is_idle());
        seen.push(p.key);
        q.done(at(100), &p.key, Then::Backoff);
    }
    assert_eq!(seen, ["b", "a"]);
    assert!(q.is_idle());

    let mut q = queue(1);
    fill(&mut q);
    q.shut_down(T0);
    q.shut_down(T0);
    assert_eq!(q.next_deadline(), None);
    assert!(!q.is_idle(), "a still runs");
    q.done(T0, &"a", Then::Forget);
    assert!(q.is_idle() && q.pop(at(100)).is_none());
    assert_eq!(q.known(), 0);
}

#[test]
fn times_beyond_the_end_are_the_end() {
    let mut q = queue(1);
    q.add_after(at(1), "a", Priority::NORMAL, Duration::MAX);
    assert_eq!(q.next_deadline().unwrap().at, Time::MAX);
    assert!(q.pop(at(1)).is_none());
    assert_eq!(q.pop(Time::MAX).unwrap().key, "a");
    q.done(Time::MAX, &"a", Then::After(Duration::MAX));
    assert_eq!(q.next_deadline(), None);
}

#[test]
fn jitter_that_makes_no_sense_is_none() {
    for jitter in [f64::NAN, f64::INFINITY, -1.0, 1e300, 0.5] {
        let backoff =
            steersman_core::backoff::Policy { jitter, ..steersman_core::backoff::Policy::RECONCILE };
        let mut q = Queue::new(Config { backoff, ..Config::default() }, 1);
        q.add(T0, 1, Priority::NORMAL);
        q.pop(T0).unwrap();
        let pause = q.done(T0, &1, Then::Backoff).unwrap();
        assert!(pause >= MS * 5 && pause <= MS * 10, "{pause:?}");
    }
}

/// A hundred thousand keys wait and a hundred thousand run; if an operation looked at all of them, this would take
/// 10^10 steps.
#[test]
fn many_keys_cost_no_more_than_few() {
    const N: u32 = 100_000;
    let mut q = Queue::new(Config { limit: usize::MAX, ..Config::default() }, 1);
    for k in 0..N {
        q.add(T0, k, Priority::NORMAL);
        q.pop(T0).unwrap();
    }
    for k in N..2 * N {
        q.add_after(T0, k, Priority::NORMAL, MS * k);
    }
    for k in 0..N {
        q.add(T0, k, Priority::NORMAL);
        assert!(q.pop(T0).is_none());
    }
    for k in 0..N {
        q.done(T0, &k, Then::After(MS * (k + 1)));
        q.pop(T0).unwrap();
    }
    assert_eq!((q.running(), q.waiting()), (N as usize, N as usize));
}

quickcheck! {
    fn the_same_operations_give_the_same_queue(ops: Vec<(u8, u8)>) -> bool {
        let play = || {
            let mut q = Queue::new(Config { backoff: steersman_core::backoff::Policy::WATCH, ..Config::default() }, 3);
            let mut log = Vec::new();
            for (n, (op, key)) in ops.iter().enumerate() {
                let now = at(n as u64 * 100);
                match op % 3 {
                    0 => q.add(now, *key % 5, Priority::NORMAL),
                    1 => log.push(format!("{:?}", q.pop(now))),
                    _ => log.push(format!("{:?}", q.done(now, &(key % 5), Then::Backoff))),
                }
                log.push(format!("{:?}", q.next_deadline()));
            }
            log
        };
        play() == play()
    }
}
