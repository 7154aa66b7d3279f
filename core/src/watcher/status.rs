//! What a watcher says about itself.

use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::sync::Arc;

use serde::{Deserialize, Serialize};

use super::BadObject;
use crate::object::Key;
use crate::time::Time;

/// What a watcher is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub enum Phase {
    /// It has not been started.
    New,
    /// It reads a full state.
    Listing,
    /// It has asked for a watch and waits for the answer.
    Connecting,
    /// A watch is open.
    Watching,
    /// A watch was silent; the server is asked for its version.
    Probing,
    /// It pauses after a failure.
    BackingOff,
    /// It was stopped.
    Stopped,
}

/// A watcher at one moment; plain values.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct WatcherStatus {
    /// What it is doing.
    pub phase: Phase,
    /// Whether a first full state is complete.
    pub synced: bool,
    /// The version up to which everything is known; empty before the first full state.
    pub last_version: String,
    /// When the last object event of a watch came.
    pub last_event: Option<Time>,
    /// Since when a watch is open.
    pub connected_since: Option<Time>,
    /// The last failure, until things go well again.
    pub last_error: Option<String>,
    /// Failures in a row, of lists or of watches, whichever are more.
    pub failures: u32,
    /// Object events of watches.
    pub events: u64,
    /// Full states after the first one.
    pub relists: u64,
    /// Watches asked for.
    pub watches: u64,
    /// Inputs that named a request which was no longer outstanding.
    pub dropped: u64,
    /// Objects that cannot be read now, as far as their keys are known; the first
    /// [`QUARANTINE`](crate::limits::QUARANTINE) of them.
    #[serde(with = "as_list")]
    pub quarantine: Arc<BTreeMap<Key, BadObject>>,
    /// Frames and items that could not be read, ever.
    pub unreadable: u64,
    /// How often the executor's time went backwards.
    pub clamped: u64,
}

/// In JSON the objects are a list: each names its key itself.
mod as_list {
    use alloc::vec::Vec;

    use serde::{Deserialize, Deserializer, Serializer};

    use super::{Arc, BTreeMap, BadObject, Key};

    pub(super) fn serialize<S: Serializer>(
        map: &Arc<BTreeMap<Key, BadObject>>,
        s: S,
    ) -> Result<S::Ok, S::Error> {
        s.collect_seq(map.values())
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        d: D,
    ) -> Result<Arc<BTreeMap<Key, BadObject>>, D::Error> {
        let list: Vec<BadObject> = Vec::deserialize(d)?;
        Ok(Arc::new(list.into_iter().filter_map(|bad| Some((bad.key.clone()?, bad))).collect()))
    }
}
