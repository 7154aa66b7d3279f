//! The server as a pure machine: requests, time and seeds in; answers and watch events out.
//!
//! Nothing here opens a socket or reads a clock, so that a test or a simulator can drive it under virtual time:
//!
//! ```
//! use steersman_apiserver::machine::{ApiRequest, ApiServer, Options};
//! use steersman_core::time::{Time, UnixMillis};
//!
//! let mut server = ApiServer::new(Options { open: true, ..Options::default() }, UnixMillis(0));
//! let request = ApiRequest::new("POST", "/api/v1/namespaces/default/configmaps")
//!     .body("application/json", r#"{"metadata":{"name":"a"},"data":{"k":"v"}}"#);
//! let answer = server.call(Time::ZERO, UnixMillis(0), request);
//! assert_eq!(answer.status, 201);
//! assert_eq!(answer.json()["data"]["k"], "v");
//! ```

mod access;
mod background;
mod delete;
mod discovery;
mod follow;
mod read;
mod route;
mod store;
mod table;
mod types;
mod watch;
mod write;

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::{Value, json};
use steersman_core::machine::{Deadline, Machine, Outputs, Reason};
use steersman_core::net::ConnId;
use steersman_core::rng::Rng;
use steersman_core::time::{Clock, Time, UnixMillis};

pub use follow::{Commit, Stored};
pub use types::{ApiRequest, Counters, Fault, FaultKind, Grant, Identity, Input, Options, Output};

use crate::resource::{self, NAMESPACES, Resource};
use crate::status::{About, Failure};
use crate::{json, kinds};
use route::{Path, Query, Target};
use store::{Entry, Record, Shelf};
use table::Format;
use watch::Watch;

/// An embedded API server without a network.
pub struct ApiServer {
    options: Options,
    clock: Clock,
    wall: UnixMillis,
    rng: Rng,
    revision: u64,
    /// Exact reads below this version are refused.
    compacted: u64,
    resources: Vec<Resource>,
    shelves: Vec<Shelf>,
    watches: BTreeMap<ConnId, Watch>,
    waiting: BTreeMap<ConnId, Waiting>,
    timers: BTreeSet<(Time, ConnId)>,
    /// Every live uid.
    uids: BTreeMap<String, (usize, Arc<str>)>,
    /// Owner's uid to the objects that name it.
    dependents: BTreeMap<String, BTreeSet<(usize, Arc<str>)>>,
    background: background::Work,
    faults: Vec<Fault>,
    counters: Counters,
    addresses: u64,
    /// Versions that followers have not been told; `None` without followers.
    feed: Option<Vec<Commit>>,
    mute: bool,
}

/// A read at a version that has not come yet.
struct Waiting {
    request: ApiRequest,
    version: u64,
    until: Time,
    stream: bool,
}

/// One request on its way through the machine.
struct Call<'a> {
    conn: ConnId,
    now: Time,
    request: &'a ApiRequest,
    query: Query,
    target: Target,
    /// Index of the resource that is asked for.
    res: usize,
    format: Format,
}

/// What a request comes to.
enum Reply {
    /// An object, in the asked format.
    Object(u16, Arc<Record>),
    /// Bytes of JSON.
    Json(u16, Vec<u8>),
    /// Anything else.
    Other(u16, &'static str, Vec<u8>),
    /// The answer is a stream, or comes later.
    Later,
}

/// An answer to [`ApiServer::call`].
#[derive(Clone, Debug, Default)]
pub struct Answer {
    /// HTTP status code; 0 if there was no answer yet.
    pub status: u16,
    /// Headers.
    pub headers: Vec<(&'static str, String)>,
    /// Body; for a watch what came at once.
    pub body: Vec<u8>,
}

impl Answer {
    /// The body as JSON; null if it is not.
    #[must_use]
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or(Value::Null)
    }
}

impl std::fmt::Debug for ApiServer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ApiServer")
            .field("revision", &self.revision)
            .field("counters", &self.counters())
            .finish()
    }
}

impl Machine for ApiServer {
    type Input<'a> = Input;
    type Output = Output;

