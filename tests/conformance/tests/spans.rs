//! What a reconcile says stands in a span that names its controller, object and run.

use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use steersman_core::controller::{Action, Builder};
use steersman_core::manager;
use steersman_core::object::Object;
use steersman_tests::suite::stage::{Running, Stage, maps};
use steersman_tests::suite::{Executor, Smol, Threads};

/// The lines of the log.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Log {
    fn text(&self) -> String {
        String::from_utf8_lossy(&self.0.lock().unwrap_or_else(PoisonError::into_inner)).into_owned()
    }
}

impl io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn runs<E: Executor>(stage: &Stage, manager: impl FnOnce(E::Client) -> E::Handle) {
    let running = Running::<E>(manager(E::client(&stage.server.kubeconfig()).unwrap()));
    running.until("it ran", |s| s.controllers[0].results.success == 1);
    running.stop();
}

#[test]
fn every_run_has_a_span() {
    let log = Log::default();
    let writer = log.clone();
    // For all threads, so there is one test only.
    tracing_subscriber::fmt().with_ansi(false).with_writer(move || writer.clone()).init();
    let stage = Stage::from_env();
    stage.make("a", "");
    let end = manager::Config::default;
    runs::<Threads>(&stage, |client| {
        let controller =
            Builder::of(maps()).named("t").run(|_: Arc<Object>, _: &steersman_threads::Context| {
                tracing::info!("by a thread");
                Ok::<_, String>(Action::await_change())
            });
        Threads::manager(client, end(), Default::default()).controller(controller).start().unwrap()
    });
    runs::<Smol>(&stage, |client| {
        let controller =
            Builder::of(maps()).named("s").run(|_: Arc<Object>, _: steersman_smol::Context| async {
                tracing::info!("by a task");
                Ok::<_, String>(Action::await_change())
            });
        Smol::manager(client, end(), Default::default()).controller(controller).start().unwrap()
    });
    for (who, name) in [("by a thread", "t"), ("by a task", "s")] {
        let text = log.text();
        let line = text.lines().find(|line| line.contains(who)).expect(who);
        let span = format!("reconcile{{controller=\"{name}\" object=scene/a reconcile_id=1}}");
        assert!(line.contains(&span), "{line}");
    }
}
