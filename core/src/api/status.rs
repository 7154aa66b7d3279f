//! The server's `Status`: what went wrong, for machines and for people.

use alloc::borrow::ToOwned;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;
use core::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::answer::quoted;
use crate::limits;
use crate::object::{Scanner, Token};

/// `meta/v1 Status`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Status {
    /// `Success` or `Failure`.
    pub status: String,
    /// For people.
    pub message: String,
    /// For machines: `NotFound`, `Conflict`, `Expired`, ...
    pub reason: String,
    /// The HTTP status code that goes with it.
    pub code: u16,
    /// What it is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub details: Option<StatusDetails>,
}

/// `meta/v1 StatusDetails`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct StatusDetails {
    /// The object's name.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// The API group.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub group: String,
    /// The plural of the resource, oddly named `kind`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub kind: String,
    /// The object's uid.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub uid: String,
    /// Single causes.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub causes: Vec<StatusCause>,
    /// Do not try again earlier.
    #[serde(skip_serializing_if = "is_zero")]
    pub retry_after_seconds: u32,
}

fn is_zero(n: &u32) -> bool {
    *n == 0
}

/// `meta/v1 StatusCause`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct StatusCause {
    /// For machines.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// For people.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// Which field.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub field: String,
}

/// What in a 504 tells that a version lies in the future of the server that was asked.
const TOO_LARGE: &str = "Too large resource version";

/// The title of an HTML page, which tells more than its first line; all of it if it has none.
fn title(html: &str) -> &str {
    let find = |what: &str, from: usize| {
        let rest = html.as_bytes().get(from..)?;
        let at = rest.windows(what.len()).position(|w| w.eq_ignore_ascii_case(what.as_bytes()))?;
        Some(from + at)
    };
    let inside =
        find("<title>", 0).map(|at| at + 7).and_then(|start| html.get(start..find("</title", start)?));
    inside.filter(|t| !t.trim().is_empty()).unwrap_or(html)
}

impl Status {
    /// A failure made up by this side.
    #[must_use]
    pub fn failure(code: u16, reason: impl Into<String>, message: impl Into<String>) -> Self {
        Self { status: "Failure".into(), message: message.into(), reason: reason.into(), code, details: None }
    }

    /// The `Status` of an answer that is not 2xx, whatever its body is: a `Status`; plain text, as overloaded servers
    /// send; HTML from a proxy; JSON of somebody else; nothing. The code of
    /// the HTTP status line counts, unless that is a 2xx.
    #[must_use]
    pub fn from_response(code: u16, content_type: Option<&str>, body: &[u8]) -> Self {
        let text = String::from_utf8_lossy(body);
        let text = text.trim_start_matches('\u{FEFF}').trim();
        if let Some(mut status) = Self::in_body(text) {
            // A failure under a 2xx knows better what it is.
            if status.code == 0 || !(200..300).contains(&code) {
                status.code = code;
            }
            if status.message.is_empty() {
                status.message = format!("{}: no message", words(code));
            }
            return status;
        }
        let html = text.starts_with('<') || content_type.is_some_and(|t| t.contains("html"));
        let message = if text.is_empty() {
            format!("{}: empty answer", words(code))
        } else if html {
            format!("{}: an HTML page, not from an API server? {}", words(code), quoted(title(text)))
        } else if let Some(message) = foreign_message(text) {
            format!("{}: {}", words(code), quoted(&message).trim_matches('"'))
        } else {
            format!("{}: {}", words(code), quoted(text).trim_matches('"'))
        };
        Self::failure(code, reason_of(code), message)
    }

    /// The `Status` that a body is, if it is one.
    #[must_use]
    pub(crate) fn in_body(json: &str) -> Option<Self> {
        // `kind` is among the first members, so that a large body of another kind is not read through.
        let mut s = Scanner::new(json);
        let mut more = s.open_object().ok()?;
        while more {
            let kind = s.key().ok()?.is(json, "kind");
            if kind && s.peek().ok()? == Token::String {
                if s.string().ok()?.is(json, "Status") {
                    return Self::from_value(&serde_json::from_str(json).ok()?);
                }
                return None;
            }
            s.value().ok()?;
            more = s.next_member().ok()?;
        }
        None
    }

