//! A machine with its socket, looked at now and then.

use std::collections::VecDeque;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::sync::Arc;
use std::time::Duration;

use rustls::{ClientConfig, ClientConnection};
use steersman_core::client::{Driven, Effect, Happening};
use steersman_core::config::{Config, whole_file};
use steersman_core::limits;
use steersman_core::machine::Outputs;
use steersman_core::net::{ConnId, NetError, NetEvent};
use steersman_core::time::Time;
use steersman_core::tls;

/// A machine and its connection. [`look`](Self::look) never waits for the other side, except while TCP connects: `std` has
/// no other way.
pub struct Socketed<M: Driven> {
    /// The machine.
    pub machine: M,
    config: Arc<Config>,
    tls: Arc<ClientConfig>,
    open: Option<Open>,
    out: Outputs<M::Output>,
}

/// A socket that never blocks, and the TLS on it.
struct Open {
    conn: ConnId,
    tcp: TcpStream,
    tls: ClientConnection,
    /// Whether the machine was told that it stands.
    connected: bool,
}

impl Open {
    /// Moves what can be moved at once: whether anything was, and whether the other side has ended.
    fn turn(&mut self, received: &mut Vec<u8>) -> io::Result<(bool, bool)> {
        let (mut moved, mut ended) = (false, false);
        if self.tls.wants_read()
            && let Some(n) = at_once(self.tls.read_tls(&mut self.tcp))?
        {
            (moved, ended) = (true, n == 0);
            let state = match self.tls.process_new_packets() {
                Ok(state) => state,
                Err(e) => {
                    // The alert that says why, if it goes out.
                    let _ = self.tls.write_tls(&mut self.tcp);
                    return Err(io::Error::new(ErrorKind::InvalidData, e));
                }
            };
            ended |= state.peer_has_closed();
            received.resize(state.plaintext_bytes_to_read(), 0);
            self.tls.reader().read_exact(received)?;
        }
        while !ended && self.tls.wants_write() && at_once(self.tls.write_tls(&mut self.tcp))?.is_some() {
            moved = true;
        }
        Ok((moved, ended))
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.tls.send_close_notify();
        // A courtesy, not worth a wait.
        let _ = self.tls.write_tls(&mut self.tcp);
    }
}

/// `None` if it would have to wait.
fn at_once(result: io::Result<usize>) -> io::Result<Option<usize>> {
    match result {
        Err(e) if matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => Ok(None),
        result => result.map(Some),
    }
}

impl<M: Driven> Socketed<M> {
    /// A machine without a connection, and its first input.
    pub fn new(
        config: &Arc<Config>,
        tls: &Arc<ClientConfig>,
        mut machine: M,
        now: Time,
        first: M::Input<'_>,
    ) -> Self {
        let mut out = Outputs::new();
        machine.handle(now, first, &mut out);
        Self { machine, config: Arc::clone(config), tls: Arc::clone(tls), open: None, out }
    }

    /// Gives the machine an input of its own; what follows from it comes with the next [`look`](Self::look).
    pub fn give(&mut self, now: Time, input: M::Input<'_>) {
        self.machine.handle(now, input, &mut self.out);
    }

    /// Gives the machine what has come, and performs what it asks for. Returns what it told beyond that, and whether
    /// anything happened.
    pub fn look(&mut self, now: Time) -> (Vec<M::Output>, bool) {
        let mut told = Vec::new();
        let mut busy = self.turn(now);
        if self.machine.is_due(now) {
            self.tell(now, Happening::Deadline);
        }
        let mut todo: VecDeque<_> = self.out.drain().collect();
        while let Some(output) = todo.pop_front() {
            busy = true;
            match M::effect(output) {
                Ok(effect) => self.perform(now, effect),
                Err(output) => told.push(output),
            }
            todo.extend(self.out.drain());
        }
        (told, busy)
    }

    fn tell(&mut self, now: Time, happening: Happening<'_>) {
        self.give(now, M::happened(happening));
    }

    fn turn(&mut self, now: Time) -> bool {
        let Some(open) = &mut self.open else { return false };
        let conn = open.conn;
        let mut received = Vec::new();
        let turned = open.turn(&mut received);
        let stands = open.connected;
        open.connected |= turned.is_ok() && !open.tls.is_handshaking();
        if open.connected && !stands {
            self.tell(now, Happening::Net { conn, event: NetEvent::Connected { reused: false } });
        }
        if !received.is_empty() {
            self.tell(now, Happening::Net { conn, event: NetEvent::Received(&received) });
        }
        match turned {
            Ok((moved, false)) => return moved,
            Ok((_, true)) if self.open.take().is_some_and(|open| open.connected) => {
                self.tell(now, Happening::Net { conn, event: NetEvent::Eof });
            }
            Ok(_) => self.lost(now, conn, false, &io::Error::from(ErrorKind::UnexpectedEof)),
            Err(e) => {
                let stood = self.open.take().is_some_and(|open| open.connected);
                self.lost(now, conn, stood, &e);
            }
        }
        true
    }

    fn lost(&mut self, now: Time, conn: ConnId, stood: bool, why: &io::Error) {
        let error = NetError::from_io(&self.config.cluster.address(), why);
        let event = if stood { NetEvent::Broken(&error) } else { NetEvent::ConnectFailed(&error) };
        self.tell(now, Happening::Net { conn, event });
    }

    fn perform(&mut self, now: Time, effect: Effect) {
        match effect {
            Effect::Connect { conn, .. } => {
                let limit = self.machine.next_deadline().map_or(limits::CONNECT, |d| d.at.since(now));
                match self.connect(limit) {
                    Ok((tcp, tls)) => self.open = Some(Open { conn, tcp, tls, connected: false }),
                    Err(e) => self.tell(now, Happening::Net { conn, event: NetEvent::ConnectFailed(&e) }),
                }
            }
            Effect::Write { conn, bytes } => {
                // It goes out when the socket takes it.
                if let Some(open) = self.open.as_mut().filter(|open| open.conn == conn)
                    && let Err(e) = open.tls.writer().write_all(&bytes.0)
                {
                    self.open = None;
                    self.lost(now, conn, true, &e);
                }
            }
            // There is no pool here.
            Effect::Close { conn } | Effect::Release { conn } => {
                self.open.take_if(|open| open.conn == conn);
            }
            Effect::ReadFile { path } => {
                let bytes = whole_file(std::fs::File::open(&*path));
                self.tell(now, Happening::File { path: &path, result: bytes.as_deref() });
            }
            _ => {}
        }
    }

    fn connect(&self, limit: Duration) -> Result<(TcpStream, ClientConnection), NetError> {
        let (cluster, address) = (&self.config.cluster, self.config.cluster.address());
        let failed = |e: io::Error| NetError::from_io(&address, &e);
        let tls = tls::server_name(&self.config).map_err(|e| NetError::unresolved(&address, e))?;
        let mut tls =
            ClientConnection::new(Arc::clone(&self.tls), tls).map_err(|e| tls::net_error(&address, &e))?;
        // The machine has the bytes anyway: they may as well all wait here.
        tls.set_buffer_limit(None);
        let mut last = NetError::unresolved(&address, "it has no address");
        let hosts = (cluster.host.as_str(), cluster.port).to_socket_addrs();
        for host in hosts.map_err(|e| NetError::unresolved(&address, e))? {
            // Zero is an error to `std`.
            match TcpStream::connect_timeout(&host, limit.max(Duration::from_millis(1))) {
                Ok(tcp) => return tcp.set_nonblocking(true).map(|()| (tcp, tls)).map_err(failed),
                Err(e) => last = failed(e),
            }
        }
        Err(last)
    }
}
