//! Calls.

use super::*;

#[test]
fn calls_are_replayed_each_by_itself() {
    let memory = Memory::default();
    let calls = Calls::new(&memory);
    let mut config = config();
    config.credentials.bearer = Bearer::Token(Secret::new(TOKEN));
    let endpoint = Arc::new(Endpoint::new(&config));
    let made = kinds::Secret {
        metadata: crate::object::ObjectMeta::named("prod", "a"),
        data: [("k".to_owned(), kinds::ByteString(b"swordfish".to_vec()))].into(),
        ..kinds::Secret::default()
    };
    let create = Api::<kinds::Secret>::namespaced("prod").create(&made);
    let get = Api::<kinds::ConfigMap>::namespaced("prod").get_opt("b");
    let auth = || Authenticator::new(&config);
    let mut create = Calls::call(Some(&calls), Call::new(Arc::clone(&endpoint), auth(), create, 1), 1);
    let mut get = Calls::call(Some(&calls), Call::new(Arc::clone(&endpoint), auth(), get, 2), 2);
    let (mut a, mut b) = (Outputs::new(), Outputs::new());
    let conn = ConnId(1);
    let busy = b"HTTP/1.1 429 Busy\r\nContent-Length: 0\r\n\r\n";
    let created = answer(&secret("a", 5, DATA));
    let missing = b"HTTP/1.1 404 Not Found\r\nContent-Type: application/json\r\nContent-Length: 77\r\n\r\n\
        {\"kind\":\"Status\",\"status\":\"Failure\",\"reason\":\"NotFound\",\"details\":{\"name\":\"b\"}}";
    create.handle(Time::ZERO, CallInput::Start, &mut a);
    get.handle(Time::ZERO, CallInput::Start, &mut b);
    for (n, bytes) in [&busy[..], &created].into_iter().enumerate() {
        let conn = ConnId(n as u64 + 1);
        create.handle(
            Time::ZERO,
            CallInput::Net { conn, event: NetEvent::Connected { reused: false } },
            &mut a,
        );
        create.handle(Time::ZERO, CallInput::Net { conn, event: NetEvent::Received(bytes) }, &mut a);
        if let Some(next) = create.next_deadline() {
            create.handle(next.at, CallInput::Deadline, &mut a);
        }
    }
    get.handle(Time::ZERO, CallInput::Net { conn, event: NetEvent::Connected { reused: true } }, &mut b);
    get.handle(Time::ZERO, CallInput::Net { conn, event: NetEvent::Received(missing) }, &mut b);
    assert!(create.is_done() && get.is_done(), "{a:?} {b:?}");
    let text = memory.text();
    assert!(text.contains("again in") && text.contains("done: answered"), "{text}");
    for hidden in [TOKEN, DATA, "swordfish"] {
        assert!(!text.contains(hidden), "{hidden} stands in it: {text}");
    }
    let compared = memory.compare();
    assert_eq!((compared.first, compared.skipped, compared.steps), (None, 0, 9));
    // Without the beginning of the first call only the other one can be replayed.
    let mut recording = memory.read();
    recording.records.remove(0);
    recording.header.first = 1;
    let compared = Replay::of(&recording).unwrap().compare(&recording).unwrap();
    assert_eq!((compared.first, compared.skipped, compared.steps), (None, 6, 3));
}

/// Servers quote what they refuse, and reconciles pass on what servers say.
#[test]
fn what_a_server_quotes_is_masked() {
    let quoted = quoted();
    let memory = Memory::default();
    let calls = Calls::new(&memory);
    let endpoint = Arc::new(Endpoint::new(&config()));
    let patch = crate::api::Patch::Merge(serde_json::json!({"data": {"k": DATA}}));
    let patch =
        Api::<kinds::Secret>::namespaced("prod").patch("a", &patch, &crate::api::PatchParams::default());
    let path = "/apis/authentication.k8s.io/v1/tokenreviews".to_owned();
    let mut review = crate::api::Request::<Raw>::new(crate::api::Method::Post, path);
    review.body = Some(format!("{{\"spec\":{{\"token\":\"{TOKEN}\"}}}}").into_bytes());
    for (code, request) in [(422, patch.into_raw()), (429, review)] {
        let mut call =
            Calls::call(Some(&calls), Call::new(Arc::clone(&endpoint), Authenticator::none(), request, 1), 1);
        let (conn, mut out) = (ConnId(1), Outputs::new());
        let mut body = serde_json::json!({
            "kind": "Status", "status": "Failure", "reason": "Invalid", "code": code, "message": quoted,
            "details": {"causes": [{"message": quoted}]}
        });
        if code == 429 {
            body["spec"] = serde_json::json!({"token": TOKEN});
        }
        let mut refused = answer(&body.to_string());
        refused.splice(9..12, code.to_string().into_bytes());
        call.handle(Time::ZERO, CallInput::Start, &mut out);
        for event in [NetEvent::Connected { reused: false }, NetEvent::Received(&refused)] {
            call.handle(Time::ZERO, CallInput::Net { conn, event }, &mut out);
        }
    }
    let text = memory.text();
    assert!(text.contains("done: answered") && text.contains("Invalid (429)"), "{text}");
    assert!(!text.contains(TOKEN) && !text.contains(DATA), "{text}");
    assert_eq!(memory.compare().first, None);
}
