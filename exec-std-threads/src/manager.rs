//! Runs controllers: plans their watches, starts the threads, ends them in order.

use std::fmt;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender, SyncSender, TrySendError};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

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

use crate::Client;
use crate::clock::{Clock, seed};
use crate::controller::ControllerLoop;
use crate::drive::lock;
use crate::interrupt::Interrupt;
use crate::reconcile::{Dynamic, Reconcile};
use crate::watch::Watch;

/// Several controllers of one cluster, sharing watches.
///
/// ```no_run
/// use std::sync::Arc;
/// use std::time::Duration;
/// use steersman_threads::api::{Api, kinds::{ConfigMap, Secret}};
/// use steersman_threads::core::client::Error;
/// use steersman_threads::{Action, Client, Context, Controller, Manager};
///
/// fn reconcile(map: Arc<ConfigMap>, cx: &Context) -> Result<Action, Error> {
///     println!("run {} of {}: {} keys", cx.reconcile_id(), cx.key(), map.data.len());
///     Ok(Action::requeue(Duration::from_secs(300)))
/// }
///
/// let controller = Controller::new(Api::<ConfigMap>::all()).owns(Api::<Secret>::all()).run(reconcile);
/// let handle = Manager::new(Client::try_default()?).controller(controller).start()?;
/// while handle.status().ready().is_err() {
///     std::thread::yield_now();
/// }
/// handle.stop();
/// println!("{}", handle.wait());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Manager {
    client: Client,
    config: manager::Config,
    sources: Options,
    recorder: Option<Arc<dyn Recorder>>,
    controllers: Vec<(Config<Object>, Dynamic)>,
}

impl Manager {
    /// A manager without controllers.
    #[must_use]
    pub fn new(client: Client) -> Self {
        Self {
            client,
            config: manager::Config::default(),
            sources: Options::default(),
            recorder: None,
            controllers: Vec::new(),
        }
    }

    /// Adds a controller. Its reconcile may be a function `Fn(Arc<K>, &Context) -> Result<Action, E>` or an
    /// `Arc` of a [`Plan`](steersman_core::controller::plan::Plan).
    #[must_use]
    pub fn controller<K, R, Form>(mut self, controller: Runnable<K, R>) -> Self
    where
        R: Reconcile<K, Form>,
    {
        let Runnable { config, reconcile, .. } = controller;
        self.controllers.push((config, Arc::new(move |run, context| reconcile.reconcile(run, context))));
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

    /// Runs until SIGINT or SIGTERM; a second one ends it at once. Afterwards they end the process again, as they do by
    /// default, whoever else may have caught them meanwhile: a program with handlers of its own calls [`start`](Self::start)
    /// and [`Handle::stop`].
    ///
    /// # Errors
    /// Controllers that do not fit together; a system without threads or signals.
    pub fn run(self) -> Result<ExitReason, RunError> {
        let mut signals = Caught::new()?;
        let handle = self.start()?;
        let manager = handle.inner.shared.clone();
        if let Err(e) = signals.tell(move |input| manager.tell(input)) {
            handle.kill();
            return Err(e.into());
        }
        Ok(handle.wait())
    }

    /// Runs in threads of its own until [`Handle::stop`].
    ///
    /// # Errors
    /// Controllers that do not fit together; a system without threads.
    pub fn start(self) -> Result<Handle, RunError> {
        if self.client.is_hosted() {
            return Err(RunError::Hosted);
        }
        let specs: Vec<_> = self.controllers.iter().map(|(config, _)| ControllerSpec::from(config)).collect();
        let plan = WatchPlan::build(&specs)?;
        let options: Vec<Options> =
            plan.sources.iter().map(|s| s.options(&self.sources)).collect::<Result<_, _>>()?;
        let (sender, inbox) = mpsc::channel();
        let shared = Shared { inbox: sender, board: Arc::new(Mutex::new(Board::new(&specs, &plan))) };
        let (inputs, inboxes): (Vec<_>, Vec<_>) =
            self.controllers.iter().map(|_| mpsc::sync_channel(INBOX)).unzip();
        let loops = Loops {
            clock: self.client.inner().clock,
            client: self.client,
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
        let (ended, exit) = mpsc::channel();
        thread::Builder::new().name("manager".into()).spawn(move || {
            let _ = ended.send(loops.run(&inbox));
        })?;
        Ok(Handle {
            inner: Arc::new(HandleInner { shared, inputs, names }),
            exit: Arc::new(Mutex::new(Exit::Coming(exit))),
        })
    }
}

impl fmt::Debug for Manager {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Manager")
            .field("controllers", &self.controllers.iter().map(|(c, _)| c).collect::<Vec<_>>())
            .finish()
    }
}

/// What all threads of a manager share.
#[derive(Clone)]
pub(crate) struct Shared {
    inbox: Sender<Input>,
    board: Arc<Mutex<Board>>,
}

impl Shared {
    /// Of a manager that does not listen, for tests of what speaks to it.
    #[cfg(test)]
    pub(crate) fn of(board: Board) -> (Self, Arc<Mutex<Board>>) {
        let board = Arc::new(Mutex::new(board));
        (Self { inbox: mpsc::channel().0, board: Arc::clone(&board) }, board)
    }

