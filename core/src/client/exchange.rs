//! One request at a time over one connection at a time.

#[cfg(test)]
mod tests;

use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;
use core::mem;
use core::time::Duration;

use serde::{Deserialize, Serialize};

use super::redact::redact;
use super::{Effect, Endpoint, ExchangeError, ExchangeErrorKind as Kind, IDLE_AGE};
use crate::api::Request;
use crate::auth::{Authenticator, Ready};
use crate::config::{FileError, Secret};
use crate::limits;
use crate::machine::{Deadline, Machine, Outputs, Reason};
use crate::net::{ConnId, NetError, NetErrorKind, NetEvent};
use crate::time::{Clock, Time};
use crate::wire::WireError;
use crate::wire::http::{
    HttpEvent, HttpLimits, Method, RequestHead, ResponseContext, ResponseDecoder, ResponseHead, header,
    write_request,
};

/// Reading a file of a few KiB takes no longer, unless its file system hangs.
const CREDENTIAL: Duration = Duration::from_secs(10);

/// How long each part of an exchange may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Timeouts {
    /// Name resolution, TCP and TLS together.
    pub connect: Duration,
    /// From the request to the whole head of the answer.
    pub first_byte: Duration,
    /// Longest silence inside the body of an answer. `None` is for watches, whose owner knows how long they may be
    /// silent; an answer that is not 2xx has a limit all the same.
    pub body_idle: Option<Duration>,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self { connect: limits::CONNECT, first_byte: limits::FIRST_BYTE, body_idle: Some(limits::BODY_IDLE) }
    }
}

impl Timeouts {
    /// For an answer that is a stream and may be silent.
    #[must_use]
    pub fn watch() -> Self {
        Self { body_idle: None, ..Self::default() }
    }
}

/// A request on its way out.
#[derive(Clone, PartialEq, Eq)]
pub struct Outgoing {
    /// Method, path and query (below the server's base path), headers. `Host`, `Authorization` (unless there is one),
    /// `User-Agent`, `Accept-Encoding` and the length are added.
    pub head: RequestHead,
    /// The body.
    pub body: Option<Vec<u8>>,
    /// Whether it may be sent twice. If so it is, once, when a connection that had been idle turns out to be dead.
    pub idempotent: bool,
    /// Whether this exchange has a connection of its own: not taken from a pool, kept for the next request, given up
    /// only with an error, `Abort` or age. Otherwise a pool may lend one and gets it back.
    pub keep: bool,
    /// The limits.
    pub timeouts: Timeouts,
}

/// Without header values and the body, which may be secret.
impl fmt::Debug for Outgoing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Outgoing")
            .field("head", &self.head)
            .field("body", &self.body.as_ref().map(Vec::len))
            .field("idempotent", &self.idempotent)
            .field("keep", &self.keep)
            .field("timeouts", &self.timeouts)
            .finish()
    }
}

impl Outgoing {
    /// A `GET` of JSON.
    #[must_use]
    pub fn get(path_and_query: impl Into<String>) -> Self {
        Self {
            head: RequestHead {
                method: Method::Get,
                target: path_and_query.into(),
                headers: Vec::from([("Accept".into(), "application/json".into())]),
            },
            body: None,
            idempotent: true,
            keep: false,
            timeouts: Timeouts::default(),
        }
    }

    /// A request as [`api`](crate::api) makes them, over a connection from the pool. Whether it is a
    /// [`misuse`](Request::misuse) is the caller's to check.
    ///
    /// ```
    /// use steersman_core::api::{Api, kinds::ConfigMap};
    /// use steersman_core::client::Outgoing;
    /// let request = Api::<ConfigMap>::namespaced("prod").get("db");
    /// let outgoing = Outgoing::of(&request);
    /// assert_eq!(outgoing.head.target, "/api/v1/namespaces/prod/configmaps/db");
    /// ```
    #[must_use]
    pub fn of<R>(request: &Request<R>) -> Self {
        Self {
            head: RequestHead {
                method: request.method,
                target: request.path_and_query.clone(),
                headers: request.headers.clone(),
            },
            body: request.body.clone(),
            idempotent: request.idempotent,
            keep: false,
            timeouts: Timeouts::default(),
        }
    }
}

