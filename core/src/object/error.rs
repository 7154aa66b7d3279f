//! Why bytes are not a usable object.

use alloc::borrow::ToOwned;
use alloc::format;
use alloc::string::{String, ToString};
use core::fmt;

use super::Key;

/// An object that cannot be read, or not as the type that was asked for. Its text names fields and places, never
/// values: the object may be a Secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObjectError {
    /// The object's key, if that much could be read.
    pub key: Option<Key>,
    /// Its resource version, if that much could be read; empty otherwise.
    pub resource_version: String,
    /// What is wrong, in one line.
    pub message: String,
}

impl ObjectError {
    /// An error of which no more is known than a line of text.
    #[must_use]
    pub fn new(message: impl Into<String>) -> Self {
        Self { key: None, resource_version: String::new(), message: message.into() }
    }
}

impl fmt::Display for ObjectError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.key {
            Some(key) => write!(f, "{key}: {}", self.message),
            None => f.write_str(&self.message),
        }
    }
}

impl core::error::Error for ObjectError {}

/// The text of a serde error without the value that it quotes.
pub(crate) fn without_values(e: &serde_json::Error) -> String {
    let text = e.to_string();
    for class in ["invalid type: ", "invalid value: "] {
        if let Some(rest) = text.strip_prefix(class) {
            // `string "...", expected u32 at line 1 column 9`: of what was found only the sort may be told.
            let sort: String = rest.chars().take_while(|c| c.is_ascii_alphabetic() || *c == ' ').collect();
            let expected = rest.rfind(", expected").map_or("", |at| &rest[at..]);
            return format!("{class}{}{expected}", sort.trim_end());
        }
    }
    if text.starts_with("unknown variant ") {
        let expected =
            text.rfind(", expected").or_else(|| text.rfind(", there")).map_or("", |at| &text[at..]);
        return "unknown variant".to_owned() + expected;
    }
    text
}
