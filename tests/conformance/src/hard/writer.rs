//! Changes ConfigMaps all the time, by a seeded script, as somebody else would.

use std::collections::BTreeMap;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use steersman_core::rng::Rng;

use super::LIMIT;
use crate::https::Client;

/// Names in each namespace; few, so that each of them comes and goes often.
const NAMES: u64 = 8;
/// Between two writes.
const PACE: Duration = Duration::from_millis(4);
/// Of one write; a server that cannot reach its data answers late or never.
const PATIENCE: Duration = Duration::from_secs(3);

/// What was done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Creations that were acknowledged.
    pub created: usize,
    /// Updates that were acknowledged.
    pub updated: usize,
    /// Deletions that were acknowledged.
    pub deleted: usize,
    /// Tries that were refused or not answered.
    pub failed: usize,
}

impl Tally {
    /// Acknowledged writes.
    #[must_use]
    pub const fn writes(&self) -> usize {
        self.created + self.updated + self.deleted
    }
}

#[derive(Default)]
struct State {
    tally: Tally,
    held: bool,
    idle: bool,
    over: bool,
}

type Shared = Arc<(Mutex<State>, Condvar)>;

/// A thread that writes until it is told to stop.
pub struct Writer {
    shared: Shared,
    thread: Option<JoinHandle<()>>,
}

impl Writer {
    /// Begins to write into these namespaces, which are there.
    #[must_use]
    pub fn start(client: Client, namespaces: Vec<String>, seed: u64) -> Self {
        let shared = Shared::default();
        let script = Script { client, namespaces, rng: Rng::new(seed), n: 0, known: BTreeMap::new() };
        let thread = thread::spawn({
            let shared = Arc::clone(&shared);
            move || script.run(&shared)
        });
        Self { shared, thread: Some(thread) }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.shared.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait(&self, what: &str, is: impl Fn(&State) -> bool) {
        let end = Instant::now() + LIMIT;
        let mut state = self.lock();
        while !is(&state) {
            let left = end.saturating_duration_since(Instant::now());
            assert!(!left.is_zero(), "the writer: {what}: not within {LIMIT:?}; {:?}", state.tally);
            state = self.shared.1.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// What was done so far.
    #[must_use]
    pub fn tally(&self) -> Tally {
        self.lock().tally
    }

    /// Waits until `n` more writes were acknowledged.
    pub fn writes(&self, n: usize) {
        let goal = self.tally().writes() + n;
        self.wait("more writes", |s| s.tally.writes() >= goal);
    }

    /// Waits until `n` more tries have failed.
    pub fn fails(&self, n: usize) {
        let goal = self.tally().failed + n;
        self.wait("more failures", |s| s.tally.failed >= goal);
    }

    /// Nothing is written from when this returns, until [`Writer::go_on`].
    pub fn hold(&self) {
        self.lock().held = true;
        self.wait("a pause", |s| s.idle);
    }

    /// Goes on after [`Writer::hold`].
    pub fn go_on(&self) {
        self.lock().held = false;
        self.shared.1.notify_all();
    }

    /// Ends it; gives what was done.
    #[must_use]
    pub fn finish(mut self) -> Tally {
        self.end();
        self.tally()
    }

    fn end(&mut self) {
        self.lock().over = true;
        self.shared.1.notify_all();
        if let Some(thread) = self.thread.take()
            && let Err(panic) = thread.join()
            && !thread::panicking()
        {
            std::panic::resume_unwind(panic);
        }
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.end();
    }
}

struct Script {
    client: Client,
    namespaces: Vec<String>,
    rng: Rng,
    n: u64,
    /// Whether an object is there; not in it where an answer did not come, and nobody knows.
    known: BTreeMap<String, bool>,
}

enum Op {
    Create,
    Update,
    Delete,
    Look,
}

impl Script {
    fn run(mut self, (state, changed): &(Mutex<State>, Condvar)) {
        let lock = || state.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            let mut now = lock();
            while now.held && !now.over {
                now.idle = true;
                changed.notify_all();
                now = changed.wait(now).unwrap_or_else(PoisonError::into_inner);
            }
            now.idle = false;
            if now.over {
                return;
            }
            // A pause that the end cuts short.
            now = changed.wait_timeout(now, PACE).unwrap_or_else(PoisonError::into_inner).0;
            if now.over || now.held {
                continue;
            }
            drop(now);
            let (op, done) = self.step();
            let tally = &mut lock().tally;
            match op {
                _ if !done => tally.failed += 1,
                Op::Create => tally.created += 1,
                Op::Update => tally.updated += 1,
                Op::Delete => tally.deleted += 1,
                Op::Look => {}
            }
            changed.notify_all();
        }
    }

    /// One write, or a look where the last one had no answer.
    fn step(&mut self) -> (Op, bool) {
        self.n += 1;
        let draw = self.rng.next_u64();
        let namespace =
            &self.namespaces[usize::try_from(draw >> 32).unwrap_or_default() % self.namespaces.len()];
        let name = format!("m{}", draw % NAMES);
        let all = format!("/api/v1/namespaces/{namespace}/configmaps");
        let one = format!("{all}/{name}");
        let op = match self.known.get(&one) {
            None => Op::Look,
            Some(false) => Op::Create,
            Some(true) if self.rng.next_u64().is_multiple_of(4) => Op::Delete,
            Some(true) => Op::Update,
        };
        let data = json!({"v": self.n.to_string(), "more": "x".repeat(usize::try_from(draw % 300).unwrap_or_default())});
        let body = json!({"metadata": {"name": name}, "data": data});
        let status = match op {
            Op::Look => self.ask("GET", &one, None),
            Op::Create => self.ask("POST", &all, Some(&body)),
            Op::Update => self.ask("PATCH", &one, Some(&body)),
            Op::Delete => self.ask("DELETE", &one, None),
        };
        let there = match (&op, status) {
            (Op::Look | Op::Update, 200) | (Op::Create, 201) => Some(true),
            (Op::Delete, 200) | (Op::Look, 404) => Some(false),
            _ => None,
        };
        let done = there.is_some();
        match there {
            Some(there) => drop(self.known.insert(one, there)),
            None => drop(self.known.remove(&one)),
        }
        (op, done)
    }

    fn ask(&self, method: &str, path: &str, body: Option<&Value>) -> u16 {
        let kind = if method == "PATCH" { "application/merge-patch+json" } else { "application/json" };
        let body = body.map(ToString::to_string);
        let headers = [("Content-Type", kind)];
        let answer = self.client.send(method, path, &headers, body.as_deref().map(str::as_bytes), PATIENCE);
        answer.map_or(0, |a| a.status)
    }
}
