//! Recordings: what a machine was told and what it said, so that its every decision can be made again elsewhere.
//!
//! Machines are pure, so a recording of their inputs is enough. [`Recorded`] wraps a machine and looks on; a [`Recorder`]
//! (the program's: files, memory) takes what it writes down; [`replay`] gives the inputs to a machine of the same kind and
//! compares. Nothing secret gets in: see [`Redaction`].
//!
//! ```
//! use std::sync::{Arc, Mutex};
//! use steersman_core::machine::{Machine, Outputs};
//! use steersman_core::manager::{Config, Input, Manager};
//! use steersman_core::record::file::{Bound, Header, Segments, Write};
//! use steersman_core::record::replay::Replay;
//! use steersman_core::record::{Recorded, Recorder, Recording, Sink};
//! use steersman_core::time::Time;
//!
//! /// Keeps one recording in memory.
//! #[derive(Clone, Default)]
//! struct Memory(Arc<Mutex<Option<Segments>>>, Arc<Mutex<Vec<u8>>>);
//!
//! impl Recorder for Memory {
//!     fn open(&self, header: Header) -> Arc<dyn Sink> {
//!         *self.0.lock().unwrap() = Some(Segments::new(header, Bound::default()));
//!         Arc::new(self.clone())
//!     }
//! }
//!
//! impl Sink for Memory {
//!     fn record(&self, record: Vec<u8>) -> bool {
//!         let mut out = Outputs::new();
//!         let more = self.0.lock().unwrap().as_mut().unwrap().push(record, &mut out);
//!         for write in out {
//!             if let Write::Append(bytes) = write {
//!                 self.1.lock().unwrap().extend(bytes);
//!             }
//!         }
//!         more
//!     }
//! }
//!
//! let memory = Memory::default();
//! let mut manager = Recorded::manager(Manager::with_counts(1, 1, Config::default()), Some(&memory));
//! let mut out = Outputs::new();
//! manager.handle(Time::ZERO, Input::Start, &mut out);
//! manager.handle(Time::from_secs(1), Input::Stop, &mut out);
//!
//! let bytes = memory.1.lock().unwrap().clone();
//! let recording = Recording::read([&*bytes]).unwrap();
//! let mut replay = Replay::of(&recording).unwrap();
//! for step in recording.numbered() {
//!     let step = replay.step(step).unwrap();
//!     assert_eq!(step.difference(), None);
//! }
//! ```

pub mod file;
mod form;
mod mask;
mod redact;
pub mod replay;
mod scribe;
mod text;
mod wire;

#[cfg(test)]
mod tests;

pub use file::Recording;
pub use form::{
    CallMade, Changed, ControllerMade, ControllerTold, Data, ManagerMade, MappingForm, SourceForm,
    SourceMade, Told,
};
pub use redact::Redaction;
pub use scribe::{Recordable, Scribe};

use alloc::boxed::Box;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;
use core::ops::Deref;
use core::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use serde_json::Value;

use self::file::{Header, Kind, Record, Step};
use crate::api::Answer;
use crate::client::{Call, Driven, Effect, Happening};
use crate::controller::Controller;
use crate::machine::{Deadline, Machine, Outputs};
use crate::manager::Manager;
use crate::object::Object;
use crate::source::Source;
use crate::time::Time;

/// Where recordings go: the program's, for the core writes no file.
pub trait Recorder: Send + Sync {
    /// Begins the recording of one machine, or of all calls.
    fn open(&self, header: Header) -> Arc<dyn Sink>;

    /// What is masked.
    fn redaction(&self) -> Redaction {
        Redaction::default()
    }
}

/// Takes the records of one recording.
pub trait Sink: Send + Sync {
    /// Takes one record, a whole line; it must not wait. Whether it takes more: after `false` nothing more is recorded.
    fn record(&self, record: Vec<u8>) -> bool;
}

/// A machine, and who writes down what it is told and what it says. Without a [`Recorder`] it is the machine and one branch.
///
/// It stands where the machine would: it is a [`Machine`] and [`Driven`] if that is, and can be looked into.
pub struct Recorded<M: Recordable> {
    machine: M,
    tap: Option<Box<Tap<M>>>,
}

struct Tap<M: Recordable> {
    scribe: M::Scribe,
    pen: Arc<Pen>,
    call: Option<u64>,
}

/// A sink, and whether it has said that it takes no more.
struct Pen {
    sink: Arc<dyn Sink>,
    over: AtomicBool,
}

impl Pen {
    fn new(sink: Arc<dyn Sink>) -> Arc<Self> {
        Arc::new(Self { sink, over: AtomicBool::new(false) })
    }

    /// Asked before a record is made: making one costs.
    fn is_over(&self) -> bool {
        self.over.load(Ordering::Relaxed)
    }

    /// Whether more may follow.
    fn record(&self, record: Vec<u8>) -> bool {
        let more = self.sink.record(record);
        if !more {
            self.over.store(true, Ordering::Relaxed);
        }
        more
    }

    /// Tells why no more follows of this call, or at all.
    fn lose(&self, call: Option<u64>, why: String) {
        self.record(match call {
            Some(call) => file::line(&Record::<()>::Lost { call, why }),
            None => file::end(&why),
        });
    }
}

impl<M: Recordable> Recorded<M> {
    /// The machine, unrecorded.
    #[must_use]
    pub const fn not(machine: M) -> Self {
        Self { machine, tap: None }
    }

    /// The machine.
    #[must_use]
    pub fn into_inner(self) -> M {
        self.machine
    }

    fn opened(machine: M, scribe: M::Scribe, recorder: &dyn Recorder, header: Header) -> Self {
        Self {
            machine,
            tap: Some(Box::new(Tap { scribe, pen: Pen::new(recorder.open(header)), call: None })),
        }
    }
}

