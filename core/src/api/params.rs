//! Parameters of requests. Each writes its part of the query string, in a fixed order.

use alloc::collections::BTreeMap;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt::Write as _;

use serde::{Deserialize, Serialize};

/// Which objects of a resource: label and field selectors in their text forms; empty is all.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(default)]
pub struct Selectors {
    /// `labelSelector`, as `app=db,tier!=cache`.
    pub labels: String,
    /// `fieldSelector`, as `metadata.name=x`; what fields there are depends on the resource.
    pub fields: String,
}

impl Selectors {
    /// By labels.
    #[must_use]
    pub fn labels(selector: impl Into<String>) -> Self {
        Self { labels: selector.into(), ..Self::default() }
    }

    /// By fields.
    #[must_use]
    pub fn fields(selector: impl Into<String>) -> Self {
        Self { fields: selector.into(), ..Self::default() }
    }

    /// Whether objects with these labels are surely selected. Fields cannot be told here, so a field selector selects nothing
    /// for sure, and neither does one that cannot be read.
    ///
    /// ```
    /// use steersman_core::api::Selectors;
    /// let labels = [("app".to_string(), "db".to_string())].into();
    /// for yes in ["", "app", "app=db", "app==db,tier!=cache", "app in (db, web),!canary", "tier notin (cache)"] {
    ///     assert!(Selectors::labels(yes).take(&labels), "{yes}");
    /// }
    /// for no in ["app=web", "!app", "tier", "app notin (db)", "app in ()", "app>1", "app=db,", "app in (db"] {
    ///     assert!(!Selectors::labels(no).take(&labels), "{no}");
    /// }
    /// assert!(!Selectors::fields("metadata.name=a").take(&labels));
    /// ```
    #[must_use]
    pub fn take(&self, labels: &BTreeMap<String, String>) -> bool {
        self.fields.trim().is_empty()
            && (self.labels.trim().is_empty()
                || requirements(&self.labels).all(|r| requirement(r.trim(), labels) == Some(true)))
    }

    /// Whether it selects everything.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.labels.is_empty() && self.fields.is_empty()
    }

    fn write(&self, q: &mut Query<'_>) {
        q.text("labelSelector", &self.labels);
        q.text("fieldSelector", &self.fields);
    }
}

/// The parts of a label selector: commas part them, but not those between brackets.
fn requirements(selector: &str) -> impl Iterator<Item = &str> {
    let mut inside = false;
    selector.split(move |c| {
        inside = (inside || c == '(') && c != ')';
        c == ',' && !inside
    })
}

/// Whether labels meet one part of a selector; `None` if it cannot be read.
fn requirement(text: &str, labels: &BTreeMap<String, String>) -> Option<bool> {
    let is_key = |key: &str| {
        let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '/');
        !key.is_empty() && key.chars().all(fits)
    };
    let value = |key: &str| is_key(key).then(|| labels.get(key).map(String::as_str));
    if let Some((key, wanted)) = text.split_once("!=") {
        return Some(value(key.trim())? != Some(wanted.trim()));
    }
    if let Some((key, wanted)) = text.split_once('=') {
        let wanted = wanted.strip_prefix('=').unwrap_or(wanted);
        return Some(value(key.trim())? == Some(wanted.trim()));
    }
    if let Some((key, values)) = text.strip_suffix(')').and_then(|t| t.split_once('(')) {
        let (key, word) = key.trim().rsplit_once(char::is_whitespace)?;
        let found = value(key.trim())?;
        let among = found.is_some_and(|found| values.split(',').any(|v| v.trim() == found));
        return match word {
            "in" => Some(among),
            "notin" => Some(!among),
            _ => None,
        };
    }
    match text.strip_prefix('!') {
        Some(key) => Some(value(key.trim())?.is_none()),
        None => Some(value(text)?.is_some()),
    }
}

