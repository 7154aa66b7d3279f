//! Runs controllers: plans their watches, starts the tasks, ends them in order.

use std::fmt;
use std::future::Future;
use std::sync::{Arc, Mutex};

use async_channel::{Receiver, Sender};
use futures_lite::FutureExt;
use steersman_core::controller::{self, Config, Runnable};
use steersman_core::limits::INBOX;
use steersman_core::machine::{Machine, Outputs};
use steersman_core::manager::status::{Board, ManagerStatus};
use steersman_core::manager::{
    self, ControllerId, ControllerSpec, ExitReason, Input, Output, RunError, WatchId, WatchPlan,
};
use steersman_core::object::{Key, Object};
use steersman_core::queue::Priority;
use steersman_core::record::{Recorded, Recorder};
use steersman_core::rng::Rng;
use steersman_core::source::{Options, Source};
use steersman_signals::Caught;

use crate::clock::{Clock, seed};
use crate::controller::ControllerLoop;
use crate::drive::lock;
use crate::interrupt::Interrupt;
use crate::reconcile::{Dynamic, Reconcile};
use crate::watch::Watch;
use crate::{Client, Spawner};

/// Several controllers of one cluster, sharing watches.
///
/// ```no_run
/// use std::sync::Arc;
/// use std::time::Duration;
/// use steersman_smol::api::{Api, kinds::{ConfigMap, Secret}};
/// use steersman_smol::core::client::Error;
/// use steersman_smol::{Action, Client, Context, Controller, Manager, Spawner};
///
/// async fn reconcile(map: Arc<ConfigMap>, cx: Context) -> Result<Action, Error> {
///     println!("run {} of {}: {} keys", cx.reconcile_id(), cx.key(), map.data.len());
///     Ok(Action::requeue(Duration::from_secs(300)))
/// }
///
/// let controller = Controller::new(Api::<ConfigMap>::all()).owns(Api::<Secret>::all()).run(reconcile);
/// let spawner = Spawner::new(|task| smol::spawn(task).detach());
/// let manager = Manager::new(Client::try_default()?, spawner).controller(controller);
/// println!("{}", smol::block_on(manager.run())?);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Manager {
    client: Client,
    spawner: Spawner,
    config: manager::Config,
    sources: Options,
    recorder: Option<Arc<dyn Recorder>>,
    controllers: Vec<(Config<Object>, Dynamic)>,
}

impl Manager {
    /// A manager without controllers, whose tasks `spawner` starts.
    #[must_use]
    pub fn new(client: Client, spawner: Spawner) -> Self {
        Self {
            client,
            spawner,
            config: manager::Config::default(),
            sources: Options::default(),
            recorder: None,
            controllers: Vec::new(),
        }
    }

    /// Adds a controller. Its reconcile may be an `async fn(Arc<K>, Context) -> Result<Action, E>` or an `Arc` of a
    /// [`Plan`](steersman_core::controller::plan::Plan).
    #[must_use]
    pub fn controller<K, R, Form>(mut self, controller: Runnable<K, R>) -> Self
    where
        R: Reconcile<K, Form>,
    {
        let Runnable { config, reconcile, .. } = controller;
        self.controllers
            .push((config, Arc::new(move |run, context| reconcile.reconcile(run, context).boxed())));
        self
    }

    /// How long the end may take.
    #[must_use]
    pub fn shutdown(mut self, config: manager::Config) -> Self {
        self.config = config;
        self
    }

    /// Settings of every watch.
    #[must_use]
    pub fn sources(mut self, options: Options) -> Self {
        self.sources = options;
        self
    }

