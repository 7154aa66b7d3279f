//! What is recorded is replayed, and holds no secret.
#![allow(clippy::disallowed_types, reason = "the sink of these tests is shared")]

use alloc::borrow::ToOwned as _;
use alloc::format;
use alloc::string::{String, ToString as _};
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::time::Duration;
use std::sync::Mutex;

use quickcheck::{Arbitrary, Gen};

use super::file::{Bound, End, Header, Keep, Segments, Write};
use super::replay::{Comparison, Replay};
use super::*;
use crate::api::{Api, Raw, ResourceType, Scope, kinds};
use crate::auth::Authenticator;
use crate::cases::cases;
use crate::client::{CallInput, Endpoint};
use crate::config::{Bearer, Cluster, Config, FileError, Secret};
use crate::controller::{self, SourceId, WatchSpec};
use crate::net::{ConnId, NetError, NetErrorKind, NetEvent};
use crate::object::Key;
use crate::queue::Priority;
use crate::source::{self, DecodeJob, Options, Output};

const CONFIGMAPS: ResourceType = ResourceType::new("", "v1", "configmaps", "ConfigMap", Scope::Namespaced);
const SECRETS: ResourceType = ResourceType::new("", "v1", "secrets", "Secret", Scope::Namespaced);
const TOKEN: &str = "hunter2";
const DATA: &str = "c3dvcmRmaXNo";

/// Segments in memory, by number.
type Files = Vec<(u64, Vec<u8>)>;

#[derive(Clone)]
struct Memory {
    bound: Bound,
    redaction: Redaction,
    kept: Arc<Mutex<(Option<Segments>, Files)>>,
}

impl Memory {
    fn new(bound: Bound) -> Self {
        Self { bound, redaction: Redaction::default(), kept: Arc::new(Mutex::new((None, Vec::new()))) }
    }

    fn files(&self) -> Files {
        self.kept.lock().unwrap().1.clone()
    }

    fn bytes(&self) -> Vec<u8> {
        self.files().into_iter().flat_map(|(_, bytes)| bytes).collect()
    }

    fn text(&self) -> String {
        String::from_utf8(self.bytes()).unwrap()
    }

    fn read(&self) -> Recording {
        Recording::read(self.files().iter().map(|(_, bytes)| &**bytes)).unwrap()
    }

    fn compare(&self) -> Comparison {
        let recording = self.read();
        Replay::of(&recording).unwrap().compare(&recording).unwrap()
    }
}

impl Default for Memory {
    fn default() -> Self {
        Self::new(Bound::default())
    }
}

impl Recorder for Memory {
    fn open(&self, header: Header) -> Arc<dyn Sink> {
        self.kept.lock().unwrap().0 = Some(Segments::new(header, self.bound));
        Arc::new(self.clone())
    }

    fn redaction(&self) -> Redaction {
        self.redaction.clone()
    }
}

impl Sink for Memory {
    fn record(&self, record: Vec<u8>) -> bool {
        let mut out = Outputs::new();
        let (segments, files) = &mut *self.kept.lock().unwrap();
        let more = segments.as_mut().unwrap().push(record, &mut out);
        for write in out {
            match write {
                Write::Begin(n) => files.push((n, Vec::new())),
                Write::Append(bytes) => files.last_mut().unwrap().1.extend(bytes),
                Write::Remove(n) => files.retain(|(m, _)| *m != n),
            }
        }
        more
    }
}

fn config() -> Config {
    Config::new(Cluster::parse("https://kube:6443").unwrap())
}

fn with_token_file() -> Config {
    let mut config = config();
    config.credentials.bearer = Bearer::File("/token".into());
    config
}

/// Plain lists: the servers of these tests begin with one.
fn listing() -> Options {
    let mut options = Options::default();
    options.watcher.streaming = false;
    options
}

fn source(resource: ResourceType, options: Options, config: &Config, memory: &Memory) -> Recorded<Source> {
    let auth = Authenticator::new(config);
    let source = Source::new(&WatchSpec::all(resource), options, Arc::new(Endpoint::new(config)), auth, 7);
    Recorded::source(source, 7, "source", Some(memory))
}

fn secret(name: &str, version: u32, data: &str) -> String {
    format!(
        r#"{{"apiVersion":"v1","kind":"Secret","metadata":{{"name":"{name}","namespace":"prod","uid":"u-{name}","resourceVersion":"{version}","annotations":{{"kubectl.kubernetes.io/last-applied-configuration":"{{\"data\":{{\"k\":\"{data}\"}}}}"}}}},"data":{{"k":"{data}"}}}}"#
    )
}

