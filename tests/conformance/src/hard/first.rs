//! First states: streaming lists where the server has them, plain ones where it has not, and large ones.

use serde_json::json;

use super::{How, Scene};

const FELL_BACK: &str = "no streaming lists here, listing";

/// Streaming lists are taken, and then no plain one is asked for.
pub fn streaming_lists() {
    let mut scene = Scene::new("streaming lists", &[]);
    let writer = scene.write(1);
    scene.follow(How::through_lenses());
    writer.writes(60);
    scene.each(|s| {
        s.ready();
        let lens = s.lens();
        let (lists, streams) =
            (lens.count(|r| r.is_list()), lens.count(|r| r.is_stream() && r.status == 200));
        assert_eq!((lists, streams), if s.streaming { (0, 1) } else { (1, 0) }, "{}", s.name);
        assert!(s.told(FELL_BACK).is_empty(), "{:?}", s.told(""));
    });
    scene.finish(writer);
}

/// The server has none: it is asked once, then never again, whatever happens.
pub fn streaming_lists_refused() {
    let mut scene = Scene::new("streaming lists refused", &["--feature-gates=WatchList=false"]);
    let writer = scene.write(2);
    scene.follow(How::through_lenses());
    scene.each(|s| s.ready());
    scene.each(|s| s.lens().refuse());
    writer.writes(20);
    writer.hold();
    scene.api.compact().unwrap_or_else(|e| panic!("{e}"));
    writer.go_on();
    scene.each(|s| s.lens().accept());
    scene.each(|s| {
        s.until_told("synced", 2);
        let lens = s.lens();
        let streams = lens.count(|r| r.is_stream());
        assert_eq!(streams, usize::from(s.streaming), "{}: it is remembered", s.name);
        assert_eq!(lens.count(|r| r.is_stream() && r.status == 422), streams, "{}", s.name);
        assert_eq!(s.told(FELL_BACK).len(), streams, "{}", s.name);
        assert!(lens.count(|r| r.is_list() && r.status == 200) >= 2, "{}", s.name);
    });
    scene.finish(writer);
}

/// A list above 128 KiB comes as gzip.
pub fn gzip() {
    let mut scene = Scene::new("gzip", &[]);
    for namespace in scene.namespaces() {
        for n in 0..30 {
            let text: String = (0..600).map(|i| format!("line {i} of map {n}\n")).collect();
            let path = format!("/api/v1/namespaces/{namespace}/configmaps");
            scene.make(&path, &json!({"metadata": {"name": format!("large-{n}")}, "data": {"text": text}}));
        }
    }
    let writer = scene.write(3);
    scene.follow(How::through_lenses());
    writer.writes(40);
    scene.each(|s| s.ready());
    scene.each(|s| {
        let first = s.lens().seen().into_iter().find(|r| r.status == 200);
        let first = first.unwrap_or_else(|| panic!("{}: nothing was asked", s.name));
        let coding = first.header("content-encoding").unwrap_or("none");
        println!("{}: {coding}, {} bytes", s.name, first.bytes);
        // A real server compresses lists only, whatever a watch asks for.
        assert_eq!(coding, if s.streaming { "none" } else { "gzip" }, "{}", s.name);
        assert!(s.streaming || first.bytes < 128 * 1024, "{}: {} bytes", s.name, first.bytes);
    });
    scene.finish(writer);
}
