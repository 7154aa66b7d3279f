//! The one loop: takes the next event, gives it to whom it is for, and applies the faults.

use std::sync::Arc;
use std::time::Duration;

use steersman_core::api::ResourceType;
use steersman_core::machine::Outputs;
use steersman_core::net::DEAD_AFTER;
use steersman_core::rng::Rng;
use steersman_core::time::Time;

use crate::base::{Base, Event, PartId, Who};
use crate::cluster::Cluster;
use crate::drive::Wire;
use crate::faults::{Fault, What, When};
use crate::net::{Dir, LinkId, Segment, Wall, Weather};
use crate::process::Process;
use crate::server::{Servers, Sickness};
use crate::trace::{Kind, Lane};

/// Most events in one run, before it counts as one that never ends.
const MOST_STEPS: u64 = 20_000_000;
/// Most events at one moment.
const MOST_AT_ONCE: u64 = 200_000;

/// What somebody does to the cluster.
pub(crate) type ChangeFn = Arc<dyn Fn(&mut Cluster<'_>) + Send + Sync>;
/// What must hold of the cluster.
pub(crate) type CheckFn = Arc<dyn Fn(&Cluster<'_>) -> Result<(), String> + Send + Sync>;

/// Everything there is.
pub(crate) struct World {
    pub(crate) base: Base,
    pub(crate) servers: Servers,
    pub(crate) processes: Vec<Process>,
    pub(crate) faults: Vec<Fault>,
    /// By number: what the weather was before a fault changed it.
    changes: Vec<ChangeFn>,
    always: Vec<CheckFn>,
    rng: Rng,
    weather: Weather,
    /// Faults that wait for a commit.
    at_commit: Vec<(u64, usize)>,
    /// Faults end by then.
    pub(crate) window: Time,
    /// No more faults.
    pub(crate) healed: bool,
}

impl World {
    pub(crate) fn new(
        base: Base,
        servers: Servers,
        processes: Vec<Process>,
        weather: Weather,
        always: Vec<CheckFn>,
        rng: Rng,
    ) -> Self {
        Self {
            base,
            servers,
            processes,
            faults: Vec::new(),
            changes: Vec::new(),
            always,
            rng,
            weather,
            at_commit: Vec::new(),
            window: Time::MAX,
            healed: false,
        }
    }

    /// Something will be done to the cluster.
    pub(crate) fn change_at(&mut self, at: Time, change: ChangeFn) {
        self.changes.push(change);
        self.base.at(at, Event::Change(self.changes.len() - 1));
    }

    /// These faults will happen.
    pub(crate) fn expect(&mut self, faults: &[Fault]) {
        self.faults = faults.to_vec();
        for (n, fault) in faults.iter().enumerate() {
            match fault.when {
                When::At(at) => self.base.at(at, Event::Fault(n)),
                When::Commit(commit) => self.at_commit.push((commit, n)),
                When::In { replica, moment } => {
                    if let Some(process) = self.processes.get_mut(replica) {
                        process.wounds.waiting.push((moment, n, fault.what.kills(replica)));
                    }
                }
            }
        }
    }

    /// Goes on until a moment, or until something is violated.
    pub(crate) fn run_until(&mut self, until: Time) {
        let (mut moment, mut at_once) = (self.base.now, 0);
        while self.base.eyes.violation.is_none()
            && let Some(event) = self.base.next(until)
        {
            if self.base.now == moment {
                at_once += 1;
            } else {
                (moment, at_once) = (self.base.now, 0);
            }
            if at_once > MOST_AT_ONCE || self.base.steps > MOST_STEPS {
                let what = format!("{} events, {at_once} of them at this moment", self.base.steps);
                self.base.eyes.violated(self.base.now, "steps", what);
                return;
            }
            self.dispatch(event);
            self.after();
        }
    }

    fn dispatch(&mut self, event: Event) {
        let base = &mut self.base;
        match event {
            Event::Segment(link, dir) => self.segment(link, dir),
            Event::Connect(link) => self.connect(link),
            Event::Wake(who, part) => self.process(who, event, |p, base| p.wake(base, part)),
            Event::Inbox(who, number) => self.process(who, event, |p, base| p.look(base, number)),
            Event::Slept(who, job, token) => self.process(who, event, |p, base| p.slept(base, job, token)),
            Event::Truth => self.servers.wake_truth(base),
            Event::Follower(n) => self.servers.wake_follower(base, n),
            Event::Lag(n) => self.servers.lag(base, n),
            Event::Fault(n) if !self.healed => self.strike(n),
            Event::Fault(_) => {}
            Event::Heal(n) => self.heal(n),
            Event::GiveUp(n) => self.give_up(n),
            Event::Forget(link) => {
                self.servers.gone(base, link);
                self.servers.settle(base);
            }
            Event::Start(n) => self.processes[n].start(base),
            Event::Resume(n) => {
                if self.processes[n].paused.take_if(|until| *until <= base.now).is_some() {
                    base.say(Lane::Replica(n), Kind::GoesOn, format_args!("goes on"));
                }
            }
            Event::Change(n) => {
                let change = Arc::clone(&self.changes[n]);
                base.say(Lane::Cluster, Kind::Changes, format_args!("is changed by somebody"));
                self.cluster(|cluster| change(cluster));
            }
        }
    }

    /// Gives something to a process, unless it is dead; if it stands still, then later.
    fn process(&mut self, who: Who, event: Event, f: impl FnOnce(&mut Process, &mut Base)) {
        let process = &mut self.processes[who.process];
        if process.lives != who.life || process.life.is_none() {
            return;
        }
        match process.paused {
            Some(until) => self.base.at(until, event),
            None => f(process, &mut self.base),
        }
    }

    fn connect(&mut self, link: LinkId) {
        let Some(l) = self.base.net.links.get(&link).filter(|l| l.client && !l.open) else { return };
        let (who, node) = (l.who, l.node);
        if let Some(wall) = self.base.net.walled(who.process, node) {
            let until = wall.until;
            return self.base.at(until, Event::Connect(link));
        }
        if let Some(until) = self.processes[who.process].paused {
            return self.base.at(until, Event::Connect(link));
        }
        let taken = self.servers.accept(node, link);
        if let Some(l) = self.base.net.links.get_mut(&link) {
            (l.open, l.server) = (taken, taken);
        }
        let wire = if taken { Wire::Connected } else { Wire::Refused };
        self.processes[who.process].wire(&mut self.base, link, wire);
    }

    /// Until when a segment cannot arrive, if so.
    fn held(&self, link: LinkId, dir: Dir) -> Option<Time> {
        let l = self.base.net.links.get(&link)?;
        if let Some(wall) = self.base.net.walled(l.who.process, l.node) {
            return Some(wall.until);
        }
        if dir == Dir::Up {
            return None;
        }
        let watch = matches!(l.owner, Some((PartId::Source(_), _)));
        let blind = self.base.net.blind[l.who.process].filter(|_| watch);
        self.processes[l.who.process].paused.or(blind)
    }

    /// What waits for an answer happens. Whether anything did.
    fn before_answer(&mut self, link: LinkId) -> bool {
        let Some(l) = self.base.net.links.get_mut(&link).filter(|l| l.client) else { return false };
        let due = std::mem::take(&mut l.before_answer);
        due.iter().for_each(|fault| self.strike(*fault));
        !due.is_empty()
    }

    fn segment(&mut self, link: LinkId, dir: Dir) {
        let mut held = self.held(link, dir);
        if held.is_none() && dir == Dir::Down && self.before_answer(link) {
            // Perhaps it does not arrive now.
            held = self.held(link, dir);
        }
        if let Some(until) = held {
            return self.base.at(until, Event::Segment(link, dir));
        }
        let Some(l) = self.base.net.links.get(&link) else { return };
        let (who, server) = (l.who, l.server);
        let Some(segment) = self.base.net.arrive(link, dir) else { return };
        match dir {
            Dir::Up if server => self.servers.arrived(&mut self.base, link, segment),
            Dir::Up => {}
            Dir::Down => {
                if self.base.net.links.get(&link).is_none_or(|l| !l.client) {
                    return;
                }
                let cut = self.base.net.is_cut(link, Dir::Down);
                self.processes[who.process].wire(&mut self.base, link, Wire::Arrived(segment));
                if cut && self.base.net.links.get(&link).is_some_and(|l| l.client) {
                    self.processes[who.process].wire(&mut self.base, link, Wire::Arrived(Segment::Reset));
                }
            }
        }
    }

    /// What follows from any event: moments that faults waited for, commits that somebody must look at, ends of processes.
    fn after(&mut self) {
        for n in 0..self.processes.len() {
            while let Some(fault) = self.processes[n].wounds.hit.pop() {
                if self.healed {
                    self.processes[n].wounds.survived();
                } else {
                    self.strike(fault);
                }
            }
            let process = &mut self.processes[n];
            if process.life.as_ref().is_some_and(|l| l.exited) {
                process.kill(&mut self.base, false);
                let down = process.down.take().unwrap_or_default();
                let at = (self.base.now + down).min(self.window.max(self.base.now));
                self.base.at(at, Event::Start(n));
            }
        }
        while let Some(commit) = self.base.eyes.commits.pop() {
            let due: Vec<usize> =
                self.at_commit.iter().filter(|(n, _)| *n == commit).map(|(_, f)| *f).collect();
            for fault in due {
                if !self.healed {
                    self.strike(fault);
                }
            }
            for check in self.always.clone() {
                let result = self.look(|cluster| check(cluster));
                if let Err(what) = result {
                    self.base.eyes.violated(self.base.now, "always", what);
                }
            }
        }
    }

    /// The cluster, to be changed.
    pub(crate) fn cluster<R>(&mut self, f: impl FnOnce(&mut Cluster<'_>) -> R) -> R {
        let (now, wall) = (self.base.now, self.base.wall());
        let rng = &mut self.rng;
        self.servers.with(&mut self.base, |truth, out| f(&mut Cluster { truth, now, wall, out, rng }))
    }

    /// The cluster, to be looked at.
    pub(crate) fn look<R>(&mut self, f: impl FnOnce(&Cluster<'_>) -> R) -> R {
        let (now, wall) = (self.base.now, self.base.wall());
        let mut out = Outputs::new();
        f(&Cluster { truth: &mut self.servers.truth, now, wall, out: &mut out, rng: &mut self.rng })
    }

    /// A fault begins.
    fn strike(&mut self, n: usize) {
        let what = self.faults[n].what.clone();
        let now = self.base.now;
        self.base.say(Lane::Fault(n), Kind::Strikes, format_args!("{what}"));
        // What lasts, lasts to the end of the first phase at most.
        let window = self.window;
        let end = |lasts: Duration| (now + lasts).min(window.max(now));
        let process = |world: &Self, replica: usize| replica < world.processes.len();
        match what {
            What::Crash { replica, down, silent } if process(self, replica) => {
                if self.processes[replica].life.is_some() {
                    self.processes[replica].kill(&mut self.base, silent);
                    self.base.at(end(down), Event::Start(replica));
                }
                self.processes[replica].wounds.survived();
                self.processes[replica].paused = None;
            }
            What::Stop { replica, down }
                if process(self, replica)
                    && self.processes[replica].life.is_some()
                    && self.processes[replica].paused.is_none() =>
            {
                self.processes[replica].down = Some(down);
                self.processes[replica].stop(&mut self.base);
            }
            What::Pause { replica, lasts } if process(self, replica) => {
                let until =
                    self.processes[replica].paused.map_or_else(|| end(lasts), |old| old.max(end(lasts)));
                self.processes[replica].paused = Some(until);
                self.base.say(Lane::Replica(replica), Kind::Stands, format_args!("stands still"));
                self.base.at(until, Event::Resume(replica));
            }
            What::Clock { replica, by } if process(self, replica) => self.processes[replica].skew += by,
            What::Partition { replica, server, lasts } if process(self, replica) => {
                let until = end(lasts);
                self.base.net.walls.push(Wall { fault: n, process: replica, node: server, until });
                self.base.at(until, Event::Heal(n));
                if until.since(now) > DEAD_AFTER {
                    self.base.at(now + DEAD_AFTER, Event::GiveUp(n));
                }
            }
            What::Blind { replica, lasts } if process(self, replica) => {
                self.base.net.blind[replica] = Some(end(lasts));
                self.base.at(end(lasts), Event::Heal(n));
            }
            What::Reset { replica } => {
                for link in self.base.net.of(replica) {
                    self.reset(link);
                }
            }
            What::Cut { replica, which, after } => {
                if let Some(link) = pick(&self.base.net.of(replica), which) {
                    self.base.net.cut_after(link, after);
                    if after == 0 {
                        self.reset(link);
                    }
                }
            }
            What::HalfOpen { replica, which } => {
                if let Some(link) = pick(&self.base.net.of(replica), which) {
                    if let Some(l) = self.base.net.links.get_mut(&link) {
                        l.silent = true;
                    }
                    self.servers.gone(&mut self.base, link);
                    self.servers.settle(&mut self.base);
                }
            }
            What::Refuse { server, lasts } => {
                if let Some(node) = self.servers.nodes.get_mut(server) {
                    node.shut = true;
                    self.base.at(end(lasts), Event::Heal(n));
                }
            }
            What::Slow { replica, lasts } if process(self, replica) => {
                let slow = Weather {
                    latency: (Duration::from_millis(20), Duration::from_millis(400)),
                    pieces: Some(100),
                    ..self.weather
                };
                self.base.net.weather[replica] = slow;
                self.base.at(end(lasts), Event::Heal(n));
            }
            What::Loss { replica, share, lasts } if process(self, replica) => {
                self.base.net.weather[replica].lost = share.min(900);
                self.base.at(end(lasts), Event::Heal(n));
            }
            What::ServerRestart { server, down } if server < self.servers.nodes.len() => {
                self.servers.go_down(&mut self.base, server);
                self.base.at(end(down), Event::Heal(n));
            }
            What::Compact => self.servers.each(steersman_apiserver::machine::ApiServer::compact),
            What::NoBookmarks { lasts } => {
                self.servers.each(|m| m.mute_bookmarks(true));
                self.base.at(end(lasts), Event::Heal(n));
            }
            What::Freeze { server, lasts } => {
                if let Some(node) = self.servers.nodes.get_mut(server) {
                    node.frozen = true;
                    self.base.at(end(lasts), Event::Heal(n));
                }
            }
            What::Lead { replica, server, lasts }
                if process(self, replica) && server < self.servers.nodes.len() =>
            {
                self.base.net.led[replica] = Some(server);
                self.base.at(end(lasts), Event::Heal(n));
            }
            What::Answer { ill, verb, replica, skip, times } if times > 0 => {
                self.servers.sick.push(Sickness { ill, verb, replica, skip, times });
            }
            What::Trigger { replica }
                if process(self, replica) && self.processes[replica].paused.is_none() =>
            {
                self.processes[replica].trigger(&mut self.base);
            }
            // Of a process that there is not.
            _ => {}
        }
    }

    /// Both ends learn that a connection is gone; what was on its way is lost.
    fn reset(&mut self, link: LinkId) {
        let Some(l) = self.base.net.links.get(&link) else { return };
        let (client, server) = (l.client, l.server);
        if client {
            self.base.end(link, Dir::Down, Segment::Reset);
        }
        if server {
            self.base.end(link, Dir::Up, Segment::Reset);
        }
    }

    /// A fault ends by itself.
    fn heal(&mut self, n: usize) {
        self.base.say(Lane::Fault(n), Kind::Heals, format_args!("ends"));
        match self.faults[n].what {
            What::Partition { .. } => self.base.net.walls.retain(|w| w.fault != n),
            What::Blind { replica, .. } => self.see(replica),
            What::Refuse { server, .. } => self.servers.nodes[server].shut = false,
            What::Slow { replica, .. } | What::Loss { replica, .. } => {
                self.base.net.weather[replica] = self.weather;
            }
            What::ServerRestart { server, .. } if self.servers.nodes[server].shut => {
                self.servers.come_up(&mut self.base, server);
            }
            What::NoBookmarks { .. } => self.servers.each(|m| m.mute_bookmarks(false)),
            What::Freeze { server, .. } => {
                self.servers.nodes[server].frozen = false;
                self.servers.lag(&mut self.base, server);
            }
            What::Lead { replica, .. } => self.base.net.led[replica] = None,
            _ => {}
        }
    }

    /// A process that was blind sees again, but not what it has missed.
    fn see(&mut self, replica: usize) {
        if self.base.net.blind[replica].take().is_some() {
            for link in self.base.net.watches_of(replica) {
                self.reset(link);
            }
            self.servers.each(steersman_apiserver::machine::ApiServer::compact);
        }
    }

    /// Kernels do not try for ever: connections across this partition are given up.
    fn give_up(&mut self, n: usize) {
        let Some(wall) = self.base.net.walls.iter().find(|w| w.fault == n).cloned() else { return };
        if let Some(until) = self.processes[wall.process].paused {
            return self.base.at(until, Event::GiveUp(n));
        }
        let across: Vec<LinkId> = self
            .base
            .net
            .links
            .iter()
            .filter(|(_, l)| l.open && l.who.process == wall.process && l.node == wall.node)
            .map(|(id, _)| *id)
            .collect();
        for link in across {
            if let Some(l) = self.base.net.links.get_mut(&link) {
                l.silent = true;
            }
            self.servers.gone(&mut self.base, link);
            self.processes[wall.process].wire(&mut self.base, link, Wire::Arrived(Segment::Dead));
        }
        self.servers.settle(&mut self.base);
    }

    /// All faults end: what is down comes up, what stands still goes on, what is kept away gets through.
    pub(crate) fn heal_all(&mut self) {
        self.healed = true;
        self.base.say(Lane::Cluster, Kind::Heals, format_args!("has no more faults"));
        self.base.net.walls.clear();
        for n in 0..self.servers.nodes.len() {
            if self.servers.nodes[n].shut {
                self.servers.come_up(&mut self.base, n);
            }
            self.servers.nodes[n].frozen = false;
            self.servers.lag(&mut self.base, n);
        }
        self.servers.sick.clear();
        self.servers.truth.clear_faults();
        self.servers.each(|m| m.mute_bookmarks(false));
        self.base.net.links.values_mut().for_each(|l| l.before_answer.clear());
        for n in 0..self.processes.len() {
            self.base.net.weather[n] = Weather { lost: 0, ..self.weather };
            self.base.net.led[n] = None;
            self.see(n);
            let process = &mut self.processes[n];
            process.wounds.waiting.clear();
            if process.paused.take().is_some() {
                self.base.say(Lane::Replica(n), Kind::GoesOn, format_args!("goes on"));
            }
            if process.life.is_none() {
                self.base.at(self.base.now, Event::Start(n));
            }
        }
    }

    /// Whether every process is up, has seen all that the cluster holds, and is at rest; if not, why.
    pub(crate) fn at_rest(&self) -> Result<(), String> {
        for process in &self.processes {
            let Some(life) = &process.life else { return Err(format!("replica {} is down", process.index)) };
            if process.paused.is_some() {
                return Err(format!("replica {} stands still", process.index));
            }
            life.is_quiet().map_err(|what| format!("replica {}: {what}", process.index))?;
            for (source, planned) in life.sources.iter().zip(&life.plan.sources) {
                let Some(source) = source else { return Err(format!("{} has not started", planned.spec)) };
                let seen = source.machine.snapshot();
                let wrong = self.difference(&planned.spec, &seen);
                if let Some(wrong) = wrong {
                    return Err(format!("replica {}: {}: {wrong}", process.index, planned.spec));
                }
            }
        }
        Ok(())
    }

    /// How a view differs from the truth; only for watches without selectors, which would have to be done again here.
    fn difference(
        &self,
        spec: &steersman_core::controller::WatchSpec,
        seen: &steersman_core::store::Snapshot<steersman_core::object::Object>,
    ) -> Option<String> {
        if !seen.is_synced() {
            return Some("no first state yet".into());
        }
        if !spec.selectors.labels.is_empty() || !spec.selectors.fields.is_empty() {
            return None;
        }
        let of: &ResourceType = &spec.resource;
        let mut views = seen.iter();
        let inside = |key: &str| match &spec.namespace {
            Some(ns) => key.split_once('/').is_some_and(|(n, _)| n == ns),
            None => true,
        };
        for stored in self.servers.truth.stored(of).filter(|s| inside(s.key)) {
            let Some((key, object)) = views.next() else {
                return Some(format!("{} is not seen", stored.key));
            };
            let (namespace, name) = stored.key.split_once('/').unwrap_or(("", stored.key));
            if key.name() != name || key.namespace().unwrap_or_default() != namespace {
                return Some(format!("{key} stands in the place of {}", stored.key));
            }
            if object.resource_version().parse() != Ok(stored.version) {
                let version = object.resource_version();
                return Some(format!("{key} is seen at version {version}, not {}", stored.version));
            }
        }
        views.next().map(|(key, _)| format!("{key} is seen, but gone"))
    }

    /// A key that should have run, and has not.
    pub(crate) fn lost_key(&self, late: Duration) -> Option<String> {
        self.processes.iter().find_map(|process| {
            let life = process.life.as_ref()?;
            self.base.eyes.lost(self.base.now, life.who, late, |number, key| {
                life.primary(number).is_some_and(|view| view.contains(key))
            })
        })
    }

    /// Starts all processes, each a little after the other.
    pub(crate) fn start_all(&mut self) {
        for n in 0..self.processes.len() {
            let at = self.base.now + Duration::from_micros(n as u64);
            self.base.at(at, Event::Start(n));
        }
    }
}

fn pick(links: &[LinkId], which: usize) -> Option<LinkId> {
    if links.is_empty() { None } else { links.get(which % links.len()).copied() }
}
