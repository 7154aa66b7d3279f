//! Read your writes.

use super::*;
use crate::controller::tests::Obj;

const S: Duration = Duration::from_secs(1);

fn pod(name: &str, version: u64) -> Obj {
    obj(&format!("p/{name}"), version).owned_by(&WEBS, "a", true)
}

/// `p/a` runs; the webs are at 5, the pods at 1.
fn running() -> Bench {
    let b = Bench::ready(Config::new("web", WEBS).owns(PODS).concurrency(9), &[obj("p/a", 5)]);
    assert_eq!(b.open.len(), 1);
    b
}

#[test]
fn a_key_that_wrote_runs_when_its_source_shows_it() {
    let mut b = running();
    b.wrote("p/a", &PODS, "p/x", "9");
    assert_eq!(b.done("p/a", Outcome::Requeue(S)), "");
    assert_eq!(b.trigger("p/a"), "", "it is on hold");
    assert_eq!(b.controller.status().on_hold, 1);
    assert_eq!(b.apply(1, obj("p/other", 8)), "", "that is not it");
    assert_eq!(b.trigger("p/b"), "", "b is nobody");
    assert_eq!(b.apply(1, pod("x", 9)), "run p/a@5");
    b.ok("p/a");
    assert_eq!(b.controller.status().on_hold, 0);
    assert_eq!(b.controller.next_deadline(), None, "what was asked for has been had earlier");
}

#[test]
fn others_do_not_wait() {
    let mut b = running();
    b.apply(0, obj("p/b", 6));
    b.wrote("p/a", &PODS, "p/x", "9");
    b.ok("p/a");
    b.ok("p/b");
    assert_eq!(b.trigger("p/b"), "run p/b@6");
}

#[test]
fn what_was_shown_before_its_writer_ended_holds_nothing_up() {
    let mut b = running();
    // The event came before the answer.
    b.apply(1, pod("x", 9));
    b.wrote("p/a", &PODS, "p/x", "9");
    assert_eq!(b.ok("p/a"), "run p/a@5", "for the event");
    // The answer came first, but the event before the end.
    b.wrote("p/a", &PODS, "p/x", "10");
    b.apply(1, pod("x", 10));
    assert_eq!(b.ok("p/a"), "run p/a@5");
    assert_eq!(b.ok("p/a"), "");
    assert_eq!(b.controller.status().on_hold, 0);
}

#[test]
fn its_own_object_is_waited_for_too() {
    let mut b = running();
    b.wrote("p/a", &WEBS, "p/a", "6");
    assert_eq!(b.done("p/a", Outcome::Error("later".into())), "failed p/a x1 Some(5ms)");
    assert_eq!(b.pass(S), "");
    assert_eq!(b.apply(0, obj("p/a", 6)), "run p/a@6");
}

#[test]
fn a_failure_backs_off_and_waits_for_what_it_wrote() {
    let mut b = running();
    b.wrote("p/a", &PODS, "p/x", "9");
    b.fail("p/a");
    assert_eq!(b.pass(S), "", "the pause is over, the hold is not");
    assert_eq!(b.apply(1, pod("x", 9)), "run p/a@5");
    // And the other way round.
    b.wrote("p/a", &PODS, "p/x", "10");
    assert_eq!(b.fail("p/a"), "failed p/a x2 Some(10ms)");
    assert_eq!(b.events(1, Vec::from([Event::Bookmark { resource_version: "11".into() }])), "");
    assert_eq!(b.pass(Duration::from_millis(9)), "");
    assert_eq!(b.pass(Duration::from_millis(1)), "run p/a@5");
}

#[test]
fn a_deletion_is_shown_when_the_object_has_left() {
    let mut b = running();
    b.apply(1, pod("x", 9));
    b.wrote("p/a", &PODS, "p/x", "");
    b.wrote("p/a", &PODS, "p/never-seen", "");
    b.ok("p/a");
    assert_eq!(b.trigger("p/a"), "");
    assert_eq!(b.delete(1, pod("x", 10)), "run p/a@5");
    b.ok("p/a");
    assert_eq!(b.controller.status().on_hold, 0);
}

