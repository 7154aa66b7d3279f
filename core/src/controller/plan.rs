//! The pure form of a reconcile: the object and read-only views go in, requests and an action come out.
//!
//! A [`Plan`] performs nothing. It says which requests to send and is called again with the answers; so it runs
//! unchanged on every executor, in a simulator without a thread, under a fuzzer, and in a unit test without a server.
//! [`PlanRun`] drives one reconcile of it, and is pure as well.
//!
//! ```
//! use std::sync::Arc;
//! use steersman_core::api::{Api, Patch, PatchParams};
//! use steersman_core::api::kinds::ConfigMap;
//! use steersman_core::controller::Action;
//! use steersman_core::controller::plan::{Failure, Planning, Step};
//! use steersman_core::object::Object;
//!
//! /// Marks every object that is not marked.
//! fn mark(cx: &Planning<'_>) -> Result<Step, Failure> {
//!     if cx.object().label("seen").is_some() {
//!         return Ok(Step::Done(Action::await_change()));
//!     }
//!     let api = Api::<ConfigMap>::namespaced(cx.object().namespace().unwrap_or_default());
//!     let patch = Patch::Merge(serde_json::json!({"metadata": {"labels": {"seen": "yes"}}}));
//!     let request = api.patch(cx.object().name(), &patch, &PatchParams::default());
//!     Ok(Step::send_then([request.into_raw()], Action::await_change()))
//! }
//!
//! // A unit test of it needs no server.
//! let object = Object::from_json(br#"{"metadata":{"name":"a","namespace":"n"}}"#).unwrap();
//! let Ok(Step::SendThen(requests, _)) = mark(&Planning::new(&object)) else { panic!("it patches") };
//! assert_eq!(requests[0].what, "patch configmaps n/a");
//! ```

use alloc::format;
use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;

use super::{Action, Outcome, Run, SourceId};
use crate::api::{Answer, AnswerError, Raw, Request};
use crate::client::{Error, ErrorKind};
use crate::guard::guarded;
use crate::object::{Key, Object, ObjectError, Resource};
use crate::store::{Snapshot, UnknownIndex};

/// Most rounds of requests in one reconcile; a plan that asks on and on fails. No reconcile that anybody should write
/// comes near: it reads the views, which cost nothing, and writes once or twice.
pub const MAX_ROUNDS: usize = 32;

/// What became of one request of a plan.
pub type Answered = Result<Raw, Error>;

/// A reconcile as a pure function. Implemented by closures and functions of the same form.
///
/// It must not keep state between calls: a call may be the first, or be repeated after a failure or in another process.
pub trait Plan: Send + Sync + 'static {
    /// Decides the next step from the object, the views, and the answers so far.
    ///
    /// # Errors
    /// What ends the reconcile as failed: `?` works on answers, objects and serde.
    fn plan(&self, cx: &Planning<'_>) -> Result<Step, Failure>;
}

impl<F> Plan for F
where
    F: Fn(&Planning<'_>) -> Result<Step, Failure> + Send + Sync + 'static,
{
    fn plan(&self, cx: &Planning<'_>) -> Result<Step, Failure> {
        self(cx)
    }
}

/// What a plan wants next.
#[derive(Clone, Debug, PartialEq)]
#[must_use]
pub enum Step {
    /// Send these, then call again with the answers, whatever they are. They may be sent at the same time: what must
    /// be in order stands in separate steps.
    Send(Vec<Request<Raw>>),
    /// Send these; if all succeed, the reconcile is done with this action, else it failed.
    SendThen(Vec<Request<Raw>>, Action),
    /// The reconcile is done.
    Done(Action),
}

impl Step {
    /// [`Step::Send`].
    pub fn send(requests: impl IntoIterator<Item = Request<Raw>>) -> Self {
        Self::Send(requests.into_iter().collect())
    }

    /// [`Step::SendThen`].
    pub fn send_then(requests: impl IntoIterator<Item = Request<Raw>>, action: Action) -> Self {
        Self::SendThen(requests.into_iter().collect(), action)
    }
}

/// Why a plan's reconcile failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure {
    /// Try again later.
    Error(String),
    /// Trying again does not help before something changes.
    Terminal(String),
}

impl Failure {
    /// A failure that may pass.
    pub fn error(message: impl Into<String>) -> Self {
        Self::Error(message.into())
    }

