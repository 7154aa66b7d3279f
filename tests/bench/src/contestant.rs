//! What every contestant does, whatever it is built with: reads its job, measures itself, says it in lines of JSON.
//!
//! The peers share this file and `measure.rs`, so that all are measured by the same code. A contestant in another language keeps
//! to this: arguments `list`, `watch` or `spike`, then pairs of a name and a value as in [`Job::from_args`]; for `list` one line as
//! [`Meter::first_state`] prints it; for `watch` a line `ready`, when every pod has been reconciled once, and one as
//! [`Reconciles::finish`] prints it; for `spike` the line of `list`, and one as `spike.rs` prints it for each line that it reads.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use crate::measure::{cpu, held};

/// The annotation with the number of the event that made this state; zero in a list.
pub(crate) const EVENT: &str = "bench/event";
/// The annotation with the time at which that event was sent, in nanoseconds since 1970.
pub(crate) const SENT: &str = "bench/sent";

/// How long a contestant is left alone before its memory is read, so that what it frees late counts as freed.
const SETTLE: Duration = Duration::from_secs(1);

/// What is listed and watched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Resource {
    Pods,
    ConfigMaps,
}

impl Resource {
    pub(crate) const ALL: [Self; 2] = [Self::ConfigMaps, Self::Pods];

    /// As in a URL.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Pods => "pods",
            Self::ConfigMaps => "configmaps",
        }
    }

    /// The one of this name.
    pub(crate) fn of(name: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|r| r.name() == name);
        found.ok_or_else(|| format!("{name:?} is not pods or configmaps"))
    }
}
/// It has come to rest when it needs less than this in that time: its other watches may be behind the one that counts.
const REST: Duration = Duration::from_millis(50);

/// What is to be done.
#[derive(Clone, Debug)]
pub(crate) struct Job {
    /// Take the events of a watch and reconcile, instead of a first state alone.
    pub watch: bool,
    /// Keep a first state up to date, and tell what is held when asked.
    pub spike: bool,
    /// Where the server is.
    pub kubeconfig: String,
    pub resource: Resource,
    /// Those of this namespace; empty for all.
    pub namespace: String,
    /// How many objects there are.
    pub objects: u64,
    /// How many events come after the first state.
    pub events: u64,
    /// The number of the last event that belongs to the first state: a server that keeps what is changed has it from those who
    /// were there before.
    pub before: u64,
    /// Pods a page; `None` for one response.
    pub page_size: Option<u32>,
    /// A streaming list instead.
    pub streaming: bool,
    /// Metadata alone.
    pub metadata: bool,
    /// How many controllers share the pods: the first eight digits of its uid, modulo
    /// this, say whose a pod is.
    pub controllers: u64,
    /// Each reconcile asks for another one after an hour.
    pub requeue: bool,
    /// Each reconcile decodes its object, if nobody did before.
    pub parse: bool,
    /// Which kind of contestant, if its program can be several.
    pub variant: String,
}

impl Job {
    /// From the arguments after the program's name.
    pub(crate) fn from_args(mut args: impl Iterator<Item = String>) -> Result<Self, String> {
        let work = args.next();
        if !matches!(work.as_deref(), Some("list" | "watch" | "spike")) {
            return Err(format!("list, watch or spike, not {work:?}"));
        }
        let mut pairs = BTreeMap::new();
        while let Some(name) = args.next() {
            let value = args.next().ok_or_else(|| format!("{name} has no value"))?;
            pairs.insert(name, value);
        }
        let text = |name: &str| pairs.get(name).cloned().ok_or_else(|| format!("{name} is missing"));
        let number = |name: &str| text(name)?.parse::<u64>().map_err(|_| format!("{name} is not a number"));
        let flag = |name: &str| text(name).map(|value| value == "true");
        Ok(Self {
            watch: work.as_deref() == Some("watch"),
            spike: work.as_deref() == Some("spike"),
            kubeconfig: text("--kubeconfig")?,
            resource: Resource::of(&text("--resource")?)?,
            namespace: text("--namespace")?,
            objects: number("--objects")?,
            events: number("--events")?,
            before: number("--before")?,
            page_size: u32::try_from(number("--page-size")?).ok().filter(|n| *n > 0),
            streaming: flag("--streaming")?,
            metadata: flag("--metadata")?,
            controllers: number("--controllers")?.max(1),
            requeue: flag("--requeue")?,
            parse: flag("--parse")?,
            variant: text("--variant")?,
        })
    }
}

/// By the clock that all processes of a machine share.
pub(crate) fn nanos_since_1970() -> u64 {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(now.as_nanos()).unwrap_or(u64::MAX)
}