/// How a given resource version is meant (`resourceVersionMatch`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum VersionMatch {
    /// This state or a later one.
    NotOlderThan,
    /// This state; the server refuses with 410 if it has forgotten it.
    Exact,
}

impl VersionMatch {
    fn as_str(self) -> &'static str {
        match self {
            Self::NotOlderThan => "NotOlderThan",
            Self::Exact => "Exact",
        }
    }
}

/// Parameters of a get.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GetParams {
    /// `None`: the most recent state. `"0"`: whatever the server has at hand.
    pub resource_version: Option<String>,
}

impl GetParams {
    /// From the server's cache, which may be old.
    #[must_use]
    pub fn any() -> Self {
        Self { resource_version: Some("0".into()) }
    }

    pub(crate) fn write(&self, q: &mut Query<'_>) {
        q.option("resourceVersion", self.resource_version.as_deref());
    }
}

/// Parameters of a list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ListParams {
    /// Which objects.
    pub selectors: Selectors,
    /// Objects on a page; `None`: all at once. The server ignores it at version `0`.
    pub limit: Option<u32>,
    /// The token of the page before. With it a server refuses a version, so none is sent.
    pub continue_token: Option<String>,
    /// `None`: the most recent state. `"0"`: whatever the server has at hand.
    pub resource_version: Option<String>,
    /// How the version is meant; sent only with one.
    pub version_match: Option<VersionMatch>,
}

impl ListParams {
    /// Only objects whose labels match.
    #[must_use]
    pub fn labels(mut self, selector: impl Into<String>) -> Self {
        self.selectors.labels = selector.into();
        self
    }

    /// Only objects whose fields match.
    #[must_use]
    pub fn fields(mut self, selector: impl Into<String>) -> Self {
        self.selectors.fields = selector.into();
        self
    }

    /// At most so many objects on a page.
    #[must_use]
    pub fn limit(mut self, objects: u32) -> Self {
        self.limit = Some(objects);
        self
    }

    /// The page after the one that gave this token.
    #[must_use]
    pub fn continue_from(mut self, token: impl Into<String>) -> Self {
        self.continue_token = Some(token.into());
        self
    }

    /// From the server's cache, which may be old.
    #[must_use]
    pub fn any(self) -> Self {
        self.not_older_than("0")
    }

    /// The state of this version or a later one.
    #[must_use]
    pub fn not_older_than(mut self, version: impl Into<String>) -> Self {
        self.resource_version = Some(version.into());
        self.version_match = Some(VersionMatch::NotOlderThan);
        self
    }

    /// The state of exactly this version.
    #[must_use]
    pub fn exactly(mut self, version: impl Into<String>) -> Self {
        self.resource_version = Some(version.into());
        self.version_match = Some(VersionMatch::Exact);
        self
    }

    pub(crate) fn write(&self, q: &mut Query<'_>) {
        self.selectors.write(q);
        q.number("limit", self.limit);
        match &self.continue_token {
            Some(token) if !token.is_empty() => q.text("continue", token),
            _ => {
                if let Some(version) = self.resource_version.as_deref().filter(|v| !v.is_empty()) {
                    q.text("resourceVersion", version);
                    q.option("resourceVersionMatch", self.version_match.map(VersionMatch::as_str));
                }
            }
        }
    }
}

/// Parameters of a watch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WatchParams {
    /// Which objects.
    pub selectors: Selectors,
    /// Where to go on; `None`: now, after made-up events for all that is there.
    pub resource_version: Option<String>,
    /// When the server shall end it, in seconds.
    pub timeout_seconds: Option<u32>,
    /// Asks for bookmarks. On by default.
    pub bookmarks: bool,
    /// Asks for a streaming list: all that is there at a version not older than the given one, then a marked bookmark,
    /// then what changes.
    pub send_initial_events: bool,
}

