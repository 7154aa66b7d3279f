//! What there is: versions, groups, resources, health, and enough OpenAPI for `kubectl`.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::{ApiRequest, ApiServer, Reply};
use crate::json::to_string;
use crate::resource::Resource;
use crate::status::Failure;

const SUBRESOURCE_VERBS: [&str; 3] = ["get", "patch", "update"];

impl ApiServer {
    pub(super) fn discover(&self, request: &ApiRequest, segments: &[String]) -> Result<Reply, Failure> {
        let path: Vec<&str> = segments.iter().map(String::as_str).collect();
        let json = |v: &Value| {
            let mut body = to_string(v).into_bytes();
            body.push(b'\n');
            Ok(Reply::Json(200, body))
        };
        if request.method != "GET" {
            return Err(Failure::method_not_allowed());
        }
        match path.as_slice() {
            ["healthz" | "livez" | "readyz", ..] => {
                Ok(Reply::Other(200, "text/plain; charset=utf-8", b"ok".to_vec()))
            }
            ["version"] => json(&json!({
                "major":"1","minor":"36","emulationMajor":"1","emulationMinor":"36","minCompatibilityMajor":"1",
                "minCompatibilityMinor":"35","gitVersion":"v1.36.3","gitCommit":"","gitTreeState":"",
                "buildDate":"1970-01-01T00:00:00Z","goVersion":"","compiler":"rustc","platform":"embedded"
            })),
            ["api" | "apis"] if let Some(version) = aggregated(request) => {
                let body = json!({
                    "kind":"APIGroupDiscoveryList","apiVersion":format!("apidiscovery.k8s.io/{version}"),
                    "metadata":{},"items":self.aggregated_groups(path[0] == "api")
                });
                let media = if version == "v2" {
                    "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
                } else {
                    "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList"
                };
                Ok(Reply::Other(200, media, to_string(&body).into_bytes()))
            }
            ["api"] => json(&json!({
                "kind":"APIVersions","versions":["v1"],
                "serverAddressByClientCIDRs":[{"clientCIDR":"0.0.0.0/0","serverAddress":request.get("host").unwrap_or("")}]
            })),
            ["apis"] => {
                let groups: Vec<Value> = self.groups().iter().map(|(g, v)| group(g, v)).collect();
                json(&json!({"kind":"APIGroupList","apiVersion":"v1","groups":groups}))
            }
            ["apis", name] => {
                let groups = self.groups();
                let versions = groups.get(*name).ok_or_else(Failure::page_not_found)?;
                let mut v = group(name, versions);
                v["kind"] = json!("APIGroup");
                v["apiVersion"] = json!("v1");
                json(&v)
            }
            ["api", version] => json(&self.resource_list("", version)?),
            ["apis", name, version] => json(&self.resource_list(name, version)?),
            ["openapi", "v2"] => json(&json!({
                "swagger":"2.0","info":{"title":"Kubernetes","version":"v1.36.3"},"paths":{},"definitions":{}
            })),
            ["openapi", "v3"] => {
                let paths: serde_json::Map<String, Value> = self
                    .group_versions()
                    .into_iter()
                    .map(|gv| (gv.clone(), json!({"serverRelativeURL":format!("/openapi/v3/{gv}?hash=0")})))
                    .collect();
                json(&json!({"paths":paths}))
            }
            ["openapi", "v3", "api", version] => json(&self.openapi("", version)?),
            ["openapi", "v3", "apis", name, version] => json(&self.openapi(name, version)?),
            [] => {
                let mut paths = vec![
                    "/api".to_owned(),
                    "/api/v1".into(),
                    "/apis".into(),
                    "/healthz".into(),
                    "/livez".into(),
                    "/openapi/v2".into(),
                    "/openapi/v3".into(),
                    "/readyz".into(),
                    "/version".into(),
                ];
                for gv in self.group_versions().into_iter().filter(|gv| gv.starts_with("apis/")) {
                    paths.push(format!("/{gv}"));
                    if let Some((group, _)) = gv.rsplit_once('/') {
                        paths.push(format!("/{group}"));
                    }
                }
                paths.sort();
                paths.dedup();
                json(&json!({"paths":paths}))
            }
            ["api", ..] => Err(Failure::no_such_resource()),
            _ => Err(Failure::page_not_found()),
        }
    }

    /// Named groups and their versions, in the order of their names.
    fn groups(&self) -> BTreeMap<String, Vec<String>> {
        let mut groups: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for r in self.resources.iter().filter(|r| !r.of.group.is_empty()) {
            let versions = groups.entry(r.of.group.to_string()).or_default();
            if !versions.contains(&r.of.version.to_string()) {
                versions.push(r.of.version.to_string());
            }
        }
        groups
    }

    /// `api/v1`, `apis/apps/v1`, ...
    fn group_versions(&self) -> Vec<String> {
        let named = self
            .groups()
            .into_iter()
            .flat_map(|(g, vs)| vs.into_iter().map(move |v| format!("apis/{g}/{v}")));
        std::iter::once("api/v1".to_owned()).chain(named).collect()
    }

    fn of_version(&self, group: &str, version: &str) -> Result<Vec<&Resource>, Failure> {
        let mut list: Vec<&Resource> =
            self.resources.iter().filter(|r| r.of.group == group && r.of.version == version).collect();
        if list.is_empty() {
            let known = self.resources.iter().any(|r| !r.is_custom() && r.of.group == group);
            return Err(if known { Failure::no_such_resource() } else { Failure::page_not_found() });
        }
        list.sort_by(|a, b| a.of.plural.cmp(&b.of.plural));
        Ok(list)
    }

