//! JSON as Go's encoder writes it, and its decoder's words for what it cannot read.

use serde_json::{Map, Value};

/// Members of `metadata` in the order of Go's struct; built-in kinds come in it.
const METADATA: [&str; 16] = [
    "name",
    "generateName",
    "namespace",
    "selfLink",
    "uid",
    "resourceVersion",
    "generation",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "labels",
    "annotations",
    "ownerReferences",
    "finalizers",
    "managedFields",
    "clusterName",
];

/// Whether `metadata` has a member of this name.
pub(crate) fn is_metadata_member(name: &str) -> bool {
    METADATA[..15].contains(&name)
}

/// A string with Go's escapes (`<`, `>` and `&` too).
pub(crate) fn write_str(out: &mut Vec<u8>, s: &str) {
    const HEX: &[u8; 16] = b"0123456789abcdef";
    out.push(b'"');
    let bytes = s.as_bytes();
    let mut from = 0;
    for (i, &b) in bytes.iter().enumerate() {
        let short = match b {
            b'"' => Some(b'"'),
            b'\\' => Some(b'\\'),
            b'\n' => Some(b'n'),
            b'\r' => Some(b'r'),
            b'\t' => Some(b't'),
            0x08 => Some(b'b'),
            0x0c => Some(b'f'),
            0..=0x1f | b'<' | b'>' | b'&' => None,
            _ => continue,
        };
        out.extend_from_slice(&bytes[from..i]);
        from = i + 1;
        match short {
            Some(c) => out.extend_from_slice(&[b'\\', c]),
            None => {
                out.extend_from_slice(b"\\u00");
                out.extend_from_slice(&[HEX[usize::from(b >> 4)], HEX[usize::from(b & 15)]]);
            }
        }
    }
    out.extend_from_slice(&bytes[from..]);
    out.push(b'"');
}

/// Any value, members sorted by name.
pub(crate) fn write(out: &mut Vec<u8>, value: &Value) {
    match value {
        Value::Null => out.extend_from_slice(b"null"),
        Value::Bool(true) => out.extend_from_slice(b"true"),
        Value::Bool(false) => out.extend_from_slice(b"false"),
        Value::Number(n) => out.extend_from_slice(n.to_string().as_bytes()),
        Value::String(s) => write_str(out, s),
        Value::Array(items) => {
            out.push(b'[');
            for (i, item) in items.iter().enumerate() {
                if i > 0 {
                    out.push(b',');
                }
                write(out, item);
            }
            out.push(b']');
        }
        Value::Object(map) => {
            let mut w = Members::new(out);
            for (name, value) in map {
                write(w.raw(name), value);
            }
            w.end();
        }
    }
}

/// The compact text of a value.
pub(crate) fn to_string(value: &Value) -> String {
    let mut out = Vec::new();
    write(&mut out, value);
    String::from_utf8(out).unwrap_or_default()
}

/// An object of a built-in kind: `kind`, `apiVersion`, `metadata`, then `fields` in their order, then the rest.
pub(crate) fn write_builtin(out: &mut Vec<u8>, map: &Map<String, Value>, fields: &[&str]) {
    let mut w = Members::new(out);
    for first in ["kind", "apiVersion"] {
        if let Some(v) = map.get(first) {
            write(w.raw(first), v);
        }
    }
    if let Some(meta) = map.get("metadata") {
        write_metadata(w.raw("metadata"), meta);
    }
    for name in fields {
        if let Some(v) = map.get(*name) {
            write(w.raw(name), v);
        }
    }
    for (name, v) in map {
        if !matches!(name.as_str(), "kind" | "apiVersion" | "metadata") && !fields.contains(&name.as_str()) {
            write(w.raw(name), v);
        }
    }
    w.end();
}

/// `metadata` in struct order.
pub(crate) fn write_metadata(out: &mut Vec<u8>, meta: &Value) {
    let Some(map) = meta.as_object() else { return write(out, meta) };
    let mut w = Members::new(out);
    for name in METADATA {
        if let Some(v) = map.get(name) {
            write(w.raw(name), v);
        }
    }
    w.end();
}

/// Writes one object member by member.
pub(crate) struct Members<'a> {
    out: &'a mut Vec<u8>,
    first: bool,
}

impl<'a> Members<'a> {
    pub(crate) fn new(out: &'a mut Vec<u8>) -> Self {
        out.push(b'{');
        Self { out, first: true }
    }

    /// Starts a member; the caller writes its value.
    pub(crate) fn raw(&mut self, name: &str) -> &mut Vec<u8> {
        if !self.first {
            self.out.push(b',');
        }
        self.first = false;
        write_str(self.out, name);
        self.out.push(b':');
        self.out
    }

    /// A string member, left out if empty.
    pub(crate) fn text(&mut self, name: &str, value: &str) {
        if !value.is_empty() {
            write_str(self.raw(name), value);
        }
    }

