//! Objects as they lie in a store: whole, or packed against what the store has seen of others.

mod codec;
mod packer;

#[cfg(test)]
mod tests;

pub use packer::Packer;

use alloc::sync::Arc;
use core::fmt;

use codec::Reader;

use crate::object::{Key, Resource};

/// What objects are packed against; lives as long as one of them.
struct Dictionary(alloc::boxed::Box<[u8]>);

/// The object of which these bytes were made against this dictionary; `None` if they were not. Whatever they are, it ends.
#[must_use]
pub fn unpack<T: Resource>(bytes: &[u8], dictionary: &[u8]) -> Option<T> {
    let (mut text, start) = Reader::new(bytes).unpack(dictionary)?;
    T::from_packable(text.get_mut(start..)?)
}

/// An object as a store keeps it. [`get`](Self::get) makes it whole.
#[derive(Clone)]
pub enum Kept<T> {
    /// As it came.
    Whole(T),
    /// Packed; equal to what it was in every byte once it is whole.
    Packed(Packed),
}

/// A packed object, and what it was packed against.
#[derive(Clone)]
pub struct Packed {
    bytes: Arc<[u8]>,
    dictionary: Arc<Dictionary>,
}

/// Numbers only: what is in it may be secret.
impl fmt::Debug for Packed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Packed({} of {} bytes)", self.bytes.len(), self.total())
    }
}

impl Packed {
    /// Its bytes, and the dictionary to [`unpack`] them with.
    #[must_use]
    pub fn parts(&self) -> (&[u8], &[u8]) {
        (&self.bytes, &self.dictionary.0)
    }

    /// Bytes of the whole object.
    fn total(&self) -> usize {
        Reader::new(&self.bytes).total().unwrap_or(0)
    }
}

impl<T: fmt::Debug> fmt::Debug for Kept<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Whole(object) => object.fmt(f),
            Self::Packed(packed) => packed.fmt(f),
        }
    }
}

impl<T: Resource> Kept<T> {
    /// The object, whole.
    #[must_use]
    pub fn get(&self) -> T {
        match self {
            Self::Whole(object) => object.clone(),
            Self::Packed(packed) => {
                // Nobody else writes them, and they never change.
                unpack(&packed.bytes, &packed.dictionary.0).expect("what was packed can be unpacked")
            }
        }
    }

    pub(super) fn key(&self) -> Key {
        match self {
            Self::Whole(object) => object.key(),
            Self::Packed(_) => self.get().key(),
        }
    }

    /// The object, whole, if it is at hand.
    pub(super) fn into_whole(self) -> T {
        match self {
            Self::Whole(object) => object,
            Self::Packed(_) => self.get(),
        }
    }

    /// Bytes that are kept, and what they would be if it were whole, as far as the object can tell.
    pub(super) fn size(&self) -> PackedSize {
        match self {
            Self::Whole(_) => PackedSize::default(),
            Self::Packed(packed) => {
                PackedSize { objects: 1, kept: packed.bytes.len() as u64, whole: packed.total() as u64 }
            }
        }
    }

    /// Uid and version, without a look at the rest.
    pub(super) fn stamp(&self) -> Stamp<'_, T> {
        match self {
            Self::Whole(object) => Stamp::Whole(object),
            Self::Packed(packed) => Stamp::Read(Reader::new(&packed.bytes).stamp().unwrap_or_default()),
        }
    }

    /// Whether both are one object, as their uids say.
    pub(super) fn is_same_life(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Packed(a), Self::Packed(b)) => {
                let uid = |packed: &Packed| Reader::new(&packed.bytes).header().map(|(uid, _)| uid.to_vec());
                uid(a) == uid(b)
            }
            _ => self.stamp().uid() == other.stamp().uid(),
        }
    }
}

/// Uid and version of an object that a store keeps.
pub(super) enum Stamp<'a, T> {
    Whole(&'a T),
    Read(codec::Read),
}

impl<T: Resource> Stamp<'_, T> {
    pub(super) fn uid(&self) -> &str {
        match self {
            Self::Whole(object) => object.uid(),
            Self::Read(read) => &read.uid,
        }
    }

    pub(super) fn version(&self) -> &str {
        match self {
            Self::Whole(object) => object.resource_version(),
            Self::Read(read) => &read.version,
        }
    }
}

/// What packing has come to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PackedSize {
    /// How many objects are packed.
    pub objects: u64,
    /// Bytes that they have.
    pub kept: u64,
    /// Bytes that they would have whole.
    pub whole: u64,
}

impl core::ops::AddAssign for PackedSize {
    fn add_assign(&mut self, other: Self) {
        self.objects += other.objects;
        self.kept += other.kept;
        self.whole += other.whole;
    }
}

impl core::ops::SubAssign for PackedSize {
    fn sub_assign(&mut self, other: Self) {
        self.objects -= other.objects;
        self.kept -= other.kept;
        self.whole -= other.whole;
    }
}
