//! Odd streams of watch frames, each whole, byte by byte, with late decode jobs, and in two pieces cut at every offset.

use super::lessons::{a, bookmark, end_bookmark, first, streaming};
use super::*;

/// What came of a stream, from its first frame to the next request.
#[derive(Clone, Debug, PartialEq)]
struct Verdict {
    changes: Vec<String>,
    names: Vec<String>,
    /// Errors, and what was kept aside.
    trouble: Vec<String>,
    /// The next request in short: `watch 12`, `list 12`, `list`, `stream`.
    next: String,
}

pub(super) fn short(target: &str) -> String {
    let version = target.split(['?', '&']).find_map(|p| p.strip_prefix("resourceVersion=")).unwrap_or("");
    let kind = match (target.contains("watch=true"), target.contains("sendInitialEvents=true")) {
        (_, true) => "stream",
        (true, false) => "watch",
        (false, false) => "list",
    };
    format!("{kind} {version}").trim_end().to_string()
}

/// Plays `parts` as the body of the first watch, which then ends in order.
fn verdict(style: Style, stream: bool, parts: &[&[u8]]) -> Verdict {
    let mut play = if stream {
        Play::with(style, streaming(), vec![Answer::Bytes(watch("", false))])
    } else {
        Play::new(style, first(&[a()]))
    };
    let (told, noticed, asked) = (play.told.len(), play.notices.len(), play.asked.len());
    let end: &[u8] = b"0\r\n\r\n";
    for part in parts.iter().copied().filter(|p| !p.is_empty()).chain([end]) {
        // What comes after an answer that is no longer wanted has no reader.
        if play.closed == play.opened || play.asked.len() > asked {
            break;
        }
        let mut framed = vec![];
        if part == end {
            framed.extend_from_slice(end);
        } else {
            write_chunk(&mut framed, part);
        }
        play.hear(&framed);
    }
    while play.asked.len() == asked {
        play.sleep();
    }
    let trouble = play.notices[noticed..].iter().filter_map(|n| match n {
        Notice::Failed { error, .. } => Some(error.clone()),
        Notice::FellBack { error } => Some(format!("no streaming lists: {error}")),
        Notice::Quarantined(bad) => Some(format!("aside {:?}", bad.key)),
        Notice::Stale { key } => Some(format!("stale {key}")),
        Notice::UnknownType(kind) => Some(format!("unknown {kind}")),
        _ => None,
    });
    Verdict {
        changes: play.told[told..].iter().filter(|t| !t.starts_with("synced")).cloned().collect(),
        names: play.names(),
        trouble: trouble.collect(),
        next: short(&play.asked[asked]),
    }
}

/// The verdict, which must not hang on how the bytes come.
fn any_cut(what: &str, stream: bool, frames: &str) -> Verdict {
    let bytes = frames.as_bytes();
    let whole = verdict(STYLES[0], stream, &[bytes]);
    for style in STYLES {
        assert_eq!(verdict(style, stream, &[bytes]), whole, "{what}: {style:?}");
    }
    for cut in 1..bytes.len() {
        let (left, right) = bytes.split_at(cut);
        assert_eq!(verdict(STYLES[0], stream, &[left, right]), whole, "{what}: cut at {cut}");
    }
    whole
}

fn status(code: u16, reason: &str, message: &str) -> String {
    frame(
        "ERROR",
        &format!(
            r#"{{"kind":"Status","status":"Failure","message":"{message}","reason":"{reason}","code":{code}}}"#
        ),
    )
}

const UPDATED: &str = "ConfigMap(d/a @5) -> ConfigMap(d/a @12)";

/// What it is, the frames, the changes, the names in the end, the trouble, the next request.
type WatchRow<'a> = (&'a str, String, &'a [&'a str], &'a [&'a str], &'a [&'a str], &'a str);
/// The same without changes.
type StreamRow<'a> = (&'a str, String, &'a [&'a str], &'a [&'a str], &'a str);

