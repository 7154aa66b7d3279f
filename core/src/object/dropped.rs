//! What is left out of objects before they are kept.

use alloc::borrow::ToOwned;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::api::pointer;

/// Most steps of a pointer; custom resources that hold schemas nest near thirty.
const STEPS: usize = 64;

/// What the runtime decides on, with everything below: who the object is, whose it is, whether it is ending.
const KEPT: [(&[&str], &str); 10] = [
    (&["apiVersion"], "it says what the object is"),
    (&["kind"], "it says what the object is"),
    (&["metadata", "name"], "it is the object's key"),
    (&["metadata", "namespace"], "it is the object's key"),
    (&["metadata", "uid"], "it tells the object from namesakes"),
    (&["metadata", "resourceVersion"], "it orders what happens to the object"),
    (&["metadata", "generation"], "predicates compare it"),
    (&["metadata", "deletionTimestamp"], "it says that the object is ending"),
    (&["metadata", "ownerReferences"], "they say whom the object concerns"),
    (&["metadata", "finalizers"], "a change of them would lose those that were not seen"),
];

/// Parts of objects that are not kept, as JSON pointers (RFC 6901). By default that is `/metadata/managedFields`, often
/// half of an object and seldom read.
///
/// The parts are cut out of the bytes as they are read, so that they never cost memory; to the program it is as if the
/// server had not sent them. An element of an array that is dropped leaves no gap behind, and all indices are those of
/// the array as it came. What is not there is not missed. Of several members of one name every one is dropped.
///
/// Mind that an object of which something was dropped must not be written back whole: a replace would delete what was
/// not seen. A patch says only what it changes.
///
/// ```
/// use steersman_core::object::{Dropped, Object, ObjectOptions};
/// let dropped = Dropped::default()
///     .and("/metadata/annotations/kubectl.kubernetes.io~1last-applied-configuration")?
///     .and("/spec/containers/0/env")?;
/// let options = ObjectOptions::default().dropping(dropped);
/// let pod = br#"{"metadata":{"name":"a"},"spec":{"containers":[{"env":[{"name":"X"}],"image":"i"}]}}"#;
/// let pod = Object::from_json_with(pod, &options).unwrap();
/// assert_eq!(pod.json(), r#"{"metadata":{"name":"a"},"spec":{"containers":[{"image":"i"}]}}"#);
///
/// let e = Dropped::none().and("/metadata/uid").unwrap_err();
/// assert_eq!(e.to_string(), r#"cannot drop "/metadata/uid": it tells the object from namesakes"#);
/// # Ok::<(), steersman_core::object::DropError>(())
/// ```
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Dropped {
    root: Node,
}

/// The steps that pointers take from one place; none where a pointer ends.
#[derive(Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Node {
    /// Sorted by name.
    below: Vec<(String, Self)>,
}

impl Node {
    /// Whether all that is here is dropped.
    pub(super) fn is_whole(&self) -> bool {
        self.below.is_empty()
    }

    /// What is dropped of the member, or element, of this name.
    pub(super) fn step(&self, name: &str) -> Option<&Self> {
        let at = self.below.binary_search_by(|(n, _)| n.as_str().cmp(name)).ok()?;
        Some(&self.below[at].1)
    }

    /// The same of an element of an array.
    pub(super) fn element(&self, index: usize) -> Option<&Self> {
        self.below.iter().find(|(name, _)| place(name) == Some(index)).map(|(_, node)| node)
    }

    fn add(&mut self, steps: &[String]) {
        let Some((first, rest)) = steps.split_first() else { return self.below.clear() };
        match self.below.binary_search_by(|(n, _)| n.cmp(first)) {
            // All of it is dropped already.
            Ok(at) if self.below[at].1.is_whole() => {}
            Ok(at) => self.below[at].1.add(rest),
            Err(at) => {
                let mut node = Self::default();
                node.add(rest);
                self.below.insert(at, (first.clone(), node));
            }
        }
    }

