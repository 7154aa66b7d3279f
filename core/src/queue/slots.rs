//! The entries of all keys, in slots with numbers.

use alloc::vec::Vec;
use core::fmt;
use core::hash::Hash;
use core::hint::black_box;

use super::Priority;
use super::entry::{Entry, Leaves, Running};
use super::hash::Secret;
use super::index::{self, Index};
use super::lines::Links;

/// The number of a slot. It means the same key until that leaves, or [`Slots::shrink`] gives new numbers.
pub(super) type Id = u32;

/// No slot at all.
pub(super) const NONE: Id = Id::MAX;

#[derive(Clone)]
enum Slot<K> {
    Free { next: Id },
    Used(Entry<K>),
}

/// Slots, and where those are that nobody uses.
#[derive(Clone)]
pub(super) struct Slots<K> {
    secret: Secret,
    index: Index,
    /// Those that came last, whose numbers the index does not know yet.
    young: Vec<(index::Place, Id)>,
    /// What runs. That is little, and so near at hand when a run ends: a few are soon looked through, all others are in an index.
    few_run: Vec<Id>,
    running: Index,
    slots: Vec<Slot<K>>,
    /// The first free slot; each knows the next.
    free: Id,
    used: usize,
    /// Keys that say nothing any more, and a few that do again.
    leaving: Vec<Id>,
    /// How many of them say nothing.
    gone: usize,
}

/// With many keys the index is far from the processor. So what can wait is done for several keys together, and their parts of it
/// are fetched from memory at once: the numbers of those that came last, and those who leave.
const TOGETHER: usize = 32;

/// Entries of so many keys, and what belongs to them, fit in the second cache of a processor.
const FAR: usize = 8_192;

/// So many that run need no index.
const FEW_RUN: usize = 8;

/// So few slots are not given back.
const FEW: usize = 128;
/// Nor are they as long as one in so many is used.
const SPARSE: usize = 8;

impl<K> Slots<K> {
    pub(super) const fn new(seed: u64) -> Self {
        Self {
            secret: Secret::new(seed),
            index: Index::new(),
            young: Vec::new(),
            few_run: Vec::new(),
            running: Index::new(),
            slots: Vec::new(),
            free: NONE,
            used: 0,
            leaving: Vec::new(),
            gone: 0,
        }
    }

    pub(super) fn get(&self, id: Id) -> Option<&Entry<K>> {
        match self.slots.get(id as usize) {
            Some(Slot::Used(entry)) => Some(entry),
            _ => None,
        }
    }

    pub(super) fn get_mut(&mut self, id: Id) -> Option<&mut Entry<K>> {
        match self.slots.get_mut(id as usize) {
            Some(Slot::Used(entry)) => Some(entry),
            _ => None,
        }
    }

    /// Keys of which something is known.
    pub(super) const fn known(&self) -> usize {
        self.used - self.gone
    }

    /// All of them, in the order of their numbers.
    pub(super) fn iter(&self) -> impl Iterator<Item = (Id, &Entry<K>)> {
        let entries = (0..self.slots.len() as Id).filter_map(|id| Some((id, self.get(id)?)));
        entries.filter(|(_, entry)| entry.leaves != Leaves::Yes)
    }
}

impl<K: Eq + Hash> Slots<K> {
    pub(super) fn find(&self, key: &K) -> Option<Id> {
        self.find_hashed(self.secret.hash(key), key)
    }

    /// The same if it runs.
    pub(super) fn find_running(&self, key: &K) -> Option<Id> {
        if let Some(few) =
            self.few_run.iter().find(|id| self.get(**id).is_some_and(|entry| entry.key == *key))
        {
            return Some(*few);
        }
        if self.running.places() == 0 {
            return None;
        }
        let hash = self.secret.hash(key);
        self.running.find(hash, |place| self.check(self.running.get(place), hash, key))
    }

    fn find_hashed(&self, hash: u32, key: &K) -> Option<Id> {
        self.index.find(hash, |place| {
            let young = self.young.iter().find(|young| young.0 == place);
            self.check(young.map_or_else(|| self.index.get(place), |young| young.1), hash, key)
        })
    }