/// What can happen to an exchange. A connection or file that is not outstanding makes an input void.
#[derive(Clone, Debug)]
pub enum Input<'a> {
    /// Send this. While another request is under way it is refused.
    Send(Box<Outgoing>),
    /// Something happened on a connection that was asked for.
    Net {
        /// Which.
        conn: ConnId,
        /// What.
        event: NetEvent<'a>,
    },
    /// A file that was asked for.
    File {
        /// Its path, as it was asked for.
        path: &'a str,
        /// All its bytes.
        result: Result<&'a [u8], &'a FileError>,
    },
    /// The answer is no longer wanted, nor is the connection. Nothing is outstanding after it.
    Abort,
    /// Time moved.
    Deadline,
}

/// What an exchange asks for or tells.
///
/// One answer is `Head`, any number of `Body`, then `End`; `Failed` may come at any point instead of the rest.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Output {
    /// Something to do with its connection, or a file.
    Effect(Effect),
    /// The head of the answer, whatever its status.
    Head(ResponseHead),
    /// Bytes of the body of the answer.
    Body(Vec<u8>),
    /// The answer is whole.
    End,
    /// There is no answer, or no more of it.
    Failed(ExchangeError),
    /// A `Send` came while another request was under way, which goes on.
    Refused(Box<Outgoing>),
}

/// Bytes that `Debug` does not show.
#[derive(Clone, PartialEq, Eq)]
pub struct Bytes(pub Vec<u8>);

impl fmt::Debug for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Bytes({})", self.0.len())
    }
}

/// Counters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Requests that were begun.
    pub requests: u64,
    /// Connections that were asked for.
    pub connects: u64,
    /// Requests that were sent again since an idle connection was dead.
    pub stale: u64,
    /// Inputs that named nothing outstanding.
    pub ignored: u64,
}

/// One request at a time over one connection at a time, with a deadline for each part.
///
/// ```
/// use std::sync::Arc;
/// use steersman_core::auth::Authenticator;
/// use steersman_core::client::{Effect, Endpoint, Exchange, Input, Outgoing, Output};
/// use steersman_core::config::{Cluster, Config};
/// use steersman_core::machine::{Machine, Outputs};
/// use steersman_core::net::{ConnId, NetEvent};
/// use steersman_core::time::Time;
///
/// let config = Config::new(Cluster::parse("https://kube:6443").unwrap());
/// let mut exchange = Exchange::new(Arc::new(Endpoint::new(&config)), Authenticator::new(&config));
/// let (t, mut out) = (Time::ZERO, Outputs::new());
/// exchange.handle(t, Input::Send(Box::new(Outgoing::get("/version"))), &mut out);
/// let conn = ConnId(1);
/// assert_eq!(out.drain().next(), Some(Output::Effect(Effect::Connect { conn, may_reuse: true })));
/// exchange.handle(t, Input::Net { conn, event: NetEvent::Connected { reused: false } }, &mut out);
/// assert!(matches!(out.drain().next(), Some(Output::Effect(Effect::Write { .. }))));
/// let answer = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}";
/// exchange.handle(t, Input::Net { conn, event: NetEvent::Received(answer) }, &mut out);
/// assert!(matches!(out.drain().next(), Some(Output::Head(head)) if head.status == 200));
/// ```
#[derive(Debug)]
pub struct Exchange {
    endpoint: Arc<Endpoint>,
    auth: Authenticator,
    clock: Clock,
    last_conn: u64,
    /// The `Authorization` of the last request.
    sent: Option<Secret>,
    state: State,
    stats: Stats,
}

/// A connection that waits for the next request.
#[derive(Clone, Copy, Debug)]
struct Kept {
    conn: ConnId,
    since: Time,
}

