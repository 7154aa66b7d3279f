//! What the watches told, as their log lines: the one place where a program that uses an executor can read it.

use std::collections::BTreeMap;
use std::fmt::{self, Write as _};
use std::sync::{Mutex, Once, PoisonError};

use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

/// One line.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Note {
    /// The path of the watch.
    path: String,
    /// What it is about; equal events have equal messages.
    pub message: String,
    /// The other fields, as `name=value`, with a space before each.
    pub rest: String,
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.message, self.rest)
    }
}

static NOTES: Mutex<BTreeMap<String, Vec<Note>>> = Mutex::new(BTreeMap::new());

/// Begins to take notes, in this whole process.
pub fn begin() {
    static BEGUN: Once = Once::new();
    BEGUN.call_once(|| drop(tracing::subscriber::set_global_default(Collector)));
}

/// What the watch of this path has told so far.
#[must_use]
pub fn of(path: &str) -> Vec<Note> {
    NOTES.lock().unwrap_or_else(PoisonError::into_inner).get(path).cloned().unwrap_or_default()
}

struct Collector;

impl Subscriber for Collector {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target() == "steersman" && metadata.is_event()
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut note = Note::default();
        event.record(&mut note);
        if !note.path.is_empty() {
            let mut notes = NOTES.lock().unwrap_or_else(PoisonError::into_inner);
            notes.entry(note.path.clone()).or_default().push(note);
        }
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

impl Note {
    fn field(&mut self, name: &str, value: &dyn fmt::Display) {
        match name {
            "path" => self.path = value.to_string(),
            "message" => self.message = value.to_string(),
            _ => drop(write!(self.rest, " {name}={value}")),
        }
    }
}

impl Visit for Note {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.field(field.name(), &value);
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.field(field.name(), &format_args!("{value:?}"));
    }
}
