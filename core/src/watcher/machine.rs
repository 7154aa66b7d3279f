//! The state of a watcher, the way in, and what lists and watches share.

use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::sync::Arc;
use core::fmt;
use core::marker::PhantomData;
use core::mem;
use core::time::Duration;

use super::list::List;
use super::trouble::{Class, Trouble};
use super::watch::{End, Watch};
use super::{Ask, BadObject, Config, Event, FirstState, Input, Notice, Output, Phase, ReqId, WatcherStatus};
use crate::backoff::Backoff;
use crate::limits;
use crate::machine::{Deadline, Machine, Outputs, Reason};
use crate::object::{Key, Resource, version};
use crate::rng::Rng;
use crate::time::{Clock, Time};

/// List, then watch, for ever; see the [module](super).
///
/// Deadlines of one request on the wire (connecting, the head of the answer, the progress of a list) belong to whoever
/// performs it and come back as [`CloseReason::TimedOut`](super::CloseReason::TimedOut); the watcher's own are the
/// silence and the age of a watch, and its pauses.
pub struct Watcher<T> {
    pub(super) config: Config,
    pub(super) rng: Rng,
    clock: Clock,
    last_id: u64,
    pub(super) state: State,
    /// Up to here everything was told; empty before the first full state.
    pub(super) version: String,
    /// The server refused a list at `version`: the next one asks for the most recent state.
    pub(super) unavailable: bool,
    /// That the server went back was told when a probe found it.
    pub(super) back_told: bool,
    pub(super) list_backoff: Backoff,
    pub(super) watch_backoff: Backoff,
    /// Lists at `version` in a row that were refused for a reason that may be the version.
    pub(super) refusals: u32,
    /// Watches in a row that brought nothing, for a reason that may be the version they began at.
    pub(super) barren: u32,
    /// The server, or the way to it, was away: it may have come back with older data. It is asked before the next watch: a
    /// server that has caught up with our version by then sends changes from there on, and nobody would ever know.
    pub(super) doubt: bool,
    /// Until then streaming lists are not worth a try.
    pub(super) plain_until: Time,
    /// Streaming lists in a row that failed for a reason that may be the server's way with them.
    pub(super) stream_ends: u32,
    pub(super) synced: bool,
    /// Shared with whoever asked for the status.
    pub(super) quarantine: Arc<BTreeMap<Key, BadObject>>,
    /// A frame could not be read since the last full state.
    pub(super) suspect: bool,
    pub(super) listed_at: Time,
    pub(super) stats: Stats,
    objects: PhantomData<fn(T)>,
}

#[derive(Default)]
pub(super) struct Stats {
    pub(super) last_event: Option<Time>,
    pub(super) last_error: Option<String>,
    pub(super) events: u64,
    pub(super) relists: u64,
    pub(super) watches: u64,
    pub(super) dropped: u64,
    pub(super) unreadable: u64,
}

pub(super) enum State {
    New,
    List(List),
    Watch(Watch),
    /// Asks for the server's version after a silence.
    Probe(ReqId),
    Pause {
        until: Time,
        next: Next,
    },
    Stopped,
}

/// What follows a pause.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Next {
    List,
    Watch,
}

impl<T: Resource> Watcher<T> {
    /// A watcher that waits for [`Input::Start`]. `seed` feeds jitter only; two watchers of one program want two.
    #[must_use]
    pub fn new(config: Config, seed: u64) -> Self {
        let config = config.sane();
        Self {
            rng: Rng::new(seed),
            clock: Clock::default(),
            last_id: 0,
            state: State::New,
            version: String::new(),
            unavailable: false,
            back_told: false,
            list_backoff: Backoff::new(config.backoff),
            watch_backoff: Backoff::new(config.backoff),
            refusals: 0,
            barren: 0,
            doubt: false,
            plain_until: Time::ZERO,
            stream_ends: 0,
            synced: false,
            quarantine: Arc::default(),
            suspect: false,
            listed_at: Time::ZERO,
            stats: Stats::default(),
            objects: PhantomData,
            config,
        }
    }

    /// How it goes, at once.
    #[must_use]
    pub fn status(&self) -> WatcherStatus {
        let (phase, connected_since) = match &self.state {
            State::New => (Phase::New, None),
            State::List(_) => (Phase::Listing, None),
            State::Watch(w) if w.initial.is_some() => (Phase::Listing, None),
            State::Watch(w) => match w.opened {
                Some(at) => (Phase::Watching, Some(at)),
                None => (Phase::Connecting, None),
            },
            State::Probe(_) => (Phase::Probing, None),
            State::Pause { .. } => (Phase::BackingOff, None),
            State::Stopped => (Phase::Stopped, None),
        };
        let Stats { last_event, events, relists, watches, dropped, unreadable, .. } = self.stats;
        WatcherStatus {
            phase,
            connected_since,
            synced: self.synced,
            last_version: self.version.clone(),
            last_event,
            last_error: self.stats.last_error.clone(),
            failures: self.list_backoff.failures().max(self.watch_backoff.failures()),
            events,
            relists,
            watches,
            dropped,
            quarantine: Arc::clone(&self.quarantine),
            unreadable,
            clamped: self.clock.clamped,
        }
    }