    /// The `Status` that an ERROR event carries, or one made up from what it carries.
    #[must_use]
    pub(crate) fn in_event(json: &str) -> Self {
        let status = Self::in_body(json).or_else(|| {
            let value: Value = serde_json::from_str(json).ok()?;
            let known = value.get("message").is_some_and(Value::is_string)
                || value.get("code").is_some_and(Value::is_u64);
            known.then(|| Self::from_value(&value)).flatten()
        });
        let mut status = status.unwrap_or_else(|| {
            // What it carries instead may be an object with secrets.
            Self::failure(500, "", "an error event without a Status")
        });
        if status.code == 0 {
            status.code = code_of(&status.reason);
        }
        status
    }

    /// Takes of a JSON object what has the right type.
    fn from_value(value: &Value) -> Option<Self> {
        let object = value.as_object()?;
        let text = |v: &Value, name: &str| v.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
        let details = object.get("details").filter(|d| d.is_object()).map(|d| StatusDetails {
            name: text(d, "name"),
            group: text(d, "group"),
            kind: text(d, "kind"),
            uid: text(d, "uid"),
            causes: d
                .get("causes")
                .and_then(Value::as_array)
                .into_iter()
                .flatten()
                .map(|c| StatusCause {
                    reason: text(c, "reason"),
                    message: text(c, "message"),
                    field: text(c, "field"),
                })
                .collect(),
            retry_after_seconds: d
                .get("retryAfterSeconds")
                .and_then(Value::as_u64)
                .map_or(0, |s| u32::try_from(s).unwrap_or(u32::MAX)),
        });
        Some(Self {
            status: text(value, "status"),
            message: text(value, "message"),
            reason: text(value, "reason"),
            code: object.get("code").and_then(Value::as_u64).and_then(|c| u16::try_from(c).ok()).unwrap_or(0),
            details,
        })
    }

    /// Whether it tells of a failure.
    #[must_use]
    pub fn is_failure(&self) -> bool {
        self.status != "Success"
    }

    /// As client-go does: the reason counts; the code only if the reason is none that is known.
    fn is(&self, reason: &str, code: u16) -> bool {
        self.reason == reason || (self.code == code && !KNOWN.contains(&self.reason.as_str()))
    }

    fn has_cause(&self, reason: &str) -> bool {
        self.details.as_ref().is_some_and(|d| d.causes.iter().any(|c| c.reason == reason))
    }

    /// Something is not there: the object, its namespace, or the resource itself (see
    /// [`is_object_not_found`](Self::is_object_not_found)).
    #[must_use]
    pub fn is_not_found(&self) -> bool {
        self.is("NotFound", 404)
    }

    /// The object that was asked for is not there. A 404 without a name is none: there it is the path that does not
    /// exist, since its CustomResourceDefinition is missing or its server is away, and nothing is known of the object.
    #[must_use]
    pub fn is_object_not_found(&self) -> bool {
        self.is_not_found() && self.details.as_ref().is_some_and(|d| !d.name.is_empty())
    }

    /// The object has changed meanwhile, a precondition does not hold, or (with
    /// [`conflicting_fields`](Self::conflicting_fields)) another manager owns what was applied.
    #[must_use]
    pub fn is_conflict(&self) -> bool {
        self.is("Conflict", 409)
    }

    /// The fields of a failed apply that belong to others: field path and message. Reading again does not help there.
    pub fn conflicting_fields(&self) -> impl Iterator<Item = (&str, &str)> {
        let causes = self.details.iter().flat_map(|d| &d.causes);
        causes.filter(|c| c.reason == "FieldManagerConflict").map(|c| (c.field.as_str(), c.message.as_str()))
    }

    /// An object of this name is there already.
    #[must_use]
    pub fn is_already_exists(&self) -> bool {
        self.reason == "AlreadyExists"
    }

    /// The server has forgotten the version or the continue token: reasons `Expired` and `Gone`, and every 410.
    #[must_use]
    pub fn is_expired(&self) -> bool {
        self.reason == "Expired" || self.reason == "Gone" || self.code == 410
    }

    /// The same as [`is_expired`](Self::is_expired), under its HTTP name.
    #[must_use]
    pub fn is_gone(&self) -> bool {
        self.is_expired()
    }

    /// The version lies in the server's future: a restored etcd, or another server of the cluster that lags. All four
    /// dialects: the cause `ResourceVersionTooLarge`; a timeout with a cause of that message (1.17.0 to 1.18.5); with
    /// the text in the message alone (older); and etcd's own 500.
    #[must_use]
    pub fn is_too_large_resource_version(&self) -> bool {
        if self.has_cause("ResourceVersionTooLarge") {
            return true;
        }
        if self.is("Timeout", 504) {
            let causes = self.details.iter().flat_map(|d| &d.causes);
            return self.message.contains(TOO_LARGE) || causes.into_iter().any(|c| c.message == TOO_LARGE);
        }
        self.code == 500 && self.message.contains("required revision is a future revision")
    }

