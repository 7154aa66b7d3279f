//! One blocking connection to the API server, plain or TLS, whose reads end at a deadline.

use std::io::{self, BufReader, ErrorKind, IoSlice, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream, ToSocketAddrs};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustls::{ClientConfig, ClientConnection, StreamOwned};
use rustls_pki_types::ServerName;
use socket2::{SockRef, TcpKeepalive};
use steersman_core::config::{Cluster, Config, Scheme};
use steersman_core::limits::READ_BYTES;
use steersman_core::net::{DEAD_AFTER, KEEPALIVE, NetError, connect_share};
use steersman_core::tls::{self, TlsError};

/// Where to connect and how.
pub(crate) struct Connector {
    host: String,
    port: u16,
    /// `host:port`, for errors.
    address: String,
    /// `None` for plain HTTP.
    tls: Option<(Arc<ClientConfig>, ServerName<'static>)>,
}

pub(crate) struct Connection {
    stream: Stream,
    /// How the bytes of the last read ended, for the next one to tell.
    end: Option<io::Result<usize>>,
}

enum Stream {
    Plain(Socket),
    Tls(Box<StreamOwned<ClientConnection, Socket>>),
}

/// A socket whose calls end at a deadline. The system's own time-outs hold for one call, and TLS needs many: a peer that sends
/// a byte now and then would never be late.
struct Socket {
    /// TLS asks for a few KiB at a time; the system is asked for all that has come.
    tcp: BufReader<TcpStream>,
    /// `None`: wait for ever.
    until: Option<Instant>,
    /// Read what has come already, and nothing else.
    at_hand: bool,
}

impl Socket {
    fn new(tcp: TcpStream, until: Instant) -> Self {
        Self { tcp: BufReader::with_capacity(READ_BYTES, tcp), until: Some(until), at_hand: false }
    }

    /// From now on calls end within `limit`. One that is due already still looks once at what is there.
    fn within(&mut self, limit: Option<Duration>) {
        // Zero is an error to `std`, and the clock goes on before the first call. More than the clock can count is for ever.
        self.until = limit.and_then(|d| Instant::now().checked_add(d.max(Duration::from_millis(1))));
    }

    /// The time that is left; never zero.
    fn left(&self) -> io::Result<Option<Duration>> {
        match self.until.map(|until| until.saturating_duration_since(Instant::now())) {
            Some(Duration::ZERO) => Err(ErrorKind::TimedOut.into()),
            left => Ok(left),
        }
    }
}

impl Read for Socket {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.tcp.buffer().is_empty() {
            if self.at_hand {
                return Err(ErrorKind::WouldBlock.into());
            }
            self.tcp.get_ref().set_read_timeout(self.left()?)?;
        }
        self.tcp.read(buffer)
    }
}

