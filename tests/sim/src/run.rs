//! One run: faults and changes, then the end of all faults, then the wait for what must come.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use steersman_core::controller::Outcome;
use steersman_core::rng::Rng;
use steersman_core::time::Time;

use crate::base::Base;
use crate::end::EndState;
use crate::faults::Fault;
use crate::net::{Net, Weather};
use crate::oracle::Eyes;
use crate::process::Process;
use crate::server::Servers;
use crate::sim::{Report, Sim};
use crate::trace::Record;
use crate::world::World;

/// How often it is looked whether all is well.
const TICK: Duration = Duration::from_secs(1);
/// After the last change there is a moment before faults end.
const LAST: Duration = Duration::from_millis(100);
/// A key that should have run for longer is lost.
const LATE: Duration = Duration::from_secs(60);
/// A process that is never at rest for so long, though nothing changes, is not.
const REST: Duration = Duration::from_secs(60);

pub(crate) fn run(sim: &Sim, seed: u64, faults: &[Fault], traced: bool) -> Report {
    let mut world = build(sim, seed, traced);
    // A change or a check may panic; that is said with the seed and all that led to it.
    let converged =
        catch_unwind(AssertUnwindSafe(|| live(sim, faults, &mut world))).unwrap_or_else(|panic| {
            let what = Outcome::from_panic(&*panic);
            world.base.eyes.violated(world.base.now, "panic", format!("{what:?}"));
            None
        });
    report(sim, seed, world, converged)
}

/// Both phases; since when all was well.
fn live(sim: &Sim, faults: &[Fault], world: &mut World) -> Option<Time> {
    world.expect(faults);
    for (at, change) in &sim.changes {
        world.change_at(Time::ZERO + *at, std::sync::Arc::clone(change));
    }
    world.start_all();
    let last = sim.changes.iter().map(|(at, _)| *at + LAST).max().unwrap_or_default();
    let window = if faults.is_empty() { last } else { last.max(sim.window) };
    world.window = Time::ZERO + window;
    world.run_until(world.window);
    world.heal_all();
    if world.base.eyes.violation.is_none() { settle(sim, world) } else { None }
}

fn report(sim: &Sim, seed: u64, mut world: World, converged: Option<Time>) -> Report {
    let base = &mut world.base;
    Report {
        seed,
        violation: base.eyes.violation.take(),
        fingerprint: base.trace.fingerprint(),
        steps: base.steps,
        ended: base.now,
        converged,
        commits: world.servers.commits,
        requests: base.eyes.requests,
        runs: base.eyes.runs,
        writes: std::mem::take(&mut base.eyes.writes),
        sent: world.processes.iter_mut().map(|p| std::mem::take(&mut p.wounds.sent)).collect(),
        end: if sim.wants_end {
            EndState::of(&world.servers.truth, &*sim.ignoring)
        } else {
            EndState::default()
        },
        trace: base.trace.take(),
    }
}

fn build(sim: &Sim, seed: u64, traced: bool) -> World {
    let mut rng = Rng::new(seed);
    let (n, nodes) = (sim.programs.len(), 1 + sim.followers.len());
    let weather = weather(&mut rng.fork());
    let net = Net::new(n, nodes, weather, rng.fork());
    let base = Base::new(net, Record::new(traced), Eyes::new(n, sim.only_writes.clone()));
    let mut options = sim.server.clone();
    options.seed = rng.next_u64();
    let servers = Servers::new(options, base.wall(), rng.fork());
    let processes = sim
        .programs
        .iter()
        .enumerate()
        .map(|(n, program)| {
            let mut process = Process::new(n, std::sync::Arc::clone(program), rng.fork());
            process.first = sim.first;
            process
        })
        .collect();
    let mut world = World::new(base, servers, processes, weather, sim.always.clone(), rng.fork());
    for given in &sim.given {
        world.cluster(|cluster| given(cluster));
    }
    world.base.eyes.commits.clear();
    world.base.eyes.made = 0;
    world.servers.commits = 0;
    world.servers.open(&sim.followers);
    world
}

