//! What answers are read into.

use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::{Kind, ResourceType, Status};
use crate::object::{Dropped, Object, ObjectError, ObjectOptions, Salvage, Scanner, Token, without_values};
use crate::wire::quote::quote_text;

/// Why the body of a 2xx answer is not what was asked for.
#[derive(Clone, Debug, PartialEq)]
pub enum AnswerError {
    /// It is a `Status` that tells of a failure, whatever the HTTP status said.
    Status(Box<Status>),
    /// It cannot be read, or is something else.
    Bad(ObjectError),
}

impl AnswerError {
    fn new(message: impl Into<String>) -> Self {
        Self::Bad(ObjectError::new(message))
    }
}

impl From<ObjectError> for AnswerError {
    fn from(e: ObjectError) -> Self {
        Self::Bad(e)
    }
}

impl fmt::Display for AnswerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Status(status) => status.fmt(f),
            Self::Bad(e) => e.fmt(f),
        }
    }
}

impl core::error::Error for AnswerError {}

/// A type that the body of a 2xx answer can be read into.
pub trait Answer: Sized {
    /// Reads a body.
    ///
    /// # Errors
    /// If the body is a failure, unreadable, or something else.
    fn decode(body: &[u8]) -> Result<Self, AnswerError>;

    /// Reads the body of an answer to a request for metadata alone of this resource.
    ///
    /// # Errors
    /// As [`decode`](Self::decode).
    fn decode_metadata(body: &[u8], resource: &ResourceType) -> Result<Self, AnswerError> {
        let _ = resource;
        Self::decode(body)
    }

    /// What a refusal (an answer that is not 2xx) means, if it means something. `Option` makes "not found" a `None`.
    #[must_use]
    fn refused(status: &Status) -> Option<Self> {
        let _ = status;
        None
    }
}

/// The body as text, after the checks that every answer must pass.
fn checked(body: &[u8]) -> Result<&str, AnswerError> {
    let body = body.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(body);
    let Ok(json) = core::str::from_utf8(body) else {
        return Err(AnswerError::new("the answer is not UTF-8"));
    };
    if json.trim_ascii().is_empty() {
        return Err(AnswerError::new("the answer has an empty body"));
    }
    if let Some(status) = Status::in_body(json)
        && status.is_failure()
    {
        return Err(AnswerError::Status(Box::new(status)));
    }
    if !json.trim_ascii_start().starts_with(['{', '[']) {
        return Err(AnswerError::new(format!("the answer is not JSON: {}", quoted(json))));
    }
    Ok(json)
}

/// The first line of a text, shortened and without what may be a credential, for people.
pub(crate) fn quoted(text: &str) -> String {
    const LENGTH: usize = 120;
    let line = text.lines().map(str::trim).find(|l| !l.is_empty()).unwrap_or_default();
    let short: String = line.chars().filter(|c| !c.is_control()).take(LENGTH).collect();
    let cut = line.chars().nth(LENGTH).is_some();
    let mut out = quote_text(&short, cut);
    if cut {
        out.push_str("...");
    }
    format!("{out:?}")
}

/// The kind of an answer that is metadata alone.
const PARTIAL: &str = "PartialObjectMetadata";

fn metadata_of(resource: &ResourceType) -> ObjectOptions {
    ObjectOptions::of(resource).dropping(Dropped::none()).metadata_only()
}

impl Answer for Object {
    fn decode(body: &[u8]) -> Result<Self, AnswerError> {
        // What the caller asked for explicitly is kept whole, so that a replace does not lose what it did not see.
        Ok(Self::from_json_with(checked(body)?.as_bytes(), &ObjectOptions::whole())?)
    }

    fn decode_metadata(body: &[u8], resource: &ResourceType) -> Result<Self, AnswerError> {
        Ok(Self::from_json_with(checked(body)?.as_bytes(), &metadata_of(resource))?)
    }
}

impl<K: Kind + DeserializeOwned> Answer for K {
    fn decode(body: &[u8]) -> Result<Self, AnswerError> {
        let json = checked(body)?;
        serde_json::from_str(json).map_err(|e| {
            let message = format!("not a {}: {}", Self::resource_type().kind, without_values(&e));
            AnswerError::Bad(ObjectError { message, ..Salvage::of(json).error(String::new()) })
        })
    }
}

