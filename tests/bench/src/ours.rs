//! What both contestants of steersman share: a controller, with the words that its users have.

use std::env;
use std::process::ExitCode;
use std::sync::mpsc::Receiver;
use std::thread;
use std::time::Duration;

use steersman_core::api::ResourceType;
use steersman_core::api::kinds::{CONFIGMAPS, PODS};
use steersman_core::config;
use steersman_core::controller::{Builder, WatchSpec};
use steersman_core::manager::status::ManagerStatus;
use steersman_core::object::Object;
use steersman_core::source;

use crate::contestant::{EVENT, Job, Meter, Reached, Reconciles, Resource, SENT};

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

/// Without events nothing is reconciled, so that it is the way to the first state alone that is measured.
pub(crate) fn controller(job: &Job) -> Builder<Object> {
    let resource: ResourceType = match job.resource {
        Resource::Pods => PODS,
        Resource::ConfigMaps => CONFIGMAPS,
    };
    let mut watch = WatchSpec::all(resource);
    if !job.namespace.is_empty() {
        watch = watch.within(&job.namespace);
    }
    watch.metadata_only = job.metadata;
    let controller = Builder::of(watch);
    if job.watch { controller } else { controller.filter(|_| false) }
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
}
