//! One scenario without faults, on the simulator, on threads and on smol: the same requests in the same order.
//!
//! The scenario is the mirror with one reconcile at a time, some ConfigMaps that are there from the beginning, and then one
//! change after another, each when the one before has had its effect. All three are recorded, and what is compared stands in
//! the recordings alone: what each machine wrote to its connections, and when.
//!
//! - of each watch: its requests in order, with their query, and how it was made (what it watches, all its settings);
//! - of the reconciles' calls: method, path, query, headers, body and order;
//! - of all together: the order in which they left. Only the two watches run at the same time: their first requests, which come
//!   before those of any call, may change places, and nothing else may.
//!
//! Written down as alike is what cannot be the same: the server's name, the `User-Agent` of a replica, `timeoutSeconds` (drawn
//! from the seed), and uids, which are numbered as they come. Versions are not: they have to be the same.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use steersman_core::api::kinds::{ConfigMap, Secret};
use steersman_core::api::{Api, DeleteParams, Patch, PatchParams};
use steersman_core::controller::Builder;
use steersman_core::manager;
use steersman_core::object::ObjectMeta;
use steersman_core::record::file::Kind;
use steersman_core::record::replay::Replay;
use steersman_core::record::{Recording, Redaction, SourceMade};
use steersman_core::source::Options;
use steersman_mirror::plan::{self, MIRROR, Mirror};
use steersman_record::Directory;
use steersman_sim::{Cluster, Sim};
use steersman_tests::servers::Servers;
use steersman_tests::suite::stage::{NAMESPACE, Running, Stage, until};
use steersman_tests::suite::{Executor, Smol, Threads};

/// A directory that is gone when it is dropped.
struct Place(PathBuf);

impl Place {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("steersman-same-{}-{name}", std::process::id()));
        drop(fs::remove_dir_all(&path));
        Self(path)
    }

    /// Nothing is masked: there is no secret here, and bodies are compared.
    fn directory(&self) -> Directory {
        let directory = Directory::new(&self.0).unwrap_or_else(|e| panic!("{}: {e}", self.0.display()));
        directory.redact(Redaction::nothing())
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        drop(fs::remove_dir_all(&self.0));
    }
}

fn mirror() -> Builder<ConfigMap> {
    plan::controller(Some(NAMESPACE)).concurrency(1)
}

fn map(name: &str) -> ConfigMap {
    ConfigMap {
        metadata: ObjectMeta::named(NAMESPACE, name).label(MIRROR, "true"),
        data: [("v".to_owned(), format!("{name}, at first"))].into(),
        ..ConfigMap::default()
    }
}

/// What is there when the controller starts.
const GIVEN: [&str; 5] = ["m3", "m0", "m4", "m1", "m2"];

