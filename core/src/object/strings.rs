//! Labels, annotations, finalizers and owners, read where they lie.
//!
//! All of it has been validated when the object was made, so that a reader may simply stop at what it does not expect.

use alloc::borrow::Cow;
use alloc::string::String;

use super::OwnerReference;
use super::scan::{Scanner, Text};

/// Bytes of seven bits of a packed length.
const LENGTH: usize = 5;

/// Appends a string with its length before it, both as text.
pub(super) fn pack(out: &mut String, s: &str) {
    for i in (0..LENGTH).rev() {
        out.push(char::from((s.len() >> (7 * i) & 0x7F) as u8));
    }
    out.push_str(s);
}

fn unpack<'a>(packed: &mut &'a str) -> Option<&'a str> {
    let length = packed.get(..LENGTH)?.bytes().fold(0, |n, b| n << 7 | usize::from(b));
    let s = packed.get(LENGTH..LENGTH + length)?;
    *packed = &packed[LENGTH + length..];
    Some(s)
}

/// Walks the strings of an array or object.
struct Walk<'a> {
    json: &'a str,
    scanner: Scanner<'a>,
    more: bool,
}

impl<'a> Walk<'a> {
    fn object(json: &'a str) -> Self {
        let mut scanner = Scanner::new(json);
        let more = scanner.open_object().unwrap_or(false);
        Self { json, scanner, more }
    }

    fn array(json: &'a str) -> Self {
        let mut scanner = Scanner::new(json);
        let more = scanner.open_array().unwrap_or(false);
        Self { json, scanner, more }
    }

    fn member(&mut self) -> Option<(Text, Option<Text>)> {
        if !self.more {
            return None;
        }
        let key = self.scanner.key().ok()?;
        let value = self.string_or_null()?;
        self.more = self.scanner.next_member().unwrap_or(false);
        Some((key, value))
    }

    fn element(&mut self) -> Option<Option<Text>> {
        if !self.more {
            return None;
        }
        let value = self.string_or_null()?;
        self.more = self.scanner.next_element().unwrap_or(false);
        Some(value)
    }

    fn string_or_null(&mut self) -> Option<Option<Text>> {
        match self.scanner.string() {
            Ok(text) => Some(Some(text)),
            Err(_) => self.scanner.value().ok().map(|_| None),
        }
    }
}

enum Plain<'a> {
    Json(Walk<'a>),
    Packed(&'a str),
}

/// The labels of an object: names and values.
pub struct Labels<'a>(Plain<'a>);

impl<'a> Labels<'a> {
    pub(super) fn new(text: &'a str, packed: bool) -> Self {
        Self(if packed { Plain::Packed(text) } else { Plain::Json(Walk::object(text)) })
    }
}

impl<'a> Iterator for Labels<'a> {
    type Item = (&'a str, &'a str);

    fn next(&mut self) -> Option<Self::Item> {
        match &mut self.0 {
            Plain::Json(walk) => {
                let (key, value) = walk.member()?;
                Some((&walk.json[key.start..key.end], value.map_or("", |v| &walk.json[v.start..v.end])))
            }
            Plain::Packed(rest) => Some((unpack(rest)?, unpack(rest)?)),
        }
    }
}

/// The finalizers of an object.
pub struct Finalizers<'a>(Plain<'a>);

impl<'a> Finalizers<'a> {
    pub(super) fn new(text: &'a str, packed: bool) -> Self {
        Self(if packed { Plain::Packed(text) } else { Plain::Json(Walk::array(text)) })
    }
}

impl<'a> Iterator for Finalizers<'a> {
    type Item = &'a str;

    fn next(&mut self) -> Option<Self::Item> {
        match &mut self.0 {
            Plain::Json(walk) => Some(walk.element()?.map_or("", |v| &walk.json[v.start..v.end])),
            Plain::Packed(rest) => unpack(rest),
        }
    }
}

/// The annotations of an object: names and values. They are unescaped when read, since the longest of them
/// (`last-applied-configuration`) is all escapes and seldom wanted.
pub struct Annotations<'a>(Walk<'a>);

impl<'a> Annotations<'a> {
    pub(super) fn new(json: &'a str) -> Self {
        Self(Walk::object(json))
    }
}

impl<'a> Iterator for Annotations<'a> {
    type Item = (Cow<'a, str>, Cow<'a, str>);

    fn next(&mut self) -> Option<Self::Item> {
        let (key, value) = self.0.member()?;
        let json = self.0.json;
        Some((key.get(json), value.map(|v| v.get(json)).unwrap_or_default()))
    }
}

/// Calls `each` for every owner reference in `json`.
pub(super) fn owners(json: &str, each: &mut dyn FnMut(OwnerReference)) {
    if json.is_empty() {
        return;
    }
    let mut s = Scanner::new(json);
    let _ = s.elements(|s| {
        let mut owner = OwnerReference::default();
        s.members(|s, key| {
            let key = key.get(json);
            let (start, end) = s.value()?;
            let text = || {
                let mut inner = Scanner::new(&json[start..end]);
                inner.string().map_or_else(|_| String::new(), |t| t.get(&json[start..end]).into_owned())
            };
            let flag = || match &json[start..end] {
                "true" => Some(true),
                "false" => Some(false),
                _ => None,
            };
            match &*key {
                "apiVersion" => owner.api_version = text(),
                "kind" => owner.kind = text(),
                "name" => owner.name = text(),
                "uid" => owner.uid = text(),
                "controller" => owner.controller = flag(),
                "blockOwnerDeletion" => owner.block_owner_deletion = flag(),
                _ => {}
            }
            Ok(())
        })?;
        each(owner);
        Ok::<_, super::scan::SyntaxError>(())
    });
}
