//! Recordings in files, and the program that replays them.

mod common;

use std::fs;

use common::{CONFIGMAPS, Place, line, record_a_manager, record_a_source, run};
use steersman_core::controller::{self, Controller};
use steersman_core::machine::{Machine, Outputs};
use steersman_core::object::Object;
use steersman_core::record::{Recorded, SourceMade};
use steersman_core::time::Time;
use steersman_record::{Directory, program};

#[test]
fn each_step_is_shown_and_the_state_where_it_stops() {
    let place = Place::new("steps");
    let directory = Directory::new(&place.0).unwrap();
    let path = record_a_source(&directory);
    let (status, out, errors) = run(&[], &path);
    assert_eq!((status, &*errors), (0, ""));
    let lines: Vec<_> = out.lines().collect();
    assert!(lines[0].starts_with("source 0 configmaps.v1, recorded by steersman "), "{out}");
    assert!(lines.contains(&"#1 1.000000000s connection 1 stands"), "{out}");
    assert!(lines.iter().any(|l| l.starts_with("    write 1: GET /api/v1/configmaps?limit=500 (")), "{out}");
    assert_eq!(lines.last(), Some(&"3 steps replayed, each as it was recorded"));
    let (status, out, _) = run(&["--until", "1", "--from", "1"], &path);
    assert!(status == 0 && !out.contains("#0") && out.contains("#1") && !out.contains("#2"), "{out}");
    assert!(out.contains("SourceStatus {") && out.contains("phase: "), "{out}");
    let (status, out, _) = run(&["--step", "2"], &path);
    let lines: Vec<_> = out.lines().collect();
    assert!(status == 0 && lines[1] == "#2 2.000000000s connection 1 ended" && !out.contains("#1"), "{out}");
    assert!(lines.contains(&"state after step 2:") && lines.contains(&"objects: 0"), "{out}");
    let (status, _, errors) = run(&["--step", "3"], &path);
    assert!(status == 2 && errors.contains("there is no step 3: source 0 configmaps.v1"), "{errors}");
    let (_, list, _) = run(&[], directory.path());
    assert!(list.contains("source-0-configmaps.v1: source 0 configmaps.v1"), "{list}");
}

#[test]
fn a_difference_is_named_and_is_the_exit_status() {
    let place = Place::new("diff");
    let directory = Directory::new(&place.0).unwrap();
    let path = record_a_source(&directory);
    assert_eq!(run(&["--diff"], &path).0, 0);
    // As if the code had changed: the recorded machine had another page size than its header says.
    let text = fs::read_to_string(&path).unwrap();
    let (header, rest) = text.split_once('\n').unwrap();
    let mut json: serde_json::Value = serde_json::from_str(&header[18..]).unwrap();
    let mut made: SourceMade = serde_json::from_value(json["made"].clone()).unwrap();
    made.options.watcher.page_size = Some(7);
    json["made"] = serde_json::to_value(made).unwrap();
    fs::write(&path, line(&json.to_string()) + rest).unwrap();
    assert_eq!(run(&[], &path).0, 1);
    let (status, out, _) = run(&["--diff"], &path);
    assert_eq!(status, 1);
    let lines: Vec<_> = out.lines().collect();
    assert_eq!(lines[1], "#1 1.000000000s connection 1 stands");
    assert!(lines[2].starts_with("  - write 1: GET /api/v1/configmaps?limit=500 ("), "{out}");
    assert!(lines[3].starts_with("  + write 1: GET /api/v1/configmaps?limit=7 ("), "{out}");
    assert_eq!(
        lines.last(),
        Some(&"3 steps replayed, 1 differ from what was recorded, the first is 1"),
        "{out}"
    );
}

