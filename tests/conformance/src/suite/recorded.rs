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
use steersman_core::manager;
use steersman_core::record::file::{Bound, End, Keep, Kind};
use steersman_core::record::replay::Replay;
use steersman_core::record::{Recording, Redaction};
use steersman_mirror::plan::{self, MIRROR, Mirror};
use steersman_record::Directory;

use super::executor::{Executor, impatient};
use super::stage::{Diary, NAMESPACE, Running, Stage, maps, until};
use crate::https::Who;
use crate::realapi;
use crate::servers::Servers;
use crate::truth::Stage as _;

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

/// Whether an answer in it is compressed.
fn has_gzip(recording: &Recording) -> bool {
    recording.numbered().any(|(_, json)| {
        let record: Value = serde_json::from_str(json).unwrap_or_default();
        let bytes = &record["step"]["input"]["received"]["bytes"];
        let bytes = match bytes["text"].as_str() {
            Some(text) => text.as_bytes().to_vec(),
            None => STANDARD.decode(bytes["base64"].as_str().unwrap_or_default()).unwrap_or_default(),
        };
        String::from_utf8_lossy(&bytes).contains("\r\nContent-Encoding: gzip\r\n")
    })
}

/// With what the client says who it is.
#[derive(Clone, Copy, Debug)]
enum By {
    Token,
    TokenFile,
    Certificate,
}

/// A kubeconfig, and what must not be found in a recording.
fn credentials(stage: &Stage, place: &Place, by: By) -> (PathBuf, Vec<String>) {
    let write = |name: &str, text: &str| {
        let path = place.0.join(name);
        fs::write(&path, text).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        path.display().to_string()
    };
    fs::create_dir_all(&place.0).unwrap_or_else(|e| panic!("{e}"));
    let token = stage.server.token().to_owned();
    let (user, hidden) = match by {
        By::Token => (format!("{{token: \"{token}\"}}"), vec![token]),
        By::TokenFile => (format!("{{tokenFile: {}}}", write("token", &token)), vec![token]),
        By::Certificate => {
            let Some(Who::Certificate(certificate, key)) = stage.server.who("certificate") else {
                panic!("the server gives no certificate")
            };
            let (certificate, key_file) = (write("user.crt", &certificate), write("user.key", &key));
            let lines = key.lines().filter(|l| !l.starts_with("---")).map(ToOwned::to_owned).collect();
            (format!("{{client-certificate: {certificate}, client-key: {key_file}}}"), lines)
        }
    };
    let ca = write("ca.crt", stage.server.ca_pem());
    let config = realapi::kubeconfig(&format!("https://{}", stage.server.addr()), &ca, &user);
    (PathBuf::from(write("kubeconfig", &config)), hidden)
}

/// The mirror is run and disturbed; every machine of it is replayed to the same decisions, and no secret is recorded.
pub fn a_recorded_run_is_replayed_exactly<E: Executor>() {
    recorded_and_replayed::<E>(&mut Stage::from_env(), By::Token, None);
}

/// The same, however the client says who it is.
pub fn no_credential_is_recorded<E: Executor>() {
    recorded_and_replayed::<E>(&mut Stage::from_env(), By::TokenFile, None);
    recorded_and_replayed::<E>(&mut Stage::from_env(), By::Certificate, None);
}

/// The same against a real kube-apiserver, whatever the environment says, which is also killed in the middle of it and then
/// forgets its old versions. What is not masked comes as gzip.
pub fn on_a_real_server<E: Executor>(streaming: bool) {
    recorded_and_replayed::<E>(&mut Stage::on(Servers::real()), By::TokenFile, Some(streaming));
}