    /// A failure that stays until something changes.
    pub fn terminal(message: impl Into<String>) -> Self {
        Self::Terminal(message.into())
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Error(message) | Self::Terminal(message) => f.write_str(message),
        }
    }
}

impl core::error::Error for Failure {}

/// A mistaken request is terminal, for it is mistaken the next time too; everything else may pass.
impl From<Error> for Failure {
    fn from(e: Error) -> Self {
        Self::from(&e)
    }
}

impl From<&Error> for Failure {
    fn from(e: &Error) -> Self {
        match e.kind() {
            ErrorKind::Misuse(_) => Self::Terminal(e.to_string()),
            _ => Self::Error(e.to_string()),
        }
    }
}

impl From<AnswerError> for Failure {
    fn from(e: AnswerError) -> Self {
        Self::Error(e.to_string())
    }
}

/// An object that cannot be read stays so until it changes.
impl From<ObjectError> for Failure {
    fn from(e: ObjectError) -> Self {
        Self::Terminal(e.to_string())
    }
}

/// An index that nobody asked for will not be there the next time either.
impl From<UnknownIndex> for Failure {
    fn from(e: UnknownIndex) -> Self {
        Self::Terminal(e.to_string())
    }
}

impl From<Failure> for Outcome {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Error(message) => Self::Error(message),
            Failure::Terminal(message) => Self::Terminal(message),
        }
    }
}

/// What a plan may look at.
#[derive(Clone, Debug)]
pub struct Planning<'a> {
    object: &'a Object,
    views: &'a [Snapshot<Object>],
    rounds: &'a [Vec<Answered>],
    attempt: u32,
}

impl<'a> Planning<'a> {
    /// The first call for `object`, without views; for unit tests.
    #[must_use]
    pub fn new(object: &'a Object) -> Self {
        Self { object, views: &[], rounds: &[], attempt: 1 }
    }

    /// The same with these views, by [`SourceId`].
    #[must_use]
    pub const fn with_views(mut self, views: &'a [Snapshot<Object>]) -> Self {
        self.views = views;
        self
    }

    /// The same after these rounds of answers, oldest first.
    #[must_use]
    pub const fn with_answers(mut self, rounds: &'a [Vec<Answered>]) -> Self {
        self.rounds = rounds;
        self
    }

    /// The object, as the primary source last saw it.
    #[must_use]
    pub const fn object(&self) -> &'a Object {
        self.object
    }

    /// Its key.
    #[must_use]
    pub fn key(&self) -> Key {
        self.object.key()
    }

    /// The view of a source when the reconcile began; empty if there is no such source.
    #[must_use]
    pub fn view(&self, source: SourceId) -> Snapshot<Object> {
        self.views.get(source.index()).cloned().unwrap_or_default().metered_as(self.object)
    }

    /// 1 for the first try, one more for each failure in a row.
    #[must_use]
    pub const fn attempt(&self) -> u32 {
        self.attempt
    }

    /// How many rounds of requests were answered; 0 on the first call.
    #[must_use]
    pub const fn round(&self) -> usize {
        self.rounds.len()
    }

    /// The answers of every round, oldest first, each in the order of its requests.
    #[must_use]
    pub const fn rounds(&self) -> &'a [Vec<Answered>] {
        self.rounds
    }

    /// The answers of the last round, in the order of its requests; none on the first call.
    pub fn answers(&self) -> &'a [Answered] {
        self.rounds.last().map_or(&[], Vec::as_slice)
    }

    /// The `n`-th answer of the last round, read. With `Option<K>`, an object that does not exist is `None`.
    ///
    /// # Errors
    /// If the request failed, its answer cannot be read as `R`, or there is no such answer.
    pub fn answer<R: Answer>(&self, n: usize) -> Result<R, Failure> {
        match self.answers().get(n) {
            None => Err(Failure::terminal(format!("there is no answer {n} in this round"))),
            Some(Ok(raw)) => Ok(raw.read()?),
            Some(Err(e)) => e.status().and_then(R::refused).ok_or_else(|| Failure::from(e)),
        }
    }
}

/// What an executor does next for a plan's reconcile.
#[derive(Clone, Debug, PartialEq)]
pub enum PlanOutput {
    /// Send these, at once or one by one, and give all their answers to [`PlanRun::answered`], in this order. Never
    /// empty.
    Send(Vec<Request<Raw>>),
    /// The reconcile is over.
    Finished(Outcome),
}

