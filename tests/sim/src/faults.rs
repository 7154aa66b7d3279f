//! Disturbances as plain values: what happens to a run is a list of these, drawn from a seed or given by hand.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use steersman_core::time::Time;

/// One disturbance.
///
/// A list of them goes into [`Sim::run_with`](crate::Sim::run_with), and any part of a list is a list again, which is how
/// a failing run is made smaller.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fault {
    /// When it happens.
    pub when: When,
    /// What happens.
    pub what: What,
}

/// When a fault happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum When {
    /// At this virtual time.
    At(Time),
    /// At this point of a process.
    In {
        /// Which process.
        replica: usize,
        /// Where in its life.
        moment: Moment,
    },
    /// When the cluster has got so many new versions since the beginning.
    Commit(u64),
}

/// A point in what a process does, counted over all its lives, from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Moment {
    /// Before its n-th effect on the network: connecting, writing, closing.
    Effect(u64),
    /// Its n-th request that changes something is about to leave, and does not.
    BeforeWrite(u64),
    /// Its n-th request that changes something has left; whether it arrives is another question.
    AfterWrite(u64),
    /// The answer to its n-th request that changes something arrives, and nobody has read it: a process that dies or whose
    /// connections are reset never will; one that lives on does when the fault lets it.
    BeforeAnswer(u64),
    /// It has begun its n-th life; the first is 1.
    Start(u64),
}

/// What happens.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum What {
    /// A process dies; all that it knew is lost. It starts again after a while.
    Crash {
        /// Which.
        replica: usize,
        /// How long it is down.
        down: Duration,
        /// The machine dies with it, so that its connections are not even closed.
        silent: bool,
    },
    /// A process is told to end in order, as in a rolling update, and starts again after a while.
    Stop {
        /// Which.
        replica: usize,
        /// How long it is down after its end.
        down: Duration,
    },
    /// A process stands still, and time goes on.
    Pause {
        /// Which.
        replica: usize,
        /// For how long.
        lasts: Duration,
    },
    /// The wall clock of a process jumps.
    Clock {
        /// Which.
        replica: usize,
        /// By so many milliseconds, forth or back.
        by: i64,
    },
    /// Nothing gets through between a process and a server; what was sent comes later, unless the kernels give up first.
    Partition {
        /// Which process.
        replica: usize,
        /// Which server; 0 is the one that writes.
        server: usize,
        /// For how long.
        lasts: Duration,
    },
    /// What the watches of a process are told is held back, and lost: at the end they break, and the server has forgotten
    /// what they missed, so that lists show what it came to.
    Blind {
        /// Which.
        replica: usize,
        /// For how long.
        lasts: Duration,
    },
    /// All connections of a process are reset; what was on its way is lost.
    Reset {
        /// Which.
        replica: usize,
    },
    /// One open connection of a process gets so many more bytes, then it is reset.
    Cut {
        /// Which process.
        replica: usize,
        /// Which of its connections, modulo their number.
        which: usize,
        /// How many bytes.
        after: usize,
    },
    /// The server's end of one connection is gone, and the client is not told.
    HalfOpen {
        /// Which process.
        replica: usize,
        /// Which of its connections, modulo their number.
        which: usize,
    },
    /// New connections to a server are refused.
    Refuse {
        /// Which.
        server: usize,
        /// For how long.
        lasts: Duration,
    },
    /// What a process sends and gets comes in pieces of a few bytes, each with the latency of a bad network.
    Slow {
        /// Which process.
        replica: usize,
        /// For how long.
        lasts: Duration,
    },
    /// Segments to and from a process are lost and come later.
    Loss {
        /// Which process.
        replica: usize,
        /// Of a thousand.
        share: u64,
        /// For how long.
        lasts: Duration,
    },
    /// A server goes down with all its connections, and comes back without a memory of old events.
    ServerRestart {
        /// Which.
        server: usize,
        /// How long it is down.
        down: Duration,
    },
    /// Old events are forgotten: who comes back with an old version is told 410.
    Compact,
    /// Watches get no bookmarks.
    NoBookmarks {
        /// For how long.
        lasts: Duration,
    },
    /// A follower hears nothing of new commits; then it hears of all of them.
    Freeze {
        /// Which; not 0.
        server: usize,
        /// For how long.
        lasts: Duration,
    },
    /// All new connections of a process are led to one server.
    Lead {
        /// Which process.
        replica: usize,
        /// To which server.
        server: usize,
        /// For how long.
        lasts: Duration,
    },
    /// Requests meet an ill server.
    Answer {
        /// How.
        ill: Ill,
        /// Only these: `get`, `list`, `watch`, `create`, `update`, `patch`, `delete`.
        verb: Option<String>,
        /// Of this replica only.
        replica: Option<usize>,
        /// So many pass first.
        skip: u32,
        /// How many requests it meets.
        times: u32,
    },
    /// Every key that a process knows is reconciled once more, for no reason.
    Trigger {
        /// Which.
        replica: usize,
    },
}

/// What an ill server does to a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Ill {
    /// 409 `Conflict`, as if somebody had been faster. Only updates and patches.
    Conflict,
    /// 429, with so many seconds in `Retry-After`.
    TooMany(u32),
    /// 500.
    Error,
    /// 503.
    Unavailable,
    /// No answer.
    Hang,
    /// The connection ends, and nothing was done.
    Drop,
    /// It is done, and the connection ends instead of an answer.
    DropAfter,
    /// It is done twice, as by a proxy that tries again; the second answer is given. Only requests that change something.
    Twice,
}

