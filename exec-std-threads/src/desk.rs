//! A controller's machine behind a lock: a reconcile that ends tells it so itself and takes the next key along, without a thread
//! that sleeps and is woken in between.

use std::collections::{BTreeMap, VecDeque};
use std::mem;
use std::sync::mpsc::SyncSender;
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use steersman_core::controller::{Abandoned, Controller, Input, Output, ReconcileId, Run};
use steersman_core::limits::STATUS_EVERY;
use steersman_core::machine::{Machine as _, Outputs};
use steersman_core::manager::{self, ControllerId, Line};
use steersman_core::object::Object;
use steersman_core::record::Recorded;
use steersman_core::time::Time;

use crate::clock::Clock;
use crate::drive::lock;
use crate::log::log;
use crate::manager::Shared;

/// A run for one of the controller's threads.
pub(crate) struct Job {
    pub(crate) run: Run<Object>,
    pub(crate) abandoned: Abandoned,
}

/// Where a controller is told what happens.
pub(crate) struct Desk {
    id: ControllerId,
    name: String,
    clock: Clock,
    shared: Shared,
    /// Wakes the controller's own thread, which waits for deadlines and for what comes from outside.
    inbox: SyncSender<Input<Object>>,
    state: Mutex<State>,
    /// Said to a worker for each job that lies here.
    work: Condvar,
}

struct State {
    controller: Recorded<Controller<Object>>,
    running: BTreeMap<ReconcileId, Abandoned>,
    /// What no worker has taken yet.
    jobs: VecDeque<Job>,
    /// Workers that wait for a job.
    idle: usize,
    /// The controller has stopped, and its threads end.
    over: bool,
    /// Until when the controller's own thread sleeps: `None` if for ever, zero while it is awake.
    asleep: Option<Time>,
    /// When the status was written.
    written: Instant,
    out: Outputs<Output<Object>>,
}

/// Who tells.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum By {
    /// The controller's own thread.
    Itself,
    /// A reconcile, of something on its way.
    Reconcile,
    /// A thread that has ended a reconcile, and takes another one along.
    Worker,
}

impl Desk {
    pub(crate) fn new(
        id: ControllerId,
        (clock, shared): (Clock, Shared),
        inbox: SyncSender<Input<Object>>,
        controller: Recorded<Controller<Object>>,
    ) -> Self {
        let name = controller.config().name.clone();
        let state = State {
            controller,
            running: BTreeMap::new(),
            jobs: VecDeque::new(),
            idle: 0,
            over: false,
            asleep: Some(Time::ZERO),
            written: Instant::now(),
            out: Outputs::new(),
        };
        Self { id, name, clock, shared, inbox, state: Mutex::new(state), work: Condvar::new() }
    }

    /// Tells the machine; the run that a worker takes along, if there is one.
    pub(crate) fn tell(&self, input: Input<Object>, by: By) -> Option<Job> {
        let mut own = None;
        let mut notices = Vec::new();
        let mut guard = lock(&self.state);
        let state = &mut *guard;
        if by == By::Itself {
            state.asleep = Some(Time::ZERO);
        }
        if let Input::Done { id, .. } = &input {
            state.running.remove(id);
        }
        let mut out = mem::take(&mut state.out);
        state.controller.handle(self.clock.now(), input, &mut out);
        for output in out.drain() {
            match output {
                Output::Run(run) => {
                    let abandoned = Abandoned::default();
                    state.running.insert(run.id, abandoned.clone());
                    let job = Job { run, abandoned };
                    if by == By::Worker && own.is_none() {
                        own = Some(job);
                    } else {
                        state.jobs.push_back(job);
                        if state.idle >= state.jobs.len() {
                            self.work.notify_one();
                        }
                    }
                }
                Output::Abandon(id) => {
                    if let Some(abandoned) = state.running.get(&id) {
                        abandoned.set();
                    }
                }
                Output::Notice(notice) => notices.push(notice),
                Output::Ready => tracing::info!(target: "steersman", controller = self.name, "ready"),
                Output::Stopped { unfinished } => {
                    self.end(state);
                    self.write(state);
                    let controller = self.id;
                    self.shared.tell(manager::Input::ControllerStopped { controller, unfinished });
                }
                _ => {}
            }
        }
        state.out = out;
        if (by == By::Worker && own.is_none()) || state.written.elapsed() > STATUS_EVERY {
            self.write(state);
        }
        self.wake(state);
        drop(guard);
        for notice in notices {
            log(Some(&self.name), None, &Line::from(&notice));
        }
        own
    }

    /// A worker waits for a run; `None` after the end.
    pub(crate) fn take(&self) -> Option<Job> {
        let mut state = lock(&self.state);
        state.idle += 1;
        while state.jobs.is_empty() && !state.over {
            state = self.work.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        state.idle -= 1;
        state.jobs.pop_front()
    }

    /// The controller's own thread goes to sleep, for so long (`None`: until an input comes).
    pub(crate) fn sleep(&self) -> Option<Duration> {
        let mut state = lock(&self.state);
        self.write(&mut state);
        let deadline = state.controller.next_deadline();
        state.asleep = deadline.map(|d| d.at);
        if state.over { Some(Duration::ZERO) } else { self.clock.until(deadline) }
    }

    /// Whether the controller has stopped.
    pub(crate) fn is_closed(&self) -> bool {
        lock(&self.state).over
    }

    /// Ends the controller, whatever its machine says.
    pub(crate) fn close(&self) {
        let mut state = lock(&self.state);
        self.end(&mut state);
        self.wake(&mut state);
    }

    fn end(&self, state: &mut State) {
        state.over = true;
        self.work.notify_all();
    }

    fn write(&self, state: &mut State) {
        state.written = Instant::now();
        self.shared.board(|b| b.controller(self.id, state.controller.status()));
    }

    /// Wakes the controller's own thread if there is something for it before it would wake by itself.
    fn wake(&self, state: &mut State) {
        let sooner = match (state.controller.next_deadline(), state.asleep) {
            (Some(next), Some(until)) => next.at < until,
            (next, until) => until.is_none() && next.is_some(),
        };
        if sooner || (state.over && state.asleep != Some(Time::ZERO)) {
            state.asleep = Some(Time::ZERO);
            // If there is no room, it is awake.
            let _ = self.inbox.try_send(Input::Deadline);
        }
    }
}
