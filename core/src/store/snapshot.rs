//! A view of a store at one moment.

use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::cmp::Ordering;
use core::fmt;

use super::Kept;
use super::index::{self, Entries, IndexPanics, Indexes, OWNER_UID, UnknownIndex, label_name};
use super::row::{Life, Row};
use super::tree::{self, Tree, Way};
use crate::object::{Key, Meter, Object, Resource, version};

/// Objects in the order of their keys. Each has a counter of its own beside the tree: a write copies the references of a leaf, and
/// the counters in the objects themselves lie a page apart, which cost more than all else that an event takes.
pub(super) type Rows<T> = Tree<Key, Arc<Row<T>>>;

/// A consistent view of a store at one moment: cheap to clone, and to send to other threads if `T` is.
///
/// It never changes. What it holds lives as long as it does, so keep it for one reconcile, not for a day.
pub struct Snapshot<T> {
    rows: Rows<T>,
    /// What each index of the store has found.
    entries: Arc<Vec<Entries>>,
    resource_version: Arc<str>,
    synced: bool,
    /// Counts what is read of the objects that it hands out.
    meter: Option<Arc<Meter>>,
}

impl<T> Clone for Snapshot<T> {
    fn clone(&self) -> Self {
        Self {
            rows: self.rows.clone(),
            entries: Arc::clone(&self.entries),
            resource_version: Arc::clone(&self.resource_version),
            synced: self.synced,
            meter: self.meter.clone(),
        }
    }
}

impl<T> Default for Snapshot<T> {
    fn default() -> Self {
        let rows = Tree::default();
        Self { rows, entries: Arc::default(), resource_version: "".into(), synced: false, meter: None }
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

/// Objects are handed out by value: they are cheap to clone, as a [`Resource`] must be.
impl<T: Resource> Snapshot<T> {
    /// The object at `key`: a few binary searches, and in a compact store it is unpacked.
    #[must_use]
    pub fn get(&self, key: &Key) -> Option<T> {
        self.rows.get(key).map(|object| shown(object, self.meter.as_ref()))
    }

    /// Whether there is an object at `key`.
    #[must_use]
    pub fn contains(&self, key: &Key) -> bool {
        self.rows.get(key).is_some()
    }

    /// Whether the object at `key` has this uid.
    #[must_use]
    pub fn holds(&self, key: &Key, uid: &str) -> bool {
        self.rows.get(key).is_some_and(|row| row.has_uid(uid))
    }

    /// All keys in their order.
    pub fn keys(&self) -> impl ExactSizeIterator<Item = &Key> + DoubleEndedIterator {
        self.rows.iter().map(|(key, _)| key)
    }

    /// All objects with their keys, in the order of keys: cluster-scoped ones, then by namespace and name.
    pub fn iter(&self) -> Iter<'_, T> {
        Iter(self.rows.iter(), self.meter.as_ref())
    }

    /// All objects in the order of their keys.
    pub fn values(&self) -> impl ExactSizeIterator<Item = T> + DoubleEndedIterator {
        self.iter().map(|(_, object)| object)
    }

    /// The objects of one namespace in the order of names; of none if `namespace` is empty.
    pub fn in_namespace<'a>(&'a self, namespace: &'a str) -> impl Iterator<Item = (&'a Key, T)> {
        self.rows
            .iter_from(move |key| key.namespace().unwrap_or("") < namespace)
            .take_while(move |(key, _)| key.namespace().unwrap_or("") == namespace)
            .map(|(key, object)| (key, shown(object, self.meter.as_ref())))
    }

    /// The objects that `index` finds by `value`, in the order of their keys; none if there are none. Costs two binary
    /// searches and two more for each object.
    ///
    /// # Errors
    /// The store has no such index: it must be asked for, with `index` on the source of a controller. See
    /// [`Index`](super::Index) for an example.
    pub fn by_index<'a>(
        &'a self,
        index: &str,
        value: &'a str,
    ) -> Result<impl Iterator<Item = (&'a Key, T)> + use<'a, T>, UnknownIndex> {
        let Some(entries) = self.entries.iter().find(|entries| *entries.name == *index) else {
            let known = self.entries.iter().map(|entries| Arc::clone(&entries.name)).collect();
            return Err(UnknownIndex { name: index.into(), known });
        };
        Ok(entries.keys(value).filter_map(|key| Some((key, self.get(key)?))))
    }

    /// The objects that have an owner reference with this uid.
    ///
    /// # Errors
    /// The store is without [`Index::by_owner_uid`](super::Index::by_owner_uid).
    pub fn owned_by<'a>(
        &'a self,
        uid: &'a str,
    ) -> Result<impl Iterator<Item = (&'a Key, T)> + use<'a, T>, UnknownIndex> {
        self.by_index(OWNER_UID, uid)
    }

    /// The objects whose label has this value.
    ///
    /// # Errors
    /// The store is without [`Index::label`](super::Index::label) for this label.
    pub fn labelled<'a>(
        &'a self,
        label: &str,
        value: &'a str,
    ) -> Result<impl Iterator<Item = (&'a Key, T)> + use<'a, T>, UnknownIndex> {
        self.by_index(&label_name(label), value)
    }

    /// The same objects with these indexes and no others, for tests of what reads views.
    #[must_use]
    pub fn indexed_by(mut self, indexes: &Indexes<T>) -> Self {
        self.entries = Arc::new(indexes.iter().map(Entries::nothing).collect());
        let mut panics = IndexPanics::default();
        for (key, object) in self.rows.iter() {
            index::update(indexes, &mut self.entries, key, None, Some(&object.kept.get()), &mut panics);
        }
        self
    }

    #[cfg(test)]
    pub(super) fn shares_indexes_with(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.entries, &other.entries)
    }
}

