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
use crate::time::Time;
use crate::watcher::WatcherStatus;

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

/// Everything about one watch at one moment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SourceStatus {
    /// What it watches.
    pub watch: WatchSpec,
    /// How many subscribers it has.
    pub subscribers: usize,
    /// Objects in its store.
    pub objects: usize,
    /// Events that were dropped because the store held something newer.
    pub stale: u64,
    /// What its watcher says; `None` before it started.
    pub watcher: Option<WatcherStatus>,
}

impl SourceStatus {
    /// A watch that has not started.
    #[must_use]
    pub const fn new(watch: WatchSpec, subscribers: usize) -> Self {
        Self { watch, subscribers, objects: 0, stale: 0, watcher: None }
    }

    /// Why it has not had its first full state; `None` if it has.
    fn missing(&self) -> Option<String> {
        let Some(watcher) = &self.watcher else { return Some("not started".to_string()) };
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
    pub sources: Vec<SourceStatus>,
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
/// use steersman_core::manager::{ControllerSpec, WatchId, WatchPlan, WatchSpec};
/// const PODS: ResourceType = ResourceType::new("", "v1", "pods", "Pod", Scope::Namespaced);
/// let specs = [ControllerSpec { name: "web".into(), watches: vec![WatchSpec::all(PODS)] }];
/// let mut board = Board::new(&specs, &WatchPlan::build(&specs).unwrap());
/// board.source(WatchId(0), |s| s.objects = 5);
/// assert_eq!(board.status().sources[0].objects, 5);
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
                .map(|s| SourceStatus::new(s.spec.clone(), s.subscribers.len()))
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

    /// Changes the line of a watch.
    pub fn source(&mut self, id: WatchId, write: impl FnOnce(&mut SourceStatus)) {
        if let Some(line) = self.0.sources.get_mut(id.0 as usize) {
            write(line);
        }
    }

    /// Replaces the line of a controller.
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
