use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec;
use alloc::vec::Vec;
use core::time::Duration;

use quickcheck::{Arbitrary, Gen, quickcheck};

use super::status::{Board, ManagerPhase};
use super::*;
use crate::api::{ResourceType, Scope};
use crate::controller::stats::ControllerPhase;
use crate::controller::tests::Obj;
use crate::controller::{self, ControllerStatus};
use crate::machine::{Machine, Outputs};
use crate::object::{Dropped, Object};
use crate::source;
use crate::store::{self, Index};
use crate::time::Time;
use crate::watcher::{self, Watcher};

const PODS: ResourceType = ResourceType::new("", "v1", "pods", "Pod", Scope::Namespaced);
const NODES: ResourceType = ResourceType::new("", "v1", "nodes", "Node", Scope::Cluster);
const DEPLOYMENTS: ResourceType =
    ResourceType::new("apps", "v1", "deployments", "Deployment", Scope::Namespaced);

fn spec(name: &str, watches: &[WatchSpec]) -> ControllerSpec {
    ControllerSpec::new(name, watches)
}

#[test]
fn equal_watches_are_one_and_others_are_not() {
    let pods = WatchSpec::all(PODS);
    let all = [
        pods.clone(),
        pods.clone().within("prod"),
        pods.clone().labels("app=web"),
        pods.clone().fields("spec.nodeName=n1"),
        pods.clone().metadata(),
        pods.clone().dropping(Dropped::none()),
        pods.clone().dropping(Dropped::none().and("/status").unwrap()),
        WatchSpec::all(NODES),
        WatchSpec::all(DEPLOYMENTS),
    ];
    let plan = WatchPlan::build(&[spec("a", &all), spec("b", &all)]).unwrap();
    assert_eq!(plan.sources.len(), all.len());
    for ((id, source), n) in plan.iter().zip(0..) {
        assert_eq!(id, WatchId(n));
        assert_eq!(source.spec, all[n as usize]);
        assert_eq!(source.subscribers, [(ControllerId(0), SourceId(n)), (ControllerId(1), SourceId(n))]);
    }
}

#[test]
fn spellings_of_one_watch_are_one() {
    let plan = WatchPlan::build(&[spec(
        "a",
        &[
            WatchSpec::all(NODES),
            WatchSpec::all(NODES).within("prod"),
            WatchSpec::all(NODES).within(""),
            WatchSpec::all(NODES).labels(" "),
        ],
    )])
    .unwrap();
    assert_eq!(plan.sources.len(), 1);
    assert_eq!(plan.sources[0].spec, WatchSpec::all(NODES));
    let subscribers: Vec<_> = (0..4).map(|n| (ControllerId(0), SourceId(n))).collect();
    assert_eq!(plan.sources[0].subscribers, subscribers);
}

#[test]
fn plans_that_cannot_be() {
    let pods = [WatchSpec::all(PODS)];
    let twice = WatchPlan::build(&[spec("a", &pods), spec("b", &pods), spec("a", &pods)]);
    assert_eq!(twice, Err(PlanError::DuplicateName("a".to_string())));
    assert_eq!(WatchPlan::build(&[spec(" ", &pods)]), Err(PlanError::NoName));
    assert_eq!(WatchPlan::build(&[spec("a", &[])]), Err(PlanError::NoWatches("a".to_string())));
    assert_eq!(PlanError::DuplicateName("a".to_string()).to_string(), "two controllers are named \"a\"");
}

#[test]
fn a_watch_has_the_indexes_of_all_its_subscribers() {
    fn node(pod: &Object) -> Option<String> {
        pod.get(&["spec", "nodeName"]).ok()?
    }
    let pods = || WatchSpec::all(PODS);
    let config = |name: &str, index| controller::Config::new(name, DEPLOYMENTS).owns(pods()).index(index);
    let plan = |configs: &[controller::Config<Object>]| {
        WatchPlan::build(&configs.iter().map(ControllerSpec::from).collect::<Vec<_>>())
    };
    let one = config("a", Index::by_owner_uid()).index(Index::new("node", node));
    let other = config("b", Index::new("node", node)).index(Index::label("app"));
    let both = plan(&[one.clone(), other]).unwrap();
    let names = |n: usize| both.sources[n].indexes.iter().map(|i| i.name().to_string()).collect::<Vec<_>>();
    assert_eq!((names(0), names(1)), (vec![], vec!["owner-uid".into(), "node".into(), "label:app".into()]));
    assert_eq!(
        both.sources[1].options(&source::Options::default()).unwrap().indexes,
        both.sources[1].indexes
    );

    let different = Index::new("node", |pod: &Object| Some(pod.name().to_string()));
    let e = plan(&[one, config("b", different.clone())]).unwrap_err();
    assert_eq!(
        e.to_string(),
        "two different indexes of pods.v1 are named \"node\"; share one, or name them apart"
    );
    let mut common = source::Options::default();
    common.indexes.add(different).unwrap();
    assert_eq!(both.sources[1].options(&common).unwrap_err(), e);
}

