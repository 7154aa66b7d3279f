//! One request as a value.

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;
use core::marker::PhantomData;

use super::{Answer, AnswerError, Method, Raw, ResourceType};

/// A request to the API server, ready to be sent by whoever has a connection; its answer is read into an `R`.
///
/// Host and credentials are not part of it.
pub struct Request<R> {
    /// The method.
    pub method: Method,
    /// Path and query, percent-encoded; empty if the request is a [`misuse`](Self::misuse).
    pub path_and_query: String,
    /// `Accept`, and `Content-Type` if there is a body.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: Option<Vec<u8>>,
    /// What it is, for people: `get configmaps prod/a`.
    pub what: String,
    /// Whether it may be sent again when nobody knows what became of it: reads, dry runs and applies.
    pub idempotent: bool,
    pub(super) misuse: Option<String>,
    /// The resource of which only metadata is asked for.
    pub(super) metadata_of: Option<ResourceType>,
    pub(super) answer: PhantomData<fn() -> R>,
}

impl<R> Request<R> {
    /// A request by hand, for what [`Api`](super::Api) has no word for. `path_and_query` is sent as it is.
    #[must_use]
    pub fn new(method: Method, path_and_query: impl Into<String>) -> Self {
        let path_and_query = path_and_query.into();
        let what = alloc::format!("{method} {}", path_and_query.split('?').next().unwrap_or_default());
        let well_formed =
            path_and_query.starts_with('/') && path_and_query.bytes().all(|b| b.is_ascii_graphic());
        let misuse = (!well_formed).then(|| alloc::format!("{what}: not a path"));
        Self {
            method,
            path_and_query,
            headers: Vec::from([("Accept".into(), super::JSON.into())]),
            body: None,
            what,
            idempotent: matches!(method, Method::Get | Method::Head),
            misuse,
            metadata_of: None,
            answer: PhantomData,
        }
    }

    /// Gives it a body.
    #[must_use]
    pub fn with_body(mut self, content_type: impl Into<String>, body: Vec<u8>) -> Self {
        self.headers.retain(|(name, _)| !name.eq_ignore_ascii_case("content-type"));
        self.headers.push(("Content-Type".into(), content_type.into()));
        self.body = Some(body);
        self
    }

    /// Asks for another form of the answer.
    #[must_use]
    pub fn accept(mut self, accept: impl Into<String>) -> Self {
        self.headers.retain(|(name, _)| !name.eq_ignore_ascii_case("accept"));
        self.headers.insert(0, ("Accept".into(), accept.into()));
        self
    }

    /// Why it must not be sent: a mistake of whoever made it, such as an empty name. It is found when the request is
    /// made and reported when it is sent, so that requests can be built without a `Result` at each step.
    #[must_use]
    pub fn misuse(&self) -> Option<&str> {
        self.misuse.as_deref()
    }

    /// Reads the body of a 2xx answer to it.
    ///
    /// # Errors
    /// As [`Answer::decode`].
    pub fn read(&self, body: &[u8]) -> Result<R, AnswerError>
    where
        R: Answer,
    {
        match &self.metadata_of {
            Some(resource) => R::decode_metadata(body, resource),
            None => R::decode(body),
        }
    }

    /// A request as it was recorded.
    #[cfg(feature = "record")]
    pub(crate) fn with_misuse(mut self, misuse: Option<String>) -> Self {
        self.misuse = misuse;
        self
    }

    /// The same request, with the answer left as bytes.
    #[must_use]
    pub fn into_raw(self) -> Request<Raw> {
        self.into_answer()
    }

    /// The same request, with the answer read into something else.
    #[must_use]
    pub fn into_answer<S>(self) -> Request<S> {
        Request {
            method: self.method,
            path_and_query: self.path_and_query,
            headers: self.headers,
            body: self.body,
            what: self.what,
            idempotent: self.idempotent,
            misuse: self.misuse,
            metadata_of: self.metadata_of,
            answer: PhantomData,
        }
    }
}

impl<R> Clone for Request<R> {
    fn clone(&self) -> Self {
        Self {
            method: self.method,
            path_and_query: self.path_and_query.clone(),
            headers: self.headers.clone(),
            body: self.body.clone(),
            what: self.what.clone(),
            idempotent: self.idempotent,
            misuse: self.misuse.clone(),
            metadata_of: self.metadata_of.clone(),
            answer: PhantomData,
        }
    }
}

impl<R> PartialEq for Request<R> {
    fn eq(&self, other: &Self) -> bool {
        self.method == other.method
            && self.path_and_query == other.path_and_query
            && self.headers == other.headers
            && self.body == other.body
            && self.misuse == other.misuse
    }
}

impl<R> Eq for Request<R> {}

/// Without the body, which may be secret.
impl<R> fmt::Debug for Request<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Request({} {}", self.method, self.path_and_query)?;
        if let Some(body) = &self.body {
            write!(f, ", {} bytes", body.len())?;
        }
        if let Some(misuse) = &self.misuse {
            write!(f, ", misuse: {misuse}")?;
        }
        f.write_str(")")
    }
}

/// The answer of a request whose body is a stream without an end: it is taken frame by frame, never read whole.
#[derive(Clone, Copy, Debug)]
pub enum Streaming {}
