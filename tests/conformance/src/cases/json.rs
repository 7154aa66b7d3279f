//! JSON documents: as an object, a frame, a list and an error body, whatever they are.

use std::time::Duration;

use steersman_core::api::kinds::PODS;
use steersman_core::api::{AnswerError, Raw, Status};
use steersman_core::object::{Key, Object, ObjectOptions};
use steersman_core::source::decode::{decode_frame, decode_item};
use steersman_core::watcher::{BadObject, Frame};
use steersman_core::wire::Piece;
use steersman_core::wire::framing::FrameSplitter;
use steersman_core::wire::list::ListSplitter;

use super::{Findings, brief, play, same_for_all_cuts};

const LIMIT: usize = 16 * 1024 * 1024;

pub(super) fn run(name: &str, bytes: &[u8]) -> Findings {
    let mut found = Findings::default();
    if name.contains("/status/") {
        status(name, bytes, &mut found);
        return found;
    }
    if name.ends_with(".ndjson") {
        return play::run_watch(bytes);
    }
    let options = ObjectOptions::of(&PODS);
    let item = decode_item(bytes, &options);
    found.say(format!("item: {}", object(&item)));
    if let Ok(object) = &item {
        found.say(format!("  as a value: {}", value(object)));
    }
    let get: Result<Object, AnswerError> = Raw(bytes.to_vec()).read();
    found.say(format!("get: {}", get.map_or_else(|e| e.to_string(), |o| format!("{o:?}"))));
    let mut line = br#"{"type":"ADDED","object":"#.to_vec();
    line.extend(bytes.iter().filter(|b| **b != b'\n'));
    line.extend_from_slice(b"}\n");
    for line in same_for_all_cuts("frame", &line, &mut found, |parts| frames(parts, &options)) {
        found.say(format!("frame: {line}"));
    }
    let events = name.contains("watch-events");
    if events && let Ok(events) = serde_json::from_slice::<Vec<serde_json::Value>>(bytes) {
        for event in events {
            found.say(format!("event: {}", frame(decode_frame(event.to_string().as_bytes(), &options))));
        }
    }
    for line in same_for_all_cuts("list", bytes, &mut found, |parts| list(parts, &options)) {
        found.say(format!("list: {line}"));
    }
    found
}

fn object(result: &Result<Object, BadObject>) -> String {
    match result {
        Ok(o) => {
            let mut text = format!("{o:?}, {} bytes", o.raw().len());
            for (name, value) in o.annotations() {
                text.push_str(&format!(", annotation {name}={value:?}"));
            }
            let labels: Vec<_> = o.labels().map(|(n, v)| format!("{n}={v}")).collect();
            if !labels.is_empty() {
                text.push_str(&format!(", labels {}", labels.join(",")));
            }
            if !o.owner_references().is_empty() {
                text.push_str(&format!(", {} owners", o.owner_references().len()));
            }
            text
        }
        Err(bad) => quarantined(bad.key.as_ref(), &bad.error),
    }
}

fn quarantined(key: Option<&Key>, error: &str) -> String {
    key.map_or_else(|| format!("unreadable: {error}"), |key| format!("{key} unreadable: {error}"))
}

/// What a user's type gets to see.
fn value(object: &Object) -> String {
    match object.value() {
        Ok(value) => {
            let text = value.to_string();
            brief(&text, 120)
        }
        Err(e) => format!("{e}"),
    }
}

fn frame(frame: Frame<Object>) -> String {
    match frame {
        Frame::Added(o) => format!("added {}", object(&Ok(o))),
        Frame::Modified(o) => format!("modified {o:?}"),
        Frame::Deleted(o) => format!("deleted {o:?}"),
        Frame::Bad(bad) => quarantined(bad.key.as_ref(), &bad.error),
        other => format!("{other:?}"),
    }
}