    pub(crate) fn end(self) {
        self.out.push(b'}');
    }
}

/// Two-space indentation of compact JSON, as the real server does for people at a terminal.
#[must_use]
pub(crate) fn pretty(compact: &[u8]) -> Vec<u8> {
    fn line(out: &mut Vec<u8>, depth: usize) {
        out.push(b'\n');
        out.resize(out.len() + 2 * depth, b' ');
    }
    let mut out = Vec::with_capacity(compact.len() * 2);
    let (mut depth, mut in_string, mut escaped) = (0usize, false, false);
    for (i, &b) in compact.iter().enumerate() {
        if in_string {
            out.push(b);
            match b {
                _ if escaped => escaped = false,
                b'\\' => escaped = true,
                b'"' => in_string = false,
                _ => {}
            }
            continue;
        }
        match b {
            b'"' => {
                in_string = true;
                out.push(b);
            }
            b'{' | b'[' => {
                out.push(b);
                if !matches!(compact.get(i + 1), Some(b'}' | b']')) {
                    depth += 1;
                    line(&mut out, depth);
                }
            }
            b'}' | b']' => {
                if !matches!(compact[..i].last(), Some(b'{' | b'[')) {
                    depth = depth.saturating_sub(1);
                    line(&mut out, depth);
                }
                out.push(b);
            }
            b',' => {
                out.push(b);
                line(&mut out, depth);
            }
            b':' => out.extend_from_slice(b": "),
            b'\n' => {}
            _ => out.push(b),
        }
    }
    out
}

/// The name that Go's decoder gives to a JSON value's type.
pub(crate) fn go_type(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// Parses a body; the error is in the words of Go's `encoding/json` where the case is a usual one.
pub(crate) fn parse(body: &[u8]) -> Result<Value, String> {
    serde_json::from_slice(body).map_err(|e| explain(body, &e))
}

fn explain(body: &[u8], error: &serde_json::Error) -> String {
    if error.is_eof() {
        return "unexpected end of JSON input".to_owned();
    }
    // serde_json counts lines and columns from one; the column is that of the offending byte.
    let before: usize =
        body.split_inclusive(|b| *b == b'\n').take(error.line().saturating_sub(1)).map(<[u8]>::len).sum();
    let at = (before + error.column().saturating_sub(1)).min(body.len().saturating_sub(1));
    let text = error.to_string();
    let place = if text.starts_with("key must be a string") {
        "looking for beginning of object key string"
    } else if text.starts_with("expected value") || text.starts_with("expected ident") {
        "looking for beginning of value"
    } else if text.starts_with("expected `:`") {
        "after object key"
    } else if text.starts_with("expected `,` or `}`") {
        "after object key:value pair"
    } else if text.starts_with("expected `,` or `]`") {
        "after array element"
    } else if text.starts_with("trailing characters") {
        "after top-level value"
    } else {
        return text;
    };
    let shown = String::from_utf8_lossy(&body[at..body.len().min(at + 4)]);
    let c = shown.chars().next().unwrap_or(' ');
    format!("invalid character {c:?} {place}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_are_escaped_as_go_does() {
        let mut out = Vec::new();
        write_str(&mut out, "a<b>&\"\\\n\u{1}é");
        assert_eq!(String::from_utf8(out).unwrap(), "\"a\\u003cb\\u003e\\u0026\\\"\\\\\\n\\u0001é\"");
    }

    #[test]
    fn builtin_order_is_struct_order() {
        let v: Value = serde_json::from_str(
            r#"{"apiVersion":"v1","data":{"a":"b"},"kind":"ConfigMap","metadata":{"uid":"u","name":"n","labels":{}}}"#,
        )
        .unwrap();
        let mut out = Vec::new();
        write_builtin(&mut out, v.as_object().unwrap(), &["data"]);
        assert_eq!(
            String::from_utf8(out).unwrap(),
            r#"{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"n","uid":"u","labels":{}},"data":{"a":"b"}}"#
        );
    }

    #[test]
    fn pretty_print_keeps_strings_and_empty_containers() {
        let text = String::from_utf8(pretty(br#"{"a":{},"b":["x,{y}\"",1],"c":[]}"#)).unwrap();
        assert_eq!(text, "{\n  \"a\": {},\n  \"b\": [\n    \"x,{y}\\\"\",\n    1\n  ],\n  \"c\": []\n}");
    }

    #[test]
    fn parse_errors_speak_go() {
        assert_eq!(
            parse(b"{bad").unwrap_err(),
            "invalid character 'b' looking for beginning of object key string"
        );
        assert_eq!(parse(b"").unwrap_err(), "unexpected end of JSON input");
        assert_eq!(parse(b"x").unwrap_err(), "invalid character 'x' looking for beginning of value");
        assert!(parse(&[b'['; 100_000]).is_err());
    }
}
