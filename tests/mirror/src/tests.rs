//! The whole harness over a pure API server and a crude executor, right and wrong ones.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use steersman_apiserver::machine::{self, ApiRequest, ApiServer};
use steersman_core::api::kinds::{CONFIGMAPS, SECRETS};
use steersman_core::api::{Answer, Api, List, ListParams, Method, Raw, Request, ResourceType, Status};
use steersman_core::client::{Error, ErrorKind, ExchangeError, ExchangeErrorKind};
use steersman_core::config::Config;
use steersman_core::controller::plan::{PlanOutput, PlanRun};
use steersman_core::controller::stats::ControllerPhase;
use steersman_core::controller::{Outcome, Priority, ReconcileId, Run};
use steersman_core::machine::{Machine as _, Outputs};
use steersman_core::manager::status::{ControllerStatus, ManagerPhase, ManagerStatus};
use steersman_core::net::ConnId;
use steersman_core::object::{Key, Object, Resource as _};
use steersman_core::store::{Snapshot, Store};
use steersman_core::time::{Time, UnixMillis};
use steersman_core::watcher::Event;

use crate::args::Args;
use crate::changes::items;
use crate::{Controller, Executor, Failed, Job, Report, run};

/// An API server that is called, not connected to.
struct World {
    server: ApiServer,
    next: u64,
    since: Instant,
}

impl World {
    fn shared() -> Arc<Mutex<Self>> {
        let options = machine::Options {
            open: true,
            background_delay: Duration::from_millis(1),
            ..machine::Options::default()
        };
        let server = ApiServer::new(options, UnixMillis(0));
        Arc::new(Mutex::new(Self { server, next: 1, since: Instant::now() }))
    }

    fn handle(&mut self, input: machine::Input) -> Vec<machine::Output> {
        let mut out = Outputs::new();
        let now = Time::from_nanos(self.since.elapsed().as_nanos() as u64);
        while self.server.next_deadline().is_some_and(|d| d.at <= now) {
            self.server.handle(now, machine::Input::Deadline { wall: UnixMillis(0) }, &mut out);
        }
        self.server.handle(now, input, &mut out);
        out.drain().collect()
    }

    fn ask<R>(&mut self, request: &Request<R>) -> (u16, Vec<u8>) {
        let mut api = ApiRequest::new(request.method.as_str(), &request.path_and_query);
        api.headers.clone_from(&request.headers);
        api.body = request.body.clone().unwrap_or_default();
        let conn = ConnId(self.next);
        self.next += 1;
        let outputs = self.handle(machine::Input::Request { conn, wall: UnixMillis(0), request: api });
        let answer = outputs.into_iter().find_map(|output| match output {
            machine::Output::Respond { conn: c, status, body, .. } if c == conn => {
                Some((status, body.to_vec()))
            }
            _ => None,
        });
        answer.expect("the server answers at once")
    }
}

fn send<R: Answer>(world: &Mutex<World>, request: &Request<R>) -> Result<R, Error> {
    let (code, body) = world.lock().unwrap_or_else(PoisonError::into_inner).ask(request);
    if (200..300).contains(&code) {
        return R::decode(&body)
            .map_err(|e| Error::new(ErrorKind::Decode(e.to_string()), &*request.what, "here"));
    }
    let status = Status::from_response(code, Some("application/json"), &body);
    match R::refused(&status) {
        Some(answer) => Ok(answer),
        None => Err(Error::new(ErrorKind::Api(status), &*request.what, "here")),
    }
}

/// Right.
const RIGHT: u8 = 0;
/// Its repairs never reach the server.
const NO_REPAIRS: u8 = 1;
/// It takes foreign Secrets away.
const ROBBER: u8 = 2;
/// It writes whenever it runs.
const RESTLESS: u8 = 3;
/// It never runs.
const IDLE: u8 = 4;

/// Lists all over and over, and runs the plan for whatever changed.
struct Crude<const FAULT: u8>;

struct Running {
    stop: Arc<AtomicBool>,
    status: Arc<Mutex<ManagerStatus>>,
    thread: JoinHandle<()>,
}

impl<const FAULT: u8> Executor for Crude<FAULT> {
    type Client = Arc<Mutex<World>>;
    type Running = Running;

    fn connect(_: Config) -> Result<Self::Client, String> {
        Ok(World::shared())
    }

