//! A sorted map in shared chunks: a copy costs one counter, a write after a copy clones one chunk and the spine.
//!
//! A balanced tree with shared nodes would have a cheaper write after a copy (`log n` small nodes instead of `n / 96`
//! pointers) and a dearer read; sources copy once a batch and reconciles read all the time.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::{mem, slice};

use crate::object::Key;

/// A chunk above this many entries splits in two.
const MAX: usize = 128;
/// Neighbours that fit together in this many become one.
const MIN: usize = 48;
/// Chunks of a map that is built at once are filled to this, so that the first inserts do not split them all.
const FILL: usize = 96;

type Entry<K, T> = (K, T);
type Chunk<K, T> = Vec<Entry<K, T>>;

/// Invariant: no chunk is empty, keys ascend within a chunk and from chunk to chunk.
pub(super) struct Chunks<K, T> {
    spine: Arc<Vec<Arc<Chunk<K, T>>>>,
    len: usize,
}

impl<K, T> Clone for Chunks<K, T> {
    fn clone(&self) -> Self {
        Self { spine: Arc::clone(&self.spine), len: self.len }
    }
}

impl<K, T> Default for Chunks<K, T> {
    fn default() -> Self {
        Self { spine: Arc::new(Vec::new()), len: 0 }
    }
}

impl<K: Ord, T> Chunks<K, T> {
    pub(super) const fn len(&self) -> usize {
        self.len
    }

    /// From entries whose keys ascend strictly.
    pub(super) fn from_sorted(entries: impl Iterator<Item = Entry<K, T>>) -> Self {
        let mut spine = Vec::new();
        let mut chunk = Vec::new();
        let mut len = 0;
        for entry in entries {
            len += 1;
            chunk.push(entry);
            if chunk.len() == FILL {
                spine.push(Arc::new(mem::take(&mut chunk)));
            }
        }
        if !chunk.is_empty() {
            spine.push(Arc::new(chunk));
        }
        Self { spine: Arc::new(spine), len }
    }

    /// The only chunk that may hold `key`.
    fn chunk_of(&self, key: &K) -> Option<usize> {
        self.spine.partition_point(|c| c[0].0 <= *key).checked_sub(1)
    }

    pub(super) fn get(&self, key: &K) -> Option<&T> {
        let chunk = &self.spine[self.chunk_of(key)?];
        let at = chunk.binary_search_by(|e| e.0.cmp(key)).ok()?;
        Some(&chunk[at].1)
    }

    /// Entries from the first key on that is not `below`, which must hold for the keys before some point only.
    pub(super) fn iter_from(&self, below: impl Fn(&K) -> bool) -> impl Iterator<Item = (&K, &T)> {
        // The chunk before the first one that begins at or above the point may end above it.
        let at = self.spine.partition_point(|c| below(&c[0].0)).saturating_sub(1);
        let skip = self.spine.get(at).map_or(0, |c| c.partition_point(|e| below(&e.0)));
        self.spine[at..].iter().flat_map(|c| c.iter()).skip(skip).map(|(k, v)| (k, v))
    }
}

impl<T> Chunks<Key, T> {
    pub(super) fn iter(&self) -> Iter<'_, T> {
        Iter { chunks: self.spine.iter(), front: [].iter(), back: [].iter(), left: self.len }
    }
}

impl<K: Ord + Clone, T: Clone> Chunks<K, T> {
    /// Puts `value` at `key`; the value that was there before.
    pub(super) fn insert(&mut self, key: K, value: T) -> Option<T> {
        let at = self.chunk_of(&key).unwrap_or(0);
        let spine = Arc::make_mut(&mut self.spine);
        let Some(chunk) = spine.get_mut(at) else {
            spine.push(Arc::new(alloc::vec![(key, value)]));
            self.len = 1;
            return None;
        };
        let chunk = Arc::make_mut(chunk);
        match chunk.binary_search_by(|e| e.0.cmp(&key)) {
            Ok(i) => Some(mem::replace(&mut chunk[i].1, value)),
            Err(i) => {
                chunk.insert(i, (key, value));
                self.len += 1;
                if chunk.len() > MAX {
                    let upper = chunk.split_off(MAX / 2);
                    spine.insert(at + 1, Arc::new(upper));
                }
                None
            }
        }
    }

    /// Takes out what is at `key`.
    pub(super) fn remove(&mut self, key: &K) -> Option<T> {
        let at = self.chunk_of(key)?;
        let i = self.spine[at].binary_search_by(|e| e.0.cmp(key)).ok()?;
        let spine = Arc::make_mut(&mut self.spine);
        let chunk = Arc::make_mut(&mut spine[at]);
        let (_, old) = chunk.remove(i);
        self.len -= 1;
        let left = chunk.len();
        if left == 0 {
            spine.remove(at);
        } else if spine.get(at + 1).is_some_and(|next| left + next.len() <= MIN) {
            let next = Arc::unwrap_or_clone(spine.remove(at + 1));
            Arc::make_mut(&mut spine[at]).extend(next);
        }
        Some(old)
    }
}

/// All entries in the order of their keys.
pub struct Iter<'a, T> {
    chunks: slice::Iter<'a, Arc<Chunk<Key, T>>>,
    front: slice::Iter<'a, Entry<Key, T>>,
    back: slice::Iter<'a, Entry<Key, T>>,
    left: usize,
}

impl<T> Clone for Iter<'_, T> {
    fn clone(&self) -> Self {
        Self {
            chunks: self.chunks.clone(),
            front: self.front.clone(),
            back: self.back.clone(),
            left: self.left,
        }
    }
}

impl<'a, T> Iterator for Iter<'a, T> {
    type Item = (&'a Key, &'a T);

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some((k, v)) = self.front.next() {
                self.left -= 1;
                return Some((k, v));
            }
            if let Some(chunk) = self.chunks.next() {
                self.front = chunk.iter();
            } else {
                let (k, v) = self.back.next()?;
                self.left -= 1;
                return Some((k, v));
            }
        }
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left, Some(self.left))
    }
}

impl<T> DoubleEndedIterator for Iter<'_, T> {
    fn next_back(&mut self) -> Option<Self::Item> {
        loop {
            if let Some((k, v)) = self.back.next_back() {
                self.left -= 1;
                return Some((k, v));
            }
            if let Some(chunk) = self.chunks.next_back() {
                self.back = chunk.iter();
            } else {
                let (k, v) = self.front.next_back()?;
                self.left -= 1;
                return Some((k, v));
            }
        }
    }
}

impl<T> ExactSizeIterator for Iter<'_, T> {}