    fn handle(&mut self, now: Time, input: Input, out: &mut Outputs<Output>) {
        let now = self.clock.advance(now);
        match input {
            Input::Request { conn, wall, request } => {
                self.wall = wall;
                self.forget(conn);
                self.counters.requests += 1;
                self.request(now, conn, request, out);
                self.wake_waiting(now, out);
            }
            Input::Gone { conn } => self.forget(conn),
            Input::Deadline { wall } => {
                self.wall = wall;
                self.run_background(now, out);
                self.wake_waiting(now, out);
                self.run_timers(now, out);
            }
        }
    }

    fn next_deadline(&self) -> Option<Deadline> {
        let timer = self.timers.first().map(|(at, conn)| {
            let why = match self.watches.get(conn) {
                Some(w) if w.end <= *at => Reason::WatchEnd,
                Some(_) => Reason::Bookmark,
                None => Reason::FirstByte,
            };
            Deadline { at: *at, why }
        });
        let background = self.background.due().map(|at| Deadline { at, why: Reason::Requeue });
        Deadline::earlier(timer, background)
    }
}

impl ApiServer {
    /// A server with the namespaces that every cluster has.
    #[must_use]
    pub fn new(options: Options, wall: UnixMillis) -> Self {
        let mut resources = resource::builtins();
        resources.extend(options.resources.iter().cloned());
        let shelves = resources.iter().map(|_| Shelf::default()).collect();
        let mut server = Self {
            rng: Rng::new(options.seed),
            options,
            clock: Clock::default(),
            wall,
            revision: 0,
            compacted: 0,
            resources,
            shelves,
            watches: BTreeMap::new(),
            waiting: BTreeMap::new(),
            timers: BTreeSet::new(),
            uids: BTreeMap::new(),
            dependents: BTreeMap::new(),
            background: background::Work::default(),
            faults: Vec::new(),
            counters: Counters::default(),
            addresses: 0,
            feed: None,
            mute: false,
        };
        let mut out = Outputs::new();
        for name in ["default", "kube-node-lease", "kube-public", "kube-system"] {
            let mut value = json!({"apiVersion":"v1","kind":"Namespace","metadata":{"name":name}});
            server.stamp(&mut value);
            kinds::prepare_create(&server.resources[NAMESPACES], &mut value, 0);
            server.commit(Time::ZERO, NAMESPACES, &Arc::from(name), Change::Put(value), &mut out);
        }
        server
    }

    /// Adds a resource; one of the same group, version and plural is replaced, its objects stay.
    pub fn register(&mut self, resource: Resource) {
        let same = |r: &Resource| {
            r.of.group == resource.of.group
                && r.of.version == resource.of.version
                && r.of.plural == resource.of.plural
        };
        if let Some(have) = self.resources.iter_mut().find(|r| same(r)) {
            *have = resource;
        } else {
            self.resources.push(resource);
            self.shelves.push(Shelf::default());
        }
    }

    /// The resources that are served.
    #[must_use]
    pub fn resources(&self) -> &[Resource] {
        &self.resources
    }

    /// The version of the last write.
    #[must_use]
    pub fn revision(&self) -> u64 {
        self.revision
    }

    /// Figures.
    #[must_use]
    pub fn counters(&self) -> Counters {
        Counters { watches: self.watches.len(), clock_clamped: self.clock.clamped, ..self.counters }
    }

    /// Forgets all history, as the real server's store does every five minutes: watches and exact lists at an older
    /// version get 410 from now on. Open watches go on.
    pub fn compact(&mut self) {
        self.compacted = self.revision;
        self.forget_events();
    }

    /// Forgets the events that watches start from, but not old lists: what a restart does to the real server.
    pub fn forget_events(&mut self) {
        for shelf in &mut self.shelves {
            shelf.compact(self.revision);
        }
    }

    /// Adds a disturbance; they are tried in the order in which they came.
    pub fn inject(&mut self, fault: Fault) {
        self.faults.push(fault);
    }

    /// Takes all disturbances away.
    pub fn clear_faults(&mut self) {
        self.faults.clear();
    }

