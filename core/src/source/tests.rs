//! A source against a scripted server: whole, byte by byte, and with decode jobs done late.

use alloc::collections::{BTreeMap, VecDeque};
use alloc::format;
use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;
use core::time::Duration;

use super::{Input, Options, Output, Source};
use crate::api::{ResourceType, Scope};
use crate::auth::Authenticator;
use crate::client::{Effect, Endpoint};
use crate::config::{Bearer, Cluster, Config, Secret};
use crate::controller::WatchSpec;
use crate::limits::WireLimits;
use crate::machine::{Machine, Outputs};
use crate::net::{ConnId, NetError, NetErrorKind, NetEvent};
use crate::object::{Key, Object, Resource};
use crate::store::{Change, Delta};
use crate::time::Time;
use crate::watcher::{self, Notice};
use crate::wire::gzip::tests::member;
use crate::wire::http::write_chunk;

mod answers;
mod any;
mod frames;
mod lessons;
mod limits;
mod partial;

const CONFIGMAPS: ResourceType = ResourceType::new("", "v1", "configmaps", "ConfigMap", Scope::Namespaced);

/// How the answers of the server reach the source.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Style {
    cut: usize,
    job: Option<usize>,
    compact: bool,
}

const STYLES: [Style; 6] = [
    Style { cut: usize::MAX, job: None, compact: false },
    Style { cut: 1, job: None, compact: false },
    Style { cut: 7, job: Some(1), compact: false },
    Style { cut: usize::MAX, job: Some(400), compact: false },
    // The same as the first and the third.
    Style { cut: usize::MAX, job: None, compact: true },
    Style { cut: 7, job: Some(1), compact: true },
];

enum Answer {
    /// Bytes, then the connection stays open.
    Bytes(String),
    /// The same, of bytes that are no text.
    Raw(Vec<u8>),
    /// Bytes, then the end of the connection.
    Cut(String),
    Refused,
}

struct Play {
    source: Source,
    style: Style,
    now: Time,
    script: VecDeque<Answer>,
    asked: Vec<String>,
    requests: Vec<String>,
    told: Vec<String>,
    notices: Vec<Notice>,
    stopped: bool,
    /// The first synced delta has come, and `Synced` must be next; `Synced` has been said.
    to_say: bool,
    said: bool,
    open: Option<ConnId>,
    opened: usize,
    closed: usize,
    /// Who follows the changes knows this.
    followed: BTreeMap<Key, Object>,
}

fn json(body: &str) -> String {
    http(200, body)
}

