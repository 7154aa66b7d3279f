//! Where keys stand in line: who is ready, in which order, and who waits for a moment.

use alloc::collections::BTreeMap;
use core::cmp::Reverse;
use core::iter::successors;

use super::Priority;
use super::entry::Place;
use super::slots::{Id, NONE, Renumbered, Slots};
use crate::machine::Reason;
use crate::time::Time;

/// The neighbours of an entry in a chain.
#[derive(Clone, Copy, Debug)]
pub(super) struct Links {
    before: Id,
    after: Id,
}

impl Links {
    pub(super) const NONE: Self = Self { before: NONE, after: NONE };

    pub(super) fn renumber(&mut self, new: &Renumbered) {
        *self = Self { before: new.of(self.before), after: new.of(self.after) };
    }
}

/// Entries one behind the other. The links are in them, in `links[WHICH]`, so that each can step out of the middle.
#[derive(Clone, Copy, Debug)]
pub(super) struct Chain<const WHICH: usize> {
    first: Id,
    last: Id,
}

impl<const WHICH: usize> Chain<WHICH> {
    const EMPTY: Self = Self { first: NONE, last: NONE };

    const fn is_empty(&self) -> bool {
        self.first == NONE
    }

    fn push<K>(&mut self, slots: &mut Slots<K>, id: Id) {
        let Some(entry) = slots.get_mut(id) else { return };
        entry.links[WHICH] = Links { before: self.last, after: NONE };
        match slots.get_mut(self.last) {
            Some(last) => last.links[WHICH].after = id,
            None => self.first = id,
        }
        self.last = id;
    }

    fn unlink<K>(&mut self, slots: &mut Slots<K>, id: Id) {
        let Some(entry) = slots.get_mut(id) else { return };
        let Links { before, after } = core::mem::replace(&mut entry.links[WHICH], Links::NONE);
        match slots.get_mut(before) {
            Some(before) => before.links[WHICH].after = after,
            None => self.first = after,
        }
        match slots.get_mut(after) {
            Some(after) => after.links[WHICH].before = before,
            None => self.last = before,
        }
    }

    fn renumber(&mut self, new: &Renumbered) {
        *self = Self { first: new.of(self.first), last: new.of(self.last) };
    }
}

/// The chains through the entries, and the timers. Numbers of timers are never used twice, so they make every place unique.
#[derive(Clone, Debug)]
pub(super) struct Lines {
    /// The ready ones by priority; a few lines stay though nobody stands in them.
    ready: BTreeMap<Reverse<Priority>, Chain<0>>,
    /// The same entries by arrival, for aging.
    arrivals: Chain<1>,
    len: usize,
    timers: BTreeMap<(Time, u64), (Id, Reason)>,
    next: u64,
    /// How many may still be handed out, and how many timers end, before we look ahead again.
    ready_ahead: usize,
    timers_ahead: usize,
}

/// So far we look ahead.
const AHEAD: usize = 16;

/// Whether that many were counted.
fn count_down(ahead: &mut usize) -> Option<()> {
    *ahead = ahead.checked_sub(1).unwrap_or(AHEAD - 1);
    (*ahead == AHEAD - 1).then_some(())
}

/// So many lines stay though nobody stands in them: there are seldom more than two priorities.
const FEW: usize = 8;

impl Lines {
    pub(super) const fn new() -> Self {
        Self {
            ready: BTreeMap::new(),
            arrivals: Chain::EMPTY,
            len: 0,
            timers: BTreeMap::new(),
            next: 0,
            ready_ahead: 0,
            timers_ahead: 0,
        }
    }

    /// How many are ready.
    pub(super) const fn len(&self) -> usize {
        self.len
    }

    /// How many wait.
    pub(super) fn waiting(&self) -> usize {
        self.timers.len()
    }

    /// The first of the highest priority.
    pub(super) fn best(&self) -> Option<Id> {
        let best = self.ready.first_key_value()?.1.first;
        if best != NONE {
            return Some(best);
        }
        // At most `FEW` are empty.
        self.ready.values().map(|line| line.first).find(|first| *first != NONE)
    }

    /// The one that has been ready for longest.
    pub(super) const fn oldest(&self) -> Id {
        self.arrivals.first
    }

