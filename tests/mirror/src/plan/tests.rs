use serde_json::{Value, json};
use steersman_core::api::{Method, Raw, Request};
use steersman_core::client::{Error, ErrorKind};
use steersman_core::store::{Snapshot, Store};
use steersman_core::watcher::Event;

use super::*;

fn object(value: &Value) -> Object {
    Object::from_serialize(value).unwrap()
}

/// `a` with uid `u1`: text, bytes, the label.
fn config_map() -> Value {
    json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "a", "namespace": "n", "uid": "u1", "resourceVersion": "5", "labels": {"mirror": "true"}},
        "data": {"text": "hello"}, "binaryData": {"bytes": "/wA="},
    })
}

/// Its mirror as it should be.
fn mirror() -> Value {
    json!({
        "apiVersion": "v1", "kind": "Secret", "type": "Opaque",
        "metadata": {
            "name": "a", "namespace": "n", "uid": "s1", "resourceVersion": "9", "labels": {"mirror-of": "u1"},
            "ownerReferences": [{
                "apiVersion": "v1", "kind": "ConfigMap", "name": "a", "uid": "u1", "controller": true,
                "blockOwnerDeletion": true,
            }],
        },
        "data": {"text": "aGVsbG8=", "bytes": "/wA="},
    })
}

fn view(objects: &[Value]) -> Snapshot<Object> {
    let mut store = Store::new();
    let mut changes = Vec::new();
    store.apply(Event::Init, &mut changes);
    for o in objects {
        store.apply(Event::InitApply(object(o)), &mut changes);
    }
    store.apply(Event::InitDone { resource_version: "10".into() }, &mut changes);
    store.snapshot()
}

fn plan(map: &Value, secrets: &[Value]) -> Result<Step, Failure> {
    let views = [view(std::slice::from_ref(map)), view(secrets)];
    Mirror.plan(&Planning::new(&object(map)).with_views(&views))
}

/// The one request that follows.
fn request(map: &Value, secrets: &[Value]) -> (Request<Raw>, Value) {
    let Ok(Step::Send(requests)) = plan(map, secrets) else { panic!("it sends") };
    let [request] = requests.try_into().expect("one request");
    assert_eq!(request.misuse(), None);
    let body = request.body.as_ref().map(|body| serde_json::from_slice(body).unwrap()).unwrap_or_default();
    (request, body)
}

fn changed(mut value: Value, change: impl FnOnce(&mut Value)) -> Value {
    change(&mut value);
    value
}

const WAIT: Result<Step, Failure> = Ok(Step::Done(Action::await_change()));

#[test]
fn a_missing_mirror_is_made_with_the_same_keys_and_its_owner() {
    let (request, body) = request(&config_map(), &[]);
    assert_eq!(request.what, "create secrets in n");
    assert_eq!(request.path_and_query, "/api/v1/namespaces/n/secrets?fieldManager=configmap-mirror");
    let mut expected = mirror();
    expected.as_object_mut().unwrap().remove("type");
    for member in ["uid", "resourceVersion"] {
        expected["metadata"].as_object_mut().unwrap().remove(member);
    }
    assert_eq!(body, expected);
}

#[test]
fn what_is_right_is_left_alone() {
    assert_eq!(plan(&config_map(), &[mirror()]), WAIT);
    // What others add to the metadata is theirs.
    let with_more = changed(mirror(), |s| {
        s["metadata"]["labels"]["other"] = "x".into();
        s["metadata"]["ownerReferences"]
            .as_array_mut()
            .unwrap()
            .insert(0, json!({"kind": "Pod", "name": "p", "uid": "u9"}));
    });
    assert_eq!(plan(&config_map(), &[with_more]), WAIT);
    let empty = changed(config_map(), |m| m["data"] = Value::Null);
    let empty = changed(empty, |m| m["binaryData"] = json!({}));
    assert_eq!(plan(&empty, &[changed(mirror(), |s| s["data"] = Value::Null)]), WAIT);
}

#[test]
fn edited_data_are_set_right_by_what_differs_and_only_as_they_were_seen() {
    let edited = changed(mirror(), |s| s["data"] = json!({"text": "d3Jvbmc=", "more": "", "bytes": "/wA="}));
    let (request, body) = request(&config_map(), &[edited]);
    assert_eq!(request.what, "patch secrets n/a");
    assert_eq!(request.method, Method::Patch);
    assert!(request.headers.contains(&("Content-Type".into(), "application/merge-patch+json".into())));
    let expected = json!({
        "metadata": {"uid": "s1", "resourceVersion": "9"},
        "data": {"text": "aGVsbG8=", "more": null},
    });
    assert_eq!(body, expected);
}

#[test]
fn lost_data_are_given_back() {
    let (_, body) = request(&config_map(), &[changed(mirror(), |s| s["data"] = Value::Null)]);
    assert_eq!(body["data"], json!({"text": "aGVsbG8=", "bytes": "/wA="}));
}

#[test]
fn a_lost_owner_reference_is_given_back_beside_those_of_others() {
    let stripped = changed(mirror(), |s| {
        s["metadata"]["ownerReferences"] = json!([
            {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "u9"},
            {"apiVersion": "v1", "kind": "ConfigMap", "name": "a", "uid": "u1", "controller": false},
        ]);
    });
    let (_, body) = request(&config_map(), &[stripped]);
    let expected = json!({"metadata": {
        "uid": "s1", "resourceVersion": "9",
        "ownerReferences": [
            {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "u9"},
            mirror()["metadata"]["ownerReferences"][0],
        ],
    }});
    assert_eq!(body, expected);
}

