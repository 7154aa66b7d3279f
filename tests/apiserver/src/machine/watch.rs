//! Watches: where they start, what they are told, when they end.

use std::sync::Arc;

use steersman_core::machine::Outputs;
use steersman_core::net::ConnId;
use steersman_core::time::Time;

use super::read::{self, Selection};
use super::store::{Entry, KeyRange, Record};
use super::table::{self, Format};
use super::{ApiServer, Call, Output, Reply};
use crate::json;
use crate::kinds;
use crate::status::{Failure, FieldError};
use std::time::Duration;

/// How long before its end a watch gets a last bookmark, and the shortest watch that gets one.
const LAST_BOOKMARK: Duration = Duration::from_secs(2);
const SHORTEST_WITH_BOOKMARK: Duration = Duration::from_secs(6);

/// One open watch.
pub(super) struct Watch {
    pub(super) res: usize,
    namespace: String,
    name: Option<String>,
    selection: Selection,
    format: Format,
    /// Events after this version are sent.
    start: u64,
    bookmark: Option<Time>,
    last_bookmark: Option<Time>,
    pub(super) end: Time,
    /// Columns are told once.
    columns_told: bool,
}

impl Watch {
    fn timer(&self) -> Time {
        [self.bookmark, self.last_bookmark].into_iter().flatten().fold(self.end, Time::min)
    }

    fn sees(&self, record: &Record) -> bool {
        self.name.as_deref().is_none_or(|n| n == record.name()) && self.selection.matches(&record.value)
    }
}

/// The lines of one event, made once for all watches that want the same.
#[derive(Default)]
struct Lines {
    made: Vec<(usize, &'static str, Arc<[u8]>)>,
    left: Option<Arc<Record>>,
}

fn line(kind: &str, object: &[u8]) -> Arc<[u8]> {
    let mut out = Vec::with_capacity(object.len() + 32);
    out.extend_from_slice(b"{\"type\":\"");
    out.extend_from_slice(kind.as_bytes());
    out.extend_from_slice(b"\",\"object\":");
    out.extend_from_slice(object);
    out.extend_from_slice(b"}\n");
    out.into()
}

fn head(conn: ConnId, out: &mut Outputs<Output>) {
    let headers = vec![
        ("Cache-Control", "no-cache, private".to_owned()),
        ("Content-Type", "application/json".to_owned()),
    ];
    out.push(Output::StreamHead { conn, status: 200, headers });
}

/// A watch that only says what is wrong.
pub(super) fn error_stream(conn: ConnId, failure: &Failure, out: &mut Outputs<Output>) {
    head(conn, out);
    let body = failure.body();
    out.push(Output::StreamChunk { conn, bytes: line("ERROR", body.trim_ascii_end()) });
    out.push(Output::StreamEnd { conn });
}

impl ApiServer {
    pub(super) fn watch(&mut self, call: &Call<'_>, out: &mut Outputs<Output>) -> Result<Reply, Failure> {
        let selection = self.selection(call)?;
        let timeout = read::int_param(call, "timeoutSeconds")?;
        read::int_param(call, "limit")?;
        let q = &call.query;
        let initial = q.has("sendInitialEvents").then(|| q.flag("sendInitialEvents"));
        watch_options(initial, q.get("resourceVersionMatch"))?;
        let asked = read::version_param(call).map_err(Failure::internal)?.unwrap_or(0);
        let shelf = self.shelf_of(call.res);
        let bookmarks = q.flag("allowWatchBookmarks");
        let synthetic = initial.unwrap_or(asked == 0);
        if synthetic && asked > self.revision {
            return Ok(self.wait(call, asked, true));
        }
        let start = if synthetic || asked == 0 { self.revision } else { asked };
        let floor = self.shelves[shelf].floor;
        if start < floor {
            error_stream(
                call.conn,
                &Failure::expired(format!("too old resource version: {start} ({floor})")),
                out,
            );
            return Ok(Reply::Later);
        }
        let life = match u64::try_from(timeout) {
            Ok(secs) if secs > 0 => Duration::from_secs(secs),
            _ => {
                let least = self.options.min_request_timeout;
                self.rng.between(least, least.saturating_mul(2))
            }
        };
        let end = call.now + life;
        let namespace = self.scope(call).to_owned();
        let name = (!call.target.name.is_empty()).then(|| call.target.name.clone());
        let name = name.or_else(|| selection.fields.name().map(str::to_owned));
        let last_bookmark = (bookmarks && life >= SHORTEST_WITH_BOOKMARK)
            .then(|| call.now + life.saturating_sub(LAST_BOOKMARK));
        let mut watch = Watch {
            res: call.res,
            namespace,
            name,
            selection,
            format: call.format,
            start,
            bookmark: bookmarks.then(|| call.now + self.options.bookmark_interval),
            last_bookmark,
            end,
            columns_told: false,
        };
        head(call.conn, out);
        let conn = call.conn;
        if synthetic {
            let range = if watch.namespace.is_empty() {
                KeyRange::all()
            } else {
                KeyRange::namespace(&watch.namespace)
            };
            let now: Vec<Arc<Record>> =
                self.shelves[shelf].range(&range).filter(|r| watch.sees(r)).cloned().collect();
            for record in now {
                let bytes = self.event_line(&mut watch, "ADDED", &record);
                self.send(conn, bytes, out);
            }
            if bookmarks {
                let bytes = self.bookmark_line(&mut watch, true);
                self.send(conn, bytes, out);
            }
        } else {
            let missed: Vec<Entry> = self.shelves[shelf].since(start).cloned().collect();
            for entry in missed {
                let in_scope = watch.namespace.is_empty() || entry.new.namespace() == watch.namespace;
                if in_scope && let Some(bytes) = self.tell_one(&mut watch, &entry, &mut Lines::default()) {
                    self.send(conn, bytes, out);
                }
            }
        }
        self.timers.insert((watch.timer(), conn));
        let shelf = &mut self.shelves[shelf];
        if watch.namespace.is_empty() {
            shelf.watchers.insert(conn);
        } else {
            shelf.watchers_in.entry(watch.namespace.clone()).or_default().insert(conn);
        }
        self.watches.insert(conn, watch);
        Ok(Reply::Later)
    }

