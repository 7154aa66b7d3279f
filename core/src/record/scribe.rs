//! Who writes down: one for each kind of machine.

use alloc::borrow::ToOwned as _;
use alloc::format;
use alloc::string::{String, ToString as _};
use alloc::vec::Vec;
use core::fmt::Display;

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::file::fits;
use super::form::{Changed, ControllerTold, Data, Told};
use super::redact::{self, Redaction, Rules};
use super::text;
use super::wire::{self, Responses};
use crate::api::Answer;
use crate::client::{Call, CallInput, CallOutput, Effect, Error, ErrorKind};
use crate::config::FileError;
use crate::controller::{self, Config, Controller, Outcome};
use crate::machine::Machine;
use crate::manager::{self, Manager};
use crate::net::{ConnId, NetEvent};
use crate::object::Object;
use crate::source::{self, Source};
use crate::store::{Change, Delta};
use crate::watcher::Notice;
use crate::wire::http::HttpLimits;

/// Makes owned values of inputs, and lines of outputs, both without secrets.
pub trait Scribe<M: Machine> {
    /// An input.
    type Told: Serialize + DeserializeOwned + Display;

    /// What `input` tells.
    ///
    /// # Errors
    /// Why it cannot be recorded, nor anything after it.
    fn told(&mut self, input: &M::Input<'_>) -> Result<Self::Told, String>;

    /// One line about an output: equal if and only if the decision is.
    fn said(&mut self, output: &M::Output) -> String;
}

/// A machine that can be recorded.
pub trait Recordable: Machine + Sized {
    /// Who does it.
    type Scribe: Scribe<Self>;
}

impl Recordable for Source {
    type Scribe = Net;
}

impl<R: Answer> Recordable for Call<R> {
    type Scribe = Net;
}

impl Recordable for Controller<Object> {
    type Scribe = Objects;
}

impl Recordable for Manager {
    type Scribe = Words;
}

/// Of machines that work over connections.
#[derive(Debug)]
pub struct Net {
    responses: Responses,
}

impl Net {
    pub(super) fn of_source(source: &Source, redaction: &Redaction) -> Self {
        let (watch, _, exchange) = source.parts();
        Self {
            responses: Responses::new(
                HttpLimits::from(&exchange.endpoint().limits),
                redaction.of(&watch.resource),
            ),
        }
    }

    pub(super) fn of_call<R: Answer>(call: &Call<R>, redaction: &Redaction) -> Self {
        let (exchange, ..) = call.parts();
        let request = call.request();
        let rules = redaction.of_request(request.method, &request.path_and_query);
        Self { responses: Responses::new(HttpLimits::from(&exchange.endpoint().limits), rules) }
    }

    /// Whether bodies are masked.
    pub(super) const fn masks(&self) -> bool {
        self.responses.rules().is_some()
    }

    fn net(&mut self, conn: ConnId, event: &NetEvent<'_>) -> Result<Told, String> {
        Ok(match event {
            NetEvent::Connected { reused } => Told::Connected { conn, reused: *reused },
            NetEvent::ConnectFailed(e) => Told::ConnectFailed { conn, error: (*e).clone() },
            NetEvent::Received(bytes) => match fits(bytes.len()).map(|()| self.responses.received(bytes))? {
                Ok(bytes) => Told::Received { conn, bytes: Data(bytes) },
                Err(wire::Compressed) => {
                    return Err("the server compressed, unasked, what has to be masked".to_owned());
                }
            },
            NetEvent::Eof => Told::Eof { conn },
            NetEvent::Broken(e) => Told::Broken { conn, error: (*e).clone() },
        })
    }

    /// The only files that these machines read hold tokens.
    fn file(path: &str, result: &Result<&[u8], &FileError>) -> Told {
        let result = match result {
            Ok(bytes) => Ok(Data(redact::token_file(bytes))),
            Err(e) => Err((*e).clone()),
        };
        Told::File { path: path.to_owned(), result }
    }

    /// What went wrong, without what the server may have quoted.
    fn error(&self, e: &Error) -> String {
        match e.status() {
            Some(status) if self.masks() => format!("{}: {} ({})", e.what(), status.reason, status.code),
            None if self.masks() => match e.kind() {
                ErrorKind::Net(e) => format!("{:?}", e.kind),
                ErrorKind::TimedOut(reason) => format!("gave up {reason}"),
                _ => "no answer that makes sense".to_owned(),
            },
            _ => redact::words(&e.to_string()),
        }
    }

