//! The watcher and its store, told and answered in text.
//!
//! A transcript is a list of inputs, each at a time, with what followed from it indented below. Run with
//! `STEERSMAN_BLESS=1` to rewrite what followed; then read the difference.
//!
//! ```text
//! config page_size=2               settings, first
//! @0 start                         an input at a time in seconds
//! @+1.5 item 1 a:u1:5              ... or that long after the one before; objects are name:uid:version
//! next                             the next deadline
//! ```

#![expect(clippy::disallowed_methods, reason = "the test reads and rewrites its files; the core does not")]

use std::fmt::Write as _;
use std::path::Path;
use std::time::Duration;
use std::{env, fs};

use steersman_core::api::{Status, StatusCause, StatusDetails};
use steersman_core::machine::{Machine, Outputs};
use steersman_core::object::{Key, OwnerReference, Resource};
use steersman_core::store::{Applied, Change, Store};
use steersman_core::time::Time;
use steersman_core::watcher::{
    Ask, BadObject, CloseReason, Config, Event, FirstState, Frame, Input, ListMeta, Notice, Output,
    Rejection, ReqId, Watcher,
};

#[derive(Clone, Debug, PartialEq)]
struct Obj {
    key: Key,
    uid: String,
    rv: String,
}

impl Resource for Obj {
    fn key(&self) -> Key {
        self.key.clone()
    }
    fn uid(&self) -> &str {
        &self.uid
    }
    fn resource_version(&self) -> &str {
        &self.rv
    }
    fn each_owner(&self, _: &mut dyn FnMut(&OwnerReference)) {}
}

impl Obj {
    fn parse(text: &str) -> Self {
        let mut parts = text.split(':');
        let mut part = || parts.next().unwrap_or("").to_string();
        let Ok(key) = part().parse();
        Self { key, uid: part(), rv: part() }
    }

    fn text(&self) -> String {
        format!("{}:{}:{}", self.key, self.uid, self.rv)
    }
}

struct Player {
    watcher: Watcher<Obj>,
    store: Store<Obj>,
    now: Time,
    out: Outputs<Output<Obj>>,
}

fn seconds(t: Time) -> String {
    let ms = t.as_nanos() / 1_000_000;
    format!("{}.{:03}", ms / 1000, ms % 1000)
}

fn duration(text: &str) -> Duration {
    Duration::from_secs_f64(text.parse().unwrap_or_else(|_| panic!("not a number of seconds: {text}")))
}

/// The value of `name=value` among words.
fn field<'a>(words: &[&'a str], name: &str) -> &'a str {
    words.iter().find_map(|w| w.strip_prefix(name)?.strip_prefix('=')).unwrap_or("")
}

fn status(words: &[&str]) -> (Status, Option<Duration>) {
    let plain: Vec<&str> = words.iter().filter(|w| !w.contains('=')).copied().collect();
    let code = plain.first().and_then(|w| w.parse().ok()).unwrap_or(0);
    let cause = field(words, "cause");
    let cause_message = field(words, "cause_message").replace('_', " ");
    let status = Status {
        status: "Failure".into(),
        code,
        reason: plain.get(1).unwrap_or(&"").to_string(),
        message: plain.iter().skip(2).copied().collect::<Vec<_>>().join(" "),
        details: (!cause.is_empty() || !cause_message.is_empty() || !field(words, "after").is_empty()).then(
            || StatusDetails {
                causes: vec![StatusCause {
                    reason: cause.into(),
                    message: cause_message,
                    ..StatusCause::default()
                }],
                retry_after_seconds: field(words, "after").parse().unwrap_or(0),
                ..StatusDetails::default()
            },
        ),
    };
    let header = field(words, "retry-after");
    (status, (!header.is_empty()).then(|| duration(header)))
}

fn bad(words: &[&str]) -> BadObject {
    let key = field(words, "key");
    BadObject {
        key: (!key.is_empty()).then(|| key.parse().unwrap()),
        resource_version: field(words, "rv").into(),
        error: "not readable".into(),
    }
}

