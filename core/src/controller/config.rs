//! What a controller watches and how it behaves.

use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;
use core::time::Duration;

use serde::{Deserialize, Serialize};

use super::SourceId;
use crate::api::{Api, ResourceType, Scope, Selectors, Written};
use crate::backoff::Policy;
use crate::limits;
use crate::object::{Dropped, Key};
use crate::queue::{Aging, Rate};
use crate::store::{Change, Index};

/// Which objects of which resource. Equal specs share one watch.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct WatchSpec {
    /// The resource.
    pub resource: ResourceType,
    /// `None`: all namespaces, or a cluster-scoped resource.
    pub namespace: Option<String>,
    /// Only objects that match.
    pub selectors: Selectors,
    /// Only `metadata` of each object.
    pub metadata_only: bool,
    /// What of each object is not kept; `None`: what the settings of the sources say
    /// ([`source::Options`](crate::source::Options)).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dropped: Option<Dropped>,
    /// Whether its objects are kept packed; `None`: what the settings of the sources say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compact: Option<bool>,
}

impl WatchSpec {
    /// All objects of a resource.
    #[must_use]
    pub fn all(resource: ResourceType) -> Self {
        Self {
            resource,
            namespace: None,
            selectors: Selectors::default(),
            metadata_only: false,
            dropped: None,
            compact: None,
        }
    }

    /// Only this namespace.
    #[must_use]
    pub fn within(mut self, namespace: impl Into<String>) -> Self {
        self.namespace = Some(namespace.into());
        self
    }

    /// Only objects with these labels.
    #[must_use]
    pub fn labels(mut self, selector: impl Into<String>) -> Self {
        self.selectors.labels = selector.into();
        self
    }

    /// Only objects with these fields.
    #[must_use]
    pub fn fields(mut self, selector: impl Into<String>) -> Self {
        self.selectors.fields = selector.into();
        self
    }

    /// Only `metadata` of each object; see [`Api::metadata_only`].
    #[must_use]
    pub const fn metadata(mut self) -> Self {
        self.metadata_only = true;
        self
    }

    /// Drops this from each object, and nothing else. Watches that drop different things are not shared: nobody misses
    /// what only another controller wanted dropped.
    ///
    /// ```
    /// use steersman_core::api::{Api, kinds::Secret};
    /// use steersman_core::controller::WatchSpec;
    /// use steersman_core::object::Dropped;
    /// let secrets = WatchSpec::from(Api::<Secret>::all()).dropping(Dropped::default().and("/data")?);
    /// assert_eq!(secrets.to_string(), "secrets.v1, without /data, /metadata/managedFields");
    /// # Ok::<(), steersman_core::object::DropError>(())
    /// ```
    #[must_use]
    pub fn dropping(mut self, dropped: Dropped) -> Self {
        self.dropped = Some(dropped);
        self
    }

    /// Keeps its objects packed, or does not, whatever the settings of the sources say: memory for time, see
    /// [`Store::compact`](crate::store::Store::compact). Watches that differ in this are not shared.
    ///
    /// ```
    /// use steersman_core::api::{Api, kinds::Pod};
    /// use steersman_core::controller::WatchSpec;
    /// let pods = WatchSpec::from(Api::<Pod>::all()).compact(true);
    /// assert_eq!(pods.to_string(), "pods.v1, compact");
    /// ```
    #[must_use]
    pub const fn compact(mut self, compact: bool) -> Self {
        self.compact = Some(compact);
        self
    }

    /// Whether it is about the object that was written, whatever the selectors say.
    #[must_use]
    pub fn covers(&self, write: &Written) -> bool {
        let namespace = self.namespace.as_deref().filter(|n| !n.is_empty());
        write.is_of(&self.resource)
            && (self.resource.scope == Scope::Cluster
                || namespace.is_none_or(|n| write.key.namespace() == Some(n)))
    }

    /// The same objects in one spelling: no empty namespace, none for a cluster-scoped resource, no space around
    /// selectors.
    #[must_use]
    pub fn normalised(&self) -> Self {
        let namespace = self.namespace.clone().filter(|n| !n.is_empty());
        Self {
            resource: self.resource.clone(),
            namespace: namespace.filter(|_| self.resource.scope == Scope::Namespaced),
            selectors: Selectors {
                labels: self.selectors.labels.trim().into(),
                fields: self.selectors.fields.trim().into(),
            },
            metadata_only: self.metadata_only,
            dropped: self.dropped.clone(),
            compact: self.compact,
        }
    }
}

/// The resource and the namespace that requests of `api` are about, and whether of metadata alone.
impl<K> From<&Api<K>> for WatchSpec {
    fn from(api: &Api<K>) -> Self {
        Self {
            namespace: api.namespace().map(String::from),
            metadata_only: api.is_metadata_only(),
            ..Self::all(api.resource().clone())
        }
    }
}

impl<K> From<Api<K>> for WatchSpec {
    fn from(api: Api<K>) -> Self {
        Self::from(&api)
    }
}

impl From<ResourceType> for WatchSpec {
    fn from(resource: ResourceType) -> Self {
        Self::all(resource)
    }
}

