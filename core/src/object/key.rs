//! The key of an object within one resource.

use alloc::string::String;
use alloc::sync::Arc;
use core::cmp::Ordering;
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
///
/// It is ordered by namespace, cluster-scoped objects first, and then by name.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Key {
    /// How many bytes of the text are the namespace; none of a cluster-scoped object. (First, since it tells most keys apart.)
    namespace: usize,
    /// Namespace and name, in one allocation: a key is compared far more often than taken apart.
    text: Arc<str>,
}

impl Key {
    /// The key of an object in a namespace; an empty namespace is none.
    #[must_use]
    pub fn namespaced(namespace: &str, name: &str) -> Self {
        Self { namespace: namespace.len(), text: [namespace, name].concat().into() }
    }

    /// The key of a cluster-scoped object.
    #[must_use]
    pub fn cluster(name: &str) -> Self {
        Self { namespace: 0, text: name.into() }
    }

    fn parts(&self) -> (&str, &str) {
        self.text.split_at(self.namespace)
    }

    /// `metadata.namespace`.
    #[must_use]
    pub fn namespace(&self) -> Option<&str> {
        Some(self.parts().0).filter(|namespace| !namespace.is_empty())
    }

    /// `metadata.name`.
    #[must_use]
    pub fn name(&self) -> &str {
        self.parts().1
    }
}

impl Ord for Key {
    fn cmp(&self, other: &Self) -> Ordering {
        if self.namespace == other.namespace {
            self.text.cmp(&other.text)
        } else {
            self.parts().cmp(&other.parts())
        }
    }
}

impl PartialOrd for Key {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.parts() {
            ("", name) => f.write_str(name),
            (namespace, name) => write!(f, "{namespace}/{name}"),
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Whatever is in them, two keys compare as their parts do.
    #[test]
    fn keys_are_ordered_by_namespace_and_name() {
        fn prop(a: (String, String), b: (String, String), common: String) -> bool {
            let near = (a.0.clone() + &common, a.1.clone());
            let swapped = (a.0.clone(), common + &a.1);
            let all = [a, b, near, swapped];
            let key = |(namespace, name): &(String, String)| Key::namespaced(namespace, name);
            all.iter().all(|a| {
                let parts = (key(a).namespace().unwrap_or("") == a.0, key(a).name() == a.1);
                parts == (true, true)
                    && all.iter().all(|b| key(a).cmp(&key(b)) == a.cmp(b) && (key(a) == key(b)) == (a == b))
            })
        }
        crate::cases::cases(300).quickcheck(prop as fn((String, String), (String, String), String) -> bool);
        assert!(Key::cluster("z") < Key::namespaced("a", "a"));
        assert!(Key::namespaced("a", "z") < Key::namespaced("a-b", "a"));
        assert_eq!(Key::namespaced("", "a"), Key::cluster("a"));
        assert_ne!(Key::namespaced("ab", "c"), Key::namespaced("a", "bc"));
    }
}