    pub(super) fn request(&mut self, ask: Ask, out: &mut Outputs<Output<T>>) -> ReqId {
        self.last_id += 1;
        let id = ReqId(self.last_id);
        out.push(Output::Request(id, ask));
        id
    }

    pub(super) const fn drop_input(&mut self) {
        self.stats.dropped += 1;
    }

    /// Begins to read a full state.
    pub(super) fn begin(&mut self, now: Time, out: &mut Outputs<Output<T>>) {
        self.begin_by(now, self.config.streaming && now >= self.plain_until, out);
    }

    pub(super) fn begin_by(&mut self, now: Time, streaming: bool, out: &mut Outputs<Output<T>>) {
        out.push(Output::Notice(Notice::Listing));
        let at = if self.unavailable {
            None
        } else if !self.version.is_empty() {
            Some(self.version.clone())
        } else {
            (self.config.first == FirstState::Cached).then(|| "0".into())
        };
        if streaming {
            self.begin_stream(now, at, out);
        } else {
            self.begin_list(at, out);
        }
    }

    /// A full state is whole. `asked` is the version it was asked to be at least at.
    ///
    /// # Errors
    /// If it is older than that: time would run backwards.
    pub(super) fn complete(
        &mut self,
        now: Time,
        full: FullState,
        out: &mut Outputs<Output<T>>,
    ) -> Result<(), Trouble> {
        let FullState { asked, head, objects, bad } = full;
        let below = |v: &str| version::compare(&head, v) == Some(core::cmp::Ordering::Less);
        if let Some(asked) = asked.filter(|asked| below(asked)) {
            self.unavailable = true;
            let error =
                alloc::format!("a state at {asked} or later was asked for, but this one is from {head}");
            return Err(Trouble::new(Class::Other, error));
        }
        if below(&self.version) && !self.back_told {
            out.push(Output::Notice(Notice::WentBack { from: self.version.clone(), to: head.clone() }));
        }
        self.stats.relists += u64::from(self.synced);
        self.stats.last_error = None;
        self.version.clone_from(&head);
        (self.unavailable, self.back_told) = (false, false);
        self.list_backoff.progress();
        self.refusals = 0;
        self.barren = 0;
        self.doubt = false;
        self.stream_ends = 0;
        self.synced = true;
        // Beyond the limit nobody knows which are still bad.
        if bad.len() < limits::QUARANTINE {
            let readable = self.quarantine.keys().filter(|key| !bad.contains_key(*key)).cloned();
            out.extend(readable.map(|key| Output::Notice(Notice::Recovered(key))));
        }
        self.quarantine = Arc::new(bad);
        self.suspect = false;
        self.listed_at = now;
        out.push(Output::Event(Event::InitDone { resource_version: head.clone() }));
        out.push(Output::Notice(Notice::Synced { objects, resource_version: head }));
        Ok(())
    }

    /// After a failure: tells it, and pauses. `spent` is time that counts as part of the pause.
    pub(super) fn pause(
        &mut self,
        now: Time,
        verb: Next,
        trouble: Trouble,
        spent: Duration,
        next: Next,
        out: &mut Outputs<Output<T>>,
    ) {
        let (backoff, verb) = match verb {
            Next::List => (&mut self.list_backoff, "list"),
            Next::Watch => (&mut self.watch_backoff, "watch"),
        };
        let mut delay = backoff.fail(&mut self.rng);
        let asked = trouble.retry_after.min(self.config.retry_after_max);
        if asked > delay {
            // Everybody was told the same number: do not come back at the same moment.
            delay = asked + self.rng.between(Duration::ZERO, self.config.backoff.base);
        }
        let delay = delay.saturating_sub(spent).max(Duration::from_millis(1));
        let failures = backoff.failures();
        self.stats.last_error = Some(trouble.error.clone());
        out.push(Output::Notice(Notice::Failed { verb, error: trouble.error, failures, delay }));
        self.state = State::Pause { until: now + delay, next };
    }

    /// Takes note of an object that cannot be read.
    pub(super) fn unreadable(
        &mut self,
        bad: BadObject,
        aside: Option<&mut BTreeMap<Key, BadObject>>,
        out: &mut Outputs<Output<T>>,
    ) {
        self.stats.unreadable += 1;
        let aside = aside.unwrap_or_else(|| Arc::make_mut(&mut self.quarantine));
        if let Some(key) = &bad.key
            && (aside.len() < limits::QUARANTINE || aside.contains_key(key))
        {
            aside.insert(key.clone(), bad.clone());
        }
        out.push(Output::Notice(Notice::Quarantined(bad)));
    }