impl<T: Answer> Answer for Option<T> {
    fn decode(body: &[u8]) -> Result<Self, AnswerError> {
        T::decode(body).map(Some)
    }

    fn decode_metadata(body: &[u8], resource: &ResourceType) -> Result<Self, AnswerError> {
        T::decode_metadata(body, resource).map(Some)
    }

    fn refused(status: &Status) -> Option<Self> {
        // Without a name it is the resource that does not exist, or the path: nothing is known of the object.
        status.is_object_not_found().then_some(None)
    }
}

impl Answer for serde_json::Value {
    fn decode(body: &[u8]) -> Result<Self, AnswerError> {
        serde_json::from_str(checked(body)?).map_err(|e| AnswerError::new(without_values(&e)))
    }
}

/// Whatever it is, it is dropped.
impl Answer for () {
    fn decode(body: &[u8]) -> Result<Self, AnswerError> {
        match core::str::from_utf8(body).ok().and_then(Status::in_body) {
            Some(status) if status.is_failure() => Err(AnswerError::Status(Box::new(status))),
            _ => Ok(()),
        }
    }
}

/// A type that a cached [`Object`] can be read into: `Object` itself, at no cost, or any [`Kind`].
pub trait FromObject: Sized {
    /// Reads it.
    ///
    /// # Errors
    /// If the object is not one of that kind.
    fn from_object(object: &Object) -> Result<Self, ObjectError>;
}

impl FromObject for Object {
    fn from_object(object: &Object) -> Result<Self, ObjectError> {
        Ok(object.clone())
    }
}

impl<K: Kind + DeserializeOwned> FromObject for K {
    fn from_object(object: &Object) -> Result<Self, ObjectError> {
        object.parse()
    }
}

/// The bytes of a body as they came.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Raw(pub Vec<u8>);

impl Raw {
    /// Reads the bytes into a type.
    ///
    /// # Errors
    /// As [`Answer::decode`].
    pub fn read<R: Answer>(&self) -> Result<R, AnswerError> {
        R::decode(&self.0)
    }
}

/// Its length; the bytes may be secret.
impl fmt::Debug for Raw {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Raw({} bytes)", self.0.len())
    }
}

impl Answer for Raw {
    fn decode(body: &[u8]) -> Result<Self, AnswerError> {
        <()>::decode(body)?;
        Ok(Self(body.into()))
    }

    /// A single object is made to say its own kind, since whoever reads the bytes does not know of the request.
    fn decode_metadata(body: &[u8], resource: &ResourceType) -> Result<Self, AnswerError> {
        let raw = Self::decode(body)?;
        match Object::decode(body) {
            Ok(object) if object.kind() == PARTIAL => {
                Ok(Self(Object::decode_metadata(body, resource)?.raw().into()))
            }
            _ => Ok(raw),
        }
    }
}

/// What a delete answers with: it depends on the kind, and on whether finalizers hold the object.
#[derive(Clone, Debug, PartialEq)]
pub enum Deleted {
    /// The object: it may be gone, or wait for its finalizers or its grace period.
    Object(Object),
    /// It is gone; the uid is in the details.
    Status(Status),
}

impl Answer for Deleted {
    fn decode(body: &[u8]) -> Result<Self, AnswerError> {
        let json = checked(body)?;
        match Status::in_body(json) {
            Some(status) => Ok(Self::Status(status)),
            None => Object::decode(body).map(Self::Object),
        }
    }

    fn decode_metadata(body: &[u8], resource: &ResourceType) -> Result<Self, AnswerError> {
        match Self::decode(body)? {
            Self::Object(_) => Object::decode_metadata(body, resource).map(Self::Object),
            status => Ok(status),
        }
    }
}

/// `metadata` of a list.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListMeta {
    /// `metadata.resourceVersion`; empty if absent.
    pub resource_version: String,
    /// `metadata.continue`; empty if absent: this is the last page.
    pub continue_token: String,
    /// `metadata.remainingItemCount`; a server that was given selectors does not tell.
    pub remaining_item_count: Option<u64>,
}

