//! The machine under virtual time: what was seen on a real kube-apiserver 1.36 is expected of it.

use std::time::Duration;

use serde_json::{Value, json};
use steersman_core::api::{ResourceType, Scope};
use steersman_core::machine::{Machine, Outputs};
use steersman_core::net::ConnId;
use steersman_core::time::{Time, UnixMillis};

use super::*;

const MERGE: &str = "application/merge-patch+json";
const CM: &str = "/api/v1/namespaces/default/configmaps";
const WIDGETS: &str = "/apis/example.com/v1/namespaces/default/widgets";

/// A server, a clock, and what every connection got.
struct Bench {
    server: ApiServer,
    now: Time,
    streams: BTreeMap<ConnId, (u16, Vec<u8>, bool)>,
    next: u64,
}

impl Bench {
    fn new() -> Self {
        Self::with(|_| {})
    }

    fn with(change: impl FnOnce(&mut Options)) -> Self {
        let widget = ResourceType::new("example.com", "v1", "widgets", "Widget", Scope::Namespaced);
        let mut options = Options {
            open: true,
            resources: vec![Resource::custom(widget).with_status()],
            ..Options::default()
        };
        change(&mut options);
        let server = ApiServer::new(options, UnixMillis(0));
        Self { server, now: Time::ZERO, streams: BTreeMap::new(), next: 1 }
    }

    fn wall(&self) -> UnixMillis {
        UnixMillis(1_700_000_000_000 + i64::try_from(self.now.as_nanos() / 1_000_000).unwrap())
    }

    fn send(&mut self, request: ApiRequest) -> ConnId {
        let conn = ConnId(self.next);
        self.next += 1;
        let mut out = Outputs::new();
        let wall = self.wall();
        self.server.handle(self.now, Input::Request { conn, wall, request }, &mut out);
        self.take(out);
        conn
    }

    fn take(&mut self, mut out: Outputs<Output>) {
        for o in out.drain() {
            match o {
                Output::Respond { conn, status, body, .. } => {
                    self.streams.insert(conn, (status, body.to_vec(), true));
                }
                Output::StreamHead { conn, status, .. } => {
                    self.streams.insert(conn, (status, Vec::new(), false));
                }
                Output::StreamChunk { conn, bytes } => {
                    self.streams.get_mut(&conn).expect("head first").1.extend_from_slice(&bytes);
                }
                Output::StreamEnd { conn } => self.streams.get_mut(&conn).expect("head first").2 = true,
                Output::Close { conn } => {
                    self.streams.insert(conn, (0, Vec::new(), true));
                }
            }
        }
    }

    /// Serves every deadline up to `by` from now.
    fn run(&mut self, by: Duration) {
        let until = self.now + by;
        while let Some(d) = self.server.next_deadline().filter(|d| d.at <= until) {
            self.now = d.at;
            let mut out = Outputs::new();
            let wall = self.wall();
            self.server.handle(self.now, Input::Deadline { wall }, &mut out);
            assert!(self.server.next_deadline().is_none_or(|n| n.at > d.at), "a served deadline came back");
            self.take(out);
        }
        self.now = until;
    }

    fn ask(&mut self, request: ApiRequest) -> (u16, Value) {
        let conn = self.send(request);
        let (status, body, done) = self.streams.remove(&conn).expect("an answer");
        assert!(done, "a whole answer");
        (status, serde_json::from_slice(&body).unwrap_or(Value::Null))
    }

    fn get(&mut self, target: &str) -> (u16, Value) {
        self.ask(ApiRequest::new("GET", target))
    }

    fn post(&mut self, target: &str, body: Value) -> (u16, Value) {
        self.ask(ApiRequest::new("POST", target).body("application/json", body.to_string()))
    }

    fn put(&mut self, target: &str, body: Value) -> (u16, Value) {
        self.ask(ApiRequest::new("PUT", target).body("application/json", body.to_string()))
    }

    fn merge(&mut self, target: &str, body: Value) -> (u16, Value) {
        self.ask(ApiRequest::new("PATCH", target).body(MERGE, body.to_string()))
    }

