use alloc::collections::{BTreeMap, BTreeSet};
use alloc::string::ToString;
use alloc::vec;

use super::*;
use crate::config::{Bearer, Cluster, Config};

const OK: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}";

fn config() -> Config {
    Config::new(Cluster::parse("https://kube.example:6443/base").unwrap())
}

/// An exchange, its outputs, and an executor's view of its connections.
struct Rig {
    exchange: Exchange,
    out: Outputs<Output>,
    open: BTreeSet<ConnId>,
    last: u64,
}

impl Rig {
    fn new(config: &Config) -> Self {
        let exchange = Exchange::new(Arc::new(Endpoint::new(config)), Authenticator::new(config));
        Self { exchange, out: Outputs::new(), open: BTreeSet::new(), last: 0 }
    }

    /// Handles one input and checks what an executor may rely on.
    fn give(&mut self, at: Time, input: Input<'_>) -> Vec<Output> {
        if let Input::Net { conn, event: NetEvent::ConnectFailed(_) } = &input
            && self.connecting() == Some(*conn)
        {
            self.open.remove(conn);
        }
        self.exchange.handle(at, input, &mut self.out);
        let outputs: Vec<_> = self.out.drain().collect();
        for output in &outputs {
            match output {
                Output::Effect(Effect::Connect { conn, .. }) => {
                    assert!(conn.0 > self.last, "{conn:?} was used before");
                    self.last = conn.0;
                    self.open.insert(*conn);
                }
                Output::Effect(Effect::Write { conn, .. }) => {
                    assert!(self.open.contains(conn), "write to {conn:?}")
                }
                Output::Effect(Effect::Close { conn } | Effect::Release { conn }) => {
                    assert!(self.open.remove(conn), "{conn:?} ends twice");
                }
                _ => {}
            }
        }
        assert!(self.open.len() <= 1, "{:?}", self.open);
        if self.exchange.next_deadline().is_none() {
            let waits_without = matches!(self.exchange.state, State::Answer { until: None, .. });
            assert!(self.exchange.is_idle() || waits_without, "a wait without a deadline");
        }
        outputs
    }

    fn connecting(&self) -> Option<ConnId> {
        match self.exchange.state {
            State::Connecting { conn, .. } => Some(conn),
            _ => None,
        }
    }

    fn net(&mut self, at: u64, conn: u64, event: NetEvent<'_>) -> Vec<Output> {
        self.give(Time::from_secs(at), Input::Net { conn: ConnId(conn), event })
    }

    fn send(&mut self, at: u64, outgoing: Outgoing) -> Vec<Output> {
        self.give(Time::from_secs(at), Input::Send(Box::new(outgoing)))
    }

    fn deadline(&mut self, at: u64) -> Vec<Output> {
        self.give(Time::from_secs(at), Input::Deadline)
    }

    fn file(&mut self, at: u64, result: Result<&[u8], &FileError>) -> Vec<Output> {
        self.give(Time::from_secs(at), Input::File { path: "/t", result })
    }
}

fn connect(conn: u64, may_reuse: bool) -> Output {
    Output::Effect(Effect::Connect { conn: ConnId(conn), may_reuse })
}

fn close(conn: u64) -> Output {
    Output::Effect(Effect::Close { conn: ConnId(conn) })
}

fn post() -> Outgoing {
    let mut outgoing = Outgoing::get("/api/v1/namespaces");
    outgoing.head.method = Method::Post;
    outgoing.body = Some(b"{}".to_vec());
    outgoing.idempotent = false;
    outgoing
}

fn kept(path: &str) -> Outgoing {
    Outgoing { keep: true, ..Outgoing::get(path) }
}

const FRESH: NetEvent<'_> = NetEvent::Connected { reused: false };
const REUSED: NetEvent<'_> = NetEvent::Connected { reused: true };

fn failed(outputs: &[Output]) -> &ExchangeError {
    match outputs.last() {
        Some(Output::Failed(e)) => e,
        other => panic!("{other:?}"),
    }
}