#[test]
fn specs_come_from_configurations() {
    let config: controller::Config<Object> =
        controller::Config::new("web", DEPLOYMENTS).owns(WatchSpec::all(PODS).within("prod"));
    let spec = ControllerSpec::from(&config);
    assert_eq!(spec.name, "web");
    assert_eq!(spec.watches, [WatchSpec::all(DEPLOYMENTS), WatchSpec::all(PODS).within("prod")]);
    assert_eq!(spec.watches[0].to_string(), "deployments.v1.apps");
    assert_eq!(
        WatchSpec::all(PODS).within("prod").labels("a=b").fields("c=d").metadata().to_string(),
        "pods.v1 in prod, labels a=b, fields c=d, metadata only"
    );
}

struct Bench {
    manager: Manager,
    now: Time,
}

impl Bench {
    fn new(controllers: usize, sources: usize, config: Config) -> Self {
        Self { manager: Manager::with_counts(controllers, sources, config), now: Time::ZERO }
    }

    fn tell(&mut self, input: Input) -> String {
        let mut out = Outputs::new();
        self.manager.handle(self.now, input, &mut out);
        let words: Vec<_> = out
            .into_iter()
            .map(|o| match o {
                Output::StartController(c) => format!("+c{}", c.0),
                Output::StartSource(w) => format!("+w{}", w.0),
                Output::Synced => "synced".to_string(),
                Output::StopController(c, grace) => format!("-c{} {grace:?}", c.0),
                Output::StopSource(w) => format!("-w{}", w.0),
                Output::Exit(reason) => format!("exit {reason:?}"),
            })
            .collect();
        words.join("; ")
    }

    fn wait(&mut self) -> String {
        self.now = self.manager.next_deadline().expect("a deadline").at;
        self.tell(Input::Deadline)
    }
}

const fn ended(n: u32, unfinished: usize) -> Input {
    Input::ControllerStopped { controller: ControllerId(n), unfinished }
}

#[test]
fn controllers_drain_before_watches_end() {
    let mut m = Bench::new(2, 2, Config::default());
    assert_eq!(m.tell(Input::Start), "+c0; +c1; +w0; +w1");
    assert_eq!(m.tell(Input::Start), "");
    assert_eq!(m.tell(Input::SourceSynced(WatchId(1))), "");
    assert_eq!(m.manager.phase().0, ManagerPhase::Syncing);
    assert_eq!(m.tell(Input::SourceSynced(WatchId(0))), "synced");
    assert_eq!(m.tell(Input::SourceSynced(WatchId(0))), "");
    assert_eq!(m.manager.phase().0, ManagerPhase::Running);
    assert_eq!(m.manager.next_deadline(), None);
    assert_eq!(m.tell(Input::Stop), "-c0 Some(30s); -c1 Some(30s)");
    assert_eq!(m.tell(Input::Stop), "");
    assert_eq!(m.tell(ended(1, 0)), "");
    assert_eq!(m.tell(ended(1, 0)), "");
    assert_eq!(m.tell(ended(0, 0)), "-w0; -w1");
    assert_eq!(m.tell(Input::SourceStopped(WatchId(0))), "");
    assert_eq!(m.tell(Input::SourceStopped(WatchId(1))), "exit Stopped");
    assert_eq!(m.manager.phase().0, ManagerPhase::Stopped);
    assert_eq!(m.tell(Input::Kill), "");
}

