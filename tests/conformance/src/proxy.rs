//! A TCP proxy on loopback that disturbs what passes through it, on command.
//!
//! It knows nothing of TLS or HTTP: the bytes it cuts, delays and holds are those of any server, so the same test disturbs
//! the embedded and the real API server alike. Nothing is random here; a test that wants chance draws it from its own seed.
//!
//! ```
//! use std::io::{Read, Write};
//! use std::net::{TcpListener, TcpStream};
//! use steersman_tests::proxy::{Faults, Proxy};
//!
//! let server = TcpListener::bind("127.0.0.1:0")?;
//! let proxy = Proxy::start(server.local_addr()?)?;
//! proxy.next_connection(Faults::cut_down(3));
//! let mut client = TcpStream::connect(proxy.addr())?;
//! server.accept()?.0.write_all(b"hello")?;
//! let mut got = String::new();
//! client.read_to_string(&mut got)?;
//! assert_eq!(got, "hel");
//! # Ok::<(), std::io::Error>(())
//! ```

use std::collections::{BTreeMap, VecDeque};
use std::io::{self, ErrorKind, Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

#[cfg(test)]
mod tests;

/// How long one blocking write may keep a pump from seeing that its connection was killed.
const WRITE_SLICE: Duration = Duration::from_millis(20);

/// What happens to one connection. The default is nothing: bytes pass.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Faults {
    /// End the connection after so many further bytes from the client to the server.
    pub cut_up: Option<u64>,
    /// End the connection after so many further bytes from the server to the client.
    pub cut_down: Option<u64>,
    /// Keep each piece from the client so long before it goes on.
    pub delay_up: Duration,
    /// Keep each piece from the server so long before it goes on.
    pub delay_down: Duration,
    /// Forward nothing in either direction, but keep both sockets open: what a dead host or a silent firewall looks like.
    pub hold: bool,
    /// Whether a cut ends in a reset rather than in an orderly end. Bytes on their way may then be lost, as with any reset.
    pub reset: bool,
}

impl Faults {
    /// Bytes pass.
    #[must_use]
    pub fn none() -> Self {
        Self::default()
    }

    /// Ends the connection after exactly `bytes` from the client.
    #[must_use]
    pub fn cut_up(bytes: u64) -> Self {
        Self { cut_up: Some(bytes), ..Self::default() }
    }

    /// Ends the connection after exactly `bytes` from the server.
    #[must_use]
    pub fn cut_down(bytes: u64) -> Self {
        Self { cut_down: Some(bytes), ..Self::default() }
    }

    /// Keeps each piece for `delay`, in both directions.
    #[must_use]
    pub fn delay(delay: Duration) -> Self {
        Self { delay_up: delay, delay_down: delay, ..Self::default() }
    }

    /// Forwards nothing and keeps the sockets.
    #[must_use]
    pub fn hold() -> Self {
        Self { hold: true, ..Self::default() }
    }

    /// The same, with a reset where a cut would end in order.
    #[must_use]
    pub fn with_reset(self) -> Self {
        Self { reset: true, ..self }
    }
}

/// What has passed so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Connections accepted.
    pub accepted: u64,
    /// Of these, still open.
    pub open: usize,
    /// Of these, ended by a fault (cut or killed) rather than by their ends.
    pub ended_by_fault: u64,
    /// Connections that found no upstream.
    pub upstream_failed: u64,
    /// Bytes forwarded from clients to the server.
    pub bytes_up: u64,
    /// Bytes forwarded from the server to clients.
    pub bytes_down: u64,
}

/// The proxy. Dropping it ends its connections and threads.
#[derive(Debug)]
pub struct Proxy {
    shared: Arc<Shared>,
    addr: SocketAddr,
    acceptor: Mutex<Option<JoinHandle<()>>>,
}

#[derive(Debug)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug)]
struct State {
    upstream: SocketAddr,
    default: Faults,
    once: VecDeque<Faults>,
    stats: Stats,
    listening: bool,
    next_id: u64,
    live: BTreeMap<u64, Live>,
}

/// One connection, as its two pumps and the test see it.
#[derive(Debug)]
struct Live {
    faults: Faults,
    client: TcpStream,
    server: TcpStream,
    pumps: u8,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    Up,
    Down,
}

