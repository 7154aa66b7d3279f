//! The machine on the network: TLS on a loopback port, its own certificate authority, a kubeconfig.
//!
//! Threads and blocking sockets: two threads a connection, one that serves deadlines, one that accepts. Nothing is decided
//! here; the codec is `steersman_core::wire`, the answers are the machine's.
//!
//! ```
//! use steersman_apiserver::front::{Options, Server};
//! let server = Server::start(Options::default())?;
//! assert!(server.kubeconfig().contains(&server.url()));
//! server.compact(); // watches from older versions are told 410 from now on
//! server.drop_connections();
//! # Ok::<(), std::io::Error>(())
//! ```

mod conn;
mod kubeconfig;
mod tls;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant, SystemTime};

use steersman_core::machine::{Machine, Outputs};
use steersman_core::net::ConnId;
use steersman_core::time::{Time, UnixMillis};

use crate::machine::{self, ApiServer, Fault, Identity, Input, Output};
use crate::resource::Resource;
use conn::Link;
pub use kubeconfig::Who;

/// Most connections at a time; more are closed at once.
const MOST_CONNECTIONS: usize = 4096;

/// How a server is started.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// How it behaves. Tokens given here are kept beside the ones below.
    pub machine: machine::Options,
    /// The port on 127.0.0.1; 0 takes a free one.
    pub port: u16,
    /// The administrator's token; a random one if `None`.
    pub token: Option<String>,
}

/// A running server. Dropping it stops it.
pub struct Server {
    shared: Arc<Shared>,
    running: Mutex<Option<Running>>,
    addr: SocketAddr,
    authority: tls::Authority,
    token: String,
    user_token: String,
}

struct Running {
    stop: Arc<AtomicBool>,
    accept: JoinHandle<()>,
}

struct Shared {
    origin: Instant,
    core: Mutex<Core>,
    /// A deadline may have come nearer, or the server ends.
    changed: Condvar,
    /// The machine was given something.
    stepped: Condvar,
    tls: Arc<rustls::ServerConfig>,
    verifier: Arc<dyn rustls::server::danger::ClientCertVerifier>,
    max_body: usize,
}

