//! Objects as the runtime sees them: a key, a uid, a version, owners; everything else stays raw JSON.

mod dropped;
mod error;
mod key;
mod meta;
mod pack;
mod parts;
mod raw;
mod reads;
mod scan;
mod strings;
pub mod version;

pub use dropped::{DropError, Dropped};
pub use error::ObjectError;
pub use key::Key;
pub use meta::{ObjectMeta, add_finalizer, controller_owner_reference, owner_reference, remove_finalizer};
pub use raw::{Object, ObjectOptions};
pub use reads::{Meter, Reads};
pub use strings::{Annotations, Finalizers, Labels};

pub(crate) use error::without_values;
pub(crate) use meta::nullable;
pub(crate) use parts::{Parts, Salvage};
pub(crate) use scan::{Scanner, SyntaxError, Token};

use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

/// What a machine must know of an object to decide. Production uses [`Object`]; tests, fuzzing and simulation may use
/// something of twenty bytes. Cloning must be cheap.
pub trait Resource: Clone {
    /// Namespace and name.
    fn key(&self) -> Key;
    /// `metadata.uid`; empty if there is none.
    fn uid(&self) -> &str;
    /// `metadata.resourceVersion`; empty if there is none.
    fn resource_version(&self) -> &str;
    /// Calls `each` for every owner reference.
    fn each_owner(&self, each: &mut dyn FnMut(&OwnerReference));
    /// The same object, of which `meter` counts what is read, if it is of a kind that can be counted.
    #[must_use]
    fn metered(self, meter: &Arc<Meter>) -> Self {
        let _ = meter;
        self
    }

    /// Appends all that [`from_packable`](Self::from_packable) makes the same object of, for a compact store
    /// ([`Store::compact`](crate::store::Store::compact)), and says so. By default it says that it cannot, and is kept whole.
    /// Whoever says that it can must read these bytes there.
    fn to_packable(&self, out: &mut Vec<u8>) -> bool {
        let _ = out;
        false
    }

    /// The object of which [`to_packable`](Self::to_packable) made these bytes; `None` if they are of none.
    #[must_use]
    fn from_packable(bytes: &mut [u8]) -> Option<Self> {
        let _ = bytes;
        None
    }
}

/// One entry of `metadata.ownerReferences`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct OwnerReference {
    /// Group and version, as `apps/v1` or `v1`.
    pub api_version: String,
    /// The owner's kind.
    pub kind: String,
    /// The owner's name; it lives in the dependent's namespace, or is cluster-scoped.
    pub name: String,
    /// The owner's uid.
    pub uid: String,
    /// Whether this owner manages the object; at most one may.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub controller: Option<bool>,
    /// Whether a foreground deletion of the owner waits for this object.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub block_owner_deletion: Option<bool>,
}

#[cfg(test)]
mod tests;
