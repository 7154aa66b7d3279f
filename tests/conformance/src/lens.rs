//! A relay before a real API server that reads along: it ends TLS on both sides with the server's own certificate, so that a
//! scene can tell what was asked and answered, hold a request of its choice, or leave a parameter away.
//!
//! Where the [proxy](crate::proxy) knows bytes, this one knows requests. What it forwards is what came, byte by byte, but for
//! the parameter that it was told to leave away; it shares no line with the codec of the core.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, ServerConfig, ServerConnection, StreamOwned};

mod body;

use body::Body;

/// How long a read of an answer may keep the relay from seeing that its client has left.
const SLICE: Duration = Duration::from_millis(50);

/// Longest wait for either side to take what it is given.
const PATIENCE: Duration = Duration::from_secs(60);

/// One request and what came of it so far.
#[derive(Clone, Debug)]
pub struct Seen {
    /// When its head was read.
    pub asked: Instant,
    /// The method.
    pub method: String,
    /// Path and query, as they came.
    pub target: String,
    /// The status of the answer; 0 before it came.
    pub status: u16,
    /// The headers of the answer, names in lower case.
    pub headers: Vec<(String, String)>,
    /// The body of a refusal.
    pub refusal: String,
    /// The `ERROR` events of a watch, as they came.
    pub errors: Vec<String>,
    /// How many bookmarks a watch brought.
    pub bookmarks: usize,
    /// Bytes of the body as they came, compressed if it was.
    pub bytes: usize,
    /// When the answer came to its proper end.
    pub ended: Option<Instant>,
}

impl Seen {
    /// A list, of one page or all.
    #[must_use]
    pub fn is_list(&self) -> bool {
        self.method == "GET" && !self.is_watch()
    }

    /// A watch, streaming list or not.
    #[must_use]
    pub fn is_watch(&self) -> bool {
        self.has("watch=")
    }

    /// A streaming list.
    #[must_use]
    pub fn is_stream(&self) -> bool {
        self.has("sendInitialEvents=true")
    }

    /// Whether the target has this text.
    #[must_use]
    pub fn has(&self, text: &str) -> bool {
        self.target.contains(text)
    }

    /// The first header of the answer of that name (lower case).
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(n, _)| n == name).map(|(_, v)| v.as_str())
    }
}

/// Which targets to hold.
type Which = Box<dyn Fn(&str) -> bool + Send>;

#[derive(Default)]
struct State {
    seen: Vec<Seen>,
    live: Vec<Live>,
    next: u64,
    refusing: bool,
    hold: Option<Which>,
    held: usize,
    without: Option<&'static str>,
    over: bool,
}

/// The sockets of one connection.
struct Live {
    id: u64,
    client: TcpStream,
    server: Option<TcpStream>,
}

impl Live {
    fn end(&self) {
        for socket in [Some(&self.client), self.server.as_ref()].into_iter().flatten() {
            drop(socket.shutdown(Shutdown::Both));
        }
    }
}

struct Shared {
    state: Mutex<State>,
    changed: Condvar,
    upstream: SocketAddr,
    server: Arc<ServerConfig>,
    client: Arc<ClientConfig>,
}

/// The relay. Its connections end when it is dropped.
pub struct Lens {
    shared: Arc<Shared>,
    addr: SocketAddr,
}

impl std::fmt::Debug for Lens {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Lens").field("addr", &self.addr).field("seen", &self.seen().len()).finish()
    }
}

impl Lens {
    /// Listens on a free port of the loopback address. `dir` has `server.crt`, `server.key` and `ca.crt`.
    ///
    /// # Errors
    /// When these cannot be read or no port can be bound.
    pub fn start(upstream: SocketAddr, dir: &Path) -> io::Result<Self> {
        let (server, client) = configs(dir).map_err(io::Error::other)?;
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let addr = listener.local_addr()?;
        let (state, changed) = (Mutex::default(), Condvar::new());
        let shared = Arc::new(Shared { state, changed, upstream, server, client });
        thread::spawn({
            let shared = Arc::clone(&shared);
            move || {
                while let Ok((client, _)) = listener.accept() {
                    if shared.lock().over {
                        return;
                    }
                    let shared = Arc::clone(&shared);
                    thread::spawn(move || serve(&shared, client));
                }
            }
        });
        Ok(Self { shared, addr })
    }

    /// Where clients connect to.
    #[must_use]
    pub const fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// Every request so far, in the order in which they came.
    #[must_use]
    pub fn seen(&self) -> Vec<Seen> {
        self.shared.lock().seen.clone()
    }

    /// How many requests are so.
    #[must_use]
    pub fn count(&self, is: impl Fn(&Seen) -> bool) -> usize {
        self.shared.lock().seen.iter().filter(|s| is(s)).count()
    }

    /// From now on requests whose target is so wait for [`Lens::release`] before they go on to the server.
    pub fn hold(&self, which: impl Fn(&str) -> bool + Send + 'static) {
        self.shared.lock().hold = Some(Box::new(which));
    }

    /// How many requests wait now.
    #[must_use]
    pub fn held(&self) -> usize {
        self.shared.lock().held
    }

