//! What machines and executors say to each other about connections.

use alloc::string::String;
use core::fmt;
use core::time::Duration;

use serde::{Deserialize, Serialize};

use crate::limits::CONNECT_SHARE;

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

/// A dead peer is found by the kernel within this, where the executor can tell it: `TCP_USER_TIMEOUT` for bytes that are
/// out, keepalive probes ([`KEEPALIVE`]) for silence. Go's and Linux' own defaults find it after 2 to 15 minutes.
pub const DEAD_AFTER: Duration = Duration::from_secs(60);
/// Keepalive: the silence before the first probe, the pause between probes, how many. 15 + 3 * 15 s = [`DEAD_AFTER`].
pub const KEEPALIVE: (Duration, Duration, u32) = (Duration::from_secs(15), Duration::from_secs(15), 3);

/// How long to try the next address of a host, of which so many are `untried`, if all of them have to share the time that is
/// `left`: an equal share, but no less than [`CONNECT_SHARE`] as long as there is as much. So a dead address costs the
/// others some of the time and not all of it.
///
/// ```
/// use core::time::Duration;
/// use steersman_core::net::connect_share;
/// let secs = Duration::from_secs;
/// assert_eq!(connect_share(secs(30), 3), secs(10));
/// assert_eq!(connect_share(secs(3), 3), secs(2));
/// assert_eq!(connect_share(secs(1), 3), secs(1));
/// assert_eq!(connect_share(secs(20), 1), secs(20));
/// ```
#[must_use]
pub fn connect_share(left: Duration, untried: usize) -> Duration {
    let untried = u32::try_from(untried).unwrap_or(u32::MAX).max(1);
    (left / untried).max(CONNECT_SHARE).min(left)
}

#[cfg(feature = "std")]
impl NetError {
    /// What an error of the operating system (or of rustls inside one) means; `address` is `host:port`.
    #[must_use]
    pub fn from_io(address: &str, error: &std::io::Error) -> Self {
        use std::io::ErrorKind;
        #[cfg(feature = "tls")]
        if let Some(tls) = error.get_ref().and_then(|e| e.downcast_ref::<rustls::Error>()) {
            return crate::tls::net_error(address, tls);
        }
        let kind = match error.kind() {
            ErrorKind::ConnectionRefused => NetErrorKind::Refused,
            ErrorKind::ConnectionReset | ErrorKind::ConnectionAborted | ErrorKind::BrokenPipe => {
                NetErrorKind::Reset
            }
            ErrorKind::TimedOut | ErrorKind::WouldBlock => NetErrorKind::TimedOut,
            _ => NetErrorKind::Other,
        };
        Self { kind, message: alloc::format!("{address}: {error}") }
    }

    /// Whether an error of a read is the end of the connection and no break: TLS without a `close_notify`, as many proxies
    /// end it. The framing of HTTP tells whether anything is missing.
    #[must_use]
    pub fn is_end(error: &std::io::Error) -> bool {
        error.kind() == std::io::ErrorKind::UnexpectedEof
    }

    /// A host name without an address.
    #[must_use]
    pub fn unresolved(address: &str, why: impl fmt::Display) -> Self {
        Self {
            kind: NetErrorKind::Resolve,
            message: alloc::format!("{address}: cannot resolve the host: {why}"),
        }
    }

    /// A wait that ran out.
    #[must_use]
    pub fn timed_out(address: &str, what: impl fmt::Display) -> Self {
        Self { kind: NetErrorKind::TimedOut, message: alloc::format!("{address}: timed out {what}") }
    }
}
