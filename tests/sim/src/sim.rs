//! What is simulated, in words, and what comes of it.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use steersman_apiserver::machine::Options;
use steersman_core::api::{Raw, Request};
use steersman_core::time::Time;
use steersman_core::watcher::FirstState;

use crate::cluster::Cluster;
use crate::draw::{Shape, draw};
use crate::end::EndState;
use crate::failure::Failure;
use crate::faults::Fault;
use crate::judge::Case;
use crate::oracle::{OnlyWrites, Violation};
use crate::process::Program;
use crate::replay::Replay;
use crate::replica::Replica;
use crate::run;
use crate::trace::Trace;
use crate::world::{ChangeFn, CheckFn};

/// A description of a cluster, of the programs that run against it, of what is done to it, and of what must come of that.
/// It can be run from any seed, any number of times.
///
/// A run has two phases. First faults happen, while the cluster is changed as described, and what must always hold is
/// looked at. Then all faults end, and within a bound of (virtual) time the cluster must become what it has to be, and
/// stay so.
///
/// ```
/// use std::sync::Arc;
/// use std::time::Duration;
/// use steersman_core::api::kinds::{ConfigMap, Secret};
/// use steersman_core::object::ObjectMeta;
/// use steersman_mirror::{Mirror, plan};
/// use steersman_sim::Sim;
///
/// let sim = Sim::new()
///     .replica(|m| m.controller(plan::controller(None).run(Arc::new(Mirror))))
///     .given(|cluster| {
///         let metadata = ObjectMeta::named("default", "a").label("mirror", "true");
///         cluster.put(&ConfigMap { metadata, ..ConfigMap::default() });
///     })
///     .converges_to(|cluster| match cluster.get::<Secret>("default", "a") {
///         Some(_) => Ok(()),
///         None => Err("there is no mirror".into()),
///     });
/// sim.check(0..3);
/// ```
#[derive(Clone)]
pub struct Sim {
    pub(crate) programs: Vec<Program>,
    pub(crate) server: Options,
    pub(crate) followers: Vec<(Duration, Duration)>,
    pub(crate) given: Vec<ChangeFn>,
    pub(crate) changes: Vec<(Duration, ChangeFn)>,
    pub(crate) converges: Vec<CheckFn>,
    pub(crate) always: Vec<CheckFn>,
    pub(crate) only_writes: Option<OnlyWrites>,
    pub(crate) ignoring: Arc<dyn Fn(&mut Value) + Send + Sync>,
    pub(crate) window: Duration,
    pub(crate) within: Duration,
    pub(crate) stable: Duration,
    pub(crate) quiet: Quiet,
    pub(crate) most_faults: u64,
    pub(crate) first: Option<FirstState>,
    pub(crate) shrink_runs: u64,
    /// Whether reports hold end states, which take time to make.
    pub(crate) wants_end: bool,
}

/// What a process may do while nothing changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quiet {
    /// Runs a minute.
    pub runs: u64,
    /// Requests a minute that its reconciles make.
    pub requests: u64,
    /// Requests a minute, each of its watches makes. Watches live for five minutes and more.
    pub watch_requests: u64,
}

impl Default for Quiet {
    fn default() -> Self {
        Self { runs: 600, requests: 600, watch_requests: 30 }
    }
}

impl Default for Sim {
    fn default() -> Self {
        Self::new()
    }
}

impl Sim {
    /// An empty cluster, and no program.
    #[must_use]
    pub fn new() -> Self {
        Self {
            programs: Vec::new(),
            server: Options { open: true, ..Options::default() },
            followers: Vec::new(),
            given: Vec::new(),
            changes: Vec::new(),
            converges: Vec::new(),
            always: Vec::new(),
            only_writes: None,
            ignoring: Arc::new(|_| {}),
            window: Duration::from_secs(60),
            within: Duration::from_secs(900),
            stable: Duration::from_secs(120),
            quiet: Quiet::default(),
            most_faults: 12,
            first: None,
            shrink_runs: 300,
            wants_end: false,
        }
    }