    const fn outstanding(&self) -> Option<ReqId> {
        match &self.state {
            State::List(List { id, .. }) | State::Watch(Watch { id, .. }) | State::Probe(id) => Some(*id),
            State::New | State::Pause { .. } | State::Stopped => None,
        }
    }

    fn stop(&mut self, out: &mut Outputs<Output<T>>) {
        if let Some(id) = self.outstanding() {
            out.push(Output::Cancel(id));
        }
        self.state = State::Stopped;
    }

    fn deadline(&mut self, now: Time, out: &mut Outputs<Output<T>>) {
        match &self.state {
            State::Pause { until, next } if now >= *until => match *next {
                Next::List => self.begin(now, out),
                Next::Watch if self.doubt => self.probe(out),
                Next::Watch => self.watch(now, out),
            },
            State::Watch(w) => {
                if let Some(due) = w.next_deadline(&self.config)
                    && now >= due.at
                {
                    out.push(Output::Cancel(w.id));
                    self.watch_ended(now, End::Deadline(due.why), out);
                }
            }
            _ => {}
        }
    }

    /// Takes the state out, to be replaced by what follows.
    pub(super) const fn take_state(&mut self) -> State {
        mem::replace(&mut self.state, State::Stopped)
    }
}

/// What a list or a streaming list found.
pub(super) struct FullState {
    pub(super) asked: Option<String>,
    pub(super) head: String,
    pub(super) objects: u64,
    pub(super) bad: BTreeMap<Key, BadObject>,
}

impl<T: Resource> Machine for Watcher<T> {
    type Input<'a> = Input<T>;
    type Output = Output<T>;

    fn handle(&mut self, now: Time, input: Input<T>, out: &mut Outputs<Output<T>>) {
        let now = self.clock.advance(now);
        match input {
            Input::Start => {
                if matches!(self.state, State::New) {
                    self.begin(now, out);
                }
            }
            Input::Stop => self.stop(out),
            Input::Deadline => self.deadline(now, out),
            Input::Opened(id) => self.opened(now, id, out),
            Input::Progress(id) => self.progressed(now, id),
            Input::Item(id, object) => self.list_item(id, Ok(object), out),
            Input::BadItem(id, bad) => self.list_item(id, Err(bad), out),
            Input::ListEnd(id, meta) => self.list_end(now, id, meta, out),
            Input::Frame(id, frame) => self.frame(now, id, frame, out),
            Input::Rejected(id, rejection) => {
                if rejection.code >= 500 {
                    self.away(id);
                }
                self.over(now, id, End::Trouble(Trouble::from_rejection(&rejection)), out);
            }
            Input::Closed(id, super::CloseReason::Clean) => self.over(now, id, End::Clean, out),
            Input::Closed(id, reason) => {
                if !matches!(reason, super::CloseReason::Protocol(_)) {
                    self.away(id);
                }
                self.over(now, id, End::Trouble(Trouble::from_close(reason)), out);
            }
        }
    }

    fn next_deadline(&self) -> Option<Deadline> {
        let due = match &self.state {
            State::Pause { until, .. } => Some(Deadline { at: *until, why: Reason::Backoff }),
            State::Watch(w) => w.next_deadline(&self.config),
            _ => None,
        };
        // The end of the time line never comes.
        due.filter(|d| d.at < Time::MAX)
    }
}

impl<T: Resource> Watcher<T> {
    /// A request is over, whichever it was.
    fn over(&mut self, now: Time, id: ReqId, end: End, out: &mut Outputs<Output<T>>) {
        match &self.state {
            _ if self.outstanding() != Some(id) => self.drop_input(),
            State::List(_) => {
                let trouble = match end {
                    End::Trouble(trouble) => trouble,
                    _ => Trouble::from_close(super::CloseReason::Clean),
                };
                self.list_failed(now, trouble, out);
            }
            State::Probe(_) => {
                let trouble = match end {
                    End::Trouble(trouble) => trouble,
                    _ => Trouble::from_close(super::CloseReason::Clean),
                };
                // Who may not list may still watch.
                self.doubt &= trouble.class == Class::Busy;
                self.pause(now, Next::Watch, trouble, Duration::ZERO, Next::Watch, out);
            }
            _ => self.watch_ended(now, end, out),
        }
    }

    /// `id` came to nothing, and the server may have been away.
    fn away(&mut self, id: ReqId) {
        self.doubt |= matches!(&self.state, State::Watch(w) if w.id == id && w.opened.is_none());
    }
}

/// State and numbers, no objects.
impl<T: Resource> fmt::Debug for Watcher<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Watcher").field("status", &self.status()).finish_non_exhaustive()
    }
}
