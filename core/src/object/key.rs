//! The key of an object within one resource.

use alloc::string::String;
use alloc::sync::Arc;
use core::fmt;
use core::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Namespace and name. Cluster-scoped objects have no namespace, whoever asks: one object has one key.
///
/// ```
/// use steersman_core::object::Key;
/// let key = Key::namespaced("prod", "db");
/// assert_eq!(key.to_string(), "prod/db");
/// assert_eq!("prod/db".parse::<Key>().unwrap(), key);
/// assert_eq!(Key::cluster("node-1").namespace(), None);
/// ```
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key {
    namespace: Option<Arc<str>>,
    name: Arc<str>,
}

impl Key {
    /// The key of an object in a namespace; an empty namespace is none.
    #[must_use]
    pub fn namespaced(namespace: &str, name: &str) -> Self {
        Self { namespace: (!namespace.is_empty()).then(|| namespace.into()), name: name.into() }
    }

    /// The key of a cluster-scoped object.
    #[must_use]
    pub fn cluster(name: &str) -> Self {
        Self { namespace: None, name: name.into() }
    }

    /// `metadata.namespace`.
    #[must_use]
    pub fn namespace(&self) -> Option<&str> {
        self.namespace.as_deref()
    }

    /// `metadata.name`.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.namespace {
            Some(ns) => write!(f, "{ns}/{}", self.name),
            None => f.write_str(&self.name),
        }
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

impl FromStr for Key {
    type Err = core::convert::Infallible;

    fn from_str(s: &str) -> Result<Self, Self::Err> {
        Ok(match s.split_once('/') {
            Some((ns, name)) => Self::namespaced(ns, name),
            None => Self::cluster(s),
        })
    }
}

impl Serialize for Key {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Key {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        let Ok(key) = String::deserialize(d)?.parse();
        Ok(key)
    }
}