impl Fault {
    /// A fault at a time.
    #[must_use]
    pub fn at(at: Duration, what: What) -> Self {
        Self { when: When::At(Time::ZERO + at), what }
    }

    /// A process dies at this point of its life, for so long.
    #[must_use]
    pub fn crash(replica: usize, moment: Moment, down: Duration) -> Self {
        Self { when: When::In { replica, moment }, what: What::Crash { replica, down, silent: false } }
    }

    /// How long it lasts, if it ends by itself.
    pub(crate) fn lasts_mut(&mut self) -> Option<&mut Duration> {
        match &mut self.what {
            What::Pause { lasts, .. }
            | What::Partition { lasts, .. }
            | What::Blind { lasts, .. }
            | What::Refuse { lasts, .. }
            | What::Slow { lasts, .. }
            | What::Loss { lasts, .. }
            | What::NoBookmarks { lasts }
            | What::Freeze { lasts, .. }
            | What::Lead { lasts, .. } => Some(lasts),
            _ => None,
        }
    }

    /// Begins so much later and ends when it did. Whether that can be.
    pub(crate) fn begin_later(&mut self, by: Duration) -> bool {
        let When::At(at) = self.when else { return false };
        let Some(lasts) = self.lasts_mut().filter(|lasts| **lasts > by) else { return false };
        *lasts -= by;
        self.when = When::At(at + by);
        true
    }

    /// What it names and is not there: with none it would do nothing.
    pub(crate) fn unknown(&self, replicas: usize, servers: usize) -> Option<String> {
        fn walk(value: &Value, names: &[(&str, u64)]) -> Option<String> {
            let Value::Object(members) = value else { return None };
            members.iter().find_map(|(name, member)| {
                let named = names.iter().find(|(known, _)| known == name);
                match (named, member.as_u64()) {
                    (Some((_, count)), Some(n)) if n >= *count => Some(format!("{name} {n}")),
                    _ => walk(member, names),
                }
            })
        }
        let names = [("replica", replicas as u64), ("server", servers as u64)];
        serde_json::to_value(self).ok().and_then(|value| walk(&value, &names))
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.when {
            When::At(at) => write!(f, "at {:?}: ", at.since(Time::ZERO))?,
            When::In { replica, moment } => write!(f, "at {moment:?} of replica {replica}: ")?,
            When::Commit(n) => write!(f, "at commit {n}: ")?,
        }
        write!(f, "{}", self.what)
    }
}

impl fmt::Display for What {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Crash { replica, down, silent } => {
                let how = if *silent { "and its machine dies" } else { "dies" };
                write!(f, "replica {replica} {how}, down for {down:?}")
            }
            Self::Stop { replica, down } => {
                write!(f, "replica {replica} is told to end, then down for {down:?}")
            }
            Self::Pause { replica, lasts } => write!(f, "replica {replica} stands still for {lasts:?}"),
            Self::Clock { replica, by } => write!(f, "the clock of replica {replica} jumps by {by} ms"),
            Self::Partition { replica, server, lasts } => {
                write!(f, "nothing gets through between replica {replica} and server {server} for {lasts:?}")
            }
            Self::Blind { replica, lasts } => {
                write!(f, "the watches of replica {replica} show nothing for {lasts:?}, then break")
            }
            Self::Reset { replica } => write!(f, "all connections of replica {replica} are reset"),
            Self::Cut { replica, which, after } => {
                write!(f, "connection {which} of replica {replica} is reset after {after} bytes")
            }
            Self::HalfOpen { replica, which } => {
                write!(f, "connection {which} of replica {replica} dies at the server's end alone")
            }
            Self::Refuse { server, lasts } => write!(f, "server {server} refuses connections for {lasts:?}"),
            Self::Slow { replica, lasts } => {
                write!(f, "the network of replica {replica} is slow for {lasts:?}")
            }
            Self::Loss { replica, share, lasts } => {
                write!(f, "replica {replica} loses {share} of 1000 segments for {lasts:?}")
            }
            Self::ServerRestart { server, down } => {
                write!(f, "server {server} starts anew, down for {down:?}")
            }
            Self::Compact => f.write_str("old events are forgotten"),
            Self::NoBookmarks { lasts } => write!(f, "watches get no bookmarks for {lasts:?}"),
            Self::Freeze { server, lasts } => write!(f, "server {server} hears of no commits for {lasts:?}"),
            Self::Lead { replica, server, lasts } => {
                write!(f, "replica {replica} is led to server {server} for {lasts:?}")
            }
            Self::Answer { ill, verb, replica, skip, times } => {
                let verb = verb.as_deref().unwrap_or("any");
                write!(f, "{ill:?} meets {times} requests (verb: {verb}")?;
                if let Some(replica) = replica {
                    write!(f, ", of replica {replica}")?;
                }
                write!(f, ", after {skip} that pass)")
            }
            Self::Trigger { replica } => write!(f, "replica {replica} reconciles every key once more"),
        }
    }
}

impl What {
    /// Whether the process must not do a single thing more.
    pub(crate) fn kills(&self, process: usize) -> bool {
        matches!(self, Self::Crash { replica, .. } if *replica == process)
    }
}
