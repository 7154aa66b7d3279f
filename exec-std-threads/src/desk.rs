//! A controller's machine behind a lock: a reconcile that ends tells it so itself and takes the next key along, without a thread
//! that sleeps and is woken in between.

use std::collections::{BTreeMap, VecDeque};
use std::mem;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use steersman_core::controller::{Abandoned, Controller, Input, Output, ReconcileId, Run};
use steersman_core::limits::STATUS_EVERY;
use steersman_core::machine::{Deadline, Machine as _, Outputs};
use steersman_core::manager::{self, Line};
use steersman_core::object::Object;
use steersman_core::record::Recorded;
use steersman_core::time::Time;

use crate::clerk::Reach;
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
    name: String,
    clock: Clock,
    shared: Shared,
    /// Wakes the [clerk](crate::clerk), who waits for deadlines and for what comes from outside.
    reach: Reach,
    /// What reconciles have written and the machine has not heard. They must not wait for it: it may be in a function of
    /// the user's that waits for a lock which the reconcile holds.
    writes: Mutex<Vec<Input<Object>>>,
    /// It was killed, and perhaps has not heard.
    over: AtomicBool,
    state: Mutex<State>,
    /// Said to a worker for each job that lies here.
    work: Condvar,
}

struct State {
    /// `None` after the end: what it holds of its sources is not kept by a reconcile that never ends.
    controller: Option<Recorded<Controller<Object>>>,
    running: BTreeMap<ReconcileId, Abandoned>,
    /// What no worker has taken yet.
    jobs: VecDeque<Job>,
    /// Workers that wait for a job.
    idle: usize,
    /// Until when the clerk sleeps: `None` if for ever, zero while it is awake.
    asleep: Option<Time>,
    /// When the status was written, and whether it has changed since.
    written: Time,
    changed: bool,
}

impl Desk {
    pub(crate) fn new(
        reach: Reach,
        (clock, shared): (Clock, Shared),
        controller: Recorded<Controller<Object>>,
    ) -> Self {
        let name = controller.config().name.clone();
        let state = State {
            controller: Some(controller),
            running: BTreeMap::new(),
            jobs: VecDeque::new(),
            idle: 0,
            asleep: Some(Time::ZERO),
            written: Time::ZERO,
            changed: false,
        };
        let (writes, over) = (Mutex::default(), AtomicBool::new(false));
        let (state, work) = (Mutex::new(state), Condvar::new());
        Self { name, clock, shared, reach, writes, over, state, work }
    }