    pub(crate) fn tell(&self, input: Input) {
        // A manager that has exited no longer listens.
        let _ = self.inbox.send(input);
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

/// The manager's own thread.
struct Loops {
    client: Client,
    clock: Clock,
    options: Vec<Options>,
    plan: WatchPlan,
    machine: Recorded<manager::Manager>,
    recorder: Option<Arc<dyn Recorder>>,
    /// Taken when they start.
    controllers: Vec<Option<Waiting>>,
    inputs: Vec<SyncSender<controller::Input<Object>>>,
    interrupts: Vec<Interrupt>,
    rng: Rng,
    shared: Shared,
}

impl Loops {
    fn run(mut self, inbox: &Receiver<Input>) -> ExitReason {
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
                    Output::StopController(id, grace) => self.stop_controller(id, grace),
                    Output::StopSource(id) => self.interrupts[id.0 as usize].raise(),
                    Output::Exit(reason) => return reason,
                    _ => {}
                }
            }
            input = match self.clock.until(self.machine.next_deadline()) {
                None => inbox.recv().unwrap_or(Input::Kill),
                Some(limit) => match inbox.recv_timeout(limit) {
                    Ok(input) => input,
                    Err(RecvTimeoutError::Timeout) => Input::Deadline,
                    Err(RecvTimeoutError::Disconnected) => Input::Kill,
                },
            };
        }
    }

    fn start_controller(&mut self, id: ControllerId) {
        let Some(Waiting { config, reconcile, inbox }) = self.controllers[id.0 as usize].take() else {
            return;
        };
        let name = config.name.clone();
        let part = ControllerLoop {
            id,
            config,
            reconcile,
            client: self.client.clone(),
            clock: self.clock,
            seed: self.rng.next_u64(),
            recorder: self.recorder.clone(),
            inbox,
            sender: self.inputs[id.0 as usize].clone(),
            shared: self.shared.clone(),
        };
        let over = Input::ControllerStopped { controller: id, unfinished: 0 };
        self.spawn(name, over, move || part.run());
    }

    /// The manager waits for nobody: a controller whose inbox is full hears of its end when there is room again.
    fn stop_controller(&self, id: ControllerId, grace: Option<Duration>) {
        let inbox = &self.inputs[id.0 as usize];
        if let Err(TrySendError::Full(stop)) = inbox.try_send(controller::Input::Stop { grace }) {
            let inbox = inbox.clone();
            let waits = move || drop(inbox.send(stop));
            if let Err(error) = thread::Builder::new().name("stop".into()).spawn(waits) {
                tracing::error!(target: "steersman", %error, "no thread");
            }
        }
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
        let name = format!("watch {}", planned.spec.resource.plural);
        let part = Watch {
            id,
            client: self.client.clone(),
            source,
            subscribers,
            interrupt: self.interrupts[id.0 as usize].clone(),
            shared: self.shared.clone(),
        };
        self.spawn(name, Input::SourceStopped(id), move || part.run());
    }

    /// Starts a part; `over` is told when its thread ends, however it ends.
    fn spawn(&self, name: String, over: Input, run: impl FnOnce() + Send + 'static) {
        let last_words = LastWords { shared: self.shared.clone(), over };
        if let Err(error) = thread::Builder::new().name(name).spawn(move || {
            let _last_words = last_words;
            run();
        }) {
            // The closure was dropped, so its last words were said.
            tracing::error!(target: "steersman", %error, "no thread");
        }
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
pub struct Handle {
    inner: Arc<HandleInner>,
    exit: Arc<Mutex<Exit>>,
}

struct HandleInner {
    shared: Shared,
    inputs: Vec<SyncSender<controller::Input<Object>>>,
    names: Vec<String>,
}

enum Exit {
    Coming(Receiver<ExitReason>),
    Here(ExitReason),
}

impl Handle {
    fn tell(&self, input: Input) {
        self.inner.shared.tell(input);
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
    #[must_use]
    pub fn wait(&self) -> ExitReason {
        let mut exit = lock(&self.exit);
        if let Exit::Coming(coming) = &*exit {
            // A manager whose thread panicked said nothing.
            *exit = Exit::Here(coming.recv().unwrap_or(ExitReason::Killed));
        }
        match &*exit {
            Exit::Here(reason) => reason.clone(),
            Exit::Coming(_) => unreachable!("it was taken in above"),
        }
    }

    /// Where everything stands; answers at once.
    #[must_use]
    pub fn status(&self) -> ManagerStatus {
        lock(&self.inner.shared.board).status().clone()
    }

    /// Reconciles a key of a controller for a reason outside of the API. Whether there is such a controller.
    pub fn trigger(&self, controller: &str, key: Key) -> bool {
        let Some(n) = self.inner.names.iter().position(|name| name == controller) else { return false };
        self.inner.inputs[n].send(controller::Input::Trigger { key, priority: Priority::default() }).is_ok()
    }
}

impl fmt::Debug for Handle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Handle").field("controllers", &self.inner.names).finish_non_exhaustive()
    }
}
