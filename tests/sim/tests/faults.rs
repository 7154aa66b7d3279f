//! Every kind of fault does what it says, and the mirror lives through each of them.

mod common;

use std::collections::BTreeSet;
use std::time::Duration;

use common::{program, sim};
use steersman_core::time::Time;
use steersman_sim::{Fault, Ill, Moment, Report, Sim, What, When};

fn secs(n: u64) -> Duration {
    Duration::from_secs(n)
}

/// Two replicas, one server that lags.
fn cluster() -> Sim {
    sim(program).replica(program).follower(Duration::from_millis(1)..Duration::from_millis(50))
}

/// A run with one fault, and its trace.
fn one(when: When, what: What) -> (Report, String) {
    let (sim, faults) = (cluster(), [Fault { when, what }]);
    let report = sim.run_with(3, &faults).unwrap_or_else(|f| panic!("{f}"));
    let trace = sim.traced(3, &faults).trace.to_string();
    (report, trace)
}

fn at(millis: u64) -> When {
    When::At(Time::from_millis(millis))
}

/// Its trace holds these lines, in this order.
fn shows(trace: &str, wanted: &[&str]) {
    let mut lines = trace.lines();
    for want in wanted {
        assert!(lines.any(|line| line.contains(want)), "no {want:?} (in this place) in\n{trace}");
    }
}

#[test]
fn processes() {
    let crash = What::Crash { replica: 0, down: secs(2), silent: false };
    let (_, trace) = one(at(1_500), crash.clone());
    shows(&trace, &["1.500000 replica 0 dies", "3.500000 replica 0 starts, life 2"]);
    let write = |moment| When::In { replica: 0, moment };
    let (_, trace) = one(write(Moment::AfterWrite(1)), crash.clone());
    shows(&trace, &["replica 0 asks: create", "replica 0 dies", "server 0 gets POST"]);
    let (_, trace) = one(write(Moment::BeforeAnswer(1)), crash.clone());
    shows(&trace, &["server 0 gets POST", "commit", "replica 0 dies"]);
    let (report, trace) = one(write(Moment::Start(1)), crash);
    shows(&trace, &["replica 0 starts, life 1", "replica 0 dies", "replica 0 starts, life 2"]);
    assert!(report.converged.is_some());
    let (_, trace) = one(at(1_500), What::Crash { replica: 1, down: secs(1), silent: true });
    shows(&trace, &["replica 1 dies", "replica 1 starts, life 2"]);
    let (_, trace) = one(at(1_500), What::Stop { replica: 0, down: secs(1) });
    shows(&trace, &["replica 0 exits: stopped", "replica 0 starts, life 2"]);
    let (_, trace) = one(at(1_500), What::Pause { replica: 0, lasts: secs(10) });
    assert!(!trace.lines().any(|l| l.contains("replica 0") && l.trim_start().starts_with("5.")), "{trace}");
    shows(&trace, &["11.500000 replica 0 goes on", "replica 0 sees"]);
    let (_, trace) = one(at(1_500), What::Trigger { replica: 0 });
    shows(&trace, &["fault 0", " 1.5", "replica 0 configmap-mirror runs default/a"]);
    one(at(1_500), What::Clock { replica: 0, by: -5_000 });
}

#[test]
fn only_a_crash_ends_a_process_at_a_write() {
    let what = [
        What::Reset { replica: 0 },
        What::Pause { replica: 0, lasts: secs(1) },
        What::Stop { replica: 0, down: secs(1) },
        What::Partition { replica: 0, server: 0, lasts: secs(1) },
        What::Crash { replica: 1, down: secs(1), silent: false },
        What::Compact,
    ];
    for what in what {
        for moment in [Moment::BeforeWrite(1), Moment::AfterWrite(1), Moment::BeforeAnswer(1)] {
            let (_, trace) = one(When::In { replica: 0, moment }, what.clone());
            shows(&trace, &["replica 0 asks: create", &format!("fault 0 {what}"), "replica 0 hears: "]);
        }
    }
    let before_answer = When::In { replica: 0, moment: Moment::BeforeAnswer(1) };
    let (_, trace) = one(before_answer, What::Reset { replica: 0 });
    shows(&trace, &["server 0 gets POST", "fault 0", "connection reset by peer"]);
    let (_, trace) = one(before_answer, What::Pause { replica: 0, lasts: secs(1) });
    shows(&trace, &["replica 0 stands still", "replica 0 goes on", "replica 0 hears: "]);
}

#[test]
fn all_faults_of_a_moment_happen() {
    for moment in [Moment::BeforeWrite(1), Moment::AfterWrite(1), Moment::BeforeAnswer(1)] {
        let when = When::In { replica: 0, moment };
        let faults = [What::Compact, What::Reset { replica: 0 }].map(|what| Fault { when, what });
        let trace = cluster().traced(3, &faults).trace.to_string();
        for fault in ["fault 0", "fault 1"] {
            shows(&trace, &[fault]);
        }
    }
}