    /// Sends these bytes to every open watch of a resource, whatever they are. They are not stored.
    pub fn inject_frame(&mut self, plural: &str, bytes: &[u8], out: &mut Outputs<Output>) {
        let bytes: Arc<[u8]> = bytes.into();
        for (conn, watch) in &self.watches {
            if self.resources[watch.res].of.plural == plural {
                out.push(Output::StreamChunk { conn: *conn, bytes: Arc::clone(&bytes) });
            }
        }
    }

    /// Stores an object whose JSON is sent as `raw` says, however wrong: one object that a client cannot read.
    /// Returns false if there is no such resource.
    pub fn put_raw(
        &mut self,
        now: Time,
        plural: &str,
        namespace: &str,
        name: &str,
        raw: &[u8],
        out: &mut Outputs<Output>,
    ) -> bool {
        let Some(res) = self.resources.iter().position(|r| r.of.plural == plural && r.stored_as.is_none())
        else {
            return false;
        };
        let key = key_of(namespace, name);
        let mut value = self.shelves[res].objects.get(&key).map_or_else(
            || {
                let of = &self.resources[res].of;
                let mut v = json!({"apiVersion":of.api_version(),"kind":of.kind,"metadata":{"name":name}});
                if !namespace.is_empty() {
                    v["metadata"]["namespace"] = json!(namespace);
                }
                v
            },
            |r| r.value.clone(),
        );
        self.stamp(&mut value);
        let now = self.clock.advance(now);
        self.commit(now, res, &key, Change::Raw(value, raw.into()), out);
        true
    }

    /// Ends every open watch in order, as a server does that shuts down.
    pub fn end_watches(&mut self, out: &mut Outputs<Output>) {
        let conns: Vec<ConnId> = self.watches.keys().copied().collect();
        for conn in conns {
            self.forget(conn);
            out.push(Output::StreamEnd { conn });
        }
    }

    /// One request without a connection of its own, for tests: the answer, or for a watch what it sent at once.
    /// Outputs to other connections are lost.
    pub fn call(&mut self, now: Time, wall: UnixMillis, request: ApiRequest) -> Answer {
        let mut out = Outputs::new();
        let conn = ConnId(u64::MAX);
        self.handle(now, Input::Request { conn, wall, request }, &mut out);
        self.handle(now, Input::Gone { conn }, &mut out);
        let mut answer = Answer::default();
        for o in out.drain() {
            match o {
                Output::Respond { conn: c, status, headers, body } if c == conn => {
                    answer = Answer { status, headers, body: body.to_vec() };
                }
                Output::StreamHead { conn: c, status, headers } if c == conn => {
                    answer.status = status;
                    answer.headers = headers;
                }
                Output::StreamChunk { conn: c, bytes } if c == conn => answer.body.extend_from_slice(&bytes),
                _ => {}
            }
        }
        answer
    }

    /// Uid and creation time for what has none.
    fn stamp(&mut self, value: &mut Value) {
        let meta = &mut value["metadata"];
        if meta.get("uid").is_none() {
            meta["uid"] = Value::String(self.uid());
        }
        if meta.get("creationTimestamp").is_none() {
            meta["creationTimestamp"] = Value::String(crate::clock::rfc3339(self.wall));
        }
    }

    /// A random UUID, version 4.
    fn uid(&mut self) -> String {
        let (a, b) = (self.rng.next_u64(), self.rng.next_u64());
        format!(
            "{:08x}-{:04x}-4{:03x}-{:04x}-{:012x}",
            a >> 32,
            (a >> 16) & 0xffff,
            a & 0xfff,
            0x8000 | (b >> 50),
            b & 0xffff_ffff_ffff
        )
    }

    fn forget(&mut self, conn: ConnId) {
        if let Some(w) = self.waiting.remove(&conn) {
            self.timers.remove(&(w.until, conn));
        }
        self.close_watch(conn);
    }

    /// Where the objects of a served resource are.
    fn shelf_of(&self, res: usize) -> usize {
        self.resources[res].stored_as.unwrap_or(res)
    }

