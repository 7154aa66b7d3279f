//! Which watches several controllers need together.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;

use serde::{Deserialize, Serialize};

use crate::controller::{self, SourceId, WatchSpec};
use crate::object::Object;
use crate::source;
use crate::store::{Index, IndexConflict, Indexes};

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
    /// What it wants to find the objects of a source by. Functions are not written down: a plan that is read back has none.
    #[serde(skip)]
    pub indexes: Vec<(SourceId, Index)>,
}

impl ControllerSpec {
    /// A controller without indexes.
    #[must_use]
    pub fn new(name: impl Into<String>, watches: impl Into<Vec<WatchSpec>>) -> Self {
        Self { name: name.into(), watches: watches.into(), indexes: Vec::new() }
    }
}

impl From<&controller::Config<Object>> for ControllerSpec {
    fn from(config: &controller::Config<Object>) -> Self {
        let indexes = (0..).map(SourceId).zip(&config.sources);
        Self {
            name: config.name.clone(),
            watches: config.sources.iter().map(|s| s.watch.clone()).collect(),
            indexes: indexes.flat_map(|(id, s)| s.indexes.iter().map(move |i| (id, i.clone()))).collect(),
        }
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
    /// What any of them wants to find its objects by.
    #[serde(skip)]
    pub indexes: Indexes,
}

impl PlannedSource {
    /// The settings of this watch: those that all have in `common`, and its indexes.
    ///
    /// # Errors
    /// An index of `common` has the name of a different one here.
    pub fn options(&self, common: &source::Options) -> Result<source::Options, PlanError> {
        let mut options = common.clone();
        for index in &self.indexes {
            options.indexes.add(index.clone()).map_err(|e| self.conflict(e))?;
        }
        Ok(options)
    }

    fn conflict(&self, IndexConflict(index): IndexConflict) -> PlanError {
        PlanError::IndexConflict { watch: self.spec.to_string(), index: (*index).into() }
    }
}

/// Every watch of a manager.
///
/// ```
/// use steersman_core::api::{ResourceType, Scope};
/// use steersman_core::manager::{ControllerId, ControllerSpec, SourceId, WatchPlan, WatchSpec};
/// const PODS: ResourceType = ResourceType::new("", "v1", "pods", "Pod", Scope::Namespaced);
/// let a = ControllerSpec::new("a", [WatchSpec::all(PODS)]);
/// let b = ControllerSpec::new("b", [WatchSpec::all(PODS).within("prod"), WatchSpec::all(PODS)]);
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
    /// A name that is empty or stands twice; a controller that watches nothing; different indexes of one name on one watch.
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
                    sources.push(PlannedSource { spec, subscribers: Vec::new(), indexes: Indexes::new() });
                    sources.len() - 1
                });
                let planned = &mut sources[place];
                planned.subscribers.push((ControllerId(id), SourceId(source)));
                for (_, index) in controller.indexes.iter().filter(|(of, _)| *of == SourceId(source)) {
                    planned.indexes.add(index.clone()).map_err(|e| planned.conflict(e))?;
                }
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
    /// Two different indexes of this watch have one name.
    IndexConflict {
        /// The watch, as its spec is displayed.
        watch: String,
        /// The name.
        index: String,
    },
}

impl fmt::Display for PlanError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoName => f.write_str("a controller has no name"),
            Self::DuplicateName(name) => write!(f, "two controllers are named {name:?}"),
            Self::NoWatches(name) => write!(f, "controller {name:?} watches nothing"),
            Self::IndexConflict { watch, index } => {
                write!(
                    f,
                    "two different indexes of {watch} are named {index:?}; share one, or name them apart"
                )
            }
        }
    }
}

impl core::error::Error for PlanError {}

/// Why a manager did not start.
#[cfg(feature = "std")]
#[derive(Debug)]
#[non_exhaustive]
pub enum RunError {
    /// The controllers do not fit together.
    Plan(PlanError),
    /// The system gives no thread, or no signals.
    Io(std::io::Error),
    /// The client's requests go to a host of the program's own, which knows no watches.
    Hosted,
}

#[cfg(feature = "std")]
impl From<PlanError> for RunError {
    fn from(e: PlanError) -> Self {
        Self::Plan(e)
    }
}

#[cfg(feature = "std")]
impl From<std::io::Error> for RunError {
    fn from(e: std::io::Error) -> Self {
        Self::Io(e)
    }
}

#[cfg(feature = "std")]
impl fmt::Display for RunError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Plan(e) => e.fmt(f),
            Self::Io(e) => write!(f, "cannot start: {e}"),
            Self::Hosted => f.write_str("cannot start: the client is hosted, and its host knows no watches"),
        }
    }
}

#[cfg(feature = "std")]
impl core::error::Error for RunError {}
