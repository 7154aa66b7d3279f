//! The run: make, start, disturb, wait, compare, stop, tidy up.

use std::io::{self, Write as _};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use steersman_core::api::kinds::{ConfigMap, Namespace, Secret};
use steersman_core::api::{
    Answer, Api, DeleteParams, Deleted, Kind, List, ListParams, Patch, PatchParams, Request,
};
use steersman_core::client::Error;
use steersman_core::object::ObjectMeta;
use steersman_core::rng::Rng;

use crate::args::Args;
use crate::changes::{Break, Fate, Item, items, summary};
use crate::check::{Verdict, compare};
use crate::plan::{self, Mirror};
use crate::relay::Relay;
use crate::report::{Report, Sums, peak_rss_kib};
use crate::{Controller, Executor};

/// Requests in flight while many objects are made.
const IN_FLIGHT: usize = 16;
/// Objects on a page of a list.
const PAGE: u32 = 500;
/// Between two looks at what changes by itself.
const LOOK: Duration = Duration::from_millis(20);
/// Between two comparisons of everything: at least, and at most if the controller is busy or sees nothing new.
const COMPARE: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(1));
/// So long nothing may run after all is as it should be, or something is written without need.
const REST: Duration = Duration::from_millis(250);
/// Within this time it must come to rest.
const REST_WITHIN: Duration = Duration::from_secs(10);
/// How often a request is sent whose fate is unknown.
const TRIES: u32 = 5;
/// With killed connections the changes are spread over this time, so that there is something to disturb.
const SPREAD: Duration = Duration::from_secs(4);
/// Between two kills. After the last change each pause is twice as long as the one before, or the pauses of the watches
/// would grow and grow.
const KILLS: (Duration, Duration) = (Duration::from_millis(50), Duration::from_millis(600));
/// How long tidying up may take.
const TIDY: Duration = Duration::from_secs(30);

/// What a run needs.
pub struct Job<'a, E: Executor> {
    /// The harness's own client.
    pub hand: &'a E::Client,
    /// The controller's client.
    pub controller: &'a E::Client,
    /// What the controller's connections go through, if they are to be killed.
    pub relay: Option<&'a Relay>,
    /// What was asked for.
    pub args: &'a Args,
    /// The seed.
    pub seed: u64,
    /// Where this takes place, for people.
    pub place: String,
    /// Whether what was made must be removed.
    pub tidy: bool,
    /// Set when the user wants an end.
    pub interrupted: &'a AtomicBool,
}

/// Why a run did not go well.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failed {
    /// The user wanted an end.
    Interrupted,
    /// One line for people.
    Error(String),
}

impl From<String> for Failed {
    fn from(line: String) -> Self {
        Self::Error(line)
    }
}

impl From<Error> for Failed {
    fn from(e: Error) -> Self {
        Self::Error(e.to_string())
    }
}

/// Makes, runs, disturbs and compares. Progress goes to standard error.
///
/// # Errors
/// One line: what could not be done, or what was not as it should be in time.
pub fn run<E: Executor>(job: &Job<'_, E>) -> Result<Report, Failed> {
    let namespace = format!("mirror-{:08x}", Rng::new(job.seed).next_u64() >> 32);
    let started = Instant::now();
    let mut run = Run::<E> {
        job,
        hand: Hand { client: job.hand, interrupted: job.interrupted, end: started + job.args.deadline },
        namespace,
        started,
        items: items(job.args.objects, job.seed),
        stage: Mutex::new(("connecting", 0)),
        done: AtomicUsize::new(0),
        running: OnceLock::new(),
        wrong: Mutex::default(),
        kills: AtomicUsize::new(0),
        calm: AtomicBool::new(false),
    };
    run.line(&format!(
        "{} ConfigMaps in namespace {} of {}; seed {}",
        run.items.len(),
        run.namespace,
        job.place,
        job.seed
    ));
    let namespace = Namespace { metadata: ObjectMeta::named("", &run.namespace), ..Namespace::default() };
    run.hand.create(&Api::<Namespace>::cluster().create(&namespace))?;
    let result = run.work();
    let status = run.running.get().map(E::status);
    let stopped = run.stop();
    let tidied = if job.tidy { run.tidy() } else { Ok(()) };
    let mut report = result?;
    stopped?;
    tidied?;
    report.status = status.unwrap_or_default();
    report.peak_rss_kib = peak_rss_kib();
    Ok(report)
}

