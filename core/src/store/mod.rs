//! The last known state of one resource.
//!
//! A [`Store`] takes the [`Event`]s of a watcher and tells what changed; a [`Snapshot`] of it costs a counter and can be
//! read on any thread while the store goes on.
//!
//! A full state (`Init`, `InitApply`.., `InitDone`) is staged and swapped in one step: until `InitDone` nobody sees any
//! of it, and what it does not hold is then deleted. Objects that did not change meanwhile give no change and keep
//! their old allocation, so a new list of an unchanged world costs keys, not objects.
//!
//! ```
//! use steersman_core::object::{Key, OwnerReference, Resource};
//! use steersman_core::store::{Change, Store};
//! use steersman_core::watcher::Event;
//!
//! #[derive(Clone, Debug, PartialEq)]
//! struct Thing(&'static str, &'static str);
//! impl Resource for Thing {
//!     fn key(&self) -> Key { Key::namespaced("default", self.0) }
//!     fn uid(&self) -> &str { self.0 }
//!     fn resource_version(&self) -> &str { self.1 }
//!     fn each_owner(&self, _: &mut dyn FnMut(&OwnerReference)) {}
//! }
//!
//! let mut store = Store::new();
//! let mut changes = Vec::new();
//! store.apply(Event::Init, &mut changes);
//! store.apply(Event::InitApply(Thing("a", "5")), &mut changes);
//! assert!(store.is_empty() && changes.is_empty());
//! store.apply(Event::InitDone { resource_version: "7".into() }, &mut changes);
//! assert_eq!(changes, [Change::Added { new: Thing("a", "5"), initial: true }]);
//!
//! let before = store.snapshot();
//! changes.clear();
//! store.apply(Event::Delete(Thing("a", "8")), &mut changes);
//! assert_eq!(changes, [Change::Deleted { old: Thing("a", "8"), final_unknown: false }]);
//! assert_eq!((before.len(), store.len(), store.resource_version()), (1, 0, "8"));
//! ```

mod changes;
mod compact;
mod index;
mod row;
mod snapshot;
mod tree;
mod types;

#[cfg(test)]
mod tests;

pub use changes::{Changes, ChangesIter};
pub use compact::{Kept, Packed, PackedSize, Packer, unpack};
pub use index::{Index, IndexConflict, IndexPanic, Indexes, OWNER_UID, UnknownIndex};
pub use snapshot::{Iter, Snapshot};
pub use types::*;

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::cmp::Ordering;
use core::fmt;

use self::index::IndexPanics;
use self::row::{Life, Row};
use self::tree::Tree;
use crate::object::{Key, Resource};
use crate::watcher::Event;

/// Keeps the objects of one resource by key, and tells what each event changed.
///
/// One writer; readers take a [`Snapshot`].
pub struct Store<T> {
    now: Snapshot<T>,
    staged: Option<BTreeMap<Key, Staged<T>>>,
    /// Of a compact store.
    packer: Option<Box<Packer>>,
    packed: PackedSize,
    stale: u64,
    indexes: Indexes<T>,
    index_panics: IndexPanics,
}

/// One object of a full state that is not complete yet.
struct Staged<T> {
    object: Place<T>,
    /// The same for the change that it will be; `None` if the state before had it. Cloned at once, while the object is at
    /// hand: a walk over all of them later would fetch each from memory again, for a counter.
    news: Option<Kept<T>>,
}

/// Where an object of a full state is meanwhile.
enum Place<T> {
    /// In the state before.
    Old(Arc<Row<T>>),
    New(Kept<T>, Life),
}

/// What became of one event. The differences themselves are in the sink.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Applied {
    /// The state changed, or a full state was taken over.
    Done,
    /// Part of a full state that is not complete yet.
    Staged,
    /// It was not above the stored version of its object, and was dropped.
    Stale(Key),
    /// It said nothing new: a deletion of what is not there, a bookmark, an end without a beginning.
    Void,
}

impl<T> Default for Store<T> {
    fn default() -> Self {
        Self {
            now: Snapshot::default(),
            staged: None,
            packer: None,
            packed: PackedSize::default(),
            stale: 0,
            indexes: Indexes::new(),
            index_panics: IndexPanics::default(),
        }
    }
}

