use alloc::vec::Vec;

use crate::object::{Key, OwnerReference, Resource};

/// A stand-in for an object.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Obj {
    pub(crate) key: Key,
    pub(crate) uid: u32,
    pub(crate) version: alloc::string::String,
    pub(crate) owners: Vec<OwnerReference>,
}

impl Resource for Obj {
    fn key(&self) -> Key {
        self.key.clone()
    }

    fn uid(&self) -> &str {
        ""
    }

    fn resource_version(&self) -> &str {
        &self.version
    }

    fn each_owner(&self, each: &mut dyn FnMut(&OwnerReference)) {
        self.owners.iter().for_each(each);
    }
}
