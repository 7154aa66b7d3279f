//! Any answers in any order, in any pieces. While they come, whoever follows the changes knows the view, no deadline comes
//! back, and the same inputs give the same outputs. When the server is sound again, the source knows what it has.

use super::frames::short;
use super::lessons::{GONE, bookmark, end_bookmark, streaming};
use super::*;

/// More than any version before.
const SOUND: u32 = 1_000_000;

/// What a server may answer, by number; `n` makes versions that mostly rise.
fn answer(kind: u8, n: u32, what: u8) -> Answer {
    let name = ["a", "b", "c", "d"][usize::from(what % 4)];
    // Some objects are made anew.
    let one = object(name, &format!("u{}", what % 7), n);
    match kind % 20 {
        0 | 1 => Answer::Bytes(json(&list(n, "", &[one]))),
        2 => Answer::Bytes(json(&list(n, "", &[]))),
        3 => Answer::Bytes(json(&list(n, "more", &[one]))),
        4 => Answer::Bytes(watch(&(frame("ADDED", &one) + &bookmark(n + 1)), false)),
        5 => Answer::Bytes(watch(&frame("MODIFIED", &one), what.is_multiple_of(2))),
        6 => Answer::Bytes(watch(&frame("DELETED", &one), what.is_multiple_of(2))),
        7 => Answer::Bytes(watch(&(frame("ADDED", &one) + &end_bookmark(n)), what.is_multiple_of(2))),
        8 => Answer::Bytes(watch(&frame("ERROR", GONE), false)),
        9 => Answer::Bytes(watch("", true)),
        10 => Answer::Cut(watch(&frame("ADDED", &one), false) + "40\r\n{\"type\":\"DEL"),
        11 => Answer::Cut(json(&list(n, "", &[one])).split_at(70 + usize::from(what % 40)).0.to_string()),
        12 => Answer::Refused,
        13 => Answer::Bytes(http([400, 401, 403, 404, 409][usize::from(what % 5)], "{}")),
        14 => Answer::Bytes(http([429, 500, 502, 503, 504][usize::from(what % 5)], "{}")),
        15 => Answer::Bytes(http(410, GONE)),
        16 => Answer::Bytes(watch("{\"type\":\"ADDED\",\"object\":[]}\nnonsense\n", false)),
        17 => Answer::Raw(vec![what, b'H', 0, 0xff, what]),
        18 => Answer::Bytes(watch(&frame("ADDED", r#"{"metadata":{"name":"x"}}"#), false)),
        _ => Answer::Cut(String::new()),
    }
}

/// What a sound server answers to this request. It has one object.
fn sound(target: &str, knows: bool) -> String {
    let one = object("z", "uz", SOUND);
    match short(target).split(' ').next() {
        Some("stream") => watch(&(frame("ADDED", &one) + &end_bookmark(SOUND)), false),
        Some("list") => json(&list(SOUND, "", &[one])),
        _ if knows => watch("", false),
        // It has forgotten what came before.
        _ => watch(&frame("ERROR", GONE), false),
    }
}

fn play(steps: &[(u8, u8)], style: u8, stream: bool) -> Vec<String> {
    let style = STYLES[usize::from(style) % STYLES.len()];
    let script = (1..).zip(steps).map(|(n, (kind, what))| answer(*kind, n * 10, *what)).collect();
    let mut play = Play::with(style, if stream { streaming() } else { lists() }, script);
    let known = |play: &Play| play.names() == [format!("z@{SOUND}")];
    // Some answers end nothing, so that only a deadline leads on.
    while !play.script.is_empty() {
        play.sleep();
    }
    let mut answered = play.asked.len();
    for _ in 0..300 {
        if known(&play) && play.source.snapshot().is_synced() {
            let mut log = play.told;
            log.extend(play.asked);
            log.extend(play.notices.iter().map(|notice| format!("{notice:?}")));
            return log;
        }
        if play.asked.len() > answered {
            answered = play.asked.len();
            let text = sound(&play.asked[answered - 1], known(&play));
            play.hear(text.as_bytes());
        } else {
            play.sleep();
        }
    }
    panic!("not what the server has: {:?} after {:?}, {:?}", play.names(), play.asked, play.notices);
}

#[test]
fn whatever_comes_it_knows_in_the_end_what_the_server_has() {
    /// Whether objects are packed changes nothing of what is said.
    fn holds(steps: Vec<(u8, u8)>, style: u8, stream: bool) -> bool {
        let packed = match style % STYLES.len() as u8 {
            0 => 4,
            2 => 5,
            same => same,
        };
        play(&steps, style, stream) == play(&steps, packed, stream)
    }
    crate::cases::cases(300).quickcheck(holds as fn(Vec<(u8, u8)>, u8, bool) -> bool);
}