fn value(made: &impl serde::Serialize) -> Value {
    serde_json::to_value(made).unwrap_or_default()
}

impl Recorded<Source> {
    /// A source that has not started and was made with `seed`.
    #[must_use]
    pub fn source(mut source: Source, seed: u64, name: &str, recorder: Option<&dyn Recorder>) -> Self {
        let Some(recorder) = recorder else { return Self::not(source) };
        let redaction = recorder.redaction();
        let scribe = scribe::Net::of_source(&source, &redaction);
        if scribe.masks() {
            source.exchange_mut().refuse_gzip();
        }
        let made = SourceMade::new(&source, seed);
        Self::opened(source, scribe, recorder, Header::new(Kind::Source, name, redaction, value(&made)))
    }
}

impl Recorded<Controller<Object>> {
    /// A controller that has not started and was made with `seed`.
    #[must_use]
    pub fn controller(controller: Controller<Object>, seed: u64, recorder: Option<&dyn Recorder>) -> Self {
        let Some(recorder) = recorder else { return Self::not(controller) };
        let redaction = recorder.redaction();
        let scribe = scribe::Objects::new(controller.config(), &redaction);
        let made = ControllerMade::new(controller.config(), seed);
        let name = alloc::format!("controller {}", made.name);
        Self::opened(
            controller,
            scribe,
            recorder,
            Header::new(Kind::Controller, name, redaction, value(&made)),
        )
    }
}

impl Recorded<Manager> {
    /// A manager that has not started.
    #[must_use]
    pub fn manager(manager: Manager, recorder: Option<&dyn Recorder>) -> Self {
        let Some(recorder) = recorder else { return Self::not(manager) };
        let made = value(&ManagerMade::new(&manager));
        let header = Header::new(Kind::Manager, "manager", recorder.redaction(), made);
        Self::opened(manager, scribe::Words, recorder, header)
    }
}

/// Records the calls of one client. Clones write into the same recording.
#[derive(Clone)]
pub struct Calls(Arc<CallsInner>);

struct CallsInner {
    pen: Arc<Pen>,
    redaction: Redaction,
    next: AtomicUsize,
}

impl Calls {
    /// Begins a recording of calls.
    #[must_use]
    pub fn new(recorder: &dyn Recorder) -> Self {
        let redaction = recorder.redaction();
        let header = Header::new(Kind::Calls, "calls", redaction.clone(), Value::Null);
        let pen = Pen::new(recorder.open(header));
        Self(Arc::new(CallsInner { pen, redaction, next: AtomicUsize::new(0) }))
    }

    /// A call that has not started and was made with `seed`; recorded if there is a recording of calls.
    #[must_use]
    pub fn call<R: Answer>(this: Option<&Self>, mut call: Call<R>, seed: u64) -> Recorded<Call<R>> {
        let Some(Self(inner)) = this.filter(|this| !this.0.pen.is_over()) else { return Recorded::not(call) };
        let scribe = scribe::Net::of_call(&call, &inner.redaction);
        if scribe.masks() {
            call.exchange_mut().refuse_gzip();
        }
        let number = inner.next.fetch_add(1, Ordering::Relaxed) as u64;
        let body = call.request().body.as_ref().map_or(0, Vec::len);
        let made = file::fits(body).and_then(|()| {
            let made = value(&CallMade::new(&call, seed, &inner.redaction));
            let record = file::line(&Record::<()>::Made { call: number, made });
            file::fits(record.len()).map(|()| record)
        });
        let more = match made {
            Ok(record) => inner.pen.record(record),
            Err(why) => {
                inner.pen.lose(Some(number), why);
                false
            }
        };
        let pen = Arc::clone(&inner.pen);
        let tap = more.then(|| Box::new(Tap { scribe, pen, call: Some(number) }));
        Recorded { machine: call, tap }
    }
}

impl fmt::Debug for Calls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Calls").field("next", &self.0.next).finish_non_exhaustive()
    }
}

impl<M: Recordable> Machine for Recorded<M> {
    type Input<'a> = M::Input<'a>;
    type Output = M::Output;

    fn handle(&mut self, now: Time, input: M::Input<'_>, out: &mut Outputs<M::Output>) {
        self.tap.take_if(|tap| tap.pen.is_over());
        let Some(tap) = &mut self.tap else { return self.machine.handle(now, input, out) };
        let told = tap.scribe.told(&input);
        let before = out.len();
        self.machine.handle(now, input, out);
        let record = told.and_then(|told| {
            let record = file::line(&Record::Step(Step {
                at: now,
                call: tap.call,
                input: told,
                out: out.iter().skip(before).map(|output| tap.scribe.said(output)).collect(),
                next: text::deadline(self.machine.next_deadline()),
            }));
            file::fits(record.len()).map(|()| record)
        });
        let more = match record {
            Ok(record) => tap.pen.record(record),
            Err(why) => {
                tap.pen.lose(tap.call, why);
                false
            }
        };
        if !more {
            self.tap = None;
        }
    }

    fn next_deadline(&self) -> Option<Deadline> {
        self.machine.next_deadline()
    }
}

impl<M: Recordable + Driven> Driven for Recorded<M> {
    fn happened(happening: Happening<'_>) -> M::Input<'_> {
        M::happened(happening)
    }

    fn effect(output: M::Output) -> Result<Effect, M::Output> {
        M::effect(output)
    }
}

impl<M: Recordable> Deref for Recorded<M> {
    type Target = M;

    fn deref(&self) -> &M {
        &self.machine
    }
}

impl<M: Recordable + fmt::Debug> fmt::Debug for Recorded<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.machine.fmt(f)
    }
}
