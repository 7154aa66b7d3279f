//! Makes the decisions of a recording again.

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt::{self, Write as _};

use serde::de::DeserializeOwned;
use serde_json::Value;

use super::file::{Kind, ReadError, Record, Recording, Step};
use super::form::{CallMade, ControllerMade, ControllerTold, ManagerMade, SourceMade, Told};
use super::scribe::{ManagerTold, Net, Objects, Recordable, Scribe, Words};
use super::{Redaction, text};
use crate::api::Raw;
use crate::client::Call;
use crate::controller::{Config, Controller};
use crate::limits;
use crate::machine::Outputs;
use crate::manager::Manager;
use crate::object::Object;
use crate::source::Source;
use crate::store::Snapshot;
use crate::time::Time;

mod tell;

/// Gives the inputs of a recording to a machine of the same kind, step by step.
///
/// The machine is made as the recorded one was, with placeholders for its credentials. To try another one (other settings, code
/// of yours), use [`Replay::source`] or [`Replay::controller`].
#[derive(Debug)]
pub struct Replay(Inner);

enum Inner {
    Source(Box<One<Source>>),
    Controller(Box<One<Controller<Object>>>),
    Manager(Box<One<Manager>>),
    Calls(Calls),
    /// Replays nothing.
    Reading(Kind),
}

impl fmt::Debug for Inner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Source(_) => "Source",
            Self::Controller(_) => "Controller",
            Self::Manager(_) => "Manager",
            Self::Calls(_) => "Calls",
            Self::Reading(_) => "Reading",
        })
    }
}

struct Calls {
    redaction: Redaction,
    open: BTreeMap<u64, One<Call<Raw>>>,
}

/// One machine under replay.
struct One<M: Replays> {
    machine: M,
    scribe: M::Scribe,
    memory: M::Memory,
    out: Outputs<M::Output>,
}

/// A machine that can be told again what it was told.
trait Replays: Recordable {
    /// What must be kept from one step to the next.
    type Memory: Default;

    fn tell(
        &mut self,
        memory: &mut Self::Memory,
        now: Time,
        told: &ToldOf<Self>,
        out: &mut Outputs<Self::Output>,
    ) -> Result<(), String>;

    /// Looks at an output that was put down.
    fn keep(_: &mut Self::Memory, _: Self::Output) {}
}

type ToldOf<M> = <<M as Recordable>::Scribe as Scribe<M>>::Told;

/// One record, and what came of it in the replay.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Replayed {
    /// Its number, from 0.
    pub number: u64,
    /// When it was, on the clock of the executor.
    pub at: Option<Time>,
    /// Which call.
    pub call: Option<u64>,
    /// What the machine was told, for people.
    pub told: String,
    /// What the machine said then, a line each; the last one tells what it waited for.
    pub recorded: Vec<String>,
    /// What it says now. `None`: this was not replayed, since it is no step, or the beginning of its call is gone.
    pub said: Option<Vec<String>>,
}

impl Replayed {
    /// The first line that differs: as it was recorded and as it is now. `None` on one side: there is no such line.
    #[must_use]
    pub fn difference(&self) -> Option<(Option<&str>, Option<&str>)> {
        let said = self.said.as_ref()?;
        (0..self.recorded.len().max(said.len()))
            .map(|n| (self.recorded.get(n).map(String::as_str), said.get(n).map(String::as_str)))
            .find(|(recorded, said)| recorded != said)
    }
}

/// What came of a whole replay.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Comparison {
    /// Steps that were replayed.
    pub steps: u64,
    /// Steps of calls whose beginning is gone.
    pub skipped: u64,
    /// Steps that differ.
    pub different: u64,
    /// The first of them.
    pub first: Option<Replayed>,
}

impl Replay {
    /// A replay with what the recording itself knows.
    ///
    /// # Errors
    /// A recording whose beginning is gone (calls are still replayed: each has its own); a controller with functions; a header
    /// that does not tell what the machine was made with.
    pub fn of(recording: &Recording) -> Result<Self, ReadError> {
        let made = &recording.header.made;
        match recording.header.kind {
            Kind::Source => Self::source(parse::<SourceMade>(made)?.source(), recording),
            Kind::Controller => {
                let controller = parse::<ControllerMade>(made)?
                    .controller()
                    .map_err(|e| ReadError::new(format!("{}: {e}", recording.header.name)))?;
                Self::controller_machine(controller, recording)
            }
            Kind::Manager => {
                whole(recording, Kind::Manager)?;
                let made: ManagerMade = parse(made)?;
                let parts = made.controllers.max(made.sources);
                if parts > limits::RECORDED_PARTS {
                    let most = limits::RECORDED_PARTS;
                    return Err(ReadError::new(format!("a manager of {parts} parts; {most} at most")));
                }
                let machine = made.manager();
                Ok(Self(Inner::Manager(Box::new(One::new(machine, Words)))))
            }
            Kind::Calls => {
                let redaction = recording.header.redaction.clone();
                Ok(Self(Inner::Calls(Calls { redaction, open: BTreeMap::new() })))
            }
        }
    }