    /// Records every machine: the watches, the controllers, the requests of their reconciles, and the manager itself. What is
    /// recorded, and what is not, tells [`steersman_core::record`]. `steersman_record::Directory` writes it into files, which
    /// `steersman-replay` reads.
    #[must_use]
    pub fn record<R: Recorder + Clone + 'static>(mut self, recorder: &R) -> Self {
        self.client = self.client.record(recorder);
        self.recorder = Some(Arc::new(recorder.clone()));
        self
    }

    /// Runs until SIGINT or SIGTERM; a second one ends it at once, and so does dropping the future. Afterwards they end the
    /// process again, as they do by default, whoever else may have caught them meanwhile: a program with handlers of its own
    /// calls [`start`](Self::start) and [`Handle::stop`].
    ///
    /// # Errors
    /// Controllers that do not fit together; a system without threads or signals.
    pub async fn run(self) -> Result<ExitReason, RunError> {
        let mut signals = Caught::new()?;
        // What has ended already does not mind.
        let running = KillOnDrop(self.start()?);
        let manager = running.0.0.shared.clone();
        signals.tell(move |input| manager.tell(input))?;
        Ok(running.0.wait().await)
    }

    /// Runs in tasks of its own until [`Handle::stop`].
    ///
    /// # Errors
    /// Controllers that do not fit together.
    pub fn start(self) -> Result<Handle, RunError> {
        if self.client.is_hosted() {
            return Err(RunError::Hosted);
        }
        let specs: Vec<_> = self.controllers.iter().map(|(config, _)| ControllerSpec::from(config)).collect();
        let plan = WatchPlan::build(&specs)?;
        let options: Vec<Options> =
            plan.sources.iter().map(|s| s.options(&self.sources)).collect::<Result<_, _>>()?;
        let (sender, inbox) = async_channel::unbounded();
        let shared = Shared { inbox: sender, board: Arc::new(Mutex::new(Board::new(&specs, &plan))) };
        let (inputs, inboxes): (Vec<_>, Vec<_>) =
            self.controllers.iter().map(|_| async_channel::bounded(INBOX)).unzip();
        let loops = Loops {
            clock: self.client.inner().clock,
            client: self.client,
            spawner: self.spawner.clone(),
            options,
            controllers: self
                .controllers
                .into_iter()
                .zip(inboxes)
                .map(|((config, reconcile), inbox)| Some(Waiting { config, reconcile, inbox }))
                .collect(),
            inputs: inputs.clone(),
            interrupts: plan.sources.iter().map(|_| Interrupt::default()).collect(),
            rng: Rng::new(seed()),
            shared: shared.clone(),
            machine: Recorded::manager(manager::Manager::new(&plan, self.config), self.recorder.as_deref()),
            recorder: self.recorder,
            plan,
        };
        let names = specs.into_iter().map(|s| s.name).collect();
        // A manager whose task panicked or was dropped says nothing.
        let exit = Exit { reason: Arc::new(Mutex::new(ExitReason::Killed)), over: Interrupt::default() };
        let end = End(exit.clone());
        self.spawner.spawn(async move {
            let end = end;
            let reason = loops.run(&inbox).await;
            *lock(&end.0.reason) = reason;
        });
        Ok(Handle(Arc::new(HandleInner { shared, inputs, names, exit })))
    }
}

impl fmt::Debug for Manager {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let controllers: Vec<_> = self.controllers.iter().map(|(c, _)| c).collect();
        f.debug_struct("Manager").field("controllers", &controllers).finish_non_exhaustive()
    }
}

/// What all tasks of a manager share.
#[derive(Clone)]
pub(crate) struct Shared {
    inbox: Sender<Input>,
    board: Arc<Mutex<Board>>,
}

impl Shared {
    pub(crate) fn tell(&self, input: Input) {
        // It has no bound; a manager that has exited no longer listens.
        let _ = self.inbox.try_send(input);
    }

    pub(crate) fn board(&self, write: impl FnOnce(&mut Board)) {
        write(&mut lock(&self.board));
    }
}

/// A controller that has not started.
struct Waiting {
    config: Config<Object>,
    reconcile: Dynamic,
    inbox: Receiver<controller::Input<Object>>,
}

/// The manager's own task.
struct Loops {
    client: Client,
    clock: Clock,
    spawner: Spawner,
    options: Vec<Options>,
    plan: WatchPlan,
    machine: Recorded<manager::Manager>,
    recorder: Option<Arc<dyn Recorder>>,
    /// Taken when they start.
    controllers: Vec<Option<Waiting>>,
    inputs: Vec<Sender<controller::Input<Object>>>,
    interrupts: Vec<Interrupt>,
    rng: Rng,
    shared: Shared,
}

impl Loops {
    async fn run(mut self, inbox: &Receiver<Input>) -> ExitReason {
        let mut out = Outputs::new();
        let mut input = Input::Start;
        loop {
            self.machine.handle(self.clock.now(), input, &mut out);
            self.shared.board(|b| b.phase(self.machine.phase()));
            for output in out.drain() {
                match output {
                    Output::StartController(id) => self.start_controller(id),
                    Output::StartSource(id) => self.start_source(id),
                    Output::Synced => tracing::info!(target: "steersman", "every watch has synced"),
                    Output::StopController(id, grace) => {
                        // The manager waits for nobody: who has no room now hears of it later.
                        let inbox = self.inputs[id.0 as usize].clone();
                        self.spawner.spawn(async move {
                            let _ = inbox.send(controller::Input::Stop { grace }).await;
                        });
                    }
                    Output::StopSource(id) => self.interrupts[id.0 as usize].raise(),
                    Output::Exit(reason) => return reason,
                    _ => {}
                }
            }
            let deadline = async {
                self.clock.reach(self.machine.next_deadline()).await;
                Input::Deadline
            };
            let received = async { inbox.recv().await.unwrap_or(Input::Kill) };
            input = received.or(deadline).await;
        }
    }