fn written(outputs: &[Output]) -> String {
    match outputs.iter().find(|o| matches!(o, Output::Effect(Effect::Write { .. }))) {
        Some(Output::Effect(Effect::Write { bytes, .. })) => String::from_utf8(bytes.0.clone()).unwrap(),
        _ => panic!("nothing written: {outputs:?}"),
    }
}

#[test]
fn the_request_on_the_wire() {
    let mut config = config();
    config.credentials.bearer = Bearer::Token(Secret::new("hunter2"));
    let mut rig = Rig::new(&config);
    assert_eq!(rig.send(0, post()), [connect(1, true)]);
    let outputs = rig.net(0, 1, FRESH);
    let user_agent = super::super::USER_AGENT;
    assert_eq!(
        written(&outputs),
        format!(
            "POST /base/api/v1/namespaces HTTP/1.1\r\nHost: kube.example:6443\r\nAccept: application/json\r\n\
             Authorization: Bearer hunter2\r\nUser-Agent: {user_agent}\r\nAccept-Encoding: gzip\r\n\
             Content-Length: 2\r\n\r\n{{}}"
        )
    );
    assert!(!format!("{outputs:?} {:?}", rig.exchange).contains("hunter2"));
    let outputs = rig.net(1, 1, NetEvent::Received(OK));
    assert!(
        matches!(&outputs[..], [Output::Head(h), Output::Body(b), Output::Effect(Effect::Release { conn: ConnId(1) }), Output::End]
        if h.status == 200 && b == b"{}")
    );
    // The caller's own credentials win.
    let mut own = Outgoing::get("/");
    own.head.headers.push(("authorization".into(), "Basic eA==".into()));
    rig.send(2, own);
    assert!(!written(&rig.net(2, 2, FRESH)).contains("Bearer"));
}

#[test]
fn every_deadline_names_its_reason() {
    let watch = || Outgoing { timeouts: Timeouts::watch(), ..kept("/w") };
    let head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
    // Connecting.
    let mut rig = Rig::new(&config());
    rig.send(100, Outgoing::get("/"));
    assert_eq!(
        rig.exchange.next_deadline(),
        Some(Deadline { at: Time::from_secs(130), why: Reason::Connect })
    );
    assert_eq!(rig.deadline(129), []);
    let outputs = rig.deadline(130);
    assert_eq!(outputs[0], close(1));
    assert_eq!(failed(&outputs).kind, Kind::TimedOut(Reason::Connect));
    assert_eq!(failed(&outputs).to_string(), "kube.example:6443: gave up connecting");
    assert_eq!(rig.exchange.next_deadline(), None);
    // What comes too late is void.
    assert_eq!(rig.net(131, 1, FRESH), []);
    assert_eq!(rig.exchange.stats().ignored, 1);
    // The head; half a head is no progress.
    rig.send(200, Outgoing::get("/"));
    rig.net(201, 2, FRESH);
    rig.net(260, 2, NetEvent::Received(&head[..20]));
    assert_eq!(
        rig.exchange.next_deadline(),
        Some(Deadline { at: Time::from_secs(271), why: Reason::FirstByte })
    );
    assert_eq!(failed(&rig.deadline(271)).kind, Kind::TimedOut(Reason::FirstByte));
    // The body: every byte is progress.
    rig.send(300, Outgoing::get("/"));
    rig.net(300, 3, FRESH);
    rig.net(301, 3, NetEvent::Received(head));
    rig.net(330, 3, NetEvent::Received(b"1"));
    assert_eq!(
        rig.exchange.next_deadline(),
        Some(Deadline { at: Time::from_secs(360), why: Reason::BodyProgress })
    );
    assert_eq!(failed(&rig.deadline(1000)).kind, Kind::TimedOut(Reason::BodyProgress));
    // A watch may be silent; a refused one may not.
    rig.send(2000, watch());
    rig.net(2000, 4, FRESH);
    rig.net(2000, 4, NetEvent::Received(head));
    assert_eq!(rig.exchange.next_deadline(), None);
    assert_eq!(rig.give(Time::from_secs(2001), Input::Abort), [close(4)]);
    rig.send(2100, watch());
    rig.net(2100, 5, FRESH);
    rig.net(2100, 5, NetEvent::Received(b"HTTP/1.1 500 X\r\nContent-Length: 9\r\n\r\n"));
    assert_eq!(
        rig.exchange.next_deadline(),
        Some(Deadline { at: Time::from_secs(2130), why: Reason::BodyProgress })
    );
}

