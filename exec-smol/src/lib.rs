//! Runs steersman's machines as async tasks, on smol's parts: sockets and timers by `async-io`, TLS by `futures-rustls`.
//!
//! - [`Client::send`] brings one request to its answer.
//! - [`Controller`] describes a controller, [`Manager`] runs any number of them: one task for each watch, one for each
//!   controller, one for each reconcile.
//!
//! All futures are `Send` and go through a [`Spawner`], so they run as they are under smol, under tokio, or under whatever
//! executor the program has. Everything that is decided is decided in [`steersman_core`].

mod client;
mod clock;
mod connection;
mod context;
mod controller;
mod drive;
mod host;
mod interrupt;
mod log;
mod manager;
mod reconcile;
mod spawn;
mod watch;

pub use client::Client;
pub use context::Context;
pub use host::Host;
pub use manager::{Handle, Manager};
pub use reconcile::Reconcile;
pub use spawn::{Spawner, Task};

pub use steersman_core as core;
pub use steersman_core::api::{self, Api};
pub use steersman_core::controller::plan::{Failure, Plan, Planning, Step};
pub use steersman_core::controller::{Action, Builder as Controller};
pub use steersman_core::manager::RunError;
pub use steersman_core::object::Object;
pub use steersman_core::tls::ConnectError;
