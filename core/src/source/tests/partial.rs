//! What is not kept of objects: watches of metadata alone, and parts that are dropped.

use super::*;
use crate::object::Dropped;
use crate::watcher;

const ONE: &str = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json";
const LIST: &str = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json";

fn accept(request: &str) -> &str {
    request.lines().find_map(|l| l.strip_prefix("Accept: ")).unwrap()
}

fn partial(name: &str, version: u32) -> String {
    format!(
        r#"{{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":{{"name":"{name}","namespace":"d","resourceVersion":"{version}"}}}}"#
    )
}

fn whole(name: &str, version: u32) -> String {
    format!(
        r#"{{"kind":"ConfigMap","apiVersion":"v1","data":{{"k":"v"}},"metadata":{{"name":"{name}","namespace":"d","resourceVersion":"{version}"}}}}"#
    )
}

fn items(kind: &str, items: &[String]) -> String {
    let items = items.join(",");
    format!(
        r#"{{"kind":"{kind}","apiVersion":"x/v1","metadata":{{"resourceVersion":"10"}},"items":[{items}]}}"#
    )
}

fn kept(play: &Play) -> Vec<String> {
    let mut all: Vec<_> = play.source.snapshot().iter().map(|(_, o)| o.json().to_string()).collect();
    all.sort();
    all
}

/// What every kept object of these tests must be.
fn alone(name: &str, version: u32) -> String {
    partial(name, version).replace("PartialObjectMetadata", "ConfigMap").replace("meta.k8s.io/v1", "v1")
}

fn metadata_of(spec: WatchSpec, streaming: bool, script: Vec<Answer>, style: Style) -> Play {
    let watcher = watcher::Config { streaming, ..watcher::Config::default() };
    Play::of(&spec.metadata(), style, Options { watcher, ..Options::default() }, script)
}

#[test]
fn metadata_is_asked_for_in_lists_and_watches_and_objects_are_of_their_own_kind() {
    for style in STYLES {
        let list = items("PartialObjectMetadataList", &[partial("a", 5), partial("b", 6)]);
        let frames = frame("MODIFIED", &partial("a", 11)) + &frame("ADDED", &partial("c", 12));
        let script = vec![Answer::Bytes(json(&list)), Answer::Bytes(watch(&frames, false))];
        let play = metadata_of(WatchSpec::all(CONFIGMAPS), false, script, style);
        assert_eq!(play.requests.iter().map(|r| accept(r)).collect::<Vec<_>>(), [LIST, ONE]);
        assert_eq!(kept(&play), [alone("a", 11), alone("b", 6), alone("c", 12)], "{style:?}");
        assert!(play.told.contains(&"+ConfigMap(d/a @5) first".to_string()), "{:?}", play.told);
    }
}

#[test]
fn metadata_is_asked_for_in_streaming_lists() {
    let end = r#"{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":{"resourceVersion":"10","annotations":{"k8s.io/initial-events-end":"true"}}}"#;
    let frames = frame("ADDED", &partial("a", 5)) + &frame("BOOKMARK", end);
    // What ends the list is seen though annotations are dropped.
    let dropped = Dropped::none().and("/metadata/annotations").unwrap();
    let spec = WatchSpec::all(CONFIGMAPS).dropping(dropped);
    let play = metadata_of(spec, true, vec![Answer::Bytes(watch(&frames, false))], STYLES[0]);
    assert!(play.asked[0].contains("sendInitialEvents=true"), "{:?}", play.asked);
    assert_eq!(accept(&play.requests[0]), ONE);
    assert_eq!(kept(&play), [alone("a", 5)]);
    assert_eq!(play.told.last().unwrap(), "synced=true at 10");
}

/// Nothing but metadata is kept, whatever a server makes of the request.
#[test]
fn a_server_that_answers_whole_objects_makes_no_difference() {
    for style in STYLES {
        let list = items("ConfigMapList", &[whole("a", 5)]);
        let frames = frame("ADDED", &whole("b", 11));
        let script = vec![Answer::Bytes(json(&list)), Answer::Bytes(watch(&frames, false))];
        let play = metadata_of(WatchSpec::all(CONFIGMAPS), false, script, style);
        let mut names: Vec<_> =
            play.source.snapshot().iter().map(|(_, o)| o.raw_at(&["data"]).is_none()).collect();
        names.dedup();
        assert_eq!((names, play.names().len()), (vec![true], 2), "{style:?}");
        assert_eq!(play.errors(), [""; 0]);
    }
}

/// Rows are no objects: an error that says so, and never an empty list.
#[test]
fn a_table_is_an_error_that_says_so() {
    let table =
        r#"{"kind":"Table","apiVersion":"meta.k8s.io/v1","metadata":{"resourceVersion":"10"},"rows":[]}"#;
    let list = items("PartialObjectMetadataList", &[partial("a", 5)]);
    let script = vec![Answer::Bytes(json(table))];
    let play = metadata_of(WatchSpec::all(CONFIGMAPS), false, script, STYLES[0]);
    assert!(play.errors()[0].contains("not a list but a Table"), "{:?}", play.errors());
    assert!(!play.told.iter().any(|t| t.contains("synced=true")), "{:?}", play.told);

    let frames =
        frame("MODIFIED", &table.replace("[]", r#"[{"cells":["a"]}]"#)) + &frame("ADDED", &partial("b", 12));
    let script = vec![Answer::Bytes(json(&list)), Answer::Bytes(watch(&frames, false))];
    let play = metadata_of(WatchSpec::all(CONFIGMAPS), false, script, STYLES[0]);
    let bad: Vec<_> =
        play.notices.iter().map(|n| format!("{n:?}")).filter(|n| n.contains("in a Table")).collect();
    assert_eq!((bad.len(), kept(&play).len()), (1, 2), "{:?}", play.notices);
}

#[test]
fn a_watch_drops_what_it_says_and_else_what_all_sources_do() {
    let object = r#"{"metadata":{"name":"a","namespace":"d","managedFields":[],"resourceVersion":"5"},"data":{},"status":{}}"#;
    let dropping = |pointer: &str| Dropped::default().and(pointer).unwrap();
    let spec = WatchSpec::all(CONFIGMAPS);
    for (spec, gone) in [
        (spec.clone(), vec!["managedFields", "status"]),
        (spec.clone().dropping(dropping("/data")), vec!["managedFields", "data"]),
        (spec.dropping(Dropped::none()), vec![]),
    ] {
        let script = vec![Answer::Bytes(json(&list(10, "", &[object.to_string()])))];
        let options = Options { dropped: dropping("/status"), ..lists() };
        let play = Play::of(&spec, STYLES[0], options, script);
        let [json] = &kept(&play)[..] else { panic!("{:?}", play.told) };
        for name in ["managedFields", "data", "status"] {
            assert_eq!(!json.contains(&format!("\"{name}\"")), gone.contains(&name), "{json}");
        }
    }
}
