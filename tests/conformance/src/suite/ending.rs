//! The end, and that nobody has to wait for an answer.

use std::time::{Duration, Instant};

use steersman_core::controller::{Action, Builder};
use steersman_core::manager::status::ManagerPhase;
use steersman_core::manager::{self, ExitReason};

use super::executor::{Executor, Work};
use super::stage::{Diary, Gate, Running, Stage, maps};

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
    let stage = Stage::from_env();
    stage.make("a", "");
    let gate = Gate::default();
    let _open = gate.opened_at_the_end();
    let diary = Diary::default();
    let running = stage.run::<E>(Builder::of(maps()), waiting(&diary, &gate));
    diary.until("a runs", |e| e.len() == 1);
    let began = Instant::now();
    E::kill(&running.0);
    assert_eq!(running.exit(), ExitReason::Killed);
    assert!(began.elapsed() < AT_ONCE, "{:?}", began.elapsed());
    assert!(!diary.entries()[0].over);
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