#[test]
fn a_token_file_is_read_before_the_request_and_again_after_401() {
    let mut config = config();
    config.credentials.bearer = Bearer::File("/t".into());
    let mut rig = Rig::new(&config);
    let read = || [Output::Effect(Effect::ReadFile { path: "/t".into() })];
    assert_eq!(rig.send(0, kept("/")), read());
    assert_eq!(
        rig.exchange.next_deadline(),
        Some(Deadline { at: Time::from_secs(10), why: Reason::Credential })
    );
    assert_eq!(rig.give(Time::ZERO, Input::File { path: "/other", result: Ok(b"x") }), []);
    assert_eq!(rig.file(1, Ok(b"one\n")), [connect(1, false)]);
    assert_eq!(rig.file(1, Ok(b"two\n")), [], "not asked for");
    assert!(written(&rig.net(1, 1, FRESH)).contains("Authorization: Bearer one\r\n"));
    rig.net(2, 1, NetEvent::Received(OK));
    // Young enough: no read.
    assert!(written(&rig.send(50, kept("/"))).contains("Bearer one\r\n"));
    let unauthorized = b"HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\n\r\n";
    assert_eq!(rig.net(50, 1, NetEvent::Received(unauthorized)).last(), Some(&Output::End));
    assert_eq!(rig.send(50, kept("/")), read());
    assert!(written(&rig.file(50, Ok(b"two"))).contains("Bearer two\r\n"));
    rig.give(Time::from_secs(51), Input::Abort);
    // A failed read keeps the token, once there is one; without one it is the end.
    assert_eq!(rig.send(101, kept("/")), read());
    assert_eq!(rig.file(101, Err(&FileError::NotFound)), [connect(2, false)]);
    let mut rig = Rig::new(&config);
    rig.send(0, kept("/"));
    let outputs = rig.file(0, Err(&FileError::NotFound));
    assert_eq!(failed(&outputs).kind, Kind::Auth);
    assert_eq!(
        failed(&outputs).to_string(),
        "kube.example:6443: no credentials: token file /t: no such file"
    );
    rig.send(1, kept("/"));
    assert_eq!(failed(&rig.deadline(11)).kind, Kind::TimedOut(Reason::Credential));
    // And in clear none is ever sent, so none is read.
    config.cluster = Cluster::parse("http://kube.example").unwrap();
    assert_eq!(Rig::new(&config).send(0, Outgoing::get("/")), [connect(1, true)]);
}

#[test]
fn a_dead_idle_connection_costs_an_idempotent_request_nothing() {
    let reset = NetError { kind: NetErrorKind::Reset, message: "kube.example:6443: reset".into() };
    for gone in [NetEvent::Eof, NetEvent::Broken(&reset)] {
        let mut rig = Rig::new(&config());
        rig.send(0, Outgoing::get("/a"));
        let first = written(&rig.net(0, 1, REUSED));
        assert_eq!(rig.net(1, 1, gone), [close(1), connect(2, false)]);
        // Even if the executor does not heed `may_reuse`, once is enough.
        assert_eq!(written(&rig.net(2, 2, REUSED)), first);
        assert_eq!(failed(&rig.net(3, 2, gone)).kind, Kind::Broken);
        assert_eq!(rig.exchange.stats().stale, 1);
        // Not so what must not be repeated, ...
        rig.send(10, post());
        rig.net(10, 3, REUSED);
        let outputs = rig.net(11, 3, gone);
        assert_eq!(outputs[0], close(3));
        assert_eq!(failed(&outputs).kind, Kind::Broken);
        assert!(failed(&outputs).message.contains("kube.example:6443"));
        // ... nor over a new connection, ...
        rig.send(20, Outgoing::get("/a"));
        rig.net(20, 4, FRESH);
        assert_eq!(failed(&rig.net(21, 4, gone)).kind, Kind::Broken);
        // ... nor after the first byte.
        rig.send(30, Outgoing::get("/a"));
        rig.net(30, 5, REUSED);
        rig.net(30, 5, NetEvent::Received(b"H"));
        assert_eq!(failed(&rig.net(31, 5, gone)).kind, Kind::Broken);
    }
}

