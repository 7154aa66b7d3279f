//! The example: what an executor brings, and the whole of its `main`.

use std::io::{self, Write as _};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{SystemTime, UNIX_EPOCH};

use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;
use steersman_apiserver::front::{self, Server};
use steersman_core::api::{Answer, Request};
use steersman_core::client::Error;
use steersman_core::config::{Config, Loader, Options, whole_file};
use steersman_core::manager::status::ManagerStatus;

use crate::args::{Args, Command, HELP};
use crate::relay::Relay;
use crate::{Controller, Failed, Job, Report, run};

/// What the harness needs of an executor.
pub trait Executor {
    /// Talks to a cluster. The harness sends from several threads at once.
    type Client: Send + Sync;
    /// A running manager.
    type Running: Send + Sync;

    /// A client of this cluster.
    ///
    /// # Errors
    /// One line for people.
    fn connect(config: Config) -> Result<Self::Client, String>;

    /// Sends a request and waits for the answer.
    ///
    /// # Errors
    /// As the executor's client has them.
    fn send<R: Answer + Send + 'static>(client: &Self::Client, request: Request<R>) -> Result<R, Error>;

    /// Starts a manager with this controller, and returns at once.
    ///
    /// # Errors
    /// One line for people.
    fn start(client: &Self::Client, controller: Controller) -> Result<Self::Running, String>;

    /// Where it stands.
    fn status(running: &Self::Running) -> ManagerStatus;

    /// Stops it in order, and waits for that.
    ///
    /// # Errors
    /// One line for people, if it did not end in order.
    fn stop(running: Self::Running) -> Result<(), String>;
}

/// The whole example: arguments, server, work, table, exit status.
#[must_use]
pub fn main<E: Executor>() -> ExitCode {
    let args: Result<Vec<_>, _> = std::env::args_os().skip(1).map(std::ffi::OsString::into_string).collect();
    let args = match args.map_err(|arg| format!("{arg:?} is not UTF-8")).and_then(Args::parse) {
        Ok(Command::Run(args)) => args,
        Ok(Command::Help) => return say(HELP),
        Err(wrong) => return fail(&wrong, 2),
    };
    log();
    match prepare_and_run::<E>(&args) {
        Ok(report) => say(&report.to_string()),
        Err(Failed::Interrupted) => fail("interrupted", 130),
        Err(Failed::Error(line)) => fail(&line, 1),
    }
}

fn prepare_and_run<E: Executor>(args: &Args) -> Result<Report, Failed> {
    let seed = args.seed.unwrap_or_else(draw);
    let embedded = if args.foreign() { None } else { Some(embedded()?) };
    let config = configuration(args, embedded.as_ref())?;
    for warning in &config.warnings {
        tracing::warn!(target: "steersman", "{warning}");
    }
    // The harness has its own way to the server: what is disturbed is the controller.
    let relay = match args.kill_connections {
        true => Some(
            Relay::start(&config.cluster.host, config.cluster.port)
                .map_err(|e| Failed::Error(format!("no relay to {}: {e}", config.cluster)))?,
        ),
        false => None,
    };
    let interrupted = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        // The second one ends the process at once, so it is registered first.
        flag::register_conditional_shutdown(signal, 130, Arc::clone(&interrupted))
            .and_then(|_| flag::register(signal, Arc::clone(&interrupted)))
            .map_err(|e| Failed::Error(format!("signals: {e}")))?;
    }
    let place = match &embedded {
        Some(server) => format!("the embedded API server at {}", server.url()),
        None => format!("{} ({})", config.cluster, config.source),
    };
    let disturbed = relay.as_ref().map_or_else(|| config.clone(), |relay| relay.config(&config));
    run::<E>(&Job {
        hand: &E::connect(config)?,
        controller: &E::connect(disturbed)?,
        relay: relay.as_ref(),
        args,
        seed,
        place,
        tidy: embedded.is_none(),
        interrupted: &interrupted,
    })
}

/// Starts the API server of this process; its garbage collector is part of it.
fn embedded() -> Result<Server, Failed> {
    Server::start(front::Options::default())
        .map_err(|e| Failed::Error(format!("the embedded API server does not start: {e}")))
}

fn configuration(args: &Args, embedded: Option<&Server>) -> Result<Config, Failed> {
    const EMBEDDED: &str = "of the embedded API server";
    let options = match embedded {
        Some(_) => Options { path: Some(EMBEDDED.into()), ..Options::default() },
        None => {
            Options { path: args.kubeconfig.clone(), context: args.context.clone(), ..Options::default() }
        }
    };
    let file = |path: &str| match embedded {
        Some(server) if path == EMBEDDED => Ok(server.kubeconfig().into_bytes()),
        _ => whole_file(std::fs::File::open(path)),
    };
    Loader::new(options).run(|name| std::env::var(name).ok(), file).map_err(|e| Failed::Error(e.to_string()))
}

/// Log lines go to where the progress goes. Without `RUST_LOG` there are none: errors are part of what is tried here.
fn log() {
    let filter = tracing_subscriber::EnvFilter::try_from_default_env()
        .unwrap_or_else(|_| tracing_subscriber::EnvFilter::new("off"));
    // Somebody else's is as good.
    let _ = tracing_subscriber::fmt().with_env_filter(filter).with_writer(io::stderr).try_init();
}

fn draw() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    (now.as_nanos() as u64) ^ (u64::from(std::process::id()) << 32)
}

fn say(text: &str) -> ExitCode {
    // Whoever reads may have gone.
    let _ = io::stdout().write_all(text.as_bytes());
    ExitCode::SUCCESS
}

fn fail(line: &str, code: u8) -> ExitCode {
    let _ = writeln!(io::stderr(), "configmap_mirror: {line}");
    ExitCode::from(code)
}
