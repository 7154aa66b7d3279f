//! Sends requests.

use std::fmt;
use std::ops::ControlFlow;
use std::sync::{Arc, Mutex, Weak};
use std::thread;
use std::time::Duration;

use steersman_core::api::{Answer, Request};
use steersman_core::auth::Authenticator;
use steersman_core::client::{Call, CallInput, CallOutput, Endpoint, Error, ErrorKind, Pool, read_answer};
use steersman_core::config::{Config, Loader, Options};
use steersman_core::controller::{Input, ReconcileId};
use steersman_core::record::{Calls, Recorder};
use steersman_core::time::{Time, UnixMillis};
use steersman_core::tls::{ConnectError, TlsError};

use crate::clock::{Clock, seed, wall};
use crate::connection::{Connection, Connector};
use crate::desk::Desk;
use crate::drive::{Driver, lock, read_file};
use crate::host::Host;
use crate::interrupt::Interrupt;

/// A client of one API server. Clones share connections and credentials.
///
/// ```no_run
/// use steersman_threads::api::{Api, ListParams, kinds::ConfigMap};
/// use steersman_threads::Client;
///
/// let client = Client::try_default()?;
/// let maps = client.send(Api::<ConfigMap>::namespaced("prod").list(&ListParams::default().limit(500)))?;
/// for map in &maps.items {
///     println!("{}", map.metadata.name);
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct Client {
    inner: Arc<Inner>,
    /// Who hears of what this one writes.
    writes: Option<Writes>,
    calls: Option<Calls>,
}

pub(crate) struct Inner {
    pub(crate) config: Config,
    pub(crate) endpoint: Arc<Endpoint>,
    pub(crate) connector: Connector,
    pub(crate) pool: Mutex<Pool<Connection>>,
    auth: Mutex<Authenticator>,
    pub(crate) clock: Clock,
    /// Who sends instead of the sockets.
    host: Option<Arc<dyn Host>>,
}

/// Whose writes they are, and who waits for them to be seen.
#[derive(Clone)]
struct Writes {
    id: ReconcileId,
    /// It is not kept alive by a client that outlives its run.
    controller: Weak<Desk>,
}

impl Client {
    /// A client for the cluster that `kubectl` would talk to: `$KUBECONFIG`, `~/.kube/config`, or the pod's own.
    ///
    /// # Errors
    /// One line that names the file and what is wrong with it.
    pub fn try_default() -> Result<Self, ConnectError> {
        Self::from_options(Options::default())
    }

    /// As [`try_default`](Self::try_default), from this kubeconfig or with this context.
    ///
    /// # Errors
    /// One line that names the file and what is wrong with it.
    pub fn from_options(options: Options) -> Result<Self, ConnectError> {
        let config = Loader::new(options).run(|name| std::env::var(name).ok(), read_file)?;
        Ok(Self::new(config)?)
    }

    /// A client of this configuration. Nothing is connected before the first request.
    ///
    /// # Errors
    /// TLS settings that make no sense.
    pub fn new(config: Config) -> Result<Self, TlsError> {
        let (connector, auth) = (Connector::new(&config)?, Authenticator::new(&config));
        Ok(Self::of(config, connector, auth, None))
    }

    /// A client whose requests go to `host` instead of sockets, for a simulator, or a program that has a network of its
    /// own. `config` names the server and the namespace; nothing is connected and no credential is used. A manager does
    /// not run with it: watches are the host's.
    #[must_use]
    pub fn hosted(config: Config, host: Arc<dyn Host>) -> Self {
        let connector = Connector::plain(&config.cluster);
        Self::of(config, connector, Authenticator::none(), Some(host))
    }

    fn of(config: Config, connector: Connector, auth: Authenticator, host: Option<Arc<dyn Host>>) -> Self {
        let inner = Inner {
            endpoint: Arc::new(Endpoint::new(&config)),
            connector,
            pool: Mutex::new(Pool::default()),
            auth: Mutex::new(auth),
            clock: Clock::start(),
            config,
            host,
        };
        Self { inner: Arc::new(inner), writes: None, calls: None }
    }