    fn delete(&mut self, target: &str) -> (u16, Value) {
        self.ask(ApiRequest::new("DELETE", target))
    }

    fn map(&mut self, name: &str) -> Value {
        let (status, v) = self.post(CM, json!({"metadata":{"name":name},"data":{"k":"v"}}));
        assert_eq!(status, 201, "{v}");
        v
    }

    fn watch(&mut self, target: &str) -> ConnId {
        let conn = self.send(ApiRequest::new("GET", target));
        assert_eq!(self.streams[&conn].0, 200);
        conn
    }

    /// Events of a watch so far: type, name, version.
    fn events(&self, conn: ConnId) -> Vec<(String, String, String)> {
        lines(&self.streams[&conn].1)
            .iter()
            .map(|e| {
                let meta = &e["object"]["metadata"];
                let text = |v: &Value| v.as_str().unwrap_or("").to_owned();
                (text(&e["type"]), text(&meta["name"]), text(&meta["resourceVersion"]))
            })
            .collect()
    }

    fn kinds(&self, conn: ConnId) -> Vec<String> {
        self.events(conn)
            .into_iter()
            .map(|(k, n, _)| if n.is_empty() { k } else { format!("{k} {n}") })
            .collect()
    }
}

fn lines(bytes: &[u8]) -> Vec<Value> {
    bytes
        .split(|b| *b == b'\n')
        .filter(|l| !l.is_empty())
        .map(|l| serde_json::from_slice(l).unwrap())
        .collect()
}

fn message(v: &Value) -> &str {
    v["message"].as_str().unwrap_or("")
}

fn version(v: &Value) -> u64 {
    v["metadata"]["resourceVersion"].as_str().unwrap().parse().unwrap()
}

#[test]
fn create_get_replace_delete() {
    let mut b = Bench::new();
    let made = b.map("a");
    assert_eq!(made["kind"], "ConfigMap");
    assert_eq!(made["metadata"]["namespace"], "default");
    assert_eq!(made["metadata"]["creationTimestamp"], "2023-11-14T22:13:20Z");
    assert_eq!(b.get(&format!("{CM}/a")).1, made);
    let (status, v) = b.post(CM, json!({"metadata":{"name":"a"}}));
    assert_eq!((status, message(&v)), (409, "configmaps \"a\" already exists"));

    let mut next = made.clone();
    next["data"]["k"] = json!("w");
    let (status, changed) = b.put(&format!("{CM}/a"), next.clone());
    assert_eq!(status, 200);
    assert!(version(&changed) > version(&made));
    let (status, v) = b.put(&format!("{CM}/a"), next);
    assert_eq!(status, 409);
    assert_eq!(
        message(&v),
        "Operation cannot be fulfilled on configmaps \"a\": the object has been modified; please apply your changes to the latest version and try again"
    );
    let (status, same) = b.put(&format!("{CM}/a"), changed.clone());
    assert_eq!(
        (status, version(&same)),
        (200, version(&changed)),
        "a write that changes nothing makes no version"
    );

    let (status, v) = b.delete(&format!("{CM}/a"));
    assert_eq!((status, v["status"].as_str()), (200, Some("Success")));
    assert_eq!(v["details"]["uid"], made["metadata"]["uid"]);
    let (status, v) = b.get(&format!("{CM}/a"));
    assert_eq!((status, message(&v)), (404, "configmaps \"a\" not found"));
    assert_eq!(v["details"], json!({"name":"a","kind":"configmaps"}));
}

