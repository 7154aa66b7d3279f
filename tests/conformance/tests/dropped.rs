//! What only futures can do to an executor: be dropped.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::task::Poll;
use std::time::Duration;

use steersman_core::config::Options;
use steersman_core::controller::{Action, Builder};
use steersman_core::manager;
use steersman_core::object::Object;
use steersman_smol::{Client, Context, Manager, Spawner};
use steersman_tests::proxy::Proxy;
use steersman_tests::suite::stage::{LIMIT, Running, Stage, maps, until};
use steersman_tests::suite::{Executor, Smol};

/// Panics when it is dropped.
struct Glass;

impl Drop for Glass {
    fn drop(&mut self) {
        // No message of a hook between those of the tests.
        std::panic::resume_unwind(Box::new("broken"));
    }
}

#[test]
fn a_run_whose_destructors_panic_has_an_outcome() {
    let stage = Stage::from_env();
    stage.make("a", "");
    let runs = Arc::new(AtomicU32::new(0));
    let controller = Builder::of(maps()).reconcile_timeout(Duration::from_millis(20)).run({
        let runs = Arc::clone(&runs);
        move |_: Arc<Object>, _: Context| {
            let first = runs.fetch_add(1, Ordering::Relaxed) == 0;
            async move {
                if first {
                    let _glass = Glass;
                    std::future::pending::<()>().await;
                }
                Ok::<_, String>(Action::await_change())
            }
        }
    });
    let client = Smol::client(&stage.server.kubeconfig()).unwrap();
    let manager = Smol::manager(client, manager::Config::default(), Default::default());
    let running = Running::<Smol>(manager.controller(controller).start().unwrap());
    let status = running.until("it ran again", |s| s.controllers[0].results.success == 1);
    assert_eq!(status.controllers[0].results.panicked, 1);
    running.stop();
}

#[test]
fn a_dropped_run_ends_its_manager() {
    let stage = Stage::from_env();
    let proxy = Proxy::start(stage.server.addr()).unwrap();
    let kubeconfig = stage.server.kubeconfig_via(&proxy).unwrap();
    let options = Options { path: Some(kubeconfig.display().to_string()), ..Options::default() };
    let spawner = Spawner::new(|task| smol::spawn(task).detach());
    let controller = Builder::of(maps())
        .run(|_: Arc<Object>, _: Context| async { Ok::<_, String>(Action::await_change()) });
    let manager = Manager::new(Client::from_options(options).unwrap(), spawner).controller(controller);
    {
        let mut run = pin!(manager.run());
        let state = || format!("{:?}", proxy.stats());
        until("the watch is open", state, || {
            let once = smol::block_on(std::future::poll_fn(|cx| Poll::Ready(run.as_mut().poll(cx))));
            assert!(once.is_pending());
            (proxy.stats().open > 0).then_some(())
        });
    }
    assert!(proxy.wait_until(LIMIT, |s| s.open == 0), "{:?}", proxy.stats());
}
