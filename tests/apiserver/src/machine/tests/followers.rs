//! A follower shows what it has heard, answers watches from it, and knows what it must not answer.

use steersman_core::api::kinds::CONFIGMAPS;

use super::*;

fn create(server: &mut ApiServer, name: &str) {
    let request = ApiRequest::new("POST", "/api/v1/namespaces/default/configmaps")
        .body("application/json", format!(r#"{{"metadata":{{"name":"{name}"}}}}"#));
    assert_eq!(server.call(Time::ZERO, UnixMillis(0), request).status, 201);
}

fn names(server: &ApiServer) -> Vec<&str> {
    server.stored(&CONFIGMAPS).map(|o| o.key).collect()
}

#[test]
fn it_shows_an_old_state_until_it_is_told() {
    let mut truth = ApiServer::new(Options { open: true, ..Options::default() }, UnixMillis(0));
    truth.keep_commits();
    create(&mut truth, "a");
    drop(truth.take_commits());
    let mut follower = truth.follower();
    let old = follower.revision();
    create(&mut truth, "b");
    assert_eq!((names(&truth), names(&follower)), (vec!["default/a", "default/b"], vec!["default/a"]));

    let list = |s: &mut ApiServer, query: &str| {
        s.call(Time::ZERO, UnixMillis(0), ApiRequest::new("GET", &format!("/api/v1/configmaps?{query}")))
    };
    let answer = list(&mut follower, "resourceVersion=0");
    assert_eq!(answer.json()["metadata"]["resourceVersion"], old.to_string());

    // A watch from the truth's version hears nothing of what comes up to it.
    let mut out = Outputs::new();
    let watch = |v: u64| ApiRequest::new("GET", &format!("/api/v1/configmaps?watch=1&resourceVersion={v}"));
    for (conn, version) in [(1, old), (2, truth.revision())] {
        let input = Input::Request { conn: ConnId(conn), wall: UnixMillis(0), request: watch(version) };
        follower.handle(Time::ZERO, input, &mut out);
    }
    out.clear();
    for commit in truth.take_commits() {
        assert_eq!((commit.kind(), commit.key(), commit.what()), ("ConfigMap", "default/b", "created"));
        follower.follow(Time::ZERO, &commit, &mut out);
        follower.follow(Time::ZERO, &commit, &mut out);
    }
    let told: Vec<_> = out
        .drain()
        .map(|o| match o {
            Output::StreamChunk { conn, .. } => conn.0,
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(told, [1]);
    assert_eq!(names(&follower), names(&truth));
    assert_eq!(follower.revision(), truth.revision());

    // What was before it began, it does not know.
    let answer = follower.call(Time::ZERO, UnixMillis(0), watch(1));
    assert!(String::from_utf8_lossy(&answer.body).contains("too old resource version"));
}

#[test]
fn what_may_be_old_and_what_may_not() {
    let list = "/api/v1/configmaps";
    for (may, method, target) in [
        (true, "GET", format!("{list}?resourceVersion=0")),
        (true, "GET", format!("{list}?resourceVersion=0&limit=5")),
        (true, "GET", format!("{list}?resourceVersion=7")),
        (true, "GET", format!("{list}?resourceVersion=7&resourceVersionMatch=NotOlderThan&limit=5")),
        (true, "GET", format!("{list}?watch=true&resourceVersion=7")),
        (true, "GET", "/api/v1/namespaces/n/configmaps/a?resourceVersion=0".into()),
        (false, "GET", list.into()),
        (false, "GET", format!("{list}?limit=5&resourceVersion=7")),
        (false, "GET", format!("{list}?resourceVersion=7&resourceVersionMatch=Exact")),
        (false, "GET", "/api/v1/namespaces/n/configmaps/a".into()),
        (false, "GET", "/version".into()),
        (false, "POST", "/api/v1/namespaces/n/configmaps".into()),
        (false, "DELETE", "/api/v1/namespaces/n/configmaps/a?resourceVersion=0".into()),
    ] {
        assert_eq!(ApiServer::reads_cache(&ApiRequest::new(method, &target)), may, "{method} {target}");
    }
}
