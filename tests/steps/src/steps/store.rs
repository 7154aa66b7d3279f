//! Changes into a store, and objects out of it.

use std::hint::black_box;
use std::mem;
use std::str;

use steersman_core::object::{Key, Object, OwnerReference, Resource};
use steersman_core::store::{Kept, Packer, Store};
use steersman_core::watcher::Event;

use super::{far_apart, round};
use crate::pods::{self, FIRST_VERSION};
use crate::{FEW, Prepared};

/// A store that has had its first full state.
pub(super) fn filled<T: Resource>(objects: impl Iterator<Item = T>) -> Store<T> {
    let (mut store, mut changes) = (Store::new(), Vec::new());
    store.apply(Event::Init, &mut changes);
    objects.for_each(|object| drop(store.apply(Event::InitApply(object), &mut changes)));
    store.apply(Event::InitDone { resource_version: FIRST_VERSION.to_string() }, &mut changes);
    store
}

/// An object with a version beside it: to decode each new state would cost more than the store does.
#[derive(Clone, Debug)]
struct Versioned {
    object: Object,
    version: [u8; 10],
}

impl Versioned {
    fn new(object: Object, version: u64) -> Self {
        let mut this = Self { object, version: [0; 10] };
        pods::digits(version, &mut this.version);
        this
    }
}

impl Resource for Versioned {
    fn key(&self) -> Key {
        self.object.key()
    }

    fn uid(&self) -> &str {
        self.object.uid()
    }

    fn resource_version(&self) -> &str {
        str::from_utf8(&self.version).unwrap_or_default()
    }

    fn each_owner(&self, each: &mut dyn FnMut(&OwnerReference)) {
        self.object.each_owner(each);
    }
}

pub(crate) fn store_put(objects: usize) -> Prepared {
    let objects: Vec<_> = (0..objects).map(|n| pods::small(n, FIRST_VERSION)).collect();
    let mut store = filled(objects.iter().map(|object| Versioned::new(object.clone(), FIRST_VERSION)));
    let (mut changes, mut version, mut next) = (Vec::new(), FIRST_VERSION, round(objects.len()));
    let mut held = store.snapshot();
    Prepared::new(move || {
        version += 1;
        let object = &objects[far_apart(next(), objects.len())];
        store.apply(Event::Apply(Versioned::new(object.clone(), version)), &mut changes);
        let before = mem::replace(&mut held, store.snapshot());
        let done = changes.len() == 1 && before.len() == objects.len();
        changes.clear();
        done
    })
}

pub(crate) fn store_get(objects: usize) -> Prepared {
    let store = filled((0..objects).map(|n| pods::small(n, FIRST_VERSION)));
    let keys: Vec<_> = store.iter().map(|(key, _)| key.clone()).collect();
    let mut next = round(objects);
    Prepared::new(move || black_box(store.get(black_box(&keys[far_apart(next(), objects)]))).is_some())
}

/// A packer that has seen pods enough, and some of them.
fn packer(objects: usize) -> (Packer, Vec<Object>) {
    let objects: Vec<_> = (0..objects).map(|n| pods::object(n, FIRST_VERSION)).collect();
    let mut packer = Packer::default();
    objects.iter().cycle().take(FEW).for_each(|object| drop(packer.keep(object)));
    (packer, objects)
}

pub(crate) fn pack(objects: usize) -> Prepared {
    let (mut packer, objects) = packer(objects);
    let mut next = round(objects.len());
    Prepared::new(move || matches!(packer.keep(black_box(&objects[next()])), Kept::Packed(_)))
}

pub(crate) fn unpack(objects: usize) -> Prepared {
    let (mut packer, objects) = packer(objects);
    let kept: Vec<_> = objects.iter().map(|object| packer.keep(object)).collect();
    assert!(kept.iter().all(|kept| matches!(kept, Kept::Packed(_))));
    let mut next = round(kept.len());
    Prepared::new(move || black_box(kept[next()].get()).retained_bytes() > 3_000)
}
