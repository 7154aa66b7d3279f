//! Watches that end in order, again and again; and what `--goaway-chance` does to HTTP/1.1: nothing.

use std::time::Duration;

use steersman_core::api::Api;
use steersman_core::api::kinds::ConfigMap;

use super::{How, Scene, Subject};
use crate::lens::{Lens, Seen};
use crate::realapi::ADMIN_TOKEN;
use crate::suite::{Executor, Smol, Threads};

fn ended(seen: &Seen) -> bool {
    seen.is_watch() && seen.status == 200 && seen.ended.is_some()
}

fn watches_end(s: &Subject, times: usize) {
    s.until(&format!("{times} watches have ended"), |s| s.lens().count(ended) >= times);
}

/// The server ends a watch that names no time after `--min-request-timeout` to twice that. Ours always name one, so it is
/// taken away on the way. Ends with news between them, then without.
pub fn by_the_server() {
    let mut scene = Scene::new("ends by the server", &["--min-request-timeout=1"]);
    let writer = scene.write(20);
    let lens: fn(&Lens) = |lens| lens.leave_away("timeoutSeconds");
    scene.follow(How { lens: Some(lens), ..How::straight() });
    scene.each(|s| s.ready());
    scene.each(|s| watches_end(s, 3));
    writer.hold();
    scene.each(|s| watches_end(s, s.lens().count(ended) + 2));
    writer.go_on();
    writer.writes(20);
    scene.each(|s| {
        assert_eq!(s.status().map(|s| s.watcher.relists), Some(0), "{}: {:?}", s.name, s.told(""));
        for seen in s.lens().seen().iter().filter(|r| ended(r)) {
            let lived = seen.ended.map_or(Duration::ZERO, |end| end - seen.asked);
            assert!(lived > Duration::from_millis(900) && lived < Duration::from_secs(4), "{lived:?}");
        }
    });
    scene.finish(writer);
}

/// A watch names its time, and the server keeps to it.
pub fn by_their_own_time() {
    let mut scene = Scene::new("ends by their own time", &[]);
    let writer = scene.write(21);
    scene.follow(How {
        settings: |o| o.watcher.timeout = (Duration::from_secs(2), Duration::from_secs(2)),
        ..How::through_lenses()
    });
    scene.each(|s| s.ready());
    scene.each(|s| watches_end(s, 3));
    scene.each(|s| {
        assert_eq!(s.status().map(|s| s.watcher.relists), Some(0), "{}: {:?}", s.name, s.told(""));
        assert!(s.lens().seen().iter().all(|r| !r.is_watch() || r.has("timeoutSeconds=2")));
    });
    scene.finish(writer);
}

/// `--goaway-chance` is for HTTP/2 alone: of five hundred requests on one connection, each of which a server that meant
/// HTTP/1.1 too would close with a chance of one in fifty, none is.
pub fn goaway() {
    let mut scene = Scene::new("goaway", &["--goaway-chance=0.02"]);
    let writer = scene.write(22);
    scene.follow(How::through_lenses());
    scene.each(|s| s.ready());
    many_requests::<Threads>(&scene);
    many_requests::<Smol>(&scene);
    scene.each(|s| assert!(s.lens().seen().iter().all(|r| r.header("connection").is_none()), "{}", s.name));
    scene.finish(writer);
}

fn many_requests<E: Executor>(scene: &Scene) {
    let lens = Lens::start(scene.api.addr(), scene.api.dir()).unwrap_or_else(|e| panic!("no lens: {e}"));
    let kubeconfig = scene.api.kubeconfig_at(lens.addr(), ADMIN_TOKEN);
    let client = E::client(&kubeconfig.unwrap_or_else(|e| panic!("no kubeconfig: {e}")));
    let client = client.unwrap_or_else(|e| panic!("no client: {e}"));
    let namespace = &scene.namespaces()[0];
    for _ in 0..500 {
        let get = Api::<ConfigMap>::namespaced(namespace).get("anchor");
        E::send(&client, get).unwrap_or_else(|e| panic!("{e}"));
    }
    let closed = lens.count(|r| r.header("connection").is_some());
    assert_eq!((lens.connections(), lens.count(|r| r.status == 200), closed), (1, 500, 0));
}
