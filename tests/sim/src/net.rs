//! A network of byte streams: latency, cuts at any byte, resets, partitions, ends that are gone without a word.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use steersman_core::net::{ConnId, DEAD_AFTER};
use steersman_core::rng::Rng;
use steersman_core::time::Time;

use crate::base::{PartId, Who};

/// Names one connection; never used again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct LinkId(pub(crate) u64);

/// One direction of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Dir {
    /// To the server.
    Up,
    /// To the client.
    Down,
}

/// What travels.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Segment {
    Bytes(Vec<u8>),
    /// The other end has closed in order.
    Fin,
    /// The other end is gone.
    Reset,
    /// The kernel gave the other end up.
    Dead,
}

#[derive(Debug, Default)]
pub(crate) struct Pipe {
    queue: VecDeque<Segment>,
    /// When the last segment arrives: the order is kept.
    last: Time,
    /// So many more bytes get through, then the connection is reset.
    budget: Option<usize>,
}

/// One connection.
#[derive(Debug)]
pub(crate) struct Link {
    pub(crate) who: Who,
    pub(crate) node: usize,
    /// Whose it is in the client; `None` while it lies in the pool.
    pub(crate) owner: Option<(PartId, ConnId)>,
    /// The server has accepted it.
    pub(crate) open: bool,
    /// Each end holds it.
    pub(crate) client: bool,
    pub(crate) server: bool,
    /// Nothing arrives any more, and nobody is told.
    pub(crate) silent: bool,
    /// Something came while it lay in the pool.
    pub(crate) dirty: bool,
    /// The faults that come when the next answer arrives, before anybody reads it.
    pub(crate) before_answer: Vec<usize>,
    up: Pipe,
    down: Pipe,
}

impl Link {
    fn pipe(&mut self, dir: Dir) -> &mut Pipe {
        match dir {
            Dir::Up => &mut self.up,
            Dir::Down => &mut self.down,
        }
    }
}

/// Between a process and a server nothing gets through.
#[derive(Clone, Debug)]
pub(crate) struct Wall {
    pub(crate) fault: usize,
    pub(crate) process: usize,
    pub(crate) node: usize,
    pub(crate) until: Time,
}

/// How bytes travel to and from a process.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Weather {
    /// One way, shortest and longest.
    pub(crate) latency: (Duration, Duration),
    /// Of a thousand writes so many arrive in pieces.
    pub(crate) chopped: u64,
    /// Of a thousand segments so many are lost once or more, and come later.
    pub(crate) lost: u64,
    /// Every write comes in pieces of about this many bytes, each after its own latency.
    pub(crate) pieces: Option<usize>,
}

impl Weather {
    pub(crate) const FAIR: Self = Self {
        latency: (Duration::from_micros(100), Duration::from_micros(900)),
        chopped: 0,
        lost: 0,
        pieces: None,
    };
}

/// All connections.
#[derive(Debug)]
pub(crate) struct Net {
    pub(crate) links: BTreeMap<LinkId, Link>,
    next: u64,
    rng: Rng,
    pub(crate) weather: Vec<Weather>,
    pub(crate) walls: Vec<Wall>,
    /// How many servers stand behind the one address.
    pub(crate) nodes: usize,
    /// Until when the watches of a process are told nothing.
    pub(crate) blind: Vec<Option<Time>>,
    /// Processes that are led to one server.
    pub(crate) led: Vec<Option<usize>>,
}

impl Net {
    pub(crate) fn new(processes: usize, nodes: usize, weather: Weather, rng: Rng) -> Self {
        Self {
            links: BTreeMap::new(),
            next: 0,
            rng,
            weather: vec![weather; processes],
            walls: Vec::new(),
            nodes,
            blind: vec![None; processes],
            led: vec![None; processes],
        }
    }

    /// The server that a new connection of a process comes to.
    pub(crate) fn route(&mut self, process: usize) -> usize {
        match self.led[process] {
            Some(node) => node,
            None if self.nodes == 1 => 0,
            None => self.rng.below(self.nodes as u64) as usize,
        }
    }

    fn latency(&mut self, process: usize) -> Duration {
        let Weather { latency: (from, to), lost, .. } = self.weather[process];
        let mut latency = self.rng.between(from, to);
        // A lost segment is sent again after 200 ms, then twice as late each time (RFC 6298).
        let mut again = Duration::from_millis(200);
        while lost > 0 && self.rng.below(1000) < lost && again < DEAD_AFTER {
            latency += again;
            again *= 2;
        }
        latency
    }

    /// Until when nothing gets through, if so.
    pub(crate) fn walled(&self, process: usize, node: usize) -> Option<&Wall> {
        self.walls.iter().filter(|w| w.process == process && w.node == node).max_by_key(|w| w.until)
    }

