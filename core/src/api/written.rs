//! What a request has written, told from its answer.

use alloc::collections::BTreeMap;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;

use serde::{Deserialize, Serialize};

use super::{Method, Request, ResourceType, Status};
use crate::object::{Key, ObjectMeta};

/// One object that a request has made, changed or removed. Whoever watches its resource can wait until the watch has
/// shown that, and so reads what it wrote.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Written {
    /// The API group of the resource; empty for the core group. Versions of a group share their objects.
    pub group: String,
    /// The plural of the resource.
    pub plural: String,
    /// The object.
    pub key: Key,
    /// Its uid.
    pub uid: String,
    /// Its labels, where the answer shows them.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// What it is since then.
    pub now: WrittenState,
}

/// What a write has made of an object.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum WrittenState {
    /// It has this resource version.
    At(String),
    /// It is no longer there.
    Gone,
}

/// As `configmaps prod/a at 7`, `deployments.apps prod/a gone`.
impl fmt::Display for Written {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.plural)?;
        if !self.group.is_empty() {
            write!(f, ".{}", self.group)?;
        }
        match &self.now {
            WrittenState::At(version) => write!(f, " {} at {version}", self.key),
            WrittenState::Gone => write!(f, " {} gone", self.key),
        }
    }
}

/// What an answer shows of an object, or is a `Status` about one.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Body {
    api_version: Option<String>,
    kind: Option<String>,
    metadata: ObjectMeta,
}

/// What keeps a Namespace from going: its finalizers are not among the others.
#[derive(Default, Deserialize)]
#[serde(default)]
struct NamespaceBody {
    spec: Option<NamespaceSpec>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct NamespaceSpec {
    finalizers: Vec<String>,
}

/// The options of a deletion, which are its body.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Options {
    dry_run: Vec<String>,
}

impl Written {
    /// What the 2xx answer with this body says that `request` has written. `None` for reads, dry runs, deletions of whole
    /// collections, subresources that are something else than the object (`eviction`, `token`), and answers that name no
    /// object.
    ///
    /// A deletion that nothing holds up leaves the object gone, and so does taking the last finalizer off one that ends;
    /// else there is a version that tells of it.
    ///
    /// ```
    /// use steersman_core::api::{Api, DeleteParams, Written, kinds::ConfigMap};
    /// use steersman_core::object::ObjectMeta;
    /// let api = Api::<ConfigMap>::namespaced("prod");
    /// let map = ConfigMap { metadata: ObjectMeta::named("prod", "a"), ..Default::default() };
    /// let create = api.create(&map);
    /// let answer = br#"{"metadata":{"name":"a","namespace":"prod","uid":"u1","resourceVersion":"7"}}"#;
    /// assert_eq!(Written::of(&create, answer).unwrap().to_string(), "configmaps prod/a at 7");
    ///
    /// let delete = api.delete("a", &DeleteParams::default());
    /// let answer = br#"{"kind":"Status","status":"Success","details":{"name":"a","uid":"u1"}}"#;
    /// assert_eq!(Written::of(&delete, answer).unwrap().to_string(), "configmaps prod/a gone");
    /// assert_eq!(Written::of(&api.get("a"), br#"{"metadata":{"name":"a"}}"#), None);
    /// ```
    #[must_use]
    pub fn of<R>(request: &Request<R>, body: &[u8]) -> Option<Self> {
        if matches!(request.method, Method::Get | Method::Head | Method::Options) {
            return None;
        }
        let target = Target::parse(&request.path_and_query)?;
        let delete = request.method == Method::Delete;
        let options = request.body.as_deref().filter(|_| delete).map(serde_json::from_slice::<Options>);
        if options.is_some_and(|o| o.is_ok_and(|o| !o.dry_run.is_empty())) {
            return None;
        }
        let written = |key, uid: String, labels, now| {
            let (group, plural) = (target.group.to_string(), target.plural.to_string());
            (!uid.is_empty()).then_some(Self { group, plural, key, uid, labels, now })
        };
        let Body { api_version, kind, metadata: meta } = serde_json::from_slice(body).ok()?;
        if kind.as_deref() == Some("Status") && api_version.is_none_or(|v| v == "v1") {
            let status = serde_json::from_slice::<Status>(body).ok().filter(|s| !s.is_failure())?;
            let details = status.details?;
            let one = delete && target.name.is_some() && target.sub.is_none();
            let key = Key::namespaced(target.namespace.unwrap_or_default(), &details.name);
            return one.then(|| written(key, details.uid, BTreeMap::new(), WrittenState::Gone))?;
        }
        let key = Key::namespaced(&meta.namespace, &meta.name);
        let held = !meta.finalizers.is_empty()
            || meta.deletion_grace_period_seconds.unwrap_or(0) > 0
            || target.is_a_namespace() && namespace_is_held(body);
        if (delete || meta.deletion_timestamp.is_some()) && !held {
            return written(key, meta.uid, meta.labels, WrittenState::Gone);
        }
        let now = Some(meta.resource_version).filter(|v| !v.is_empty()).map(WrittenState::At)?;
        written(key, meta.uid, meta.labels, now)
    }

