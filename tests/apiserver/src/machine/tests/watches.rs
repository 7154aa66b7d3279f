//! Watches: where they start, what they are told, when they end.

use super::*;

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
