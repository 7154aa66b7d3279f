//! Runs steersman's machines on plain OS threads with blocking TLS sockets. No async anywhere.
//!
//! - [`Client::send`] brings one request to its answer.
//! - [`Controller`] describes a controller, [`Manager`] runs any number of them: one thread for each watch, one for each
//!   controller (eight at most, which more controllers share), and a fixed pool of threads for its reconciles.
//!
//! Everything that is decided is decided in [`steersman_core`]; this crate moves bytes, waits, and starts threads.

mod clerk;
mod client;
mod clock;
mod connection;
mod context;
mod controller;
mod desk;
mod drive;
mod host;
mod interrupt;
mod log;
mod manager;
mod reconcile;
mod watch;

pub use client::Client;
pub use context::Context;
pub use host::Host;
pub use manager::{Handle, Manager};
pub use reconcile::Reconcile;

pub use steersman_core as core;
pub use steersman_core::api::{self, Api};
pub use steersman_core::controller::plan::{Failure, Plan, Planning, Step};
pub use steersman_core::controller::{Action, Builder as Controller};
pub use steersman_core::manager::RunError;
pub use steersman_core::object::Object;
pub use steersman_core::tls::ConnectError;
