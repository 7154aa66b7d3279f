//! Figures of a controller, as plain values.

use alloc::string::String;
use alloc::vec::Vec;
use core::time::Duration;

use serde::{Deserialize, Serialize};

use super::{ReconcileId, SourceId, WatchSpec};
use crate::object::{Key, Reads};
use crate::time::Time;

/// Buckets for each doubling of the duration.
const PARTS: u32 = 8;
/// The first bucket ends here; everything shorter falls into it.
const FLOOR_NANOS: u64 = 1_000;
/// Up to 2^36 µs, nearly 20 hours; everything longer falls into the last bucket.
const BUCKETS: usize = (36 * PARTS + 2) as usize;

/// How long things took: buckets that grow by a ninth to a fourteenth, from 1 µs to 19 hours; at most 2.3 KB.
///
/// ```
/// use core::time::Duration;
/// use steersman_core::controller::stats::Histogram;
/// let mut h = Histogram::default();
/// (1..=100).for_each(|ms| h.record(Duration::from_millis(ms)));
/// let p50 = h.quantile(0.5).unwrap();
/// assert!(p50 >= Duration::from_millis(50) && p50 < Duration::from_millis(57));
/// assert_eq!(h.max(), Duration::from_millis(100));
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Histogram {
    buckets: Vec<u64>,
    count: u64,
    sum_nanos: u64,
    max_nanos: u64,
}

impl Histogram {
    /// Counts one duration.
    pub fn record(&mut self, d: Duration) {
        let nanos = u64::try_from(d.as_nanos()).unwrap_or(u64::MAX);
        let bucket = bucket(nanos);
        if self.buckets.len() <= bucket {
            self.buckets.resize(bucket + 1, 0);
        }
        self.buckets[bucket] += 1;
        self.count += 1;
        self.sum_nanos = self.sum_nanos.saturating_add(nanos);
        self.max_nanos = self.max_nanos.max(nanos);
    }

    /// How many.
    #[must_use]
    pub const fn count(&self) -> u64 {
        self.count
    }

    /// All of them together.
    #[must_use]
    pub const fn sum(&self) -> Duration {
        Duration::from_nanos(self.sum_nanos)
    }

    /// The longest.
    #[must_use]
    pub const fn max(&self) -> Duration {
        Duration::from_nanos(self.max_nanos)
    }

    /// A bound that the share `q` (0.0 to 1.0) of the durations does not exceed, at most an eighth too high. `None` if
    /// nothing was counted.
    #[must_use]
    pub fn quantile(&self, q: f64) -> Option<Duration> {
        if self.count == 0 {
            return None;
        }
        let share = q.clamp(0.0, 1.0) * self.count as f64;
        // `f64::ceil` needs `std`.
        let mut rank = share as u64;
        if (rank as f64) < share || rank == 0 {
            rank += 1;
        }
        let mut seen = 0;
        for (i, n) in self.buckets.iter().enumerate() {
            seen += n;
            if seen >= rank {
                return Some(Duration::from_nanos(bound(i).min(self.max_nanos)));
            }
        }
        Some(self.max())
    }

    /// How many took at most `limit`, as a cumulative Prometheus bucket wants it; exact to an eighth of `limit`.
    #[must_use]
    pub fn at_most(&self, limit: Duration) -> u64 {
        let nanos = u64::try_from(limit.as_nanos()).unwrap_or(u64::MAX);
        if nanos >= self.max_nanos {
            return self.count;
        }
        self.buckets.iter().enumerate().take_while(|(i, _)| bound(*i) <= nanos).map(|(_, n)| n).sum()
    }

    /// Adds what another histogram counted.
    pub fn merge(&mut self, other: &Self) {
        if self.buckets.len() < other.buckets.len() {
            self.buckets.resize(other.buckets.len(), 0);
        }
        for (mine, theirs) in self.buckets.iter_mut().zip(&other.buckets) {
            *mine += theirs;
        }
        self.count += other.count;
        self.sum_nanos = self.sum_nanos.saturating_add(other.sum_nanos);
        self.max_nanos = self.max_nanos.max(other.max_nanos);
    }
}

/// The bucket of a duration: 0 for up to 1 µs, then [`PARTS`] linear steps for each doubling.
fn bucket(nanos: u64) -> usize {
    let micros = nanos.div_ceil(FLOOR_NANOS);
    if micros <= 1 {
        return 0;
    }
    // (2^octave, 2^(octave+1)] in PARTS steps.
    let octave = (micros - 1).ilog2();
    let base = FLOOR_NANOS << octave;
    let step = (nanos - base - 1).saturating_mul(u64::from(PARTS)) / base;
    ((octave * PARTS) as usize + 1 + step as usize).min(BUCKETS - 1)
}

/// The longest duration of a bucket.
const fn bound(bucket: usize) -> u64 {
    if bucket == 0 {
        return FLOOR_NANOS;
    }
    let i = bucket as u64 - 1;
    let (octave, step) = (i / PARTS as u64, i % PARTS as u64);
    let base = FLOOR_NANOS << octave;
    base + base * (step + 1) / PARTS as u64
}