    fn about(&self, res: usize) -> About<'_> {
        let of = &self.resources[res].of;
        About { group: &of.group, kind: &of.plural }
    }

    fn about_kind(&self, res: usize) -> About<'_> {
        let of = &self.resources[res].of;
        About { group: &of.group, kind: &of.kind }
    }

    fn request(&mut self, now: Time, conn: ConnId, request: ApiRequest, out: &mut Outputs<Output>) {
        let mut after = false;
        if let Some(kind) = self.fault(&request) {
            match kind {
                FaultKind::Answer { code, reason, message, retry_after } => {
                    let details = crate::status::Details {
                        retry_after: retry_after.unwrap_or(0),
                        ..Default::default()
                    };
                    let failure = Failure {
                        code,
                        reason,
                        message,
                        details: Some(Box::new(details)),
                        ..Failure::default()
                    };
                    return self.fail(conn, &request, &failure, out);
                }
                FaultKind::Raw { code, content_type, body } => {
                    let headers = vec![("Content-Type", content_type)];
                    return out.push(Output::Respond { conn, status: code, headers, body: body.into() });
                }
                FaultKind::Hang => return,
                FaultKind::Drop => return out.push(Output::Close { conn }),
                FaultKind::DropAfter => after = true,
            }
        }
        if after {
            let mut mine = Outputs::new();
            self.answer(now, conn, request, &mut mine);
            let to = |o: &Output| match o {
                Output::Respond { conn, .. }
                | Output::StreamHead { conn, .. }
                | Output::StreamChunk { conn, .. }
                | Output::StreamEnd { conn }
                | Output::Close { conn } => *conn,
            };
            out.extend(mine.into_iter().filter(|o| to(o) != conn));
            self.forget(conn);
            return out.push(Output::Close { conn });
        }
        self.answer(now, conn, request, out);
    }

    fn answer(&mut self, now: Time, conn: ConnId, request: ApiRequest, out: &mut Outputs<Output>) {
        match self.serve(now, conn, &request, out) {
            Ok((Reply::Later, ..)) => {}
            Ok((Reply::Object(status, record), res, format)) => {
                let body = if let (Format::Plain, Some(r)) = (format, self.resources.get(res))
                    && r.stored_as.is_none()
                {
                    let mut body = Vec::with_capacity(record.json.len() + 1);
                    body.extend_from_slice(&record.json);
                    body.push(b'\n');
                    body
                } else {
                    self.render(res, format, &record, true)
                };
                respond(conn, &request, status, "application/json", body, out);
            }
            Ok((Reply::Json(status, body), ..)) => {
                respond(conn, &request, status, "application/json", body, out);
            }
            Ok((Reply::Other(status, content_type, body), ..)) => {
                respond(conn, &request, status, content_type, body, out);
            }
            Err(failure) => self.fail(conn, &request, &failure, out),
        }
    }

    fn fail(&self, conn: ConnId, request: &ApiRequest, failure: &Failure, out: &mut Outputs<Output>) {
        let content_type = if failure.plain { "text/plain; charset=utf-8" } else { "application/json" };
        respond_with(
            conn,
            request,
            failure.code,
            content_type,
            failure.body(),
            |headers| {
                if let Some(d) = &failure.details
                    && d.retry_after > 0
                {
                    headers.push(("Retry-After", d.retry_after.to_string()));
                }
                if failure.code == 403 {
                    headers.push(("X-Content-Type-Options", "nosniff".into()));
                }
            },
            out,
        );
    }

    fn serve(
        &mut self,
        now: Time,
        conn: ConnId,
        request: &ApiRequest,
        out: &mut Outputs<Output>,
    ) -> Result<(Reply, usize, Format), Failure> {
        let user = self.authenticate(request)?;
        let path = route::parse(&request.path).ok_or_else(Failure::page_not_found)?;
        let query = Query::parse(&request.query);
        self.authorise(&user, request, &path, &query)?;
        let target = match path {
            Path::Other(segments) => return Ok((self.discover(request, &segments)?, 0, Format::Plain)),
            Path::Resource(target) => target,
        };
        let res = self.find(&target)?;
        if request.body.len() > self.options.max_body {
            return Err(Failure {
                code: 413,
                reason: "RequestEntityTooLarge",
                message: format!("Request entity too large: limit is {}", self.options.max_body),
                details: Some(Box::default()),
                ..Failure::default()
            });
        }
        let streams = request.method == "GET" && target.name.is_empty();
        let watch = target.watch || query.flag("watch");
        let list = target.name.is_empty() && ((streams && !watch) || request.method == "DELETE");
        let format = Format::negotiate(request.get("accept").unwrap_or(""), streams, list)?
            .including(query.get("includeObject"));
        let call = Call { conn, now, request, query, target, res, format };
        let reply = self.dispatch(&call, out)?;
        Ok((reply, res, format))
    }

    /// The resource of a path.
    fn find(&self, target: &Target) -> Result<usize, Failure> {
        let found = self.resources.iter().position(|r| {
            r.of.group == target.group && r.of.version == target.version && r.of.plural == target.plural
        });
        let known_group = self.resources.iter().any(|r| !r.is_custom() && r.of.group == target.group);
        let missing = || if known_group { Failure::no_such_resource() } else { Failure::page_not_found() };
        let res = found.ok_or_else(missing)?;
        let resource = &self.resources[res];
        let sub_ok = match target.subresource.as_str() {
            "" => true,
            "status" => resource.status,
            "finalize" => res == NAMESPACES,
            "eviction" => resource.of.plural == "pods",
            _ => false,
        };
        // A custom object's path is known; what is not there below it is not found by the object's name.
        if !sub_ok && resource.is_custom() && target.fits(resource) {
            return Err(Failure::not_found(self.about(res), &target.name));
        }
        if !target.fits(resource) || !sub_ok {
            return Err(missing());
        }
        Ok(res)
    }

    fn dispatch(&mut self, call: &Call<'_>, out: &mut Outputs<Output>) -> Result<Reply, Failure> {
        let t = &call.target;
        match (call.request.method.as_str(), t.name.is_empty(), t.subresource.as_str()) {
            ("GET", true, _) | ("GET", false, "") if t.watch => self.watch(call, out),
            ("GET", true, _) if call.query.flag("watch") => self.watch(call, out),
            ("GET", true, _) => self.list(call),
            ("GET", false, "" | "status") => self.get(call),
            ("POST", true, _) if !self.resources[call.res].namespaced() || !t.namespace.is_empty() => {
                self.create(call, out)
            }
            ("POST", false, "eviction") => self.evict(call, out),
            ("PUT", false, "" | "status" | "finalize") => self.replace(call, out),
            ("PATCH", false, "" | "status") => self.patch(call, out),
            ("DELETE", false, "") => self.delete(call, out),
            ("DELETE", true, _) if call.res != NAMESPACES => self.delete_collection(call, out),
            _ => Err(Failure::method_not_allowed()),
        }
    }

    /// The object as one resource and format show it, with a newline if `line`.
    fn render(&self, res: usize, format: Format, record: &Record, line: bool) -> Vec<u8> {
        let resource = &self.resources[res];
        let mut out = Vec::with_capacity(record.json.len() + 64);
        match format {
            Format::Plain if resource.stored_as.is_none() => out.extend_from_slice(&record.json),
            Format::Plain => out = store::encode(resource, &kinds::event_out(&record.value)),
            Format::Metadata => table::write_partial(&mut out, record),
            Format::Table(include) => {
                table::write_table(
                    &mut out,
                    resource,
                    &[record],
                    include,
                    self.wall,
                    &record.version.to_string(),
                    None,
                    true,
                );
            }
        }
        if line {
            out.push(b'\n');
        }
        out
    }

    /// The one place where a version is made: stores, indexes, logs, and tells the watches.
    fn commit(
        &mut self,
        now: Time,
        shelf: usize,
        key: &Arc<str>,
        change: Change,
        out: &mut Outputs<Output>,
    ) -> Arc<Record> {
        self.revision += 1;
        self.counters.writes += 1;
        let version = self.revision;
        let resource = &self.resources[shelf];
        let old = self.shelves[shelf].objects.get(key).cloned();
        let (new, deleted) = match change {
            Change::Put(value) => (Arc::new(Record::new(resource, key, value, version)), false),
            Change::Raw(value, raw) => {
                let mut record = Record::new(resource, key, value, version);
                record.json = raw;
                (Arc::new(record), false)
            }
            Change::Delete => {
                let last = old.as_ref().map_or(Value::Null, |r| r.value.clone());
                (Arc::new(Record::new(resource, key, last, version)), true)
            }
        };
        self.index(shelf, old.as_deref(), (!deleted).then_some(&*new));
        let (most, age) = (self.options.history_events, self.options.history_age);
        let s = &mut self.shelves[shelf];
        if deleted {
            s.objects.remove(key);
        } else {
            s.objects.insert(Arc::clone(key), Arc::clone(&new));
        }
        let entry = Entry { version, at: now, old, new: Arc::clone(&new), deleted };
        s.log.push_back(entry.clone());
        s.trim(now, most, age);
        self.follow_up(now, shelf, &entry);
        self.tell(shelf, &entry, out);
        if let Some(feed) = &mut self.feed {
            feed.push(Commit { shelf, entry });
        }
        new
    }

    fn index(&mut self, shelf: usize, old: Option<&Record>, new: Option<&Record>) {
        let owners = |r: Option<&Record>| -> BTreeSet<String> {
            r.map(|r| r.owners().map(str::to_owned).collect()).unwrap_or_default()
        };
        let (before, after) = (owners(old), owners(new));
        let Some(any) = new.or(old) else { return };
        let place = (shelf, Arc::clone(&any.key));
        for uid in before.difference(&after) {
            if let Some(set) = self.dependents.get_mut(uid) {
                set.remove(&place);
                if set.is_empty() {
                    self.dependents.remove(uid);
                }
            }
        }
        for uid in after.difference(&before) {
            self.dependents.entry(uid.clone()).or_default().insert(place.clone());
        }
        if let Some(old) = old
            && new.is_none_or(|n| n.uid() != old.uid())
        {
            self.uids.remove(old.uid());
        }
        if let Some(new) = new
            && old.is_none_or(|o| o.uid() != new.uid())
        {
            self.uids.insert(new.uid().to_owned(), place);
        }
    }
}

