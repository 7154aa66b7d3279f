//! One simulated process: a manager, its watches and controllers, its reconciles and their calls. It is driven as the
//! executors drive theirs, except that all of it happens on one thread.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use steersman_core::api::Raw;
use steersman_core::client::{Call, CallOutput, Endpoint, Pool};
use steersman_core::config::{Cluster, Config, Scheme};
use steersman_core::controller::{self, Abandoned, Controller, Outcome, Run};
use steersman_core::manager::{self, ControllerSpec, Manager, WatchId, WatchPlan};
use steersman_core::object::{Key, Meter, Object};
use steersman_core::queue::Priority;
use steersman_core::record::{Calls, Recorded, Recorder};
use steersman_core::rng::Rng;
use steersman_core::source::{self, Options, Source};
use steersman_core::time::{Time, UnixMillis};

use crate::base::{Base, Event, JobId, PartId, Who};
use crate::desk::Desk;
use crate::drive::{Driving, Wire, local};
use crate::faults::Moment;
use crate::job::{Ask, Form, Job, News, Token};
use crate::net::LinkId;
use crate::replica::Replica;
use crate::trace::{Kind, Lane};

/// How a process is described: called at each start.
pub(crate) type Program = Arc<dyn Fn(Replica) -> Replica + Send + Sync>;

/// A controller thread takes so long at most before it looks into its inbox, in nanoseconds.
pub(crate) const NOTICE: u64 = 20_000;

/// After so long a server's kernel finds that a client's machine is gone (Go: keepalive every 15 s, nine times).
const SERVER_KEEPALIVE: std::time::Duration = std::time::Duration::from_secs(150);

/// What is going to happen to a process at points of its life.
#[derive(Debug, Default)]
pub(crate) struct Wounds {
    pub(crate) effects: u64,
    pub(crate) writes: u64,
    /// For each write that left, how many commits there were.
    pub(crate) sent: Vec<u64>,
    /// Where, the number of the fault, and whether it kills.
    pub(crate) waiting: Vec<(Moment, usize, bool)>,
    /// Those that have come.
    pub(crate) hit: Vec<usize>,
    fatal: bool,
}

impl Wounds {
    /// Takes the faults that wait for this moment.
    pub(crate) fn due(&mut self, moment: Moment) -> Vec<usize> {
        self.waiting.extract_if(.., |(m, ..)| *m == moment).map(|(_, fault, _)| fault).collect()
    }

    /// This moment has come. Whether it is the last one.
    pub(crate) fn at(&mut self, moment: Moment) -> bool {
        while let Some(place) = self.waiting.iter().position(|(m, ..)| *m == moment) {
            let (_, fault, kills) = self.waiting.remove(place);
            self.hit.push(fault);
            self.fatal |= kills;
        }
        self.fatal
    }

    pub(crate) fn fatal(&self) -> bool {
        self.fatal
    }

    pub(crate) fn survived(&mut self) {
        self.fatal = false;
    }
}

/// See the module.
pub(crate) struct Process {
    pub(crate) index: usize,
    program: Program,
    /// How often it was started.
    pub(crate) lives: u64,
    pub(crate) life: Option<Box<Life>>,
    /// How long it stays down after it has ended in order.
    pub(crate) down: Option<std::time::Duration>,
    /// It stands still until then.
    pub(crate) paused: Option<Time>,
    /// Its wall clock is off by so many milliseconds.
    pub(crate) skew: i64,
    pub(crate) wounds: Wounds,
    rng: Rng,
    /// Settings of watches that a whole run prescribes.
    pub(crate) first: Option<steersman_core::watcher::FirstState>,
}