    /// The state; that of a machine which has panicked is the end.
    fn state(&self) -> MutexGuard<'_, State> {
        match self.state.lock() {
            Ok(state) => self.ended_if_over(state),
            Err(poisoned) => {
                let mut state = poisoned.into_inner();
                self.end(&mut state);
                self.wake(&mut state);
                state
            }
        }
    }

    fn ended_if_over<'a>(&self, mut state: MutexGuard<'a, State>) -> MutexGuard<'a, State> {
        if state.controller.is_some() && self.over.load(Ordering::SeqCst) {
            self.tell(&mut state, Some(Input::Stop { grace: Some(Duration::ZERO) }));
            self.end(&mut state);
            self.wake(&mut state);
        }
        state
    }

    /// For the clerk: it is awake, and something happened.
    pub(crate) fn hear(&self, input: Input<Object>) {
        let mut state = self.state();
        state.asleep = Some(Time::ZERO);
        let said = self.tell(&mut state, Some(input));
        self.leave(state, said);
    }

    /// For a reconcile: what it has written. Never waits for the machine.
    pub(crate) fn wrote(&self, write: Input<Object>) {
        lock(&self.writes).push(write);
        let Ok(mut state) = self.state.try_lock() else {
            // Whoever has the lock may have looked for writes before. If there is no room, it is heard of at the end of the run.
            let _ = self.reach.try_send(Input::Deadline);
            return;
        };
        let said = self.tell(&mut state, None);
        self.leave(state, said);
    }

    /// For a worker: its run is done. The run that has waited longest, if there is one.
    pub(crate) fn done(&self, id: ReconcileId, ends: impl Iterator<Item = Input<Object>>) -> Option<Job> {
        let mut state = self.state();
        state.running.remove(&id);
        let said = self.tell(&mut state, ends);
        let next = state.jobs.pop_front();
        if next.is_none() {
            self.write(&mut state);
        }
        self.leave(state, said);
        next
    }

    /// For a worker without a run: the next one; `None` after the end.
    pub(crate) fn take(&self) -> Option<Job> {
        let mut state = self.state();
        state.idle += 1;
        while state.jobs.is_empty() && state.controller.is_some() {
            state = self.work.wait(state).unwrap_or_else(PoisonError::into_inner);
            if self.state.is_poisoned() {
                self.end(&mut state);
            }
            state = self.ended_if_over(state);
        }
        state.idle -= 1;
        state.jobs.pop_front()
    }

    /// Tells the machine what reconciles have written, and then this. What is to be logged is for [`leave`](Self::leave).
    fn tell(
        &self,
        state: &mut State,
        inputs: impl IntoIterator<Item = Input<Object>>,
    ) -> Vec<Output<Object>> {
        let (mut said, mut out) = (Vec::new(), Outputs::new());
        let writes = mem::take(&mut *lock(&self.writes));
        for input in writes.into_iter().chain(inputs) {
            let Some(controller) = &mut state.controller else { break };
            controller.handle(self.clock.now(), input, &mut out);
            state.changed = true;
            for output in out.drain() {
                match output {
                    Output::Run(run) => {
                        let abandoned = Abandoned::default();
                        state.running.insert(run.id, abandoned.clone());
                        state.jobs.push_back(Job { run, abandoned });
                    }
                    Output::Abandon(id) => {
                        if let Some(abandoned) = state.running.get(&id) {
                            abandoned.set();
                        }
                    }
                    Output::Stopped { unfinished } => {
                        self.write(state);
                        self.end(state);
                        let controller = self.reach.controller;
                        self.shared.tell(manager::Input::ControllerStopped { controller, unfinished });
                    }
                    output => said.push(output),
                }
            }
        }
        if self.clock.now().since(state.written) > STATUS_EVERY {
            self.write(state);
        }
        self.wake(state);
        said
    }

    /// Calls workers for the jobs that lie here, and logs what was said, without the lock.
    fn leave(&self, state: MutexGuard<'_, State>, said: Vec<Output<Object>>) {
        let called = state.idle.min(state.jobs.len());
        // A worker who is called while the lock is held wakes to wait for that.
        drop(state);
        for _ in 0..called {
            self.work.notify_one();
        }
        for output in said {
            match output {
                Output::Notice(notice) => log(Some(&self.name), None, &Line::from(&notice)),
                Output::Ready => tracing::info!(target: "steersman", controller = self.name, "ready"),
                _ => {}
            }
        }
    }

    /// The clerk goes to sleep until then, as far as this desk knows (`None`: until a word comes). If it does not rest, since others
    /// of its words wait, the status has the time that it has under load.
    pub(crate) fn sleep(&self, rests: bool) -> Option<Time> {
        let mut state = self.state();
        let now = self.clock.now();
        // Workers that are never without a run leave the status to the clerk.
        let busy = (state.changed && !(rests && state.running.is_empty())).then(|| now + STATUS_EVERY);
        if state.changed && (rests || now.since(state.written) > STATUS_EVERY) {
            self.write(&mut state);
        }
        state.asleep = earlier(state.deadline().map(|d| d.at), busy);
        match &state.controller {
            None => Some(Time::ZERO),
            Some(_) => state.asleep,
        }
    }

    /// The clerk has slept enough: whether its machine waits for that.
    pub(crate) fn is_due(&self) -> bool {
        let now = self.clock.now();
        self.state().deadline().is_some_and(|deadline| deadline.at <= now)
    }

    /// Whether the controller has stopped.
    pub(crate) fn is_closed(&self) -> bool {
        self.state().controller.is_none()
    }

    /// Ends the controller, whatever its machine says.
    pub(crate) fn close(&self) {
        let mut state = self.state();
        self.end(&mut state);
        self.wake(&mut state);
    }

    /// A kill that waits for nobody: if the machine is in a function of the user's, which may hang, it hears of it when somebody has
    /// something to tell it next.
    pub(crate) fn kill(&self) {
        self.over.store(true, Ordering::SeqCst);
        if let Ok(state) = self.state.try_lock() {
            drop(self.ended_if_over(state));
        }
    }

    /// Nothing begins any more.
    fn end(&self, state: &mut State) {
        state.controller = None;
        state.jobs.clear();
        state.running.values().for_each(Abandoned::set);
        self.work.notify_all();
    }

    fn write(&self, state: &mut State) {
        state.written = self.clock.now();
        state.changed = false;
        if let Some(controller) = &state.controller {
            self.shared.board(|b| b.controller(self.reach.controller, controller.status()));
        }
    }

    /// Wakes the clerk if there is something for it before it would wake by itself.
    fn wake(&self, state: &mut State) {
        let next = match &state.controller {
            None => Some(Time::ZERO),
            Some(_) => {
                let status = state.changed.then(|| state.written + STATUS_EVERY);
                earlier(state.deadline().map(|d| d.at), status)
            }
        };
        let awake = state.asleep == Some(Time::ZERO);
        if !awake && next.is_some_and(|next| state.asleep.is_none_or(|until| next < until)) {
            state.asleep = Some(Time::ZERO);
            // If there is no room, it is awake.
            let _ = self.reach.try_send(Input::Deadline);
        }
    }
}

impl State {
    fn deadline(&self) -> Option<Deadline> {
        self.controller.as_ref().and_then(|controller| controller.next_deadline())
    }
}

fn earlier(a: Option<Time>, b: Option<Time>) -> Option<Time> {
    a.into_iter().chain(b).min()
}

#[cfg(test)]
mod tests;
