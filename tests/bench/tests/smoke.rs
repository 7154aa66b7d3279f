//! The whole contest with few pods, so that it cannot rot. No figure is judged here.

use std::env;
use std::fs;
use std::path::PathBuf;
use std::process::Command;

use serde_json::Value;
use steersman_apiserver::front::{Options, Server};

/// The figures of every run. Of ours and of the limit: peers that lie there may have been built of another state of these files.
fn contest(name: &str, words: &[&str]) -> Value {
    let json = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}.json"));
    let output = Command::new(env!("CARGO_BIN_EXE_steersman-bench"))
        .args(words)
        .args(["--no-build", "--peer", "none", "--runs", "1", "--json"])
        .arg(&json)
        .output()
        .unwrap();
    let (text, errors) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{errors}");
    assert!(
        ["| threads ", "| smol "].iter().all(|name| text.contains(name)) && !text.contains("NaN"),
        "{text}"
    );
    serde_json::from_str(&fs::read_to_string(json).unwrap()).unwrap()
}

fn each(figures: &Value, check: impl Fn(&Value)) {
    for executor in ["threads", "smol"] {
        check(&figures["contestants"][executor][0]);
    }
}

fn first_state(name: &str, words: &[&str]) {
    let figures = contest(name, &[&["list", "--objects", "300", "--size", "5000"], words].concat());
    each(&figures, |run| {
        assert!(run["sync"].as_f64().unwrap() > 0.0);
        assert!(run["resident"].as_u64().unwrap() > 300 * 500, "{run}");
        assert!(run["peak"].as_u64().unwrap() >= run["resident"].as_u64().unwrap());
    });
    if words.contains(&"--limit") {
        let held = figures["contestants"]["limit"][0]["resident"].as_u64().unwrap();
        assert!(held > 300 * 3_000, "{held}");
    }
}

#[test]
fn a_list_in_pages() {
    first_state("pages", &["--page-size", "100", "--limit"]);
}

#[test]
fn a_list_in_one_response_compressed() {
    first_state("gzip", &["--page-size", "0", "--gzip"]);
}

#[test]
fn a_streaming_list() {
    first_state("streaming", &["--streaming", "--limit"]);
}

#[test]
fn metadata_alone() {
    first_state("metadata", &["--metadata"]);
}

#[test]
fn every_event_is_reconciled_in_the_end() {
    let figures = contest(
        "watch",
        &["watch", "--objects", "100", "--size", "5000", "--events", "1000", "--rate", "2000"],
    );
    each(&figures, |run| {
        // Events of one pod may come together in one reconcile, but there are at least as many as pods.
        let reconciles = run["reconciles"].as_u64().unwrap();
        assert!((100..=1_000).contains(&reconciles), "{run}");
        assert!(run["p50"].as_f64().unwrap() <= run["p99"].as_f64().unwrap());
    });
}

#[test]
fn packed() {
    for words in [&["list", "--objects", "300"][..], &["watch", "--objects", "100", "--events", "1000"]] {
        let executors = [
            "--executor",
            "threads",
            "--executor",
            "smol",
            "--executor",
            "threads-compact",
            "--executor",
            "smol-compact",
        ];
        let figures = contest("packed", &[words, &executors].concat());
        for name in ["threads-compact", "smol-compact"] {
            assert!(figures["contestants"][name][0]["resident"].as_u64().unwrap() > 0, "{figures}");
        }
    }
}

/// One contest of `compare`, with the limit where it takes part: it must do the same work to be one.
fn compare(name: &str, figures_of_each: usize) -> Value {
    let chart = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("compare-{name}.svg"));
    let words = ["compare", "--contest", name, "--objects", "100", "--events", "500", "--svg"];
    let others = [chart.to_str().unwrap(), "--controllers", "3", "--after", "1"];
    let all = contest(&format!("compare-{name}"), &[&words[..], &others].concat());
    let contestants = all[name]["contestants"].as_object().unwrap();
    let limited = !["parse", "timers", "sharing", "spike"].contains(&name);
    assert!(["threads", "smol"].iter().all(|name| contestants.contains_key(*name)));
    assert_eq!(contestants.contains_key("limit"), limited);
    for (contestant, runs) in contestants {
        let run = &runs[0];
        assert!(run["resident"].as_u64().unwrap() > 0 && run["threads"].as_u64().unwrap() > 0, "{run}");
        assert!((0.0..60.0).contains(&run["start"].as_f64().unwrap()), "{contestant}: {run}");
        if ["watch", "latency", "timers", "sharing"].contains(&name) {
            assert!((100..=500).contains(&run["reconciles"].as_u64().unwrap()), "{contestant}: {run}");
            assert!(run["first"].as_f64().unwrap() > 0.0, "{contestant}: {run}");
        }
    }
    let figures = all["figures"].as_array().unwrap();
    assert_eq!(figures.len(), figures_of_each);
    for figure in figures {
        // Ours beside the limit.
        let ratios = figure["ratios"].as_object().unwrap().len();
        assert_eq!(ratios, if limited { contestants.len() - 1 } else { 0 }, "{figure}");
    }
    assert!(fs::read_to_string(chart).unwrap().ends_with("</svg>\n"));
    all[name].clone()
}