/// One request under way.
#[derive(Debug)]
struct Job {
    bytes: Bytes,
    head_method: bool,
    idempotent: bool,
    keep: bool,
    timeouts: Timeouts,
    begun: Time,
    /// Whether it has met a dead connection already.
    stale: bool,
}

#[derive(Debug)]
enum State {
    Idle(Option<Kept>),
    Credential {
        outgoing: Box<Outgoing>,
        path: Arc<str>,
        kept: Option<Kept>,
        until: Time,
    },
    Connecting {
        job: Job,
        conn: ConnId,
        until: Time,
    },
    /// The request is sent; `until` is the deadline of the head, then of progress in the body.
    Answer {
        job: Job,
        conn: ConnId,
        reused: bool,
        decoder: Box<ResponseDecoder>,
        body: bool,
        until: Option<Time>,
    },
}

impl Machine for Exchange {
    type Input<'a> = Input<'a>;
    type Output = Output;

    fn handle(&mut self, now: Time, input: Input<'_>, out: &mut Outputs<Output>) {
        let now = self.clock.advance(now);
        match input {
            Input::Send(outgoing) => self.send(now, outgoing, out),
            Input::Net { conn, event } => self.net(now, conn, event, out),
            Input::File { path, result } => self.file(now, path, result, out),
            Input::Abort => {
                if let Some(conn) = self.conn() {
                    out.push(Output::Effect(Effect::Close { conn }));
                }
                self.state = State::Idle(None);
            }
            Input::Deadline => {
                if let Some(Deadline { at, why }) = self.next_deadline()
                    && at <= now
                {
                    let message = format!("{}: gave up {why}", self.endpoint.address);
                    self.fail(Kind::TimedOut(why), message, out);
                }
            }
        }
    }

    fn next_deadline(&self) -> Option<Deadline> {
        match &self.state {
            State::Idle(_) => None,
            State::Credential { until, .. } => Some(Deadline { at: *until, why: Reason::Credential }),
            State::Connecting { until, .. } => Some(Deadline { at: *until, why: Reason::Connect }),
            State::Answer { until, body, .. } => {
                let why = if *body { Reason::BodyProgress } else { Reason::FirstByte };
                until.map(|at| Deadline { at, why })
            }
        }
    }
}

impl Exchange {
    /// An exchange without a connection.
    #[must_use]
    pub fn new(endpoint: Arc<Endpoint>, auth: Authenticator) -> Self {
        Self {
            endpoint,
            auth,
            clock: Clock::default(),
            last_conn: 0,
            sent: None,
            state: State::Idle(None),
            stats: Stats::default(),
        }
    }

    /// What it has learned of the credentials.
    #[must_use]
    pub const fn auth(&self) -> &Authenticator {
        &self.auth
    }

    /// The same, to teach it.
    pub const fn auth_mut(&mut self) -> &mut Authenticator {
        &mut self.auth
    }

    /// The server.
    #[must_use]
    pub fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    /// Asks for gzip no more.
    #[cfg(feature = "record")]
    pub(crate) fn refuse_gzip(&mut self) {
        Arc::make_mut(&mut self.endpoint).gzip = false;
    }

    /// Whether no request is under way.
    #[must_use]
    pub const fn is_idle(&self) -> bool {
        matches!(self.state, State::Idle(_))
    }

    /// Counters.
    #[must_use]
    pub const fn stats(&self) -> Stats {
        self.stats
    }

    /// The connection that is open or being made.
    const fn conn(&self) -> Option<ConnId> {
        match &self.state {
            State::Idle(Some(kept)) | State::Credential { kept: Some(kept), .. } => Some(kept.conn),
            State::Idle(None) | State::Credential { kept: None, .. } => None,
            State::Connecting { conn, .. } | State::Answer { conn, .. } => Some(*conn),
        }
    }

