//! [`Api`]: the verbs of one resource, as request values.

use alloc::borrow::ToOwned;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;
use core::marker::PhantomData;

use serde::Serialize;

use super::params::{Query, bad_segment, encode};
use super::{
    DeleteParams, Deleted, GetParams, Kind, List, ListParams, Method, Patch, PatchParams, PostParams,
    Request, ResourceType, Scope, Streaming, WatchParams,
};
use crate::object::{Object, Scanner, Token, without_values};

/// Plain JSON.
pub(crate) const JSON: &str = "application/json";
/// Metadata only; plain JSON from a server that does not know the form (extension servers may not).
const METADATA: &str = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json";
const METADATA_LIST: &str =
    "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json";

/// One resource, in one namespace or all: makes [`Request`]s, sends none.
///
/// A mistake, such as an empty name, does not fail here but makes a request that is a
/// [`misuse`](Request::misuse) and is refused when it is sent; above all, it never becomes a request for something
/// else.
///
/// ```
/// use steersman_core::api::{Api, ListParams, ResourceType, Scope, kinds::ConfigMap};
///
/// let get = Api::<ConfigMap>::namespaced("prod").get("db");
/// assert_eq!(get.path_and_query, "/api/v1/namespaces/prod/configmaps/db");
/// assert_eq!(get.what, "get configmaps prod/db");
///
/// let widgets = ResourceType::new("example.com", "v1", "widgets", "Widget", Scope::Namespaced);
/// let list = Api::dynamic(widgets).list(&ListParams::default().labels("a=b").limit(500));
/// assert_eq!(list.path_and_query, "/apis/example.com/v1/widgets?labelSelector=a%3Db&limit=500");
/// ```
pub struct Api<K = Object> {
    resource: ResourceType,
    namespace: Option<String>,
    metadata_only: bool,
    kind: PhantomData<fn() -> K>,
}

impl<K: Kind> Api<K> {
    /// The objects of all namespaces; single objects only if the resource is cluster-scoped.
    #[must_use]
    pub fn all() -> Self {
        Self::of(K::resource_type())
    }

    /// The objects of one namespace.
    #[must_use]
    pub fn namespaced(namespace: impl Into<String>) -> Self {
        Self::all().within(namespace)
    }

    /// The objects of a cluster-scoped resource; the same as [`all`](Self::all), for readers.
    #[must_use]
    pub fn cluster() -> Self {
        Self::all()
    }
}

impl Api<Object> {
    /// A resource that is known at run time only, or whose objects are wanted as [`Object`]s.
    #[must_use]
    pub fn dynamic(resource: ResourceType) -> Self {
        Self::of(resource)
    }
}

impl<K> Api<K> {
    fn of(resource: ResourceType) -> Self {
        Self { resource, namespace: None, metadata_only: false, kind: PhantomData }
    }

    /// The same resource in one namespace.
    #[must_use]
    pub fn within(mut self, namespace: impl Into<String>) -> Self {
        self.namespace = Some(namespace.into());
        self
    }

    /// The same objects as [`Object`]s.
    #[must_use]
    pub fn objects(&self) -> Api<Object> {
        Api {
            resource: self.resource.clone(),
            namespace: self.namespace.clone(),
            metadata_only: self.metadata_only,
            kind: PhantomData,
        }
    }

    /// The same objects without all but their metadata, which saves the server and the wire most of the work. Writes
    /// of such a form make no sense except patches of the metadata.
    ///
    /// The server answers with `PartialObjectMetadata`; what comes out says `apiVersion` and `kind` of the resource all
    /// the same, as with controller-runtime, so that an object is of one kind however it was read (an owner reference to
    /// it is right). A server that answers with whole objects makes no difference either.
    ///
    /// ```
    /// use steersman_core::api::{Api, kinds::Secret};
    /// use steersman_core::controller::{Builder, WatchSpec};
    /// let secrets = Api::<Secret>::all().metadata_only();
    /// let get = secrets.clone().within("prod").get("db");
    /// let answer = br#"{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":{"name":"db"}}"#;
    /// assert_eq!(get.read(answer).unwrap().kind(), "Secret");
    /// assert!(WatchSpec::from(secrets).metadata_only);
    /// ```
    #[must_use]
    pub fn metadata_only(&self) -> Api<Object> {
        Api { metadata_only: true, ..self.objects() }
    }

