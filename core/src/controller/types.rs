//! What goes into a controller and what comes out.

use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::any::Any;
use core::fmt;
use core::time::Duration;

use serde::{Deserialize, Serialize};

use super::plan::Failure;
use crate::api::Written;
use crate::guard;
use crate::object::{Key, Meter, Object, Reads, Resource};
use crate::queue::Priority;
use crate::store::{Delta, Snapshot};
use crate::time::Time;

/// Names one source of one controller: its place in [`Config::sources`](super::Config::sources). 0 is the primary.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct SourceId(pub u32);

impl SourceId {
    /// The source of the objects that are reconciled.
    pub const PRIMARY: Self = Self(0);

    pub(crate) const fn index(self) -> usize {
        self.0 as usize
    }
}

/// Names one run of one controller; never reused by it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ReconcileId(pub u64);

impl fmt::Display for ReconcileId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// What can happen to a controller.
#[derive(Clone, Debug)]
pub enum Input<T> {
    /// Begin. A second one does nothing.
    Start,
    /// A source changed. Deltas of one source come in order; a source that is not in the configuration is ignored.
    Delta {
        /// Which source.
        source: SourceId,
        /// What changed, and the whole after it.
        delta: Delta<T>,
    },
    /// Something outside the API wants `key` to be reconciled.
    Trigger {
        /// A key of the primary resource.
        key: Key,
        /// How urgent.
        priority: Priority,
    },
    /// A run has written something. An id that does not run is ignored and counted: what a run leaves behind for others to
    /// write is not its own.
    ///
    /// When the run has ended, its key is on hold until each source that watches the object has shown the write, or
    /// [`Config::catch_up`](super::Config::catch_up) is over. If a source has passed the write, but the object is not
    /// there, or not as it was written, the key runs once more: somebody else had a hand in it, and if the source was away
    /// meanwhile, no change tells.
    Wrote {
        /// Which run.
        id: ReconcileId,
        /// What.
        write: Written,
    },
    /// What a run has read of its objects beyond their metadata ([`Run::meter`]), said once before its end, if that is
    /// anything; for statistics. An id that does not run is ignored and counted.
    Read {
        /// Which run.
        id: ReconcileId,
        /// How much.
        reads: Reads,
    },
    /// A run is over. An id that does not run is ignored and counted.
    Done {
        /// Which run.
        id: ReconcileId,
        /// What came of it.
        outcome: Outcome,
        /// When it began on its thread or task; before that it waited for one.
        started: Time,
    },
    /// End: nothing new runs, what runs may end within `grace`; `None` waits for ever, zero does not wait. A later
    /// `Stop` can only shorten the wait.
    Stop {
        /// How long.
        grace: Option<Duration>,
    },
    /// Time moved.
    Deadline,
}

/// What a controller asks for or tells.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Output<T> {
    /// Reconcile this, then report [`Input::Done`].
    Run(Run<T>),
    /// The run has taken too long, or its grace at the end is over: make it end if you can. The key stays taken until
    /// `Done` comes, for it must not run twice; a run that was dropped is done with [`Outcome::Error`].
    Abandon(ReconcileId),
    /// Every source has had its first full state; said once, before the first `Run`.
    Ready,
    /// The last output.
    Stopped {
        /// Runs that did not end in time.
        unfinished: usize,
    },
    /// For people and statistics; nothing hangs on it.
    Notice(Notice),
}

/// One reconcile to perform.
#[derive(Clone)]
pub struct Run<T> {
    /// Its name; stands in [`Input::Done`].
    pub id: ReconcileId,
    /// The object's key.
    pub key: Key,
    /// The object as the primary source last saw it.
    pub object: T,
    /// The views of all sources at this moment, by [`SourceId`].
    pub views: Arc<[Snapshot<T>]>,
    /// Since when the key wanted to run: the earliest event (as its bytes arrived), or the end of its pause.
    pub since: Time,
    /// 1 for the first try; one more for each failure in a row.
    pub attempt: u32,
    /// The priority with which it stood in line.
    pub priority: Priority,
}

impl Run<Object> {
    /// Counts from now on what is read of its object, and of what [`Context`](super::Context) and
    /// [`Planning`](super::plan::Planning) show of its views. At its end [`Input::Read`] tells the controller.
    pub fn meter(&mut self) -> Arc<Meter> {
        let meter = Meter::new();
        self.object = self.object.clone().metered(&meter);
        meter
    }
}

impl<T> Input<T> {
    /// What the end of a run means: what it has read, if anything beyond metadata, and that it is done.
    pub fn ends_of(
        id: ReconcileId,
        meter: &Meter,
        outcome: Outcome,
        started: Time,
    ) -> impl Iterator<Item = Self> + use<T> {
        let reads = meter.reads();
        let read = (!reads.nothing()).then_some(Self::Read { id, reads });
        read.into_iter().chain([Self::Done { id, outcome, started }])
    }
}

/// Shows neither the object nor the views: they may hold secrets.
impl<T> fmt::Debug for Run<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { id, key, object: _, views: _, since, attempt, priority } = self;
        f.debug_struct("Run")
            .field("id", id)
            .field("key", key)
            .field("since", since)
            .field("attempt", attempt)
            .field("priority", priority)
            .finish_non_exhaustive()
    }
}