/// A page of a list that was read whole. Caches are filled in another way, item by item as the bytes come.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct List<K> {
    /// Its version, and how to go on.
    pub metadata: ListMeta,
    /// The objects that could be read.
    pub items: Vec<K>,
    /// Why the others could not; a single bad object does not make the rest invisible.
    pub bad: Vec<ObjectError>,
}

impl<K: Answer> Answer for List<K> {
    fn decode(body: &[u8]) -> Result<Self, AnswerError> {
        Self::read(body, None)
    }

    fn decode_metadata(body: &[u8], resource: &ResourceType) -> Result<Self, AnswerError> {
        Self::read(body, Some(resource))
    }
}

impl<K: Answer> List<K> {
    /// `metadata`: the resource of which only metadata was asked for.
    fn read(body: &[u8], metadata: Option<&ResourceType>) -> Result<Self, AnswerError> {
        let json = checked(body)?;
        let page = ListPage::scan(json).map_err(AnswerError::new)?;
        let mut list = Self { metadata: page.metadata, items: Vec::new(), bad: Vec::new() };
        let (api_version, kind) = (page.api_version, page.kind);
        let item_kind = kind.strip_suffix("List").unwrap_or_default();
        // Items of built-in kinds do not say what they are; the list does.
        let options = metadata.map_or_else(
            || ObjectOptions {
                default_type: (!item_kind.is_empty() && !item_kind.starts_with("PartialObject"))
                    .then(|| (api_version, item_kind.into())),
                ..ObjectOptions::whole()
            },
            metadata_of,
        );
        for (start, end) in page.items {
            let object = Object::from_json_with(&json.as_bytes()[start..end], &options);
            match object.map_err(AnswerError::Bad).and_then(|o| K::decode(o.raw())) {
                Ok(item) => list.items.push(item),
                Err(AnswerError::Bad(e)) => list.bad.push(e),
                Err(AnswerError::Status(status)) => list.bad.push(ObjectError::new(status.message)),
            }
        }
        Ok(list)
    }
}

struct ListPage {
    kind: String,
    api_version: String,
    metadata: ListMeta,
    items: Vec<(usize, usize)>,
}

impl ListPage {
    fn scan(json: &str) -> Result<Self, String> {
        let mut page = Self {
            kind: String::new(),
            api_version: String::new(),
            metadata: ListMeta::default(),
            items: Vec::new(),
        };
        let mut found = false;
        let mut s = Scanner::new(json);
        s.members(|s, key| {
            let token = s.peek()?;
            match (&*key.get(json), token) {
                ("kind", Token::String) => page.kind = s.string()?.get(json).into_owned(),
                ("apiVersion", Token::String) => page.api_version = s.string()?.get(json).into_owned(),
                ("metadata", Token::Object) => page.metadata = list_meta(s, json)?,
                ("items", Token::Array) => {
                    found = true;
                    page.items.clear();
                    s.elements(|s| s.value().map(|span| page.items.push(span)))?;
                }
                (name, _) => {
                    // Go writes an empty list as `null`.
                    found |= name == "items" && token == Token::Null;
                    s.value()?;
                }
            }
            Ok(())
        })
        .and_then(|()| s.end())
        .map_err(|e| format!("the list is not JSON: {e}"))?;
        // Anything else would look like an empty list, and empty a cache.
        if !found || page.kind == "Table" {
            let kind = if page.kind.is_empty() { "no kind" } else { page.kind.as_str() };
            return Err(format!("the answer is not a list: {} has no items", quoted(kind)));
        }
        Ok(page)
    }
}

fn list_meta(s: &mut Scanner<'_>, json: &str) -> Result<ListMeta, crate::object::SyntaxError> {
    let mut meta = ListMeta::default();
    s.members(|s, key| {
        match (&*key.get(json), s.peek()?) {
            ("resourceVersion", Token::String) => meta.resource_version = s.string()?.get(json).into_owned(),
            ("continue", Token::String) => meta.continue_token = s.string()?.get(json).into_owned(),
            ("remainingItemCount", Token::Number) => {
                let (start, end) = s.value()?;
                meta.remaining_item_count = json[start..end].parse().ok();
            }
            _ => drop(s.value()?),
        }
        Ok(())
    })?;
    Ok(meta)
}
