//! Built-in resources, and minimal Rust types for those a controller runtime itself meets.
//!
//! For more, use `k8s-openapi` or a type of your own; five lines make it a [`Kind`]:
//!
//! ```
//! use steersman_core::api::{Api, Kind, ResourceType, Scope};
//! use steersman_core::object::ObjectMeta;
//!
//! #[derive(serde::Serialize, serde::Deserialize)]
//! struct Widget {
//!     metadata: ObjectMeta,
//!     size: u32,
//! }
//!
//! impl Kind for Widget {
//!     fn resource_type() -> ResourceType {
//!         ResourceType::new("example.com", "v1", "widgets", "Widget", Scope::Namespaced)
//!     }
//! }
//!
//! let widget = Widget { metadata: ObjectMeta::named("prod", "w"), size: 3 };
//! let create = Api::<Widget>::namespaced("prod").create(&widget);
//! assert_eq!(create.path_and_query, "/apis/example.com/v1/namespaces/prod/widgets");
//! ```

use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value};

use super::{Kind, ResourceType, Scope};
use crate::object::{ObjectMeta, nullable};

/// `v1 Namespace`.
pub const NAMESPACES: ResourceType = ResourceType::new("", "v1", "namespaces", "Namespace", Scope::Cluster);
/// `v1 Node`.
pub const NODES: ResourceType = ResourceType::new("", "v1", "nodes", "Node", Scope::Cluster);
/// `v1 ConfigMap`.
pub const CONFIGMAPS: ResourceType =
    ResourceType::new("", "v1", "configmaps", "ConfigMap", Scope::Namespaced);
/// `v1 Secret`.
pub const SECRETS: ResourceType = ResourceType::new("", "v1", "secrets", "Secret", Scope::Namespaced);
/// `v1 Pod`.
pub const PODS: ResourceType = ResourceType::new("", "v1", "pods", "Pod", Scope::Namespaced);
/// `v1 Service`.
pub const SERVICES: ResourceType = ResourceType::new("", "v1", "services", "Service", Scope::Namespaced);
/// `v1 Event`, the older of the two forms.
pub const EVENTS: ResourceType = ResourceType::new("", "v1", "events", "Event", Scope::Namespaced);
/// `coordination.k8s.io/v1 Lease`.
pub const LEASES: ResourceType =
    ResourceType::new("coordination.k8s.io", "v1", "leases", "Lease", Scope::Namespaced);

/// Bytes that stand in JSON as base64. `Debug` shows their number only.
#[derive(Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct ByteString(pub Vec<u8>);

impl From<&str> for ByteString {
    fn from(s: &str) -> Self {
        Self(s.as_bytes().into())
    }
}

impl From<Vec<u8>> for ByteString {
    fn from(bytes: Vec<u8>) -> Self {
        Self(bytes)
    }
}

impl fmt::Debug for ByteString {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ByteString({} bytes)", self.0.len())
    }
}

impl Serialize for ByteString {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.serialize_str(&STANDARD.encode(&self.0))
    }
}

impl<'de> Deserialize<'de> for ByteString {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        let text: String = nullable(d)?;
        // The error of the decoder would quote a byte of what may be a secret.
        STANDARD.decode(text).map(Self).map_err(|_| serde::de::Error::custom("invalid base64"))
    }
}

/// `v1 ConfigMap`, whole.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ConfigMap {
    /// Name, labels, owners, ...
    pub metadata: ObjectMeta,
    /// Text by key.
    #[serde(skip_serializing_if = "BTreeMap::is_empty", deserialize_with = "nullable")]
    pub data: BTreeMap<String, String>,
    /// Bytes by key.
    #[serde(skip_serializing_if = "BTreeMap::is_empty", deserialize_with = "nullable")]
    pub binary_data: BTreeMap<String, ByteString>,
    /// Whether the data can no longer be changed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub immutable: Option<bool>,
}

impl Kind for ConfigMap {
    fn resource_type() -> ResourceType {
        CONFIGMAPS
    }
}

