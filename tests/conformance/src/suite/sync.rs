//! From the first list on: what changes is reconciled.

use steersman_core::api::{ResourceType, Scope};
use steersman_core::controller::{Builder, WatchSpec};
use steersman_core::store::Change;

use super::executor::Executor;
use super::stage::{Diary, Running, Stage, key, maps, secrets, until};

/// What there was before the start is reconciled, each object once.
pub fn first_sync<E: Executor>() {
    let stage = Stage::from_env();
    for n in 0..20 {
        stage.make(&format!("m{n}"), &n.to_string());
    }
    let diary = Diary::default();
    let running = stage.watch::<E>(&diary);
    running.ready();
    for n in 0..20 {
        diary.saw(&format!("m{n}"), &n.to_string());
    }
    running.stop();
    assert_eq!(diary.entries().len(), 20, "each once");
}

/// More controllers than an executor has threads for, each with an object of its own; all of them are told everything.
pub fn many_controllers<E: Executor>() {
    const ALL: usize = 20;
    let stage = Stage::from_env();
    let names: Vec<_> = (0..ALL).map(|n| format!("m{n}")).collect();
    names.iter().for_each(|name| drop(stage.make(name, "1")));
    let diary = Diary::default();
    let running = Running::<E>::start(&stage.server.kubeconfig(), |manager| {
        names.iter().fold(manager, |manager, name| {
            let mine = name.clone();
            let controller = Builder::of(maps()).named(name).filter(move |change| {
                let (Change::Added { new: map, .. }
                | Change::Updated { new: map, .. }
                | Change::Deleted { old: map, .. }) = change;
                map.name() == mine
            });
            E::add(manager, controller, diary.only())
        })
    });
    running.ready();
    names.iter().for_each(|name| diary.saw(name, "1"));
    for name in ["m3", "m19"] {
        stage.set(name, "2");
        diary.saw(name, "2");
        assert!(E::trigger(&running.0, name, key(name)));
        diary.ran(name, 3);
    }
    running.until("all views are the same", |s| {
        let versions = s.controllers.iter().map(|c| &c.sources[0].resource_version);
        s.controllers.iter().all(|c| c.sources[0].objects == ALL) && versions.clone().min() == versions.max()
    });
    running.stop();
    assert_eq!(diary.entries().len(), ALL + 4, "each by its own controller alone");
}

/// An object that comes, changes and goes: two runs, and the view has lost it.
pub fn add_change_delete<E: Executor>() {
    let stage = Stage::from_env();
    let diary = Diary::default();
    let running = stage.watch::<E>(&diary);
    running.ready();
    stage.make("a", "1");
    diary.saw("a", "1");
    stage.set("a", "2");
    diary.saw("a", "2");
    stage.delete("a");
    running.until("a is gone", |s| s.sources[0].status.as_ref().is_some_and(|s| s.objects == 0));
    stage.make("end", "");
    diary.ran("end", 1);
    running.stop();
    assert_eq!(diary.of("a").len(), 2);
}

/// A key that is triggered runs although nothing changed.
pub fn trigger<E: Executor>() {
    let stage = Stage::from_env();
    stage.make("a", "1");
    let diary = Diary::default();
    let running = stage.watch::<E>(&diary);
    diary.ran("a", 1);
    assert!(E::trigger(&running.0, "configmap", key("a")));
    diary.ran("a", 2);
    assert!(!E::trigger(&running.0, "other", key("a")));
    running.stop();
}

/// A trigger that comes before anything has begun is not lost, and ends nothing.
pub fn trigger_at_once<E: Executor>() {
    let stage = Stage::from_env();
    stage.make("a", "1");
    let diary = Diary::default();
    let running = stage.watch::<E>(&diary);
    assert!(E::trigger(&running.0, "configmap", key("a")));
    diary.ran("a", 1);
    running.stop();
}

/// An owned object that is edited or deleted makes its owner run, and nobody else.
pub fn child_drift<E: Executor>() {
    let stage = Stage::from_env();
    let owner = stage.make("owner", "1");
    stage.make("other", "1");
    stage.make_child(&owner);
    let diary = Diary::default();
    let running = stage.run::<E>(Builder::of(maps()).owns(secrets()), diary.only());
    running.ready();
    diary.ran("owner", 1);
    diary.ran("other", 1);
    let runs = diary.of("owner").len();
    stage.touch_child("owner", "x");
    diary.ran("owner", runs + 1);
    stage.delete_child("owner");
    diary.ran("owner", runs + 2);
    running.stop();
    assert_eq!((diary.of("owner").len() - runs, diary.of("other").len()), (2, 1));
}

/// Nothing runs before every source has its first full state; the status says which one has not and why.
pub fn nothing_runs_before_all_have_synced<E: Executor>() {
    let mut stage = Stage::from_env();
    stage.make("a", "1");
    let widgets = ResourceType::new("example.com", "v1", "widgets", "Widget", Scope::Namespaced);
    let diary = Diary::default();
    let running = stage.run::<E>(Builder::of(maps()).owns(WatchSpec::all(widgets)), diary.only());
    running.until("the other watch has synced", |s| {
        s.sources.iter().any(|s| s.missing().is_none())
            && s.sources.iter().any(|s| s.status.as_ref().is_some_and(|s| s.watcher.failures > 2))
    });
    let missing = running.status().ready().expect_err("not ready");
    assert!(missing.iter().any(|m| m.contains("widgets.v1.example.com") && m.contains("404")), "{missing:?}");
    assert!(!missing.iter().any(|m| m.contains("configmaps")), "{missing:?}");
    assert_eq!(diary.entries(), []);
    stage.server.register_widgets().unwrap_or_else(|e| panic!("{e}"));
    diary.saw("a", "1");
    until("ready", || format!("{running:?}"), || running.status().ready().ok());
    running.stop();
}
