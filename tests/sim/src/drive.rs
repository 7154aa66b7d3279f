//! Drives any machine that works over connections, as an executor does, over the simulated network.

use std::collections::VecDeque;

use steersman_core::client::{Driven, Effect, Happening, Pool};
use steersman_core::config::FileError;
use steersman_core::machine::Outputs;
use steersman_core::net::{ConnId, NetError, NetErrorKind, NetEvent};
use steersman_core::time::Time;

use crate::base::{Base, Event, PartId, Who};
use crate::faults::Moment;
use crate::net::{Dir, LinkId, Segment};
use crate::process::Wounds;

/// The server as clients know it.
pub(crate) const ADDRESS: &str = "kube:80";

/// What a machine works in: the world, and what the parts of its process share.
pub(crate) struct Around<'a> {
    pub(crate) base: &'a mut Base,
    pub(crate) who: Who,
    pub(crate) born: Time,
    pub(crate) pool: &'a mut Pool<LinkId>,
    pub(crate) wounds: &'a mut Wounds,
}

impl Around<'_> {
    /// The process's own time.
    pub(crate) fn now(&self) -> Time {
        local(self.base.now, self.born)
    }
}

/// Wakes a part at a time of its process's own, unless it is woken before.
pub(crate) fn wake_at(
    base: &mut Base,
    who: Who,
    born: Time,
    part: PartId,
    scheduled: &mut Option<Time>,
    deadline: Option<Time>,
) {
    let Some(deadline) = deadline else { return };
    let at = global(deadline, born).max(base.now);
    if scheduled.is_none_or(|s| at < s) {
        *scheduled = Some(at);
        base.at(at, Event::Wake(who, part));
    }
}

pub(crate) fn local(now: Time, born: Time) -> Time {
    Time::from_nanos(now.as_nanos() - born.as_nanos())
}

fn global(at: Time, born: Time) -> Time {
    Time::from_nanos(at.as_nanos().saturating_add(born.as_nanos()))
}

/// What comes over a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Wire {
    /// It stands.
    Connected,
    /// It does not: nobody listens.
    Refused,
    /// Bytes, or an end.
    Arrived(Segment),
}

/// A machine in the hands of the simulator.
pub(crate) struct Driving<M: Driven> {
    pub(crate) machine: M,
    part: PartId,
    /// Whether what it writes are requests that change something.
    writes: bool,
    connection: Option<(ConnId, LinkId)>,
    connecting: bool,
    scheduled: Option<Time>,
    out: Outputs<M::Output>,
    todo: VecDeque<M::Output>,
}

impl<M: Driven> Driving<M> {
    pub(crate) fn new(machine: M, part: PartId, writes: bool) -> Self {
        Self {
            machine,
            part,
            writes,
            connection: None,
            connecting: false,
            scheduled: None,
            out: Outputs::new(),
            todo: VecDeque::new(),
        }
    }

    /// Gives it an input; what it says beside effects goes to `told`.
    pub(crate) fn give(&mut self, input: M::Input<'_>, around: &mut Around<'_>, told: &mut Vec<M::Output>) {
        self.machine.handle(around.now(), input, &mut self.out);
        self.settle(around, told);
    }

    /// The time for which it was woken has come.
    pub(crate) fn wake(&mut self, around: &mut Around<'_>, told: &mut Vec<M::Output>) {
        // One that was scheduled for earlier than the one that is needed now.
        let now = around.base.now;
        if self.scheduled.take_if(|at| *at <= now).is_none() {
            return;
        }
        match self.machine.next_deadline() {
            Some(d) if d.at <= around.now() && self.connecting => {
                // Executors give a connection up by the same deadline.
                let Some((conn, link)) = self.connection.take() else { return };
                self.connecting = false;
                around.base.close_client(link);
                let error = NetError::timed_out(ADDRESS, "connecting");
                self.net(conn, NetEvent::ConnectFailed(&error), around);
            }
            Some(d) if d.at <= around.now() => {
                self.machine.handle(around.now(), M::happened(Happening::Deadline), &mut self.out);
            }
            _ => {}
        }
        self.settle(around, told);
    }

