//! Reconciles in the form of a blocking `fn`: each on a thread that is parked, except one that goes on while the world
//! waits for it. So there are threads, but never two that do anything.

use std::cell::RefCell;
use std::fmt;
use std::marker::PhantomData;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::mpsc::{self, Sender};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::thread;
use std::time::Duration;

use steersman_core::api::{FromObject, Raw, Request};
use steersman_core::client::Error;
use steersman_core::controller::{Abandoned, Action, Outcome, Run};
use steersman_core::object::Object;
use steersman_core::time::{Time, UnixMillis};

use crate::base::JobId;
use crate::desk::Desk;
use crate::job::{Ask, Form, Job, News, Token};
use crate::tasks::dead;

/// A reconcile that does not ask for anything for so long (of real time) waits for something outside of the simulation,
/// or for another reconcile that is parked. Only then does a real clock decide anything, and what it decides is to fail.
const STUCK: Duration = Duration::from_secs(60);

/// Functions `Fn(Arc<K>, &steersman_threads::Context) -> Result<Action, E>`.
pub(crate) struct ThreadForm<K, F, E>(pub(crate) Arc<F>, pub(crate) PhantomData<fn() -> (K, E)>);

impl<K, F, E> Form for ThreadForm<K, F, E>
where
    K: FromObject + 'static,
    E: fmt::Display + 'static,
    F: Fn(Arc<K>, &steersman_threads::Context) -> Result<Action, E> + Send + Sync + 'static,
{
    fn start(&self, _: JobId, run: Run<Object>, abandoned: Abandoned, desk: &Arc<Desk>) -> Box<dyn Job> {
        let context = steersman_threads::Context::new(desk.threads(), &run, abandoned);
        let function = Arc::clone(&self.0);
        let body = move || steersman_threads::Reconcile::reconcile(&*function, run, &context);
        Box::new(Parked {
            baton: Arc::new(Baton::default()),
            body: Some(Box::new(body)),
            desk: Arc::clone(desk),
            over: false,
        })
    }
}

/// Whose turn it is.
#[derive(Default)]
enum Turn {
    #[default]
    World,
    /// The thread's, with what it waited for.
    Thread(Option<Result<Raw, Error>>),
    /// The thread must end.
    Kill,
    Over(Outcome),
    /// It was killed, and has ended.
    Gone,
}

/// Handed to and fro between the world and one thread.
#[derive(Default)]
struct Baton {
    turn: Mutex<Turn>,
    moved: Condvar,
}

/// Unwinds a thread whose process is dead.
struct Killed;

thread_local! {
    /// The baton of the reconcile that this thread runs.
    static MINE: RefCell<Option<Arc<Baton>>> = const { RefCell::new(None) };
}

impl Baton {
    fn lock(&self) -> MutexGuard<'_, Turn> {
        self.turn.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn pass(&self, turn: Turn) {
        *self.lock() = turn;
        self.moved.notify_all();
    }