/// One reconcile of a plan, to be driven by whoever can send requests.
///
/// ```
/// # use std::sync::Arc;
/// # use steersman_core::{api::*, client, controller::{plan::*, *}, object::Object};
/// # fn send(_: Request<Raw>) -> Answered { Ok(Raw(b"{}".to_vec())) }
/// fn reconcile(plan: &Arc<impl Plan>, run: Run<Object>) -> Outcome {
///     let (mut run, mut next) = PlanRun::start(Arc::clone(plan), run);
///     loop {
///         match next {
///             PlanOutput::Send(requests) => next = run.answered(requests.into_iter().map(send).collect()),
///             PlanOutput::Finished(outcome) => return outcome,
///         }
///     }
/// }
/// ```
pub struct PlanRun<P: ?Sized> {
    plan: Arc<P>,
    run: Run<Object>,
    rounds: Vec<Vec<Answered>>,
    state: State,
}

#[derive(Debug)]
enum State {
    /// So many answers are awaited; with an action, that ends it if all are well.
    Asked(usize, Option<Action>),
    Over,
}

impl<P: Plan + ?Sized> PlanRun<P> {
    /// Calls the plan for the first time.
    #[must_use]
    pub fn start(plan: Arc<P>, run: Run<Object>) -> (Self, PlanOutput) {
        let mut this = Self { plan, run, rounds: Vec::new(), state: State::Over };
        let next = this.step();
        (this, next)
    }

    /// The requests were answered, in their order. After [`PlanOutput::Finished`] there is nothing to answer, and the
    /// outcome is an error.
    #[must_use]
    pub fn answered(&mut self, answers: Vec<Answered>) -> PlanOutput {
        match core::mem::replace(&mut self.state, State::Over) {
            State::Over => finished(Failure::terminal("answers came after the reconcile had ended")),
            State::Asked(n, _) if n != answers.len() => {
                finished(Failure::error(format!("{n} requests were sent, {} answers came", answers.len())))
            }
            State::Asked(_, None) => {
                self.rounds.push(answers);
                self.step()
            }
            State::Asked(_, Some(action)) => PlanOutput::Finished(all_well(&answers, action)),
        }
    }

    /// The run that this is.
    #[must_use]
    pub const fn run(&self) -> &Run<Object> {
        &self.run
    }

    fn step(&mut self) -> PlanOutput {
        while self.rounds.len() < MAX_ROUNDS {
            let cx = Planning {
                object: &self.run.object,
                views: &self.run.views,
                rounds: &self.rounds,
                attempt: self.run.attempt,
            };
            let step = match guarded(|| self.plan.plan(&cx)) {
                Err(panic) => return PlanOutput::Finished(Outcome::Panicked(panic)),
                Ok(Err(failure)) => return finished(failure),
                Ok(Ok(step)) => step,
            };
            let (requests, action) = match step {
                Step::Done(action) => return PlanOutput::Finished(action.into()),
                Step::SendThen(requests, action) if requests.is_empty() => {
                    return PlanOutput::Finished(action.into());
                }
                Step::SendThen(requests, action) => (requests, Some(action)),
                Step::Send(requests) => (requests, None),
            };
            if !requests.is_empty() {
                self.state = State::Asked(requests.len(), action);
                return PlanOutput::Send(requests);
            }
            self.rounds.push(Vec::new());
        }
        finished(Failure::error(format!("the plan was not done after {MAX_ROUNDS} rounds of requests")))
    }
}

fn finished(failure: Failure) -> PlanOutput {
    PlanOutput::Finished(failure.into())
}

/// The action if every answer is one; else all errors in one line, terminal if none of them may pass.
fn all_well(answers: &[Answered], action: Action) -> Outcome {
    let mut failures = answers.iter().filter_map(|a| a.as_ref().err()).map(Failure::from);
    let Some(first) = failures.next() else { return action.into() };
    let mut message = first.to_string();
    let mut terminal = matches!(first, Failure::Terminal(_));
    for failure in failures {
        terminal &= matches!(failure, Failure::Terminal(_));
        message = format!("{message}; {failure}");
    }
    if terminal { Outcome::Terminal(message) } else { Outcome::Error(message) }
}

/// Shows no answers: they may hold secrets.
impl<P: ?Sized> fmt::Debug for PlanRun<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PlanRun")
            .field("run", &self.run)
            .field("rounds", &self.rounds.len())
            .field("state", &self.state)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
