//! One controller: changes of its sources become keys, keys become runs, outcomes become pauses.
//!
//! [`Controller`] is a [`Machine`](crate::machine::Machine). An executor feeds it the [`Delta`](crate::store::Delta)s
//! of its sources, performs each [`Run`] on a thread or task, and reports what came of it:
//!
//! ```text
//! sources ── Delta ──▶ mapping + predicates ──▶ queue ──▶ Run ──▶ (executor reconciles) ──▶ Done ──▶ queue
//! ```
//!
//! - Nothing runs before **every** source has had its first full state.
//! - One key never runs twice at once, and at most [`Config::concurrency`] keys run at all.
//! - A key that changes while it runs, runs once more.
//! - A key that is not in the primary source's view is done without a run.
//! - A key that has written, runs again when its sources have shown that ([`Input::Wrote`]).
//! - A failing key backs off alone; a panic is a failure of its key.
//!
//! A reconcile in its pure form is a [`plan::Plan`].

mod builder;
mod config;
mod context;
mod machine;
mod mapping;
pub mod plan;
pub mod stats;
mod types;
mod unseen;

pub use builder::{Builder, Runnable};
pub use config::{Config, MapFn, Mapping, Predicate, Source, WatchSpec};
pub use context::{Abandoned, Context};
pub use machine::Controller;
#[cfg(feature = "record")]
pub(crate) use mapping::subject;
pub use stats::ControllerStatus;
pub use types::{Action, Input, Notice, Outcome, Output, ReconcileId, Run, SourceId};

pub use crate::api::Selectors;
pub use crate::queue::Priority;

#[cfg(test)]
pub(crate) mod tests;
