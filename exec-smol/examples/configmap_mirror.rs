//! Mirrors ConfigMaps as Secrets as tasks on smol: `cargo run --release -p steersman-smol --example configmap_mirror`.
//!
//! The controller itself (in its pure form) and what disturbs and checks it are shared by all executors, in
//! `tests/mirror`. `-- --help` tells what it can do.

use std::process::ExitCode;

use steersman_core::api::{Answer, Request};
use steersman_core::client::Error;
use steersman_core::config::Config;
use steersman_core::manager::status::ManagerStatus;
use steersman_mirror::Executor;
use steersman_smol::{Client, Handle, Manager, Spawner};

struct Smol;

impl Executor for Smol {
    type Client = Client;
    type Running = Handle;

    fn connect(config: Config) -> Result<Client, String> {
        Client::new(config).map_err(|e| e.to_string())
    }

    fn send<R: Answer + Send + 'static>(client: &Client, request: Request<R>) -> Result<R, Error> {
        smol::block_on(client.send(request))
    }

    fn start(client: &Client, controller: steersman_mirror::Controller) -> Result<Handle, String> {
        let spawner = Spawner::new(|task| smol::spawn(task).detach());
        Manager::new(client.clone(), spawner).controller(controller).start().map_err(|e| e.to_string())
    }

    fn status(running: &Handle) -> ManagerStatus {
        running.status()
    }

    fn stop(running: Handle) -> Result<(), String> {
        running.stop();
        let reason = smol::block_on(running.wait());
        if reason.is_clean() { Ok(()) } else { Err(reason.to_string()) }
    }
}

fn main() -> ExitCode {
    steersman_mirror::main::<Smol>()
}