    fn check(&self, id: Id, hash: u32, key: &K) -> Option<Id> {
        self.get(id).filter(|entry| entry.hash == hash && entry.key == *key).map(|_| id)
    }

    /// The slot of a key, which it is given if it has none. Something must then be said of it.
    pub(super) fn enter(&mut self, key: K) -> Id {
        let hash = self.secret.hash(&key);
        if let Some(id) = self.find_hashed(hash, &key) {
            if let Some(entry) = self.get_mut(id)
                && entry.leaves == Leaves::Yes
            {
                entry.leaves = Leaves::NoMore;
                self.gone -= 1;
            }
            return id;
        }
        if self.index.is_full() {
            self.index_anew();
        }
        if self.young.len() >= TOGETHER {
            self.grow_up();
        }
        let indexed = self.index.claim(hash);
        let entry = Slot::Used(Entry {
            key,
            hash,
            indexed,
            failures: 0,
            run: None,
            want: None,
            on_hold: false,
            leaves: Leaves::No,
            links: [Links::NONE; 2],
        });
        self.used += 1;
        let id = match self.slots.get_mut(self.free as usize) {
            Some(slot) => {
                let id = self.free;
                if let Slot::Free { next } = *slot {
                    self.free = next;
                }
                *slot = entry;
                id
            }
            None => {
                // Before that, memory is at an end.
                let id = Id::try_from(self.slots.len()).ok().filter(|id| *id != NONE);
                self.slots.push(entry);
                id.expect("fewer than 2^32 keys")
            }
        };
        self.young.push((indexed, id));
        id
    }

    /// Fetches keys from memory, all at once, that will soon be needed.
    pub(super) fn fetch(&self, ids: &[Id])
    where
        K: Ord,
    {
        let entries = ids.iter().filter_map(|id| self.get(*id));
        black_box(entries.fold(0, |all, entry| all ^ entry.hash));
        for pair in ids.chunks_exact(2) {
            // To compare two is to look at both, and does not wait for what is seen there.
            if let (Some(a), Some(b)) = (self.get(pair[0]), self.get(pair[1])) {
                black_box(a.key.cmp(&b.key));
            }
        }
    }

    /// Whether so much is known that little of it is near at hand.
    pub(super) const fn is_far(&self) -> bool {
        self.slots.len() > FAR
    }

    fn grow_up(&mut self) {
        self.index.touch_ids(self.young.iter().map(|young| young.0));
        for (place, id) in self.young.drain(..) {
            self.index.set(place, id);
        }
    }

    /// An index with room for half as many again.
    fn index_anew(&mut self) {
        self.index = Index::with_room_for(self.used + self.used / 2 + 1);
        self.young.clear();
        for (id, slot) in (0..).zip(&mut self.slots) {
            if let Slot::Used(entry) = slot {
                entry.indexed = self.index.claim(entry.hash);
                self.index.set(entry.indexed, id);
            }
        }
    }

    /// A run of the key begins.
    pub(super) fn begin(&mut self, id: Id, priority: Priority) {
        let Some(entry) = self.get_mut(id) else { return };
        entry.run = Some(Running { priority, indexed: None, forgotten: false });
        if self.few_run.len() < FEW_RUN {
            self.few_run.push(id);
            return;
        }
        if self.running.is_full() {
            let old = core::mem::take(&mut self.running);
            self.running = Index::with_room_for(old.ids().count() * 3 / 2 + 1);
            old.ids().for_each(|id| self.index_run(id));
        }
        self.index_run(id);
    }

    fn index_run(&mut self, id: Id) {
        if let Some(Slot::Used(Entry { hash, run: Some(run), .. })) = self.slots.get_mut(id as usize) {
            let place = self.running.claim(*hash);
            self.running.set(place, id);
            run.indexed = Some(place);
        }
    }

