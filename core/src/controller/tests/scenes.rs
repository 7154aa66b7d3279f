//! Single scenes, most of them re-told from the tests and the known bugs of kube-rs and controller-runtime.

use alloc::string::ToString;
use alloc::vec;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicUsize, Ordering};
use core::time::Duration;

use super::*;
use crate::backoff::Policy;
use crate::controller::stats::{ControllerPhase, Histogram, RunReads};
use crate::machine::Reason;
use crate::object::{Object, Reads};
use crate::store::Change;
use crate::store::Snapshot;

const MS: Duration = Duration::from_millis(1);
const SEC: Duration = Duration::from_secs(1);

fn web() -> Config<Obj> {
    Config::new("web", WEBS).concurrency(2)
}

#[test]
fn nothing_runs_before_every_source_has_synced() {
    let mut b = Bench::new(web().owns(PODS).watches(NODES, |_| Vec::new()));
    assert_eq!(b.list(0, &[obj("p/a", 1)]), "");
    assert_eq!(b.input(Input::Start), "");
    assert_eq!(b.input(Input::Start), "");
    assert_eq!(b.list(2, &[]), "");
    assert_eq!(b.trigger("p/a"), "");
    assert_eq!(b.controller.status().phase, ControllerPhase::Syncing);
    assert_eq!(b.controller.next_deadline().unwrap().why, Reason::FirstSync);
    assert_eq!(b.wait(), "waiting for [1]");
    assert_eq!(b.now, Time::from_secs(120));
    assert_eq!(b.wait(), "waiting for [1]");
    assert_eq!(b.list(1, &[]), "ready; run p/a@1");
    assert_eq!(b.controller.next_deadline(), None);
    assert_eq!(b.list(1, &[]), "", "ready is said once");
    let run = &b.open[0];
    assert_eq!(run.views.len(), 3);
    assert_eq!(run.views[0].get(&run.key).as_ref(), Some(&run.object));
}

#[test]
fn nothing_runs_before_the_start() {
    let mut b = Bench::new(web());
    assert_eq!(b.list(0, &[obj("p/a", 1)]), "");
    assert_eq!(b.controller.next_deadline(), None);
    assert_eq!(b.input(Input::Start), "ready; run p/a@1");
}

#[test]
fn the_first_list_is_low_and_changes_are_not() {
    let mut b = Bench::ready(web().concurrency(1), &[obj("p/a", 1), obj("p/b", 1), obj("p/c", 1)]);
    assert_eq!(b.open[0].priority, Priority::LOW);
    assert_eq!(b.apply(0, obj("p/z", 2)), "");
    assert_eq!(b.apply(0, obj("p/c", 3)), "");
    assert_eq!(b.ok("p/a"), "run p/z@2");
    assert_eq!(b.open[0].priority, Priority::NORMAL);
    assert_eq!(b.ok("p/z"), "run p/c@3", "what changed meanwhile rose");
    assert_eq!(b.ok("p/c"), "run p/b@1");
    assert_eq!(b.ok("p/b"), "");
}

#[test]
fn a_change_during_a_run_is_one_more_run_with_the_newest_state() {
    let mut b = Bench::ready(web(), &[obj("p/a", 1)]);
    for version in 2..10 {
        assert_eq!(b.apply(0, obj("p/a", version)), "");
    }
    assert_eq!(b.ok("p/a"), "run p/a@9");
    assert_eq!(b.ok("p/a"), "");
}

#[test]
fn the_limit_holds_and_it_is_one_by_default() {
    let three = [obj("p/a", 1), obj("p/b", 1), obj("p/c", 1)];
    let mut b = Bench::ready(web(), &three);
    assert_eq!(b.open.len(), 2);
    assert_eq!(b.ok("p/b"), "run p/c@1");
    for config in [Config::new("web", WEBS), Config::new("web", WEBS).concurrency(0)] {
        assert_eq!(Bench::ready(config, &three).open.len(), 1);
    }
}