    /// An entry that stands nowhere and wants to run is ready from now on.
    pub(super) fn ready<K>(&mut self, slots: &mut Slots<K>, now: Time, id: Id) {
        let Some(want) = slots.get_mut(id).and_then(|entry| entry.want.as_mut()) else { return };
        want.place = Place::Ready(now);
        self.ready.entry(Reverse(want.priority)).or_insert(Chain::EMPTY).push(slots, id);
        self.arrivals.push(slots, id);
        self.len += 1;
    }

    /// An entry that stands nowhere waits for `at`.
    pub(super) fn wait<K>(&mut self, slots: &mut Slots<K>, at: Time, id: Id, why: Reason) {
        let Some(want) = slots.get_mut(id).and_then(|entry| entry.want.as_mut()) else { return };
        self.next += 1;
        let seq = self.next;
        want.place = Place::Waiting { at, seq };
        self.timers.insert((at, seq), (id, why));
    }

    /// An entry with this priority leaves its place.
    pub(super) fn leave<K>(&mut self, slots: &mut Slots<K>, id: Id, priority: Priority, place: Place) {
        match place {
            Place::Ready(_) => {
                self.step_out(slots, id, priority);
                self.arrivals.unlink(slots, id);
                self.len -= 1;
            }
            Place::Waiting { at, seq } => {
                self.timers.remove(&(at, seq));
            }
            Place::Held => {}
        }
    }

    fn step_out<K>(&mut self, slots: &mut Slots<K>, id: Id, priority: Priority) {
        let Some(line) = self.ready.get_mut(&Reverse(priority)) else { return };
        line.unlink(slots, id);
        if line.is_empty() && self.ready.len() > FEW {
            self.ready.remove(&Reverse(priority));
        }
    }

    /// A ready entry moves to the end of a higher priority; it keeps its arrival.
    pub(super) fn raise<K>(&mut self, slots: &mut Slots<K>, id: Id, from: Priority, to: Priority) {
        self.step_out(slots, id, from);
        self.ready.entry(Reverse(to)).or_insert(Chain::EMPTY).push(slots, id);
    }

    /// Now and then, those that will probably be handed out next.
    pub(super) fn next_ready<K>(&mut self, slots: &Slots<K>) -> Option<[Id; AHEAD]> {
        let first = self.best()?;
        count_down(&mut self.ready_ahead)?;
        let after = |id: &Id| slots.get(*id).map(|entry| entry.links[0].after);
        let mut next = successors(Some(first), after);
        Some([(); AHEAD].map(|()| next.next().unwrap_or(NONE)))
    }

    /// Now and then, those whose timers come next.
    pub(super) fn next_waiting(&mut self) -> Option<[Id; AHEAD]> {
        count_down(&mut self.timers_ahead)?;
        let mut next = self.timers.values();
        Some([(); AHEAD].map(|()| next.next().map_or(NONE, |timer| timer.0)))
    }

    /// The next timer.
    pub(super) fn next_timer(&self) -> Option<(Time, Reason)> {
        self.timers.first_key_value().map(|(&(at, _), &(_, why))| (at, why))
    }

    /// Takes the next timer out if its time has come.
    pub(super) fn ring(&mut self, now: Time) -> Option<Id> {
        let first = self.timers.first_entry()?;
        if first.key().0 > now {
            return None;
        }
        Some(first.remove().0)
    }

    /// Drops all timers, and gives who waited for them.
    pub(super) fn drop_timers(&mut self) -> impl Iterator<Item = Id> + use<> {
        core::mem::take(&mut self.timers).into_values().map(|(id, _)| id)
    }

    /// Nobody stands in line any more.
    pub(super) fn clear(&mut self) {
        (self.ready, self.arrivals, self.len) = (BTreeMap::new(), Chain::EMPTY, 0);
    }

    pub(super) fn renumber(&mut self, new: &Renumbered) {
        self.ready.values_mut().for_each(|line| line.renumber(new));
        self.arrivals.renumber(new);
        self.timers.values_mut().for_each(|(id, _)| *id = new.of(*id));
    }
}

#[cfg(test)]
mod tests;