#[test]
fn the_grace_ends() {
    let mut m = Bench::new(2, 1, Config::default());
    m.tell(Input::Start);
    m.tell(Input::Stop);
    assert_eq!(m.tell(ended(0, 3)), "");
    assert_eq!(m.wait(), "-w0");
    assert_eq!(m.now, Time::from_secs(31));
    assert_eq!(m.wait(), "exit GraceOver { unfinished: 3, silent: [ControllerId(1)] }");
    assert_eq!(m.now, Time::from_secs(32));
    assert_eq!(m.manager.next_deadline(), None);
}

#[test]
fn no_grace_is_for_ever_but_a_second_signal_ends_it() {
    let mut m = Bench::new(1, 1, Config { grace: None, ..Config::default() });
    m.tell(Input::Start);
    assert_eq!(m.tell(Input::Stop), "-c0 None");
    assert_eq!(m.manager.next_deadline(), None);
    assert_eq!(m.tell(Input::Kill), "-c0 Some(0ns); -w0; exit Killed");
}

#[test]
fn the_first_signal_stops_and_a_later_one_kills() {
    let mut m = Bench::new(1, 1, Config::default());
    m.tell(Input::Start);
    assert_eq!(m.tell(Input::Signal), "-c0 Some(30s)");
    assert_eq!(m.tell(Input::Stop), "");
    assert_eq!(m.tell(Input::Signal), "-c0 Some(0ns); -w0; exit Killed");
    assert_eq!(m.tell(Input::Signal), "");

    // Whoever stops it otherwise has not heard a signal yet.
    let mut m = Bench::new(1, 1, Config::default());
    m.tell(Input::Start);
    m.tell(Input::Stop);
    assert_eq!(m.tell(Input::Signal), "");
    assert_eq!(m.tell(Input::Signal), "-c0 Some(0ns); -w0; exit Killed");

    assert_eq!(Bench::new(1, 1, Config::default()).tell(Input::Signal), "exit Stopped");
}

#[test]
fn a_kill_tells_all_that_still_run() {
    let mut m = Bench::new(2, 2, Config::default());
    m.tell(Input::Start);
    assert_eq!(m.tell(Input::Kill), "-c0 Some(0ns); -c1 Some(0ns); -w0; -w1; exit Killed");
    assert_eq!(m.manager.next_deadline(), None);

    let mut m = Bench::new(2, 2, Config::default());
    m.tell(Input::Start);
    m.tell(Input::Stop);
    m.tell(ended(0, 0));
    assert_eq!(m.tell(Input::Kill), "-c1 Some(0ns); -w0; -w1; exit Killed");

    // What never started need not end.
    assert_eq!(Bench::new(2, 2, Config::default()).tell(Input::Kill), "exit Killed");
}

#[test]
fn what_ends_by_itself_ends_everything() {
    let mut m = Bench::new(2, 2, Config::default());
    m.tell(Input::Start);
    assert_eq!(m.tell(ended(1, 0)), "-c0 Some(30s)");
    assert_eq!(m.tell(ended(0, 0)), "-w0; -w1");
    m.tell(Input::SourceStopped(WatchId(0)));
    assert_eq!(m.tell(Input::SourceStopped(WatchId(1))), "exit ControllerEnded(ControllerId(1))");

    let mut m = Bench::new(1, 2, Config::default());
    m.tell(Input::Start);
    assert_eq!(m.tell(Input::SourceStopped(WatchId(1))), "-c0 Some(30s)");
    assert_eq!(m.tell(ended(0, 0)), "-w0");
    let last = m.tell(Input::SourceStopped(WatchId(0)));
    assert_eq!(last, "exit SourceEnded(WatchId(1))");
}

#[test]
fn stopped_before_it_started_or_with_nothing_to_do() {
    assert_eq!(Bench::new(3, 3, Config::default()).tell(Input::Stop), "exit Stopped");
    let mut m = Bench::new(0, 0, Config::default());
    assert_eq!(m.tell(Input::Start), "synced");
    assert_eq!(m.tell(Input::Stop), "exit Stopped");
}

