//! When a key runs, how often, and how many at once.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use serde_json::json;
use steersman_core::api::kinds::{CONFIGMAPS, ConfigMap, NAMESPACES};
use steersman_core::api::{Api, Patch, PatchParams};
use steersman_core::backoff::Policy;
use steersman_core::controller::{Action, Builder, WatchSpec};
use steersman_core::object::Object;

use super::executor::{Executor, Work};
use super::stage::{Diary, Gate, Stage, maps};

/// However often an object changes during its run, it runs exactly once more, and that run sees the last state.
pub fn a_change_during_a_run_is_one_more_run<E: Executor>() {
    let stage = Stage::from_env();
    let gate = Gate::default();
    let _open = gate.opened_at_the_end();
    let diary = Diary::default();
    let work = diary.and({
        let gate = gate.clone();
        move |entry, _| {
            if entry.name == "a" && entry.value == "0" {
                gate.pass();
            }
            Ok(Action::await_change())
        }
    });
    let running = stage.run::<E>(Builder::of(maps()).concurrency(2), work);
    running.ready();
    stage.make("a", "0");
    diary.until("a runs", |e| e.iter().any(|e| e.name == "a"));
    for n in 1..=5 {
        stage.set("a", &n.to_string());
    }
    // The watch has brought all five changes when it has brought what was made after them.
    stage.make("mark", "");
    diary.ran("mark", 1);
    gate.open();
    diary.saw("a", "5");
    stage.make("end", "");
    diary.ran("end", 1);
    running.stop();
    let values: Vec<_> = diary.of("a").into_iter().map(|e| e.value).collect();
    assert_eq!(values, ["0", "5"]);
}

/// One key never runs twice at the same time, and after many changes each has been seen in its last state.
pub fn never_one_key_twice_at_once<E: Executor>() {
    let stage = Stage::from_env();
    let diary = Diary::default();
    let work = diary.and(|_, _| {
        std::thread::park_timeout(Duration::from_millis(3));
        Ok(Action::await_change())
    });
    let running = stage.run::<E>(Builder::of(maps()).concurrency(8), work);
    running.ready();
    for n in 0..4 {
        stage.make(&format!("m{n}"), "0");
    }
    std::thread::scope(|scope| {
        for n in 0..4 {
            let (stage, handle) = (&stage, &running.0);
            scope.spawn(move || {
                let name = format!("m{n}");
                for value in 1..=25 {
                    stage.set(&name, &value.to_string());
                    E::trigger(handle, "configmap", super::stage::key(&name));
                }
            });
        }
    });
    for n in 0..4 {
        diary.saw(&format!("m{n}"), "25");
    }
    running.stop();
    assert_eq!(diary.twice(), Vec::<String>::new());
}

/// A key that wrote, and wants to run at once, runs when its view shows what it wrote: no value is seen twice.
pub fn own_writes_are_seen<E: Executor>() {
    const LAST: u32 = 40;
    let stage = Stage::from_env();
    let diary = Diary::default();
    let work = diary.and(|entry, cx| {
        let value: u32 = entry.value.parse().map_err(|e| format!("{e}"))?;
        if value == LAST {
            return Ok(Action::await_change());
        }
        let next = Patch::Merge(json!({"data": {"v": (value + 1).to_string()}}));
        let api = Api::<ConfigMap>::namespaced(cx.key.namespace().unwrap_or_default());
        let patch = api.patch(cx.key.name(), &next, &PatchParams::default());
        cx.client.send(patch.into_raw()).map_err(|e| e.to_string())?;
        Ok(Action::requeue(Duration::ZERO))
    });
    let running = stage.run::<E>(Builder::of(maps()), work);
    running.ready();
    stage.make("a", "0");
    diary.saw("a", &LAST.to_string());
    running.stop();
    let values: Vec<_> = diary.of("a").into_iter().map(|e| e.value).collect();
    assert_eq!(values, (0..=LAST).map(|n| n.to_string()).collect::<Vec<_>>());
}

