//! One connection to the API server, plain or TLS, as futures that may be dropped at any await.

use std::io::{self, ErrorKind};
use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use async_io::{Async, Timer};
use futures_lite::future::poll_once;
use futures_lite::io::BufReader;
use futures_lite::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, FutureExt};
use futures_rustls::TlsConnector;
use futures_rustls::client::TlsStream;
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
    tls: Option<(TlsConnector, ServerName<'static>)>,
}

pub(crate) struct Connection {
    stream: Stream,
    /// How the bytes of the last read ended, for the next one to tell.
    end: Option<io::Result<usize>>,
}

enum Stream {
    Plain(Socket),
    Tls(Box<TlsStream<Socket>>),
}

/// TLS asks for a few KiB at a time; the system is asked for all that has come.
type Socket = BufReader<Async<TcpStream>>;

impl Connector {
    pub(crate) fn new(config: &Config) -> Result<Self, TlsError> {
        let tls = match config.cluster.scheme {
            Scheme::Http => None,
            Scheme::Https => {
                Some((TlsConnector::from(tls::client_config(config)?), tls::server_name(config)?))
            }
        };
        let (host, port) = (config.cluster.host.clone(), config.cluster.port);
        Ok(Self { host, port, address: config.cluster.address(), tls })
    }

    /// To a host and port without TLS.
    pub(crate) fn plain(cluster: &Cluster) -> Self {
        Self { host: cluster.host.clone(), port: cluster.port, address: cluster.address(), tls: None }
    }

    /// Sets up TCP and TLS. Whoever awaits it ends it after `limit`, which all addresses of the host share.
    pub(crate) async fn connect(&self, limit: Duration) -> Result<Connection, NetError> {
        let until = Instant::now() + limit;
        let target = (self.host.clone(), self.port);
        let addresses: Vec<SocketAddr> = blocking::unblock(move || target.to_socket_addrs())
            .await
            .map_err(|e| NetError::unresolved(&self.address, e))?
            .collect();
        let socket = BufReader::with_capacity(READ_BYTES, self.tcp(&addresses, until).await?);
        let Some((connector, name)) = &self.tls else {
            return Ok(Connection { stream: Stream::Plain(socket), end: None });
        };
        let tls = connector.connect(name.clone(), socket).await.map_err(|e| self.io(&e))?;
        Ok(Connection { stream: Stream::Tls(Box::new(tls)), end: None })
    }

    /// The first of these addresses that answers.
    async fn tcp(&self, addresses: &[SocketAddr], until: Instant) -> Result<Async<TcpStream>, NetError> {
        let mut last = NetError::unresolved(&self.address, "it has no address");
        for (address, untried) in addresses.iter().zip((1..=addresses.len()).rev()) {
            let share = connect_share(until.saturating_duration_since(Instant::now()), untried);
            let late = async {
                Timer::after(share).await;
                Err(ErrorKind::TimedOut.into())
            };
            let connected = Async::<TcpStream>::connect(*address).or(late).await;
            match connected.and_then(|tcp| tune(&tcp).map(|()| tcp)) {
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

    /// A connection that could not be made in time.
    pub(crate) fn timed_out(&self) -> NetError {
        NetError::timed_out(&self.address, "connecting")
    }
}

fn tune(tcp: &Async<TcpStream>) -> io::Result<()> {
    let socket = SockRef::from(tcp.get_ref());
    let (idle, interval, probes) = KEEPALIVE;
    socket.set_tcp_nodelay(true)?;
    socket.set_tcp_keepalive(
        &TcpKeepalive::new().with_time(idle).with_interval(interval).with_retries(probes),
    )?;
    #[cfg(any(target_os = "linux", target_os = "android"))]
    socket.set_tcp_user_timeout(Some(DEAD_AFTER))?;
    Ok(())
}

impl Connection {
    /// Whether nothing has come since the last answer. On an idle connection anything that comes is its end.
    pub(crate) fn is_quiet(&self) -> bool {
        let socket = match &self.stream {
            Stream::Plain(socket) => socket,
            Stream::Tls(tls) => tls.get_ref().0,
        };
        // The socket does not block.
        let peeked = socket.get_ref().get_ref().peek(&mut [0]);
        self.end.is_none()
            && socket.buffer().is_empty()
            && matches!(peeked, Err(e) if e.kind() == ErrorKind::WouldBlock)
    }

    /// Reads what is there, at least one byte; 0 is the end. May be dropped and called again.
    pub(crate) async fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = match self.end.take() {
            Some(end) => end,
            None => self.fill(buffer).await,
        };
        match read {
            Err(e) if NetError::is_end(&e) => Ok(0),
            read => read,
        }
    }

    /// Waits for bytes, and adds to the first of them all that have come with them.
    async fn fill(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let mut n = self.stream.read(buffer).await?;
        while n > 0 && n < buffer.len() {
            match poll_once(self.stream.read(&mut buffer[n..])).await {
                None => break,
                Some(Ok(more)) if more > 0 => n += more,
                Some(end) => {
                    self.end = Some(end);
                    break;
                }
            }
        }
        Ok(n)
    }

    /// Writes everything.
    pub(crate) async fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stream.write_all(bytes).await?;
        self.stream.flush().await
    }

    /// Says farewell as far as that costs no wait.
    pub(crate) async fn close(mut self) {
        let _ = poll_once(self.stream.close()).await;
    }
}

impl AsyncRead for Stream {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut [u8]) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Plain(tcp) => Pin::new(tcp).poll_read(cx, buffer),
            Self::Tls(tls) => Pin::new(tls).poll_read(cx, buffer),
        }
    }
}

impl AsyncWrite for Stream {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Plain(tcp) => Pin::new(tcp).poll_write(cx, bytes),
            Self::Tls(tls) => Pin::new(tls).poll_write(cx, bytes),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(tcp) => Pin::new(tcp).poll_flush(cx),
            Self::Tls(tls) => Pin::new(tls).poll_flush(cx),
        }
    }

    fn poll_close(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(tcp) => Pin::new(tcp).poll_close(cx),
            Self::Tls(tls) => Pin::new(tls).poll_close(cx),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use socket2::{Domain, SockAddr, Socket, Type};
    use steersman_core::config::Cluster;

    use super::*;

    /// A listener whose backlog is full, and what fills it: the system drops whatever else wants to connect.
    fn deaf() -> (Socket, Vec<Socket>) {
        let listener = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
        listener.bind(&SockAddr::from(SocketAddr::from(([127, 0, 0, 1], 0)))).unwrap();
        listener.listen(0).unwrap();
        let address = listener.local_addr().unwrap();
        let fill = (0..4).map(|_| {
            let socket = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
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
        let config = Config::new(Cluster::parse(&format!("http://{dead}")).unwrap());
        let connector = Connector::new(&config).unwrap();
        let until = Instant::now() + Duration::from_secs(4);
        let whole = connector.tcp(&addresses, until).or(async {
            Timer::at(until).await;
            Err(connector.timed_out())
        });
        let tcp = futures_lite::future::block_on(whole).unwrap();
        assert_eq!(tcp.get_ref().peer_addr().unwrap(), addresses[1]);
    }
}
