//! A server that has enough to do.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use serde_json::json;
use steersman_core::api::Api;
use steersman_core::api::kinds::ConfigMap;

use super::{How, LIMIT, Scene, until};
use crate::https::Who;
use crate::realapi::USER_TOKEN;
use crate::suite::stage::Gate;
use crate::suite::{Executor, Smol, Threads};

/// How many reads the server takes on at once.
const READS: usize = 3;

/// Three reads fill the server; others are refused with 429 and `Retry-After: 1`. (Priority and fairness, which would let
/// them wait, is off. It never refuses a member of `system:masters`, so those who follow are somebody else.) Streaming lists
/// are watches, and those are not counted: they get through.
pub fn too_many_requests() {
    let flags = [
        "--enable-priority-and-fairness=false",
        &format!("--max-requests-inflight={READS}"),
        "--max-mutating-requests-inflight=3",
    ];
    let mut scene = Scene::new("too many requests", &flags);
    scene.make(
        "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
        &json!({
            "metadata": {"name": "dev"},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
            "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "dev"}]
        }),
    );
    // More than the sockets on the way can hold, so that a reader who stops reading keeps the server busy.
    for n in 0..40 {
        let path = "/api/v1/namespaces/default/configmaps";
        scene.make(
            path,
            &json!({"metadata": {"name": format!("large-{n}")}, "data": {"x": "x".repeat(500_000)}}),
        );
    }
    let dev = scene.api.client().as_who(Who::Token(USER_TOKEN.to_owned()));
    let ask = |path: &str| dev.send("GET", path, &[], None, LIMIT).map_or(0, |a| a.status);
    until("dev may read", String::new, || (ask("/api/v1/namespaces/default") == 200).then_some(()));

    let gate = Gate::default();
    let open = gate.opened_at_the_end();
    let begun = Arc::new(AtomicUsize::new(0));
    for _ in 0..READS {
        let (dev, gate, begun) = (dev.clone(), gate.clone(), Arc::clone(&begun));
        thread::spawn(move || {
            let path = "/api/v1/namespaces/default/configmaps";
            dev.send_until("GET", path, &[], None, LIMIT, |_| {
                begun.fetch_add(1, Ordering::Relaxed);
                gate.pass();
                true
            })
        });
    }
    let state = || format!("{begun:?}");
    until("the server is full", state, || {
        (begun.load(Ordering::Relaxed) == READS && ask("/api/v1/namespaces/default") == 429).then_some(())
    });

    let writer = scene.write(30);
    scene.follow(How { token: USER_TOKEN, ..How::through_lenses() });
    let (threads, smol) = (request::<Threads>(&scene), request::<Smol>(&scene));
    scene.each_that(true, |s| {
        s.ready();
        assert_eq!(s.lens().count(|r| r.status == 429), 0, "{}", s.name);
    });
    scene.each_that(false, |s| s.until("it is refused twice", |s| s.lens().count(|r| r.status == 429) >= 2));
    scene.each_that(false, |s| assert!(!s.status().is_some_and(|s| s.watcher.synced), "{}", s.name));
    drop(open);
    scene.each(|s| s.ready());
    for sent in [threads, smol] {
        let refused = sent.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        assert!(refused >= 1, "the request met a full server");
    }
    scene.each_that(false, |s| {
        let seen = s.lens().seen();
        for (refused, next) in seen.iter().zip(&seen[1..]).filter(|(r, _)| r.status == 429) {
            assert_eq!(refused.header("retry-after"), Some("1"));
            let waited = next.asked - refused.ended.unwrap_or(refused.asked);
            assert!(waited >= Duration::from_secs(1), "{}: asked again after {waited:?}", s.name);
        }
        assert!(s.told("failed").iter().any(|n| n.rest.contains("429")), "{}: {:?}", s.name, s.told(""));
        assert_eq!(s.lens().count(|r| r.is_list() && r.status == 200), 1, "{}", s.name);
    });
    scene.finish(writer);
}

/// Sends one request of a program's own; gives how often it was refused before it was answered.
fn request<E: Executor>(scene: &Scene) -> thread::JoinHandle<usize> {
    let lens = crate::lens::Lens::start(scene.api.addr(), scene.api.dir());
    let lens = lens.unwrap_or_else(|e| panic!("no lens: {e}"));
    let kubeconfig = scene.api.kubeconfig_at(lens.addr(), USER_TOKEN);
    let client = E::client(&kubeconfig.unwrap_or_else(|e| panic!("no kubeconfig: {e}")));
    let client = client.unwrap_or_else(|e| panic!("no client: {e}"));
    let namespace = scene.namespaces()[0].clone();
    thread::spawn(move || {
        let get = Api::<ConfigMap>::namespaced(&namespace).get("anchor");
        E::send(&client, get).unwrap_or_else(|e| panic!("{e}"));
        lens.count(|r| r.status == 429)
    })
}
