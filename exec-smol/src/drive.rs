//! The one loop of this crate: drives any machine that works over connections.

use std::collections::VecDeque;
use std::fs::{self, File};
use std::io::ErrorKind;
use std::sync::{Mutex, MutexGuard, PoisonError};

use futures_lite::FutureExt;
use steersman_core::client::{Driven, Effect, Happening, Pool};
use steersman_core::config::{FileError, whole_file};
use steersman_core::limits::{self, READ_BYTES, READS_IN_A_ROW};
use steersman_core::machine::Outputs;
use steersman_core::net::{ConnId, NetEvent};
use steersman_core::time::Time;

use crate::clock::Clock;
use crate::connection::{Connection, Connector};
use crate::interrupt::Interrupt;

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
    /// Waits since others last had the thread.
    in_a_row: u32,
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
        let Self { machine, open, out, todo, buffer, interrupted, in_a_row } = self;
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
                // Where there are always bytes, no wait ever is one.
                *in_a_row += 1;
                if *in_a_row > READS_IN_A_ROW {
                    *in_a_row = 0;
                    futures_lite::future::yield_now().await;
                }
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
            in_a_row: 0,
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
                        let limit = deadline.map_or(limits::CONNECT, |d| d.at.since(driver.clock.now()));
                        driver.connector.connect(limit).or(late).await
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
                let deadline = machine.next_deadline();
                let late = async {
                    driver.clock.reach(deadline).or(driver.interruption()).await;
                    Err(FileError::Other("timed out".into()))
                };
                let bytes = blocking::unblock(move || read_again(&file)).or(late).await;
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
        if machine.is_due(driver.clock.now()) {
            self.tell(machine, Happening::Deadline, out);
        }
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

/// A task that panicked while it held the lock leaves a pool or board that is still whole.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::net::{TcpListener, TcpStream};

    use futures_lite::future::{block_on, poll_once};
    use steersman_core::config::{Cluster, Config};
    use steersman_core::machine::{Deadline, Machine, Reason};

    use super::*;

    /// Its deadline has passed; writes down what it is told.
    #[derive(Default)]
    struct Late(Vec<&'static str>);

    impl Machine for Late {
        type Input<'a> = Happening<'a>;
        type Output = ();

        fn handle(&mut self, _: Time, input: Happening<'_>, _: &mut Outputs<()>) {
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

        fn effect((): ()) -> Result<Effect, ()> {
            Err(())
        }
    }

    /// A connection on which `bytes` have come that nobody has read, and its other end.
    fn connected(bytes: usize) -> (Connector, Connection, TcpStream) {
        let server = TcpListener::bind("127.0.0.1:0").unwrap();
        let cluster = Cluster::parse(&format!("http://{}", server.local_addr().unwrap())).unwrap();
        let connector = Connector::new(&Config::new(cluster)).unwrap();
        let connection = block_on(connector.connect(limits::CONNECT)).unwrap();
        let mut peer = server.accept().unwrap().0;
        peer.write_all(&vec![0; bytes]).unwrap();
        (connector, connection, peer)
    }

    #[test]
    fn a_socket_that_always_has_bytes_holds_up_no_deadline() {
        let (connector, connection, _peer) = connected(2);
        let pool = Mutex::new(Pool::default());
        let driver = Driver { clock: Clock::start(), connector: &connector, pool: &pool, interrupt: None };
        let (mut machine, mut out) = (Late::default(), Outputs::new());
        let mut open = Open { driver, connection: Some((ConnId(0), connection)) };
        block_on(open.wait(&mut machine, &mut [0; 1], false, &mut out));
        block_on(open.wait(&mut machine, &mut [0; 1], false, &mut out));
        assert_eq!(machine.0, ["bytes", "deadline", "bytes"]);
    }

    #[test]
    fn a_socket_that_always_has_bytes_leaves_the_thread_to_others() {
        let (connector, connection, _peer) = connected(1000);
        let pool = Mutex::new(Pool::default());
        let driver = Driver { clock: Clock::start(), connector: &connector, pool: &pool, interrupt: None };
        let mut drive = driver.drive(Late::default(), Happening::Deadline);
        drive.buffer = vec![0; 1];
        drive.open.connection = Some((ConnId(0), connection));
        assert!(block_on(poll_once(drive.next())).is_none());
        let reads = drive.machine.0.iter().filter(|told| **told == "bytes").count();
        assert!(reads <= READS_IN_A_ROW as usize, "{reads} in one turn");
    }
}
