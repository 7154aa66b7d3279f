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
use crate::store::{Change, Delta};

mod calls;
mod controllers;
mod files;
mod limits;
mod lives;

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

/// What a server says of an object that it refuses.
fn quoted() -> String {
    format!("patch: Invalid value: \"{{\\\"k\\\":\\\"{DATA}\\\"}}\": no\nagain {DATA}")
}

/// A delta that adds the last of these objects to the others.
fn added(objects: &[Object]) -> Delta<Object> {
    let new = objects.last().unwrap().clone();
    Delta {
        changes: [Change::Added { new, initial: false }].into(),
        view: objects.iter().cloned().collect(),
        synced: true,
        resource_version: "5".into(),
        received: Time::ZERO,
    }
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