    /// A process. `program` is called at each of its starts, since a process that died remembers nothing: what it makes
    /// must not hang on anything that lives longer.
    #[must_use]
    pub fn replica(mut self, program: impl Fn(Replica) -> Replica + Send + Sync + 'static) -> Self {
        self.programs.push(Arc::new(program));
        self
    }

    /// Several processes of the same program.
    #[must_use]
    pub fn replicas(
        mut self,
        n: usize,
        program: impl Fn(Replica) -> Replica + Send + Sync + 'static,
    ) -> Self {
        let program: Program = Arc::new(program);
        self.programs.extend((0..n).map(|_| Arc::clone(&program)));
        self
    }

    /// How the API server behaves, and which resources it serves beside the built-in ones. Requests need no credentials,
    /// whatever is said here.
    #[must_use]
    pub fn server(mut self, options: Options) -> Self {
        self.server = Options { open: true, ..options };
        self
    }

    /// One more API server behind the same address, whose cache hears of each commit after a time between these. Lists
    /// that may be old, and watches, are answered from it; all else is answered from the truth, as in a real cluster.
    #[must_use]
    pub fn follower(mut self, lag: Range<Duration>) -> Self {
        self.followers.push((lag.start, lag.end));
        self
    }

    /// What is in the cluster before anything starts.
    #[must_use]
    pub fn given(mut self, make: impl Fn(&mut Cluster<'_>) + Send + Sync + 'static) -> Self {
        self.given.push(Arc::new(make));
        self
    }

    /// What somebody does to the cluster at a time; in the first phase, however late it is.
    #[must_use]
    pub fn change(mut self, at: Duration, change: impl Fn(&mut Cluster<'_>) + Send + Sync + 'static) -> Self {
        self.changes.push((at, Arc::new(change)));
        self
    }

    /// What must come of it: looked at in the second phase, until it holds and stays.
    #[must_use]
    pub fn converges_to(
        mut self,
        check: impl Fn(&Cluster<'_>) -> Result<(), String> + Send + Sync + 'static,
    ) -> Self {
        self.converges.push(Arc::new(check));
        self
    }

    /// What must hold after each single write, in both phases.
    #[must_use]
    pub fn always(
        mut self,
        check: impl Fn(&Cluster<'_>) -> Result<(), String> + Send + Sync + 'static,
    ) -> Self {
        self.always.push(Arc::new(check));
        self
    }

    /// The requests that change something and that the programs may make.
    #[must_use]
    pub fn only_writes(mut self, may: impl Fn(&Request<Raw>) -> bool + Send + Sync + 'static) -> Self {
        self.only_writes = Some(Arc::new(may));
        self
    }

    /// What end states need not have in common: takes it out of an object.
    #[must_use]
    pub fn ignoring(mut self, strip: impl Fn(&mut Value) + Send + Sync + 'static) -> Self {
        self.ignoring = Arc::new(strip);
        self
    }

    /// How long faults happen: 60 s unless said otherwise.
    #[must_use]
    pub fn faults_for(mut self, window: Duration) -> Self {
        self.window = window;
        self
    }

    /// Most faults that are drawn from a seed: 12 unless said otherwise.
    #[must_use]
    pub fn most_faults(mut self, n: u64) -> Self {
        self.most_faults = n.max(1);
        self
    }

    /// How long after the last fault all must be well: 15 min unless said otherwise. A key that failed for the whole of
    /// the first phase pauses for as long again.
    #[must_use]
    pub fn within(mut self, bound: Duration) -> Self {
        self.within = bound;
        self
    }

    /// How long it must stay so, without a single write: 2 min unless said otherwise.
    #[must_use]
    pub fn stable_for(mut self, time: Duration) -> Self {
        self.stable = time;
        self
    }

    /// What processes may do in that time.
    #[must_use]
    pub fn quiet(mut self, quiet: Quiet) -> Self {
        self.quiet = quiet;
        self
    }

    /// How fresh the first state of every watch must be, whatever the programs say.
    #[must_use]
    pub fn first_state(mut self, first: FirstState) -> Self {
        self.first = Some(first);
        self
    }

    /// How many more runs may be made of one that fails, to find the smallest that fails in the same way: 300 unless said
    /// otherwise. With 0 it is shown as it is.
    #[must_use]
    pub fn shrink_runs(mut self, n: u64) -> Self {
        self.shrink_runs = n;
        self
    }

    /// What there is to disturb.
    #[must_use]
    pub fn shape(&self) -> Shape {
        Shape {
            replicas: self.programs.len(),
            servers: 1 + self.followers.len(),
            window: self.window,
            most: self.most_faults,
        }
    }

    /// The faults that [`run`](Self::run) draws from this seed.
    #[must_use]
    pub fn faults(&self, seed: u64) -> Vec<Fault> {
        draw(seed, &self.shape())
    }

    /// One run with the faults of its seed.
    ///
    /// # Errors
    /// What was violated, and how to see it again.
    pub fn run(&self, seed: u64) -> Result<Report, Box<Failure>> {
        self.run_with(seed, &self.faults(seed))
    }

    /// One run with these faults and no others. The seed still decides all else: latencies, the order of what happens at
    /// the same time, jitter.
    ///
    /// # Errors
    /// What was violated, and how to see it again.
    pub fn run_with(&self, seed: u64, faults: &[Fault]) -> Result<Report, Box<Failure>> {
        self.judge(Case { seed, faults, end: None, adversary: None })
    }

    /// One run with a trace of everything that happens, whatever comes of it.
    #[must_use]
    pub fn traced(&self, seed: u64, faults: &[Fault]) -> Report {
        run::run(self, seed, faults, true)
    }

    /// Runs every seed of a range with the faults of each. With `STEERSMAN_SIM_SEED` in the environment only that one, and
    /// with `STEERSMAN_SIM_FAULTS` only with these faults, a JSON list. What a [`Failure`] gives as its command sets both.
    ///
    /// # Panics
    /// With the first [`Failure`]; if the environment makes no sense.
    pub fn check(&self, seeds: Range<u64>) {
        let replay = Replay::of_environment();
        let wanted = replay.seed_of_range();
        let range = if wanted.is_some() { 0..0 } else { seeds };
        for seed in wanted.into_iter().chain(range) {
            if let Err(failure) = self.run(seed) {
                panic!("{failure}");
            }
        }
    }
}

impl fmt::Debug for Sim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sim").field("shape", &self.shape()).finish_non_exhaustive()
    }
}

/// What came of a run.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// The seed.
    pub seed: u64,
    /// What was violated, if anything.
    pub violation: Option<Violation>,
    /// A number that two runs have in common only if the same happened in both.
    pub fingerprint: u64,
    /// How many events there were.
    pub steps: u64,
    /// Virtual time at the end.
    pub ended: Time,
    /// When all was well for good; `None` if it never was.
    pub converged: Option<Time>,
    /// Versions that were made after the beginning.
    pub commits: u64,
    /// Requests that reached a server.
    pub requests: u64,
    /// Reconciles that began.
    pub runs: u64,
    /// Requests of each process that change something, as they were asked for.
    pub writes: Vec<u64>,
    /// For each such request that a process put on the wire, repetitions included, how many commits had been made: the
    /// place in the list is what [`Moment`](crate::Moment)s count, less one.
    pub sent: Vec<Vec<u64>>,
    /// All that there is at the end.
    pub end: EndState,
    /// Everything that happened; empty if it was not asked for.
    pub trace: Trace,
}

impl Report {
    /// How many requests that change something all processes put on the wire.
    #[must_use]
    pub fn sent_in_all(&self) -> u64 {
        self.sent.iter().map(|s| s.len() as u64).sum()
    }
}
