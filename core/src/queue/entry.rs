//! What is known of one key.

use super::Priority;
use super::index;
use super::lines::Links;
use crate::time::Time;

/// What is known of one key. It leaves when that is nothing.
#[derive(Clone, Debug)]
pub(super) struct Entry<K> {
    pub(super) key: K,
    pub(super) hash: u32,
    /// Where it stands in the index.
    pub(super) indexed: index::Place,
    pub(super) failures: u32,
    pub(super) run: Option<Running>,
    pub(super) want: Option<Want>,
    /// It is not handed out, whatever it wants.
    pub(super) on_hold: bool,
    pub(super) leaves: Leaves,
    pub(super) links: [Links; 2],
}

impl<K> Entry<K> {
    pub(super) const fn may_run(&self) -> bool {
        self.run.is_none() && !self.on_hold
    }

    pub(super) const fn says_nothing(&self) -> bool {
        self.may_run() && self.want.is_none() && self.failures == 0
    }
}

#[derive(Clone, Debug)]
pub(super) struct Running {
    pub(super) priority: Priority,
    /// Where it stands in the index of what runs, unless it is one of the few.
    pub(super) indexed: Option<index::Place>,
    /// The key was forgotten during the run: what the run asks for no longer counts.
    pub(super) forgotten: bool,
}

/// A key's wish to run.
#[derive(Clone, Debug)]
pub(super) struct Want {
    pub(super) priority: Priority,
    pub(super) since: Time,
    pub(super) place: Place,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Place {
    /// In its line and among the arrivals, since then.
    Ready(Time),
    Waiting {
        at: Time,
        seq: u64,
    },
    /// It could run if it did not run already, or were not on hold.
    Held,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Leaves {
    No,
    /// It says nothing, and is on the list of those that leave together.
    Yes,
    /// It is on that list, but has something to say again.
    NoMore,
}
