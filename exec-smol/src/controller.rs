//! One task per controller, and one per run.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use async_channel::{Receiver, Sender};
use futures_lite::FutureExt;
use steersman_core::controller::{Abandoned, Config, Controller, Input, Outcome, Output, ReconcileId, Run};
use steersman_core::machine::{Machine, Outputs};
use steersman_core::manager::{self, ControllerId, Line};
use steersman_core::object::Object;

use crate::clock::Clock;
use crate::interrupt::Interrupt;
use crate::log::log;
use crate::manager::Shared;
use crate::reconcile::{Dynamic, guarded};
use crate::{Client, Context, Spawner};

/// How many inputs may wait for a controller before those who bring them wait too. The loop never waits for them.
pub(crate) const INBOX: usize = 1024;

/// Under load the status is written no more often than this.
const STATUS_EVERY: Duration = Duration::from_millis(100);

/// What a controller task needs.
pub(crate) struct ControllerLoop {
    pub(crate) id: ControllerId,
    pub(crate) config: Config<Object>,
    pub(crate) reconcile: Dynamic,
    pub(crate) client: Client,
    pub(crate) spawner: Spawner,
    pub(crate) clock: Clock,
    pub(crate) seed: u64,
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

impl ControllerLoop {
    pub(crate) async fn run(self) {
        let name = self.config.name.clone();
        let mut controller = Controller::new(self.config.clone(), self.seed);
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

    fn start(&self, run: Run<Object>, Ending { abandoned, interrupt }: Ending) {
        let (id, clock, results) = (run.id, self.clock, self.sender.clone());
        let context = Context::new(self.client.clone(), &run, abandoned);
        let reconcile = Arc::clone(&self.reconcile);
        self.spawner.spawn(async move {
            let started = clock.now();
            let dropped = async {
                interrupt.raised().await;
                Outcome::Error("given up: it took too long".into())
            };
            // In this order, what was given up before it began does not begin.
            let outcome = dropped.or(guarded(reconcile, run, context)).await;
            let _ = results.send(Input::Done { id, outcome, started }).await;
        });
    }
}
