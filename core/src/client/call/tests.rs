use alloc::string::ToString;

use serde_json::Value;

use super::*;
use crate::api::Api;
use crate::api::kinds::{ConfigMap, Secret as SecretObject};
use crate::config::{Bearer, Cluster, Config};
use crate::limits::WireLimits;
use crate::net::{NetError, NetErrorKind};
use crate::object::Object;
use crate::wire::gzip::tests::member;

const FRESH: NetEvent<'_> = NetEvent::Connected { reused: false };
const NOT_FOUND: &str = r#"{"kind":"Status","apiVersion":"v1","status":"Failure","message":"configmaps \"a\" not found","reason":"NotFound","details":{"name":"a","kind":"configmaps"},"code":404}"#;

fn config() -> Config {
    Config::new(Cluster::parse("https://kube.example:6443").unwrap())
}

fn get() -> Request<Object> {
    Api::<Object>::dynamic(crate::api::kinds::CONFIGMAPS).within("prod").get("a")
}

fn post() -> Request<Value> {
    Request::new(http::Method::Post, "/api/v1/namespaces").with_body("application/json", b"{}".to_vec())
}

fn answer(status: &str, headers: &str, body: &str) -> Vec<u8> {
    format!("HTTP/1.1 {status}\r\n{headers}Content-Length: {}\r\n\r\n{body}", body.len()).into_bytes()
}

/// A call, and an executor that knows which connection is open.
struct Rig<R> {
    call: Call<R>,
    out: Outputs<CallOutput<R>>,
    conn: ConnId,
    now: Time,
    closed: bool,
}

impl<R: Answer + fmt::Debug> Rig<R> {
    fn new(config: &Config, request: Request<R>) -> Self {
        let call = Call::new(Arc::new(Endpoint::new(config)), Authenticator::new(config), request, 7);
        Self { call, out: Outputs::new(), conn: ConnId(0), now: Time::ZERO, closed: true }
    }

    fn started(request: Request<R>) -> Self {
        let mut rig = Self::new(&config(), request);
        rig.give(CallInput::Start);
        rig.give(CallInput::Net { conn: rig.conn, event: FRESH });
        rig
    }

    fn give(&mut self, input: CallInput<'_>) -> Vec<CallOutput<R>> {
        self.call.handle(self.now, input, &mut self.out);
        let outputs: Vec<_> = self.out.drain().collect();
        for (n, output) in outputs.iter().enumerate() {
            match output {
                CallOutput::Effect(Effect::Connect { conn, .. }) => (self.conn, self.closed) = (*conn, false),
                CallOutput::Effect(Effect::Close { .. } | Effect::Release { .. }) => self.closed = true,
                // Whoever drops the call at its end must not miss anything.
                CallOutput::Done(_) => assert!(n + 1 == outputs.len() && self.closed, "{outputs:?}"),
                _ => {}
            }
        }
        outputs
    }

    fn net(&mut self, event: NetEvent<'_>) -> Vec<CallOutput<R>> {
        self.give(CallInput::Net { conn: self.conn, event })
    }

    /// An answer to the request that is out.
    fn answer(&mut self, bytes: &[u8]) -> Vec<CallOutput<R>> {
        self.net(NetEvent::Received(bytes))
    }

    /// Sleeps until the pause is over and makes the connection anew.
    fn after_pause(&mut self) -> Vec<CallOutput<R>> {
        let pause = self.call.next_deadline().unwrap();
        assert_eq!(pause.why, Reason::Backoff);
        self.now = pause.at;
        let mut outputs = self.give(CallInput::Deadline);
        outputs.extend(self.net(FRESH));
        outputs
    }

    fn file(&mut self, bytes: &[u8]) -> Vec<CallOutput<R>> {
        self.give(CallInput::File { path: "/t", result: Ok(bytes) })
    }
}

fn done<R: fmt::Debug>(outputs: Vec<CallOutput<R>>) -> Result<R, Error> {
    match outputs.into_iter().last() {
        Some(CallOutput::Done(result)) => result,
        other => panic!("{other:?}"),
    }
}

