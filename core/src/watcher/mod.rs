//! Keeps the state of one resource in step with the server: list, then watch, for ever.
//!
//! A [`Watcher`] is a [`Machine`](crate::machine::Machine). It asks for lists and watches ([`Ask`]) without knowing the
//! resource, and turns what comes back into [`Event`]s for a store. It never gives up; what it does about each kind of
//! trouble follows client-go's reflector (`tools/cache/reflector.go`) except where that has known faults:
//!
//! | what happens | what follows |
//! |---|---|
//! | a watch ends in order, after events or at least [`Config::steady`] | watch on at once |
//! | it ends in order, early and empty | a growing pause, counted from its opening; three very short ones from one version: list |
//! | refused, 408, 429, 502-504, 520-530, broken or timed-out connection | a growing pause, watch on; never a list |
//! | 410, as `ERROR` or as HTTP status | a pause, then a list at the last version; at `""` if that is refused, too |
//! | "too large resource version" (three dialects) | a list at `""` |
//! | any other `ERROR` | a pause, then a list: the server may have dropped objects without telling |
//! | any other refusal | a growing pause, watch on; after three a list |
//! | silence longer than bookmarks allow | one list of one object: is the server's version below ours? then a list at `""`, else watch on |
//! | no watch to be had because the server, or the way to it, was away | before the next one the same question as after a silence |
//! | 410 on a later page of a list | one list without pages |
//! | a streaming list is refused (400, 403, 404, 405, 406, 415, 422 and other 4xx that do not pass) | plain lists for [`Config::streaming_again`], then another try |
//! | it fails otherwise before its end bookmark | a growing pause, another try; plain lists after three in a row |
//! | it is silent for [`Config::stall`] before its end bookmark | plain lists at once |
//! | 429, 502-504 or no connection in place of a streaming list | a growing pause, another try; plain lists would fare no better |
//! | an object that cannot be read | kept aside; the stream goes on, and a later list repairs what may have been missed |
//!
//! Pauses grow with failures and shrink with progress only: lists and watches count on their own, so that a list that
//! works does not make a broken watch hot. A list at the last version never goes back in time; a list at `""` may, after
//! a restore of etcd, and says so ([`Notice::WentBack`]).
//!
//! ```
//! use steersman_core::machine::{Machine, Outputs};
//! use steersman_core::object::{Key, OwnerReference, Resource};
//! use steersman_core::time::Time;
//! use steersman_core::api::Status;
//! use steersman_core::watcher::{Ask, Config, Event, Input, ListMeta, Output, Rejection, ReqId, Watcher};
//!
//! #[derive(Clone, Debug, PartialEq)]
//! struct Thing(&'static str);
//! impl Resource for Thing {
//!     fn key(&self) -> Key { Key::cluster(self.0) }
//!     fn uid(&self) -> &str { "" }
//!     fn resource_version(&self) -> &str { "5" }
//!     fn each_owner(&self, _: &mut dyn FnMut(&OwnerReference)) {}
//! }
//!
//! let mut watcher = Watcher::new(Config::default(), 1);
//! let mut out = Outputs::new();
//! let now = Time::ZERO;
//! watcher.handle(now, Input::Start, &mut out);
//! assert!(out.drain().any(|o| matches!(o, Output::Request(_, Ask::Watch { send_initial_events: true, .. }))));
//!
//! // This server knows no streaming lists, so it is asked for a plain one.
//! let rejection = Rejection { code: 422, status: Status::default(), retry_after: None };
//! watcher.handle(now, Input::Rejected(ReqId(1), rejection), &mut out);
//! let list = Ask::List { limit: Some(500), continue_token: None, resource_version: None };
//! assert!(out.drain().any(|o| o == Output::Request(ReqId(2), list.clone())));
//!
//! watcher.handle(now, Input::Item(ReqId(2), Thing("a")), &mut out);
//! let meta = ListMeta { resource_version: "7".into(), ..ListMeta::default() };
//! watcher.handle(now, Input::ListEnd(ReqId(2), meta), &mut out);
//! let out: Vec<_> = out.drain().collect();
//! assert!(out.contains(&Output::Event(Event::InitDone { resource_version: "7".into() })));
//! assert!(matches!(out.last(), Some(Output::Request(ReqId(3), Ask::Watch { resource_version, .. })) if resource_version == "7"));
//! ```

mod config;
mod list;
mod machine;
mod status;
mod trouble;
mod types;
mod watch;

#[cfg(test)]
mod tests;

pub use config::{Config, FirstState};
pub use machine::Watcher;
pub use status::{Phase, WatcherStatus};
pub use types::*;
