//! A controller on threads: its machine at a desk, and its pool of threads for reconciles.

use std::sync::Arc;
use std::thread;

use steersman_core::controller::{Config, Controller, Input, Outcome};
use steersman_core::object::Object;
use steersman_core::record::{Recorded, Recorder};

use crate::clerk::Reach;
use crate::clock::Clock;
use crate::desk::{Desk, Job};
use crate::manager::Shared;
use crate::reconcile::{Dynamic, guarded};
use crate::{Client, Context};

/// What a controller is opened with.
pub(crate) struct Opening {
    pub(crate) reach: Reach,
    pub(crate) config: Config<Object>,
    pub(crate) reconcile: Dynamic,
    pub(crate) client: Client,
    pub(crate) clock: Clock,
    pub(crate) seed: u64,
    pub(crate) recorder: Option<Arc<dyn Recorder>>,
    pub(crate) shared: Shared,
}

impl Opening {
    /// Its desk. As many threads as there are runs at once come with it, and end with it.
    pub(crate) fn open(self) -> Arc<Desk> {
        let Self { reach, config, reconcile, client, clock, seed, recorder, shared } = self;
        let (name, concurrency) = (config.name.clone(), config.concurrency.max(1));
        let controller = Recorded::controller(Controller::new(config, seed), seed, recorder.as_deref());
        let desk = Arc::new(Desk::new(reach, (clock, shared), controller));
        for n in 0..concurrency {
            let worker = Worker {
                controller: name.clone(),
                reconcile: Arc::clone(&reconcile),
                client: client.clone(),
                clock,
                desk: Arc::clone(&desk),
            };
            if let Err(e) = thread::Builder::new().name(format!("{name}-{n}")).spawn(move || worker.run()) {
                tracing::error!(target: "steersman", controller = name, error = %e, "no thread for reconciles");
            }
        }
        desk
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
        // A reconcile may panic. The machine may not: then the controller is over, as when it panics on the thread of its clerk.
        if thread::panicking() {
            self.desk.close();
        }
    }
}