    fn resource_list(&self, group: &str, version: &str) -> Result<Value, Failure> {
        let list = self.of_version(group, version)?;
        let mut resources = Vec::new();
        for r in list {
            let mut v = json!({
                "name":r.of.plural,"singularName":r.singular,"namespaced":r.namespaced(),"kind":r.of.kind,"verbs":r.verbs()
            });
            if !r.short_names.is_empty() {
                v["shortNames"] = json!(r.short_names);
            }
            if !r.categories.is_empty() {
                v["categories"] = json!(r.categories);
            }
            resources.push(v);
            for (name, verbs) in subresources(r) {
                resources.push(json!({
                    "name":format!("{}/{name}", r.of.plural),"singularName":"","namespaced":r.namespaced(),
                    "kind":r.of.kind,"verbs":verbs
                }));
            }
        }
        let gv = if group.is_empty() { version.to_owned() } else { format!("{group}/{version}") };
        let mut v = json!({"kind":"APIResourceList","groupVersion":gv,"resources":resources});
        if !group.is_empty() {
            v["apiVersion"] = json!("v1");
        }
        Ok(v)
    }

    fn aggregated_groups(&self, core: bool) -> Vec<Value> {
        let groups =
            if core { BTreeMap::from([(String::new(), vec!["v1".to_owned()])]) } else { self.groups() };
        let version = |group: &str, version: &String| {
            let resources: Vec<Value> = self
                .of_version(group, version)
                .unwrap_or_default()
                .into_iter()
                .map(|r| {
                    let kind = json!({"group":r.of.group,"version":r.of.version,"kind":r.of.kind});
                    let mut v = json!({
                        "resource":r.of.plural,"responseKind":kind,
                        "scope":if r.namespaced() { "Namespaced" } else { "Cluster" },
                        "singularResource":r.singular,"verbs":r.verbs()
                    });
                    if !r.short_names.is_empty() {
                        v["shortNames"] = json!(r.short_names);
                    }
                    if !r.categories.is_empty() {
                        v["categories"] = json!(r.categories);
                    }
                    let subs: Vec<Value> = subresources(r)
                        .into_iter()
                        .map(|(name, verbs)| json!({"subresource":name,"responseKind":kind,"verbs":verbs}))
                        .collect();
                    if !subs.is_empty() {
                        v["subresources"] = json!(subs);
                    }
                    v
                })
                .collect();
            json!({"version":version,"resources":resources,"freshness":"Current"})
        };
        groups
            .iter()
            .map(|(name, versions)| {
                let versions: Vec<Value> = versions.iter().map(|v| version(name, v)).collect();
                let metadata = if name.is_empty() { json!({}) } else { json!({"name":name}) };
                json!({"metadata":metadata,"versions":versions})
            })
            .collect()
    }

    /// As much as `kubectl` reads to learn that the server validates fields itself.
    fn openapi(&self, group: &str, version: &str) -> Result<Value, Failure> {
        let mut paths = serde_json::Map::new();
        for r in self.of_version(group, version)? {
            let prefix =
                if group.is_empty() { format!("/api/{version}") } else { format!("/apis/{group}/{version}") };
            let ns = if r.namespaced() { "/namespaces/{namespace}" } else { "" };
            let gvk = json!({"group":group,"version":version,"kind":r.of.kind});
            let parameters: Vec<Value> = ["dryRun", "fieldManager", "fieldValidation"]
                .iter()
                .map(|n| json!({"name":n,"in":"query","schema":{"type":"string","uniqueItems":true}}))
                .collect();
            let op = |action: &str| json!({"x-kubernetes-action":action,"x-kubernetes-group-version-kind":gvk,"parameters":parameters});
            paths.insert(format!("{prefix}{ns}/{}", r.of.plural), json!({"post":op("post")}));
            paths.insert(
                format!("{prefix}{ns}/{}/{{name}}", r.of.plural),
                json!({"patch":op("patch"),"put":op("put")}),
            );
        }
        Ok(
            json!({"openapi":"3.0.0","info":{"title":"Kubernetes","version":"v1.36.3"},"paths":paths,"components":{"schemas":{}}}),
        )
    }
}

fn group(name: &str, versions: &[String]) -> Value {
    let versions: Vec<Value> =
        versions.iter().map(|v| json!({"groupVersion":format!("{name}/{v}"),"version":v})).collect();
    json!({"name":name,"versions":versions,"preferredVersion":versions[0]})
}

fn subresources(r: &Resource) -> Vec<(&'static str, Vec<&'static str>)> {
    let mut subs = Vec::new();
    if r.of.plural == "pods" && r.of.group.is_empty() {
        subs.push(("eviction", vec!["create"]));
    }
    if r.of.plural == "namespaces" && r.of.group.is_empty() {
        subs.push(("finalize", vec!["update"]));
    }
    if r.status {
        subs.push(("status", SUBRESOURCE_VERBS.to_vec()));
    }
    subs
}

/// The version of aggregated discovery that is asked for before plain JSON.
fn aggregated(request: &ApiRequest) -> Option<&'static str> {
    for range in request.get("accept").unwrap_or("").split(',') {
        let range: String = range.chars().filter(|c| !c.is_whitespace()).collect();
        if !range.starts_with("application/json") {
            continue;
        }
        if !range.contains("as=APIGroupDiscoveryList") {
            return None;
        }
        if range.contains("v=v2beta1") {
            return Some("v2beta1");
        }
        if range.contains("v=v2") {
            return Some("v2");
        }
    }
    None
}
