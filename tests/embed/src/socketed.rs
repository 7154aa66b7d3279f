//! A machine with its socket, looked at now and then.

use std::collections::VecDeque;
use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::sync::Arc;

use rustls::{ClientConfig, ClientConnection, StreamOwned};
use steersman_core::client::{Driven, Effect, Happening};
use steersman_core::config::{Config, FileError};
use steersman_core::machine::Outputs;
use steersman_core::net::{ConnId, NetError, NetEvent};
use steersman_core::time::Time;
use steersman_core::tls;

type Stream = StreamOwned<ClientConnection, TcpStream>;

/// A machine and its connection. [`look`](Self::look) never blocks, except to connect.
pub struct Socketed<M: Driven> {
    /// The machine.
    pub machine: M,
    config: Arc<Config>,
    tls: Arc<ClientConfig>,
    open: Option<(ConnId, Stream)>,
    out: Outputs<M::Output>,
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

    /// Gives the machine what has come, and performs what it asks for. Returns what it told beyond that, and whether
    /// anything happened.
    pub fn look(&mut self, now: Time) -> (Vec<M::Output>, bool) {
        let mut told = Vec::new();
        let mut busy = self.read(now);
        if self.machine.next_deadline().is_some_and(|d| d.at <= now) {
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
        self.machine.handle(now, M::happened(happening), &mut self.out);
    }

    fn read(&mut self, now: Time) -> bool {
        let Some((conn, stream)) = &mut self.open else { return false };
        let conn = *conn;
        let mut buffer = [0; 16 * 1024];
        match stream.read(&mut buffer) {
            Ok(0) => {
                self.open = None;
                self.tell(now, Happening::Net { conn, event: NetEvent::Eof });
            }
            Ok(n) => self.tell(now, Happening::Net { conn, event: NetEvent::Received(&buffer[..n]) }),
            Err(e) if e.kind() == ErrorKind::WouldBlock => return false,
            Err(e) => {
                let error = NetError::from_io(&self.config.cluster.address(), &e);
                self.open = None;
                self.tell(now, Happening::Net { conn, event: NetEvent::Broken(&error) });
            }
        }
        true
    }

    fn perform(&mut self, now: Time, effect: Effect) {
        match effect {
            Effect::Connect { conn, .. } => match self.connect() {
                Ok(stream) => {
                    self.open = Some((conn, stream));
                    self.tell(now, Happening::Net { conn, event: NetEvent::Connected { reused: false } });
                }
                Err(e) => self.tell(now, Happening::Net { conn, event: NetEvent::ConnectFailed(&e) }),
            },
            Effect::Write { conn, bytes } => {
                if let Some((_, stream)) = self.open.as_mut().filter(|(open, _)| *open == conn)
                    && let Err(e) = write_whole(stream, &bytes.0)
                {
                    let error = NetError::from_io(&self.config.cluster.address(), &e);
                    self.open = None;
                    self.tell(now, Happening::Net { conn, event: NetEvent::Broken(&error) });
                }
            }
            // There is no pool here.
            Effect::Close { conn } | Effect::Release { conn } => {
                self.open.take_if(|(open, _)| *open == conn);
            }
            Effect::ReadFile { path } => {
                let bytes = std::fs::read(&*path).map_err(|e| FileError::Other(e.to_string()));
                self.tell(now, Happening::File { path: &path, result: bytes.as_deref() });
            }
            _ => {}
        }
    }

    fn connect(&self) -> Result<Stream, NetError> {
        let (cluster, address) = (&self.config.cluster, self.config.cluster.address());
        let failed = |e: std::io::Error| NetError::from_io(&address, &e);
        let name = tls::server_name(&self.config).map_err(|e| NetError::unresolved(&address, e))?;
        let tcp = TcpStream::connect((cluster.host.as_str(), cluster.port)).map_err(failed)?;
        let tls =
            ClientConnection::new(Arc::clone(&self.tls), name).map_err(|e| tls::net_error(&address, &e))?;
        let mut stream = StreamOwned::new(tls, tcp);
        while stream.conn.is_handshaking() {
            stream.conn.complete_io(&mut stream.sock).map_err(failed)?;
        }
        stream.sock.set_nonblocking(true).map_err(failed)?;
        Ok(stream)
    }
}

/// Requests are small: the socket takes them at once, or it blocks for a moment.
fn write_whole(stream: &mut Stream, bytes: &[u8]) -> std::io::Result<()> {
    stream.sock.set_nonblocking(false)?;
    let written = stream.write_all(bytes).and_then(|()| stream.flush());
    stream.sock.set_nonblocking(true)?;
    written
}