/// Networks differ, and some of them cut everything to pieces.
fn weather(rng: &mut Rng) -> Weather {
    let from = Duration::from_micros(50 + rng.below(1_000));
    let to = from + Duration::from_micros(1 + rng.below(5_000));
    let chopped = if rng.below(3) == 0 { 20 + rng.below(500) } else { 0 };
    Weather { latency: (from, to), chopped, ..Weather::FAIR }
}

/// Waits until all is well and stays so; since when it is.
fn settle(sim: &Sim, world: &mut World) -> Option<Time> {
    let deadline = world.base.now + sim.within;
    let mut since: Option<(Time, u64, Counts)> = None;
    let mut why = String::new();
    let mut looked: Option<u64> = None;
    loop {
        world.run_until(world.base.now + TICK);
        if world.base.eyes.violation.is_some() {
            return None;
        }
        let (now, commits) = (world.base.now, world.servers.commits);
        if since.as_ref().is_some_and(|(_, at, _)| *at != commits) {
            why = format!("commit {commits} was made, after all had been well");
            since = None;
        }
        if since.is_none() && looked != Some(commits) {
            looked = Some(commits);
            match world.look(|cluster| sim.converges.iter().try_for_each(|check| check(cluster))) {
                Ok(()) => since = Some((now, commits, Counts::of(world))),
                Err(e) => why = e,
            }
        }
        match &since {
            Some((from, _, counts)) if now.since(*from) >= sim.stable => {
                let (from, counts) = (*from, *counts);
                end(sim, world, from, counts);
                return Some(from);
            }
            Some(_) if now > deadline + sim.stable => {
                world.base.eyes.violated(now, "stable", why);
                return None;
            }
            None if now > deadline => {
                let oracle = if why.ends_with("had been well") { "stable" } else { "converges" };
                world.base.eyes.violated(now, oracle, format!("not within {:?}: {why}", sim.within));
                return None;
            }
            _ => {}
        }
    }
}

/// What was done up to a moment.
#[derive(Clone, Copy)]
struct Counts {
    runs: u64,
    asked: u64,
    requests: u64,
}

impl Counts {
    fn of(world: &World) -> Self {
        let eyes = &world.base.eyes;
        Self { runs: eyes.runs, asked: eyes.asked, requests: eyes.requests }
    }
}

/// What must hold at the end.
fn end(sim: &Sim, world: &mut World, from: Time, before: Counts) {
    let after = Counts::of(world);
    let minutes = world.base.now.since(from).as_secs_f64() / 60.0;
    let processes = world.processes.len().max(1) as u64;
    let watches: usize =
        world.processes.iter().filter_map(|p| p.life.as_ref()).map(|l| l.sources.len()).sum();
    let now = world.base.now;
    let asked = after.asked - before.asked;
    // Repeated calls make a few more than were asked for.
    let of_watches = (after.requests - before.requests).saturating_sub(asked * 6);
    for (n, most, what) in [
        (after.runs - before.runs, sim.quiet.runs * processes, "runs"),
        (asked, sim.quiet.requests * processes, "requests of reconciles"),
        (of_watches, sim.quiet.watch_requests * watches as u64, "requests of watches"),
    ] {
        if n as f64 > most as f64 * minutes {
            let what = format!("{n} {what} in {minutes:.1} minutes in which nothing changed");
            world.base.eyes.violated(now, "hot loop", what);
        }
    }
    // Some may just be looking whether all is well.
    let limit = now + REST;
    let commits = world.servers.commits;
    let mut tick = TICK;
    let rest = loop {
        let rest = world.at_rest();
        if rest.is_ok() || world.base.now >= limit || world.base.eyes.violation.is_some() {
            break rest;
        }
        // Never in step with who looks every second.
        tick = tick * 7 / 5 + Duration::from_millis(1);
        world.run_until(world.base.now + tick.min(Duration::from_secs(5)));
    };
    let now = world.base.now;
    if let Err(what) = rest {
        world.base.eyes.violated(now, "store", what);
    } else if world.servers.commits != commits {
        world.base.eyes.violated(now, "stable", "a commit was made, after all had been well");
    }
    if let Some(what) = world.lost_key(LATE) {
        world.base.eyes.violated(now, "lost key", what);
    }
}
