//! The forms of a reconcile that tasks can run.

use std::fmt;
use std::future::Future;
use std::marker::PhantomData;
use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::sync::Arc;

use futures_lite::FutureExt;
use steersman_core::api::{FromObject, Raw, Request};
use steersman_core::controller::plan::{Answered, Failure, Plan, PlanOutput, PlanRun};
use steersman_core::controller::{Action, Outcome, Run};
use steersman_core::object::Object;

use crate::{Client, Context};

/// Something that a [`Manager`](crate::Manager) can run: an `async fn(Arc<K>, Context) -> Result<Action, E>`, or a
/// [`Plan`] in an `Arc`. `Form` tells which; it is always inferred.
pub trait Reconcile<K, Form>: Send + Sync + 'static {
    /// Performs one run. It may panic, and may be dropped at any await.
    fn reconcile(&self, run: Run<Object>, context: Context)
    -> impl Future<Output = Outcome> + Send + 'static;
}

/// Marks async functions with an error `E`.
#[derive(Debug)]
pub struct FunctionForm<E, Fut>(PhantomData<(E, Fut)>);

/// Marks plans.
#[derive(Debug)]
pub struct PlanForm<P>(PhantomData<P>);

impl<K, E, F, Fut> Reconcile<K, FunctionForm<E, Fut>> for F
where
    K: FromObject + Send + Sync + 'static,
    E: fmt::Display + Send + 'static,
    Fut: Future<Output = Result<Action, E>> + Send + 'static,
    F: Fn(Arc<K>, Context) -> Fut + Send + Sync + 'static,
{
    fn reconcile(
        &self,
        run: Run<Object>,
        context: Context,
    ) -> impl Future<Output = Outcome> + Send + 'static {
        let begun = K::from_object(&run.object).map(|object| self(Arc::new(object), context));
        async move {
            match begun {
                Ok(future) => Outcome::from_result(future.await),
                Err(e) => Failure::from(e).into(),
            }
        }
    }
}

impl<K, P: Plan> Reconcile<K, PlanForm<P>> for Arc<P> {
    fn reconcile(
        &self,
        run: Run<Object>,
        context: Context,
    ) -> impl Future<Output = Outcome> + Send + 'static {
        let plan = Self::clone(self);
        async move {
            let (mut run, mut next) = PlanRun::start(plan, run);
            loop {
                match next {
                    PlanOutput::Send(requests) => {
                        next = run.answered(send_all(context.client(), requests).await)
                    }
                    PlanOutput::Finished(outcome) => return outcome,
                }
            }
        }
    }
}

/// The requests of one round, at the same time.
async fn send_all(client: &Client, requests: Vec<Request<Raw>>) -> Vec<Answered> {
    let mut open: Vec<_> = requests.into_iter().map(|r| (Box::pin(client.send(r)), None)).collect();
    std::future::poll_fn(|cx| {
        for (future, answer) in open.iter_mut().filter(|(_, answer)| answer.is_none()) {
            if let std::task::Poll::Ready(answered) = future.as_mut().poll(cx) {
                *answer = Some(answered);
            }
        }
        if open.iter().all(|(_, answer)| answer.is_some()) {
            return std::task::Poll::Ready(());
        }
        std::task::Poll::Pending
    })
    .await;
    open.into_iter().filter_map(|(_, answer)| answer).collect()
}

type BoxedOutcome = Pin<Box<dyn Future<Output = Outcome> + Send>>;

/// A reconcile of any form and kind.
pub(crate) type Dynamic = Arc<dyn Fn(Run<Object>, Context) -> BoxedOutcome + Send + Sync>;

/// Makes a panic an outcome.
pub(crate) async fn guarded(reconcile: Dynamic, run: Run<Object>, context: Context) -> Outcome {
    let all = async move { reconcile(run, context).await };
    AssertUnwindSafe(all).catch_unwind().await.unwrap_or_else(|panic| Outcome::from_panic(&*panic))
}
