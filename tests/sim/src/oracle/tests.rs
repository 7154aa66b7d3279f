//! Each oracle sees what it is for: what it is told here no controller should do.

use std::sync::Arc;

use serde_json::json;
use steersman_core::api::kinds::{CONFIGMAPS, SECRETS};
use steersman_core::controller::ReconcileId;
use steersman_core::manager::ControllerSpec;
use steersman_core::queue::Priority;

use super::*;

const WHO: Who = Who { process: 0, life: 1 };
const SECRET: SourceId = SourceId(1);

fn object(kind: &str, name: &str, version: u64) -> Object {
    Object::from_serialize(&json!({
        "apiVersion": "v1", "kind": kind,
        "metadata": {
            "name": name, "namespace": "n", "uid": format!("uid-of-{name}"), "resourceVersion": version.to_string(),
            "ownerReferences": [{"apiVersion": "v1", "kind": "ConfigMap", "name": "a", "uid": "x", "controller": true}],
        },
    }))
    .expect("an object")
}

fn added(object: Object) -> Delta<Object> {
    let version: Arc<str> = object.resource_version().into();
    Delta {
        changes: [Change::Added { new: object.clone(), initial: false }].into(),
        view: [object].into_iter().collect(),
        synced: true,
        resource_version: version,
        received: Time::ZERO,
    }
}

fn run(name: &str) -> Run<Object> {
    Run {
        id: ReconcileId(1),
        key: Key::namespaced("n", name),
        object: object("ConfigMap", name, 1),
        views: Arc::from([]),
        since: Time::ZERO,
        attempt: 1,
        priority: Priority::NORMAL,
    }
}

fn eyes() -> Eyes {
    let config = Config::new("c", CONFIGMAPS).owns(SECRETS);
    let plan = WatchPlan::build(&[ControllerSpec::from(&config)]).expect("a plan");
    let mut eyes = Eyes::new(1, None);
    eyes.born(WHO, vec![config], &plan);
    eyes
}

fn oracle(eyes: &Eyes) -> Option<&'static str> {
    eyes.violation.as_ref().map(|v| v.oracle)
}

#[test]
fn versions_do_not_go_back() {
    let mut eyes = eyes();
    let see = |eyes: &mut Eyes, version| {
        eyes.delta(Time::ZERO, WHO, WatchId(0), &added(object("ConfigMap", "a", version)));
    };
    see(&mut eyes, 5);
    see(&mut eyes, 5);
    see(&mut eyes, 7);
    assert_eq!(oracle(&eyes), None);
    see(&mut eyes, 6);
    assert_eq!(oracle(&eyes), Some("versions"));
}

#[test]
fn another_life_may_begin_anywhere() {
    let mut eyes = eyes();
    eyes.delta(Time::ZERO, WHO, WatchId(0), &added(object("ConfigMap", "a", 5)));
    let next = Who { life: 2, ..WHO };
    let config = Config::new("c", CONFIGMAPS);
    eyes.born(
        next,
        vec![config.clone()],
        &WatchPlan::build(&[ControllerSpec::from(&config)]).expect("a plan"),
    );
    eyes.delta(Time::ZERO, next, WatchId(0), &added(object("ConfigMap", "a", 3)));
    eyes.delta(Time::ZERO, WHO, WatchId(0), &added(object("ConfigMap", "a", 1)));
    assert_eq!(oracle(&eyes), None);
}

#[test]
fn a_key_does_not_run_twice_at_once() {
    let mut eyes = eyes();
    eyes.run(Time::ZERO, WHO, 0, &run("a"), [Key::namespaced("n", "b")].iter());
    assert_eq!(oracle(&eyes), None);
    eyes.run(Time::ZERO, WHO, 0, &run("a"), [Key::namespaced("n", "a")].iter());
    assert_eq!(oracle(&eyes), Some("one run per key"));
}

#[test]
fn what_changed_or_failed_is_owed_a_run() {
    let late = Duration::from_secs(10);
    let lost = |eyes: &Eyes, secs| eyes.lost(Time::from_secs(secs), WHO, late, |_, key| key.name() == "a");
    let mut eyes = eyes();
    // By way of its owner.
    eyes.told(Time::ZERO, WHO, 0, SECRET, &added(object("Secret", "s", 1)));
    assert_eq!(lost(&eyes, 10), None);
    assert!(lost(&eyes, 11).is_some_and(|what| what.contains("owes n/a a run")));
    eyes.run(Time::from_secs(11), WHO, 0, &run("a"), [].iter());
    assert_eq!(lost(&eyes, 100), None);
    // A failure, after its pause.
    let key = Key::namespaced("n", "a");
    eyes.done(Time::from_secs(20), WHO, 0, &key, &Outcome::Error("no".into()));
    let notice = controller::Notice::Failed {
        id: ReconcileId(1),
        key: key.clone(),
        error: "no".into(),
        panicked: false,
        failures: 1,
        retry_in: Some(Duration::from_secs(100)),
    };
    eyes.notice(Time::from_secs(20), WHO, 0, &notice);
    assert_eq!(lost(&eyes, 130), None);
    assert!(lost(&eyes, 131).is_some());
    // It has gone: nobody is owed anything.
    let mut gone = added(object("ConfigMap", "a", 9));
    gone.changes = [Change::Deleted { old: object("ConfigMap", "a", 9), final_unknown: false }].into();
    eyes.told(Time::from_secs(131), WHO, 0, SourceId::PRIMARY, &gone);
    assert_eq!(lost(&eyes, 1000), None);
    eyes.done(Time::from_secs(131), WHO, 0, &key, &Outcome::Requeue(Duration::from_secs(5)));
    assert!(lost(&eyes, 147).is_some());
}

#[test]
fn only_what_may_be_written_is() {
    use steersman_core::api::{Api, DeleteParams, kinds::Secret};
    let mut eyes = eyes();
    eyes.only_writes = Some(Arc::new(|r| r.method != steersman_core::api::Method::Delete));
    let api = Api::<Secret>::namespaced("n");
    eyes.asks(Time::ZERO, WHO, &api.get("a").into_raw());
    assert_eq!((oracle(&eyes), eyes.asked, eyes.writes[0]), (None, 1, 0));
    eyes.asks(Time::ZERO, WHO, &api.delete("a", &DeleteParams::background()).into_raw());
    assert_eq!((oracle(&eyes), eyes.writes[0]), (Some("only writes"), 1));
}