struct Run<'a, E: Executor> {
    job: &'a Job<'a, E>,
    hand: Hand<'a, E>,
    namespace: String,
    started: Instant,
    items: Vec<Item>,
    /// What goes on, and how many steps it has; 0 if nobody knows.
    stage: Mutex<(&'static str, usize)>,
    done: AtomicUsize,
    running: OnceLock<E::Running>,
    /// What the last comparison found.
    wrong: Mutex<String>,
    /// Connections that were killed.
    kills: AtomicUsize,
    /// The last change was made.
    calm: AtomicBool,
}

impl<E: Executor> Run<'_, E> {
    fn work(&self) -> Result<Report, Failed> {
        thread::scope(|scope| {
            // Both threads end when their sender is dropped, however this ends.
            let (_progress, tick) = channel();
            scope.spawn(move || self.tell(&tick));

            self.stage("creating", self.items.len());
            let all: Vec<&Item> = self.items.iter().collect();
            self.each(&all, |item| {
                if let Some(obstacle) = item.obstacle(&self.namespace) {
                    self.hand.create(&obstacle)?;
                }
                self.hand.create(&item.create(&self.namespace))
            })?;
            self.line(&format!("created; then {}", summary(&self.items)));

            let (kills, calm) = (&self.kills, &self.calm);
            let (_killer, tick) = channel();
            if let Some(relay) = self.job.relay {
                // Another sequence than the one of the items.
                let rng = Rng::new(self.job.seed).fork();
                scope.spawn(move || kill(relay, rng, &tick, kills, calm));
            }

            self.stage("changing", self.items.iter().filter(|item| item.fate != Fate::Stays).count());
            let start = Instant::now();
            let controller: Controller = plan::controller(Some(&self.namespace))
                .concurrency(self.job.args.concurrency)
                .run(Arc::new(Mirror));
            let running = E::start(self.job.controller, controller)?;
            let running = self.running.get_or_init(|| running);

            // The changes begin at once, in the middle of the first lists.
            let (first_sync, changed) = thread::scope(|scope| {
                let changes = scope.spawn(|| self.change());
                let first_sync = self.await_sync(running, start);
                (first_sync, changes.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
            });
            let (first_sync, last_change) = (first_sync?, changed?);

            calm.store(true, Ordering::Relaxed);
            self.stage("converging", 0);
            let (checked, converged) = self.await_convergence(running)?;
            lock(&self.wrong).clear();
            self.stage("resting", 0);
            self.await_rest(running)?;
            Ok(Report {
                objects: self.items.len(),
                checked,
                first_sync,
                convergence: converged - start,
                after_last_change: converged - last_change,
                killed: self.job.relay.map(|_| kills.load(Ordering::Relaxed)),
                embedded: !self.job.tidy,
                seed: self.job.seed,
                ..Report::default()
            })
        })
    }

    /// Does `step` for every item, several at a time; the first error ends it.
    fn each(&self, items: &[&Item], step: impl Fn(&Item) -> Result<(), Failed> + Sync) -> Result<(), Failed> {
        let next = AtomicUsize::new(0);
        let failed = Mutex::new(None);
        thread::scope(|scope| {
            for _ in 0..IN_FLIGHT.min(items.len()) {
                scope.spawn(|| {
                    while let Some(item) = items.get(next.fetch_add(1, Ordering::Relaxed)) {
                        if let Err(e) = self.hand.go_on().and_then(|()| step(item)) {
                            lock(&failed).get_or_insert(e);
                        }
                        if lock(&failed).is_some() {
                            return;
                        }
                        self.done.fetch_add(1, Ordering::Relaxed);
                    }
                });
            }
        });
        failed.into_inner().unwrap_or_else(PoisonError::into_inner).map_or(Ok(()), Err)
    }

    /// Every change that is not done by the controller. Returns when the last one was made.
    fn change(&self) -> Result<Instant, Failed> {
        let items: Vec<&Item> = self.items.iter().filter(|item| item.fate != Fate::Stays).collect();
        let pause = match self.job.relay {
            Some(_) => SPREAD * IN_FLIGHT as u32 / items.len().max(IN_FLIGHT) as u32,
            None => Duration::ZERO,
        };
        self.each(&items, |item| {
            wait(pause);
            if let Some(patch) = item.patch(&self.namespace) {
                self.hand.send(&patch)?;
            }
            if let Some(delete) = item.delete(&self.namespace) {
                self.hand.delete(&delete)?;
            }
            if item.fate == Fate::Recreated {
                self.hand.create(&item.create_again(&self.namespace))?;
            }
            match item.broken() {
                Some(broken) => self.break_secret(&item.name, &broken),
                None => Ok(()),
            }
        })?;
        Ok(Instant::now())
    }

    fn break_secret(&self, name: &str, broken: &Break) -> Result<(), Failed> {
        let secrets = Api::<Secret>::namespaced(&self.namespace);
        while self.hand.send(&secrets.get_opt(name))?.is_none() {
            self.hand.go_on_for(|| format!("secret {}/{name} was not made in time", self.namespace))?;
            wait(LOOK);
        }
        match broken {
            Break::Patch(patch) => {
                let patch = Patch::Merge(patch);
                self.hand.send(&secrets.patch(name, &patch, &PatchParams::default())).map(drop)
            }
            Break::Delete => self.hand.delete(&secrets.delete(name, &DeleteParams::default())),
        }
    }

    fn await_sync(&self, running: &E::Running, start: Instant) -> Result<Duration, Failed> {
        loop {
            let status = E::status(running);
            let missing = match status.ready() {
                Ok(()) => return Ok(start.elapsed()),
                Err(missing) => missing.join(", "),
            };
            self.hand.go_on_for(|| format!("the watches did not sync in time: {missing}"))?;
            wait(Duration::from_millis(1));
        }
    }

    /// Compares until nothing is wrong; how many Secrets, and when.
    fn await_convergence(&self, running: &E::Running) -> Result<(usize, Instant), Failed> {
        let mut last: Option<(Instant, u64)> = None;
        let mut verdict = Verdict::default();
        loop {
            let sums = Sums::of(&E::status(running));
            let seen = sums.reconciles + sums.events;
            let due = last.is_none_or(|(last, before)| {
                let pause = if busy(&sums) || seen == before { COMPARE.1 } else { COMPARE.0 };
                last.elapsed() >= pause
            });
            if due {
                verdict = self.compare()?;
                let now = Instant::now();
                if verdict.wrong.is_empty() {
                    return Ok((verdict.checked, now));
                }
                *lock(&self.wrong) = verdict.to_string();
                last = Some((now, seen));
            }
            self.hand.go_on_for(|| {
                let within = self.job.args.deadline.as_secs();
                let error = Sums::of(&E::status(running)).last_error;
                let error = error.map(|e| format!("; the controller's last error: {e}")).unwrap_or_default();
                format!("not converged within {within} s: {verdict}{}{error}", verdict.hint())
            })?;
            wait(LOOK);
        }
    }

    fn compare(&self) -> Result<Verdict, Failed> {
        let maps = self.hand.list::<ConfigMap>(&self.namespace)?;
        let secrets = self.hand.list::<Secret>(&self.namespace)?;
        Ok(compare(&self.items, &maps, &secrets))
    }

    /// Whatever runs on although all is well would run for ever.
    fn await_rest(&self, running: &E::Running) -> Result<(), Failed> {
        let begin = Instant::now();
        let mut seen = (0, Instant::now());
        while seen.1.elapsed() < REST {
            let sums = Sums::of(&E::status(running));
            if busy(&sums) || sums.reconciles != seen.0 {
                seen = (sums.reconciles, Instant::now());
            }
            let restless = || format!("the controller does not come to rest: {} reconciles", sums.reconciles);
            if begin.elapsed() > REST_WITHIN {
                return Err(restless().into());
            }
            self.hand.go_on_for(restless)?;
            wait(LOOK);
        }
        // At rest, and still right.
        let verdict = self.compare()?;
        if verdict.wrong.is_empty() {
            Ok(())
        } else {
            Err(format!("it was right, and no longer is: {verdict}").into())
        }
    }

    fn stop(&mut self) -> Result<(), Failed> {
        self.stage("stopping", 0);
        match self.running.take() {
            Some(running) => Ok(E::stop(running)?),
            None => Ok(()),
        }
    }

    /// Removes the namespace with all that is in it.
    fn tidy(&self) -> Result<(), Failed> {
        self.stage("tidying up", 0);
        // An interrupt or the deadline is no reason to leave a thousand objects behind.
        let never = AtomicBool::new(false);
        let hand = Hand::<E> { client: self.job.hand, interrupted: &never, end: Instant::now() + TIDY };
        let (params, all) = (DeleteParams::background(), ListParams::default());
        // Secrets first, or the garbage collector has to ask for a thousand of them at its twenty requests a second.
        hand.send(&Api::<Secret>::namespaced(&self.namespace).delete_collection(&params, &all))?;
        hand.send(&Api::<ConfigMap>::namespaced(&self.namespace).delete_collection(&params, &all))?;
        hand.delete(&Api::<Namespace>::cluster().delete(&self.namespace, &params))?;
        self.line(&format!("namespace {} was deleted", self.namespace));
        Ok(())
    }

    fn stage(&self, name: &'static str, steps: usize) {
        *lock(&self.stage) = (name, steps);
        self.done.store(0, Ordering::Relaxed);
    }

    /// A line every second, until the sender is dropped.
    fn tell(&self, tick: &Receiver<()>) {
        while tick.recv_timeout(Duration::from_secs(1)) == Err(RecvTimeoutError::Timeout) {
            let (stage, steps) = *lock(&self.stage);
            let mut text = stage.to_owned();
            if steps > 0 {
                text = format!("{text} {}/{steps}", self.done.load(Ordering::Relaxed));
            }
            if let Some(running) = self.running.get() {
                let sums = Sums::of(&E::status(running));
                text = format!(
                    "{text:<20} reconciles {}, errors {}, queued {}, watch events {}",
                    sums.reconciles, sums.errors, sums.queued, sums.events
                );
            }
            let wrong = lock(&self.wrong).clone();
            if !wrong.is_empty() {
                text = format!("{text}; {wrong}");
            }
            self.line(&text);
        }
    }

    fn line(&self, text: &str) {
        // Whoever reads may have gone.
        let _ = writeln!(io::stderr(), "{:6.1} s  {text}", self.started.elapsed().as_secs_f64());
    }
}

