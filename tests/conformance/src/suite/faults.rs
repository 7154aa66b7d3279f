//! What the network and the server may do: it costs time, and changes nothing.

use std::time::{Duration, Instant};

use steersman_core::controller::Builder;
use steersman_core::rng::Rng;

use super::executor::Executor;
use super::stage::{Diary, Running, Stage, maps, secrets};
use crate::proxy::{Faults, Proxy};

fn through<E: Executor>(stage: &Stage, diary: &Diary) -> (Proxy, Running<E>) {
    let proxy = Proxy::start(stage.server.addr()).unwrap_or_else(|e| panic!("no proxy: {e}"));
    let kubeconfig = stage.server.kubeconfig_via(&proxy).unwrap_or_else(|e| panic!("no kubeconfig: {e}"));
    let controller = Builder::of(maps()).owns(secrets());
    let running = Running::start(&kubeconfig, |m| E::add(m, controller, diary.only()));
    (proxy, running)
}

/// What was deleted while nobody watched, and is in no history any more, is noticed all the same.
pub fn a_delete_hidden_in_a_gap<E: Executor>() {
    let mut stage = Stage::from_env();
    let owner = stage.make("owner", "1");
    stage.make("gone", "1");
    stage.make("other", "1");
    stage.make_child(&owner);
    let diary = Diary::default();
    let (proxy, running) = through::<E>(&stage, &diary);
    running.ready();
    for name in ["owner", "gone", "other"] {
        diary.ran(name, 1);
    }
    let runs = diary.of("owner").len();
    proxy.refuse();
    proxy.kill_all();
    stage.delete_child("owner");
    stage.delete("gone");
    stage.server.compact().unwrap_or_else(|e| panic!("{e}"));
    proxy.accept().unwrap_or_else(|e| panic!("{e}"));
    diary.ran("owner", runs + 1);
    running.until("both lists were repeated and the other one is gone too", |s| {
        s.sources.iter().all(|s| s.status.as_ref().is_some_and(|s| s.watcher.relists >= 1))
            && s.sources.iter().filter_map(|s| s.status.as_ref()).map(|s| s.objects).sum::<usize>() == 2
    });
    stage.make("end", "");
    diary.ran("end", 1);
    running.stop();
    assert_eq!(diary.of("other").len(), 1, "a list that says nothing new is no reason to run");
}

/// A watch that is cut anywhere, mostly within a line, loses and repeats nothing.
pub fn cut_in_mid_line<E: Executor>() {
    let stage = Stage::from_env();
    let diary = Diary::default();
    let (proxy, running) = through::<E>(&stage, &diary);
    running.ready();
    stage.make("a", "start");
    diary.saw("a", "start");
    for cut in [1, 17, 200, 350, 500, 900, 1500] {
        let killed = proxy.stats().ended_by_fault;
        let open = proxy.disturb(Faults::cut_down(cut)) as u64;
        assert!(open >= 2, "{open} connections");
        let mut n = 0;
        // The watch of the other resource is silent; one cut is enough.
        while proxy.stats().ended_by_fault == killed {
            let value = format!("{cut}-{n}");
            stage.set("a", &value);
            diary.saw("a", &value);
            n += 1;
        }
        proxy.heal();
    }
    stage.set("a", "end");
    diary.saw("a", "end");
    running.stop();
    let values: Vec<_> = diary.of("a").into_iter().map(|e| e.value).collect();
    let mut once = values.clone();
    once.dedup();
    assert_eq!(values, once, "nothing runs twice for one change");
}

/// A server that crashes and comes back.
pub fn server_restart<E: Executor>() {
    let mut stage = Stage::from_env();
    stage.make("a", "1");
    let diary = Diary::default();
    let running = stage.watch::<E>(&diary);
    diary.saw("a", "1");
    stage.server.restart().unwrap_or_else(|e| panic!("{e}"));
    stage.set("a", "2");
    stage.make("b", "1");
    diary.saw("a", "2");
    diary.saw("b", "1");
    running.until("it has recovered", |s| s.ready().is_ok());
    running.stop();
    assert_eq!(diary.entries().len(), 3);
}

/// Two seconds in which every connection dies again and again.
pub fn connections_die_at_random<E: Executor>() {
    let stage = Stage::from_env();
    let diary = Diary::default();
    let (proxy, running) = through::<E>(&stage, &diary);
    running.ready();
    for n in 0..5 {
        stage.make(&format!("m{n}"), "0");
    }
    let mut rng = Rng::new(7);
    let end = Instant::now() + Duration::from_secs(2);
    let (mut round, mut killed) = (0, 0);
    while Instant::now() < end {
        round += 1;
        let name = format!("m{}", rng.next_u64() % 5);
        stage.set(&name, &format!("r{round}"));
        if rng.next_u64().is_multiple_of(2) {
            killed += if rng.next_u64().is_multiple_of(2) { proxy.kill_all() } else { proxy.reset_all() };
        }
        let pause = Duration::from_millis(rng.next_u64() % 60);
        proxy.wait_until(pause, |_| false);
    }
    assert!(killed > 4, "{killed}");
    for n in 0..5 {
        stage.set(&format!("m{n}"), "end");
    }
    for n in 0..5 {
        diary.saw(&format!("m{n}"), "end");
    }
    running.ready();
    running.stop();
    assert_eq!(diary.twice(), Vec::<String>::new());
}
