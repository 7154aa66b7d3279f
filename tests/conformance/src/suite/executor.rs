//! The executors, in one shape.

use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use steersman_core::api::{Answer, FromObject, Raw, Request};
use steersman_core::backoff::Policy;
use steersman_core::client::Error;
use steersman_core::config;
use steersman_core::controller::plan::Plan;
use steersman_core::controller::{Action, Builder, Context, Runnable, SourceId};
use steersman_core::manager::status::ManagerStatus;
use steersman_core::manager::{self, ExitReason};
use steersman_core::object::{Key, Object};
use steersman_core::source::Options;
use steersman_core::store::Snapshot;
use steersman_record::Directory;

/// What a scene's reconcile is told besides its object.
#[derive(Clone, Debug)]
pub struct Cx {
    /// The object's key.
    pub key: Key,
    /// 1 for the first try.
    pub attempt: u32,
    /// What the primary source had seen when the run began.
    pub view: Snapshot<Object>,
    /// The run's own client.
    pub client: OwnClient,
}

impl Cx {
    fn of<C: Clone + Send + Sync + 'static>(
        cx: &Context<C>,
        send: impl Fn(&C, Request<Raw>) -> Result<Raw, Error> + Send + Sync + 'static,
    ) -> Self {
        let view = cx.view(SourceId::PRIMARY).unwrap_or_default();
        let client = cx.client().clone();
        let client = OwnClient(Arc::new(move |request| send(&client, request)));
        Self { key: cx.key().clone(), attempt: cx.attempt(), view, client }
    }
}

type Sends = dyn Fn(Request<Raw>) -> Result<Raw, Error> + Send + Sync;

/// What a run sends with.
#[derive(Clone)]
pub struct OwnClient(Arc<Sends>);

impl OwnClient {
    /// Sends one request, and waits.
    ///
    /// # Errors
    /// The executor's own error.
    pub fn send(&self, request: Request<Raw>) -> Result<Raw, Error> {
        (self.0)(request)
    }
}

impl fmt::Debug for OwnClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("OwnClient")
    }
}

/// A scene's reconcile: blocking, whatever the executor.
pub type Work<K> = Arc<dyn Fn(&Arc<K>, &Cx) -> Result<Action, String> + Send + Sync>;

/// Something that runs controllers.
pub trait Executor: 'static {
    /// Its client.
    type Client: Clone + Send + 'static;
    /// Controllers that do not run yet.
    type Manager;
    /// A running manager.
    type Handle: Clone + Send + Sync + 'static;

    /// A client by a kubeconfig.
    ///
    /// # Errors
    /// The executor's own line.
    fn client(kubeconfig: &Path) -> Result<Self::Client, String>;

    /// Sends one request.
    ///
    /// # Errors
    /// The executor's own error.
    fn send<R: Answer + Send + 'static>(client: &Self::Client, request: Request<R>) -> Result<R, Error>;

    /// A manager without controllers, with settings of its own.
    fn manager(client: Self::Client, end: manager::Config, sources: Options) -> Self::Manager;

    /// Adds a controller.
    fn add<K: FromObject + Send + Sync + 'static>(
        manager: Self::Manager,
        controller: Builder<K>,
        work: Work<K>,
    ) -> Self::Manager;

    /// Adds a controller in the pure form.
    fn add_plan<K, P: Plan>(manager: Self::Manager, controller: Runnable<K, Arc<P>>) -> Self::Manager;

    /// Records everything.
    fn record(manager: Self::Manager, recordings: &Directory) -> Self::Manager;

    /// Starts all of them.
    ///
    /// # Errors
    /// The executor's own line.
    fn start(manager: Self::Manager) -> Result<Self::Handle, String>;

    /// Where everything stands.
    fn status(handle: &Self::Handle) -> ManagerStatus;

    /// Asks for an end in order.
    fn stop(handle: &Self::Handle);

    /// Asks for an end at once.
    fn kill(handle: &Self::Handle);

    /// Waits for the end.
    fn wait(handle: &Self::Handle) -> ExitReason;

    /// Reconciles a key for a reason outside of the API.
    fn trigger(handle: &Self::Handle, controller: &str, key: Key) -> bool;
}

/// Watches that try again sooner than they would for a real cluster, so that a scene with faults is short.
#[must_use]
pub fn impatient() -> Options {
    let mut options = Options::default();
    options.watcher.backoff =
        Policy { base: Duration::from_millis(20), cap: Duration::from_millis(200), jitter: 1.0 };
    options
}