    /// The thread waits for its turn.
    fn park(&self) -> Option<Result<Raw, Error>> {
        let mut turn = self.lock();
        loop {
            match std::mem::take(&mut *turn) {
                Turn::Thread(news) => {
                    // It stays the thread's until it asks or ends.
                    *turn = Turn::Thread(None);
                    return news;
                }
                Turn::Kill => {
                    *turn = Turn::Kill;
                    drop(turn);
                    resume_unwind(Box::new(Killed));
                }
                other => *turn = other,
            }
            turn = self.moved.wait(turn).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// The world waits until the thread asks for something or ends.
    fn wait(&self) -> Option<Outcome> {
        let mut turn = self.lock();
        loop {
            match &*turn {
                Turn::World => return None,
                Turn::Over(_) => match std::mem::take(&mut *turn) {
                    Turn::Over(outcome) => return Some(outcome),
                    _ => return None,
                },
                Turn::Gone => return None,
                Turn::Thread(_) | Turn::Kill => {}
            }
            let (next, late) = self.moved.wait_timeout(turn, STUCK).unwrap_or_else(PoisonError::into_inner);
            turn = next;
            if late.timed_out() && matches!(*turn, Turn::Kill) {
                // It does not end; at least it can do no more harm.
                return None;
            }
            assert!(
                !late.timed_out() || !matches!(*turn, Turn::Thread(_)),
                "a reconcile blocks outside of the simulation: it waits for something that its client does not give"
            );
        }
    }
}

type Body = Box<dyn FnOnce() -> Outcome + Send>;

struct Parked {
    baton: Arc<Baton>,
    body: Option<Body>,
    desk: Arc<Desk>,
    over: bool,
}

impl Job for Parked {
    fn go(&mut self, news: News, asks: &mut Vec<Ask>) -> Option<Outcome> {
        let answer = match news {
            News::Begin => {
                let body = self.body.take()?;
                let baton = Arc::clone(&self.baton);
                on_a_thread(Box::new(move || run(&baton, body)));
                None
            }
            News::Answer(_, answer) => Some(answer),
            News::Slept(_) => None,
            News::Woken => return None,
        };
        self.baton.pass(Turn::Thread(answer));
        let outcome = self.baton.wait();
        self.over = outcome.is_some();
        self.desk.take_asks(asks);
        outcome
    }

    /// A thread cannot be ended from outside.
    fn can_be_dropped(&self) -> bool {
        false
    }
}

impl Drop for Parked {
    fn drop(&mut self) {
        if self.over || self.body.is_some() {
            return;
        }
        self.baton.pass(Turn::Kill);
        // It unwinds, and only then does the world go on.
        let _ = self.baton.wait();
    }
}

fn run(baton: &Arc<Baton>, body: Body) {
    MINE.set(Some(Arc::clone(baton)));
    let end = catch_unwind(AssertUnwindSafe(|| {
        baton.park();
        body()
    }));
    MINE.set(None);
    baton.pass(match end {
        Ok(outcome) => Turn::Over(outcome),
        Err(panic) if panic.is::<Killed>() => Turn::Gone,
        Err(panic) => Turn::Over(Outcome::from_panic(&*panic)),
    });
}

type Work = Box<dyn FnOnce() + Send>;

/// Threads without work. Which of them takes what makes no difference.
static IDLE: Mutex<Vec<Sender<Work>>> = Mutex::new(Vec::new());

fn on_a_thread(work: Work) {
    let lock = || IDLE.lock().unwrap_or_else(PoisonError::into_inner);
    let idle = lock().pop();
    let work = match idle {
        Some(thread) => match thread.send(work) {
            Ok(()) => return,
            Err(mpsc::SendError(work)) => work,
        },
        None => work,
    };
    let (sender, queue) = mpsc::channel::<Work>();
    let again = sender.clone();
    thread::Builder::new()
        .name("steersman-sim".into())
        .spawn(move || {
            while let Ok(work) = queue.recv() {
                work();
                lock().push(again.clone());
            }
        })
        .expect("a thread for a reconcile");
    let _ = sender.send(work);
}

/// Stands in for the network of a process's threads.
pub(crate) struct ThreadHost(pub(crate) Weak<Desk>);

impl ThreadHost {
    /// Asks, and waits for its turn.
    fn wait(&self, ask: impl FnOnce(Token) -> Ask) -> Option<Option<Result<Raw, Error>>> {
        let desk = self.0.upgrade()?;
        let baton = MINE.with_borrow(Clone::clone)?;
        {
            let turn = baton.lock();
            if matches!(*turn, Turn::Kill) {
                // It caught the end of its process, and goes on.
                drop(turn);
                resume_unwind(Box::new(Killed));
            }
        }
        desk.ask(ask(desk.tokens(1)));
        drop(desk);
        baton.pass(Turn::World);
        Some(baton.park())
    }
}

impl steersman_threads::Host for ThreadHost {
    fn send(&self, request: Request<Raw>) -> Result<Raw, Error> {
        let what = request.what.clone();
        self.wait(|token| Ask::Send(token, request.into())).flatten().unwrap_or_else(|| Err(dead(&what)))
    }

    fn sleep(&self, d: Duration) {
        self.wait(|token| Ask::Sleep(token, d));
    }

    fn now(&self) -> Time {
        self.0.upgrade().map(|desk| desk.now()).unwrap_or_default()
    }

    fn wall(&self) -> UnixMillis {
        self.0.upgrade().map(|desk| desk.wall()).unwrap_or_default()
    }
}