#[test]
fn wrong_bodies_and_names() {
    let mut b = Bench::new();
    for (body, status, wanted) in [
        (
            json!({}),
            422,
            "ConfigMap \"\" is invalid: metadata.name: Required value: name or generateName is required",
        ),
        (
            json!({"kind":"Secret","metadata":{"name":"x"}}),
            400,
            "Secret in version \"v1\" cannot be handled as a ConfigMap: converting (v1.Secret) to (core.ConfigMap): unknown conversion",
        ),
        (
            json!({"apiVersion":"v2","metadata":{"name":"x"}}),
            400,
            "ConfigMap in version \"v2\" cannot be handled as a ConfigMap: no kind \"ConfigMap\" is registered for version \"v2\" in scheme \"pkg/runtime/scheme.go:111\"",
        ),
        (
            json!({"metadata":{"name":"x","namespace":"other"}}),
            400,
            "the namespace of the provided object does not match the namespace sent on the request",
        ),
        (
            json!({"metadata":{"name":"x","resourceVersion":"5"}}),
            500,
            "resourceVersion should not be set on objects to be created",
        ),
    ] {
        let (got, v) = b.post(CM, body);
        assert_eq!((got, message(&v)), (status, wanted));
    }
    let (status, v) = b.post(CM, json!({"metadata":{"name":"Bad_Name"}}));
    assert_eq!((status, v["details"]["causes"][0]["field"].as_str()), (422, Some("metadata.name")));
    let (status, v) = b.post("/api/v1/namespaces/nope/configmaps", json!({"metadata":{"name":"b"}}));
    assert_eq!((status, message(&v)), (404, "namespaces \"nope\" not found"));
    for (method, path, status) in [
        ("GET", "/api/v1/namespaces/default/configmapz", 404),
        ("GET", "/api/v1/configmaps/a", 404),
        ("POST", "/api/v1/configmaps", 405),
        ("DELETE", "/api/v1/namespaces", 405),
        ("GET", "/apis/nope/v1/things", 404),
        ("GET", "/api/v1/namespaces/default/configmaps/a/status", 404),
    ] {
        assert_eq!(b.ask(ApiRequest::new(method, path)).0, status, "{method} {path}");
    }
}

#[test]
fn patches() {
    let mut b = Bench::new();
    let made = b.map("a");
    let (_, v) = b.merge(&format!("{CM}/a"), json!({"data":{"z":"1","k":null}}));
    assert_eq!(v["data"], json!({"z":"1"}));
    let patch =
        |ct: &str, body: Value| ApiRequest::new("PATCH", &format!("{CM}/a")).body(ct, body.to_string());
    let (_, v) =
        b.ask(patch("application/json-patch+json", json!([{"op":"add","path":"/data/y","value":"q"}])));
    assert_eq!(v["data"], json!({"y":"q","z":"1"}));
    let (status, v) =
        b.ask(patch("application/json-patch+json", json!([{"op":"test","path":"/data/y","value":"no"}])));
    assert_eq!(
        (status, message(&v)),
        (422, "the server rejected our request due to an error in our request")
    );
    assert_eq!(b.ask(patch("application/strategic-merge-patch+json", json!({"data":{"y":null}}))).0, 200);
    assert_eq!(b.ask(patch("application/json", json!({}))).0, 415);
    let (status, v) =
        b.merge(&format!("{CM}/a"), json!({"metadata":{"resourceVersion":version(&made).to_string()}}));
    assert_eq!((status, v["reason"].as_str()), (409, Some("Conflict")));
    let (status, v) = b.merge(&format!("{CM}/a"), json!({"metadata":{"uid":"1"}}));
    assert_eq!(
        (status, message(&v)),
        (422, "ConfigMap \"a\" is invalid: metadata.uid: Invalid value: \"1\": field is immutable")
    );
    assert_eq!(b.merge(&format!("{CM}/a"), json!({"metadata":{"name":"q"}})).0, 400);
}