    fn start_controller(&mut self, id: ControllerId) {
        let Some(Waiting { config, reconcile, inbox }) = self.controllers[id.0 as usize].take() else {
            return;
        };
        let part = ControllerLoop {
            id,
            config,
            reconcile,
            client: self.client.clone(),
            spawner: self.spawner.clone(),
            clock: self.clock,
            seed: self.rng.next_u64(),
            recorder: self.recorder.clone(),
            inbox,
            sender: self.inputs[id.0 as usize].clone(),
            shared: self.shared.clone(),
        };
        self.spawn(Input::ControllerStopped { controller: id, unfinished: 0 }, part.run());
    }

    fn start_source(&mut self, id: WatchId) {
        let planned = &self.plan.sources[id.0 as usize];
        let subscribers = planned
            .subscribers
            .iter()
            .map(|(c, number)| (self.inputs[c.0 as usize].clone(), *number))
            .collect();
        let seed = self.rng.next_u64();
        let source = Source::new(
            &planned.spec,
            self.options[id.0 as usize].clone(),
            Arc::clone(&self.client.inner().endpoint),
            self.client.authenticator(),
            seed,
        );
        let recorded = format!("source {} {}", id.0, planned.spec);
        let source = Recorded::source(source, seed, &recorded, self.recorder.as_deref());
        let part = Watch {
            id,
            client: self.client.clone(),
            source,
            subscribers,
            interrupt: self.interrupts[id.0 as usize].clone(),
            shared: self.shared.clone(),
        };
        self.spawn(Input::SourceStopped(id), part.run());
    }

    /// Starts a part; `over` is told when its task ends, however it ends.
    fn spawn(&self, over: Input, run: impl Future<Output = ()> + Send + 'static) {
        let last_words = LastWords { shared: self.shared.clone(), over };
        self.spawner.spawn(async move {
            let _last_words = last_words;
            run.await;
        });
    }
}

struct LastWords {
    shared: Shared,
    over: Input,
}

impl Drop for LastWords {
    fn drop(&mut self) {
        self.shared.tell(self.over);
    }
}

/// A running manager. Clones speak of the same one.
#[derive(Clone)]
pub struct Handle(Arc<HandleInner>);

struct HandleInner {
    shared: Shared,
    inputs: Vec<Sender<controller::Input<Object>>>,
    names: Vec<String>,
    exit: Exit,
}

/// How the manager ended; known when `over` is raised.
#[derive(Clone)]
struct Exit {
    reason: Arc<Mutex<ExitReason>>,
    over: Interrupt,
}

/// Raises `over` however the manager's task ends.
struct End(Exit);

impl Drop for End {
    fn drop(&mut self) {
        self.0.over.raise();
    }
}

/// Nobody is left who could stop it.
struct KillOnDrop(Handle);

impl Drop for KillOnDrop {
    fn drop(&mut self) {
        self.0.kill();
    }
}

impl Handle {
    fn tell(&self, input: Input) {
        self.0.shared.tell(input);
    }

    /// Asks for an end in order: running reconciles may end within the grace period. Returns at once.
    pub fn stop(&self) {
        self.tell(Input::Stop);
    }

    /// Asks for an end at once.
    pub fn kill(&self) {
        self.tell(Input::Kill);
    }

    /// Waits until the manager has exited.
    pub async fn wait(&self) -> ExitReason {
        self.0.exit.over.raised().await;
        lock(&self.0.exit.reason).clone()
    }

    /// Where everything stands; answers at once.
    #[must_use]
    pub fn status(&self) -> ManagerStatus {
        lock(&self.0.shared.board).status().clone()
    }

    /// Reconciles a key of a controller for a reason outside of the API. Whether there is such a controller.
    pub async fn trigger(&self, controller: &str, key: Key) -> bool {
        let Some(n) = self.0.names.iter().position(|name| name == controller) else { return false };
        self.0.inputs[n].send(controller::Input::Trigger { key, priority: Priority::default() }).await.is_ok()
    }
}

impl fmt::Debug for Handle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Handle").field("controllers", &self.0.names).finish_non_exhaustive()
    }
}