/// How runs ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Results {
    /// [`Outcome::AwaitChange`](super::Outcome::AwaitChange).
    pub success: u64,
    /// [`Outcome::Requeue`](super::Outcome::Requeue).
    pub requeue_after: u64,
    /// [`Outcome::Error`](super::Outcome::Error).
    pub error: u64,
    /// [`Outcome::Terminal`](super::Outcome::Terminal).
    pub terminal: u64,
    /// [`Outcome::Panicked`](super::Outcome::Panicked).
    pub panicked: u64,
}

impl Results {
    /// All runs that ended.
    #[must_use]
    pub const fn total(&self) -> u64 {
        self.success + self.requeue_after + self.failed()
    }

    /// Errors of every kind.
    #[must_use]
    pub const fn failed(&self) -> u64 {
        self.error + self.terminal + self.panicked
    }
}

/// What runs have read of their objects beyond metadata: what a reconcile pays for JSON, once a run and not once an event.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RunReads {
    /// Runs that read anything but metadata.
    pub runs: u64,
    /// Whole objects that they deserialised.
    pub parses: u64,
    /// Values that they looked up.
    pub parts: u64,
    /// Bytes of JSON of both together.
    pub bytes: u64,
}

impl RunReads {
    /// Adds those of one run.
    pub(super) fn add(&mut self, reads: Reads) {
        self.runs += 1;
        self.parses += reads.parses as u64;
        self.parts += reads.parts as u64;
        self.bytes += reads.bytes as u64;
    }
}

/// The last failure of a controller.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LastError {
    /// When.
    pub at: Time,
    /// Whose.
    pub key: Key,
    /// What went wrong.
    pub error: String,
}

/// A source as its controller sees it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SourceView {
    /// Its number.
    pub id: SourceId,
    /// What it watches.
    pub watch: WatchSpec,
    /// Whether its first full state came.
    pub synced: bool,
    /// Objects in its view.
    pub objects: usize,
    /// The version up to which the view is known to be right.
    pub resource_version: String,
    /// Changes so far.
    pub changes: u64,
}

/// The run that goes on for longest.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct OldestRun {
    /// Its name.
    pub id: ReconcileId,
    /// Its key.
    pub key: Key,
    /// When it was handed out.
    pub since: Time,
}

/// Where a controller stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum ControllerPhase {
    /// Not started.
    #[default]
    New,
    /// Started; not every source has had its first full state.
    Syncing,
    /// It reconciles.
    Running,
    /// Nothing new runs.
    Stopping,
    /// It is over.
    Stopped,
}

/// Everything about one controller at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ControllerStatus {
    /// Its name.
    pub name: String,
    /// Where it stands.
    pub phase: ControllerPhase,
    /// How many keys may run at once.
    pub concurrency: usize,
    /// Its sources, by number.
    pub sources: Vec<SourceView>,
    /// Keys that could run now (`workqueue_depth`).
    pub queued: usize,
    /// Keys that wait for a timer.
    pub waiting: usize,
    /// Keys that run.
    pub running: usize,
    /// Which of those runs longest.
    pub oldest_run: Option<OldestRun>,
    /// How runs ended (`controller_runtime_reconcile_total`).
    pub results: Results,
    /// What they read of their objects.
    pub reads: RunReads,
    /// Runs that took longer than they may.
    pub timeouts: u64,
    /// Keys that were due but gone from the primary view, so nothing ran.
    pub vanished: u64,
    /// Keys that wait until a source shows what they wrote.
    pub on_hold: usize,
    /// Keys that a source kept waiting too long for what they wrote.
    pub not_shown: u64,
    /// Adds to the queue (`workqueue_adds_total`).
    pub adds: u64,
    /// Backoffs (`workqueue_retries_total`).
    pub retries: u64,
    /// Inputs that named no source or run that there is.
    pub stray: u64,
    /// From the cause of a run to its start (`workqueue_queue_duration_seconds`).
    pub queue_latency: Histogram,
    /// From the start of a run to its end (`controller_runtime_reconcile_time_seconds`).
    pub run_duration: Histogram,
    /// The last failure.
    pub last_error: Option<LastError>,
}

impl ControllerStatus {
    /// Whether it reconciles.
    #[must_use]
    pub const fn is_ready(&self) -> bool {
        matches!(self.phase, ControllerPhase::Running)
    }

    /// The share (0.0 to 1.0) of the runs so far that read nothing but metadata; `None` before the first has ended. Near 1, a
    /// watch of metadata alone ([`Builder::metadata_only`](super::Builder)) would do.
    #[must_use]
    pub fn metadata_alone(&self) -> Option<f64> {
        let runs = self.results.total();
        (runs > 0).then(|| 1.0 - self.reads.runs.min(runs) as f64 / runs as f64)
    }
}
