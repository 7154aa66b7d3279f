//! End states that can be compared: what chance and time have put into the objects is taken out.

use std::collections::BTreeMap;
use std::fmt;

use serde_json::Value;
use steersman_apiserver::machine::ApiServer;

/// All objects of a cluster, by kind, namespace and name. Uids stand as the name of the object that has them; versions,
/// generations, and times of creation and deletion are left out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EndState(pub BTreeMap<String, Value>);

/// What is taken out of `metadata`.
const VOLATILE: [&str; 5] =
    ["uid", "resourceVersion", "creationTimestamp", "deletionTimestamp", "generation"];

impl EndState {
    pub(crate) fn of(truth: &ApiServer, ignoring: &dyn Fn(&mut Value)) -> Self {
        let mut objects: BTreeMap<String, Value> = BTreeMap::new();
        let mut names: BTreeMap<String, String> = BTreeMap::new();
        for resource in truth.resources() {
            for stored in truth.stored(&resource.of) {
                let name = format!("{} {}", resource.of.kind, stored.key);
                if let Some(uid) = stored.value["metadata"]["uid"].as_str() {
                    names.insert(uid.to_owned(), format!("uid of {name}"));
                }
                objects.insert(name, stored.value.clone());
            }
        }
        for object in objects.values_mut() {
            if let Some(meta) = object["metadata"].as_object_mut() {
                VOLATILE.iter().for_each(|name| drop(meta.remove(*name)));
            }
            rename(object, &names);
            ignoring(object);
        }
        Self(objects)
    }

    /// The first difference, in words.
    #[must_use]
    pub fn difference(&self, other: &Self) -> Option<String> {
        for (name, object) in &self.0 {
            match other.0.get(name) {
                None => return Some(format!("{name} is missing")),
                Some(found) if found != object => {
                    return Some(format!("{name} is {found}, and should be {object}"));
                }
                Some(_) => {}
            }
        }
        other
            .0
            .keys()
            .find(|name| !self.0.contains_key(*name))
            .map(|name| format!("{name} should not be there"))
    }
}

impl fmt::Display for EndState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|(name, object)| writeln!(f, "{name}: {object}"))
    }
}

/// Puts names in the place of uids, wherever they stand.
fn rename(value: &mut Value, names: &BTreeMap<String, String>) {
    match value {
        Value::String(text) => {
            if let Some(name) = names.get(text) {
                text.clone_from(name);
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| rename(item, names)),
        Value::Object(members) => members.values_mut().for_each(|member| rename(member, names)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}
