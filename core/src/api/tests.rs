use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::time::Duration;

use serde_json::{Value, json};

use super::kinds::{ByteString, CONFIGMAPS, ConfigMap, Lease, NAMESPACES, Namespace, PODS, Pod, Secret};
use super::*;
use crate::object::{Key, Object, ObjectMeta, Resource};

fn maps() -> Api<ConfigMap> {
    Api::namespaced("prod")
}

/// Method, path and query, content type, body, whether it may be repeated.
fn parts<R>(r: &Request<R>) -> (String, Option<&str>, Value, bool) {
    assert_eq!(r.misuse(), None);
    let content_type = r.headers.iter().find(|h| h.0 == "Content-Type").map(|h| h.1.as_str());
    let body = r.body.as_ref().map_or(Value::Null, |b| serde_json::from_slice(b).unwrap());
    assert_eq!(content_type.is_some(), r.body.is_some());
    (format!("{} {}", r.method, r.path_and_query), content_type, body, r.idempotent)
}

#[test]
fn reads_have_the_paths_and_queries_of_the_api() {
    let all = Api::<ConfigMap>::all();
    let widgets =
        Api::dynamic(ResourceType::new("example.com", "v1beta1", "widgets", "Widget", Scope::Namespaced));
    let nodes = Api::dynamic(kinds::NODES);
    let list = ListParams::default;
    for (request, line, what) in [
        (maps().get("a").into_raw(), "/api/v1/namespaces/prod/configmaps/a", "get configmaps prod/a"),
        (maps().get_opt("a").into_raw(), "/api/v1/namespaces/prod/configmaps/a", "get configmaps prod/a"),
        (
            maps().get_with("a", &GetParams::any()).into_raw(),
            "/api/v1/namespaces/prod/configmaps/a?resourceVersion=0",
            "get configmaps prod/a",
        ),
        (nodes.get("n-1").into_raw(), "/api/v1/nodes/n-1", "get nodes n-1"),
        (
            widgets.clone().within("x").get_status("w").into_raw(),
            "/apis/example.com/v1beta1/namespaces/x/widgets/w/status",
            "get widgets/status x/w",
        ),
        (all.list(&list()).into_raw(), "/api/v1/configmaps", "list configmaps"),
        (
            maps().list(&list().limit(500)).into_raw(),
            "/api/v1/namespaces/prod/configmaps?limit=500",
            "list configmaps in prod",
        ),
        (
            widgets
                .list(
                    &list().labels("a in (b,c),!d").fields("metadata.name=x y").limit(2).not_older_than("41"),
                )
                .into_raw(),
            "/apis/example.com/v1beta1/widgets?labelSelector=a%20in%20%28b%2Cc%29%2C%21d&fieldSelector=metadata.name%3Dx%20y\
             &limit=2&resourceVersion=41&resourceVersionMatch=NotOlderThan",
            "list widgets",
        ),
        // A server refuses a version beside a token.
        (
            all.list(&list().limit(2).exactly("41").continue_from("eyJ2+/=")).into_raw(),
            "/api/v1/configmaps?limit=2&continue=eyJ2%2B%2F%3D",
            "list configmaps",
        ),
        (
            all.list(&list().exactly("41")).into_raw(),
            "/api/v1/configmaps?resourceVersion=41&resourceVersionMatch=Exact",
            "list configmaps",
        ),
        // ... and a match without a version.
        (all.list(&list().not_older_than("")).into_raw(), "/api/v1/configmaps", "list configmaps"),
        (
            all.list(&list().any()).into_raw(),
            "/api/v1/configmaps?resourceVersion=0&resourceVersionMatch=NotOlderThan",
            "list configmaps",
        ),
        (
            maps().watch(&WatchParams::after("41").labels("mirror=true").timeout_seconds(300)).into_raw(),
            "/api/v1/namespaces/prod/configmaps?watch=true&labelSelector=mirror%3Dtrue&resourceVersion=41\
             &allowWatchBookmarks=true&timeoutSeconds=300",
            "watch configmaps in prod",
        ),
        // Without bookmarks the end of the initial events would never be told.
        (
            all.watch(&WatchParams { bookmarks: false, ..WatchParams::default() }.initial_events())
                .into_raw(),
            "/api/v1/configmaps?watch=true&allowWatchBookmarks=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan",
            "watch configmaps",
        ),
        (
            all.watch(&WatchParams { bookmarks: false, ..WatchParams::default() }).into_raw(),
            "/api/v1/configmaps?watch=true",
            "watch configmaps",
        ),
    ] {
        assert_eq!(parts(&request), (format!("GET {line}"), None, Value::Null, true));
        assert_eq!((request.what.as_str(), &request.headers[0].1[..]), (what, "application/json"));
    }
}

