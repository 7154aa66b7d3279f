//! SIGINT and SIGTERM while a manager runs: caught before anything starts, told to the manager, which decides what they mean,
//! and given back at the end.
//!
//! All executors of a process share this, as they share the signals: while one of them catches, none ends the process.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;

use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;
use signal_hook::iterator::{Handle, Signals};
use steersman_core::manager::Input;

const SIGNALS: [i32; 2] = [SIGINT, SIGTERM];

/// Signals belong to the process, and so does this.
static CATCHERS: Mutex<Catchers> = Mutex::new(Catchers { now: 0, default_is_registered: false });
/// Nobody catches them: they end the process, as they do by default. A handler that was installed once stays installed, so
/// that has to be done by hand.
static FREE: AtomicBool = AtomicBool::new(false);

struct Catchers {
    now: usize,
    default_is_registered: bool,
}

fn catchers() -> MutexGuard<'static, Catchers> {
    CATCHERS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Both signals are caught as long as this lives.
#[derive(Debug)]
pub struct Caught {
    signals: Option<Signals>,
    handle: Option<Handle>,
}

impl Caught {
    /// From now on, signals end nothing. They wait for [`tell`](Self::tell).
    ///
    /// # Errors
    /// The system gives no signals.
    pub fn new() -> io::Result<Self> {
        let mut caught = Self { signals: None, handle: None };
        {
            let mut catchers = catchers();
            catchers.now += 1;
            FREE.store(false, Ordering::SeqCst);
            if !catchers.default_is_registered {
                for signal in SIGNALS {
                    flag::register_conditional_default(signal, &FREE)?;
                }
                catchers.default_is_registered = true;
            }
        }
        let signals = Signals::new(SIGNALS)?;
        caught.handle = Some(signals.handle());
        caught.signals = Some(signals);
        Ok(caught)
    }

    /// Tells of those that came and of all that come.
    ///
    /// # Errors
    /// The system gives no thread.
    pub fn tell(&mut self, manager: impl Fn(Input) + Send + 'static) -> io::Result<()> {
        if let Some(mut signals) = self.signals.take() {
            thread::Builder::new().name("signals".into()).spawn(move || {
                for signal in signals.forever() {
                    tracing::info!(target: "steersman", signal, "stopping");
                    manager(Input::Signal);
                }
            })?;
        }
        Ok(())
    }
}

impl Drop for Caught {
    fn drop(&mut self) {
        if let Some(handle) = &self.handle {
            handle.close();
        }
        let mut catchers = catchers();
        catchers.now -= 1;
        if catchers.now == 0 {
            FREE.store(true, Ordering::SeqCst);
        }
    }
}
