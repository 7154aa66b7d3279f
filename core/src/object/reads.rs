//! How much a run reads of its objects.

use alloc::sync::Arc;
use core::sync::atomic::{AtomicUsize, Ordering};

use serde::{Deserialize, Serialize};

/// What was read of some objects beyond their metadata.
///
/// ```
/// use steersman_core::object::{Meter, Object, Reads, Resource};
/// let pod = br#"{"kind":"Pod","metadata":{"name":"a","labels":{"app":"web"}},"spec":{"nodeName":"n1"}}"#;
/// let meter = Meter::new();
/// let pod = Object::from_json(pod)?.metered(&meter);
/// assert_eq!((pod.label("app"), meter.reads()), (Some("web"), Reads::default()));
/// let node: Option<String> = pod.get(&["spec", "nodeName"])?;
/// assert_eq!((node.as_deref(), meter.reads()), (Some("n1"), Reads { parses: 0, parts: 1, bytes: 4 }));
/// let whole = pod.value()?;
/// assert_eq!((whole["kind"].as_str(), meter.reads().parses), (Some("Pod"), 1));
/// # Ok::<(), steersman_core::object::ObjectError>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Reads {
    /// Whole objects that were deserialised ([`Object::parse`](super::Object::parse)) or taken as JSON.
    pub parses: usize,
    /// Values outside of the metadata that were looked up.
    pub parts: usize,
    /// Bytes of JSON of both together.
    pub bytes: usize,
}

impl Reads {
    /// Whether the metadata were enough.
    #[must_use]
    pub const fn nothing(&self) -> bool {
        self.parses == 0 && self.parts == 0
    }
}

/// Counts the [`Reads`] of the objects that bear it ([`Resource::metered`](super::Resource::metered)), on whatever threads they are.
#[derive(Debug, Default)]
pub struct Meter {
    parses: AtomicUsize,
    parts: AtomicUsize,
    bytes: AtomicUsize,
}

impl Meter {
    /// One that has counted nothing.
    #[must_use]
    pub fn new() -> Arc<Self> {
        Arc::default()
    }

    /// What it has counted.
    #[must_use]
    pub fn reads(&self) -> Reads {
        let of = |counter: &AtomicUsize| counter.load(Ordering::Relaxed);
        Reads { parses: of(&self.parses), parts: of(&self.parts), bytes: of(&self.bytes) }
    }

    pub(super) fn whole(&self, bytes: usize) {
        self.parses.fetch_add(1, Ordering::Relaxed);
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    pub(super) fn part(&self, bytes: usize) {
        self.parts.fetch_add(1, Ordering::Relaxed);
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
    }
}
