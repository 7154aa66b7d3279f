//! One pass over an object that finds its metadata, whole or in a frame of a watch.

use std::ops::Range;

use memchr::memchr;
use steersman_core::wire::json::{Scanner, Stop};

use crate::contestant::{EVENT, SENT};

/// Where the fields of the metadata stand; empty where there are none.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Fields {
    pub object: Range<usize>,
    pub name: Range<usize>,
    pub namespace: Range<usize>,
    pub uid: Range<usize>,
    pub version: Range<usize>,
    pub labels: Range<usize>,
    pub annotations: Range<usize>,
    /// From the comma before it.
    pub managed_fields: Range<usize>,
    /// The two annotations of the benchmark.
    pub event: Range<usize>,
    pub sent: Range<usize>,
}

/// Which object's members are walked.
#[derive(Clone, Copy)]
enum Level {
    Frame,
    Object,
    Metadata,
    Annotations,
}

/// `None`: this is not the JSON that the server of the benchmark sends.
pub(super) fn of_item(json: &[u8]) -> Option<Fields> {
    let mut fields = Fields { object: 0..json.len(), ..Fields::default() };
    members(json, 0, Level::Object, &mut fields)?;
    Some(fields)
}

/// The same for a frame of a watch.
pub(super) fn of_frame(json: &[u8]) -> Option<Fields> {
    let mut fields = Fields::default();
    members(json, 0, Level::Frame, &mut fields)?;
    Some(fields)
}

/// Walks the members of the object that begins `at` and says where it ends.
fn members(json: &[u8], at: usize, level: Level, fields: &mut Fields) -> Option<usize> {
    let mut at = at + 1;
    if json.get(at) == Some(&b'}') {
        return Some(at + 1);
    }
    loop {
        let before = at - 1;
        if json.get(at) != Some(&b'"') {
            return None;
        }
        // The names that the server sends hold no escapes.
        let name = at + 1..at + 1 + memchr(b'"', &json[at + 1..])?;
        let start = name.end + 2;
        let name = &json[name];
        let end = match (level, name) {
            (Level::Frame, b"object") => members(json, start, Level::Object, fields),
            (Level::Object, b"metadata") => members(json, start, Level::Metadata, fields),
            (Level::Metadata, b"annotations") => members(json, start, Level::Annotations, fields),
            _ => skip(json, start),
        }?;
        let text = start + 1..end - 1;
        match (level, name) {
            (Level::Frame, b"object") => fields.object = start..end,
            (Level::Metadata, b"name") => fields.name = text,
            (Level::Metadata, b"namespace") => fields.namespace = text,
            (Level::Metadata, b"uid") => fields.uid = text,
            (Level::Metadata, b"resourceVersion") => fields.version = text,
            (Level::Metadata, b"labels") => fields.labels = start..end,
            (Level::Metadata, b"annotations") => fields.annotations = start..end,
            (Level::Metadata, b"managedFields") => fields.managed_fields = before..end,
            (Level::Annotations, name) if name == EVENT.as_bytes() => fields.event = text,
            (Level::Annotations, name) if name == SENT.as_bytes() => fields.sent = text,
            _ => {}
        }
        match json.get(end)? {
            b',' => at = end + 1,
            b'}' => return Some(end + 1),
            _ => return None,
        }
    }
}

/// Where the value that begins at `start` ends.
fn skip(json: &[u8], start: usize) -> Option<usize> {
    let rest = json.get(start..)?;
    match rest.first()? {
        b'{' | b'[' | b'"' => match Scanner::new().scan(rest) {
            Stop::End(n) => Some(start + n),
            Stop::Newline(_) | Stop::More => None,
        },
        _ => rest.iter().position(|b| matches!(b, b',' | b'}')).map(|n| start + n),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;
    use crate::pods::{Form, Pods, State};

    #[test]
    fn the_fields_are_those_that_a_parser_finds() {
        let pods = Pods::new(10, 5_000, 1).unwrap();
        let state = State { event: 3, sent: 17 };
        for form in [Form::Whole, Form::Metadata] {
            let (mut item, mut frame) = (Vec::new(), Vec::new());
            pods.item(form, 3, state, &mut item);
            pods.frame(form, "MODIFIED", 3, state, &mut frame);
            for (json, fields) in [(&item, of_item(&item).unwrap()), (&frame, of_frame(&frame).unwrap())] {
                let object: Value = serde_json::from_slice(&json[fields.object.clone()]).unwrap();
                let metadata = &object["metadata"];
                let text = |at: &Range<usize>| std::str::from_utf8(&json[at.clone()]).unwrap().to_owned();
                for (name, at) in [
                    ("name", &fields.name),
                    ("namespace", &fields.namespace),
                    ("uid", &fields.uid),
                    ("resourceVersion", &fields.version),
                ] {
                    assert_eq!(metadata[name], text(at));
                }
                for (name, at) in [("labels", &fields.labels), ("annotations", &fields.annotations)] {
                    assert_eq!(metadata[name], serde_json::from_str::<Value>(&text(at)).unwrap());
                }
                assert_eq!(
                    (text(&fields.event).as_str(), text(&fields.sent).as_str()),
                    ("000000003", "0000000000000000017")
                );
                let managed = text(&fields.managed_fields);
                assert_eq!(format!(",\"managedFields\":{}", metadata["managedFields"]).len(), managed.len());
            }
        }
    }

    #[test]
    fn what_is_cut_off_is_refused() {
        for json in [&b"{"[..], b"{\"a\"", b"{\"a\":{}", b"{\"metadata\":{\"name\":\"x\"", b"{\"a\":1,}"] {
            assert_eq!(of_item(json), None);
        }
    }
}