/// An owner without a namespace, whose children are in several and change at the same time, is one key: it never runs
/// twice at once, and a change or a deletion of any child is a run.
pub fn children_in_several_namespaces<E: Executor>() {
    const CHANGES: u64 = 15;
    let stage = Stage::from_env();
    let ask = |method: &str, path: &str, body: serde_json::Value| {
        let (status, answer) = stage.server.ask(method, path, Some(&body).filter(|b| !b.is_null()));
        assert!((200..300).contains(&status), "{method} {path}: {status} {answer}");
        answer
    };
    let namespace = |name: &str, label: &str| {
        let body = json!({"metadata": {"name": name, "labels": {label: "yes"}}});
        ask("POST", "/api/v1/namespaces", body)["metadata"]["uid"].clone()
    };
    let uid = namespace("owner", "owners");
    namespace("bystander", "owners");
    let owner =
        json!({"apiVersion": "v1", "kind": "Namespace", "name": "owner", "uid": uid, "controller": true});
    let places = ["x", "y", "z"];
    let children = |place: &str| format!("/api/v1/namespaces/{place}/configmaps");
    for place in places {
        namespace(place, "places");
        let metadata = json!({"name": "child", "labels": {"of": "owner"}, "ownerReferences": [owner]});
        ask("POST", &children(place), json!({"metadata": metadata}));
    }
    let diary = Diary::default();
    let work = diary.and(|_, cx| {
        assert_eq!(cx.key.namespace(), None);
        std::thread::park_timeout(Duration::from_millis(3));
        Ok(Action::await_change())
    });
    let owners = WatchSpec::all(NAMESPACES).labels("owners=yes");
    let owned = WatchSpec::all(CONFIGMAPS).labels("of=owner");
    let running = stage.run::<E>(Builder::of(owners).owns(owned).concurrency(8), work);
    running.ready();
    std::thread::scope(|scope| {
        for place in places {
            let (ask, children) = (&ask, &children);
            scope.spawn(move || {
                for n in 0..CHANGES {
                    let body = json!({"data": {"n": n.to_string()}});
                    ask("PATCH", &format!("{}/child", children(place)), body);
                }
            });
        }
    });
    let settled = |changes: u64| {
        running.until("everything is seen and done", |s| {
            let c = &s.controllers[0];
            c.sources[1].changes == changes && (c.running, c.queued, c.waiting) == (0, 0, 0)
        });
        diary.of("owner").len()
    };
    // Three were there from the start.
    let all = 3 * (CHANGES + 1);
    let runs = settled(all);
    ask("PATCH", &format!("{}/child", children("y")), json!({"data": {"n": "end"}}));
    assert_eq!(settled(all + 1), runs + 1);
    ask("DELETE", &format!("{}/child", children("z")), serde_json::Value::Null);
    assert_eq!(settled(all + 2), runs + 2);
    running.stop();
    assert_eq!((diary.twice(), diary.of("bystander").len()), (Vec::<String>::new(), 1));
}

/// As many keys run at once as are allowed, and no more.
pub fn the_concurrency_limit<E: Executor>() {
    let stage = Stage::from_env();
    for n in 0..12 {
        stage.make(&format!("m{n}"), "");
    }
    let gate = Gate::default();
    let _open = gate.opened_at_the_end();
    let diary = Diary::default();
    let work = diary.and({
        let gate = gate.clone();
        move |_, _| {
            gate.pass();
            Ok(Action::await_change())
        }
    });
    let running = stage.run::<E>(Builder::of(maps()).concurrency(4), work);
    diary.until("four run", |e| e.len() == 4);
    // The controller knows of all twelve and still runs four.
    let status = running.until("eight wait", |s| s.controllers[0].queued == 8);
    assert_eq!((status.controllers[0].running, diary.entries().len()), (4, 4));
    gate.open();
    diary.until("all run", |e| e.iter().filter(|e| e.over).count() == 12);
    running.stop();
    assert_eq!(diary.most(), 4);
}

/// A run that asks for it is followed by another one, not before its time.
pub fn requeue<E: Executor>() {
    const PAUSE: Duration = Duration::from_millis(120);
    let stage = Stage::from_env();
    stage.make("a", "");
    let times = Arc::new(Mutex::new(Vec::new()));
    let diary = Diary::default();
    let work = diary.and({
        let times = Arc::clone(&times);
        move |_, _| {
            times.lock().unwrap_or_else(PoisonError::into_inner).push(Instant::now());
            Ok(Action::requeue(PAUSE))
        }
    });
    let running = stage.run::<E>(Builder::of(maps()), work);
    diary.ran("a", 4);
    running.stop();
    assert!(diary.entries().iter().all(|e| e.attempt == 1), "a requeue is no failure");
    let times = times.lock().unwrap_or_else(PoisonError::into_inner);
    for pair in times.windows(2) {
        let pause = pair[1] - pair[0];
        assert!(pause >= PAUSE - Duration::from_millis(1), "{pause:?}");
    }
}