    /// Nobody is allowed to do that, or at least not this user.
    #[must_use]
    pub fn is_forbidden(&self) -> bool {
        self.is("Forbidden", 403)
    }

    /// The namespace is ending, so that nothing can be created in it; trying again does not help.
    #[must_use]
    pub fn is_namespace_terminating(&self) -> bool {
        self.is_forbidden() && self.has_cause("NamespaceTerminating")
    }

    /// The credentials are missing, wrong or expired.
    #[must_use]
    pub fn is_unauthorized(&self) -> bool {
        self.is("Unauthorized", 401)
    }

    /// The object breaks the schema or a rule of its kind.
    #[must_use]
    pub fn is_invalid(&self) -> bool {
        self.is("Invalid", 422)
    }

    /// The server has too much to do, and has not run the request.
    #[must_use]
    pub fn is_too_many_requests(&self) -> bool {
        self.is("TooManyRequests", 429)
    }

    /// `details.retryAfterSeconds`, clamped; `None` if the server did not say.
    #[must_use]
    pub fn retry_after(&self) -> Option<Duration> {
        let seconds = self.details.as_ref().map_or(0, |d| d.retry_after_seconds);
        (seconds > 0).then(|| Duration::from_secs(seconds.into()).min(limits::RETRY_AFTER_MAX))
    }
}

/// `message (reason, code)`.
impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let message = if self.message.is_empty() { "no message" } else { self.message.as_str() };
        f.write_str(message)?;
        match (self.reason.as_str(), self.code) {
            ("", 0) => Ok(()),
            ("", code) => write!(f, " ({code})"),
            (reason, 0) => write!(f, " ({reason})"),
            (reason, code) => write!(f, " ({reason}, {code})"),
        }
    }
}

impl core::error::Error for Status {}

/// The reasons of `meta/v1`, and the code that goes with each (`apimachinery/pkg/apis/meta/v1/types.go`).
const REASONS: [(&str, u16); 20] = [
    ("BadRequest", 400),
    ("Unauthorized", 401),
    ("Forbidden", 403),
    ("NotFound", 404),
    ("MethodNotAllowed", 405),
    ("NotAcceptable", 406),
    ("AlreadyExists", 409),
    ("Conflict", 409),
    ("Gone", 410),
    ("Expired", 410),
    ("RequestEntityTooLarge", 413),
    ("UnsupportedMediaType", 415),
    ("Invalid", 422),
    ("TooManyRequests", 429),
    ("InternalError", 500),
    ("ServerTimeout", 500),
    ("StoreReadError", 500),
    ("ServiceUnavailable", 503),
    ("Timeout", 504),
    ("ClientWatchDecoding", 500),
];
const KNOWN: [&str; 20] = {
    let mut names = [""; 20];
    let mut i = 0;
    while i < 20 {
        names[i] = REASONS[i].0;
        i += 1;
    }
    names
};

/// The reason that goes with a code, as client-go has it for answers that are no `Status`; empty if none does.
fn reason_of(code: u16) -> &'static str {
    match code {
        // Which of its reasons it is, a bare code does not tell; a conflict is what one may try again after.
        409 => "Conflict",
        410 => "Gone",
        500 => "InternalError",
        _ => REASONS.iter().find(|r| r.1 == code).map_or("", |r| r.0),
    }
}

fn code_of(reason: &str) -> u16 {
    REASONS.iter().find(|r| r.0 == reason).map_or(500, |r| r.1)
}

fn words(code: u16) -> String {
    let words = match code {
        400 => "bad request",
        401 => "unauthorized",
        403 => "forbidden",
        404 => "not found",
        405 => "method not allowed",
        406 => "not acceptable",
        408 => "request timeout",
        409 => "conflict",
        410 => "gone",
        413 => "request too large",
        415 => "unsupported media type",
        422 => "unprocessable",
        429 => "too many requests",
        500 => "internal server error",
        502 => "bad gateway",
        503 => "service unavailable",
        504 => "gateway timeout",
        _ => return format!("HTTP status {code}"),
    };
    words.to_string()
}

/// `message` of JSON that is no `Status`; Rancher and others send such.
fn foreign_message(text: &str) -> Option<String> {
    let value: Value = serde_json::from_str(text).ok()?;
    let message = value.get("message").or_else(|| value.get("error"))?.as_str()?;
    (!message.is_empty()).then(|| message.to_owned())
}
