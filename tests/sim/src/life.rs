//! What a process does while it lives: every output of a machine becomes work, until there is none.

use std::collections::{BTreeMap, BTreeSet};
use std::mem;
use std::sync::Arc;

use steersman_core::api::Raw;
use steersman_core::auth::Authenticator;
use steersman_core::client::{Call, CallInput, CallOutput};
use steersman_core::controller::{self, Abandoned, Controller, Outcome, Run};
use steersman_core::machine::{Machine, Outputs};
use steersman_core::manager::{self, ControllerId, WatchId};
use steersman_core::object::Object;
use steersman_core::record::{Calls, Recorded};
use steersman_core::source::{self, Source};
use steersman_core::store::Snapshot;

use crate::base::{Base, Event, JobId, PartId};
use crate::drive::{Around, Driving, Wire, local, wake_at};
use crate::job::{Ask, News};
use crate::net::LinkId;
use crate::process::{Calling, Life, NOTICE, Work, Working, Wounds};
use crate::trace::{Kind, Lane};

impl Life {
    fn lane(&self) -> Lane {
        Lane::Replica(self.who.process)
    }

    fn around<'a>(&'a mut self, base: &'a mut Base, wounds: &'a mut Wounds) -> Around<'a> {
        Around { base, who: self.who, born: self.born, pool: &mut self.pool, wounds }
    }

    /// What the primary source of a controller knows.
    pub(crate) fn primary(&self, number: u32) -> Option<Snapshot<Object>> {
        let of = |w: &&manager::PlannedSource| {
            w.subscribers.contains(&(ControllerId(number), controller::SourceId::PRIMARY))
        };
        let place = self.plan.sources.iter().position(|w| of(&w))?;
        Some(self.sources[place].as_ref()?.machine.snapshot())
    }

    pub(crate) fn work(&mut self, work: Work, base: &mut Base, wounds: &mut Wounds) {
        match work {
            Work::Manager(input) => self.manager(input, base),
            Work::Source(id, told) => {
                told.into_iter().for_each(|output| self.source_told(id, output, base, wounds))
            }
            Work::Controller(number, input) => self.post(number, input, base),
            Work::Start(number, run) => self.start_run(number, run, base),
            Work::Job(id, news) => self.job(id, news),
            Work::Asks(id, asks, outcome) => self.asked(id, asks, outcome, base, wounds),
            Work::Call(id, told) => self.call_told(id, told, base),
            Work::GiveUp(id) => self.give_up(id),
            Work::StartSource(id) => self.start_source(id, base, wounds),
            Work::StopSource(id) => self.give_source(id, source::Input::Stop, base, wounds),
        }
    }

    fn manager(&mut self, input: manager::Input, base: &mut Base) {
        let now = local(base.now, self.born);
        let mut out = Outputs::new();
        self.manager.handle(now, input, &mut out);
        for output in out.drain() {
            match output {
                manager::Output::StartController(ControllerId(number)) => {
                    let seed = self.rng.next_u64();
                    let ctl = &mut self.controllers[number as usize];
                    if let Some(config) = ctl.waiting.take() {
                        let machine = Controller::new(config, seed);
                        ctl.machine = Some(Recorded::controller(machine, seed, self.recorder.as_deref()));
                        self.todo.push_back(Work::Controller(number, controller::Input::Start));
                    }
                }
                manager::Output::StartSource(id) => self.todo.push_back(Work::StartSource(id)),
                manager::Output::StopController(ControllerId(number), grace) => {
                    self.todo.push_back(Work::Controller(number, controller::Input::Stop { grace }));
                }
                manager::Output::StopSource(id) => self.todo.push_back(Work::StopSource(id)),
                manager::Output::Exit(reason) => {
                    base.say(self.lane(), Kind::Dies, format_args!("exits: {reason}"));
                    self.exited = true;
                }
                _ => {}
            }
        }
        let deadline = self.manager.next_deadline().map(|d| d.at);
        wake_at(base, self.who, self.born, PartId::Manager, &mut self.manager_wake, deadline);
    }

    fn start_source(&mut self, id: WatchId, base: &mut Base, wounds: &mut Wounds) {
        let planned = &self.plan.sources[id.0 as usize];
        let seed = self.rng.next_u64();
        let source = Source::new(
            &planned.spec,
            self.options.clone(),
            Arc::clone(&self.endpoint),
            Authenticator::none(),
            seed,
        );
        let name = format!("source {} {}", id.0, planned.spec);
        let source = Recorded::source(source, seed, &name, self.recorder.as_deref());
        self.sources[id.0 as usize] = Some(Driving::new(source, PartId::Source(id.0), false));
        self.give_source(id, source::Input::Start, base, wounds);
    }

    fn give_source(&mut self, id: WatchId, input: source::Input<'_>, base: &mut Base, wounds: &mut Wounds) {
        let mut told = Vec::new();
        if let Some(mut driving) = self.sources[id.0 as usize].take() {
            driving.give(input, &mut self.around(base, wounds), &mut told);
            self.sources[id.0 as usize] = Some(driving);
        }
        self.source_work(id, told);
    }

    fn source_work(&mut self, id: WatchId, told: Vec<source::Output>) {
        if !told.is_empty() {
            self.todo.push_back(Work::Source(id, told));
        }
    }

    fn source_told(&mut self, id: WatchId, output: source::Output, base: &mut Base, wounds: &mut Wounds) {
        match output {
            source::Output::Delta(delta) => {
                base.eyes.delta(base.now, self.who, id, &delta);
                if base.trace.is_on() {
                    let (n, synced) = (delta.changes.len(), delta.synced);
                    let path = self.plan.sources[id.0 as usize].spec.to_string();
                    let version = &delta.resource_version;
                    let text = format_args!("sees {n} changes of {path} up to {version:?}, synced {synced}");
                    base.say(self.lane(), Kind::Sees, text);
                }
                if delta.synced {
                    self.todo.push_back(Work::Manager(manager::Input::SourceSynced(id)));
                }
                for &(ControllerId(number), source) in &self.plan.sources[id.0 as usize].subscribers {
                    let input = controller::Input::Delta { source, delta: delta.clone() };
                    self.todo.push_back(Work::Controller(number, input));
                }
            }
            source::Output::Decode(job) => {
                self.give_source(id, source::Input::Decoded(job.decode_all()), base, wounds);
            }
            source::Output::Notice(notice) if base.trace.is_on() => {
                let path = self.plan.sources[id.0 as usize].spec.to_string();
                base.say(self.lane(), Kind::Notes, format_args!("{path}: {notice:?}"));
            }
            source::Output::Stopped => {
                if let Some(mut driving) = self.sources[id.0 as usize].take() {
                    driving.close(&mut self.around(base, wounds));
                }
                self.todo.push_back(Work::Manager(manager::Input::SourceStopped(id)));
            }
            _ => {}
        }
    }

    /// Puts an input into a controller's inbox, where it is found a moment later.
    fn post(&mut self, number: u32, input: controller::Input<Object>, base: &mut Base) {
        let moment = std::time::Duration::from_nanos(self.rng.below(NOTICE));
        let ctl = &mut self.controllers[number as usize];
        ctl.inbox.push_back(input);
        if !mem::replace(&mut ctl.noticed, true) {
            base.at(base.now + moment, Event::Inbox(self.who, number));
        }
    }

    /// A controller takes what is in its inbox.
    pub(crate) fn look(&mut self, number: u32, base: &mut Base) {
        let ctl = &mut self.controllers[number as usize];
        ctl.noticed = false;
        let inbox = mem::take(&mut ctl.inbox);
        for input in inbox {
            self.control(number, input, base);
        }
    }

    fn control(&mut self, number: u32, input: controller::Input<Object>, base: &mut Base) {
        let now = local(base.now, self.born);
        let ctl = &mut self.controllers[number as usize];
        let Some(machine) = &mut ctl.machine else { return };
        match &input {
            controller::Input::Done { id, outcome, .. } => {
                if let Some(key) = ctl.running.remove(id) {
                    base.eyes.done(base.now, self.who, number, &key, outcome);
                }
            }
            controller::Input::Delta { source, delta } => {
                base.eyes.told(base.now, self.who, number, *source, delta);
            }
            _ => {}
        }
        let mut out = Outputs::new();
        machine.handle(now, input, &mut out);
        for output in out.drain() {
            match output {
                controller::Output::Run(run) => {
                    if base.trace.is_on() {
                        let Run { key, id, attempt, .. } = &run;
                        let kind = machine.config().primary().map_or("", |p| &*p.resource.kind);
                        let (name, version) = (&machine.config().name, run.object.resource_version());
                        base.say_of(
                            Lane::Replica(self.who.process),
                            Kind::Runs(number, id.0),
                            format_args!("{kind} {key}"),
                            format_args!(
                                "{name} runs {key} (run {id}, attempt {attempt}) at version {version}"
                            ),
                        );
                    }
                    base.eyes.run(base.now, self.who, number, &run, ctl.running.values());
                    ctl.running.insert(run.id, run.key.clone());
                    self.todo.push_back(Work::Start(number, run));
                }
                controller::Output::Abandon(id) => self.todo.push_back(Work::GiveUp((number, id))),
                controller::Output::Notice(notice) => {
                    base.eyes.notice(base.now, self.who, number, &notice);
                    base.say(Lane::Replica(self.who.process), Kind::Notes, format_args!("{notice:?}"));
                }
                controller::Output::Stopped { unfinished } => {
                    let controller = ControllerId(number);
                    self.todo.push_back(Work::Manager(manager::Input::ControllerStopped {
                        controller,
                        unfinished,
                    }));
                }
                _ => {}
            }
        }
        let deadline = machine.next_deadline().map(|d| d.at);
        wake_at(base, self.who, self.born, PartId::Controller(number), &mut ctl.wake, deadline);
    }

    fn start_run(&mut self, number: u32, mut run: Run<Object>, base: &mut Base) {
        let (id, meter) = ((number, run.id), run.meter());
        let abandoned = Abandoned::default();
        let job = self.controllers[number as usize].form.start(id, run, abandoned.clone(), &self.desk);
        let started = local(base.now, self.born);
        let (calls, asleep) = (BTreeMap::new(), BTreeSet::new());
        self.jobs.insert(id, Working { job, meter, abandoned, started, calls, asleep });
        self.job(id, News::Begin);
    }

    /// A reconcile goes on.
    fn job(&mut self, id: JobId, news: News) {
        let Some(working) = self.jobs.get_mut(&id) else { return };
        match &news {
            News::Answer(token, _) => drop(working.calls.remove(token)),
            News::Slept(token) => {
                if !working.asleep.remove(token) {
                    return;
                }
            }
            News::Begin | News::Woken => {}
        }
        let mut asks = Vec::new();
        let outcome = working.job.go(news, &mut asks);
        if outcome.is_some() || !asks.is_empty() {
            self.todo.push_back(Work::Asks(id, asks, outcome));
        }
        while let Some(woken) = self.desk.take_woken() {
            self.todo.push_back(Work::Job(woken, News::Woken));
        }
    }

    fn asked(
        &mut self,
        id: JobId,
        asks: Vec<Ask>,
        outcome: Option<Outcome>,
        base: &mut Base,
        wounds: &mut Wounds,
    ) {
        for ask in asks {
            match ask {
                Ask::Send(token, request) => {
                    let writes = !matches!(request.method, steersman_core::api::Method::Get);
                    base.eyes.asks(base.now, self.who, &request);
                    base.say(self.lane(), Kind::Asks, format_args!("asks: {}", request.what));
                    self.next_call += 1;
                    let call = self.next_call;
                    let seed = self.rng.next_u64();
                    let machine =
                        Call::new(Arc::clone(&self.endpoint), Authenticator::none(), *request, seed);
                    let machine = Calls::call(self.recorded_calls.as_ref(), machine, seed);
                    let mut driving = Driving::new(machine, PartId::Call(call), writes);
                    if let Some(working) = self.jobs.get_mut(&id) {
                        working.calls.insert(token, call);
                    }
                    let mut told = Vec::new();
                    driving.give(CallInput::Start, &mut self.around(base, wounds), &mut told);
                    self.calls.insert(call, Calling { driving, job: id, token });
                    self.call_work(call, told);
                    if wounds.fatal() {
                        return;
                    }
                }
                Ask::Sleep(token, d) => {
                    if let Some(working) = self.jobs.get_mut(&id) {
                        working.asleep.insert(token);
                    }
                    base.at(base.now + d, Event::Slept(self.who, id, token));
                }
                Ask::Forget(token) => {
                    let call = self.jobs.get_mut(&id).and_then(|w| {
                        w.asleep.remove(&token);
                        w.calls.remove(&token)
                    });
                    if let Some(call) = call {
                        self.abort(call, base, wounds);
                    }
                }
            }
        }
        if let Some(outcome) = outcome {
            self.end_job(id, outcome, base, wounds);
        }
    }

    fn end_job(&mut self, id: JobId, outcome: Outcome, base: &mut Base, wounds: &mut Wounds) {
        let Some(working) = self.jobs.remove(&id) else { return };
        if base.trace.is_on() {
            let kind = match outcome {
                Outcome::AwaitChange | Outcome::Requeue(_) => Kind::Done(id.0, id.1.0),
                _ => Kind::Fails(id.0, id.1.0),
            };
            base.say(self.lane(), kind, format_args!("run {} ends: {outcome:?}", id.1));
        }
        let Working { job, meter, started, calls, .. } = working;
        drop(job);
        // What it still asked for while it was dropped is in vain, as are its requests under way.
        self.desk.take_asks(&mut Vec::new());
        for call in calls.into_values() {
            self.abort(call, base, wounds);
        }
        let ends = controller::Input::ends_of(id.1, &meter, outcome, started);
        self.todo.extend(ends.map(|input| Work::Controller(id.0, input)));
    }

    fn give_up(&mut self, id: JobId) {
        let Some(working) = self.jobs.get(&id) else { return };
        working.abandoned.set();
        if working.job.can_be_dropped() {
            let outcome = Outcome::given_up(true);
            self.todo.push_back(Work::Asks(id, Vec::new(), Some(outcome)));
        }
    }

    fn abort(&mut self, call: u64, base: &mut Base, wounds: &mut Wounds) {
        if let Some(mut calling) = self.calls.remove(&call) {
            let mut around = self.around(base, wounds);
            calling.driving.give(CallInput::Abort, &mut around, &mut Vec::new());
            calling.driving.close(&mut around);
        }
    }

    fn call_work(&mut self, call: u64, told: Vec<CallOutput<Raw>>) {
        if !told.is_empty() {
            self.todo.push_back(Work::Call(call, told));
        }
    }

    fn call_told(&mut self, id: u64, told: Vec<CallOutput<Raw>>, base: &mut Base) {
        for output in told {
            match output {
                CallOutput::Done(result) => {
                    let Some(calling) = self.calls.remove(&id) else { return };
                    if base.trace.is_on() {
                        let end = result.as_ref().map_or_else(ToString::to_string, |_| "done".into());
                        let what = &calling.driving.machine.request().what;
                        base.say(self.lane(), Kind::Hears, format_args!("hears: {what}: {end}"));
                    }
                    self.todo.push_back(Work::Job(calling.job, News::Answer(calling.token, result)));
                }
                CallOutput::Wrote(write) => {
                    if let Some(calling) = self.calls.get(&id) {
                        let (controller, run) = calling.job;
                        let input = controller::Input::Wrote { id: run, write };
                        self.todo.push_back(Work::Controller(controller, input));
                    }
                }
                CallOutput::Retrying { error, delay } => {
                    base.say(self.lane(), Kind::Notes, format_args!("tries again in {delay:?}: {error}"));
                }
                _ => {}
            }
        }
    }

    /// Something comes over a connection.
    pub(crate) fn wire(&mut self, link: LinkId, wire: Wire, base: &mut Base, wounds: &mut Wounds) {
        let Some(l) = base.net.links.get_mut(&link) else { return };
        let mut told = Vec::new();
        match l.owner {
            None => l.dirty = true,
            Some((PartId::Source(n), _)) => {
                if let Some(mut driving) = self.sources[n as usize].take() {
                    driving.wire(link, wire, &mut self.around(base, wounds), &mut told);
                    self.sources[n as usize] = Some(driving);
                }
                self.source_work(WatchId(n), told);
            }
            Some((PartId::Call(n), _)) => {
                let mut told = Vec::new();
                if let Some(mut calling) = self.calls.remove(&n) {
                    calling.driving.wire(link, wire, &mut self.around(base, wounds), &mut told);
                    self.calls.insert(n, calling);
                }
                self.call_work(n, told);
            }
            Some((PartId::Manager | PartId::Controller(_), _)) => {}
        }
    }

    /// A part may have a deadline.
    pub(crate) fn wake(&mut self, part: PartId, base: &mut Base, wounds: &mut Wounds) {
        let now = base.now;
        match part {
            PartId::Manager => {
                if self.manager_wake.take_if(|at| *at <= now).is_some() {
                    self.manager(manager::Input::Deadline, base);
                }
            }
            PartId::Controller(n) => {
                if self.controllers[n as usize].wake.take_if(|at| *at <= now).is_some() {
                    self.control(n, controller::Input::Deadline, base);
                }
            }
            PartId::Source(n) => {
                let mut told = Vec::new();
                if let Some(mut driving) = self.sources[n as usize].take() {
                    driving.wake(&mut self.around(base, wounds), &mut told);
                    self.sources[n as usize] = Some(driving);
                }
                self.source_work(WatchId(n), told);
            }
            PartId::Call(n) => {
                let mut told = Vec::new();
                if let Some(mut calling) = self.calls.remove(&n) {
                    calling.driving.wake(&mut self.around(base, wounds), &mut told);
                    self.calls.insert(n, calling);
                }
                self.call_work(n, told);
            }
        }
    }

    /// Whether nothing is under way but sleep; if not, what is.
    pub(crate) fn is_quiet(&self) -> Result<(), String> {
        if let Some(calling) = self.calls.values().next() {
            return Err(format!("{} is under way", calling.driving.machine.request().what));
        }
        if let Some((id, _)) = self.jobs.iter().find(|(_, w)| w.asleep.is_empty()) {
            return Err(format!("run {} waits for something outside of the simulation", id.1));
        }
        match self.controllers.iter().all(|c| c.inbox.is_empty()) {
            true => Ok(()),
            false => Err("a controller has something to look at".into()),
        }
    }
}
