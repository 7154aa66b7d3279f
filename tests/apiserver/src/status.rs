//! Failures as the API server words them: `meta/v1 Status` bodies.

use serde_json::Value;

use crate::json;

/// A request that failed, before it becomes a `Status` body.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Failure {
    /// The HTTP status code.
    pub code: u16,
    /// `NotFound`, `Conflict`, ...; empty if the server gives none.
    pub reason: &'static str,
    /// For people.
    pub message: String,
    /// `details`; `None` leaves the member out.
    pub details: Option<Box<Details>>,
    /// A token for an inconsistent rest of an expired list.
    pub continue_token: String,
    /// Not a Status at all: a plain text body, as muxes below the API answer.
    pub plain: bool,
}

/// `meta/v1 StatusDetails`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Details {
    /// The object's name.
    pub name: String,
    /// The API group.
    pub group: String,
    /// The plural, or for invalid objects the kind.
    pub kind: String,
    /// The object's uid.
    pub uid: String,
    /// Single causes.
    pub causes: Vec<Cause>,
    /// Seconds to wait.
    pub retry_after: u32,
}

/// `meta/v1 StatusCause`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cause {
    /// For machines.
    pub reason: &'static str,
    /// For people.
    pub message: String,
    /// Which field.
    pub field: String,
}

/// The group and the plural or kind that a message is about.
#[derive(Clone, Copy, Debug)]
pub(crate) struct About<'a> {
    pub(crate) group: &'a str,
    pub(crate) kind: &'a str,
}

impl About<'_> {
    fn qualified(self) -> String {
        if self.group.is_empty() { self.kind.to_owned() } else { format!("{}.{}", self.kind, self.group) }
    }

    fn details(self, name: &str) -> Box<Details> {
        Box::new(Details {
            name: name.to_owned(),
            group: self.group.to_owned(),
            kind: self.kind.to_owned(),
            ..Details::default()
        })
    }
}

/// One thing wrong with one field.
#[derive(Clone, Debug)]
pub(crate) struct FieldError {
    pub(crate) reason: &'static str,
    pub(crate) field: String,
    pub(crate) message: String,
}

impl FieldError {
    pub(crate) fn required(field: &str, detail: &str) -> Self {
        let message =
            if detail.is_empty() { "Required value".to_owned() } else { format!("Required value: {detail}") };
        Self { reason: "FieldValueRequired", field: field.to_owned(), message }
    }

    pub(crate) fn invalid(field: impl Into<String>, value: &Value, detail: &str) -> Self {
        let shown = json::to_string(value);
        Self {
            reason: "FieldValueInvalid",
            field: field.into(),
            message: format!("Invalid value: {shown}: {detail}"),
        }
    }

    pub(crate) fn invalid_str(field: impl Into<String>, value: &str, detail: &str) -> Self {
        Self {
            reason: "FieldValueInvalid",
            field: field.into(),
            message: format!("Invalid value: {value:?}: {detail}"),
        }
    }

    pub(crate) fn forbidden(field: &str, detail: &str) -> Self {
        Self {
            reason: "FieldValueForbidden",
            field: field.to_owned(),
            message: format!("Forbidden: {detail}"),
        }
    }

    pub(crate) fn unsupported(field: &str, value: &str, supported: &str) -> Self {
        Self {
            reason: "FieldValueNotSupported",
            field: field.to_owned(),
            message: format!("Unsupported value: {value}: supported values: {supported}"),
        }
    }
}

impl Failure {
    pub(crate) fn bad_request(message: impl Into<String>) -> Self {
        Self { code: 400, reason: "BadRequest", message: message.into(), ..Self::default() }
    }

    /// Errors inside the real server that nobody gave a reason.
    pub(crate) fn internal(message: impl Into<String>) -> Self {
        Self { code: 500, message: message.into(), ..Self::default() }
    }

    pub(crate) fn page_not_found() -> Self {
        Self { code: 404, message: "404 page not found\n".into(), plain: true, ..Self::default() }
    }

    pub(crate) fn no_such_resource() -> Self {
        Self {
            code: 404,
            reason: "NotFound",
            message: "the server could not find the requested resource".into(),
            details: Some(Box::default()),
            ..Self::default()
        }
    }

    pub(crate) fn method_not_allowed() -> Self {
        Self {
            code: 405,
            reason: "MethodNotAllowed",
            message: "the server does not allow this method on the requested resource".into(),
            details: Some(Box::default()),
            ..Self::default()
        }
    }

    pub(crate) fn not_found(about: About<'_>, name: &str) -> Self {
        Self {
            code: 404,
            reason: "NotFound",
            message: format!("{} {name:?} not found", about.qualified()),
            details: Some(about.details(name)),
            ..Self::default()
        }
    }

    pub(crate) fn already_exists(about: About<'_>, name: &str, ending: bool) -> Self {
        let prefix = if ending { "object is being deleted: " } else { "" };
        Self {
            code: 409,
            reason: "AlreadyExists",
            message: format!("{prefix}{} {name:?} already exists", about.qualified()),
            details: Some(about.details(name)),
            ..Self::default()
        }
    }

    pub(crate) fn conflict(about: About<'_>, name: &str, why: &str) -> Self {
        Self {
            code: 409,
            reason: "Conflict",
            message: format!("Operation cannot be fulfilled on {} {name:?}: {why}", about.qualified()),
            details: Some(about.details(name)),
            ..Self::default()
        }
    }

