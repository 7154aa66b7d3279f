//! Servers that die and come back, with the same data or with older ones.

use std::time::{Duration, Instant};

use super::{How, LIMIT, Scene, Subject, Writer, until_within};

const SILENT: &str = "watch is silent, asking";
const WENT_BACK: &str = "the server went back in time, starting anew";

/// The API server is killed and started again on the same port, while somebody writes before, during (in vain) and after.
pub fn the_api_server() {
    let mut scene = Scene::new("the API server dies", &[]);
    let writer = scene.write(40);
    scene.follow(How::straight());
    scene.each(|s| s.ready());
    for _ in 0..2 {
        writer.writes(30);
        scene.api.kill_api();
        scene.each(|s| {
            let refused = |s: &Subject| s.told("failed").iter().any(|n| n.rest.contains("refused"));
            s.until("it finds nobody there", refused);
        });
        writer.fails(3);
        scene.api.restart().unwrap_or_else(|e| panic!("{e}"));
        writer.writes(30);
    }
    scene.finish(writer);
}

/// etcd is killed under a living API server, and comes back.
pub fn etcd() {
    etcd_dies("etcd dies", &[]);
}

/// The same where every watch is etcd's own.
pub fn etcd_without_a_cache() {
    etcd_dies("etcd dies, no cache", &["--watch-cache=false"]);
}

fn etcd_dies(name: &'static str, flags: &[&str]) {
    let mut scene = Scene::new(name, flags);
    let writer = scene.write(41);
    scene.follow(How::through_lenses());
    scene.each(|s| s.ready());
    scene.api.kill_etcd();
    writer.fails(2);
    // Who was connected may not notice; who comes now does.
    scene.each(|s| assert_eq!(s.lens().cut(), 1, "{}", s.name));
    writer.fails(1);
    scene.api.revive_etcd().unwrap_or_else(|e| panic!("{e}"));
    writer.writes(60);
    scene.finish(writer);
}

/// Lets all follow, and the API server and etcd come back with data from before the last changes. `meanwhile` is done when
/// all is seen and nobody writes any more.
fn restored(name: &'static str, how: How, meanwhile: impl FnOnce(&Scene)) -> (Scene, Writer) {
    let mut scene = Scene::new(name, &[]);
    let writer = scene.write(42);
    scene.follow(how);
    scene.each(|s| s.ready());
    writer.hold();
    let backup = scene.api.back_up().unwrap_or_else(|e| panic!("{e}"));
    writer.go_on();
    writer.writes(60);
    writer.hold();
    // So far that the restored server does not catch up by the few writes of its own.
    scene.api.advance_etcd(500).unwrap_or_else(|e| panic!("{e}"));
    scene.settle();
    scene.each(|s| assert!(s.told(WENT_BACK).is_empty(), "{:?}", s.told("")));
    scene.each(|s| s.expect_set_back());
    meanwhile(&scene);
    scene.api.restore(&backup).unwrap_or_else(|e| panic!("{e}"));
    (scene, writer)
}

/// The watches have noticed nothing, as behind a load balancer that keeps their requests until a server is there. They go on
/// from a version that the server has not reached, and hear nothing: a real server says neither that nor anything else. The
/// probe finds it, within three minutes with default settings (`STEERSMAN_PATIENT=1`), and the state is set back with a loud
/// word.
pub fn older_data() {
    let patient = std::env::var_os("STEERSMAN_PATIENT").is_some();
    let mut how = How::through_lenses();
    if !patient {
        how.settings = |o| {
            o.watcher.idle = Duration::from_secs(3);
            o.watcher.idle_after_bookmark = Duration::from_secs(3);
        };
    }
    let (scene, writer) = restored("older data", how, |scene| {
        scene.each(|s| {
            s.lens().hold(|target| target.contains("watch=") && !target.contains("sendInitialEvents"));
            s.lens().cut();
        });
        scene.each(|s| s.until("its watch waits", |s| s.lens().held() == 1));
    });
    scene.each(|s| s.lens().release());
    let began = Instant::now();
    let limit = if patient { Duration::from_secs(180) } else { LIMIT };
    scene.each(|s| {
        let found = || (!s.told(WENT_BACK).is_empty()).then_some(());
        until_within(limit, "it is found out", || s.state(), found);
        println!("{}: found out after {:.1} s", s.name, began.elapsed().as_secs_f32());
        assert!(!s.told(SILENT).is_empty(), "{:?}", s.told(""));
    });
    scene.settle();
    writer.go_on();
    writer.writes(40);
    scene.finish(writer);
}

/// Whoever writes goes on at once, so that the server soon reaches the version where the watches would wait: from there on it
/// sends changes again, as if nothing had happened, and what was lost before would stay lost. But the watches know that the
/// server was away, and ask for its version before they go on.
pub fn older_data_that_catch_up() {
    let (scene, writer) = restored("older data that catch up", How::straight(), |_| {});
    let connected = |s: &Subject| s.status().is_some_and(|s| s.watcher.connected_since.is_some());
    scene.each(|s| s.until("it is connected", connected));
    writer.go_on();
    writer.writes(10);
    scene.api.advance_etcd(1500).unwrap_or_else(|e| panic!("{e}"));
    writer.writes(40);
    scene.each(|s| {
        assert_eq!(s.told(WENT_BACK).len(), 1, "{}: {:?}", s.name, s.told(""));
        assert!(s.told(SILENT).is_empty(), "{:?}", s.told(""));
    });
    scene.finish(writer);
}