#[test]
fn no_key_waits_for_ever() {
    let mut b = running();
    b.wrote("p/a", &PODS, "p/x", "9");
    b.ok("p/a");
    b.trigger("p/a");
    assert_eq!(b.wait(), "p/x not shown to p/a by 1 for 30s; run p/a@5");
    assert_eq!(b.controller.status().not_shown, 1);
    // The next run wrote nothing, so it is not held for what the last one wrote.
    assert_eq!(b.ok("p/a"), "");
    assert_eq!(b.trigger("p/a"), "run p/a@5");
    // Who does not want it has no hold at all.
    let mut b = Bench::ready(Config::new("web", WEBS).owns(PODS).catch_up(Duration::ZERO), &[obj("p/a", 5)]);
    b.wrote("p/a", &PODS, "p/x", "9");
    b.ok("p/a");
    assert_eq!(b.trigger("p/a"), "run p/a@5");
}

#[test]
fn what_nobody_watches_is_not_waited_for() {
    let config = Config::new("web", WebsIn("p")).owns(PodsWith("app=web")).concurrency(9);
    let mut b = Bench::ready(config, &[obj("p/a", 5)]);
    for (of, object, version) in [
        (&NODES, "n", "9"),
        (&WEBS, "q/b", "9"),
        (&PODS, "p/x", "9"),
        (&WEBS, "p/a", "opaque"),
        (&WEBS, "p/a", "5"),
    ] {
        b.wrote("p/a", of, object, version);
    }
    b.ok("p/a");
    assert_eq!(b.trigger("p/a"), "run p/a@5");
    // Labels that the selector takes are as good as none.
    b.labelled("p/a", &PODS, "p/y", "10", "web");
    b.ok("p/a");
    assert_eq!(b.trigger("p/a"), "");
    assert_eq!(b.apply(1, obj("p/y", 10)), "run p/a@5");
    // A selector's source that knows the object will show what becomes of it.
    b.apply(1, obj("p/x", 11));
    b.wrote("p/a", &PODS, "p/x", "12");
    b.ok("p/a");
    assert_eq!(b.trigger("p/a"), "");
    assert_eq!(b.apply(1, obj("p/x", 12)), "run p/a@5");
}

#[test]
fn what_came_and_went_unseen_wakes_its_writer() {
    let mut b = running();
    b.wrote("p/a", &PODS, "p/x", "9");
    b.ok("p/a");
    // The watch was away; the list shows neither the pod nor a change.
    assert_eq!(b.list(1, &[obj("p/other", 20)]), "run p/a@5");
    b.ok("p/a");
    // Also long after the hold.
    b.trigger("p/a");
    b.wrote("p/a", &PODS, "p/x", "30");
    b.ok("p/a");
    assert_eq!(b.wait(), "p/x not shown to p/a by 1 for 30s");
    assert_eq!(b.list(1, &[obj("p/other", 40)]), "run p/a@5");
    b.ok("p/a");
    // Also when it is all over before the answer comes.
    b.trigger("p/a");
    b.list(1, &[obj("p/other", 45)]);
    b.wrote("p/a", &PODS, "p/x", "42");
    assert_eq!(b.ok("p/a"), "run p/a@5");
    // But who repeats what changes nothing, of an object that no view can hold, rests.
    b.wrote("p/a", &PODS, "p/unreadable", "41");
    assert_eq!(b.ok("p/a"), "");
    // And when what came no longer says whose it is.
    b.trigger("p/a");
    b.wrote("p/a", &PODS, "p/x", "50");
    b.ok("p/a");
    assert_eq!(b.list(1, &[obj("p/other", 45), obj("p/x", 60)]), "run p/a@5");
    assert_eq!(b.ok("p/a"), "");
}

#[test]
fn what_a_watch_shows_as_it_was_written_runs_nothing_more() {
    let mut b = running();
    b.wrote("p/a", &PODS, "p/x", "9");
    b.ok("p/a");
    // No owner, so the mapping says nothing, and nobody else had a hand in it.
    assert_eq!(b.apply(1, obj("p/x", 9)), "");
    b.trigger("p/a");
    b.wrote("p/a", &PODS, "p/x", "10");
    b.ok("p/a");
    assert_eq!(b.events(1, Vec::from([Event::Apply(obj("p/x", 10)), Event::Apply(obj("p/x", 11))])), "");
}

#[test]
fn a_restore_of_the_servers_data_releases_and_wakes() {
    let mut b = running();
    b.list(1, &[obj("p/x", 100)]);
    b.wrote("p/a", &PODS, "p/y", "101");
    b.ok("p/a");
    assert_eq!(b.list(1, &[obj("p/x", 50)]), "run p/a@5");
}

