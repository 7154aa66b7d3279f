//! From the bytes of one watch frame or one list item to what a watcher takes. Pure, so that many can be decoded at
//! once and put back in order.

use alloc::borrow::{Cow, ToOwned};
use alloc::format;
use alloc::string::String;

use crate::api::Status;
use crate::object::{Object, ObjectError, ObjectOptions, Parts, Salvage, Scanner, SyntaxError, Token};
use crate::watcher::{BadObject, Frame};

/// The annotation of the bookmark that ends the initial events of a streaming list, if its value is `"true"`.
const INITIAL_EVENTS_END: &str = "k8s.io/initial-events-end";

impl From<ObjectError> for BadObject {
    fn from(e: ObjectError) -> Self {
        Self { key: e.key, resource_version: e.resource_version, error: e.message }
    }
}

/// Reads one element of the `items` of a list.
///
/// # Errors
/// If it is no object that can be kept; the error costs only this item.
pub fn decode_item(raw: &[u8], options: &ObjectOptions) -> Result<Object, BadObject> {
    decode_item_in(raw, options, &mut String::new())
}

/// The same, by way of a buffer that is used again.
pub(super) fn decode_item_in(
    raw: &[u8],
    options: &ObjectOptions,
    scratch: &mut String,
) -> Result<Object, BadObject> {
    Object::from_json_in(raw, options, scratch).map_err(BadObject::from)
}

/// Reads one frame of a watch: `{"type": ..., "object": ...}`, in any order and with whatever else is there. What is
/// no such thing is [`Frame::Bad`].
///
/// ```
/// use steersman_core::{object::ObjectOptions, source::decode::decode_frame, watcher::Frame};
/// let frame = br#"{"type":"BOOKMARK","object":{"kind":"Pod","metadata":{"resourceVersion":"12"}}}"#;
/// let end = Frame::Bookmark { resource_version: "12".into(), initial_events_end: false };
/// assert_eq!(decode_frame(frame, &ObjectOptions::default()), end);
/// ```
#[must_use]
pub fn decode_frame(raw: &[u8], options: &ObjectOptions) -> Frame<Object> {
    decode_frame_in(raw, options, &mut String::new())
}

/// The same, by way of a buffer that is used again.
pub(super) fn decode_frame_in(raw: &[u8], options: &ObjectOptions, scratch: &mut String) -> Frame<Object> {
    // Some proxies put one before the first line.
    let raw = raw.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(raw);
    match core::str::from_utf8(raw) {
        Ok(json) => frame(json, options, scratch),
        Err(_) => {
            let json = String::from_utf8_lossy(raw);
            let object =
                Event::scan(&mut Scanner::new(&json), &json, None).ok().and_then(|event| event.object);
            let salvage = Salvage::of(object.map_or("", |(start, end)| &json[start..end]));
            Frame::Bad(salvage.error("the frame is not UTF-8".to_owned()).into())
        }
    }
}

fn frame(json: &str, options: &ObjectOptions, scratch: &mut String) -> Frame<Object> {
    let mut scanner = Scanner::new(json);
    let event = Event::scan(&mut scanner, json, Some((options, &mut *scratch)))
        .and_then(|event| scanner.end().map(|()| event).map_err(not_json));
    let mut event = match event {
        Ok(event) => event,
        Err(error) => {
            // Half an object may still tell whose it is.
            let salvage = json.find("\"object\":").map_or("", |at| &json[at + 9..]);
            return Frame::Bad(Salvage::of(salvage).error(error).into());
        }
    };
    let bad = |message: &str| Frame::Bad(ObjectError::new(message).into());
    let Some(kind) = event.kind else {
        // A refusal under a 200, as some proxies send it, says what an ERROR event would.
        return match Status::in_body(json) {
            Some(status) if status.is_failure() => Frame::Error(Status::in_event(json)),
            _ => bad("the frame has no type"),
        };
    };
    let object = event.object.map(|(start, end)| &json[start..end]);
    if kind == "ERROR" {
        return Frame::Error(Status::in_event(object.unwrap_or("null")));
    }
    let Some(make) = change(&kind) else {
        if kind == "BOOKMARK" {
            return bookmark(object);
        }
        let resource_version = object.map(version).unwrap_or_default();
        return Frame::Unknown { kind: kind.into_owned(), resource_version };
    };
    if let Some(object) = event.decoded.take() {
        return make(object);
    }
    let Some(object) = object else { return bad("the frame has no object") };
    match Object::from_json_in(object.as_bytes(), options, scratch) {
        Ok(object) => make(object),
        Err(e) => Frame::Bad(e.into()),
    }
}