    /// Lets go on what was held, and holds nothing more.
    pub fn release(&self) {
        self.shared.lock().hold = None;
        self.shared.changed.notify_all();
    }

    /// From now on this parameter is left away from every request.
    pub fn leave_away(&self, parameter: &'static str) {
        self.shared.lock().without = Some(parameter);
    }

    /// How many connections there have been.
    #[must_use]
    pub fn connections(&self) -> u64 {
        self.shared.lock().next
    }

    /// Ends every connection that stands now; gives how many.
    pub fn cut(&self) -> usize {
        let mut state = self.shared.lock();
        let ended = std::mem::take(&mut state.live);
        ended.iter().for_each(Live::end);
        ended.len()
    }

    /// Ends every connection, and new ones as soon as they come, until [`Lens::accept`].
    pub fn refuse(&self) {
        self.shared.lock().refusing = true;
        self.cut();
    }

    /// Lets connections through again.
    pub fn accept(&self) {
        self.shared.lock().refusing = false;
    }
}

impl Drop for Lens {
    fn drop(&mut self) {
        self.shared.lock().over = true;
        self.release();
        self.cut();
        // Wakes the acceptor.
        drop(TcpStream::connect(self.addr));
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes note of a request, holds it if it is to be held; gives its number and the target that goes on.
    fn begin(&self, method: &str, target: &str) -> (usize, String) {
        let mut state = self.lock();
        state.seen.push(Seen {
            asked: Instant::now(),
            method: method.to_owned(),
            target: target.to_owned(),
            status: 0,
            headers: Vec::new(),
            refusal: String::new(),
            errors: Vec::new(),
            bookmarks: 0,
            bytes: 0,
            ended: None,
        });
        let number = state.seen.len() - 1;
        state.held += 1;
        while state.hold.as_ref().is_some_and(|which| which(target)) {
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        state.held -= 1;
        let target = state.without.map_or_else(|| target.to_owned(), |p| without(target, p));
        (number, target)
    }
}

/// `target` without one parameter of its query.
fn without(target: &str, parameter: &str) -> String {
    let Some((path, query)) = target.split_once('?') else { return target.to_owned() };
    let kept: Vec<&str> = query.split('&').filter(|p| p.split('=').next() != Some(parameter)).collect();
    format!("{path}?{}", kept.join("&"))
}

fn configs(
    dir: &Path,
) -> Result<(Arc<ServerConfig>, Arc<ClientConfig>), Box<dyn std::error::Error + Send + Sync>> {
    let provider = || Arc::new(rustls::crypto::ring::default_provider());
    let chain = CertificateDer::pem_file_iter(dir.join("server.crt"))?.collect::<Result<Vec<_>, _>>()?;
    let key = PrivateKeyDer::from_pem_file(dir.join("server.key"))?;
    let server = ServerConfig::builder_with_provider(provider())
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_single_cert(chain, key)?;
    let mut roots = RootCertStore::empty();
    for cert in CertificateDer::pem_file_iter(dir.join("ca.crt"))? {
        roots.add(cert?)?;
    }
    let client = ClientConfig::builder_with_provider(provider())
        .with_safe_default_protocol_versions()?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok((Arc::new(server), Arc::new(client)))
}

fn serve(shared: &Shared, client: TcpStream) {
    let Ok(socket) = client.try_clone() else { return };
    let id = {
        let mut state = shared.lock();
        if state.refusing {
            return;
        }
        let id = state.next;
        state.next += 1;
        state.live.push(Live { id, client: socket, server: None });
        id
    };
    // Its end, whatever the reason, is the end of both sockets; the peers see it.
    drop(relay(shared, id, client));
    let mut state = shared.lock();
    if let Some(at) = state.live.iter().position(|live| live.id == id) {
        state.live.swap_remove(at).end();
    }
}

/// Request by request, until either side ends.
fn relay(shared: &Shared, id: u64, client: TcpStream) -> io::Result<()> {
    client.set_nodelay(true)?;
    client.set_write_timeout(Some(PATIENCE))?;
    let client_socket = client.try_clone()?;
    let theirs = ServerConnection::new(Arc::clone(&shared.server)).map_err(io::Error::other)?;
    let mut client = StreamOwned::new(theirs, client);
    let mut server = None;
    let mut pending = Vec::new();
    while let Some((method, target, request)) = read_request(&mut client, &mut pending)? {
        let (number, forwarded) = shared.begin(&method, &target);
        let rest = request.strip_prefix(format!("{method} {target}").as_bytes()).unwrap_or(&request);
        // Not before: what was held while the server was away finds it when it is back.
        let server = match &mut server {
            Some(server) => server,
            none => none.insert(connect(shared, id)?),
        };
        server.write_all(&[format!("{method} {forwarded}").as_bytes(), rest].concat())?;
        server.flush()?;
        server.sock.set_read_timeout(Some(SLICE))?;
        if !answer(shared, number, &method, server, &mut client, &client_socket)? {
            break;
        }
    }
    Ok(())
}

/// The connection to the server that belongs to the one with this number.
fn connect(shared: &Shared, id: u64) -> io::Result<StreamOwned<ClientConnection, TcpStream>> {
    let tcp = TcpStream::connect_timeout(&shared.upstream, PATIENCE)?;
    tcp.set_nodelay(true)?;
    tcp.set_write_timeout(Some(PATIENCE))?;
    let socket = tcp.try_clone()?;
    let name = ServerName::IpAddress(shared.upstream.ip().into());
    let tls = ClientConnection::new(Arc::clone(&shared.client), name).map_err(io::Error::other)?;
    match shared.lock().live.iter_mut().find(|live| live.id == id) {
        Some(live) => live.server = Some(socket),
        // It was cut meanwhile.
        None => return Err(ErrorKind::ConnectionAborted.into()),
    }
    Ok(StreamOwned::new(tls, tcp))
}

/// One whole request; none at the end.
fn read_request(
    from: &mut impl Read,
    pending: &mut Vec<u8>,
) -> io::Result<Option<(String, String, Vec<u8>)>> {
    let mut buffer = [0; 16 * 1024];
    loop {
        let mut room = [httparse::EMPTY_HEADER; 64];
        let mut head = httparse::Request::new(&mut room);
        if let httparse::Status::Complete(length) = head.parse(pending).map_err(other)? {
            let header = |name: &str| head.headers.iter().find(|h| h.name.eq_ignore_ascii_case(name));
            let body = header("content-length")
                .and_then(|h| std::str::from_utf8(h.value).ok()?.parse::<usize>().ok())
                .unwrap_or_default();
            if pending.len() >= length + body {
                let method = head.method.unwrap_or_default().to_owned();
                let target = head.path.unwrap_or_default().to_owned();
                let rest = pending.split_off(length + body);
                return Ok(Some((method, target, std::mem::replace(pending, rest))));
            }
        }
        match from.read(&mut buffer) {
            Ok(0) => return Ok(None),
            Ok(n) => pending.extend_from_slice(&buffer[..n]),
            Err(e) if e.kind() == ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
}

/// Carries one answer over; whether another request may follow.
fn answer(
    shared: &Shared,
    number: usize,
    method: &str,
    server: &mut impl Read,
    client: &mut impl Write,
    client_socket: &TcpStream,
) -> io::Result<bool> {
    let mut buffer = vec![0; 16 * 1024];
    let mut head = Vec::new();
    let mut body: Option<Body> = None;
    let mut keep = true;
    loop {
        let n = match server.read(&mut buffer) {
            Ok(0) => {
                if body.as_ref().is_some_and(Body::ends_with_the_connection) {
                    shared.lock().seen[number].ended = Some(Instant::now());
                }
                return Ok(false);
            }
            Ok(n) => n,
            Err(e) if matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                if has_left(client_socket) {
                    return Ok(false);
                }
                continue;
            }
            Err(e) if e.kind() == ErrorKind::Interrupted => continue,
            Err(e) => return Err(e),
        };
        let bytes = &buffer[..n];
        // What came is noted before it goes on: a client that has seen something finds it noted.
        let mut rest = bytes;
        if body.is_none() {
            let before = head.len();
            head.extend_from_slice(bytes);
            if let Some((status, headers, length)) = response_head(&head)? {
                let find = |name: &str| headers.iter().find(|(n, _)| n == name).map(|(_, v)| v.as_str());
                keep = !find("connection").is_some_and(|v| v.eq_ignore_ascii_case("close"));
                body = Some(Body::of(method, status, find));
                let mut state = shared.lock();
                let seen = &mut state.seen[number];
                (seen.status, seen.headers) = (status, headers);
                rest = &bytes[length - before..];
            }
        }
        let mut over = false;
        if let Some(body) = &mut body {
            let mut state = shared.lock();
            let seen = &mut state.seen[number];
            over = body.take(rest, seen);
            if over {
                seen.ended = Some(Instant::now());
            }
        }
        client.write_all(bytes)?;
        client.flush()?;
        if over {
            return Ok(keep);
        }
    }
}

/// Status, headers and length of a head that is whole.
#[expect(clippy::type_complexity, reason = "used once, next to it")]
fn response_head(bytes: &[u8]) -> io::Result<Option<(u16, Vec<(String, String)>, usize)>> {
    let mut room = [httparse::EMPTY_HEADER; 64];
    let mut head = httparse::Response::new(&mut room);
    let httparse::Status::Complete(length) = head.parse(bytes).map_err(other)? else {
        return Ok(None);
    };
    let headers = head
        .headers
        .iter()
        .map(|h| (h.name.to_ascii_lowercase(), String::from_utf8_lossy(h.value).into_owned()))
        .collect();
    Ok(Some((head.code.unwrap_or_default(), headers, length)))
}

fn other(e: httparse::Error) -> io::Error {
    io::Error::other(e.to_string())
}

/// While an answer is on its way the client says nothing, but that it leaves.
fn has_left(client: &TcpStream) -> bool {
    let quiet = client.set_nonblocking(true).is_ok()
        && matches!(client.peek(&mut [0]), Err(e) if e.kind() == ErrorKind::WouldBlock);
    !(client.set_nonblocking(false).is_ok() && quiet)
}
