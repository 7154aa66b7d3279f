use alloc::string::String;

use serde_json::Value;

use super::{Scanner, plain};

/// The whole text as one value, with `serde_json` as the judge.
fn check(json: &str) {
    let mut scanner = Scanner::new(json);
    let found = scanner.value().and_then(|span| scanner.end().map(|()| span));
    assert_eq!(found.is_ok(), serde_json::from_str::<Value>(json).is_ok(), "{json:?}: {found:?}");
    // The short way never says what the long one does not.
    if let Some(end) = plain::value(json.as_bytes(), 0) {
        let mut long = Scanner::new(&json[..end]);
        // White space in front is odd, and leads around the short way at every level.
        let spaced = alloc::format!(" {}", &json[..end]);
        assert!(long.value().is_ok() && serde_json::from_str::<Value>(&spaced).is_ok(), "{json:?} to {end}");
    }
}

#[test]
fn the_short_way_accepts_what_json_is_and_nothing_else() {
    for json in
        ["{}", "[]", "[[],{}]", r#"{"a":1,"b":[true,false,null,"x",-7,0]}"#, r#"{"a":"\"\\\/\b\f\n\r\t"}"#]
    {
        assert_eq!(plain::value(json.as_bytes(), 0), Some(json.len()), "{json}");
        check(json);
    }
    // Every byte of a plain value replaced, left out and doubled, and every beginning of it.
    let whole = r#"{"a":{"b":[1,-20,0],"c":"d\"e"},"f":[],"g":{},"h":[true,false,null],"long name of it":"0123456789abcdef"}"#;
    for at in 0..whole.len() {
        check(&whole[..at]);
        for with in [
            "", " ", "\"", "\\", "{", "}", "[", "]", ",", ":", "0", "1", "-", ".", "e", "t", "\n", "\u{1}",
            "ä",
        ] {
            let mut json = String::from(&whole[..at]);
            json.push_str(with);
            json.push_str(&whole[at + 1..]);
            check(&json);
            json.insert_str(at, with);
            check(&json);
        }
    }
}

#[test]
fn what_follows_a_value_is_not_looked_at() {
    for tail in ["\n", "\u{1}", "\"", ",\"x\": \"\\\""] {
        let json = ["{\"a\":[\"b\"]}", tail].concat();
        assert_eq!(plain::value(json.as_bytes(), 0), Some(11), "{json:?}");
    }
}

#[test]
fn the_long_way_takes_over_where_the_short_one_ends() {
    let nested = |n: usize| ["[".repeat(n), "]".repeat(n)].concat();
    for (json, plain) in [
        // One that is empty is no level.
        (nested(65), true),
        (nested(66), false),
        (r#"{"a": 1}"#.into(), false),
        (r#"["\ud83d\ude00"]"#.into(), false),
        (r#"["\u00e4",1.5,-1e5]"#.into(), true),
        // Strings, and what is escaped, across the ends of blocks.
        (["[\"", &"x".repeat(200), "\"]"].concat(), true),
        (["[\"", &"\\\"".repeat(100), "\"]"].concat(), true),
        (["[\"x", &"\\\"".repeat(100), "\"]"].concat(), true),
        (["[\"", &"x".repeat(70), "\u{1}\"]"].concat(), false),
    ] {
        assert_eq!(plain::value(json.as_bytes(), 0).is_some(), plain, "{json}");
        check(&json);
    }
}
