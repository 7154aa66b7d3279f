//! One function per machine and parser that takes any bytes and panics on a broken invariant.
//!
//! They are plain functions, so that a corpus replays in an ordinary test run; a fuzzing engine only feeds them.

pub mod canary;
mod cuts;
pub mod framing;
pub mod gzip;
pub mod list_split;
pub mod object;
pub mod queue;
pub mod store;
pub mod watcher;
pub mod wire;
