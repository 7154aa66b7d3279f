//! steersman on smol as a contestant: a program with nothing else in it, so that its memory, threads and size are those of a user.

#[path = "../contestant.rs"]
mod contestant;
#[path = "../measure.rs"]
mod measure;
#[path = "../ours.rs"]
mod ours;
#[path = "../spike.rs"]
mod spike;

use std::future::ready;
use std::process::ExitCode;
use std::sync::Arc;

use steersman_core::object::Object;

use contestant::{Job, Meter, Reconciles};
use ours::{controllers, kubeconfig, reconcile, sources, wait};

fn main() -> ExitCode {
    ours::main("smol", smol)
}

fn smol(job: &Job, meter: &Meter) -> Result<(), String> {
    use steersman_smol::{Client, Context, Manager, Spawner};
    let (reconciles, reached) = Reconciles::new(job);
    let reconciles = Arc::new(reconciles);
    let client = Client::from_options(kubeconfig(job)).map_err(|e| e.to_string())?;
    let spawner = Spawner::new(|task| smol::spawn(task).detach());
    let mut manager = Manager::new(client, spawner).sources(sources(job));
    for controller in controllers(job) {
        let (counter, job) = (Arc::clone(&reconciles), job.clone());
        let reconcile = move |object: Arc<Object>, _: Context| ready(reconcile(&job, &counter, &object));
        manager = manager.controller(controller.run(reconcile));
    }
    let handle = manager.start().map_err(|e| e.to_string())?;
    wait(job, meter, &reconciles, &reached, || handle.status());
    Ok(())
}
