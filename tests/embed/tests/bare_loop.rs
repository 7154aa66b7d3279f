//! A controller without any executor: one thread, one loop.

mod common;

use std::sync::Arc;

use common::{LIMIT, map, mirrors, server};
use steersman_core::api::Api;
use steersman_core::api::kinds::{ConfigMap, Secret};
use steersman_core::auth::Authenticator;
use steersman_core::client::{Call, CallInput, CallOutput, Endpoint};
use steersman_core::config::Config;
use steersman_core::time::Time;
use steersman_core::tls;
use steersman_embed::{BareLoop, Socketed};
use steersman_mirror::{Mirror, plan};

/// Sends one request from this thread.
fn send<R: steersman_core::api::Answer>(config: &Config, request: steersman_core::api::Request<R>) -> R {
    let (endpoint, tls) = (Arc::new(Endpoint::new(config)), tls::client_config(config).unwrap());
    let call = Call::new(endpoint, Authenticator::new(config), request, 1);
    let mut call = Socketed::new(&Arc::new(config.clone()), &tls, call, Time::ZERO, CallInput::Start);
    loop {
        let (told, busy) = call.look(Time::ZERO);
        for output in told {
            if let CallOutput::Done(result) = output {
                return result.unwrap();
            }
        }
        if !busy {
            std::thread::yield_now();
        }
    }
}

#[test]
fn a_controller_runs_in_one_bare_loop() {
    let (_server, config) = server();
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
}