impl Default for WatchParams {
    fn default() -> Self {
        Self {
            selectors: Selectors::default(),
            resource_version: None,
            timeout_seconds: None,
            bookmarks: true,
            send_initial_events: false,
        }
    }
}

impl WatchParams {
    /// What happens after this version.
    #[must_use]
    pub fn after(version: impl Into<String>) -> Self {
        Self { resource_version: Some(version.into()), ..Self::default() }
    }

    /// Only objects whose labels match.
    #[must_use]
    pub fn labels(mut self, selector: impl Into<String>) -> Self {
        self.selectors.labels = selector.into();
        self
    }

    /// Only objects whose fields match.
    #[must_use]
    pub fn fields(mut self, selector: impl Into<String>) -> Self {
        self.selectors.fields = selector.into();
        self
    }

    /// Ends after so many seconds.
    #[must_use]
    pub fn timeout_seconds(mut self, seconds: u32) -> Self {
        self.timeout_seconds = Some(seconds);
        self
    }

    /// As a streaming list.
    #[must_use]
    pub fn initial_events(mut self) -> Self {
        self.send_initial_events = true;
        self
    }

    pub(crate) fn write(&self, q: &mut Query<'_>) {
        q.flag("watch", true);
        self.selectors.write(q);
        q.option("resourceVersion", self.resource_version.as_deref());
        q.flag("allowWatchBookmarks", self.bookmarks || self.send_initial_events);
        if self.send_initial_events {
            q.flag("sendInitialEvents", true);
            q.text("resourceVersionMatch", VersionMatch::NotOlderThan.as_str());
        }
        q.number("timeoutSeconds", self.timeout_seconds);
    }
}

/// What a server does with fields that it does not know (`fieldValidation`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FieldValidation {
    /// Refuses the request.
    Strict,
    /// Says so in a `Warning` header. The server's default.
    Warn,
    /// Drops them in silence.
    Ignore,
}

impl FieldValidation {
    fn as_str(self) -> &'static str {
        match self {
            Self::Strict => "Strict",
            Self::Warn => "Warn",
            Self::Ignore => "Ignore",
        }
    }
}

/// Parameters of a create or replace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PostParams {
    /// Do everything but keep it.
    pub dry_run: bool,
    /// Who the fields belong to; at most 128 characters.
    pub field_manager: Option<String>,
    /// What happens with unknown fields.
    pub field_validation: Option<FieldValidation>,
}

impl PostParams {
    pub(crate) fn write(&self, q: &mut Query<'_>) {
        q.write_common(self.dry_run, self.field_manager.as_deref(), self.field_validation);
    }
}

/// Parameters of a patch.
///
/// ```
/// use steersman_core::api::PatchParams;
/// let params = PatchParams::apply("mirror").force();
/// assert!(params.force);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PatchParams {
    /// Do everything but keep it.
    pub dry_run: bool,
    /// Take fields over from other managers; for [`Patch::Apply`](super::Patch::Apply) only.
    pub force: bool,
    /// Who the fields belong to; at most 128 characters. An apply needs one.
    pub field_manager: Option<String>,
    /// What happens with unknown fields.
    pub field_validation: Option<FieldValidation>,
}

impl PatchParams {
    /// For an apply by this manager.
    #[must_use]
    pub fn apply(manager: impl Into<String>) -> Self {
        Self { field_manager: Some(manager.into()), ..Self::default() }
    }

    /// Takes fields over from other managers.
    #[must_use]
    pub fn force(mut self) -> Self {
        self.force = true;
        self
    }

    /// Do everything but keep it.
    #[must_use]
    pub fn dry_run(mut self) -> Self {
        self.dry_run = true;
        self
    }

    pub(crate) fn write(&self, q: &mut Query<'_>) {
        q.write_common(self.dry_run, self.field_manager.as_deref(), self.field_validation);
        q.flag("force", self.force);
    }
}

/// What happens to the objects that a deleted one owns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum PropagationPolicy {
    /// They stay.
    Orphan,
    /// They are deleted afterwards.
    Background,
    /// They are deleted before.
    Foreground,
}

