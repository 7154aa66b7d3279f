//! The controller: ConfigMaps labelled `mirror=true` are mirrored as Secrets.
//!
//! A Secret has the name, the namespace and the keys of its ConfigMap, and is owned by it: when the ConfigMap goes, the
//! cluster's garbage collector takes the Secret along, so nothing is written here. Whatever else happens to the Secret
//! is repaired. A Secret of that name that belongs to somebody else is never touched.
//!
//! All of it is one pure function of the ConfigMap, the views and the answers; see [`Mirror`].

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};
use steersman_core::api::kinds::{ByteString, ConfigMap, SECRETS, Secret};
use steersman_core::api::{Api, DeleteParams, Kind as _, Patch, PatchParams, PostParams, Status};
use steersman_core::controller::plan::{Answered, Failure, Plan, Planning, Step};
use steersman_core::controller::{Action, Builder, SourceId, WatchSpec};
use steersman_core::object::{Key, Object, ObjectMeta, controller_owner_reference};

/// The label that asks for a mirror, if its value is `true`.
pub const MIRROR: &str = "mirror";
/// The label of a mirror; its value is the uid of the ConfigMap. By it a mirror is known whose owner reference was
/// lost, and `kubectl get secrets -l mirror-of` shows them all.
pub const MIRROR_OF: &str = "mirror-of";
/// Who the fields that are written belong to.
pub const FIELD_MANAGER: &str = "configmap-mirror";

/// The Secrets, as far as the ConfigMaps that own them are concerned.
const OWNED: SourceId = SourceId(1);

/// The plan. It has no state: the cluster is the state.
#[derive(Clone, Copy, Debug, Default)]
pub struct Mirror;

/// What the controller watches: one watch of ConfigMaps, one of Secrets. `None` is all namespaces.
///
/// ConfigMaps are not watched by label: one that loses its label must be seen, for its Secret must go.
#[must_use]
pub fn controller(namespace: Option<&str>) -> Builder<ConfigMap> {
    let spec = |resource| match namespace {
        Some(namespace) => WatchSpec::all(resource).within(namespace),
        None => WatchSpec::all(resource),
    };
    Builder::of(spec(ConfigMap::resource_type()))
        .named("configmap-mirror")
        .owns(spec(SECRETS))
        // A foreign Secret in the way has no owner that would lead to the ConfigMap; when it goes, the way is free.
        .watches(spec(SECRETS), namesake)
}

/// The ConfigMap of the same name, unless the owner reference leads there already.
fn namesake(secret: &Object) -> Vec<Key> {
    match secret.controller_owner() {
        Some(owner) if owner.kind == "ConfigMap" => Vec::new(),
        _ => vec![Key::namespaced(secret.namespace().unwrap_or_default(), secret.name())],
    }
}

impl Plan for Mirror {
    fn plan(&self, cx: &Planning<'_>) -> Result<Step, Failure> {
        if let Some(answer) = cx.answers().first() {
            return settle(answer);
        }
        let map = cx.object();
        if map.is_deleting() {
            return wait();
        }
        let secret = cx.view(OWNED).get(&cx.key());
        match (map.label(MIRROR) == Some("true"), &secret) {
            (true, None) => create(map),
            (true, Some(secret)) if secret.is_deleting() => wait(),
            (true, Some(secret)) => match whose(secret, map) {
                Whose::Ours => repair(map, secret),
                // The garbage collector is about to take it; its deletion leads here again.
                Whose::Predecessor => wait(),
                Whose::Foreign(owner) => Err(Failure::terminal(format!(
                    "secret {} is not ours but {owner}; it is left alone",
                    cx.key()
                ))),
            },
            (false, Some(secret)) if !secret.is_deleting() && whose(secret, map) == Whose::Ours => {
                Ok(Step::send([delete(secret)]))
            }
            (false, _) => wait(),
        }
    }
}

fn wait() -> Result<Step, Failure> {
    Ok(Step::Done(Action::await_change()))
}

/// What follows from the answer to the one request of a run.
fn settle(answer: &Answered) -> Result<Step, Failure> {
    match answer {
        Ok(_) => wait(),
        // It was gone before our change; the watch is about to say so.
        Err(e) if e.status().is_some_and(Status::is_object_not_found) => wait(),
        // The ConfigMap is about to go as well.
        Err(e) if e.status().is_some_and(Status::is_namespace_terminating) => wait(),
        // Among others, the view was old: another version, or a Secret that it did not show.
        Err(e) => Err(e.into()),
    }
}