/// A key that fails is tried again, with counted attempts and growing pauses; a success begins anew.
pub fn error_backoff<E: Executor>() {
    let stage = Stage::from_env();
    stage.make("a", "bad");
    stage.make("b", "good");
    let times = Arc::new(Mutex::new(Vec::new()));
    let diary = Diary::default();
    let work = diary.and({
        let times = Arc::clone(&times);
        move |entry, cx| {
            if entry.name == "a" {
                times.lock().unwrap_or_else(PoisonError::into_inner).push(Instant::now());
                if entry.value == "bad" && cx.attempt < 6 {
                    return Err(format!("not this time, {}", cx.attempt));
                }
                if entry.value == "worse" && cx.attempt < 3 {
                    return Err("nor this time".to_owned());
                }
            }
            Ok(Action::await_change())
        }
    });
    let policy = Policy { base: Duration::from_millis(10), cap: Duration::from_secs(1), jitter: 0.0 };
    let running = stage.run::<E>(Builder::of(maps()).backoff(policy), work);
    diary.ran("a", 6);
    running.until("the last run is known", |s| s.controllers[0].results.success == 2);
    let error = running.status().controllers[0].last_error.clone().map(|e| format!("{e:?}"));
    assert!(error.as_ref().is_some_and(|e| e.contains("not this time, 5")), "{error:?}");
    stage.set("a", "worse");
    diary.ran("a", 9);
    running.until("the last run is known", |s| s.controllers[0].results.success == 3);
    running.stop();
    let attempts: Vec<_> = diary.of("a").iter().map(|e| e.attempt).collect();
    assert_eq!(attempts, [1, 2, 3, 4, 5, 6, 1, 2, 3]);
    assert_eq!(diary.of("b").len(), 1);
    let times = times.lock().unwrap_or_else(PoisonError::into_inner);
    for (n, pair) in times.windows(2).take(5).enumerate() {
        let (pause, least) = (pair[1] - pair[0], Duration::from_millis((10 << n) - 1));
        assert!(pause >= least, "pause {n} is {pause:?}");
    }
}

/// A reconcile that panics costs its own key a pause, and nobody else anything.
pub fn a_panic_costs_one_key<E: Executor>() {
    let stage = Stage::from_env();
    stage.make("a", "");
    stage.make("b", "");
    let panics = Arc::new(AtomicU32::new(0));
    let diary = Diary::default();
    let work = diary.and({
        let panics = Arc::clone(&panics);
        move |entry, cx| {
            if entry.name == "a" && cx.attempt < 4 {
                panics.fetch_add(1, Ordering::Relaxed);
                // No message of a hook between those of the tests.
                std::panic::resume_unwind(Box::new("as planned"));
            }
            Ok(Action::await_change())
        }
    });
    let running = stage.run::<E>(Builder::of(maps()), work);
    diary.ran("a", 4);
    diary.ran("b", 1);
    let status = running.until("the end of a", |s| s.controllers[0].results.success == 2);
    assert_eq!((status.controllers[0].results.panicked, panics.load(Ordering::Relaxed)), (3, 3));
    stage.set("b", "1");
    diary.saw("b", "1");
    running.stop();
}

/// What runs deserialise is counted, of their own object and of those in their views; metadata is free.
pub fn reads_are_counted<E: Executor>() {
    let stage = Stage::from_env();
    ["own", "other", "names"].iter().for_each(|name| drop(stage.make(name, "v")));
    let work: Work<Object> = Arc::new(|object, cx| {
        let read = match object.name() {
            "own" => object.value(),
            "other" => cx.view.get(&cx.key).map_or_else(|| object.value(), |o| o.value()),
            _ => return Ok(Action::await_change()),
        };
        read.map(|_| Action::await_change()).map_err(|e| e.to_string())
    });
    let running = stage.run::<E>(Builder::of(maps()), work);
    let status = running.until("three runs are over", |s| s.controllers[0].results.success == 3);
    let controller = &status.controllers[0];
    assert_eq!((controller.reads.runs, controller.reads.parses, controller.reads.parts), (2, 2, 0));
    assert!(
        controller.reads.bytes > 100 && controller.metadata_alone().is_some_and(|s| (0.3..0.4).contains(&s))
    );
    running.stop();
}