#[test]
fn a_relist_is_a_difference() {
    let mut b = Bench::ready(web().concurrency(9), &[obj("p/a", 1), obj("p/b", 1), obj("p/c", 1)]);
    for key in ["p/a", "p/b", "p/c"] {
        b.ok(key);
    }
    // b changed, c went, d came while nobody looked; a is as it was.
    let said = b.list(0, &[obj("p/a", 1), obj("p/b", 5), obj("p/d", 6)]);
    assert_eq!(said, "run p/b@5; run p/d@6");
}

#[test]
fn a_child_deleted_while_nobody_looked_triggers_its_owner() {
    let mut b = Bench::ready(web().owns(PODS), &[obj("p/a", 1)]);
    b.ok("p/a");
    assert_eq!(b.apply(1, obj("p/x", 2).owned_by(&WEBS, "a", true)), "run p/a@1");
    b.ok("p/a");
    assert_eq!(b.list(1, &[]), "run p/a@1");
}

#[test]
fn old_owners_hear_of_a_child_that_moves() {
    let mut b = Bench::ready(web().owns(PODS), &[obj("p/a", 1), obj("p/b", 1)]);
    b.both("p/a", "p/b");
    b.apply(1, obj("p/x", 2).owned_by(&WEBS, "a", true));
    b.ok("p/a");
    assert_eq!(b.apply(1, obj("p/x", 3).owned_by(&WEBS, "b", true)), "run p/b@1; run p/a@1");
    b.both("p/a", "p/b");
    assert_eq!(b.apply(1, obj("p/x", 4)), "run p/b@1");
    b.ok("p/b");
    assert_eq!(b.delete(1, obj("p/x", 5)), "");
}

#[test]
fn owners_are_told_by_group_and_kind() {
    let other_group = ResourceType::new("other.io", "v1", "webs", "Web", Scope::Namespaced);
    let other_version = ResourceType::new("shop.io", "v2", "webs", "Web", Scope::Namespaced);
    let mut b = Bench::ready(web().owns(PODS), &[obj("p/a", 1)]);
    b.ok("p/a");
    assert_eq!(b.apply(1, obj("p/1", 2).owned_by(&other_group, "a", true)), "");
    assert_eq!(b.apply(1, obj("p/2", 3).owned_by(&PODS, "a", true)), "");
    assert_eq!(b.apply(1, obj("p/3", 4).owned_by(&WEBS, "a", false)), "", "not its controller");
    assert_eq!(b.apply(1, obj("q/4", 5).owned_by(&WEBS, "a", true)), "", "another namespace");
    assert_eq!(b.apply(1, obj("node", 6).owned_by(&WEBS, "a", true)), "", "no namespace");
    assert_eq!(b.apply(1, obj("p/5", 7).owned_by(&other_version, "a", true)), "run p/a@1");

    let mut b = Bench::ready(web().owns_shared(PODS), &[obj("p/a", 1)]);
    b.ok("p/a");
    assert_eq!(b.apply(1, obj("p/3", 4).owned_by(&WEBS, "a", false)), "run p/a@1");
}

#[test]
fn a_cluster_scoped_owner_has_one_key_whoever_names_it() {
    let config = Config::new("zone", ZONES)
        .concurrency(9)
        .owns(PODS)
        .watches(NODES, |n: &Obj| vec![n.key(), Key::namespaced("q", "z")]);
    let mut b = Bench::ready(config, &[obj("z", 1)]);
    assert_eq!(b.open.len(), 1);
    for (ns, version) in [("p", 2), ("q", 3), ("r", 4)] {
        assert_eq!(b.apply(1, obj(&format!("{ns}/x"), version).owned_by(&ZONES, "z", true)), "");
    }
    assert_eq!(b.apply(2, obj("n", 5)), "");
    assert_eq!(b.trigger("q/z"), "");
    assert_eq!(b.ok("z"), "run z@1", "once more, not three at once");
    assert_eq!(b.ok("z"), "");
    assert_eq!(b.trigger("q/z"), "run z@1");
    assert_eq!(b.ok("z"), "");
    assert_eq!(b.apply(2, obj("n", 6)), "run z@1", "a mapping named it with a namespace");
}