#[test]
fn writes_say_what_they_are() {
    let map = ConfigMap { metadata: ObjectMeta::named("prod", "a"), ..ConfigMap::default() };
    let typed =
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "prod"}});
    let one = "/api/v1/namespaces/prod/configmaps/a";
    let json_type = Some("application/json");
    let post = PostParams {
        dry_run: true,
        field_manager: Some("me & you".into()),
        field_validation: Some(FieldValidation::Strict),
    };
    assert_eq!(
        parts(&maps().create(&map)),
        ("POST /api/v1/namespaces/prod/configmaps".into(), json_type, typed.clone(), false)
    );
    let dry = "POST /api/v1/namespaces/prod/configmaps?dryRun=All&fieldManager=me%20%26%20you&fieldValidation=Strict";
    assert_eq!(parts(&maps().create_with(&map, &post)), (dry.into(), json_type, typed.clone(), true));
    assert_eq!(parts(&maps().replace("a", &map)), (format!("PUT {one}"), json_type, typed.clone(), false));
    assert_eq!(
        parts(&maps().replace_status("a", &map)),
        (format!("PUT {one}/status"), json_type, typed.clone(), false)
    );

    let merge = json!({"data": {"k": null}});
    let none = PatchParams::default();
    for (patch, content_type) in [
        (Patch::Merge(&merge), "application/merge-patch+json"),
        (Patch::Strategic(&merge), "application/strategic-merge-patch+json"),
    ] {
        assert_eq!(
            parts(&maps().patch("a", &patch, &none)),
            (format!("PATCH {one}"), Some(content_type), merge.clone(), false)
        );
    }
    let ops = Patch::json([JsonOp::Remove { path: pointer(&["data", "a/b~c"]) }].into());
    assert_eq!(
        parts(&maps().patch_status("a", &ops, &none)),
        (
            format!("PATCH {one}/status"),
            Some("application/json-patch+json"),
            json!([{"op": "remove", "path": "/data/a~1b~0c"}]),
            false
        )
    );
    assert_eq!(
        parts(&maps().patch("a", &Patch::Apply(&map), &PatchParams::apply("mirror").force())),
        (
            format!("PATCH {one}?fieldManager=mirror&force=true"),
            Some("application/apply-patch+yaml"),
            typed,
            true
        )
    );

    let scale = json!({"spec": {"replicas": 3}});
    let scaled = Api::dynamic(PODS).within("p").patch_scale("a", &Patch::Merge(&scale), &none);
    assert_eq!(scaled.what, "patch pods/scale p/a");
    assert_eq!(parts(&scaled).0, "PATCH /api/v1/namespaces/p/pods/a/scale");
}

#[test]
fn deletes_carry_their_options() {
    let one = "DELETE /api/v1/namespaces/prod/configmaps/a";
    assert_eq!(parts(&maps().delete("a", &DeleteParams::default())), (one.into(), None, Value::Null, false));
    let params =
        DeleteParams { dry_run: true, ..DeleteParams::foreground() }.only_uid("u").only_version("7").grace(0);
    let options = json!({
        "apiVersion": "v1", "kind": "DeleteOptions", "gracePeriodSeconds": 0, "propagationPolicy": "Foreground",
        "preconditions": {"uid": "u", "resourceVersion": "7"}, "dryRun": ["All"],
    });
    let json_type = Some("application/json");
    assert_eq!(parts(&maps().delete("a", &params)), (one.into(), json_type, options.clone(), true));
    assert_eq!(
        parts(&maps().delete_collection(&DeleteParams::orphan(), &ListParams::default().labels("x=y"))),
        (
            "DELETE /api/v1/namespaces/prod/configmaps?labelSelector=x%3Dy".into(),
            json_type,
            json!({"apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": "Orphan"}),
            false
        )
    );
    let (line, _, body, _) = parts(&Api::<Pod>::namespaced("p").evict("a", &params));
    assert_eq!(line, "POST /api/v1/namespaces/p/pods/a/eviction");
    assert_eq!(
        body,
        json!({"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "a", "namespace": "p"},
            "deleteOptions": options})
    );
}

