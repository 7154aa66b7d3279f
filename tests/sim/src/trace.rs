//! What happened, entry by entry, if somebody wants it; as one number always. Every report is made from these entries.

use std::fmt;

use steersman_core::time::Time;

/// Most bytes of text that are kept; a run that goes round in circles has said all by then.
const MOST: usize = 64 * 1024 * 1024;
/// What an entry takes beside its text, about.
const ENTRY: usize = 64;

/// Everything that happened in a run, in order. As text ([`Display`](fmt::Display)) it has a line for each entry; two runs of
/// one seed have the same text, to the byte.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Trace {
    /// The entries; none if nobody asked for them.
    pub entries: Vec<Entry>,
    /// Whether there was more than is kept.
    pub cut: bool,
}

/// One thing that happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// When, in virtual time.
    pub at: Time,
    /// To whom.
    pub lane: Lane,
    /// What kind of thing.
    pub kind: Kind,
    /// The object that it is about, if it is about one: a commit says its kind and key, a run its key.
    pub key: Option<String>,
    /// In words.
    pub text: String,
}

/// To whom something happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Lane {
    /// A disturbance, by its place in the list.
    Fault(usize),
    /// The state of the cluster, and those who change it from outside.
    Cluster,
    /// A process.
    Replica(usize),
    /// An API server; 0 is the one that writes.
    Server(usize),
}

/// What kind of thing happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// A disturbance begins.
    Strikes,
    /// A disturbance ends.
    Heals,
    /// A process begins a life.
    Starts,
    /// A process is gone, by itself or not.
    Dies,
    /// A process stands still.
    Stands,
    /// A process that stood still goes on.
    GoesOn,
    /// A watch tells what has changed.
    Sees,
    /// A reconcile begins; the number is that of its controller and of its run.
    Runs(u32, u64),
    /// A reconcile ends well.
    Done(u32, u64),
    /// A reconcile ends in an error.
    Fails(u32, u64),
    /// A reconcile makes a request.
    Asks,
    /// A reconcile gets its answer.
    Hears,
    /// A watch or a controller has something to say.
    Notes,
    /// A server gets a request.
    Gets,
    /// A follower hears of a commit.
    Follows,
    /// A server goes down.
    Down,
    /// A server is back.
    Back,
    /// Somebody outside changes the cluster.
    Changes,
    /// The cluster has a new object.
    Creates,
    /// The cluster has a new version of an object.
    Updates,
    /// The cluster has lost an object.
    Deletes,
    /// Something is violated.
    Violated,
}

impl Kind {
    /// Whether whoever reads a run wants to see it wherever it happens.
    #[must_use]
    pub fn is_loud(self) -> bool {
        !matches!(
            self,
            Self::Sees
                | Self::Runs(..)
                | Self::Done(..)
                | Self::Asks
                | Self::Hears
                | Self::Notes
                | Self::Gets
                | Self::Follows
        )
    }
}

impl fmt::Display for Lane {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fault(n) => write!(f, "fault {n}"),
            Self::Cluster => f.write_str("cluster"),
            Self::Replica(n) => write!(f, "replica {n}"),
            Self::Server(n) => write!(f, "server {n}"),
        }
    }
}

impl fmt::Display for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // An object may be named by anybody: one entry is one line.
        write!(f, "{} {} {}", Stamp(self.at), self.lane, self.text.escape_control())
    }
}

impl fmt::Display for Trace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.entries.iter().try_for_each(|entry| writeln!(f, "{entry}"))?;
        if self.cut { writeln!(f, "and more") } else { Ok(()) }
    }
}

/// A moment in seconds, to the microsecond.
pub(crate) struct Stamp(pub(crate) Time);

impl fmt::Display for Stamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (secs, micros) = (self.0.as_nanos() / 1_000_000_000, self.0.as_nanos() / 1000 % 1_000_000);
        write!(f, "{secs:>5}.{micros:06}")
    }
}

/// Text without control characters.
pub(crate) trait EscapeControl {
    fn escape_control(&self) -> Plain<'_>;
}

impl EscapeControl for str {
    fn escape_control(&self) -> Plain<'_> {
        Plain(self)
    }
}

pub(crate) struct Plain<'a>(&'a str);

impl fmt::Display for Plain<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.split_inclusive(char::is_control).try_for_each(|part| match part.chars().next_back() {
            Some(c) if c.is_control() => {
                write!(f, "{}{}", &part[..part.len() - c.len_utf8()], c.escape_default())
            }
            _ => f.write_str(part),
        })
    }
}

/// The record of a run. Entries are made only when asked for: a run is made again from its seed to read it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Record {
    trace: Option<Trace>,
    bytes: usize,
    fingerprint: u64,
}

impl Record {
    pub(crate) fn new(wanted: bool) -> Self {
        Self { trace: wanted.then(Trace::default), bytes: 0, fingerprint: 0xcbf2_9ce4_8422_2325 }
    }

    /// One more number that must be the same in every run of this seed (FNV-1a over its bytes).
    pub(crate) fn mark(&mut self, number: u64) {
        for byte in number.to_le_bytes() {
            self.fingerprint = (self.fingerprint ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }

    /// One more entry; its words are put together only if they are wanted.
    pub(crate) fn entry(
        &mut self,
        at: Time,
        lane: Lane,
        kind: Kind,
        key: Option<fmt::Arguments<'_>>,
        text: fmt::Arguments<'_>,
    ) {
        let Some(trace) = &mut self.trace else { return };
        if self.bytes >= MOST {
            trace.cut = true;
            return;
        }
        let (key, text) = (key.map(|key| key.to_string()), text.to_string());
        self.bytes += ENTRY + text.len() + key.as_ref().map_or(0, String::len);
        trace.entries.push(Entry { at, lane, kind, key, text });
    }

    pub(crate) fn is_on(&self) -> bool {
        self.trace.is_some()
    }

    /// A number that two runs have in common only if the same happened in both.
    pub(crate) fn fingerprint(&self) -> u64 {
        self.fingerprint
    }

    pub(crate) fn take(&mut self) -> Trace {
        self.trace.take().unwrap_or_default()
    }
}
