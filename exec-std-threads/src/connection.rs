//! One blocking connection to the API server, plain or TLS, whose reads end at a deadline.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream, ToSocketAddrs};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustls::{ClientConfig, ClientConnection, StreamOwned};
use rustls_pki_types::ServerName;
use socket2::{SockRef, TcpKeepalive};
use steersman_core::config::{Config, Scheme};
use steersman_core::net::{DEAD_AFTER, KEEPALIVE, NetError};
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
}

enum Stream {
    Plain(TcpStream),
    Tls(Box<StreamOwned<ClientConnection, TcpStream>>),
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

    /// Sets up TCP and TLS within `limit`.
    pub(crate) fn connect(&self, limit: Duration) -> Result<Connection, NetError> {
        let until = Instant::now() + limit;
        let mut tcp = self.tcp(until)?;
        let Some((config, name)) = &self.tls else {
            return Ok(Connection { stream: Stream::Plain(tcp) });
        };
        let mut tls = ClientConnection::new(Arc::clone(config), name.clone())
            .map_err(|e| tls::net_error(&self.address, &e))?;
        while tls.is_handshaking() {
            let left = self.left(until, "in the TLS handshake")?;
            tcp.set_read_timeout(Some(left))
                .and_then(|()| tcp.set_write_timeout(Some(left)))
                .map_err(|e| self.io(&e))?;
            tls.complete_io(&mut tcp).map_err(|e| self.io(&e))?;
        }
        Ok(Connection { stream: Stream::Tls(Box::new(StreamOwned::new(tls, tcp))) })
    }

    fn tcp(&self, until: Instant) -> Result<TcpStream, NetError> {
        let addresses = (self.host.as_str(), self.port)
            .to_socket_addrs()
            .map_err(|e| NetError::unresolved(&self.address, e))?;
        let mut last = NetError::unresolved(&self.address, "it has no address");
        for address in addresses {
            let left = self.left(until, "connecting")?;
            match TcpStream::connect_timeout(&address, left).and_then(|tcp| tune(&tcp).map(|()| tcp)) {
                Ok(tcp) => return Ok(tcp),
                Err(e) => last = self.io(&e),
            }
        }
        Err(last)
    }

    /// The time that is left, never zero: that would be an error to `std`.
    fn left(&self, until: Instant, what: &str) -> Result<Duration, NetError> {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() { Err(NetError::timed_out(&self.address, what)) } else { Ok(left) }
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
    fn tcp(&self) -> &TcpStream {
        match &self.stream {
            Stream::Plain(tcp) => tcp,
            Stream::Tls(tls) => &tls.sock,
        }
    }

    /// A handle by which another thread can end a blocked read.
    pub(crate) fn handle(&self) -> io::Result<TcpStream> {
        self.tcp().try_clone()
    }

    /// Whether nothing has come since the last answer. On an idle connection anything that comes is its end.
    pub(crate) fn is_quiet(&self) -> bool {
        let tcp = self.tcp();
        let nothing = tcp.set_nonblocking(true).is_ok()
            && matches!(tcp.peek(&mut [0]), Err(e) if e.kind() == ErrorKind::WouldBlock);
        tcp.set_nonblocking(false).is_ok() && nothing
    }

    /// Reads what is there, waiting no longer than `limit` (`None`: for ever).
    pub(crate) fn read(&mut self, buffer: &mut [u8], limit: Option<Duration>) -> io::Result<ReadOutcome> {
        self.tcp().set_read_timeout(limit.map(never_zero))?;
        let read = match &mut self.stream {
            Stream::Plain(tcp) => tcp.read(buffer),
            Stream::Tls(tls) => tls.read(buffer),
        };
        match read {
            Ok(0) => Ok(ReadOutcome::Eof),
            Ok(n) => Ok(ReadOutcome::Bytes(n)),
            Err(e)
                if matches!(
                    e.kind(),
                    ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted
                ) =>
            {
                Ok(ReadOutcome::TimedOut)
            }
            // TLS ended without `close_notify`: many proxies do. The framing of HTTP tells whether anything is missing.
            Err(e) if e.kind() == ErrorKind::UnexpectedEof => Ok(ReadOutcome::Eof),
            Err(e) => Err(e),
        }
    }

    /// Writes everything, waiting no longer than `limit` for each piece.
    pub(crate) fn write(&mut self, bytes: &[u8], limit: Option<Duration>) -> io::Result<()> {
        self.tcp().set_write_timeout(limit.map(never_zero))?;
        match &mut self.stream {
            Stream::Plain(tcp) => tcp.write_all(bytes),
            Stream::Tls(tls) => tls.write_all(bytes).and_then(|()| tls.flush()),
        }
    }
}

/// A zero time-out is an error to `std`; a due deadline still polls the socket once.
fn never_zero(d: Duration) -> Duration {
    d.max(Duration::from_millis(1))
}

impl Drop for Connection {
    fn drop(&mut self) {
        if let Stream::Tls(tls) = &mut self.stream {
            tls.conn.send_close_notify();
            // A courtesy, not worth a wait.
            let _ = tls.sock.set_write_timeout(Some(Duration::from_millis(100)));
            while tls.conn.wants_write() && tls.conn.write_tls(&mut tls.sock).is_ok_and(|n| n > 0) {}
        }
        // Clones of the socket may live in an interrupt.
        let _ = self.tcp().shutdown(Shutdown::Both);
    }
}