    /// The same client, connections and credentials, with its requests recorded from now on; a
    /// [`Manager`](crate::Manager::record) does it for those of its reconciles. What is recorded, and what is not, tells
    /// [`steersman_core::record`]. What a host sends is not recorded.
    #[must_use]
    pub fn record(self, recorder: &dyn Recorder) -> Self {
        Self { calls: Some(Calls::new(recorder)), ..self }
    }

    /// The same, for one run: its controller hears of what it writes.
    pub(crate) fn of_run(&self, id: ReconcileId, controller: Weak<Desk>) -> Self {
        Self { writes: Some(Writes { id, controller }), ..self.clone() }
    }

    /// The configuration.
    #[must_use]
    pub fn config(&self) -> &Config {
        &self.inner.config
    }

    /// Sends a request and waits for its answer, within the deadlines and with the retries of
    /// [`Call`](steersman_core::client::Call). Any number of threads may send at the same time, each on a connection of its
    /// own; idle ones are kept for the next.
    ///
    /// # Errors
    /// The server's refusal, or why there is no answer.
    pub fn send<R: Answer>(&self, request: Request<R>) -> Result<R, Error> {
        if let Some(host) = &self.inner.host {
            let (what, address) = (request.what.clone(), &self.inner.endpoint.address);
            if let Some(why) = request.misuse() {
                return Err(Error::new(ErrorKind::Misuse(why.into()), what, address.as_str()));
            }
            return read_answer(host.send(request.into_raw()), &what, address);
        }
        let seed = seed();
        let call = Call::new(Arc::clone(&self.inner.endpoint), self.authenticator(), request, seed);
        let mut call = Calls::call(self.calls.as_ref(), call, seed);
        let result = self.driver(None).drive(
            &mut call,
            CallInput::Start,
            || CallInput::Abort,
            |call, output| match output {
                CallOutput::Done(result) => ControlFlow::Break(result),
                CallOutput::Wrote(write) => {
                    if let Some(Writes { id, controller }) = &self.writes
                        && let Some(controller) = controller.upgrade()
                    {
                        controller.wrote(Input::Wrote { id: *id, write });
                    }
                    ControlFlow::Continue(None)
                }
                CallOutput::Retrying { error, delay } => {
                    tracing::debug!(target: "steersman", request = call.request().what, %error, ?delay, "retrying");
                    ControlFlow::Continue(None)
                }
                _ => ControlFlow::Continue(None),
            },
        );
        lock(&self.inner.auth).learn(call.auth());
        result
    }

    /// Waits; in a hosted client as long as the host says. A reconcile that waits this way can be simulated.
    #[expect(clippy::disallowed_methods, reason = "just this is asked for")]
    pub fn sleep(&self, d: Duration) {
        match &self.inner.host {
            Some(host) => host.sleep(d),
            None => thread::sleep(d),
        }
    }

    /// Monotonic time since a moment that is the same for all clones.
    #[must_use]
    pub fn now(&self) -> Time {
        self.inner.host.as_ref().map_or_else(|| self.inner.clock.now(), |host| host.now())
    }

    /// Wall-clock time.
    #[must_use]
    pub fn wall(&self) -> UnixMillis {
        self.inner.host.as_ref().map_or_else(wall, |host| host.wall())
    }

    pub(crate) fn is_hosted(&self) -> bool {
        self.inner.host.is_some()
    }

    pub(crate) fn inner(&self) -> &Inner {
        &self.inner
    }

    pub(crate) fn authenticator(&self) -> Authenticator {
        lock(&self.inner.auth).clone()
    }

    pub(crate) fn driver<'a>(&'a self, interrupt: Option<&'a Interrupt>) -> Driver<'a> {
        let inner = self.inner();
        Driver { clock: inner.clock, connector: &inner.connector, pool: &inner.pool, interrupt }
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client").field("server", &self.inner.config.cluster).finish_non_exhaustive()
    }
}