#[test]
fn lists_are_compared() {
    compare("list", 4);
}

#[test]
fn streaming_lists_are_compared() {
    compare("streaming", 4);
}

#[test]
fn lists_of_metadata_are_compared() {
    compare("metadata", 4);
}

#[test]
fn watches_are_compared() {
    compare("watch", 5);
}

#[test]
fn latencies_are_compared() {
    compare("latency", 5);
}

#[test]
fn idle_processes_are_compared() {
    compare("idle", 7);
}

/// Against the embedded API server, which is there everywhere.
#[test]
fn a_cluster_is_filled_changed_and_tidied_up() {
    let server = Server::start(Options::default()).unwrap();
    let kubeconfig = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("real.kubeconfig");
    fs::write(&kubeconfig, server.kubeconfig()).unwrap();
    let words = ["real", "--objects", "40", "--events", "100", "--rate", "1000", "--peer", "kube-rs-lean"];
    let more = ["--peer", "controller-runtime", "--kubeconfig", kubeconfig.to_str().unwrap()];
    let figures = contest("real", &[&words[..], &more].concat());
    for resource in ["configmaps", "pods"] {
        assert!((3_000..7_000).contains(&figures[resource]["bytes"].as_u64().unwrap()), "{figures}");
        for (contestant, runs) in figures[resource]["contestants"].as_object().unwrap() {
            let run = &runs[0];
            assert!((40..=100).contains(&run["reconciles"].as_u64().unwrap()), "{contestant}: {run}");
            for figure in ["sync", "listed_resident", "p50", "rate", "answered_p99"] {
                assert!(run[figure].as_f64().unwrap() > 0.0, "{contestant}: {figure}: {run}");
            }
        }
    }
}

#[test]
fn reconciles_that_are_asked_for_in_an_hour_are_compared() {
    each(&compare("timers", 4), |run| assert!(run["base_resident"].as_f64().unwrap() > 0.0, "{run}"));
}

#[test]
fn reconciles_that_decode_are_compared() {
    each(&compare("parse", 4), |run| {
        assert_eq!((run["parses"].as_f64(), run["metadata_alone"].as_f64()), (Some(1.0), Some(0.0)), "{run}");
    });
}

#[test]
fn controllers_that_share_a_watch_are_compared() {
    // With one watch, however many there are, and each pod is reconciled by one of them.
    each(&compare("sharing", 6), |run| assert_eq!(run["watches"], 1, "{run}"));
}

#[test]
fn spikes_are_compared() {
    each(&compare("spike", 5), |run| {
        for key in ["relist_peak", "after_resident"] {
            assert!(run[key].as_u64().unwrap() > 0, "{run}");
        }
        assert!(run["after_resident_part"].as_f64().unwrap() < 2.0, "{run}");
    });
}

#[test]
fn what_an_event_costs_by_the_number_of_pods() {
    let plot = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("scale.svg");
    let words = ["scale", "--sizes", "10,200", "--events", "300", "--limit", "--svg", plot.to_str().unwrap()];
    let figures = contest("scale", &words);
    for (pods, reconciles) in [("10", 10..=300), ("200", 200..=300)] {
        each(&figures[pods], |run| {
            assert!(reconciles.contains(&run["reconciles"].as_u64().unwrap()), "{run}");
        });
    }
    assert_eq!(figures["figures"].as_array().unwrap().len(), 12);
    let plot = fs::read_to_string(plot).unwrap();
    assert_eq!(plot.matches("<path ").count(), 3);
}

#[test]
fn what_cannot_be_done_is_said() {
    let output =
        Command::new(env!("CARGO_BIN_EXE_steersman-bench")).args(["list", "--size", "100"]).output().unwrap();
    assert!(!output.status.success());
    assert!(String::from_utf8_lossy(&output.stderr).contains("too small"));
}