/// All that a process loses when it dies.
pub(crate) struct Life {
    pub(crate) who: Who,
    pub(crate) born: Time,
    pub(crate) endpoint: Arc<Endpoint>,
    pub(crate) plan: WatchPlan,
    pub(crate) manager: Recorded<Manager>,
    pub(crate) manager_wake: Option<Time>,
    pub(crate) options: Options,
    pub(crate) sources: Vec<Option<Driving<Recorded<Source>>>>,
    pub(crate) controllers: Vec<Ctl>,
    pub(crate) calls: BTreeMap<u64, Calling>,
    pub(crate) next_call: u64,
    pub(crate) jobs: BTreeMap<JobId, Working>,
    pub(crate) pool: Pool<LinkId>,
    pub(crate) desk: Arc<Desk>,
    pub(crate) rng: Rng,
    pub(crate) recorder: Option<Arc<dyn Recorder>>,
    pub(crate) recorded_calls: Option<Calls>,
    pub(crate) todo: VecDeque<Work>,
    /// It has ended in order.
    pub(crate) exited: bool,
}

/// A controller and what hangs on it.
pub(crate) struct Ctl {
    /// Before it starts, its settings wait here.
    pub(crate) waiting: Option<controller::Config<Object>>,
    pub(crate) machine: Option<Recorded<Controller<Object>>>,
    pub(crate) form: Box<dyn Form>,
    pub(crate) inbox: VecDeque<controller::Input<Object>>,
    pub(crate) noticed: bool,
    pub(crate) wake: Option<Time>,
    pub(crate) running: BTreeMap<controller::ReconcileId, Key>,
}

pub(crate) struct Calling {
    pub(crate) driving: Driving<Recorded<Call<Raw>>>,
    pub(crate) job: JobId,
    pub(crate) token: Token,
}

pub(crate) struct Working {
    pub(crate) job: Box<dyn Job>,
    /// What it reads of its objects.
    pub(crate) meter: Arc<Meter>,
    pub(crate) abandoned: Abandoned,
    pub(crate) started: Time,
    /// Calls by token.
    pub(crate) calls: BTreeMap<Token, u64>,
    pub(crate) asleep: BTreeSet<Token>,
}

/// Work that came of other work.
pub(crate) enum Work {
    Manager(manager::Input),
    Source(WatchId, Vec<source::Output>),
    Controller(u32, controller::Input<Object>),
    Start(u32, Run<Object>),
    Job(JobId, News),
    Asks(JobId, Vec<Ask>, Option<Outcome>),
    Call(u64, Vec<CallOutput<Raw>>),
    GiveUp(JobId),
    StartSource(WatchId),
    StopSource(WatchId),
}

/// Who the server is.
pub(crate) fn config() -> Config {
    Config::new(Cluster { scheme: Scheme::Http, host: "kube".into(), port: 80, base_path: String::new() })
}

impl Process {
    pub(crate) fn new(index: usize, program: Program, rng: Rng) -> Self {
        Self {
            index,
            program,
            lives: 0,
            life: None,
            down: None,
            paused: None,
            skew: 0,
            wounds: Wounds::default(),
            rng,
            first: None,
        }
    }

    /// Begins a life.
    pub(crate) fn start(&mut self, base: &mut Base) {
        if self.life.is_some() {
            return;
        }
        let desk = Desk::new(config());
        let program = Arc::clone(&self.program);
        let replica = program(Replica::new(self.index, self.lives, Arc::clone(&desk)));
        self.lives += 1;
        base.say(Lane::Replica(self.index), Kind::Starts, format_args!("starts, life {}", self.lives));
        let specs: Vec<_> = replica.controllers.iter().map(|(c, _)| ControllerSpec::from(c)).collect();
        let plan = match WatchPlan::build(&specs) {
            Ok(plan) => plan,
            Err(e) => {
                base.eyes.violated(base.now, "program", format!("replica {}: {e}", self.index));
                return;
            }
        };
        let mut options = replica.sources;
        if let Some(first) = self.first {
            options.watcher.first = first;
        }
        // Handing pieces to other cores makes no sense where there are none.
        options.decode_job = None;
        let who = Who { process: self.index, life: self.lives };
        base.eyes.born(who, replica.controllers.iter().map(|(c, _)| c.clone()).collect(), &plan);
        let life = Life {
            who,
            born: base.now,
            endpoint: Arc::new(
                Endpoint::new(&desk.config).with_user_agent(format!("replica-{}", self.index)),
            ),
            manager: Recorded::manager(Manager::new(&plan, replica.manager), replica.recorder.as_deref()),
            manager_wake: None,
            options,
            sources: plan.sources.iter().map(|_| None).collect(),
            controllers: replica
                .controllers
                .into_iter()
                .map(|(config, form)| Ctl {
                    waiting: Some(config),
                    machine: None,
                    form,
                    inbox: VecDeque::new(),
                    noticed: false,
                    wake: None,
                    running: BTreeMap::new(),
                })
                .collect(),
            plan,
            calls: BTreeMap::new(),
            next_call: 0,
            jobs: BTreeMap::new(),
            pool: Pool::default(),
            desk,
            rng: self.rng.fork(),
            recorded_calls: replica.recorder.as_deref().map(Calls::new),
            recorder: replica.recorder,
            todo: VecDeque::new(),
            exited: false,
        };
        self.life = Some(Box::new(life));
        self.wounds.at(Moment::Start(self.lives));
        self.with(base, |life, _, _| life.todo.push_back(Work::Manager(manager::Input::Start)));
    }