/// Reads the change of an object that `json` begins with, and says where it ends. `None` if it is any other frame, or not all of
/// one: then [`decode_frame`] of the frame alone says what is to be said.
pub(super) fn change_at_front(
    json: &str,
    options: &ObjectOptions,
    scratch: &mut String,
) -> Option<(Frame<Object>, usize)> {
    let mut scanner = Scanner::new(json);
    let event = Event::scan(&mut scanner, json, Some((options, scratch))).ok()?;
    let make = change(&event.kind?)?;
    Some((make(event.decoded?), scanner.at()))
}

/// The frame that a change of this type makes.
fn change(kind: &str) -> Option<fn(Object) -> Frame<Object>> {
    match kind {
        "ADDED" => Some(Frame::Added),
        "MODIFIED" => Some(Frame::Modified),
        "DELETED" => Some(Frame::Deleted),
        _ => None,
    }
}

fn not_json(e: SyntaxError) -> String {
    format!("the frame is not JSON: {e}")
}

/// Nothing is dropped from a bookmark: what is looked for in it may be what objects need not keep.
fn bookmark(object: Option<&str>) -> Frame<Object> {
    let Some(object) = object else {
        return Frame::Bad(ObjectError::new("the bookmark has no object").into());
    };
    match Parts::scan(&mut Scanner::new(object), object, &ObjectOptions::whole()) {
        Ok(parts) => Frame::Bookmark {
            resource_version: parts.resource_version(object).to_owned(),
            initial_events_end: parts.has_annotation(object, INITIAL_EVENTS_END, "true"),
        },
        Err(e) => Frame::Bad(ObjectError::new(format!("the bookmark cannot be read: {e}")).into()),
    }
}

/// The version of an object of which nothing is known.
fn version(object: &str) -> String {
    let parts = Parts::scan(&mut Scanner::new(object), object, &ObjectOptions::whole());
    parts.map(|p| p.resource_version(object).to_owned()).unwrap_or_default()
}

/// The members of a frame.
#[derive(Default)]
struct Event<'a> {
    kind: Option<Cow<'a, str>>,
    object: Option<(usize, usize)>,
    /// The object, if it came after the type, as it always does, so that it is scanned only once.
    decoded: Option<Object>,
}

impl<'a> Event<'a> {
    /// Reads the frame that comes next.
    fn scan(
        s: &mut Scanner<'a>,
        json: &'a str,
        mut reading: Option<(&ObjectOptions, &mut String)>,
    ) -> Result<Self, String> {
        let mut event = Self::default();
        if s.peek().map_err(not_json)? != Token::Object {
            return Err("the frame is not an object".to_owned());
        }
        let mut more = s.open_object().map_err(not_json)?;
        while more {
            let key = s.key().map_err(not_json)?;
            let token = s.peek().map_err(not_json)?;
            if key.is(json, "type") {
                event.kind = match token {
                    Token::String => Some(s.string().map_err(not_json)?.get(json)),
                    _ => s.value().map(|_| None).map_err(not_json)?,
                };
            } else if key.is(json, "object") {
                let start = s.at();
                event.decoded = None;
                let plain = event.kind.as_deref().and_then(change).is_some();
                match &mut reading {
                    Some((options, scratch)) if plain && token == Token::Object => {
                        let mut ahead = Scanner::from(json, start);
                        match Object::scan(&mut ahead, json, options, scratch) {
                            Ok(object) => {
                                event.decoded = Some(object);
                                *s = ahead;
                            }
                            // The second look, at the object alone, tells what is wrong with it.
                            Err(_) => drop(s.value().map_err(not_json)?),
                        }
                    }
                    _ => drop(s.value().map_err(not_json)?),
                }
                event.object = (token != Token::Null).then_some((start, s.at()));
            } else {
                s.value().map_err(not_json)?;
            }
            more = s.next_member().map_err(not_json)?;
        }
        Ok(event)
    }
}

#[cfg(test)]
mod tests;
