//! A view of a store at one moment.

use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use core::cmp::Ordering;
use core::fmt;

use super::chunks::{Chunks, Iter};
use crate::object::{Key, Resource, version};

/// A consistent view of a store at one moment: cheap to clone, and to send to other threads if `T` is.
///
/// It never changes. What it holds lives as long as it does, so keep it for one reconcile, not for a day.
pub struct Snapshot<T> {
    rows: Chunks<T>,
    resource_version: Arc<str>,
    synced: bool,
}

impl<T> Clone for Snapshot<T> {
    fn clone(&self) -> Self {
        Self {
            rows: self.rows.clone(),
            resource_version: Arc::clone(&self.resource_version),
            synced: self.synced,
        }
    }
}

impl<T> Default for Snapshot<T> {
    fn default() -> Self {
        Self { rows: Chunks::default(), resource_version: "".into(), synced: false }
    }
}

/// Numbers only: what is in it may be secret.
impl<T> fmt::Debug for Snapshot<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Snapshot")
            .field("objects", &self.len())
            .field("resource_version", &self.resource_version)
            .field("synced", &self.synced)
            .finish()
    }
}

impl<T> Snapshot<T> {
    /// The object at `key`: two binary searches.
    #[must_use]
    pub fn get(&self, key: &Key) -> Option<&T> {
        self.rows.get(key)
    }

    /// Whether there is an object at `key`.
    #[must_use]
    pub fn contains(&self, key: &Key) -> bool {
        self.get(key).is_some()
    }

    /// All objects with their keys, in the order of keys: cluster-scoped ones, then by namespace and name.
    pub fn iter(&self) -> Iter<'_, T> {
        self.rows.iter()
    }

    /// All objects in the order of their keys.
    pub fn values(&self) -> impl ExactSizeIterator<Item = &T> + DoubleEndedIterator {
        self.iter().map(|(_, object)| object)
    }

    /// The objects of one namespace in the order of names; of none if `namespace` is empty.
    pub fn in_namespace<'a>(&'a self, namespace: &'a str) -> impl Iterator<Item = (&'a Key, &'a T)> {
        self.rows
            .iter_from(&Key::namespaced(namespace, ""))
            .take_while(move |(key, _)| key.namespace().unwrap_or("") == namespace)
    }

    /// How many objects there are.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether there are no objects.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The version up to which the view is known to be right; empty before the first full state.
    #[must_use]
    pub fn resource_version(&self) -> &str {
        &self.resource_version
    }

    /// The same, to keep.
    #[must_use]
    pub fn shared_resource_version(&self) -> Arc<str> {
        Arc::clone(&self.resource_version)
    }

    /// Whether it holds at least a first full state. Before that, "not there" means nothing.
    #[must_use]
    pub const fn is_synced(&self) -> bool {
        self.synced
    }

    pub(super) const fn rows_mut(&mut self) -> &mut Chunks<T> {
        &mut self.rows
    }

    /// Moves the version up to `to`; never down.
    pub(super) fn advance(&mut self, to: &str) {
        if version::is_above(to, &self.resource_version) {
            self.resource_version = to.into();
        }
    }

    pub(super) fn replace(&mut self, rows: BTreeMap<Key, T>, resource_version: &str) {
        self.rows = Chunks::from_sorted(rows.into_iter());
        self.resource_version = resource_version.into();
        self.synced = true;
    }
}

impl<'a, T> IntoIterator for &'a Snapshot<T> {
    type Item = (&'a Key, &'a T);
    type IntoIter = Iter<'a, T>;

    fn into_iter(self) -> Iter<'a, T> {
        self.iter()
    }
}

/// A synced view of these objects, for tests of what reads views. The last of one key wins; its version is the highest
/// one of theirs.
impl<T: Resource> FromIterator<T> for Snapshot<T> {
    fn from_iter<I: IntoIterator<Item = T>>(objects: I) -> Self {
        let rows: BTreeMap<Key, T> = objects.into_iter().map(|object| (object.key(), object)).collect();
        let mut highest = "";
        for object in rows.values() {
            let v = object.resource_version();
            if highest.is_empty() || version::compare(v, highest) == Some(Ordering::Greater) {
                highest = v;
            }
        }
        let highest = Arc::<str>::from(highest);
        let mut snapshot = Self::default();
        snapshot.replace(rows, &highest);
        snapshot
    }
}