/// What must be true of an object for it to be deleted; otherwise the server answers with 409.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Preconditions {
    /// Its uid.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub uid: Option<String>,
    /// Its resource version.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resource_version: Option<String>,
}

/// Parameters of a delete.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeleteParams {
    /// Do everything but keep it.
    pub dry_run: bool,
    /// Seconds to end in order; `0` is at once. `None`: as the kind has it.
    pub grace_period_seconds: Option<u32>,
    /// What happens to what it owns. `None`: as the kind has it.
    pub propagation_policy: Option<PropagationPolicy>,
    /// What must be true of it.
    pub preconditions: Option<Preconditions>,
}

impl DeleteParams {
    /// What it owns is deleted afterwards.
    #[must_use]
    pub fn background() -> Self {
        Self { propagation_policy: Some(PropagationPolicy::Background), ..Self::default() }
    }

    /// What it owns is deleted before.
    #[must_use]
    pub fn foreground() -> Self {
        Self { propagation_policy: Some(PropagationPolicy::Foreground), ..Self::default() }
    }

    /// What it owns stays.
    #[must_use]
    pub fn orphan() -> Self {
        Self { propagation_policy: Some(PropagationPolicy::Orphan), ..Self::default() }
    }

    /// Only the object with this uid: never one that was made anew under its name.
    #[must_use]
    pub fn only_uid(mut self, uid: impl Into<String>) -> Self {
        self.preconditions.get_or_insert_default().uid = Some(uid.into());
        self
    }

    /// Only if nothing has changed since this version.
    #[must_use]
    pub fn only_version(mut self, version: impl Into<String>) -> Self {
        self.preconditions.get_or_insert_default().resource_version = Some(version.into());
        self
    }

    /// Seconds to end in order.
    #[must_use]
    pub fn grace(mut self, seconds: u32) -> Self {
        self.grace_period_seconds = Some(seconds);
        self
    }

    /// `DeleteOptions`; `None` if there is nothing to say.
    pub(crate) fn body(&self) -> Option<DeleteOptions<'_>> {
        (*self != Self::default()).then(|| DeleteOptions {
            api_version: "v1",
            kind: "DeleteOptions",
            grace_period_seconds: self.grace_period_seconds,
            preconditions: self.preconditions.as_ref(),
            propagation_policy: self.propagation_policy,
            dry_run: self.dry_run.then_some(["All"]),
        })
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct DeleteOptions<'a> {
    api_version: &'static str,
    kind: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    grace_period_seconds: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    preconditions: Option<&'a Preconditions>,
    #[serde(skip_serializing_if = "Option::is_none")]
    propagation_policy: Option<PropagationPolicy>,
    #[serde(skip_serializing_if = "Option::is_none")]
    dry_run: Option<[&'static str; 1]>,
}

/// Writes a query string at the end of a path.
pub(crate) struct Query<'a> {
    out: &'a mut String,
    first: bool,
}

impl<'a> Query<'a> {
    pub(crate) fn new(out: &'a mut String) -> Self {
        Self { out, first: true }
    }

    /// A parameter; none if the value is empty.
    pub(crate) fn text(&mut self, name: &str, value: &str) {
        if !value.is_empty() {
            self.out.push(if self.first { '?' } else { '&' });
            self.first = false;
            self.out.push_str(name);
            self.out.push('=');
            encode(self.out, value);
        }
    }

    pub(crate) fn option(&mut self, name: &str, value: Option<&str>) {
        self.text(name, value.unwrap_or_default());
    }

    pub(crate) fn number(&mut self, name: &str, value: Option<u32>) {
        if let Some(n) = value {
            self.text(name, &n.to_string());
        }
    }

    pub(crate) fn flag(&mut self, name: &str, value: bool) {
        if value {
            self.text(name, "true");
        }
    }

