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
fn what_would_be_ignored_is_an_error() {
    let read = |set: &[(&str, &str)]| {
        let value = |name: &str| set.iter().find(|(n, _)| *n == name).map(|(_, value)| (*value).to_owned());
        Replay::read(&value).expect_err("it cannot be granted")
    };
    assert_eq!(
        read(&[(ADVERSARY, "nobody"), (FAULTS, "[]")]),
        "STEERSMAN_SIM_ADVERSARY=\"nobody\": there is no such adversary; there are crash_at_every_write, \
         stale_read_at_every_restart, hide_every_event, conflict_at_every_update, repeat_every_write, \
         fail_every_write, a_to_b, run_to_same_end"
    );
    assert_eq!(
        read(&[(REPLICAS, "0"), (FAULTS, "[]")]),
        "STEERSMAN_SIM_REPLICAS=0: without a replica nothing runs"
    );
    for (name, value) in [(REPLICAS, "1"), (FOLLOWERS, "0"), (ADVERSARY, "a_to_b")] {
        let expected = format!("{name}={value}: it says nothing without STEERSMAN_SIM_FAULTS");
        assert_eq!(read(&[(name, value), (SEED, "3")]), expected);
    }
}

#[test]
fn there_must_be_as_many_as_are_wanted() {
    let sim = Sim::new().replicas(2, |m| m).follower(Duration::ZERO..Duration::ZERO);
    let part = |replicas, followers| {
        let part = Replay { replicas, followers, ..Replay::default() }.part_of(&sim)?;
        Ok::<_, String>((part.programs.len(), part.followers.len()))
    };
    assert_eq!(part(None, None), Ok((2, 1)));
    assert_eq!(part(Some(1), Some(0)), Ok((1, 0)));
    assert_eq!(part(Some(2), Some(1)), Ok((2, 1)));
    assert_eq!(part(Some(3), None), Err("STEERSMAN_SIM_REPLICAS=3: the simulation has 2 replicas".into()));
    assert_eq!(part(None, Some(2)), Err("STEERSMAN_SIM_FOLLOWERS=2: the simulation has 1 followers".into()));
}

#[test]
fn a_fault_of_nobody_is_an_error() {
    let sim = Sim::new().replicas(2, |m| m).follower(Duration::ZERO..Duration::ZERO);
    let lasts = Duration::from_secs(1);
    let refuse = |server| Fault::at(lasts, What::Refuse { server, lasts });
    let answer = What::Answer { ill: Ill::Error, verb: None, replica: Some(2), skip: 0, times: 1 };
    let wanted = |replicas, fault: &Fault| {
        let faults = Some(vec![refuse(0), fault.clone()]);
        Replay { replicas, faults, ..Replay::default() }.part_of(&sim).map(drop).unwrap_err()
    };
    for (fault, unknown) in [
        (Fault::crash(2, crate::Moment::Start(1), lasts), "replica 2"),
        (Fault::at(lasts, What::Trigger { replica: 7 }), "replica 7"),
        (Fault::at(lasts, answer), "replica 2"),
        (refuse(2), "server 2"),
    ] {
        let error = wanted(None, &fault);
        let begin = format!("STEERSMAN_SIM_FAULTS: there is no {unknown} ({fault}); ");
        assert!(error.starts_with(&begin) && error.ends_with("2 replicas and 2 servers, from 0"), "{error}");
    }
    let last = Fault::at(lasts, What::Trigger { replica: 1 });
    assert!(wanted(Some(1), &last).contains("there is no replica 1"));
    let faults = Some(vec![last, refuse(1)]);
    Replay { faults, ..Replay::default() }.part_of(&sim).map(drop).unwrap();
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