#[test]
fn lists_come_in_consistent_pages() {
    let mut b = Bench::new();
    for name in ["a", "b", "c", "d"] {
        b.map(name);
    }
    let (_, first) = b.get(&format!("{CM}?limit=2"));
    assert_eq!(first["metadata"]["remainingItemCount"], 2);
    let at = version(&first);
    // What happens meanwhile is not seen by the rest of the list.
    b.delete(&format!("{CM}/c"));
    b.merge(&format!("{CM}/d"), json!({"data":{"k":"changed"}}));
    b.map("bb");
    let token = first["metadata"]["continue"].as_str().unwrap().to_owned();
    let (_, rest) = b.get(&format!("{CM}?limit=5&continue={token}"));
    let names: Vec<&str> =
        rest["items"].as_array().unwrap().iter().map(|i| i["metadata"]["name"].as_str().unwrap()).collect();
    assert_eq!((names, version(&rest)), (vec!["c", "d"], at));
    assert_eq!(rest["items"][1]["data"]["k"], "v");
    let (_, exact) = b.get(&format!("{CM}?resourceVersion={at}&resourceVersionMatch=Exact"));
    assert_eq!(exact["items"].as_array().unwrap().len(), 4);

    b.server.compact();
    let (status, v) = b.get(&format!("{CM}?limit=5&continue={token}"));
    assert_eq!((status, v["reason"].as_str()), (410, Some("Expired")));
    let again = v["metadata"]["continue"].as_str().unwrap().to_owned();
    let (status, v) = b.get(&format!("{CM}?limit=5&continue={again}"));
    assert_eq!((status, v["items"].as_array().unwrap().len()), (200, 2), "bb and d: the inconsistent rest");
    let (status, v) = b.get(&format!("{CM}?resourceVersion={at}&resourceVersionMatch=Exact"));
    assert_eq!((status, message(&v)), (410, "The resourceVersion for the provided list is too old."));
    assert_eq!(b.get(&format!("{CM}?resourceVersion={at}")).0, 200);
    // Version 0 knows no limit.
    assert_eq!(b.get(&format!("{CM}?limit=1&resourceVersion=0")).1["items"].as_array().unwrap().len(), 4);
    let (_, all) = b.get("/api/v1/configmaps?limit=1");
    assert!(all["metadata"]["continue"].is_string());
}

#[test]
fn pages_over_all_namespaces_equal_the_whole() {
    let mut b = Bench::new();
    for ns in ["default", "kube-system", "kube-public"] {
        for i in 0..7 {
            let (s, _) = b.post(
                &format!("/api/v1/namespaces/{ns}/configmaps"),
                json!({"metadata":{"name":format!("n{i}")}}),
            );
            assert_eq!(s, 201);
        }
    }
    let (_, whole) = b.get("/api/v1/configmaps");
    for limit in 1..23 {
        let (mut items, mut token) = (Vec::new(), String::new());
        loop {
            let (status, page) = b.get(&format!("/api/v1/configmaps?limit={limit}&continue={token}"));
            assert_eq!(status, 200, "{page}");
            items.extend(page["items"].as_array().unwrap().iter().cloned());
            token = page["metadata"]["continue"].as_str().unwrap_or("").to_owned();
            if token.is_empty() {
                break;
            }
        }
        assert_eq!(&items, whole["items"].as_array().unwrap(), "limit {limit}");
    }
}

#[test]
fn a_watch_tells_every_change_from_its_version() {
    let mut b = Bench::new();
    b.map("a");
    let from = b.server.revision();
    b.map("b");
    b.merge(&format!("{CM}/a"), json!({"data":{"k":"2"}}));
    let w = b.watch(&format!("{CM}?watch=1&resourceVersion={from}"));
    assert_eq!(b.kinds(w), ["ADDED b", "MODIFIED a"]);
    b.delete(&format!("{CM}/a"));
    assert_eq!(b.kinds(w)[2..], ["DELETED a"]);
    let versions: Vec<u64> = b.events(w).iter().map(|(_, _, v)| v.parse().unwrap()).collect();
    assert!(versions.is_sorted() && versions[2] == b.server.revision());
    // Another namespace is not told.
    b.post("/api/v1/namespaces/kube-system/configmaps", json!({"metadata":{"name":"x"}}));
    assert_eq!(b.events(w).len(), 3);
    let all = b.watch("/api/v1/configmaps?watch=1");
    assert_eq!(b.kinds(all), ["ADDED b", "ADDED x"]);
}

