use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use super::*;
use crate::api::kinds::PODS;
use crate::object::{Dropped, Key, Resource};

fn decode(frame: &str) -> Frame<Object> {
    decode_frame(frame.as_bytes(), &ObjectOptions::default())
}

fn bad(frame: &str) -> BadObject {
    match decode(frame) {
        Frame::Bad(bad) => bad,
        other => panic!("{frame}: {other:?}"),
    }
}

#[test]
fn changes_carry_their_object() {
    for (frame, shown) in [
        (
            r#"{"type":"ADDED","object":{"kind":"Pod","metadata":{"name":"a","namespace":"n","resourceVersion":"7"}}}"#,
            "Added(Pod(n/a @7))",
        ),
        // In the other order, with more in it, and with white space.
        (
            r#" {"x":{"type":"DELETED"},"object":{"kind":"Pod","metadata":{"name":"a"}} , "type" : "MODIFIED"} "#,
            "Modified(Pod(a @))",
        ),
        (
            "\u{FEFF}{\"type\":\"DELETED\",\"object\":{\"metadata\":{\"name\":\"a\",\"resourceVersion\":\"8\"}}}\r",
            "Deleted(Object(a @8))",
        ),
        (r#"{"t\u0079pe":"ADD\u0045D","object":{"metadata":{"name":"a"}}}"#, "Added(Object(a @))"),
        // The last of several counts.
        (
            r#"{"type":"ADDED","object":{"metadata":{"name":"a"}},"object":{"metadata":{"name":"b"}}}"#,
            "Added(Object(b @))",
        ),
        (
            r#"{"type":"ADDED","object":{"metadata":{}},"object":{"metadata":{"name":"b"}}}"#,
            "Added(Object(b @))",
        ),
        (r#"{"type":"ADDED","object":{"metadata":{"name":"a"}},"type":"DELETED"}"#, "Deleted(Object(a @))"),
    ] {
        assert_eq!(format!("{:?}", decode(frame)), shown, "{frame}");
    }
}

#[test]
fn an_object_out_of_a_frame_is_the_object_alone() {
    let json =
        r#"{"metadata":{"managedFields":[{}],"name":"a","labels":{"x\n":"y"},"uid":"u"},"spec":{"k":[1]}}"#;
    for options in [
        ObjectOptions::default(),
        ObjectOptions::of(&PODS),
        ObjectOptions::of(&PODS).dropping(Dropped::none()),
    ] {
        let alone = decode_item(json.as_bytes(), &options).unwrap();
        let long = "x".repeat(200);
        let frame = format!(r#"{{"pad":"{long}","type":"MODIFIED","object": {json} ,"more":1}}"#);
        assert_eq!(decode_frame(frame.as_bytes(), &options), Frame::Modified(alone.clone()));
        assert_eq!((alone.uid(), alone.label("x\n")), ("u", Some("y")));
    }
}

#[test]
fn bookmarks_need_no_name() {
    let mark = |rv: &str, end| Frame::Bookmark { resource_version: rv.to_string(), initial_events_end: end };
    for (object, frame) in [
        (
            r#"{"kind":"Pod","metadata":{"resourceVersion":"12","creationTimestamp":null},"spec":{"containers":null}}"#,
            mark("12", false),
        ),
        (
            r#"{"metadata":{"resourceVersion":"12","annotations":{"k8s.io/initial-events-end":"true"}}}"#,
            mark("12", true),
        ),
        (
            r#"{"metadata":{"resourceVersion":"12","annotations":{"k8s.io\/initial-events-end":"tru\u0065"}}}"#,
            mark("12", true),
        ),
        (
            r#"{"metadata":{"resourceVersion":"12","annotations":{"k8s.io/initial-events-end":"false"}}}"#,
            mark("12", false),
        ),
        (
            r#"{"metadata":{"resourceVersion":"12","annotations":{"k8s.io/initial-events-end":"True"}}}"#,
            mark("12", false),
        ),
        (
            r#"{"metadata":{"resourceVersion":"12","labels":{"k8s.io/initial-events-end":"true"}}}"#,
            mark("12", false),
        ),
        (r#"{"metadata":{}}"#, mark("", false)),
    ] {
        assert_eq!(decode(&format!(r#"{{"type":"BOOKMARK","object":{object}}}"#)), frame);
    }
    for object in ["null", "\"12\"", "1337", r#"{"metadata":{"resourceVersion":12}}"#] {
        let e = bad(&format!(r#"{{"type":"BOOKMARK","object":{object}}}"#));
        assert!(e.error.contains("bookmark") && e.resource_version.is_empty(), "{e:?}");
    }
}

#[test]
fn errors_carry_a_status_or_one_is_made_up() {
    for (object, code, reason, message) in [
        (
            r#"{"kind":"Status","status":"Failure","code":410,"reason":"Expired","message":"too old"}"#,
            410,
            "Expired",
            "too old",
        ),
        (r#"{"kind":"Status","reason":"Expired","message":"too old"}"#, 410, "Expired", "too old"),
        (r#"{"kind":"Status","message":"lost"}"#, 500, "", "lost"),
        (r#"{"code":410,"message":"gone"}"#, 410, "", "gone"),
        (r#"{"name":"raw","data":{"k":"hunter2"}}"#, 500, "", "an error event without a Status"),
        ("null", 500, "", "an error event without a Status"),
        ("\"hunter2\"", 500, "", "an error event without a Status"),
    ] {
        let Frame::Error(status) = decode(&format!(r#"{{"type":"ERROR","object":{object}}}"#)) else {
            panic!()
        };
        assert_eq!((status.code, status.reason.as_str(), status.message.as_str()), (code, reason, message));
        assert!(status.is_failure());
    }
    assert!(matches!(decode(r#"{"type":"ERROR"}"#), Frame::Error(s) if s.code == 500));
}

#[test]
fn a_failure_instead_of_a_frame_is_an_error_event() {
    let body = r#"{"kind":"Status","status":"Failure","reason":"Expired","message":"too old"}"#;
    let Frame::Error(status) = decode(body) else { panic!("{:?}", decode(body)) };
    assert_eq!((status.code, status.is_expired()), (410, true));
    assert_eq!(bad(r#"{"kind":"Status","status":"Success"}"#).error, "the frame has no type");
}

#[test]
fn unknown_types_tell_their_version() {
    let unknown = |kind: &str, rv: &str| Frame::Unknown { kind: kind.into(), resource_version: rv.into() };
    assert_eq!(
        decode(r#"{"type":"RENAMED","object":{"metadata":{"resourceVersion":"9"}}}"#),
        unknown("RENAMED", "9")
    );
    assert_eq!(decode(r#"{"type":"added","object":7}"#), unknown("added", ""));
    assert_eq!(decode(r#"{"type":""}"#), unknown("", ""));
}

#[test]
fn what_cannot_be_used_costs_only_itself() {
    for (frame, error) in [
        ("", "the frame is not JSON: unexpected end of JSON at byte 0"),
        ("null", "the frame is not an object"),
        ("[]", "the frame is not an object"),
        ("{}", "the frame has no type"),
        (r#"{"type":7,"object":{}}"#, "the frame has no type"),
        (r#"{"type":"ADDED"}"#, "the frame has no object"),
        (r#"{"type":"MODIFIED","object":null}"#, "the frame has no object"),
        (r#"{"type":"ADDED","object":{"metadata":{"name":"a"}},"object":null}"#, "the frame has no object"),
        (r#"{"type":"ADDED","object":[]}"#, "the object is an array"),
        (r#"{"type":"ADDED","object":{"kind":"Table","rows":[]}}"#, "metadata is missing in a Table"),
        (
            r#"{"type":"ADDED","object":{"kind":"Status","metadata":{}}}"#,
            "metadata.name is missing in a Status",
        ),
        ("k8s\u{0}\n\u{a}", "the frame is not JSON: expected a value at byte 0"),
        (
            r#"{"type":"ADDED","object":{"metadata":{"name":"a"}}} x"#,
            "the frame is not JSON: trailing characters at byte 52",
        ),
    ] {
        assert_eq!(bad(frame).error, error, "{frame}");
    }
    let options = ObjectOptions::default();
    let known = BadObject {
        key: Some(Key::namespaced("n", "a")),
        resource_version: "7".into(),
        error: String::new(),
    };
    let object = r#"{"metadata":{"name":"a","namespace":"n","resourceVersion":"7"#;
    for (rest, error) in [
        (&br#"","generation":"x"}}}"#[..], "metadata.generation is a string, not a number"),
        (b"\"},\"d\":\"\xC3\x28\"}}", "the frame is not UTF-8"),
        (br#""},"d":"\udc00"}}"#, "the frame is not JSON: lone surrogate in a string at byte 93"),
        (br#""},"d":"cut of"#, "the frame is not JSON: unexpected end of JSON at byte 99"),
    ] {
        let frame = [format!(r#"{{"type":"ADDED","object":{object}"#).as_bytes(), rest].concat();
        let expected = BadObject { error: error.into(), ..known.clone() };
        assert_eq!(decode_frame(&frame, &options), Frame::Bad(expected));
    }
    assert_eq!(decode_item(b"null", &options).unwrap_err().error, "the object is null");
}

#[test]
fn metadata_only_events_are_of_the_type_that_was_asked_for() {
    let frame = br#"{"type":"ADDED","object":{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":{"name":"a"}}}"#;
    let Frame::Added(o) = decode_frame(frame, &ObjectOptions::of(&PODS)) else { panic!() };
    assert_eq!((o.kind(), o.api_version(), o.key()), ("Pod", "v1", Key::cluster("a")));
}

#[test]
fn no_bytes_can_do_harm() {
    const FRAME: &[u8] = br#"{"type":"ADDED","object":{"kind":"P\u0041","apiVersion":"v1","metadata":{"managedFields":[{"a":null}],"name":"a\t",
        "labels":{"x":"\ud83d\ude80"},"annotations":{"y":"z"},"finalizers":["f",null],"ownerReferences":[{"uid":"u","controller":true}],
        "generation":1e2},"spec":{"n":-0.5e+7}}}"#;
    fn use_all(bytes: &[u8]) {
        for options in [ObjectOptions::default(), ObjectOptions::of(&PODS)] {
            ahead(bytes, &options);
            if let Frame::Added(o) | Frame::Modified(o) | Frame::Deleted(o) = decode_frame(bytes, &options) {
                let _ = (
                    o.key(),
                    o.uid().len(),
                    o.labels().count(),
                    o.annotations().count(),
                    o.finalizers().count(),
                );
                let _ = (
                    o.generation(),
                    o.owner_references(),
                    o.value(),
                    o.raw_at(&["spec", "n"]),
                    o.retained_bytes(),
                );
                // What is kept is an object again, and the same one.
                assert_eq!(Object::from_json(o.raw()).map(|again| again.key()), Ok(o.key()));
            }
        }
    }
    /// What is read before its end is known is the same, whatever follows.
    fn ahead(bytes: &[u8], options: &ObjectOptions) -> bool {
        let Ok(json) = core::str::from_utf8(bytes) else { return false };
        let mut taken = false;
        for tail in ["", "\n", "\n{\"type\":\"ADDED\",\"obj", " ]\u{1}\\\""] {
            let all = [json, tail].concat();
            if let Some((frame, n)) = change_at_front(&all, options, &mut String::new()) {
                assert_eq!(frame, decode_frame(&all.as_bytes()[..n], options), "{all}");
                taken = true;
            }
            let object = json.find("\"object\":").map_or("", |at| &all[at + 9..]);
            if let Some((object, n)) = Object::from_front(object, options, &mut String::new()) {
                let at = all.find("\"object\":").unwrap_or_default() + 9;
                assert_eq!(Ok(object), Object::from_json_with(&all.as_bytes()[at..at + n], options), "{all}");
            }
        }
        taken
    }
    fn changed(changes: Vec<(usize, u8)>, cut: usize) -> bool {
        let mut bytes = FRAME.to_vec();
        for (at, byte) in changes.iter().take(6) {
            let at = at % bytes.len();
            match byte % 4 {
                0 => bytes[at] = *byte,
                1 => bytes[at] = b"{}[]\",:\\"[usize::from(byte / 4) % 8],
                2 => drop(bytes.remove(at)),
                _ => bytes.insert(at, b"{}[]\",:\\"[usize::from(byte / 4) % 8]),
            }
        }
        use_all(&bytes);
        bytes.truncate(cut % bytes.len());
        use_all(&bytes);
        true
    }
    use_all(FRAME);
    assert!(ahead(FRAME, &ObjectOptions::default()));
    for cut in 0..FRAME.len() {
        assert!(matches!(decode_frame(&FRAME[..cut], &ObjectOptions::default()), Frame::Bad(_)));
    }
    crate::cases::cases(3000).quickcheck(changed as fn(Vec<(usize, u8)>, usize) -> bool);
}

mod odd;
