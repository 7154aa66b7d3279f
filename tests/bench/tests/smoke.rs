//! The whole contest with few pods, so that it cannot rot. No figure is judged here.

use std::env;
use std::fs;
use std::path::PathBuf;
use std::process::Command;

use serde_json::Value;

/// The figures of every run.
fn contest(name: &str, words: &[&str]) -> Value {
    let json = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}.json"));
    let output = Command::new(env!("CARGO_BIN_EXE_steersman-bench"))
        .args(words)
        .args(["--runs", "1", "--json"])
        .arg(&json)
        .output()
        .unwrap();
    let (text, errors) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{errors}");
    assert!(text.contains("| threads ") && text.contains("| smol ") && !text.contains("NaN"), "{text}");
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
}

#[test]
fn a_list_in_pages() {
    first_state("pages", &["--page-size", "100"]);
}

#[test]
fn a_list_in_one_response_compressed() {
    first_state("gzip", &["--page-size", "0", "--gzip"]);
}

#[test]
fn a_streaming_list() {
    first_state("streaming", &["--streaming"]);
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
fn everything_is_compared_with_the_peers_that_were_built() {
    let chart = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("compare.svg");
    let words = ["compare", "--objects", "100", "--events", "500", "--no-build", "--svg"];
    let figures = contest("compare", &[&words[..], &[chart.to_str().unwrap()]].concat());
    for contest in ["list", "metadata", "watch"] {
        each(&figures[contest], |run| assert!(run["resident"].as_u64().unwrap() > 0, "{run}"));
    }
    let figures = figures["figures"].as_array().unwrap();
    assert_eq!(figures.len(), 12);
    for figure in figures {
        let medians = figure["medians"].as_object().unwrap();
        let ratios = figure["to_best_peer"].as_array().map_or(0, Vec::len);
        assert!(medians.len() == 2 && ratios == 0 || medians.len() == 4 && ratios == 2, "{figure}");
    }
    assert!(fs::read_to_string(chart).unwrap().ends_with("</svg>\n"));
}

#[test]
fn what_cannot_be_done_is_said() {
    let output =
        Command::new(env!("CARGO_BIN_EXE_steersman-bench")).args(["list", "--size", "100"]).output().unwrap();
    assert!(!output.status.success());
    assert!(String::from_utf8_lossy(&output.stderr).contains("too small"));
}
