//! Reconciles in the form of an `async fn`, polled when there is news for them.

use std::fmt;
use std::future::Future;
use std::marker::PhantomData;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use steersman_core::api::{FromObject, Raw, Request};
use steersman_core::client::{Error, ErrorKind};
use steersman_core::controller::{Abandoned, Action, Outcome, Run};
use steersman_core::object::Object;
use steersman_core::time::{Time, UnixMillis};

use crate::base::JobId;
use crate::desk::Desk;
use crate::job::{Ask, Form, Job, News, Token};

/// Polls of one reconcile without any news; one that wakes itself for ever would stop the world.
const MOST_POLLS: u32 = 10_000;

/// Functions `Fn(Arc<K>, steersman_smol::Context) -> impl Future<Output = Result<Action, E>>`.
pub(crate) struct TaskForm<K, F, M>(pub(crate) Arc<F>, pub(crate) PhantomData<fn() -> (K, M)>);

impl<K, F, E, Fut> Form for TaskForm<K, F, (E, Fut)>
where
    K: FromObject + Send + Sync + 'static,
    E: fmt::Display + Send + 'static,
    Fut: Future<Output = Result<Action, E>> + Send + 'static,
    F: Fn(Arc<K>, steersman_smol::Context) -> Fut + Send + Sync + 'static,
{
    fn start(&self, id: JobId, run: Run<Object>, abandoned: Abandoned, desk: &Arc<Desk>) -> Box<dyn Job> {
        let context = steersman_smol::Context::new(desk.smol(), &run, abandoned);
        let function = Arc::clone(&self.0);
        // In the future, so that a panic of the function itself is one of the run.
        let future = async move { steersman_smol::Reconcile::reconcile(&*function, run, context).await };
        let flag = Arc::new(Flag { id, woken: AtomicBool::new(false), desk: Arc::downgrade(desk) });
        let waker = Waker::from(Arc::clone(&flag));
        Box::new(Task { future: Box::pin(future), flag, waker, desk: Arc::clone(desk) })
    }
}

struct Task {
    future: Pin<Box<dyn Future<Output = Outcome> + Send>>,
    flag: Arc<Flag>,
    waker: Waker,
    desk: Arc<Desk>,
}

/// Set by whoever wakes the task.
struct Flag {
    id: JobId,
    woken: AtomicBool,
    desk: Weak<Desk>,
}

impl Wake for Flag {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if !self.woken.swap(true, Ordering::SeqCst)
            && let Some(desk) = self.desk.upgrade()
        {
            desk.wake(self.id);
        }
    }
}

impl Task {
    fn poll(&mut self) -> Option<Outcome> {
        for _ in 0..MOST_POLLS {
            self.flag.woken.store(false, Ordering::SeqCst);
            let mut cx = Context::from_waker(&self.waker);
            let future = self.future.as_mut();
            match catch_unwind(AssertUnwindSafe(|| future.poll(&mut cx))) {
                Ok(Poll::Ready(outcome)) => return Some(outcome),
                Ok(Poll::Pending) if self.flag.woken.load(Ordering::SeqCst) => {}
                Ok(Poll::Pending) => return None,
                Err(panic) => return Some(Outcome::from_panic(&*panic)),
            }
        }
        Some(Outcome::Panicked(format!("polled {MOST_POLLS} times in a row, and it woke itself each time")))
    }
}

impl Job for Task {
    fn go(&mut self, news: News, asks: &mut Vec<Ask>) -> Option<Outcome> {
        match news {
            News::Begin => self.flag.woken.store(true, Ordering::SeqCst),
            News::Answer(token, answer) => self.desk.fill(token, Came::Answer(answer)),
            News::Slept(token) => self.desk.fill(token, Came::Slept),
            News::Woken => {}
        }
        let outcome = if self.flag.woken.load(Ordering::SeqCst) { self.poll() } else { None };
        self.desk.take_asks(asks);
        outcome
    }
}

/// What a future waited for.
pub(crate) enum Came {
    Answer(Result<Raw, Error>),
    Slept,
}

/// Waits for what was asked for; gives it up when dropped.
struct Waiting {
    token: Token,
    desk: Arc<Desk>,
    over: bool,
}

impl Waiting {
    fn new(desk: &Arc<Desk>, ask: impl FnOnce(Token) -> Ask) -> Self {
        let token = desk.tokens(1);
        desk.await_it(token);
        desk.ask(ask(token));
        Self { token, desk: Arc::clone(desk), over: false }
    }
}

impl Future for Waiting {
    type Output = Came;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Came> {
        match self.desk.came(self.token, cx.waker()) {
            Some(came) => {
                self.over = true;
                Poll::Ready(came)
            }
            None => Poll::Pending,
        }
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        if !self.over {
            self.desk.forget(self.token);
        }
    }
}

/// Stands in for the network of a process's tasks.
pub(crate) struct TaskHost(pub(crate) Weak<Desk>);

type Boxed<T> = Pin<Box<dyn Future<Output = T> + Send>>;

impl steersman_smol::Host for TaskHost {
    fn send(&self, request: Request<Raw>) -> Boxed<Result<Raw, Error>> {
        let what = request.what.clone();
        let waiting =
            self.0.upgrade().map(|desk| Waiting::new(&desk, |token| Ask::Send(token, request.into())));
        Box::pin(async move {
            match waiting {
                Some(waiting) => match waiting.await {
                    Came::Answer(answer) => answer,
                    Came::Slept => Err(dead(&what)),
                },
                None => Err(dead(&what)),
            }
        })
    }

    fn sleep(&self, d: Duration) -> Boxed<()> {
        let waiting = self.0.upgrade().map(|desk| Waiting::new(&desk, |token| Ask::Sleep(token, d)));
        Box::pin(async move {
            if let Some(waiting) = waiting {
                drop(waiting.await);
            }
        })
    }

    fn now(&self) -> Time {
        self.0.upgrade().map(|desk| desk.now()).unwrap_or_default()
    }

    fn wall(&self) -> UnixMillis {
        self.0.upgrade().map(|desk| desk.wall()).unwrap_or_default()
    }
}

/// A client that outlived its process.
pub(crate) fn dead(what: &str) -> Error {
    let why = "sent by a process that is dead, or from outside of a reconcile";
    Error::new(ErrorKind::Misuse(why.into()), what, crate::drive::ADDRESS)
}