#[test]
fn metadata_only_is_asked_for_and_can_be_done_without() {
    let api = maps().metadata_only();
    let accept = |r: Request<Raw>| r.headers[0].1.clone();
    let one = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json";
    assert_eq!(accept(api.get("a").into_raw()), one);
    assert_eq!(accept(api.watch(&WatchParams::default()).into_raw()), one);
    let list = accept(api.list(&ListParams::default()).into_raw());
    assert_eq!(list, "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json");
    let delete = api.delete_collection(&DeleteParams::default(), &ListParams::default());
    assert_eq!(accept(delete.into_raw()), list);
}

#[test]
fn metadata_alone_is_of_the_kind_that_was_asked_for() {
    let api = maps().metadata_only();
    let one = br#"{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":{"name":"a","managedFields":[]}}"#;
    let whole = br#"{"kind":"ConfigMap","apiVersion":"v1","data":{"k":"v"},"metadata":{"name":"a","managedFields":[]}}"#;
    let right = r#"{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"a","managedFields":[]}}"#;
    assert_eq!(api.get("a").read(one).unwrap().json(), right);
    assert_eq!(api.get("a").read(whole).unwrap().json(), right);
    assert_eq!(api.get_opt("a").read(one).unwrap().unwrap().json(), right);
    assert_eq!(api.get("a").into_raw().read(one).unwrap().0, right.as_bytes());
    let Deleted::Object(o) = api.delete("a", &DeleteParams::default()).read(one).unwrap() else { panic!() };
    assert_eq!(o.json(), right);
    let list = format!(
        r#"{{"kind":"PartialObjectMetadataList","apiVersion":"meta.k8s.io/v1","metadata":{{}},"items":[{}]}}"#,
        core::str::from_utf8(one).unwrap()
    );
    let list = api.list(&ListParams::default()).read(list.as_bytes()).unwrap();
    assert_eq!((list.items[0].json(), list.bad.len()), (right, 0));
    // Subresources have no such form, and other requests no such answer.
    let scale =
        br#"{"kind":"Scale","apiVersion":"autoscaling/v1","metadata":{"name":"a"},"spec":{"replicas":1}}"#;
    assert!(api.get_scale("a").read(scale).unwrap().raw_at(&["spec"]).is_some());
    assert_eq!(maps().objects().get("a").read(one).unwrap().kind(), "PartialObjectMetadata");
}

#[test]
fn a_mistake_is_never_a_request_for_something_else() {
    let all = Api::<ConfigMap>::all();
    let merge = Patch::Merge(json!({}));
    let force = PatchParams::default().force();
    let odd = Api::dynamic(ResourceType::new("example.com", "v1", "../secrets", "X", Scope::Cluster));
    struct Unserialisable;
    impl serde::Serialize for Unserialisable {
        fn serialize<S: serde::Serializer>(&self, _: S) -> Result<S::Ok, S::Error> {
            Err(serde::ser::Error::custom("cannot"))
        }
    }
    for (request, misuse) in [
        (maps().get("").into_raw(), "get configmaps prod/: the name is empty"),
        (
            maps().delete("", &DeleteParams::default()).into_raw(),
            "delete configmaps prod/: the name is empty",
        ),
        (maps().get("..").into_raw(), "get configmaps prod/..: the name is a relative path"),
        (maps().get("a/status").into_raw(), "get configmaps prod/a/status: the name contains a slash"),
        (Api::<ConfigMap>::namespaced("").get("a").into_raw(), "get configmaps /a: the namespace is empty"),
        (
            Api::<ConfigMap>::namespaced("").list(&ListParams::default()).into_raw(),
            "list configmaps in : the namespace is empty",
        ),
        (all.get("a").into_raw(), "get configmaps a: a namespace is needed"),
        (all.create(&json!({})).into_raw(), "create configmaps: a namespace is needed"),
        (
            all.delete_collection(&DeleteParams::default(), &ListParams::default()).into_raw(),
            "delete collection of configmaps: a namespace is needed",
        ),
        (
            Api::<Namespace>::namespaced("x").get("a").into_raw(),
            "get namespaces x/a: the resource is cluster-scoped, it has no namespaces",
        ),
        (odd.get("a").into_raw(), "get ../secrets a: the plural contains a slash"),
        (maps().get_subresource("a", "").into_raw(), "get configmaps prod/a: the subresource is empty"),
        (
            maps().patch("a", &merge, &force).into_raw(),
            "patch configmaps prod/a: only an apply can be forced",
        ),
        (
            maps().patch("a", &Patch::Apply(json!({})), &PatchParams::default()).into_raw(),
            "apply configmaps prod/a: an apply needs a field manager",
        ),
        (
            maps().create(&Unserialisable).into_raw(),
            "create configmaps in prod: the body does not serialise: cannot",
        ),
        (Request::<Raw>::new(Method::Get, "healthz"), "GET healthz: not a path"),
        (Request::<Raw>::new(Method::Get, "/a b"), "GET /a b: not a path"),
    ] {
        assert_eq!(request.misuse(), Some(misuse));
        assert!(!request.path_and_query.starts_with("/api"), "{request:?}");
    }
}