#[test]
fn leaving_a_selection_is_a_deletion_of_the_old_state() {
    let mut b = Bench::new();
    let w = b.watch(&format!("{CM}?watch=1&labelSelector=q%3D1&resourceVersion={}", b.server.revision()));
    b.post(CM, json!({"metadata":{"name":"m","labels":{"q":"1"},"finalizers":["a/b"]},"data":{"v":"1"}}));
    b.merge(&format!("{CM}/m"), json!({"metadata":{"labels":{"q":"2"}},"data":{"v":"2"}}));
    b.merge(&format!("{CM}/m"), json!({"metadata":{"labels":{"q":"1"}}}));
    b.delete(&format!("{CM}/m"));
    let (_, answer) = b.merge(&format!("{CM}/m"), json!({"metadata":{"finalizers":null},"data":{"v":"5"}}));
    assert_eq!(b.kinds(w), ["ADDED m", "DELETED m", "ADDED m", "MODIFIED m", "DELETED m"]);
    let events = lines(&b.streams[&w].1);
    assert_eq!(events[1]["object"]["data"]["v"], "1");
    assert_eq!(events[1]["object"]["metadata"]["labels"]["q"], "1");
    assert_eq!(version(&events[1]["object"]), version(&events[0]["object"]) + 1);
    // The last finalizer: the event has it still and a new version, the answer has neither.
    assert_eq!(events[4]["object"]["metadata"]["finalizers"], json!(["a/b"]));
    assert_eq!(events[4]["object"]["data"]["v"], "2");
    assert_eq!(answer["metadata"].get("finalizers"), None);
    assert_eq!(version(&answer) + 1, version(&events[4]["object"]));
}

#[test]
fn an_old_version_is_410_and_a_future_one_is_silence() {
    let mut b = Bench::new();
    b.map("a");
    b.map("b");
    let rev = b.server.revision();
    let open = b.watch(&format!("{CM}?watch=1&resourceVersion={rev}"));
    b.server.compact();
    let w = b.watch(&format!("{CM}?watch=1&resourceVersion={}", rev - 1));
    let (_, body, done) = &b.streams[&w];
    assert!(*done);
    let e = &lines(body)[0];
    assert_eq!((e["type"].as_str(), e["object"]["code"].as_i64()), (Some("ERROR"), Some(410)));
    assert_eq!(message(&e["object"]), format!("too old resource version: {} ({rev})", rev - 1));
    let ok = b.watch(&format!("{CM}?watch=1&resourceVersion={rev}"));
    let future = b.watch(&format!("{CM}?watch=1&allowWatchBookmarks=1&resourceVersion={}", rev + 1000));
    b.map("c");
    b.run(Duration::from_secs(130));
    assert_eq!(b.kinds(ok), ["ADDED c"]);
    assert_eq!(b.kinds(open), ["ADDED c"], "open watches survive a compaction");
    assert!(b.kinds(future).is_empty());
    // A read waits three seconds, or until the version comes.
    let conn = b.send(ApiRequest::new("GET", &format!("{CM}?resourceVersion=99999")));
    let soon = b.send(ApiRequest::new("GET", &format!("{CM}?resourceVersion={}", b.server.revision() + 1)));
    assert!(!b.streams.contains_key(&conn));
    b.map("d");
    assert_eq!(b.streams[&soon].0, 200);
    b.run(Duration::from_secs(4));
    assert_eq!(b.streams[&conn].0, 504);
}

#[test]
fn bookmarks_and_the_end_of_a_watch() {
    let mut b = Bench::new();
    b.map("a");
    let rev = b.server.revision();
    let w =
        b.watch(&format!("{CM}?watch=1&allowWatchBookmarks=true&timeoutSeconds=130&resourceVersion={rev}"));
    let short =
        b.watch(&format!("{CM}?watch=1&allowWatchBookmarks=true&timeoutSeconds=4&resourceVersion={rev}"));
    let without = b.watch(&format!("{CM}?watch=1&timeoutSeconds=130&resourceVersion={rev}"));
    b.run(Duration::from_secs(3));
    b.map("b");
    b.run(Duration::from_secs(124));
    assert_eq!(b.kinds(w), ["ADDED b", "BOOKMARK", "BOOKMARK"]);
    b.run(Duration::from_secs(10));
    assert_eq!(b.kinds(w), ["ADDED b", "BOOKMARK", "BOOKMARK", "BOOKMARK"], "the last one before the end");
    assert!(b.streams[&w].2);
    assert_eq!(b.events(w)[1].2, (rev + 1).to_string());
    assert_eq!(b.kinds(short), ["ADDED b"]);
    assert_eq!(b.kinds(without), ["ADDED b"]);
    assert!(b.server.next_deadline().is_none());
    assert_eq!(b.server.counters().watches, 0);
}