    /// Whether only metadata is asked for.
    #[must_use]
    pub const fn is_metadata_only(&self) -> bool {
        self.metadata_only
    }

    /// Which resource.
    #[must_use]
    pub fn resource(&self) -> &ResourceType {
        &self.resource
    }

    /// Which namespace; `None`: all, or the cluster.
    #[must_use]
    pub fn namespace(&self) -> Option<&str> {
        self.namespace.as_deref()
    }

    /// Reads one object.
    #[must_use]
    pub fn get(&self, name: &str) -> Request<K> {
        self.get_with(name, &GetParams::default())
    }

    /// Reads one object, with parameters.
    #[must_use]
    pub fn get_with(&self, name: &str, params: &GetParams) -> Request<K> {
        self.build("get", Method::Get, Target::One(name), "", |q| params.write(q))
    }

    /// Reads one object that may not be there.
    #[must_use]
    pub fn get_opt(&self, name: &str) -> Request<Option<K>> {
        self.get(name).into_answer()
    }

    /// Reads a list, or a page of it.
    #[must_use]
    pub fn list(&self, params: &ListParams) -> Request<List<K>> {
        self.build("list", Method::Get, Target::All, "", |q| params.write(q))
    }

    /// Opens a watch.
    #[must_use]
    pub fn watch(&self, params: &WatchParams) -> Request<Streaming> {
        self.build("watch", Method::Get, Target::All, "", |q| params.write(q))
    }

    /// Creates an object. `apiVersion` and `kind` are put in if `object` has none.
    #[must_use]
    pub fn create<B: Serialize + ?Sized>(&self, object: &B) -> Request<K> {
        self.create_with(object, &PostParams::default())
    }

    /// Creates an object, with parameters.
    #[must_use]
    pub fn create_with<B: Serialize + ?Sized>(&self, object: &B, params: &PostParams) -> Request<K> {
        self.build("create", Method::Post, Target::New, "", |q| params.write(q))
            .safe_if(params.dry_run)
            .typed_body(JSON, object, Some(&self.resource))
    }

    /// Replaces an object; if `object` has a resource version, only if that is still the current one.
    #[must_use]
    pub fn replace<B: Serialize + ?Sized>(&self, name: &str, object: &B) -> Request<K> {
        self.replace_with(name, object, &PostParams::default())
    }

    /// Replaces an object, with parameters.
    #[must_use]
    pub fn replace_with<B: Serialize + ?Sized>(
        &self,
        name: &str,
        object: &B,
        params: &PostParams,
    ) -> Request<K> {
        self.build("replace", Method::Put, Target::One(name), "", |q| params.write(q))
            .safe_if(params.dry_run)
            .typed_body(JSON, object, Some(&self.resource))
    }

    /// Changes parts of an object, or applies it.
    #[must_use]
    pub fn patch<B: Serialize>(&self, name: &str, patch: &Patch<B>, params: &PatchParams) -> Request<K> {
        self.patch_at(name, "", patch, params)
    }

    /// Deletes an object.
    #[must_use]
    pub fn delete(&self, name: &str, params: &DeleteParams) -> Request<Deleted> {
        let request =
            self.build("delete", Method::Delete, Target::One(name), "", |_| {}).safe_if(params.dry_run);
        match params.body() {
            Some(body) => request.typed_body(JSON, &body, None),
            None => request,
        }
    }

