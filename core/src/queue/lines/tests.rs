use alloc::vec::Vec;

use super::*;
use crate::cases::cases;
use crate::queue::{Config, Queue, Then};

fn walk<const WHICH: usize>(slots: &Slots<u8>, first: Id, on: impl Fn(Links) -> Id) -> Vec<Id> {
    let next = |id: &Id| slots.get(*id).map(|entry| on(entry.links[WHICH])).filter(|id| *id != NONE);
    successors(Some(first).filter(|id| *id != NONE), next).collect()
}

#[test]
fn a_chain_is_a_list_from_both_ends() {
    fn like_a_list(ops: Vec<u8>) {
        let mut slots = Slots::new(1);
        let ids: Vec<Id> = (0..16).map(|key| slots.enter(key)).collect();
        let (mut chain, mut list) = (Chain::<1>::EMPTY, Vec::new());
        for op in ops {
            let id = ids[usize::from(op % 16)];
            match list.iter().position(|other| *other == id) {
                Some(at) => {
                    chain.unlink(&mut slots, id);
                    list.remove(at);
                }
                None => {
                    chain.push(&mut slots, id);
                    list.push(id);
                }
            }
            assert_eq!(walk::<1>(&slots, chain.first, |links| links.after), list);
            list.reverse();
            assert_eq!(walk::<1>(&slots, chain.last, |links| links.before), list);
            list.reverse();
            assert_eq!(chain.is_empty(), list.is_empty());
            assert!(ids.iter().all(|id| slots.get(*id).unwrap().links[0].before == NONE), "the other links");
        }
    }
    cases(300).quickcheck(like_a_list as fn(Vec<u8>));
}

#[test]
fn every_priority_may_be_another_and_empty_lines_do_not_stay() {
    let mut queue = Queue::new(Config::default(), 1);
    for n in 0..2_000 {
        queue.add(Time::ZERO, n, Priority(n * 7 % 2_000));
    }
    assert_eq!(queue.lines.ready.len(), 2_000);
    for priority in (0..2_000).rev() {
        let popped = queue.pop(Time::ZERO).unwrap();
        assert_eq!(popped.priority, Priority(priority));
        queue.done(Time::ZERO, &popped.key, Then::Forget);
    }
    assert!(queue.lines.ready.len() <= FEW && queue.is_idle());
    // What stands behind empty lines is found.
    queue.add(Time::ZERO, 1, Priority(-1));
    assert_eq!(queue.pop(Time::ZERO).unwrap().priority, Priority(-1));
}