fn list(version: u32, items: &[String]) -> String {
    format!(
        r#"{{"kind":"List","apiVersion":"v1","metadata":{{"resourceVersion":"{version}"}},"items":[{}]}}"#,
        items.join(",")
    )
}

fn answer(body: &str) -> Vec<u8> {
    let n = body.len();
    format!("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {n}\r\n\r\n{body}")
        .into_bytes()
}

/// A watch of one change, in chunks that end anywhere.
fn watch(frame: &str, chunk: usize) -> Vec<u8> {
    let mut out =
        b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n".to_vec();
    for piece in frame.as_bytes().chunks(chunk) {
        out.extend(format!("{:x}\r\n", piece.len()).into_bytes());
        out.extend(piece);
        out.extend(b"\r\n");
    }
    out
}

/// A life of a source: a token, a list of two objects, a watch with one change, an end.
fn live(source: &mut Recorded<Source>, cut: usize) {
    let mut out = Outputs::new();
    let mut at = 0;
    let mut tell = |source: &mut Recorded<Source>, input: source::Input<'_>| {
        at += 1;
        source.handle(Time::from_millis(at), input, &mut out);
        out.drain().filter(|o| matches!(o, Output::Delta(_))).count()
    };
    let conn = ConnId(1);
    tell(source, source::Input::Start);
    tell(source, source::Input::File { path: "/token", result: Ok(TOKEN.as_bytes()) });
    tell(source, source::Input::Net { conn, event: NetEvent::Connected { reused: false } });
    let mut deltas = 0;
    let objects = [secret("a", 5, DATA), secret("b", 6, "AAAA")];
    let frame = format!("{{\"type\":\"MODIFIED\",\"object\":{}}}\n", secret("b", 9, DATA));
    for bytes in [answer(&list(8, &objects)), watch(&frame, 10)] {
        for piece in bytes.chunks(cut) {
            deltas += tell(source, source::Input::Net { conn, event: NetEvent::Received(piece) });
        }
    }
    assert_eq!(deltas, 2);
    tell(source, source::Input::Deadline);
    tell(source, source::Input::Net { conn, event: NetEvent::Eof });
    tell(source, source::Input::Stop);
}

#[test]
fn a_source_is_replayed_from_a_recording_without_secrets() {
    for cut in [1, 7, usize::MAX] {
        let memory = Memory::default();
        live(&mut source(SECRETS, listing(), &with_token_file(), &memory), cut);
        let text = memory.text();
        assert!(text.contains("u-a") && text.contains("/token"), "{text}");
        for hidden in [TOKEN, DATA, "swordfish", "c3dv", "gzip\\r"] {
            assert!(!text.contains(hidden), "{hidden} stands in it: {text}");
        }
        let compared = memory.compare();
        assert_eq!((compared.first, compared.skipped), (None, 0));
        assert!(compared.steps >= 8);
    }
}

#[test]
fn what_is_not_redacted_is_there() {
    let memory = Memory { redaction: Redaction::nothing(), ..Memory::default() };
    live(&mut source(SECRETS, listing(), &with_token_file(), &memory), usize::MAX);
    let text = memory.text();
    assert!(text.contains(DATA) && !text.contains(TOKEN), "{text}");
    assert_eq!(memory.compare().first, None);
}

#[test]
fn another_setting_shows_at_the_step_where_it_matters() {
    let memory = Memory::default();
    live(&mut source(CONFIGMAPS, listing(), &config(), &memory), usize::MAX);
    let recording = memory.read();
    let mut made: SourceMade = serde_json::from_value(recording.header.made.clone()).unwrap();
    made.options.watcher.page_size = Some(3);
    let compared = Replay::source(made.source(), &recording).unwrap().compare(&recording).unwrap();
    let first = compared.first.unwrap();
    let (recorded, said) = first.difference().unwrap();
    // The token file is void here: the list goes out when the connection stands.
    assert_eq!((first.number, &*first.told), (2, "connection 1 stands"));
    assert!(recorded.unwrap().contains("limit=500") && said.unwrap().contains("limit=3"), "{first:?}");
}