    /// Deletes all objects that the selectors of `which` match. Of `params`, the preconditions are for each of them.
    #[must_use]
    pub fn delete_collection(&self, params: &DeleteParams, which: &ListParams) -> Request<()> {
        let request = self
            .build("delete collection of", Method::Delete, Target::All, "", |q| which.write(q))
            .safe_if(params.dry_run);
        match params.body() {
            Some(body) => request.typed_body(JSON, &body, None),
            None => request,
        }
    }

    /// Reads an object by way of its `status` subresource.
    #[must_use]
    pub fn get_status(&self, name: &str) -> Request<K> {
        self.build("get", Method::Get, Target::One(name), "status", |_| {})
    }

    /// Replaces the status of an object; all else in `object` but its resource version is ignored.
    #[must_use]
    pub fn replace_status<B: Serialize + ?Sized>(&self, name: &str, object: &B) -> Request<K> {
        self.build("replace", Method::Put, Target::One(name), "status", |_| {}).typed_body(
            JSON,
            object,
            Some(&self.resource),
        )
    }

    /// Changes parts of the status of an object. The patch is of the whole object: `{"status": {...}}`.
    #[must_use]
    pub fn patch_status<B: Serialize>(
        &self,
        name: &str,
        patch: &Patch<B>,
        params: &PatchParams,
    ) -> Request<K> {
        self.patch_at(name, "status", patch, params)
    }

    /// Reads the `autoscaling/v1 Scale` of an object.
    #[must_use]
    pub fn get_scale(&self, name: &str) -> Request<Object> {
        self.get_subresource(name, "scale")
    }

    /// Changes the `autoscaling/v1 Scale` of an object: `{"spec": {"replicas": 3}}`.
    #[must_use]
    pub fn patch_scale<B: Serialize>(
        &self,
        name: &str,
        patch: &Patch<B>,
        params: &PatchParams,
    ) -> Request<Object> {
        self.objects().patch_at(name, "scale", patch, params)
    }

