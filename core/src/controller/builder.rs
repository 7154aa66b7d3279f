//! The words with which users describe a controller; the same for every executor.

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;
use core::marker::PhantomData;
use core::time::Duration;

use super::{Config, WatchSpec};
use crate::api::Api;
use crate::backoff::Policy;
use crate::object::{Dropped, Key, Object};
use crate::store::{Change, Index};

/// A controller in the making. `K` is what a reconcile gets: a type, or [`Object`] itself.
///
/// Executors export it as `Controller`.
///
/// ```
/// use steersman_core::api::{Api, kinds::{ConfigMap, Secret}};
/// use steersman_core::controller::Builder;
/// let controller = Builder::new(Api::<ConfigMap>::all()).owns(Api::<Secret>::all()).concurrency(4);
/// assert_eq!(controller.config().name, "configmap");
/// ```
pub struct Builder<K> {
    config: Config<Object>,
    kind: PhantomData<fn() -> K>,
}

/// A controller and its reconcile, ready for a manager of an executor that can run such a reconcile.
pub struct Runnable<K, R> {
    /// What it watches and how it behaves.
    pub config: Config<Object>,
    /// The reconcile: a `plan`, an `fn` or an `async fn`.
    pub reconcile: R,
    kind: PhantomData<fn() -> K>,
}

impl<K> Builder<K> {
    /// A controller that reconciles the objects of `primary` when they change. It is named after their kind, in lower
    /// case, as in controller-runtime.
    #[must_use]
    pub fn new(primary: Api<K>) -> Self {
        let name = primary.resource().kind.to_lowercase();
        Self { config: Config::new(name, primary), kind: PhantomData }
    }

    /// As [`new`](Self::new), for a watch with selectors.
    #[must_use]
    pub fn of(primary: impl Into<WatchSpec>) -> Self {
        let primary = primary.into();
        Self { config: Config::new(primary.resource.kind.to_lowercase(), primary), kind: PhantomData }
    }

    /// Another name; it must be unique within a manager, since logs and metrics go by it.
    #[must_use]
    pub fn named(mut self, name: impl Into<String>) -> Self {
        self.config.name = name.into();
        self
    }

    /// Also reconciles an object when something changes whose managing owner (`controller: true`) it is.
    ///
    /// Where the owned object itself is not looked at, its metadata is enough, and costs a fraction of memory and network
    /// (controller-runtime's `OnlyMetadata`). The same holds for [`watches`](Self::watches) and the primary resource.
    ///
    /// ```
    /// use steersman_core::api::{Api, kinds::{ConfigMap, Secret}};
    /// use steersman_core::controller::Builder;
    /// let controller = Builder::new(Api::<ConfigMap>::all()).owns(Api::<Secret>::all().metadata_only());
    /// assert!(controller.config().sources[1].watch.metadata_only);
    /// ```
    #[must_use]
    pub fn owns(mut self, watch: impl Into<WatchSpec>) -> Self {
        self.config = self.config.owns(watch);
        self
    }

    /// As [`owns`](Self::owns), for every owner reference.
    #[must_use]
    pub fn owns_shared(mut self, watch: impl Into<WatchSpec>) -> Self {
        self.config = self.config.owns_shared(watch);
        self
    }

    /// Also reconciles what `map` says when an object of `watch` changes; it is asked about the state before and after.
    #[must_use]
    pub fn watches(
        mut self,
        watch: impl Into<WatchSpec>,
        map: impl Fn(&Object) -> Vec<Key> + Send + Sync + 'static,
    ) -> Self {
        self.config = self.config.watches(watch, map);
        self
    }

    /// Only additions and updates of the source added last for which `predicate` says so; deletions always count.
    #[must_use]
    pub fn filter(mut self, predicate: impl Fn(&Change<Object>) -> bool + Send + Sync + 'static) -> Self {
        self.config = self.config.filter(predicate);
        self
    }

    /// Drops this, and nothing else, from the objects of the source added last, before they are kept; what is dropped if
    /// not said is a setting of the manager (`managedFields`, by default). Two controllers share a watch only if both
    /// say the same.
    ///
    /// ```
    /// use steersman_core::api::{Api, kinds::{ConfigMap, Secret}};
    /// use steersman_core::controller::Builder;
    /// use steersman_core::object::Dropped;
    /// let controller = Builder::new(Api::<ConfigMap>::all())
    ///     .owns(Api::<Secret>::all())
    ///     .dropping(Dropped::default().and("/data")?);
    /// # Ok::<(), steersman_core::object::DropError>(())
    /// ```
    #[must_use]
    pub fn dropping(mut self, dropped: Dropped) -> Self {
        self.config = self.config.dropping(dropped);
        self
    }