#[derive(Debug, PartialEq, Eq)]
enum Whose {
    /// It mirrors this ConfigMap.
    Ours,
    /// It mirrors an earlier ConfigMap of the same name.
    Predecessor,
    /// It belongs to somebody else; to whom, in words.
    Foreign(String),
}

fn whose(secret: &Object, map: &Object) -> Whose {
    match secret.controller_owner() {
        Some(owner) if owner.uid == map.uid() => Whose::Ours,
        Some(owner) if owner.kind == map.kind() && owner.name == map.name() => Whose::Predecessor,
        Some(owner) => Whose::Foreign(format!("{} {}'s", owner.kind, owner.name)),
        None if secret.label(MIRROR_OF) == Some(map.uid()) => Whose::Ours,
        None => Whose::Foreign("nobody's".to_owned()),
    }
}

/// What the Secret shall hold.
fn wanted(map: &Object) -> Result<BTreeMap<String, ByteString>, Failure> {
    let map: ConfigMap = map.parse()?;
    let text = map.data.into_iter().map(|(key, text)| (key, ByteString(text.into_bytes())));
    Ok(text.chain(map.binary_data).collect())
}

fn api(object: &Object) -> Api<Secret> {
    Api::namespaced(object.namespace().unwrap_or_default())
}

fn create(map: &Object) -> Result<Step, Failure> {
    let secret = Secret {
        metadata: ObjectMeta::named(map.namespace().unwrap_or_default(), map.name())
            .label(MIRROR_OF, map.uid())
            .owner(controller_owner_reference(map)),
        data: wanted(map)?,
        ..Secret::default()
    };
    let params = PostParams { field_manager: Some(FIELD_MANAGER.into()), ..PostParams::default() };
    Ok(Step::send([api(map).create_with(&secret, &params).into_raw()]))
}

/// Only this very Secret as it was seen: neither a namesake nor a version that somebody else has taken over.
fn delete(secret: &Object) -> steersman_core::api::Request<steersman_core::api::Raw> {
    let params = DeleteParams::background().only_uid(secret.uid()).only_version(secret.resource_version());
    api(secret).delete(secret.name(), &params).into_raw()
}

/// Writes what differs, and nothing if nothing does.
fn repair(map: &Object, secret: &Object) -> Result<Step, Failure> {
    let wanted = wanted(map)?;
    let Secret { data: found, immutable, .. } = secret.parse()?;
    let mut patch = Map::new();
    let mut data = Map::new();
    for (key, bytes) in wanted.iter().filter(|(key, bytes)| found.get(*key) != Some(bytes)) {
        data.insert(key.clone(), serde_json::to_value(bytes).map_err(|e| Failure::terminal(e.to_string()))?);
    }
    data.extend(found.keys().filter(|key| !wanted.contains_key(*key)).map(|key| (key.clone(), Value::Null)));
    if !data.is_empty() {
        if immutable == Some(true) {
            // Nobody can change it; the next run makes another.
            return Ok(Step::send([delete(secret)]));
        }
        patch.insert("data".into(), data.into());
    }
    let mut metadata = Map::new();
    if secret.label(MIRROR_OF) != Some(map.uid()) {
        metadata.insert("labels".into(), json!({ MIRROR_OF: map.uid() }));
    }
    if secret.controller_owner().is_none_or(|owner| owner.uid != map.uid()) {
        // A merge patch replaces lists whole.
        let mut owners = secret.owner_references();
        owners.retain(|owner| owner.uid != map.uid());
        owners.push(controller_owner_reference(map));
        metadata.insert("ownerReferences".into(), json!(owners));
    }
    if patch.is_empty() && metadata.is_empty() {
        return wait();
    }
    metadata.insert("uid".into(), secret.uid().into());
    metadata.insert("resourceVersion".into(), secret.resource_version().into());
    patch.insert("metadata".into(), metadata.into());
    let params = PatchParams { field_manager: Some(FIELD_MANAGER.into()), ..PatchParams::default() };
    Ok(Step::send([api(secret).patch(secret.name(), &Patch::Merge(patch), &params).into_raw()]))
}

#[cfg(test)]
mod tests;
