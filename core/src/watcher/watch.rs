//! Watches: frames, ends, and full states that come as a stream.

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use core::cmp::Ordering;
use core::time::Duration;

use super::machine::{FullState, Next, State};
use super::trouble::{Class, Trouble};
use super::{Ask, BadObject, Config, Event, Frame, Notice, Output, ReqId, Watcher};
use crate::machine::{Deadline, Outputs, Reason};
use crate::object::{Key, Resource, version};
use crate::time::Time;

/// A watch on its way.
pub(super) struct Watch {
    pub(super) id: ReqId,
    /// The version it began at.
    from: String,
    pub(super) opened: Option<Time>,
    /// When the last bytes came.
    heard: Time,
    /// When it must be over, whatever the server says.
    guard: Time,
    bookmarked: bool,
    /// An event was news.
    progress: bool,
    pub(super) initial: Option<Initial>,
}

/// The part of a streaming list before its end bookmark.
#[derive(Default)]
pub(super) struct Initial {
    at: Option<String>,
    begun: bool,
    objects: u64,
    bad: BTreeMap<Key, BadObject>,
}

/// How a watch came to an end.
pub(super) enum End {
    /// In order.
    Clean,
    /// One of our deadlines; the request was cancelled.
    Deadline(Reason),
    /// Anything else that ended the request.
    Trouble(Trouble),
    /// An `ERROR` frame; the request was cancelled.
    ErrorFrame(Trouble),
}

/// Barren watches in a row from one version after which a list is worth its price.
const BARREN: u32 = 3;
/// Streaming lists in a row that may fail before their end bookmark until plain lists are used.
const STREAM_ENDS: u32 = 3;

impl Watch {
    pub(super) fn next_deadline(&self, config: &Config) -> Option<Deadline> {
        let guard = Deadline { at: self.guard, why: Reason::WatchGuard };
        if self.opened.is_none() {
            return Some(guard);
        }
        let (patience, why) = match (&self.initial, self.bookmarked) {
            (Some(_), _) => (config.stall, Reason::InitialEventsEnd),
            (None, false) => (config.idle, Reason::WatchIdle),
            (None, true) => (config.idle_after_bookmark, Reason::WatchIdle),
        };
        Deadline::earlier(Some(Deadline { at: self.heard + patience, why }), Some(guard))
    }
}

impl Initial {
    fn apply<T: Resource>(&mut self, object: T, out: &mut Outputs<Output<T>>) {
        if !self.bad.is_empty() {
            self.bad.remove(&object.key());
        }
        out.push(Output::Event(Event::InitApply(object)));
    }
}

impl<T: Resource> Watcher<T> {
    /// Watches on from the last version.
    pub(super) fn watch(&mut self, now: Time, out: &mut Outputs<Output<T>>) {
        let from = self.version.clone();
        self.request_watch(now, from, None, out);
    }

    pub(super) fn begin_stream(&mut self, now: Time, at: Option<String>, out: &mut Outputs<Output<T>>) {
        let from = at.clone().unwrap_or_default();
        self.request_watch(now, from, Some(Initial { at, ..Initial::default() }), out);
    }

    fn request_watch(
        &mut self,
        now: Time,
        from: String,
        initial: Option<Initial>,
        out: &mut Outputs<Output<T>>,
    ) {
        let (min, max) = self.config.timeout;
        let timeout = self.rng.between(min, max).as_secs();
        self.stats.watches += 1;
        let id = self.request(
            Ask::Watch {
                resource_version: from.clone(),
                timeout_seconds: u32::try_from(timeout).unwrap_or(u32::MAX),
                send_initial_events: initial.is_some(),
            },
            out,
        );
        self.state = State::Watch(Watch {
            id,
            from,
            opened: None,
            heard: now,
            guard: now + Duration::from_secs(timeout) + self.config.guard,
            bookmarked: false,
            progress: false,
            initial,
        });
    }

    pub(super) fn opened(&mut self, now: Time, id: ReqId, out: &mut Outputs<Output<T>>) {
        match &mut self.state {
            State::Watch(w) if w.id == id => {
                if w.opened.is_none() {
                    w.opened = Some(now);
                    w.heard = now;
                    if w.initial.is_none() {
                        out.push(Output::Notice(Notice::Watching { resource_version: w.from.clone() }));
                    }
                }
            }
            State::List(list) if list.id == id => {}
            State::Probe(probe) if *probe == id => {}
            _ => self.drop_input(),
        }
    }

    pub(super) fn progressed(&mut self, now: Time, id: ReqId) {
        match &mut self.state {
            State::Watch(w) if w.id == id => w.heard = now,
            State::List(list) if list.id == id => {}
            State::Probe(probe) if *probe == id => {}
            _ => self.drop_input(),
        }
    }

