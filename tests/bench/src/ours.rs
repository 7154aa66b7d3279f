//! What both contestants of steersman share: a controller, with the words that its users have.

use std::env;
use std::hint::black_box;
use std::process::ExitCode;
use std::sync::mpsc::Receiver;
use std::thread;
use std::time::Duration;

use steersman_core::api::ResourceType;
use steersman_core::api::kinds::{CONFIGMAPS, PODS};
use steersman_core::config;
use steersman_core::controller::{Action, Builder, WatchSpec};
use steersman_core::manager::status::ManagerStatus;
use steersman_core::object::Object;
use steersman_core::source;
use steersman_core::store::Change;

use crate::contestant::{EVENT, Job, Meter, Reached, Reconciles, Resource, SENT};
use crate::spike::answer;

/// What the name of a contestant ends with that keeps its objects packed.
const COMPACT: &str = "-compact";

/// Does the job of the command line by `contestant`, which is a program by itself, of this name.
pub(crate) fn main(name: &str, contestant: impl FnOnce(&Job, &Meter) -> Result<(), String>) -> ExitCode {
    let meter = Meter::start();
    let done = Job::from_args(env::args().skip(1)).and_then(|job| {
        if job.variant.strip_suffix(COMPACT).unwrap_or(&job.variant) == name {
            contestant(&job, &meter)
        } else {
            Err(format!("this is not {}", job.variant))
        }
    });
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

pub(crate) fn sources(job: &Job) -> source::Options {
    let mut options = source::Options::default();
    options.watcher.page_size = job.page_size;
    options.watcher.streaming = job.streaming;
    options.compact = job.variant.ends_with(COMPACT);
    options
}

/// As many as share the objects. Without events nothing is reconciled, so that it is the way to the first state alone that is measured.
pub(crate) fn controllers(job: &Job) -> impl Iterator<Item = Builder<Object>> {
    let (watch, all) = (job.watch, job.controllers);
    let resource: ResourceType = match job.resource {
        Resource::Pods => PODS,
        Resource::ConfigMaps => CONFIGMAPS,
    };
    let mut objects = WatchSpec::all(resource);
    if !job.namespace.is_empty() {
        objects = objects.within(&job.namespace);
    }
    objects.metadata_only = job.metadata;
    (0..all).map(move |n| {
        let controller = Builder::of(objects.clone()).named(format!("objects-{n}"));
        match (watch, all) {
            (false, _) => controller.filter(|_| false),
            (true, 1) => controller,
            (true, _) => controller.filter(move |change| {
                let (Change::Added { new: pod, .. }
                | Change::Updated { new: pod, .. }
                | Change::Deleted { old: pod, .. }) = change;
                shard(pod.uid(), all) == n
            }),
        }
    })
}

/// Which of so many controllers has the pod with this uid.
fn shard(uid: &str, controllers: u64) -> u64 {
    uid.get(..8).and_then(|digits| u64::from_str_radix(digits, 16).ok()).unwrap_or(0) % controllers
}

pub(crate) fn kubeconfig(job: &Job) -> config::Options {
    config::Options { path: Some(job.kubeconfig.clone()), ..config::Options::default() }
}

/// What an author of a controller of pods would decode of them.
#[allow(dead_code, reason = "it is decoded, not looked at")]
mod decoded {
    use serde::Deserialize;
    use steersman_core::object::ObjectMeta;

    #[derive(Deserialize)]
    pub(super) struct Pod {
        pub metadata: ObjectMeta,
        pub spec: PodSpec,
        pub status: PodStatus,
    }

    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    pub(super) struct PodSpec {
        pub node_name: Option<String>,
        pub containers: Vec<Container>,
    }

    #[derive(Deserialize)]
    pub(super) struct Container {
        pub name: String,
        pub image: Option<String>,
    }

    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    pub(super) struct PodStatus {
        pub phase: Option<String>,
        #[serde(rename = "podIP")]
        pub pod_ip: Option<String>,
        #[serde(default)]
        pub container_statuses: Vec<ContainerStatus>,
    }

    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    pub(super) struct ContainerStatus {
        pub name: String,
        pub ready: bool,
        pub restart_count: u32,
    }
}

/// What a reconcile does: it begins, and decodes the object if that is asked for.
pub(crate) fn reconcile(job: &Job, reconciles: &Reconciles, object: &Object) -> Result<Action, String> {
    reconciles.begin(object.annotation(EVENT).as_deref(), object.annotation(SENT).as_deref());
    if job.parse {
        let pod: decoded::Pod = object.parse().map_err(|e| e.to_string())?;
        black_box(pod);
    }
    Ok(if job.requeue { Action::requeue(Duration::from_secs(3_600)) } else { Action::await_change() })
}

/// How much the reconciles have read of their pods.
fn read(status: &ManagerStatus) -> String {
    let all = status.controllers.iter();
    let (runs, parses) =
        all.clone().fold((0, 0), |(runs, parses), c| (runs + c.results.total(), parses + c.reads.parses));
    let alone = all.filter_map(|c| c.metadata_alone()).fold(0.0, f64::max);
    format!(r#","parses":{:.3},"metadata_alone":{alone:.3}"#, parses as f64 / runs.max(1) as f64)
}

pub(crate) fn wait(
    job: &Job,
    meter: &Meter,
    reconciles: &Reconciles,
    reached: &Receiver<Reached>,
    status: impl Fn() -> ManagerStatus,
) {
    if job.watch {
        return reconciles.finish(reached, meter, || read(&status()));
    }
    while status().ready().is_err() {
        thread::park_timeout(Duration::from_millis(2));
    }
    meter.first_state();
    if job.spike {
        answer();
    }
}