    /// A connection is asked for; when it is known whether it stands.
    pub(crate) fn connect(
        &mut self,
        now: Time,
        who: Who,
        node: usize,
        owner: (PartId, ConnId),
    ) -> (LinkId, Time) {
        self.next += 1;
        let id = LinkId(self.next);
        let link = Link {
            who,
            node,
            owner: Some(owner),
            open: false,
            client: true,
            server: false,
            silent: false,
            dirty: false,
            before_answer: Vec::new(),
            up: Pipe::default(),
            down: Pipe::default(),
        };
        self.links.insert(id, link);
        let round = self.latency(who.process) + self.latency(who.process);
        (id, now + round)
    }

    /// Sends bytes, perhaps in pieces.
    pub(crate) fn send(&mut self, now: Time, id: LinkId, dir: Dir, bytes: Vec<u8>, arrivals: &mut Vec<Time>) {
        let Some(link) = self.links.get(&id) else { return };
        let weather = self.weather[link.who.process];
        if let Some(size) = weather.pieces {
            for piece in bytes.chunks(size.max(1)) {
                arrivals.extend(self.put(now, id, dir, Segment::Bytes(piece.to_vec())));
            }
        } else if bytes.len() > 1 && weather.chopped > 0 && self.rng.below(1000) < weather.chopped {
            let at = 1 + self.rng.below(bytes.len() as u64 - 1) as usize;
            let mut head = bytes;
            let tail = head.split_off(at);
            arrivals.extend(self.put(now, id, dir, Segment::Bytes(head)));
            arrivals.extend(self.put(now, id, dir, Segment::Bytes(tail)));
        } else {
            arrivals.extend(self.put(now, id, dir, Segment::Bytes(bytes)));
        }
    }

    /// Sends one segment. What comes after an end is not sent.
    pub(crate) fn put(&mut self, now: Time, id: LinkId, dir: Dir, segment: Segment) -> Option<Time> {
        let process = self.links.get(&id)?.who.process;
        let latency = self.latency(process);
        let link = self.links.get_mut(&id)?;
        if link.silent {
            return None;
        }
        let pipe = link.pipe(dir);
        if matches!(segment, Segment::Reset | Segment::Dead) {
            // It overtakes what the other end has not read.
            pipe.queue.clear();
        }
        let at = (now + latency).max(pipe.last);
        pipe.last = at;
        pipe.queue.push_back(segment);
        Some(at)
    }

    /// Takes the segment that arrives next; none if it was overtaken.
    pub(crate) fn arrive(&mut self, id: LinkId, dir: Dir) -> Option<Segment> {
        let link = self.links.get_mut(&id)?;
        if link.silent {
            return None;
        }
        let pipe = link.pipe(dir);
        let segment = pipe.queue.pop_front()?;
        let Segment::Bytes(mut bytes) = segment else { return Some(segment) };
        match &mut pipe.budget {
            Some(0) => Some(Segment::Reset),
            Some(left) if bytes.len() >= *left => {
                bytes.truncate(*left);
                *left = 0;
                Some(Segment::Bytes(bytes))
            }
            Some(left) => {
                *left -= bytes.len();
                Some(Segment::Bytes(bytes))
            }
            None => Some(Segment::Bytes(bytes)),
        }
    }

    /// Whether the last arrival used up what may get through: the connection is reset after it.
    pub(crate) fn is_cut(&self, id: LinkId, dir: Dir) -> bool {
        let budget = self.links.get(&id).map(|l| match dir {
            Dir::Up => l.up.budget,
            Dir::Down => l.down.budget,
        });
        budget == Some(Some(0))
    }

    /// Lets so many more bytes through to the client, then no more.
    pub(crate) fn cut_after(&mut self, id: LinkId, bytes: usize) {
        if let Some(link) = self.links.get_mut(&id) {
            link.down.budget = Some(bytes);
        }
    }

    /// Forgets a connection that neither end holds.
    pub(crate) fn tidy(&mut self, id: LinkId) {
        if self.links.get(&id).is_some_and(|l| !l.client && !l.server) {
            self.links.remove(&id);
        }
    }

    /// The open connections of a process that carry its watches.
    pub(crate) fn watches_of(&self, process: usize) -> Vec<LinkId> {
        let watch = |l: &Link| matches!(l.owner, Some((PartId::Source(_), _)));
        self.of(process).into_iter().filter(|id| self.links.get(id).is_some_and(watch)).collect()
    }

    /// The open connections of a process, oldest first.
    pub(crate) fn of(&self, process: usize) -> Vec<LinkId> {
        self.links
            .iter()
            .filter(|(_, l)| l.who.process == process && l.open && l.client)
            .map(|(id, _)| *id)
            .collect()
    }
}

#[cfg(test)]
mod tests;
