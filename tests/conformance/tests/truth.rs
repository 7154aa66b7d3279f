//! Plays the recorded steps on the server that `STEERSMAN_SERVER` names, and compares.
//!
//! On the real server (`cargo run -p steersman-tests --bin real-apiserver -- cargo test -p steersman-tests`) this checks the
//! record; on the embedded one it checks that server. `STEERSMAN_BLESS=1` with the real server writes the record anew.

use std::fs;
use std::path::Path;

use steersman_tests::servers::Servers;
use steersman_tests::truth::{Script, bless};

fn play(name: &str) {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("truth").join(name);
    let script = Script::parse(&fs::read_to_string(&file).unwrap()).unwrap_or_else(|e| panic!("{name}: {e}"));
    let which = Servers::from_env();
    let mut server = which.start();
    let played = script.play(&mut server).unwrap_or_else(|e| panic!("{name}: {e}"));
    if std::env::var_os("STEERSMAN_BLESS").is_some() {
        assert_eq!(which, Servers::Real, "the record is what the real server says");
        fs::write(&file, bless(&played)).unwrap();
        return;
    }
    let mut wrong = String::new();
    for p in &played {
        match (&p.step.differs, which) {
            (Some(reason), Servers::Embedded) if p.agrees() => {
                wrong += &format!("line {}: no longer differs ({reason}); remove the word\n", p.step.line);
            }
            (Some(_), Servers::Embedded) => {}
            _ if p.agrees() => {}
            _ => wrong += &p.difference(),
        }
    }
    assert!(wrong.is_empty(), "{name} on {which:?}: - is the record, + is what came\n{wrong}");
}

macro_rules! scripts {
    ($($name:ident)*) => {
        $(#[test] fn $name() { play(concat!(stringify!($name), ".txt")); })*

        const SCRIPTS: &[&str] = &[$(concat!(stringify!($name), ".txt")),*];
    };
}

scripts! { access compaction custom deletes kinds lists metadata patches watches writes }

#[test]
fn every_file_is_played_and_there_are_enough_steps() {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("truth");
    let mut files: Vec<String> =
        fs::read_dir(&dir).unwrap().map(|f| f.unwrap().file_name().into_string().unwrap()).collect();
    files.sort();
    assert_eq!(files, SCRIPTS);
    let steps = files
        .iter()
        .map(|f| Script::parse(&fs::read_to_string(dir.join(f)).unwrap()).unwrap().requests())
        .sum::<usize>();
    assert!(steps >= 80, "{steps}");
}
