//! Which watches several controllers need together.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use serde::{Deserialize, Serialize};

use crate::controller::{self, SourceId, WatchSpec};

/// Names one controller of a manager: its place in the list that [`WatchPlan::build`] was given.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ControllerId(pub u32);

/// Names one watch of a manager: its place in [`WatchPlan::sources`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct WatchId(pub u32);

/// What a controller is called and what it wants to watch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ControllerSpec {
    /// Unique within the manager.
    pub name: String,
    /// Its sources; the place in this list is the [`SourceId`].
    pub watches: Vec<WatchSpec>,
}

impl<T> From<&controller::Config<T>> for ControllerSpec {
    fn from(config: &controller::Config<T>) -> Self {
        Self { name: config.name.clone(), watches: config.sources.iter().map(|s| s.watch.clone()).collect() }
    }
}

/// One watch, and who gets what it brings.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlannedSource {
    /// What to watch, [normalised](WatchSpec::normalised).
    pub spec: WatchSpec,
    /// Each subscriber and the number by which it knows this source. A controller stands here twice if two of its
    /// sources are the same watch.
    pub subscribers: Vec<(ControllerId, SourceId)>,
}

/// Every watch of a manager.
///
/// ```
/// use steersman_core::api::{ResourceType, Scope};
/// use steersman_core::manager::{ControllerId, ControllerSpec, SourceId, WatchPlan, WatchSpec};
/// const PODS: ResourceType = ResourceType::new("", "v1", "pods", "Pod", Scope::Namespaced);
/// let a = ControllerSpec { name: "a".into(), watches: vec![WatchSpec::all(PODS)] };
/// let b = ControllerSpec { name: "b".into(), watches: vec![WatchSpec::all(PODS).within("prod"), WatchSpec::all(PODS)] };
/// let plan = WatchPlan::build(&[a, b]).unwrap();
/// assert_eq!(plan.sources.len(), 2);
/// assert_eq!(plan.sources[0].subscribers, [(ControllerId(0), SourceId(0)), (ControllerId(1), SourceId(1))]);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WatchPlan {
    /// The watches, in the order in which they are first wanted. The place is the [`WatchId`].
    pub sources: Vec<PlannedSource>,
    /// How many controllers there are.
    pub controllers: usize,
}

impl WatchPlan {
    /// One watch for each distinct spec.
    ///
    /// # Errors
    /// A name that is empty or stands twice; a controller that watches nothing.
    pub fn build(controllers: &[ControllerSpec]) -> Result<Self, PlanError> {
        let mut names = BTreeSet::new();
        let mut places = BTreeMap::new();
        let mut sources: Vec<PlannedSource> = Vec::new();
        for (controller, id) in controllers.iter().zip(0..) {
            if controller.name.trim().is_empty() {
                return Err(PlanError::NoName);
            }
            if !names.insert(&*controller.name) {
                return Err(PlanError::DuplicateName(controller.name.clone()));
            }
            if controller.watches.is_empty() {
                return Err(PlanError::NoWatches(controller.name.clone()));
            }
            for (watch, source) in controller.watches.iter().zip(0..) {
                let spec = watch.normalised();
                let place = *places.entry(spec.clone()).or_insert_with(|| {
                    sources.push(PlannedSource { spec, subscribers: Vec::new() });
                    sources.len() - 1
                });
                sources[place].subscribers.push((ControllerId(id), SourceId(source)));
            }
        }
        Ok(Self { sources, controllers: controllers.len() })
    }

    /// The watches with their numbers.
    pub fn iter(&self) -> impl Iterator<Item = (WatchId, &PlannedSource)> {
        (0..).map(WatchId).zip(&self.sources)
    }
}

/// Why controllers cannot run together.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PlanError {
    /// A controller's name is empty.
    NoName,
    /// Two controllers have this name; metrics and logs could not tell them apart.
    DuplicateName(String),
    /// This controller watches nothing.
    NoWatches(String),
}

impl fmt::Display for PlanError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoName => f.write_str("a controller has no name"),
            Self::DuplicateName(name) => write!(f, "two controllers are named {name:?}"),
            Self::NoWatches(name) => write!(f, "controller {name:?} watches nothing"),
        }
    }
}

impl core::error::Error for PlanError {}