impl Proxy {
    /// Listens on a free port of the loopback address and forwards to `upstream`.
    ///
    /// # Errors
    /// When no port can be bound.
    pub fn start(upstream: SocketAddr) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let addr = listener.local_addr()?;
        let shared = Arc::new(Shared {
            state: Mutex::new(State {
                upstream,
                default: Faults::none(),
                once: VecDeque::new(),
                stats: Stats::default(),
                listening: true,
                next_id: 0,
                live: BTreeMap::new(),
            }),
            changed: Condvar::new(),
        });
        let acceptor = spawn_acceptor(&shared, listener);
        Ok(Self { shared, addr, acceptor: Mutex::new(Some(acceptor)) })
    }

    /// Where clients connect to.
    #[must_use]
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// Later connections go to this server.
    pub fn set_upstream(&self, upstream: SocketAddr) {
        self.shared.lock().upstream = upstream;
    }

    /// What happens to connections accepted from now on, unless [`Proxy::next_connection`] says otherwise for one.
    pub fn new_connections(&self, faults: Faults) {
        self.shared.lock().default = faults;
    }

    /// What happens to one later connection; several calls queue up, first come first served.
    pub fn next_connection(&self, faults: Faults) {
        self.shared.lock().once.push_back(faults);
    }

    /// What happens to the connections that stand now. Cuts count from here. Returns how many there are.
    pub fn disturb(&self, faults: Faults) -> usize {
        let mut state = self.shared.lock();
        for live in state.live.values_mut() {
            live.faults = faults;
        }
        self.shared.changed.notify_all();
        state.live.len()
    }

    /// From here on nothing is forwarded, on standing and on new connections. All sockets stay open.
    pub fn hold(&self) {
        self.new_connections(Faults::hold());
        self.disturb(Faults::hold());
    }

    /// Ends every fault: what was held goes on, what comes passes. Connections that were cut stay cut.
    pub fn heal(&self) {
        {
            let mut state = self.shared.lock();
            state.once.clear();
            state.default = Faults::none();
        }
        self.disturb(Faults::none());
    }

    /// Ends every connection that stands now, in order (FIN). Returns how many.
    pub fn kill_all(&self) -> usize {
        self.end_all(false)
    }

    /// Resets every connection that stands now (RST). Returns how many.
    pub fn reset_all(&self) -> usize {
        self.end_all(true)
    }

    fn end_all(&self, reset: bool) -> usize {
        let mut state = self.shared.lock();
        let ids: Vec<u64> = state.live.keys().copied().collect();
        for id in &ids {
            end(&mut state, *id, reset);
        }
        self.shared.changed.notify_all();
        ids.len()
    }

    /// Closes the listening socket: new connections are refused by the kernel when this returns; standing ones go on.
    pub fn refuse(&self) {
        let mut acceptor = self.acceptor.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(thread) = acceptor.take() {
            self.shared.lock().listening = false;
            // The acceptor sits in `accept`; one last connection wakes it. If even that fails it was not listening.
            drop(TcpStream::connect(self.addr));
            drop(thread.join());
        }
    }

    /// Listens again, on the same port.
    ///
    /// # Errors
    /// When the port was taken meanwhile.
    pub fn accept(&self) -> io::Result<()> {
        let mut acceptor = self.acceptor.lock().unwrap_or_else(PoisonError::into_inner);
        if acceptor.is_none() {
            let listener = TcpListener::bind(self.addr)?;
            self.shared.lock().listening = true;
            *acceptor = Some(spawn_acceptor(&self.shared, listener));
        }
        Ok(())
    }

    /// What has passed so far.
    #[must_use]
    pub fn stats(&self) -> Stats {
        self.shared.lock().stats()
    }

    /// Waits until `condition` holds, at most `limit`; tells whether it does.
    pub fn wait_until(&self, limit: Duration, condition: impl Fn(&Stats) -> bool) -> bool {
        let end = Instant::now() + limit;
        let mut state = self.shared.lock();
        loop {
            if condition(&state.stats()) {
                return true;
            }
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return false;
            }
            state = self.shared.wait(state, left);
        }
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.refuse();
        self.kill_all();
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait<'a>(&self, guard: MutexGuard<'a, State>, limit: Duration) -> MutexGuard<'a, State> {
        self.changed.wait_timeout(guard, limit).unwrap_or_else(PoisonError::into_inner).0
    }
}

impl State {
    fn stats(&self) -> Stats {
        Stats { open: self.live.len(), ..self.stats }
    }
}

/// Takes the connection off the list and wakes its pumps. The sockets close when the pumps have dropped their ends.
fn end(state: &mut State, id: u64, reset: bool) {
    let Some(live) = state.live.remove(&id) else { return };
    state.stats.ended_by_fault += 1;
    for stream in [&live.client, &live.server] {
        if reset {
            // A linger of zero turns the close into a reset. Only the reading half is shut down here: shutting down
            // the writing half would send an orderly end first.
            drop(socket2::SockRef::from(stream).set_linger(Some(Duration::ZERO)));
            drop(stream.shutdown(Shutdown::Read));
        } else {
            drop(stream.shutdown(Shutdown::Both));
        }
    }
}