    /// Ends a life at once. `silent`: the machine is gone as well, so nobody closes its connections.
    pub(crate) fn kill(&mut self, base: &mut Base, silent: bool) {
        let Some(life) = self.life.take() else { return };
        base.say(Lane::Replica(self.index), Kind::Dies, format_args!("dies"));
        life.desk.over();
        drop(life);
        let mine: Vec<LinkId> = base
            .net
            .links
            .iter()
            .filter(|(_, l)| l.who.process == self.index && l.client)
            .map(|(id, _)| *id)
            .collect();
        for id in mine {
            if silent {
                if let Some(link) = base.net.links.get_mut(&id) {
                    link.silent = true;
                    link.client = false;
                }
                base.net.tidy(id);
                base.at(base.now + SERVER_KEEPALIVE, Event::Forget(id));
            } else {
                base.close_client(id);
            }
        }
        self.wounds.survived();
    }

    /// Ends it in order.
    pub(crate) fn stop(&mut self, base: &mut Base) {
        self.with(base, |life, _, _| life.todo.push_back(Work::Manager(manager::Input::Stop)));
    }

    pub(crate) fn wall(&self, base: &Base) -> UnixMillis {
        UnixMillis(base.wall().0.saturating_add(self.skew))
    }

    /// Reconciles everything it knows once more.
    pub(crate) fn trigger(&mut self, base: &mut Base) {
        self.with(base, |life, _, _| {
            for number in 0..life.controllers.len() as u32 {
                let Some(primary) = life.primary(number) else { continue };
                let keys: Vec<Key> = primary.iter().map(|(key, _)| key.clone()).collect();
                let input = |key| controller::Input::Trigger { key, priority: Priority::default() };
                life.todo.extend(keys.into_iter().map(|key| Work::Controller(number, input(key))));
            }
        });
    }

    /// Does something with its life, and all that follows from it.
    fn with(&mut self, base: &mut Base, first: impl FnOnce(&mut Life, &mut Base, &mut Wounds)) {
        let wall = self.wall(base);
        let Some(life) = &mut self.life else { return };
        life.desk.set_time(local(base.now, life.born), wall);
        first(life, base, &mut self.wounds);
        while !self.wounds.fatal()
            && let Some(work) = life.todo.pop_front()
        {
            life.work(work, base, &mut self.wounds);
        }
    }

    /// A part may have a deadline.
    pub(crate) fn wake(&mut self, base: &mut Base, part: PartId) {
        self.with(base, |life, base, wounds| life.wake(part, base, wounds));
    }

    /// A controller looks into its inbox.
    pub(crate) fn look(&mut self, base: &mut Base, number: u32) {
        self.with(base, |life, base, _| life.look(number, base));
    }

    /// A reconcile has slept.
    pub(crate) fn slept(&mut self, base: &mut Base, job: JobId, token: Token) {
        self.with(base, |life, _, _| life.todo.push_back(Work::Job(job, News::Slept(token))));
    }

    /// Something comes over a connection.
    pub(crate) fn wire(&mut self, base: &mut Base, link: LinkId, wire: Wire) {
        self.with(base, |life, base, wounds| life.wire(link, wire, base, wounds));
    }
}