fn options(kubeconfig: &Path) -> config::Options {
    config::Options { path: Some(kubeconfig.display().to_string()), ..config::Options::default() }
}

/// Plain threads.
#[derive(Clone, Copy, Debug)]
pub struct Threads;

impl Executor for Threads {
    type Client = steersman_threads::Client;
    type Manager = steersman_threads::Manager;
    type Handle = steersman_threads::Handle;

    fn client(kubeconfig: &Path) -> Result<Self::Client, String> {
        steersman_threads::Client::from_options(options(kubeconfig)).map_err(|e| e.to_string())
    }

    fn send<R: Answer + Send + 'static>(client: &Self::Client, request: Request<R>) -> Result<R, Error> {
        client.send(request)
    }

    fn manager(client: Self::Client, end: manager::Config, sources: Options) -> Self::Manager {
        steersman_threads::Manager::new(client).shutdown(end).sources(sources)
    }

    fn add<K: FromObject + Send + Sync + 'static>(
        manager: Self::Manager,
        controller: Builder<K>,
        work: Work<K>,
    ) -> Self::Manager {
        manager.controller(controller.run(move |object: Arc<K>, cx: &steersman_threads::Context| {
            work(&object, &Cx::of(cx, steersman_threads::Client::send))
        }))
    }

    fn add_plan<K, P: Plan>(manager: Self::Manager, controller: Runnable<K, Arc<P>>) -> Self::Manager {
        manager.controller(controller)
    }

    fn record(manager: Self::Manager, recordings: &Directory) -> Self::Manager {
        manager.record(recordings)
    }

    fn start(manager: Self::Manager) -> Result<Self::Handle, String> {
        manager.start().map_err(|e| e.to_string())
    }

    fn status(handle: &Self::Handle) -> ManagerStatus {
        handle.status()
    }

    fn stop(handle: &Self::Handle) {
        handle.stop();
    }

    fn kill(handle: &Self::Handle) {
        handle.kill();
    }

    fn wait(handle: &Self::Handle) -> ExitReason {
        handle.wait()
    }

    fn trigger(handle: &Self::Handle, controller: &str, key: Key) -> bool {
        handle.trigger(controller, key)
    }
}

/// Tasks on smol's global executor; reconciles block on its pool of threads.
#[derive(Clone, Copy, Debug)]
pub struct Smol;

impl Executor for Smol {
    type Client = steersman_smol::Client;
    type Manager = steersman_smol::Manager;
    type Handle = steersman_smol::Handle;

    fn client(kubeconfig: &Path) -> Result<Self::Client, String> {
        steersman_smol::Client::from_options(options(kubeconfig)).map_err(|e| e.to_string())
    }

    fn send<R: Answer + Send + 'static>(client: &Self::Client, request: Request<R>) -> Result<R, Error> {
        smol::block_on(client.send(request))
    }

    fn manager(client: Self::Client, end: manager::Config, sources: Options) -> Self::Manager {
        let spawner = steersman_smol::Spawner::new(|task| smol::spawn(task).detach());
        steersman_smol::Manager::new(client, spawner).shutdown(end).sources(sources)
    }

    fn add<K: FromObject + Send + Sync + 'static>(
        manager: Self::Manager,
        controller: Builder<K>,
        work: Work<K>,
    ) -> Self::Manager {
        manager.controller(controller.run(move |object: Arc<K>, cx: steersman_smol::Context| {
            let work = Arc::clone(&work);
            let told = Cx::of(&cx, Self::send);
            async move { smol::unblock(move || work(&object, &told)).await }
        }))
    }

    fn add_plan<K, P: Plan>(manager: Self::Manager, controller: Runnable<K, Arc<P>>) -> Self::Manager {
        manager.controller(controller)
    }

    fn record(manager: Self::Manager, recordings: &Directory) -> Self::Manager {
        manager.record(recordings)
    }

    fn start(manager: Self::Manager) -> Result<Self::Handle, String> {
        manager.start().map_err(|e| e.to_string())
    }

    fn status(handle: &Self::Handle) -> ManagerStatus {
        handle.status()
    }

    fn stop(handle: &Self::Handle) {
        handle.stop();
    }

    fn kill(handle: &Self::Handle) {
        handle.kill();
    }

    fn wait(handle: &Self::Handle) -> ExitReason {
        smol::block_on(handle.wait())
    }

    fn trigger(handle: &Self::Handle, controller: &str, key: Key) -> bool {
        smol::block_on(handle.trigger(controller, key))
    }
}
