//! What each kind of machine was told, told again.

use alloc::collections::{BTreeMap, VecDeque};
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use super::Replays;
use crate::api::Raw;
use crate::client::{Call, CallInput};
use crate::config::FileError;
use crate::controller::{self, Controller};
use crate::machine::{Machine, Outputs};
use crate::manager::Manager;
use crate::net::{ConnId, NetEvent};
use crate::object::{Dropped, Object, ObjectOptions};
use crate::record::form::{Changed, ControllerTold, Data, Told};
use crate::record::scribe::ManagerTold;
use crate::source::{self, DecodeJob, Source};
use crate::store::{Change, Delta, Snapshot};
use crate::time::Time;

fn net(told: &Told) -> Option<(ConnId, NetEvent<'_>)> {
    Some(match told {
        Told::Connected { conn, reused } => (*conn, NetEvent::Connected { reused: *reused }),
        Told::ConnectFailed { conn, error } => (*conn, NetEvent::ConnectFailed(error)),
        Told::Received { conn, bytes } => (*conn, NetEvent::Received(&bytes.0)),
        Told::Eof { conn } => (*conn, NetEvent::Eof),
        Told::Broken { conn, error } => (*conn, NetEvent::Broken(error)),
        _ => return None,
    })
}

fn file(result: &Result<Data, FileError>) -> Result<&[u8], &FileError> {
    result.as_ref().map(|data| &*data.0)
}

impl Replays for Source {
    type Memory = VecDeque<DecodeJob>;

    fn tell(
        &mut self,
        jobs: &mut VecDeque<DecodeJob>,
        now: Time,
        told: &Told,
        out: &mut Outputs<source::Output>,
    ) -> Result<(), String> {
        use source::Input as I;
        let input = match told {
            Told::Start => I::Start,
            Told::Stop => I::Stop,
            Told::File { path, result } => I::File { path, result: file(result) },
            Told::Decoded { request, received } => {
                // Jobs that were overtaken may never be reported, so all before it go too.
                let at = jobs.iter().position(|job| job.name() == (*request, *received));
                let job = at.and_then(|at| jobs.drain(..=at).next_back());
                // Without such a job this source had nothing to decode where the recorded one had.
                let Some(job) = job else { return Ok(()) };
                I::Decoded(job.decode_all())
            }
            Told::Deadline => I::Deadline,
            told => match net(told) {
                Some((conn, event)) => I::Net { conn, event },
                None => return Ok(()),
            },
        };
        self.handle(now, input, out);
        Ok(())
    }

    fn keep(jobs: &mut VecDeque<DecodeJob>, output: source::Output) {
        if let source::Output::Decode(job) = output {
            jobs.push_back(*job);
        }
    }
}

impl Replays for Call<Raw> {
    type Memory = ();

    fn tell(
        &mut self,
        (): &mut (),
        now: Time,
        told: &Told,
        out: &mut Outputs<crate::client::CallOutput<Raw>>,
    ) -> Result<(), String> {
        let input = match told {
            Told::Start => CallInput::Start,
            Told::Stop => CallInput::Abort,
            Told::File { path, result } => CallInput::File { path, result: file(result) },
            Told::Deadline => CallInput::Deadline,
            told => match net(told) {
                Some((conn, event)) => CallInput::Net { conn, event },
                None => return Ok(()),
            },
        };
        self.handle(now, input, out);
        Ok(())
    }
}

impl Replays for Manager {
    type Memory = ();

    fn tell(
        &mut self,
        (): &mut (),
        now: Time,
        told: &ManagerTold,
        out: &mut Outputs<crate::manager::Output>,
    ) -> Result<(), String> {
        self.handle(now, told.0, out);
        Ok(())
    }
}

impl Replays for Controller<Object> {
    type Memory = BTreeMap<controller::SourceId, Snapshot<Object>>;

    fn tell(
        &mut self,
        views: &mut Self::Memory,
        now: Time,
        told: &ControllerTold,
        out: &mut Outputs<controller::Output<Object>>,
    ) -> Result<(), String> {
        use controller::Input as I;
        let input = match told {
            ControllerTold::Start => I::Start,
            ControllerTold::Delta { source, changes, whole, view, synced, resource_version, received } => {
                let before = views.entry(*source).or_default();
                let changes = again(before, changes)?;
                let after = match whole {
                    None => before.after(&changes, &view.0, view.1),
                    Some(all) => {
                        let all =
                            all.iter().map(|json| Ok(Change::Added { new: object(json)?, initial: true }));
                        Snapshot::default().after(&all.collect::<Result<Vec<_>, String>>()?, &view.0, view.1)
                    }
                };
                *before = after.clone();
                let delta = Delta {
                    changes: changes.into(),
                    view: after,
                    synced: *synced,
                    resource_version: resource_version.as_str().into(),
                    received: *received,
                };
                I::Delta { source: *source, delta }
            }
            ControllerTold::Trigger { key, priority } => I::Trigger { key: key.clone(), priority: *priority },
            ControllerTold::Wrote { id, write } => I::Wrote { id: *id, write: write.clone() },
            ControllerTold::Read { id, reads } => I::Read { id: *id, reads: *reads },
            ControllerTold::Done { id, outcome, started } => {
                I::Done { id: *id, outcome: outcome.clone(), started: *started }
            }
            ControllerTold::Stop { grace } => I::Stop { grace: *grace },
            ControllerTold::Deadline => I::Deadline,
        };
        self.handle(now, input, out);
        Ok(())
    }
}

fn object(json: &str) -> Result<Object, String> {
    // What was dropped is gone already.
    Object::from_json_with(json.as_bytes(), &ObjectOptions::default().dropping(Dropped::none()))
        .map_err(|e| e.to_string())
}

/// The changes with what was there before, which the view before has.
fn again(view: &Snapshot<Object>, changes: &[Changed]) -> Result<Vec<Change<Object>>, String> {
    use crate::object::Resource as _;
    let mut latest = BTreeMap::new();
    let mut all = Vec::with_capacity(changes.len());
    for changed in changes {
        let change = match changed {
            Changed::Added { object: json, initial } => {
                Change::Added { new: object(json)?, initial: *initial }
            }
            Changed::Updated { object: json, relisted } => {
                let new = object(json)?;
                let key = new.key();
                let old = latest.get(&key).cloned().or_else(|| view.get(&key)).unwrap_or_else(|| new.clone());
                Change::Updated { old, new, relisted: *relisted }
            }
            Changed::Deleted { object: json, final_unknown } => {
                Change::Deleted { old: object(json)?, final_unknown: *final_unknown }
            }
        };
        if let Change::Added { new, .. } | Change::Updated { new, .. } = &change {
            latest.insert(new.key(), new.clone());
        }
        all.push(change);
    }
    Ok(all)
}
