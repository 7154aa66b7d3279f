//! kube-rs as a contestant: what its users would write for the same work, plainly and tuned.
//!
//! Variants, by the parts of their names: `kube-rs` alone is typed objects as they come; every other drops `managedFields` before an
//! object is stored, as an expert would (`lean`); `current` runs on one thread, `dynamic` has `DynamicObject`s, and `mimalloc` is
//! the program of this name, which has another allocator. Several controllers have a watch and a store each, but for `shared`:
//! they subscribe to one.

#[allow(dead_code, reason = "some of what is asked for is for others")]
#[path = "../../../src/contestant.rs"]
mod contestant;
#[path = "../../../src/measure.rs"]
mod measure;
#[path = "../../../src/spike.rs"]
mod spike;

use std::env;
use std::error::Error;
use std::fmt::Debug;
use std::hash::Hash;
use std::sync::Arc;
use std::time::Duration;

use futures::{Stream, StreamExt as _, future::ready};
use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::core::{ApiResource, DynamicObject, PartialObjectMeta};
use kube::runtime::controller::{Action, Controller};
use kube::runtime::reflector::store::Writer;
use kube::runtime::{WatchStreamExt as _, reflector, watcher};
use kube::{Api, Client, Config, Resource, ResourceExt as _};
use serde::de::DeserializeOwned;
use tokio::runtime::Builder;

use contestant::{EVENT, Job, Meter, Reconciles, SENT};

type Failed = Box<dyn Error>;

/// Does the job that the arguments name, and prints what it cost.
///
/// # Errors
/// What cannot be done.
pub fn run() -> Result<(), Failed> {
    let meter = Meter::start();
    let job = Job::from_args(env::args().skip(1))?;
    let mut runtime = if job.variant.contains("current") {
        Builder::new_current_thread()
    } else {
        Builder::new_multi_thread()
    };
    runtime.enable_all().build()?.block_on(async {
        let kubeconfig = Kubeconfig::read_from(&job.kubeconfig)?;
        let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await?;
        let client = Client::try_from(config)?;
        match job.resource {
            contestant::Resource::Pods => contest::<Pod>(client, job, meter).await,
            contestant::Resource::ConfigMaps => contest::<ConfigMap>(client, job, meter).await,
        }
    })
}

async fn contest<K>(client: Client, job: Job, meter: Meter) -> Result<(), Failed>
where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope>
        + Clone
        + Debug
        + DeserializeOwned
        + Send
        + Sync
        + 'static,
{
    let config = config(&job);
    if job.metadata {
        let objects = watcher(within::<PartialObjectMeta<K>>(client, &job), config);
        return work(objects, (), job, meter).await;
    }
    if job.variant.contains("dynamic") {
        let kind = ApiResource::erase::<K>(&());
        let api = if job.namespace.is_empty() {
            Api::<DynamicObject>::all_with(client, &kind)
        } else {
            Api::namespaced_with(client, &job.namespace, &kind)
        };
        return work(watcher(api, config), kind, job, meter).await;
    }
    let api = within::<K>(client, &job);
    if job.controllers > 1 {
        return share(api, config, job, meter).await;
    }
    if job.watch && !lean(&job) {
        return reconcile(vec![Controller::new(api, config)], job, meter).await;
    }
    work(watcher(api, config), (), job, meter).await
}

/// Those of the namespace, or all.
fn within<K: Resource<DynamicType = (), Scope = NamespaceResourceScope>>(
    client: Client,
    job: &Job,
) -> Api<K> {
    if job.namespace.is_empty() { Api::all(client) } else { Api::namespaced(client, &job.namespace) }
}

fn config(job: &Job) -> watcher::Config {
    let mut config = watcher::Config::default();
    config.page_size = job.page_size;
    if job.streaming { config.streaming_lists() } else { config }
}

/// Whether `managedFields` are dropped before an object is stored.
fn lean(job: &Job) -> bool {
    job.variant != "kube-rs"
}

