//! In which order controllers and watches start and end.

use alloc::collections::BTreeSet;
use alloc::vec::Vec;
use core::fmt;
use core::time::Duration;

use serde::{Deserialize, Serialize};

use super::plan::{ControllerId, WatchId, WatchPlan};
use super::status::ManagerPhase;
use crate::machine::{Deadline, Machine, Outputs, Reason};
use crate::time::{Clock, Time};

/// How long the end may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Config {
    /// For running reconciles: 30 s by default, controller-runtime's `GracefulShutdownTimeout`. `None` waits for ever,
    /// zero does not wait. Every controller gets it as its own grace.
    pub grace: Option<Duration>,
    /// How much later than its grace a controller may say that it has stopped, and how long watches may take to end:
    /// 1 s by default. It is only used up when a part hangs.
    pub slack: Duration,
}

impl Default for Config {
    fn default() -> Self {
        Self { grace: Some(Duration::from_secs(30)), slack: Duration::from_secs(1) }
    }
}

/// What can happen to a manager. A number that is not in the plan is ignored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Input {
    /// Begin. A second one does nothing.
    Start,
    /// This watch had its first full state.
    SourceSynced(WatchId),
    /// This watch is over.
    SourceStopped(WatchId),
    /// This controller is over.
    ControllerStopped {
        /// Which.
        controller: ControllerId,
        /// Runs that did not end in time.
        unfinished: usize,
    },
    /// A SIGINT or SIGTERM came: the first is a [`Stop`](Self::Stop), every later one a [`Kill`](Self::Kill).
    Signal,
    /// End in order.
    Stop,
    /// End at once.
    Kill,
    /// Time moved.
    Deadline,
}

/// What a manager asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Output {
    /// Start this controller; it runs nothing before its sources have synced.
    StartController(ControllerId),
    /// Start this watch. All controllers were started before, so none misses a delta.
    StartSource(WatchId),
    /// Every watch had its first full state; said once.
    Synced,
    /// Stop this controller with this grace. Told again, with none, when everything has to end at once. Telling must not
    /// wait: a controller that hangs would hold up the end.
    StopController(ControllerId, Option<Duration>),
    /// Stop this watch.
    StopSource(WatchId),
    /// The last output: the process may end.
    Exit(ExitReason),
}

/// How it ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub enum ExitReason {
    /// It was asked to, and everything ended in order.
    Stopped,
    /// It was asked to, but not everything ended in time.
    GraceOver {
        /// Runs that had not ended, as far as their controllers said so.
        unfinished: usize,
        /// Controllers that had not said anything.
        silent: Vec<ControllerId>,
    },
    /// It was asked to end at once.
    Killed,
    /// This controller ended by itself, which none should; the rest was ended in order.
    ControllerEnded(ControllerId),
    /// This watch ended by itself, which none should; the rest was ended in order.
    SourceEnded(WatchId),
}

impl ExitReason {
    /// Whether a process should exit with zero.
    #[must_use]
    pub const fn is_clean(&self) -> bool {
        matches!(self, Self::Stopped)
    }
}

impl fmt::Display for ExitReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stopped => f.write_str("stopped"),
            Self::GraceOver { unfinished, silent } => {
                write!(f, "stopped with {unfinished} unfinished reconciles")?;
                if silent.is_empty() { Ok(()) } else { write!(f, " and {} silent controllers", silent.len()) }
            }
            Self::Killed => f.write_str("killed"),
            Self::ControllerEnded(id) => write!(f, "controller {} ended by itself", id.0),
            Self::SourceEnded(id) => write!(f, "watch {} ended by itself", id.0),
        }
    }
}

/// The machine of the start and the end.
///
/// The order is controller-runtime's: controllers drain first, while watches still feed them, then the watches end.
///
/// ```
/// use steersman_core::machine::{Machine, Outputs};
/// use steersman_core::manager::{Config, ControllerId, ExitReason, Input, Manager, Output, WatchId};
/// use steersman_core::time::Time;
///
/// let mut manager = Manager::with_counts(1, 1, Config::default());
/// let mut out = Outputs::new();
/// let mut tell = |input| {
///     manager.handle(Time::ZERO, input, &mut out);
///     out.drain().collect::<Vec<_>>()
/// };
/// let (c, w) = (ControllerId(0), WatchId(0));
/// assert_eq!(tell(Input::Start), [Output::StartController(c), Output::StartSource(w)]);
/// assert_eq!(tell(Input::SourceSynced(w)), [Output::Synced]);
/// assert_eq!(tell(Input::Stop), [Output::StopController(c, Config::default().grace)]);
/// assert_eq!(tell(Input::ControllerStopped { controller: c, unfinished: 0 }), [Output::StopSource(w)]);
/// assert_eq!(tell(Input::SourceStopped(w)), [Output::Exit(ExitReason::Stopped)]);
/// ```
#[derive(Debug)]
pub struct Manager {
    config: Config,
    clock: Clock,
    phase: Phase,
    since: Time,
    /// Those that have not stopped.
    controllers: BTreeSet<ControllerId>,
    sources: BTreeSet<WatchId>,
    unsynced: BTreeSet<WatchId>,
    synced: bool,
    unfinished: usize,
    silent: Vec<ControllerId>,
    signalled: bool,
    /// What began the end, if it was not asked for.
    cause: Option<ExitReason>,
    until: Option<Time>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    New,
    Running,
    /// Controllers end.
    Draining,
    /// Watches end.
    Closing,
    Over,
}

impl Manager {
    /// A manager of this plan's controllers and watches.
    #[must_use]
    pub fn new(plan: &WatchPlan, config: Config) -> Self {
        Self::with_counts(plan.controllers, plan.sources.len(), config)
    }