#[test]
fn a_kept_connection() {
    let mut rig = Rig::new(&config());
    rig.send(0, kept("/a"));
    rig.net(0, 1, FRESH);
    assert_eq!(rig.net(0, 1, NetEvent::Received(OK)).last(), Some(&Output::End));
    // The next request goes out at once; if it has died meanwhile, it counts as reused.
    assert!(written(&rig.send(59, kept("/b"))).starts_with("GET /base/b "));
    assert_eq!(rig.net(59, 1, NetEvent::Eof), [close(1), connect(2, false)]);
    rig.net(59, 2, FRESH);
    rig.net(60, 2, NetEvent::Received(OK));
    // Too old.
    assert_eq!(rig.send(120, kept("/c")), [close(2), connect(3, false)]);
    rig.net(120, 3, FRESH);
    rig.net(120, 3, NetEvent::Received(OK));
    // An answer that nobody asked for (a proxy's 408) must not be taken for the next one.
    assert_eq!(
        rig.net(121, 3, NetEvent::Received(b"HTTP/1.1 408 T\r\nContent-Length: 0\r\n\r\n")),
        [close(3)]
    );
    assert_eq!(rig.send(122, kept("/d")), [connect(4, false)]);
    rig.net(122, 4, FRESH);
    let with_more = [OK, OK].concat();
    let outputs = rig.net(122, 4, NetEvent::Received(&with_more));
    assert_eq!(outputs[2..], [close(4), Output::End]);
    // A request that does not keep gives it back.
    rig.send(123, kept("/e"));
    rig.net(123, 5, FRESH);
    rig.net(123, 5, NetEvent::Received(OK));
    rig.send(124, Outgoing::get("/f"));
    let outputs = rig.net(124, 5, NetEvent::Received(OK));
    assert_eq!(outputs[2..], [Output::Effect(Effect::Release { conn: ConnId(5) }), Output::End]);
    // Abort takes an idle one too.
    rig.send(125, kept("/g"));
    rig.net(125, 6, FRESH);
    rig.net(125, 6, NetEvent::Received(OK));
    assert_eq!(rig.give(Time::from_secs(126), Input::Abort), [close(6)]);
    assert_eq!(rig.give(Time::from_secs(126), Input::Abort), []);
}

#[test]
fn connection_close_is_honoured() {
    let mut rig = Rig::new(&config());
    rig.send(0, Outgoing::get("/a"));
    rig.net(0, 1, FRESH);
    let bytes = b"HTTP/1.1 429 Too Many\r\nConnection: close\r\nContent-Length: 0\r\n\r\n";
    assert_eq!(rig.net(0, 1, NetEvent::Received(bytes))[1..], [close(1), Output::End]);
}

#[test]
fn what_is_not_an_answer() {
    for (bytes, kind, want) in [
        (&b"SSH-2.0-OpenSSH_9.6\r\n"[..], Kind::Protocol, "SSH-2.0"),
        (b"<html><body>hello</body></html>\n", Kind::Protocol, "<html>"),
        (b"HTTP/1.1 101 Switching\r\nUpgrade: x\r\n\r\n", Kind::Protocol, "101"),
        (b"HTTP/1.1 200 OK\r\nContent-Encoding: deflate\r\nContent-Length: 9\r\n\r\n", Kind::Protocol, "deflate"),
        (
            b"HTTP/1.1 302 Found\r\nLocation: https://sso.example/login?ticket=hunter2\r\nContent-Length: 0\r\n\r\n",
            Kind::Redirect,
            "https://sso.example/login; redirects",
        ),
        (b"HTTP/1.1 307 T\r\nContent-Length: 0\r\n\r\n", Kind::Redirect, "nowhere"),
    ] {
        let mut rig = Rig::new(&config());
        rig.send(0, Outgoing::get("/a"));
        rig.net(0, 1, FRESH);
        let outputs = rig.net(0, 1, NetEvent::Received(bytes));
        assert!(outputs.contains(&close(1)));
        let e = failed(&outputs);
        assert_eq!(e.kind, kind);
        assert!(e.message.starts_with("kube.example:6443: ") && e.message.contains(want), "{e}");
        assert!(!e.message.contains("hunter2") && !e.message.contains('\n'), "{e}");
    }
}