#[test]
fn odd_names_stay_one_segment() {
    let roles =
        ResourceType::new("rbac.authorization.k8s.io", "v1", "clusterroles", "ClusterRole", Scope::Cluster);
    assert_eq!(
        Api::dynamic(roles).get("system:a b%2Fc?d#e+f=é").path_and_query,
        "/apis/rbac.authorization.k8s.io/v1/clusterroles/system%3Aa%20b%252Fc%3Fd%23e%2Bf%3D%C3%A9"
    );
}

#[test]
fn requests_show_no_bodies() {
    let secret = Secret {
        metadata: ObjectMeta::named("prod", "s").annotation("last-applied", "hunter2"),
        data: [("k".into(), ByteString::from("hunter2"))].into(),
        string_data: [("l".into(), "hunter2".into())].into(),
        ..Secret::default()
    };
    let create = Api::<Secret>::namespaced("prod").create(&secret);
    let body = create.body.clone().unwrap();
    for text in [
        format!("{create:?}"),
        format!("{secret:?}"),
        format!("{:?}", Raw::decode(&body).unwrap()),
        format!("{:?}", Object::decode(&body).unwrap()),
    ] {
        assert!(!text.contains("hunter2") && !text.contains("aHVudGVyMg"), "{text}");
    }
    let back = Secret::decode(&body).unwrap();
    assert_eq!(back, secret);
    let broken = Secret::decode(br#"{"metadata":{"name":"s"},"data":{"k":"hunter2!"}}"#).unwrap_err();
    assert!(broken.to_string().starts_with("s: not a Secret: invalid base64 at"), "{broken}");
}

#[test]
fn typed_kinds_read_what_go_writes_and_lose_nothing() {
    let map =
        ConfigMap::decode(br#"{"metadata":{"name":"a","labels":null,"creationTimestamp":null},"data":null}"#)
            .unwrap();
    assert_eq!(map.metadata.key(), Key::cluster("a"));
    let pod = json!({"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i", "ports": [{"containerPort": 1}]}],
        "nodeName": "n", "hostNetwork": true}, "status": {"phase": "Running", "podIP": "10.0.0.1"}});
    let read = Pod::decode(pod.to_string().as_bytes()).unwrap();
    assert_eq!((read.spec.node_name.as_str(), read.spec.containers[0].image.as_str()), ("n", "i"));
    assert_eq!(serde_json::to_value(&read).unwrap(), pod);
    // A bookmark of a pod.
    assert!(
        Pod::decode(br#"{"metadata":{"resourceVersion":"1"},"spec":{"containers":null},"status":{}}"#)
            .is_ok()
    );
    let lease = json!({"metadata": {"name": "l"}, "spec": {"holderIdentity": "me", "leaseDurationSeconds": 15,
        "renewTime": "2026-01-02T03:04:05.000000Z", "strategy": "OldestEmulationVersion"}});
    assert_eq!(serde_json::to_value(Lease::decode(lease.to_string().as_bytes()).unwrap()).unwrap(), lease);
}

