//! What can go wrong between a request and its answer.

use alloc::boxed::Box;
use alloc::string::String;
use core::fmt;
use core::time::Duration;

use crate::api::Status;
use crate::machine::Reason;

/// Why an exchange has no answer, or only half of one. `Display` is one line that names the server; it holds no secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExchangeError {
    /// The class, for decisions.
    pub kind: ExchangeErrorKind,
    /// One line for people.
    pub message: String,
}

/// Classes of failed exchanges.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ExchangeErrorKind {
    /// Nobody listens. The request was not sent.
    Refused,
    /// The host name does not resolve. The request was not sent.
    Resolve,
    /// TLS failed while connecting. The request was not sent.
    Tls,
    /// The connection could not be made for another reason. The request was not sent.
    Connect,
    /// The connection ended or broke before the answer was whole. What became of the request is unknown.
    Broken,
    /// A deadline ran out. Unless it was that of connecting or of a credential, what became of the request is unknown.
    TimedOut(Reason),
    /// The answer makes no sense as HTTP.
    Protocol,
    /// The server wants us to go elsewhere. Not followed: credentials go to the configured server only.
    Redirect,
    /// There is no credential to send. The request was not sent.
    Auth,
    /// The request cannot be sent at all: the caller's mistake.
    Misuse,
}

impl ExchangeErrorKind {
    /// Whether it is certain that the server never saw the request.
    #[must_use]
    pub const fn not_sent(self) -> bool {
        matches!(
            self,
            Self::Refused
                | Self::Resolve
                | Self::Tls
                | Self::Connect
                | Self::TimedOut(Reason::Connect | Reason::Credential)
                | Self::Auth
                | Self::Misuse
        )
    }
}

impl fmt::Display for ExchangeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl core::error::Error for ExchangeError {}

/// Why a call has no answer. `Display` is one line: what was asked for, the server, the reason. It holds no secret.
///
/// ```
/// use steersman_core::api::Status;
/// use steersman_core::client::{Error, ErrorKind};
/// let status = Status::failure(404, "NotFound", "configmaps \"a\" not found");
/// let e = Error::new(ErrorKind::Api(status), "get configmaps prod/a", "10.0.0.1:6443");
/// assert!(e.is_not_found());
/// assert_eq!(
///     e.to_string(),
///     "get configmaps prod/a: 10.0.0.1:6443: configmaps \"a\" not found (NotFound, 404)"
/// );
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Error(Box<Inner>);

#[derive(Clone, Debug, PartialEq)]
struct Inner {
    kind: ErrorKind,
    what: String,
    address: String,
    retry_after: Option<Duration>,
}

/// Classes of failed calls.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The server (or something before it) refused; the `Status` is its own or was made up from its answer.
    Api(Status),
    /// The connection could not be made, or was lost.
    Net(ExchangeError),
    /// A deadline ran out.
    TimedOut(Reason),
    /// The answer makes no sense as HTTP, is a redirect, or is too long.
    Protocol(String),
    /// The answer is not what was asked for.
    Decode(String),
    /// There is no credential to send.
    Auth(String),
    /// The request is a mistake; it was not sent.
    Misuse(String),
}

impl Error {
    /// An error about `what` was asked for (`get configmaps prod/a`) of the server at `address` (`10.0.0.1:6443`).
    #[must_use]
    pub fn new(kind: ErrorKind, what: impl Into<String>, address: impl Into<String>) -> Self {
        Self(Box::new(Inner { kind, what: what.into(), address: address.into(), retry_after: None }))
    }

    pub(super) fn with_retry_after(mut self, retry_after: Option<Duration>) -> Self {
        self.0.retry_after = retry_after;
        self
    }

    /// The class.
    #[must_use]
    pub const fn kind(&self) -> &ErrorKind {
        &self.0.kind
    }

    /// What was asked for.
    #[must_use]
    pub fn what(&self) -> &str {
        &self.0.what
    }

    /// The server's `Status`, if it answered.
    #[must_use]
    pub const fn status(&self) -> Option<&Status> {
        match &self.0.kind {
            ErrorKind::Api(status) => Some(status),
            _ => None,
        }
    }

    /// How long the server asked us to wait.
    #[must_use]
    pub const fn retry_after(&self) -> Option<Duration> {
        self.0.retry_after
    }

    /// Whether the object (or the resource, or the path) does not exist; see [`Status::is_object_not_found`].
    #[must_use]
    pub fn is_not_found(&self) -> bool {
        self.status().is_some_and(Status::is_not_found)
    }

    /// Whether the object has changed since it was read.
    #[must_use]
    pub fn is_conflict(&self) -> bool {
        self.status().is_some_and(Status::is_conflict)
    }

    /// Whether nobody knows if the server carried the request out: the connection was lost, or the time was up, after it had
    /// been sent.
    #[must_use]
    pub const fn is_unknown(&self) -> bool {
        match &self.0.kind {
            ErrorKind::Net(e) => !e.kind.not_sent(),
            ErrorKind::TimedOut(reason) => !ExchangeErrorKind::TimedOut(*reason).not_sent(),
            _ => false,
        }
    }

    /// Whether there is an object of this name already.
    #[must_use]
    pub fn is_already_exists(&self) -> bool {
        self.status().is_some_and(Status::is_already_exists)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Inner { kind, what, address, .. } = &*self.0;
        match kind {
            ErrorKind::Api(status) => write!(f, "{what}: {address}: {status}"),
            ErrorKind::Net(e) => write!(f, "{what}: {e}"),
            ErrorKind::TimedOut(reason) => write!(f, "{what}: {address}: gave up {reason}"),
            ErrorKind::Decode(why) => write!(f, "{what}: {address}: {why}"),
            // These say whom they are about themselves.
            ErrorKind::Protocol(why) | ErrorKind::Auth(why) => write!(f, "{what}: {why}"),
            ErrorKind::Misuse(why) => match why.strip_prefix(what.as_str()) {
                Some(_) => f.write_str(why),
                None => write!(f, "{what}: {why}"),
            },
        }
    }
}

impl core::error::Error for Error {}