    fn send<R: Answer + Send + 'static>(client: &Self::Client, request: Request<R>) -> Result<R, Error> {
        send(client, &request)
    }

    fn start(client: &Self::Client, controller: Controller) -> Result<Running, String> {
        let (stop, status) =
            (Arc::new(AtomicBool::new(false)), Arc::new(Mutex::new(ManagerStatus::default())));
        let (world, over, board) = (Arc::clone(client), Arc::clone(&stop), Arc::clone(&status));
        let thread = thread::spawn(move || {
            let mut rounds = Rounds::<FAULT> {
                world,
                controller,
                seen: BTreeMap::new(),
                line: ControllerStatus::default(),
            };
            while !over.load(Ordering::Relaxed) {
                rounds.round();
                *board.lock().unwrap() = ManagerStatus {
                    phase: ManagerPhase::Running,
                    controllers: vec![rounds.line.clone()],
                    ..ManagerStatus::default()
                };
                thread::yield_now();
            }
        });
        Ok(Running { stop, status, thread })
    }

    fn status(running: &Running) -> ManagerStatus {
        running.status.lock().unwrap().clone()
    }

    fn stop(running: Running) -> Result<(), String> {
        running.stop.store(true, Ordering::Relaxed);
        running.thread.join().map_err(|_| "it panicked".to_owned())
    }
}

struct Rounds<const FAULT: u8> {
    world: Arc<Mutex<World>>,
    controller: Controller,
    seen: BTreeMap<Key, (String, Option<String>)>,
    line: ControllerStatus,
}

impl<const FAULT: u8> Rounds<FAULT> {
    fn view(&self, resource: ResourceType) -> Snapshot<Object> {
        let namespace = self.controller.config.sources[0].watch.namespace.clone().unwrap();
        let list: List<Object> =
            send(&self.world, &Api::dynamic(resource).within(namespace).list(&ListParams::default()))
                .unwrap();
        let (mut store, mut changes) = (Store::new(), Vec::new());
        store.apply(Event::Init, &mut changes);
        for object in list.items {
            store.apply(Event::InitApply(object), &mut changes);
        }
        store.apply(Event::InitDone { resource_version: list.metadata.resource_version }, &mut changes);
        store.snapshot()
    }

    fn round(&mut self) {
        self.line.phase = ControllerPhase::Running;
        let (maps, secrets) = (self.view(CONFIGMAPS), self.view(SECRETS));
        let views: Arc<[_]> = Arc::new([maps.clone(), secrets.clone(), secrets.clone()]);
        for map in maps.values().filter(|_| FAULT != IDLE) {
            let version = |o: Object| o.resource_version().to_owned();
            let versions = (version(map.clone()), secrets.get(&map.key()).map(version));
            if self.seen.get(&map.key()) == Some(&versions) {
                continue;
            }
            self.line.queued = 1;
            let (outcome, wrote) = self.reconcile(&map, &views);
            match outcome {
                Outcome::AwaitChange => self.line.results.success += 1,
                Outcome::Terminal(_) => self.line.results.terminal += 1,
                _ => self.line.results.error += 1,
            }
            // After a write the next lists decide.
            if !wrote {
                self.seen.insert(map.key(), versions);
            }
            self.line.queued = 0;
        }
    }

    fn reconcile(&self, map: &Object, views: &Arc<[Snapshot<Object>]>) -> (Outcome, bool) {
        let run = Run {
            id: ReconcileId(0),
            key: map.key(),
            object: map.clone(),
            views: Arc::clone(views),
            since: Time::ZERO,
            attempt: 1,
            priority: Priority::default(),
        };
        let (mut run, mut next) = PlanRun::start(Arc::clone(&self.controller.reconcile), run);
        let mut wrote = false;
        let outcome = loop {
            match next {
                PlanOutput::Send(requests) => {
                    wrote = true;
                    let answers = requests.iter().map(|request| match request.method {
                        Method::Patch if FAULT == NO_REPAIRS => Ok(Raw(b"{}".to_vec())),
                        _ => send(&self.world, request),
                    });
                    next = run.answered(answers.collect());
                }
                PlanOutput::Finished(outcome) => break outcome,
            }
        };
        let api = Api::dynamic(SECRETS).within(map.namespace().unwrap_or_default());
        if FAULT == ROBBER && matches!(outcome, Outcome::Terminal(_)) {
            let _ = send(&self.world, &api.delete(map.name(), &Default::default()));
        }
        if FAULT == RESTLESS && map.name().ends_with('7') {
            let mark = self.line.results.success.to_string();
            let patch = serde_json::json!({"metadata": {"annotations": {"mark": mark}}});
            let _ = send(
                &self.world,
                &api.patch(map.name(), &steersman_core::api::Patch::Merge(patch), &Default::default()),
            );
        }
        (outcome, wrote)
    }
}

