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