    /// Whether it is an object of this resource.
    #[must_use]
    pub fn is_of(&self, resource: &ResourceType) -> bool {
        (&*self.group, &*self.plural) == (&*resource.group, &*resource.plural)
    }
}

/// Whether its finalizers hold a Namespace; what does not show them, such as metadata alone, does not say.
fn namespace_is_held(body: &[u8]) -> bool {
    let spec = serde_json::from_slice::<NamespaceBody>(body).ok().and_then(|b| b.spec);
    spec.is_none_or(|spec| !spec.finalizers.is_empty())
}

/// The parts of a request's path.
struct Target<'a> {
    group: &'a str,
    namespace: Option<&'a str>,
    plural: &'a str,
    name: Option<&'a str>,
    sub: Option<&'a str>,
}

impl<'a> Target<'a> {
    fn is_a_namespace(&self) -> bool {
        self.group.is_empty() && self.plural == "namespaces"
    }

    /// `None` for what writes no object that its answer shows.
    fn parse(path_and_query: &'a str) -> Option<Self> {
        let (path, query) = path_and_query.split_once('?').unwrap_or((path_and_query, ""));
        if query.split('&').any(|p| p.starts_with("dryRun=") && p != "dryRun=") {
            return None;
        }
        let mut parts = path.trim_matches('/').split('/');
        let group = match parts.next()? {
            "api" => "",
            "apis" => parts.next()?,
            _ => return None,
        };
        let _version = parts.next()?;
        let mut parts = parts.peekable();
        let mut next = parts.next()?;
        let mut namespace = None;
        if next == "namespaces" {
            // `namespaces/a` and `namespaces/a/status` are about the namespace itself, longer paths about what is in it.
            let mut ahead = parts.clone();
            let name = ahead.next();
            if let Some(plural) = ahead.next().filter(|p| !matches!(*p, "status" | "finalize")) {
                (namespace, next, parts) = (name, plural, ahead);
            }
        }
        let (name, sub) = (parts.next(), parts.next());
        let about_itself = matches!(
            sub,
            None | Some("status" | "scale" | "finalize" | "resize" | "ephemeralcontainers" | "approval")
        );
        (about_itself && parts.next().is_none()).then_some(Self { group, namespace, plural: next, name, sub })
    }
}

#[cfg(test)]
mod tests {
    use alloc::format;

    use super::*;
    use crate::api::Raw;

    fn of(method: Method, path: &str, body: &str) -> Option<String> {
        Written::of(&Request::<Raw>::new(method, path), body.as_bytes()).map(|w| format!("{w} {}", w.uid))
    }

    const A: &str =
        r#"{"metadata":{"name":"a","namespace":"n","uid":"u","resourceVersion":"7"},"status":[1]}"#;

    #[test]
    fn objects_are_told_by_path_and_body() {
        use Method::{Patch, Post, Put};
        let at = |path| of(Put, path, A);
        let some = |text: &str| Some(String::from(text));
        assert_eq!(at("/api/v1/namespaces/n/pods/a"), some("pods n/a at 7 u"));
        assert_eq!(
            at("/apis/apps/v1/namespaces/n/deployments/a/status?x=y"),
            some("deployments.apps n/a at 7 u")
        );
        assert_eq!(at("/apis/apps/v1/namespaces/n/deployments/a/scale"), some("deployments.apps n/a at 7 u"));
        assert_eq!(of(Post, "/api/v1/namespaces/n/pods?fieldValidation=Strict", A), some("pods n/a at 7 u"));
        let named = r#"{"apiVersion":"x.io/v1","kind":"Status","metadata":{"name":"a","namespace":"n","uid":"u","resourceVersion":"7"}}"#;
        assert_eq!(of(Put, "/apis/x.io/v1/namespaces/n/statuses/a", named), some("statuses.x.io n/a at 7 u"));
        let unnamed =
            r#"{"kind":null,"metadata":{"name":"a","namespace":"n","uid":"u","resourceVersion":"7"}}"#;
        assert_eq!(of(Put, "/api/v1/namespaces/n/pods/a", unnamed), some("pods n/a at 7 u"));
        let zone = r#"{"metadata":{"name":"z","uid":"u","resourceVersion":"8"}}"#;
        assert_eq!(of(Patch, "/apis/x.io/v1/zones/z", zone), some("zones.x.io z at 8 u"));
        for path in ["/api/v1/namespaces/z", "/api/v1/namespaces/z/status", "/api/v1/namespaces/z/finalize"] {
            assert_eq!(of(Put, path, zone), some("namespaces z at 8 u"), "{path}");
        }
        assert_eq!(of(Post, "/api/v1/namespaces", zone), some("namespaces z at 8 u"));
    }

