//! The one loop of this crate: drives any machine that works over connections.

use std::collections::VecDeque;
use std::fs::{self, File};
use std::ops::ControlFlow;
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use steersman_core::client::{Driven, Effect, Happening, Pool};
use steersman_core::config::{FileError, whole_file};
use steersman_core::limits::{self, READ_BYTES};
use steersman_core::machine::Outputs;
use steersman_core::net::{ConnId, NetEvent};
use steersman_core::time::Time;

use crate::clock::Clock;
use crate::connection::{Connection, Connector, ReadOutcome};
use crate::interrupt::Interrupt;

/// A machine without deadline, connection and interrupt waits for nothing; there is none.
const FOREVER: Duration = Duration::from_secs(3600);

/// What a machine is driven with.
pub(crate) struct Driver<'a> {
    pub(crate) clock: Clock,
    pub(crate) connector: &'a Connector,
    pub(crate) pool: &'a Mutex<Pool<Connection>>,
    /// `None`: nothing stops it but its own deadlines.
    pub(crate) interrupt: Option<&'a Interrupt>,
}

/// What to do with the machine after an output that is no effect.
pub(crate) type Verdict<M, T> =
    ControlFlow<T, Option<<M as steersman_core::machine::Machine>::Input<'static>>>;

impl Driver<'_> {
    /// Gives `first` to the machine and performs what it asks for until `each`, which sees all its other outputs, breaks.
    /// `interrupted` is given to the machine once when the interrupt is raised.
    pub(crate) fn drive<M: Driven, T>(
        &self,
        machine: &mut M,
        first: M::Input<'_>,
        interrupted: fn() -> M::Input<'static>,
        mut each: impl FnMut(&mut M, M::Output) -> Verdict<M, T>,
    ) -> T {
        let mut open = Open { driver: self, connection: None };
        let mut out = Outputs::new();
        let mut todo = VecDeque::new();
        let mut buffer = vec![0; READ_BYTES];
        let mut told = false;
        machine.handle(self.clock.now(), first, &mut out);
        loop {
            todo.extend(out.drain());
            while let Some(output) = todo.pop_front() {
                match M::effect(output) {
                    Ok(effect) => open.perform(machine, effect, &mut out),
                    Err(output) => match each(machine, output) {
                        ControlFlow::Break(end) => return end,
                        ControlFlow::Continue(None) => {}
                        ControlFlow::Continue(Some(input)) => {
                            machine.handle(self.clock.now(), input, &mut out)
                        }
                    },
                }
                todo.extend(out.drain());
            }
            if !told && self.interrupt.is_some_and(Interrupt::is_raised) {
                told = true;
                machine.handle(self.clock.now(), interrupted(), &mut out);
            } else {
                open.wait(machine, &mut buffer, told, &mut out);
            }
        }
    }
}

impl Driver<'_> {
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
}

/// The connection of a machine, if it has one: no machine has two at a time.
struct Open<'a> {
    driver: &'a Driver<'a>,
    connection: Option<(ConnId, Connection)>,
}