    fn effect(&mut self, effect: &Effect) -> String {
        match effect {
            Effect::Connect { conn, may_reuse } => {
                format!("connect {}{}", conn.0, if *may_reuse { ", or one from the pool" } else { "" })
            }
            Effect::Write { conn, bytes } => {
                self.responses.expect(&bytes.0);
                format!("write {}: {}", conn.0, wire::request(&bytes.0, self.responses.rules()))
            }
            Effect::Close { conn } => format!("close {}", conn.0),
            Effect::Release { conn } => format!("release {}", conn.0),
            Effect::ReadFile { path } => format!("read file {path}"),
        }
    }
}

impl Scribe<Source> for Net {
    type Told = Told;

    fn told(&mut self, input: &source::Input<'_>) -> Result<Told, String> {
        use source::Input as I;
        Ok(match input {
            I::Start => Told::Start,
            I::Stop => Told::Stop,
            I::Net { conn, event } => return self.net(*conn, event),
            I::File { path, result } => Self::file(path, result),
            I::Decoded(decoded) => {
                let (request, received) = decoded.name();
                Told::Decoded { request, received }
            }
            I::Deadline => Told::Deadline,
        })
    }

    fn said(&mut self, output: &source::Output) -> String {
        use source::Output as O;
        match output {
            O::Effect(effect) => self.effect(effect),
            O::Decode(job) => format!("decode {} bytes", job.byte_len()),
            O::Delta(delta) => text::delta(delta),
            // It may quote bytes that have to be masked.
            O::Notice(Notice::Quarantined(bad)) if self.masks() => {
                format!("notice Quarantined({:?} @{})", bad.key, bad.resource_version)
            }
            O::Notice(notice) if self.masks() => redact::unquoted(&format!("notice {notice:?}")),
            O::Notice(notice) => format!("notice {notice:?}"),
            O::Synced => "synced".to_owned(),
            O::Stopped => "stopped".to_owned(),
        }
    }
}

impl<R: Answer> Scribe<Call<R>> for Net {
    type Told = Told;

    fn told(&mut self, input: &CallInput<'_>) -> Result<Told, String> {
        use CallInput as I;
        Ok(match input {
            I::Start => Told::Start,
            I::Abort => Told::Stop,
            I::Net { conn, event } => return self.net(*conn, event),
            I::File { path, result } => Self::file(path, result),
            I::Deadline => Told::Deadline,
        })
    }

    fn said(&mut self, output: &CallOutput<R>) -> String {
        use CallOutput as O;
        match output {
            O::Effect(effect) => self.effect(effect),
            O::Retrying { error, delay } => format!("again in {delay:?}: {}", self.error(error)),
            // What the answer is read into is the caller's; a replay has the bytes only.
            O::Done(Ok(_)) => "done: answered".to_owned(),
            O::Wrote(write) => format!("wrote {write}"),
            O::Done(Err(e)) => match e.kind() {
                ErrorKind::Api(_) | ErrorKind::Decode(_) => "done: answered".to_owned(),
                _ => format!("done: {}", self.error(e)),
            },
        }
    }
}

/// Of controllers.
#[derive(Debug)]
pub struct Objects {
    /// By source: what to mask, and how many objects the view had.
    sources: Vec<(Option<Rules>, usize)>,
}

impl Objects {
    pub(super) fn new(config: &Config<Object>, redaction: &Redaction) -> Self {
        Self { sources: config.sources.iter().map(|s| (redaction.of(&s.watch.resource), 0)).collect() }
    }