    pub(super) fn frame(&mut self, now: Time, id: ReqId, frame: Frame<T>, out: &mut Outputs<Output<T>>) {
        self.opened_by(now, id, out);
        match self.take_state() {
            State::Watch(mut w) if w.id == id => {
                w.heard = now;
                if let Frame::Error(status) = frame {
                    out.push(Output::Cancel(id));
                    self.state = State::Watch(w);
                    return self.watch_ended(now, End::ErrorFrame(Trouble::from_status(&status)), out);
                }
                if w.initial.is_some() {
                    return self.initial_frame(now, w, frame, out);
                }
                self.watch_frame(now, &mut w, frame, out);
                self.state = State::Watch(w);
            }
            state => {
                self.drop_input();
                self.state = state;
            }
        }
    }

    /// A frame proves that its watch is open, should the word have been lost.
    fn opened_by(&mut self, now: Time, id: ReqId, out: &mut Outputs<Output<T>>) {
        if matches!(&self.state, State::Watch(w) if w.id == id && w.opened.is_none()) {
            self.opened(now, id, out);
        }
    }

    fn watch_frame(&mut self, now: Time, w: &mut Watch, frame: Frame<T>, out: &mut Outputs<Output<T>>) {
        let lived = w.opened.map_or(Duration::ZERO, |at| now.since(at));
        match frame {
            Frame::Added(object) | Frame::Modified(object) => {
                self.object(now, w, &object, lived, out);
                out.push(Output::Event(Event::Apply(object)));
            }
            Frame::Deleted(object) => {
                self.object(now, w, &object, lived, out);
                out.push(Output::Event(Event::Delete(object)));
            }
            Frame::Bookmark { resource_version, .. } => {
                w.bookmarked = true;
                if version::is_above(&resource_version, &self.version) {
                    self.version.clone_from(&resource_version);
                    out.push(Output::Event(Event::Bookmark { resource_version }));
                }
                // Not at once: a proxy that sends one bookmark and closes would make a hot loop.
                if lived >= self.config.steady {
                    self.going_well();
                }
            }
            // The version stays: what was not applied must come again.
            Frame::Unknown { kind, .. } => out.push(Output::Notice(Notice::UnknownType(kind))),
            Frame::Bad(bad) => {
                self.suspect = true;
                self.unreadable(bad, None, out);
            }
            // Taken care of before.
            Frame::Error(_) => {}
        }
    }

    /// Counts an object event, and moves the version.
    fn object(
        &mut self,
        now: Time,
        w: &mut Watch,
        object: &T,
        lived: Duration,
        out: &mut Outputs<Output<T>>,
    ) {
        self.stats.events += 1;
        self.stats.last_event = Some(now);
        if !self.quarantine.is_empty() {
            let key = object.key();
            if self.quarantine.contains_key(&key) {
                Arc::make_mut(&mut self.quarantine).remove(&key);
                out.push(Output::Notice(Notice::Recovered(key)));
            }
        }
        let to = object.resource_version();
        if version::is_above(to, &self.version) {
            // Versions without an order may be the same ones again and again: then only a watch that lasts is progress.
            let ordered = version::compare(to, &self.version) == Some(Ordering::Greater);
            self.version.clear();
            self.version.push_str(to);
            if ordered || lived >= self.config.very_short {
                w.progress = true;
                self.going_well();
            }
        }
    }

    fn going_well(&mut self) {
        self.watch_backoff.progress();
        self.barren = 0;
        self.stats.last_error = None;
    }

    /// What follows the end of the watch that is the state.
    pub(super) fn watch_ended(&mut self, now: Time, end: End, out: &mut Outputs<Output<T>>) {
        let State::Watch(w) = self.take_state() else { return };
        if w.initial.is_some() {
            return self.stream_ended(now, w, end, out);
        }
        if w.from != self.version {
            self.barren = 0;
        }
        let lived = w.opened.map_or(Duration::ZERO, |at| now.since(at));
        match end {
            End::Deadline(Reason::WatchIdle) => {
                out.push(Output::Notice(Notice::Silent { after: now.since(w.heard) }));
                self.probe(out);
            }
            End::Deadline(_) if w.opened.is_none() => {
                let trouble = Trouble::new(Class::Busy, "the watch was not answered in time");
                self.pause(now, Next::Watch, trouble, Duration::ZERO, Next::Watch, out);
            }
            End::Clean | End::Deadline(_) if w.progress || lived >= self.config.steady => {
                if self.suspect && now.since(self.listed_at) >= self.config.repair {
                    self.begin(now, out);
                } else {
                    self.watch(now, out);
                }
            }
            End::Clean | End::Deadline(_) => {
                self.barren += u32::from(lived < self.config.very_short);
                let error = format!("the watch ended after {} ms without news", lived.as_millis());
                // Time spent connected is time in which nothing was missed: it counts as pause.
                self.retry_watch(now, Trouble::new(Class::Other, error), lived, out);
            }
            End::ErrorFrame(t) | End::Trouble(t) if matches!(t.class, Class::Expired | Class::TooLarge) => {
                self.unavailable |= t.class == Class::TooLarge;
                out.push(Output::Notice(Notice::Expired { error: t.error.clone() }));
                self.pause(now, Next::Watch, t, Duration::ZERO, Next::List, out);
            }
            End::ErrorFrame(t) | End::Trouble(t) if t.class == Class::Busy => {
                self.pause(now, Next::Watch, t, Duration::ZERO, Next::Watch, out);
            }
            // In mid-stream the server gave up on something: it may have dropped objects without a word.
            End::ErrorFrame(t) => self.pause(now, Next::Watch, t, Duration::ZERO, Next::List, out),
            End::Trouble(t) => {
                self.barren += 1;
                self.retry_watch(now, t, Duration::ZERO, out);
            }
        }
    }