#[test]
fn what_cannot_be_masked_ends_the_recording() {
    let memory = Memory::default();
    let mut source = source(SECRETS, listing(), &config(), &memory);
    let (conn, mut out) = (ConnId(1), Outputs::new());
    let mut body = crate::wire::gzip::tests::member(list(8, &[secret("a", 5, DATA)]).as_bytes());
    let mut bytes =
        format!("HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: {}\r\n\r\n", body.len())
            .into_bytes();
    bytes.append(&mut body);
    source.handle(Time::ZERO, source::Input::Start, &mut out);
    for event in [NetEvent::Connected { reused: false }, NetEvent::Received(&bytes), NetEvent::Eof] {
        source.handle(Time::ZERO, source::Input::Net { conn, event }, &mut out);
    }
    assert_eq!(source.snapshot().len(), 1, "the source itself goes on");
    let recording = memory.read();
    assert!(matches!(&recording.end, End::Ended(why) if why.contains("compressed")), "{:?}", recording.end);
    assert_eq!(recording.records.len(), 2);
    assert_eq!(memory.compare().first, None);
}

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
    let quoted = format!("patch: Invalid value: \"{{\\\"k\\\":\\\"{DATA}\\\"}}\": no\nagain {DATA}");
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

    let memory = Memory::default();
    let machine = Controller::new(controller::Config::new("c", SECRETS), 3);
    let mut controller = Recorded::controller(machine, 3, Some(&memory));
    let mut out = Outputs::new();
    let view: crate::store::Snapshot<Object> =
        [Object::from_json(secret("a", 5, "AAAA").as_bytes()).unwrap()].into_iter().collect();
    let new = view.values().next().unwrap().clone();
    let delta = crate::store::Delta {
        changes: [crate::store::Change::Added { new, initial: false }].into(),
        view,
        synced: true,
        resource_version: "5".into(),
        received: Time::ZERO,
    };
    controller.handle(Time::ZERO, controller::Input::Start, &mut out);
    controller.handle(Time::ZERO, controller::Input::Delta { source: SourceId(0), delta }, &mut out);
    for (id, make) in
        [controller::Outcome::Error, controller::Outcome::Panicked, controller::Outcome::Terminal]
            .into_iter()
            .enumerate()
    {
        let (id, now) = (controller::ReconcileId(id as u64 + 1), Time::from_secs(id as u64));
        let done = controller::Input::Done { id, outcome: make(quoted.clone()), started: now };
        controller.handle(now, done, &mut out);
        controller.handle(Time::from_secs(id.0), controller::Input::Deadline, &mut out);
    }
    let text = memory.text();
    assert!(text.contains("notice Failed") && text.contains("notice GaveUp"), "{text}");
    assert!(text.contains("patch: Invalid value:") && !text.contains(DATA), "{text}");
    assert_eq!(memory.compare().first, None);
}

