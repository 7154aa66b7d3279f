//! Ends a thread that waits: for bytes of a socket, or for time to pass.

use std::net::{Shutdown, TcpStream};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Shared between a waiting thread and those who may stop it. Once raised it stays raised.
#[derive(Clone, Default)]
pub(crate) struct Interrupt(Arc<Shared>);

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    raised: Condvar,
}

#[derive(Default)]
struct State {
    raised: bool,
    socket: Option<TcpStream>,
}

impl Interrupt {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Wakes the waiting thread now and for good.
    pub(crate) fn raise(&self) {
        let mut state = self.lock();
        state.raised = true;
        if let Some(socket) = &state.socket {
            let _ = socket.shutdown(Shutdown::Both);
        }
        self.0.raised.notify_all();
    }

    pub(crate) fn is_raised(&self) -> bool {
        self.lock().raised
    }

    /// From now on, `raise` also ends reads of this socket (or of none).
    pub(crate) fn guard(&self, socket: Option<TcpStream>) {
        let mut state = self.lock();
        if let (true, Some(socket)) = (state.raised, &socket) {
            let _ = socket.shutdown(Shutdown::Both);
        }
        state.socket = socket;
    }

    /// Waits until raised or until `limit` (`None`: for ever) has passed.
    pub(crate) fn wait(&self, limit: Option<Duration>) {
        let state = self.lock();
        match limit {
            None => drop(self.0.raised.wait_while(state, |s| !s.raised)),
            Some(d) => drop(self.0.raised.wait_timeout_while(state, d, |s| !s.raised)),
        }
    }
}