struct Core {
    machine: ApiServer,
    out: Outputs<Output>,
    links: BTreeMap<ConnId, Link>,
    next_conn: u64,
    ended: bool,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Core> {
        // A panic elsewhere must not take the server along; the machine's state is whole between inputs.
        self.core.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn now(&self) -> Time {
        Time::from_nanos(u64::try_from(self.origin.elapsed().as_nanos()).unwrap_or(u64::MAX))
    }

    /// Gives the machine one input and its outputs to their connections.
    fn handle(&self, input: Input) {
        self.with(|core, now| {
            let mut out = std::mem::take(&mut core.out);
            core.machine.handle(now, input, &mut out);
            core.out = out;
        });
    }

    fn with<R>(&self, f: impl FnOnce(&mut Core, Time) -> R) -> R {
        let mut core = self.lock();
        let before = core.machine.next_deadline();
        let result = f(&mut core, self.now());
        let mut out = std::mem::take(&mut core.out);
        for output in out.drain() {
            let conn = match &output {
                Output::Respond { conn, .. }
                | Output::StreamHead { conn, .. }
                | Output::StreamChunk { conn, .. }
                | Output::StreamEnd { conn }
                | Output::Close { conn } => *conn,
            };
            if let Some(link) = core.links.get(&conn) {
                link.give(output);
            }
        }
        core.out = out;
        if core.machine.next_deadline() != before {
            self.changed.notify_all();
        }
        self.stepped.notify_all();
        result
    }

    /// Serves deadlines until the server ends.
    fn keep_time(&self) {
        loop {
            let mut core = self.lock();
            if core.ended {
                return;
            }
            let now = self.now();
            let wait = match core.machine.next_deadline() {
                Some(d) if d.at <= now => {
                    drop(core);
                    self.handle(Input::Deadline { wall: wall() });
                    continue;
                }
                Some(d) => d.at.since(now),
                None => Duration::from_secs(3600),
            };
            core = self.changed.wait_timeout(core, wait).unwrap_or_else(PoisonError::into_inner).0;
            drop(core);
        }
    }

    fn accept(self: &Arc<Self>, listener: &TcpListener, stop: &AtomicBool) {
        while !stop.load(Ordering::SeqCst) {
            let Ok((socket, _)) = listener.accept() else {
                // Too many open files, most likely; others may be closed soon.
                thread::park_timeout(Duration::from_millis(10));
                continue;
            };
            if stop.load(Ordering::SeqCst) {
                return;
            }
            let _ = self.admit(socket);
        }
    }

    fn admit(self: &Arc<Self>, socket: TcpStream) -> io::Result<()> {
        socket.set_nodelay(true)?;
        let (link, start) = conn::open(socket, Arc::clone(&self.tls))?;
        let id = {
            let mut core = self.lock();
            if core.ended || core.links.len() >= MOST_CONNECTIONS {
                link.close();
                return Ok(());
            }
            let id = ConnId(core.next_conn);
            core.next_conn += 1;
            core.links.insert(id, link);
            id
        };
        let shared = Arc::clone(self);
        start(Box::new(move |io| {
            conn::serve(&shared, id, io);
            shared.with(|core, now| {
                core.links.remove(&id);
                let mut out = std::mem::take(&mut core.out);
                core.machine.handle(now, Input::Gone { conn: id }, &mut out);
                core.out = out;
            });
        }))
    }
}

fn wall() -> UnixMillis {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    UnixMillis(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
}

impl Server {
    /// Starts on 127.0.0.1.
    ///
    /// # Errors
    /// When the port cannot be had or certificates cannot be made.
    pub fn start(options: Options) -> io::Result<Self> {
        let authority = tls::Authority::new()?;
        let (config, verifier) = authority.server_config()?;
        let token = match options.token {
            Some(token) => token,
            None => tls::random_token()?,
        };
        let user_token = tls::random_token()?;
        let mut machine_options = options.machine;
        machine_options
            .tokens
            .push((token.clone(), Identity::new("admin", &["system:masters", "system:authenticated"])));
        machine_options
            .tokens
            .push((user_token.clone(), Identity::new("dev", &["developers", "system:authenticated"])));
        let max_body = machine_options.max_body;
        let core = Core {
            machine: ApiServer::new(machine_options, wall()),
            out: Outputs::new(),
            links: BTreeMap::new(),
            next_conn: 1,
            ended: false,
        };
        let shared = Arc::new(Shared {
            origin: Instant::now(),
            core: Mutex::new(core),
            changed: Condvar::new(),
            stepped: Condvar::new(),
            tls: config,
            verifier,
            max_body,
        });
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, options.port))?;
        let addr = listener.local_addr()?;
        let clock = Arc::clone(&shared);
        thread::Builder::new().name("apiserver-time".into()).spawn(move || clock.keep_time())?;
        let server = Self { running: Mutex::new(None), shared, addr, authority, token, user_token };
        server.listen(listener)?;
        Ok(server)
    }

    fn listen(&self, listener: TcpListener) -> io::Result<()> {
        let stop = Arc::new(AtomicBool::new(false));
        let (shared, flag) = (Arc::clone(&self.shared), Arc::clone(&stop));
        let accept = thread::Builder::new()
            .name("apiserver-accept".into())
            .spawn(move || shared.accept(&listener, &flag))?;
        *self.running.lock().unwrap_or_else(PoisonError::into_inner) = Some(Running { stop, accept });
        Ok(())
    }

    /// Where it listens; the same after a restart.
    #[must_use]
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// `https://127.0.0.1:PORT`.
    #[must_use]
    pub fn url(&self) -> String {
        format!("https://{}", self.addr)
    }

    /// The certificate authority, PEM.
    #[must_use]
    pub fn ca_pem(&self) -> &str {
        self.authority.ca_pem()
    }

