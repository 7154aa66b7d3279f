//! steersman as a contestant, on each executor: a controller of pods, with the words that its users have. (And the limit.)

use std::sync::Arc;
use std::sync::mpsc::Receiver;
use std::thread;
use std::time::Duration;

use steersman_core::api::{ResourceType, Scope};
use steersman_core::config;
use steersman_core::controller::{Action, Builder, WatchSpec};
use steersman_core::manager::status::ManagerStatus;
use steersman_core::object::Object;
use steersman_core::source;

use crate::contestant::{EVENT, Job, Meter, Reached, Reconciles, SENT};
use crate::limit;

const PODS: ResourceType = ResourceType::new("", "v1", "pods", "Pod", Scope::Namespaced);

/// Does the job and prints what it cost.
///
/// # Errors
/// One line that says what cannot be done.
pub(crate) fn run(job: &Job) -> Result<(), String> {
    match job.variant.as_str() {
        "threads" => threads(job),
        "smol" => smol(job),
        "limit" => limit::run(job),
        other => Err(format!("there is no contestant {other:?}")),
    }
}

fn sources(job: &Job) -> source::Options {
    let mut options = source::Options::default();
    options.watcher.page_size = job.page_size;
    options.watcher.streaming = job.streaming;
    options
}

/// Without events nothing is reconciled, so that it is the way to the first state alone that is measured.
fn controller(job: &Job) -> Builder<Object> {
    let mut pods = WatchSpec::all(PODS);
    pods.metadata_only = job.metadata;
    let controller = Builder::of(pods);
    if job.watch { controller } else { controller.filter(|_| false) }
}

fn kubeconfig(job: &Job) -> config::Options {
    config::Options { path: Some(job.kubeconfig.clone()), ..config::Options::default() }
}

fn begin(reconciles: &Reconciles, pod: &Object) {
    reconciles.begin(pod.annotation(EVENT).as_deref(), pod.annotation(SENT).as_deref());
}

fn wait(
    job: &Job,
    meter: &Meter,
    reconciles: &Reconciles,
    reached: &Receiver<Reached>,
    status: impl Fn() -> ManagerStatus,
) {
    if job.watch {
        return reconciles.finish(reached, meter);
    }
    while status().ready().is_err() {
        thread::park_timeout(Duration::from_millis(2));
    }
    meter.first_state();
}

fn threads(job: &Job) -> Result<(), String> {
    use steersman_threads::{Client, Context, Manager};
    let meter = Meter::start();
    let (reconciles, reached) = Reconciles::new(job);
    let reconciles = Arc::new(reconciles);
    let counter = Arc::clone(&reconciles);
    let reconcile = move |pod: Arc<Object>, _: &Context| {
        begin(&counter, &pod);
        Ok::<_, String>(Action::await_change())
    };
    let client = Client::from_options(kubeconfig(job)).map_err(|e| e.to_string())?;
    let manager = Manager::new(client).sources(sources(job)).controller(controller(job).run(reconcile));
    let handle = manager.start().map_err(|e| e.to_string())?;
    wait(job, &meter, &reconciles, &reached, || handle.status());
    Ok(())
}

fn smol(job: &Job) -> Result<(), String> {
    use steersman_smol::{Client, Context, Manager, Spawner};
    let meter = Meter::start();
    let (reconciles, reached) = Reconciles::new(job);
    let reconciles = Arc::new(reconciles);
    let counter = Arc::clone(&reconciles);
    let reconcile = move |pod: Arc<Object>, _: Context| {
        begin(&counter, &pod);
        std::future::ready(Ok::<_, String>(Action::await_change()))
    };
    let client = Client::from_options(kubeconfig(job)).map_err(|e| e.to_string())?;
    let spawner = Spawner::new(|task| smol::spawn(task).detach());
    let manager =
        Manager::new(client, spawner).sources(sources(job)).controller(controller(job).run(reconcile));
    let handle = manager.start().map_err(|e| e.to_string())?;
    wait(job, &meter, &reconciles, &reached, || handle.status());
    Ok(())
}
