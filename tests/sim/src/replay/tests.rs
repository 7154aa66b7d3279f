//! A run that is written down is the run that is read.

use std::collections::BTreeMap;
use std::process::Command;
use std::time::Duration;

use super::*;
use crate::faults::{Ill, What};
use crate::{Shape, draw::draw};

/// What a shell makes of `NAME=value NAME=value`.
fn through_a_shell(variables: &str) -> Replay {
    let mut shell = Command::new("sh");
    shell.arg("-c").arg(format!("{variables} env"));
    for name in ["SEED", "FAULTS", "REPLICAS", "FOLLOWERS", "ADVERSARY"] {
        shell.env_remove(format!("STEERSMAN_SIM_{name}"));
    }
    let output = shell.output().expect("a shell");
    let text = String::from_utf8(output.stdout).expect("text");
    let set: BTreeMap<&str, &str> = text.lines().filter_map(|line| line.split_once('=')).collect();
    Replay::read(&|name| set.get(name).map(|value| (*value).to_owned())).expect("it can be read")
}

#[test]
fn what_is_printed_is_what_is_read() {
    let shape = Shape { replicas: 3, servers: 3, window: Duration::from_secs(60), most: 12 };
    for seed in 0..200 {
        let faults = draw(seed, &shape);
        let replay = Replay { seed: Some(seed), faults: Some(faults), ..Replay::default() };
        let json = serde_json::to_string(&replay.faults).expect("JSON");
        let var = |name: &str| match name {
            "STEERSMAN_SIM_SEED" => Some(seed.to_string()),
            "STEERSMAN_SIM_FAULTS" => Some(json.clone()),
            _ => None,
        };
        assert_eq!(Replay::read(&var).expect("it can be read"), replay);
        if seed % 20 == 0 {
            assert_eq!(through_a_shell(&replay.variables()), replay);
        }
    }
}

#[test]
fn odd_words_survive_a_shell() {
    let verb = Some("it's \"a\" $verb `x` \\ *".to_owned());
    let what = What::Answer { ill: Ill::TooMany(3), verb, replica: Some(1), skip: 2, times: 3 };
    let replay = Replay {
        seed: Some(u64::MAX),
        faults: Some(vec![Fault::at(Duration::new(1, 1), what)]),
        replicas: Some(2),
        followers: Some(0),
        adversary: Some("a_to_b".into()),
    };
    assert_eq!(through_a_shell(&replay.variables()), replay);
    assert_eq!(through_a_shell(&Replay::default().variables()), Replay::default());
}

#[test]
fn what_cannot_be_read_is_named() {
    let bad = |bad: &'static str| {
        Replay::read(&|name| (name == bad).then(|| "seven".to_owned())).expect_err("it is no number")
    };
    for name in ["STEERSMAN_SIM_SEED", "STEERSMAN_SIM_FAULTS", "STEERSMAN_SIM_REPLICAS"] {
        assert!(bad(name).starts_with(&format!("{name}=\"seven\": ")), "{}", bad(name));
    }
}

#[test]
fn commands_say_which_test() {
    let here = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    let program = |exe: &str, thread: &str| Program {
        exe: exe.into(),
        args: vec!["1000".into()],
        folder: Some(here.clone()),
        package: Some("steersman-sim".into()),
        thread: Some(thread.into()),
    };
    for (exe, thread, command) in [
        (
            "/t/debug/deps/mirror-0a",
            "it",
            "cargo test -p steersman-sim --test mirror -- --exact it --nocapture",
        ),
        (
            "/t/release/deps/steersman_sim-0a",
            "a::it",
            "cargo test --release -p steersman-sim --lib -- --exact a::it --nocapture",
        ),
        (
            "/t/fast/deps/read_your_writes-0a",
            "it",
            "cargo test --profile fast -p steersman-sim --test read_your_writes -- --exact it --nocapture",
        ),
        ("/t/debug/examples/mirror", "main", "cargo run -p steersman-sim --example mirror -- 1000"),
        ("/tmp/rustdoctest1/rust_out", "main", "cargo test -p steersman-sim --doc"),
    ] {
        assert_eq!(program(exe, thread).command(), command);
    }
    let alone = Program { package: None, ..program("/t/my program", "main") };
    assert_eq!(alone.command(), "'/t/my program' 1000");
    assert_eq!(program("/t/debug/deps/mirror-0a", "it").folder(), Path::new("/t/steersman-sim"));
    assert_eq!(program("/t/x", "a::b c").name(), "a__b_c");
    assert_eq!(program("/t/debug/examples/mirror", "main").name(), "mirror");
}
