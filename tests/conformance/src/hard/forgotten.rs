//! Versions that the server has forgotten.
//!
//! A real server says so in three ways. A watch is never refused for it: it opens, and its only event is an `ERROR` with code
//! 410. A continue token is refused with HTTP 410; so is a list at exactly an old version, which a watcher never asks for.
//! (`truth/compaction.txt` has all of them, word by word.)

use super::{How, Scene, Subject};
use crate::lens::Seen;

pub(super) const EXPIRED: &str = "version expired, listing again";

/// A watch that was resumed and told that its version is gone.
fn resumed_in_vain(seen: &Seen) -> bool {
    seen.is_watch()
        && !seen.is_stream()
        && seen.status == 200
        && seen.errors.iter().any(|e| e.contains("\"code\":410"))
}

fn started_anew(s: &Subject) {
    s.until_told(EXPIRED, 1);
    s.until_told("synced", 2);
    assert!(s.lens().count(resumed_in_vain) >= 1, "{}: {:#?}", s.name, s.told(""));
    assert_eq!(
        s.lens().count(|r| r.is_watch() && r.status == 410),
        0,
        "{}: a watch is never refused",
        s.name
    );
}

/// Versions are forgotten while nobody is connected, and the API server is restarted, so that its cache knows none of them.
pub fn a_watch() {
    let mut scene = Scene::new("a forgotten watch", &[]);
    let writer = scene.write(10);
    scene.follow(How::through_lenses());
    scene.each(|s| s.ready());
    scene.each(|s| s.lens().refuse());
    writer.writes(40);
    scene.api.compact().unwrap_or_else(|e| panic!("{e}"));
    scene.each(|s| s.lens().accept());
    scene.each(started_anew);
    writer.writes(40);
    scene.finish(writer);
}

/// Without a watch cache every watch and list is etcd's own, and so is its memory: no restart is needed. Three times.
pub fn a_watch_without_a_cache() {
    let mut scene = Scene::new("a forgotten watch, no cache", &["--watch-cache=false"]);
    let writer = scene.write(11);
    scene.follow(How::through_lenses());
    scene.each(|s| s.ready());
    for round in 1..=3 {
        scene.in_a_gap(|api| {
            writer.writes(40);
            api.compact_etcd().unwrap_or_else(|e| panic!("{e}"));
        });
        scene.each(|s| {
            s.until_told(EXPIRED, round);
            s.until_told("synced", round + 1);
        });
    }
    scene.each(started_anew);
    scene.finish(writer);
}

/// A list of pages whose version is forgotten between the first and the second: its rest is asked for in vain, then all of it
/// at once. (With a watch cache the API server goes on to serve the pages of a list, and exact old versions, from its own
/// snapshots, until it hears of the compaction.)
pub fn a_page() {
    let mut scene = Scene::new("a forgotten page", &["--watch-cache=false"]);
    let writer = scene.write(12);
    scene.follow(How {
        lens: Some(|lens| lens.hold(|target| target.contains("continue="))),
        settings: |options| options.watcher.page_size = Some(2),
        ..How::straight()
    });
    scene.each_that(false, |s| s.until("its second page waits", |s| s.lens().held() == 1));
    writer.writes(20);
    scene.api.compact_etcd().unwrap_or_else(|e| panic!("{e}"));
    writer.writes(20);
    scene.each(|s| s.lens().release());
    scene.each(|s| s.ready());
    scene.each_that(false, |s| {
        let lists: Vec<(bool, bool, u16)> = s
            .lens()
            .seen()
            .iter()
            .filter(|r| r.is_list())
            .map(|r| (r.has("limit=2"), r.has("continue="), r.status))
            .collect();
        assert_eq!(lists, [(true, false, 200), (true, true, 410), (false, false, 200)], "{}", s.name);
        assert_eq!(s.told(EXPIRED).len(), 1, "{}", s.name);
    });
    scene.finish(writer);
}