#[test]
fn failures_to_connect_have_their_class() {
    for (kind, want) in [
        (NetErrorKind::Refused, Kind::Refused),
        (NetErrorKind::Resolve, Kind::Resolve),
        (NetErrorKind::Tls, Kind::Tls),
        (NetErrorKind::TimedOut, Kind::TimedOut(Reason::Connect)),
        (NetErrorKind::Reset, Kind::Connect),
        (NetErrorKind::Other, Kind::Connect),
    ] {
        let e = NetError { kind, message: "kube.example:6443: no".into() };
        let mut rig = Rig::new(&config());
        rig.send(0, Outgoing::get("/a"));
        let outputs = rig.net(1, 1, NetEvent::ConnectFailed(&e));
        assert_eq!(outputs, [Output::Failed(ExchangeError { kind: want, message: e.message.clone() })]);
        assert!(want.not_sent());
        assert_eq!(rig.net(1, 1, NetEvent::ConnectFailed(&e)), []);
    }
}

#[test]
fn misuse_is_told_and_harmless() {
    let mut rig = Rig::new(&config());
    let mut evil = Outgoing::get("/a");
    evil.head.headers.push(("X".into(), "hunter2\r\nY: z".into()));
    let outputs = rig.send(0, evil);
    assert_eq!(failed(&outputs).kind, Kind::Misuse);
    assert!(!failed(&outputs).message.contains("hunter2"));
    rig.send(0, Outgoing::get("/a"));
    assert_eq!(rig.send(0, kept("/b")), [Output::Refused(Box::new(kept("/b")))]);
    rig.net(0, 1, FRESH);
    assert_eq!(rig.net(0, 1, NetEvent::Received(OK)).last(), Some(&Output::End));
}

/// `Head`s, the whole body, and how it ended.
fn summary(outputs: &[Output]) -> (Vec<u16>, Vec<u8>, Vec<String>) {
    let (mut heads, mut body, mut end) = (vec![], vec![], vec![]);
    for output in outputs {
        match output {
            Output::Head(h) => heads.push(h.status),
            Output::Body(b) => body.extend_from_slice(b),
            Output::Effect(Effect::Write { .. }) => {}
            other => end.push(format!("{other:?}")),
        }
    }
    (heads, body, end)
}

#[test]
fn any_cut_and_an_end_after_any_byte() {
    let chunked = b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n\
                    3\r\nabc\r\n2;x=y\r\nde\r\n0\r\nT: v\r\n\r\n";
    for bytes in [OK, chunked] {
        let begin = || {
            let mut rig = Rig::new(&config());
            rig.send(0, Outgoing::get("/a"));
            rig.net(0, 1, FRESH);
            rig
        };
        let whole = summary(&begin().net(0, 1, NetEvent::Received(bytes)));
        assert_eq!(whole.2.last().map(String::as_str), Some("End"));
        for cut in 0..=bytes.len() {
            let mut rig = begin();
            let mut outputs = rig.net(0, 1, NetEvent::Received(&bytes[..cut]));
            let mut cut_off = outputs.clone();
            if cut < bytes.len() {
                outputs.extend(rig.net(0, 1, NetEvent::Received(&bytes[cut..])));
                let mut rig = begin();
                rig.net(0, 1, NetEvent::Received(&bytes[..cut]));
                cut_off.extend(rig.net(0, 1, NetEvent::Eof));
                assert_eq!(failed(&cut_off).kind, Kind::Broken, "cut at {cut}");
                assert!(rig.exchange.is_idle() && rig.open.is_empty());
            }
            assert_eq!(summary(&outputs), whole, "cut at {cut}");
        }
        let mut rig = begin();
        let bytewise: Vec<_> =
            bytes.iter().flat_map(|b| rig.net(0, 1, NetEvent::Received(core::slice::from_ref(b)))).collect();
        assert_eq!(summary(&bytewise), whole);
    }
    // A body that the end of the connection ends.
    let mut rig = Rig::new(&config());
    rig.send(0, Outgoing::get("/a"));
    rig.net(0, 1, FRESH);
    rig.net(0, 1, NetEvent::Received(b"HTTP/1.0 200 OK\r\n\r\nabc"));
    assert_eq!(rig.net(0, 1, NetEvent::Eof), [close(1), Output::End]);
}