/// Measures the way from the start.
pub(crate) struct Meter {
    began: Instant,
    /// The same by the clock of the machine, in nanoseconds since 1970.
    main: u64,
}

impl Meter {
    /// Now begins what is measured.
    pub(crate) fn start() -> Self {
        Self { began: Instant::now(), main: nanos_since_1970() }
    }

    /// The first state is there: times in seconds, memory in bytes.
    pub(crate) fn first_state(&self) {
        let (time, cpu) = (self.began.elapsed().as_secs_f64(), cpu().as_secs_f64());
        thread::park_timeout(SETTLE);
        let held = held();
        println!(
            r#"{{"main":{},"sync":{time:.4},"cpu":{cpu:.2},"resident":{},"peak":{},"threads":{}}}"#,
            self.main, held.resident, held.peak, held.threads
        );
    }
}

/// Counts reconciles and how late they are.
pub(crate) struct Reconciles {
    objects: u64,
    before: u64,
    last: u64,
    several: bool,
    first: AtomicU64,
    /// How late each one was, in nanoseconds.
    late: Mutex<Vec<u64>>,
    reached: Sender<Reached>,
}

/// A point in a contest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reached {
    /// Every object was reconciled once.
    First,
    /// The last event was reconciled.
    Last,
}

impl Reconciles {
    pub(crate) fn new(job: &Job) -> (Self, Receiver<Reached>) {
        let (reached, receiver) = mpsc::channel();
        let late = Mutex::new(Vec::with_capacity(usize::try_from(job.events).unwrap_or(0)));
        let this = Self {
            objects: job.objects,
            before: job.before,
            last: job.before + job.events,
            several: job.controllers > 1,
            first: AtomicU64::new(0),
            late,
            reached,
        };
        (this, receiver)
    }

    /// A reconcile of an object with these annotations begins.
    pub(crate) fn begin(&self, event: Option<&str>, sent: Option<&str>) {
        let number = |text: Option<&str>| text.and_then(|t| t.parse::<u64>().ok()).unwrap_or(0);
        let event = number(event);
        if event <= self.before {
            if self.first.fetch_add(1, Ordering::Relaxed) + 1 == self.objects {
                let _ = self.reached.send(Reached::First);
            }
            return;
        }
        let now = nanos_since_1970();
        self.late.lock().unwrap_or_else(PoisonError::into_inner).push(now.saturating_sub(number(sent)));
        if event == self.last {
            let _ = self.reached.send(Reached::Last);
        }
    }

    /// Waits for both points and tells what it cost until the first and from one to the other: times in seconds, memory in
    /// bytes. `more` are members that follow.
    pub(crate) fn finish(&self, reached: &Receiver<Reached>, meter: &Meter, more: impl FnOnce() -> String) {
        let _ = reached.recv();
        let (first, first_cpu) = (meter.began.elapsed().as_secs_f64(), cpu().as_secs_f64());
        thread::park_timeout(SETTLE);
        let before = cpu();
        println!("ready");
        let began = Instant::now();
        while reached.recv() == Ok(Reached::First) {}
        let time = began.elapsed().as_secs_f64();
        let mut used = cpu();
        thread::park_timeout(SETTLE);
        while self.several && cpu() - used > REST {
            used = cpu();
            thread::park_timeout(SETTLE);
        }
        let (cpu, held) = ((cpu() - before).as_secs_f64(), held());
        let mut late = self.late.lock().unwrap_or_else(PoisonError::into_inner).clone();
        // What a process had at hand before it rested is cold in the first of them.
        let mut later = late.get(late.len() / 10..).unwrap_or_default().to_vec();
        later.sort_unstable();
        late.sort_unstable();
        println!(
            concat!(
                r#"{{"main":{},"first":{:.4},"first_cpu":{:.2},"time":{:.4},"cpu":{:.2},"reconciles":{},"p50":{:.7},"p99":{:.7},"#,
                r#""later_p99":{:.7},"max":{:.7},"resident":{},"peak":{},"threads":{}{}}}"#
            ),
            meter.main,
            first,
            first_cpu,
            time,
            cpu,
            late.len(),
            at(&late, 0.5),
            at(&late, 0.99),
            at(&later, 0.99),
            at(&late, 1.0),
            held.resident,
            held.peak,
            held.threads,
            more()
        );
    }
}

/// The one of these, in order, below which this part of them is: in seconds.
fn at(nanos: &[u64], part: f64) -> f64 {
    let last = nanos.len().saturating_sub(1);
    nanos.get((last as f64 * part) as usize).map_or(0.0, |&nanos| nanos as f64 / 1e9)
}
