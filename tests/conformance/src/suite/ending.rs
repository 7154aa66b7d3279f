//! The end, and that nobody has to wait for an answer.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use steersman_core::controller::stats::ControllerPhase;
use steersman_core::controller::{Action, Builder};
use steersman_core::manager::status::ManagerPhase;
use steersman_core::manager::{self, ControllerId, ExitReason};

use super::executor::{Executor, Work};
use super::stage::{Diary, Gate, LIMIT, Running, Stage, key, maps, secrets, until};
use crate::proxy::{Faults, Proxy};

/// Long enough for a status or a kill on a busy machine, far too short for anything that waits.
const AT_ONCE: Duration = Duration::from_secs(2);

fn waiting(diary: &Diary, gate: &Gate) -> Work<steersman_core::object::Object> {
    let gate = gate.clone();
    diary.and(move |_, _| {
        gate.pass();
        Ok(Action::await_change())
    })
}

/// An end in order waits for what runs and starts nothing.
pub fn stop_waits_for_what_runs<E: Executor>() {
    let stage = Stage::from_env();
    for name in ["a", "b", "c"] {
        stage.make(name, "");
    }
    let gate = Gate::default();
    let _open = gate.opened_at_the_end();
    let diary = Diary::default();
    let running = stage.run::<E>(Builder::of(maps()), waiting(&diary, &gate));
    running.until("one runs and two wait", |s| (s.controllers[0].running, s.controllers[0].queued) == (1, 2));
    E::stop(&running.0);
    running.until("stopping", |s| s.phase == ManagerPhase::Stopping);
    assert_eq!(running.status().controllers[0].running, 1);
    assert!(running.status().ready().is_err());
    gate.open();
    assert_eq!(running.exit(), ExitReason::Stopped);
    assert_eq!(running.status().phase, ManagerPhase::Stopped);
    let entries = diary.entries();
    assert!(entries.len() == 1 && entries[0].over, "{entries:?}");
}

/// A run that does not end within the grace is left behind, and the end says so.
pub fn grace_is_limited<E: Executor>() {
    let stage = Stage::from_env();
    stage.make("a", "");
    let gate = Gate::default();
    let _open = gate.opened_at_the_end();
    let diary = Diary::default();
    let end = manager::Config { grace: Some(Duration::from_millis(100)), ..manager::Config::default() };
    let work = waiting(&diary, &gate);
    let running =
        Running::<E>::start_with(&stage.server.kubeconfig(), end, |m| E::add(m, Builder::of(maps()), work));
    diary.until("a runs", |e| e.len() == 1);
    E::stop(&running.0);
    let reason = running.exit();
    assert!(matches!(reason, ExitReason::GraceOver { unfinished: 1, .. }), "{reason:?}");
}

/// A kill ends it at once, whatever runs.
pub fn kill_ends_at_once<E: Executor>() {
    killed::<E>(|_| {});
}

/// So does a kill while an end in order waits for what runs, as with a second signal.
pub fn a_kill_after_a_stop_ends_at_once<E: Executor>() {
    killed::<E>(|running| {
        E::stop(&running.0);
        running.until("stopping", |s| s.phase == ManagerPhase::Stopping);
    });
}

/// Kills what runs after `first`. The program lives on, and nothing of the manager does: no run begins, no connection
/// stays open.
fn killed<E: Executor>(first: impl FnOnce(&Running<E>)) {
    let stage = Stage::from_env();
    for name in ["a", "b", "c"] {
        stage.make(name, "");
    }
    let gate = Gate::default();
    let _open = gate.opened_at_the_end();
    let diary = Diary::default();
    let proxy = Proxy::start(stage.server.addr()).unwrap_or_else(|e| panic!("no proxy: {e}"));
    let kubeconfig = stage.server.kubeconfig_via(&proxy).unwrap_or_else(|e| panic!("no kubeconfig: {e}"));
    let work = waiting(&diary, &gate);
    let running = Running::<E>::start(&kubeconfig, |m| E::add(m, Builder::of(maps()), work));
    running.until("one runs and two wait", |s| (s.controllers[0].running, s.controllers[0].queued) == (1, 2));
    diary.until("a run has begun", |e| e.len() == 1);
    first(&running);
    let began = Instant::now();
    E::kill(&running.0);
    assert_eq!(running.exit(), ExitReason::Killed);
    assert!(began.elapsed() < AT_ONCE, "{:?}", began.elapsed());
    assert!(!diary.entries()[0].over);
    running.until("the controller is over", |s| s.controllers[0].phase == ControllerPhase::Stopped);
    gate.open();
    diary.until("what ran is over", |e| e[0].over);
    assert!(proxy.wait_until(LIMIT, |s| s.open == 0), "{:?}", proxy.stats());
    assert_eq!(diary.entries().len(), 1, "nothing began after the kill");
}

