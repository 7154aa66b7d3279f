//! What must not get into a recording, and what stands in its place.

use alloc::string::{String, ToString};
use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

use super::mask::{MASK, Masker};
use crate::api::{Method, ResourceType};

/// What an API server says before what it quotes of an object (`field.Error` of apimachinery).
const QUOTES: &str = "Invalid value:";

/// Which values of objects are masked before they are recorded.
///
/// A masked value keeps its length, so everything that is decided on (framing, sizes, versions, metadata) stays what it was, and
/// its type: base64 stays base64, numbers become other numbers, booleans `true`, and `null` stays. (The length of a boolean tells
/// which it was.) Credentials (`Authorization` and its like, tokens in files, cookies) never get into a recording, whatever
/// stands here. (One that the server sends back is masked too, but is not found in what comes compressed, and its first seven
/// characters may stand at the end of what was read at once.)
///
/// While masked objects are recorded, their source or call does not ask for gzip, for what is compressed cannot be masked in
/// place; a server that compresses all the same ends the recording of that machine.
///
/// Servers quote what they refuse: the messages of answers to writes of masked resources are masked as well, and in what
/// reconciles and calls say of their failures everything after `Invalid value:`. What else a program puts into its errors, its
/// paths and the names and labels of objects is recorded as it is.
///
/// What is lost: functions of a controller that look at masked values see others in a replay; and a value that was not valid
/// JSON is recorded as one that is.
///
/// ```
/// use steersman_core::record::Redaction;
/// let redaction = Redaction::default();
/// assert_eq!(redaction.members, ["data", "stringData"]);
/// assert_eq!(redaction.resources.as_deref(), Some(&["secrets".to_string()][..]));
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Redaction {
    /// Plural names of the resources whose objects are masked, whatever their group; `None`: of all.
    pub resources: Option<Vec<String>>,
    /// Members of such an object whose values are masked, outside of `metadata`. In `metadata` it is the annotation that
    /// `kubectl apply` leaves, which repeats the object.
    pub members: Vec<String>,
}

impl Default for Redaction {
    /// `data` and `stringData` of Secrets.
    fn default() -> Self {
        Self {
            resources: Some(Vec::from(["secrets".to_string()])),
            members: ["data", "stringData"].map(ToString::to_string).into(),
        }
    }
}

impl Redaction {
    /// Nothing but credentials: the recording holds what Secrets hold.
    #[must_use]
    pub const fn nothing() -> Self {
        Self { resources: Some(Vec::new()), members: Vec::new() }
    }

    /// `data`, `stringData` and `binaryData` of whatever has them.
    #[must_use]
    pub fn everything() -> Self {
        Self {
            resources: None,
            members: ["data", "stringData", "binaryData"].map(ToString::to_string).into(),
        }
    }

    /// Also objects of the resource with this plural.
    #[must_use]
    pub fn also(mut self, plural: impl Into<String>) -> Self {
        if let Some(resources) = &mut self.resources {
            resources.push(plural.into());
        }
        self
    }

    /// What to mask in objects of a resource; `None`: nothing.
    pub(super) fn of(&self, resource: &ResourceType) -> Option<Rules> {
        self.named(|plural| plural == resource.plural).then(|| Rules { members: self.members.clone() })
    }

    /// What to mask in a request to a path and in its answer. Any step of the path may be the resource, for too much
    /// does no harm.
    pub(super) fn of_request(&self, method: Method, path: &str) -> Option<Rules> {
        let path = path.split('?').next().unwrap_or_default();
        let mut steps = path.split('/');
        let mut rules = Rules { members: Vec::new() };
        if self.named(|plural| steps.any(|step| step == plural)) {
            rules.members.clone_from(&self.members);
        }
        // `serviceaccounts/NAME/token` answers with a token in its status; who reviews one sends it.
        if path.ends_with("/token") {
            rules.members.push("status".to_string());
        }
        if path.ends_with("/tokenreviews") {
            rules.members.push("token".to_string());
        }
        // "Invalid value: ", and what was sent.
        if !rules.members.is_empty() && method != Method::Get {
            rules.members.push("message".to_string());
        }
        (!rules.members.is_empty()).then_some(rules)
    }

