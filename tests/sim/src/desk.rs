//! What a process and its reconciles share: the clients that they were given, and the time as the process sees it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::task::Waker;

use steersman_core::config::Config;
use steersman_core::time::{Time, UnixMillis};

use crate::base::JobId;
use crate::job::{Ask, Token};
use crate::tasks::Came;

/// One for each life of a process.
pub(crate) struct Desk {
    pub(crate) config: Config,
    state: Mutex<State>,
    smol: OnceLock<steersman_smol::Client>,
    threads: OnceLock<steersman_threads::Client>,
}

#[derive(Default)]
struct State {
    now: Time,
    wall: UnixMillis,
    next: Token,
    /// Who asks: the one that goes on at present.
    asks: Vec<Ask>,
    woken: BTreeSet<JobId>,
    /// What tasks wait for.
    slots: BTreeMap<Token, Slot>,
    over: bool,
}

#[derive(Default)]
struct Slot {
    came: Option<Came>,
    waker: Option<Waker>,
}

impl Desk {
    pub(crate) fn new(config: Config) -> Arc<Self> {
        Arc::new(Self { config, state: Mutex::default(), smol: OnceLock::new(), threads: OnceLock::new() })
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // A reconcile that panicked holds nothing half done here.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The client for tasks.
    pub(crate) fn smol(self: &Arc<Self>) -> steersman_smol::Client {
        self.smol
            .get_or_init(|| {
                let host = crate::tasks::TaskHost(Arc::downgrade(self));
                steersman_smol::Client::hosted(self.config.clone(), Arc::new(host))
            })
            .clone()
    }

    /// The client for threads.
    pub(crate) fn threads(self: &Arc<Self>) -> steersman_threads::Client {
        self.threads
            .get_or_init(|| {
                let host = crate::lockstep::ThreadHost(Arc::downgrade(self));
                steersman_threads::Client::hosted(self.config.clone(), Arc::new(host))
            })
            .clone()
    }

    pub(crate) fn set_time(&self, now: Time, wall: UnixMillis) {
        let mut state = self.lock();
        (state.now, state.wall) = (now, wall);
    }

    pub(crate) fn now(&self) -> Time {
        self.lock().now
    }

    pub(crate) fn wall(&self) -> UnixMillis {
        self.lock().wall
    }

    /// So many new tokens in a row; the first.
    pub(crate) fn tokens(&self, n: usize) -> Token {
        let mut state = self.lock();
        let first = state.next;
        state.next += n as u64;
        first
    }

    /// The reconcile that goes on at present asks for something.
    pub(crate) fn ask(&self, ask: Ask) {
        let mut state = self.lock();
        if !state.over {
            state.asks.push(ask);
        }
    }

    /// A task is going to wait for this.
    pub(crate) fn await_it(&self, token: Token) {
        self.lock().slots.insert(token, Slot::default());
    }

    /// What a task waits for has come.
    pub(crate) fn fill(&self, token: Token, came: Came) {
        let waker = self.lock().slots.get_mut(&token).and_then(|slot| {
            slot.came = Some(came);
            slot.waker.take()
        });
        // Not under the lock: it may run anything.
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    /// Takes what came, or leaves the waker.
    pub(crate) fn came(&self, token: Token, waker: &Waker) -> Option<Came> {
        let mut state = self.lock();
        let slot = state.slots.get_mut(&token)?;
        match slot.came.take() {
            Some(came) => {
                state.slots.remove(&token);
                Some(came)
            }
            None => {
                slot.waker = Some(waker.clone());
                None
            }
        }
    }

    /// A task no longer waits for this.
    pub(crate) fn forget(&self, token: Token) {
        self.lock().slots.remove(&token);
        self.ask(Ask::Forget(token));
    }

    pub(crate) fn take_asks(&self, into: &mut Vec<Ask>) {
        into.append(&mut self.lock().asks);
    }

    pub(crate) fn wake(&self, job: JobId) {
        self.lock().woken.insert(job);
    }

    pub(crate) fn take_woken(&self) -> Option<JobId> {
        self.lock().woken.pop_first()
    }

    /// The process is dead: nothing that its reconciles still ask for while they are dropped counts.
    pub(crate) fn over(&self) {
        self.lock().over = true;
    }
}
