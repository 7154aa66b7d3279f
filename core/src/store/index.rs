//! Indexes: which objects have a value, without looking at all of them.

use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::any::TypeId;
use core::fmt;
use core::mem::size_of;

use super::tree::Tree;
use crate::guard::guarded;
use crate::limits;
use crate::object::{Key, Object, Resource};

/// The name of [`Index::by_owner_uid`].
pub const OWNER_UID: &str = "owner-uid";
/// The name of [`Index::label`] is this and the label.
const LABEL: &str = "label:";

/// One way to find objects: a name, and a function that tells the values of an object. An object is found by each of its
/// values; one without values is found by none.
///
/// The function must say the same about the same object whenever it is asked: the store asks it about the old state to
/// know where that stands. Where the core is built with `std`, a panic in it costs its object only: the object is in the
/// store, but not in this index, and the source says so
/// ([`Notice::IndexPanicked`](crate::watcher::Notice::IndexPanicked)).
///
/// Two are equal if they have one name and one function. A function that captures nothing is the same wherever it is
/// named; of one that captures something, clones of one `Index` are equal, others are not.
///
/// ```
/// use steersman_core::object::{Object, OwnerReference, Resource};
/// use steersman_core::store::{Index, Indexes, Snapshot};
///
/// fn node(pod: &Object) -> Option<String> {
///     pod.get(&["spec", "nodeName"]).ok()?
/// }
/// let by_node = Index::new("by-node", node);
/// assert_eq!(by_node, Index::new("by-node", node));
///
/// let indexes = Indexes::of([by_node, Index::by_owner_uid(), Index::label("app")])?;
/// let pod = |name: &str, node: &str| {
///     let json = format!(
///         r#"{{"metadata":{{"name":"{name}","uid":"{name}","labels":{{"app":"web"}},
///             "ownerReferences":[{{"apiVersion":"apps/v1","kind":"ReplicaSet","name":"r","uid":"r-1"}}]}},
///             "spec":{{"nodeName":"{node}"}}}}"#
///     );
///     Object::from_json(json.as_bytes()).unwrap()
/// };
/// let view: Snapshot<Object> = [pod("a", "n1"), pod("b", "n2"), pod("c", "n1")].into_iter().collect();
/// let view = view.indexed_by(&indexes);
///
/// let names = |found: Vec<Object>| found.iter().map(|o| o.name().to_owned()).collect::<Vec<_>>();
/// assert_eq!(names(view.by_index("by-node", "n1")?.map(|(_, o)| o).collect()), ["a", "c"]);
/// assert_eq!(view.owned_by("r-1")?.count(), 3);
/// assert_eq!(view.labelled("app", "db")?.count(), 0);
/// assert!(view.by_index("by-zone", "z").is_err());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Index<T = Object> {
    name: Arc<str>,
    values: Arc<Values<T>>,
    identity: Identity,
}

type Values<T> = dyn Fn(&T) -> Vec<Arc<str>> + Send + Sync;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Identity {
    /// One of ours; the name says which.
    BuiltIn,
    /// It captures nothing, so its type says all.
    Stateless(TypeId),
    /// Only itself is the same.
    Stateful,
}

impl<T> Index<T> {
    /// An index of values that `values` tells, as controller-runtime's `IndexField`. An `Option<String>`, a `Vec<String>`
    /// or anything else that gives strings will do.
    #[must_use]
    pub fn new<F, I>(name: impl Into<Arc<str>>, values: F) -> Self
    where
        F: Fn(&T) -> I + Send + Sync + 'static,
        I: IntoIterator<Item: Into<Arc<str>>>,
    {
        let identity = match size_of::<F>() {
            0 => Identity::Stateless(TypeId::of::<F>()),
            _ => Identity::Stateful,
        };
        let values = move |object: &T| values(object).into_iter().map(Into::into).collect();
        Self { name: name.into(), values: Arc::new(values), identity }
    }

    fn built_in(name: Arc<str>, values: impl Fn(&T) -> Vec<Arc<str>> + Send + Sync + 'static) -> Self {
        Self { name, values: Arc::new(values), identity: Identity::BuiltIn }
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }
}

impl<T: Resource> Index<T> {
    /// By the uids of all owner references; see [`Snapshot::owned_by`](super::Snapshot::owned_by).
    #[must_use]
    pub fn by_owner_uid() -> Self {
        Self::built_in(OWNER_UID.into(), |object: &T| {
            let mut uids = Vec::new();
            object.each_owner(&mut |owner| uids.push(Arc::from(&*owner.uid)));
            // What nobody owns is not owned by somebody without a uid.
            uids.retain(|uid: &Arc<str>| !uid.is_empty());
            uids
        })
    }
}

impl Index<Object> {
    /// By the value of a label; see [`Snapshot::labelled`](super::Snapshot::labelled).
    #[must_use]
    pub fn label(label: impl Into<String>) -> Self {
        let label = label.into();
        let name = label_name(&label);
        Self::built_in(name.into(), move |object: &Object| {
            object.label(&label).map(Arc::from).into_iter().collect()
        })
    }
}

pub(super) fn label_name(label: &str) -> String {
    [LABEL, label].concat()
}

impl<T> Clone for Index<T> {
    fn clone(&self) -> Self {
        Self { name: Arc::clone(&self.name), values: Arc::clone(&self.values), identity: self.identity }
    }
}

impl<T> PartialEq for Index<T> {
    fn eq(&self, other: &Self) -> bool {
        let same = match self.identity {
            Identity::Stateful => Arc::as_ptr(&self.values).cast::<()>() == Arc::as_ptr(&other.values).cast(),
            Identity::BuiltIn | Identity::Stateless(_) => true,
        };
        same && self.identity == other.identity && self.name == other.name
    }
}