    pub(super) fn close_watch(&mut self, conn: ConnId) {
        let Some(watch) = self.watches.remove(&conn) else { return };
        self.timers.remove(&(watch.timer(), conn));
        let shelf = self.shelf_of(watch.res);
        let shelf = &mut self.shelves[shelf];
        shelf.watchers.remove(&conn);
        if let Some(set) = shelf.watchers_in.get_mut(&watch.namespace) {
            set.remove(&conn);
            if set.is_empty() {
                shelf.watchers_in.remove(&watch.namespace);
            }
        }
    }

    fn send(&mut self, conn: ConnId, bytes: Arc<[u8]>, out: &mut Outputs<Output>) {
        self.counters.events_sent += 1;
        out.push(Output::StreamChunk { conn, bytes });
    }

    /// Tells every watch of a shelf what happened.
    pub(super) fn tell(&mut self, shelf: usize, entry: &Entry, out: &mut Outputs<Output>) {
        let s = &self.shelves[shelf];
        let near = s.watchers_in.get(entry.new.namespace());
        if s.watchers.is_empty() && near.is_none() {
            return;
        }
        let conns: Vec<ConnId> = s.watchers.iter().chain(near.into_iter().flatten()).copied().collect();
        let mut lines = Lines::default();
        for conn in conns {
            let Some(mut watch) = self.watches.remove(&conn) else { continue };
            if entry.version > watch.start
                && let Some(bytes) = self.tell_one(&mut watch, entry, &mut lines)
            {
                self.send(conn, bytes, out);
            }
            self.watches.insert(conn, watch);
        }
    }

    /// The line that one watch gets for an event, if any.
    fn tell_one(&self, watch: &mut Watch, entry: &Entry, lines: &mut Lines) -> Option<Arc<[u8]>> {
        let before = entry.old.as_ref().is_some_and(|r| watch.sees(r));
        let after = !entry.deleted && watch.sees(&entry.new);
        let (kind, record) = match (before, after) {
            (false, true) => ("ADDED", &entry.new),
            (true, true) => ("MODIFIED", &entry.new),
            (true, false) if entry.deleted => ("DELETED", &entry.new),
            // It left the selection: the state before, with the version of the change.
            (true, false) => {
                let old = entry.old.as_ref()?;
                let left = lines.left.get_or_insert_with(|| {
                    let stored = &self.resources[self.shelf_of(watch.res)];
                    Arc::new(Record::new(stored, &old.key, old.value.clone(), entry.version))
                });
                ("DELETED", &*left)
            }
            (false, false) => return None,
        };
        if watch.format != Format::Plain {
            let record = Arc::clone(record);
            return Some(self.event_line(watch, kind, &record));
        }
        if let Some((_, _, bytes)) = lines.made.iter().find(|(res, k, _)| *res == watch.res && *k == kind) {
            return Some(Arc::clone(bytes));
        }
        let record = Arc::clone(record);
        let bytes = self.event_line(watch, kind, &record);
        lines.made.push((watch.res, kind, Arc::clone(&bytes)));
        Some(bytes)
    }

