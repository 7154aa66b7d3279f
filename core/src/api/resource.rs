//! Which resource: group, version, plural, kind, scope.

use alloc::borrow::Cow;
use alloc::format;
use alloc::string::String;

use serde::{Deserialize, Serialize};

/// Whether objects of a resource live in a namespace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Scope {
    /// In a namespace.
    Namespaced,
    /// In the cluster.
    Cluster,
}

/// One resource of the API.
///
/// ```
/// use steersman_core::api::{ResourceType, Scope};
/// const DEPLOYMENTS: ResourceType = ResourceType::new("apps", "v1", "deployments", "Deployment", Scope::Namespaced);
/// assert_eq!(DEPLOYMENTS.api_version(), "apps/v1");
/// ```
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ResourceType {
    /// The API group; empty for the core group.
    pub group: Cow<'static, str>,
    /// The version within the group.
    pub version: Cow<'static, str>,
    /// The lower-case plural that stands in paths.
    pub plural: Cow<'static, str>,
    /// The kind of one object.
    pub kind: Cow<'static, str>,
    /// Namespaced or not.
    pub scope: Scope,
}

impl ResourceType {
    /// A resource whose names are known at compile time.
    #[must_use]
    pub const fn new(
        group: &'static str,
        version: &'static str,
        plural: &'static str,
        kind: &'static str,
        scope: Scope,
    ) -> Self {
        Self {
            group: Cow::Borrowed(group),
            version: Cow::Borrowed(version),
            plural: Cow::Borrowed(plural),
            kind: Cow::Borrowed(kind),
            scope,
        }
    }

    /// `group/version`, or `version` in the core group.
    #[must_use]
    pub fn api_version(&self) -> String {
        if self.group.is_empty() {
            self.version.clone().into_owned()
        } else {
            format!("{}/{}", self.group, self.version)
        }
    }
}

/// A Rust type that stands for one resource.
pub trait Kind: Sized {
    /// The resource whose objects parse into this type.
    fn resource_type() -> ResourceType;
}