    /// A text from the server, without the credential that the server may have sent back in it.
    pub(crate) fn redact(&self, text: String) -> String {
        match &self.sent {
            Some(sent) => redact(text, sent.expose()),
            None => text,
        }
    }

    fn fail(&mut self, kind: Kind, message: String, out: &mut Outputs<Output>) {
        if let Some(conn) = self.conn() {
            out.push(Output::Effect(Effect::Close { conn }));
        }
        self.state = State::Idle(None);
        let message = self.redact(message);
        out.push(Output::Failed(ExchangeError { kind, message }));
    }

    fn send(&mut self, now: Time, outgoing: Box<Outgoing>, out: &mut Outputs<Output>) {
        let State::Idle(kept) = self.state else {
            out.push(Output::Refused(outgoing));
            return;
        };
        self.stats.requests += 1;
        if header(&outgoing.head.headers, "authorization").is_some() {
            return self.begin(now, *outgoing, None, kept, out);
        }
        match self.auth.ready(now) {
            Ready::Send(authorization) => self.begin(now, *outgoing, authorization, kept, out),
            Ready::Read(path) => {
                out.push(Output::Effect(Effect::ReadFile { path: path.clone() }));
                self.state = State::Credential { outgoing, path, kept, until: now + CREDENTIAL };
            }
        }
    }

    fn file(&mut self, now: Time, path: &str, result: Result<&[u8], &FileError>, out: &mut Outputs<Output>) {
        let mut idle = State::Idle(None);
        match &self.state {
            State::Credential { path: wanted, .. } if **wanted == *path => {
                mem::swap(&mut idle, &mut self.state)
            }
            _ => {
                self.stats.ignored += 1;
                return;
            }
        }
        let State::Credential { outgoing, kept, .. } = idle else { return };
        self.state = State::Idle(kept);
        let learned = self.auth.file(now, result);
        match (learned, self.auth.ready(now)) {
            (Ok(()), Ready::Send(authorization)) => self.begin(now, *outgoing, authorization, kept, out),
            (Err(e), _) => {
                self.fail(Kind::Auth, format!("{}: no credentials: {e}", self.endpoint.address), out)
            }
            (Ok(()), Ready::Read(path)) => {
                self.fail(Kind::Auth, format!("{}: {path} gives no token", self.endpoint.address), out);
            }
        }
    }

    /// Everything that is needed is there: write the request, or make a connection first.
    fn begin(
        &mut self,
        now: Time,
        outgoing: Outgoing,
        authorization: Option<Secret>,
        kept: Option<Kept>,
        out: &mut Outputs<Output>,
    ) {
        let Outgoing { mut head, body, idempotent, keep, timeouts } = outgoing;
        head.target.insert_str(0, &self.endpoint.base_path);
        let mut add = |name: &str, value: &str| {
            if header(&head.headers, name).is_none() {
                head.headers.push((name.into(), value.into()));
            }
        };
        if let Some(secret) = &authorization {
            add("Authorization", secret.expose());
        }
        if !self.endpoint.user_agent.is_empty() {
            add("User-Agent", &self.endpoint.user_agent);
        }
        // What has no limit on its silence is a watch; one that wants gzip says so itself.
        let gzip = self.endpoint.gzip && timeouts.body_idle.is_some();
        add("Accept-Encoding", if gzip { "gzip" } else { "identity" });
        self.sent = header(&head.headers, "authorization").map(Secret::new);
        let bytes = match write_request(&head, &self.endpoint.host_header, body.as_deref()) {
            Ok(bytes) => Bytes(bytes),
            Err(e) => {
                // The kept connection is as good as before, but a caller that errs this way is better off without it.
                return self.fail(Kind::Misuse, format!("{}: {e}", self.endpoint.address), out);
            }
        };
        let head_method = head.method == Method::Head;
        let job = Job { bytes, head_method, idempotent, keep, timeouts, begun: now, stale: false };
        match kept {
            Some(kept) if now.since(kept.since) < IDLE_AGE => self.write(now, job, kept.conn, true, out),
            Some(kept) => {
                out.push(Output::Effect(Effect::Close { conn: kept.conn }));
                self.connect(now, job, out);
            }
            None => self.connect(now, job, out),
        }
    }

