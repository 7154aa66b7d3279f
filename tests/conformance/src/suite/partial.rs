//! Objects of which not everything is kept: watches of metadata alone, and parts that are dropped.

use std::sync::{Arc, Mutex, PoisonError};

use steersman_core::api::{Api, ListParams, kinds::CONFIGMAPS};
use steersman_core::controller::{Action, Builder};
use steersman_core::manager;
use steersman_core::object::{Dropped, Key, Object, Resource};

use super::executor::{Executor, Work, impatient};
use super::stage::{Diary, NAMESPACE, Running, Stage, key, maps, secrets};

/// The objects that reconciles and mappings saw.
#[derive(Clone, Default)]
struct Seen(Arc<Mutex<Vec<Object>>>);

impl Seen {
    fn see(&self, object: &Object) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(object.clone());
    }

    fn all(&self) -> Vec<Object> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn work(&self, diary: &Diary) -> Work<Object> {
        let (seen, written) = (self.clone(), diary.only());
        Arc::new(move |object, cx| {
            seen.see(object);
            written(object, cx)
        })
    }
}

fn metadata_alone(kind: &str, object: &Object) {
    assert_eq!((object.kind(), object.api_version()), (kind, "v1"));
    assert!(!object.uid().is_empty() && !object.resource_version().is_empty());
    let value = object.value().unwrap_or_else(|e| panic!("{e}"));
    let mut members: Vec<_> = value.as_object().into_iter().flat_map(|o| o.keys()).collect();
    members.sort();
    assert_eq!(members, ["apiVersion", "kind", "metadata"], "{object:?}");
}

/// The metadata of the primary kind, of an owned one and of a mapped one, by lists and by streaming lists: everything
/// runs as it would with whole objects.
pub fn metadata_is_enough_to_run<E: Executor>() {
    for streaming in [false, true] {
        let stage = Stage::from_env();
        let owner = stage.make("owner", "1");
        stage.make("other", "1");
        stage.make_child(&owner);
        let (diary, runs, mapped) = (Diary::default(), Seen::default(), Seen::default());
        let controller = Builder::of(maps().metadata()).owns(secrets().metadata()).watches(
            secrets().metadata().labels("!none"),
            {
                let mapped = mapped.clone();
                move |secret| {
                    mapped.see(secret);
                    Vec::<Key>::new()
                }
            },
        );
        let mut sources = impatient();
        sources.watcher.streaming = streaming;
        let client = E::client(&stage.server.kubeconfig()).unwrap_or_else(|e| panic!("{e}"));
        let manager = E::manager(client, manager::Config::default(), sources);
        let manager = E::add(manager, controller, runs.work(&diary));
        let running = Running::<E>(E::start(manager).unwrap_or_else(|e| panic!("{e}")));
        running.ready();
        diary.ran("owner", 1);
        diary.ran("other", 1);
        stage.set("other", "2");
        diary.ran("other", 2);
        let before = diary.of("owner").len();
        stage.touch_child("owner", "x");
        diary.ran("owner", before + 1);
        stage.delete_child("owner");
        diary.ran("owner", before + 2);
        running.stop();
        runs.all().iter().for_each(|o| metadata_alone("ConfigMap", o));
        assert!(mapped.all().len() >= 3, "added, touched, deleted");
        mapped.all().iter().for_each(|o| metadata_alone("Secret", o));
    }
}

/// The metadata of one object, of one that is not there, and of a list.
pub fn metadata_by_the_client<E: Executor>() {
    let stage = Stage::from_env();
    stage.make("a", "1");
    let client = E::client(&stage.server.kubeconfig()).unwrap_or_else(|e| panic!("{e}"));
    let api = Api::dynamic(CONFIGMAPS).within(NAMESPACE).metadata_only();
    let got = E::send(&client, api.get("a")).unwrap_or_else(|e| panic!("{e}"));
    metadata_alone("ConfigMap", &got);
    assert_eq!(got.name(), "a");
    assert!(E::send(&client, api.get_opt("b")).unwrap_or_else(|e| panic!("{e}")).is_none());
    let only = ListParams::default().fields("metadata.name=a");
    let list = E::send(&client, api.list(&only)).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!((list.items.len(), list.bad.len()), (1, 0));
    metadata_alone("ConfigMap", &list.items[0]);
}

/// Two controllers of one resource, one of which has no use for the data: each has a watch of its own and sees what it
/// asked for.
pub fn what_one_drops_another_sees<E: Executor>() {
    let stage = Stage::from_env();
    stage.make("a", "1");
    let (lean, whole) = (Seen::default(), Seen::default());
    let dropped = Dropped::default().and("/data").unwrap_or_else(|e| panic!("{e}"));
    let quiet = |seen: &Seen| -> Work<Object> {
        let seen = seen.clone();
        Arc::new(move |object, _| {
            seen.see(object);
            Ok(Action::await_change())
        })
    };
    let running = Running::<E>::start(&stage.server.kubeconfig(), |m| {
        let m = E::add(m, Builder::of(maps()).dropping(dropped).named("lean"), quiet(&lean));
        E::add(m, Builder::of(maps()).named("whole"), quiet(&whole))
    });
    running.ready();
    let status = running.until("both have run", |s| s.controllers.iter().all(|c| c.results.success >= 1));
    assert_eq!(status.sources.len(), 2);
    assert!(status.sources[0].watch.to_string().contains("without /data"), "{status:?}");
    running.stop();
    assert!(lean.all().iter().all(|o| o.key() == key("a") && o.raw_at(&["data"]).is_none()));
    assert!(whole.all().iter().all(|o| o.raw_at(&["data"]).is_some()));
}