    /// The run of the key ends, if there is one.
    pub(super) fn end(&mut self, id: Id) -> Option<Running> {
        let run = self.get_mut(id)?.run.take()?;
        match run.indexed {
            Some(place) => self.running.remove(place),
            None => self.few_run.retain(|few| *few != id),
        }
        Some(run)
    }

    /// If the key says nothing any more, it leaves.
    pub(super) fn tidy(&mut self, id: Id) {
        let Some(entry) = self.get_mut(id).filter(|entry| entry.says_nothing()) else { return };
        let before = core::mem::replace(&mut entry.leaves, Leaves::Yes);
        if before != Leaves::Yes {
            self.gone += 1;
        }
        if before == Leaves::No {
            self.leaving.push(id);
        }
    }

    /// Whether it is time for [`leave`](Self::leave).
    pub(super) const fn many_leave(&self) -> bool {
        self.leaving.len() >= TOGETHER
    }

    /// Takes those out that say nothing.
    pub(super) fn leave(&mut self) {
        self.grow_up();
        let mut leaving = core::mem::take(&mut self.leaving);
        for together in leaving.chunks(TOGETHER) {
            self.index.touch_tags(together.iter().filter_map(|id| self.get(*id)).map(|entry| entry.indexed));
            // The first of them will be the first to be used again: so neighbours in line are neighbours in memory.
            together.iter().rev().for_each(|id| self.remove(*id));
        }
        self.gone = 0;
        leaving.clear();
        leaving.shrink_to(TOGETHER);
        self.leaving = leaving;
    }

    fn remove(&mut self, id: Id) {
        let Some(slot) = self.slots.get_mut(id as usize) else { return };
        let Slot::Used(entry) = slot else { return };
        if entry.leaves == Leaves::Yes {
            self.index.remove(entry.indexed);
            *slot = Slot::Free { next: self.free };
            self.free = id;
            self.used -= 1;
        } else {
            entry.leaves = Leaves::No;
        }
    }

    /// Nothing more is known of what does not run, and no wish of what does.
    pub(super) fn keep_running(&mut self) {
        for id in 0..self.slots.len() as Id {
            let Some(entry) = self.get_mut(id) else { continue };
            entry.want = None;
            if entry.run.is_none() {
                entry.failures = 0;
                entry.on_hold = false;
            }
            self.tidy(id);
        }
    }

    /// Gives memory back if far more keys were here once. Then all have new numbers: those by which the old ones are told.
    pub(super) fn shrink(&mut self) -> Option<Renumbered> {
        if self.slots.len() <= FEW || self.used > self.slots.len() / SPARSE || !self.leaving.is_empty() {
            return None;
        }
        let mut new = Vec::new();
        new.resize(self.slots.len(), NONE);
        let used = self.slots.iter().zip(&mut new).filter(|(slot, _)| matches!(slot, Slot::Used(_)));
        (0..).zip(used).for_each(|(id, (_, new))| *new = id);
        let new = Renumbered(new);
        let mut slots = Vec::with_capacity(2 * self.used);
        for slot in core::mem::take(&mut self.slots) {
            if let Slot::Used(mut entry) = slot {
                for links in &mut entry.links {
                    links.renumber(&new);
                }
                slots.push(Slot::Used(entry));
            }
        }
        (self.slots, self.free) = (slots, NONE);
        self.index_anew();
        let running = core::mem::take(&mut self.running);
        let indexed = running.ids().count();
        if indexed > 0 {
            self.running = Index::with_room_for(indexed * 3 / 2 + 1);
            running.ids().for_each(|id| self.index_run(new.of(id)));
        }
        self.few_run.iter_mut().for_each(|id| *id = new.of(*id));
        Some(new)
    }
}

/// New numbers by old ones.
pub(super) struct Renumbered(Vec<Id>);

impl Renumbered {
    pub(super) fn of(&self, id: Id) -> Id {
        self.0.get(id as usize).map_or(NONE, |new| *new)
    }
}

impl<K: fmt::Debug> fmt::Debug for Slots<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}

#[cfg(test)]
mod tests;
