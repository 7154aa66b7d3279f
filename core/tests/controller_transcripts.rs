//! The controller, told and answered in text.
//!
//! A transcript is a list of inputs, each at a time, with what followed from it indented below. Run with
//! `STEERSMAN_BLESS=1` to rewrite what followed; then read the difference.
//!
//! ```text
//! config concurrency=2 timeout=10  settings, first; source 0 are webs, source 1 the pods that they own
//! @0 start                         an input at a time in seconds
//! @+1.5 apply 1 p/x:7:a            ... or that long after the one before; objects are key:version[:owner]
//! @+0 list 0 p/a:1 p/b:2           a full state
//! @+0 wrote 3 1 p/x:9              a run has written an object of a source: key:version, or key: for gone
//! @+0 done 3 requeue=60            a run ends: ok, requeue=, error, terminal, panic
//! next                             the next deadline
//! status                           the figures
//! ```

#![expect(clippy::disallowed_methods, reason = "the test reads and rewrites its files; the core does not")]

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;
use std::time::Duration;
use std::{env, fs};

use steersman_core::api::{ResourceType, Scope, Written, WrittenState};
use steersman_core::controller::{
    Config, Controller, Input, Notice, Outcome, Output, Priority, ReconcileId, SourceId,
};
use steersman_core::machine::{Machine, Outputs};
use steersman_core::object::{Key, OwnerReference, Resource};
use steersman_core::store::{Delta, Store};
use steersman_core::time::Time;
use steersman_core::watcher::Event;

const WEBS: ResourceType = ResourceType::new("shop.io", "v1", "webs", "Web", Scope::Namespaced);
const PODS: ResourceType = ResourceType::new("", "v1", "pods", "Pod", Scope::Namespaced);

#[derive(Clone, Debug, PartialEq)]
struct Obj {
    key: Key,
    uid: String,
    version: String,
    owner: Option<OwnerReference>,
}

impl Resource for Obj {
    fn key(&self) -> Key {
        self.key.clone()
    }
    fn uid(&self) -> &str {
        &self.uid
    }
    fn resource_version(&self) -> &str {
        &self.version
    }
    fn each_owner(&self, each: &mut dyn FnMut(&OwnerReference)) {
        self.owner.iter().for_each(each);
    }
}

impl Obj {
    fn parse(text: &str) -> Self {
        let mut parts = text.split(':').map(str::to_string);
        let key = parts.next().unwrap();
        let version = parts.next().expect("a version");
        let owner = parts.next().map(|name| OwnerReference {
            api_version: WEBS.api_version(),
            kind: WEBS.kind.to_string(),
            name,
            controller: Some(true),
            ..OwnerReference::default()
        });
        let Ok(parsed) = key.parse();
        Self { key: parsed, uid: key, version, owner }
    }
}

fn duration(text: &str) -> Duration {
    Duration::from_secs_f64(text.parse().unwrap_or_else(|_| panic!("not seconds: {text}")))
}

fn seconds(d: Duration) -> f64 {
    d.as_secs_f64()
}

struct Player {
    controller: Controller<Obj>,
    stores: [Store<Obj>; 2],
    now: Time,
}

impl Player {
    fn new(settings: &str) -> Self {
        let mut config = Config::new("web", WEBS).owns(PODS);
        for (name, value) in settings.split_whitespace().filter_map(|s| s.split_once('=')) {
            match name {
                "concurrency" => config.concurrency = value.parse().unwrap(),
                "timeout" => config.reconcile_timeout = Some(duration(value)),
                "debounce" => config.debounce = duration(value),
                _ => panic!("no such setting: {name}"),
            }
        }
        Self { controller: Controller::new(config, 1), stores: [Store::new(), Store::new()], now: Time::ZERO }
    }

    fn events(&mut self, source: &str, events: Vec<Event<Obj>>) -> Input<Obj> {
        let n: usize = source.parse().unwrap();
        let store = &mut self.stores[n];
        let mut changes = Vec::new();
        for event in events {
            store.apply(event, &mut changes);
        }
        let delta = Delta {
            changes: changes.into(),
            view: store.snapshot(),
            synced: store.is_synced(),
            resource_version: store.resource_version().into(),
            received: self.now,
        };
        Input::Delta { source: SourceId(u32::try_from(n).unwrap()), delta }
    }

    fn input(&mut self, line: &str) -> Input<Obj> {
        let mut words = line.split_whitespace();
        let verb = words.next().unwrap();
        let mut word = || words.next().unwrap_or("");
        match verb {
            "start" => Input::Start,
            "list" => {
                let source = word();
                let objects: Vec<_> = words.map(Obj::parse).collect();
                let version = objects.iter().filter_map(|o| o.version.parse::<u64>().ok()).max().unwrap_or(1);
                let mut events = vec![Event::Init];
                events.extend(objects.into_iter().map(Event::InitApply));
                events.push(Event::InitDone { resource_version: version.to_string() });
                self.events(source, events)
            }
            "apply" => {
                let source = word();
                let object = Obj::parse(word());
                self.events(source, vec![Event::Apply(object)])
            }
            "delete" => {
                let source = word();
                let object = Obj::parse(word());
                self.events(source, vec![Event::Delete(object)])
            }
            "trigger" => {
                let Ok(key) = word().parse();
                Input::Trigger { key, priority: Priority::NORMAL }
            }
            "wrote" => {
                let id = ReconcileId(word().parse().unwrap());
                let of = if word() == "0" { WEBS } else { PODS };
                let (name, version) = word().split_once(':').expect("a version, or none");
                let Ok(key) = name.parse();
                let now = match version {
                    "" => WrittenState::Gone,
                    at => WrittenState::At(at.into()),
                };
                let (group, plural, uid) = (of.group.to_string(), of.plural.to_string(), name.into());
                Input::Wrote { id, write: Written { group, plural, key, uid, labels: BTreeMap::new(), now } }
            }
            "done" => {
                let id = ReconcileId(word().parse().unwrap());
                let outcome = match word() {
                    "ok" => Outcome::AwaitChange,
                    "error" => Outcome::Error("no".into()),
                    "terminal" => Outcome::Terminal("never".into()),
                    "panic" => Outcome::Panicked("boom".into()),
                    other => Outcome::Requeue(duration(other.strip_prefix("requeue=").expect("an outcome"))),
                };
                Input::Done { id, outcome, started: self.now }
            }
            "stop" => Input::Stop { grace: Some(word()).filter(|w| !w.is_empty()).map(duration) },
            _ => panic!("no such input: {line}"),
        }
    }