#[test]
fn a_lost_label_is_given_back() {
    let (_, body) =
        request(&config_map(), &[changed(mirror(), |s| s["metadata"]["labels"] = json!({"mirror-of": "x"}))]);
    let expected = json!({"metadata": {"uid": "s1", "resourceVersion": "9", "labels": {"mirror-of": "u1"}}});
    assert_eq!(body, expected);
}

#[test]
fn what_cannot_be_changed_is_made_anew() {
    let frozen = changed(mirror(), |s| s["immutable"] = true.into());
    assert_eq!(plan(&config_map(), std::slice::from_ref(&frozen)), WAIT);
    let (request, body) = request(&config_map(), &[changed(frozen, |s| s["data"] = json!({}))]);
    assert_eq!(request.what, "delete secrets n/a");
    assert_eq!(body["preconditions"], json!({"uid": "s1", "resourceVersion": "9"}));
}

#[test]
fn without_the_label_our_secret_goes_and_no_other() {
    let plain = changed(config_map(), |m| m["metadata"]["labels"] = json!({"mirror": "false"}));
    let (request, body) = request(&plain, &[mirror()]);
    assert_eq!((request.what.as_str(), request.method), ("delete secrets n/a", Method::Delete));
    assert_eq!(body["preconditions"], json!({"uid": "s1", "resourceVersion": "9"}));
    // Known by its label alone.
    let disowned = changed(mirror(), |s| s["metadata"]["ownerReferences"] = Value::Null);
    assert!(matches!(plan(&plain, &[disowned]), Ok(Step::Send(_))));
    assert_eq!(plan(&plain, &[]), WAIT);
    for foreign in foreign() {
        assert_eq!(plan(&plain, &[foreign]), WAIT);
    }
    assert_eq!(
        plan(
            &plain,
            &[changed(mirror(), |s| s["metadata"]["deletionTimestamp"] = "2025-01-01T00:00:00Z".into())]
        ),
        WAIT
    );
}

fn foreign() -> [Value; 2] {
    let nobodys = changed(mirror(), |s| s["metadata"] = json!({"name": "a", "namespace": "n", "uid": "s1"}));
    // Our label does not make it ours if it has another manager.
    let taken = changed(mirror(), |s| {
        s["metadata"]["ownerReferences"][0] =
            json!({"kind": "Job", "name": "j", "uid": "u9", "controller": true})
    });
    [nobodys, taken]
}

#[test]
fn a_foreign_secret_is_an_error_and_never_written() {
    let [nobodys, taken] = foreign();
    for (secret, owner) in [(nobodys, "nobody's"), (taken, "Job j's")] {
        let message = format!("secret n/a is not ours but {owner}; it is left alone");
        assert_eq!(plan(&config_map(), &[secret]), Err(Failure::Terminal(message)));
    }
}

#[test]
fn what_is_about_to_go_is_waited_for() {
    let deleted =
        |value| changed(value, |v| v["metadata"]["deletionTimestamp"] = "2025-01-01T00:00:00Z".into());
    // Else it would be made anew again and again while the garbage collector deletes in the foreground.
    assert_eq!(plan(&deleted(config_map()), &[]), WAIT);
    assert_eq!(plan(&config_map(), &[deleted(mirror())]), WAIT);
    // Of a ConfigMap that was deleted and made anew.
    let earlier = changed(mirror(), |s| s["metadata"]["ownerReferences"][0]["uid"] = "u0".into());
    assert_eq!(plan(&config_map(), &[earlier]), WAIT);
}

#[test]
fn what_cannot_be_read_is_not_tried_again_before_it_changes() {
    let odd = changed(config_map(), |m| m["data"] = json!({"text": 1}));
    assert!(matches!(plan(&odd, &[]), Err(Failure::Terminal(_))));
    assert!(matches!(
        plan(&config_map(), &[changed(mirror(), |s| s["data"] = json!({"text": "%"}))]),
        Err(Failure::Terminal(_))
    ));
}

#[test]
fn the_answer_decides_the_end() {
    let status = |code, reason: &str, kind: &str| {
        let mut status = Status::failure(code, reason, "no");
        status.details = Some(steersman_core::api::StatusDetails {
            name: "a".into(),
            kind: kind.into(),
            ..Default::default()
        });
        Err(Error::new(ErrorKind::Api(status), "create secrets in n", "server"))
    };
    let end = |answer: Answered| {
        let map = object(&config_map());
        let rounds = [vec![answer]];
        Mirror.plan(&Planning::new(&map).with_answers(&rounds))
    };
    assert_eq!(end(Ok(Raw(b"{}".to_vec()))), WAIT);
    // Gone before us: the watch will say so.
    assert_eq!(end(status(404, "NotFound", "secrets")), WAIT);
    // Ordinary retries.
    for (code, reason) in
        [(409, "AlreadyExists"), (409, "Conflict"), (500, "InternalError"), (403, "Forbidden")]
    {
        assert!(matches!(end(status(code, reason, "secrets")), Err(Failure::Error(_))), "{reason}");
    }
}

#[test]
fn one_watch_of_each_resource_serves_all_sources() {
    use steersman_core::manager::{ControllerSpec, WatchPlan};
    let builder = controller(Some("n"));
    let plan = WatchPlan::build(&[ControllerSpec::from(builder.config())]).unwrap();
    let watches: Vec<String> = plan.sources.iter().map(|s| s.spec.to_string()).collect();
    assert_eq!(watches, ["configmaps.v1 in n", "secrets.v1 in n"]);
    assert_eq!(plan.sources[1].subscribers.len(), 2);
    // A mirror leads to its owner, whoever's Secret to its namesake.
    assert_eq!(namesake(&object(&mirror())), []);
    assert!(foreign().iter().all(|s| namesake(&object(s)) == [Key::namespaced("n", "a")]));
}
