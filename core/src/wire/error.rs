//! What can be wrong with bytes.

use alloc::string::String;
use core::fmt;

/// The other side sent (or we were asked to send) something that makes no sense.
///
/// Where it quotes what came, it does so in one short line that ends before what looks like a credential, and without the
/// texts in JSON: the message may go to a log.
///
/// A decoder that has answered with one answers with the same from then on.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum WireError {
    /// The first line is not that of HTTP/1; its beginning stands here.
    NotHttp(String),
    /// The head is HTTP but malformed.
    BadHead(&'static str),
    /// The head is longer than this many bytes.
    HeadTooLong(usize),
    /// The head has more than this many header lines.
    TooManyHeaders(usize),
    /// `Content-Length` and `Transfer-Encoding` do not say how long the body is.
    BadLength(&'static str),
    /// A transfer coding other than `chunked`.
    TransferCoding(String),
    /// The body is encoded in a way that this codec does not undo: responses may be `gzip`, once; requests not even that.
    ContentEncoding(String),
    /// A body that should be gzip is not, or is broken.
    Gzip(&'static str),
    /// A gzip body unfolds to more than this many times its size: no list does, a bomb does.
    GzipRatio(u32),
    /// The chunk framing is broken.
    BadChunk(&'static str),
    /// The server switched to another protocol unasked.
    SwitchingProtocols,
    /// More informational (1xx) answers than anybody sends.
    TooManyInformational,
    /// The connection ended before the first byte of an answer. On a reused connection that is the usual sign that the
    /// server closed it while it was idle.
    ClosedBeforeResponse,
    /// The connection or body ended inside of something.
    Truncated(&'static str),
    /// The body is longer than this many bytes.
    BodyTooLong(usize),
    /// A method that this codec does not know (server half).
    UnknownMethod(String),
    /// A version other than HTTP/1.0 and HTTP/1.1 (server half).
    Version(String),
    /// We were asked to write something that would break the message, such as a line end in a header value. Names the
    /// part, never its value.
    Misuse(String),
    /// An answer that should be a list is not JSON; its first bytes stand here.
    NotJson(String),
    /// An answer that should be a list is something else.
    NotAList {
        /// Its `kind`; empty if it has none.
        kind: String,
        /// Its first bytes.
        start: String,
    },
    /// A list whose JSON is broken.
    BadList(&'static str),
}

impl WireError {
    /// The status code with which a server answers a request that has this error.
    #[must_use]
    pub const fn response_code(&self) -> u16 {
        match self {
            Self::HeadTooLong(_) | Self::TooManyHeaders(_) => 431,
            Self::BodyTooLong(_) => 413,
            Self::UnknownMethod(_) | Self::TransferCoding(_) => 501,
            Self::ContentEncoding(_) => 415,
            Self::Version(_) => 505,
            _ => 400,
        }
    }
}

impl fmt::Display for WireError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotHttp(start) => write!(f, "not an HTTP/1 server: it sent {start:?}"),
            Self::BadHead(what) => write!(f, "malformed HTTP head: {what}"),
            Self::HeadTooLong(limit) => write!(f, "HTTP head longer than {limit} bytes"),
            Self::TooManyHeaders(limit) => write!(f, "more than {limit} HTTP header lines"),
            Self::BadLength(what) => write!(f, "unusable length of the HTTP body: {what}"),
            Self::TransferCoding(coding) => write!(f, "unsupported transfer coding {coding:?}"),
            Self::ContentEncoding(coding) => write!(f, "unsupported encoding of the body: {coding:?}"),
            Self::Gzip(what) => write!(f, "broken gzip body: {what}"),
            Self::GzipRatio(limit) => {
                write!(f, "the gzip body unfolds to more than {limit} times its size: a bomb?")
            }
            Self::BadChunk(what) => write!(f, "broken chunked body: {what}"),
            Self::SwitchingProtocols => f.write_str("the server switched protocols unasked (101)"),
            Self::TooManyInformational => {
                f.write_str("the server sends informational answers (1xx) without end")
            }
            Self::ClosedBeforeResponse => f.write_str("connection closed before the response"),
            Self::Truncated(place) => write!(f, "connection closed in the middle of {place}"),
            Self::BodyTooLong(limit) => write!(f, "body longer than {limit} bytes"),
            Self::UnknownMethod(method) => write!(f, "unknown HTTP method {method:?}"),
            Self::Version(version) => write!(f, "unsupported HTTP version {version:?}"),
            Self::Misuse(what) => write!(f, "cannot be sent over HTTP: {what}"),
            Self::NotJson(start) => write!(f, "not a JSON list: the answer begins with {start:?}"),
            Self::NotAList { kind, start } if kind.is_empty() => {
                write!(f, "not a list: the answer begins with {start:?}")
            }
            Self::NotAList { kind, start } => {
                write!(f, "not a list but a {kind}: the answer begins with {start:?}")
            }
            Self::BadList(what) => write!(f, "broken list: {what}"),
        }
    }
}

impl core::error::Error for WireError {}
