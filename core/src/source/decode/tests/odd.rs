//! Odd documents three ways: as an item of a list, in a frame of a watch, and as the answer to a get. Each keeps the
//! bytes; what is odd shows only to whoever asks for it, and what has no key is set aside with the reason.

use super::*;
use crate::api::Answer;
use crate::wire::Piece;
use crate::wire::framing::FrameSplitter;

/// What becomes of an object: its key, or whose it is and why it is set aside.
fn item(json: &[u8]) -> Result<Object, (Option<Key>, String)> {
    let options = ObjectOptions::default();
    let read = decode_item(json, &options);
    let get = Object::decode(json);
    if let Ok(o) = &read {
        // A get of it is the same object, with what a cache does not keep.
        assert_eq!(get.unwrap().key(), o.key());
        assert_eq!(Object::from_json(json).as_ref(), Ok(o));
    } else {
        get.unwrap_err();
    }
    let line = [br#"{"type":"ADDED","object":"#, json, b"}\n"].concat();
    let mut splitter = FrameSplitter::new(line.len());
    let mut input = &line[..];
    if let Some(Piece::Value(raw)) = splitter.next(&mut input) {
        match (decode_frame(raw, &options), &read) {
            (Frame::Added(framed), Ok(alone)) => assert_eq!(framed, *alone),
            (Frame::Bad(bad), Err(alone)) => assert_eq!(bad.key, alone.key, "{}: {}", bad.error, alone.error),
            (frame, _) => panic!("{frame:?}: {read:?}"),
        }
    }
    read.map_err(|bad| (bad.key, bad.error))
}

fn with(member: &str) -> String {
    format!(r#"{{"kind":"Widget","metadata":{{"name":"a","namespace":"n","resourceVersion":"7"}},{member}}}"#)
}

#[test]
fn values_are_the_texts_that_came_and_their_use_decides() {
    for text in [
        "1e400",
        "-1e400",
        "18446744073709551616",
        "9007199254740993",
        "1.0",
        "-0.0",
        "5e-324",
        r#""\u003ca\u003e""#,
        r#""\uD83D\ude80""#,
        "\"\u{FEFF}\u{85}\u{2028}\u{2029}e\u{301}\"",
        r#"{"":1,"~1":2,"a/b":3,"__proto__":4}"#,
        r#"{"Name":1,"name":2}"#,
        r#"{"a":1,"a":2}"#,
        "[null,[],{}]",
        "null",
    ] {
        let o = item(with(&format!("\"x\":{text}")).as_bytes()).unwrap();
        assert_eq!((o.raw_at(&["x"]), o.key()), (Some(text), Key::namespaced("n", "a")));
    }
    let get = |text: &str| item(with(&format!("\"x\":{text}")).as_bytes()).unwrap();
    assert!(get("1e400").get::<f64>(&["x"]).unwrap_err().message.contains("number out of range"));
    assert!(get("1e400").value().is_err());
    assert_eq!(get("9007199254740993").get::<i64>(&["x"]).unwrap(), Some(9_007_199_254_740_993));
    assert!(get("18446744073709551616").get::<u64>(&["x"]).is_err());
    assert_eq!(get(r#""\u003ca\u003e""#).get::<String>(&["x"]).unwrap().unwrap(), "<a>");
    assert_eq!(get(r#""\uD83D\ude80""#).get::<String>(&["x"]).unwrap().unwrap(), "🚀");
    assert_eq!(get("[null]").get::<String>(&["x"]).unwrap_err().key, Some(Key::namespaced("n", "a")));
}

#[test]
fn depth_is_kept_up_to_what_a_server_may_hold() {
    for depth in [126, 127, 128, 1000, 9_990] {
        for (open, close) in [("[", "]"), ("{\"a\":", "}")] {
            let json = with(&format!("\"x\":{}1{}", open.repeat(depth), close.repeat(depth)));
            let o = item(json.as_bytes()).unwrap();
            assert_eq!(o.json(), json);
            assert_eq!(o.value().is_ok(), depth < 127, "{depth}");
        }
    }
    for depth in [10_001, 100_000] {
        let json = with(&format!("\"x\":{}{}", "[".repeat(depth), "]".repeat(depth)));
        let (key, error) = item(json.as_bytes()).unwrap_err();
        assert_eq!(key, Some(Key::namespaced("n", "a")));
        assert!(error.contains("nested deeper than 10000 levels"), "{error}");
    }
}

#[test]
fn names_are_as_they_are_and_of_several_the_last_counts() {
    for (json, key) in [
        (r#"{"METADATA":{"name":"x"},"Kind":"X","metadata":{"Name":"y","name":"a"}}"#, Key::cluster("a")),
        (
            r#"{"metadata":{"name":"a","name":"b","namespace":"m","namespace":"n"}}"#,
            Key::namespaced("n", "b"),
        ),
        (r#"{"metadata":{"name":"x","namespace":"m"},"metadata":{"name":"a"}}"#, Key::cluster("a")),
        (r#"{"metadata":{"n\u0061me":"\u0061\ud83d\ude80"}}"#, Key::cluster("a🚀")),
        (r#"{"metadata":{"name":"a b%2F?#é"}}"#, Key::cluster("a b%2F?#é")),
        // Neither uid nor version: some servers make objects up as they are asked.
        (r#"{"metadata":{"name":"a","uid":null}}"#, Key::cluster("a")),
    ] {
        assert_eq!(item(json.as_bytes()).unwrap().key(), key, "{json}");
    }
}

#[test]
fn what_has_no_key_is_set_aside_with_the_reason() {
    let whose = Some(Key::namespaced("n", "a"));
    for (json, key, error) in [
        ("null", None, "the object is null"),
        ("true", None, "the object is a boolean"),
        ("1", None, "the object is a number"),
        ("\"x\"", None, "the object is a string"),
        ("[]", None, "the object is an array"),
        ("{}", None, "metadata is missing in an object without a kind"),
        (r#"{"kind":"Pod","metadata":null}"#, None, "metadata is missing in a Pod"),
        (r#"{"kind":"Pod","metadata":{"namespace":"d"}}"#, None, "metadata.name is missing in a Pod"),
        (r#"{"kind":"Table","rows":[]}"#, None, "metadata is missing in a Table"),
        (
            r#"{"metadata":{"name":"a","namespace":"n","resourceVersion":12}}"#,
            whose.clone(),
            "metadata.resourceVersion is a number, not a string",
        ),
        (&with(r#""x":"\ud800""#), whose.clone(), "not JSON: lone surrogate in a string at byte 84"),
        (&with(r#""x":"\udc00\ud800""#), whose.clone(), "not JSON: lone surrogate in a string at byte 84"),
        (&with(r#""x":"\ud800\u0041""#), whose.clone(), "not JSON: lone surrogate in a string at byte 84"),
        (&with(r#""x":NaN"#), whose.clone(), "not JSON: expected a value at byte 83"),
        (&with(r#""x":+1"#), whose.clone(), "not JSON: expected a value at byte 83"),
        (&with("\"x\":\"\t\""), whose.clone(), "not JSON: control character in a string at byte 84"),
    ] {
        assert_eq!(item(json.as_bytes()).unwrap_err(), (key, error.to_string()), "{json}");
    }
    // Bytes that are no text: cut, overlong, a surrogate, beyond Unicode.
    for bytes in [&b"\xC3"[..], b"\xC0\x80", b"\xED\xA0\x80", b"\xF4\x90\x80\x80", b"\xFF"] {
        let json = [with("\"x\":\"").trim_end_matches('}').as_bytes(), bytes, b"\"}"].concat();
        assert_eq!(item(&json).unwrap_err(), (whose.clone(), "not UTF-8".to_string()));
    }
    assert!(Object::decode(b" \n").unwrap_err().to_string().contains("empty body"));
}
