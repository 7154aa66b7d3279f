//! The one loop of this crate: drives any machine that works over connections.

use std::collections::VecDeque;
use std::io::ErrorKind;
use std::sync::{Mutex, MutexGuard, PoisonError};

use futures_lite::FutureExt;
use steersman_core::client::{Driven, Effect, Happening, Pool};
use steersman_core::config::FileError;
use steersman_core::machine::Outputs;
use steersman_core::net::{ConnId, NetEvent};
use steersman_core::time::Time;

use crate::clock::Clock;
use crate::connection::{Connection, Connector};
use crate::interrupt::Interrupt;

/// As long as a TLS record.
const READ_BYTES: usize = 16 * 1024;

/// What a machine is driven with.
#[derive(Clone, Copy)]
pub(crate) struct Driver<'a> {
    pub(crate) clock: Clock,
    pub(crate) connector: &'a Connector,
    pub(crate) pool: &'a Mutex<Pool<Connection>>,
    /// `None`: nothing stops it but its own deadlines.
    pub(crate) interrupt: Option<&'a Interrupt>,
}

/// A machine in the hands of the executor.
pub(crate) struct Drive<'a, M: Driven> {
    machine: M,
    open: Open<'a>,
    out: Outputs<M::Output>,
    todo: VecDeque<M::Output>,
    buffer: Vec<u8>,
    /// What to give it when the interrupt is raised; taken when it was.
    interrupted: Option<M::Input<'static>>,
}

impl<M: Driven> Drive<'_, M> {
    /// The machine, to look at.
    pub(crate) const fn machine(&self) -> &M {
        &self.machine
    }

    /// Gives it an input.
    pub(crate) fn feed(&mut self, input: M::Input<'_>) {
        self.machine.handle(self.open.driver.clock.now(), input, &mut self.out);
    }

    /// Performs what it asks for until it says something else. May be dropped at any await, but not called again then: an
    /// effect may have been half performed.
    pub(crate) async fn next(&mut self) -> M::Output {
        let Self { machine, open, out, todo, buffer, interrupted } = self;
        loop {
            todo.extend(out.drain());
            while let Some(output) = todo.pop_front() {
                match M::effect(output) {
                    Ok(effect) => open.perform(machine, effect, out).await,
                    Err(output) => return output,
                }
                todo.extend(out.drain());
            }
            if open.driver.interrupt.is_some_and(Interrupt::is_raised)
                && let Some(input) = interrupted.take()
            {
                machine.handle(open.driver.clock.now(), input, out);
            } else {
                open.wait(machine, buffer, interrupted.is_none(), out).await;
            }
        }
    }

    /// Ends its connection in order, if it has one.
    pub(crate) async fn close(mut self) -> M {
        self.open.close().await;
        self.machine
    }
}

impl<'a> Driver<'a> {
    /// Takes a machine in hand. `interrupted` is given to it once when the interrupt is raised.
    pub(crate) fn drive<M: Driven>(self, machine: M, interrupted: M::Input<'static>) -> Drive<'a, M> {
        Drive {
            machine,
            open: Open { driver: self, connection: None },
            out: Outputs::new(),
            todo: VecDeque::new(),
            buffer: vec![0; READ_BYTES],
            interrupted: Some(interrupted),
        }
    }

    /// A connection that has been idle and still looks alive.
    fn pooled(&self, now: Time) -> Option<Connection> {
        loop {
            // Taken in a statement of its own, so that a dead one is not closed under the lock.
            let connection = lock(self.pool).take(now)?;
            if connection.is_quiet() {
                return Some(connection);
            }
        }
    }

    /// Ends when the interrupt is raised; at once if it was.
    async fn interruption(&self) {
        match self.interrupt {
            Some(interrupt) => interrupt.raised().await,
            None => futures_lite::future::pending().await,
        }
    }
}

/// The connection of a machine, if it has one: no machine has two at a time.
struct Open<'a> {
    driver: Driver<'a>,
    connection: Option<(ConnId, Connection)>,
}

/// What a wait brought.
enum Brought {
    Read(std::io::Result<usize>),
    Deadline,
    Interrupt,
}

