//! What machines tell people, in one form: a level, a message, and the fields that go with it.
//!
//! Executors turn a [`Line`] into an event of their logging library; which notice is worth which level, and which fields
//! it has, is decided here for all of them.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::time::Duration;

use crate::controller;
use crate::object::Key;
use crate::watcher;

/// How much a line matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// For those who look for a fault.
    Debug,
    /// Once in a while, all is well.
    Info,
    /// It goes on, but somebody may want to look.
    Warn,
    /// Something was given up.
    Error,
}

/// One line of a log. Fields that do not apply are `None`.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Line {
    /// How much it matters.
    pub level: Level,
    /// The message; it never holds values, so that equal events have equal messages.
    pub message: &'static str,
    /// `list` or `watch`.
    pub verb: Option<&'static str>,
    /// The object.
    pub key: Option<Key>,
    /// Which run.
    pub reconcile_id: Option<u64>,
    /// What went wrong, or another detail.
    pub error: Option<String>,
    /// Failures in a row.
    pub failures: Option<u32>,
    /// The pause before the next try.
    pub delay: Option<Duration>,
    /// How many objects.
    pub objects: Option<u64>,
    /// The resource version it is about.
    pub resource_version: Option<String>,
}

impl Line {
    fn new(level: Level, message: &'static str) -> Self {
        Self {
            level,
            message,
            verb: None,
            key: None,
            reconcile_id: None,
            error: None,
            failures: None,
            delay: None,
            objects: None,
            resource_version: None,
        }
    }

    fn error(mut self, error: impl Into<String>) -> Self {
        self.error = Some(error.into());
        self
    }

    fn version(mut self, version: &str) -> Self {
        self.resource_version = Some(version.to_string());
        self
    }

    fn key(mut self, key: &Key) -> Self {
        self.key = Some(key.clone());
        self
    }
}

/// What a watch tells. `failed` is a warning from the third failure in a row on: single ones are everyday.
impl From<&watcher::Notice> for Line {
    fn from(notice: &watcher::Notice) -> Self {
        use watcher::Notice as N;
        match notice {
            N::Listing => Self { verb: Some("list"), ..Self::new(Level::Debug, "listing") },
            N::Synced { objects, resource_version } => {
                Self { objects: Some(*objects), ..Self::new(Level::Info, "synced").version(resource_version) }
            }
            N::Watching { resource_version } => {
                Self { verb: Some("watch"), ..Self::new(Level::Debug, "watching").version(resource_version) }
            }
            N::Failed { verb, error, failures, delay } => Self {
                verb: Some(verb),
                failures: Some(*failures),
                delay: Some(*delay),
                ..Self::new(if *failures < 3 { Level::Info } else { Level::Warn }, "failed").error(error)
            },
            N::Expired { error } => Self::new(Level::Info, "version expired, listing again").error(error),
            N::WentBack { from, to } => Self::new(Level::Warn, "the server went back in time, starting anew")
                .error(format!("from {from}"))
                .version(to),
            N::Silent { after } => {
                Self { delay: Some(*after), ..Self::new(Level::Info, "watch is silent, asking") }
            }
            N::FellBack { error } => Self::new(Level::Info, "no streaming lists here, listing").error(error),
            N::Quarantined(bad) => Self {
                key: bad.key.clone(),
                ..Self::new(Level::Warn, "object cannot be read, kept aside")
                    .error(&bad.error)
                    .version(&bad.resource_version)
            },
            N::Recovered(key) => Self::new(Level::Info, "object can be read again").key(key),
            N::Stale { key } => Self::new(Level::Debug, "stale event dropped").key(key),
            N::IndexPanicked(panic) => Self::new(Level::Error, "index panicked")
                .key(&panic.key)
                .error(format!("index {:?}: {}", panic.index, panic.error)),
            N::UnknownType(kind) => Self::new(Level::Debug, "event of unknown type skipped").error(kind),
        }
    }
}

/// What a controller tells.
impl From<&controller::Notice> for Line {
    fn from(notice: &controller::Notice) -> Self {
        use controller::Notice as N;
        match notice {
            N::Failed { id, key, error, panicked, failures, retry_in } => Self {
                reconcile_id: Some(id.0),
                failures: Some(*failures),
                delay: *retry_in,
                ..Self::new(Level::Warn, if *panicked { "reconcile panicked" } else { "reconcile failed" })
                    .key(key)
                    .error(error)
            },
            N::GaveUp { id, key, error } => Self {
                reconcile_id: Some(id.0),
                ..Self::new(Level::Error, "reconcile failed for good").key(key).error(error)
            },
            N::TimedOut { id, key, after } => Self {
                reconcile_id: Some(id.0),
                delay: Some(*after),
                ..Self::new(Level::Warn, "reconcile takes too long").key(key)
            },
            N::WaitingForSources(sources) => {
                let sources: Vec<_> = sources.iter().map(|s| s.0.to_string()).collect();
                Self::new(Level::Warn, "waiting for the first list of sources").error(sources.join(", "))
            }
            N::NotShown { key, source, object, after } => Self {
                delay: Some(*after),
                ..Self::new(Level::Warn, "a watch does not show what was written")
                    .key(key)
                    .error(format!("source {}: {object}", source.0))
            },
            N::MappingPanicked { source, key, error } => Self::new(Level::Error, "mapping panicked")
                .key(key)
                .error(format!("source {}: {error}", source.0)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_list_says_what_failed_how_often_and_for_how_long_it_pauses() {
        let notice = watcher::Notice::Failed {
            verb: "list",
            error: "kube:6443: refused".into(),
            failures: 3,
            delay: Duration::from_secs(4),
        };
        let line = Line::from(&notice);
        assert_eq!((line.level, line.message, line.verb), (Level::Warn, "failed", Some("list")));
        assert_eq!((line.failures, line.delay), (Some(3), Some(Duration::from_secs(4))));
        assert_eq!(line.error.as_deref(), Some("kube:6443: refused"));
    }
}
