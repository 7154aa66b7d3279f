use alloc::collections::BTreeMap;
use alloc::format;
use alloc::vec::Vec;

use super::*;
use crate::object::Key;
use crate::rng::Rng;

fn key(n: u64) -> Key {
    Key::namespaced(&format!("n{}", n % 7), &format!("{n:05}"))
}

/// How far the leaves are from the root.
fn depth(tree: &Tree<Key, u64>) -> usize {
    fn check(node: &Node<Key, u64>, within: (Option<&Key>, Option<&Key>)) -> usize {
        assert!((1..=MAX).contains(&node.len()));
        let ordered = |keys: &[Key]| {
            assert!(keys.is_sorted_by(|a, b| a < b));
            assert!(within.0.is_none_or(|low| keys.first().is_none_or(|k| low <= k)));
            assert!(within.1.is_none_or(|high| keys.last().is_none_or(|k| k < high)));
        };
        match node {
            Node::Leaf { keys, values } => {
                ordered(keys);
                assert_eq!(keys.len(), values.len());
                0
            }
            Node::Inner { bounds, nodes } => {
                ordered(bounds);
                assert_eq!(bounds.len() + 1, nodes.len());
                let low = core::iter::once(within.0).chain(bounds.iter().map(Some));
                let high = bounds.iter().map(Some).chain([within.1]);
                let mut depths = nodes.iter().zip(low.zip(high)).map(|(node, within)| check(node, within));
                let first = depths.next().unwrap();
                assert!(depths.all(|depth| depth == first));
                first + 1
            }
        }
    }
    tree.root.as_deref().map_or(0, |root| check(root, (None, None)))
}

#[test]
fn a_tree_agrees_with_a_map_at_size() {
    let mut rng = Rng::new(3);
    let (mut tree, mut map) = (Tree::default(), BTreeMap::new());
    let mut copies = Vec::new();
    let mut deepest = 0;
    // Grow to thousands, then shrink: splits, joins and empty nodes all happen.
    for step in 0..50_000u64 {
        let k = key(rng.below(6_000));
        let growing = step < 20_000;
        if rng.below(10) < if growing { 8 } else { 2 } {
            assert_eq!(tree.insert(k.clone(), step), map.insert(k, step));
        } else {
            assert_eq!(tree.remove(&k), map.remove(&k));
        }
        if step % 2_000 == 0 {
            deepest = deepest.max(depth(&tree));
            copies.push((tree.clone(), map.clone()));
        }
    }
    assert!(deepest >= 3);
    while let Some((k, _)) = map.pop_first() {
        assert!(tree.remove(&k).is_some() && tree.remove(&k).is_none());
        depth(&tree);
    }
    assert!(tree.root.is_none());
    copies.push((tree, map));
    for (tree, map) in copies {
        assert_eq!(tree.len(), map.len());
        assert!(tree.iter().eq(map.iter()) && tree.iter().rev().eq(map.iter().rev()));
        let from = key(rng.below(6_000));
        assert!(tree.iter_from(|k| *k < from).eq(map.range(&from..)));
        let built = Tree::from_sorted(map.clone().into_iter());
        depth(&built);
        assert!(built.iter().eq(map.iter()) && built.iter().len() == map.len());
        for n in (0..6_000).step_by(37) {
            assert_eq!(tree.get(&key(n)), map.get(&key(n)));
            assert_eq!(built.get(&key(n)), map.get(&key(n)));
        }
        // From both ends in any order, until they meet.
        let (mut ours, mut theirs) = (tree.iter(), map.iter());
        loop {
            let (a, b) = if rng.below(2) == 0 {
                (ours.next(), theirs.next())
            } else {
                (ours.next_back(), theirs.next_back())
            };
            assert_eq!(a, b);
            assert_eq!(ours.len(), theirs.len());
            if a.is_none() {
                break;
            }
        }
    }
}

/// The nodes of a tree.
fn nodes<'a>(node: &'a Arc<Node<Key, u64>>, all: &mut Vec<&'a Arc<Node<Key, u64>>>) {
    all.push(node);
    if let Node::Inner { nodes: below, .. } = &**node {
        below.iter().for_each(|node| nodes(node, all));
    }
}

#[test]
fn a_write_after_a_copy_clones_one_path() {
    let mut tree = Tree::from_sorted((0..10_000).map(|n| (Key::cluster(&format!("{n:05}")), n)));
    let before = tree.clone();
    tree.insert(Key::cluster("05000"), 0);
    let (mut old, mut new) = (Vec::new(), Vec::new());
    nodes(before.root.as_ref().unwrap(), &mut old);
    nodes(tree.root.as_ref().unwrap(), &mut new);
    let copied: Vec<_> = old.iter().zip(&new).filter(|(a, b)| !Arc::ptr_eq(a, b)).collect();
    assert_eq!(copied.len(), depth(&tree) + 1);
    // Another value at a key that was there leaves all keys where they are.
    for (a, b) in copied {
        let (Node::Leaf { keys: a, .. } | Node::Inner { bounds: a, .. }) = &***a;
        let (Node::Leaf { keys: b, .. } | Node::Inner { bounds: b, .. }) = &***b;
        assert!(Arc::ptr_eq(a, b));
    }
    // What is not there is taken out without a copy.
    let before = tree.clone();
    assert_eq!(tree.remove(&Key::cluster("x")), None);
    assert!(Arc::ptr_eq(before.root.as_ref().unwrap(), tree.root.as_ref().unwrap()));
}
