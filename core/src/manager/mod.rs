//! Several controllers in one process: which watches they need, in which order all starts and ends, where it stands.
//!
//! - [`WatchPlan`] finds the watches: one for each distinct resource, scope and selectors, whoever wants it.
//! - [`Manager`] is the [`Machine`](crate::machine::Machine) of the start and the end.
//! - [`status`] is what a health endpoint or status page shows, as plain values that are there at once.

mod machine;
mod plan;
pub mod status;
mod telling;

#[cfg(test)]
mod tests;

pub use machine::{Config, ExitReason, Input, Manager, Output};
#[cfg(feature = "std")]
pub use plan::RunError;
pub use plan::{ControllerId, ControllerSpec, PlanError, PlannedSource, WatchId, WatchPlan};
pub use telling::{Level, Line};

pub use crate::controller::{Selectors, SourceId, WatchSpec};