fn frames(parts: &[&[u8]], options: &ObjectOptions) -> Vec<String> {
    let mut splitter = FrameSplitter::new(LIMIT);
    let mut lines = Vec::new();
    let mut take = |piece: Piece<'_>| {
        lines.push(match piece {
            Piece::Value(raw) => frame(decode_frame(raw, options)),
            other => format!("{other:?}"),
        });
    };
    for part in parts {
        let input = &mut &part[..];
        while let Some(piece) = splitter.next(input) {
            take(piece);
        }
    }
    if let Some(piece) = splitter.finish() {
        take(piece);
    }
    lines
}

fn list(parts: &[&[u8]], options: &ObjectOptions) -> Vec<String> {
    let mut splitter = ListSplitter::new(LIMIT);
    let mut lines = Vec::new();
    for part in parts {
        let input = &mut &part[..];
        loop {
            match splitter.next(input) {
                Ok(Some(Piece::Value(raw))) => lines.push(object(&decode_item(raw, options))),
                Ok(Some(other)) => lines.push(format!("{other:?}")),
                Ok(None) => break,
                Err(e) => {
                    lines.push(format!("{e}"));
                    return lines;
                }
            }
        }
    }
    match splitter.finish() {
        Ok(head) => lines.push(format!("{head:?}")),
        Err(e) => lines.push(format!("{e}")),
    }
    lines
}

fn status(name: &str, bytes: &[u8], found: &mut Findings) {
    let base = name.rsplit('/').next().unwrap_or_default();
    // The files are named after their codes.
    let code: u16 = base.get(..3).and_then(|c| c.parse().ok()).unwrap_or(match base {
        "rancher-error.json" => 401,
        "status-200-failure.json" => 200,
        _ => 500,
    });
    let plain = base.ends_with(".txt");
    let content_type = if plain { "text/plain; charset=utf-8" } else { "application/json" };
    if code == 200 {
        let get: Result<Object, AnswerError> = Raw(bytes.to_vec()).read();
        found.say(format!("get: {}", get.map_or_else(|e| e.to_string(), |o| format!("{o:?}"))));
    } else {
        let status = Status::from_response(code, Some(content_type), bytes);
        let is = [
            ("not found", status.is_not_found()),
            ("object not found", status.is_object_not_found()),
            ("conflict", status.is_conflict()),
            ("already exists", status.is_already_exists()),
            ("expired", status.is_expired()),
            ("too large version", status.is_too_large_resource_version()),
            ("forbidden", status.is_forbidden()),
            ("namespace terminating", status.is_namespace_terminating()),
            ("unauthorized", status.is_unauthorized()),
            ("invalid", status.is_invalid()),
            ("too many requests", status.is_too_many_requests()),
        ];
        let is: Vec<_> = is.into_iter().filter_map(|(name, is)| is.then_some(name)).collect();
        found.say(format!("status: {status} [{}]", is.join(", ")));
        let causes = status.details.iter().flat_map(|d| &d.causes).count();
        if causes > 0 {
            let fields: Vec<_> = status.conflicting_fields().map(|(f, _)| f).collect();
            found.say(format!("  {causes} causes, conflicting fields {fields:?}"));
        }
        if let Some(wait) = status.retry_after() {
            found.say(format!("  retry after {:?}", Duration::from_secs(wait.as_secs())));
        }
    }
    let head = format!(
        "HTTP/1.1 {code} X\r\nContent-Type: {content_type}\r\nContent-Length: {}\r\n\r\n",
        bytes.len()
    );
    let mut answer = head.into_bytes();
    answer.extend_from_slice(bytes);
    let kinds = [
        ("list", play::Answering::List),
        ("watch", play::Answering::Watch),
        ("stream", play::Answering::Stream),
    ];
    for (what, ask) in kinds {
        for line in same_for_all_cuts(what, &answer, found, |parts| play::play(ask, parts, false)) {
            found.say(format!("{what}: {line}"));
        }
    }
}
