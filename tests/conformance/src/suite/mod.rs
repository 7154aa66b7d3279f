//! What every executor must do, on every server: scenes that are written once and run for each of them.
//!
//! A scene is a function, generic over its [`Executor`]; it panics when the executor does something wrong. Each starts an
//! API server of its own.

pub mod ending;
pub mod executor;
pub mod faults;
pub mod partial;
pub mod recorded;
pub mod runs;
pub mod stage;
pub mod sync;
pub mod unreadable;

pub use executor::{Cx, Executor, Smol, Threads, Work};