fn input(text: &str) -> Input<Obj> {
    let words: Vec<&str> = text.split_whitespace().collect();
    let id = ReqId(words.get(1).and_then(|w| w.parse().ok()).unwrap_or(0));
    let rest = words.get(2..).unwrap_or(&[]);
    let object = || Obj::parse(rest[0]);
    match words[0] {
        "start" => Input::Start,
        "stop" => Input::Stop,
        "deadline" => Input::Deadline,
        "opened" => Input::Opened(id),
        "progress" => Input::Progress(id),
        "item" => Input::Item(id, object()),
        "bad-item" => Input::BadItem(id, bad(rest)),
        "list-end" => Input::ListEnd(
            id,
            ListMeta {
                resource_version: field(rest, "rv").into(),
                continue_token: field(rest, "continue").into(),
                remaining_item_count: None,
            },
        ),
        "added" => Input::Frame(id, Frame::Added(object())),
        "modified" => Input::Frame(id, Frame::Modified(object())),
        "deleted" => Input::Frame(id, Frame::Deleted(object())),
        "bookmark" => Input::Frame(
            id,
            Frame::Bookmark {
                resource_version: field(rest, "rv").into(),
                initial_events_end: rest.contains(&"end"),
            },
        ),
        "unknown" => Input::Frame(
            id,
            Frame::Unknown { kind: rest[0].into(), resource_version: field(rest, "rv").into() },
        ),
        "bad" => Input::Frame(id, Frame::Bad(bad(rest))),
        "error" => Input::Frame(id, Frame::Error(status(rest).0)),
        "rejected" => {
            let (status, retry_after) = status(rest);
            Input::Rejected(id, Rejection { code: status.code, status, retry_after })
        }
        "closed" => {
            let text = rest[1..].join(" ");
            Input::Closed(
                id,
                match rest[0] {
                    "clean" => CloseReason::Clean,
                    "refused" => CloseReason::Refused(text),
                    "broken" => CloseReason::Broken(text),
                    "protocol" => CloseReason::Protocol(text),
                    "timed-out" => CloseReason::TimedOut(text),
                    other => panic!("closed how? {other}"),
                },
            )
        }
        other => panic!("unknown input: {other}"),
    }
}

fn ask(ask: &Ask) -> String {
    match ask {
        Ask::List { limit, continue_token, resource_version } => {
            let mut s = String::from("list");
            for (name, value) in [
                ("limit", limit.map(|n| n.to_string())),
                ("continue", continue_token.clone()),
                ("rv", resource_version.clone()),
            ] {
                if let Some(value) = value {
                    let _ = write!(s, " {name}={value}");
                }
            }
            s
        }
        Ask::Watch { resource_version, timeout_seconds, send_initial_events } => {
            let initial = if *send_initial_events { " initial-events" } else { "" };
            format!("watch rv={resource_version} timeout={timeout_seconds}{initial}")
        }
    }
}

fn notice(n: &Notice) -> String {
    match n {
        Notice::Listing => "listing".into(),
        Notice::Synced { objects, resource_version } => format!("synced {objects} at {resource_version}"),
        Notice::Watching { resource_version } => format!("watching from {resource_version}"),
        Notice::Failed { verb, error, failures, delay } => {
            format!("{verb} failed ({failures}), again in {:.3}: {error}", delay.as_secs_f64())
        }
        Notice::Expired { error } => format!("expired: {error}"),
        Notice::WentBack { from, to } => format!("went back from {from} to {to}"),
        Notice::Silent { after } => format!("silent for {:.3}", after.as_secs_f64()),
        Notice::FellBack { error } => format!("fell back: {error}"),
        Notice::Quarantined(bad) => format!("quarantined {:?}: {}", bad.key, bad.error),
        Notice::Recovered(key) => format!("recovered {key}"),
        Notice::UnknownType(kind) => format!("unknown type {kind}"),
        other => format!("{other:?}"),
    }
}

fn event(e: &Event<Obj>) -> String {
    match e {
        Event::Init => "Init".into(),
        Event::InitApply(o) => format!("InitApply {}", o.text()),
        Event::InitKeep(k) => format!("InitKeep {k}"),
        Event::InitDone { resource_version } => format!("InitDone {resource_version}"),
        Event::Apply(o) => format!("Apply {}", o.text()),
        Event::Delete(o) => format!("Delete {}", o.text()),
        Event::Bookmark { resource_version } => format!("Bookmark {resource_version}"),
    }
}

fn change(c: &Change<Obj>) -> String {
    match c {
        Change::Added { new, initial } => {
            format!("+ {}{}", new.text(), if *initial { " initial" } else { "" })
        }
        Change::Updated { old, new, relisted } => {
            format!("~ {} -> {}{}", old.text(), new.text(), if *relisted { " relisted" } else { "" })
        }
        Change::Deleted { old, final_unknown } => {
            format!("- {}{}", old.text(), if *final_unknown { " final state unknown" } else { "" })
        }
    }
}

