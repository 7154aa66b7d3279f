//! The core of steersman: a Kubernetes controller runtime that decides everything and performs nothing.
//!
//! Every part is a [`machine::Machine`]: bytes, time and events go in as values, effects come out as values. Nothing
//! here opens a socket, reads a clock, draws entropy or spawns a thread; an *executor* does that.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;
#[cfg(any(feature = "std", test))]
extern crate std;

// Floor 0: what every machine is made of.
pub mod backoff;
mod guard;
pub mod limits;
pub mod machine;
pub mod net;
pub mod rng;
pub mod time;

// Floor 1
pub mod config;
pub mod wire;

// Floor 2
pub mod api;
pub mod object;

// Floor 3
pub mod auth;
pub mod client;
pub mod queue;
pub mod store;
pub mod watcher;

// Floor 4
pub mod controller;
pub mod source;

// Floor 5
pub mod manager;

#[cfg(test)]
#[path = "../tests/cases/mod.rs"]
mod cases;

// Above all floors: it looks at machines from outside.
#[cfg(feature = "record")]
pub mod record;

#[cfg(feature = "tls")]
pub mod tls;