impl Open<'_> {
    fn tell<M: Driven>(&self, machine: &mut M, happening: Happening<'_>, out: &mut Outputs<M::Output>) {
        machine.handle(self.driver.clock.now(), M::happened(happening), out);
    }

    async fn perform<M: Driven>(&mut self, machine: &mut M, effect: Effect, out: &mut Outputs<M::Output>) {
        let driver = self.driver;
        match effect {
            Effect::Connect { conn, may_reuse } => {
                let pooled = if may_reuse { driver.pooled(driver.clock.now()) } else { None };
                let reused = pooled.is_some();
                let deadline = machine.next_deadline();
                let connected = match pooled {
                    Some(connection) => Ok(connection),
                    None => {
                        let late = async {
                            driver.clock.reach(deadline).or(driver.interruption()).await;
                            Err(driver.connector.timed_out())
                        };
                        driver.connector.connect().or(late).await
                    }
                };
                match connected {
                    Ok(connection) => {
                        self.connection = Some((conn, connection));
                        self.tell(
                            machine,
                            Happening::Net { conn, event: NetEvent::Connected { reused } },
                            out,
                        );
                    }
                    Err(e) => {
                        self.tell(machine, Happening::Net { conn, event: NetEvent::ConnectFailed(&e) }, out)
                    }
                }
            }
            Effect::Write { conn, bytes } => {
                let deadline = machine.next_deadline();
                let Some((_, connection)) = self.connection.as_mut().filter(|(open, _)| *open == conn) else {
                    return;
                };
                let late = async {
                    driver.clock.reach(deadline).or(driver.interruption()).await;
                    Err(ErrorKind::TimedOut.into())
                };
                if let Err(e) = connection.write(&bytes.0).or(late).await {
                    let e = driver.connector.io(&e);
                    self.connection = None;
                    self.tell(machine, Happening::Net { conn, event: NetEvent::Broken(&e) }, out);
                }
            }
            Effect::Close { conn } => {
                if let Some(connection) = self.take(conn) {
                    connection.close().await;
                }
            }
            Effect::Release { conn } => {
                if let Some(connection) = self.take(conn) {
                    let evicted = lock(driver.pool).put(driver.clock.now(), connection);
                    drop(evicted);
                }
            }
            Effect::ReadFile { path } => {
                let file = std::sync::Arc::clone(&path);
                let bytes = blocking::unblock(move || read_file(&file)).await;
                self.tell(machine, Happening::File { path: &path, result: bytes.as_deref() }, out);
            }
            _ => {}
        }
    }

    fn take(&mut self, conn: ConnId) -> Option<Connection> {
        self.connection.take_if(|(open, _)| *open == conn).map(|(_, connection)| connection)
    }

    async fn close(&mut self) {
        if let Some((_, connection)) = self.connection.take() {
            connection.close().await;
        }
    }

    /// Waits for bytes, the deadline or the interrupt (if the machine was not told of it), whichever comes first.
    async fn wait<M: Driven>(
        &mut self,
        machine: &mut M,
        buffer: &mut [u8],
        told: bool,
        out: &mut Outputs<M::Output>,
    ) {
        let driver = self.driver;
        let deadline = async {
            driver.clock.reach(machine.next_deadline()).await;
            Brought::Deadline
        };
        let interrupt = async {
            if told {
                futures_lite::future::pending::<()>().await;
            }
            driver.interruption().await;
            Brought::Interrupt
        };
        let (conn, brought) = match &mut self.connection {
            Some((conn, connection)) => {
                let read = async { Brought::Read(connection.read(buffer).await) };
                (*conn, read.or(deadline).or(interrupt).await)
            }
            None => (ConnId(0), deadline.or(interrupt).await),
        };
        let event = match brought {
            Brought::Deadline => return self.tell(machine, Happening::Deadline, out),
            Brought::Interrupt => return,
            Brought::Read(Ok(0)) => {
                self.connection = None;
                NetEvent::Eof
            }
            Brought::Read(Ok(n)) => NetEvent::Received(&buffer[..n]),
            Brought::Read(Err(e)) => {
                let e = driver.connector.io(&e);
                self.connection = None;
                return self.tell(machine, Happening::Net { conn, event: NetEvent::Broken(&e) }, out);
            }
        };
        self.tell(machine, Happening::Net { conn, event }, out);
    }
}

/// A whole file, or why not.
pub(crate) fn read_file(path: &str) -> Result<Vec<u8>, FileError> {
    std::fs::read(path).map_err(|e| match e.kind() {
        ErrorKind::NotFound => FileError::NotFound,
        _ => FileError::Other(e.to_string()),
    })
}

/// A task that panicked while it held the lock leaves a pool or board that is still whole.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