    fn write_common(&mut self, dry_run: bool, manager: Option<&str>, validation: Option<FieldValidation>) {
        self.text("dryRun", if dry_run { "All" } else { "" });
        self.option("fieldManager", manager);
        self.option("fieldValidation", validation.map(FieldValidation::as_str));
    }
}

/// Appends `text` with all but RFC 3986's unreserved characters percent-encoded: right in a path segment and in a query
/// alike.
pub(crate) fn encode(out: &mut String, text: &str) {
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            out.push(char::from(byte));
        } else {
            let _ = write!(out, "%{byte:02X}");
        }
    }
}

/// The names of the segments of a path that cannot be sent.
pub(crate) fn bad_segment(segment: &str) -> Option<&'static str> {
    // Servers and proxies resolve dots, encoded or not: `configmaps/..` would be the list of everything.
    match segment {
        "" => Some("is empty"),
        "." | ".." => Some("is a relative path"),
        _ if segment.contains('/') => Some("contains a slash"),
        _ => None,
    }
}

/// Patches as they are sent.
///
/// ```
/// use steersman_core::api::Patch;
/// let add = Patch::Merge(serde_json::json!({"metadata": {"labels": {"a": "b"}}}));
/// assert_eq!(add.content_type(), "application/merge-patch+json");
/// ```
#[derive(Clone, Debug, PartialEq)]
pub enum Patch<T> {
    /// RFC 6902: a list of operations.
    Json(Vec<JsonOp>),
    /// RFC 7386: members replace members, `null` removes, lists are replaced whole.
    Merge(T),
    /// Kubernetes' own, for built-in kinds: lists are merged by keys.
    Strategic(T),
    /// Server-side apply: the fields that this manager wants. Creates the object if need be.
    Apply(T),
}

impl<T> Patch<T> {
    /// The `Content-Type` that tells the server which one it is.
    #[must_use]
    pub fn content_type(&self) -> &'static str {
        match self {
            Self::Json(_) => "application/json-patch+json",
            Self::Merge(_) => "application/merge-patch+json",
            Self::Strategic(_) => "application/strategic-merge-patch+json",
            // Every JSON document is one of YAML.
            Self::Apply(_) => "application/apply-patch+yaml",
        }
    }
}

impl Patch<()> {
    /// A JSON patch.
    #[must_use]
    pub fn json(ops: Vec<JsonOp>) -> Self {
        Self::Json(ops)
    }
}

/// One operation of a JSON patch. Paths are JSON pointers; see [`pointer()`].
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "op", rename_all = "lowercase")]
pub enum JsonOp {
    /// Adds a member or an element (`-` is the end), or replaces a member.
    Add {
        /// Where.
        path: String,
        /// What.
        value: serde_json::Value,
    },
    /// Removes what is there.
    Remove {
        /// Where.
        path: String,
    },
    /// Replaces what is there.
    Replace {
        /// Where.
        path: String,
        /// By what.
        value: serde_json::Value,
    },
    /// The patch holds only if this is there.
    Test {
        /// Where.
        path: String,
        /// What.
        value: serde_json::Value,
    },
    /// Moves a value.
    Move {
        /// From where.
        from: String,
        /// To where.
        path: String,
    },
    /// Copies a value.
    Copy {
        /// From where.
        from: String,
        /// To where.
        path: String,
    },
}

/// The JSON pointer of a path of names, escaped (`~0` for `~`, `~1` for `/`).
///
/// ```
/// use steersman_core::api::pointer;
/// assert_eq!(pointer(&["metadata", "annotations", "example.com/x"]), "/metadata/annotations/example.com~1x");
/// ```
#[must_use]
pub fn pointer(path: &[&str]) -> String {
    let mut out = String::new();
    for name in path {
        out.push('/');
        out.push_str(&name.replace('~', "~0").replace('/', "~1"));
    }
    out
}