#[test]
fn who_is_gone_waits_for_nothing() {
    let mut b = running();
    b.wrote("p/a", &PODS, "p/x", "9");
    b.ok("p/a");
    b.delete(0, obj("p/a", 6));
    assert_eq!(b.controller.status().on_hold, 0);
    assert_eq!(b.controller.next_deadline(), None);
    assert_eq!(b.apply(0, obj("p/a", 7)), "run p/a@7", "another of its name");
    b.delete(0, obj("p/a", 8));
    b.wrote("p/a", &PODS, "p/x", "9");
    b.ok("p/a");
    assert_eq!(b.apply(0, obj("p/a", 9)), "run p/a@9", "and another, while the run of the last went on");
    b.wrote("p/a", &PODS, "p/x", "9");
    b.input(Input::Stop { grace: None });
    b.ok("p/a");
    assert_eq!(b.controller.next_deadline(), None);
    b.input(Input::Wrote { id: ReconcileId(99), write: written_by_nobody() });
    assert!(b.controller.status().stray > 0);
}

#[test]
fn what_took_too_long_holds_no_later_run() {
    let mut b = running();
    b.wrote("p/a", &PODS, "p/x", "9");
    b.ok("p/a");
    b.trigger("p/a");
    b.wait();
    // The watch of the pods is still broken; what this run writes is shown at once.
    b.wrote("p/a", &WEBS, "p/a", "6");
    assert_eq!(b.ok("p/a"), "");
    assert_eq!(b.apply(0, obj("p/a", 6)), "run p/a@6");
    assert_eq!(b.ok("p/a"), "");
    assert_eq!((b.controller.status().on_hold, b.controller.status().not_shown), (0, 1));
    // And the pod is not forgotten.
    assert_eq!(b.list(1, &[obj("p/other", 20)]), "run p/a@6");
}

#[test]
fn answers_may_come_in_any_order() {
    let mut b = running();
    b.wrote("p/a", &PODS, "p/x", "10");
    b.wrote("p/a", &PODS, "p/x", "9");
    b.ok("p/a");
    b.trigger("p/a");
    assert_eq!(b.apply(1, obj("p/x", 9)), "");
    assert_eq!(b.apply(1, obj("p/x", 10)), "run p/a@5");
}

#[test]
fn what_is_made_and_deleted_in_one_run_is_gone_when_it_has_come_and_gone() {
    let written = |b: &mut Bench| {
        b.wrote("p/a", &PODS, "p/x", "9");
        b.wrote("p/a", &PODS, "p/x", "");
        b.wrote("p/a", &PODS, "p/x", "9");
        b.ok("p/a");
        b.trigger("p/a");
    };
    let mut b = running();
    written(&mut b);
    assert_eq!(b.apply(1, obj("p/x", 9)), "");
    assert_eq!(b.delete(1, obj("p/x", 10)), "run p/a@5");
    // Or has not come at all: a list shows neither.
    let mut b = running();
    written(&mut b);
    assert_eq!(b.list(1, &[obj("p/other", 20)]), "run p/a@5");
    b.ok("p/a");
    assert_eq!(b.controller.status().on_hold, 0);
}

#[test]
fn of_too_many_writes_the_last_count() {
    let mut b = running();
    for n in 0..1_000 {
        b.wrote("p/a", &PODS, &format!("p/{n}"), &(n + 10).to_string());
    }
    b.ok("p/a");
    b.trigger("p/a");
    assert_eq!(b.events(1, Vec::from([Event::Bookmark { resource_version: "1008".into() }])), "");
    assert_eq!(b.events(1, Vec::from([Event::Bookmark { resource_version: "1009".into() }])), "run p/a@5");
}

struct WebsIn(&'static str);
impl From<WebsIn> for WatchSpec {
    fn from(WebsIn(namespace): WebsIn) -> Self {
        Self::all(WEBS).within(namespace)
    }
}

struct PodsWith(&'static str);
impl From<PodsWith> for WatchSpec {
    fn from(PodsWith(labels): PodsWith) -> Self {
        Self::all(PODS).labels(labels)
    }
}

fn written_by_nobody() -> Written {
    Written {
        group: "".into(),
        plural: "pods".into(),
        key: Key::cluster("x"),
        uid: "u".into(),
        labels: Default::default(),
        now: WrittenState::Gone,
    }
}
