//! What both contestants of steersman share: a controller, with the words that its users have.

use std::env;
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

/// Does the job of the command line by `contestant`, which is a program by itself, of this name.
pub(crate) fn main(name: &str, contestant: impl FnOnce(&Job, &Meter) -> Result<(), String>) -> ExitCode {
    let meter = Meter::start();
    let done = Job::from_args(env::args().skip(1)).and_then(|job| {
        if job.variant == name {
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

/// What a reconcile asks for.
pub(crate) fn action(job: &Job) -> Action {
    if job.requeue { Action::requeue(Duration::from_secs(3_600)) } else { Action::await_change() }
}

pub(crate) fn kubeconfig(job: &Job) -> config::Options {
    config::Options { path: Some(job.kubeconfig.clone()), ..config::Options::default() }
}

pub(crate) fn begin(reconciles: &Reconciles, object: &Object) {
    reconciles.begin(object.annotation(EVENT).as_deref(), object.annotation(SENT).as_deref());
}

pub(crate) fn wait(
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
    if job.spike {
        answer();
    }
}
