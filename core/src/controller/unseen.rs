//! Read your writes: what reconciles have written and the watches have not shown yet.
//!
//! A reconcile that looks at a view which does not hold what the run before it wrote does that work twice, or undoes it. So
//! a key that has written is on hold until its sources have shown the writes, or until that takes too long. A write is
//! remembered beyond that: when its watch has caught up by a list, and the object is not there, somebody has removed it
//! unseen, and no event will ever say so.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::string::String;
use alloc::vec::Vec;
use core::cmp::Ordering;
use core::time::Duration;

use super::SourceId;
use crate::limits;
use crate::machine::{Deadline, Reason};
use crate::object::{Key, version};
use crate::time::Time;

/// What one controller waits to see.
#[derive(Debug)]
pub(super) struct Unseen {
    /// How long a key is on hold at most; zero: never.
    patience: Duration,
    writers: BTreeMap<Key, Writer>,
    /// Which source shall reach which version, for whom and what.
    versions: BTreeSet<(SourceId, Version, Key, Key)>,
    /// Which object shall leave which source's view, and for whom.
    goings: BTreeSet<(SourceId, Key, Key)>,
    /// Until when keys are on hold.
    holds: BTreeSet<(Time, Key)>,
}

/// A key whose reconcile has written.
#[derive(Debug, Default)]
struct Writer {
    /// At most one of an object in a source, the last ones last.
    writes: Vec<Write>,
    on_hold: Option<Time>,
}

/// A write that a source has not shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Write {
    pub(super) source: SourceId,
    pub(super) object: Key,
    pub(super) uid: String,
    pub(super) until: Until,
    /// It is among what its key waits for. What took too long no longer is, nor does it keep later runs waiting.
    pub(super) counts: bool,
}

/// When a write counts as shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Until {
    /// The source has reached this version.
    At(Version),
    /// The object has left the source's view; or is not there when the source has reached this version, in which it still
    /// was: then it came and went unseen.
    Gone(Option<Version>),
}

impl Until {
    const fn version(&self) -> Option<&Version> {
        match self {
            Self::At(version) | Self::Gone(Some(version)) => Some(version),
            Self::Gone(None) => None,
        }
    }

    /// Whether this state of an object comes after another one; nothing comes after its end.
    fn is_after(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Gone(_), Self::At(_)) => true,
            (Self::At(a), Self::At(b)) => a > b,
            (_, Self::Gone(_)) => false,
        }
    }
}

/// What has been shown of a key's writes.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Shown {
    pub(super) key: Key,
    pub(super) writes: Vec<Write>,
    /// Nothing keeps the key on hold any longer.
    pub(super) free: bool,
}

/// A resource version that is a number, in the order of numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Version(String);

impl Version {
    /// Before all others.
    const NONE: Self = Self(String::new());

    /// `None` for an opaque one, which cannot be waited for.
    pub(super) fn new(text: &str) -> Option<Self> {
        version::is_number(text).then(|| Self(text.into()))
    }

    pub(super) fn is(&self, text: &str) -> bool {
        self.0 == text
    }
}

impl Ord for Version {
    fn cmp(&self, other: &Self) -> Ordering {
        (self.0.len(), &self.0).cmp(&(other.0.len(), &other.0))
    }
}

impl PartialOrd for Version {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Unseen {
    pub(super) const fn new(patience: Duration) -> Self {
        Self {
            patience,
            writers: BTreeMap::new(),
            versions: BTreeSet::new(),
            goings: BTreeSet::new(),
            holds: BTreeSet::new(),
        }
    }

    /// Whether everything that was written has been shown.
    pub(super) fn is_empty(&self) -> bool {
        self.writers.is_empty()
    }

    /// Keys on hold.
    pub(super) fn on_hold(&self) -> usize {
        self.holds.len()
    }

    pub(super) fn next_deadline(&self) -> Option<Deadline> {
        self.holds.first().map(|&(at, _)| Deadline { at, why: Reason::CatchUp })
    }

    /// A run of `key` has written this, and the source has not shown it. The later state of an object takes the place of the
    /// earlier one, whatever the order of the answers; of too many writes the last are remembered.
    pub(super) fn wrote(&mut self, key: &Key, write: Write) {
        let writes = &mut self.writers.entry(key.clone()).or_default().writes;
        let same = writes.iter().position(|w| w.source == write.source && w.object == write.object);
        if let Some(known) = same.map(|at| &writes[at])
            && known.uid == write.uid
            && known.until.is_after(&write.until)
        {
            return;
        }
        let full = (writes.len() >= limits::UNSEEN_WRITES).then_some(0);
        let old = same.or(full).map(|at| writes.remove(at));
        writes.push(write.clone());
        if let Some(old) = old {
            self.unlist(key, &old);
        }
        let Write { source, object, until, .. } = write;
        if let Some(version) = until.version() {
            self.versions.insert((source, version.clone(), key.clone(), object.clone()));
        }
        if matches!(until, Until::Gone(_)) {
            self.goings.insert((source, object, key.clone()));
        }
    }

