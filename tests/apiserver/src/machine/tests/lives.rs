//! From creation to the end of an object, and of what depends on it.

use super::*;

#[test]
fn finalizers_hold_an_object() {
    let mut b = Bench::new();
    b.post(CM, json!({"metadata":{"name":"f","finalizers":["x.io/a","x.io/b"]}}));
    let (status, v) = b.delete(&format!("{CM}/f"));
    assert_eq!(status, 200);
    assert!(v["metadata"]["deletionTimestamp"].is_string());
    assert_eq!(v["metadata"]["deletionGracePeriodSeconds"], 0);
    let (_, again) = b.delete(&format!("{CM}/f"));
    assert_eq!(again, v, "a second deletion changes nothing");
    let (status, v) = b.post(CM, json!({"metadata":{"name":"f"}}));
    assert_eq!((status, message(&v)), (409, "object is being deleted: configmaps \"f\" already exists"));
    let (status, _) = b.merge(&format!("{CM}/f"), json!({"metadata":{"finalizers":["x.io/a","x.io/c"]}}));
    assert_eq!(status, 422, "no new finalizers on an ending object");
    assert_eq!(b.merge(&format!("{CM}/f"), json!({"metadata":{"finalizers":["x.io/a"]}})).0, 200);
    assert_eq!(b.merge(&format!("{CM}/f"), json!({"metadata":{"finalizers":[]}})).0, 200);
    assert_eq!(b.get(&format!("{CM}/f")).0, 404);
}