impl Open<'_> {
    fn limit<M: Driven>(&self, machine: &M) -> Option<Duration> {
        self.driver.clock.until(machine.next_deadline())
    }

    fn tell<M: Driven>(&self, machine: &mut M, happening: Happening<'_>, out: &mut Outputs<M::Output>) {
        machine.handle(self.driver.clock.now(), M::happened(happening), out);
    }

    fn set(&mut self, connection: Option<(ConnId, Connection)>) {
        // The interrupt must reach the socket on which this thread may block.
        if let Some(interrupt) = self.driver.interrupt {
            interrupt.guard(connection.as_ref().and_then(|(_, c)| c.handle().ok()));
        }
        self.connection = connection;
    }

    fn perform<M: Driven>(&mut self, machine: &mut M, effect: Effect, out: &mut Outputs<M::Output>) {
        match effect {
            Effect::Connect { conn, may_reuse } => {
                let now = self.driver.clock.now();
                let pooled = if may_reuse { self.driver.pooled(now) } else { None };
                let reused = pooled.is_some();
                let limit = self.limit(machine).unwrap_or(limits::CONNECT);
                match pooled.map_or_else(|| self.driver.connector.connect(limit), Ok) {
                    Ok(connection) => {
                        self.set(Some((conn, connection)));
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
                let limit = self.limit(machine);
                if let Some((_, connection)) = self.connection.as_mut().filter(|(open, _)| *open == conn)
                    && let Err(e) = connection.write(&bytes.0, limit)
                {
                    let e = self.driver.connector.io(&e);
                    self.set(None);
                    self.tell(machine, Happening::Net { conn, event: NetEvent::Broken(&e) }, out);
                }
            }
            Effect::Close { conn } => drop(self.take(conn)),
            Effect::Release { conn } => {
                if let Some(connection) = self.take(conn) {
                    // In a statement of its own, so that an evicted one is not closed under the lock.
                    let evicted = lock(self.driver.pool).put(self.driver.clock.now(), connection);
                    drop(evicted);
                }
            }
            Effect::ReadFile { path } => {
                let bytes = read_again(&path);
                self.tell(machine, Happening::File { path: &path, result: bytes.as_deref() }, out);
            }
            _ => {}
        }
    }

    fn take(&mut self, conn: ConnId) -> Option<Connection> {
        let (open, connection) = self.connection.take()?;
        if open == conn {
            self.set(None);
            return Some(connection);
        }
        self.connection = Some((open, connection));
        None
    }

    /// Waits for bytes, the deadline or the interrupt, whichever comes first.
    fn wait<M: Driven>(
        &mut self,
        machine: &mut M,
        buffer: &mut [u8],
        told: bool,
        out: &mut Outputs<M::Output>,
    ) {
        let limit = self.limit(machine);
        let Some((conn, connection)) = &mut self.connection else {
            match self.driver.interrupt {
                Some(interrupt) => interrupt.wait(limit),
                // May wake early, which costs one void `Deadline`.
                None => thread::park_timeout(limit.unwrap_or(FOREVER)),
            }
            return self.tell(machine, Happening::Deadline, out);
        };
        let conn = *conn;
        let read = connection.read(buffer, limit);
        // The interrupt ends the socket. That end is not the server's: told of it, the machine might connect anew first.
        if !told && self.driver.interrupt.is_some_and(Interrupt::is_raised) {
            return;
        }
        match read {
            Ok(ReadOutcome::TimedOut) => self.tell(machine, Happening::Deadline, out),
            Ok(ReadOutcome::Bytes(n)) => {
                self.tell(machine, Happening::Net { conn, event: NetEvent::Received(&buffer[..n]) }, out);
                if machine.is_due(self.driver.clock.now()) {
                    self.tell(machine, Happening::Deadline, out);
                }
            }
            Ok(ReadOutcome::Eof) => {
                self.set(None);
                self.tell(machine, Happening::Net { conn, event: NetEvent::Eof }, out);
            }
            Err(e) => {
                let e = self.driver.connector.io(&e);
                self.set(None);
                self.tell(machine, Happening::Net { conn, event: NetEvent::Broken(&e) }, out);
            }
        }
    }
}

impl Drop for Open<'_> {
    fn drop(&mut self) {
        self.set(None);
    }
}

/// A whole file, or why not. A pipe is waited for: `--kubeconfig <(...)` is one.
pub(crate) fn read_file(path: &str) -> Result<Vec<u8>, FileError> {
    whole_file(File::open(path))
}

/// The same for a file that is read again and again. To open a pipe to which nobody writes would never end.
fn read_again(path: &str) -> Result<Vec<u8>, FileError> {
    match fs::metadata(path) {
        Ok(file) if !file.is_file() => Err(FileError::NotRegular),
        _ => read_file(path),
    }
}