impl<T> Eq for Index<T> {}

impl<T> fmt::Debug for Index<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Index({:?})", self.name)
    }
}

/// Indexes of one store, each name once.
pub struct Indexes<T = Object>(Vec<Index<T>>);

impl<T> Indexes<T> {
    /// None.
    #[must_use]
    pub const fn new() -> Self {
        Self(Vec::new())
    }

    /// These, each once.
    ///
    /// # Errors
    /// Two different ones have one name.
    pub fn of(indexes: impl IntoIterator<Item = Index<T>>) -> Result<Self, IndexConflict> {
        let mut all = Self::new();
        indexes.into_iter().try_for_each(|index| all.add(index))?;
        Ok(all)
    }

    /// Adds one; nothing happens if it is there.
    ///
    /// # Errors
    /// Another one has its name.
    pub fn add(&mut self, index: Index<T>) -> Result<(), IndexConflict> {
        match self.0.iter().find(|known| known.name == index.name) {
            None => self.0.push(index),
            Some(known) if *known == index => {}
            Some(_) => return Err(IndexConflict(index.name)),
        }
        Ok(())
    }

    /// Them, in the order in which they were added.
    pub fn iter(&self) -> core::slice::Iter<'_, Index<T>> {
        self.0.iter()
    }

    /// Whether there are none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl<'a, T> IntoIterator for &'a Indexes<T> {
    type Item = &'a Index<T>;
    type IntoIter = core::slice::Iter<'a, Index<T>>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl<T> Clone for Indexes<T> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<T> Default for Indexes<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> PartialEq for Indexes<T> {
    fn eq(&self, other: &Self) -> bool {
        self.0 == other.0
    }
}

impl<T> Eq for Indexes<T> {}

impl<T> fmt::Debug for Indexes<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(&self.0).finish()
    }
}

/// Two different indexes have this name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IndexConflict(pub Arc<str>);

impl fmt::Display for IndexConflict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "two different indexes are named {:?}", self.0)
    }
}

impl core::error::Error for IndexConflict {}

/// Nobody asked for this index, so nobody knows what it would find.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownIndex {
    /// The name.
    pub name: String,
    /// The names of those there are.
    pub known: Vec<Arc<str>>,
}

impl fmt::Display for UnknownIndex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "no index is named {:?}: ", self.name)?;
        match &*self.known {
            [] => f.write_str("this view has none; name those it shall have with `index` on its source"),
            known => write!(f, "this view has {known:?}"),
        }
    }
}

impl core::error::Error for UnknownIndex {}

/// An index function panicked over an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IndexPanic {
    /// The name of the index.
    pub index: Arc<str>,
    /// The object.
    pub key: Key,
    /// The panic's message.
    pub error: String,
}

/// Panics, counted, and the first of them to tell.
#[derive(Debug, Default)]
pub(super) struct IndexPanics {
    pub(super) count: u64,
    pub(super) told: Vec<IndexPanic>,
}

impl IndexPanics {
    fn add(&mut self, panic: IndexPanic) {
        self.count += 1;
        if self.told.len() < limits::INDEX_PANICS {
            self.told.push(panic);
        }
    }
}

/// What one index has found: values and the keys that have them, in order, in a shared tree as the objects themselves.
#[derive(Clone)]
pub(super) struct Entries {
    pub(super) name: Arc<str>,
    pairs: Tree<(Arc<str>, Key), ()>,
}

impl Entries {
    pub(super) fn nothing<T>(index: &Index<T>) -> Self {
        Self { name: Arc::clone(&index.name), pairs: Tree::default() }
    }

    /// The keys with this value, in order.
    pub(super) fn keys<'a>(&'a self, value: &'a str) -> impl Iterator<Item = &'a Key> {
        self.pairs
            .iter_from(move |(v, _)| **v < *value)
            .take_while(move |((v, _), ())| **v == *value)
            .map(|((_, key), ())| key)
    }

    fn put(&mut self, value: Arc<str>, key: Key) {
        // Thousands of objects may have one value: they share it.
        let known = self.pairs.iter_from(|(v, _)| *v < value).next().filter(|((v, _), ())| *v == value);
        let value = known.map_or(value, |((v, _), ())| Arc::clone(v));
        self.pairs.insert((value, key), ());
    }
}

/// Moves `key` in every index from the values of `old` to those of `new`; touches what differs only.
pub(super) fn update<T>(
    indexes: &Indexes<T>,
    entries: &mut Arc<Vec<Entries>>,
    key: &Key,
    old: Option<&T>,
    new: Option<&T>,
    panics: &mut IndexPanics,
) {
    for (n, index) in indexes.iter().enumerate() {
        // What it says of the old state by a panic was told when that was new.
        let before = old.map_or(Ok(Vec::new()), |old| sorted(index, old)).unwrap_or_default();
        let after = new.map_or(Ok(Vec::new()), |new| sorted(index, new)).unwrap_or_else(|error| {
            panics.add(IndexPanic { index: Arc::clone(&index.name), key: key.clone(), error });
            Vec::new()
        });
        if before == after {
            continue;
        }
        let entries = &mut Arc::make_mut(entries)[n];
        for value in before.iter().filter(|v| after.binary_search(v).is_err()) {
            entries.pairs.remove(&(Arc::clone(value), key.clone()));
        }
        for value in after.into_iter().filter(|v| before.binary_search(v).is_err()) {
            entries.put(value, key.clone());
        }
    }
}

fn sorted<T>(index: &Index<T>, object: &T) -> Result<Vec<Arc<str>>, String> {
    let mut values = guarded(|| (index.values)(object))?;
    values.sort_unstable();
    values.dedup();
    Ok(values)
}
