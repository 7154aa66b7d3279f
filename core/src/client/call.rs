//! One typed request to its answer.

#[cfg(test)]
mod tests;

use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;
use core::time::Duration;

use serde::{Deserialize, Serialize};

use super::exchange::{self, Exchange};
use super::{
    Driven, Effect, Endpoint, Error, ErrorKind, ExchangeError, ExchangeErrorKind, Happening, Outgoing,
    Timeouts,
};
use crate::api::{Answer, AnswerError, Request, Status, Written};
use crate::auth::Authenticator;
use crate::backoff::{Backoff, Policy};
use crate::config::FileError;
use crate::machine::{Deadline, Machine, Outputs, Reason};
use crate::net::{ConnId, NetEvent};
use crate::rng::Rng;
use crate::time::{Clock, Time};
use crate::wire::http::{self, ResponseHead};

/// When a call is made again.
///
/// | what happened | made again |
/// |---|---|
/// | the connection could not be made, but somebody is there | yes: nothing was sent |
/// | refused, unresolvable, TLS | no: that seldom passes within a call |
/// | the connection was lost | if the request is idempotent |
/// | 429 | yes: the server did not run it |
/// | 503 with `Retry-After` | yes: the server asks for it, as client-go reads it |
/// | 503 | if the request is idempotent |
/// | 502, 504, 520 to 527 | if the request is idempotent and the try was short: a proxy has no answer of its server, as after a lost connection |
/// | 401, and a file holds the token | once, at once, with the file read again |
/// | a deadline ran out | no: the time is gone |
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct RetryPolicy {
    /// Most repetitions, whatever the reasons. client-go has 10.
    pub max_retries: u32,
    /// The pauses; a `Retry-After` is a lower bound of each.
    pub backoff: Policy,
    /// Most time spent in pauses, and in tries for whose answer a proxy waited in vain. A server that asks for more gets its error passed on, with what it asked for, so that
    /// the caller's own queue waits instead of a reconcile.
    pub max_wait: Duration,
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self {
            max_retries: 5,
            backoff: Policy { base: Duration::from_millis(200), cap: Duration::from_secs(5), jitter: 1.0 },
            max_wait: Duration::from_secs(30),
        }
    }
}

impl RetryPolicy {
    /// One try, except that a refused token is read again.
    pub const NEVER: Self = Self {
        max_retries: 0,
        backoff: Policy { base: Duration::ZERO, cap: Duration::ZERO, jitter: 0.0 },
        max_wait: Duration::ZERO,
    };
}

/// What can happen to a call; as with [`exchange::Input`].
#[derive(Clone, Debug)]
pub enum CallInput<'a> {
    /// Begin. A second one does nothing.
    Start,
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
    /// The answer is no longer wanted. Nothing is outstanding after it, and nothing more comes, not even `Done`.
    Abort,
    /// Time moved.
    Deadline,
}

/// What a call asks for or tells.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum CallOutput<R> {
    /// Something to do with a connection or a file.
    Effect(Effect),
    /// For logs: the request will be made again after a pause.
    Retrying {
        /// Why.
        error: Error,
        /// The pause.
        delay: Duration,
    },
    /// The server has written this; comes before `Done`, also if the answer turns out not to be what was wanted. A
    /// reconcile's executor hands it to the controller ([`Input::Wrote`](crate::controller::Input::Wrote)).
    Wrote(Written),
    /// The end, once; nothing comes after it.
    Done(Result<R, Error>),
}

