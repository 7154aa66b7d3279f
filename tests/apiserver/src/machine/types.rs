//! What goes into the machine and what comes out.

use std::sync::Arc;
use std::time::Duration;

use steersman_core::net::ConnId;
use steersman_core::time::UnixMillis;

use crate::resource::Resource;

/// Who asks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Identity {
    /// The user's name.
    pub user: String,
    /// The groups; `system:masters` may do everything.
    pub groups: Vec<String>,
}

impl Identity {
    /// A user in groups.
    #[must_use]
    pub fn new(user: &str, groups: &[&str]) -> Self {
        Self { user: user.to_owned(), groups: groups.iter().map(|g| (*g).to_owned()).collect() }
    }
}

/// One HTTP request, whole.
#[derive(Clone, Default)]
pub struct ApiRequest {
    /// `GET`, `POST`, ...
    pub method: String,
    /// The path as it came, still percent-encoded, without the query.
    pub path: String,
    /// What follows `?`, without it.
    pub query: String,
    /// Header lines; names are compared without regard to case.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: Vec<u8>,
    /// Whom the connection's client certificate names, if it had one.
    pub user: Option<Identity>,
    /// There is a certificate, but nobody vouches for it.
    pub untrusted_certificate: bool,
}

impl ApiRequest {
    /// A request without headers and body.
    #[must_use]
    pub fn new(method: &str, target: &str) -> Self {
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        Self { method: method.to_owned(), path: path.to_owned(), query: query.to_owned(), ..Self::default() }
    }

    /// The same with a header.
    #[must_use]
    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// The same with a body and its type.
    #[must_use]
    pub fn body(self, content_type: &str, body: impl Into<Vec<u8>>) -> Self {
        let mut with = self.header("content-type", content_type);
        with.body = body.into();
        with
    }

    /// The same as another user.
    #[must_use]
    pub fn user(mut self, user: Identity) -> Self {
        self.user = Some(user);
        self
    }

    /// The first header of this name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(n, _)| n.eq_ignore_ascii_case(name)).map(|(_, v)| v.as_str())
    }
}

// Headers and body may hold credentials and Secrets.
impl std::fmt::Debug for ApiRequest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}?{} ({} bytes)", self.method, self.path, self.query, self.body.len())
    }
}

/// What happens to the server. Wall time comes along where it may be written down.
#[derive(Clone, Debug)]
pub enum Input {
    /// A whole request arrived.
    Request {
        /// The connection that waits for the answer; one request at a time.
        conn: ConnId,
        /// Wall time now.
        wall: UnixMillis,
        /// The request.
        request: ApiRequest,
    },
    /// The connection is gone; nothing more is sent on it.
    Gone {
        /// Which.
        conn: ConnId,
    },
    /// Time moved.
    Deadline {
        /// Wall time now.
        wall: UnixMillis,
    },
}

/// What the server wants done.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Output {
    /// A whole answer.
    Respond {
        /// Where.
        conn: ConnId,
        /// HTTP status code.
        status: u16,
        /// Headers, without `Content-Length` and `Date`.
        headers: Vec<(&'static str, String)>,
        /// Body; shared where several connections get the same.
        body: Arc<[u8]>,
    },
    /// The head of an answer whose body comes in chunks.
    StreamHead {
        /// Where.
        conn: ConnId,
        /// HTTP status code.
        status: u16,
        /// Headers, without `Transfer-Encoding` and `Date`.
        headers: Vec<(&'static str, String)>,
    },
    /// A piece of the body: one or several whole lines.
    StreamChunk {
        /// Where.
        conn: ConnId,
        /// The bytes; shared by all watchers that get the same event.
        bytes: Arc<[u8]>,
    },
    /// The body is complete; the connection can carry another request.
    StreamEnd {
        /// Where.
        conn: ConnId,
    },
    /// Close the connection without another word (a fault that a test asked for).
    Close {
        /// Which.
        conn: ConnId,
    },
}

/// How the server behaves.
#[derive(Clone, Debug)]
pub struct Options {
    /// Bearer tokens and whom they name. Without tokens and certificates everybody is anonymous.
    pub tokens: Vec<(String, Identity)>,
    /// Whether requests without credentials may do everything. Off: they are `system:anonymous` without rights.
    pub open: bool,
    /// What users outside `system:masters` may do.
    pub grants: Vec<Grant>,
    /// Resources beside the built-in ones.
    pub resources: Vec<Resource>,
    /// Time between bookmarks of a watch. The real server: about a minute.
    pub bookmark_interval: Duration,
    /// Most events kept per resource; a watch from an older version is told 410.
    pub history_events: usize,
    /// How long events are kept. The real server compacts after five minutes.
    pub history_age: Duration,
    /// From a deletion to the work that follows from it (garbage collection, the contents of a namespace).
    pub background_delay: Duration,
    /// How long a read at a future version waits. The real server: three seconds.
    pub future_wait: Duration,
    /// Shortest life of a watch without `timeoutSeconds`; the longest is twice that. The real server: 30 minutes.
    pub min_request_timeout: Duration,
    /// Largest request body. The real server: 3 MiB.
    pub max_body: usize,
    /// The seed of uids and generated names.
    pub seed: u64,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            tokens: Vec::new(),
            open: false,
            grants: Vec::new(),
            resources: Vec::new(),
            bookmark_interval: Duration::from_secs(60),
            history_events: 100_000,
            history_age: Duration::from_secs(300),
            background_delay: Duration::from_millis(50),
            future_wait: Duration::from_secs(3),
            min_request_timeout: Duration::from_secs(1800),
            max_body: 3 * 1024 * 1024,
            seed: 1,
        }
    }
}

/// A right: this user may use these verbs on this resource, everywhere.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Grant {
    /// The user's name.
    pub user: String,
    /// `get`, `list`, `watch`, `create`, ...; `*` is every verb.
    pub verbs: Vec<String>,
    /// The plural, with `/status` for a subresource; `*` is everything.
    pub resource: String,
}

/// A disturbance that a test asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// Only requests of this verb (`list`, `watch`, `patch`, ...).
    pub verb: Option<String>,
    /// Only requests of this plural.
    pub resource: Option<String>,
    /// How many matching requests pass first.
    pub skip: u32,
    /// How many requests it hits; then it is used up.
    pub times: u32,
    /// What happens to them.
    pub then: FaultKind,
}

/// What a [`Fault`] does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FaultKind {
    /// Answers with a `Status` of this code, reason and message.
    Answer {
        /// HTTP status code.
        code: u16,
        /// `reason`.
        reason: &'static str,
        /// `message`.
        message: String,
        /// Seconds for `Retry-After`.
        retry_after: Option<u32>,
    },
    /// Answers with these bytes instead.
    Raw {
        /// HTTP status code.
        code: u16,
        /// `Content-Type`.
        content_type: String,
        /// Body.
        body: Vec<u8>,
    },
    /// Never answers.
    Hang,
    /// Closes the connection before doing anything.
    Drop,
    /// Does it, then closes the connection instead of answering: the client cannot know.
    DropAfter,
}

/// Figures for tests and logs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Requests handled.
    pub requests: u64,
    /// Writes that made a new version.
    pub writes: u64,
    /// Watches open now.
    pub watches: usize,
    /// Watch events sent, all watches together.
    pub events_sent: u64,
    /// Inputs that came with an earlier time than one before.
    pub clock_clamped: u64,
}
