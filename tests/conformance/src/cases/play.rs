//! A source whose server answers with the bytes of a case.

use std::sync::Arc;

use steersman_core::api::kinds::PODS;
use steersman_core::auth::Authenticator;
use steersman_core::client::{Effect, Endpoint};
use steersman_core::controller::WatchSpec;
use steersman_core::machine::{Machine, Outputs};
use steersman_core::net::{ConnId, NetEvent};
use steersman_core::source::{Input, Options, Output, Source};
use steersman_core::store::Change;
use steersman_core::time::Time;
use steersman_core::watcher::Notice;

use super::http::config;
use super::{Findings, same_for_all_cuts};

/// Which request the case answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Answering {
    /// The first list.
    List,
    /// The watch after a list of one object `a` at version 5, uid `u1`.
    Watch,
    /// A streaming list.
    Stream,
}

/// A list to start from, at a version below all of the case's.
const FIRST: &str = r#"{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"9"},"items":[{"metadata":{"name":"a","namespace":"default","uid":"u1","resourceVersion":"5"}}]}"#;

/// Frames without HTTP around them: as a watch, and as a streaming list.
pub(super) fn run_watch(bytes: &[u8]) -> Findings {
    let mut found = Findings::default();
    for (what, ask) in [("watch", Answering::Watch), ("stream", Answering::Stream)] {
        let lines = same_for_all_cuts(what, bytes, &mut found, |parts| {
            let chunked: Vec<Vec<u8>> = parts.iter().filter(|p| !p.is_empty()).map(|p| chunk(p)).collect();
            let mut all: Vec<&[u8]> = vec![HEAD];
            all.extend(chunked.iter().map(Vec::as_slice));
            all.push(b"0\r\n\r\n");
            play(ask, &all, false)
        });
        for line in lines {
            found.say(format!("{what}: {line}"));
        }
    }
    found
}

const HEAD: &[u8] =
    b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n";

fn chunk(bytes: &[u8]) -> Vec<u8> {
    let mut out = format!("{:x}\r\n", bytes.len()).into_bytes();
    out.extend_from_slice(bytes);
    out.extend_from_slice(b"\r\n");
    out
}

/// What a source says while and after its server answers with `parts`, up to its next request. `eof`: the server ends
/// the connection after them.
pub(super) fn play(ask: Answering, parts: &[&[u8]], eof: bool) -> Vec<String> {
    let mut options = Options::default();
    options.watcher.streaming = ask == Answering::Stream;
    let config = config();
    let spec = WatchSpec::all(PODS);
    let source =
        Source::new(&spec, options, Arc::new(Endpoint::new(&config)), Authenticator::new(&config), 1);
    let mut rig =
        Rig { source, now: Time::from_secs(1), conn: None, asked: 0, changes: Vec::new(), lines: Vec::new() };
    rig.feed(Input::Start);
    rig.lines.clear();
    if ask == Answering::Watch {
        let list = format!(
            "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{FIRST}",
            FIRST.len()
        );
        rig.receive(list.as_bytes());
        rig.lines.clear();
        rig.changes.clear();
    }
    let before = rig.asked;
    for part in parts {
        // Bytes after the answer have no reader; a new request gets a new answer.
        if rig.asked > before {
            break;
        }
        rig.receive(part);
    }
    if eof
        && rig.asked == before
        && let Some(conn) = rig.conn
    {
        rig.feed(Input::Net { conn, event: NetEvent::Eof });
    }
    // A pause, a silence, a guard: at most a few deadlines lie before the next request.
    for _ in 0..8 {
        if rig.asked > before {
            break;
        }
        let Some(deadline) = rig.source.next_deadline() else { break };
        rig.lines.push(format!("after {:?}, {}", deadline.at.since(rig.now), deadline.why));
        rig.now = deadline.at;
        rig.feed(Input::Deadline);
    }
    let objects: Vec<String> = (rig.source.snapshot().iter())
        .map(|(key, o)| format!("{key}@{} {}", o.resource_version(), o.uid()).trim_end().to_owned())
        .collect();
    // One after the other: how differences are bundled hangs on the cuts.
    let mut lines = rig.changes;
    lines.append(&mut rig.lines);
    lines.push(format!("store [{}]", objects.join(", ")));
    lines
}

struct Rig {
    source: Source,
    now: Time,
    conn: Option<ConnId>,
    asked: usize,
    /// What subscribers are told.
    changes: Vec<String>,
    /// Requests, notices and waits.
    lines: Vec<String>,
}

impl Rig {
    fn receive(&mut self, bytes: &[u8]) {
        if let Some(conn) = self.conn {
            self.feed(Input::Net { conn, event: NetEvent::Received(bytes) });
        }
    }

    fn feed(&mut self, input: Input<'_>) {
        let mut out = Outputs::new();
        self.source.handle(self.now, input, &mut out);
        let mut opened = None;
        for output in out {
            match output {
                Output::Effect(Effect::Connect { conn, .. }) => {
                    self.conn = Some(conn);
                    opened = Some(conn);
                }
                Output::Effect(Effect::Write { bytes, .. }) => {
                    self.asked += 1;
                    let text = String::from_utf8_lossy(&bytes.0).into_owned();
                    let target = text.split(' ').nth(1).unwrap_or_default();
                    // Random, and of no interest here.
                    let target: Vec<_> =
                        target.split('&').filter(|p| !p.starts_with("timeoutSeconds")).collect();
                    self.lines.push(format!("asks {}", target.join("&")));
                }
                Output::Effect(Effect::Close { conn }) if self.conn == Some(conn) => self.conn = None,
                Output::Delta(delta) => {
                    for change in &delta.changes {
                        self.changes.push(told(&change));
                    }
                }
                Output::Notice(notice) => self.lines.extend(heard(&notice)),
                _ => {}
            }
        }
        if let Some(conn) = opened {
            self.feed(Input::Net { conn, event: NetEvent::Connected { reused: false } });
        }
    }
}

fn told<T: std::fmt::Debug>(change: &Change<T>) -> String {
    match change {
        Change::Added { new, .. } => format!("added {new:?}"),
        Change::Updated { new, .. } => format!("updated {new:?}"),
        Change::Deleted { old, final_unknown } => {
            format!("deleted {old:?}{}", if *final_unknown { ", final state unknown" } else { "" })
        }
    }
}

fn heard(notice: &Notice) -> Option<String> {
    Some(match notice {
        Notice::Listing | Notice::Watching { .. } | Notice::Synced { .. } => return None,
        Notice::Failed { verb, error, failures, delay } => {
            format!("{verb} failed ({failures}), again in {:.1} s: {error}", delay.as_secs_f64())
        }
        Notice::Expired { error } => format!("expired: {error}"),
        Notice::FellBack { error } => format!("no streaming lists any more: {error}"),
        Notice::Quarantined(bad) => {
            let key = bad.key.as_ref().map_or_else(|| "an object".to_owned(), |k| format!("{k}"));
            format!("quarantined {key}: {}", bad.error)
        }
        other => format!("{other:?}"),
    })
}