/// A thread that panicked while it held the lock leaves a pool that is still whole.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::net::TcpListener;

    use steersman_core::config::{Cluster, Config};
    use steersman_core::machine::{Deadline, Machine, Reason};

    use super::*;

    /// Connects anew whenever its connection ends.
    struct Clings;

    enum Output {
        Effect(Effect),
        Connected,
    }

    impl Machine for Clings {
        type Input<'a> = Happening<'a>;
        type Output = Output;

        fn handle(&mut self, _: Time, input: Happening<'_>, out: &mut Outputs<Output>) {
            match input {
                Happening::Net { event: NetEvent::Eof | NetEvent::Broken(_), .. } => {
                    out.push(Output::Effect(Effect::Connect { conn: ConnId(1), may_reuse: false }));
                }
                Happening::Net { event: NetEvent::Connected { .. }, .. } => out.push(Output::Connected),
                _ => {}
            }
        }

        fn next_deadline(&self) -> Option<Deadline> {
            None
        }
    }

    impl Driven for Clings {
        fn happened(happening: Happening<'_>) -> Happening<'_> {
            happening
        }

        fn effect(output: Output) -> Result<Effect, Output> {
            match output {
                Output::Effect(effect) => Ok(effect),
                other => Err(other),
            }
        }
    }

    fn connector(server: &TcpListener) -> Connector {
        let cluster = Cluster::parse(&format!("http://{}", server.local_addr().unwrap())).unwrap();
        Connector::new(&Config::new(cluster)).unwrap()
    }

    /// Its deadline has passed; writes down what it is told.
    #[derive(Default)]
    struct Late(Vec<&'static str>);

    impl Machine for Late {
        type Input<'a> = Happening<'a>;
        type Output = Output;

        fn handle(&mut self, _: Time, input: Happening<'_>, _: &mut Outputs<Output>) {
            self.0.push(match input {
                Happening::Net { event: NetEvent::Received(_), .. } => "bytes",
                Happening::Deadline => "deadline",
                _ => return,
            });
        }

        fn next_deadline(&self) -> Option<Deadline> {
            let served = self.0.contains(&"deadline");
            (!served).then_some(Deadline { at: Time::ZERO, why: Reason::WatchGuard })
        }
    }

    impl Driven for Late {
        fn happened(happening: Happening<'_>) -> Happening<'_> {
            happening
        }

        fn effect(output: Output) -> Result<Effect, Output> {
            Err(output)
        }
    }

    #[test]
    fn a_socket_that_always_has_bytes_holds_up_no_deadline() {
        let server = TcpListener::bind("127.0.0.1:0").unwrap();
        let (connector, pool) = (connector(&server), Mutex::new(Pool::default()));
        let driver = Driver { clock: Clock::start(), connector: &connector, pool: &pool, interrupt: None };
        let (mut machine, mut out) = (Late::default(), Outputs::new());
        let connection = connector.connect(limits::CONNECT).unwrap();
        let mut open = Open { driver: &driver, connection: Some((ConnId(0), connection)) };
        server.accept().unwrap().0.write_all(b"two").unwrap();
        open.wait(&mut machine, &mut [0; 1], false, &mut out);
        open.wait(&mut machine, &mut [0; 1], false, &mut out);
        assert_eq!(machine.0, ["bytes", "deadline", "bytes"]);
    }

    #[test]
    fn an_interrupt_is_told_before_the_end_of_the_socket_that_it_ended() {
        let server = TcpListener::bind("127.0.0.1:0").unwrap();
        let connector = connector(&server);
        let (pool, interrupt) = (Mutex::new(Pool::default()), Interrupt::default());
        let driver =
            Driver { clock: Clock::start(), connector: &connector, pool: &pool, interrupt: Some(&interrupt) };
        let (mut machine, mut out, mut buffer) = (Clings, Outputs::new(), [0; 1]);
        let mut open = Open { driver: &driver, connection: None };
        open.perform(&mut machine, Effect::Connect { conn: ConnId(0), may_reuse: false }, &mut out);
        assert!(matches!(out.drain().next(), Some(Output::Connected)));
        interrupt.raise();
        open.wait(&mut machine, &mut buffer, false, &mut out);
        assert!(out.is_empty(), "it was told of an end that is not the server's, and connects anew");
        // Once it was told to stop, it hears of the socket again: nothing may spin.
        open.wait(&mut machine, &mut buffer, true, &mut out);
        assert!(open.connection.is_none() && !out.is_empty());
    }
}