#[test]
fn streaming_lists_end_with_a_bookmark() {
    let mut b = Bench::new();
    b.map("a");
    b.map("b");
    let w = b.watch(&format!(
        "{CM}?watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true"
    ));
    assert_eq!(b.kinds(w), ["ADDED a", "ADDED b", "BOOKMARK"]);
    let mark = lines(&b.streams[&w].1).pop().unwrap();
    assert_eq!(mark["object"]["metadata"]["annotations"]["k8s.io/initial-events-end"], "true");
    b.map("c");
    assert_eq!(b.kinds(w).last().unwrap(), "ADDED c");
    let (status, v) = b.get(&format!("{CM}?watch=1&sendInitialEvents=true"));
    assert_eq!(status, 422);
    assert_eq!(
        message(&v),
        "ListOptions.meta.k8s.io \"\" is invalid: resourceVersionMatch: Forbidden: sendInitialEvents requires setting resourceVersionMatch to NotOlderThan"
    );
}

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

#[test]
fn users_and_rights() {
    let mut b = Bench::with(|o| {
        o.open = false;
        o.tokens = vec![
            ("t-admin".into(), Identity::new("admin", &["system:masters"])),
            ("t-dev".into(), Identity::new("dev", &["developers"])),
        ];
        o.grants = vec![Grant { user: "dev".into(), verbs: vec!["get".into()], resource: "secrets".into() }];
    });
    let token =
        |t: &str, path: &str| ApiRequest::new("GET", path).header("Authorization", &format!("Bearer {t}"));
    assert_eq!(b.ask(token("t-admin", CM)).0, 200);
    let (status, v) = b.ask(token("wrong", CM));
    assert_eq!((status, message(&v)), (401, "Unauthorized"));
    let (status, v) = b.ask(token("t-dev", &format!("{CM}/a")));
    assert_eq!(status, 403);
    assert_eq!(
        message(&v),
        "configmaps \"a\" is forbidden: User \"dev\" cannot get resource \"configmaps\" in API group \"\" in the namespace \"default\""
    );
    assert_eq!(b.ask(token("t-dev", "/api/v1/namespaces/default/secrets/x")).0, 404);
    assert_eq!(b.ask(token("t-dev", "/apis/nope/v1/things")).0, 403, "rights come before existence");
    assert_eq!(b.get(CM).0, 403);
    assert_eq!(b.get("/version").0, 200);
    assert_eq!(b.get("/api").0, 403);
    let cert = ApiRequest::new("GET", CM).user(Identity::new("cert-admin", &["system:masters"]));
    assert_eq!(b.ask(cert).0, 200);
}