fn error<R: fmt::Debug>(outputs: Vec<CallOutput<R>>) -> Error {
    let e = done(outputs).unwrap_err();
    assert!(!e.to_string().contains('\n'), "{e}");
    e
}

fn delay<R: fmt::Debug>(outputs: &[CallOutput<R>]) -> Duration {
    match outputs.last() {
        Some(CallOutput::Retrying { delay, .. }) => *delay,
        other => panic!("{other:?}"),
    }
}

#[test]
fn an_object_comes_back() {
    let body = r#"{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"a","namespace":"prod","resourceVersion":"7"}}"#;
    let outputs = Rig::started(get()).answer(&answer("200 OK", "", body));
    assert!(outputs.contains(&CallOutput::Effect(Effect::Release { conn: ConnId(1) })));
    assert_eq!(done(outputs).unwrap().resource_version(), "7");
    let typed = Api::<ConfigMap>::namespaced("prod").get("a");
    assert!(done(Rig::started(typed).answer(&answer("200 OK", "", body))).is_ok());
}

#[test]
fn errors_say_what_where_and_why() {
    let table: &[(&str, &str, &str, &str)] = &[
        ("404 Not Found", "", NOT_FOUND, "kube.example:6443: configmaps \"a\" not found (NotFound, 404)"),
        ("200 OK", "", NOT_FOUND, "kube.example:6443: configmaps \"a\" not found (NotFound, 404)"),
        ("403 Forbidden", "Content-Type: text/plain\r\n", "no entry", "403"),
        ("502 Bad Gateway", "Content-Type: text/html\r\n", "<html>\n<h1>nginx</h1>\n</html>", "HTML"),
        ("502 Bad Gateway", "Content-Encoding: gzip\r\n", "\u{1}\u{2}", "502"),
        ("504 Gateway Timeout", "", "", "504"),
        (
            "302 Found",
            "Location: https://sso/login\r\n",
            "",
            "kube.example:6443: answered 302 and points to https://sso/login",
        ),
        (
            "200 OK",
            "",
            "<!DOCTYPE html>\n<title>Sign in</title>",
            "the answer is not JSON: \"<!DOCTYPE html>\"",
        ),
        ("200 OK", "", "", "empty body"),
        ("200 OK", "", "{\"kind\":\"ConfigMap\"", "kube.example:6443: "),
    ];
    for (status, headers, body, want) in table {
        let mut rig = Rig::new(&config(), get());
        rig.call = rig.call.with_policy(RetryPolicy::NEVER);
        rig.give(CallInput::Start);
        rig.net(FRESH);
        let e = error(rig.answer(&answer(status, headers, body))).to_string();
        assert!(e.starts_with("get configmaps prod/a: ") && e.contains(want), "{e}\n  wanted {want}");
    }
}

#[test]
fn an_answer_of_the_wrong_shape_shows_no_value() {
    let request = Api::<SecretObject>::namespaced("prod").get("a");
    let body = r#"{"kind":"Secret","apiVersion":"v1","metadata":{"name":"a"},"data":{"k":["hunter2"]}}"#;
    let e = error(Rig::started(request).answer(&answer("200 OK", "", body)));
    assert!(matches!(e.kind(), ErrorKind::Decode(_)), "{e:?}");
    assert!(!e.to_string().contains("hunter2"), "{e}");
}

#[test]
fn not_found_can_be_an_answer() {
    let request: Request<Option<Object>> = get().into_answer();
    assert_eq!(done(Rig::started(request).answer(&answer("404 Not Found", "", NOT_FOUND))), Ok(None));
    let request: Request<Option<Object>> = get().into_answer();
    let outputs = Rig::started(request).answer(&answer("404 Not Found", "", "404 page not found"));
    assert!(error(outputs).is_not_found());
}

