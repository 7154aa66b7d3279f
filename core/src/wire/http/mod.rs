//! HTTP/1.1 (RFC 9112), both halves, without I/O.
//!
//! The client half writes a request ([`write_request`]) and decodes its response ([`ResponseDecoder`]); the server half
//! decodes requests ([`RequestDecoder`]) and writes responses. Neither pipelines: bytes after a response mean that the
//! connection is not to be used again.

mod body;
mod client;
mod head;
mod retry_after;
mod server;
mod warning;

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use serde::{Deserialize, Serialize};

use super::gzip::GzipLimits;
use crate::limits::WireLimits;

pub use client::{HttpEvent, ResponseContext, ResponseDecoder, write_request};
pub use retry_after::retry_after;
pub use server::{
    BodyFraming, IncomingHead, IncomingRequest, RequestDecoder, RequestEvent, reason_phrase, write_chunk,
    write_continue, write_last_chunk, write_response, write_response_head,
};
pub use warning::warnings;

/// A request method.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
#[allow(missing_docs, reason = "the names are the protocol's own")]
pub enum Method {
    Get,
    Head,
    Post,
    Put,
    Patch,
    Delete,
    Options,
    Connect,
}

impl Method {
    /// As it stands on the wire.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Get => "GET",
            Self::Head => "HEAD",
            Self::Post => "POST",
            Self::Put => "PUT",
            Self::Patch => "PATCH",
            Self::Delete => "DELETE",
            Self::Options => "OPTIONS",
            Self::Connect => "CONNECT",
        }
    }

    /// The method of this (case-sensitive) name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        use Method::{Connect, Delete, Get, Head, Options, Patch, Post, Put};
        [Get, Head, Post, Put, Patch, Delete, Options, Connect].into_iter().find(|m| m.as_str() == name)
    }
}

impl fmt::Display for Method {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// What stands above the body of a request.
///
/// `Debug` shows header names only: values may be credentials.
#[derive(Clone, PartialEq, Eq)]
pub struct RequestHead {
    /// The method.
    pub method: Method,
    /// Path and query, percent-encoded, beginning with `/` (or `host:port` for `CONNECT`).
    pub target: String,
    /// Names and values in order. `Host` and `Content-Length` are written by the codec.
    pub headers: Vec<(String, String)>,
}

impl fmt::Debug for RequestHead {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<_> = self.headers.iter().map(|(name, _)| name).collect();
        f.debug_struct("RequestHead")
            .field("method", &self.method)
            .field("target", &self.target)
            .field("headers", &names)
            .finish()
    }
}

/// What stands above the body of a response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResponseHead {
    /// The status code.
    pub status: u16,
    /// The words after it; may be empty.
    pub reason: String,
    /// Whether it is HTTP/1.0.
    pub http10: bool,
    /// Names as they came and values, in order. What is not UTF-8 is replaced.
    pub headers: Vec<(String, String)>,
}

impl ResponseHead {
    /// The first value of a header; names are compared without case.
    ///
    /// ```
    /// # use steersman_core::wire::http::ResponseHead;
    /// let headers = vec![("content-type".into(), "application/json".into())];
    /// let head = ResponseHead { status: 200, reason: "OK".into(), http10: false, headers };
    /// assert_eq!(head.header("Content-Type"), Some("application/json"));
    /// ```
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        header(&self.headers, name)
    }

    /// Whether the status is 2xx.
    #[must_use]
    pub const fn is_success(&self) -> bool {
        self.status / 100 == 2
    }
}

/// The first value of a header; names are compared without case.
#[must_use]
pub fn header<'a>(headers: &'a [(String, String)], name: &str) -> Option<&'a str> {
    headers.iter().find(|(n, _)| n.eq_ignore_ascii_case(name)).map(|(_, v)| v.as_str())
}

/// What a codec accepts. The defaults are those of [`crate::limits`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HttpLimits {
    /// Longest head, in bytes.
    pub head_bytes: usize,
    /// Most header lines.
    pub headers: usize,
    /// Longest body that the server half keeps, in bytes. The client half lends bodies and keeps none.
    pub body_bytes: usize,
    /// What a gzip body may be.
    pub gzip: GzipLimits,
}

impl Default for HttpLimits {
    fn default() -> Self {
        Self::from(&WireLimits::DEFAULT)
    }
}

impl From<&WireLimits> for HttpLimits {
    fn from(limits: &WireLimits) -> Self {
        Self {
            head_bytes: limits.head_bytes,
            headers: limits.headers,
            body_bytes: limits.body_bytes,
            gzip: GzipLimits {
                ratio: limits.gzip_ratio,
                free_bytes: limits.gzip_free_bytes,
                head_bytes: limits.gzip_head_bytes,
            },
        }
    }
}

#[cfg(test)]
mod tests;
