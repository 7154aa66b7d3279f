//! What went wrong in other runtimes, each from the bytes on: see `core/tests/KNOWN_BUGS.md`.

use super::*;

pub(super) const GONE: &str = r#"{"kind":"Status","status":"Failure","reason":"Expired","code":410,"message":"too old resource version"}"#;
const TOO_MANY: &str =
    "HTTP/1.1 429 X\r\nContent-Type: text/plain\r\nRetry-After: 1\r\nContent-Length: 4\r\n\r\nbusy";
const FORBIDDEN: &str =
    r#"{"kind":"Status","status":"Failure","message":"no","reason":"Forbidden","code":403}"#;

/// A list at 10 of these, then an open watch.
pub(super) fn first(objects: &[String]) -> Vec<Answer> {
    vec![Answer::Bytes(json(&list(10, "", objects))), Answer::Bytes(watch("", false))]
}

pub(super) fn a() -> String {
    object("a", "u1", 5)
}

fn chunk(frames: &str) -> String {
    format!("{:x}\r\n{frames}\r\n", frames.len())
}

pub(super) fn bookmark(version: u32) -> String {
    frame("BOOKMARK", &format!(r#"{{"metadata":{{"resourceVersion":"{version}"}}}}"#))
}

pub(super) fn end_bookmark(version: u32) -> String {
    let marked = r#""annotations":{"k8s.io/initial-events-end":"true"}"#;
    frame("BOOKMARK", &format!(r#"{{"metadata":{{"resourceVersion":"{version}",{marked}}}}}"#))
}

/// With streaming lists, as by default.
pub(super) fn streaming() -> Options {
    Options::default()
}

#[test]
fn a_list_refused_at_a_version_asks_for_the_latest_next() {
    let mut script = first(&[a()]);
    script[1] = Answer::Bytes(watch(&frame("ERROR", GONE), false));
    script.push(Answer::Bytes(http(410, GONE)));
    script.push(Answer::Bytes(json(&list(20, "", &[object("a", "u1", 15)]))));
    let mut play = Play::new(STYLES[0], script);
    play.pass(5);
    assert!(play.asked[2].contains("resourceVersion=10"), "{:?}", play.asked);
    assert!(!play.asked[3].contains("resourceVersion"), "{:?}", play.asked);
    assert!(play.asked[4].contains("resourceVersion=20"), "{:?}", play.asked);
    assert_eq!((play.names(), play.asked.len()), (vec!["a@15".into()], 5));
}

#[test]
fn a_watch_that_is_refused_with_410_is_listed_again() {
    for style in STYLES {
        let mut script = first(&[a(), object("b", "u2", 6)]);
        script[1] = Answer::Bytes(http(410, GONE));
        script.push(Answer::Bytes(json(&list(20, "", &[a()]))));
        let mut play = Play::new(style, script);
        play.pass(5);
        assert!(!play.asked[2].contains("watch=true"), "{:?}", play.asked);
        assert_eq!(play.names(), ["a@5"]);
    }
}

#[test]
fn a_relist_that_is_refused_for_a_while_is_tried_until_it_works() {
    let mut script = first(&[a()]);
    script[1] = Answer::Bytes(watch(&frame("ERROR", GONE), false));
    script.extend((0..3).map(|_| Answer::Bytes(TOO_MANY.into())));
    let mut play = Play::new(STYLES[1], script);
    play.pass(6);
    assert_eq!(play.names(), ["a@5"], "what is known stays");
    assert!(play.source.status().watcher.last_error.is_some_and(|e| e.contains("429")));
    play.script.push_back(Answer::Bytes(json(&list(20, "", &[object("c", "u3", 19)]))));
    play.script.push_back(Answer::Bytes(watch("", false)));
    play.pass(60);
    assert_eq!(play.names(), ["c@19"]);
    assert!(play.asked.last().is_some_and(|q| q.contains("watch=true") && q.contains("resourceVersion=20")));
}

#[test]
fn a_server_that_always_says_gone_is_asked_less_and_less() {
    let mut play = Play::new(STYLES[0], vec![]);
    for _ in 0..500 {
        play.script.push_back(Answer::Bytes(json(&list(10, "", &[a()]))));
        play.script.push_back(Answer::Bytes(watch(&frame("ERROR", GONE), true)));
    }
    play = Play::new(STYLES[0], play.script.into());
    play.pass(60);
    assert!((6..20).contains(&play.asked.len()), "{} requests in a minute", play.asked.len());
}

#[test]
fn a_server_that_ends_every_watch_at_once_is_asked_less_than_once_a_second() {
    let mut script = first(&[a()]);
    script.truncate(1);
    script.extend((0..500).map(|_| Answer::Bytes(watch("", true))));
    let mut play = Play::new(STYLES[0], script);
    let mut at = vec![];
    for _ in 0..12 {
        play.sleep();
        at.push(play.now);
        if play.asked.last().is_some_and(|q| !q.contains("watch=true")) {
            // The list that follows three of them wants an answer of its own.
            play.hear(json(&list(10, "", &[a()])).as_bytes());
        }
    }
    for pair in at.windows(2).skip(2) {
        assert!(pair[1].since(pair[0]) >= Duration::from_secs(1), "{at:?}");
    }
}

#[test]
fn a_list_that_is_always_refused_is_asked_less_and_less() {
    for options in [lists(), streaming()] {
        let script = (0..500).map(|_| Answer::Bytes(http(403, FORBIDDEN))).collect();
        let mut play = Play::with(STYLES[0], options, script);
        play.pass(60);
        assert!((4..10).contains(&play.asked.len()), "{} requests in a minute", play.asked.len());
    }
}

#[test]
fn one_watch_that_is_refused_slows_no_other() {
    let mut refused = Play::new(STYLES[0], (0..500).map(|_| Answer::Bytes(http(403, FORBIDDEN))).collect());
    let mut other = Play::new(STYLES[0], first(&[a()]));
    for n in 0..6 {
        refused.pass(7);
        other.pass(7);
        other.hear(chunk(&frame("MODIFIED", &object("a", "u1", 20 + n))).as_bytes());
        assert_eq!(other.names(), [format!("a@{}", 20 + n)], "in the same step");
    }
    assert!(!refused.source.status().watcher.synced && other.errors().is_empty());
}

#[test]
fn what_is_never_answered_is_given_up() {
    // Neither the list nor the watch gets a byte; the connection stands.
    let mut play = Play::new(STYLES[0], vec![]);
    play.pass(120);
    assert!(play.asked.len() > 1, "{:?}", play.asked);
    assert!(play.errors()[0].contains("waiting for"), "{:?}", play.errors());
    let mut script = first(&[a()]);
    script.truncate(1);
    let mut play = Play::new(STYLES[0], script);
    play.pass(120);
    // Whoever was away so long may have come back with older data: one object is asked for before the next watch.
    assert!(play.asked.len() > 2 && play.asked[2].contains("limit=1"), "{:?}", play.asked);
    // A body that stops in the middle of a list.
    let half = json(&list(10, "", &[a()]));
    let mut play = Play::new(STYLES[0], vec![Answer::Bytes(half[..half.len() - 20].into())]);
    play.pass(120);
    assert!(play.asked.len() > 1 && play.names().is_empty(), "{:?}", play.asked);
}

#[test]
fn a_silent_connection_is_found_out() {
    let mut play = Play::new(STYLES[0], first(&[a()]));
    play.hear(chunk(&frame("MODIFIED", &object("a", "u1", 11))).as_bytes());
    play.pass(600);
    assert!(
        play.asked.len() > 2 && play.asked[2..].iter().all(|q| !q.contains("limit=500")),
        "{:?}",
        play.asked
    );
    assert_eq!(play.names(), ["a@11"]);
}

#[test]
fn blank_lines_do_not_hide_that_a_watch_is_silent() {
    let mut play = Play::new(STYLES[0], first(&[a()]));
    for _ in 0..8 {
        play.pass(20);
        if play.asked.len() == 2 {
            play.hear(chunk("\n").as_bytes());
        }
    }
    assert!(
        play.asked[2].ends_with("limit=1"),
        "asked for its version within three minutes: {:?}",
        play.asked
    );
}

#[test]
fn a_relist_of_several_pages_is_seen_whole_or_not_at_all() {
    for style in STYLES {
        let mut script = first(&[a(), object("b", "u2", 6), object("z", "u9", 7)]);
        script[1] = Answer::Bytes(watch(&frame("ERROR", GONE), false));
        script.push(Answer::Bytes(http(410, GONE)));
        script.push(Answer::Bytes(json(&list(20, "p2", &[object("a", "u1", 15)]))));
        let mut play = Play::new(style, script);
        play.pass(5);
        // One page is in: nobody sees a new version of a, nor misses b.
        assert_eq!(play.names(), ["a@5", "b@6", "z@7"], "{style:?}");
        let before = told_changes(&play).len();
        let rest = json(&list(20, "", &[object("n", "u5", 16), object("z", "u9", 7)]));
        play.hear(rest.as_bytes());
        assert_eq!(play.names(), ["a@15", "n@16", "z@7"], "{style:?}");
        // The changed one with its new state, the new one, the one that went; not the one that stayed.
        assert_eq!(
            told_changes(&play)[before..],
            ["ConfigMap(d/a @5) -> ConfigMap(d/a @15)", "-ConfigMap(d/b @6)?", "+ConfigMap(d/n @16)"],
            "{style:?}"
        );
    }
}

#[test]
fn a_streamed_relist_is_seen_whole_or_not_at_all() {
    for style in STYLES {
        let initial = frame("ADDED", &a()) + &frame("ADDED", &object("b", "u2", 6)) + &end_bookmark(10);
        let gone = chunk(&frame("ERROR", GONE));
        let mut play = Play::with(style, streaming(), vec![Answer::Bytes(watch(&initial, false))]);
        play.script.push_back(Answer::Bytes(watch(&frame("ADDED", &object("a", "u1", 15)), false)));
        play.hear(gone.as_bytes());
        play.pass(5);
        assert!(play.asked[1].contains("sendInitialEvents=true"), "{:?}", play.asked);
        assert_eq!(play.names(), ["a@5", "b@6"], "{style:?}");
        let before = told_changes(&play).len();
        play.hear(chunk(&(frame("ADDED", &object("n", "u5", 16)) + &end_bookmark(20))).as_bytes());
        assert_eq!(play.names(), ["a@15", "n@16"], "{style:?}");
        assert_eq!(told_changes(&play).len() - before, 3, "{style:?}");
    }
}

#[test]
fn a_streaming_list_that_breaks_leaves_no_ghosts() {
    let ghost = frame("ADDED", &object("ghost", "u0", 4));
    let mut play = Play::with(
        STYLES[1],
        streaming(),
        vec![
            Answer::Cut(watch(&ghost, false)),
            Answer::Bytes(watch(&(frame("ADDED", &a()) + &end_bookmark(10)), false)),
        ],
    );
    play.pass(5);
    assert_eq!(play.names(), ["a@5"]);
    assert!(!play.told.iter().any(|t| t.contains("ghost")), "{:?}", play.told);
}

#[test]
fn a_resumed_watch_asks_for_no_initial_events() {
    let initial = frame("ADDED", &a()) + &end_bookmark(120);
    let mut play = Play::with(STYLES[0], streaming(), vec![Answer::Bytes(watch(&initial, false))]);
    play.pass(100);
    play.script.push_back(Answer::Bytes(watch(&bookmark(130), false)));
    play.hear(b"0\r\n\r\n");
    play.pass(5);
    assert!(play.asked[1].contains("resourceVersion=120") && !play.asked[1].contains("sendInitial"));
    play.hear(chunk(&frame("MODIFIED", &object("a", "u1", 131))).as_bytes());
    assert_eq!(play.names(), ["a@131"], "live at once, and a bookmark resets nothing");
}

#[test]
fn an_overloaded_server_keeps_its_streaming_lists() {
    let script = (0..5).map(|_| Answer::Bytes(TOO_MANY.into())).collect();
    let mut play = Play::with(STYLES[0], streaming(), script);
    play.script.push_back(Answer::Bytes(watch(&(frame("ADDED", &a()) + &end_bookmark(10)), false)));
    play.pass(60);
    assert!(play.asked.iter().all(|q| q.contains("sendInitialEvents=true")), "{:?}", play.asked);
    assert_eq!((play.names(), play.errors().len()), (vec!["a@5".into()], 5));
}

#[test]
fn watches_that_end_in_order_are_neither_errors_nor_lists() {
    let mut play = Play::new(STYLES[0], first(&[a()]));
    for n in 0..20 {
        play.pass(20);
        play.hear(chunk(&bookmark(100 + n)).as_bytes());
        play.pass(10);
        play.script.push_back(Answer::Bytes(watch("", false)));
        play.hear(b"0\r\n\r\n");
        assert_eq!(play.asked.len(), 3 + n as usize, "at once");
    }
    // Nothing at all in a minute is no error either: the set may be empty.
    play.pass(60);
    play.script.push_back(Answer::Bytes(watch("", false)));
    play.hear(b"0\r\n\r\n");
    assert_eq!((play.asked.len(), play.errors().len()), (23, 0), "{:?}", play.errors());
    assert!(play.asked[1..].iter().all(|q| q.contains("watch=true")));
}

#[test]
fn a_slow_watch_lives_as_long_as_was_asked_for() {
    let mut play = Play::new(STYLES[0], first(&[a()]));
    let asked = play.asked[1].split("timeoutSeconds=").nth(1).and_then(|t| t.split('&').next());
    let minutes = asked.and_then(|t| t.parse::<u64>().ok()).unwrap() / 60;
    for n in 0..minutes {
        play.pass(60);
        play.hear(chunk(&frame("MODIFIED", &object("a", "u1", 20 + n as u32))).as_bytes());
    }
    assert_eq!((play.asked.len(), play.closed), (2, 0), "{:?}", play.asked);
}

#[test]
fn a_watch_that_brings_no_line_at_all_ends_quietly() {
    for nothing in
        [watch("", true), http(200, ""), "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1".into()]
    {
        let mut script = first(&[a()]);
        script[1] = Answer::Cut(nothing);
        script.push(Answer::Bytes(watch(&frame("MODIFIED", &object("a", "u1", 11)), false)));
        let mut play = Play::new(STYLES[1], script);
        play.pass(5);
        assert_eq!((play.names(), play.asked.len()), (vec!["a@11".into()], 3), "{:?}", play.notices);
        assert!(play.asked[2].contains("resourceVersion=10"));
    }
}

#[test]
fn a_connection_that_breaks_in_mid_body_is_one_new_watch() {
    let mut play = Play::new(STYLES[0], first(&[a()]));
    let conn = play.open.unwrap();
    play.hear(b"40\r\n{\"type\":\"MODI");
    let reset = NetError { kind: NetErrorKind::Reset, message: "reset".into() };
    play.script.push_back(Answer::Bytes(watch("", false)));
    play.feed(Input::Net { conn, event: NetEvent::Broken(&reset) });
    // Told twice, as sockets do.
    play.feed(Input::Net { conn, event: NetEvent::Broken(&reset) });
    play.feed(Input::Net { conn, event: NetEvent::Eof });
    play.pass(5);
    assert_eq!((play.asked.len(), play.errors().len()), (3, 1), "{:?}", play.asked);
}

#[test]
fn ended_watches_leave_no_connection_open() {
    let mut play = Play::new(STYLES[0], first(&[a()]));
    for n in 0..100 {
        let next = watch(&frame("MODIFIED", &object("a", "u1", 20 + n)), n % 3 == 0);
        play.script.push_back(match n % 3 {
            1 => Answer::Cut(next),
            _ => Answer::Bytes(next),
        });
    }
    play.hear(b"0\r\n\r\n");
    for _ in 0..300 {
        if play.script.is_empty() {
            break;
        }
        play.pass(700);
    }
    assert!(play.asked.len() > 100 && play.opened - play.closed <= 2, "{} {}", play.opened, play.closed);
}

#[test]
fn an_object_that_is_not_utf8_costs_only_itself() {
    for style in STYLES {
        let mut play = Play::new(style, first(&[]));
        let mut frames = frame("ADDED", &object("a", "u1", 11)).into_bytes();
        let odd = object("b", "u2", 12).replace("u2", "caf#");
        frames.extend(frame("ADDED", &odd).bytes().map(|b| if b == b'#' { 0xE9 } else { b }));
        frames.extend(frame("ADDED", &object("c", "u3", 13)).bytes());
        play.hear(format!("{:x}\r\n", frames.len()).as_bytes());
        play.hear(&frames);
        play.hear(b"\r\n");
        assert_eq!(play.names(), ["a@11", "c@13"], "{style:?}");
        let bad: Vec<_> = play
            .notices
            .iter()
            .filter_map(|n| match n {
                Notice::Quarantined(bad) => bad.key.as_ref().map(ToString::to_string),
                _ => None,
            })
            .collect();
        assert_eq!((bad, play.asked.len()), (vec!["d/b".to_string()], 2), "{style:?}");
    }
}

#[test]
fn every_page_is_in_the_first_state() {
    let mut script: Vec<_> = [("a", 5, "p2"), ("b", 6, "p3"), ("c", 7, "")]
        .map(|(name, version, token)| Answer::Bytes(json(&list(10, token, &[object(name, name, version)]))))
        .into();
    script.push(Answer::Bytes(watch("", false)));
    let play = Play::new(STYLES[1], script);
    assert_eq!(play.names(), ["a@5", "b@6", "c@7"]);
    assert_eq!(play.told.iter().filter(|t| t.starts_with("synced")).count(), 1, "{:?}", play.told);
}

#[test]
fn that_nothing_is_there_is_told_at_once() {
    let play = Play::new(STYLES[0], first(&[]));
    assert_eq!(play.told, ["synced=true at 10"]);
}

#[test]
fn a_list_of_nothing_that_says_so_is_empty_and_everything_else_is_not() {
    // The store must not be emptied by what is no list.
    for body in [r#"{"kind":"Table","rows":[]}"#, r#"{"kind":"Pod"}"#, "{}", "null", "[]", "<html>", GONE] {
        let mut script = first(&[a()]);
        script[1] = Answer::Bytes(watch(&frame("ERROR", GONE), false));
        script.push(Answer::Bytes(json(body)));
        let mut play = Play::new(STYLES[1], script);
        play.pass(3);
        assert_eq!(play.names(), ["a@5"], "{body}");
        assert!(play.asked.len() >= 3 && play.source.status().watcher.last_error.is_some(), "{body}");
    }
    let mut script = first(&[a()]);
    script[1] = Answer::Bytes(watch(&frame("ERROR", GONE), false));
    script.push(Answer::Bytes(json(
        r#"{"kind":"ConfigMapList","metadata":{"resourceVersion":"20"},"items":null}"#,
    )));
    let mut play = Play::new(STYLES[1], script);
    play.pass(3);
    assert!(play.names().is_empty());
}

#[test]
fn an_outage_shows_and_costs_nothing_but_time() {
    let mut play = Play::new(STYLES[0], first(&[a(), object("b", "u2", 6)]));
    play.script.extend((0..1000).map(|_| Answer::Refused));
    let conn = play.open.unwrap();
    play.feed(Input::Net { conn, event: NetEvent::Eof });
    play.pass(600);
    let status = play.source.status();
    assert_eq!((status.watcher.connected_since, status.objects), (None, 2));
    assert!(status.watcher.last_error.is_some_and(|e| e.contains("refused")));
    // It comes back, not with older data, and has forgotten our version; b went meanwhile, c came.
    play.script.clear();
    play.script.push_back(Answer::Bytes(json(&list(89, "", &[a()]))));
    play.script.push_back(Answer::Bytes(watch(&frame("ERROR", GONE), false)));
    play.script.push_back(Answer::Bytes(json(&list(90, "", &[a(), object("c", "u3", 80)]))));
    play.script.push_back(Answer::Bytes(watch("", false)));
    play.pass(180);
    assert_eq!(play.names(), ["a@5", "c@80"]);
    let told = told_changes(&play);
    assert_eq!(told[told.len() - 2..], ["-ConfigMap(d/b @6)?", "+ConfigMap(d/c @80)"]);
    assert!(play.source.status().watcher.connected_since.is_some());
}
