//! One reconcile under way, in whatever form: it goes on when there is news, asks for things, and ends.

use std::sync::Arc;
use std::time::Duration;

use steersman_core::api::{Raw, Request};
use steersman_core::client::Error;
use steersman_core::controller::plan::{Plan, PlanOutput, PlanRun};
use steersman_core::controller::{Abandoned, Outcome, Run};
use steersman_core::object::Object;

use crate::base::JobId;
use crate::desk::Desk;

/// Something that a reconcile asked for; never used again within a process's life.
pub(crate) type Token = u64;

/// What a reconcile asks for.
#[derive(Debug)]
pub(crate) enum Ask {
    /// Send this.
    Send(Token, Box<Request<Raw>>),
    /// Tell me after this time.
    Sleep(Token, Duration),
    /// I no longer want that.
    Forget(Token),
}

/// What a reconcile is told.
#[derive(Debug)]
pub(crate) enum News {
    Begin,
    /// What came of a request.
    Answer(Token, Result<Raw, Error>),
    /// It has slept.
    Slept(Token),
    /// Something in its own process woke it.
    Woken,
}

/// A reconcile under way. Dropping it is its sudden end.
pub(crate) trait Job {
    /// Goes on until it has to wait; its outcome when it is over.
    fn go(&mut self, news: News, asks: &mut Vec<Ask>) -> Option<Outcome>;

    /// It has taken too long. Whether it can be ended where it stands; else it goes on.
    fn can_be_dropped(&self) -> bool {
        true
    }
}

/// What makes jobs of runs.
pub(crate) trait Form {
    fn start(&self, id: JobId, run: Run<Object>, abandoned: Abandoned, desk: &Arc<Desk>) -> Box<dyn Job>;
}

/// The pure form needs nothing.
pub(crate) struct PlanForm<P>(pub(crate) Arc<P>);

impl<P: Plan> Form for PlanForm<P> {
    fn start(&self, _: JobId, run: Run<Object>, _: Abandoned, desk: &Arc<Desk>) -> Box<dyn Job> {
        let start = Some((Arc::clone(&self.0), run));
        Box::new(PlanJob {
            start,
            run: None,
            first: 0,
            answers: Vec::new(),
            missing: 0,
            desk: Arc::clone(desk),
        })
    }
}

struct PlanJob<P> {
    start: Option<(Arc<P>, Run<Object>)>,
    run: Option<PlanRun<P>>,
    /// The token of the first request of this round.
    first: Token,
    answers: Vec<Option<Result<Raw, Error>>>,
    missing: usize,
    desk: Arc<Desk>,
}

impl<P: Plan> Job for PlanJob<P> {
    fn go(&mut self, news: News, asks: &mut Vec<Ask>) -> Option<Outcome> {
        let next = match news {
            News::Begin => {
                let (plan, run) = self.start.take()?;
                let (run, next) = PlanRun::start(plan, run);
                self.run = Some(run);
                next
            }
            News::Answer(token, answer) => {
                let place = usize::try_from(token.checked_sub(self.first)?).ok()?;
                let slot = self.answers.get_mut(place).filter(|slot| slot.is_none())?;
                *slot = Some(answer);
                self.missing -= 1;
                if self.missing > 0 {
                    return None;
                }
                let answers = self.answers.drain(..).flatten().collect();
                self.run.as_mut()?.answered(answers)
            }
            News::Slept(_) | News::Woken => return None,
        };
        match next {
            PlanOutput::Finished(outcome) => Some(outcome),
            PlanOutput::Send(requests) => {
                self.missing = requests.len();
                self.answers = requests.iter().map(|_| None).collect();
                self.first = self.desk.tokens(requests.len());
                asks.extend(
                    requests.into_iter().zip(self.first..).map(|(r, token)| Ask::Send(token, r.into())),
                );
                None
            }
        }
    }
}