impl<T> Snapshot<T> {
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

    /// The view after these changes, without indexes.
    #[cfg(feature = "record")]
    pub(crate) fn after(&self, changes: &[super::Change<T>], resource_version: &str, synced: bool) -> Self
    where
        T: Resource,
    {
        let mut rows = self.rows.clone();
        for change in changes {
            match change {
                super::Change::Added { new, .. } | super::Change::Updated { new, .. } => {
                    rows.insert(new.key(), whole(new.clone()));
                }
                super::Change::Deleted { old, .. } => drop(rows.remove(&old.key())),
            }
        }
        let resource_version = resource_version.into();
        Self { rows, entries: Arc::default(), resource_version, synced, meter: None }
    }

    /// The same view, whose objects count with `meter` what is read of them, as `object` does.
    pub(crate) fn metered_as(mut self, object: &Object) -> Self {
        self.meter = object.meter().cloned();
        self
    }

    /// The objects, and what the indexes have found.
    pub(super) const fn parts_mut(&mut self) -> (&mut Rows<T>, &mut Arc<Vec<Entries>>) {
        (&mut self.rows, &mut self.entries)
    }

    /// The object at `key`, as it lies there.
    pub(super) fn row(&self, key: &Key) -> Option<&Arc<Row<T>>> {
        self.rows.get(key)
    }

    /// The same, and the way to it in [`parts_mut`](Self::parts_mut).
    pub(super) fn find(&self, key: &Key) -> (Way, Option<&Arc<Row<T>>>) {
        self.rows.find(key)
    }

    /// Moves the version up to `to`; never down.
    pub(super) fn advance(&mut self, to: &str) {
        if version::is_above(to, &self.resource_version) {
            self.resource_version = to.into();
        }
    }

    pub(super) fn replace(&mut self, rows: Rows<T>, resource_version: &str) {
        self.rows = rows;
        self.resource_version = resource_version.into();
        self.synced = true;
    }
}

/// An object as it is handed out.
fn shown<T: Resource>(row: &Row<T>, meter: Option<&Arc<Meter>>) -> T {
    match meter {
        None => row.kept.get(),
        Some(meter) => row.kept.get().metered(meter),
    }
}

/// An object that is not packed.
fn whole<T: Resource>(object: T) -> Arc<Row<T>> {
    Arc::new(Row { life: Life::of(&object), kept: Kept::Whole(object) })
}

/// All objects of a view with their keys, in the order of keys.
pub struct Iter<'a, T>(tree::Iter<'a, Arc<Row<T>>>, Option<&'a Arc<Meter>>);

impl<T> Clone for Iter<'_, T> {
    fn clone(&self) -> Self {
        Self(self.0.clone(), self.1)
    }
}

impl<'a, T: Resource> Iterator for Iter<'a, T> {
    type Item = (&'a Key, T);

    fn next(&mut self) -> Option<Self::Item> {
        self.0.next().map(|(key, object)| (key, shown(object, self.1)))
    }

    // What is passed over need not be unpacked.
    fn nth(&mut self, n: usize) -> Option<Self::Item> {
        self.0.nth(n).map(|(key, object)| (key, shown(object, self.1)))
    }

    fn count(self) -> usize {
        self.0.len()
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.0.size_hint()
    }
}

impl<T: Resource> DoubleEndedIterator for Iter<'_, T> {
    fn next_back(&mut self) -> Option<Self::Item> {
        self.0.next_back().map(|(key, object)| (key, shown(object, self.1)))
    }
}

impl<T: Resource> ExactSizeIterator for Iter<'_, T> {}

impl<T> fmt::Debug for Iter<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Iter").field("left", &self.0.size_hint().0).finish()
    }
}

impl<'a, T: Resource> IntoIterator for &'a Snapshot<T> {
    type Item = (&'a Key, T);
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
        let rows = rows.into_iter().map(|(key, object)| (key, whole(object)));
        snapshot.replace(Tree::from_sorted(rows), &highest);
        snapshot
    }
}
