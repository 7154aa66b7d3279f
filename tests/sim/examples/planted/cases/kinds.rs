//! The kinds that the controllers of the cases know, as a user would write them: a custom resource is a struct of its own.

use serde::{Deserialize, Serialize};
use steersman_apiserver::resource::Resource;
use steersman_core::api::{Kind, ResourceType, Scope};
use steersman_core::object::ObjectMeta;

/// Everything is in this namespace.
pub(crate) const NS: &str = "default";

macro_rules! kinds {
    ($($(#[$doc:meta])* $kind:ident($plural:literal) $spec:ident { $($s:ident: $st:ty),* } $status:ident { $($t:ident: $tt:ty),* })*) => {
        $(
            #[derive(Clone, Debug, Default, Serialize, Deserialize)]
            #[serde(default)]
            pub(crate) struct $spec { $(pub(crate) $s: $st),* }

            #[derive(Clone, Debug, Default, Serialize, Deserialize)]
            #[serde(default)]
            pub(crate) struct $status { $(pub(crate) $t: $tt),* }

            $(#[$doc])*
            #[derive(Clone, Debug, Default, Serialize, Deserialize)]
            #[serde(default)]
            pub(crate) struct $kind {
                pub(crate) metadata: ObjectMeta,
                pub(crate) spec: $spec,
                pub(crate) status: $status,
            }

            #[allow(dead_code, reason = "not each is made by hand")]
            impl $kind {
                pub(crate) fn new(name: &str, spec: $spec) -> Self {
                    Self { metadata: ObjectMeta::named(NS, name), spec, ..Self::default() }
                }
            }

            impl Kind for $kind {
                fn resource_type() -> ResourceType {
                    ResourceType::new("planted.example", "v1", $plural, stringify!($kind), Scope::Namespaced)
                }
            }
        )*

        /// All of them, each with a status of its own.
        pub(crate) fn resources() -> Vec<Resource> {
            vec![$(Resource::custom($kind::resource_type()).with_status()),*]
        }
    };
}

kinds! {
    /// Wants one order at the authority.
    Certificate("certificates") CertificateSpec { domain: String } CertificateStatus { order: String }
    /// Costs money.
    Order("orders") OrderSpec { domain: String } OrderStatus {}
    /// Wants a port that nobody else has.
    PortClaim("portclaims") PortClaimSpec {} PortClaimStatus { port: u16 }
    /// So many members, each with a volume.
    Ring("rings") RingSpec { members: u32 } RingStatus {}
    /// What a member has written; gone for good if it is deleted.
    Volume("volumes") VolumeSpec { ring: String } VolumeStatus {}
    /// Deleted when it has expired.
    Snapshot("snapshots") SnapshotSpec { of: String } SnapshotStatus {}
    /// Wants the backup of this number.
    Store("stores") StoreSpec { backup: u32 } StoreStatus { backup: u32 }
    /// One copy of a store.
    Backup("backups") BackupSpec { store: String } BackupStatus {}
    /// Wants to be brought to this version, one migration after the other.
    Schema("schemas") SchemaSpec { version: u32 } SchemaStatus { version: u32 }
    /// One step of a schema.
    Migration("migrations") MigrationSpec { schema: String } MigrationStatus {}
    /// Wants to be reached under this host.
    Site("sites") SiteSpec { host: String } SiteStatus {}
    /// Wants this image to run.
    App("apps") AppSpec { image: String } AppStatus { image: String }
    /// What runs.
    Release("releases") ReleaseSpec { image: String } ReleaseStatus {}
    /// Wants an account elsewhere.
    Database("databases") DatabaseSpec {} DatabaseStatus {}
    /// Wants to be kept in a cloud.
    Bucket("buckets") BucketSpec {} BucketStatus {}
    /// Stands for something outside of the cluster, which no garbage collector takes along.
    Account("accounts") AccountSpec {} AccountStatus {}
}
