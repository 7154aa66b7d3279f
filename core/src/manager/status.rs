//! Where a manager stands, as plain values.
//!
//! An executor keeps a [`Board`] under a lock, its parts write their own line when something changed, and whoever asks
//! gets a copy at once; nobody has to be asked, so nobody can be busy.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

use super::WatchSpec;
use super::plan::{ControllerId, ControllerSpec, WatchId, WatchPlan};
pub use crate::controller::ControllerStatus;
pub use crate::source::SourceStatus;
use crate::time::Time;

/// Where a manager stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub enum ManagerPhase {
    /// Not started.
    #[default]
    New,
    /// It waits to become the leader.
    Standby,
    /// Started; not every watch has had its first full state.
    Syncing,
    /// Everything runs.
    Running,
    /// It ends.
    Stopping,
    /// It is over.
    Stopped,
}

/// One watch of the plan.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SourceLine {
    /// What it watches.
    pub watch: WatchSpec,
    /// How many subscribers it has.
    pub subscribers: usize,
    /// What it says about itself; `None` before it started.
    pub status: Option<SourceStatus>,
}

impl SourceLine {
    /// Why it has not had its first full state; `None` if it has.
    #[must_use]
    pub fn missing(&self) -> Option<String> {
        let Some(SourceStatus { watcher, .. }) = &self.status else { return Some("not started".to_string()) };
        match &watcher.last_error {
            _ if watcher.synced => None,
            Some(error) => Some(error.clone()),
            None => Some(format!("{:?}", watcher.phase).to_lowercase()),
        }
    }
}

/// Everything about a manager at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ManagerStatus {
    /// Where it stands.
    pub phase: ManagerPhase,
    /// Since when.
    pub since: Time,
    /// Its watches, by [`WatchId`].
    pub sources: Vec<SourceLine>,
    /// Its controllers, by [`ControllerId`].
    pub controllers: Vec<ControllerStatus>,
}

impl ManagerStatus {
    /// Whether it does its work: everything runs, and every watch has had its first full state.
    ///
    /// # Errors
    /// A line for each thing that is missing, with the last error of a watch.
    pub fn ready(&self) -> Result<(), Vec<String>> {
        let mut missing = Vec::new();
        match self.phase {
            ManagerPhase::Running | ManagerPhase::Syncing => {}
            ManagerPhase::New => missing.push("not started".to_string()),
            ManagerPhase::Standby => missing.push("standby: not the leader".to_string()),
            ManagerPhase::Stopping => missing.push("stopping".to_string()),
            ManagerPhase::Stopped => missing.push("stopped".to_string()),
        }
        for source in &self.sources {
            if let Some(why) = source.missing() {
                missing.push(format!("{}: no first list yet: {why}", source.watch));
            }
        }
        for controller in self.controllers.iter().filter(|c| !c.is_ready()) {
            let phase = format!("{:?}", controller.phase).to_lowercase();
            missing.push(format!("controller {}: {phase}", controller.name));
        }
        if missing.is_empty() { Ok(()) } else { Err(missing) }
    }

    /// Whether the process should go on living: until it has stopped. A watch that fails is no reason to restart it.
    #[must_use]
    pub const fn live(&self) -> bool {
        !matches!(self.phase, ManagerPhase::Stopped)
    }
}

/// The [`ManagerStatus`] as its parts write it. Numbers that are not in the plan are ignored.
///
/// ```
/// use steersman_core::api::{ResourceType, Scope};
/// use steersman_core::manager::status::Board;
/// use steersman_core::manager::{ControllerSpec, WatchPlan, WatchSpec};
/// const PODS: ResourceType = ResourceType::new("", "v1", "pods", "Pod", Scope::Namespaced);
/// let specs = [ControllerSpec::new("web", [WatchSpec::all(PODS)])];
/// let board = Board::new(&specs, &WatchPlan::build(&specs).unwrap());
/// let missing = board.status().ready().unwrap_err();
/// assert!(missing.contains(&"pods.v1: no first list yet: not started".to_string()));
/// ```
#[derive(Clone, Debug, Default)]
pub struct Board(ManagerStatus);

impl Board {
    /// Nothing has started.
    #[must_use]
    pub fn new(controllers: &[ControllerSpec], plan: &WatchPlan) -> Self {
        Self(ManagerStatus {
            phase: ManagerPhase::New,
            since: Time::ZERO,
            sources: plan
                .sources
                .iter()
                .map(|s| SourceLine { watch: s.spec.clone(), subscribers: s.subscribers.len(), status: None })
                .collect(),
            controllers: controllers
                .iter()
                .map(|c| ControllerStatus { name: c.name.clone(), ..ControllerStatus::default() })
                .collect(),
        })
    }

    /// The manager entered a phase; takes [`Manager::phase`](super::Manager::phase).
    pub const fn phase(&mut self, (phase, since): (ManagerPhase, Time)) {
        self.0.phase = phase;
        self.0.since = since;
    }

    /// Replaces the line of a watch; takes [`Source::status`](crate::source::Source::status).
    pub fn source(&mut self, id: WatchId, status: SourceStatus) {
        if let Some(line) = self.0.sources.get_mut(id.0 as usize) {
            line.status = Some(status);
        }
    }

    /// Replaces the line of a controller; takes [`Controller::status`](crate::controller::Controller::status).
    pub fn controller(&mut self, id: ControllerId, status: ControllerStatus) {
        if let Some(line) = self.0.controllers.get_mut(id.0 as usize) {
            *line = status;
        }
    }

    /// The whole, to read or to clone.
    #[must_use]
    pub const fn status(&self) -> &ManagerStatus {
        &self.0
    }
}