    fn each<'a>(&'a self, path: &mut Vec<&'a str>, out: &mut Vec<String>) {
        for (name, node) in &self.below {
            path.push(name);
            if node.is_whole() {
                out.push(pointer(path));
            }
            node.each(path, out);
            path.pop();
        }
    }
}

/// The index that a step is: digits without a leading zero.
fn place(step: &str) -> Option<usize> {
    let plain = step == "0" || (!step.starts_with('0') && step.bytes().all(|b| b.is_ascii_digit()));
    plain.then(|| step.parse().ok()).flatten()
}

impl Default for Dropped {
    fn default() -> Self {
        let mut root = Node::default();
        root.add(&["metadata".to_owned(), "managedFields".to_owned()]);
        Self { root }
    }
}

impl Dropped {
    /// Nothing: objects are kept whole.
    #[must_use]
    pub const fn none() -> Self {
        Self { root: Node { below: Vec::new() } }
    }

    /// That, and what this JSON pointer points to.
    ///
    /// # Errors
    /// What is no JSON pointer, or longer than 64 steps; what the runtime decides on: `apiVersion`, `kind`, and of
    /// `metadata` the `name`, `namespace`, `uid`, `resourceVersion`, `generation`, `deletionTimestamp`,
    /// `ownerReferences` and `finalizers`.
    pub fn and(mut self, pointer: &str) -> Result<Self, DropError> {
        let refuse = |why| Err(DropError { pointer: pointer.to_owned(), why });
        let Some(rest) = pointer.strip_prefix('/') else {
            return refuse(if pointer.is_empty() {
                "that is the whole object"
            } else {
                "a JSON pointer begins with `/`"
            });
        };
        let mut steps = Vec::new();
        for step in rest.split('/') {
            if step.split('~').skip(1).any(|after| !after.starts_with(['0', '1'])) {
                return refuse("in a JSON pointer `~` is followed by 0 or 1");
            }
            if steps.len() == STEPS {
                return refuse("it has more than 64 steps");
            }
            steps.push(step.replace("~1", "/").replace("~0", "~"));
        }
        if steps == ["metadata"] {
            return refuse("it says who the object is");
        }
        let below = |kept: &[&str]| steps.len() >= kept.len() && kept.iter().zip(&steps).all(|(k, s)| k == s);
        if let Some((_, why)) = KEPT.iter().find(|(kept, _)| below(kept)) {
            return refuse(why);
        }
        self.root.add(&steps);
        Ok(self)
    }

    /// Whether nothing is dropped.
    #[must_use]
    pub fn is_none(&self) -> bool {
        self.root.below.is_empty()
    }

    /// The pointers, in order; none that lies below another.
    #[must_use]
    pub fn pointers(&self) -> Vec<String> {
        let mut out = Vec::new();
        self.root.each(&mut Vec::new(), &mut out);
        out
    }

    /// Where a scan begins; `None` if nothing is dropped.
    pub(super) fn root(&self) -> Option<&Node> {
        (!self.is_none()).then_some(&self.root)
    }
}

/// The pointers.
impl fmt::Debug for Dropped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.pointers()).finish()
    }
}

/// As `/data, /status`; `nothing`.
impl fmt::Display for Dropped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_none() { f.write_str("nothing") } else { f.write_str(&self.pointers().join(", ")) }
    }
}

/// As a list of pointers.
impl Serialize for Dropped {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.collect_seq(self.pointers())
    }
}

impl<'de> Deserialize<'de> for Dropped {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        let pointers = Vec::<String>::deserialize(d)?;
        pointers.iter().try_fold(Self::none(), |all, p| all.and(p)).map_err(serde::de::Error::custom)
    }
}

/// A pointer that cannot be dropped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DropError {
    /// The pointer.
    pub pointer: String,
    /// Why not.
    pub why: &'static str,
}

impl fmt::Display for DropError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cannot drop {:?}: {}", self.pointer, self.why)
    }
}

impl core::error::Error for DropError {}

#[cfg(test)]
mod tests;