#[test]
fn secrets_leases_and_events() {
    let mut b = Bench::new();
    let (_, v) =
        b.post("/api/v1/namespaces/default/secrets", json!({"metadata":{"name":"s"},"stringData":{"a":"b"}}));
    assert_eq!((&v["data"], &v["type"], v.get("stringData")), (&json!({"a":"Yg=="}), &json!("Opaque"), None));
    const LEASES: &str = "/apis/coordination.k8s.io/v1/namespaces/default/leases";
    let (status, _) = b.put(&format!("{LEASES}/l"), json!({"metadata":{"name":"l"},"spec":{}}));
    assert_eq!(status, 201, "a lease is created by PUT");
    assert_eq!(b.put(&format!("{LEASES}/l"), json!({"metadata":{"name":"l"},"spec":{}})).0, 422);
    let event =
        json!({"metadata":{"name":"e"},"regarding":{"kind":"ConfigMap","name":"a"},"note":"m","reason":"R"});
    let (status, v) = b.post("/apis/events.k8s.io/v1/namespaces/default/events", event);
    assert_eq!((status, v["apiVersion"].as_str()), (201, Some("events.k8s.io/v1")));
    let (_, core) = b.get("/api/v1/namespaces/default/events/e");
    assert_eq!((&core["involvedObject"]["name"], &core["message"]), (&json!("a"), &json!("m")));
    let (_, list) = b.get("/apis/events.k8s.io/v1/events");
    assert_eq!(list["items"][0]["note"], "m");
}

#[test]
fn tables_metadata_and_discovery() {
    let mut b = Bench::new();
    b.map("a");
    let table = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json";
    let (_, v) = b.ask(ApiRequest::new("GET", CM).header("Accept", table));
    assert_eq!((&v["kind"], &v["rows"][0]["cells"]), (&json!("Table"), &json!(["a", 1, "0s"])));
    let w =
        b.send(ApiRequest::new("GET", &format!("{CM}?watch=1&resourceVersion=0")).header("Accept", table));
    b.map("b");
    let events = lines(&b.streams[&w].1);
    assert!(events[0]["object"]["columnDefinitions"].is_array());
    assert_eq!(events[1]["object"]["columnDefinitions"], Value::Null);
    let partial = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io";
    let (_, v) = b.ask(ApiRequest::new("GET", CM).header("Accept", partial));
    assert_eq!(
        (v["items"][0]["kind"].as_str(), v["items"][0].get("data")),
        (Some("PartialObjectMetadata"), None)
    );
    assert_eq!(b.ask(ApiRequest::new("GET", CM).header("Accept", "text/html")).0, 406);
    let (_, v) = b.get("/apis/example.com/v1");
    assert_eq!(
        (&v["resources"][0]["name"], &v["resources"][1]["name"]),
        (&json!("widgets"), &json!("widgets/status"))
    );
    assert_eq!(b.get("/api/v1").0, 200);
    let asked = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
    let (_, v) = b.ask(ApiRequest::new("GET", "/apis").header("Accept", asked));
    assert_eq!(v["kind"], "APIGroupDiscoveryList");
}