    fn connect(&mut self, now: Time, job: Job, out: &mut Outputs<Output>) {
        self.last_conn += 1;
        self.stats.connects += 1;
        let conn = ConnId(self.last_conn);
        out.push(Output::Effect(Effect::Connect { conn, may_reuse: !job.keep && !job.stale }));
        let until = now + job.timeouts.connect;
        self.state = State::Connecting { job, conn, until };
    }

    fn write(&mut self, now: Time, mut job: Job, conn: ConnId, reused: bool, out: &mut Outputs<Output>) {
        // The bytes are needed again only where they may be sent again.
        let again = reused && job.idempotent && !job.stale;
        let bytes = if again { job.bytes.clone() } else { Bytes(mem::take(&mut job.bytes.0)) };
        out.push(Output::Effect(Effect::Write { conn, bytes }));
        let context = ResponseContext { method_is_head: job.head_method };
        self.state = State::Answer {
            conn,
            reused,
            decoder: Box::new(ResponseDecoder::new(HttpLimits::from(&self.endpoint.limits), context)),
            body: false,
            until: Some(now + job.timeouts.first_byte),
            job,
        };
    }

    fn net(&mut self, now: Time, conn: ConnId, event: NetEvent<'_>, out: &mut Outputs<Output>) {
        if self.conn() != Some(conn) {
            self.stats.ignored += 1;
            return;
        }
        match (&mut self.state, event) {
            // Nothing was asked: the other side has ended it, or speaks out of turn and must not be believed later.
            (State::Idle(kept) | State::Credential { kept, .. }, event) => {
                if let NetEvent::Received(_) | NetEvent::Eof | NetEvent::Broken(_) = event {
                    *kept = None;
                    out.push(Output::Effect(Effect::Close { conn }));
                } else {
                    self.stats.ignored += 1;
                }
            }
            (State::Connecting { .. }, NetEvent::Connected { reused }) => {
                if let State::Connecting { job, .. } = mem::replace(&mut self.state, State::Idle(None)) {
                    self.write(now, job, conn, reused, out);
                }
            }
            (State::Connecting { .. }, NetEvent::ConnectFailed(e)) => {
                // The executor has ended it already.
                self.state = State::Idle(None);
                self.fail(connect_kind(e), e.message.clone(), out);
            }
            (State::Connecting { .. }, NetEvent::Broken(e)) => {
                self.fail(connect_kind(e), e.message.clone(), out)
            }
            (State::Connecting { .. }, NetEvent::Eof) => {
                self.fail(Kind::Connect, format!("{}: closed while connecting", self.endpoint.address), out);
            }
            (State::Answer { .. }, NetEvent::Received(bytes)) => self.receive(now, bytes, out),
            (State::Answer { decoder, .. }, NetEvent::Eof) => match decoder.eof() {
                Ok(Some(_)) => self.end(now, false, out),
                Err(WireError::ClosedBeforeResponse) => self.lost(now, "closed before the response", out),
                Err(e @ WireError::Truncated(_)) => {
                    self.fail(Kind::Broken, format!("{}: {e}", self.endpoint.address), out);
                }
                Ok(None) => self.fail(Kind::Broken, format!("{}: closed", self.endpoint.address), out),
                Err(e) => self.fail(Kind::Protocol, format!("{}: {e}", self.endpoint.address), out),
            },
            (State::Answer { decoder, .. }, NetEvent::Broken(e)) => {
                if decoder.started() {
                    self.fail(Kind::Broken, e.message.clone(), out);
                } else {
                    self.lost(now, &e.message, out);
                }
            }
            (State::Connecting { .. }, NetEvent::Received(_))
            | (State::Answer { .. }, NetEvent::Connected { .. } | NetEvent::ConnectFailed(_)) => {
                self.stats.ignored += 1;
            }
        }
    }