/// Brings one [`Request`] to its answer: the whole body within a limit, errors as the server's `Status`, repetitions
/// where they are safe.
///
/// ```
/// use std::sync::Arc;
/// use steersman_core::api::{Api, kinds::ConfigMap};
/// use steersman_core::auth::Authenticator;
/// use steersman_core::client::{Call, CallInput, CallOutput, Endpoint};
/// use steersman_core::config::{Cluster, Config};
/// use steersman_core::machine::{Machine, Outputs};
/// use steersman_core::net::{ConnId, NetEvent};
/// use steersman_core::time::Time;
///
/// let config = Config::new(Cluster::parse("https://kube:6443").unwrap());
/// let request = Api::<ConfigMap>::namespaced("prod").get("db");
/// let mut call = Call::new(Arc::new(Endpoint::new(&config)), Authenticator::new(&config), request, 1);
/// let (t, conn, mut out) = (Time::ZERO, ConnId(1), Outputs::new());
/// call.handle(t, CallInput::Start, &mut out);
/// call.handle(t, CallInput::Net { conn, event: NetEvent::Connected { reused: false } }, &mut out);
/// let answer = b"HTTP/1.1 404 Not Found\r\nContent-Type: text/plain\r\nContent-Length: 4\r\n\r\ngone";
/// call.handle(t, CallInput::Net { conn, event: NetEvent::Received(answer) }, &mut out);
/// match out.drain().last() {
///     Some(CallOutput::Done(Err(e))) => assert!(e.is_not_found()),
///     other => panic!("{other:?}"),
/// }
/// ```
#[derive(Debug)]
pub struct Call<R> {
    exchange: Exchange,
    request: Request<R>,
    timeouts: Timeouts,
    policy: RetryPolicy,
    body_limit: usize,
    clock: Clock,
    backoff: Backoff,
    rng: Rng,
    retries: u32,
    /// When the present try began.
    begun: Time,
    waited: Duration,
    refreshed: bool,
    state: State,
    scratch: Outputs<exchange::Output>,
}

#[derive(Debug)]
enum State {
    New,
    Running(Collected),
    Pause(Time),
    Done,
}

/// What has come of an answer.
#[derive(Default)]
struct Collected {
    head: Option<ResponseHead>,
    body: Vec<u8>,
    /// Bytes beyond the limit, which were not kept.
    skipped: usize,
}

impl Collected {
    fn success(&self) -> bool {
        self.head.as_ref().is_some_and(ResponseHead::is_success)
    }
}

impl fmt::Debug for Collected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Collected({} bytes)", self.body.len())
    }
}

impl<R: Answer> Machine for Call<R> {
    type Input<'a> = CallInput<'a>;
    type Output = CallOutput<R>;

    fn handle(&mut self, now: Time, input: CallInput<'_>, out: &mut Outputs<CallOutput<R>>) {
        let now = self.clock.advance(now);
        let input = match input {
            CallInput::Start => {
                if matches!(self.state, State::New) {
                    match self.request.misuse() {
                        Some(why) => {
                            let kind = ErrorKind::Misuse(why.into());
                            self.done(Err(self.error(kind)), out);
                        }
                        None => self.attempt(now, out),
                    }
                }
                return;
            }
            CallInput::Deadline => {
                if let State::Pause(until) = self.state {
                    if until <= now {
                        self.attempt(now, out);
                    }
                    return;
                }
                exchange::Input::Deadline
            }
            CallInput::Abort => {
                self.state = State::Done;
                exchange::Input::Abort
            }
            CallInput::Net { conn, event } => exchange::Input::Net { conn, event },
            CallInput::File { path, result } => exchange::Input::File { path, result },
        };
        self.drive(now, input, out);
    }

    fn next_deadline(&self) -> Option<Deadline> {
        match self.state {
            State::New | State::Done => None,
            State::Pause(at) => Some(Deadline { at, why: Reason::Backoff }),
            State::Running(_) => self.exchange.next_deadline(),
        }
    }
}

impl<R: Answer> Driven for Call<R> {
    fn happened(happening: Happening<'_>) -> CallInput<'_> {
        match happening {
            Happening::Net { conn, event } => CallInput::Net { conn, event },
            Happening::File { path, result } => CallInput::File { path, result },
            Happening::Deadline => CallInput::Deadline,
        }
    }

    fn effect(output: CallOutput<R>) -> Result<Effect, CallOutput<R>> {
        match output {
            CallOutput::Effect(effect) => Ok(effect),
            other => Err(other),
        }
    }
}

impl<R: Answer> Call<R> {
    /// A call that has not begun. The seed is for the jitter of its pauses.
    #[must_use]
    pub fn new(endpoint: Arc<Endpoint>, auth: Authenticator, request: Request<R>, seed: u64) -> Self {
        let policy = RetryPolicy::default();
        Self {
            body_limit: endpoint.limits.body_bytes,
            exchange: Exchange::new(endpoint, auth),
            request,
            timeouts: Timeouts::default(),
            policy,
            clock: Clock::default(),
            backoff: Backoff::new(policy.backoff),
            rng: Rng::new(seed),
            retries: 0,
            begun: Time::ZERO,
            waited: Duration::ZERO,
            refreshed: false,
            state: State::New,
            scratch: Outputs::new(),
        }
    }

