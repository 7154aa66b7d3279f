//! What matters is shown, however much there is beside it.

use super::*;

fn trace(kinds: impl IntoIterator<Item = Kind>) -> Trace {
    let entry = |(n, kind): (u64, Kind)| Entry {
        at: Time::from_millis(n * 100),
        lane: if kind == Kind::Strikes { Lane::Fault(0) } else { Lane::Replica(0) },
        kind,
        key: None,
        text: format!("entry {n}"),
    };
    Trace { entries: (0..).zip(kinds).map(entry).collect(), cut: false }
}

#[test]
fn quiet_stretches_are_left_out() {
    let quiet = |n| std::iter::repeat_n(Kind::Sees, n);
    let kinds = quiet(1_000).chain([Kind::Strikes]).chain(quiet(500)).chain([Kind::Violated]);
    let text = trace(kinds).timeline().to_string();
    let expected: Vec<String> = (994..=1_006).chain(1_495..=1_501).map(|n| format!("entry {n}")).collect();
    let found: Vec<&str> = text.lines().filter_map(|l| l.find("entry").map(|at| &l[at..])).collect();
    assert_eq!(found, expected);
    assert!(text.starts_with("timeline, 20 of 1502 entries:\n          ... 994 more in 99.4s\n"), "{text}");
    assert!(text.contains("\n>>   100.000000  fault 0    entry 1000\n"), "{text}");
    assert!(text.ends_with("\nXX   150.100000  replica 0  entry 1501\n"), "{text}");
}

#[test]
fn many_loud_entries_lose_their_middle() {
    let trace = trace(std::iter::repeat_n(Kind::Updates, 1_000).chain([Kind::Violated]));
    let text = trace.timeline().to_string();
    assert_eq!(text.lines().filter(|l| l.contains("entry")).count(), SHOWN);
    assert!(text.contains("entry 39\n") && !text.contains("entry 40\n"), "{text}");
    assert!(text.contains("... 881 more in 88.2s\n"), "{text}");
    assert!(text.contains("entry 921\n") && text.ends_with("entry 1000\n"), "{text}");
}

#[test]
fn an_entry_is_a_line_whatever_it_says() {
    let mut trace = trace([Kind::Updates]);
    trace.entries[0].text = "a\nb\u{1b}[31m\u{85}".into();
    assert!(trace.timeline().to_string().ends_with("  a\\nb\\u{1b}[31m\\u{85}\n"));
    assert_eq!(trace.to_string(), "    0.000000 replica 0 a\\nb\\u{1b}[31m\\u{85}\n");
}

#[test]
fn the_reconcile_that_a_violation_is_about_stays() {
    let run = [Kind::Runs(0, 7), Kind::Asks, Kind::Notes, Kind::Hears, Kind::Done(0, 7)];
    let loud = |n| std::iter::repeat_n(Kind::Updates, n);
    let mut trace = trace(loud(300).chain(run).chain(loud(300)).chain([Kind::Runs(0, 8), Kind::Violated]));
    trace.entries[300].key = Some("ConfigMap prod/a".into());
    trace.entries[605].key = Some("ConfigMap prod/a-b".into());
    trace.entries[606].text = "lost key: ConfigMap prod/a should have run".into();
    let shown = |trace: &Trace| {
        let text = trace.timeline().to_string();
        assert!(text.lines().filter(|l| l.starts_with([' ', 'X'])).count() <= SHOWN + 4, "{text}");
        [300, 301, 302, 303, 304, 605].map(|n| text.contains(&format!("entry {n}\n")))
    };
    assert_eq!(shown(&trace), [true, true, false, true, true, false]);
    // Without a name it is the last one.
    trace.entries[606].text = "hot loop: too much".into();
    assert_eq!(shown(&trace), [false, false, false, false, false, true]);
}

#[test]
fn watches_that_only_go_on_are_folded() {
    let kinds =
        [Kind::Hears; 10].into_iter().chain([Kind::Gets, Kind::Notes].repeat(50)).chain([Kind::Violated]);
    let mut trace = trace(kinds);
    for entry in &mut trace.entries {
        match entry.kind {
            Kind::Gets => entry.text = "gets GET /api/v1/pods?watch=true from replica 0".into(),
            Kind::Notes => entry.text = "pods.v1: Watching { resource_version: \"5\" }".into(),
            _ => {}
        }
    }
    let text = trace.timeline().to_string();
    assert!(text.contains("entry 4\n") && text.contains("entry 9\n") && !text.contains("watch"), "{text}");
    assert!(text.contains("... 100 more in"), "{text}");
}