/// As `configmaps.v1`, `deployments.v1.apps in prod, labels app=web`.
impl fmt::Display for WatchSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.resource.plural, self.resource.version)?;
        if !self.resource.group.is_empty() {
            write!(f, ".{}", self.resource.group)?;
        }
        if let Some(ns) = &self.namespace {
            write!(f, " in {ns}")?;
        }
        if !self.selectors.labels.is_empty() {
            write!(f, ", labels {}", self.selectors.labels)?;
        }
        if !self.selectors.fields.is_empty() {
            write!(f, ", fields {}", self.selectors.fields)?;
        }
        if self.metadata_only {
            f.write_str(", metadata only")?;
        }
        if let Some(dropped) = &self.dropped {
            write!(f, ", without {dropped}")?;
        }
        match self.compact {
            None => {}
            Some(true) => f.write_str(", compact")?,
            Some(false) => f.write_str(", not compact")?,
        }
        Ok(())
    }
}

/// Says whether a change counts. It is never asked about deletions: those always count.
pub type Predicate<T> = Arc<dyn Fn(&Change<T>) -> bool + Send + Sync>;

/// Keys of the primary resource that an object concerns.
pub type MapFn<T> = Arc<dyn Fn(&T) -> Vec<Key> + Send + Sync>;

/// Which keys of the primary resource a change concerns.
#[derive(Clone)]
pub enum Mapping<T> {
    /// The object itself.
    Primary,
    /// Its owners of this resource, before and after the change. Group and kind are compared; versions may differ.
    Owner {
        /// The owners' resource.
        of: ResourceType,
        /// Only the owner that manages the object (`controller: true`), as controller-runtime's `Owns`.
        controller_only: bool,
    },
    /// What a function says, for the object before and after the change.
    Map(MapFn<T>),
}

impl<T> fmt::Debug for Mapping<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Primary => f.write_str("Primary"),
            Self::Owner { of, controller_only } => f
                .debug_struct("Owner")
                .field("of", &of.kind)
                .field("controller_only", controller_only)
                .finish(),
            Self::Map(_) => f.write_str("Map"),
        }
    }
}

/// One thing that a controller watches.
#[derive(Clone)]
pub struct Source<T> {
    /// What.
    pub watch: WatchSpec,
    /// Whom it concerns.
    pub mapping: Mapping<T>,
    /// All must agree that an addition or update counts.
    pub predicates: Vec<Predicate<T>>,
    /// What its objects can be found by.
    pub indexes: Vec<Index<T>>,
}

impl<T> Source<T> {
    /// A source with any mapping.
    #[must_use]
    pub const fn new(watch: WatchSpec, mapping: Mapping<T>) -> Self {
        Self { watch, mapping, predicates: Vec::new(), indexes: Vec::new() }
    }

    /// Only additions and updates for which `predicate` says so; deletions always pass.
    #[must_use]
    pub fn filter(mut self, predicate: impl Fn(&Change<T>) -> bool + Send + Sync + 'static) -> Self {
        self.predicates.push(Arc::new(predicate));
        self
    }

    /// Its views find objects by this index, too.
    #[must_use]
    pub fn index(mut self, index: Index<T>) -> Self {
        self.indexes.push(index);
        self
    }
}

impl<T> fmt::Debug for Source<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({:?}, {} predicates)", self.watch, self.mapping, self.predicates.len())
    }
}

/// How a controller behaves.
///
/// ```
/// use steersman_core::api::{ResourceType, Scope};
/// use steersman_core::controller::Config;
/// use steersman_core::object::{Key, OwnerReference, Resource};
/// # #[derive(Clone)] struct Obj;
/// # impl Resource for Obj {
/// #     fn key(&self) -> Key { Key::cluster("x") }
/// #     fn uid(&self) -> &str { "" }
/// #     fn resource_version(&self) -> &str { "" }
/// #     fn each_owner(&self, _: &mut dyn FnMut(&OwnerReference)) {}
/// # }
/// const CONFIGMAPS: ResourceType = ResourceType::new("", "v1", "configmaps", "ConfigMap", Scope::Namespaced);
/// const SECRETS: ResourceType = ResourceType::new("", "v1", "secrets", "Secret", Scope::Namespaced);
/// let config: Config<Obj> = Config::new("mirror", CONFIGMAPS).owns(SECRETS).concurrency(8);
/// assert_eq!(config.sources.len(), 2);
/// ```
#[derive(Clone, Debug)]
pub struct Config<T> {
    /// The controller's name; unique within a manager, since metrics and logs go by it.
    pub name: String,
    /// What it watches; the first one is the primary source, whose objects are reconciled.
    pub sources: Vec<Source<T>>,
    /// How many keys run at once; 1 by default, as controller-runtime's `MaxConcurrentReconciles`. 0 counts as 1.
    pub concurrency: usize,
    /// The pauses of a failing key.
    pub backoff: Policy,
    /// How long one run may take before [`Output::Abandon`](super::Output::Abandon); no limit by default.
    pub reconcile_timeout: Option<Duration>,
    /// How long events of one key are collected before it runs, from the first of them. Zero by default.
    pub debounce: Duration,
    /// How old low-priority keys get a share of the runs.
    pub aging: Option<Aging>,
    /// Most runs per time over all keys; none by default.
    pub rate: Option<Rate>,
    /// How often to say that a source has not had its first full state: 2 min, where controller-runtime gives up
    /// (`CacheSyncTimeout`). This one goes on trying.
    pub sync_notice: Duration,
    /// How long a key that has written is on hold, at most, until its sources have shown what it wrote; 30 s by default,
    /// zero for not at all.
    pub catch_up: Duration,
}