impl<T> fmt::Debug for Store<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Store")
            .field("now", &self.now)
            .field("staged", &self.staged.as_ref().map(BTreeMap::len))
            .field("stale", &self.stale)
            .finish()
    }
}

impl<T: Resource> Store<T> {
    /// An empty store that has not seen a full state.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The same with these indexes, which go along with every change: each costs its function on the old and the new
    /// state of what changed, and a write for each value that differs.
    #[must_use]
    pub fn with_indexes(indexes: Indexes<T>) -> Self {
        Self { now: Snapshot::default().indexed_by(&indexes), indexes, ..Self::default() }
    }

    /// The same, whose objects are kept packed: each as what it shares with a dictionary, learned from the first of them,
    /// and the rest. Whoever gets one gets it whole and equal in every byte. Only resources that have
    /// [`Resource::to_packable`] are, as [`Object`](crate::object::Object) has; what does not shrink stays whole.
    ///
    /// 100,000 pods of 3.3 KB take 0.7 KB of memory each, key and tree included, instead of 3.7. What comes is packed, and
    /// what is handed out is unpacked, each time: some microseconds an object. In lists and watches of pods that was made up for by
    /// the memory that need not be touched; with other work on the machine a list took up to half as much again.
    /// (`steersman-bench -- list --executor threads --executor threads-compact` measures it.)
    ///
    /// A dictionary holds pieces of objects as long as others need it, even if those objects are gone.
    ///
    /// ```
    /// use steersman_core::object::{Key, Object};
    /// use steersman_core::store::Store;
    /// use steersman_core::watcher::Event;
    /// let pod = |n: u32| {
    ///     let json = format!(
    ///         r#"{{"metadata":{{"name":"web-{n}","namespace":"shop","uid":"{n:08}-0000-4000-8000-000000000000",
    ///             "resourceVersion":"{n}"}},"spec":{{"containers":[{{"name":"main","image":"registry.example/web:1.0"}}]}}}}"#
    ///     );
    ///     Object::from_json(json.as_bytes()).unwrap()
    /// };
    /// let (mut store, mut changes) = (Store::new().compact(), Vec::new());
    /// store.apply(Event::Init, &mut changes);
    /// (1..100).for_each(|n| drop(store.apply(Event::InitApply(pod(n)), &mut changes)));
    /// store.apply(Event::InitDone { resource_version: "100".into() }, &mut changes);
    ///
    /// assert_eq!(store.get(&Key::namespaced("shop", "web-7")), Some(pod(7)));
    /// let size = store.packed();
    /// assert!(size.objects > 90 && size.kept * 3 < size.whole, "{size:?}");
    /// ```
    #[must_use]
    pub fn compact(mut self) -> Self {
        self.packer = Some(Box::default());
        self
    }

    /// What packing has come to; nothing unless the store is [`compact`](Self::compact).
    #[must_use]
    pub const fn packed(&self) -> PackedSize {
        self.packed
    }

    /// The panics of index functions since this was asked last; the first
    /// [`INDEX_PANICS`](crate::limits::INDEX_PANICS) of them.
    pub fn take_index_panics(&mut self) -> Vec<IndexPanic> {
        core::mem::take(&mut self.index_panics.told)
    }

    /// How often index functions have panicked.
    #[must_use]
    pub const fn index_panics(&self) -> u64 {
        self.index_panics.count
    }

    /// Takes one event and appends what it changed to `changes`, in the order of keys for a full state.
    ///
    /// Every order of events is defined: a second `Init` drops what was staged, an `InitDone` without `Init` does
    /// nothing, `Apply` and `Delete` between `Init` and `InitDone` belong to the full state that is being staged.
    pub fn apply(&mut self, event: Event<T>, changes: &mut Vec<Change<T>>) -> Applied {
        self.take(event, &mut |change| changes.push(change.whole()))
    }

    /// The same, and what is packed stays so: the changes of a first list are as many as there are objects.
    pub(crate) fn apply_kept(&mut self, event: Event<T>, changes: &mut Vec<Change<Kept<T>>>) -> Applied {
        self.take(event, &mut |change| changes.push(change))
    }