/// Fills a store by a reflector, or runs a controller of what fills it.
async fn work<K>(
    objects: impl Stream<Item = watcher::Result<watcher::Event<K>>> + Send + 'static,
    kind: K::DynamicType,
    job: Job,
    meter: Meter,
) -> Result<(), Failed>
where
    K: Resource + Clone + Debug + DeserializeOwned + Send + Sync + 'static,
    K::DynamicType: Clone + Debug + Eq + Hash + Send + Sync + Unpin + 'static,
{
    let writer = Writer::new(kind.clone());
    let (store, lean) = (writer.as_reader(), lean(&job));
    let objects = objects
        .default_backoff()
        .modify(move |object: &mut K| {
            if lean {
                object.managed_fields_mut().clear();
            }
        })
        .reflect(writer);
    if job.watch {
        let controller = Controller::for_stream_with(objects.applied_objects(), store, kind);
        return reconcile(vec![controller], job, meter).await;
    }
    tokio::spawn(objects.for_each(|_| ready(())));
    store.wait_until_ready().await?;
    tokio::task::spawn_blocking(move || {
        meter.first_state();
        if job.spike {
            spike::answer();
        }
    })
    .await?;
    Ok(())
}

/// Several controllers, each with the objects of its shard.
async fn share<K>(api: Api<K>, config: watcher::Config, job: Job, meter: Meter) -> Result<(), Failed>
where
    K: Resource<DynamicType = ()> + Clone + Debug + DeserializeOwned + Send + Sync + 'static,
{
    let (lean, all) = (lean(&job), job.controllers);
    let objects = move || {
        watcher(api.clone(), config.clone()).default_backoff().modify(move |object: &mut K| {
            if lean {
                object.managed_fields_mut().clear();
            }
        })
    };
    let mut controllers = Vec::new();
    if job.variant.contains("shared") {
        let (store, writer) = reflector::store_shared::<K>(256);
        for n in 0..all {
            let mine = writer.subscribe().ok_or("this store cannot be shared")?;
            let mine = mine.filter(move |object| ready(shard(object.as_ref(), all) == n));
            controllers.push(Controller::for_shared_stream(mine, store.clone()));
        }
        tokio::spawn(objects().reflect_shared(writer).for_each(|_| ready(())));
    } else {
        for n in 0..all {
            let writer = Writer::new(());
            let store = writer.as_reader();
            let mine = objects().reflect(writer).applied_objects();
            let mine = mine.filter(move |o| ready(o.as_ref().map_or(true, |o| shard(o, all) == n)));
            controllers.push(Controller::for_stream(mine, store));
        }
    }
    reconcile(controllers, job, meter).await
}

/// Which of so many controllers has this object.
fn shard(object: &impl Resource, controllers: u64) -> u64 {
    let digits = object.meta().uid.as_deref().and_then(|uid| uid.get(..8));
    digits.and_then(|digits| u64::from_str_radix(digits, 16).ok()).unwrap_or(0) % controllers
}

async fn reconcile<K>(controllers: Vec<Controller<K>>, job: Job, meter: Meter) -> Result<(), Failed>
where
    K: Resource + Clone + Debug + DeserializeOwned + Send + Sync + 'static,
    K::DynamicType: Clone + Debug + Eq + Hash + Send + Sync + Unpin + 'static,
{
    let (reconciles, reached) = Reconciles::new(&job);
    let reconciles = Arc::new(reconciles);
    for controller in controllers {
        let requeue = job.requeue;
        let controller = controller.run(
            move |object: Arc<K>, reconciles: Arc<Reconciles>| async move {
                let text = |name| object.annotations().get(name).map(String::as_str);
                reconciles.begin(text(EVENT), text(SENT));
                let hour = Duration::from_secs(3_600);
                let action = if requeue { Action::requeue(hour) } else { Action::await_change() };
                Ok::<_, watcher::Error>(action)
            },
            |_, _, _| Action::await_change(),
            Arc::clone(&reconciles),
        );
        tokio::spawn(controller.for_each(|_| ready(())));
    }
    // The runtime may have this thread alone: who waits for the end does it elsewhere.
    tokio::task::spawn_blocking(move || reconciles.finish(&reached, &meter, String::new)).await?;
    Ok(())
}