#[test]
fn lists_are_lists_and_bad_items_cost_only_themselves() {
    let page = br#"{"kind":"ConfigMapList","items":[{"metadata":{"name":"a"},"data":{"k":"v"}},null,{"metadata":null},
        {"metadata":{"name":"b"},"data":7}],"apiVersion":"v1",
        "metadata":{"resourceVersion":"9","continue":"T","remainingItemCount":3}}"#;
    let list = List::<Object>::decode(page).unwrap();
    let meta =
        ListMeta { resource_version: "9".into(), continue_token: "T".into(), remaining_item_count: Some(3) };
    assert_eq!(list.metadata, meta);
    let names: Vec<_> = list.items.iter().map(|o| (o.kind(), o.api_version(), o.name())).collect();
    assert_eq!(names, [("ConfigMap", "v1", "a"), ("ConfigMap", "v1", "b")]);
    assert_eq!(list.bad.len(), 2);
    let list = List::<ConfigMap>::decode(page).unwrap();
    assert_eq!((list.items.len(), list.items[0].data["k"].as_str()), (1, "v"));
    assert_eq!(list.bad[2].key, Some(Key::cluster("b")));
    for (body, error) in [
        (r#"{"kind":"Table","rows":[]}"#, r#"the answer is not a list: "Table" has no items"#),
        (r#"{"kind":"Table","items":[]}"#, r#"the answer is not a list: "Table" has no items"#),
        (r#"{}"#, r#"the answer is not a list: "no kind" has no items"#),
        (r#"{"items":{}}"#, r#"the answer is not a list: "no kind" has no items"#),
        (r#"{"items":[}"#, "the list is not JSON: expected a value at byte 10"),
        ("<html>\n<title>502</title>", r#"the answer is not JSON: "<html>""#),
        ("", "the answer has an empty body"),
    ] {
        assert_eq!(List::<Object>::decode(body.as_bytes()).unwrap_err().to_string(), error);
    }
    let empty = List::<Object>::decode(br#"{"kind":"PodList","metadata":null,"items":null}"#).unwrap();
    assert!(empty.items.is_empty() && empty.bad.is_empty());
}

#[test]
fn a_failure_is_one_whatever_was_asked_for() {
    let failure =
        br#"{"kind":"Status","status":"Failure","reason":"Expired","message":"too old","code":410}"#;
    let is_failure = |e: AnswerError| matches!(e, AnswerError::Status(s) if s.is_expired());
    assert!(is_failure(Object::decode(failure).unwrap_err()));
    assert!(is_failure(ConfigMap::decode(failure).unwrap_err()));
    assert!(is_failure(List::<Object>::decode(failure).unwrap_err()));
    assert!(is_failure(Deleted::decode(failure).unwrap_err()));
    assert!(is_failure(Raw::decode(failure).unwrap_err()));
    assert!(is_failure(<()>::decode(failure).unwrap_err()));
    let success =
        br#"{"kind":"Status","status":"Success","details":{"name":"a","kind":"configmaps","uid":"u"}}"#;
    let Deleted::Status(status) = Deleted::decode(success).unwrap() else { panic!() };
    assert_eq!(status.details.unwrap().uid, "u");
    let Deleted::Object(o) = Deleted::decode(br#"{"metadata":{"name":"a"}}"#).unwrap() else { panic!() };
    assert_eq!(o.key(), Key::cluster("a"));
    <()>::decode(b"").unwrap();
}

#[test]
fn only_a_named_404_means_that_an_object_is_not_there() {
    let get = |body: &str| {
        let status = Status::from_response(404, Some("application/json"), body.as_bytes());
        assert!(status.is_not_found());
        Option::<ConfigMap>::refused(&status)
    };
    let object = r#"{"kind":"Status","status":"Failure","reason":"NotFound","details":{"name":"a","kind":"configmaps"}}"#;
    assert_eq!(get(object), Some(None));
    assert_eq!(get(r#"{"kind":"Status","status":"Failure","reason":"NotFound","details":{}}"#), None);
    assert_eq!(get("404 page not found\n"), None);
    assert_eq!(ConfigMap::refused(&Status::from_response(404, None, object.as_bytes())), None);
}

#[test]
fn every_kind_of_error_answer_becomes_a_status() {
    for (code, content_type, body, text) in [
        (
            429,
            "text/plain",
            "Too many requests, please try again later.\n",
            "too many requests: Too many requests, please try again later. (TooManyRequests, 429)",
        ),
        (
            401,
            "application/json",
            r#"{"type":"error","status":"401","message":"must authenticate","code":"Unauthorized"}"#,
            "unauthorized: must authenticate (Unauthorized, 401)",
        ),
        (
            502,
            "text/html",
            "\u{FEFF}\n<html>\n<head>",
            "bad gateway: an HTML page, not from an API server? \"<html>\" (502)",
        ),
        (
            502,
            "text/html",
            "<html>\r\n<head><TITLE>502 Bad Gateway</TITLE></head>\r\n<hr>nginx</html>",
            "bad gateway: an HTML page, not from an API server? \"502 Bad Gateway\" (502)",
        ),
        (403, "", "", "forbidden: empty answer (Forbidden, 403)"),
        (
            500,
            "application/json",
            r#"{"kind":"Status","metadata":null,"status":"Failure","message":"boom","reason":null,"details":null,"code":200}"#,
            "boom (500)",
        ),
        (
            504,
            "application/json",
            r#"{"kind":"Status","message":7,"reason":"Timeout"}"#,
            "gateway timeout: no message (Timeout, 504)",
        ),
        (418, "text/plain", "\u{1b}[31mtea", "HTTP status 418: [31mtea (418)"),
        (
            200,
            "application/json",
            r#"{"kind":"Status","status":"Failure","code":410,"message":"old"}"#,
            "old (410)",
        ),
    ] {
        let status = Status::from_response(code, Some(content_type), body.as_bytes());
        assert_eq!(status.to_string(), text);
        assert!(status.is_failure());
    }
    let long = Status::from_response(503, None, "é".repeat(10_000).as_bytes());
    assert!(long.message.len() < 300 && long.message.ends_with("..."));
    assert!(Status::from_response(500, None, b"\xff\xfe").message.contains('\u{FFFD}'));
}

#[test]
fn reasons_count_before_codes() {
    let read = |body: Value| {
        let code = u16::try_from(body["code"].as_u64().unwrap()).unwrap();
        Status::from_response(code, None, body.to_string().as_bytes())
    };
    let status = |code: u16, reason: &str, message: &str, causes: Value| {
        read(
            json!({"kind": "Status", "status": "Failure", "code": code, "reason": reason, "message": message,
            "details": {"causes": causes, "retryAfterSeconds": 1}}),
        )
    };
    let none = json!([]);
    let exists = status(409, "AlreadyExists", "", none.clone());
    assert!(exists.is_already_exists() && !exists.is_conflict());
    assert!(status(409, "Conflict", "", none.clone()).is_conflict());
    assert!(status(409, "NewReason", "", none.clone()).is_conflict());
    for (code, reason) in [(410, "Expired"), (410, "Gone"), (410, ""), (200, "Expired")] {
        assert!(status(code, reason, "", none.clone()).is_expired());
    }
    let cause = json!([{"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}]);
    let text_only = json!([{"message": "Too large resource version"}]);
    for (s, too_large) in [
        (status(504, "Timeout", "x", cause), true),
        (status(504, "Timeout", "x", text_only), true),
        (status(504, "Timeout", "Too large resource version: 9, current: 2", none.clone()), true),
        (status(500, "", "etcdserver: mvcc: required revision is a future revision", none.clone()), true),
        (status(504, "Timeout", "request did not complete", none.clone()), false),
        (status(500, "", "Too large resource version", none.clone()), false),
    ] {
        assert_eq!(s.is_too_large_resource_version(), too_large, "{s}");
    }
    let terminating = status(403, "Forbidden", "", json!([{"reason": "NamespaceTerminating"}]));
    assert!(terminating.is_namespace_terminating() && terminating.is_forbidden());
    let apply = status(
        409,
        "Conflict",
        "",
        json!([{"reason": "FieldManagerConflict", "field": ".spec.x", "message": "m"}]),
    );
    assert_eq!(apply.conflicting_fields().collect::<Vec<_>>(), [(".spec.x", "m")]);
    assert_eq!(exists.retry_after(), Some(Duration::from_secs(1)));
    assert_eq!(Status::default().retry_after(), None);
    let days = read(json!({"kind": "Status", "code": 503, "details": {"retryAfterSeconds": 1e6 as u64}}));
    assert_eq!(days.retry_after(), Some(crate::limits::RETRY_AFTER_MAX));
}

#[test]
fn bodies_keep_a_type_that_they_have() {
    let api = Api::dynamic(NAMESPACES);
    let own = json!({"kind": "Namespace", "apiVersion": "v9", "metadata": {"name": "x"}});
    assert_eq!(parts(&api.create(&own)).2, own);
    let half = api.create(&json!({"kind": "Other"}));
    assert_eq!(half.body.unwrap(), br#"{"apiVersion":"v1","kind":"Other"}"#);
    assert_eq!(api.create(&json!({})).body.unwrap(), br#"{"apiVersion":"v1","kind":"Namespace"}"#);
    let o = Object::from_json(
        br#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"},"n":18446744073709551616}"#,
    );
    let o = o.unwrap();
    assert_eq!(Api::dynamic(CONFIGMAPS).within("p").replace("a", &o).body.unwrap(), o.raw());
}