/// Plays any sequence of inputs and checks what must hold; gives all outputs, for comparing two runs.
fn play(steps: &[(u8, u8, u8)]) -> String {
    let mut config = config();
    config.credentials.bearer = Bearer::File("/t".into());
    let mut rig = Rig::new(&config);
    let mut now = Time::from_secs(1000);
    let mut under_way = 0u32;
    let mut log = String::new();
    let errors: BTreeMap<u8, NetErrorKind> =
        [(0, NetErrorKind::Refused), (1, NetErrorKind::Reset), (2, NetErrorKind::Other)].into();
    let answers: &[&[u8]] = &[
        OK,
        &OK[..30],
        &OK[30..],
        b"HTTP/1.1 401 U\r\nContent-Length: 0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
        b"2\r\n{}\r\n",
        b"0\r\n\r\n",
        b"nonsense\r\n\r\n",
        b"",
    ];
    for (what, which, pause) in steps {
        now = now + Duration::from_millis(u64::from(*pause) * 100);
        let conn = ConnId(rig.last.saturating_sub(u64::from(*which % 3)).max(1));
        let error = NetError { kind: errors[&(*which % 3)], message: "broke".into() };
        let input = match what % 12 {
            0 | 1 => Input::Send(Box::new(match which % 4 {
                0 => post(),
                1 => kept("/k"),
                2 => Outgoing { timeouts: Timeouts::watch(), ..kept("/w") },
                _ => Outgoing::get("/g"),
            })),
            2 | 3 => Input::Net { conn, event: NetEvent::Connected { reused: which % 2 == 0 } },
            4 => Input::Net { conn, event: NetEvent::ConnectFailed(&error) },
            5 | 6 => {
                let bytes = answers[usize::from(*pause) % answers.len()];
                Input::Net { conn, event: NetEvent::Received(bytes) }
            }
            7 => Input::Net { conn, event: NetEvent::Eof },
            8 => Input::Net { conn, event: NetEvent::Broken(&error) },
            9 => Input::File {
                path: if which % 5 == 0 { "/x" } else { "/t" },
                result: if which % 2 == 0 { Ok(b"token") } else { Err(&FileError::NotFound) },
            },
            10 => Input::Abort,
            _ => {
                if which % 2 == 0
                    && let Some(d) = rig.exchange.next_deadline()
                {
                    now = now.max(d.at);
                }
                Input::Deadline
            }
        };
        let is_deadline = matches!(input, Input::Deadline);
        match input {
            Input::Send(_) if rig.exchange.is_idle() => under_way += 1,
            Input::Abort => under_way = 0,
            _ => {}
        }
        let aborted = matches!(input, Input::Abort);
        for output in rig.give(now, input) {
            if let Output::End | Output::Failed(_) = output {
                assert_eq!(under_way, 1, "an end without a request");
                under_way = 0;
            }
            log.push_str(&format!("{output:?}\n"));
        }
        assert_eq!(rig.exchange.is_idle(), under_way == 0);
        if aborted {
            assert!(rig.open.is_empty() && rig.exchange.next_deadline().is_none());
        }
        if is_deadline {
            assert!(rig.exchange.next_deadline().is_none_or(|d| d.at > now), "a served deadline came back");
        }
    }
    log
}

#[test]
fn any_order_of_inputs_is_defined() {
    fn holds(steps: Vec<(u8, u8, u8)>) -> bool {
        play(&steps) == play(&steps)
    }
    crate::cases::cases(3000).quickcheck(holds as fn(Vec<(u8, u8, u8)>) -> bool);
}