    fn named(&self, mut is: impl FnMut(&str) -> bool) -> bool {
        !self.members.is_empty() && self.resources.as_ref().is_none_or(|all| all.iter().any(|r| is(r)))
    }
}

/// What is masked in the objects of one machine.
#[derive(Clone, Debug)]
pub(super) struct Rules {
    members: Vec<String>,
}

impl Rules {
    pub(super) fn masker(&self) -> Masker {
        Masker::new(self.members.iter().map(String::as_str))
    }

    /// The JSON of one object, masked.
    pub(super) fn object(&self, json: &str) -> String {
        let mut bytes = json.as_bytes().to_vec();
        self.masker().mask(&mut bytes);
        // A masked string is ASCII, and nothing else was touched.
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// The body of a request, masked. What is no JSON (YAML, protobuf) is masked whole.
    pub(super) fn body(&self, body: &mut [u8]) {
        match body.iter().find(|b| !b.is_ascii_whitespace()) {
            Some(b'{') => self.masker().mask(body),
            // A JSON patch: `value` is what is put into an object.
            Some(b'[') => {
                let members = self.members.iter().map(String::as_str).chain(["value"]);
                Masker::new(members).mask(body);
            }
            _ => body.iter_mut().filter(|b| b.is_ascii_graphic() || !b.is_ascii()).for_each(|b| *b = MASK),
        }
    }
}

/// What people and servers say, without what servers quote. The same if done twice.
pub(super) fn words(text: &str) -> String {
    let at = text.find(QUOTES).map_or(text.len(), |at| at + QUOTES.len());
    let (plain, quoted) = text.split_at(at);
    let mut out = plain.to_string();
    out.extend(quoted.chars().map(|c| if c == ' ' { c } else { 'x' }));
    out
}

/// What `Debug` says, without its texts: only versions and other numbers stay between quotes.
pub(super) fn unquoted(debug: &str) -> String {
    let (mut out, mut rest) = (String::new(), debug);
    while let Some((before, text)) = rest.split_once('"') {
        let mut escaped = false;
        let end = text.find(|c| {
            let plain = !escaped;
            escaped = plain && c == '\\';
            plain && c == '"'
        });
        let (quoted, after) = text.split_at(end.unwrap_or(text.len()));
        out.push_str(before);
        out.push('"');
        if quoted.bytes().all(|b| b.is_ascii_digit()) {
            out.push_str(quoted);
        }
        out.push('"');
        rest = after.strip_prefix('"').unwrap_or_default();
    }
    out.push_str(rest);
    out
}

/// Whether the value of a header, named in lower case, is a credential or the like of one.
pub(super) fn is_secret_header(name: &str) -> bool {
    ["authorization", "cookie", "token", "secret", "password", "api-key"]
        .iter()
        .any(|part| name.contains(part))
}

/// The header with its value masked if that is secret.
pub(super) fn header((name, value): &(String, String)) -> (String, String) {
    if !is_secret_header(&name.to_ascii_lowercase()) {
        return (name.clone(), value.clone());
    }
    // `Bearer` is none.
    let (scheme, secret) = value.split_once(' ').map_or(("", &**value), |(scheme, secret)| (scheme, secret));
    let masked: String = secret.chars().map(|c| if c == ' ' { c } else { 'x' }).collect();
    let blank = if scheme.is_empty() { "" } else { " " };
    (name.clone(), alloc::format!("{scheme}{blank}{masked}"))
}

/// A file that may hold a token, with every character that a token can have replaced: it is a token, or fails to be one, for
/// the same reason as before.
pub(super) fn token_file(bytes: &[u8]) -> Vec<u8> {
    let Ok(text) = core::str::from_utf8(bytes) else {
        // Not text, and as long.
        return alloc::vec![0xFF; bytes.len()];
    };
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        out.push(match c.len_utf8() {
            1 if c.is_ascii_graphic() => 'x',
            2 if !c.is_whitespace() => 'é',
            3 if !c.is_whitespace() => '€',
            4 => '😀',
            // White space is trimmed, control characters are errors.
            _ => c,
        });
    }
    out.into_bytes()
}