    /// Pauses, then watches on; or lists, if watching from here has been in vain.
    fn retry_watch(&mut self, now: Time, trouble: Trouble, spent: Duration, out: &mut Outputs<Output<T>>) {
        let next = if self.barren >= BARREN { Next::List } else { Next::Watch };
        if next == Next::List {
            self.barren = 0;
        }
        self.pause(now, Next::Watch, trouble, spent, next, out);
    }

    fn initial_frame(&mut self, now: Time, mut w: Watch, frame: Frame<T>, out: &mut Outputs<Output<T>>) {
        let Some(initial) = &mut w.initial else { return };
        if !initial.begun {
            initial.begun = true;
            out.push(Output::Event(Event::Init));
        }
        match frame {
            // Not in the order of versions: the version stays until the end.
            Frame::Added(object) => {
                initial.objects += 1;
                initial.apply(object, out);
            }
            Frame::Modified(object) => initial.apply(object, out),
            Frame::Deleted(object) => {
                initial.objects = initial.objects.saturating_sub(1);
                out.push(Output::Event(Event::Delete(object)));
            }
            Frame::Bookmark { initial_events_end: false, .. } | Frame::Error(_) => {}
            Frame::Bookmark { resource_version, initial_events_end: true } => {
                let Some(Initial { at, objects, bad, .. }) = w.initial.take() else { return };
                if matches!(resource_version.as_str(), "" | "0") {
                    out.push(Output::Cancel(w.id));
                    return self.fall_back(now, "the end bookmark has no resourceVersion".into(), out);
                }
                w.from.clone_from(&resource_version);
                let full = FullState { asked: at, head: resource_version, objects, bad };
                if let Err(trouble) = self.complete(now, full, out) {
                    out.push(Output::Cancel(w.id));
                    return self.pause(now, Next::List, trouble, Duration::ZERO, Next::List, out);
                }
                out.push(Output::Notice(Notice::Watching { resource_version: w.from.clone() }));
            }
            Frame::Unknown { kind, .. } => out.push(Output::Notice(Notice::UnknownType(kind))),
            Frame::Bad(bad) => {
                if let Some(key) = &bad.key {
                    out.push(Output::Event(Event::InitKeep(key.clone())));
                }
                self.unreadable(bad, Some(&mut initial.bad), out);
            }
        }
        self.state = State::Watch(w);
    }

    /// A streaming list ended before its end bookmark.
    fn stream_ended(&mut self, now: Time, w: Watch, end: End, out: &mut Outputs<Output<T>>) {
        let at = w.initial.and_then(|i| i.at);
        let trouble = match end {
            End::Deadline(Reason::InitialEventsEnd) => {
                return self.fall_back(now, "the initial events stalled".into(), out);
            }
            End::Clean | End::Deadline(_) => {
                Trouble::new(Class::Busy, "the stream ended before the end of the initial events")
            }
            End::Trouble(t) | End::ErrorFrame(t) => t,
        };
        if at.is_some() && matches!(trouble.class, Class::Expired | Class::TooLarge) {
            self.unavailable = true;
            out.push(Output::Notice(Notice::Expired { error: trouble.error }));
            return self.begin(now, out);
        }
        // Whoever may list may still not watch, and some servers take the parameters of a streaming list amiss.
        if trouble.refused {
            return self.fall_back(now, trouble.error, out);
        }
        // Nobody knows whether a plain list would do better. Bad credentials, overload and a way that is closed would
        // stop it as well.
        let anything = matches!(trouble.class, Class::Denied | Class::Busy) && w.opened.is_none();
        self.stream_ends += u32::from(!anything);
        if self.stream_ends >= STREAM_ENDS {
            return self.fall_back(now, trouble.error, out);
        }
        self.pause(now, Next::List, trouble, Duration::ZERO, Next::List, out);
    }

    /// Plain lists for a long while.
    fn fall_back(&mut self, now: Time, error: String, out: &mut Outputs<Output<T>>) {
        self.plain_until = now + self.config.streaming_again;
        self.stream_ends = 0;
        out.push(Output::Notice(Notice::FellBack { error }));
        self.begin_by(now, false, out);
    }
}