    /// A replay that decides nothing: it only shows what was recorded.
    #[must_use]
    pub const fn reading(recording: &Recording) -> Self {
        Self(Inner::Reading(recording.header.kind))
    }

    /// A replay with a source of your own, such as one with other settings than the recorded one, or with the indexes that
    /// it had (they are functions, and decide nothing; only their panics are told):
    /// `serde_json::from_value::<SourceMade>(recording.header.made.clone())` gives those settings.
    ///
    /// # Errors
    /// A recording of something else, or one whose beginning is gone.
    pub fn source(source: Source, recording: &Recording) -> Result<Self, ReadError> {
        whole(recording, Kind::Source)?;
        let scribe = Net::of_source(&source, &recording.header.redaction);
        Ok(Self(Inner::Source(Box::new(One::new(source, scribe)))))
    }

    /// A replay with the mapping functions, predicates and settings of your own program: give it the configuration that the
    /// recorded controller had (of a builder: `builder.config().clone()`).
    ///
    /// # Errors
    /// A recording of something else, of a controller with other sources, or one whose beginning is gone.
    pub fn controller(config: Config<Object>, recording: &Recording) -> Result<Self, ReadError> {
        whole(recording, Kind::Controller)?;
        let made: ControllerMade = parse(&recording.header.made)?;
        let theirs: Vec<_> = made.sources.iter().map(|s| s.watch.to_string()).collect();
        let ours: Vec<_> = config.sources.iter().map(|s| s.watch.to_string()).collect();
        if ours != theirs {
            return Err(ReadError::new(format!(
                "the recorded controller watches [{}], the given one [{}]",
                theirs.join("; "),
                ours.join("; ")
            )));
        }
        Self::controller_machine(Controller::new(config, made.seed), recording)
    }

    fn controller_machine(machine: Controller<Object>, recording: &Recording) -> Result<Self, ReadError> {
        whole(recording, Kind::Controller)?;
        let scribe = Objects::new(machine.config(), &recording.header.redaction);
        Ok(Self(Inner::Controller(Box::new(One::new(machine, scribe)))))
    }

    /// Replays the next record, as [`Recording::numbered`] gives it.
    ///
    /// # Errors
    /// A record that cannot be read.
    pub fn step(&mut self, (number, json): (u64, &str)) -> Result<Replayed, ReadError> {
        let error = |e: &dyn fmt::Display| ReadError::new(format!("record {number}: {e}"));
        match &mut self.0 {
            Inner::Source(one) => one.replay(number, json),
            Inner::Controller(one) => one.replay(number, json),
            Inner::Manager(one) => one.replay(number, json),
            Inner::Calls(calls) => calls.replay(number, json),
            Inner::Reading(Kind::Source | Kind::Calls) => {
                read::<Told>(number, json).map(|(replayed, _)| replayed)
            }
            Inner::Reading(Kind::Controller) => {
                read::<ControllerTold>(number, json).map(|(replayed, _)| replayed)
            }
            Inner::Reading(Kind::Manager) => read::<ManagerTold>(number, json).map(|(replayed, _)| replayed),
        }
        .map_err(|e| error(&e))
    }

    /// Where the machine stands after the steps so far, for people: its status, and which versions of which objects it knows
    /// (a hundred at most). Of calls: those that are not done.
    #[must_use]
    pub fn state(&self) -> String {
        match &self.0 {
            Inner::Source(one) => {
                let mut text = format!("{:#?}\n", one.machine.status());
                view(&mut text, "objects", &one.machine.snapshot());
                text
            }
            Inner::Controller(one) => {
                let mut text = format!("{:#?}\n", one.machine.status());
                for (source, objects) in &one.memory {
                    view(&mut text, &format!("view of source {}", source.0), objects);
                }
                text
            }
            Inner::Manager(one) => format!("{:#?}", one.machine),
            Inner::Calls(calls) => {
                let open = calls.open.iter().map(|(n, one)| format!("call {n}: {:#?}", one.machine));
                open.collect::<Vec<_>>().join("\n")
            }
            Inner::Reading(_) => "nothing was replayed".to_string(),
        }
    }

    /// Replays all of it.
    ///
    /// # Errors
    /// A record that cannot be read.
    pub fn compare(mut self, recording: &Recording) -> Result<Comparison, ReadError> {
        let mut comparison = Comparison::default();
        for record in recording.numbered() {
            comparison.add(self.step(record)?);
        }
        Ok(comparison)
    }
}