    /// Keeps the objects of the source added last packed: each as what it shares with others, and the rest. A large cluster's pods
    /// then take a sixth of the memory, and each costs some microseconds more to store, and again whenever it is handed out:
    /// for its reconcile, and when it changes. What is handed out is the same in every byte. See
    /// [`Store::compact`](crate::store::Store::compact).
    ///
    /// Whether it is so if not said is a setting of the manager ([`source::Options`](crate::source::Options); not, by default).
    /// Two controllers share a watch only if both say the same.
    ///
    /// ```
    /// use steersman_core::api::{Api, kinds::{ConfigMap, Pod}};
    /// use steersman_core::controller::Builder;
    /// let controller = Builder::new(Api::<ConfigMap>::all()).owns(Api::<Pod>::all()).compact(true);
    /// ```
    #[must_use]
    pub fn compact(mut self, compact: bool) -> Self {
        self.config = self.config.compact(compact);
        self
    }

    /// Views of the source added last (the primary one if none was) find objects by this index, too: controller-runtime's
    /// `IndexField`. Controllers that share a watch share its indexes, so one name must mean one index among them.
    ///
    /// ```
    /// use steersman_core::api::{Api, kinds::{ConfigMap, Secret}};
    /// use steersman_core::controller::plan::{Failure, Planning, Step};
    /// use steersman_core::controller::{Action, Builder, SourceId};
    /// use steersman_core::store::Index;
    ///
    /// /// Keeps the newest Secret of a ConfigMap and deletes the others.
    /// fn prune(cx: &Planning<'_>) -> Result<Step, Failure> {
    ///     let api = Api::<Secret>::namespaced(cx.object().namespace().unwrap_or_default());
    ///     let mut owned: Vec<_> = cx.view(SourceId(1)).owned_by(cx.object().uid())?.map(|(_, secret)| secret).collect();
    ///     owned.sort_by_key(|secret| (secret.generation(), secret.key()));
    ///     owned.pop();
    ///     let deletes = owned.iter().map(|secret| api.delete(secret.name(), &Default::default()).into_raw());
    ///     Ok(Step::send_then(deletes, Action::await_change()))
    /// }
    /// # use steersman_core::object::Resource;
    ///
    /// let controller = Builder::new(Api::<ConfigMap>::all())
    ///     .owns(Api::<Secret>::all())
    ///     .index(Index::by_owner_uid())
    ///     .run(prune);
    /// assert_eq!(controller.config.sources[1].indexes, [Index::by_owner_uid()]);
    /// ```
    #[must_use]
    pub fn index(mut self, index: Index) -> Self {
        self.config = self.config.index(index);
        self
    }

    /// How many keys run at once; 1 if not said, as in controller-runtime.
    #[must_use]
    pub fn concurrency(mut self, n: usize) -> Self {
        self.config = self.config.concurrency(n);
        self
    }

    /// The pauses of a failing key; 5 ms doubling to 1000 s if not said.
    #[must_use]
    pub fn backoff(mut self, policy: Policy) -> Self {
        self.config = self.config.backoff(policy);
        self
    }

    /// How long one run may take; no limit if not said.
    #[must_use]
    pub fn reconcile_timeout(mut self, limit: Duration) -> Self {
        self.config = self.config.reconcile_timeout(limit);
        self
    }

    /// How long events of one key are collected before it runs; not at all if not said.
    #[must_use]
    pub fn debounce(mut self, pause: Duration) -> Self {
        self.config = self.config.debounce(pause);
        self
    }

    /// Read your writes: a key whose reconcile has written through its context's client runs again only when the watches
    /// of this controller have shown that, so that a run does not take a view from before its own writes for the truth. This
    /// is how long it waits for them at most; 30 s if not said, zero for not at all.
    ///
    /// Nothing is known, and so not waited for, of a write whose answer was lost or never awaited, of the deletion of a whole
    /// collection, and of what another client wrote. Of watches with selectors only those wait whose label selector takes the
    /// object, or which know it already; what a field selector leaves out cannot be told. A reconcile stays right without
    /// this if a repeated write does no harm: names that follow from the object, applies, preconditions.
    #[must_use]
    pub fn catch_up(mut self, limit: Duration) -> Self {
        self.config = self.config.catch_up(limit);
        self
    }

    /// What was said so far.
    #[must_use]
    pub const fn config(&self) -> &Config<Object> {
        &self.config
    }

    /// The controller, whole. Which forms of `reconcile` run depends on the manager it is given to.
    #[must_use]
    pub fn run<R>(self, reconcile: R) -> Runnable<K, R> {
        Runnable { config: self.config, reconcile, kind: PhantomData }
    }
}

impl<K> fmt::Debug for Builder<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.config.fmt(f)
    }
}

impl<K, R> fmt::Debug for Runnable<K, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.config.fmt(f)
    }
}
