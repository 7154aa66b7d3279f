//! A controller without any executor: one thread, one loop.

mod common;

use std::net::TcpListener;
use std::sync::Arc;
use std::time::Instant;

use common::{LIMIT, map, mirrors, server};
use steersman_core::api::Api;
use steersman_core::api::kinds::{ConfigMap, Secret};
use steersman_core::auth::Authenticator;
use steersman_core::client::{Call, CallInput, CallOutput, Endpoint, ErrorKind};
use steersman_core::config::Config;
use steersman_core::controller::stats::ControllerPhase;
use steersman_core::machine::{Machine as _, Reason};
use steersman_core::time::Time;
use steersman_core::tls;
use steersman_embed::{BareLoop, Socketed};
use steersman_mirror::{Mirror, plan};

/// Sends one request from this thread.
fn send<R: steersman_core::api::Answer>(config: &Config, request: steersman_core::api::Request<R>) -> R {
    let (endpoint, tls) = (Arc::new(Endpoint::new(config)), tls::client_config(config).unwrap());
    let call = Call::new(endpoint, Authenticator::new(config), request, 1);
    let mut call = Socketed::new(&Arc::new(config.clone()), &tls, call, Time::ZERO, CallInput::Start);
    let begun = Instant::now();
    while begun.elapsed() < LIMIT {
        let (told, busy) = call.look(Time::ZERO + begun.elapsed());
        for output in told {
            if let CallOutput::Done(result) = output {
                return result.unwrap();
            }
        }
        if !busy {
            std::thread::yield_now();
        }
    }
    panic!("no answer in time");
}

#[test]
fn a_controller_runs_in_one_bare_loop() {
    let (server, config) = server();
    send(&config, Api::<ConfigMap>::namespaced("default").create(&map("a", "one")));
    let settings = plan::controller(None).config().clone();
    let mut all = BareLoop::new(config.clone(), settings, Arc::new(Mirror)).unwrap();
    let secrets = Api::<Secret>::namespaced("default");

    // It lists, and makes the Secret; the watch brings it back, and the next run finds nothing to do.
    assert!(all.run_until(LIMIT, |c| c.status().results.success >= 2 && c.status().running == 0));
    assert!(mirrors(&send(&config, secrets.get("a")), "one"));

    // It watches.
    send(&config, Api::<ConfigMap>::namespaced("default").create(&map("b", "two")));
    assert!(all.run_until(LIMIT, |_| {
        send(&config, secrets.get_opt("b")).is_some_and(|secret| mirrors(&secret, "two"))
    }));

    // It comes back when the server drops its connections without a word.
    server.drop_connections();
    send(&config, Api::<ConfigMap>::namespaced("default").create(&map("c", "three")));
    assert!(all.run_until(LIMIT, |_| {
        send(&config, secrets.get_opt("c")).is_some_and(|secret| mirrors(&secret, "three"))
    }));

    all.stop();
    assert!(all.run_until(LIMIT, |c| c.status().phase == ControllerPhase::Stopped));
}

#[test]
fn a_server_that_says_nothing_holds_nobody_up() {
    // The kernel takes the connection; nobody ever answers the handshake.
    let (_server, mut config) = server();
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    config.cluster.port = silent.local_addr().unwrap().port();
    let (endpoint, tls) = (Arc::new(Endpoint::new(&config)), tls::client_config(&config).unwrap());
    let request = Api::<Secret>::namespaced("default").get("a");
    let call = Call::new(endpoint, Authenticator::new(&config), request, 1);
    let mut call = Socketed::new(&Arc::new(config), &tls, call, Time::ZERO, CallInput::Start);
    // The hello goes out; then there is nothing to do before the deadline, which comes as soon as we say so.
    while call.look(Time::ZERO).1 {}
    let deadline = call.machine.next_deadline().unwrap();
    assert_eq!(deadline.why, Reason::Connect);
    let (told, _) = call.look(deadline.at);
    let [CallOutput::Done(Err(e))] = &told[..] else { panic!("{told:?}") };
    assert!(matches!(e.kind(), ErrorKind::TimedOut(Reason::Connect)), "{e}");
}