    /// Something comes over its connection.
    pub(crate) fn wire(
        &mut self,
        link: LinkId,
        wire: Wire,
        around: &mut Around<'_>,
        told: &mut Vec<M::Output>,
    ) {
        let Some((conn, _)) = self.connection.filter(|(_, l)| *l == link) else { return };
        let error = |kind, what: &str| NetError { kind, message: format!("{ADDRESS}: {what}") };
        let end = match wire {
            Wire::Connected => {
                self.connecting = false;
                self.net(conn, NetEvent::Connected { reused: false }, around);
                return self.settle(around, told);
            }
            Wire::Arrived(Segment::Bytes(bytes)) => {
                self.net(conn, NetEvent::Received(&bytes), around);
                return self.settle(around, told);
            }
            end => end,
        };
        self.connection = None;
        around.base.close_client(link);
        match end {
            Wire::Refused => {
                self.connecting = false;
                let error = error(NetErrorKind::Refused, "connection refused");
                self.net(conn, NetEvent::ConnectFailed(&error), around);
            }
            Wire::Arrived(Segment::Reset) => {
                let error = error(NetErrorKind::Reset, "connection reset by peer");
                self.net(conn, NetEvent::Broken(&error), around);
            }
            Wire::Arrived(Segment::Dead) => {
                let error = error(NetErrorKind::TimedOut, "connection timed out");
                self.net(conn, NetEvent::Broken(&error), around);
            }
            Wire::Connected | Wire::Arrived(Segment::Fin | Segment::Bytes(_)) => {
                self.net(conn, NetEvent::Eof, around)
            }
        }
        self.settle(around, told);
    }

    /// Lets go of its connection.
    pub(crate) fn close(&mut self, around: &mut Around<'_>) {
        if let Some((_, link)) = self.connection.take() {
            around.base.close_client(link);
        }
    }

    fn net(&mut self, conn: ConnId, event: NetEvent<'_>, around: &mut Around<'_>) {
        self.machine.handle(around.now(), M::happened(Happening::Net { conn, event }), &mut self.out);
    }

    fn settle(&mut self, around: &mut Around<'_>, told: &mut Vec<M::Output>) {
        loop {
            self.todo.extend(self.out.drain());
            let Some(output) = self.todo.pop_front() else { break };
            match M::effect(output) {
                Err(output) => told.push(output),
                Ok(effect) => {
                    around.wounds.effects += 1;
                    if around.wounds.at(Moment::Effect(around.wounds.effects)) {
                        return;
                    }
                    self.perform(effect, around);
                    if around.wounds.fatal() {
                        // It is dead: nothing more leaves it.
                        return;
                    }
                }
            }
        }
        let deadline = self.machine.next_deadline().map(|d| d.at);
        wake_at(around.base, around.who, around.born, self.part, &mut self.scheduled, deadline);
    }

    fn perform(&mut self, effect: Effect, around: &mut Around<'_>) {
        match effect {
            Effect::Connect { conn, may_reuse } => self.connect(conn, may_reuse, around),
            Effect::Write { conn, bytes } => {
                let Some((_, link)) = self.connection.filter(|(open, _)| *open == conn) else { return };
                if self.writes {
                    around.wounds.writes += 1;
                    let n = around.wounds.writes;
                    if around.wounds.at(Moment::BeforeWrite(n)) {
                        // It counts, so that the next life's first write is the next one.
                        around.wounds.sent.push(around.base.eyes.made);
                        return;
                    }
                    around.base.send(link, Dir::Up, bytes.0);
                    let commits = around.base.eyes.made;
                    around.wounds.sent.push(commits);
                    around.wounds.at(Moment::AfterWrite(n));
                    let due = around.wounds.due(Moment::BeforeAnswer(n));
                    if let Some(l) = around.base.net.links.get_mut(&link) {
                        l.before_answer.extend(due);
                    }
                } else {
                    around.base.send(link, Dir::Up, bytes.0);
                }
            }
            Effect::Close { conn } => {
                if let Some((_, link)) = self.connection.take_if(|(open, _)| *open == conn) {
                    self.connecting = false;
                    around.base.close_client(link);
                }
            }
            Effect::Release { conn } => {
                if let Some((_, link)) = self.connection.take_if(|(open, _)| *open == conn) {
                    if let Some(l) = around.base.net.links.get_mut(&link) {
                        l.owner = None;
                    }
                    let now = around.now();
                    if let Some(evicted) = around.pool.put(now, link) {
                        around.base.close_client(evicted);
                    }
                }
            }
            Effect::ReadFile { path } => {
                let happening = Happening::File { path: &path, result: Err(&FileError::NotFound) };
                self.machine.handle(around.now(), M::happened(happening), &mut self.out);
            }
            _ => {}
        }
    }

    fn connect(&mut self, conn: ConnId, may_reuse: bool, around: &mut Around<'_>) {
        let now = around.now();
        for old in around.pool.expired(now) {
            around.base.close_client(old);
        }
        while may_reuse && let Some(link) = around.pool.take(now) {
            match around.base.net.links.get_mut(&link) {
                Some(l) if !l.dirty => {
                    l.owner = Some((self.part, conn));
                    self.connection = Some((conn, link));
                    return self.net(conn, NetEvent::Connected { reused: true }, around);
                }
                _ => around.base.close_client(link),
            }
        }
        let node = around.base.net.route(around.who.process);
        let (link, at) = around.base.net.connect(around.base.now, around.who, node, (self.part, conn));
        self.connection = Some((conn, link));
        self.connecting = true;
        around.base.at(at, Event::Connect(link));
    }
}
