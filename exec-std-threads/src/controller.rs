//! One thread per controller, which waits for deadlines and for what comes from outside, and its pool of threads for reconciles.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender};
use std::thread;

use steersman_core::controller::{Config, Controller, Input, Outcome};
use steersman_core::manager::ControllerId;
use steersman_core::object::Object;
use steersman_core::record::{Recorded, Recorder};

use crate::clock::Clock;
use crate::desk::{Desk, Job};
use crate::manager::Shared;
use crate::reconcile::{Dynamic, guarded};
use crate::{Client, Context};

/// What a controller thread needs.
pub(crate) struct ControllerLoop {
    pub(crate) id: ControllerId,
    pub(crate) config: Config<Object>,
    pub(crate) reconcile: Dynamic,
    pub(crate) client: Client,
    pub(crate) clock: Clock,
    pub(crate) seed: u64,
    pub(crate) recorder: Option<Arc<dyn Recorder>>,
    pub(crate) inbox: Receiver<Input<Object>>,
    pub(crate) sender: SyncSender<Input<Object>>,
    pub(crate) shared: Shared,
}

impl ControllerLoop {
    pub(crate) fn run(self) {
        let controller = Controller::new(self.config.clone(), self.seed);
        let controller = Recorded::controller(controller, self.seed, self.recorder.as_deref());
        let within = (self.clock, self.shared.clone());
        let desk = Arc::new(Desk::new(self.id, within, self.sender.clone(), controller));
        let _end = End(&desk);
        self.start_pool(&desk);
        desk.hear(Input::Start);
        while !desk.is_closed() {
            let input = match self.inbox.try_recv() {
                Ok(input) => input,
                Err(_) => match desk.sleep() {
                    None => self.inbox.recv().unwrap_or(Input::Stop { grace: None }),
                    Some(limit) => match self.inbox.recv_timeout(limit) {
                        Ok(input) => input,
                        Err(RecvTimeoutError::Timeout) if desk.is_due() => Input::Deadline,
                        Err(RecvTimeoutError::Timeout) => continue,
                        Err(RecvTimeoutError::Disconnected) => Input::Stop { grace: None },
                    },
                },
            };
            desk.hear(input);
        }
    }

    /// As many threads as runs at once. They end with the desk.
    fn start_pool(&self, desk: &Arc<Desk>) {
        for n in 0..self.config.concurrency.max(1) {
            let worker = Worker {
                controller: self.config.name.clone(),
                reconcile: Arc::clone(&self.reconcile),
                client: self.client.clone(),
                clock: self.clock,
                desk: Arc::clone(desk),
            };
            let name = format!("{}-{n}", self.config.name);
            if let Err(e) = thread::Builder::new().name(name).spawn(move || worker.run()) {
                tracing::error!(target: "steersman", controller = self.config.name, error = %e, "no thread for reconciles");
            }
        }
    }
}

/// However its thread ends, nobody waits for the controller.
struct End<'a>(&'a Desk);

impl Drop for End<'_> {
    fn drop(&mut self) {
        self.0.close();
    }
}

struct Worker {
    controller: String,
    reconcile: Dynamic,
    client: Client,
    clock: Clock,
    desk: Arc<Desk>,
}

impl Worker {
    fn run(self) {
        let mut next = None;
        while let Some(Job { mut run, abandoned }) = next.or_else(|| self.desk.take()) {
            let (id, meter, started) = (run.id, run.meter(), self.clock.now());
            // After the end nothing begins, also not what was handed out just before it.
            let outcome = if abandoned.get() {
                Outcome::given_up(false)
            } else {
                let client = self.client.of_run(id, Arc::downgrade(&self.desk));
                let context = Context::new(client, &run, abandoned);
                let controller = &*self.controller;
                let span = tracing::info_span!(
                    target: "steersman", "reconcile", controller, object = %run.key, reconcile_id = id.0
                );
                span.in_scope(|| guarded(&self.reconcile, run, &context))
            };
            next = self.desk.done(id, Input::ends_of(id, &meter, outcome, started));
        }
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        // A reconcile may panic. The machine may not: then the controller is over, as when its own thread panics.
        if thread::panicking() {
            self.desk.close();
        }
    }
}