    fn take(&mut self, event: Event<T>, tell: &mut impl FnMut(Change<Kept<T>>)) -> Applied {
        match (event, &mut self.staged) {
            (Event::Init, staged) => {
                *staged = Some(BTreeMap::new());
                Applied::Staged
            }
            (Event::InitApply(new) | Event::Apply(new), Some(staged)) => {
                let key = new.key();
                let life = Life::of(&new);
                // The old allocation wins at once, so that memory holds two copies of what changed only.
                let object = match self.now.row(&key) {
                    Some(old) if old.is_same_state(&new, life) => {
                        Staged { object: Place::Old(Arc::clone(old)), news: None }
                    }
                    _ => {
                        let new = keep(&mut self.packer, new);
                        Staged { object: Place::New(new.clone(), life), news: Some(new) }
                    }
                };
                staged.insert(key, object);
                Applied::Staged
            }
            (Event::InitKeep(key), Some(staged)) => {
                if let Some(old) = self.now.row(&key) {
                    // Without a version nobody knows whether it is the same.
                    let news = (!old.has_version()).then(|| old.kept.clone());
                    staged.insert(key, Staged { object: Place::Old(Arc::clone(old)), news });
                }
                Applied::Staged
            }
            (Event::Delete(old), Some(staged)) => {
                staged.remove(&old.key());
                Applied::Staged
            }
            (Event::InitDone { resource_version }, staged) => {
                let Some(staged) = staged.take() else { return Applied::Void };
                self.swap(staged, &resource_version, tell);
                Applied::Done
            }
            (Event::Apply(new) | Event::InitApply(new), None) => self.put(new, tell),
            (Event::Delete(last), None) => self.delete(last, tell),
            (Event::Bookmark { resource_version }, None) => {
                self.now.advance(&resource_version);
                Applied::Void
            }
            (Event::InitKeep(_), None) | (Event::Bookmark { .. }, Some(_)) => Applied::Void,
        }
    }

    fn put(&mut self, new: T, tell: &mut impl FnMut(Change<Kept<T>>)) -> Applied {
        let (key, life) = (new.key(), Life::of(&new));
        let (way, old) = self.now.find(&key);
        if let Some(old) = old
            && old.outlives(&new, life)
        {
            self.stale += 1;
            return Applied::Stale(key);
        }
        self.now.advance(new.resource_version());
        let (rows, entries) = self.now.parts_mut();
        let row = Arc::new(Row { kept: keep(&mut self.packer, new.clone()), life });
        self.packed += row.kept.size();
        let old = rows.put(way, key.clone(), Arc::clone(&row));
        if let Some(old) = &old {
            self.packed -= old.kept.size();
        }
        if !self.indexes.is_empty() {
            let old = old.as_ref().map(|old| old.kept.get());
            index::update(&self.indexes, entries, &key, old.as_ref(), Some(&new), &mut self.index_panics);
        }
        let old = old.map(|old| (old.is_same_life(&row), Arc::unwrap_or_clone(old).kept));
        // It is at hand whole, and soon forgotten.
        difference(old, Kept::Whole(new), Found::Event, tell);
        Applied::Done
    }

    fn delete(&mut self, last: T, tell: &mut impl FnMut(Change<Kept<T>>)) -> Applied {
        let (key, life) = (last.key(), Life::of(&last));
        let (way, old) = self.now.find(&key);
        let Some(old) = old else {
            self.now.advance(last.resource_version());
            return Applied::Void;
        };
        // A deletion carries the version of the deletion. One below what is stored is the end of an earlier life of
        // the key, told again.
        if old.order_of(&last, life) == Some(Ordering::Less) {
            self.stale += 1;
            return Applied::Stale(key);
        }
        let old = Arc::clone(old);
        self.now.advance(last.resource_version());
        let (rows, entries) = self.now.parts_mut();
        rows.take(way);
        self.packed -= old.kept.size();
        if !self.indexes.is_empty() {
            index::update(&self.indexes, entries, &key, Some(&old.kept.get()), None, &mut self.index_panics);
        }
        // The last state of another life is of no use to someone who knew this one.
        let old = if old.is_of(&last, life) { Kept::Whole(last) } else { old.kept.clone() };
        tell(Change::Deleted { old, final_unknown: false });
        Applied::Done
    }

