//! From the hash of a key to the number of its slot. Lookups only: nothing goes through it in its own order, which is that of
//! secret hashes.

use alloc::vec;
use alloc::vec::Vec;
use core::fmt;
use core::hint::black_box;

use super::slots::Id;

/// A table with open addressing, whose places stand in groups of eight. Of each place there is one byte apart from the numbers: it is
/// free, or has seven bits of the hash. Of eight places these are one word. So a key that is not there is not looked for any
/// further, and a million keys have two megabytes that have to be near at hand.
#[derive(Clone, Default)]
pub(super) struct Index {
    /// A power of two of groups, or none.
    tags: Vec<u64>,
    /// By place.
    ids: Vec<Id>,
    /// Places that nobody was at since the table was made anew.
    fresh: usize,
}

/// Where a number stands in the table.
pub(super) type Place = u32;

const GROUP: usize = 8;
/// What the byte of a place is where nobody ever was, and where somebody was and a search goes on. All others are tags.
const FRESH: u64 = 0;
const LEFT: u64 = 1;
/// The lowest bit of each byte.
const LOW: u64 = 0x0101_0101_0101_0101;

/// The low bits of a hash.
const fn tag(hash: u32) -> u64 {
    let tag = hash as u64 & 0xff;
    if tag > LEFT { tag } else { tag + 2 }
}

/// The highest bit of each byte that is zero. Above one of these a byte may be taken for zero that is 1; the lowest is right.
const fn zeros(bytes: u64) -> u64 {
    bytes.wrapping_sub(LOW) & !bytes & LOW << 7
}

/// The bytes of places that can be taken.
const fn free(tags: u64) -> u64 {
    zeros(tags & !LOW)
}

/// The place of the lowest byte of `found`.
const fn place(group: usize, found: u64) -> usize {
    group * GROUP + found.trailing_zeros() as usize / 8
}

impl Index {
    pub(super) const fn new() -> Self {
        Self { tags: Vec::new(), ids: Vec::new(), fresh: 0 }
    }

    /// Empty, with room for so many.
    pub(super) fn with_room_for(len: usize) -> Self {
        let groups = (len * 8).div_ceil(7 * GROUP).max(1).next_power_of_two();
        let places = groups * GROUP;
        Self { tags: vec![0; groups], ids: vec![0; places], fresh: places - places / 8 }
    }

    /// Whether it has to be made anew before it takes in another number.
    pub(super) const fn is_full(&self) -> bool {
        self.fresh == 0
    }

    /// Where a search begins: at the high bits, which tags do not have.
    const fn home(&self, hash: u32) -> usize {
        ((hash as u64 * self.tags.len() as u64) >> 32) as usize
    }

    const fn after(&self, group: usize) -> usize {
        (group + 1) & (self.tags.len() - 1)
    }

    /// The first that `is` what is looked for of those places where something with this hash may stand.
    pub(super) fn find(&self, hash: u32, mut is: impl FnMut(Place) -> Option<Id>) -> Option<Id> {
        let mut group = self.home(hash);
        loop {
            let tags = *self.tags.get(group)?;
            let mut same = zeros(tags ^ (LOW * tag(hash)));
            while same != 0 {
                if let found @ Some(_) = is(place(group, same) as Place) {
                    return found;
                }
                same &= same - 1;
            }
            if zeros(tags) != 0 {
                return None;
            }
            group = self.after(group);
        }
    }

    /// Takes a place for what is not there, unless [`is_full`](Self::is_full). Its number has still to be [`set`](Self::set).
    pub(super) fn claim(&mut self, hash: u32) -> Place {
        let mut group = self.home(hash);
        while free(self.tags[group]) == 0 {
            group = self.after(group);
        }
        let tags = &mut self.tags[group];
        let free = free(*tags);
        let byte = free.trailing_zeros() / 8 * 8;
        self.fresh -= usize::from(*tags >> byte & 0xff == FRESH);
        *tags = *tags & !(0xff << byte) | tag(hash) << byte;
        place(group, free) as Place
    }

    /// Which number stands there.
    pub(super) fn get(&self, place: Place) -> Id {
        self.ids[place as usize]
    }

    /// This number stands there.
    pub(super) fn set(&mut self, place: Place, id: Id) {
        self.ids[place as usize] = id;
    }

    /// Takes out what stands there.
    pub(super) fn remove(&mut self, place: Place) {
        let tags = &mut self.tags[place as usize / GROUP];
        // Where a search ends already, it may end here as well.
        let left = if zeros(*tags) == 0 { LEFT } else { FRESH };
        self.fresh += usize::from(left == FRESH);
        let byte = place as usize % GROUP * 8;
        *tags = *tags & !(0xff << byte) | left << byte;
    }

    /// Fetches what says who stands at some places from memory, all at once, where one after another would wait for each.
    pub(super) fn touch_tags(&self, places: impl Iterator<Item = Place>) {
        black_box(places.fold(0, |all, place| all ^ self.tags[place as usize / GROUP]));
    }

    /// Does the same for the numbers.
    pub(super) fn touch_ids(&self, places: impl Iterator<Item = Place>) {
        black_box(places.fold(0, |all, place| all ^ self.ids[place as usize]));
    }

    /// All numbers in any order, for a table that is made anew.
    pub(super) fn ids(&self) -> impl Iterator<Item = Id> {
        let used = |place: usize| self.tags[place / GROUP] >> (place % GROUP * 8) & 0xff > LEFT;
        self.ids.iter().enumerate().filter(move |(place, _)| used(*place)).map(|(_, id)| *id)
    }

    pub(super) const fn places(&self) -> usize {
        self.ids.len()
    }
}

impl fmt::Debug for Index {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Index").field("places", &self.places()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