/// For what nobody tells: what a cluster holds, and what a status says.
#[expect(
    clippy::disallowed_methods,
    reason = "there is no condition to wait on, others change what is looked at"
)]
fn wait(pause: Duration) {
    thread::sleep(pause);
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn busy(sums: &Sums) -> bool {
    sums.queued > 0
}

/// Kills all connections at random moments, until the sender is dropped.
fn kill(relay: &Relay, mut rng: Rng, tick: &Receiver<()>, kills: &AtomicUsize, calm: &AtomicBool) {
    let mut stretch: u32 = 1;
    while tick.recv_timeout(rng.between(KILLS.0, KILLS.1) * stretch) == Err(RecvTimeoutError::Timeout) {
        kills.fetch_add(relay.kill_all(), Ordering::Relaxed);
        if calm.load(Ordering::Relaxed) {
            stretch = (stretch * 2).min(1000);
        }
    }
}

/// The harness's own requests, refused after the end. What can be repeated the client repeats itself; here it is only what it
/// may not: who knows all names can repeat even a request that may have been carried out.
struct Hand<'a, E: Executor> {
    client: &'a E::Client,
    interrupted: &'a AtomicBool,
    end: Instant,
}

impl<E: Executor> Hand<'_, E> {
    fn go_on(&self) -> Result<(), Failed> {
        self.go_on_for(|| "not done in time".to_owned())
    }

    fn go_on_for(&self, late: impl FnOnce() -> String) -> Result<(), Failed> {
        if self.interrupted.load(Ordering::Relaxed) {
            return Err(Failed::Interrupted);
        }
        if Instant::now() < self.end { Ok(()) } else { Err(late().into()) }
    }

    fn attempt<R: Answer + Send + 'static>(&self, request: &Request<R>) -> Result<Result<R, Error>, Failed> {
        let mut tries = 1;
        loop {
            let answer = E::send(self.client, request.clone());
            match &answer {
                Err(e) if !request.idempotent && e.is_unknown() && tries < TRIES => {
                    self.go_on_for(|| e.to_string())?;
                    wait(LOOK * tries);
                    tries += 1;
                }
                _ => return Ok(answer),
            }
        }
    }

    fn send<R: Answer + Send + 'static>(&self, request: &Request<R>) -> Result<R, Failed> {
        Ok(self.attempt(request)??)
    }

    /// What is there already was made by an earlier try: all names are our own.
    fn create<R: Answer + Send + 'static>(&self, request: &Request<R>) -> Result<(), Failed> {
        match self.attempt(request)? {
            Err(e) if e.is_already_exists() => Ok(()),
            other => Ok(other.map(drop)?),
        }
    }

    fn delete(&self, request: &Request<Deleted>) -> Result<(), Failed> {
        match self.attempt(request)? {
            Err(e) if e.is_not_found() => Ok(()),
            other => Ok(other.map(drop)?),
        }
    }

    fn list<K: Kind + Answer + Send + 'static>(&self, namespace: &str) -> Result<Vec<K>, Failed> {
        let api = Api::<K>::namespaced(namespace);
        let mut params = ListParams::default().limit(PAGE);
        let mut all = Vec::new();
        loop {
            let page: List<K> = self.send(&api.list(&params))?;
            if let Some(bad) = page.bad.first() {
                return Err(format!("a list cannot be read: {bad}").into());
            }
            all.extend(page.items);
            if page.metadata.continue_token.is_empty() {
                return Ok(all);
            }
            params = params.continue_from(page.metadata.continue_token);
        }
    }
}