    pub(crate) fn modified(about: About<'_>, name: &str) -> Self {
        Self::conflict(
            about,
            name,
            "the object has been modified; please apply your changes to the latest version and try again",
        )
    }

    pub(crate) fn forbidden(about: About<'_>, name: &str, why: &str) -> Self {
        let what = about.qualified();
        let named = if name.is_empty() { what } else { format!("{what} {name:?}") };
        Self {
            code: 403,
            reason: "Forbidden",
            message: format!("{named} is forbidden: {why}"),
            details: Some(about.details(name)),
            ..Self::default()
        }
    }

    pub(crate) fn unauthorized() -> Self {
        Self { code: 401, reason: "Unauthorized", message: "Unauthorized".into(), ..Self::default() }
    }

    /// A rejected patch body that the real server words in one sentence, whatever was wrong.
    pub(crate) fn patch_rejected() -> Self {
        Self {
            code: 422,
            reason: "Invalid",
            message: "the server rejected our request due to an error in our request".into(),
            details: Some(Box::default()),
            ..Self::default()
        }
    }

    pub(crate) fn unsupported_media(accepted: &str) -> Self {
        Self {
            code: 415,
            reason: "UnsupportedMediaType",
            message: format!(
                "the body of the request was in an unknown format - accepted media types include: {accepted}"
            ),
            ..Self::default()
        }
    }

    pub(crate) fn invalid(about: About<'_>, name: &str, errors: Vec<FieldError>) -> Self {
        let lines: Vec<String> = errors.iter().map(|e| format!("{}: {}", e.field, e.message)).collect();
        // The real server says every distinct error once in the message, but lists all of them as causes.
        let mut distinct: Vec<&String> = Vec::new();
        for line in &lines {
            if !distinct.contains(&line) {
                distinct.push(line);
            }
        }
        let text = match distinct.as_slice() {
            [one] => (*one).clone(),
            many => format!("[{}]", many.iter().map(|s| s.as_str()).collect::<Vec<_>>().join(", ")),
        };
        let mut details = about.details(name);
        details.causes = errors
            .into_iter()
            .map(|e| Cause { reason: e.reason, message: e.message, field: e.field })
            .collect();
        Self {
            code: 422,
            reason: "Invalid",
            message: format!("{} {name:?} is invalid: {text}", about.qualified()),
            details: Some(details),
            ..Self::default()
        }
    }

    pub(crate) fn too_large_version(asked: u64, current: u64) -> Self {
        Self {
            code: 504,
            reason: "Timeout",
            message: format!("Timeout: Too large resource version: {asked}, current: {current}"),
            details: Some(Box::new(Details {
                causes: vec![Cause {
                    reason: "ResourceVersionTooLarge",
                    message: "Too large resource version".into(),
                    field: String::new(),
                }],
                retry_after: 1,
                ..Details::default()
            })),
            ..Self::default()
        }
    }

    pub(crate) fn expired(message: impl Into<String>) -> Self {
        Self { code: 410, reason: "Expired", message: message.into(), ..Self::default() }
    }

    /// The body: a `Status` in the order of the real server's members, or plain text.
    #[must_use]
    pub fn body(&self) -> Vec<u8> {
        if self.plain {
            return self.message.clone().into_bytes();
        }
        let mut out = Vec::with_capacity(256);
        out.extend_from_slice(b"{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"metadata\":{");
        if !self.continue_token.is_empty() {
            out.extend_from_slice(b"\"continue\":");
            json::write_str(&mut out, &self.continue_token);
        }
        out.extend_from_slice(b"},\"status\":\"Failure\"");
        member(&mut out, "message", &self.message);
        member(&mut out, "reason", self.reason);
        if let Some(d) = &self.details {
            out.extend_from_slice(b",\"details\":");
            d.write(&mut out);
        }
        out.extend_from_slice(format!(",\"code\":{}}}\n", self.code).as_bytes());
        out
    }
}

impl Details {
    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        let mut w = json::Members::new(out);
        w.text("name", &self.name);
        w.text("group", &self.group);
        w.text("kind", &self.kind);
        w.text("uid", &self.uid);
        if !self.causes.is_empty() {
            let out = w.raw("causes");
            out.push(b'[');
            for (i, c) in self.causes.iter().enumerate() {
                if i > 0 {
                    out.push(b',');
                }
                let mut w = json::Members::new(out);
                w.text("reason", c.reason);
                w.text("message", &c.message);
                w.text("field", &c.field);
                w.end();
            }
            out.push(b']');
        }
        if self.retry_after > 0 {
            w.raw("retryAfterSeconds").extend_from_slice(self.retry_after.to_string().as_bytes());
        }
        w.end();
    }
}

fn member(out: &mut Vec<u8>, name: &str, value: &str) {
    if !value.is_empty() {
        out.push(b',');
        json::write_str(out, name);
        out.push(b':');
        json::write_str(out, value);
    }
}

/// `Status` of a deletion that left nothing to show.
pub(crate) fn deleted_body(about: About<'_>, name: &str, uid: &str) -> Vec<u8> {
    let mut out =
        b"{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"metadata\":{},\"status\":\"Success\",\"details\":"
            .to_vec();
    let mut details = about.details(name);
    details.uid = uid.to_owned();
    details.write(&mut out);
    out.extend_from_slice(b"}\n");
    out
}