    /// The connection was gone before the first byte of the answer. Had it been idle before, the server most likely
    /// closed it then and never saw the request; but only a request that may be repeated can count on that.
    fn lost(&mut self, now: Time, why: &str, out: &mut Outputs<Output>) {
        match mem::replace(&mut self.state, State::Idle(None)) {
            State::Answer { mut job, conn, reused: true, .. } if job.idempotent && !job.stale => {
                out.push(Output::Effect(Effect::Close { conn }));
                job.stale = true;
                self.stats.stale += 1;
                self.connect(now, job, out);
            }
            state => {
                self.state = state;
                let address = &self.endpoint.address;
                let message =
                    if why.contains(address.as_str()) { why.into() } else { format!("{address}: {why}") };
                self.fail(Kind::Broken, message, out);
            }
        }
    }

    fn receive(&mut self, now: Time, bytes: &[u8], out: &mut Outputs<Output>) {
        let mut rest = bytes;
        loop {
            let State::Answer { job, decoder, body, until, .. } = &mut self.state else { return };
            match decoder.next(&mut rest) {
                Ok(Some(HttpEvent::Head(head))) => {
                    if head.status == 401 {
                        self.auth.rejected(job.begun);
                    }
                    if matches!(head.status, 300..=303 | 305..=308) {
                        let message = redirect(&self.endpoint.address, &head);
                        return self.fail(Kind::Redirect, message, out);
                    }
                    *body = true;
                    if job.timeouts.body_idle.is_none() && !head.is_success() {
                        job.timeouts.body_idle = Some(limits::BODY_IDLE);
                    }
                    *until = job.timeouts.body_idle.map(|idle| now + idle);
                    out.push(Output::Head(head));
                }
                Ok(Some(HttpEvent::Body(piece))) => out.push(Output::Body(piece.into())),
                Ok(Some(HttpEvent::End { reusable })) => return self.end(now, reusable, out),
                Ok(None) => {
                    if *body && !bytes.is_empty() {
                        *until = job.timeouts.body_idle.map(|idle| now + idle);
                    }
                    return;
                }
                Err(e) => return self.fail(Kind::Protocol, format!("{}: {e}", self.endpoint.address), out),
            }
        }
    }

    fn end(&mut self, now: Time, reusable: bool, out: &mut Outputs<Output>) {
        if let State::Answer { job, conn, .. } = mem::replace(&mut self.state, State::Idle(None)) {
            if !reusable {
                out.push(Output::Effect(Effect::Close { conn }));
            } else if job.keep {
                self.state = State::Idle(Some(Kept { conn, since: now }));
            } else {
                out.push(Output::Effect(Effect::Release { conn }));
            }
        }
        out.push(Output::End);
    }
}

const fn connect_kind(e: &NetError) -> Kind {
    match e.kind {
        NetErrorKind::Refused => Kind::Refused,
        NetErrorKind::Resolve => Kind::Resolve,
        NetErrorKind::Tls => Kind::Tls,
        NetErrorKind::TimedOut => Kind::TimedOut(Reason::Connect),
        NetErrorKind::Reset | NetErrorKind::Other => Kind::Connect,
    }
}

/// Shows where the server points to, without the query, which may hold a one-time secret.
fn redirect(address: &str, head: &ResponseHead) -> String {
    let to = head.header("location").unwrap_or("nowhere").split(['?', '#']).next().unwrap_or_default();
    // Nor the name and password that may stand before the host.
    let to = match to.split_once("//").and_then(|(_, rest)| rest.split('/').next()?.rsplit_once('@')) {
        Some((user, _)) => &to.replacen(user, "…", 1),
        None => to,
    };
    let to: String = to.chars().filter(|c| !c.is_control()).take(200).collect();
    format!("{address}: answered {} and points to {to}; redirects are not followed", head.status)
}
