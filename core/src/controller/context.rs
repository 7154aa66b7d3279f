//! What a reconcile in the form of an `fn` or `async fn` may look at and use.

use alloc::sync::Arc;
use core::fmt;
use core::sync::atomic::{AtomicBool, Ordering};

use super::{ReconcileId, Run, SourceId};
use crate::object::{Key, Object};
use crate::store::Snapshot;

/// The surroundings of one run: the executor's client `C`, and the views of the sources. Cheap to clone.
#[derive(Clone)]
pub struct Context<C> {
    client: C,
    id: ReconcileId,
    key: Key,
    object: Object,
    attempt: u32,
    views: Arc<[Snapshot<Object>]>,
    abandoned: Abandoned,
}

/// Shared between a run and whoever may give it up.
#[derive(Clone, Debug, Default)]
pub struct Abandoned(Arc<AtomicBool>);

impl Abandoned {
    /// The run has taken too long.
    pub fn set(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Whether it has.
    #[must_use]
    pub fn get(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

impl<C> Context<C> {
    /// The surroundings of `run`.
    #[must_use]
    pub fn new(client: C, run: &Run<Object>, abandoned: Abandoned) -> Self {
        let Run { id, key, object, attempt, views, .. } = run;
        Self {
            client,
            id: *id,
            key: key.clone(),
            object: object.clone(),
            attempt: *attempt,
            views: Arc::clone(views),
            abandoned,
        }
    }

    /// The client of this run: its controller hears of what it writes, and waits until the views show that
    /// ([`Builder::catch_up`](super::Builder::catch_up)).
    pub const fn client(&self) -> &C {
        &self.client
    }

    /// The object's key.
    #[must_use]
    pub const fn key(&self) -> &Key {
        &self.key
    }

    /// The object as it came, whatever type the reconcile reads it into.
    #[must_use]
    pub const fn object(&self) -> &Object {
        &self.object
    }

    /// The name of this run in logs.
    #[must_use]
    pub const fn reconcile_id(&self) -> ReconcileId {
        self.id
    }

    /// 1 for the first try, one more for each failure in a row.
    #[must_use]
    pub const fn attempt(&self) -> u32 {
        self.attempt
    }

    /// What a source had seen when the run began: 0 is the primary one, the others follow in the order of `owns` and
    /// `watches`. `None` if there is no such source.
    #[must_use]
    pub fn view(&self, source: SourceId) -> Option<Snapshot<Object>> {
        self.views.get(source.index()).map(|view| view.clone().metered_as(&self.object))
    }

    /// Whether the run has taken longer than its limit, or the program ends: whatever it still does is in vain.
    #[must_use]
    pub fn is_abandoned(&self) -> bool {
        self.abandoned.get()
    }
}

impl<C> fmt::Debug for Context<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Context").field("id", &self.id).field("key", &self.key).finish_non_exhaustive()
    }
}