    /// The same with other rules for repetitions.
    #[must_use]
    pub fn with_policy(mut self, policy: RetryPolicy) -> Self {
        self.policy = policy;
        self.backoff = Backoff::new(policy.backoff);
        self
    }

    /// The same with other deadlines; they hold for each try.
    #[must_use]
    pub fn with_timeouts(mut self, timeouts: Timeouts) -> Self {
        self.timeouts = timeouts;
        self
    }

    /// The same with another limit of the answer's body, in bytes, than the [`Endpoint`] has.
    #[must_use]
    pub fn with_body_limit(mut self, bytes: usize) -> Self {
        self.body_limit = bytes;
        self
    }

    /// What it has learned of the credentials; an executor shares it with [`Authenticator::learn`].
    #[must_use]
    pub const fn auth(&self) -> &Authenticator {
        self.exchange.auth()
    }

    /// What is asked for.
    #[must_use]
    pub const fn request(&self) -> &Request<R> {
        &self.request
    }

    /// Whether it has ended.
    #[must_use]
    pub const fn is_done(&self) -> bool {
        matches!(self.state, State::Done)
    }

    /// What it was made with, but for request and seed.
    #[cfg(feature = "record")]
    pub(crate) const fn parts(&self) -> (&Exchange, Timeouts, RetryPolicy, usize) {
        (&self.exchange, self.timeouts, self.policy, self.body_limit)
    }

    #[cfg(feature = "record")]
    pub(crate) const fn exchange_mut(&mut self) -> &mut Exchange {
        &mut self.exchange
    }

    fn error(&self, kind: ErrorKind) -> Error {
        let redact = |text| self.exchange.redact(text);
        let kind = match kind {
            ErrorKind::Api(mut status) => {
                status.message = redact(status.message);
                ErrorKind::Api(status)
            }
            ErrorKind::Protocol(why) => ErrorKind::Protocol(redact(why)),
            ErrorKind::Decode(why) => ErrorKind::Decode(redact(why)),
            other => other,
        };
        Error::new(kind, self.request.what.as_str(), self.exchange.endpoint().address.as_str())
    }

    fn done(&mut self, result: Result<R, Error>, out: &mut Outputs<CallOutput<R>>) {
        self.state = State::Done;
        out.push(CallOutput::Done(result));
    }

    fn attempt(&mut self, now: Time, out: &mut Outputs<CallOutput<R>>) {
        self.state = State::Running(Collected::default());
        self.begun = now;
        let outgoing = Outgoing { timeouts: self.timeouts, ..Outgoing::of(&self.request) };
        self.drive(now, exchange::Input::Send(Box::new(outgoing)), out);
    }

    fn drive(&mut self, now: Time, input: exchange::Input<'_>, out: &mut Outputs<CallOutput<R>>) {
        let mut scratch = core::mem::take(&mut self.scratch);
        self.exchange.handle(now, input, &mut scratch);
        for output in scratch.drain() {
            self.take(now, output, out);
        }
        if let State::Running(collected) = &mut self.state
            && collected.skipped
                > if collected.success() { 0 } else { self.exchange.endpoint().limits.error_skip_bytes }
        {
            // Enough is enough. Only now, since the outputs of one input belong together.
            let collected = core::mem::take(collected);
            self.exchange.handle(now, exchange::Input::Abort, &mut scratch);
            for output in scratch.drain() {
                self.take(now, output, out);
            }
            self.finish(now, collected, out);
        }
        self.scratch = scratch;
    }

    fn take(&mut self, now: Time, output: exchange::Output, out: &mut Outputs<CallOutput<R>>) {
        use exchange::Output as O;
        match (output, &mut self.state) {
            (O::Effect(effect), _) => out.push(CallOutput::Effect(effect)),
            (O::Head(head), State::Running(collected)) => collected.head = Some(head),
            (O::Body(piece), State::Running(collected)) => {
                let limit = if collected.success() {
                    self.body_limit
                } else {
                    self.exchange.endpoint().limits.error_body_bytes
                };
                let room = limit.saturating_sub(collected.body.len());
                collected.body.extend_from_slice(&piece[..piece.len().min(room)]);
                collected.skipped += piece.len().saturating_sub(room);
            }
            (O::End, State::Running(collected)) => {
                let collected = core::mem::take(collected);
                self.finish(now, collected, out);
            }
            // A refusal whose text is cut off, or compressed, is one all the same.
            (O::Failed(_), State::Running(collected)) if collected.head.is_some() && !collected.success() => {
                let collected = core::mem::take(collected);
                self.finish(now, collected, out);
            }
            (O::Failed(e), State::Running(_)) => self.failed(now, e, out),
            // There is no answer outside of `Running`, and no `Send` while there is one.
            _ => {}
        }
    }