    fn event_line(&self, watch: &mut Watch, kind: &str, record: &Record) -> Arc<[u8]> {
        let resource = &self.resources[watch.res];
        match watch.format {
            Format::Plain if resource.stored_as.is_none() => line(kind, &record.json),
            Format::Table(include) => {
                let mut object = Vec::new();
                let version = record.version.to_string();
                let first = !std::mem::replace(&mut watch.columns_told, true);
                table::write_table(
                    &mut object,
                    resource,
                    &[record],
                    include,
                    self.wall,
                    &version,
                    None,
                    first,
                );
                line(kind, &object)
            }
            Format::Metadata => {
                let mut object = Vec::new();
                table::write_partial(&mut object, record);
                line(kind, &object)
            }
            Format::Plain => line(kind, &super::store::encode(resource, &kinds::event_out(&record.value))),
        }
    }

    fn bookmark_line(&self, watch: &mut Watch, initial_end: bool) -> Arc<[u8]> {
        let resource = &self.resources[watch.res];
        let mut object = Vec::new();
        let version = self.revision.to_string();
        let annotations =
            |out: &mut Vec<u8>| out.extend_from_slice(b"{\"k8s.io/initial-events-end\":\"true\"}");
        if let Format::Table(include) = watch.format {
            let first = !std::mem::replace(&mut watch.columns_told, true);
            table::write_table(&mut object, resource, &[], include, self.wall, &version, None, first);
            return line("BOOKMARK", &object);
        }
        let partial = watch.format == Format::Metadata;
        let (kind, api) = if partial {
            ("PartialObjectMetadata", "meta.k8s.io/v1".to_owned())
        } else {
            (resource.of.kind.as_ref(), resource.of.api_version())
        };
        let sorted = resource.is_custom() && !partial;
        let mut m = json::Members::new(&mut object);
        m.text(if sorted { "apiVersion" } else { "kind" }, if sorted { &api } else { kind });
        m.text(if sorted { "kind" } else { "apiVersion" }, if sorted { kind } else { &api });
        let meta = m.raw("metadata");
        let mut inner = json::Members::new(meta);
        if sorted && initial_end {
            annotations(inner.raw("annotations"));
        }
        inner.text("resourceVersion", &version);
        if !sorted && initial_end {
            annotations(inner.raw("annotations"));
        }
        inner.end();
        // Zero values of a struct without `omitempty`.
        match resource.rules {
            crate::resource::Rules::Pod if !partial => {
                m.raw("spec").extend_from_slice(b"{\"containers\":null}");
                m.raw("status").extend_from_slice(b"{}");
            }
            crate::resource::Rules::Lease if !partial => m.raw("spec").extend_from_slice(b"{}"),
            _ => {}
        }
        m.end();
        line("BOOKMARK", &object)
    }

    /// Serves the timers that are due: bookmarks and ends.
    pub(super) fn run_timers(&mut self, now: Time, out: &mut Outputs<Output>) {
        while let Some((at, conn)) = self.timers.first().copied() {
            if at > now {
                return;
            }
            self.timers.remove(&(at, conn));
            let Some(mut watch) = self.watches.remove(&conn) else { continue };
            if watch.end <= now {
                self.watches.insert(conn, watch);
                self.close_watch(conn);
                out.push(Output::StreamEnd { conn });
                continue;
            }
            if watch.bookmark.is_some_and(|b| b <= now) {
                watch.bookmark = Some(now + self.options.bookmark_interval.max(Duration::from_millis(1)));
            }
            if watch.last_bookmark.is_some_and(|b| b <= now) {
                watch.last_bookmark = None;
            }
            // A watch from the future stays silent.
            if watch.start <= self.revision && !self.mute {
                let bytes = self.bookmark_line(&mut watch, false);
                out.push(Output::StreamChunk { conn, bytes });
            }
            self.timers.insert((watch.timer(), conn));
            self.watches.insert(conn, watch);
        }
    }
}

fn watch_options(initial: Option<bool>, matching: &str) -> Result<(), Failure> {
    let at = "resourceVersionMatch";
    let mut errors = Vec::new();
    match (initial, matching) {
        (None, "") | (Some(_), "NotOlderThan") => return Ok(()),
        (None, _) => errors.push(FieldError::forbidden(
            at,
            "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided",
        )),
        (Some(_), matching) => {
            errors.push(FieldError::forbidden(
                at,
                "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan",
            ));
            if !matching.is_empty() {
                errors.push(FieldError::unsupported(at, &format!("{matching:?}"), "\"NotOlderThan\""));
            }
        }
    }
    Err(read::options_invalid("ListOptions", errors))
}
