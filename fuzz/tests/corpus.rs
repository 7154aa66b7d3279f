//! Replays the committed corpus of every target, and every beginning of each of its files.

use std::fs;
use std::path::Path;

/// Runs `target` on the files of its corpus; tells how many there were.
fn replay(name: &str, target: fn(&[u8])) -> usize {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus").join(name);
    let mut files = 0;
    for file in fs::read_dir(&dir).unwrap_or_else(|e| panic!("{}: {e}", dir.display())) {
        let path = file.unwrap().path();
        let data = fs::read(&path).unwrap();
        // A failure names the file through the captured output.
        println!("{}", path.display());
        target(&data);
        // Long files are cut at fewer places, so that the whole stays quick.
        for end in (0..data.len()).step_by(data.len() / 256 + 1) {
            target(&data[..end]);
        }
        files += 1;
    }
    files
}

macro_rules! targets {
    ($($name:ident)*) => {
        $(#[test] fn $name() {
            assert!(replay(stringify!($name), steersman_fuzz::$name::run) > 0, "an empty corpus");
        })*

        const TARGETS: &[&str] = &[$(stringify!($name)),*];
    };
}

targets! { canary framing gzip list_split object queue store watcher wire }

#[test]
fn every_corpus_and_every_binary_has_its_target() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let names = |dir: &str| {
        let mut names: Vec<String> = fs::read_dir(root.join(dir))
            .unwrap()
            .map(|f| f.unwrap().path().file_stem().unwrap().to_string_lossy().into_owned())
            .collect();
        names.sort();
        names
    };
    assert_eq!(names("corpus"), TARGETS);
    assert_eq!(names("fuzz_targets"), TARGETS);
}

#[test]
fn the_canary_can_fail() {
    assert!(std::panic::catch_unwind(|| steersman_fuzz::canary::run(b"ship ahoy")).is_err());
}
