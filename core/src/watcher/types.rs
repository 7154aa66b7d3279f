//! What goes into a watcher and what comes out.

use alloc::string::String;
use core::time::Duration;

use serde::{Deserialize, Serialize};

pub use crate::api::ListMeta;
use crate::api::Status;
use crate::object::Key;
use crate::store::IndexPanic;

/// Names one request of one watcher; never reused by it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ReqId(pub u64);

/// What can happen to a watcher. An id that is not outstanding makes an input void.
#[derive(Clone, Debug)]
pub enum Input<T> {
    /// Begin. A second one does nothing.
    Start,
    /// End: cancel what is outstanding and ask for nothing more.
    Stop,
    /// The head of a 2xx answer came.
    Opened(ReqId),
    /// Bytes of the body came, whatever they were: the connection lives.
    Progress(ReqId),
    /// One element of `items` of a list.
    Item(ReqId, T),
    /// One element of `items` of a list that cannot be read.
    BadItem(ReqId, BadObject),
    /// The list is whole; its `metadata`.
    ListEnd(ReqId, ListMeta),
    /// One frame of a watch.
    Frame(ReqId, Frame<T>),
    /// The server answered with another status than 2xx.
    Rejected(ReqId, Rejection),
    /// The request is over: a watch ended, or anything broke.
    Closed(ReqId, CloseReason),
    /// Time moved.
    Deadline,
}

/// One decoded watch frame.
#[derive(Clone, Debug, PartialEq)]
pub enum Frame<T> {
    /// `ADDED`.
    Added(T),
    /// `MODIFIED`.
    Modified(T),
    /// `DELETED`, with the last state.
    Deleted(T),
    /// `BOOKMARK`.
    Bookmark {
        /// `metadata.resourceVersion`; empty if absent.
        resource_version: String,
        /// Whether the annotation `k8s.io/initial-events-end` is exactly `"true"`.
        initial_events_end: bool,
    },
    /// `ERROR`, with the `Status` that it carried (or one made up from what it carried).
    Error(Status),
    /// A type that this runtime does not know.
    Unknown {
        /// The `type` member.
        kind: String,
        /// `metadata.resourceVersion` of its object; empty if absent.
        resource_version: String,
    },
    /// A frame or object that cannot be used; it costs only itself.
    Bad(BadObject),
}

/// An object that could not be read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct BadObject {
    /// Its key, if that much could be read.
    pub key: Option<Key>,
    /// Its resource version, if that much could be read; empty otherwise.
    pub resource_version: String,
    /// What is wrong with it.
    pub error: String,
}

/// An answer that is not 2xx.
#[derive(Clone, Debug, PartialEq)]
pub struct Rejection {
    /// The HTTP status code.
    pub code: u16,
    /// The server's `Status`, or one made up from code and body.
    pub status: Status,
    /// The `Retry-After` header, clamped.
    pub retry_after: Option<Duration>,
}

/// Why a request is over.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub enum CloseReason {
    /// The body ended in order.
    Clean,
    /// The connection could not be made because nobody listens.
    Refused(String),
    /// The connection could not be made, or broke; the text names host and cause.
    Broken(String),
    /// The answer makes no sense: not HTTP, not JSON, not a list.
    Protocol(String),
    /// A deadline ran out; the text says which.
    TimedOut(String),
}

/// What a watcher asks for or tells.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Output<T> {
    /// Send this request.
    Request(ReqId, Ask),
    /// The answer is no longer wanted: drop the connection.
    Cancel(ReqId),
    /// The state of the world changed.
    Event(Event<T>),
    /// For people and statistics; nothing hangs on it.
    Notice(Notice),
}

/// A list or watch, without the resource and selectors that the owner of the watcher knows.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Ask {
    /// `GET .../things?limit=..&continue=..&resourceVersion=..`
    List {
        /// `None`: no limit.
        limit: Option<u32>,
        /// The token of the page before.
        continue_token: Option<String>,
        /// `None`: the most recent state.
        resource_version: Option<String>,
    },
    /// `GET .../things?watch=1&allowWatchBookmarks=true&..`
    Watch {
        /// Where to go on.
        resource_version: String,
        /// `timeoutSeconds`.
        timeout_seconds: u32,
        /// Asks for a streaming list (`sendInitialEvents=true&resourceVersionMatch=NotOlderThan`).
        send_initial_events: bool,
    },
}

/// A change of the world, in kube-rs' words.
#[derive(Clone, Debug, PartialEq)]
pub enum Event<T> {
    /// A full state begins; nothing of it counts before `InitDone`.
    Init,
    /// One object of the full state.
    InitApply(T),
    /// The full state holds this object, but it could not be read: what is known of it stays.
    InitKeep(Key),
    /// The full state is whole, at this version. What it does not hold is deleted.
    InitDone {
        /// The version of the list.
        resource_version: String,
    },
    /// An object was added or changed.
    Apply(T),
    /// An object was deleted. `T` is its last state.
    Delete(T),
    /// Nothing changed up to this version.
    Bookmark {
        /// The version.
        resource_version: String,
    },
}

/// What a watcher tells people.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Notice {
    /// A list begins.
    Listing,
    /// The first or a later full state is complete.
    Synced {
        /// How many objects.
        objects: u64,
        /// At which version.
        resource_version: String,
    },
    /// A watch is open.
    Watching {
        /// From which version.
        resource_version: String,
    },
    /// A list or watch failed; the next try comes after `delay`.
    Failed {
        /// `list` or `watch`.
        verb: &'static str,
        /// What went wrong.
        error: String,
        /// Failures in a row.
        failures: u32,
        /// The pause before the next try.
        delay: Duration,
    },
    /// The server has forgotten our version: a new list follows.
    Expired {
        /// What it said.
        error: String,
    },
    /// The server's version is below the one that we have seen: its data came from a backup, or it is another server.
    /// The state follows it back.
    WentBack {
        /// The version that we had.
        from: String,
        /// The version that the server has.
        to: String,
    },
    /// A watch was silent for longer than bookmarks allow: the server is asked for its version.
    Silent {
        /// How long.
        after: Duration,
    },
    /// The server cannot do streaming lists, or not well: plain lists for [`Config::streaming_again`](super::Config).
    FellBack {
        /// What it did.
        error: String,
    },
    /// An object cannot be read and is kept aside.
    Quarantined(BadObject),
    /// An object that could not be read was told in a form that can, or is gone.
    Recovered(Key),
    /// An event at or below the stored version of its object was dropped.
    Stale {
        /// The object.
        key: Key,
    },
    /// An index function panicked over an object, which its index does not find.
    IndexPanicked(IndexPanic),
    /// A frame of an unknown type was skipped.
    UnknownType(String),
}
