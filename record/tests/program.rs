//! Recordings in files, and the program that replays them.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use steersman_core::api::{ResourceType, Scope};
use steersman_core::auth::Authenticator;
use steersman_core::client::Endpoint;
use steersman_core::config::{Cluster, Config};
use steersman_core::controller::{self, Controller, WatchSpec};
use steersman_core::machine::{Machine, Outputs};
use steersman_core::manager::{self, Manager};
use steersman_core::net::{ConnId, NetEvent};
use steersman_core::object::Object;
use steersman_core::record::file::{Bound, Keep};
use steersman_core::record::{Recorded, SourceMade};
use steersman_core::source::{Input, Options, Source};
use steersman_core::time::Time;
use steersman_record::{Directory, program};

const CONFIGMAPS: ResourceType = ResourceType::new("", "v1", "configmaps", "ConfigMap", Scope::Namespaced);

/// A directory that is gone when it is dropped.
struct Place(PathBuf);

impl Place {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("steersman-record-{}-{name}", std::process::id()));
        drop(fs::remove_dir_all(&path));
        Self(path)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        drop(fs::remove_dir_all(&self.0));
    }
}

fn record_a_manager(directory: &Directory, steps: u64) -> PathBuf {
    let mut machine =
        Recorded::manager(Manager::with_counts(1, 1, manager::Config::default()), Some(directory));
    let mut out = Outputs::new();
    machine.handle(Time::ZERO, manager::Input::Start, &mut out);
    for n in 2..steps {
        machine.handle(Time::from_millis(n), manager::Input::Deadline, &mut out);
    }
    machine.handle(Time::from_secs(9), manager::Input::Stop, &mut out);
    directory.flush();
    directory.path().join("manager")
}

fn record_a_source(directory: &Directory) -> PathBuf {
    let config = Config::new(Cluster::parse("https://kube").unwrap());
    let endpoint = Arc::new(Endpoint::new(&config));
    let spec = WatchSpec::all(CONFIGMAPS);
    let mut options = Options::default();
    options.watcher.streaming = false;
    let source = Source::new(&spec, options, endpoint, Authenticator::none(), 5);
    let mut source = Recorded::source(source, 5, &format!("source 0 {spec}"), Some(directory));
    let mut out = Outputs::new();
    source.handle(Time::ZERO, Input::Start, &mut out);
    for (n, event) in [NetEvent::Connected { reused: false }, NetEvent::Eof].into_iter().enumerate() {
        source.handle(Time::from_secs(n as u64 + 1), Input::Net { conn: ConnId(1), event }, &mut out);
    }
    directory.flush();
    directory.path().join("source-0-configmaps.v1.000000.rec")
}

/// Exit status, output, errors.
fn run(args: &[&str], path: &Path) -> (u8, String, String) {
    let args = args.iter().map(ToString::to_string).chain([path.display().to_string()]);
    let (mut out, mut errors) = (Vec::new(), Vec::new());
    let status = program::run(args, |_| None, &mut out, &mut errors);
    (status, String::from_utf8(out).unwrap(), String::from_utf8(errors).unwrap())
}

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
    let json = json.to_string();
    let other = format!("{:08x} {:08x} {json}\n{rest}", json.len(), crc32(json.as_bytes()));
    fs::write(&path, other).unwrap();
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

fn crc32(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(!0, |crc, byte| {
        (0..8).fold(
            crc ^ u32::from(*byte),
            |crc, _| if crc & 1 == 1 { crc >> 1 ^ 0xEDB8_8320 } else { crc >> 1 },
        )
    })
}

#[test]
fn a_controller_with_functions_is_replayed_by_whoever_has_them() {
    let place = Place::new("controller");
    let directory = Directory::new(&place.0).unwrap();
    let config = || controller::Config::<Object>::new("mine", CONFIGMAPS).filter(|_| true);
    let mut machine = Recorded::controller(Controller::new(config(), 1), 1, Some(&directory));
    machine.handle(Time::ZERO, controller::Input::Start, &mut Outputs::new());
    directory.flush();
    let path = directory.path().join("controller-mine");
    let (status, out, errors) = run(&[], &path);
    assert!(
        status == 0 && errors.contains("has predicates") && out.contains("1 not replayed"),
        "{out}{errors}"
    );
    assert_eq!(run(&["--diff"], &path).0, 2);
    let args = ["--diff".to_owned(), path.display().to_string()];
    let (mut out, mut errors) = (Vec::new(), Vec::new());
    let mine = |name: &str| (name == "mine").then(config);
    assert_eq!(program::run(args, mine, &mut out, &mut errors), 0);
    assert!(String::from_utf8(out).unwrap().ends_with("1 steps replayed, each as it was recorded\n"));
}

#[test]
fn files_stay_within_the_bound() {
    let place = Place::new("bound");
    let bound = Bound { segment: 1000, segments: 2, keep: Keep::Latest };
    let directory = Directory::new(&place.0).unwrap().bound(bound);
    let path = record_a_manager(&directory, 100);
    let sizes: Vec<_> =
        fs::read_dir(directory.path()).unwrap().map(|e| e.unwrap().metadata().unwrap().len()).collect();
    assert!(sizes.len() == 2 && sizes.iter().all(|n| *n < 1200), "{sizes:?}");
    let (status, out, errors) = run(&[], &path);
    assert_eq!(status, 0);
    assert!(
        errors.contains("its beginning is gone") && errors.contains("this is what was recorded"),
        "{errors}"
    );
    assert!(out.contains("those before are gone") && out.contains("#99 9.000000000s Stop"), "{out}");
    let (status, _, errors) = run(&["--diff"], &path);
    assert!(status == 2 && errors.contains("its beginning is gone"), "{errors}");
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
fn old_runs_are_forgotten_but_nothing_else() {
    let place = Place::new("runs");
    for n in 0..8 {
        let run = place.0.join(format!("run-000000000000{n}-1"));
        fs::create_dir_all(&run).unwrap();
        fs::write(run.join("manager.000000.rec"), "").unwrap();
    }
    fs::write(place.0.join("run-0000000000001-1/notes"), "").unwrap();
    let directory = Directory::new(&place.0).unwrap();
    let mut left: Vec<_> = fs::read_dir(&place.0).unwrap().map(|e| e.unwrap().file_name()).collect();
    left.sort();
    // The one with notes, the last four, and the present one.
    assert_eq!(left.len(), 6, "{left:?}");
    assert!(directory.path().exists() && left.iter().any(|n| n == "run-0000000000001-1"));
}

#[test]
fn the_last_clone_waits_until_all_is_written() {
    let place = Place::new("drop");
    let directory = Directory::new(&place.0).unwrap();
    let path = directory.path().to_owned();
    let mut machine =
        Recorded::manager(Manager::with_counts(1, 1, manager::Config::default()), Some(&directory));
    drop(directory);
    for n in 0..500 {
        machine.handle(Time::from_millis(n), manager::Input::Deadline, &mut Outputs::new());
    }
    drop(machine);
    assert_eq!(steersman_record::read(&path.join("manager")).unwrap().records.len(), 500);
}
