//! Objects by key, the global revision, and what happened since.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::iter::Peekable;
use std::ops::Bound;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use steersman_core::net::ConnId;
use steersman_core::time::Time;

use crate::json;
use crate::resource::Resource;

/// One version of one object; immutable.
#[derive(Debug)]
pub(crate) struct Record {
    /// `namespace/name`, or `name` in the cluster scope.
    pub(crate) key: Arc<str>,
    pub(crate) version: u64,
    /// With kind, apiVersion and resourceVersion.
    pub(crate) value: Value,
    /// `value` as it is sent.
    pub(crate) json: Arc<[u8]>,
}

impl Record {
    pub(crate) fn new(resource: &Resource, key: &Arc<str>, mut value: Value, version: u64) -> Self {
        value["metadata"]["resourceVersion"] = Value::String(version.to_string());
        let json = encode(resource, &value);
        Self { key: Arc::clone(key), version, value, json: json.into() }
    }

    pub(crate) fn meta(&self) -> &Value {
        &self.value["metadata"]
    }

    pub(crate) fn uid(&self) -> &str {
        self.meta().get("uid").and_then(Value::as_str).unwrap_or("")
    }

    pub(crate) fn namespace(&self) -> &str {
        self.key.split_once('/').map_or("", |(ns, _)| ns)
    }

    pub(crate) fn name(&self) -> &str {
        self.key.split_once('/').map_or(&*self.key, |(_, name)| name)
    }

    pub(crate) fn finalizers(&self) -> impl Iterator<Item = &str> {
        finalizers(self.meta())
    }

    pub(crate) fn ending(&self) -> bool {
        self.meta().get("deletionTimestamp").is_some()
    }

    /// Uids of the owners.
    pub(crate) fn owners(&self) -> impl Iterator<Item = &str> {
        owners(self.meta()).filter_map(|o| o.get("uid").and_then(Value::as_str))
    }
}

pub(crate) fn finalizers(meta: &Value) -> impl Iterator<Item = &str> {
    meta.get("finalizers").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str)
}

pub(crate) fn owners(meta: &Value) -> impl Iterator<Item = &Value> {
    meta.get("ownerReferences").and_then(Value::as_array).into_iter().flatten()
}

/// The bytes of an object as its resource sends them.
pub(crate) fn encode(resource: &Resource, value: &Value) -> Vec<u8> {
    let mut out = Vec::with_capacity(512);
    match value.as_object() {
        Some(map) if !resource.is_custom() => json::write_builtin(&mut out, map, resource.fields),
        _ => json::write(&mut out, value),
    }
    out
}

/// What happened to one key at one version.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) version: u64,
    pub(crate) at: Time,
    /// The state before; `None` for a creation.
    pub(crate) old: Option<Arc<Record>>,
    /// The state after; for a deletion the last state with the version of the deletion.
    pub(crate) new: Arc<Record>,
    pub(crate) deleted: bool,
}

/// All objects of one resource, and its history.
#[derive(Debug, Default)]
pub(crate) struct Shelf {
    pub(crate) objects: BTreeMap<Arc<str>, Arc<Record>>,
    pub(crate) log: VecDeque<Entry>,
    /// The log holds every event after this version.
    pub(crate) floor: u64,
    /// Watches over all namespaces, and those over one.
    pub(crate) watchers: BTreeSet<ConnId>,
    pub(crate) watchers_in: BTreeMap<String, BTreeSet<ConnId>>,
}

impl Shelf {
    /// Drops events beyond the limits; amortised one per write.
    pub(crate) fn trim(&mut self, now: Time, most: usize, age: Duration) {
        while let Some(first) = self.log.front() {
            if self.log.len() <= most && now.since(first.at) < age {
                break;
            }
            self.floor = first.version;
            self.log.pop_front();
        }
    }

    /// Forgets what happened up to `version`.
    pub(crate) fn compact(&mut self, version: u64) {
        let gone = self.log.partition_point(|e| e.version <= version);
        self.log.drain(..gone);
        self.floor = self.floor.max(version);
    }

    /// Events after `version`, oldest first.
    pub(crate) fn since(&self, version: u64) -> impl Iterator<Item = &Entry> {
        let from = self.log.partition_point(|e| e.version <= version);
        self.log.range(from..)
    }

    /// The objects of `range` as they were at `version`, in order. The log must reach back that far.
    pub(crate) fn at<'a>(
        &'a self,
        version: u64,
        range: &KeyRange,
    ) -> impl Iterator<Item = &'a Arc<Record>> + use<'a> {
        let mut undo: BTreeMap<&'a str, Option<&'a Arc<Record>>> = BTreeMap::new();
        for e in self.log.iter().rev().take_while(|e| e.version > version) {
            if range.contains(&e.new.key) {
                undo.insert(&e.new.key, e.old.as_ref());
            }
        }
        Undone { current: self.range(range).peekable(), undo: undo.into_iter().peekable() }
    }

    pub(crate) fn range<'a>(&'a self, range: &KeyRange) -> Box<dyn Iterator<Item = &'a Arc<Record>> + 'a> {
        let end = match &range.end {
            Some(end) if *end <= range.start => return Box::new(std::iter::empty()),
            Some(end) => Bound::Excluded(end.as_str()),
            None => Bound::Unbounded,
        };
        let bounds = (Bound::Included(range.start.as_str()), end);
        Box::new(self.objects.range::<str, _>(bounds).map(|(_, r)| r))
    }
}

/// Keys from `start` on, and below `end`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct KeyRange {
    pub(crate) start: String,
    pub(crate) end: Option<String>,
}

impl KeyRange {
    pub(crate) fn all() -> Self {
        Self { start: String::new(), end: None }
    }

    pub(crate) fn namespace(namespace: &str) -> Self {
        // '0' follows '/'.
        Self { start: format!("{namespace}/"), end: Some(format!("{namespace}0")) }
    }

    fn contains(&self, key: &str) -> bool {
        key >= self.start.as_str() && self.end.as_ref().is_none_or(|end| key < end.as_str())
    }
}

struct Undone<'a, C: Iterator<Item = &'a Arc<Record>>, U: Iterator<Item = (&'a str, Option<&'a Arc<Record>>)>>
{
    current: Peekable<C>,
    undo: Peekable<U>,
}

impl<'a, C, U> Iterator for Undone<'a, C, U>
where
    C: Iterator<Item = &'a Arc<Record>>,
    U: Iterator<Item = (&'a str, Option<&'a Arc<Record>>)>,
{
    type Item = &'a Arc<Record>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let current = self.current.peek().map(|r| &*r.key);
            let undo = self.undo.peek().map(|(k, _)| *k);
            match (current, undo) {
                (Some(c), Some(u)) if c < u => return self.current.next(),
                (Some(_), None) => return self.current.next(),
                (None, None) => return None,
                (c, Some(u)) => {
                    if c == Some(u) {
                        self.current.next();
                    }
                    if let Some((_, Some(old))) = self.undo.next() {
                        return Some(old);
                    }
                }
            }
        }
    }
}
