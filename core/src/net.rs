//! What machines and executors say to each other about connections.

use alloc::string::String;
use core::fmt;

use serde::{Deserialize, Serialize};

/// Names one connection of one machine; never reused by it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ConnId(pub u64);

/// What an executor tells of a connection that a machine asked for.
#[derive(Clone, Copy, Debug)]
pub enum NetEvent<'a> {
    /// TCP and TLS stand. `reused`: it came from the pool, so the server may have closed it meanwhile.
    Connected {
        /// Whether it has carried requests before.
        reused: bool,
    },
    /// It could not be made.
    ConnectFailed(&'a NetError),
    /// Bytes came.
    Received(&'a [u8]),
    /// The other side ended it in order (FIN; with TLS a `close_notify` or not).
    Eof,
    /// It broke.
    Broken(&'a NetError),
}

/// Why a connection could not be made, or broke. Never holds a secret.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NetError {
    /// The class, for decisions.
    pub kind: NetErrorKind,
    /// One line for people, naming the host or address.
    pub message: String,
}

/// Classes of network failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub enum NetErrorKind {
    /// The host name does not resolve.
    Resolve,
    /// Nobody listens.
    Refused,
    /// The other side reset the connection.
    Reset,
    /// A time limit of the executor or the kernel ran out.
    TimedOut,
    /// TLS failed: an untrusted certificate, a wrong name, an alert. Repeating it seldom helps.
    Tls,
    /// Anything else.
    Other,
}

impl fmt::Display for NetError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl core::error::Error for NetError {}
