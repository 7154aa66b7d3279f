//! What the cluster is filled with.

use std::str;

use serde_json::{Value, json};
use steersman_core::rng::Rng;

use crate::contestant::{EVENT, Resource, SENT};
use crate::pods::{Form, Pods, State};

/// Bytes that a server adds to what a ConfigMap's data are, with the metadata.
const CONFIG_MAP_REST: usize = 1_100;

/// Makes objects of one kind.
pub(super) struct Objects {
    resource: Resource,
    namespace: String,
    pods: Pods,
    size: usize,
    seed: u64,
}

impl Objects {
    /// Of about `size` bytes, when a server has filled in what it does.
    pub(super) fn new(
        resource: Resource,
        namespace: &str,
        count: u64,
        size: usize,
        seed: u64,
    ) -> Result<Self, String> {
        Ok(Self {
            resource,
            namespace: namespace.to_owned(),
            pods: Pods::new(count, size, seed)?,
            size,
            seed,
        })
    }

    /// The object as it is made, and then its status, if it has one.
    pub(super) fn number(&self, n: u64) -> (Value, Option<Value>) {
        match self.resource {
            Resource::Pods => self.pod(n),
            Resource::ConfigMaps => (self.config_map(n), None),
        }
    }

    /// A pod as in the other contests, without what is the server's own. Nobody shall run it or take it for lost: it has no
    /// node, no owner and a scheduler that does not exist.
    fn pod(&self, n: u64) -> (Value, Option<Value>) {
        let mut json = Vec::new();
        self.pods.item(Form::Whole, n, State::default(), &mut json);
        let mut pod: Value = serde_json::from_slice(&json).unwrap_or_default();
        let status = pod["status"].take();
        let mut spec = pod["spec"].take();
        if let Some(spec) = spec.as_object_mut() {
            spec.remove("nodeName");
            spec.insert("schedulerName".to_owned(), "nobody".into());
        }
        let metadata = json!({
            "name": name(n),
            "namespace": self.namespace,
            "labels": pod["metadata"]["labels"],
            "annotations": pod["metadata"]["annotations"],
        });
        let pod = json!({ "apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec });
        (pod, Some(json!({ "status": status })))
    }

    fn config_map(&self, n: u64) -> Value {
        let mut rng = Rng::new(self.seed ^ (n + 1).wrapping_mul(0x9e37_79b9));
        let mut text = String::new();
        while text.len() + CONFIG_MAP_REST < self.size {
            text += &format!("setting.{:04}: {:016x}{:016x}\n", text.len(), rng.next_u64(), rng.next_u64());
        }
        json!({
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {
                "name": name(n),
                "namespace": self.namespace,
                "labels": { "app.kubernetes.io/name": format!("app{:02}", n % 24), "tier": "backend" },
                // As wide as they will be.
                "annotations": { EVENT: format!("{:09}", 0), SENT: format!("{:019}", 0) },
            },
            "data": { "application.properties": text, "revision": n.to_string(), "mode": "production" },
        })
    }
}

/// The name of number `n`.
pub(super) fn name(n: u64) -> String {
    format!("object-{n:07}")
}

/// A merge patch of the annotations: event number `event`, sent at `sent`, in nanoseconds since 1970.
pub(super) fn patch(event: u64, sent: u64) -> Vec<u8> {
    let (event, sent) = (format!("{event:09}"), format!("{sent:019}"));
    json!({ "metadata": { "annotations": { EVENT: event, SENT: sent } } }).to_string().into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_are_of_the_size_that_was_asked_for_and_can_be_made() {
        for resource in Resource::ALL {
            let objects = Objects::new(resource, "a", 10, 5_000, 1).unwrap();
            let (object, status) = objects.number(3);
            assert_eq!(
                (&object["metadata"]["name"], &object["metadata"]["namespace"]),
                (&json!(name(3)), &json!("a"))
            );
            let size = object.to_string().len() + status.map_or(0, |s| s.to_string().len());
            assert!((2_500..5_000).contains(&size), "{resource:?}: {size}");
            for field in ["uid", "resourceVersion", "managedFields", "ownerReferences"] {
                assert!(object["metadata"].get(field).is_none(), "{field}");
            }
            assert_ne!(object, objects.number(4).0);
        }
    }

    #[test]
    fn a_patch_is_as_long_as_what_it_replaces() {
        let patch: Value = serde_json::from_slice(&patch(7, 8)).unwrap();
        assert_eq!(patch["metadata"]["annotations"][EVENT], "000000007");
        assert_eq!(patch["metadata"]["annotations"][SENT].as_str().map(str::len), Some(19));
    }
}