/// What a reconcile that went well wants next, in kube-rs' words.
///
/// ```
/// use core::time::Duration;
/// use steersman_core::controller::{Action, Outcome};
/// assert_eq!(Outcome::from(Action::await_change()), Outcome::AwaitChange);
/// let soon = Action::requeue(Duration::from_secs(60));
/// assert_eq!(soon.requeue_after(), Some(Duration::from_secs(60)));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[must_use]
pub struct Action {
    requeue_after: Option<Duration>,
}

impl Action {
    /// Nothing until something changes.
    pub const fn await_change() -> Self {
        Self { requeue_after: None }
    }

    /// Once more after `d`, or earlier if something changes.
    pub const fn requeue(d: Duration) -> Self {
        Self { requeue_after: Some(d) }
    }

    /// The pause that was asked for.
    #[must_use]
    pub const fn requeue_after(&self) -> Option<Duration> {
        self.requeue_after
    }
}

/// What came of a run.
///
/// | outcome | what follows | failures in a row |
/// |---|---|---|
/// | `AwaitChange` | nothing | forgotten |
/// | `Requeue(d)` | once more after `d` | forgotten |
/// | `Error` | once more after 5 ms, doubling to 1000 s | one more |
/// | `Panicked` | as `Error` | one more |
/// | `Terminal` | nothing until something changes | kept |
///
/// This is controller-runtime's table. Whatever the outcome, a key that changed during its run runs once more at once.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Outcome {
    /// All is well.
    AwaitChange,
    /// All is well; look again later.
    Requeue(Duration),
    /// It failed; try again.
    Error(String),
    /// It failed, and trying again does not help before something changes.
    Terminal(String),
    /// The reconcile panicked, with this message.
    Panicked(String),
}

impl Outcome {
    /// The outcome of a run that panicked with `cause`.
    ///
    /// ```
    /// use steersman_core::controller::Outcome;
    /// assert_eq!(Outcome::from_panic(&"out of rope"), Outcome::Panicked("out of rope".into()));
    /// assert_eq!(Outcome::from_panic(&7), Outcome::Panicked("panic without a message".into()));
    /// ```
    #[must_use]
    pub fn from_panic(cause: &(dyn Any + Send)) -> Self {
        Self::Panicked(guard::panic_message(cause))
    }

    /// The outcome of a run that was given up at [`Output::Abandon`], before it had `begun` or after.
    #[must_use]
    pub fn given_up(begun: bool) -> Self {
        Self::Error(if begun { "given up: it took too long" } else { "given up before it began" }.to_string())
    }

    /// The outcome of a reconcile that returns an action or an error. Every error may pass, except
    /// [`Failure::Terminal`](super::plan::Failure::Terminal).
    pub fn from_result<E: fmt::Display + 'static>(result: Result<Action, E>) -> Self {
        match result {
            Ok(action) => action.into(),
            Err(e) => match (&e as &dyn Any).downcast_ref::<Failure>() {
                Some(failure) => failure.clone().into(),
                None => Self::Error(e.to_string()),
            },
        }
    }
}

impl From<Action> for Outcome {
    fn from(action: Action) -> Self {
        action.requeue_after.map_or(Self::AwaitChange, Self::Requeue)
    }
}

/// What a controller tells people.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub enum Notice {
    /// A run ended with [`Outcome::Error`] or [`Outcome::Panicked`].
    Failed {
        /// The run.
        id: ReconcileId,
        /// Its key.
        key: Key,
        /// What went wrong.
        error: String,
        /// Whether it was a panic.
        panicked: bool,
        /// Failures in a row, this one included.
        failures: u32,
        /// The pause before the next try; `None`: the key is due already, or gone, or the controller stops.
        retry_in: Option<Duration>,
    },
    /// A run ended with [`Outcome::Terminal`].
    GaveUp {
        /// The run.
        id: ReconcileId,
        /// Its key.
        key: Key,
        /// What went wrong.
        error: String,
    },
    /// A run takes longer than [`Config::reconcile_timeout`](super::Config::reconcile_timeout).
    TimedOut {
        /// The run.
        id: ReconcileId,
        /// Its key.
        key: Key,
        /// For how long it runs.
        after: Duration,
    },
    /// These sources have not had their first full state for a while; nothing runs before they have. Said again every
    /// [`Config::sync_notice`](super::Config::sync_notice).
    WaitingForSources(Vec<SourceId>),
    /// A source has not shown what a reconcile wrote, for as long as the key may wait for it; it no longer does, and may
    /// see what was before.
    NotShown {
        /// The key whose reconcile wrote.
        key: Key,
        /// The source.
        source: SourceId,
        /// The object that was written.
        object: Key,
        /// For how long the key has waited.
        after: Duration,
    },
    /// A mapping function or predicate panicked over one object; what it would have triggered is not triggered. Only
    /// where the core is built with `std`.
    MappingPanicked {
        /// The source whose change it was.
        source: SourceId,
        /// The object.
        key: Key,
        /// The panic's message.
        error: String,
    },
}
