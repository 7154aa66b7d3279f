//! A page is whole, closed to the network, and nothing in it is what somebody named an object.

use serde_json::Value;

use super::*;

const EVIL: &str = "a</script><script>alert('x')</script>&\"\u{2028}<!--";

fn entry(millis: u64, lane: Lane, kind: Kind, key: Option<&str>) -> Entry {
    let text = format!("entry {EVIL} at {millis}");
    Entry { at: Time::from_millis(millis), lane, kind, key: key.map(str::to_owned), text }
}

fn trace() -> Trace {
    let (fault, replica, server) = (Lane::Fault(0), Lane::Replica(0), Lane::Server(1));
    let entries = vec![
        entry(0, replica, Kind::Starts, None),
        entry(1, Lane::Cluster, Kind::Creates, Some(EVIL)),
        entry(2, replica, Kind::Runs(0, 1), Some(EVIL)),
        entry(3, replica, Kind::Runs(0, 2), Some("ConfigMap a/b")),
        entry(4, replica, Kind::Done(0, 1), None),
        entry(5, server, Kind::Down, None),
        entry(6, fault, Kind::Strikes, None),
        entry(7, replica, Kind::Dies, None),
        entry(8, fault, Kind::Heals, None),
        entry(9, Lane::Cluster, Kind::Deletes, Some(EVIL)),
        entry(10, Lane::Fault(1), Kind::Strikes, None),
        entry(20, Lane::Cluster, Kind::Violated, None),
    ];
    Trace { entries, cut: false }
}

/// What the script reads.
fn data(page: &str) -> Value {
    let (_, json) = page.split_once("<script type=\"application/json\" id=\"run\">").expect("data");
    serde_json::from_str(json.split_once("</script>").expect("an end").0).expect("JSON")
}

#[test]
fn nothing_that_somebody_named_is_markup() {
    let page = trace().page(EVIL, &[("replay", EVIL.into()), (EVIL, format!("{EVIL}\n{EVIL}"))]);
    assert!(
        !page.contains("<script>alert") && !page.contains("a</script>") && !page.contains("<!--"),
        "{page}"
    );
    // The two that belong there, and their ends.
    assert_eq!((page.matches("<script").count(), page.matches("</script").count()), (2, 2));
    // And yet it is all there.
    let data = data(&page);
    assert_eq!(data["entries"][0][4], format!("entry {EVIL} at 0"));
    assert!(data["lanes"].as_array().expect("lanes").iter().any(|lane| lane["name"] == EVIL));
    assert!(page.contains("<title>a&lt;/script&gt;&lt;script&gt;alert(&#39;x&#39;)"), "{page}");
}

#[test]
fn it_needs_nothing_but_itself() {
    let page = trace().page("t", &[]);
    assert!(page.contains("default-src 'none'"));
    for word in ["http:", "https:", "src=", "href=", "@import", "url(", "innerHTML", "fetch("] {
        assert!(!page.contains(word), "{word}");
    }
}

#[test]
fn what_lasts_has_its_ends() {
    let data = data(&trace().page("t", &[]));
    let lane =
        |span: &Value| data["lanes"][span["lane"].as_u64().expect("a number") as usize]["name"].clone();
    let spans: Vec<_> = data["spans"]
        .as_array()
        .expect("spans")
        .iter()
        .map(|s| {
            let number = |name: &str| s[name].as_u64().expect("a number") / 1_000;
            let (kind, ill) = (s["kind"].as_str().expect("text"), s["ill"].as_bool().expect("a truth value"));
            (kind, lane(s).as_str().expect("text").to_owned(), number("from"), number("to"), ill)
        })
        .collect();
    let expected = [
        ("life", "replica 0", 0, 7, false),
        ("exists", EVIL, 1, 9, false),
        ("run", "replica 0", 2, 4, false),
        ("run", "replica 0", 3, 7, true),
        ("down", "server 1", 5, 20, false),
        ("fault", "fault 0", 6, 8, false),
        ("fault", "fault 1", 10, 10, false),
    ];
    assert_eq!(spans, expected.map(|(kind, lane, from, to, ill)| (kind, lane.to_owned(), from, to, ill)));
}

#[test]
fn there_is_an_end_to_lanes_and_entries() {
    let key = |n: u64| format!("ConfigMap a/{n:05}");
    let many = (0..MOST_ENTRIES as u64 + 500)
        .map(|n| entry(n, Lane::Cluster, Kind::Updates, Some(&key(n % 1_000))))
        .collect();
    let page = Trace { entries: many, cut: false }.page("t", &[]);
    let data = data(&page);
    assert_eq!(data["entries"].as_array().expect("entries").len(), MOST_ENTRIES);
    assert_eq!(data["lanes"].as_array().expect("lanes").len(), 1 + MOST_OBJECTS + 1);
    assert!(page.contains("500 entries from the middle"));
}

#[test]
fn an_empty_trace_is_a_page() {
    let data = data(&Trace::default().page("t", &[]));
    assert_eq!(data, serde_json::json!({"lanes": [], "spans": [], "entries": []}));
}

#[test]
fn the_environment_says_where_it_goes() {
    let program = Program::current();
    let to = |wish: Option<&str>| place(wish.map(PathBuf::from), &program, 7);
    let name = "page__tests__the_environment_says_where_it_goes-7.html";
    assert_eq!(to(Some("")), None);
    assert_eq!(to(Some("/a/b.html")), Some("/a/b.html".into()));
    assert_eq!(to(Some("/a/b")), Some(Path::new("/a/b").join(name)));
    assert!(to(None).is_some_and(|p| p.ends_with(Path::new("steersman-sim").join(name))), "{:?}", to(None));
}