#[test]
fn mapped_sources_trigger_for_the_old_and_the_new_state() {
    // The version says whom it concerns.
    let config = web().watches(NODES, |n: &Obj| vec![Key::namespaced("p", &n.version)]);
    let mut b = Bench::ready(config, &[obj("p/2", 1), obj("p/3", 1)]);
    b.both("p/2", "p/3");
    assert_eq!(b.apply(1, obj("n", 2)), "run p/2@1");
    b.ok("p/2");
    assert_eq!(b.apply(1, obj("n", 3)), "run p/3@1; run p/2@1");
    b.both("p/2", "p/3");
    assert_eq!(b.apply(1, obj("n", 4)), "run p/3@1");
}

#[test]
fn predicates_filter_but_never_hide_a_deletion() {
    let asked = shared(AtomicUsize::new(0));
    let count = asked.clone();
    let config = web()
        .filter(|c| matches!(c, Change::Updated { new, .. } if new.version == "7"))
        .owns(PODS)
        .filter(move |c| {
            assert!(!matches!(c, Change::Deleted { .. }));
            count.fetch_add(1, Ordering::Relaxed);
            false
        });
    let mut b = Bench::ready(config, &[obj("p/a", 1)]);
    assert!(b.open.is_empty(), "the first state is an addition");
    assert_eq!(b.apply(0, obj("p/a", 6)), "");
    assert_eq!(b.apply(0, obj("p/a", 7)), "run p/a@7");
    b.ok("p/a");
    let pod = |v| obj("p/x", v).owned_by(&WEBS, "a", true);
    assert_eq!(b.apply(1, pod(8)), "");
    assert_eq!(b.apply(1, pod(9)), "");
    assert_eq!(b.delete(1, pod(10)), "run p/a@7");
    assert_eq!(asked.load(Ordering::Relaxed), 2);
}

#[test]
fn a_deleted_object_is_forgotten() {
    let mut b = Bench::ready(web().concurrency(1).owns(PODS), &[obj("p/a", 1), obj("p/b", 1)]);
    assert_eq!(b.delete(0, obj("p/b", 2)), "");
    assert_eq!(b.ok("p/a"), "", "b was queued and is gone");
    // With a timer.
    b.apply(0, obj("p/c", 3));
    b.done("p/c", Outcome::Requeue(SEC));
    assert_eq!(b.delete(0, obj("p/c", 4)), "");
    assert_eq!(b.controller.next_deadline(), None);
    // While it runs: what the run asks for is void.
    b.apply(0, obj("p/d", 5));
    b.delete(0, obj("p/d", 6));
    assert_eq!(b.fail("p/d"), "failed p/d x1 None");
    assert_eq!(b.controller.next_deadline(), None);
    // Nobody can trigger what is not there.
    assert_eq!(b.apply(1, obj("p/x", 7).owned_by(&WEBS, "d", true)), "");
    assert_eq!(b.trigger("p/d"), "");
    assert_eq!(b.controller.status().vanished, 1);
    assert_eq!(b.controller.queue.known(), 0);
}

#[test]
fn a_recreated_object_starts_anew() {
    let mut b = Bench::ready(web(), &[obj("p/a", 1)]);
    b.fail("p/a");
    assert_eq!(b.wait(), "run p/a@1");
    assert_eq!(b.open[0].attempt, 2);
    let mut again = obj("p/a", 5);
    again.uid = "another".to_string();
    assert_eq!(b.apply(0, again), "", "the old one still runs");
    assert_eq!(b.fail("p/a"), "failed p/a x2 None; run p/a@5");
    assert_eq!(b.open[0].attempt, 1);
}