/// `v1 Secret`, whole. `Debug` shows keys and lengths.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Secret {
    /// Name, labels, owners, ...
    pub metadata: ObjectMeta,
    /// Bytes by key.
    #[serde(skip_serializing_if = "BTreeMap::is_empty", deserialize_with = "nullable")]
    pub data: BTreeMap<String, ByteString>,
    /// Text by key, which the server turns into `data`; never read back.
    #[serde(skip_serializing_if = "BTreeMap::is_empty", deserialize_with = "nullable")]
    pub string_data: BTreeMap<String, String>,
    /// `Opaque`, `kubernetes.io/tls`, ...; empty is `Opaque`.
    #[serde(rename = "type", skip_serializing_if = "String::is_empty", deserialize_with = "nullable")]
    pub type_: String,
    /// Whether the data can no longer be changed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub immutable: Option<bool>,
}

/// Neither data nor annotations, which may hold the data as it was last applied.
impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Secret")
            .field("key", &self.metadata.key())
            .field("type", &self.type_)
            .field("data", &self.data)
            .field("string_data", &self.string_data.keys())
            .finish_non_exhaustive()
    }
}

impl Kind for Secret {
    fn resource_type() -> ResourceType {
        SECRETS
    }
}

/// `v1 Namespace`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Namespace {
    /// Name, labels, ...
    pub metadata: ObjectMeta,
    /// Finalizers of the namespace's content.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub spec: Option<Value>,
    /// The phase.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<NamespaceStatus>,
}

/// `v1 NamespaceStatus`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct NamespaceStatus {
    /// `Active` or `Terminating`.
    #[serde(deserialize_with = "nullable")]
    pub phase: String,
    /// All else.
    #[serde(flatten)]
    pub other: Map<String, Value>,
}

impl Kind for Namespace {
    fn resource_type() -> ResourceType {
        NAMESPACES
    }
}

/// `v1 Pod`: what controllers ask of it most; all else is kept as it is, so that a replace loses nothing.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Pod {
    /// Name, labels, owners, ...
    pub metadata: ObjectMeta,
    /// What is wanted.
    #[serde(deserialize_with = "nullable")]
    pub spec: PodSpec,
    /// What is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<PodStatus>,
}

/// `v1 PodSpec`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PodSpec {
    /// The containers.
    #[serde(deserialize_with = "nullable")]
    pub containers: Vec<Container>,
    /// The node that runs it; empty before it is scheduled.
    #[serde(skip_serializing_if = "String::is_empty", deserialize_with = "nullable")]
    pub node_name: String,
    /// All else.
    #[serde(flatten)]
    pub other: Map<String, Value>,
}

/// `v1 Container`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Container {
    /// Its name within the pod.
    #[serde(deserialize_with = "nullable")]
    pub name: String,
    /// Its image.
    #[serde(skip_serializing_if = "String::is_empty", deserialize_with = "nullable")]
    pub image: String,
    /// All else.
    #[serde(flatten)]
    pub other: Map<String, Value>,
}

/// `v1 PodStatus`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PodStatus {
    /// `Pending`, `Running`, `Succeeded`, `Failed` or `Unknown`.
    #[serde(skip_serializing_if = "String::is_empty", deserialize_with = "nullable")]
    pub phase: String,
    /// All else.
    #[serde(flatten)]
    pub other: Map<String, Value>,
}

impl Kind for Pod {
    fn resource_type() -> ResourceType {
        PODS
    }
}

/// `coordination.k8s.io/v1 Lease`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Lease {
    /// Name, labels, ...
    pub metadata: ObjectMeta,
    /// Who holds it, and for how long.
    #[serde(deserialize_with = "nullable")]
    pub spec: LeaseSpec,
}

/// `coordination.k8s.io/v1 LeaseSpec`. Times are RFC 3339 with exactly six digits after the point, or the server
/// refuses them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct LeaseSpec {
    /// Who holds it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub holder_identity: Option<String>,
    /// How long after `renew_time` others must wait, in seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lease_duration_seconds: Option<i32>,
    /// When the holder took it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub acquire_time: Option<String>,
    /// When the holder last said that it lives.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub renew_time: Option<String>,
    /// How often it changed hands.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lease_transitions: Option<i32>,
    /// All else: strategy, preferred holder.
    #[serde(flatten)]
    pub other: Map<String, Value>,
}

impl Kind for Lease {
    fn resource_type() -> ResourceType {
        LEASES
    }
}
