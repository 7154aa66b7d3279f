//! `steersman-steps` lists the steps, `run` takes one, `check` counts the instructions of each and holds them against the
//! recorded ceilings. See the README beside it.

mod callgrind;
mod ceilings;

use std::collections::BTreeMap;
use std::process::{Command, ExitCode};
use std::{env, fs, mem};

use steersman_steps::{STEPS, Step, find};

use crate::callgrind::Callgrind;
use crate::ceilings::Ceilings;

const CEILINGS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/ceilings.txt");
const USAGE: &str = "steersman-steps                  the steps
steersman-steps run NAME TIMES   takes one so many times
steersman-steps check [--write]  counts the instructions of each and holds them against (or writes) the ceilings";

fn main() -> ExitCode {
    let words: Vec<_> = env::args().skip(1).collect();
    let words: Vec<_> = words.iter().map(String::as_str).collect();
    let done = match *words {
        [] => {
            list();
            Ok(())
        }
        ["run", name, times] => run(name, times),
        ["check"] => check(false),
        ["check", "--write"] => check(true),
        ["help" | "--help" | "-h"] => {
            println!("{USAGE}");
            Ok(())
        }
        _ => Err(format!("that makes no sense; there are\n{USAGE}")),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn list() {
    for Step { name, what, size, counted, .. } in STEPS {
        println!("{name:20}{size:>9}  {}  {what}", if counted.is_some() { "counted" } else { "timed  " });
    }
}

fn run(name: &str, times: &str) -> Result<(), String> {
    let step = find(name).ok_or_else(|| format!("no step is called {name:?}"))?;
    let times: u32 = times.parse().map_err(|_| format!("{times:?} is no number of times"))?;
    let mut prepared = step.prepare();
    (0..times).for_each(|_| prepared.turn());
    // To take it apart would only take time.
    mem::forget(prepared);
    Ok(())
}

fn check(write: bool) -> Result<(), String> {
    if cfg!(debug_assertions) {
        return Err(
            "this program was built without optimisation: cargo run --release -p steersman-steps -- check"
                .to_owned(),
        );
    }
    let recorded = match fs::read_to_string(CEILINGS) {
        Ok(text) => Ceilings::parse(&text).map_err(|e| format!("{CEILINGS}: {e}")),
        Err(e) => Err(format!("{CEILINGS}: {e}")),
    };
    // What is written anew need not have been right.
    let recorded = if write { recorded.unwrap_or_default() } else { recorded? };
    let callgrind = Callgrind::new()?;
    let mut counted = Vec::new();
    for step in STEPS {
        if let Some(times) = step.counted {
            counted.push((step.name, callgrind.count(step, times)?));
        }
    }
    let with = with(&callgrind);
    let (table, wrong) = recorded.judge(&counted, &with);
    print!("{table}");
    if write {
        let steps = counted.into_iter().map(|(name, count)| (name.to_owned(), count)).collect();
        fs::write(CEILINGS, Ceilings { with, steps }.text()).map_err(|e| format!("{CEILINGS}: {e}"))?;
        println!("written: {CEILINGS}");
        return Ok(());
    }
    if wrong.is_empty() { Ok(()) } else { Err(wrong.join("\n")) }
}

/// What is part of every number beside our own code.
fn with(callgrind: &Callgrind) -> BTreeMap<String, String> {
    let libc = Command::new("getconf").arg("GNU_LIBC_VERSION").output().ok();
    let libc = libc.and_then(|output| String::from_utf8(output.stdout).ok()).unwrap_or_default();
    [
        ("rustc", env!("STEPS_RUSTC")),
        ("valgrind", &callgrind.version),
        // Memory is copied and searched with what the processor has.
        ("libc", libc.trim()),
        ("processor", processor()),
    ]
    .map(|(name, value)| (name.to_owned(), if value.is_empty() { "unknown" } else { value }.to_owned()))
    .into()
}

#[cfg(target_arch = "x86_64")]
fn processor() -> &'static str {
    if std::arch::is_x86_feature_detected!("avx2") { "x86_64 with AVX2" } else { "x86_64 without AVX2" }
}

#[cfg(not(target_arch = "x86_64"))]
const fn processor() -> &'static str {
    env::consts::ARCH
}