impl Comparison {
    /// Counts one more record.
    pub fn add(&mut self, replayed: Replayed) {
        if replayed.said.is_none() {
            self.skipped += u64::from(replayed.at.is_some());
            return;
        }
        self.steps += 1;
        if replayed.difference().is_some() {
            self.different += 1;
            self.first.get_or_insert(replayed);
        }
    }
}

/// Objects of one view that are shown.
const SHOWN: usize = 100;

fn view(out: &mut String, what: &str, objects: &Snapshot<Object>) {
    let _ = writeln!(out, "{what}: {}", objects.len());
    for object in objects.values().take(SHOWN) {
        let _ = writeln!(out, "    {}", text::object(&object));
    }
    if let more @ 1.. = objects.len().saturating_sub(SHOWN) {
        let _ = writeln!(out, "    and {more} more");
    }
}

fn whole(recording: &Recording, kind: Kind) -> Result<(), ReadError> {
    let header = &recording.header;
    if header.kind != kind {
        return Err(ReadError::new(format!(
            "{}: it is a recording of {}, not {kind}",
            header.name, header.kind
        )));
    }
    if !recording.is_whole() {
        return Err(ReadError::new(format!(
            "{}: its beginning is gone (the first {} records, at the bound of its size), and a machine can be replayed only from \
             its beginning; it can still be read",
            header.name, header.first
        )));
    }
    Ok(())
}

fn parse<T: DeserializeOwned>(made: &Value) -> Result<T, ReadError> {
    T::deserialize(made)
        .map_err(|e| ReadError::new(format!("the header does not tell what the machine was made with: {e}")))
}

/// A record without a replay, and its step if it is one.
fn read<T: DeserializeOwned + fmt::Display>(
    number: u64,
    json: &str,
) -> Result<(Replayed, Option<Step<T>>), ReadError> {
    let record: Record<T> = serde_json::from_str(json).map_err(|e| ReadError::new(e.to_string()))?;
    let mut replayed =
        Replayed { number, at: None, call: None, told: String::new(), recorded: Vec::new(), said: None };
    match record {
        Record::Made { call, made } => {
            replayed.call = Some(call);
            replayed.told = format!("made: {}", made["what"].as_str().unwrap_or("a call"));
        }
        Record::Lost { call, why } => {
            replayed.call = Some(call);
            replayed.told = format!("not recorded from here on: {why}");
        }
        Record::End(why) => replayed.told = format!("end of the recording: {why}"),
        Record::Step(mut step) => {
            replayed.at = Some(step.at);
            replayed.call = step.call;
            replayed.told = step.input.to_string();
            replayed.recorded = core::mem::take(&mut step.out);
            replayed.recorded.push(waits(&step.next));
            return Ok((replayed, Some(step)));
        }
    }
    Ok((replayed, None))
}

fn waits(next: &str) -> String {
    format!("waits: {next}")
}

impl Calls {
    fn replay(&mut self, number: u64, json: &str) -> Result<Replayed, ReadError> {
        let Ok(Record::Made { call, made }) = serde_json::from_str::<Record<serde::de::IgnoredAny>>(json)
        else {
            let (replayed, step) = read::<Told>(number, json)?;
            let one = replayed.call.and_then(|n| self.open.get_mut(&n));
            let (Some(step), Some(one)) = (step, one) else {
                if let Some(call) = replayed.call {
                    self.open.remove(&call);
                }
                return Ok(replayed);
            };
            let replayed = one.step(replayed, &step)?;
            if one.machine.is_done() {
                replayed.call.and_then(|n| self.open.remove(&n));
            }
            return Ok(replayed);
        };
        let machine = parse::<CallMade>(&made)?.call();
        let scribe = Net::of_call(&machine, &self.redaction);
        self.open.insert(call, One::new(machine, scribe));
        read::<Told>(number, json).map(|(replayed, _)| replayed)
    }
}

impl<M: Replays> One<M> {
    fn new(machine: M, scribe: M::Scribe) -> Self {
        Self { machine, scribe, memory: M::Memory::default(), out: Outputs::new() }
    }

    fn replay(&mut self, number: u64, json: &str) -> Result<Replayed, ReadError> {
        match read(number, json)? {
            (replayed, Some(step)) => self.step(replayed, &step),
            (replayed, None) => Ok(replayed),
        }
    }

    fn step(&mut self, mut replayed: Replayed, step: &Step<ToldOf<M>>) -> Result<Replayed, ReadError> {
        let Self { machine, scribe, memory, out } = self;
        machine.tell(memory, step.at, &step.input, out).map_err(ReadError::new)?;
        let mut said: Vec<_> = out.iter().map(|output| scribe.said(output)).collect();
        out.drain().for_each(|output| M::keep(memory, output));
        said.push(waits(&text::deadline(machine.next_deadline())));
        replayed.said = Some(said);
        Ok(replayed)
    }
}
