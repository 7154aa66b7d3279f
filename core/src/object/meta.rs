//! `metadata` for objects that are built, and the usual ways to change it.

use alloc::borrow::ToOwned;
use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;

use serde::{Deserialize, Deserializer, Serialize};

use super::{Key, Object, OwnerReference};
use crate::api::{JsonOp, Patch, pointer};

/// `meta/v1 ObjectMeta`, without `managedFields`: a replace that leaves them out keeps them.
///
/// ```
/// use steersman_core::object::ObjectMeta;
/// let meta = ObjectMeta::named("prod", "db").label("app", "db");
/// assert_eq!(serde_json::to_string(&meta)?, r#"{"name":"db","namespace":"prod","labels":{"app":"db"}}"#);
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ObjectMeta {
    /// The name; empty with a `generate_name`.
    #[serde(skip_serializing_if = "String::is_empty", deserialize_with = "nullable")]
    pub name: String,
    /// The server appends five characters to it.
    #[serde(skip_serializing_if = "String::is_empty", deserialize_with = "nullable")]
    pub generate_name: String,
    /// The namespace; empty for cluster-scoped objects.
    #[serde(skip_serializing_if = "String::is_empty", deserialize_with = "nullable")]
    pub namespace: String,
    /// Set by the server; never used twice.
    #[serde(skip_serializing_if = "String::is_empty", deserialize_with = "nullable")]
    pub uid: String,
    /// Set by the server, anew with each change.
    #[serde(skip_serializing_if = "String::is_empty", deserialize_with = "nullable")]
    pub resource_version: String,
    /// Set by the server: counts changes of what is wanted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub generation: Option<i64>,
    /// Set by the server, RFC 3339.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub creation_timestamp: Option<String>,
    /// Set by the server, RFC 3339: the object is ending.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deletion_timestamp: Option<String>,
    /// Set by the server: seconds to end in order.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deletion_grace_period_seconds: Option<i64>,
    /// Labels.
    #[serde(skip_serializing_if = "BTreeMap::is_empty", deserialize_with = "nullable")]
    pub labels: BTreeMap<String, String>,
    /// Annotations.
    #[serde(skip_serializing_if = "BTreeMap::is_empty", deserialize_with = "nullable")]
    pub annotations: BTreeMap<String, String>,
    /// Owners.
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "nullable")]
    pub owner_references: Vec<OwnerReference>,
    /// Who must clean up before the object may go.
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "nullable")]
    pub finalizers: Vec<String>,
}

impl ObjectMeta {
    /// Of an object in a namespace; an empty one is none.
    #[must_use]
    pub fn named(namespace: impl Into<String>, name: impl Into<String>) -> Self {
        Self { namespace: namespace.into(), name: name.into(), ..Self::default() }
    }

    /// With a label.
    #[must_use]
    pub fn label(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.labels.insert(name.into(), value.into());
        self
    }

    /// With an annotation.
    #[must_use]
    pub fn annotation(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.annotations.insert(name.into(), value.into());
        self
    }

    /// With an owner; one with the same uid is replaced.
    #[must_use]
    pub fn owner(mut self, owner: OwnerReference) -> Self {
        self.owner_references.retain(|o| o.uid != owner.uid);
        self.owner_references.push(owner);
        self
    }

    /// With a finalizer.
    #[must_use]
    pub fn finalizer(mut self, name: &str) -> Self {
        if !self.finalizers.iter().any(|f| f == name) {
            self.finalizers.push(name.to_owned());
        }
        self
    }

    /// Namespace and name.
    #[must_use]
    pub fn key(&self) -> Key {
        Key::namespaced(&self.namespace, &self.name)
    }
}

/// `null` as the default; servers written in Go send it for empty maps and lists.
pub(crate) fn nullable<'de, D, T>(d: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Default + Deserialize<'de>,
{
    Ok(Option::deserialize(d)?.unwrap_or_default())
}

/// The reference that makes `owner` the manager of another object, which then is deleted with it
/// (`controller` and `blockOwnerDeletion`, as controller-runtime's `SetControllerReference` sets them).
#[must_use]
pub fn controller_owner_reference(owner: &Object) -> OwnerReference {
    OwnerReference { controller: Some(true), block_owner_deletion: Some(true), ..owner_reference(owner) }
}

/// The reference that makes `owner` one of the owners of another object.
#[must_use]
pub fn owner_reference(owner: &Object) -> OwnerReference {
    OwnerReference {
        api_version: owner.api_version().to_owned(),
        kind: owner.kind().to_owned(),
        name: owner.name().to_owned(),
        uid: owner.uid().to_owned(),
        controller: None,
        block_owner_deletion: None,
    }
}

/// The patch that adds a finalizer to `object`, if it is not there yet. It holds only for the object as it was seen
/// (uid and version), so that it can neither hit a namesake nor double an entry; on a conflict, look again.
#[must_use]
pub fn add_finalizer(object: &Object, name: &str) -> Option<Patch<()>> {
    let mut all: Vec<&str> = object.finalizers().collect();
    if all.contains(&name) {
        return None;
    }
    all.push(name);
    Some(finalizers_patch(object, &all))
}

/// The patch that removes a finalizer from `object`, if it is there. The others stay; as to conflicts, see
/// [`add_finalizer`].
#[must_use]
pub fn remove_finalizer(object: &Object, name: &str) -> Option<Patch<()>> {
    let all: Vec<&str> = object.finalizers().filter(|f| *f != name).collect();
    object.has_finalizer(name).then(|| finalizers_patch(object, &all))
}

fn finalizers_patch(object: &Object, all: &[&str]) -> Patch<()> {
    let path = pointer(&["metadata", "finalizers"]);
    let mut ops = Vec::new();
    for (field, value) in [("uid", object.uid()), ("resourceVersion", object.resource_version())] {
        if !value.is_empty() {
            ops.push(JsonOp::Test { path: pointer(&["metadata", field]), value: value.into() });
        }
    }
    // `add` replaces a member that is there.
    ops.push(JsonOp::Add { path, value: all.into() });
    Patch::Json(ops)
}
