//! One task per controller, and one per run.

use std::collections::BTreeMap;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Instant;

use async_channel::{Receiver, Sender};
use futures_lite::FutureExt;
use steersman_core::controller::{Abandoned, Config, Controller, Input, Outcome, Output, ReconcileId, Run};
use steersman_core::limits::STATUS_EVERY;
use steersman_core::machine::{Machine, Outputs};
use steersman_core::manager::{self, ControllerId, Line};
use steersman_core::object::Object;
use steersman_core::record::{Recorded, Recorder};
use tracing::Instrument;

use crate::clock::Clock;
use crate::interrupt::Interrupt;
use crate::log::log;
use crate::manager::Shared;
use crate::reconcile::{Dynamic, guarded};
use crate::{Client, Context, Spawner};

/// What a controller task needs.
pub(crate) struct ControllerLoop {
    pub(crate) id: ControllerId,
    pub(crate) config: Config<Object>,
    pub(crate) reconcile: Dynamic,
    pub(crate) client: Client,
    pub(crate) spawner: Spawner,
    pub(crate) clock: Clock,
    pub(crate) seed: u64,
    pub(crate) recorder: Option<Arc<dyn Recorder>>,
    pub(crate) inbox: Receiver<Input<Object>>,
    pub(crate) sender: Sender<Input<Object>>,
    pub(crate) shared: Shared,
}

/// What ends a run from outside.
#[derive(Clone, Default)]
struct Ending {
    /// Seen by the reconcile.
    abandoned: Abandoned,
    /// Drops it.
    interrupt: Interrupt,
}

/// Performs a run until it is over or given up. Then it is dropped, and if its destructors panic, that is what came of it: a run
/// without an outcome would keep its key for ever.
async fn until_given_up(interrupt: &Interrupt, run: impl Future<Output = Outcome>) -> Outcome {
    let mut run = Box::pin(run);
    let given_up = async {
        interrupt.raised().await;
        Outcome::given_up(true)
    };
    let outcome = given_up.or(&mut run).await;
    match catch_unwind(AssertUnwindSafe(|| drop(run))) {
        Ok(()) => outcome,
        Err(panic) => Outcome::from_panic(&*panic),
    }
}

impl ControllerLoop {
    pub(crate) async fn run(self) {
        let name = self.config.name.clone();
        let controller = Controller::new(self.config.clone(), self.seed);
        let mut controller = Recorded::controller(controller, self.seed, self.recorder.as_deref());
        let mut running: BTreeMap<ReconcileId, Ending> = BTreeMap::new();
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
                        let ending = Ending::default();
                        running.insert(run.id, ending.clone());
                        self.start(run, ending);
                    }
                    Output::Abandon(id) => {
                        if let Some(ending) = running.get(&id) {
                            ending.abandoned.set();
                            ending.interrupt.raise();
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
                    let deadline = async {
                        self.clock.reach(controller.next_deadline()).await;
                        Input::Deadline
                    };
                    let received = async { self.inbox.recv().await.unwrap_or(Input::Stop { grace: None }) };
                    received.or(deadline).await
                }
            };
        }
    }

    fn start(&self, mut run: Run<Object>, Ending { abandoned, interrupt }: Ending) {
        let (id, meter, clock, results) = (run.id, run.meter(), self.clock, self.sender.clone());
        let controller = &*self.config.name;
        let span = tracing::info_span!(
            target: "steersman", "reconcile", controller, object = %run.key, reconcile_id = id.0
        );
        let context = Context::new(self.client.of_run(id, self.sender.clone()), &run, abandoned);
        let reconcile = Arc::clone(&self.reconcile);
        self.spawner.spawn(async move {
            let started = clock.now();
            // After the end nothing begins, also not what was handed out just before it.
            let outcome = if interrupt.is_raised() {
                Outcome::given_up(false)
            } else {
                until_given_up(&interrupt, guarded(reconcile, run, context).instrument(span)).await
            };
            for input in Input::ends_of(id, &meter, outcome, started) {
                let _ = results.send(input).await;
            }
        });
    }
}