    fn delta(
        &mut self,
        source: controller::SourceId,
        delta: &Delta<Object>,
    ) -> Result<ControllerTold, String> {
        let mut unknown = (None, 0);
        let (rules, objects) = self.sources.get_mut(source.index()).unwrap_or(&mut unknown);
        let rules = rules.as_ref();
        let (mut expected, mut bytes) = (*objects, 0_usize);
        for change in &delta.changes {
            match change {
                Change::Added { .. } => expected += 1,
                Change::Updated { .. } => {}
                Change::Deleted { .. } => expected = expected.saturating_sub(1),
            }
            bytes = bytes.saturating_add(controller::subject(&change).json().len());
        }
        // Whoever began to listen late has a view that no changes explain.
        let is_whole = expected != delta.view.len();
        if is_whole {
            bytes = delta.view.values().fold(bytes, |sum, object| sum.saturating_add(object.json().len()));
        }
        // Before anything is copied.
        fits(bytes)?;
        *objects = delta.view.len();
        let json = |object: Object| match rules {
            Some(rules) => rules.object(object.json()),
            None => object.json().to_owned(),
        };
        let changes: Vec<_> = delta
            .changes
            .iter()
            .map(|change| match change {
                Change::Added { new, initial } => Changed::Added { object: json(new), initial },
                Change::Updated { new, relisted, .. } => Changed::Updated { object: json(new), relisted },
                Change::Deleted { old, final_unknown } => {
                    Changed::Deleted { object: json(old), final_unknown }
                }
            })
            .collect();
        Ok(ControllerTold::Delta {
            source,
            changes,
            whole: is_whole.then(|| delta.view.values().map(json).collect()),
            view: (delta.view.resource_version().to_owned(), delta.view.is_synced()),
            synced: delta.synced,
            resource_version: (*delta.resource_version).to_owned(),
            received: delta.received,
        })
    }
}

impl Objects {
    /// Each kind by name, so that a new one with words in it is seen here.
    fn noticed(&self, notice: &controller::Notice) -> controller::Notice {
        use controller::Notice as N;
        let mut notice = notice.clone();
        match &mut notice {
            N::Failed { error, .. } | N::GaveUp { error, .. } => *error = redact::words(error),
            N::MappingPanicked { source, error, .. } => {
                // It may quote what it looked at.
                let masks = self.sources.get(source.index()).is_none_or(|(rules, _)| rules.is_some());
                *error = if masks { "(masked)".to_owned() } else { redact::words(error) };
            }
            N::TimedOut { .. } | N::WaitingForSources(_) | N::NotShown { .. } => {}
        }
        notice
    }
}

impl Scribe<Controller<Object>> for Objects {
    type Told = ControllerTold;

    fn told(&mut self, input: &controller::Input<Object>) -> Result<ControllerTold, String> {
        use controller::Input as I;
        Ok(match input {
            I::Start => ControllerTold::Start,
            I::Delta { source, delta } => self.delta(*source, delta)?,
            I::Trigger { key, priority } => ControllerTold::Trigger { key: key.clone(), priority: *priority },
            I::Wrote { id, write } => ControllerTold::Wrote { id: *id, write: write.clone() },
            I::Read { id, reads } => ControllerTold::Read { id: *id, reads: *reads },
            I::Done { id, outcome, started } => {
                ControllerTold::Done { id: *id, outcome: told(outcome), started: *started }
            }
            I::Stop { grace } => ControllerTold::Stop { grace: *grace },
            I::Deadline => ControllerTold::Deadline,
        })
    }

    fn said(&mut self, output: &controller::Output<Object>) -> String {
        use controller::Output as O;
        match output {
            O::Run(run) => {
                let views: Vec<_> = run.views.iter().map(|v| v.len()).collect();
                format!(
                    "run {}: {}, attempt {}, priority {}, since {:?}, views of {views:?} objects",
                    run.id,
                    text::object(&run.object),
                    run.attempt,
                    run.priority.0,
                    run.since
                )
            }
            O::Abandon(id) => format!("abandon run {id}"),
            O::Ready => "ready".to_owned(),
            O::Stopped { unfinished } => format!("stopped, {unfinished} unfinished"),
            O::Notice(notice) => format!("notice {:?}", self.noticed(notice)),
        }
    }
}

fn told(outcome: &Outcome) -> Outcome {
    match outcome {
        Outcome::Error(e) => Outcome::Error(redact::words(e)),
        Outcome::Terminal(e) => Outcome::Terminal(redact::words(e)),
        Outcome::Panicked(e) => Outcome::Panicked(redact::words(e)),
        Outcome::AwaitChange | Outcome::Requeue(_) => outcome.clone(),
    }
}

/// Of machines whose words are values already.
#[derive(Debug)]
pub struct Words;

impl Scribe<Manager> for Words {
    type Told = ManagerTold;

    fn told(&mut self, input: &manager::Input) -> Result<ManagerTold, String> {
        Ok(ManagerTold(*input))
    }

    fn said(&mut self, output: &manager::Output) -> String {
        format!("{output:?}")
    }
}

/// What a manager was told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, serde::Deserialize)]
#[serde(transparent)]
pub struct ManagerTold(pub manager::Input);

impl Display for ManagerTold {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "{:?}", self.0)
    }
}
