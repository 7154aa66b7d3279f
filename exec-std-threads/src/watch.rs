//! One thread per watch.

use std::ops::ControlFlow;
use std::sync::mpsc::SyncSender;
use std::thread;

use steersman_core::controller::{self, SourceId};
use steersman_core::manager::{self, Line, WatchId};
use steersman_core::object::Object;
use steersman_core::record::Recorded;
use steersman_core::source::{DecodeJob, Decoded, Input, Output, Source};

use crate::Client;
use crate::interrupt::Interrupt;
use crate::log::log;
use crate::manager::Shared;

/// What a watch thread needs.
pub(crate) struct Watch {
    pub(crate) id: WatchId,
    pub(crate) client: Client,
    pub(crate) source: Recorded<Source>,
    pub(crate) subscribers: Vec<(SyncSender<controller::Input<Object>>, SourceId)>,
    pub(crate) interrupt: Interrupt,
    pub(crate) shared: Shared,
}

impl Watch {
    pub(crate) fn run(mut self) {
        let path = self.source.status().path;
        let driver = self.client.driver(Some(&self.interrupt));
        driver.drive(
            &mut self.source,
            Input::Start,
            || Input::Stop,
            |source, output| {
                match output {
                    Output::Delta(delta) => {
                        for (inbox, number) in &self.subscribers {
                            // A controller that has ended no longer listens.
                            let _ = inbox
                                .send(controller::Input::Delta { source: *number, delta: delta.clone() });
                        }
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