#[test]
fn generation_and_status_of_a_registered_resource() {
    let mut b = Bench::new();
    let w = json!({"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"w","generation":9},"spec":{"z":1},"status":{"x":1}});
    let (status, v) = b.post(WIDGETS, w);
    assert_eq!(status, 201);
    assert_eq!((v["metadata"]["generation"].as_i64(), v.get("status")), (Some(1), None));
    let at = format!("{WIDGETS}/w");
    assert_eq!(b.merge(&at, json!({"spec":{"z":2},"status":{"x":5}})).1["metadata"]["generation"], 2);
    assert_eq!(b.merge(&at, json!({"metadata":{"labels":{"a":"b"}}})).1["metadata"]["generation"], 2);
    let (_, v) = b.merge(
        &format!("{at}/status"),
        json!({"status":{"x":3},"spec":{"z":9},"metadata":{"labels":{"c":"d"}}}),
    );
    assert_eq!(
        (&v["spec"], &v["status"], &v["metadata"]["labels"]),
        (&json!({"z":2}), &json!({"x":3}), &json!({"a":"b"}))
    );
    assert_eq!(v["metadata"]["generation"], 2);
    let (status, v) =
        b.put(&at, json!({"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"w"}}));
    assert_eq!(
        (status, message(&v)),
        (
            422,
            "widgets.example.com \"w\" is invalid: metadata.resourceVersion: Invalid value: 0: must be specified for an update"
        )
    );
    b.merge(&at, json!({"metadata":{"finalizers":["a/b"]}}));
    assert_eq!(b.delete(&at).1["metadata"]["generation"], 3);
}

#[test]
fn pods_end_with_grace() {
    const PODS: &str = "/api/v1/namespaces/default/pods";
    let mut b = Bench::new();
    let pod = |name: &str| json!({"metadata":{"name":name},"spec":{"containers":[{"name":"c","image":"i"}]},"status":{"phase":"Running"}});
    let (_, v) = b.post(PODS, pod("p"));
    assert_eq!(
        (v["status"]["phase"].as_str(), v["metadata"]["generation"].as_i64()),
        (Some("Pending"), Some(1))
    );
    let w = b.watch(&format!("{PODS}?watch=1&resourceVersion={}", b.server.revision()));
    let (_, gone) = b.delete(&format!("{PODS}/p"));
    assert_eq!(b.kinds(w), ["MODIFIED p", "DELETED p"], "an unscheduled pod goes at once");
    assert_eq!(version(&gone), b.server.revision());
    let mut scheduled = pod("q");
    scheduled["spec"]["nodeName"] = json!("n");
    b.post(PODS, scheduled);
    let (_, v) = b.delete(&format!("{PODS}/q"));
    assert_eq!(v["metadata"]["deletionGracePeriodSeconds"], 30);
    assert_eq!(b.get(&format!("{PODS}/q")).0, 200);
    b.delete(&format!("{PODS}/q?gracePeriodSeconds=0"));
    assert_eq!(b.get(&format!("{PODS}/q")).0, 404);
}

#[test]
fn dependents_follow_their_owners() {
    let mut b = Bench::new();
    let owner = b.map("owner");
    let other = b.map("other");
    let of = |v: &Value| json!({"apiVersion":"v1","kind":"ConfigMap","name":v["metadata"]["name"],"uid":v["metadata"]["uid"]});
    b.post(CM, json!({"metadata":{"name":"child","ownerReferences":[of(&owner)]}}));
    let child = b.get(&format!("{CM}/child")).1;
    b.post(CM, json!({"metadata":{"name":"grandchild","ownerReferences":[of(&child)]}}));
    b.post(CM, json!({"metadata":{"name":"shared","ownerReferences":[of(&owner), of(&other)]}}));
    b.delete(&format!("{CM}/owner"));
    b.run(Duration::from_secs(1));
    assert_eq!(b.get(&format!("{CM}/child")).0, 404);
    assert_eq!(b.get(&format!("{CM}/grandchild")).0, 404);
    assert_eq!(b.get(&format!("{CM}/shared")).1["metadata"]["ownerReferences"], json!([of(&other)]));
    // An owner that never was.
    b.post(CM, json!({"metadata":{"name":"lost","ownerReferences":[{"apiVersion":"v1","kind":"ConfigMap","name":"x","uid":"nobody"}]}}));
    b.run(Duration::from_secs(1));
    assert_eq!(b.get(&format!("{CM}/lost")).0, 404);
    assert!(b.server.dependents.len() == 1 && b.server.next_deadline().is_none(), "nothing is left to do");
}

#[test]
fn foreground_waits_and_orphan_lets_go() {
    let mut b = Bench::new();
    for (policy, child_after) in [("Foreground", 404), ("Orphan", 200)] {
        let owner = b.map("o");
        let reference = json!([{"apiVersion":"v1","kind":"ConfigMap","name":"o","uid":owner["metadata"]["uid"],"blockOwnerDeletion":true}]);
        b.post(CM, json!({"metadata":{"name":"c","ownerReferences":reference,"finalizers":["x/y"]}}));
        let (_, v) = b.delete(&format!("{CM}/o?propagationPolicy={policy}"));
        assert!(v["metadata"]["finalizers"].is_array(), "{v}");
        b.run(Duration::from_secs(1));
        if policy == "Foreground" {
            assert_eq!(b.get(&format!("{CM}/o")).0, 200, "its dependent is held");
        }
        b.merge(&format!("{CM}/c"), json!({"metadata":{"finalizers":null}}));
        b.run(Duration::from_secs(1));
        assert_eq!(b.get(&format!("{CM}/o")).0, 404);
        assert_eq!(b.get(&format!("{CM}/c")).0, child_after);
    }
    assert_eq!(b.get(&format!("{CM}/c")).1["metadata"].get("ownerReferences"), None);
}

#[test]
fn namespaces_take_their_contents_along() {
    let mut b = Bench::new();
    let (_, ns) = b.post("/api/v1/namespaces", json!({"metadata":{"name":"n1"}}));
    assert_eq!(
        (ns["status"]["phase"].as_str(), &ns["spec"]["finalizers"]),
        (Some("Active"), &json!(["kubernetes"]))
    );
    let inside = "/api/v1/namespaces/n1/configmaps";
    b.post(inside, json!({"metadata":{"name":"x","finalizers":["a/b"]}}));
    b.post(inside, json!({"metadata":{"name":"y"}}));
    let (_, v) = b.delete("/api/v1/namespaces/n1");
    assert_eq!(v["status"]["phase"], "Terminating");
    let (status, v) = b.post(inside, json!({"metadata":{"name":"z"}}));
    assert_eq!(status, 403);
    assert_eq!(
        message(&v),
        "configmaps \"z\" is forbidden: unable to create new content in namespace n1 because it is being terminated"
    );
    b.run(Duration::from_secs(5));
    assert_eq!(b.get(&format!("{inside}/y")).0, 404);
    assert_eq!(b.get("/api/v1/namespaces/n1").0, 200, "x is held");
    b.merge(&format!("{inside}/x"), json!({"metadata":{"finalizers":[]}}));
    b.run(Duration::from_secs(5));
    assert_eq!(b.get("/api/v1/namespaces/n1").0, 404);
}

#[test]
fn dry_runs_preconditions_and_generated_names() {
    let mut b = Bench::new();
    let (status, v) = b.post(&format!("{CM}?dryRun=All"), json!({"metadata":{"generateName":"g-"}}));
    assert_eq!((status, v["metadata"].get("resourceVersion")), (201, None));
    let name = v["metadata"]["name"].as_str().unwrap().to_owned();
    assert!(name.starts_with("g-") && name.len() == 7);
    assert_eq!(b.get(&format!("{CM}/{name}")).0, 404);
    b.map("a");
    let body =
        |v: Value| ApiRequest::new("DELETE", &format!("{CM}/a")).body("application/json", v.to_string());
    assert_eq!(b.ask(body(json!({"preconditions":{"uid":"x"}}))).0, 409);
    assert_eq!(b.ask(body(json!({"preconditions":{"resourceVersion":"1"}}))).0, 409);
    assert_eq!(b.ask(body(json!({"propagationPolicy":"Foo"}))).0, 422);
    assert_eq!(b.ask(body(json!({"dryRun":["All"]}))).0, 200);
    assert_eq!(b.get(&format!("{CM}/a")).0, 200);
    let (status, v) = b.delete(CM);
    assert_eq!((status, v["items"].as_array().unwrap().len()), (200, 1));
    assert_eq!(b.get(&format!("{CM}/a")).0, 404);
}
