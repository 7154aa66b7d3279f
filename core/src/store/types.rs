//! What a store tells.

use alloc::sync::Arc;

use super::{Changes, Kept};
use crate::object::Resource;
use crate::time::Time;

/// One difference between two states of a store.
#[derive(Clone, Debug, PartialEq)]
pub enum Change<T> {
    /// An object that was not there.
    Added {
        /// The object.
        new: T,
        /// Whether it came with the first full state (such keys get low priority).
        initial: bool,
    },
    /// An object that was there with other content.
    Updated {
        /// Before.
        old: T,
        /// Now.
        new: T,
        /// Whether the difference was found by a list, not told by an event.
        relisted: bool,
    },
    /// An object that is no longer there.
    Deleted {
        /// Its last known state.
        old: T,
        /// The deletion was found by a list: the state may be older than the last one the server had.
        final_unknown: bool,
    },
}

impl<T: Resource> Change<Kept<T>> {
    /// The same of whole objects.
    pub(super) fn whole(self) -> Change<T> {
        match self {
            Self::Added { new, initial } => Change::Added { new: new.into_whole(), initial },
            Self::Updated { old, new, relisted } => {
                Change::Updated { old: old.into_whole(), new: new.into_whole(), relisted }
            }
            Self::Deleted { old, final_unknown } => Change::Deleted { old: old.into_whole(), final_unknown },
        }
    }
}

/// What a source hands to its subscribers: differences, and a view of the whole that already holds them.
#[derive(Clone, Debug)]
pub struct Delta<T> {
    /// The differences in order.
    pub changes: Changes<T>,
    /// The state after them.
    pub view: super::Snapshot<T>,
    /// Whether the first full state is in `view`.
    pub synced: bool,
    /// The version up to which `view` is known to be right; empty before the first full state.
    pub resource_version: Arc<str>,
    /// When the executor received the bytes.
    pub received: Time,
}