#[test]
fn outcomes() {
    let mut b = Bench::ready(web(), &[obj("p/a", 1)]);
    // Backoff grows; a requeue resets it and is not itself a backoff.
    for (n, ms) in [(1, 5), (2, 10), (3, 20), (4, 40)] {
        assert_eq!(b.open[0].attempt, n);
        assert_eq!(b.fail("p/a"), format!("failed p/a x{n} Some({ms}ms)"));
        let d = b.controller.next_deadline().unwrap();
        assert_eq!((d.at, d.why), (b.now + MS * ms, Reason::Backoff));
        assert_eq!(b.wait(), "run p/a@1");
    }
    assert_eq!(b.done("p/a", Outcome::Panicked("boom".to_string())), "panicked p/a x5 Some(80ms)");
    b.wait();
    assert_eq!(b.done("p/a", Outcome::Requeue(SEC * 60)), "");
    let d = b.controller.next_deadline().unwrap();
    assert_eq!((d.at, d.why), (b.now + SEC * 60, Reason::Requeue));
    b.wait();
    assert_eq!(b.open[0].since, b.now);
    assert_eq!(b.fail("p/a"), "failed p/a x1 Some(5ms)");
    b.wait();
    // A terminal error waits for a change and forgets nothing.
    assert_eq!(b.done("p/a", Outcome::Terminal("never".to_string())), "gave up p/a: never");
    assert_eq!(b.controller.next_deadline(), None);
    assert_eq!(b.apply(0, obj("p/a", 2)), "run p/a@2");
    assert_eq!(b.open[0].attempt, 2);
    assert_eq!(b.ok("p/a"), "");
    assert_eq!(b.controller.queue.known(), 0);
    let results = b.controller.status().results;
    assert_eq!((results.success, results.requeue_after, results.error), (1, 1, 5));
    assert_eq!((results.terminal, results.panicked, results.total()), (1, 1, 9));
    assert_eq!(b.controller.status().last_error.unwrap().error, "never");
}

#[test]
fn a_requeue_at_once_stands_behind_the_others() {
    let mut b = Bench::ready(web().concurrency(1), &[obj("p/a", 1), obj("p/b", 1), obj("p/c", 1)]);
    let mut order = Vec::new();
    for _ in 0..9 {
        let key = b.open[0].key.to_string();
        b.done(&key, Outcome::Requeue(Duration::ZERO));
        order.push(key);
    }
    assert_eq!(order, ["p/a", "p/b", "p/c", "p/a", "p/b", "p/c", "p/a", "p/b", "p/c"]);
}

#[test]
fn a_change_does_not_wait_for_the_backoff() {
    let policy = Policy { base: SEC * 100, ..Policy::RECONCILE };
    let mut b = Bench::ready(web().backoff(policy), &[obj("p/a", 1)]);
    assert_eq!(b.fail("p/a"), "failed p/a x1 Some(100s)");
    assert_eq!(b.pass(SEC), "");
    assert_eq!(b.apply(0, obj("p/a", 2)), "run p/a@2");
    assert_eq!(b.open[0].attempt, 2);
    assert_eq!(b.fail("p/a"), "failed p/a x2 Some(200s)");
}

#[test]
fn one_key_fails_alone() {
    let mut b = Bench::ready(web(), &[obj("p/a", 1), obj("p/b", 1)]);
    b.fail("p/a");
    assert_eq!(b.apply(0, obj("p/b", 2)), "");
    assert_eq!(b.ok("p/b"), "run p/b@2");
}