impl Player {
    fn play(&mut self, input: Input<Obj>, log: &mut String) {
        self.watcher.handle(self.now, input, &mut self.out);
        let mut changes = Vec::new();
        for output in self.out.drain() {
            let line = match &output {
                Output::Request(id, a) => format!("request {} {}", id.0, ask(a)),
                Output::Cancel(id) => format!("cancel {}", id.0),
                Output::Event(e) => format!("event {}", event(e)),
                Output::Notice(n) => format!("notice {}", notice(n)),
                other => format!("{other:?}"),
            };
            let _ = writeln!(log, "  {line}");
            if let Output::Event(e) = output {
                if let Applied::Stale(key) = self.store.apply(e, &mut changes) {
                    let _ = writeln!(log, "    stale {key}");
                }
                for c in changes.drain(..) {
                    let _ = writeln!(log, "    {}", change(&c));
                }
            }
        }
    }
}

fn config(words: &[&str]) -> Config {
    let mut config = Config { streaming: false, ..Config::default() };
    for word in words {
        match word.split_once('=').unwrap_or((word, "")) {
            ("page_size", n) => config.page_size = n.parse().ok(),
            ("cached", _) => config.first = FirstState::Cached,
            ("streaming", _) => config.streaming = true,
            ("repair", s) => config.repair = duration(s),
            (other, _) => panic!("unknown setting: {other}"),
        }
    }
    config
}

fn replay(text: &str) -> String {
    let first = text.lines().find_map(|l| l.strip_prefix("config ")).unwrap_or("");
    let mut player = Player {
        watcher: Watcher::new(config(&first.split_whitespace().collect::<Vec<_>>()), 1),
        store: Store::new(),
        now: Time::ZERO,
        out: Outputs::new(),
    };
    let mut log = String::new();
    for line in text.lines().filter(|l| !l.starts_with("  ")) {
        log.push_str(line);
        log.push('\n');
        if line == "next" {
            match player.watcher.next_deadline() {
                None => log.push_str("  no deadline\n"),
                Some(d) => {
                    let _ = writeln!(log, "  @{} {}", seconds(d.at), d.why);
                    player.now = d.at;
                    player.play(Input::Deadline, &mut log);
                    let after = player.watcher.next_deadline();
                    assert!(after.is_none_or(|a| a.at > d.at), "a served deadline came back: {line}\n{log}");
                }
            }
        } else if line == "status" {
            let s = player.watcher.status();
            let _ = writeln!(
                log,
                "  {:?} at {:?}, failures {}, events {}, relists {}, quarantined {}, dropped {}, error {:?}",
                s.phase,
                s.last_version,
                s.failures,
                s.events,
                s.relists,
                s.quarantine.len(),
                s.dropped,
                s.last_error
            );
            let _ = writeln!(
                log,
                "  store: {} objects at {:?}",
                player.store.len(),
                player.store.resource_version()
            );
        } else if let Some((at, text)) = line.strip_prefix('@').and_then(|l| l.split_once(' ')) {
            player.now = match at.strip_prefix('+') {
                Some(more) => player.now + duration(more),
                None => Time::ZERO + duration(at),
            };
            player.play(input(text), &mut log);
        }
    }
    log
}

#[test]
fn transcripts() {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/transcripts/watcher");
    let mut files: Vec<_> = fs::read_dir(&dir).unwrap().map(|f| f.unwrap().path()).collect();
    files.sort();
    assert!(files.len() >= 10, "the transcripts are gone");
    let mut failed = Vec::new();
    for file in files {
        let text = fs::read_to_string(&file).unwrap();
        let now = replay(&text);
        assert_eq!(now, replay(&text), "not the same twice: {}", file.display());
        if now == text {
            continue;
        }
        if env::var_os("STEERSMAN_BLESS").is_some() {
            fs::write(&file, now).unwrap();
            continue;
        }
        let at = now.lines().zip(text.lines()).position(|(a, b)| a != b);
        let at = at.unwrap_or_else(|| now.lines().count().min(text.lines().count()));
        failed.push(format!(
            "{}:{}\n  expected: {}\n  got:      {}",
            file.display(),
            at + 1,
            text.lines().nth(at).unwrap_or("(end)"),
            now.lines().nth(at).unwrap_or("(end)"),
        ));
    }
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}