    /// A manager of so many controllers and watches.
    #[must_use]
    pub fn with_counts(controllers: usize, sources: usize, config: Config) -> Self {
        let sources: BTreeSet<_> = (0..).map(WatchId).take(sources).collect();
        Self {
            config,
            clock: Clock::default(),
            phase: Phase::New,
            since: Time::ZERO,
            controllers: (0..).map(ControllerId).take(controllers).collect(),
            unsynced: sources.clone(),
            sources,
            synced: false,
            unfinished: 0,
            silent: Vec::new(),
            signalled: false,
            cause: None,
            until: None,
        }
    }

    /// What it was made with, while nothing has happened: controllers, watches, settings.
    #[cfg(feature = "record")]
    pub(crate) fn parts(&self) -> (usize, usize, Config) {
        (self.controllers.len(), self.sources.len(), self.config)
    }

    /// Where it stands, and since when.
    #[must_use]
    pub const fn phase(&self) -> (ManagerPhase, Time) {
        let phase = match self.phase {
            Phase::New => ManagerPhase::New,
            Phase::Running if self.synced => ManagerPhase::Running,
            Phase::Running => ManagerPhase::Syncing,
            Phase::Draining | Phase::Closing => ManagerPhase::Stopping,
            Phase::Over => ManagerPhase::Stopped,
        };
        (phase, self.since)
    }

    fn enter(&mut self, now: Time, phase: Phase) {
        self.phase = phase;
        self.since = now;
    }

    fn start(&mut self, now: Time, out: &mut Outputs<Output>) {
        if self.phase == Phase::New {
            self.enter(now, Phase::Running);
            out.extend(self.controllers.iter().map(|&c| Output::StartController(c)));
            out.extend(self.sources.iter().map(|&w| Output::StartSource(w)));
            self.see_synced(now, out);
        }
    }

    fn see_synced(&mut self, now: Time, out: &mut Outputs<Output>) {
        if self.phase == Phase::Running && !self.synced && self.unsynced.is_empty() {
            self.synced = true;
            self.since = now;
            out.push(Output::Synced);
        }
    }

    /// Begins the end; `cause` is kept if it was not asked for.
    fn stop(&mut self, now: Time, cause: Option<ExitReason>, out: &mut Outputs<Output>) {
        match self.phase {
            Phase::New => {
                self.controllers.clear();
                self.sources.clear();
            }
            Phase::Running => {}
            Phase::Draining | Phase::Closing | Phase::Over => return,
        }
        self.cause = cause;
        self.enter(now, Phase::Draining);
        let grace = self.config.grace;
        self.until = grace.map(|g| now + g + self.config.slack);
        out.extend(self.controllers.iter().map(|&c| Output::StopController(c, grace)));
    }

    /// Waits for nobody, but tells everybody: in a program that lives on, what is not told would go on for ever.
    fn kill(&mut self, now: Time, out: &mut Outputs<Output>) {
        if self.phase != Phase::New {
            out.extend(self.controllers.iter().map(|&c| Output::StopController(c, Some(Duration::ZERO))));
            out.extend(self.sources.iter().map(|&w| Output::StopSource(w)));
        }
        self.exit(now, ExitReason::Killed, out);
    }

    /// Goes on to the next stage as often as the present one is over.
    fn advance(&mut self, now: Time, out: &mut Outputs<Output>) {
        let late = self.until.is_some_and(|at| at <= now);
        if self.phase == Phase::Draining && (self.controllers.is_empty() || late) {
            self.silent = core::mem::take(&mut self.controllers).into_iter().collect();
            self.enter(now, Phase::Closing);
            self.until = Some(now + self.config.slack);
            out.extend(self.sources.iter().map(|&w| Output::StopSource(w)));
        }
        let late = self.until.is_some_and(|at| at <= now);
        if self.phase == Phase::Closing && (self.sources.is_empty() || late) {
            let (unfinished, silent) = (self.unfinished, core::mem::take(&mut self.silent));
            // A watch that hangs is not worth a word: it holds no work.
            let reason = match self.cause.take() {
                Some(cause) => cause,
                None if unfinished == 0 && silent.is_empty() => ExitReason::Stopped,
                None => ExitReason::GraceOver { unfinished, silent },
            };
            self.exit(now, reason, out);
        }
    }

    fn exit(&mut self, now: Time, reason: ExitReason, out: &mut Outputs<Output>) {
        self.enter(now, Phase::Over);
        self.until = None;
        out.push(Output::Exit(reason));
    }
}

impl Machine for Manager {
    type Input<'a> = Input;
    type Output = Output;

    fn handle(&mut self, now: Time, input: Input, out: &mut Outputs<Output>) {
        let now = self.clock.advance(now);
        if self.phase == Phase::Over {
            return;
        }
        match input {
            Input::Start => self.start(now, out),
            Input::SourceSynced(w) => {
                self.unsynced.remove(&w);
                self.see_synced(now, out);
            }
            Input::SourceStopped(w) => {
                if self.sources.remove(&w) {
                    self.stop(now, Some(ExitReason::SourceEnded(w)), out);
                }
            }
            Input::ControllerStopped { controller, unfinished } => {
                if self.controllers.remove(&controller) {
                    self.unfinished = self.unfinished.saturating_add(unfinished);
                    self.stop(now, Some(ExitReason::ControllerEnded(controller)), out);
                }
            }
            Input::Signal if !core::mem::replace(&mut self.signalled, true) => self.stop(now, None, out),
            Input::Stop => self.stop(now, None, out),
            Input::Signal | Input::Kill => self.kill(now, out),
            Input::Deadline => {}
        }
        self.advance(now, out);
    }

    fn next_deadline(&self) -> Option<Deadline> {
        self.until.map(|at| Deadline { at, why: Reason::Shutdown })
    }
}
