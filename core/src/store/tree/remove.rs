//! Taking entries out of a tree.

use alloc::sync::Arc;

use super::{Node, Tree, Way, without};

/// A node below this many entries is put together with a neighbour, if both fit into [`FILL`](super::FILL).
const MIN: usize = 6;

impl<K: Ord + Clone, T: Clone> Tree<K, T> {
    /// Takes out what is at `key`.
    pub(in super::super) fn remove(&mut self, key: &K) -> Option<T> {
        let (way, _) = self.find(key);
        self.take(way)
    }

    /// Takes out what is at the end of `way`; copies nothing if there is nothing.
    pub(in super::super) fn take(&mut self, way: Way) -> Option<T> {
        let at = way.leaf.ok()?;
        let old = Arc::make_mut(self.root.as_mut()?).take(&way.nodes, at)?;
        self.len -= 1;
        if self.len == 0 {
            self.root = None;
        }
        while let Some(Node::Inner { nodes, .. }) = self.root.as_deref()
            && let [only] = &**nodes
        {
            self.root = Some(Arc::clone(only));
        }
        Some(old)
    }
}

impl<K: Clone, T: Clone> Node<K, T> {
    fn take(&mut self, way: &[usize], leaf: usize) -> Option<T> {
        match self {
            Self::Leaf { keys, values } => {
                *keys = without(keys, leaf);
                Some(values.remove(leaf))
            }
            Self::Inner { bounds, nodes } => {
                let (&at, way) = way.split_first()?;
                let old = Arc::make_mut(&mut nodes[at]).take(way, leaf)?;
                let left = nodes[at].len();
                if left == 0 {
                    nodes.remove(at);
                    if !bounds.is_empty() {
                        *bounds = without(bounds, at.saturating_sub(1));
                    }
                } else if left < MIN {
                    let fits = |n: &usize| {
                        nodes.get(n + 1).is_some_and(|up| nodes[*n].len() + up.len() <= super::FILL)
                    };
                    if let Some(at) = [Some(at), at.checked_sub(1)].into_iter().flatten().find(fits) {
                        let upper = Arc::unwrap_or_clone(nodes.remove(at + 1));
                        Arc::make_mut(&mut nodes[at]).join(&bounds[at], upper);
                        *bounds = without(bounds, at);
                    }
                }
                Some(old)
            }
        }
    }

    /// Takes in the next node, which is as far from the root; `bound` is between the two.
    fn join(&mut self, bound: &K, upper: Self) {
        match (self, upper) {
            (Self::Leaf { keys, values }, Self::Leaf { keys: k, values: v }) => {
                *keys = keys.iter().chain(&*k).cloned().collect();
                values.extend(v);
            }
            (Self::Inner { bounds, nodes }, Self::Inner { bounds: b, nodes: n }) => {
                *bounds = bounds.iter().chain([bound]).chain(&*b).cloned().collect();
                nodes.extend(n);
            }
            _ => {}
        }
    }
}