    /// Makes `staged` the state: one walk over both in the order of keys.
    fn swap(
        &mut self,
        staged: BTreeMap<Key, Staged<T>>,
        resource_version: &str,
        tell: &mut impl FnMut(Change<Kept<T>>),
    ) {
        let found = if self.now.is_synced() { Found::List } else { Found::FirstList };
        let (rows, entries) = self.now.parts_mut();
        let mut reindex = |key: &Key, old: Option<&Kept<T>>, new: Option<&Kept<T>>| {
            if !self.indexes.is_empty() {
                let (old, new) = (old.map(Kept::get), new.map(Kept::get));
                index::update(
                    &self.indexes,
                    entries,
                    key,
                    old.as_ref(),
                    new.as_ref(),
                    &mut self.index_panics,
                );
            }
        };
        let mut packed = PackedSize::default();
        let mut old = rows.iter().peekable();
        let gone = |old: &Kept<T>| Change::Deleted { old: old.clone(), final_unknown: true };
        let fresh = Tree::from_sorted(staged.into_iter().map(|(key, Staged { object, news })| {
            while let Some((k, o)) = old.next_if(|(k, _)| **k < key) {
                reindex(k, Some(&o.kept), None);
                tell(gone(&o.kept));
            }
            let before = old.next_if(|(k, _)| **k == key).map(|(_, o)| o);
            let row = match object {
                Place::Old(row) => row,
                // (Made here, one beside the other, and not between the objects as these came.)
                Place::New(kept, life) => Arc::new(Row { kept, life }),
            };
            if let Some(new) = news {
                reindex(&key, before.map(|before| &before.kept), Some(&new));
                let before = before.map(|before| (before.is_same_life(&row), before.kept.clone()));
                difference(before, new, found, tell);
            }
            packed += row.kept.size();
            (key, row)
        }));
        for (k, o) in old {
            reindex(k, Some(&o.kept), None);
            tell(gone(&o.kept));
        }
        self.now.replace(fresh, resource_version);
        self.packed = packed;
    }

    /// The object at `key`.
    #[must_use]
    pub fn get(&self, key: &Key) -> Option<T> {
        self.now.get(key)
    }

    /// All objects in the order of their keys.
    pub fn iter(&self) -> Iter<'_, T> {
        self.now.iter()
    }

    /// How many objects there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.now.len()
    }

    /// Whether there are no objects.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.now.is_empty()
    }

    /// The version up to which the state is known to be right; empty before the first full state.
    #[must_use]
    pub fn resource_version(&self) -> &str {
        self.now.resource_version()
    }

    /// Whether a first full state has been taken over.
    #[must_use]
    pub fn is_synced(&self) -> bool {
        self.now.is_synced()
    }

    /// How many objects are staged for the next full state.
    #[must_use]
    pub fn staged(&self) -> usize {
        self.staged.as_ref().map_or(0, BTreeMap::len)
    }

    /// How many events were dropped because they were not above the stored version of their object.
    #[must_use]
    pub const fn stale(&self) -> u64 {
        self.stale
    }

    /// The state as it is now. Costs two counters; the next write copies a few nodes of it, not the whole.
    #[must_use]
    pub fn snapshot(&self) -> Snapshot<T> {
        self.now.clone()
    }
}

/// How a difference was found.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Found {
    Event,
    FirstList,
    List,
}

/// The changes that lead from `old` to `new`; with `old` stands whether it is of the same life. Another uid is another object,
/// whatever its name.
fn difference<T>(
    old: Option<(bool, Kept<T>)>,
    new: Kept<T>,
    found: Found,
    tell: &mut impl FnMut(Change<Kept<T>>),
) {
    let initial = found == Found::FirstList;
    match old {
        Some((true, old)) => tell(Change::Updated { old, new, relisted: found != Found::Event }),
        Some((false, old)) => {
            tell(Change::Deleted { old, final_unknown: true });
            tell(Change::Added { new, initial });
        }
        None => tell(Change::Added { new, initial }),
    }
}

/// As the store keeps it.
fn keep<T: Resource>(packer: &mut Option<Box<Packer>>, object: T) -> Kept<T> {
    match packer {
        Some(packer) => packer.keep(&object),
        None => Kept::Whole(object),
    }
}