fn spawn_acceptor(shared: &Arc<Shared>, listener: TcpListener) -> JoinHandle<()> {
    let shared = Arc::clone(shared);
    thread::spawn(move || {
        while let Ok((client, _)) = listener.accept() {
            let upstream = {
                let mut state = shared.lock();
                if !state.listening {
                    return;
                }
                state.stats.accepted += 1;
                state.upstream
            };
            if serve(&shared, client, upstream).is_err() {
                shared.lock().stats.upstream_failed += 1;
            }
            shared.changed.notify_all();
        }
    })
}

fn serve(shared: &Arc<Shared>, client: TcpStream, upstream: SocketAddr) -> io::Result<()> {
    let server = TcpStream::connect_timeout(&upstream, Duration::from_secs(5))?;
    for stream in [&client, &server] {
        stream.set_nodelay(true)?;
        stream.set_write_timeout(Some(WRITE_SLICE))?;
    }
    let ends = [(client.try_clone()?, server.try_clone()?), (server.try_clone()?, client.try_clone()?)];
    let id = {
        let mut state = shared.lock();
        let id = state.next_id;
        state.next_id += 1;
        // Chosen as it is listed: chosen before, a `heal` in between would miss it, and it would be held for ever.
        let faults = state.once.pop_front().unwrap_or(state.default);
        state.live.insert(id, Live { faults, client, server, pumps: 2 });
        id
    };
    for ((from, to), way) in ends.into_iter().zip([Way::Up, Way::Down]) {
        let shared = Arc::clone(shared);
        thread::spawn(move || {
            pump(&shared, id, way, &from, &to);
            let mut state = shared.lock();
            if let Some(live) = state.live.get_mut(&id) {
                // An orderly end of one direction leaves the other open, as TCP does.
                drop(to.shutdown(Shutdown::Write));
                live.pumps -= 1;
                if live.pumps == 0 {
                    state.live.remove(&id);
                }
            }
            shared.changed.notify_all();
        });
    }
    Ok(())
}

/// Copies one direction until it ends, is cut, or the connection is killed.
fn pump(shared: &Shared, id: u64, way: Way, mut from: &TcpStream, mut to: &TcpStream) {
    let mut buffer = vec![0; 64 * 1024];
    loop {
        let mut rest: &[u8] = match from.read(&mut buffer) {
            Ok(0) => return,
            Ok(n) => &buffer[..n],
            Err(e) if e.kind() == ErrorKind::Interrupted => continue,
            Err(_) => return,
        };
        let arrived = Instant::now();
        while !rest.is_empty() {
            let mut state = shared.lock();
            let Some(live) = state.live.get(&id) else { return };
            let faults = live.faults;
            let (delay, budget) = match way {
                Way::Up => (faults.delay_up, faults.cut_up),
                Way::Down => (faults.delay_down, faults.cut_down),
            };
            if faults.hold {
                drop(shared.changed.wait(state));
                continue;
            }
            let left = delay.saturating_sub(arrived.elapsed());
            if !left.is_zero() {
                drop(shared.wait(state, left));
                continue;
            }
            if budget == Some(0) {
                end(&mut state, id, faults.reset);
                shared.changed.notify_all();
                return;
            }
            let most =
                budget.map_or(rest.len(), |b| rest.len().min(usize::try_from(b).unwrap_or(usize::MAX)));
            // The write happens under the lock, so that after `hold` or `kill_all` has returned nothing more passes;
            // the write timeout bounds how long a full receiver can keep it.
            let written = match to.write(&rest[..most]) {
                Ok(n) => n,
                Err(e)
                    if matches!(
                        e.kind(),
                        ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted
                    ) =>
                {
                    0
                }
                Err(_) => return,
            };
            rest = &rest[written..];
            let passed = written as u64;
            match way {
                Way::Up => state.stats.bytes_up += passed,
                Way::Down => state.stats.bytes_down += passed,
            }
            let mut cut = false;
            if let Some(live) = state.live.get_mut(&id) {
                let budget = match way {
                    Way::Up => &mut live.faults.cut_up,
                    Way::Down => &mut live.faults.cut_down,
                };
                if let Some(budget) = budget {
                    *budget -= passed;
                    cut = *budget == 0;
                }
            }
            if cut {
                end(&mut state, id, faults.reset);
            }
            shared.changed.notify_all();
            if cut {
                return;
            }
        }
    }
}
