//! What a directory of recordings holds, and for how long.

mod common;

use std::fs;
use std::path::{Path, PathBuf};

use common::{Place, record_a_manager, run};
use steersman_core::machine::{Machine, Outputs};
use steersman_core::manager::{self, Manager};
use steersman_core::record::Recorded;
use steersman_core::record::file::{Bound, End, Keep};
use steersman_core::time::Time;
use steersman_record::{Directory, read};

fn segments(run: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(run).unwrap().map(|entry| entry.unwrap().path());
    entries.filter(|path| path.extension().is_some_and(|end| end == "rec")).collect()
}

fn manager(directory: &Directory) -> Recorded<Manager> {
    Recorded::manager(Manager::with_counts(1, 1, manager::Config::default()), Some(directory))
}

#[test]
fn files_stay_within_the_bound() {
    let place = Place::new("bound");
    let bound = Bound { segment: 1000, segments: 2, keep: Keep::Latest };
    let directory = Directory::new(&place.0).unwrap().bound(bound);
    let path = record_a_manager(&directory, 100);
    let sizes: Vec<_> =
        segments(directory.path()).iter().map(|path| fs::metadata(path).unwrap().len()).collect();
    assert!(sizes.len() == 2 && sizes.iter().all(|n| *n <= 1000), "{sizes:?}");
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

#[cfg(unix)]
#[test]
fn files_are_for_their_owner_alone() {
    use std::os::unix::fs::PermissionsExt as _;
    let place = Place::new("private");
    let directory = Directory::new(&place.0).unwrap();
    record_a_manager(&directory, 10);
    let file = directory.path().join("manager.000000.rec");
    assert_eq!(fs::metadata(file).unwrap().permissions().mode() & 0o777, 0o600);
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
    assert_eq!(read(&path.join("manager")).unwrap().records.len(), 500);
}

#[cfg(unix)]
#[test]
fn a_file_that_is_there_already_is_refused() {
    let place = Place::new("refused");
    let directory = Directory::new(&place.0).unwrap();
    let file = directory.path().join("manager.000000.rec");
    fs::write(&file, "mine").unwrap();
    let mut machine = manager(&directory);
    machine.handle(Time::ZERO, manager::Input::Start, &mut Outputs::new());
    directory.flush().unwrap();
    assert_eq!(fs::read_to_string(&file).unwrap(), "mine");
}

#[test]
fn runs_of_living_processes_are_not_forgotten() {
    let place = Place::new("living");
    // All at once, which gives some of them the same name but for a number.
    let living: Vec<_> = (0..8).map(|_| Directory::new(&place.0).unwrap()).collect();
    let paths: Vec<_> = living.iter().map(|directory| directory.path().to_owned()).collect();
    assert!(paths.iter().all(|path| path.exists()), "{paths:?}");
    for directory in &living {
        record_a_manager(directory, 5);
    }
    assert!(paths.iter().all(|path| read(&path.join("manager")).is_ok()));
    drop(living);
    let last = Directory::new(&place.0).unwrap();
    let left = fs::read_dir(&place.0).unwrap().count();
    assert!(left == 5 && last.path().exists(), "{left}");
}

/// Whether this process holds any file of this directory open, but the lock.
#[cfg(target_os = "linux")]
fn holds(run: &Path) -> bool {
    let files =
        fs::read_dir("/proc/self/fd").unwrap().filter_map(|fd| fs::read_link(fd.unwrap().path()).ok());
    files.into_iter().any(|file| file.starts_with(run) && file != run.join("lock"))
}

#[cfg(target_os = "linux")]
#[test]
fn a_file_is_closed_when_its_machine_is_gone_or_its_recording_over() {
    let place = Place::new("closed");
    let bound = Bound { segment: 1000, segments: 1, keep: Keep::Beginning };
    let directory = Directory::new(&place.0).unwrap().bound(bound);
    let mut out = Outputs::new();
    let mut machine = manager(&directory);
    machine.handle(Time::ZERO, manager::Input::Start, &mut out);
    directory.flush().unwrap();
    assert!(holds(directory.path()));
    drop(machine);
    directory.flush().unwrap();
    assert!(!holds(directory.path()));
    let mut machine = manager(&directory);
    for n in 0..100 {
        machine.handle(Time::from_millis(n), manager::Input::Deadline, &mut out);
    }
    directory.flush().unwrap();
    assert!(!holds(directory.path()));
    let second = read(&directory.path().join("manager~2")).unwrap();
    assert!(
        matches!(&second.end, End::Ended(why) if why.contains("the bound of 1 segments")),
        "{:?}",
        second.end
    );
}

#[test]
fn a_segment_that_is_gone_already_ends_no_recording() {
    let place = Place::new("gone");
    let bound = Bound { segment: 1000, segments: 2, keep: Keep::Latest };
    let directory = Directory::new(&place.0).unwrap().bound(bound);
    let (mut machine, mut out) = (manager(&directory), Outputs::new());
    for n in 0..100 {
        if n == 50 {
            directory.flush().unwrap();
            let mut all = segments(directory.path());
            all.sort();
            fs::remove_file(&all[0]).unwrap();
        }
        machine.handle(Time::from_millis(n), manager::Input::Deadline, &mut out);
    }
    directory.flush().unwrap();
    let recording = read(&directory.path().join("manager")).unwrap();
    assert_eq!((recording.numbered().last().unwrap().0, recording.end), (99, End::Whole));
}
