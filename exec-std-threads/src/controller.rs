//! One thread per controller, and its pool of threads for reconciles.

use std::collections::BTreeMap;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender, SyncSender};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Instant;

use steersman_core::controller::{Abandoned, Config, Controller, Input, Outcome, Output, ReconcileId, Run};
use steersman_core::limits::STATUS_EVERY;
use steersman_core::machine::{Machine, Outputs};
use steersman_core::manager::{self, ControllerId, Line};
use steersman_core::object::Object;
use steersman_core::record::{Recorded, Recorder};

use crate::clock::Clock;
use crate::drive::lock;
use crate::log::log;
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

struct Job {
    run: Run<Object>,
    abandoned: Abandoned,
}

impl ControllerLoop {
    pub(crate) fn run(self) {
        let name = self.config.name.clone();
        let jobs = self.start_pool();
        let controller = Controller::new(self.config, self.seed);
        let mut controller = Recorded::controller(controller, self.seed, self.recorder.as_deref());
        let mut running: BTreeMap<ReconcileId, Abandoned> = BTreeMap::new();
        let mut out = Outputs::new();
        let mut input = Input::Start;
        let mut written = Instant::now();
        loop {
            if let Input::Done { id, .. } = &input {
                running.remove(id);
            }
            controller.handle(self.clock.now(), input, &mut out);
            for output in out.drain() {
                match output {
                    Output::Run(run) => {
                        let abandoned = Abandoned::default();
                        running.insert(run.id, abandoned.clone());
                        // The pool lives as long as this loop.
                        let _ = jobs.send(Job { run, abandoned });
                    }
                    Output::Abandon(id) => {
                        if let Some(abandoned) = running.get(&id) {
                            abandoned.set();
                        }
                    }
                    Output::Notice(notice) => log(Some(&name), None, &Line::from(&notice)),
                    Output::Ready => tracing::info!(target: "steersman", controller = name, "ready"),
                    Output::Stopped { unfinished } => {
                        self.shared.board(|b| b.controller(self.id, controller.status()));
                        let controller = self.id;
                        self.shared.tell(manager::Input::ControllerStopped { controller, unfinished });
                        return;
                    }
                    _ => {}
                }
            }
            input = match self.inbox.try_recv() {
                Ok(input) => {
                    if written.elapsed() > STATUS_EVERY {
                        written = Instant::now();
                        self.shared.board(|b| b.controller(self.id, controller.status()));
                    }
                    input
                }
                Err(_) => {
                    self.shared.board(|b| b.controller(self.id, controller.status()));
                    match self.clock.until(controller.next_deadline()) {
                        None => self.inbox.recv().unwrap_or(Input::Stop { grace: None }),
                        Some(limit) => match self.inbox.recv_timeout(limit) {
                            Ok(input) => input,
                            Err(RecvTimeoutError::Timeout) => Input::Deadline,
                            Err(RecvTimeoutError::Disconnected) => Input::Stop { grace: None },
                        },
                    }
                }
            };
        }
    }

    /// As many threads as runs at once. They end when the loop drops its end of the channel.
    fn start_pool(&self) -> Sender<Job> {
        let (sender, jobs) = mpsc::channel::<Job>();
        let jobs = Arc::new(Mutex::new(jobs));
        for n in 0..self.config.concurrency.max(1) {
            let worker = Worker {
                controller: self.config.name.clone(),
                reconcile: Arc::clone(&self.reconcile),
                client: self.client.clone(),
                clock: self.clock,
                jobs: Arc::clone(&jobs),
                results: self.sender.clone(),
            };
            let name = format!("{}-{n}", self.config.name);
            if let Err(e) = thread::Builder::new().name(name).spawn(move || worker.run()) {
                tracing::error!(target: "steersman", controller = self.config.name, error = %e, "no thread for reconciles");
            }
        }
        sender
    }
}

struct Worker {
    controller: String,
    reconcile: Dynamic,
    client: Client,
    clock: Clock,
    jobs: Arc<Mutex<Receiver<Job>>>,
    results: SyncSender<Input<Object>>,
}

impl Worker {
    fn run(self) {
        loop {
            let job = lock(&self.jobs).recv();
            let Ok(Job { run, abandoned }) = job else { return };
            let (id, started) = (run.id, self.clock.now());
            // After the end nothing begins, also not what was handed out just before it.
            let outcome = if abandoned.get() {
                Outcome::given_up(false)
            } else {
                let client = self.client.of_run(id, self.results.clone());
                let context = Context::new(client, &run, abandoned);
                let controller = &*self.controller;
                let span = tracing::info_span!(
                    target: "steersman", "reconcile", controller, object = %run.key, reconcile_id = id.0
                );
                span.in_scope(|| guarded(&self.reconcile, run, &context))
            };
            if self.results.send(Input::Done { id, outcome, started }).is_err() {
                return;
            }
        }
    }
}
