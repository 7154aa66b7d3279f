//! Servers that lag: as the watch caches of a real cluster's API servers, a follower answers from a state that is some
//! commits old.

use std::sync::Arc;

use steersman_core::api::ResourceType;
use steersman_core::machine::Outputs;
use steersman_core::time::Time;

use super::access::verb;
use super::route::{self, Path, Query};
use super::store::{Entry, Shelf};
use super::{ApiRequest, ApiServer, Output};

/// One version that a server made, on its way to its followers.
#[derive(Clone, Debug)]
pub struct Commit {
    pub(super) shelf: usize,
    pub(super) entry: Entry,
}

impl Commit {
    /// The version.
    #[must_use]
    pub fn version(&self) -> u64 {
        self.entry.version
    }

    /// `namespace/name`, or `name` in the cluster scope.
    #[must_use]
    pub fn key(&self) -> &str {
        &self.entry.new.key
    }

    /// The kind of the object.
    #[must_use]
    pub fn kind(&self) -> &str {
        self.entry.new.value.get("kind").and_then(serde_json::Value::as_str).unwrap_or("")
    }

    /// `created`, `updated` or `deleted`.
    #[must_use]
    pub fn what(&self) -> &'static str {
        match (&self.entry.old, self.entry.deleted) {
            (_, true) => "deleted",
            (None, _) => "created",
            (Some(_), _) => "updated",
        }
    }
}

/// An object as it is stored.
#[derive(Clone, Copy, Debug)]
pub struct Stored<'a> {
    /// `namespace/name`, or `name` in the cluster scope.
    pub key: &'a str,
    /// Its version.
    pub version: u64,
    /// With kind, apiVersion and resourceVersion.
    pub value: &'a serde_json::Value,
    /// As it is sent.
    pub json: &'a [u8],
}

impl ApiServer {
    /// The objects of a resource in the order of their keys; none if it is not served.
    pub fn stored(&self, of: &ResourceType) -> impl Iterator<Item = Stored<'_>> {
        let res = self
            .resources
            .iter()
            .position(|r| r.of.group == of.group && r.of.version == of.version && r.of.plural == of.plural);
        let shelf = res.map(|res| &self.shelves[self.shelf_of(res)]);
        shelf.into_iter().flat_map(|s| s.objects.values()).map(|r| Stored {
            key: &r.key,
            version: r.version,
            value: &r.value,
            json: &r.json,
        })
    }

    /// From now on every version is kept for [`take_commits`](Self::take_commits).
    pub fn keep_commits(&mut self) {
        self.feed.get_or_insert_with(Vec::new);
    }

    /// The versions that were made since the last call, oldest first.
    pub fn take_commits(&mut self) -> Vec<Commit> {
        self.feed.as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// A server that shows the present state of this one until it is told more, with no memory of what was before, as a
    /// watch cache that was just filled. It is for requests that [`reads_cache`](Self::reads_cache); it must not write.
    #[must_use]
    pub fn follower(&self) -> Self {
        let mut follower = Self::new(self.options.clone(), self.wall);
        follower.resources.clone_from(&self.resources);
        follower.shelves = self
            .shelves
            .iter()
            .map(|s| Shelf { objects: s.objects.clone(), floor: self.revision, ..Shelf::default() })
            .collect();
        follower.revision = self.revision;
        follower.compacted = self.revision;
        follower
    }

    /// Hears of the next version. Older ones than it has are ignored.
    pub fn follow(&mut self, now: Time, commit: &Commit, out: &mut Outputs<Output>) {
        let now = self.clock.advance(now);
        let Commit { shelf, entry } = commit;
        let Some(s) = self.shelves.get_mut(*shelf).filter(|_| entry.version > self.revision) else { return };
        self.revision = entry.version;
        if entry.deleted {
            s.objects.remove(&entry.new.key);
        } else {
            s.objects.insert(Arc::clone(&entry.new.key), Arc::clone(&entry.new));
        }
        s.log.push_back(Entry { at: now, ..entry.clone() });
        s.trim(now, self.options.history_events, self.options.history_age);
        self.tell(*shelf, entry, out);
        self.wake_waiting(now, out);
    }

    /// Whether a real server answers this from its watch cache, so that it may be behind: reads at a version that may be
    /// an old one, and watches from a version.
    #[must_use]
    pub fn reads_cache(request: &ApiRequest) -> bool {
        let Some(Path::Resource(target)) = route::parse(&request.path) else { return false };
        let query = Query::parse(&request.query);
        let (version, matching) = (query.get("resourceVersion"), query.get("resourceVersionMatch"));
        match verb(&request.method, &target, &query) {
            "get" | "watch" => !version.is_empty(),
            "list" if !query.get("continue").is_empty() => false,
            "list" => match version {
                "" => false,
                "0" => true,
                _ => matching == "NotOlderThan" || (matching.is_empty() && query.get("limit").is_empty()),
            },
            _ => false,
        }
    }

    /// Whether watches get no more bookmarks, but the one that ends the initial events.
    pub fn mute_bookmarks(&mut self, mute: bool) {
        self.mute = mute;
    }
}
