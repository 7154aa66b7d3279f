//! Runs controllers: plans their watches, starts the threads, ends them in order.

use std::fmt;
use std::mem;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, Weak};
use std::thread;
use std::time::Duration;

use steersman_core::controller::{self, Config, Runnable, SourceId};
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
use crate::clerk::{CLERKS, Clerk, Reach, Served, Theirs, Word};
use crate::clock::{Clock, seed};
use crate::controller::Opening;
use crate::desk::Desk;
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
        let (inboxes, clerks): (Vec<_>, Vec<_>) =
            (0..specs.len().min(CLERKS)).map(|_| mpsc::sync_channel(INBOX)).unzip();
        let reaches: Arc<[Reach]> = (0..)
            .zip(inboxes.iter().cycle())
            .take(specs.len())
            .map(|(n, inbox)| Reach { controller: ControllerId(n), inbox: inbox.clone() })
            .collect();
        let loops = Loops {
            clock: self.client.inner().clock,
            client: self.client,
            options,
            controllers: self.controllers.into_iter().map(Some).collect(),
            clerks: clerks
                .into_iter()
                .map(|inbox| Waiting { inbox: Some(inbox), served: Vec::new() })
                .collect(),
            desks: Vec::new(),
            reaches: Arc::clone(&reaches),
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
            inner: Arc::new(HandleInner { shared, reaches, names }),
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
    /// Of no manager, for tests of what speaks to one; and what is said to it.
    #[cfg(test)]
    pub(crate) fn of(board: Board) -> (Self, Receiver<Input>) {
        let (inbox, said) = mpsc::channel();
        (Self { inbox, board: Arc::new(Mutex::new(board)) }, said)
    }

    pub(crate) fn tell(&self, input: Input) {
        // A manager that has exited no longer listens.
        let _ = self.inbox.send(input);
    }

    pub(crate) fn board(&self, write: impl FnOnce(&mut Board)) {
        write(&mut lock(&self.board));
    }
}

/// A clerk that has not started.
struct Waiting {
    /// Taken when it does.
    inbox: Option<Receiver<Word>>,
    served: Vec<(ControllerId, Served)>,
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
    controllers: Vec<Option<(Config<Object>, Dynamic)>>,
    clerks: Vec<Waiting>,
    desks: Vec<Weak<Desk>>,
    reaches: Arc<[Reach]>,
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
                    Output::Exit(reason) => {
                        // Who shares a thread with a function that hangs has not heard of the end.
                        self.desks.iter().filter_map(Weak::upgrade).for_each(|desk| desk.kill());
                        return reason;
                    }
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
        let (n, clerks) = (id.0 as usize, self.clerks.len());
        let Some((config, reconcile)) = self.controllers[n].take() else { return };
        let name = config.name.clone();
        let last_words = self.last_words(Input::ControllerStopped { controller: id, unfinished: 0 });
        let opening = Opening {
            reach: self.reaches[n].clone(),
            config,
            reconcile,
            client: self.client.clone(),
            clock: self.clock,
            seed: self.rng.next_u64(),
            recorder: self.recorder.clone(),
            shared: self.shared.clone(),
        };
        // (The user's recorder may panic.)
        if let Ok(desk) = catch_unwind(AssertUnwindSafe(|| opening.open())) {
            self.desks.push(Arc::downgrade(&desk));
            self.clerks[n % clerks].served.push((id, Served::new(desk, last_words)));
        }
        // The clerk begins when all that it serves are there: what comes before waits in its inbox.
        if n + clerks >= self.controllers.len() {
            let shared = self.controllers.len() > clerks;
            self.start_clerk(n % clerks, if shared { format!("controllers-{}", n % clerks) } else { name });
        }
    }

    fn start_clerk(&mut self, n: usize, name: String) {
        let Waiting { inbox, served } = &mut self.clerks[n];
        let (Some(inbox), served, clock) = (inbox.take(), mem::take(served), self.clock) else { return };
        if let Err(error) =
            thread::Builder::new().name(name).spawn(move || Clerk::serve(clock, inbox, served))
        {
            // The closure was dropped, so their last words were said.
            tracing::error!(target: "steersman", %error, "no thread");
        }
    }

    /// The manager waits for nobody: a controller whose inbox is full hears of its end when there is room again.
    fn stop_controller(&self, id: ControllerId, grace: Option<Duration>) {
        let reach = &self.reaches[id.0 as usize];
        if let Some(stop) = reach.try_send(controller::Input::Stop { grace }) {
            let inbox = reach.inbox.clone();
            let waits = move || drop(inbox.send(stop));
            if let Err(error) = thread::Builder::new().name("stop".into()).spawn(waits) {
                tracing::error!(target: "steersman", %error, "no thread");
            }
        }
    }

    fn start_source(&mut self, id: WatchId) {
        let planned = &self.plan.sources[id.0 as usize];
        let mut subscribers = Vec::new();
        for n in 0..self.clerks.len() {
            let served = |(c, _): &&(ControllerId, SourceId)| c.0 as usize % self.clerks.len() == n;
            let theirs: Theirs = planned.subscribers.iter().filter(served).copied().collect();
            if !theirs.is_empty() {
                subscribers.push((self.reaches[n].inbox.clone(), theirs));
            }
        }
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
        let last_words = self.last_words(over);
        if let Err(error) = thread::Builder::new().name(name).spawn(move || {
            let _last_words = last_words;
            run();
        }) {
            // The closure was dropped, so its last words were said.
            tracing::error!(target: "steersman", %error, "no thread");
        }
    }

    fn last_words(&self, over: Input) -> LastWords {
        LastWords { shared: self.shared.clone(), over }
    }
}

/// Said when they are dropped.
pub(crate) struct LastWords {
    pub(crate) shared: Shared,
    pub(crate) over: Input,
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
    reaches: Arc<[Reach]>,
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
    ///
    /// Waits while a thousand inputs wait for the controller or for those who share its thread: not to be called by a mapping or filter,
    /// which would wait for itself.
    pub fn trigger(&self, controller: &str, key: Key) -> bool {
        let Some(n) = self.inner.names.iter().position(|name| name == controller) else { return false };
        self.inner.reaches[n].send(controller::Input::Trigger { key, priority: Priority::default() })
    }
}

impl fmt::Debug for Handle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Handle").field("controllers", &self.inner.names).finish_non_exhaustive()
    }
}
