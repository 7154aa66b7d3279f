//! A sorted map as a tree with shared nodes: a copy costs one counter, a write after a copy clones the nodes on one path.
//!
//! A node counts one reference for each entry that a clone of it copies, and in a large store most of those counters are in no
//! cache. So leaves are small, and their keys are shared apart from their values: a changed object, which is what watches bring,
//! copies values alone. (Where the counters lie is up to the values; see `Rows` in `snapshot.rs`.)

mod iter;
mod remove;

#[cfg(test)]
mod tests;

pub(super) use iter::Iter;

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::mem;

use iter::Cursor;

/// A node above this many entries splits in two.
const MAX: usize = 16;
/// Nodes of a map that is built at once are filled to this, so that the first inserts do not split them all.
const FILL: usize = 12;

/// Keys ascend, and all leaves are equally far from the root.
pub(super) struct Tree<K, T> {
    root: Option<Arc<Node<K, T>>>,
    len: usize,
}

enum Node<K, T> {
    /// Entries: as many keys as values, at least one.
    Leaf { keys: Arc<[K]>, values: Vec<T> },
    /// `bounds[n]` is above every key of `nodes[n]` and not above any of `nodes[n + 1]`.
    Inner { bounds: Arc<[K]>, nodes: Vec<Arc<Self>> },
}

/// The way from the root to a key: which node on each level, and the place in the leaf, `Err` if the key is not there. Good until
/// the tree changes.
pub(super) struct Way {
    nodes: Vec<usize>,
    leaf: Result<usize, usize>,
}

/// The upper part of a node that has split, and the bound below it.
type Upper<K, T> = (K, Arc<Node<K, T>>);

impl<K, T> Clone for Tree<K, T> {
    fn clone(&self) -> Self {
        Self { root: self.root.clone(), len: self.len }
    }
}

impl<K, T: Clone> Clone for Node<K, T> {
    fn clone(&self) -> Self {
        match self {
            Self::Leaf { keys, values } => Self::Leaf { keys: Arc::clone(keys), values: values.clone() },
            Self::Inner { bounds, nodes } => Self::Inner { bounds: Arc::clone(bounds), nodes: nodes.clone() },
        }
    }
}

impl<K, T> Default for Tree<K, T> {
    fn default() -> Self {
        Self { root: None, len: 0 }
    }
}

impl<K, T> Tree<K, T> {
    pub(super) const fn len(&self) -> usize {
        self.len
    }

    /// Entries from the first key on that is not `below`, which must hold for the keys before some point only.
    pub(super) fn iter_from(&self, below: impl Fn(&K) -> bool) -> impl Iterator<Item = (&K, &T)> {
        Cursor::from(self.root.as_deref(), below)
    }
}

impl<K: Ord, T> Tree<K, T> {
    pub(super) fn get(&self, key: &K) -> Option<&T> {
        let mut node = self.root.as_deref()?;
        loop {
            match node {
                Node::Leaf { keys, values } => return keys.binary_search(key).ok().map(|at| &values[at]),
                Node::Inner { bounds, nodes } => node = &nodes[place(bounds, key)],
            }
        }
    }

    /// What is at `key`, and the way to it, so that a write need not look for it again.
    pub(super) fn find(&self, key: &K) -> (Way, Option<&T>) {
        let mut way = Way { nodes: Vec::new(), leaf: Err(0) };
        let mut next = self.root.as_deref();
        let mut value = None;
        while let Some(node) = next {
            next = match node {
                Node::Leaf { keys, values } => {
                    way.leaf = keys.binary_search(key);
                    value = way.leaf.ok().map(|at| &values[at]);
                    None
                }
                Node::Inner { bounds, nodes } => {
                    let at = place(bounds, key);
                    way.nodes.push(at);
                    Some(&nodes[at])
                }
            };
        }
        (way, value)
    }
}

/// Which node between these bounds may hold `key`.
fn place<K: Ord>(bounds: &[K], key: &K) -> usize {
    bounds.partition_point(|bound| bound <= key)
}