fn recorded_and_replayed<E: Executor>(stage: &mut Stage, by: By, hard: Option<bool>) {
    let (hard, streaming) = (hard.is_some(), hard.unwrap_or(true));
    let place = Place::new();
    let (kubeconfig, credentials) = credentials(stage, &place, by);
    // ConfigMaps are masked as well where they are mirrored; else they hold what everybody may know.
    let redaction = if hard { Redaction::default() } else { Redaction::default().also("configmaps") };
    let recordings = place.directory().redact(redaction);
    let secret = |n: usize| format!("swordfish-{n}");
    for n in 0..6 {
        ask(stage, "POST", "configmaps", "", Some(&map(&format!("m{n}"), &secret(n))));
    }
    if hard {
        let text = "nothing to hide, and plenty of it\n".repeat(8_000);
        ask(
            stage,
            "POST",
            "configmaps",
            "",
            Some(&json!({"metadata": {"name": "large"}, "data": {"v": text}})),
        );
    }
    let mirror = || plan::controller(Some(NAMESPACE)).concurrency(3);
    let mut options = impatient();
    options.watcher.streaming = streaming;
    let client = E::client(&kubeconfig).unwrap_or_else(|e| panic!("{e}"));
    let manager =
        E::add_plan(E::manager(client, manager::Config::default(), options), mirror().run(Arc::new(Mirror)));
    let running = Running::<E>(E::start(E::record(manager, &recordings)).unwrap_or_else(|e| panic!("{e}")));
    for n in 0..6 {
        mirrored(stage, &running, &format!("m{n}"), &secret(n));
    }
    ask(stage, "PATCH", "configmaps", "m0", Some(&json!({"data": {"v": secret(10)}})));
    mirrored(stage, &running, "m0", &secret(10));
    if hard {
        stage.server.restart().unwrap_or_else(|e| panic!("{e}"));
        ask(stage, "PATCH", "configmaps", "m3", Some(&json!({"data": {"v": secret(11)}})));
        stage.server.compact().unwrap_or_else(|e| panic!("{e}"));
        mirrored(stage, &running, "m3", &secret(11));
    }
    ask(stage, "DELETE", "secrets", "m1", None);
    mirrored(stage, &running, "m1", &secret(1));
    ask(stage, "PATCH", "secrets", "m2", Some(&json!({"data": {"v": "eA=="}})));
    mirrored(stage, &running, "m2", &secret(2));
    ask(stage, "POST", "configmaps", "", Some(&map("m9", &secret(9))));
    mirrored(stage, &running, "m9", &secret(9));
    running.stop();
    recordings.flush().unwrap();

    let (mut kinds, mut compressed) = (BTreeSet::new(), 0);
    for path in steersman_record::recordings(recordings.path()).unwrap_or_else(|e| panic!("{e}")) {
        let recording = steersman_record::read(&path).unwrap_or_else(|e| panic!("{e}"));
        let kind = recording.header.kind;
        let replay = match kind {
            Kind::Controller => Replay::controller(mirror().config().clone(), &recording),
            _ => Replay::of(&recording),
        };
        let compared = replay.and_then(|replay| replay.compare(&recording)).unwrap_or_else(|e| panic!("{e}"));
        assert_eq!(compared.first, None, "{}", path.display());
        assert_eq!((compared.skipped, &recording.end), (0, &End::Whole), "{}", path.display());
        // Of calls, each has a line that makes it.
        assert!(compared.steps > 5 && compared.steps <= recording.records.len() as u64, "{compared:?}");
        kinds.insert(kind.to_string());
        compressed += usize::from(has_gzip(&recording));
    }
    assert_eq!(kinds.into_iter().collect::<Vec<_>>(), ["calls", "controller", "manager", "source"]);
    assert!(compressed > 0 || !hard, "{compressed} recordings of compressed answers");

    let data = (0..12).flat_map(|n| [secret(n), STANDARD.encode(secret(n))]);
    // Of those only the Secrets are masked.
    let hidden: Vec<_> =
        data.skip(usize::from(hard)).step_by(1 + usize::from(hard)).chain(credentials).collect();
    for entry in fs::read_dir(recordings.path()).unwrap_or_else(|e| panic!("{e}")).flatten() {
        let text = fs::read_to_string(entry.path()).unwrap_or_else(|e| panic!("{e}"));
        for hidden in &hidden {
            assert!(!text.contains(hidden.as_str()), "{hidden} stands in {}", entry.path().display());
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
    recordings.flush().unwrap();
    let path = recordings.path().join("controller-configmap");
    let recording = steersman_record::read(&path).unwrap_or_else(|e| panic!("{e}"));
    let error = Replay::of(&recording).map(drop).expect_err("its beginning is gone").to_string();
    assert!(error.contains("its beginning is gone"), "{error}");
    let mut reading = Replay::reading(&recording);
    let last = recording.numbered().last().map(|record| reading.step(record));
    let last = last.unwrap_or_else(|| panic!("no record")).unwrap_or_else(|e| panic!("{e}"));
    assert!(last.number > 24 && last.recorded.iter().any(|line| line.contains("stopped")), "{last:?}");
}