/// A write, decided.
enum Change {
    Put(Value),
    /// Sent as these bytes.
    Raw(Value, Arc<[u8]>),
    Delete,
}

fn key_of(namespace: &str, name: &str) -> Arc<str> {
    if namespace.is_empty() { name.into() } else { format!("{namespace}/{name}").into() }
}

fn respond(
    conn: ConnId,
    request: &ApiRequest,
    status: u16,
    content_type: &str,
    body: Vec<u8>,
    out: &mut Outputs<Output>,
) {
    respond_with(conn, request, status, content_type, body, |_| {}, out);
}

fn respond_with(
    conn: ConnId,
    request: &ApiRequest,
    status: u16,
    content_type: &str,
    mut body: Vec<u8>,
    more: impl FnOnce(&mut Vec<(&'static str, String)>),
    out: &mut Outputs<Output>,
) {
    if content_type == "application/json" && wants_pretty(request) {
        body = json::pretty(&body);
    }
    let mut headers =
        vec![("Cache-Control", "no-cache, private".to_owned()), ("Content-Type", content_type.to_owned())];
    more(&mut headers);
    out.push(Output::Respond { conn, status, headers, body: body.into() });
}

/// The real server indents for people: when asked, or for programs that people type.
fn wants_pretty(request: &ApiRequest) -> bool {
    let query = Query::parse(&request.query);
    if query.has("pretty") {
        return query.flag("pretty");
    }
    let agent = request.get("user-agent").unwrap_or("");
    ["curl", "Wget", "Mozilla/5.0"].iter().any(|p| agent.starts_with(p))
}