impl<K: Clone, T> Tree<K, T> {
    /// From entries whose keys ascend strictly.
    pub(super) fn from_sorted(entries: impl Iterator<Item = (K, T)>) -> Self {
        let mut entries = entries.peekable();
        let (mut level, mut len) = (Vec::new(), 0);
        while let Some(first) = entries.peek().map(|(key, _)| key.clone()) {
            let (keys, values): (Vec<K>, Vec<T>) = entries.by_ref().take(FILL).unzip();
            len += keys.len();
            level.push((first, Arc::new(Node::Leaf { keys: keys.into(), values })));
        }
        while level.len() > 1 {
            let mut below = mem::take(&mut level).into_iter();
            while let Some((first, node)) = below.next() {
                let (bounds, rest): (Vec<K>, Vec<_>) = below.by_ref().take(FILL - 1).unzip();
                let nodes = [node].into_iter().chain(rest).collect();
                level.push((first, Arc::new(Node::Inner { bounds: bounds.into(), nodes })));
            }
        }
        Self { root: level.pop().map(|(_, root)| root), len }
    }
}

impl<K: Ord + Clone, T: Clone> Tree<K, T> {
    /// Puts `value` at `key`, to which `way` leads; the value that was there before.
    pub(super) fn put(&mut self, way: Way, key: K, value: T) -> Option<T> {
        let Some(root) = &mut self.root else {
            *self = Self::from_sorted([(key, value)].into_iter());
            return None;
        };
        let (old, upper) = Arc::make_mut(root).put(&way.nodes, way.leaf, key, value);
        if let Some((bound, upper)) = upper {
            let nodes = alloc::vec![Arc::clone(root), upper];
            *root = Arc::new(Node::Inner { bounds: [bound].into(), nodes });
        }
        self.len += usize::from(old.is_none());
        old
    }

    /// Puts `value` at `key`.
    pub(super) fn insert(&mut self, key: K, value: T) -> Option<T> {
        let (way, _) = self.find(&key);
        self.put(way, key, value)
    }
}

impl<K: Clone, T: Clone> Node<K, T> {
    fn put(
        &mut self,
        way: &[usize],
        place: Result<usize, usize>,
        key: K,
        value: T,
    ) -> (Option<T>, Option<Upper<K, T>>) {
        match self {
            Self::Leaf { keys, values } => match place {
                Ok(at) => return (Some(mem::replace(&mut values[at], value)), None),
                Err(at) => {
                    *keys = with(keys, at, key);
                    values.insert(at, value);
                }
            },
            Self::Inner { bounds, nodes } => {
                let Some((&at, way)) = way.split_first() else { return (None, None) };
                let (old, upper) = Arc::make_mut(&mut nodes[at]).put(way, place, key, value);
                let Some((bound, upper)) = upper else { return (old, None) };
                *bounds = with(bounds, at, bound);
                nodes.insert(at + 1, upper);
            }
        }
        (None, self.split())
    }

    /// The upper half of a node that is too large.
    fn split(&mut self) -> Option<Upper<K, T>> {
        if self.len() <= MAX {
            return None;
        }
        let half = self.len() / 2;
        Some(match self {
            Self::Leaf { keys, values } => {
                let upper: Arc<[K]> = keys[half..].into();
                *keys = keys[..half].into();
                let bound = upper[0].clone();
                (bound, Arc::new(Self::Leaf { keys: upper, values: values.split_off(half) }))
            }
            Self::Inner { bounds, nodes } => {
                let (bound, upper) = (bounds[half - 1].clone(), bounds[half..].into());
                *bounds = bounds[..half - 1].into();
                (bound, Arc::new(Self::Inner { bounds: upper, nodes: nodes.split_off(half) }))
            }
        })
    }

    fn len(&self) -> usize {
        match self {
            Self::Leaf { values, .. } => values.len(),
            Self::Inner { nodes, .. } => nodes.len(),
        }
    }
}

/// These keys, and one more in place `at`.
fn with<K: Clone>(keys: &[K], at: usize, key: K) -> Arc<[K]> {
    keys[..at].iter().cloned().chain([key]).chain(keys[at..].iter().cloned()).collect()
}

/// These keys without the one in place `at`.
fn without<K: Clone>(keys: &[K], at: usize) -> Arc<[K]> {
    keys[..at].iter().chain(&keys[at + 1..]).cloned().collect()
}