#[test]
fn networks() {
    let (_, trace) = one(at(1_500), What::Reset { replica: 0 });
    shows(&trace, &["replica 0", "connection reset by peer"]);
    let (_, trace) = one(at(1_500), What::Cut { replica: 0, which: 0, after: 5 });
    shows(&trace, &["fault 0", "Failed"]);
    let (_, trace) = one(at(1_500), What::HalfOpen { replica: 0, which: 1 });
    shows(&trace, &["fault 0", "Failed"]);
    let (_, trace) = one(at(500), What::Partition { replica: 0, server: 0, lasts: secs(20) });
    assert!(
        !trace.lines().any(|l| l.contains("replica 0 sees") && l.trim_start().starts_with("5.")),
        "{trace}"
    );
    // Longer than kernels wait.
    let sim = cluster().faults_for(secs(300));
    let long =
        |server| Fault { when: at(500), what: What::Partition { replica: 0, server, lasts: secs(100) } };
    let faults = [long(0), long(1)];
    sim.run_with(3, &faults).unwrap_or_else(|f| panic!("{f}"));
    shows(&sim.traced(3, &faults).trace.to_string(), &["connection timed out"]);
    let (_, trace) = one(at(0), What::Refuse { server: 0, lasts: secs(5) });
    shows(&trace, &["connection refused"]);
    let lasts = secs(30);
    one(at(0), What::Slow { replica: 0, lasts });
    one(at(0), What::Loss { replica: 0, share: 400, lasts });
    let (_, trace) = one(at(500), What::Blind { replica: 0, lasts: secs(3) });
    shows(&trace, &["fault 0 ends", "410"]);
}

#[test]
fn servers() {
    let (_, trace) = one(at(1_500), What::ServerRestart { server: 0, down: secs(2) });
    shows(&trace, &["fault 0", "3.500000 server 0 is back"]);
    one(at(1_500), What::ServerRestart { server: 1, down: secs(2) });
    one(at(1_500), What::Compact);
    let (_, trace) = one(at(0), What::NoBookmarks { lasts: secs(600) });
    shows(&trace, &["fault 0"]);
    let (_, trace) = one(at(1_900), What::Freeze { server: 1, lasts: secs(10) });
    shows(&trace, &["commit 4", "11.900000 server 1 hears of version"]);
    let (_, trace) = one(at(0), What::Lead { replica: 0, server: 1, lasts: secs(10) });
    shows(&trace, &["server 1 gets GET"]);
}

#[test]
fn ill_answers() {
    let ill = |ill| What::Answer { ill, verb: None, replica: None, skip: 4, times: 3 };
    let kinds = [Ill::TooMany(2), Ill::Error, Ill::Unavailable, Ill::Hang, Ill::Drop, Ill::DropAfter];
    for kind in kinds.into_iter().chain([Ill::Conflict, Ill::Twice]) {
        one(at(0), ill(kind));
    }
    let verb = Some("create".to_owned());
    let twice = What::Answer { ill: Ill::Twice, verb, replica: None, skip: 0, times: 1 };
    let (_, trace) = one(at(0), twice);
    shows(&trace, &["Secret default/", "AlreadyExists, 409"]);
}

#[test]
fn one_that_meets_no_requests_does_nothing() {
    let (sim, plain) = (cluster(), cluster().traced(3, &[]));
    let none = What::Answer { ill: Ill::Error, verb: None, replica: None, skip: 0, times: 0 };
    let report = sim.clone().faults_for(secs(0)).traced(3, &[Fault { when: at(0), what: none }]);
    assert_eq!((report.requests, report.runs), (plain.requests, plain.runs));
    let hears_ill = |e: &steersman_sim::Entry| e.text.contains("500");
    assert!(!report.trace.entries.iter().any(hears_ill), "{}", report.trace);
}

#[test]
fn a_list_of_faults_is_text_and_back() {
    let sim = cluster();
    let mut kinds = BTreeSet::new();
    for seed in 0..300 {
        let faults = sim.faults(seed);
        assert_eq!(faults, sim.faults(seed));
        let text = serde_json::to_string(&faults).expect("JSON");
        assert_eq!(serde_json::from_str::<Vec<Fault>>(&text).expect("JSON"), faults);
        let name =
            |f: &Fault| format!("{:?}", f.what).split([' ', '{']).next().unwrap_or_default().to_owned();
        kinds.extend(faults.iter().map(name));
    }
    // Every kind is drawn by some seed.
    assert_eq!(kinds.len(), 19, "{kinds:?}");
}

#[test]
fn a_part_of_a_list_runs_as_well() {
    let sim = cluster();
    let faults = sim.faults(12);
    for n in 0..faults.len() {
        sim.run_with(12, &faults[n..]).unwrap_or_else(|f| panic!("{f}"));
    }
}
