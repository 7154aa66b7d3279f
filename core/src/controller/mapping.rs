//! From a change to the keys that it concerns.

use super::config::{Mapping, Source};
use crate::api::{ResourceType, Scope};
use crate::object::{Key, OwnerReference, Resource};
use crate::store::Change;

/// The object that a change is about, as it was last known.
pub(crate) fn subject<T>(change: &Change<T>) -> &T {
    match change {
        Change::Added { new, .. } | Change::Updated { new, .. } => new,
        Change::Deleted { old, .. } => old,
    }
}

/// Whether every change of `source` concerns the object that it is about, and no other.
pub(super) fn concerns_itself<T>(source: &Source<T>) -> bool {
    matches!(source.mapping, Mapping::Primary) && source.predicates.is_empty()
}

/// Calls `each` for every key of the primary resource that `change` concerns: with the new state's and the old
/// state's keys, since what no longer points to an owner concerned it.
pub(super) fn concerned<T: Resource>(
    source: &Source<T>,
    change: &Change<T>,
    primary: Scope,
    each: &mut dyn FnMut(Key),
) {
    if !matches!(change, Change::Deleted { .. }) && !source.predicates.iter().all(|p| p(change)) {
        return;
    }
    let mut of = |object: &T| match &source.mapping {
        Mapping::Primary => each(normal(object.key(), primary)),
        Mapping::Owner { of, controller_only } => {
            let child = object.key();
            object.each_owner(&mut |owner| {
                if let Some(key) = owner_key(owner, &child, of, *controller_only) {
                    each(key);
                }
            });
        }
        Mapping::Map(map) => {
            for key in map(object) {
                each(normal(key, primary));
            }
        }
    };
    match change {
        Change::Added { new, .. } => of(new),
        Change::Deleted { old, .. } => of(old),
        Change::Updated { old, new, .. } => {
            of(new);
            if !matches!(source.mapping, Mapping::Primary) {
                of(old);
            }
        }
    }
}

/// One object has one key: a cluster-scoped one has no namespace, whoever names it.
pub(super) fn normal(key: Key, scope: Scope) -> Key {
    match scope {
        Scope::Cluster if key.namespace().is_some() => Key::cluster(key.name()),
        Scope::Cluster | Scope::Namespaced => key,
    }
}

fn owner_key(owner: &OwnerReference, child: &Key, of: &ResourceType, controller_only: bool) -> Option<Key> {
    let group = owner.api_version.split_once('/').map_or("", |(group, _)| group);
    if owner.kind != of.kind
        || group != of.group
        || owner.name.is_empty()
        || (controller_only && owner.controller != Some(true))
    {
        return None;
    }
    match of.scope {
        Scope::Cluster => Some(Key::cluster(&owner.name)),
        // A cluster-scoped object cannot have an owner in a namespace.
        Scope::Namespaced => Some(Key::namespaced(child.namespace()?, &owner.name)),
    }
}
