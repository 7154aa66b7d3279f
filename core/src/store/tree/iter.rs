//! Walks over a tree, from either end.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::iter::Zip;
use core::slice;

use super::{Node, Tree};
use crate::object::Key;

type Entries<'a, K, T> = Zip<slice::Iter<'a, K>, slice::Iter<'a, T>>;

/// A point in a tree: what is left of its leaf, and of the nodes on the way to that.
pub(super) struct Cursor<'a, K, T> {
    nodes: Vec<slice::Iter<'a, Arc<Node<K, T>>>>,
    leaf: Entries<'a, K, T>,
}

impl<K, T> Clone for Cursor<'_, K, T> {
    fn clone(&self) -> Self {
        Self { nodes: self.nodes.clone(), leaf: self.leaf.clone() }
    }
}

fn entries<'a, K, T>(keys: &'a [K], values: &'a [T]) -> Entries<'a, K, T> {
    keys.iter().zip(values)
}

impl<'a, K, T> Cursor<'a, K, T> {
    /// Outside of the whole tree: before it for [`next`](Self::next), behind it for `next_back`.
    fn outside(root: Option<&'a Node<K, T>>) -> Self {
        match root {
            None => Self { nodes: Vec::new(), leaf: entries(&[], &[]) },
            Some(Node::Leaf { keys, values }) => Self { nodes: Vec::new(), leaf: entries(keys, values) },
            Some(Node::Inner { nodes, .. }) => {
                Self { nodes: alloc::vec![nodes.iter()], leaf: entries(&[], &[]) }
            }
        }
    }

    /// Before the first key that is not `below`.
    pub(super) fn from(root: Option<&'a Node<K, T>>, below: impl Fn(&K) -> bool) -> Self {
        let mut cursor = Self { nodes: Vec::new(), leaf: entries(&[], &[]) };
        let mut node = root;
        while let Some(here) = node {
            node = match here {
                Node::Leaf { keys, values } => {
                    let at = keys.partition_point(&below);
                    cursor.leaf = entries(&keys[at..], &values[at..]);
                    None
                }
                Node::Inner { bounds, nodes } => {
                    let mut rest = nodes[bounds.partition_point(&below)..].iter();
                    let next = rest.next().map(Arc::as_ref);
                    cursor.nodes.push(rest);
                    next
                }
            };
        }
        cursor
    }

    /// The next leaf as `step` walks, if there is one.
    fn leaf(
        &mut self,
        step: impl Fn(&mut slice::Iter<'a, Arc<Node<K, T>>>) -> Option<&'a Arc<Node<K, T>>>,
    ) -> bool {
        while let Some(level) = self.nodes.last_mut() {
            match step(level).map(Arc::as_ref) {
                None => drop(self.nodes.pop()),
                Some(Node::Inner { nodes, .. }) => self.nodes.push(nodes.iter()),
                Some(Node::Leaf { keys, values }) => {
                    self.leaf = entries(keys, values);
                    return true;
                }
            }
        }
        false
    }

    fn next_back(&mut self) -> Option<(&'a K, &'a T)> {
        loop {
            if let Some(entry) = self.leaf.next_back() {
                return Some(entry);
            }
            if !self.leaf(DoubleEndedIterator::next_back) {
                return None;
            }
        }
    }
}

impl<'a, K, T> Iterator for Cursor<'a, K, T> {
    type Item = (&'a K, &'a T);

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(entry) = self.leaf.next() {
                return Some(entry);
            }
            if !self.leaf(Iterator::next) {
                return None;
            }
        }
    }
}

/// All entries in the order of their keys.
pub(in super::super) struct Iter<'a, T> {
    front: Cursor<'a, Key, T>,
    back: Cursor<'a, Key, T>,
    /// Entries between the two.
    left: usize,
}

impl<T> Tree<Key, T> {
    pub(in super::super) fn iter(&self) -> Iter<'_, T> {
        let root = self.root.as_deref();
        Iter { front: Cursor::outside(root), back: Cursor::outside(root), left: self.len }
    }
}

impl<T> Clone for Iter<'_, T> {
    fn clone(&self) -> Self {
        Self { front: self.front.clone(), back: self.back.clone(), left: self.left }
    }
}

impl<'a, T> Iterator for Iter<'a, T> {
    type Item = (&'a Key, &'a T);

    fn next(&mut self) -> Option<Self::Item> {
        self.left = self.left.checked_sub(1)?;
        self.front.next()
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left, Some(self.left))
    }
}

impl<T> DoubleEndedIterator for Iter<'_, T> {
    fn next_back(&mut self) -> Option<Self::Item> {
        self.left = self.left.checked_sub(1)?;
        self.back.next_back()
    }
}

impl<T> ExactSizeIterator for Iter<'_, T> {}
