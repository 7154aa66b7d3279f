//! Threads that wait for deadlines and for what comes from outside, and tell controllers. A few controllers have one each; many
//! share some, since a watch wakes every one of them for all that it reads.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError};

use steersman_core::controller::{Input, SourceId};
use steersman_core::limits::INBOX;
use steersman_core::manager::ControllerId;
use steersman_core::object::Object;
use steersman_core::store::Delta;
use steersman_core::time::Time;

use crate::clock::Clock;
use crate::desk::Desk;
use crate::manager::LastWords;

/// Most of these threads. To wake one costs more than a controller does with most reads, and no more of them run at once than there
/// are cores. But a function of a user's that hangs (mapping, filter) holds up those who share its thread, and, once the inbox is full,
/// every watch in which one of them takes part.
pub(crate) const CLERKS: usize = 8;

/// After so many words without a rest every desk is asked for what is due.
const WORDS_IN_A_ROW: usize = 64;

// A desk that finds no room for its word has to be asked before the inbox is empty.
const _: () = assert!(INBOX >= 2 * WORDS_IN_A_ROW);

/// The controllers of one thread that take part in a watch, and as which of their sources.
pub(crate) type Theirs = Arc<[(ControllerId, SourceId)]>;

/// What such a thread is told.
pub(crate) enum Word {
    /// For one controller.
    Input(ControllerId, Input<Object>),
    /// For each of these.
    Delta(Theirs, Delta<Object>),
}

/// The way to a controller.
#[derive(Clone)]
pub(crate) struct Reach {
    pub(crate) controller: ControllerId,
    pub(crate) inbox: SyncSender<Word>,
}

impl Reach {
    /// Waits until there is room. Whether anybody is there.
    pub(crate) fn send(&self, input: Input<Object>) -> bool {
        self.inbox.send(Word::Input(self.controller, input)).is_ok()
    }

    /// Waits for nothing: the word for which there is no room.
    pub(crate) fn try_send(&self, input: Input<Object>) -> Option<Word> {
        match self.inbox.try_send(Word::Input(self.controller, input)) {
            Err(TrySendError::Full(word)) => Some(word),
            Ok(()) | Err(TrySendError::Disconnected(_)) => None,
        }
    }
}

/// A controller of this thread.
pub(crate) struct Served {
    desk: Arc<Desk>,
    until: Until,
    /// Said when it is over.
    _last_words: LastWords,
}

impl Served {
    pub(crate) const fn new(desk: Arc<Desk>, last_words: LastWords) -> Self {
        Self { desk, until: Until::Unknown, _last_words: last_words }
    }
}

/// However it is left, nobody waits for the controller.
impl Drop for Served {
    fn drop(&mut self) {
        self.desk.close();
    }
}

/// When a desk is to be looked after if nothing comes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Until {
    /// Not asked: it was told something since.
    Unknown,
    At(Time),
    Never,
}

pub(crate) struct Clerk {
    clock: Clock,
    inbox: Receiver<Word>,
    served: BTreeMap<ControllerId, Served>,
}

impl Clerk {
    /// Serves these until none is left.
    pub(crate) fn serve(
        clock: Clock,
        inbox: Receiver<Word>,
        all: impl IntoIterator<Item = (ControllerId, Served)>,
    ) {
        let mut clerk = Self { clock, inbox, served: all.into_iter().collect() };
        let ids: Vec<_> = clerk.served.keys().copied().collect();
        ids.into_iter().for_each(|id| clerk.hear(id, Input::Start));
        clerk.run();
    }

    fn run(mut self) {
        let mut in_a_row = 0;
        while !self.served.is_empty() {
            let word = match self.inbox.try_recv() {
                Ok(word) => {
                    in_a_row += 1;
                    if in_a_row == WORDS_IN_A_ROW {
                        in_a_row = 0;
                        self.ask_all();
                    }
                    Ok(word)
                }
                Err(_) => {
                    in_a_row = 0;
                    self.wait()
                }
            };
            match word {
                Ok(Word::Input(id, input)) => self.hear(id, input),
                Ok(Word::Delta(theirs, delta)) => {
                    for &(id, source) in &*theirs {
                        self.hear(id, Input::Delta { source, delta: delta.clone() });
                    }
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return,
            }
            self.look_after_the_due();
        }
    }

    /// A desk is told, if it is open. One whose machine panics is closed, and no other with it.
    fn hear(&mut self, id: ControllerId, input: Input<Object>) {
        let Some(served) = self.served.get_mut(&id) else { return };
        served.until = Until::Unknown;
        let told = catch_unwind(AssertUnwindSafe(|| served.desk.hear(input)));
        if told.is_err() {
            served.desk.close();
        }
        if served.desk.is_closed() {
            self.served.remove(&id);
        }
    }

    /// Goes to sleep until a word comes or a desk is to be looked after.
    fn wait(&mut self) -> Result<Word, RecvTimeoutError> {
        match self.ask(true) {
            None => self.inbox.recv().map_err(RecvTimeoutError::from),
            Some(at) => self.inbox.recv_timeout(at.since(self.clock.now())),
        }
    }

    /// When the first desk is to be looked after. Those that were told something since are asked. `rests`: no word waits.
    fn ask(&mut self, rests: bool) -> Option<Time> {
        for served in self.served.values_mut().filter(|served| served.until == Until::Unknown) {
            served.until = served.desk.sleep(rests).map_or(Until::Never, Until::At);
        }
        let at = |served: &Served| if let Until::At(at) = served.until { Some(at) } else { None };
        self.served.values().filter_map(at).min()
    }

    /// For when there is always a word, and perhaps no room for the one by which a desk calls.
    fn ask_all(&mut self) {
        self.served.values_mut().for_each(|served| served.until = Until::Unknown);
        self.ask(false);
    }

    fn look_after_the_due(&mut self) {
        let now = self.clock.now();
        let is_due = |served: &Served| matches!(served.until, Until::At(at) if at <= now);
        let due: Vec<_> = self.served.iter().filter(|(_, s)| is_due(s)).map(|(&id, _)| id).collect();
        for id in due {
            let Some(served) = self.served.get_mut(&id) else { continue };
            // If nothing else is due, the status is to be written: that is done when it is asked.
            served.until = Until::Unknown;
            if served.desk.is_due() {
                self.hear(id, Input::Deadline);
            } else if served.desk.is_closed() {
                self.served.remove(&id);
            }
        }
    }
}

#[cfg(test)]
mod tests;