fn http(status: u16, body: &str) -> String {
    format!(
        "HTTP/1.1 {status} X\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    )
}

fn watch(frames: &str, ended: bool) -> String {
    let chunk = if frames.is_empty() { String::new() } else { format!("{:x}\r\n{frames}\r\n", frames.len()) };
    let end = if ended { "0\r\n\r\n" } else { "" };
    format!(
        "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n{chunk}{end}"
    )
}

fn object(name: &str, uid: &str, version: u32) -> String {
    format!(
        r#"{{"metadata":{{"name":"{name}","namespace":"d","uid":"{uid}","resourceVersion":"{version}"}}}}"#
    )
}

fn list(version: u32, token: &str, items: &[String]) -> String {
    let items = items.join(",");
    format!(
        r#"{{"kind":"ConfigMapList","apiVersion":"v1","metadata":{{"resourceVersion":"{version}","continue":"{token}"}},"items":[{items}]}}"#
    )
}

fn frame(kind: &str, object: &str) -> String {
    format!("{{\"type\":\"{kind}\",\"object\":{object}}}\n")
}

/// With plain lists.
fn lists() -> Options {
    let watcher = watcher::Config { streaming: false, ..watcher::Config::default() };
    Options { watcher, ..Options::default() }
}

impl Play {
    fn new(style: Style, script: Vec<Answer>) -> Self {
        Self::with(style, lists(), script)
    }

    fn with(style: Style, options: Options, script: Vec<Answer>) -> Self {
        Self::of(&WatchSpec::all(CONFIGMAPS).labels("mirror=true"), style, options, script)
    }

    fn of(spec: &WatchSpec, style: Style, options: Options, script: Vec<Answer>) -> Self {
        Self::limited(WireLimits::DEFAULT, spec, style, options, script)
    }

    fn limited(
        limits: WireLimits,
        spec: &WatchSpec,
        style: Style,
        options: Options,
        script: Vec<Answer>,
    ) -> Self {
        let mut config = Config::new(Cluster::parse("https://kube:6443").unwrap());
        config.limits = limits;
        Self::configured(&config, spec, style, options, script)
    }

    fn configured(
        config: &Config,
        spec: &WatchSpec,
        style: Style,
        options: Options,
        script: Vec<Answer>,
    ) -> Self {
        let options = Options { decode_job: style.job, compact: style.compact, ..options };
        let source =
            Source::new(spec, options, Arc::new(Endpoint::new(config)), Authenticator::new(config), 1);
        let mut play = Self {
            source,
            style,
            now: Time::from_secs(1),
            script: script.into(),
            asked: vec![],
            requests: vec![],
            told: vec![],
            notices: vec![],
            stopped: false,
            to_say: false,
            said: false,
            open: None,
            opened: 0,
            closed: 0,
            followed: BTreeMap::new(),
        };
        play.feed(Input::Start);
        play
    }

    fn feed(&mut self, input: Input<'_>) {
        let mut out = Outputs::new();
        self.source.handle(self.now, input, &mut out);
        self.perform(out);
    }

    fn perform(&mut self, out: Outputs<Output>) {
        let mut bytes = None;
        let mut jobs = vec![];
        for output in out {
            match output {
                Output::Effect(Effect::Connect { conn, .. }) => {
                    if matches!(self.script.front(), Some(Answer::Refused)) {
                        self.script.pop_front();
                        let error =
                            NetError { kind: NetErrorKind::Refused, message: "kube:6443: refused".into() };
                        return self.feed(Input::Net { conn, event: NetEvent::ConnectFailed(&error) });
                    }
                    self.open = Some(conn);
                    self.opened += 1;
                    return self.feed(Input::Net { conn, event: NetEvent::Connected { reused: false } });
                }
                Output::Effect(Effect::Write { conn, bytes: request }) => {
                    let request = String::from_utf8(request.0).unwrap();
                    self.asked.push(request.split(' ').nth(1).unwrap().to_string());
                    self.requests.push(request);
                    bytes = Some(conn);
                }
                Output::Effect(Effect::Close { .. }) => self.closed += 1,
                Output::Effect(_) => {}
                Output::Decode(job) => jobs.push(job),
                Output::Delta(delta) => {
                    for change in delta.changes.iter() {
                        // Whoever acts on a difference finds it in the view: a reconcile never sees the state before.
                        if let Change::Added { new, .. } | Change::Updated { new, .. } = &change {
                            assert!(delta.view.contains(&new.key()), "{new:?} is not in the view");
                        }
                        self.told.push(match change {
                            Change::Added { new, initial } => {
                                format!("+{:?}{}", new, if initial { " first" } else { "" })
                            }
                            Change::Updated { old, new, .. } => format!("{old:?} -> {new:?}"),
                            Change::Deleted { old, final_unknown } => {
                                format!("-{old:?}{}", if final_unknown { "?" } else { "" })
                            }
                        });
                    }
                    self.follow(&delta);
                    self.told.push(format!("synced={} at {}", delta.synced, delta.resource_version));
                    assert!(!self.to_say, "synced, but not said");
                    self.to_say = delta.synced && !self.said;
                }
                Output::Synced => {
                    assert!(self.to_say, "not just synced for the first time");
                    (self.to_say, self.said) = (false, true);
                }
                Output::Notice(notice) => self.notices.push(notice),
                Output::Stopped => self.stopped = true,
            }
        }
        // Jobs come back after whatever else came in the same bytes.
        for job in jobs {
            let parts: Vec<_> = job.cut(2).into_iter().map(|r| job.decode(r)).collect();
            let decoded = job.join(parts);
            self.feed(Input::Decoded(decoded));
        }
        if let Some(conn) = bytes {
            self.answer(conn);
        }
    }

    /// Follows the changes, which must lead to the view.
    fn follow(&mut self, delta: &Delta<Object>) {
        for change in delta.changes.iter() {
            match change {
                Change::Added { new, .. } => {
                    let old = self.followed.insert(new.key(), new.clone());
                    assert!(old.is_none(), "{old:?} is there, and {new:?} is added");
                }
                Change::Updated { new, .. } => {
                    assert!(self.followed.insert(new.key(), new.clone()).is_some(), "{new:?} is new");
                }
                Change::Deleted { old, .. } => {
                    assert!(self.followed.remove(&old.key()).is_some(), "{old:?} is not there");
                }
            }
        }
        let uids = |o: &Object| o.uid().to_string();
        let followed = self.followed.iter().map(|(k, o)| (k.clone(), uids(o)));
        let view: Vec<_> = delta.view.iter().map(|(k, o)| (k.clone(), uids(&o))).collect();
        assert_eq!(followed.collect::<Vec<_>>(), view, "the changes do not lead to the view");
    }

    fn answer(&mut self, conn: ConnId) {
        let (text, cut) = match self.script.pop_front() {
            Some(Answer::Bytes(text)) => (text.into_bytes(), false),
            Some(Answer::Raw(bytes)) => (bytes, false),
            Some(Answer::Cut(text)) => (text.into_bytes(), true),
            _ => return,
        };
        for piece in text.chunks(self.style.cut) {
            self.feed(Input::Net { conn, event: NetEvent::Received(piece) });
        }
        if cut {
            self.feed(Input::Net { conn, event: NetEvent::Eof });
        }
    }

    /// Bytes of the answer that is being read.
    fn hear(&mut self, bytes: &[u8]) {
        let conn = self.open.expect("a connection");
        for piece in bytes.chunks(self.style.cut) {
            self.feed(Input::Net { conn, event: NetEvent::Received(piece) });
        }
    }

    fn errors(&self) -> Vec<&str> {
        self.notices
            .iter()
            .filter_map(|n| match n {
                Notice::Failed { error, .. } => Some(error.as_str()),
                _ => None,
            })
            .collect()
    }

    /// Lets `seconds` pass, with all deadlines that are due in them.
    fn pass(&mut self, seconds: u64) {
        let until = self.now + Duration::from_secs(seconds);
        while self.source.next_deadline().is_some_and(|d| d.at <= until) {
            self.sleep();
        }
        self.now = until;
    }

    /// Lets time pass up to the next deadline.
    fn sleep(&mut self) {
        let deadline = self.source.next_deadline().expect("something is waited for");
        self.now = deadline.at;
        self.feed(Input::Deadline);
        let next = self.source.next_deadline();
        assert!(next.is_none_or(|d| d.at > deadline.at), "{next:?} again after {deadline:?}");
    }

    fn names(&self) -> Vec<String> {
        self.source.snapshot().iter().map(|(_, o)| format!("{}@{}", o.name(), o.resource_version())).collect()
    }
}

/// The last delta of each state must be the same whatever the style; deltas themselves may be cut differently.
fn told_changes(play: &Play) -> Vec<String> {
    play.told.iter().filter(|t| !t.starts_with("synced")).cloned().collect()
}

#[test]
fn two_pages_then_a_watch_then_a_cut_in_mid_line() {
    let mut seen = vec![];
    for style in STYLES {
        let first = frame("ADDED", &object("c", "u3", 12)) + &frame("MODIFIED", &object("a", "u1", 13));
        let cut = watch(&first, false) + "40\r\n{\"type\":\"DELE";
        let play = Play::new(
            style,
            vec![
                Answer::Bytes(json(&list(10, "more", &[object("a", "u1", 5)]))),
                Answer::Bytes(json(&list(11, "", &[object("b", "u2", 6)]))),
                Answer::Cut(cut),
                Answer::Bytes(watch(&frame("DELETED", &object("b", "u2", 14)), false)),
            ],
        );
        let mut play = play;
        play.sleep();
        assert_eq!(play.names(), ["a@13", "c@12"], "{style:?}");
        assert!(
            play.asked[0].starts_with("/api/v1/configmaps?labelSelector=mirror%3Dtrue&limit=500"),
            "{:?}",
            play.asked
        );
        assert!(play.asked[1].contains("continue=more"));
        assert!(
            play.asked[2].contains("watch=true") && play.asked[2].contains("resourceVersion=10"),
            "{:?}",
            play.asked
        );
        assert!(play.asked[3].contains("resourceVersion=13"), "{:?}", play.asked);
        assert_eq!(play.source.status().objects, 2);
        seen.push((
            told_changes(&play),
            play.asked.iter().map(|a| a.split("timeout").next().unwrap().to_string()).collect::<Vec<_>>(),
        ));
    }
    assert!(seen.iter().all(|s| *s == seen[0]), "{seen:#?}");
}

#[test]
fn an_expired_watch_is_listed_again_and_hidden_deletions_are_found() {
    for style in STYLES {
        let gone =
            r#"{"kind":"Status","status":"Failure","reason":"Expired","code":410,"message":"too old"}"#;
        let mut play = Play::new(
            style,
            vec![
                Answer::Bytes(json(&list(10, "", &[object("a", "u1", 5), object("b", "u2", 6)]))),
                // More frames than the watcher wants stand in the same bytes.
                Answer::Bytes(watch(
                    &(frame("ERROR", gone) + &frame("ADDED", &object("x", "u9", 11))),
                    false,
                )),
                Answer::Bytes(json(&list(20, "", &[object("a", "u1", 5)]))),
                Answer::Bytes(watch("", false)),
            ],
        );
        while play.asked.len() < 4 {
            play.sleep();
        }
        assert_eq!(play.names(), ["a@5"], "{style:?}");
        assert_eq!(told_changes(&play).iter().filter(|t| t.starts_with('-')).count(), 1, "{:?}", play.told);
        assert!(play.told.iter().any(|t| t.ends_with('?')), "{:?}", play.told);
    }
}

#[test]
fn refusals_say_why_and_are_tried_again() {
    for style in STYLES {
        let forbidden = r#"{"kind":"Status","status":"Failure","message":"configmaps is forbidden","reason":"Forbidden","code":403}"#;
        let mut play = Play::new(
            style,
            vec![
                Answer::Refused,
                Answer::Bytes(http(403, forbidden)),
                Answer::Bytes(
                    "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 13\r\n\r\n<html>sign in"
                        .into(),
                ),
                Answer::Bytes(json(r#"{"kind":"Table","rows":[]}"#)),
                Answer::Bytes(json(&list(10, "", &[object("a", "u1", 5)]))),
            ],
        );
        while play.names().is_empty() {
            play.sleep();
        }
        let errors: Vec<_> = play
            .notices
            .iter()
            .filter_map(|n| match n {
                Notice::Failed { error, .. } => Some(error.as_str()),
                _ => None,
            })
            .collect();
        for (error, wanted) in errors.iter().zip(["refused", "forbidden", "text/html", "Table"]) {
            assert!(error.contains(wanted), "{errors:?}");
        }
        assert_eq!(errors.len(), 4, "{errors:?}");
    }
}

#[test]
fn a_bad_object_costs_only_itself() {
    for style in STYLES {
        let play = Play::new(
            style,
            vec![
                Answer::Bytes(json(&list(10, "", &[object("a", "u1", 5), r#"{"spec":{}}"#.into()]))),
                Answer::Bytes(watch(
                    &(frame("ADDED", r#"{"metadata":7}"#)
                        + "<oops>\n"
                        + &frame("ADDED", &object("b", "u2", 12))),
                    false,
                )),
            ],
        );
        assert_eq!(play.names(), ["a@5", "b@12"], "{style:?}");
        let bad = play.notices.iter().filter(|n| matches!(n, Notice::Quarantined(_))).count();
        assert_eq!(bad, 3, "{:?}", play.notices);
    }
}

#[test]
fn stop_closes_the_connection_and_is_the_end() {
    let mut play =
        Play::new(STYLES[0], vec![Answer::Bytes(json(&list(10, "", &[]))), Answer::Bytes(watch("", false))]);
    let closed = play.closed;
    play.feed(Input::Stop);
    assert!(play.stopped && play.closed == closed + 1);
    assert_eq!(play.source.next_deadline(), None);
    let conn = play.open.unwrap();
    let told = play.told.len();
    play.feed(Input::Net {
        conn,
        event: NetEvent::Received(frame("ADDED", &object("z", "u", 50)).as_bytes()),
    });
    play.feed(Input::Start);
    assert_eq!(
        (play.told.len(), play.source.snapshot().get(&Key::namespaced("d", "z")).is_some()),
        (told, false)
    );
}

#[test]
fn a_list_and_a_watch_that_come_as_gzip() {
    const HEAD: &str = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Encoding: gzip\r\n";
    for style in STYLES {
        let body = member(list(10, "", &[object("a", "u1", 5), object("b", "u2", 6)]).as_bytes());
        let list = [format!("{HEAD}Content-Length: {}\r\n\r\n", body.len()).as_bytes(), &body].concat();
        // One member an event, as streams are compressed; no end follows.
        let mut stream = format!("{HEAD}Transfer-Encoding: chunked\r\n\r\n").into_bytes();
        for event in [frame("ADDED", &object("c", "u3", 12)), frame("DELETED", &object("b", "u2", 14))] {
            write_chunk(&mut stream, &member(event.as_bytes()));
        }
        let play = Play::new(style, vec![Answer::Raw(list), Answer::Raw(stream)]);
        assert_eq!(play.names(), ["a@5", "c@12"], "{style:?}");
        assert_eq!(play.source.snapshot().resource_version(), "14", "nothing is held back");
        let accepts = |n: usize| {
            play.requests[n].lines().find_map(|l| l.strip_prefix("Accept-Encoding: ")).unwrap().to_string()
        };
        assert_eq!((accepts(0), accepts(1)), ("gzip".into(), "identity".into()));
    }
}