    fn finish(&mut self, now: Time, collected: Collected, out: &mut Outputs<CallOutput<R>>) {
        // `End` without `Head` does not happen.
        let Some(head) = collected.head else { return };
        if head.is_success() && collected.skipped > 0 {
            let (address, limit) = (&self.exchange.endpoint().address, self.body_limit);
            let why = format!("{address}: the answer is longer than {limit} bytes");
            return self.done(Err(self.error(ErrorKind::Protocol(why))), out);
        }
        if head.is_success() {
            out.extend(Written::of(&self.request, &collected.body).map(CallOutput::Wrote));
            let result = match self.request.read(&collected.body) {
                Ok(answer) => Ok(answer),
                Err(AnswerError::Status(status)) => Err(self.error(ErrorKind::Api(*status))),
                Err(AnswerError::Bad(e)) => Err(self.error(ErrorKind::Decode(one_line(&e)))),
            };
            return self.done(result, out);
        }
        let status = Status::from_response(head.status, head.header("content-type"), &collected.body);
        if let Some(answer) = R::refused(&status) {
            return self.done(Ok(answer), out);
        }
        let retry_after = http::retry_after(&head).max(status.retry_after());
        let again = match head.status {
            401 if !self.refreshed && self.exchange.auth().can_refresh() => {
                self.refreshed = true;
                return self.attempt(now, out);
            }
            429 => true,
            503 => retry_after.is_some() || self.request.idempotent,
            // A load balancer without a server behind it, nginx' and Go's words for it and Cloudflare's. client-go repeats
            // none of them without `Retry-After`; but a rollout of API servers behind a proxy makes each for seconds.
            502 | 504 | 520..=527 => {
                // What a proxy has waited for in vain has used up our patience too.
                self.waited = self.waited.saturating_add(now.since(self.begun));
                self.request.idempotent
            }
            _ => false,
        };
        let error = self.error(ErrorKind::Api(status)).with_retry_after(retry_after);
        if again { self.retry(now, error, out) } else { self.done(Err(error), out) }
    }

    fn failed(&mut self, now: Time, e: ExchangeError, out: &mut Outputs<CallOutput<R>>) {
        let (again, kind) = match e.kind {
            ExchangeErrorKind::TimedOut(reason) => (false, ErrorKind::TimedOut(reason)),
            ExchangeErrorKind::Protocol | ExchangeErrorKind::Redirect => {
                (false, ErrorKind::Protocol(e.message))
            }
            ExchangeErrorKind::Auth => (false, ErrorKind::Auth(e.message)),
            ExchangeErrorKind::Misuse => (false, ErrorKind::Misuse(e.message)),
            ExchangeErrorKind::Connect => (true, ErrorKind::Net(e)),
            ExchangeErrorKind::Broken => (self.request.idempotent, ErrorKind::Net(e)),
            ExchangeErrorKind::Refused | ExchangeErrorKind::Resolve | ExchangeErrorKind::Tls => {
                (false, ErrorKind::Net(e))
            }
        };
        let error = self.error(kind);
        if again { self.retry(now, error, out) } else { self.done(Err(error), out) }
    }

    fn retry(&mut self, now: Time, error: Error, out: &mut Outputs<CallOutput<R>>) {
        let pause = self.backoff.fail(&mut self.rng);
        let delay = pause.max(error.retry_after().unwrap_or_default());
        let waited = self.waited.saturating_add(delay);
        if self.retries >= self.policy.max_retries || waited > self.policy.max_wait {
            return self.done(Err(error), out);
        }
        self.retries += 1;
        self.waited = waited;
        self.state = State::Pause(now + delay);
        out.push(CallOutput::Retrying { error, delay });
    }
}

pub(super) fn one_line(e: &impl fmt::Display) -> String {
    let text = format!("{e}");
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
