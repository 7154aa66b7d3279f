//! One task per watch.

use std::sync::Arc;

use async_channel::Sender;
use steersman_core::controller::{self, SourceId};
use steersman_core::manager::{self, Line, WatchId};
use steersman_core::object::Object;
use steersman_core::record::Recorded;
use steersman_core::source::{DecodeJob, Decoded, Input, Output, Source};

use crate::Client;
use crate::interrupt::Interrupt;
use crate::log::log;
use crate::manager::Shared;

/// What a watch task needs.
pub(crate) struct Watch {
    pub(crate) id: WatchId,
    pub(crate) client: Client,
    pub(crate) source: Recorded<Source>,
    pub(crate) subscribers: Vec<(Sender<controller::Input<Object>>, SourceId)>,
    pub(crate) interrupt: Interrupt,
    pub(crate) shared: Shared,
}

impl Watch {
    pub(crate) async fn run(self) {
        let path = self.source.status().path;
        let mut drive = self.client.driver(Some(&self.interrupt)).drive(self.source, Input::Stop);
        drive.feed(Input::Start);
        loop {
            match drive.next().await {
                Output::Delta(delta) => {
                    for (inbox, number) in &self.subscribers {
                        // A controller that has ended no longer listens.
                        let _ = inbox
                            .send(controller::Input::Delta { source: *number, delta: delta.clone() })
                            .await;
                    }
                    self.shared.board(|b| b.source(self.id, drive.machine().status()));
                }
                Output::Decode(job) => drive.feed(Input::Decoded(decode(job.into()).await)),
                Output::Synced => self.shared.tell(manager::Input::SourceSynced(self.id)),
                Output::Notice(notice) => {
                    log(None, Some(&path), &Line::from(&notice));
                    self.shared.board(|b| b.source(self.id, drive.machine().status()));
                }
                Output::Stopped => {
                    drive.close().await;
                    return;
                }
                _ => {}
            }
        }
    }
}

/// Gives half of the job to another thread.
async fn decode(job: Arc<DecodeJob>) -> Decoded {
    let mut ranges = job.cut(2).into_iter();
    let (Some(left), Some(right)) = (ranges.next(), ranges.next()) else { return job.decode_all() };
    let right = blocking::unblock({
        let job = Arc::clone(&job);
        move || job.decode(right)
    });
    let left = job.decode(left);
    job.join(vec![left, right.await])
}