    /// The version in which a source has yet to show an object that `key` has written.
    pub(super) fn awaited(&self, key: &Key, source: SourceId, object: &Key, uid: &str) -> Option<Version> {
        let is_it = |w: &&Write| w.source == source && w.object == *object && w.uid == uid;
        self.of(key).iter().find(is_it).and_then(|w| w.until.version().cloned())
    }

    /// A run of `key` has ended. Whether the key is on hold from now on.
    pub(super) fn ended(&mut self, now: Time, key: &Key) -> bool {
        let Some(writer) = self.writers.get_mut(key) else { return false };
        let hold = writer.writes.iter().any(|w| w.counts) && !self.patience.is_zero();
        if hold {
            let until = now + self.patience;
            writer.on_hold = Some(until);
            self.holds.insert((until, key.clone()));
        }
        hold
    }

    /// The source has reached a version; `holds` tells whether its view has an object of this key and uid.
    pub(super) fn reached(
        &mut self,
        source: SourceId,
        version: &Version,
        holds: impl Fn(&Key, &str) -> bool,
    ) -> Vec<Shown> {
        let from = (source, Version::NONE, Key::cluster(""), Key::cluster(""));
        let due = self.versions.range(from..).take_while(|(s, v, ..)| *s == source && v <= version);
        let keys: BTreeSet<Key> = due.map(|(_, _, key, _)| key.clone()).collect();
        self.shown(keys, |w| {
            w.source == source
                && match &w.until {
                    Until::At(v) => v <= version,
                    Until::Gone(Some(v)) => v <= version && !holds(&w.object, &w.uid),
                    Until::Gone(None) => false,
                }
        })
    }

    /// An object has left the source's view.
    pub(super) fn gone(&mut self, source: SourceId, object: &Key, uid: &str) -> Vec<Shown> {
        let from = (source, object.clone(), Key::cluster(""));
        let due = self.goings.range(from..).take_while(|(s, o, _)| (*s, o) == (source, object));
        let keys: BTreeSet<Key> = due.map(|(_, _, key)| key.clone()).collect();
        let is_it = |w: &Write| w.source == source && w.object == *object && w.uid == uid;
        self.shown(keys, |w| is_it(w) && matches!(w.until, Until::Gone(_)))
    }

    /// The source went back in time: what was written before may be gone, and its versions never come.
    pub(super) fn restored(&mut self, source: SourceId) -> Vec<Shown> {
        let is_of = |writer: &Writer| writer.writes.iter().any(|w| w.source == source);
        let keys = self.writers.iter().filter(|(_, w)| is_of(w)).map(|(key, _)| key.clone()).collect();
        self.shown(keys, |w| w.source == source)
    }

    /// Keys that have been on hold for too long; they are no longer.
    pub(super) fn overdue(&mut self, now: Time) -> Vec<Key> {
        let mut keys = Vec::new();
        while self.holds.first().is_some_and(|(at, _)| *at <= now) {
            let Some((_, key)) = self.holds.pop_first() else { break };
            if let Some(writer) = self.writers.get_mut(&key) {
                writer.on_hold = None;
                writer.writes.iter_mut().for_each(|w| w.counts = false);
            }
            keys.push(key);
        }
        keys
    }

    /// What has not been shown to a key.
    pub(super) fn of(&self, key: &Key) -> &[Write] {
        self.writers.get(key).map_or(&[], |w| &w.writes)
    }

    /// The key is gone; nobody reads what it wrote.
    pub(super) fn forget(&mut self, key: &Key) {
        let Some(writer) = self.writers.remove(key) else { return };
        writer.writes.iter().for_each(|write| self.unlist(key, write));
        if let Some(until) = writer.on_hold {
            self.holds.remove(&(until, key.clone()));
        }
    }

    /// Nothing is waited for any longer.
    pub(super) fn clear(&mut self) {
        *self = Self::new(self.patience);
    }

    fn shown(&mut self, keys: BTreeSet<Key>, which: impl Fn(&Write) -> bool) -> Vec<Shown> {
        let mut all = Vec::new();
        for key in keys {
            let Some(writer) = self.writers.get_mut(&key) else { continue };
            let (writes, left): (Vec<_>, _) =
                core::mem::take(&mut writer.writes).into_iter().partition(&which);
            writer.writes = left;
            let free = !writer.writes.iter().any(|w| w.counts);
            let held = if free { writer.on_hold.take() } else { None };
            let over = writer.writes.is_empty();
            if let Some(until) = held {
                self.holds.remove(&(until, key.clone()));
            }
            writes.iter().for_each(|write| self.unlist(&key, write));
            if over {
                self.writers.remove(&key);
            }
            all.push(Shown { key, writes, free });
        }
        all
    }

    fn unlist(&mut self, key: &Key, Write { source, object, until, .. }: &Write) {
        if let Some(version) = until.version() {
            self.versions.remove(&(*source, version.clone(), key.clone(), object.clone()));
        }
        if matches!(until, Until::Gone(_)) {
            self.goings.remove(&(*source, object.clone(), key.clone()));
        }
    }
}