#[test]
fn a_controller_with_functions_is_replayed_by_whoever_has_them() {
    let place = Place::new("controller");
    let directory = Directory::new(&place.0).unwrap();
    let config = || controller::Config::<Object>::new("mine", CONFIGMAPS).filter(|_| true);
    let mut machine = Recorded::controller(Controller::new(config(), 1), 1, Some(&directory));
    machine.handle(Time::ZERO, controller::Input::Start, &mut Outputs::new());
    directory.flush().unwrap();
    let path = directory.path().join("controller-mine");
    let (status, out, errors) = run(&[], &path);
    assert!(status == 0 && errors.contains("has predicates"), "{out}{errors}");
    assert!(errors.contains("steersman_record::program::run"), "{errors}");
    assert!(
        !out.contains("each as it was") && out.ends_with("nothing was replayed: 1 steps were only read\n"),
        "{out}"
    );
    assert_eq!(run(&["--diff"], &path).0, 2);
    let args = ["--diff".to_owned(), path.display().to_string()];
    let (mut out, mut errors) = (Vec::new(), Vec::new());
    let mine = |name: &str| (name == "mine").then(config);
    assert_eq!(program::run(args, mine, &mut out, &mut errors), 0);
    assert!(String::from_utf8(out).unwrap().ends_with("1 steps replayed, each as it was recorded\n"));
}

#[test]
fn bad_files_are_told_in_one_line() {
    let place = Place::new("bad");
    let directory = Directory::new(&place.0).unwrap();
    let path = directory.path().join("manager.000000.rec");
    record_a_manager(&directory, 10);
    let whole = fs::read(&path).unwrap();
    fs::write(&path, &whole[..whole.len() - 7]).unwrap();
    let (status, out, _) = run(&["--diff"], &path);
    assert!(status == 0 && out.contains("torn off") && out.contains("9 steps replayed, each"), "{out}");
    let mut damaged = whole.clone();
    let at = damaged.len() - 100;
    damaged[at] ^= 1;
    for (bytes, why) in [
        (&damaged[..], "record 9 is damaged"),
        (b"hello, this is no recording at all\n", "not a recording: no length and checksum"),
        (b"", "not a recording: it is empty"),
    ] {
        fs::write(&path, bytes).unwrap();
        let (status, _, errors) = run(&[], &path);
        assert!(status == 2 && errors.contains(why) && errors.lines().count() == 1, "{errors}");
        assert!(errors.contains("manager.000000.rec"), "{errors}");
    }
    let (status, _, errors) = run(&[], &place.0.join("nothing"));
    assert!(status == 2 && errors.contains("No such file"), "{errors}");
    for (args, why) in [(&["--until", "x"][..], "not the number"), (&["--what"], "unknown argument --what")] {
        let (status, _, errors) = run(args, &path);
        assert!(status == 2 && errors.contains(why), "{errors}");
    }
}

#[test]
fn a_directory_of_runs_is_listed_and_one_without_is_an_error() {
    let place = Place::new("list");
    let directory = Directory::new(&place.0).unwrap();
    let (status, out, errors) = run(&[], &place.0);
    assert!(status == 2 && out.is_empty() && errors.contains("no recordings"), "{out}{errors}");
    let path = record_a_manager(&directory, 10);
    let (status, out, errors) = run(&[], &place.0);
    assert!(status == 0 && out.starts_with(&format!("{}: manager, ", path.display())), "{out}{errors}");
    assert_eq!(out.lines().count(), 1);
}

/// What each kind of machine knows at a step is shown, and all of it is replayed.
#[test]
fn the_state_of_each_kind_is_shown() {
    let place = Place::new("state");
    let directory = Directory::new(&place.0).unwrap();
    for (path, step, want) in common::one_of_each(&directory)
        .iter()
        .zip([6, 2, 1, 4])
        .zip([
            &["prod/b@6 uid u-b", "objects: 2", "phase: "][..],
            &["prod/b@6 uid u-b", "view of source 0: 2", "queued: "],
            &["call 0: Call", "state: Connecting"],
            &["Manager {", "until: Some("],
        ])
        .map(|((path, step), want)| (path, step, want))
    {
        let (status, out, errors) = run(&["--diff"], path);
        assert!(status == 0 && out.contains("each as it was recorded"), "{out}{errors}");
        let (_, out, errors) = run(&["--step", &step.to_string()], path);
        for want in want {
            assert!(out.contains(want), "{want}: {out}{errors}");
        }
    }
}
