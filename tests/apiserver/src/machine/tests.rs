//! The machine under virtual time: what was seen on a real kube-apiserver 1.36 is expected of it.

mod followers;
mod lives;
mod watches;

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
