//! A whole controller in one loop.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use rustls::ClientConfig;
use steersman_core::api::Raw;
use steersman_core::auth::Authenticator;
use steersman_core::client::{Call, CallInput, CallOutput, Endpoint};
use steersman_core::config::Config;
use steersman_core::controller::plan::{Answered, Plan, PlanOutput, PlanRun};
use steersman_core::controller::{self, Controller, Outcome, ReconcileId, SourceId};
use steersman_core::machine::{Machine, Outputs};
use steersman_core::object::{Meter, Object};
use steersman_core::source::{self, Source};
use steersman_core::store::Indexes;
use steersman_core::time::Time;
use steersman_core::tls::{self, TlsError};

use crate::Socketed;

/// Sources, a controller with a plan, and its calls, all on the thread that calls [`run_until`](Self::run_until).
pub struct BareLoop<P: Plan> {
    origin: Instant,
    config: Arc<Config>,
    tls: Arc<ClientConfig>,
    plan: Arc<P>,
    sources: Vec<Socketed<Source>>,
    controller: Controller<Object>,
    inputs: Vec<controller::Input<Object>>,
    runs: BTreeMap<ReconcileId, Reconciling<P>>,
}

/// A plan that waits for answers.
struct Reconciling<P> {
    run: PlanRun<P>,
    meter: Arc<Meter>,
    started: Time,
    calls: Vec<Socketed<Call<Raw>>>,
    answers: Vec<Option<Answered>>,
}

impl<P: Plan> BareLoop<P> {
    /// A loop for one controller.
    ///
    /// # Errors
    /// TLS settings that make no sense.
    pub fn new(config: Config, settings: controller::Config<Object>, plan: Arc<P>) -> Result<Self, TlsError> {
        let (config, tls) = (Arc::new(config.clone()), tls::client_config(&config)?);
        let endpoint = Arc::new(Endpoint::new(&config));
        let start = |(source, seed): (&controller::Source<Object>, _)| {
            let indexes = Indexes::of(source.indexes.iter().cloned()).expect("one index of a name");
            let options = source::Options { indexes, ..source::Options::default() };
            let auth = Authenticator::new(&config);
            let source = Source::new(&source.watch, options, Arc::clone(&endpoint), auth, seed);
            Socketed::new(&config, &tls, source, Time::ZERO, source::Input::Start)
        };
        let sources = settings.sources.iter().zip(1..).map(start).collect();
        Ok(Self {
            origin: Instant::now(),
            controller: Controller::new(settings, 7),
            inputs: vec![controller::Input::Start],
            runs: BTreeMap::new(),
            config,
            tls,
            plan,
            sources,
        })
    }

    /// Goes round until `done` or the limit; whether it was done.
    pub fn run_until(&mut self, limit: Duration, mut done: impl FnMut(&Controller<Object>) -> bool) -> bool {
        let begun = Instant::now();
        while begun.elapsed() < limit {
            if !self.round() {
                if done(&self.controller) {
                    return true;
                }
                // A real loop would wait for its sockets and the earliest deadline.
                thread::park_timeout(Duration::from_millis(1));
            }
        }
        false
    }

    /// Ends it in order: no more runs begin, the watches close. Go on with [`run_until`](Self::run_until) for what runs.
    pub fn stop(&mut self) {
        let now = self.now();
        self.sources.iter_mut().for_each(|source| source.give(now, source::Input::Stop));
        self.inputs.push(controller::Input::Stop { grace: None });
    }

    fn now(&self) -> Time {
        Time::from_nanos(u64::try_from(self.origin.elapsed().as_nanos()).unwrap_or(u64::MAX))
    }

    /// Looks at everything once; whether anything happened.
    fn round(&mut self) -> bool {
        let now = self.now();
        let mut busy = !self.inputs.is_empty();
        for (part, number) in self.sources.iter_mut().zip(0..) {
            let (told, happened) = part.look(now);
            busy |= happened;
            self.inputs.extend(told.into_iter().filter_map(|output| match output {
                source::Output::Delta(delta) => {
                    Some(controller::Input::Delta { source: SourceId(number), delta })
                }
                _ => None,
            }));
        }
        busy |= self.look_at_runs(now);
        if self.controller.is_due(now) {
            self.inputs.push(controller::Input::Deadline);
        }
        let mut out = Outputs::new();
        for input in std::mem::take(&mut self.inputs) {
            self.controller.handle(now, input, &mut out);
        }
        for output in out {
            match output {
                controller::Output::Run(mut run) => {
                    let (id, meter) = (run.id, run.meter());
                    let (run, next) = PlanRun::start(Arc::clone(&self.plan), run);
                    let reconciling =
                        Reconciling { run, meter, started: now, calls: Vec::new(), answers: Vec::new() };
                    self.go_on(now, id, reconciling, next);
                }
                controller::Output::Abandon(id) => {
                    if let Some(Reconciling { started, meter, .. }) = self.runs.remove(&id) {
                        let outcome = Outcome::given_up(true);
                        self.inputs.extend(controller::Input::ends_of(id, &meter, outcome, started));
                    }
                }
                _ => {}
            }
        }
        busy
    }

    fn look_at_runs(&mut self, now: Time) -> bool {
        let mut busy = false;
        for (id, mut reconciling) in std::mem::take(&mut self.runs) {
            for (call, answer) in reconciling.calls.iter_mut().zip(&mut reconciling.answers) {
                let (told, happened) = call.look(now);
                busy |= happened;
                for output in told {
                    match output {
                        CallOutput::Wrote(write) => self.inputs.push(controller::Input::Wrote { id, write }),
                        CallOutput::Done(result) => *answer = Some(result),
                        _ => {}
                    }
                }
            }
            if reconciling.answers.iter().all(Option::is_some) {
                let answers = reconciling.answers.drain(..).flatten().collect();
                let next = reconciling.run.answered(answers);
                self.go_on(now, id, reconciling, next);
            } else {
                self.runs.insert(id, reconciling);
            }
        }
        busy
    }

    fn go_on(&mut self, now: Time, id: ReconcileId, mut reconciling: Reconciling<P>, next: PlanOutput) {
        match next {
            PlanOutput::Finished(outcome) => {
                let Reconciling { started, meter, .. } = reconciling;
                self.inputs.extend(controller::Input::ends_of(id, &meter, outcome, started));
            }
            PlanOutput::Send(requests) => {
                let endpoint = Arc::new(Endpoint::new(&self.config));
                reconciling.answers = requests.iter().map(|_| None).collect();
                reconciling.calls = requests
                    .into_iter()
                    .map(|request| {
                        let auth = Authenticator::new(&self.config);
                        let call = Call::new(Arc::clone(&endpoint), auth, request, id.0);
                        Socketed::new(&self.config, &self.tls, call, now, CallInput::Start)
                    })
                    .collect();
                self.runs.insert(id, reconciling);
            }
        }
    }
}