#[test]
fn a_run_that_takes_too_long_is_told_once_and_keeps_its_key() {
    let mut b = Bench::ready(web().reconcile_timeout(SEC * 10), &[obj("p/a", 1)]);
    let d = b.controller.next_deadline().unwrap();
    assert_eq!((d.at, d.why), (Time::from_secs(10), Reason::ReconcileTimeout));
    b.pass(SEC);
    assert_eq!(b.apply(0, obj("p/b", 2)), "run p/b@2");
    assert_eq!(b.wait(), "timeout p/a 10s; abandon 1");
    assert_eq!(b.apply(0, obj("p/a", 3)), "", "it still runs");
    assert_eq!(b.ok("p/b"), "");
    assert_eq!(b.controller.next_deadline(), None);
    assert_eq!(b.fail("p/a"), "failed p/a x1 None; run p/a@3");
    assert_eq!(b.ok("p/a"), "");
    assert_eq!(b.controller.next_deadline(), None);
    assert_eq!(b.controller.status().timeouts, 1);
}

#[test]
fn the_end_waits_for_what_runs_and_drops_what_is_queued() {
    let mut b = Bench::ready(web(), &[obj("p/a", 1), obj("p/b", 1), obj("p/c", 1)]);
    assert_eq!(b.input(Input::Stop { grace: Some(SEC * 30) }), "");
    assert_eq!(b.apply(0, obj("p/d", 9)), "");
    assert_eq!(b.trigger("p/a"), "");
    assert_eq!(b.fail("p/a"), "failed p/a x1 None");
    assert_eq!(b.controller.next_deadline().unwrap().at, Time::from_secs(30));
    assert_eq!(b.controller.status().phase, ControllerPhase::Stopping);
    assert_eq!(b.ok("p/b"), "stopped 0");
    assert_eq!(b.controller.next_deadline(), None);
    assert_eq!(b.input(Input::Start), "");
    assert_eq!(b.trigger("p/a"), "");
}

#[test]
fn the_end_does_not_wait_for_ever() {
    let mut b = Bench::ready(web(), &[obj("p/a", 1), obj("p/b", 1)]);
    b.input(Input::Stop { grace: Some(SEC * 30) });
    assert_eq!(b.wait(), "abandon 1; abandon 2; stopped 2");
    assert_eq!(b.now, Time::from_secs(30));
    assert_eq!(b.ok("p/a"), "", "too late");
    assert_eq!(b.controller.status().stray, 1);
    // A second stop can only shorten it.
    let mut b = Bench::ready(web(), &[obj("p/a", 1)]);
    assert_eq!(b.input(Input::Stop { grace: None }), "");
    assert_eq!(b.controller.next_deadline(), None);
    assert_eq!(b.input(Input::Stop { grace: Some(SEC) }), "");
    assert_eq!(b.input(Input::Stop { grace: Some(SEC * 9) }), "");
    assert_eq!(b.controller.next_deadline().unwrap().at, Time::from_secs(1));
    assert_eq!(b.input(Input::Stop { grace: Some(Duration::ZERO) }), "abandon 1; stopped 1");
    // Before the start.
    assert_eq!(Bench::new(web()).input(Input::Stop { grace: None }), "stopped 0");
}

#[test]
fn inputs_that_name_nothing_are_counted() {
    let mut b = Bench::ready(web(), &[obj("p/a", 1)]);
    let done = |n| Input::Done { id: ReconcileId(n), outcome: Outcome::AwaitChange, started: Time::ZERO };
    assert_eq!(b.input(done(77)), "");
    let delta = Delta {
        changes: Vec::new().into(),
        view: Store::new().snapshot(),
        synced: true,
        resource_version: "".into(),
        received: Time::ZERO,
    };
    assert_eq!(b.input(Input::Delta { source: SourceId(9), delta }), "");
    assert_eq!(b.input(done(1)), "");
    assert_eq!(b.input(done(1)), "", "twice");
    assert_eq!(b.controller.status().stray, 3);
}