fn go<const FAULT: u8>(objects: usize, deadline: Duration) -> Result<Report, Failed> {
    let world = World::shared();
    let args = Args { objects, deadline, ..Args::default() };
    let interrupted = AtomicBool::new(false);
    let result = run::<Crude<FAULT>>(&Job {
        hand: &world,
        controller: &world,
        relay: None,
        args: &args,
        seed: 7,
        place: "nowhere".into(),
        tidy: true,
        interrupted: &interrupted,
    });
    // However it ended, nothing is left.
    let end = Instant::now() + AMPLE;
    for resource in [CONFIGMAPS, SECRETS] {
        let list = Api::dynamic(resource).list(&ListParams::default());
        while send(&world, &list).unwrap().items.iter().any(|o| o.namespace() != Some("kube-system")) {
            assert!(Instant::now() < end, "something was left");
            thread::yield_now();
        }
    }
    result
}

const AMPLE: Duration = Duration::from_secs(60);
const SHORT: Duration = Duration::from_millis(700);

#[test]
fn a_right_executor_converges_whatever_the_number_of_objects() {
    for objects in [1, 5, 60] {
        let report = go::<RIGHT>(objects, AMPLE).unwrap();
        assert_eq!((report.objects, report.checked), (objects, objects));
        assert!(report.convergence >= report.first_sync);
    }
}

#[test]
fn wrong_executors_are_found_out() {
    let failure = |result: Result<Report, Failed>| match result {
        Err(Failed::Error(line)) => line,
        other => panic!("{other:?}"),
    };
    let line = failure(go::<NO_REPAIRS>(60, SHORT));
    assert!(line.starts_with("not converged within") && line.contains(": other data"), "{line}");
    let line = failure(go::<ROBBER>(60, SHORT));
    assert!(
        line.contains("1 of 60 are wrong: map-") && line.contains(": foreign, but was changed"),
        "{line}"
    );
    let line = failure(go::<RESTLESS>(60, Duration::from_secs(2)));
    assert!(line.contains("does not come to rest"), "{line}");
    let line = failure(go::<IDLE>(60, SHORT));
    assert!(line.contains("was not made in time"), "{line}");
}

/// Its client answers every request with the same error, and counts.
struct Far;

impl Executor for Far {
    type Client = (AtomicUsize, ExchangeErrorKind);
    type Running = ();

    fn connect(_: Config) -> Result<Self::Client, String> {
        Ok((AtomicUsize::new(0), ExchangeErrorKind::Connect))
    }

    fn send<R: Answer + Send + 'static>(client: &Self::Client, request: Request<R>) -> Result<R, Error> {
        client.0.fetch_add(1, Ordering::Relaxed);
        let e = ExchangeError { kind: client.1, message: "kube:6443: as it is".into() };
        Err(Error::new(ErrorKind::Net(e), &*request.what, "kube:6443"))
    }

    fn start(_: &Self::Client, _: Controller) -> Result<(), String> {
        Ok(())
    }

    fn status((): &()) -> ManagerStatus {
        ManagerStatus::default()
    }

    fn stop((): ()) -> Result<(), String> {
        Ok(())
    }
}

#[test]
fn what_the_client_repeats_itself_is_not_repeated_again() {
    for (kind, tries) in [(ExchangeErrorKind::Connect, 1), (ExchangeErrorKind::Broken, 5)] {
        let client = (AtomicUsize::new(0), kind);
        let result = run::<Far>(&Job {
            hand: &client,
            controller: &client,
            relay: None,
            args: &Args { objects: 1, deadline: AMPLE, ..Args::default() },
            seed: 7,
            place: "nowhere".into(),
            tidy: false,
            interrupted: &AtomicBool::new(false),
        });
        let Err(Failed::Error(line)) = result else { panic!("{result:?}") };
        assert!(line.contains("kube:6443: as it is"), "{line}");
        assert_eq!(client.0.into_inner(), tries, "{kind:?}");
    }
}

#[test]
fn a_run_is_repeated_by_its_seed() {
    let look = |seed| format!("{:?}", items(100, seed));
    assert_eq!(look(1), look(1));
    assert_ne!(look(1), look(2));
}