    fn play(&mut self, input: Input<Obj>, log: &mut String) {
        let mut out = Outputs::new();
        self.controller.handle(self.now, input, &mut out);
        for output in out {
            let line = match output {
                Output::Run(run) => format!(
                    "run {} {}:{} attempt {} priority {} since {}",
                    run.id,
                    run.key,
                    run.object.version,
                    run.attempt,
                    run.priority.0,
                    seconds(run.since.since(Time::ZERO))
                ),
                Output::Abandon(id) => format!("abandon {id}"),
                Output::Ready => "ready".into(),
                Output::Stopped { unfinished } => format!("stopped, {unfinished} unfinished"),
                Output::Notice(Notice::Failed { id, key, error, panicked, failures, retry_in }) => {
                    let how = if panicked { "panicked" } else { "failed" };
                    let again =
                        retry_in.map_or_else(|| "no pause".into(), |d| format!("again in {}", seconds(d)));
                    format!("notice {id} {key} {how} ({failures}), {again}: {error}")
                }
                Output::Notice(Notice::GaveUp { id, key, error }) => {
                    format!("notice {id} {key} gave up: {error}")
                }
                Output::Notice(Notice::TimedOut { id, key, after }) => {
                    format!("notice {id} {key} runs for {}", seconds(after))
                }
                Output::Notice(Notice::NotShown { key, source, object, after }) => {
                    format!("notice {object} not shown to {key} by {} for {}", source.0, seconds(after))
                }
                Output::Notice(Notice::WaitingForSources(ids)) => format!("notice waiting for {ids:?}"),
                other => format!("{other:?}"),
            };
            let _ = writeln!(log, "  {line}");
        }
    }

    fn status(&self) -> String {
        let s = self.controller.status();
        format!(
            "{:?}: {} queued, {} waiting, {} running; ok {}, requeue {}, error {}, terminal {}, panic {}, timeout {}, vanished {}",
            s.phase,
            s.queued,
            s.waiting,
            s.running,
            s.results.success,
            s.results.requeue_after,
            s.results.error,
            s.results.terminal,
            s.results.panicked,
            s.timeouts,
            s.vanished
        )
    }
}

fn replay(text: &str) -> String {
    let settings = text.lines().find_map(|l| l.strip_prefix("config ")).unwrap_or("");
    let mut player = Player::new(settings);
    let mut log = String::new();
    for line in text.lines().filter(|l| !l.starts_with("  ")) {
        log.push_str(line);
        log.push('\n');
        if line == "next" {
            match player.controller.next_deadline() {
                None => log.push_str("  no deadline\n"),
                Some(d) => {
                    let _ = writeln!(log, "  @{} {}", seconds(d.at.since(Time::ZERO)), d.why);
                    player.now = d.at;
                    player.play(Input::Deadline, &mut log);
                    let after = player.controller.next_deadline();
                    assert!(after.is_none_or(|a| a.at > d.at), "a served deadline came back: {line}\n{log}");
                }
            }
        } else if line == "status" {
            let _ = writeln!(log, "  {}", player.status());
        } else if let Some((at, text)) = line.strip_prefix('@').and_then(|l| l.split_once(' ')) {
            player.now = match at.strip_prefix('+') {
                Some(more) => player.now + duration(more),
                None => Time::ZERO + duration(at),
            };
            let input = player.input(text);
            player.play(input, &mut log);
        }
    }
    log
}

#[test]
fn transcripts() {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/transcripts/controller");
    let mut files: Vec<_> = fs::read_dir(&dir).unwrap().map(|f| f.unwrap().path()).collect();
    files.sort();
    assert!(files.len() >= 6, "the transcripts are gone");
    let mut failed = Vec::new();
    for file in files {
        let text = fs::read_to_string(&file).unwrap();
        let now = replay(&text);
        assert_eq!(now, replay(&text), "not the same twice: {}", file.display());
        if now == text {
            continue;
        }
        if env::var_os("STEERSMAN_BLESS").is_some() {
            fs::write(&file, now).unwrap();
            continue;
        }
        let at = now.lines().zip(text.lines()).position(|(a, b)| a != b);
        let at = at.unwrap_or_else(|| now.lines().count().min(text.lines().count()));
        failed.push(format!(
            "{}:{}\n  expected: {}\n  got:      {}",
            file.display(),
            at + 1,
            text.lines().nth(at).unwrap_or("(end)"),
            now.lines().nth(at).unwrap_or("(end)"),
        ));
    }
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}