impl Write for Socket {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.tcp.get_ref().set_write_timeout(self.left()?)?;
        self.tcp.get_mut().write(bytes)
    }

    fn write_vectored(&mut self, bytes: &[IoSlice<'_>]) -> io::Result<usize> {
        self.tcp.get_ref().set_write_timeout(self.left()?)?;
        self.tcp.get_mut().write_vectored(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.tcp.get_mut().flush()
    }
}

/// What one read brought.
pub(crate) enum ReadOutcome {
    Bytes(usize),
    Eof,
    TimedOut,
}

impl Connector {
    pub(crate) fn new(config: &Config) -> Result<Self, TlsError> {
        let tls = match config.cluster.scheme {
            Scheme::Http => None,
            Scheme::Https => Some((tls::client_config(config)?, tls::server_name(config)?)),
        };
        let (host, port) = (config.cluster.host.clone(), config.cluster.port);
        Ok(Self { host, port, address: config.cluster.address(), tls })
    }

    /// To a host and port without TLS.
    pub(crate) fn plain(cluster: &Cluster) -> Self {
        Self { host: cluster.host.clone(), port: cluster.port, address: cluster.address(), tls: None }
    }

    /// Sets up TCP and TLS within `limit`.
    pub(crate) fn connect(&self, limit: Duration) -> Result<Connection, NetError> {
        let until = Instant::now() + limit;
        let addresses = (self.host.as_str(), self.port)
            .to_socket_addrs()
            .map_err(|e| NetError::unresolved(&self.address, e))?;
        let mut socket = Socket::new(self.tcp(&addresses.collect::<Vec<_>>(), until)?, until);
        let Some((config, name)) = &self.tls else {
            return Ok(Connection { stream: Stream::Plain(socket), end: None });
        };
        let mut tls = ClientConnection::new(Arc::clone(config), name.clone())
            .map_err(|e| tls::net_error(&self.address, &e))?;
        while tls.is_handshaking() {
            tls.complete_io(&mut socket).map_err(|e| match e.kind() {
                ErrorKind::TimedOut | ErrorKind::WouldBlock => {
                    NetError::timed_out(&self.address, "in the TLS handshake")
                }
                _ => self.io(&e),
            })?;
        }
        Ok(Connection { stream: Stream::Tls(Box::new(StreamOwned::new(tls, socket))), end: None })
    }

    /// The first of these addresses that answers.
    fn tcp(&self, addresses: &[SocketAddr], until: Instant) -> Result<TcpStream, NetError> {
        let mut last = NetError::unresolved(&self.address, "it has no address");
        for (address, untried) in addresses.iter().zip((1..=addresses.len()).rev()) {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(NetError::timed_out(&self.address, "connecting"));
            }
            let share = connect_share(left, untried);
            match TcpStream::connect_timeout(address, share).and_then(|tcp| tune(&tcp).map(|()| tcp)) {
                Ok(tcp) => return Ok(tcp),
                Err(e) => last = self.io(&e),
            }
        }
        Err(last)
    }

    /// What an error of a connection of ours means.
    pub(crate) fn io(&self, e: &io::Error) -> NetError {
        NetError::from_io(&self.address, e)
    }
}

fn tune(tcp: &TcpStream) -> io::Result<()> {
    tcp.set_nodelay(true)?;
    let socket = SockRef::from(tcp);
    let (idle, interval, probes) = KEEPALIVE;
    socket.set_tcp_keepalive(
        &TcpKeepalive::new().with_time(idle).with_interval(interval).with_retries(probes),
    )?;
    #[cfg(any(target_os = "linux", target_os = "android"))]
    socket.set_tcp_user_timeout(Some(DEAD_AFTER))?;
    Ok(())
}

impl Connection {
    fn socket(&self) -> &Socket {
        match &self.stream {
            Stream::Plain(socket) => socket,
            Stream::Tls(tls) => &tls.sock,
        }
    }

    fn socket_mut(&mut self) -> &mut Socket {
        match &mut self.stream {
            Stream::Plain(socket) => socket,
            Stream::Tls(tls) => &mut tls.sock,
        }
    }

    fn tcp(&self) -> &TcpStream {
        self.socket().tcp.get_ref()
    }

    /// A handle by which another thread can end a blocked read.
    pub(crate) fn handle(&self) -> io::Result<TcpStream> {
        self.tcp().try_clone()
    }

    /// Whether nothing has come since the last answer. On an idle connection anything that comes is its end.
    pub(crate) fn is_quiet(&self) -> bool {
        let tcp = self.tcp();
        let nothing = self.end.is_none()
            && self.socket().tcp.buffer().is_empty()
            && tcp.set_nonblocking(true).is_ok()
            && matches!(tcp.peek(&mut [0]), Err(e) if e.kind() == ErrorKind::WouldBlock);
        tcp.set_nonblocking(false).is_ok() && nothing
    }

    /// Reads what is there, waiting no longer than `limit` (`None`: for ever).
    pub(crate) fn read(&mut self, buffer: &mut [u8], limit: Option<Duration>) -> io::Result<ReadOutcome> {
        let read = match self.end.take() {
            Some(end) => end,
            None => self.fill(buffer, limit),
        };
        match read {
            Ok(0) => Ok(ReadOutcome::Eof),
            Ok(n) => Ok(ReadOutcome::Bytes(n)),
            Err(e) if is_late(&e) => Ok(ReadOutcome::TimedOut),
            Err(e) if NetError::is_end(&e) => Ok(ReadOutcome::Eof),
            Err(e) => Err(e),
        }
    }