    /// Evicts a pod: deletes it unless a disruption budget forbids it (429).
    #[must_use]
    pub fn evict(&self, name: &str, params: &DeleteParams) -> Request<()> {
        #[derive(Serialize)]
        struct Eviction<'a> {
            #[serde(rename = "apiVersion")]
            api_version: &'static str,
            kind: &'static str,
            metadata: Metadata<'a>,
            #[serde(rename = "deleteOptions", skip_serializing_if = "Option::is_none")]
            delete_options: Option<super::params::DeleteOptions<'a>>,
        }
        #[derive(Serialize)]
        struct Metadata<'a> {
            name: &'a str,
            #[serde(skip_serializing_if = "Option::is_none")]
            namespace: Option<&'a str>,
        }
        let body = Eviction {
            api_version: "policy/v1",
            kind: "Eviction",
            metadata: Metadata { name, namespace: self.namespace() },
            delete_options: params.body(),
        };
        self.build("evict", Method::Post, Target::One(name), "eviction", |_| {})
            .safe_if(params.dry_run)
            .typed_body(JSON, &body, None)
    }

    /// Reads a subresource.
    #[must_use]
    pub fn get_subresource(&self, name: &str, subresource: &str) -> Request<Object> {
        self.sub("get", Method::Get, name, subresource)
    }

    /// Posts to a subresource, as `pods/binding` or `serviceaccounts/token` want it. `body` says its own type.
    #[must_use]
    pub fn create_subresource<B: Serialize + ?Sized>(
        &self,
        name: &str,
        subresource: &str,
        body: &B,
    ) -> Request<Object> {
        self.sub("create", Method::Post, name, subresource).typed_body(JSON, body, None)
    }

    /// Replaces a subresource. `body` says its own type.
    #[must_use]
    pub fn replace_subresource<B: Serialize + ?Sized>(
        &self,
        name: &str,
        subresource: &str,
        body: &B,
    ) -> Request<Object> {
        self.sub("replace", Method::Put, name, subresource).typed_body(JSON, body, None)
    }

    /// Changes parts of a subresource.
    #[must_use]
    pub fn patch_subresource<B: Serialize>(
        &self,
        name: &str,
        subresource: &str,
        patch: &Patch<B>,
        params: &PatchParams,
    ) -> Request<Object> {
        match bad_segment(subresource) {
            None => self.objects().patch_at(name, subresource, patch, params),
            Some(_) => self.sub("patch", Method::Patch, name, subresource),
        }
    }

    fn sub(&self, verb: &str, method: Method, name: &str, subresource: &str) -> Request<Object> {
        let mut request = self.build(verb, method, Target::One(name), subresource, |_| {});
        if let Some(why) = bad_segment(subresource) {
            request.spoil(&format!("the subresource {why}"));
        }
        request
    }

    fn patch_at<B: Serialize>(
        &self,
        name: &str,
        subresource: &str,
        patch: &Patch<B>,
        params: &PatchParams,
    ) -> Request<K> {
        let verb = if matches!(patch, Patch::Apply(_)) { "apply" } else { "patch" };
        let mut request = self
            .build(verb, Method::Patch, Target::One(name), subresource, |q| params.write(q))
            .safe_if(params.dry_run);
        let content_type = patch.content_type();
        if params.force && !matches!(patch, Patch::Apply(_)) {
            request.spoil("only an apply can be forced");
        }
        match patch {
            Patch::Json(ops) => request.typed_body(content_type, ops, None),
            Patch::Merge(body) | Patch::Strategic(body) => request.typed_body(content_type, body, None),
            Patch::Apply(body) => {
                if params.field_manager.as_deref().is_none_or(str::is_empty) {
                    request.spoil("an apply needs a field manager");
                }
                let of = (subresource.is_empty() || subresource == "status").then_some(&self.resource);
                request.safe_if(true).typed_body(content_type, body, of)
            }
        }
    }

    fn build<R>(
        &self,
        verb: &str,
        method: Method,
        target: Target<'_>,
        subresource: &str,
        query: impl FnOnce(&mut Query<'_>),
    ) -> Request<R> {
        let resource = &self.resource;
        let mut misuse = None;
        let mut path = String::from(if resource.group.is_empty() { "/api" } else { "/apis" });
        let mut segment = |what: &str, text: &str| {
            if let (Some(why), None) = (bad_segment(text), &misuse) {
                misuse = Some(format!("the {what} {why}"));
            }
            path.push('/');
            encode(&mut path, text);
        };
        if !resource.group.is_empty() {
            segment("group", &resource.group);
        }
        segment("version", &resource.version);
        if let Some(namespace) = &self.namespace {
            segment("namespace", "namespaces");
            segment("namespace", namespace);
        }
        segment("plural", &resource.plural);
        let mut what = format!("{verb} {}", resource.plural);
        if let Target::One(name) = target {
            segment("name", name);
        }
        if !subresource.is_empty() {
            segment("subresource", subresource);
            what.push('/');
            what.push_str(subresource);
        }
        match (resource.scope, &self.namespace) {
            (Scope::Cluster, Some(_)) => {
                misuse
                    .get_or_insert_with(|| "the resource is cluster-scoped, it has no namespaces".to_owned());
            }
            (Scope::Namespaced, None) if !matches!(target, Target::All) => {
                misuse.get_or_insert_with(|| "a namespace is needed".to_owned());
            }
            (Scope::Namespaced, None) if method == Method::Delete => {
                misuse.get_or_insert_with(|| "a namespace is needed".to_owned());
            }
            _ => {}
        }
        match (target, &self.namespace) {
            (Target::One(name), Some(ns)) => what.push_str(&format!(" {ns}/{name}")),
            (Target::One(name), None) => what.push_str(&format!(" {name}")),
            (_, Some(ns)) => what.push_str(&format!(" in {ns}")),
            (_, None) => {}
        }
        query(&mut Query::new(&mut path));
        let partial = self.metadata_only && subresource.is_empty();
        let accept = match (partial, verb) {
            (false, _) => JSON,
            // A server refuses the form of one for the many that a deletion answers with, after the deletion.
            (true, "list" | "delete collection of") => METADATA_LIST,
            (true, _) => METADATA,
        };
        let mut request = Request {
            method,
            path_and_query: path,
            headers: Vec::from([("Accept".into(), accept.into())]),
            body: None,
            what,
            idempotent: method == Method::Get,
            misuse: None,
            metadata_of: partial.then(|| self.resource.clone()),
            answer: PhantomData,
        };
        if let Some(why) = misuse {
            request.spoil(&why);
        }
        request
    }
}

