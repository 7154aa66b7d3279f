//! What ran is recorded without secrets, and replayed: the same decisions from the same bytes.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use steersman_core::controller::Builder;
use steersman_core::record::Redaction;
use steersman_core::record::file::{Bound, Keep, Kind};
use steersman_core::record::replay::Replay;
use steersman_mirror::plan::{self, MIRROR, Mirror};
use steersman_record::Directory;

use super::executor::Executor;
use super::stage::{Diary, NAMESPACE, Running, Stage, maps, until};

/// A directory of this scene's own, gone when it is dropped.
struct Place(PathBuf);

impl Place {
    fn new() -> Self {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let n = COUNT.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("steersman-recorded-{}-{n}", std::process::id()));
        drop(fs::remove_dir_all(&path));
        Self(path)
    }

    fn directory(&self) -> Directory {
        Directory::new(&self.0).unwrap_or_else(|e| panic!("{}: {e}", self.0.display()))
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        drop(fs::remove_dir_all(&self.0));
    }
}

fn map(name: &str, value: &str) -> Value {
    json!({"metadata": {"name": name, "labels": {MIRROR: "true"}}, "data": {"v": value}})
}

fn ask(stage: &Stage, method: &str, plural: &str, name: &str, body: Option<&Value>) -> Value {
    let slash = if name.is_empty() { "" } else { "/" };
    let path = format!("/api/v1/namespaces/{NAMESPACE}/{plural}{slash}{name}");
    let (status, answer) = stage.server.ask(method, &path, body);
    assert!((200..300).contains(&status) || status == 404, "{method} {path}: {status} {answer}");
    answer
}

/// Waits until the Secret holds this.
fn mirrored<E: Executor>(stage: &Stage, running: &Running<E>, name: &str, value: &str) {
    let want = STANDARD.encode(value);
    until(
        &format!("{name} is mirrored"),
        || format!("{running:?}"),
        || (ask(stage, "GET", "secrets", name, None)["data"]["v"] == want.as_str()).then_some(()),
    );
}

/// The mirror is run and disturbed; every machine of it is replayed to the same decisions, and no secret is recorded.
pub fn a_recorded_run_is_replayed_exactly<E: Executor>() {
    let stage = Stage::from_env();
    let place = Place::new();
    let recordings = place.directory().redact(Redaction::default().also("configmaps"));
    let secret = |n: usize| format!("swordfish-{n}");
    for n in 0..6 {
        ask(&stage, "POST", "configmaps", "", Some(&map(&format!("m{n}"), &secret(n))));
    }
    let mirror = || plan::controller(Some(NAMESPACE)).concurrency(3);
    let running = Running::<E>::start(&stage.server.kubeconfig(), |manager| {
        E::record(E::add_plan(manager, mirror().run(Arc::new(Mirror))), &recordings)
    });
    for n in 0..6 {
        mirrored(&stage, &running, &format!("m{n}"), &secret(n));
    }
    ask(&stage, "PATCH", "configmaps", "m0", Some(&json!({"data": {"v": secret(10)}})));
    mirrored(&stage, &running, "m0", &secret(10));
    ask(&stage, "DELETE", "secrets", "m1", None);
    mirrored(&stage, &running, "m1", &secret(1));
    ask(&stage, "PATCH", "secrets", "m2", Some(&json!({"data": {"v": "eA=="}})));
    mirrored(&stage, &running, "m2", &secret(2));
    ask(&stage, "POST", "configmaps", "", Some(&map("m9", &secret(9))));
    mirrored(&stage, &running, "m9", &secret(9));
    running.stop();
    recordings.flush();

    let mut kinds = BTreeSet::new();
    for path in steersman_record::recordings(recordings.path()).unwrap_or_else(|e| panic!("{e}")) {
        let recording = steersman_record::read(&path).unwrap_or_else(|e| panic!("{e}"));
        let kind = recording.header.kind;
        let replay = match kind {
            Kind::Controller => Replay::controller(mirror().config().clone(), &recording),
            _ => Replay::of(&recording),
        };
        let compared = replay.and_then(|replay| replay.compare(&recording)).unwrap_or_else(|e| panic!("{e}"));
        assert_eq!(compared.first, None, "{}", path.display());
        assert_eq!(compared.skipped, 0, "{}", path.display());
        // Of calls, each has a line that makes it.
        assert!(compared.steps > 5 && compared.steps <= recording.records.len() as u64, "{compared:?}");
        kinds.insert(kind.to_string());
    }
    assert_eq!(kinds.into_iter().collect::<Vec<_>>(), ["calls", "controller", "manager", "source"]);

    let hidden: Vec<_> = (0..11).flat_map(|n| [secret(n), STANDARD.encode(secret(n))]).collect();
    for entry in fs::read_dir(recordings.path()).unwrap_or_else(|e| panic!("{e}")).flatten() {
        let text = fs::read_to_string(entry.path()).unwrap_or_else(|e| panic!("{e}"));
        for hidden in hidden.iter().map(String::as_str).chain([stage.server.token()]) {
            assert!(!text.contains(hidden), "{hidden} stands in {}", entry.path().display());
        }
    }
}

/// A recording that outgrew its bound has lost its beginning: it can be read, and a replay says why there is none.
pub fn a_recording_of_the_latest_is_read<E: Executor>() {
    let stage = Stage::from_env();
    let place = Place::new();
    let bound = Bound { segment: 2048, segments: 2, keep: Keep::Latest };
    let recordings = place.directory().bound(bound);
    let diary = Diary::default();
    let running = Running::<E>::start(&stage.server.kubeconfig(), |manager| {
        E::record(E::add(manager, Builder::of(maps()), diary.only()), &recordings)
    });
    running.ready();
    for n in 0..12 {
        stage.make(&format!("m{n}"), "x");
        diary.ran(&format!("m{n}"), 1);
    }
    running.stop();
    recordings.flush();
    let path = recordings.path().join("controller-configmap");
    let recording = steersman_record::read(&path).unwrap_or_else(|e| panic!("{e}"));
    let error = Replay::of(&recording).map(drop).expect_err("its beginning is gone").to_string();
    assert!(error.contains("its beginning is gone"), "{error}");
    let mut reading = Replay::reading(&recording);
    let last = recording.numbered().last().map(|record| reading.step(record));
    let last = last.unwrap_or_else(|| panic!("no record")).unwrap_or_else(|e| panic!("{e}"));
    assert!(last.number > 24 && last.recorded.iter().any(|line| line.contains("stopped")), "{last:?}");
}