    /// Waits for bytes, and adds to the first of them all that have come with them.
    fn fill(&mut self, buffer: &mut [u8], limit: Option<Duration>) -> io::Result<usize> {
        self.socket_mut().within(limit);
        let mut n = self.stream.read(buffer)?;
        self.socket_mut().at_hand = true;
        while n > 0 && n < buffer.len() {
            match self.stream.read(&mut buffer[n..]) {
                Err(e) if is_late(&e) => break,
                Ok(more) if more > 0 => n += more,
                end => {
                    self.end = Some(end);
                    break;
                }
            }
        }
        self.socket_mut().at_hand = false;
        Ok(n)
    }

    /// Writes everything, waiting no longer than `limit` in all.
    pub(crate) fn write(&mut self, bytes: &[u8], limit: Option<Duration>) -> io::Result<()> {
        self.socket_mut().within(limit);
        match &mut self.stream {
            Stream::Plain(socket) => socket.write_all(bytes),
            Stream::Tls(tls) => tls.write_all(bytes).and_then(|()| tls.flush()),
        }
    }
}

impl Read for Stream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Plain(socket) => socket.read(buffer),
            Self::Tls(tls) => tls.read(buffer),
        }
    }
}

/// Whether a read brought nothing in time.
fn is_late(e: &io::Error) -> bool {
    matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted)
}

impl Drop for Connection {
    fn drop(&mut self) {
        if let Stream::Tls(tls) = &mut self.stream {
            tls.conn.send_close_notify();
            // A courtesy, not worth a wait.
            tls.sock.within(Some(Duration::from_millis(100)));
            while tls.conn.wants_write() && tls.conn.write_tls(&mut tls.sock).is_ok_and(|n| n > 0) {}
        }
        // Clones of the socket may live in an interrupt.
        let _ = self.tcp().shutdown(Shutdown::Both);
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;
    use std::thread;

    use socket2::{Domain, SockAddr, Type};
    use steersman_core::config::Cluster;
    use steersman_core::net::NetErrorKind;

    use super::*;

    fn connector(address: SocketAddr) -> Connector {
        Connector::new(&Config::new(Cluster::parse(&format!("http://{address}")).unwrap())).unwrap()
    }

    /// A listener whose backlog is full, and what fills it: the system drops whatever else wants to connect.
    fn deaf() -> (socket2::Socket, Vec<socket2::Socket>) {
        let listener = socket2::Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
        listener.bind(&SockAddr::from(SocketAddr::from(([127, 0, 0, 1], 0)))).unwrap();
        listener.listen(0).unwrap();
        let address = listener.local_addr().unwrap();
        let fill = (0..4).map(|_| {
            let socket = socket2::Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
            socket.set_nonblocking(true).unwrap();
            let _ = socket.connect(&address);
            socket
        });
        let fill = fill.collect();
        (listener, fill)
    }

    #[test]
    fn a_dead_address_leaves_time_for_the_next() {
        let (dead, _fill) = deaf();
        let dead = dead.local_addr().unwrap().as_socket().unwrap();
        let living = TcpListener::bind("127.0.0.1:0").unwrap();
        let addresses = [dead, living.local_addr().unwrap()];
        let until = Instant::now() + Duration::from_secs(4);
        let tcp = connector(dead).tcp(&addresses, until).unwrap();
        assert_eq!(tcp.peer_addr().unwrap(), addresses[1]);
        let e = connector(dead).tcp(&addresses[..1], Instant::now() + Duration::from_millis(20)).unwrap_err();
        assert_eq!(e.kind, NetErrorKind::TimedOut);
    }

    #[test]
    fn a_peer_that_takes_a_little_now_and_then_is_late_all_the_same() {
        let server = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut connection =
            connector(server.local_addr().unwrap()).connect(Duration::from_secs(20)).unwrap();
        let (mut peer, _) = server.accept().unwrap();
        let reader = thread::spawn(move || {
            // Slow enough for no end in sight, quick enough that no single write is late. Ends with the connection.
            let mut buffer = vec![0; 64 * 1024];
            while peer.read(&mut buffer).is_ok_and(|n| n > 0) {
                thread::park_timeout(Duration::from_millis(5));
            }
        });
        let e = connection.write(&vec![0; 1 << 28], Some(Duration::from_millis(300))).unwrap_err();
        assert!(matches!(e.kind(), ErrorKind::TimedOut | ErrorKind::WouldBlock), "{e}");
        drop(connection);
        reader.join().unwrap();
    }
}