/// What is done then.
#[derive(Clone, Copy)]
enum Change {
    Make(&'static str),
    Set(&'static str),
    Spoil(&'static str),
    Lose(&'static str),
    Unlabel(&'static str),
}

const CHANGES: [Change; 5] =
    [Change::Set("m1"), Change::Lose("m2"), Change::Spoil("m0"), Change::Unlabel("m3"), Change::Make("m9")];

impl Change {
    /// Method, resource, name, body.
    fn request(self) -> (&'static str, &'static str, &'static str, Value) {
        match self {
            Self::Make(name) => {
                ("POST", "configmaps", name, serde_json::to_value(map(name)).unwrap_or_default())
            }
            Self::Set(name) => ("PATCH", "configmaps", name, json!({"data": {"v": "another"}})),
            Self::Spoil(name) => ("PATCH", "secrets", name, json!({"data": {"v": "eA==", "w": "eQ=="}})),
            Self::Lose(name) => ("DELETE", "secrets", name, Value::Null),
            Self::Unlabel(name) => {
                ("PATCH", "configmaps", name, json!({"metadata": {"labels": {MIRROR: null}}}))
            }
        }
    }

    fn name(self) -> &'static str {
        self.request().2
    }

    fn simulated(self, cluster: &mut Cluster<'_>) {
        let (maps, secrets) = (Api::<ConfigMap>::namespaced(NAMESPACE), Api::<Secret>::namespaced(NAMESPACE));
        let (method, resource, name, body) = self.request();
        let patch = Patch::Merge(body);
        let params = PatchParams::default();
        let done = match (method, resource) {
            ("POST", _) => cluster.send(maps.create(&map(name))).map(drop),
            ("PATCH", "configmaps") => cluster.send(maps.patch(name, &patch, &params)).map(drop),
            ("PATCH", _) => cluster.send(secrets.patch(name, &patch, &params)).map(drop),
            _ => cluster.send(secrets.delete(name, &DeleteParams::default())).map(drop),
        };
        done.unwrap_or_else(|e| panic!("{e}"));
    }

    fn real(self, stage: &Stage) {
        let (method, resource, name, body) = self.request();
        let name = if method == "POST" { String::new() } else { format!("/{name}") };
        let path = format!("/api/v1/namespaces/{NAMESPACE}/{resource}{name}");
        let (status, answer) = stage.server.ask(method, &path, (!body.is_null()).then_some(&body));
        assert!((200..300).contains(&status), "{method} {path}: {status} {answer}");
    }
}

/// What a mirror must hold after the first `n` changes; `None`: there must be none.
fn wanted(name: &str, n: usize) -> Option<String> {
    let mut text = GIVEN.contains(&name).then(|| format!("{name}, at first"));
    for change in CHANGES.iter().take(n).filter(|change| change.name() == name) {
        match change {
            Change::Make(_) => text = Some(format!("{name}, at first")),
            Change::Set(_) => text = Some("another".to_owned()),
            Change::Unlabel(_) => text = None,
            Change::Spoil(_) | Change::Lose(_) => {}
        }
    }
    text
}

/// First states by streaming lists, or by plain ones and then a watch.
fn options(streaming: bool) -> Options {
    let mut options = Options::default();
    options.watcher.streaming = streaming;
    options
}

fn names() -> impl Iterator<Item = &'static str> {
    GIVEN.into_iter().chain(["m9"])
}

fn simulated(recordings: Option<&Directory>, seed: u64, streaming: bool) -> u64 {
    let recordings = recordings.cloned();
    let mut sim = Sim::new()
        .replica(move |m| {
            let m = m.controller(mirror().run(Arc::new(Mirror))).sources(options(streaming));
            match &recordings {
                Some(recordings) => m.record(recordings),
                None => m,
            }
        })
        .given(|cluster| GIVEN.iter().for_each(|name| cluster.put(&map(name))))
        .converges_to(|cluster| {
            let right = |name: &&str| {
                let secret = cluster.get::<Secret>(NAMESPACE, name);
                let held = secret.and_then(|s| String::from_utf8(s.data.get("v")?.0.clone()).ok());
                held == wanted(name, CHANGES.len())
            };
            names().find(|name| !right(name)).map_or(Ok(()), |name| Err(format!("{name} is not mirrored")))
        });
    for (n, change) in CHANGES.into_iter().enumerate() {
        sim = sim.change(Duration::from_secs(10 * (n as u64 + 1)), move |cluster| change.simulated(cluster));
    }
    sim.run_with(seed, &[]).unwrap_or_else(|e| panic!("{e}")).fingerprint
}

fn real<E: Executor>(recordings: &Directory, streaming: bool) {
    let stage = Stage::on(Servers::embedded());
    GIVEN.iter().for_each(|name| Change::Make(name).real(&stage));
    let client = E::client(&stage.server.kubeconfig()).unwrap_or_else(|e| panic!("{e}"));
    let manager = E::manager(client, manager::Config::default(), options(streaming));
    let manager = E::record(E::add_plan(manager, mirror().run(Arc::new(Mirror))), recordings);
    let running = Running::<E>(E::start(manager).unwrap_or_else(|e| panic!("{e}")));
    for n in 0..=CHANGES.len() {
        for name in names() {
            let path = format!("/api/v1/namespaces/{NAMESPACE}/secrets/{name}");
            until(
                &format!("the mirror of {name} after change {n}"),
                || format!("{running:?}"),
                || {
                    let data = &stage.server.ask("GET", &path, None).1["data"];
                    // Nothing else may be in it.
                    let held = (data.as_object().map(serde_json::Map::len) == Some(1))
                        .then(|| decoded(data["v"].as_str()?))
                        .flatten();
                    (held == wanted(name, n)).then_some(())
                },
            );
        }
        if let Some(change) = CHANGES.get(n) {
            change.real(&stage);
        }
    }
    running.stop();
    recordings.flush().unwrap();
}

fn decoded(text: &str) -> Option<String> {
    use base64::Engine as _;
    String::from_utf8(base64::engine::general_purpose::STANDARD.decode(text).ok()?).ok()
}

/// What was asked of the server, as the recordings of one run tell it.
#[derive(Debug, Default)]
struct Asked {
    /// How each watch was made, and its requests.
    watches: BTreeMap<String, (Value, Vec<String>)>,
    /// The requests of reconciles, in full.
    calls: Vec<String>,
    /// All, by time: of which recording, and the request.
    all: Vec<(String, String)>,
}

fn asked(directory: &Path) -> Asked {
    let (mut asked, mut timed) = (Asked::default(), Vec::new());
    for path in steersman_record::recordings(directory).unwrap_or_else(|e| panic!("{e}")) {
        let recording = steersman_record::read(&path).unwrap_or_else(|e| panic!("{e}"));
        replays(&recording);
        let name = &recording.header.name;
        match recording.header.kind {
            Kind::Source => {
                let made: SourceMade =
                    serde_json::from_value(recording.header.made.clone()).unwrap_or_else(|e| panic!("{e}"));
                let alien = made.endpoint.host_header.len() + made.endpoint.user_agent.len();
                let written: Vec<_> =
                    steps(&recording).flat_map(|(at, _, out)| requests(at, out, alien)).collect();
                timed.extend(written.iter().map(|(at, line)| (*at, name.clone(), line.clone())));
                let made = json!({"watch": made.watch, "watcher": made.options.watcher});
                let lines = written.into_iter().map(|(_, line)| line).collect();
                asked.watches.insert(name.clone(), (made, lines));
            }
            Kind::Calls => {
                let mut uids = Uids::default();
                let mut aliens = BTreeMap::new();
                for record in values(&recording) {
                    let made = &record["made"];
                    if let Some(number) = made["call"].as_u64() {
                        let made = &made["made"];
                        let of = |name: &str| made["endpoint"][name].as_str().map_or(0, str::len);
                        aliens.insert(number, of("host_header") + of("user_agent"));
                        let parts = ["method", "path", "headers", "body", "idempotent", "what"];
                        let parts: Vec<_> = parts.iter().map(|part| made[part].to_string()).collect();
                        asked.calls.push(uids.numbered(&parts.join(" ")));
                    }
                }
                for (at, call, out) in steps(&recording) {
                    let alien = call.and_then(|call| aliens.get(&call)).copied().unwrap_or_default();
                    timed.extend(requests(at, out, alien).map(|(at, line)| (at, name.clone(), line)));
                }
            }
            _ => {}
        }
    }
    // A stable sort: what one recording has at one moment stays in order.
    timed.sort_by_key(|(at, ..)| *at);
    asked.all = timed.into_iter().map(|(_, name, line)| (name, line)).collect();
    asked
}

/// Every recording is replayed to the same decisions, those of the simulator as well.
fn replays(recording: &Recording) {
    let replay = match recording.header.kind {
        Kind::Controller => Replay::controller(mirror().config().clone(), recording),
        _ => Replay::of(recording),
    };
    let compared = replay.and_then(|replay| replay.compare(recording)).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!((compared.first, compared.skipped), (None, 0), "{}", recording.header.name);
    assert!(compared.steps > 3, "{}", recording.header.name);
}

fn values(recording: &Recording) -> impl Iterator<Item = Value> {
    recording.numbered().map(|(_, json)| serde_json::from_str(json).unwrap_or_else(|e| panic!("{e}")))
}

/// When, of which call, and what the machine said.
fn steps(recording: &Recording) -> impl Iterator<Item = (u64, Option<u64>, Vec<String>)> {
    values(recording).filter_map(|record| {
        let step = &record["step"];
        let out = step["out"].as_array()?.iter().filter_map(|line| Some(line.as_str()?.to_owned())).collect();
        Some((step["at"].as_u64()?, step["call"].as_u64(), out))
    })
}

/// The requests among what was said: method, path, query, and how long they are without what is alien.
fn requests(at: u64, out: Vec<String>, alien: usize) -> impl Iterator<Item = (u64, String)> {
    out.into_iter().filter_map(move |line| {
        let (request, size) = line.strip_prefix("write ")?.split_once(": ")?.1.rsplit_once(" (")?;
        let size: usize = size.split(' ').next()?.parse().ok()?;
        let request = match request.split_once("timeoutSeconds=") {
            None => request.to_owned(),
            Some((before, after)) => {
                let digits = after.bytes().take_while(u8::is_ascii_digit).count();
                let seconds = after[..digits].parse::<u32>().ok()?;
                assert!((290..580).contains(&seconds), "{line}");
                format!("{before}timeoutSeconds=N{}", &after[digits..])
            }
        };
        Some((at, format!("{request} ({} bytes)", size - alien)))
    })
}

/// Numbers for uids, as they come.
#[derive(Default)]
struct Uids(Vec<String>);

impl Uids {
    fn numbered(&mut self, text: &str) -> String {
        let is_uid = |s: &str| {
            s.len() == 36
                && s.bytes().enumerate().all(|(n, b)| match n {
                    8 | 13 | 18 | 23 => b == b'-',
                    _ => b.is_ascii_hexdigit(),
                })
        };
        let (mut out, mut at) = (String::new(), 0);
        while let Some(c) = text[at..].chars().next() {
            if let Some(uid) = text.get(at..at + 36).filter(|s| is_uid(s)) {
                let n = self.0.iter().position(|u| u == uid).unwrap_or_else(|| {
                    self.0.push(uid.to_owned());
                    self.0.len() - 1
                });
                out.push_str(&format!("uid-{n}"));
                at += 36;
            } else {
                out.push(c);
                at += c.len_utf8();
            }
        }
        out
    }
}

/// The order of all, with the requests of the watches that come before the first call put in order: they are concurrent.
fn order(asked: &Asked) -> Vec<(String, String)> {
    let mut all = asked.all.clone();
    let first = all.iter().position(|(name, _)| name == "calls").unwrap_or(all.len());
    all[..first].sort();
    all
}

fn the_same_everywhere(streaming: bool) {
    let [sim, threads, smol] = ["sim", "threads", "smol"].map(|on| Place::new(&format!("{on}-{streaming}")));
    let (sim, threads, smol) = (sim.directory(), threads.directory(), smol.directory());
    simulated(Some(&sim), 1, streaming);
    sim.flush().unwrap();
    real::<Threads>(&threads, streaming);
    real::<Smol>(&smol, streaming);
    let sim = asked(sim.path());
    // Five mirrors made, and one request for each change.
    assert_eq!((sim.watches.len(), sim.calls.len()), (2, GIVEN.len() + CHANGES.len()), "{sim:#?}");
    let of_watches = if streaming { 2 } else { 4 };
    assert_eq!(sim.all.len(), sim.calls.len() + of_watches, "{sim:#?}");
    assert!(order(&sim)[of_watches..].iter().all(|(name, _)| name == "calls"), "{sim:#?}");
    for (name, other) in [("threads", asked(threads.path())), ("smol", asked(smol.path()))] {
        assert_eq!(sim.watches, other.watches, "{name}: the watches");
        assert_eq!(sim.calls, other.calls, "{name}: the requests of reconciles");
        assert_eq!(order(&sim), order(&other), "{name}: the order of all");
    }
}

#[test]
fn the_same_requests_in_the_same_order() {
    the_same_everywhere(true);
}

#[test]
fn the_same_requests_in_the_same_order_by_plain_lists() {
    the_same_everywhere(false);
}

/// Neither the seed, which makes other networks, nor being watched changes what is asked for.
#[test]
fn no_seed_makes_other_requests() {
    let mut first = None;
    for seed in 1..12 {
        let place = Place::new(&format!("seed-{seed}"));
        let directory = place.directory();
        let fingerprint = simulated(Some(&directory), seed, true);
        directory.flush().unwrap();
        let asked = asked(directory.path());
        let order = order(&asked);
        let (watches, calls, all) =
            first.get_or_insert_with(|| (asked.watches.clone(), asked.calls.clone(), order.clone()));
        assert_eq!((&*watches, &*calls, &*all), (&asked.watches, &asked.calls, &order), "seed {seed}");
        assert_eq!(fingerprint, simulated(None, seed, true), "seed {seed}");
    }
}