    #[test]
    fn what_ends_is_gone_unless_something_holds_it() {
        let delete = |body: &str| of(Method::Delete, "/api/v1/namespaces/n/pods/a", body);
        let gone = Some("pods n/a gone u".into());
        assert_eq!(delete(r#"{"kind":"Status","status":"Success","details":{"name":"a","uid":"u"}}"#), gone);
        assert_eq!(delete(A), gone);
        let ending = |more: &str| {
            format!(
                r#"{{"metadata":{{"name":"a","namespace":"n","uid":"u","resourceVersion":"7","deletionTimestamp":"t"{more}}}}}"#
            )
        };
        let held = Some("pods n/a at 7 u".into());
        assert_eq!(delete(&ending(r#","finalizers":["x/y"]"#)), held);
        assert_eq!(delete(&ending(r#","deletionGracePeriodSeconds":30"#)), held);
        assert_eq!(delete(&ending(r#","deletionGracePeriodSeconds":0"#)), gone);
        let patch = |body: &str| of(Method::Patch, "/api/v1/namespaces/n/pods/a", body);
        assert_eq!(patch(&ending("")), gone, "the last finalizer is off");
        assert_eq!(patch(&ending(r#","finalizers":["x/y"]"#)), held);
    }

    #[test]
    fn a_namespace_is_held_by_finalizers_of_its_own() {
        let body = |spec: &str| {
            format!(
                r#"{{"metadata":{{"name":"z","uid":"u","resourceVersion":"8","deletionTimestamp":"t"}}{spec}}}"#
            )
        };
        for method in [Method::Delete, Method::Patch] {
            let of = |spec: &str| of(method, "/api/v1/namespaces/z", &body(spec));
            let ending = Some("namespaces z at 8 u".into());
            assert_eq!(of(r#","spec":{"finalizers":["kubernetes"]}"#), ending);
            assert_eq!(of(""), ending, "metadata alone does not say");
            assert_eq!(of(r#","spec":{}"#), Some("namespaces z gone u".into()));
        }
    }

    #[test]
    fn what_shows_no_object_writes_none() {
        use Method::{Delete, Get, Post, Put};
        let pod = "/api/v1/namespaces/n/pods/a";
        assert_eq!(of(Get, pod, A), None);
        assert_eq!(of(Put, &format!("{pod}?dryRun=All"), A), None);
        assert_eq!(of(Post, &format!("{pod}/eviction"), r#"{"kind":"Status","status":"Success"}"#), None);
        assert_eq!(of(Post, "/api/v1/namespaces/n/serviceaccounts/a/token", A), None);
        let all = r#"{"kind":"Status","status":"Success","details":{"name":"a","uid":"u"}}"#;
        assert_eq!(of(Delete, "/api/v1/namespaces/n/pods", all), None, "a collection");
        assert_eq!(of(Delete, "/api/v1/namespaces/n/pods", r#"{"kind":"PodList","items":[]}"#), None);
        assert_eq!(
            of(Post, "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", r#"{"metadata":{}}"#),
            None
        );
        let failed = r#"{"kind":"Status","status":"Failure","details":{"name":"a","uid":"u"}}"#;
        assert_eq!(of(Delete, pod, failed), None, "a refusal with 200");
        let dry = crate::api::DeleteParams { dry_run: true, ..Default::default() };
        let dry = crate::api::Api::<crate::api::kinds::ConfigMap>::namespaced("n").delete("a", &dry);
        assert_eq!(Written::of(&dry, A.as_bytes()), None, "a dry run, as its options say");
        for body in ["", "{", "[]", "null", r#"{"metadata":7}"#, r#"{"metadata":{"name":"a","uid":"u"}}"#] {
            assert_eq!(of(Put, pod, body), None, "{body}");
        }
        for path in ["", "/", "/healthz", "/api", "/api/v1", "/apis/x/v1", "/api/v1/namespaces/n/pods/a/b/c"]
        {
            assert_eq!(of(Put, path, A), None, "{path}");
        }
    }
}