impl<T> Config<T> {
    /// A controller that reconciles the objects of `primary` when they change.
    #[must_use]
    pub fn new(name: impl Into<String>, primary: impl Into<WatchSpec>) -> Self {
        Self {
            name: name.into(),
            sources: alloc::vec![Source::new(primary.into(), Mapping::Primary)],
            concurrency: 1,
            backoff: Policy::RECONCILE,
            reconcile_timeout: None,
            debounce: Duration::ZERO,
            aging: Some(Aging::DEFAULT),
            rate: None,
            sync_notice: Duration::from_secs(120),
            catch_up: limits::CATCH_UP,
        }
    }

    /// What the primary source watches; `None` only if somebody emptied [`sources`](Self::sources).
    #[must_use]
    pub fn primary(&self) -> Option<&WatchSpec> {
        self.sources.first().map(|s| &s.watch)
    }

    /// Also reconciles an object when something changes whose controller it is.
    #[must_use]
    pub fn owns(self, watch: impl Into<WatchSpec>) -> Self {
        self.owned(watch.into(), true)
    }

    /// As [`owns`](Self::owns), for every owner reference, not only the controller's.
    #[must_use]
    pub fn owns_shared(self, watch: impl Into<WatchSpec>) -> Self {
        self.owned(watch.into(), false)
    }

    fn owned(self, watch: WatchSpec, controller_only: bool) -> Self {
        let Some(primary) = self.primary() else { return self };
        let of = primary.resource.clone();
        self.source(Source::new(watch, Mapping::Owner { of, controller_only }))
    }

    /// Also reconciles what `map` says when an object of `watch` changes.
    #[must_use]
    pub fn watches(
        self,
        watch: impl Into<WatchSpec>,
        map: impl Fn(&T) -> Vec<Key> + Send + Sync + 'static,
    ) -> Self {
        self.source(Source::new(watch.into(), Mapping::Map(Arc::new(map))))
    }

    /// Adds a source of any form.
    #[must_use]
    pub fn source(mut self, source: Source<T>) -> Self {
        self.sources.push(source);
        self
    }

    /// Filters the source that was added last (the primary one if none was): only additions and updates for which
    /// `predicate` says so count. Deletions always count.
    #[must_use]
    pub fn filter(mut self, predicate: impl Fn(&Change<T>) -> bool + Send + Sync + 'static) -> Self {
        if let Some(last) = self.sources.last_mut() {
            last.predicates.push(Arc::new(predicate));
        }
        self
    }

    /// Drops this, and nothing else, from the objects of the source that was added last (the primary one if none was).
    #[must_use]
    pub fn dropping(mut self, dropped: Dropped) -> Self {
        if let Some(last) = self.sources.last_mut() {
            last.watch.dropped = Some(dropped);
        }
        self
    }

    /// Keeps the objects of the source that was added last (the primary one if none was) packed, or does not.
    #[must_use]
    pub fn compact(mut self, compact: bool) -> Self {
        if let Some(last) = self.sources.last_mut() {
            last.watch.compact = Some(compact);
        }
        self
    }

    /// Views of the source that was added last (the primary one if none was) find objects by this index, too:
    /// controller-runtime's `IndexField`. Controllers that share a watch share its indexes, so one name must mean one
    /// index among them.
    #[must_use]
    pub fn index(mut self, index: Index<T>) -> Self {
        if let Some(last) = self.sources.last_mut() {
            last.indexes.push(index);
        }
        self
    }

    /// The [`SourceId`] of the source that was added last.
    #[must_use]
    pub fn last_source(&self) -> SourceId {
        SourceId(u32::try_from(self.sources.len().saturating_sub(1)).unwrap_or(u32::MAX))
    }

    /// How many keys run at once.
    #[must_use]
    pub const fn concurrency(mut self, n: usize) -> Self {
        self.concurrency = n;
        self
    }

    /// The pauses of a failing key.
    #[must_use]
    pub const fn backoff(mut self, policy: Policy) -> Self {
        self.backoff = policy;
        self
    }

    /// How long one run may take.
    #[must_use]
    pub const fn reconcile_timeout(mut self, limit: Duration) -> Self {
        self.reconcile_timeout = Some(limit);
        self
    }

    /// How long events of one key are collected before it runs.
    #[must_use]
    pub const fn debounce(mut self, pause: Duration) -> Self {
        self.debounce = pause;
        self
    }

    /// How long, at most, a key that has written waits until its sources have shown it; zero for not at all.
    #[must_use]
    pub const fn catch_up(mut self, limit: Duration) -> Self {
        self.catch_up = limit;
        self
    }
}
