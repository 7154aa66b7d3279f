//! The forms of a reconcile that threads can run.

use std::fmt;
use std::marker::PhantomData;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread;

use steersman_core::api::FromObject;
use steersman_core::controller::plan::{Answered, Failure, Plan, PlanOutput, PlanRun};
use steersman_core::controller::{Action, Outcome, Run};
use steersman_core::object::Object;

use crate::{Client, Context};

/// Something that a [`Manager`](crate::Manager) can run: a function `Fn(Arc<K>, &Context) -> Result<Action, E>`, or a
/// [`Plan`]. `Form` tells which; it is always inferred.
pub trait Reconcile<K, Form>: Send + Sync + 'static {
    /// Performs one run on this thread. It may panic.
    fn reconcile(&self, run: Run<Object>, context: &Context) -> Outcome;
}

/// Marks functions with an error `E`.
#[derive(Debug)]
pub struct FunctionForm<E>(PhantomData<E>);

/// Marks plans.
#[derive(Debug)]
pub struct PlanForm<P>(PhantomData<P>);

impl<K, E, F> Reconcile<K, FunctionForm<E>> for F
where
    K: FromObject,
    E: fmt::Display + 'static,
    F: Fn(Arc<K>, &Context) -> Result<Action, E> + Send + Sync + 'static,
{
    fn reconcile(&self, run: Run<Object>, context: &Context) -> Outcome {
        match K::from_object(&run.object) {
            Ok(object) => Outcome::from_result(self(Arc::new(object), context)),
            Err(e) => Failure::from(e).into(),
        }
    }
}

impl<K, P: Plan> Reconcile<K, PlanForm<P>> for Arc<P> {
    fn reconcile(&self, run: Run<Object>, context: &Context) -> Outcome {
        let (mut run, mut next) = PlanRun::start(Self::clone(self), run);
        loop {
            match next {
                PlanOutput::Send(requests) => next = run.answered(send_all(context.client(), requests)),
                PlanOutput::Finished(outcome) => return outcome,
            }
        }
    }
}

/// The requests of one round, at the same time if there are several.
fn send_all(
    client: &Client,
    requests: Vec<steersman_core::api::Request<steersman_core::api::Raw>>,
) -> Vec<Answered> {
    // A host knows this thread, and no other.
    if requests.len() < 2 || client.is_hosted() {
        return requests.into_iter().map(|r| client.send(r)).collect();
    }
    // Other threads know nothing of the span of this run.
    let span = &tracing::Span::current();
    thread::scope(|scope| {
        let sent: Vec<_> =
            requests.into_iter().map(|r| scope.spawn(|| span.in_scope(|| client.send(r)))).collect();
        sent.into_iter().map(|t| t.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))).collect()
    })
}

/// A reconcile of any form and kind.
pub(crate) type Dynamic = Arc<dyn Fn(Run<Object>, &Context) -> Outcome + Send + Sync>;

/// Makes a panic an outcome.
pub(crate) fn guarded(reconcile: &Dynamic, run: Run<Object>, context: &Context) -> Outcome {
    catch_unwind(AssertUnwindSafe(|| reconcile(run, context)))
        .unwrap_or_else(|panic| Outcome::from_panic(&*panic))
}
