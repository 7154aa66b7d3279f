//! What every part of the world stands on: time, the events to come, the network, the record, the watchful eyes.

use std::cmp::Ordering;
use std::collections::BinaryHeap;
use std::fmt;

use steersman_core::controller::ReconcileId;
use steersman_core::time::{Time, UnixMillis};

use crate::net::{Dir, LinkId, Net, Segment};
use crate::oracle::Eyes;
use crate::trace::{Kind, Lane, Record};

/// Wall-clock time at the beginning: 2026-01-01T00:00:00Z.
const WALL: i64 = 1_767_225_600_000;

/// A part of a process that has deadlines of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum PartId {
    Manager,
    Source(u32),
    Controller(u32),
    Call(u64),
}

/// One run of one controller of one process.
pub(crate) type JobId = (u32, ReconcileId);

/// Which process, and in which of its lives: what is meant for an earlier one is void.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Who {
    pub(crate) process: usize,
    pub(crate) life: u64,
}

/// Something that happens at a time.
#[derive(Clone, Debug)]
pub(crate) enum Event {
    /// The next segment of one direction of a link arrives.
    Segment(LinkId, Dir),
    /// A connection that was asked for stands, or does not.
    Connect(LinkId),
    /// A part may have a deadline.
    Wake(Who, PartId),
    /// A controller looks into its inbox.
    Inbox(Who, u32),
    /// A reconcile has slept.
    Slept(Who, JobId, u64),
    /// The truth may have a deadline.
    Truth,
    /// A follower may have a deadline.
    Follower(usize),
    /// A follower hears of a commit.
    Lag(usize),
    /// A fault begins; its number.
    Fault(usize),
    /// A fault ends.
    Heal(usize),
    /// The kernels give up the connections across a partition; the number of its fault.
    GiveUp(usize),
    /// A server's kernel gives up a connection whose other end is gone without a word.
    Forget(LinkId),
    /// A process starts.
    Start(usize),
    /// A process that was paused goes on.
    Resume(usize),
    /// Somebody changes the cluster.
    Change(usize),
}

struct Entry {
    at: Time,
    seq: u64,
    event: Event,
}

impl PartialEq for Entry {
    fn eq(&self, other: &Self) -> bool {
        (self.at, self.seq) == (other.at, other.seq)
    }
}

impl Eq for Entry {}

impl PartialOrd for Entry {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// The earliest is the greatest, since a heap gives the greatest.
impl Ord for Entry {
    fn cmp(&self, other: &Self) -> Ordering {
        (other.at, other.seq).cmp(&(self.at, self.seq))
    }
}

/// See the module.
pub(crate) struct Base {
    pub(crate) now: Time,
    seq: u64,
    heap: BinaryHeap<Entry>,
    pub(crate) net: Net,
    pub(crate) trace: Record,
    pub(crate) eyes: Eyes,
    pub(crate) steps: u64,
    arrivals: Vec<Time>,
}

impl Base {
    pub(crate) fn new(net: Net, trace: Record, eyes: Eyes) -> Self {
        Self {
            now: Time::ZERO,
            seq: 0,
            heap: BinaryHeap::new(),
            net,
            trace,
            eyes,
            steps: 0,
            arrivals: Vec::new(),
        }
    }

    pub(crate) fn at(&mut self, at: Time, event: Event) {
        self.seq += 1;
        self.heap.push(Entry { at: at.max(self.now), seq: self.seq, event });
    }

    /// The next event up to `limit`; time moves to it.
    pub(crate) fn next(&mut self, limit: Time) -> Option<Event> {
        if self.heap.peek().is_none_or(|e| e.at > limit) {
            self.now = self.now.max(limit);
            return None;
        }
        let Entry { at, seq, event } = self.heap.pop()?;
        self.now = at;
        self.steps += 1;
        self.trace.mark(at.as_nanos());
        self.trace.mark(seq);
        Some(event)
    }

    /// True wall-clock time.
    pub(crate) fn wall(&self) -> UnixMillis {
        let passed = i64::try_from(self.now.as_nanos() / 1_000_000).unwrap_or(i64::MAX);
        UnixMillis(WALL.saturating_add(passed))
    }

    /// Sends bytes over a connection.
    pub(crate) fn send(&mut self, link: LinkId, dir: Dir, bytes: Vec<u8>) {
        let mut arrivals = std::mem::take(&mut self.arrivals);
        self.net.send(self.now, link, dir, bytes, &mut arrivals);
        for at in arrivals.drain(..) {
            self.at(at, Event::Segment(link, dir));
        }
        self.arrivals = arrivals;
    }

    /// Sends the end of a connection.
    pub(crate) fn end(&mut self, link: LinkId, dir: Dir, how: Segment) {
        if let Some(at) = self.net.put(self.now, link, dir, how) {
            self.at(at, Event::Segment(link, dir));
        }
    }

    /// The client lets go of a connection.
    pub(crate) fn close_client(&mut self, link: LinkId) {
        let Some(l) = self.net.links.get_mut(&link) else { return };
        l.client = false;
        l.owner = None;
        if l.server {
            self.end(link, Dir::Up, Segment::Fin);
        }
        self.net.tidy(link);
    }

    /// Something happens.
    pub(crate) fn say(&mut self, lane: Lane, kind: Kind, text: fmt::Arguments<'_>) {
        self.trace.entry(self.now, lane, kind, None, text);
    }

    /// Something happens that is about an object.
    pub(crate) fn say_of(
        &mut self,
        lane: Lane,
        kind: Kind,
        key: fmt::Arguments<'_>,
        text: fmt::Arguments<'_>,
    ) {
        self.trace.entry(self.now, lane, kind, Some(key), text);
    }
}