    /// The administrator's token.
    #[must_use]
    pub fn token(&self) -> &str {
        &self.token
    }

    /// The token of the user `dev`, who has no rights but those granted.
    #[must_use]
    pub fn user_token(&self) -> &str {
        &self.user_token
    }

    /// A client certificate of an administrator and its key, PEM.
    #[must_use]
    pub fn client_certificate(&self) -> (&str, &str) {
        self.authority.client()
    }

    /// The administrator's kubeconfig, self-contained.
    #[must_use]
    pub fn kubeconfig(&self) -> String {
        self.kubeconfig_for(&self.url(), Who::Admin)
    }

    /// A kubeconfig for another address (a proxy's) or another user.
    #[must_use]
    pub fn kubeconfig_for(&self, url: &str, who: Who) -> String {
        kubeconfig::text(self, url, who)
    }

    /// Writes the administrator's kubeconfig, readable by its owner alone.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn write_kubeconfig(&self, path: &Path) -> io::Result<()> {
        kubeconfig::write(path, &self.kubeconfig())
    }

    /// Stops listening and closes every connection. The data stay.
    pub fn stop(&self) {
        let running = self.running.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(running) = running {
            running.stop.store(true, Ordering::SeqCst);
            // Wakes the thread that accepts.
            drop(TcpStream::connect(self.addr));
            let _ = running.accept.join();
        }
        self.drop_connections();
    }

    /// Listens again on the same port after [`Server::stop`], with the same data. As on the real server, watches cannot start
    /// from versions before the restart.
    ///
    /// # Errors
    /// When somebody else has the port meanwhile.
    pub fn resume(&self) -> io::Result<()> {
        self.stop();
        self.with_machine(|m, _, _| m.forget_events());
        self.listen(TcpListener::bind(self.addr)?)
    }

    /// Stops and listens again on the same port with the same data.
    ///
    /// # Errors
    /// When somebody else has the port meanwhile.
    pub fn restart(&self) -> io::Result<()> {
        self.resume()
    }

    /// Closes every connection without a word. Returns how many there were.
    pub fn drop_connections(&self) -> usize {
        let core = self.shared.lock();
        core.links.values().for_each(Link::close);
        core.links.len()
    }

    /// Forgets all history; see [`ApiServer::compact`].
    pub fn compact(&self) {
        self.with_machine(|m, _, _| m.compact());
    }

    /// Ends every watch in order, as a server does that closes down.
    pub fn end_watches(&self) {
        self.with_machine(|m, _, out| m.end_watches(out));
    }

    /// Adds a resource.
    pub fn register(&self, resource: Resource) {
        self.with_machine(|m, _, _| m.register(resource));
    }

    /// Adds a disturbance.
    pub fn inject(&self, fault: Fault) {
        self.with_machine(|m, _, _| m.inject(fault));
    }

    /// Waits until the machine is as asked, looking after everything that happens to it. False if `limit` comes first.
    pub fn wait_until(&self, limit: Duration, mut is: impl FnMut(&ApiServer) -> bool) -> bool {
        let end = Instant::now() + limit;
        let mut core = self.shared.lock();
        while !is(&core.machine) {
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return false;
            }
            core = self.shared.stepped.wait_timeout(core, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        true
    }

    /// The machine itself, the time, and a sink for what it wants sent.
    pub fn with_machine<R>(&self, f: impl FnOnce(&mut ApiServer, Time, &mut Outputs<Output>) -> R) -> R {
        self.shared.with(|core, now| {
            let mut out = std::mem::take(&mut core.out);
            let result = f(&mut core.machine, now, &mut out);
            core.out = out;
            result
        })
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.shared.lock().ended = true;
        self.shared.changed.notify_all();
        self.stop();
    }
}

// Tokens and keys stay out.
impl std::fmt::Debug for Server {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Server").field("addr", &self.addr).finish_non_exhaustive()
    }
}
