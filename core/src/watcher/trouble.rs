//! What kinds of trouble there are, as far as the next step depends on it.

use alloc::format;
use alloc::string::{String, ToString};
use core::time::Duration;

use super::{CloseReason, Rejection};
use crate::api::Status;

/// A failure, sorted by what to do about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Trouble {
    pub(super) class: Class,
    pub(super) error: String,
    pub(super) retry_after: Duration,
    /// The server said that it does not serve this request, and nothing else is to blame.
    pub(super) refused: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Class {
    /// The server has forgotten the version.
    Expired,
    /// The server has not reached the version yet, and may never (client-go calls all of this "too large").
    TooLarge,
    /// The server, or the way to it, is overloaded or away; our request is not to blame.
    Busy,
    /// Our credentials are not right, we may not do this, or there is no such resource.
    Denied,
    /// Anything else; our request may be to blame.
    Other,
}

impl Trouble {
    pub(super) fn new(class: Class, error: impl Into<String>) -> Self {
        Self { class, error: brief(error.into()), retry_after: Duration::ZERO, refused: false }
    }

    pub(super) fn from_rejection(r: &Rejection) -> Self {
        Self::from_parts(r.code, &r.status, r.retry_after)
    }

    pub(super) fn from_status(status: &Status) -> Self {
        Self::from_parts(status.code, status, None)
    }

    fn from_parts(code: u16, status: &Status, retry_after: Option<Duration>) -> Self {
        let told = status.details.as_ref().map_or(0, |d| d.retry_after_seconds);
        let text = match (status.reason.as_str(), status.message.as_str()) {
            ("", "") => format!("HTTP status {code}"),
            ("", message) => format!("{code}: {message}"),
            (reason, "") => format!("{code} {reason}"),
            (reason, message) => format!("{code} {reason}: {message}"),
        };
        let class = classify(code, status);
        let passing = matches!(class, Class::Expired | Class::TooLarge | Class::Busy) || code == 401;
        Self {
            class,
            refused: (400..500).contains(&code) && !passing,
            error: brief(text),
            retry_after: retry_after.unwrap_or_default().max(Duration::from_secs(told.into())),
        }
    }

    pub(super) fn from_close(reason: CloseReason) -> Self {
        match reason {
            CloseReason::Clean => Self::new(Class::Other, "the answer ended before it was complete"),
            CloseReason::Refused(e) | CloseReason::Broken(e) | CloseReason::TimedOut(e) => {
                Self::new(Class::Busy, e)
            }
            CloseReason::Protocol(e) => Self::new(Class::Other, e),
        }
    }
}

fn classify(code: u16, status: &Status) -> Class {
    if status.is_too_large_resource_version() {
        return Class::TooLarge;
    }
    if code == 410 || status.is_expired() {
        return Class::Expired;
    }
    match (code, status.reason.as_str()) {
        // 520 to 530 are Cloudflare's for what it could not get from the server.
        (408 | 425 | 429 | 502..=504 | 520..=530, _)
        | (_, "TooManyRequests" | "ServiceUnavailable" | "Timeout" | "ServerTimeout") => Class::Busy,
        (401 | 403 | 404, _) => Class::Denied,
        _ => Class::Other,
    }
}

/// Error texts come from outside and are kept: the first 500 bytes tell enough.
fn brief(mut text: String) -> String {
    const MAX: usize = 500;
    if text.len() > MAX {
        let end = (0..=MAX).rev().find(|i| text.is_char_boundary(*i)).unwrap_or(0);
        text.truncate(end);
        text.push_str("...");
    }
    if text.contains(['\n', '\r']) { text.replace(['\n', '\r'], " ").trim().to_string() } else { text }
}