#[test]
fn disturbances() {
    let mut b = Bench::new();
    let fault = |verb: &str, then| Fault {
        verb: Some(verb.into()),
        resource: Some("configmaps".into()),
        skip: 1,
        times: 1,
        then,
    };
    b.server.inject(fault(
        "create",
        FaultKind::Answer {
            code: 429,
            reason: "TooManyRequests",
            message: "slow down".into(),
            retry_after: Some(3),
        },
    ));
    b.map("a");
    let (status, v) = b.post(CM, json!({"metadata":{"name":"b"}}));
    assert_eq!((status, v["details"]["retryAfterSeconds"].as_i64()), (429, Some(3)));
    b.map("b");
    b.server.inject(Fault { skip: 0, ..fault("create", FaultKind::DropAfter) });
    let lost = b.send(ApiRequest::new("POST", CM).body("application/json", r#"{"metadata":{"name":"c"}}"#));
    assert_eq!(b.streams[&lost].0, 0);
    assert_eq!(b.get(&format!("{CM}/c")).0, 200, "it was done all the same");
    let w = b.watch(&format!("{CM}?watch=1&resourceVersion={}", b.server.revision()));
    let mut out = Outputs::new();
    let now = b.now;
    b.server.put_raw(now, "configmaps", "default", "odd", b"{\"metadata\":5}", &mut out);
    b.take(out);
    assert_eq!(lines(&b.streams[&w].1)[0], json!({"type":"ADDED","object":{"metadata":5}}));
}

#[test]
fn history_is_bounded() {
    let mut b = Bench::with(|o| {
        o.history_events = 10;
        o.history_age = Duration::from_secs(60);
    });
    b.map("a");
    let from = b.server.revision();
    for i in 0..20 {
        b.merge(&format!("{CM}/a"), json!({"data":{"k":i.to_string()}}));
    }
    let w = b.watch(&format!("{CM}?watch=1&resourceVersion={from}"));
    assert_eq!(b.kinds(w), ["ERROR"]);
    let w = b.watch(&format!("{CM}?watch=1&resourceVersion={}", from + 12));
    assert_eq!(b.events(w).len(), 8);
    b.run(Duration::from_secs(61));
    b.merge(&format!("{CM}/a"), json!({"data":{"k":"late"}}));
    assert_eq!(b.server.shelves[1].log.len(), 1, "age counts too");
}

#[test]
fn one_encoding_is_shared_by_all_watches() {
    let mut b = Bench::new();
    for _ in 0..3 {
        b.watch(&format!("{CM}?watch=1&resourceVersion={}", b.server.revision()));
    }
    let mut out = Outputs::new();
    let request = ApiRequest::new("POST", CM).body("application/json", r#"{"metadata":{"name":"a"}}"#);
    b.server.handle(b.now, Input::Request { conn: ConnId(99), wall: UnixMillis(0), request }, &mut out);
    let chunks: Vec<Arc<[u8]>> = out
        .into_iter()
        .filter_map(|o| if let Output::StreamChunk { bytes, .. } = o { Some(bytes) } else { None })
        .collect();
    assert_eq!(chunks.len(), 3);
    assert!(chunks.windows(2).all(|c| Arc::ptr_eq(&c[0], &c[1])));
}

#[test]
fn same_inputs_same_outputs() {
    let run = || {
        let mut b = Bench::new();
        let w = b.watch(&format!("{CM}?watch=1"));
        for i in 0..5 {
            b.post(CM, json!({"metadata":{"generateName":"x-"},"data":{"i":i.to_string()}}));
            b.run(Duration::from_millis(300));
        }
        b.streams[&w].1.clone()
    };
    assert_eq!(run(), run());
}

#[test]
fn no_input_brings_it_down() {
    let mut b = Bench::new();
    b.map("a");
    let mut rng = Rng::new(42);
    let paths = [
        CM,
        &format!("{CM}/a"),
        WIDGETS,
        "/api/v1/namespaces/default/secrets/x",
        "/apis",
        "/api/v1/namespaces/default",
        "/%00/%ff",
        "//",
    ];
    let queries = [
        "",
        "watch=1",
        "limit=1&continue=eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6LTEsInN0YXJ0Ijoi6YCAIn0",
        "resourceVersion=-1",
        "timeoutSeconds=-5&watch",
        "labelSelector=(((",
        "fieldSelector=%3D%3D",
        "dryRun=x",
        "limit=9999999999999999999999",
    ];
    let bodies = [
        "",
        "{}",
        "[]",
        "null",
        "{\"metadata\":null}",
        "{\"metadata\":{\"name\":\"é\"}}",
        "{\"metadata\":{\"name\":\"a\",\"finalizers\":[1]}}",
        "\u{feff}{}",
        "{\"metadata\":{\"name\":\"a\"},\"data\":[]}",
    ];
    let types = [
        "application/json",
        MERGE,
        "application/json-patch+json",
        "application/strategic-merge-patch+json",
        "x",
    ];
    let mut pick = |n: usize| usize::try_from(rng.below(n as u64)).unwrap();
    for _ in 0..5000 {
        let method = ["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "\0"][pick(7)];
        let target = format!("{}?{}", paths[pick(paths.len())], queries[pick(queries.len())]);
        let request =
            ApiRequest::new(method, &target).body(types[pick(types.len())], bodies[pick(bodies.len())]);
        b.send(request);
    }
    b.run(Duration::from_secs(10));
    let deep = format!("{}1{}", "{\"a\":".repeat(5000), "}".repeat(5000));
    let request = ApiRequest::new("POST", CM).body("application/json", deep);
    assert_eq!(b.ask(request).0, 400);
}
