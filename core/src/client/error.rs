//! What can go wrong between a request and its answer.

use alloc::string::String;
use core::fmt;

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
