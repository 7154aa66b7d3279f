//! What a source says about itself.

use alloc::string::String;

use serde::{Deserialize, Serialize};

use crate::controller::WatchSpec;
use crate::store::PackedSize;
use crate::watcher::WatcherStatus;

/// Where one watch stands.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SourceStatus {
    /// What is watched.
    pub watch: WatchSpec,
    /// The path of its lists.
    pub path: String,
    /// The watcher's own view.
    pub watcher: WatcherStatus,
    /// How many objects are known.
    pub objects: usize,
    /// Events at or below the stored version of their object.
    pub stale: u64,
    /// How often index functions have panicked; the objects are not found by those indexes.
    pub index_panics: u64,
    /// What packing its objects has come to.
    #[serde(default)]
    pub packed: PackedSize,
}