#[test]
fn what_runs_read_is_counted_once_a_run() {
    let mut b = Bench::ready(web(), &[obj("p/a", 1), obj("p/b", 2), obj("p/c", 3)]);
    assert_eq!(b.controller.status().metadata_alone(), None);
    let id = b.open[0].id;
    let reads = Reads { parses: 2, parts: 1, bytes: 500 };
    assert_eq!(b.input(Input::Read { id, reads }), "");
    ["p/a", "p/b", "p/c"].iter().for_each(|key| drop(b.ok(key)));
    // It is over.
    assert_eq!(b.input(Input::Read { id, reads }), "");
    let status = b.controller.status();
    assert_eq!(status.reads, RunReads { runs: 1, parses: 2, parts: 1, bytes: 500 });
    assert_eq!(
        (status.stray, status.metadata_alone().map(|share| (share * 300.0).round())),
        (1, Some(200.0))
    );
}

#[test]
fn the_end_of_a_run_tells_what_it_read() {
    let object = |name: &str| {
        Object::from_json(format!(r#"{{"metadata":{{"name":"{name}"}},"data":{{"k":"v"}}}}"#).as_bytes())
    };
    let run = |read: &dyn Fn(&Object, &Snapshot<Object>)| {
        let (object, other) = (object("a").unwrap(), object("b").unwrap());
        let mut run = Run {
            id: ReconcileId(1),
            key: object.key(),
            object,
            views: [[other].into_iter().collect()].into(),
            since: Time::ZERO,
            attempt: 1,
            priority: Priority::NORMAL,
        };
        let meter = run.meter();
        let context = Context::new((), &run, Abandoned::default());
        read(context.object(), &context.view(SourceId(0)).unwrap());
        let ends = Input::<Object>::ends_of(run.id, &meter, Outcome::AwaitChange, Time::ZERO);
        ends.map(|input| format!("{input:?}")).collect::<Vec<_>>()
    };
    let done = "Done { id: ReconcileId(1), outcome: AwaitChange, started: 0.000000000s }";
    assert_eq!(run(&|object, _| assert_eq!(object.name(), "a")), [done]);
    let b = Key::cluster("b");
    let reads = run(&|object, view| {
        assert_eq!(object.get(&["data", "k"]).unwrap(), Some("v".to_string()));
        assert!(view.get(&b).unwrap().value().is_ok());
    });
    assert_eq!(reads, ["Read { id: ReconcileId(1), reads: Reads { parses: 1, parts: 1, bytes: 45 } }", done]);
}

#[cfg(feature = "std")]
#[test]
fn a_panic_in_a_mapping_costs_only_its_object() {
    let config = web().watches(NODES, |n: &Obj| {
        assert!(n.key.name() != "bad", "bad node");
        vec![Key::namespaced("p", "a")]
    });
    let mut b = Bench::ready(config, &[obj("p/a", 1)]);
    b.ok("p/a");
    assert_eq!(b.apply(1, obj("bad", 2)), "mapping 1 of bad panicked: bad node");
    assert_eq!(b.apply(1, obj("good", 3)), "run p/a@1");
}

#[test]
fn latency_counts_from_the_cause() {
    let mut b = Bench::ready(web().concurrency(1), &[]);
    b.pass(SEC);
    b.apply(0, obj("p/a", 1));
    b.apply(0, obj("p/b", 2));
    b.pass(MS * 200);
    b.ok("p/a");
    assert_eq!(b.open[0].since, Time::from_secs(1));
    b.now = b.now + MS * 50;
    // It waited 50 ms more for a thread, then took 30 ms.
    let (id, started) = (b.open[0].id, b.now);
    b.now = b.now + MS * 30;
    b.input(Input::Done { id, outcome: Outcome::AwaitChange, started });
    let status = b.controller.status();
    assert_eq!(status.queue_latency.max(), MS * 250);
    assert_eq!(status.run_duration.sum(), MS * 30);
    assert_eq!(status.queue_latency.count(), 2);
}

#[test]
fn a_start_that_cannot_be_counts_from_the_hand_out() {
    let mut b = Bench::ready(web(), &[obj("p/a", 1)]);
    b.now = Time::from_secs(2);
    let id = b.open[0].id;
    for (id, started) in [(id, Time::MAX), (ReconcileId(2), Time::ZERO)] {
        b.input(Input::Done { id, outcome: Outcome::AwaitChange, started });
        b.apply(0, obj("p/a", 9));
    }
    assert_eq!(b.controller.status().run_duration.max(), Duration::ZERO);
}

#[test]
fn a_status_tells_where_it_stands_and_survives_json() {
    let mut b = Bench::ready(web().concurrency(1).owns(PODS), &[obj("p/a", 1), obj("p/b", 4)]);
    b.apply(1, obj("p/x", 3));
    b.pass(SEC);
    let status = b.controller.status();
    assert_eq!((status.name.as_str(), status.phase), ("web", ControllerPhase::Running));
    assert!(status.is_ready());
    assert_eq!((status.queued, status.running, status.waiting, status.concurrency), (1, 1, 0, 1));
    let oldest = status.oldest_run.clone().unwrap();
    assert_eq!((oldest.key.to_string().as_str(), oldest.since), ("p/a", Time::ZERO));
    assert_eq!((status.sources[0].objects, status.sources[0].resource_version.as_str()), (2, "4"));
    assert_eq!((status.sources[1].objects, status.sources[1].changes), (1, 1));
    let json = serde_json::to_string(&status).unwrap();
    assert_eq!(serde_json::from_str::<ControllerStatus>(&json).unwrap(), status);
}

#[test]
fn runs_do_not_show_their_objects() {
    let b = Bench::ready(web(), &[obj("p/a", 1)]);
    let shown = format!("{:?}", b.open[0]);
    assert!(shown.contains("p/a") && !shown.contains("uid-"), "{shown}");
}

#[test]
fn time_that_runs_backwards_stands_still() {
    let mut b = Bench::ready(web(), &[obj("p/a", 1)]);
    b.now = Time::from_secs(10);
    b.done("p/a", Outcome::Requeue(SEC));
    b.now = Time::from_secs(3);
    assert_eq!(b.input(Input::Deadline), "");
    assert_eq!(b.controller.next_deadline().unwrap().at, Time::from_secs(11));
}

#[test]
fn histograms_are_exact_to_an_eighth() {
    let mut h = Histogram::default();
    assert_eq!((h.quantile(0.5), h.count(), h.at_most(SEC)), (None, 0, 0));
    for nanos in [0, 1, 999, 1_000, 1_001, 2_000, 2_001, 123_456_789, u64::MAX] {
        let mut one = Histogram::default();
        let d = Duration::from_nanos(nanos);
        one.record(d);
        one.record(Duration::MAX);
        let got = one.quantile(0.5).unwrap();
        assert!(got >= d.min(SEC * 70_000), "{d:?} gives {got:?}");
        assert!(got.as_nanos() <= (u128::from(nanos) * 9 / 8).max(1_000), "{d:?} gives {got:?}");
        h.merge(&one);
    }
    assert_eq!(h.count(), 18);
    assert_eq!(h.max(), Duration::from_nanos(u64::MAX));
    assert_eq!(h.at_most(Duration::MAX), 18);
    assert_eq!(h.at_most(SEC), 8);
    let mut even = Histogram::default();
    (1..=10_000).for_each(|us| even.record(Duration::from_micros(us)));
    for q in [0.0, 0.01, 0.5, 0.9, 0.99, 1.0] {
        let exact = (10_000.0f64 * q).max(1.0);
        let got = even.quantile(q).unwrap().as_nanos() as f64 / 1_000.0;
        assert!(got >= exact && got <= exact * 1.125 + 1.0, "{q}: {got} for {exact}");
    }
    assert_eq!(even.quantile(f64::NAN).map(|d| d <= even.max()), Some(true));
}