/// After a list of `a` at 5 (uid `u1`), as of version 10.
#[test]
fn odd_frames_of_a_watch() {
    let a12 = || object("a", "u1", 12);
    let ending = r#"{"metadata":{"name":"a","namespace":"d","uid":"u1","resourceVersion":"12","deletionTimestamp":"2030-01-01T00:00:00Z","finalizers":["x.io/y"]}}"#;
    let not_the_end =
        r#"{"metadata":{"resourceVersion":"99","annotations":{"k8s.io/initial-events-end":"false"}}}"#;
    let lines = |frames: &[String]| frames.concat();
    let rows: Vec<WatchRow<'_>> = vec![
        ("ADDED of what is known", frame("ADDED", &a12()), &[UPDATED], &["a@12"], &[], "watch 12"),
        (
            "MODIFIED of what is not known",
            frame("MODIFIED", &object("n", "u9", 12)),
            &["+ConfigMap(d/n @12)"],
            &["a@5", "n@12"],
            &[],
            "watch 12",
        ),
        ("an end mark that says false", frame("BOOKMARK", not_the_end), &[], &["a@5"], &[PAUSE], "watch 99"),
        (
            "a bookmark without a version",
            lines(&[frame("BOOKMARK", r#"{"metadata":{}}"#), frame("MODIFIED", &a12())]),
            &[UPDATED],
            &["a@12"],
            &[],
            "watch 12",
        ),
        ("a bookmark of nothing but a version", bookmark(31), &[], &["a@5"], &[PAUSE], "watch 31"),
        (
            "lines that end in CR LF",
            lines(&[frame("ADDED", &object("b", "u2", 11)), frame("ADDED", &a12())]).replace('\n', "\r\n"),
            &["+ConfigMap(d/b @11)", UPDATED],
            &["a@12", "b@11"],
            &[],
            "watch 12",
        ),
        (
            "a deletion has a version of its own",
            frame("DELETED", &object("a", "u1", 57)),
            &["-ConfigMap(d/a @57)"],
            &[],
            &[],
            "watch 57",
        ),
        ("what is ending is still there", frame("MODIFIED", ending), &[UPDATED], &["a@12"], &[], "watch 12"),
        (
            "410 as the first frame",
            status(410, "Expired", "old"),
            &[],
            &["a@5"],
            &["410 Expired: old"],
            "list 10",
        ),
        (
            "410 after an event",
            lines(&[frame("MODIFIED", &a12()), status(410, "Expired", "old"), frame("ADDED", &object("x", "x", 13))]),
            &[UPDATED],
            &["a@12"],
            &["410 Expired: old"],
            "list 12",
        ),
        (
            "500 in mid-stream: something was lost",
            lines(&[frame("MODIFIED", &a12()), status(500, "", "nothing to tell of")]),
            &[UPDATED],
            &["a@12"],
            &["500: nothing to tell of"],
            "list 12",
        ),
        (
            "429 in mid-stream",
            status(429, "TooManyRequests", "busy"),
            &[],
            &["a@5"],
            &["429 TooManyRequests: busy"],
            "watch 10",
        ),
        (
            "an error without a code",
            frame("ERROR", r#"{"kind":"Status","status":"Failure","message":"cut","reason":"ClientWatchDecoding"}"#),
            &[],
            &["a@5"],
            &["500 ClientWatchDecoding: cut"],
            "list 10",
        ),
        (
            "the object before its type, and a member too many",
            format!(r#"{{"object":{},"more":[1,{{"type":"DELETED"}}],"type":"ADDED"}}{}"#, a12(), '\n'),
            &[UPDATED],
            &["a@12"],
            &[],
            "watch 12",
        ),
        (
            "no newline at the end",
            frame("DELETED", &a12()).trim_end().to_string(),
            &["-ConfigMap(d/a @12)"],
            &[],
            &[],
            "watch 12",
        ),
        (
            "a frame over several lines",
            "{\n  \"type\": \"MODIFIED\",\n  \"object\": {\n    \"metadata\": {\n      \"name\": \"a\",\n      \
             \"namespace\": \"d\",\n      \"uid\": \"u1\",\n      \"resourceVersion\": \"12\"\n    }\n  }\n}\n"
                .to_string(),
            &[UPDATED],
            &["a@12"],
            &[],
            "watch 12",
        ),
        (
            "deleted and made anew",
            lines(&[frame("DELETED", &object("a", "u1", 11)), frame("ADDED", &object("a", "u2", 12))]),
            &["-ConfigMap(d/a @11)", "+ConfigMap(d/a @12)"],
            &["a@12"],
            &[],
            "watch 12",
        ),
        (
            "made anew, and nobody told of the deletion",
            frame("MODIFIED", &object("a", "u2", 12)),
            &["-ConfigMap(d/a @5)?", "+ConfigMap(d/a @12)"],
            &["a@12"],
            &[],
            "watch 12",
        ),
        (
            "the same event three times, and an older one",
            lines(&[frame("MODIFIED", &a12()), frame("MODIFIED", &a12()), frame("ADDED", &a12()), frame("ADDED", &a())]),
            &[UPDATED],
            &["a@12"],
            &["stale d/a", "stale d/a", "stale d/a"],
            "watch 12",
        ),
        (
            "two frames on one line",
            lines(&[frame("ADDED", &object("b", "u2", 11)), frame("MODIFIED", &a12())]).replacen('\n', "", 1),
            &["+ConfigMap(d/b @11)", UPDATED],
            &["a@12", "b@11"],
            &[],
            "watch 12",
        ),
        (
            "frames that say nothing, and one that does",
            "{\"type\":\"ADDED\"}\n{\"object\":null,\"type\":\"MODIFIED\"}\n{}\nnull\n[]\n\"x\"\n7\n".to_string()
                + &frame("MODIFIED", &a12()),
            &[UPDATED],
            &["a@12"],
            &["aside None", "aside None", "aside None", "aside None", "aside None", "aside None", "aside None"],
            "watch 12",
        ),
        (
            "a type that nobody knows",
            lines(&[frame("RENAMED", &object("a", "u1", 11)), frame("MODIFIED", &a12())]),
            &[UPDATED],
            &["a@12"],
            &["unknown RENAMED"],
            "watch 12",
        ),
        (
            "a byte order mark",
            format!("\u{feff}{}", frame("MODIFIED", &a12())),
            &[UPDATED],
            &["a@12"],
            &[],
            "watch 12",
        ),
        (
            "blank lines to keep the connection alive",
            format!("\n\r\n{}\n\n{}\n", frame("ADDED", &object("b", "u2", 11)), frame("MODIFIED", &a12())),
            &["+ConfigMap(d/b @11)", UPDATED],
            &["a@12", "b@11"],
            &[],
            "watch 12",
        ),
        (
            "an object that cannot be read, between two that can",
            lines(&[
                frame("ADDED", &object("b", "u2", 11)),
                frame("ADDED", r#"{"metadata":{"name":"c","namespace":"d","labels":7,"resourceVersion":"11"}}"#),
                frame("MODIFIED", &a12()),
            ]),
            &["+ConfigMap(d/b @11)", UPDATED],
            &["a@12", "b@11"],
            &["aside Some(d/c)"],
            "watch 12",
        ),
        (
            "cut in the middle of a frame",
            frame("MODIFIED", &a12())[..60].to_string(),
            &[],
            &["a@5"],
            &[PAUSE],
            "watch 10",
        ),
    ];
    for (what, frames, changes, names, trouble, next) in rows {
        let got = any_cut(what, false, &frames);
        assert_eq!(got.changes, changes, "{what}");
        assert_eq!(got.names, names, "{what}");
        assert_eq!(got.trouble, trouble, "{what}");
        assert_eq!(got.next, next, "{what}");
    }
}

const PAUSE: &str = "the watch ended after 0 ms without news";
const EARLY: &str = "the stream ended before the end of the initial events";

/// As the first answer to a streaming list.
#[test]
fn odd_frames_of_a_streaming_list() {
    let (added, b) = (frame("ADDED", &a()), frame("ADDED", &object("b", "u2", 90)));
    let not_the_end =
        r#"{"metadata":{"resourceVersion":"99","annotations":{"k8s.io/initial-events-end":"false"}}}"#;
    let rows: Vec<StreamRow<'_>> = vec![
        ("whole", added.clone() + &b + &end_bookmark(100), &["a@5", "b@90"], &[PAUSE], "watch 100"),
        ("of nothing", end_bookmark(100), &[], &[PAUSE], "watch 100"),
        (
            "a bookmark before the end",
            added.clone() + &bookmark(80) + &b + &end_bookmark(100),
            &["a@5", "b@90"],
            &[PAUSE],
            "watch 100",
        ),
        (
            "an end mark that says false",
            added.clone() + &frame("BOOKMARK", not_the_end),
            &[],
            &[EARLY],
            "stream",
        ),
        ("no end mark", added.clone() + &b, &[], &[EARLY], "stream"),
        ("nothing at all", String::new(), &[], &[EARLY], "stream"),
        (
            "410 before the end",
            added.clone() + &status(410, "Expired", "old"),
            &[],
            &["410 Expired: old"],
            "stream",
        ),
        ("500 before the end", added.clone() + &status(500, "", "etcd"), &[], &["500: etcd"], "stream"),
        (
            "429 before the end",
            status(429, "TooManyRequests", "busy"),
            &[],
            &["429 TooManyRequests: busy"],
            "stream",
        ),
        (
            "refused by an error frame",
            status(422, "Invalid", "sendInitialEvents is forbidden"),
            &[],
            &["no streaming lists: 422 Invalid: sendInitialEvents is forbidden"],
            "list",
        ),
        (
            "changes before the end",
            added.clone()
                + &b
                + &frame("MODIFIED", &object("a", "u1", 95))
                + &frame("DELETED", &object("b", "u2", 96))
                + &end_bookmark(100),
            &["a@95"],
            &[PAUSE],
            "watch 100",
        ),
        (
            "an event behind the end mark",
            added.clone() + &end_bookmark(100) + &frame("MODIFIED", &object("a", "u1", 101)),
            &["a@101"],
            &[],
            "watch 101",
        ),
        ("no newline at the end", added + end_bookmark(100).trim_end(), &["a@5"], &[PAUSE], "watch 100"),
    ];
    for (what, frames, names, trouble, next) in rows {
        let got = any_cut(what, true, &frames);
        assert_eq!(got.names, names, "{what}");
        assert_eq!(got.trouble, trouble, "{what}");
        assert_eq!(got.next, next, "{what}");
    }
}
