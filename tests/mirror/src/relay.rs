//! A TCP relay whose connections can be killed; what passes is TLS, of which it knows nothing.

use std::io::{self, Read as _, Write as _};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream, ToSocketAddrs as _};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

use steersman_core::config::Config;

/// Listens on loopback and passes everything on to one server.
pub struct Relay {
    addr: SocketAddr,
    live: Arc<Mutex<Live>>,
}

#[derive(Default)]
struct Live {
    /// Both ends of every connection.
    pairs: Vec<(u64, TcpStream, TcpStream)>,
    next: u64,
    ended: bool,
}

impl Relay {
    /// A relay to this server.
    pub(crate) fn start(host: &str, port: u16) -> io::Result<Self> {
        let host = host.trim_start_matches('[').trim_end_matches(']');
        let upstream: Vec<SocketAddr> = (host, port).to_socket_addrs()?.collect();
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let relay = Self { addr: listener.local_addr()?, live: Arc::default() };
        let live = Arc::clone(&relay.live);
        thread::Builder::new().name("relay".into()).spawn(move || {
            for client in listener.incoming() {
                if lock(&live).ended {
                    return;
                }
                if let Ok(client) = client {
                    // A client that cannot be served sees its connection end.
                    let _ = admit(&live, client, &upstream);
                }
            }
        })?;
        Ok(relay)
    }

    /// The way to the same cluster through this relay: the server is still checked by its own name.
    pub(crate) fn config(&self, config: &Config) -> Config {
        let mut config = config.clone();
        config.tls.server_name.get_or_insert_with(|| config.cluster.host.clone());
        config.cluster.host = self.addr.ip().to_string();
        config.cluster.port = self.addr.port();
        config
    }

    /// Ends every connection, in the middle of whatever it carries; says how many there were.
    pub(crate) fn kill_all(&self) -> usize {
        let live = lock(&self.live);
        for (_, client, server) in &live.pairs {
            end(client);
            end(server);
        }
        live.pairs.len()
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        lock(&self.live).ended = true;
        self.kill_all();
        // Wakes the thread that accepts.
        drop(TcpStream::connect(self.addr));
    }
}

impl std::fmt::Debug for Relay {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Relay").field("addr", &self.addr).finish_non_exhaustive()
    }
}

fn lock(live: &Mutex<Live>) -> MutexGuard<'_, Live> {
    live.lock().unwrap_or_else(PoisonError::into_inner)
}

fn end(socket: &TcpStream) {
    // It may have ended already.
    let _ = socket.shutdown(Shutdown::Both);
}

fn admit(live: &Arc<Mutex<Live>>, client: TcpStream, upstream: &[SocketAddr]) -> io::Result<()> {
    let server = TcpStream::connect(upstream)?;
    client.set_nodelay(true)?;
    server.set_nodelay(true)?;
    let id = {
        let mut live = lock(live);
        let id = live.next;
        live.next += 1;
        live.pairs.push((id, client.try_clone()?, server.try_clone()?));
        id
    };
    pump(live, id, client.try_clone()?, server.try_clone()?)?;
    pump(live, id, server, client)
}

/// Copies one direction until either end is gone, then ends both.
fn pump(live: &Arc<Mutex<Live>>, id: u64, mut from: TcpStream, mut to: TcpStream) -> io::Result<()> {
    let live = Arc::clone(live);
    thread::Builder::new()
        .name("relay-pump".into())
        .spawn(move || {
            let mut buffer = vec![0; 32 * 1024];
            while let Ok(n @ 1..) = from.read(&mut buffer) {
                if to.write_all(&buffer[..n]).is_err() {
                    break;
                }
            }
            end(&from);
            end(&to);
            lock(&live).pairs.retain(|(other, ..)| *other != id);
        })
        .map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_pass_until_the_connections_are_killed() {
        let server = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let relay = Relay::start("127.0.0.1", server.local_addr().unwrap().port()).unwrap();
        let mut client = TcpStream::connect(relay.addr).unwrap();
        let (mut far, _) = server.accept().unwrap();
        let mut buffer = [0; 4];
        client.write_all(b"ping").unwrap();
        far.read_exact(&mut buffer).unwrap();
        assert_eq!(&buffer, b"ping");
        far.write_all(b"pong").unwrap();
        client.read_exact(&mut buffer).unwrap();
        assert_eq!(&buffer, b"pong");
        assert_eq!(relay.kill_all(), 1);
        assert!(matches!(client.read(&mut buffer), Ok(0) | Err(_)));
        assert!(matches!(far.read(&mut buffer), Ok(0) | Err(_)));
        // The next one passes.
        let mut client = TcpStream::connect(relay.addr).unwrap();
        let (mut far, _) = server.accept().unwrap();
        client.write_all(b"ping").unwrap();
        far.read_exact(&mut buffer).unwrap();
    }

    #[test]
    fn the_server_is_checked_by_its_own_name() {
        let cluster = steersman_core::config::Cluster::parse("https://localhost:6443/base").unwrap();
        let relay = Relay { addr: ([127, 0, 0, 1], 1).into(), live: Arc::default() };
        let config = relay.config(&Config::new(cluster));
        assert_eq!(config.cluster.to_string(), "https://127.0.0.1:1/base");
        assert_eq!(config.tls.server_name.as_deref(), Some("localhost"));
    }
}
