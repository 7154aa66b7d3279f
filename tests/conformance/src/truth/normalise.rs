//! Takes out of an answer what differs from run to run, and keeps what must not: which uids and versions are the same.

use std::collections::BTreeMap;

use serde_json::Value;

/// Names uids and versions by the order of their first appearance, so that "the same as before" can be compared between two
/// servers that count differently.
#[derive(Debug, Default)]
pub struct Normaliser {
    uids: BTreeMap<String, String>,
    versions: BTreeMap<String, String>,
    generated: BTreeMap<String, String>,
}

impl Normaliser {
    /// Normalises one answer (an object, a list, a Status, or an array of watch events) in place.
    ///
    /// - a `uid` becomes `UID<n>`, an object's `resourceVersion` `RV<n>`, a name made from `generateName` `<prefix>GEN<n>`;
    /// - the version of a list or a bookmark becomes `RV`: on a real server it moves with writes that no step made;
    /// - a time becomes `TIME` (whole seconds) or `MICROTIME`; a `continue` token `CONTINUE`;
    /// - bookmarks that follow each other count as one: how many there are is a matter of time;
    /// - `managedFields` and `storageVersionHash` (a name of etcd's encoding) are removed; numbers in a message that speaks of versions become `N`.
    pub fn normalise(&mut self, value: &mut Value) {
        match value {
            Value::Array(events) => {
                events.iter_mut().for_each(|e| self.normalise(e));
                events.dedup_by(|a, b| a == b && a["type"] == "BOOKMARK");
            }
            Value::Object(map) => {
                let bookmark = map.get("type").is_some_and(|t| t == "BOOKMARK");
                if let (true, Some(object)) = (map.contains_key("type"), map.get_mut("object")) {
                    self.walk(object, bookmark);
                } else {
                    let list = map.get("items").is_some_and(Value::is_array)
                        || map.get("kind").is_some_and(|k| k == "Table");
                    self.walk(value, list);
                }
            }
            _ => {}
        }
    }

    /// `moving`: the version in the metadata at this level is not an object's.
    fn walk(&mut self, value: &mut Value, moving: bool) {
        match value {
            Value::Object(map) => {
                map.remove("managedFields");
                map.remove("storageVersionHash");
                let prefix = map.get("generateName").and_then(Value::as_str).map(str::to_owned);
                for (key, child) in map.iter_mut() {
                    match (key.as_str(), &mut *child) {
                        ("uid", Value::String(uid)) => *uid = named(&mut self.uids, uid, "UID"),
                        ("resourceVersion", Value::String(v)) if v != "0" && !v.is_empty() => {
                            *v = if moving { "RV".to_owned() } else { named(&mut self.versions, v, "RV") };
                        }
                        ("continue", Value::String(token)) if !token.is_empty() => {
                            *token = "CONTINUE".to_owned()
                        }
                        ("message", Value::String(message)) => self.message(message),
                        ("name", Value::String(name)) => {
                            let generated = prefix.as_deref().filter(|p| name.starts_with(p) && name != p);
                            if let Some(prefix) = generated {
                                let token = named(&mut self.generated, name, "GEN");
                                *name = format!("{prefix}{token}");
                            }
                        }
                        (_, Value::String(text)) => {
                            if let Some(kind) = time(text) {
                                *text = kind.to_owned();
                            }
                        }
                        ("metadata", Value::Object(_)) => self.walk(child, moving),
                        _ => self.walk(child, false),
                    }
                }
            }
            Value::Array(items) => items.iter_mut().for_each(|i| self.walk(i, false)),
            Value::String(text) => {
                if let Some(kind) = time(text) {
                    *text = kind.to_owned();
                }
            }
            _ => {}
        }
    }

    fn message(&self, message: &mut String) {
        // A test's own short uid would be found inside of words.
        for (uid, name) in self.uids.iter().chain(&self.generated).filter(|(uid, _)| uid.len() >= 8) {
            *message = message.replace(uid, name);
        }
        let lower = message.to_lowercase();
        if lower.contains("resource version") || lower.contains("resourceversion") {
            *message = without_numbers(message);
        }
    }
}

fn named(names: &mut BTreeMap<String, String>, value: &str, prefix: &str) -> String {
    let next = names.len() + 1;
    names.entry(value.to_owned()).or_insert_with(|| format!("{prefix}{next}")).clone()
}

fn without_numbers(text: &str) -> String {
    let mut out = String::new();
    let mut in_number = false;
    for c in text.chars() {
        let digit = c.is_ascii_digit();
        if digit && !in_number {
            out.push('N');
        } else if !digit {
            out.push(c);
        }
        in_number = digit;
    }
    out
}

/// Whether a text is a time as Kubernetes writes it: RFC 3339 in UTC, with six digits of a second or none.
fn time(text: &str) -> Option<&'static str> {
    let shape: String = text.chars().map(|c| if c.is_ascii_digit() { '0' } else { c }).collect();
    match shape.as_str() {
        "0000-00-00T00:00:00Z" => Some("TIME"),
        "0000-00-00T00:00:00.000000Z" => Some("MICROTIME"),
        _ => None,
    }
}