/// A network that swallows everything keeps nobody from an end in order, neither before the first answer nor later.
pub fn stop_while_the_network_is_silent<E: Executor>() {
    let stage = Stage::from_env();
    stage.make("a", "");
    let proxy = Proxy::start(stage.server.addr()).unwrap_or_else(|e| panic!("no proxy: {e}"));
    let kubeconfig = stage.server.kubeconfig_via(&proxy).unwrap_or_else(|e| panic!("no kubeconfig: {e}"));
    for answered in [false, true] {
        let diary = Diary::default();
        proxy.new_connections(if answered { Faults::none() } else { Faults::hold() });
        let accepted = proxy.stats().accepted;
        let running = Running::<E>::start(&kubeconfig, |m| E::add(m, Builder::of(maps()), diary.only()));
        assert!(proxy.wait_until(LIMIT, |s| s.accepted > accepted), "{:?}", proxy.stats());
        if answered {
            diary.ran("a", 1);
            proxy.hold();
        }
        let began = Instant::now();
        running.stop();
        assert!(began.elapsed() < AT_ONCE, "{:?}", began.elapsed());
    }
}

/// A mapping function that hangs holds up its own controller, whose inbox fills, but neither the status nor the end. It
/// blocks a thread, so this is for executors where a controller has one.
pub fn a_mapping_that_hangs<E: Executor>() {
    let stage = Stage::from_env();
    let owner = stage.make("a", "");
    let gate = Gate::default();
    let _open = gate.opened_at_the_end();
    let (asked, triggers) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let controller = Builder::of(maps()).watches(secrets(), {
        let (asked, gate) = (Arc::clone(&asked), gate.clone());
        move |_| {
            asked.fetch_add(1, Ordering::Relaxed);
            gate.pass();
            Vec::new()
        }
    });
    let diary = Diary::default();
    let end = manager::Config { grace: Some(Duration::from_millis(100)), ..manager::Config::default() };
    let running =
        Running::<E>::start_with(&stage.server.kubeconfig(), end, |m| E::add(m, controller, diary.only()));
    running.ready();
    stage.make_child(&owner);
    let state = || format!("{running:?}");
    until("the mapping hangs", state, || (asked.load(Ordering::Relaxed) > 0).then_some(()));
    thread::spawn({
        let (handle, triggers) = (running.0.clone(), Arc::clone(&triggers));
        move || {
            while triggers.load(Ordering::Relaxed) < 2000 && E::trigger(&handle, "configmap", key("a")) {
                triggers.fetch_add(1, Ordering::Relaxed);
            }
        }
    });
    until("the inbox is full", state, || (triggers.load(Ordering::Relaxed) >= 1024).then_some(()));
    E::stop(&running.0);
    running.until("stopping", |s| s.phase == ManagerPhase::Stopping);
    assert_eq!(running.exit(), ExitReason::GraceOver { unfinished: 0, silent: vec![ControllerId(0)] });
}

/// Where many controllers share threads, a mapping that hangs keeps the end from those beside it. None of them begins a run after it.
pub fn beside_a_mapping_that_hangs<E: Executor>() {
    const ALL: usize = 20;
    let stage = Stage::from_env();
    let owner = stage.make("a", "");
    stage.make("b", "");
    let (gate, runs) = (Gate::default(), Gate::default());
    let _open = (gate.opened_at_the_end(), runs.opened_at_the_end());
    let asked = Arc::new(AtomicUsize::new(0));
    let diary = Diary::default();
    let end = manager::Config { grace: Some(Duration::from_millis(100)), ..manager::Config::default() };
    let running = Running::<E>::start_with(&stage.server.kubeconfig(), end, |manager| {
        let hanging = Builder::of(maps()).named("hanging").watches(secrets(), {
            let (asked, gate) = (Arc::clone(&asked), gate.clone());
            move |_| {
                asked.fetch_add(1, Ordering::Relaxed);
                gate.pass();
                Vec::new()
            }
        });
        let manager = E::add(manager, hanging, Diary::default().only());
        (1..ALL).fold(manager, |manager, n| {
            E::add(manager, Builder::of(maps()).named(format!("c{n}")), waiting(&diary, &runs))
        })
    });
    running.ready();
    diary.until("each has one run, and one that waits", |e| e.len() == ALL - 1);
    stage.make_child(&owner);
    let state = || format!("{running:?}");
    until("the mapping hangs", state, || (asked.load(Ordering::Relaxed) > 0).then_some(()));
    E::stop(&running.0);
    assert!(matches!(running.exit(), ExitReason::GraceOver { .. }));
    runs.open();
    diary.until("all are over", |e| e.iter().all(|run| run.over));
    assert_eq!(diary.entries().len(), ALL - 1, "nothing begins after the end");
}

/// The status answers at once while every reconcile blocks, and shows what runs.
pub fn status_answers_while_reconciles_block<E: Executor>() {
    let stage = Stage::from_env();
    for n in 0..8 {
        stage.make(&format!("m{n}"), "");
    }
    let gate = Gate::default();
    let _open = gate.opened_at_the_end();
    let diary = Diary::default();
    let running = stage.run::<E>(Builder::of(maps()).concurrency(3), waiting(&diary, &gate));
    diary.until("three run", |e| e.len() == 3);
    running.until("it shows", |s| s.controllers[0].running == 3 && s.controllers[0].oldest_run.is_some());
    let began = Instant::now();
    for _ in 0..1000 {
        assert!(running.status().live());
    }
    assert!(began.elapsed() < AT_ONCE, "{:?}", began.elapsed());
    // Changes are still taken in.
    stage.make("late", "");
    running.until("late is in line", |s| s.controllers[0].queued == 6);
    gate.open();
    diary.ran("late", 1);
    running.stop();
}