fn run_controller(memory: &Memory, config: controller::Config<Object>) {
    let mut feeding = source(SECRETS, listing(), &self::config(), &Memory::default());
    let mut controller = Recorded::controller(Controller::new(config, 3), 3, Some(memory));
    let (mut out, mut said) = (Outputs::new(), Outputs::new());
    let conn = ConnId(1);
    controller.handle(Time::ZERO, controller::Input::Start, &mut said);
    feeding.handle(Time::ZERO, source::Input::Start, &mut out);
    feeding.handle(
        Time::ZERO,
        source::Input::Net { conn, event: NetEvent::Connected { reused: false } },
        &mut out,
    );
    let frames = [
        format!(r#"{{"type":"MODIFIED","object":{}}}"#, secret("a", 9, DATA)),
        format!(r#"{{"type":"ADDED","object":{}}}"#, secret("c", 10, DATA)),
        format!(r#"{{"type":"DELETED","object":{}}}"#, secret("a", 11, DATA)),
    ];
    let first = answer(&list(8, &[secret("a", 5, DATA), secret("b", 6, DATA)]));
    for (n, bytes) in [first, watch(&frames.join("\n"), 50)].into_iter().enumerate() {
        let now = Time::from_secs(n as u64);
        feeding.handle(now, source::Input::Net { conn, event: NetEvent::Received(&bytes) }, &mut out);
        for output in out.drain() {
            if let Output::Delta(delta) = output {
                controller.handle(now, controller::Input::Delta { source: SourceId(0), delta }, &mut said);
            }
        }
    }
    let key = Key::namespaced("prod", "b");
    let now = Time::from_secs(3);
    controller.handle(now, controller::Input::Trigger { key, priority: Priority::NORMAL }, &mut said);
    for _ in 0..4 {
        let runs: Vec<_> = said
            .drain()
            .filter_map(|o| if let controller::Output::Run(run) = o { Some(run.id) } else { None })
            .collect();
        for (id, n) in runs.into_iter().zip(0..) {
            let outcome = match n % 3 {
                0 => controller::Outcome::AwaitChange,
                1 => controller::Outcome::Error("no".into()),
                _ => controller::Outcome::Requeue(Duration::from_secs(9)),
            };
            let write = crate::api::Written {
                group: String::new(),
                plural: "secrets".to_owned(),
                key: Key::namespaced("prod", "b"),
                uid: "u-b".to_owned(),
                labels: [("app".to_owned(), "b".to_owned())].into(),
                now: crate::api::WrittenState::At("99".to_owned()),
            };
            controller.handle(now, controller::Input::Wrote { id, write }, &mut said);
            controller.handle(now, controller::Input::Done { id, outcome, started: now }, &mut said);
        }
        if let Some(next) = controller.next_deadline() {
            controller.handle(next.at, controller::Input::Deadline, &mut said);
        }
    }
    controller.handle(Time::from_secs(99), controller::Input::Stop { grace: None }, &mut said);
}

#[test]
fn a_controller_is_replayed_with_views_made_again() {
    let memory = Memory::default();
    run_controller(&memory, controller::Config::new("c", SECRETS).concurrency(2));
    let text = memory.text();
    assert!(text.contains("u-a") && text.contains("\"run 1: ") && !text.contains(DATA), "{text}");
    let compared = memory.compare();
    assert_eq!((compared.first, compared.skipped), (None, 0));
    assert!(compared.steps >= 8);
    // One at a time instead of two: the first delta says so.
    let recording = memory.read();
    let replay = Replay::controller(controller::Config::new("c", SECRETS), &recording).unwrap();
    let first = replay.compare(&recording).unwrap().first.unwrap();
    assert_eq!(first.number, 1, "{first:?}");
}

#[test]
fn functions_of_a_controller_are_asked_for() {
    let memory = Memory::default();
    let config = || {
        controller::Config::<Object>::new("c", SECRETS).filter(|_| true).watches(CONFIGMAPS, |_| Vec::new())
    };
    run_controller(&memory, config());
    let recording = memory.read();
    let error = Replay::of(&recording).unwrap_err().to_string();
    assert_eq!(error, "controller c: secrets.v1 has predicates, which only your program has");
    let compared = Replay::controller(config(), &recording).unwrap().compare(&recording).unwrap();
    assert_eq!(compared.first, None);
    let other = controller::Config::new("c", SECRETS);
    let error = Replay::controller(other, &recording).unwrap_err().to_string();
    assert_eq!(
        error,
        "the recorded controller watches [secrets.v1; configmaps.v1], the given one [secrets.v1]"
    );
}

#[test]
fn whoever_listens_late_has_the_whole_view_recorded() {
    let memory = Memory::default();
    let mut controller =
        Recorded::controller(Controller::new(controller::Config::new("c", SECRETS), 3), 3, Some(&memory));
    let mut out = Outputs::new();
    let object = |name| Object::from_json(secret(name, 5, DATA).as_bytes()).unwrap();
    let view: crate::store::Snapshot<Object> = [object("a"), object("b")].into_iter().collect();
    let delta = crate::store::Delta {
        changes: [crate::store::Change::Added { new: object("b"), initial: false }].into(),
        view,
        synced: true,
        resource_version: "5".into(),
        received: Time::ZERO,
    };
    controller.handle(Time::ZERO, controller::Input::Start, &mut out);
    controller.handle(Time::ZERO, controller::Input::Delta { source: SourceId(0), delta }, &mut out);
    assert!(memory.text().contains("views of [2] objects"));
    assert_eq!(memory.compare().first, None);
}

fn small(keep: Keep) -> Memory {
    let memory = Memory::new(Bound { segment: 2_000, segments: 3, keep });
    let mut manager =
        Recorded::manager(Manager::with_counts(1, 1, crate::manager::Config::default()), Some(&memory));
    let mut out = Outputs::new();
    for n in 0..200 {
        manager.handle(Time::from_millis(n), crate::manager::Input::Deadline, &mut out);
    }
    memory
}

#[test]
fn the_oldest_segment_goes_and_a_replay_says_so() {
    let memory = small(Keep::Latest);
    let files = memory.files();
    assert_eq!(files.len(), 3);
    assert!(files.iter().all(|(_, bytes)| bytes.len() < 2_200));
    let recording = memory.read();
    assert!(!recording.is_whole() && recording.end == End::Whole);
    assert_eq!(recording.numbered().last().unwrap().0, 199);
    let error = Replay::of(&recording).unwrap_err().to_string();
    assert!(error.contains("its beginning is gone") && error.contains("can still be read"), "{error}");
    let mut reading = Replay::reading(&recording);
    let step = reading.step(recording.numbered().next().unwrap()).unwrap();
    assert_eq!((&*step.told, step.said), ("Deadline", None));
}

#[test]
fn the_first_segments_can_be_kept_instead() {
    let memory = small(Keep::Beginning);
    let recording = memory.read();
    assert_eq!((memory.files().len(), recording.is_whole()), (3, true));
    assert!(matches!(&recording.end, End::Ended(why) if why.contains("3 segments of 2000 bytes")));
    assert_eq!(memory.compare().first, None);
}

#[test]
fn a_torn_end_is_no_error_and_damage_is_one() {
    let memory = Memory::default();
    live(&mut source(CONFIGMAPS, listing(), &config(), &memory), usize::MAX);
    let (whole, bytes) = (memory.read(), memory.bytes());
    let header = memchr::memchr(b'\n', &bytes).unwrap() + 1;
    for cut in header..bytes.len() {
        let torn = Recording::read([&bytes[..cut]]).unwrap();
        let lines = bytes[..cut].iter().filter(|b| **b == b'\n').count();
        assert_eq!(torn.records.len(), lines - 1, "cut at {cut}");
        assert_eq!(torn.records[..], whole.records[..lines - 1]);
        assert_eq!(torn.end == End::Torn, bytes[cut - 1] != b'\n');
    }
    for cut in 0..header {
        assert!(Recording::read([&bytes[..cut]]).is_err());
    }
    for at in (0..bytes.len()).step_by(3) {
        let mut damaged = bytes.clone();
        damaged[at] ^= 0x11;
        let error = match Recording::read([&*damaged]) {
            Err(e) => e.to_string(),
            Ok(recording) => panic!("{at}: {:?}", recording.end),
        };
        assert!(error.contains("damaged") || error.contains("not a recording"), "{at}: {error}");
    }
}

#[test]
fn what_does_not_belong_together_is_told() {
    let files = small(Keep::Beginning).files();
    let read = |files: &[&[u8]]| Recording::read(files.iter().copied()).map(drop).unwrap_err().to_string();
    assert_eq!(read(&[&files[0].1, &files[2].1]), "segment 1 is missing or not whole");
    assert_eq!(read(&[]), "not a recording: it is empty");
    assert_eq!(read(&[b"hello, world, this is a file\n"]), "not a recording: no length and checksum");
    let header = Header { format: 9, ..Header::new(Kind::Manager, "m", Redaction::default(), Value::Null) };
    assert_eq!(read(&[&file::line(&header)]), "a recording of format 9; this program reads format 1");
    let memory = Memory::default();
    live(&mut source(CONFIGMAPS, listing(), &config(), &memory), usize::MAX);
    let mut other = memory.bytes();
    let at = memchr::memmem::find(&other, b"\"segment\":0,\"first\":0").unwrap();
    other[at + 10] = b'1';
    assert!(read(&[&files[0].1, &other]).contains("checksum"));
}

/// Anything that can happen to a source, in any order.
#[derive(Clone, Debug)]
struct Life {
    config: (bool, Option<usize>, bool),
    events: Vec<(u8, u16)>,
}

impl Arbitrary for Life {
    fn arbitrary(g: &mut Gen) -> Self {
        Self {
            config: (bool::arbitrary(g), *g.choose(&[None, Some(0), Some(400)]).unwrap(), bool::arbitrary(g)),
            events: Vec::arbitrary(g),
        }
    }

    fn shrink(&self) -> Box<dyn Iterator<Item = Self>> {
        let config = self.config;
        Box::new(self.events.shrink().map(move |events| Self { config, events }))
    }
}

impl Life {
    fn live(self) -> bool {
        let (secrets, decode_job, streaming) = self.config;
        let memory = Memory::default();
        let mut options = Options { decode_job, ..Options::default() };
        options.watcher.streaming = streaming;
        let mut source =
            source(if secrets { SECRETS } else { CONFIGMAPS }, options, &with_token_file(), &memory);
        let (mut out, mut jobs): (_, Vec<DecodeJob>) = (Outputs::new(), Vec::new());
        let mut now = Time::ZERO;
        let mut conn = ConnId(1);
        let mut version = 5;
        let error = NetError { kind: NetErrorKind::Reset, message: "reset".into() };
        source.handle(now, source::Input::Start, &mut out);
        let mut pending: Vec<u8> = Vec::new();
        for (what, n) in self.events {
            for output in out.drain() {
                match output {
                    Output::Effect(Effect::Connect { conn: c, .. }) => conn = c,
                    Output::Decode(job) => jobs.push(*job),
                    _ => {}
                }
            }
            now = now + Duration::from_millis(u64::from(n));
            version += 1;
            let name = ["a", "b", "c"][usize::from(n) % 3];
            let (mut bytes, file);
            let event = match what % 16 {
                0 | 1 => NetEvent::Connected { reused: n % 2 == 0 },
                2 => NetEvent::ConnectFailed(&error),
                3 => NetEvent::Eof,
                4 => NetEvent::Broken(&error),
                5 | 6 => {
                    if let Some(next) = source.next_deadline() {
                        now = now.max(next.at);
                    }
                    source.handle(now, source::Input::Deadline, &mut out);
                    continue;
                }
                7 | 8 => {
                    file = [Ok(&b"hunter2"[..]), Ok(b""), Err(&FileError::NotFound), Ok(b"\xff"), Ok(b"a b")]
                        [usize::from(n % 6).saturating_sub(1)];
                    source.handle(now, source::Input::File { path: "/token", result: file }, &mut out);
                    continue;
                }
                9 if !jobs.is_empty() => {
                    let job = jobs.remove(usize::from(n) % jobs.len());
                    source.handle(now, source::Input::Decoded(job.decode_all()), &mut out);
                    continue;
                }
                10 => {
                    bytes = b"HTTP/1.1 410 Gone\r\nSet-Cookie: q\r\nContent-Length: 0\r\n\r\n".to_vec();
                    NetEvent::Received(&bytes)
                }
                11 => {
                    bytes = (0..n % 200).map(|i| (i * 7) as u8).collect();
                    NetEvent::Received(&bytes)
                }
                12 => {
                    pending = answer(&list(version, &[secret(name, version, DATA), secret("z", 4, DATA)]));
                    bytes = pending.split_off(pending.len().min(usize::from(n)));
                    core::mem::swap(&mut bytes, &mut pending);
                    NetEvent::Received(&bytes)
                }
                13 => {
                    let kind = ["ADDED", "MODIFIED", "DELETED", "BOOKMARK", "ERROR"][usize::from(n) % 5];
                    let frame =
                        format!("{{\"type\":\"{kind}\",\"object\":{}}}\n", secret(name, version, DATA));
                    bytes = watch(&frame, 1 + usize::from(n) % 300);
                    NetEvent::Received(&bytes)
                }
                _ => {
                    bytes = pending.split_off(pending.len().min(usize::from(n)));
                    core::mem::swap(&mut bytes, &mut pending);
                    NetEvent::Received(&bytes)
                }
            };
            source.handle(now, source::Input::Net { conn, event }, &mut out);
        }
        source.handle(now, source::Input::Stop, &mut out);
        let text = memory.text();
        assert!(!text.contains(TOKEN), "{text}");
        assert!(!secrets || !text.contains(DATA), "{text}");
        let compared = memory.compare();
        assert_eq!(compared.first, None);
        true
    }
}

#[test]
fn any_life_of_a_source_is_replayed() {
    cases(300).quickcheck((|life: Life| life.live()) as fn(Life) -> bool);
}

#[test]
fn an_unrecorded_machine_is_the_machine() {
    let call = Call::<Raw>::new(
        Arc::new(Endpoint::new(&config())),
        Authenticator::none(),
        Api::<kinds::ConfigMap>::namespaced("prod").get("b").into_raw(),
        1,
    );
    let mut call = Calls::call(None, call, 1);
    let mut out = Outputs::new();
    call.handle(Time::ZERO, CallInput::Start, &mut out);
    assert_eq!((out.len(), call.is_done()), (1, false));
}
