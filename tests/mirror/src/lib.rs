//! A real controller, and the harness that runs it, disturbs it, and checks that all comes right.
//!
//! The controller ([`plan`]) is written once, in the pure form. An executor brings the few functions of [`Executor`], and
//! its example is [`main`]:
//!
//! ```no_run
//! # use std::{process::ExitCode, sync::Arc};
//! # use steersman_core::{api::{Answer, Request}, client::Error, config::Config, manager::status::ManagerStatus};
//! # struct Handle;
//! use steersman_mirror::{Controller, Executor};
//!
//! struct Threads;
//!
//! impl Executor for Threads {
//! #   type Client = ();
//! #   type Running = Handle;
//! #   fn connect(_: Config) -> Result<(), String> { Ok(()) }
//! #   fn send<R: Answer + Send + 'static>(_: &(), _: Request<R>) -> Result<R, Error> { unimplemented!() }
//! #   fn status(_: &Handle) -> ManagerStatus { ManagerStatus::default() }
//! #   fn stop(_: Handle) -> Result<(), String> { Ok(()) }
//!     fn start(client: &Self::Client, controller: Controller) -> Result<Self::Running, String> {
//!         // Manager::new(client.clone()).add(controller).start()
//! #       Ok(Handle)
//!     }
//!     // ...
//! }
//!
//! fn main() -> ExitCode {
//!     steersman_mirror::main::<Threads>()
//! }
//! ```

#[cfg(feature = "harness")]
pub mod args;
#[cfg(feature = "harness")]
mod changes;
#[cfg(feature = "harness")]
mod check;
#[cfg(feature = "harness")]
mod example;
#[cfg(feature = "harness")]
mod harness;
pub mod plan;
#[cfg(feature = "harness")]
mod relay;
#[cfg(feature = "harness")]
mod report;
#[cfg(all(test, feature = "harness"))]
mod tests;

use std::sync::Arc;

use steersman_core::api::kinds::ConfigMap;
use steersman_core::controller::Runnable;

#[cfg(feature = "harness")]
pub use example::{Executor, main};
#[cfg(feature = "harness")]
pub use harness::{Failed, Job, run};
pub use plan::Mirror;
#[cfg(feature = "harness")]
pub use report::Report;

/// The controller as an executor gets it.
pub type Controller = Runnable<ConfigMap, Arc<Mirror>>;