#[test]
fn a_mistake_is_never_sent() {
    let mut rig = Rig::new(&config(), Api::<ConfigMap>::namespaced("prod").get(""));
    let e = error(rig.give(CallInput::Start));
    assert!(matches!(e.kind(), ErrorKind::Misuse(_)));
    assert!(e.to_string().contains("name"), "{e}");
    assert!(rig.give(CallInput::Start).is_empty());
}

#[test]
fn too_many_requests_waits_as_long_as_asked() {
    let busy = answer("429 Too Many Requests", "Retry-After: 5\r\nContent-Type: text/plain\r\n", "slow down");
    let mut rig = Rig::started(post());
    let outputs = rig.answer(&busy);
    assert_eq!(delay(&outputs), Duration::from_secs(5));
    assert!(rig.give(CallInput::Deadline).is_empty(), "not yet");
    rig.after_pause();
    assert_eq!(done(rig.answer(&answer("201 Created", "", "{}"))), Ok(serde_json::json!({})));
    // Without the header the pauses grow.
    let busy = answer("429 Too Many Requests", "", "");
    let mut rig = Rig::started(post());
    let first = delay(&rig.answer(&busy));
    rig.after_pause();
    let second = delay(&rig.answer(&busy));
    assert!(
        first >= Duration::from_millis(200) && second >= 2 * Duration::from_millis(200),
        "{first:?} {second:?}"
    );
    // What is asked for beyond our patience is passed on at once.
    for header in ["Retry-After: 31\r\n", "Retry-After: 99999999999999999999\r\n"] {
        let e = error(Rig::started(post()).answer(&answer("429 Too Many Requests", header, "")));
        assert!(e.retry_after() >= Some(Duration::from_secs(31)), "{e:?}");
    }
}

#[test]
fn patience_ends() {
    let busy = answer("503 Unavailable", "Retry-After: 1\r\n", "");
    let mut rig = Rig::started(get());
    for n in 1..100 {
        let outputs = rig.answer(&busy);
        if rig.call.is_done() {
            assert_eq!(n, 1 + RetryPolicy::default().max_retries);
            assert_eq!(error(outputs).status().map(|s| s.code), Some(503));
            break;
        }
        rig.after_pause();
    }
    assert!(rig.call.is_done());
    // The pauses count together.
    let slow = answer("503 Unavailable", "Retry-After: 20\r\n", "");
    let mut rig = Rig::started(get());
    assert_eq!(delay(&rig.answer(&slow)), Duration::from_secs(20));
    rig.after_pause();
    assert_eq!(error(rig.answer(&slow)).retry_after(), Some(Duration::from_secs(20)));
    let mut rig = Rig::new(&config(), get());
    rig.call = rig.call.with_policy(RetryPolicy::NEVER);
    rig.give(CallInput::Start);
    rig.net(FRESH);
    assert_eq!(error(rig.answer(&busy)).retry_after(), Some(Duration::from_secs(1)));
}

#[test]
fn what_a_proxy_waited_for_is_waited_for_once() {
    let late = answer("504 Gateway Timeout", "", "");
    let mut rig = Rig::started(get());
    rig.now = Time::from_secs(20);
    delay(&rig.answer(&late));
    rig.after_pause();
    rig.now = rig.now + Duration::from_secs(20);
    assert_eq!(error(rig.answer(&late)).status().map(|s| s.code), Some(504));
}