#[test]
fn readiness_names_what_is_missing() {
    let specs = [spec("web", &[WatchSpec::all(PODS), WatchSpec::all(NODES)])];
    let mut board = Board::new(&specs, &WatchPlan::build(&specs).unwrap());
    assert_eq!(
        board.status().ready().unwrap_err(),
        [
            "not started",
            "pods.v1: no first list yet: not started",
            "nodes.v1: no first list yet: not started",
            "controller web: new"
        ]
    );
    board.phase((ManagerPhase::Running, Time::ZERO));
    let mut watcher: Watcher<Obj> = Watcher::new(watcher::Config::default(), 1);
    watcher.handle(Time::ZERO, watcher::Input::Start, &mut Outputs::new());
    let line = |n: usize, synced, error: Option<&str>| status::SourceStatus {
        watch: specs[0].watches[n].clone(),
        path: String::new(),
        watcher: watcher::WatcherStatus { synced, last_error: error.map(String::from), ..watcher.status() },
        objects: 0,
        stale: 0,
        index_panics: 0,
        packed: store::PackedSize::default(),
    };
    board.source(WatchId(0), line(0, true, None));
    board.source(WatchId(1), line(1, false, None));
    board.source(WatchId(9), line(1, false, None));
    let ready = ControllerStatus {
        name: "web".into(),
        phase: ControllerPhase::Running,
        ..ControllerStatus::default()
    };
    board.controller(ControllerId(0), ready);
    assert_eq!(board.status().ready().unwrap_err(), ["nodes.v1: no first list yet: listing"]);
    board.source(WatchId(1), line(1, false, Some("forbidden")));
    assert_eq!(board.status().ready().unwrap_err(), ["nodes.v1: no first list yet: forbidden"]);
    // A failure after the first list does not make it unready.
    board.source(WatchId(1), line(1, true, Some("forbidden")));
    assert_eq!(board.status().ready(), Ok(()));
    let json = serde_json::to_string(board.status()).unwrap();
    let back: status::ManagerStatus = serde_json::from_str(&json).unwrap();
    assert_eq!(&back, board.status());
}

#[derive(Clone, Debug)]
struct Op(Input, u64);

impl Arbitrary for Op {
    fn arbitrary(g: &mut Gen) -> Self {
        let n = u32::arbitrary(g) % 3;
        let input = match u8::arbitrary(g) % 9 {
            0 => Input::Start,
            1 | 2 => Input::SourceSynced(WatchId(n)),
            3 | 4 => Input::SourceStopped(WatchId(n)),
            5 | 6 => ended(n, usize::arbitrary(g) % 2),
            7 => [Input::Stop, Input::Stop, Input::Signal, Input::Kill][usize::arbitrary(g) % 4],
            _ => Input::Deadline,
        };
        Self(input, u64::arbitrary(g) % 40)
    }
}

quickcheck! {
    fn it_exits_once_and_last_whatever_happens(ops: Vec<Op>) -> bool {
        let mut m = Manager::with_counts(2, 2, Config::default());
        let (mut now, mut out, mut over) = (Time::ZERO, Outputs::new(), Vec::new());
        for Op(input, secs) in ops {
            now = now + Duration::from_secs(secs);
            over.push(match input {
                Input::ControllerStopped { controller, .. } => ended(controller.0, 0),
                other => other,
            });
            m.handle(now, input, &mut out);
        }
        m.handle(now, Input::Stop, &mut out);
        while let Some(d) = m.next_deadline() {
            m.handle(d.at, Input::Deadline, &mut out);
            assert!(m.next_deadline().is_none_or(|next| next.at > d.at), "a served deadline returned");
        }
        let all: Vec<_> = out.drain().collect();
        let exits = all.iter().filter(|o| matches!(o, Output::Exit(_))).count();
        let first_source_stop = all.iter().position(|o| matches!(o, Output::StopSource(_)));
        let last_controller_stop = all.iter().rposition(|o| matches!(o, Output::StopController(..)));
        let distinct = [Output::StartController(ControllerId(0)), Output::StartSource(WatchId(1))]
            .iter()
            .all(|o| all.iter().filter(|x| *x == o).count() <= 1);
        // Whatever was started has ended by itself or was told to.
        let told = (0..2).all(|n| {
            let (c, w) = (ControllerId(n), WatchId(n));
            let started = |o: &Output| all.contains(o);
            (!started(&Output::StartController(c))
                || over.contains(&ended(n, 0))
                || all.iter().any(|o| matches!(o, Output::StopController(x, _) if *x == c)))
                && (!started(&Output::StartSource(w))
                    || over.contains(&Input::SourceStopped(w))
                    || all.contains(&Output::StopSource(w)))
        });
        exits == 1
            && told
            && matches!(all.last(), Some(Output::Exit(_)))
            && distinct
            && first_source_stop.is_none_or(|s| last_controller_stop.is_none_or(|c| c < s))
    }
}
