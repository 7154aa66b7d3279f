//! kube-rs as a contestant: what its users would write for the same work.

#[path = "../../../src/contestant.rs"]
mod contestant;
#[path = "../../../src/measure.rs"]
mod measure;

use std::error::Error;
use std::fmt::Debug;
use std::sync::Arc;
use std::{env, thread};

use futures::{StreamExt as _, future::ready};
use k8s_openapi::api::core::v1::Pod;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::core::PartialObjectMeta;
use kube::runtime::controller::{Action, Controller};
use kube::runtime::{WatchStreamExt as _, reflector, watcher};
use kube::{Api, Client, Config, Resource, ResourceExt as _};
use serde::de::DeserializeOwned;

use contestant::{EVENT, Job, Meter, Reconciles, SENT};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let meter = Meter::start();
    let job = Job::from_args(env::args().skip(1))?;
    let kubeconfig = Kubeconfig::read_from(&job.kubeconfig)?;
    let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await?;
    let client = Client::try_from(config)?;
    match (job.watch, job.metadata) {
        (true, _) => watch(Api::all(client), job).await,
        (false, false) => list(Api::<Pod>::all(client), job, meter).await,
        (false, true) => list(Api::<PartialObjectMeta<Pod>>::all(client), job, meter).await,
    }
}

fn config(job: &Job) -> watcher::Config {
    let mut config = watcher::Config::default();
    config.page_size = job.page_size;
    if job.streaming { config.streaming_lists() } else { config }
}

/// Whether `managedFields` are dropped before a pod is stored.
fn lean(job: &Job) -> bool {
    job.variant == "kube-rs-lean"
}

/// Fills a store by a reflector.
async fn list<K>(api: Api<K>, job: Job, meter: Meter) -> Result<(), Box<dyn Error>>
where
    K: Resource<DynamicType = ()> + Clone + Debug + DeserializeOwned + Send + Sync + 'static,
{
    let (store, writer) = reflector::store();
    let lean = lean(&job);
    let pods = watcher(api, config(&job)).default_backoff().modify(move |pod: &mut K| {
        if lean {
            pod.managed_fields_mut().clear();
        }
    });
    tokio::spawn(reflector(writer, pods).for_each(|_| ready(())));
    store.wait_until_ready().await?;
    meter.first_state();
    Ok(())
}

/// Runs a controller.
async fn watch(api: Api<Pod>, job: Job) -> Result<(), Box<dyn Error>> {
    let (reconciles, reached) = Reconciles::new(&job);
    let reconciles = Arc::new(reconciles);
    let controller = if lean(&job) {
        let (store, writer) = reflector::store();
        let pods = watcher(api, config(&job))
            .default_backoff()
            .modify(|pod: &mut Pod| pod.managed_fields_mut().clear())
            .reflect(writer)
            .applied_objects();
        Controller::for_stream(pods, store)
    } else {
        Controller::new(api, config(&job))
    };
    let controller = controller.run(
        |pod, reconciles: Arc<Reconciles>| async move {
            let text = |name| pod.annotations().get(name).map(String::as_str);
            reconciles.begin(text(EVENT), text(SENT));
            Ok::<_, watcher::Error>(Action::await_change())
        },
        |_, _, _| Action::await_change(),
        Arc::clone(&reconciles),
    );
    tokio::spawn(controller.for_each(|_| ready(())));
    thread::spawn(move || reconciles.finish(&reached)).join().map_err(|_| "the contest panicked".into())
}
