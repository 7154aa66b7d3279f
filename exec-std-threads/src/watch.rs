//! One thread per watch.

use std::collections::VecDeque;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::mpsc::SyncSender;
use std::thread;

use steersman_core::limits::CHANGES_HELD;
use steersman_core::manager::{self, Line, WatchId};
use steersman_core::object::Object;
use steersman_core::record::Recorded;
use steersman_core::source::{DecodeJob, Decoded, Input, Output, Source};
use steersman_core::store::Changes;

use crate::Client;
use crate::clerk::{Theirs, Word};
use crate::interrupt::Interrupt;
use crate::log::log;
use crate::manager::Shared;

/// The last changes, so that it is the thread which has made the objects that frees those which were replaced. Were it one of those
/// who got them, the two would wait for the allocator's lock, and for one another, with nearly every event.
#[derive(Default)]
struct Held {
    all: VecDeque<Changes<Object>>,
    len: usize,
}

impl Held {
    fn hold(&mut self, changes: &Changes<Object>) {
        self.len += changes.len();
        self.all.push_back(changes.clone());
        while self.len > CHANGES_HELD {
            let Some(first) = self.all.pop_front() else { break };
            self.len -= first.len();
        }
    }
}

/// What a watch thread needs.
pub(crate) struct Watch {
    pub(crate) id: WatchId,
    pub(crate) client: Client,
    pub(crate) source: Recorded<Source>,
    pub(crate) subscribers: Vec<(SyncSender<Word>, Theirs)>,
    pub(crate) interrupt: Interrupt,
    pub(crate) shared: Shared,
}

impl Watch {
    pub(crate) fn run(mut self) {
        let path = self.source.status().path;
        let mut held = Held::default();
        let driver = self.client.driver(Some(&self.interrupt));
        driver.drive(
            &mut self.source,
            Input::Start,
            || Input::Stop,
            |source, output| {
                match output {
                    Output::Delta(delta) => {
                        for (inbox, theirs) in &self.subscribers {
                            // Controllers that have ended no longer listen.
                            let _ = inbox.send(Word::Delta(Arc::clone(theirs), delta.clone()));
                        }
                        held.hold(&delta.changes);
                        self.shared.board(|b| b.source(self.id, source.status()));
                    }
                    Output::Decode(job) => return ControlFlow::Continue(Some(Input::Decoded(decode(&job)))),
                    Output::Synced => self.shared.tell(manager::Input::SourceSynced(self.id)),
                    Output::Notice(notice) => {
                        log(None, Some(&path), &Line::from(&notice));
                        self.shared.board(|b| b.source(self.id, source.status()));
                    }
                    Output::Stopped => return ControlFlow::Break(()),
                    _ => {}
                }
                ControlFlow::Continue(None)
            },
        );
    }
}

/// Gives half of the job to another thread.
fn decode(job: &DecodeJob) -> Decoded {
    let mut ranges = job.cut(2).into_iter();
    let (Some(left), Some(right)) = (ranges.next(), ranges.next()) else { return job.decode_all() };
    thread::scope(|scope| {
        let right = scope.spawn(|| job.decode(right));
        let left = job.decode(left);
        match right.join() {
            Ok(right) => job.join(vec![left, right]),
            Err(panic) => std::panic::resume_unwind(panic),
        }
    })
}

#[cfg(test)]
mod tests {
    use steersman_core::store::Change;

    use super::*;

    fn changes(n: usize) -> Changes<Object> {
        let new = Object::from_json(br#"{"metadata":{"name":"a"}}"#).unwrap();
        (0..n).map(|_| Change::Added { new: new.clone(), initial: false }).collect()
    }

    #[test]
    fn what_is_held_is_bounded() {
        let mut held = Held::default();
        (0..3 * CHANGES_HELD).for_each(|_| held.hold(&changes(1)));
        assert_eq!((held.all.len(), held.len), (CHANGES_HELD, CHANGES_HELD));
        held.hold(&changes(CHANGES_HELD - 1));
        assert_eq!((held.all.len(), held.len), (2, CHANGES_HELD));
        held.hold(&changes(CHANGES_HELD + 1));
        assert_eq!((held.all.len(), held.len), (0, 0), "a list is not kept");
    }
}