#[derive(Clone, Copy)]
enum Target<'a> {
    /// The collection, to read or delete.
    All,
    /// The collection, to create in it.
    New,
    /// One object.
    One(&'a str),
}

impl<R> Request<R> {
    /// Makes it one that cannot be sent; the first reason stays.
    fn spoil(&mut self, why: &str) {
        if self.misuse.is_none() {
            self.misuse = Some(format!("{}: {why}", self.what));
        }
        self.path_and_query.clear();
    }

    fn safe_if(mut self, safe: bool) -> Self {
        self.idempotent |= safe;
        self
    }

    /// Gives it a JSON body; one that lacks `apiVersion` or `kind` gets those of `resource`.
    fn typed_body<B: Serialize + ?Sized>(
        mut self,
        content_type: &str,
        body: &B,
        resource: Option<&ResourceType>,
    ) -> Self {
        match serde_json::to_vec(body) {
            Ok(json) => {
                let json = match resource {
                    Some(resource) => with_type(json, resource),
                    None => json,
                };
                self.with_body(content_type, json)
            }
            Err(e) => {
                self.spoil(&format!("the body does not serialise: {}", without_values(&e)));
                self
            }
        }
    }
}

/// Puts in `apiVersion` and `kind` if they are not there; a server needs them for custom resources and applies.
fn with_type(json: Vec<u8>, resource: &ResourceType) -> Vec<u8> {
    let Ok(text) = core::str::from_utf8(&json) else { return json };
    let (mut api_version, mut kind, mut empty) = (false, false, true);
    let mut s = Scanner::new(text);
    let scanned = s.members(|s, key| {
        empty = false;
        let there = s.peek()? != Token::Null;
        api_version |= there && key.is(text, "apiVersion");
        kind |= there && key.is(text, "kind");
        s.value().map(drop)
    });
    if scanned.is_err() || (api_version && kind) {
        return json;
    }
    let mut out = Vec::with_capacity(json.len() + 64);
    out.push(b'{');
    let quote = |s: &str| serde_json::to_vec(s).unwrap_or_default();
    if !api_version {
        out.extend_from_slice(b"\"apiVersion\":");
        out.extend_from_slice(&quote(&resource.api_version()));
        out.push(b',');
    }
    if !kind {
        out.extend_from_slice(b"\"kind\":");
        out.extend_from_slice(&quote(&resource.kind));
        out.push(b',');
    }
    if empty {
        out.pop();
    }
    // What `serde_json` writes begins with the brace.
    out.extend_from_slice(&json[1..]);
    out
}

impl<K> Clone for Api<K> {
    fn clone(&self) -> Self {
        Self {
            resource: self.resource.clone(),
            namespace: self.namespace.clone(),
            metadata_only: self.metadata_only,
            kind: PhantomData,
        }
    }
}

impl<K> fmt::Debug for Api<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ResourceType { plural, group, .. } = &self.resource;
        let dot = if group.is_empty() { "" } else { "." };
        match &self.namespace {
            Some(ns) => write!(f, "Api({plural}{dot}{group} in {ns})"),
            None => write!(f, "Api({plural}{dot}{group})"),
        }
    }
}