#[test]
fn what_is_repeated_and_what_is_not() {
    let reset = NetError { kind: NetErrorKind::Reset, message: "kube.example:6443: reset by peer".into() };
    // (status or break, repeated for a GET, repeated for a POST)
    for (status, headers, for_get, for_post) in [
        ("429 X", "", true, true),
        ("503 X", "Retry-After: 1\r\n", true, true),
        ("503 X", "", true, false),
        ("500 X", "Retry-After: 1\r\n", false, false),
        ("502 X", "", true, false),
        ("502 X", "Retry-After: 1\r\n", true, false),
        ("504 X", "", true, false),
        ("519 X", "", false, false),
        ("520 X", "", true, false),
        ("527 X", "", true, false),
        ("528 X", "", false, false),
        ("409 X", "", false, false),
        ("401 X", "", false, false),
    ] {
        let bytes = answer(status, headers, "");
        let mut rig = Rig::started(get());
        rig.answer(&bytes);
        assert_eq!(!rig.call.is_done(), for_get, "{status} {headers}");
        let mut rig = Rig::started(post());
        rig.answer(&bytes);
        assert_eq!(!rig.call.is_done(), for_post, "{status} {headers}");
    }
    // The connection is lost.
    for event in [NetEvent::Eof, NetEvent::Broken(&reset)] {
        let mut rig = Rig::started(get());
        rig.answer(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{");
        rig.net(event);
        rig.after_pause();
        let ok = answer("200 OK", "", r#"{"metadata":{"name":"a"},"kind":"ConfigMap","apiVersion":"v1"}"#);
        assert!(done(rig.answer(&ok)).is_ok());
        let e = error(Rig::started(post()).net(event));
        assert!(matches!(e.kind(), ErrorKind::Net(n) if n.kind == ExchangeErrorKind::Broken), "{e:?}");
    }
    // It never stood.
    for (kind, again) in [
        (NetErrorKind::Other, true),
        (NetErrorKind::Reset, true),
        (NetErrorKind::Refused, false),
        (NetErrorKind::Resolve, false),
        (NetErrorKind::Tls, false),
    ] {
        let mut rig = Rig::new(&config(), post());
        rig.give(CallInput::Start);
        rig.closed = true;
        rig.net(NetEvent::ConnectFailed(&NetError { kind, message: "kube.example:6443: no".into() }));
        assert_eq!(!rig.call.is_done(), again, "{kind:?}");
    }
}

#[test]
fn a_refused_token_is_read_again_once() {
    let mut config = config();
    config.credentials.bearer = Bearer::File("/t".into());
    let mut rig = Rig::new(&config, post());
    let unauthorized = answer("401 Unauthorized", "", "");
    assert_eq!(rig.give(CallInput::Start), [CallOutput::Effect(Effect::ReadFile { path: "/t".into() })]);
    rig.file(b"old");
    rig.net(FRESH);
    let outputs = rig.answer(&unauthorized);
    assert_eq!(outputs.last(), Some(&CallOutput::Effect(Effect::ReadFile { path: "/t".into() })));
    rig.file(b"new");
    match &rig.net(FRESH)[..] {
        [CallOutput::Effect(Effect::Write { bytes, .. })] => {
            assert!(String::from_utf8_lossy(&bytes.0).contains("Authorization: Bearer new\r\n"));
        }
        other => panic!("{other:?}"),
    }
    let learned = rig.call.auth().clone();
    let e = error(rig.answer(&unauthorized));
    assert_eq!(e.status().map(|s| s.code), Some(401));
    assert!(!format!("{e:?} {:?} {learned:?}", rig.call).contains("new"));
    // What one call has learned, the next one knows.
    let mut shared = Authenticator::new(&config);
    shared.learn(&learned);
    let mut next = Call::new(Arc::new(Endpoint::new(&config)), shared, get(), 1);
    let mut out = Outputs::new();
    next.handle(rig.now, CallInput::Start, &mut out);
    assert!(matches!(out.drain().next(), Some(CallOutput::Effect(Effect::Connect { .. }))));
}

#[test]
fn the_limits_are_those_of_the_configuration() {
    fn told(change: impl Fn(&mut WireLimits), bytes: &[u8]) -> String {
        let mut config = config();
        change(&mut config.limits);
        let mut rig = Rig::new(&config, get());
        rig.give(CallInput::Start);
        rig.net(FRESH);
        error(rig.answer(bytes)).to_string()
    }
    let gzip = |text: &[u8]| {
        let body = member(text);
        let head =
            format!("HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: {}\r\n\r\n", body.len());
        [head.into_bytes(), body].concat()
    };
    let refusal = answer("403 Forbidden", "Content-Type: text/plain\r\n", "no entry here");
    for (is, wanted) in [
        (told(|l| l.body_bytes = 10, &answer("200 OK", "", "12345678901")), "longer than 10 bytes"),
        (
            told(|l| l.head_bytes = 30, &answer("200 OK", "X-Long: 1234567890\r\n", "{}")),
            "longer than 30 bytes",
        ),
        (told(|l| l.headers = 1, &answer("200 OK", "X: 1\r\n", "{}")), "more than 1 HTTP header lines"),
        (told(|l| l.error_body_bytes = 4, &refusal), "no e "),
        (
            told(|l| (l.error_body_bytes, l.error_skip_bytes) = (4, 4), b"HTTP/1.1 403 X\r\n\r\n123456789"),
            "1234 ",
        ),
        (
            told(|l| (l.gzip_ratio, l.gzip_free_bytes) = (2, 0), &gzip(&[b' '; 100_000])),
            "more than 2 times its size",
        ),
        (told(|l| l.gzip_head_bytes = 5, &gzip(b"{}")), "endless header"),
    ] {
        assert!(is.contains(wanted), "{is}: {wanted}");
    }
}

#[test]
fn a_credential_that_comes_back_is_not_told() {
    let mut config = config();
    config.credentials.bearer = Bearer::Token(crate::config::Secret::new("hunter-two"));
    for bytes in [
        answer("403 Forbidden", "Content-Type: text/plain\r\n", "no hunter-two"),
        answer("403 Forbidden", "Content-Type: text/html\r\n", "<title>hunter-two</title>"),
        answer("403 Forbidden", "", r#"{"kind":"Status","status":"Failure","message":"hunter-two"}"#),
        answer("200 OK", "", "hunter-two"),
        answer("200 OK", "", r#"{"kind":"Status","status":"Failure","code":500,"message":"hunter-two"}"#),
        answer("200 OK", "Content-Encoding: hunter-two\r\n", "x"),
        answer("200 OK", "Transfer-Encoding: hunter-two\r\n", "x"),
        answer("302 Found", "Location: https://u:hunter-two@kube/hunter-two?x=hunter-two\r\n", ""),
        b"hunter-two is what you sent\r\n".to_vec(),
        b"GET / HTTP/1.1 Authorization: Bearer hunter-two\r\n".to_vec(),
    ] {
        let mut rig = Rig::new(&config, get());
        rig.give(CallInput::Start);
        let sent = format!("{:?}", rig.net(FRESH));
        assert!(!sent.contains("hunter-two"));
        let e = error(rig.answer(&bytes));
        assert!(!format!("{e} {e:?}").contains("hunter-two"), "{e:?}");
    }
}

#[test]
fn long_answers() {
    let mut rig = Rig::new(&config(), get());
    rig.call = rig.call.with_body_limit(10);
    rig.give(CallInput::Start);
    rig.net(FRESH);
    // Both ways: the answer is whole in one input, or has no end in sight.
    let e = error(rig.answer(&answer("200 OK", "", "12345678901")));
    assert_eq!(e.to_string(), "get configmaps prod/a: kube.example:6443: the answer is longer than 10 bytes");
    let mut rig = Rig::new(&config(), get());
    rig.call = rig.call.with_body_limit(10);
    rig.give(CallInput::Start);
    rig.net(FRESH);
    rig.answer(b"HTTP/1.1 200 OK\r\n\r\n1234567890");
    let outputs = rig.answer(b"1");
    assert_eq!(outputs[0], CallOutput::Effect(Effect::Close { conn: ConnId(1) }));
    assert!(matches!(error(outputs).kind(), ErrorKind::Protocol(_)));
    // An error page without end is an error all the same, and leads to what its status leads to.
    for (status, again) in [("403 Forbidden", false), ("429 Too Many", true)] {
        let mut rig = Rig::started(post());
        rig.answer(format!("HTTP/1.1 {status}\r\n\r\n<html>").as_bytes());
        let mut outputs = Vec::new();
        for n in 0.. {
            assert!(n < 100, "no end");
            outputs = rig.answer(&[b'x'; 20_000]);
            if !outputs.is_empty() {
                break;
            }
        }
        assert_eq!(outputs[0], CallOutput::Effect(Effect::Close { conn: ConnId(1) }));
        assert_eq!(!rig.call.is_done(), again);
    }
}

#[test]
fn a_deadline_ends_it() {
    let mut rig = Rig::started(get());
    rig.now = rig.call.next_deadline().unwrap().at;
    let e = error(rig.give(CallInput::Deadline));
    assert_eq!(e.to_string(), "get configmaps prod/a: kube.example:6443: gave up waiting for the response");
    assert_eq!(rig.call.next_deadline(), None);
}

/// Plays any sequence of inputs; what is checked stands in `Rig::give` and here.
fn play(steps: &[(u8, u8, u8)]) -> String {
    let mut config = config();
    config.credentials.bearer = Bearer::File("/t".into());
    let mut rig = Rig::new(&config, get());
    let mut log = String::new();
    let answers: &[Vec<u8>] = &[
        answer("200 OK", "", r#"{"metadata":{"name":"a"},"kind":"ConfigMap","apiVersion":"v1"}"#),
        answer("429 X", "", ""),
        answer("503 X", "Retry-After: 2\r\n", "x"),
        answer("401 X", "", ""),
        answer("404 X", "", NOT_FOUND),
        b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{".to_vec(),
        b"HTTP/1.1 503 X\r\nContent-Length: 9\r\n\r\n{".to_vec(),
    ];
    let mut ended = false;
    for (what, which, pause) in steps {
        rig.now = rig.now + Duration::from_millis(u64::from(*pause) * 10);
        let error = NetError { kind: NetErrorKind::Other, message: "broke".into() };
        let conn = ConnId(rig.conn.0.saturating_sub(u64::from(which % 8 == 0)));
        let mut deadline = None;
        let input = match what % 16 {
            0..=3 => CallInput::Start,
            4..=6 => CallInput::Net { conn, event: NetEvent::Connected { reused: which % 2 == 0 } },
            7..=9 => {
                let bytes = &answers[usize::from(*which) % answers.len()];
                CallInput::Net { conn, event: NetEvent::Received(bytes) }
            }
            10 => CallInput::Net { conn, event: NetEvent::Eof },
            11 => CallInput::Net { conn, event: NetEvent::Broken(&error) },
            12 => {
                if rig.exchange_is_connecting() && conn == rig.conn {
                    rig.closed = true;
                }
                CallInput::Net { conn, event: NetEvent::ConnectFailed(&error) }
            }
            13 => CallInput::File { path: "/t", result: Ok(b"token") },
            14 if which % 16 == 0 => CallInput::Abort,
            _ => {
                if let Some(d) = rig.call.next_deadline() {
                    rig.now = rig.now.max(d.at);
                }
                deadline = Some(rig.now);
                CallInput::Deadline
            }
        };
        let abort = matches!(input, CallInput::Abort);
        for output in rig.give(input) {
            assert!(!ended, "after the end: {output:?}");
            ended |= matches!(output, CallOutput::Done(_));
            log.push_str(&format!("{output:?}\n"));
        }
        ended |= abort;
        assert_eq!(rig.call.is_done(), ended);
        if ended {
            assert!(rig.closed && rig.call.next_deadline().is_none());
        }
        if let Some(now) = deadline {
            assert!(rig.call.next_deadline().is_none_or(|d| d.at > now), "a served deadline came back");
        }
    }
    log
}

impl<R> Rig<R> {
    fn exchange_is_connecting(&self) -> bool {
        matches!(self.call.exchange.next_deadline(), Some(Deadline { why: Reason::Connect, .. }))
    }
}

#[test]
fn any_order_of_inputs_is_defined() {
    fn holds(steps: Vec<(u8, u8, u8)>) -> bool {
        play(&steps) == play(&steps)
    }
    crate::cases::cases(3000).quickcheck(holds as fn(Vec<(u8, u8, u8)>) -> bool);
}
