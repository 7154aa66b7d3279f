//! What the server serves: each resource with the rules of its kind that storage and verbs must know.

use steersman_core::api::{ResourceType, Scope};

/// Rules of a built-in kind beyond the common ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rules {
    ConfigMap,
    Secret,
    Pod,
    Service,
    ServiceAccount,
    Node,
    Namespace,
    Deployment,
    Lease,
    Event,
    /// Anything registered: members are kept as they come, as for a custom resource without a schema.
    Custom,
}

/// One served resource.
#[derive(Clone, Debug)]
pub struct Resource {
    /// Group, version, plural, kind, scope.
    pub of: ResourceType,
    /// The singular; the kind in lower case unless said otherwise.
    pub singular: String,
    /// What `kubectl` also accepts.
    pub short_names: Vec<String>,
    /// Groups of resources for `kubectl get`, such as `all`.
    pub categories: Vec<String>,
    /// Whether there is a `status` subresource.
    pub status: bool,
    pub(crate) rules: Rules,
    /// Top-level members in struct order; others are unknown fields. Empty: everything is kept.
    pub(crate) fields: &'static [&'static str],
    /// The objects of this one are stored with those of another (events of both groups).
    pub(crate) stored_as: Option<usize>,
}

impl Resource {
    /// A resource that behaves as a custom one without a schema: everything is kept as it comes.
    ///
    /// ```
    /// use steersman_apiserver::resource::Resource;
    /// use steersman_core::api::{ResourceType, Scope};
    /// let widgets = Resource::custom(
    ///     ResourceType::new("example.com", "v1", "widgets", "Widget", Scope::Namespaced),
    /// ).with_status();
    /// assert_eq!(widgets.singular, "widget");
    /// ```
    #[must_use]
    pub fn custom(of: ResourceType) -> Self {
        Self {
            singular: of.kind.to_ascii_lowercase(),
            of,
            short_names: Vec::new(),
            categories: Vec::new(),
            status: false,
            rules: Rules::Custom,
            fields: &[],
            stored_as: None,
        }
    }

    /// The same with a `status` subresource.
    #[must_use]
    pub fn with_status(mut self) -> Self {
        self.status = true;
        self
    }

    /// The same with a short name.
    #[must_use]
    pub fn with_short_name(mut self, name: &str) -> Self {
        self.short_names.push(name.to_owned());
        self
    }

    pub(crate) fn is_custom(&self) -> bool {
        self.rules == Rules::Custom
    }

    pub(crate) fn namespaced(&self) -> bool {
        self.of.scope == Scope::Namespaced
    }

    /// Whether PUT creates what is not there (the kind's `AllowCreateOnUpdate`).
    pub(crate) fn put_creates(&self) -> bool {
        matches!(self.rules, Rules::Lease | Rules::Event | Rules::Service)
    }

    /// Whether PUT must name a resource version (the kind forbids unconditional updates).
    pub(crate) fn put_needs_version(&self) -> bool {
        matches!(self.rules, Rules::Lease | Rules::Custom)
    }

    /// Whether DELETE answers with the object rather than a `Status`.
    pub(crate) fn delete_returns_object(&self) -> bool {
        matches!(self.rules, Rules::Pod | Rules::Service | Rules::ServiceAccount | Rules::Namespace)
    }

    /// Whether `metadata.generation` counts changes.
    pub(crate) fn counts_generation(&self) -> bool {
        matches!(self.rules, Rules::Pod | Rules::Deployment | Rules::Custom)
    }

    /// The verbs in discovery, in the real server's order.
    pub(crate) fn verbs(&self) -> &'static [&'static str] {
        match self.rules {
            Rules::Namespace => &["create", "delete", "get", "list", "patch", "update", "watch"],
            Rules::Custom => {
                &["delete", "deletecollection", "get", "list", "patch", "create", "update", "watch"]
            }
            _ => &["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"],
        }
    }
}

fn builtin(
    of: ResourceType,
    rules: Rules,
    short: &[&str],
    categories: &[&str],
    status: bool,
    fields: &'static [&'static str],
) -> Resource {
    Resource {
        singular: of.kind.to_ascii_lowercase(),
        of,
        short_names: short.iter().map(|s| (*s).to_owned()).collect(),
        categories: categories.iter().map(|s| (*s).to_owned()).collect(),
        status,
        rules,
        fields,
        stored_as: None,
    }
}

/// Place of namespaces in [`builtins`].
pub(crate) const NAMESPACES: usize = 0;

/// The built-in resources.
pub(crate) fn builtins() -> Vec<Resource> {
    const fn ns(group: &'static str, plural: &'static str, kind: &'static str) -> ResourceType {
        ResourceType::new(group, "v1", plural, kind, Scope::Namespaced)
    }
    const fn cluster(plural: &'static str, kind: &'static str) -> ResourceType {
        ResourceType::new("", "v1", plural, kind, Scope::Cluster)
    }
    const SPEC: &[&str] = &["spec", "status"];
    const EVENT: &[&str] = &[
        "involvedObject",
        "reason",
        "message",
        "source",
        "firstTimestamp",
        "lastTimestamp",
        "count",
        "type",
        "eventTime",
        "series",
        "action",
        "related",
        "reportingComponent",
        "reportingInstance",
    ];
    const EVENT_NEW: &[&str] = &[
        "eventTime",
        "series",
        "reportingController",
        "reportingInstance",
        "action",
        "reason",
        "regarding",
        "related",
        "note",
        "type",
        "deprecatedSource",
        "deprecatedFirstTimestamp",
        "deprecatedLastTimestamp",
        "deprecatedCount",
    ];
    let mut all = vec![
        builtin(cluster("namespaces", "Namespace"), Rules::Namespace, &["ns"], &[], true, SPEC),
        builtin(
            ns("", "configmaps", "ConfigMap"),
            Rules::ConfigMap,
            &["cm"],
            &[],
            false,
            &["immutable", "data", "binaryData"],
        ),
        builtin(ns("", "events", "Event"), Rules::Event, &["ev"], &[], false, EVENT),
        builtin(cluster("nodes", "Node"), Rules::Node, &["no"], &[], true, SPEC),
        builtin(ns("", "pods", "Pod"), Rules::Pod, &["po"], &["all"], true, SPEC),
        builtin(
            ns("", "secrets", "Secret"),
            Rules::Secret,
            &[],
            &[],
            false,
            &["immutable", "data", "stringData", "type"],
        ),
        builtin(
            ns("", "serviceaccounts", "ServiceAccount"),
            Rules::ServiceAccount,
            &["sa"],
            &[],
            false,
            &["secrets", "imagePullSecrets", "automountServiceAccountToken"],
        ),
        builtin(ns("", "services", "Service"), Rules::Service, &["svc"], &["all"], true, SPEC),
        builtin(
            ns("apps", "deployments", "Deployment"),
            Rules::Deployment,
            &["deploy"],
            &["all"],
            true,
            SPEC,
        ),
        builtin(ns("coordination.k8s.io", "leases", "Lease"), Rules::Lease, &[], &[], false, &["spec"]),
    ];
    let mut events =
        builtin(ns("events.k8s.io", "events", "Event"), Rules::Event, &["ev"], &[], false, EVENT_NEW);
    events.stored_as = Some(2);
    all.push(events);
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fixed_places_hold() {
        let all = builtins();
        assert_eq!(all[NAMESPACES].of.plural, "namespaces");
        let aliases: Vec<_> =
            all.iter().filter_map(|r| r.stored_as.map(|i| all[i].of.plural.clone())).collect();
        assert_eq!(aliases, ["events"]);
    }
}
