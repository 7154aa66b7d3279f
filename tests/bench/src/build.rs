//! What the build of a controller costs: the mirror controller on threads beside the same with kube-rs, each clean.
//!
//! A clean build is one in a folder where nothing was built, of dependencies that are downloaded. Its CPU time is that of all
//! processes that it starts, as the shell counts it (`times`).

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use serde_json::{Value, json};

use crate::args::Args;
use crate::comparison::{Figure, Group};
use crate::contest::{self, Contestant, Kind};
use crate::contests::figure;
use crate::program;

/// A program: who it is, the folder of its package below this one, its name.
const PROGRAMS: [(&str, Kind, &str, &str); 2] = [
    ("threads", Kind::Ours, "mirror", "mirror"),
    ("kube-rs", Kind::Peer, "peers/kube-rs-mirror", "kube-rs-mirror"),
];

/// Builds both in turns and prints the table.
///
/// # Errors
/// If one cannot be built.
pub(crate) fn run(args: &Args) -> Result<(), String> {
    let me = env::current_exe().map_err(|e| e.to_string())?;
    // The program stands in `target/PROFILE`.
    let target = me.ancestors().nth(2).unwrap_or_else(|| Path::new(".")).join("clean");
    let mut runs = PROGRAMS.map(|_| Vec::new());
    for run in 0..args.runs {
        for ((name, _, folder, program), runs) in PROGRAMS.iter().zip(&mut runs) {
            let folder = program::folder().join(folder);
            let built = clean(&folder, program, &target);
            let _ = fs::remove_dir_all(&target);
            let figures = built.map_err(|e| format!("{name}: {e}"))?;
            eprintln!("run {}: {name}: {figures}", run + 1);
            runs.push(figures);
        }
    }
    let contestants: Vec<_> = PROGRAMS
        .iter()
        .zip(runs)
        .map(|((name, kind, ..), runs)| Contestant::of_runs(name, *kind, runs))
        .collect();
    let group = Group::new("a clean build of the mirror controller".to_owned(), &contestants, &figures());
    println!("Medians of {}, in turns. Ratios below 1 are better.\n\n{}", args.runs, group.table());
    args.json.as_ref().map_or(Ok(()), |path| {
        let all: serde_json::Map<_, _> =
            contestants.into_iter().map(|c| (c.name, Value::Array(c.runs))).collect();
        let figures = json!({ "build": { "contestants": all }, "figures": group.json() });
        contest::write(path, &(figures.to_string() + "\n"))
    })
}

fn figures() -> Vec<Figure> {
    vec![
        figure("CPU s", 0, "cpu", 1.0),
        figure("wall s", 0, "wall", 1.0),
        figure("packages", 0, "packages", 1.0),
        figure("stripped MB", 2, "stripped", 1e-6),
        figure("dist: CPU s", 0, "dist_cpu", 1.0),
        figure("dist: stripped MB", 2, "dist_stripped", 1e-6),
    ]
}

/// Builds a package in an empty folder, with the profiles `release` and `dist`.
fn clean(folder: &Path, program: &str, target: &Path) -> Result<Value, String> {
    let mut fetch = program::cargo();
    fetch.current_dir(folder).args(["fetch", "--locked"]);
    if !fetch.status().is_ok_and(|fetched| fetched.success()) {
        return Err("cargo cannot fetch what it depends on".to_owned());
    }
    let (cpu, wall, release) = build(folder, program, target, "release")?;
    let (dist_cpu, _, dist) = build(folder, program, target, "dist")?;
    let me = |package: &str| package.split(' ').next() == Some(package_of(program));
    Ok(json!({
        "cpu": cpu,
        "wall": wall,
        "packages": program::packages(folder, &[], |package| !me(package)),
        "stripped": program::stripped(&release),
        "dist_cpu": dist_cpu,
        "dist_stripped": program::stripped(&dist),
    }))
}

/// The package that a program is all of.
fn package_of(program: &str) -> &str {
    if program == "mirror" { "steersman-bench-mirror" } else { program }
}

/// CPU and wall seconds, and the program.
fn build(folder: &Path, program: &str, target: &Path, profile: &str) -> Result<(f64, f64, PathBuf), String> {
    let target = target.join(profile);
    let _ = fs::remove_dir_all(&target);
    let mut cargo = Command::new("sh");
    program::without_ours(&mut cargo);
    cargo.current_dir(folder).args(["-c", r#""$@" && times"#, "sh", "cargo", "build", "--locked", "-q"]);
    cargo.args(["--profile", profile, "--bin", program, "--target-dir"]).arg(&target);
    let began = Instant::now();
    let output = cargo.stderr(Stdio::inherit()).output().map_err(|e| format!("sh: {e}"))?;
    let wall = began.elapsed().as_secs_f64();
    if !output.status.success() {
        return Err(format!("{} cannot be built: {}", folder.display(), output.status));
    }
    let cpu = cpu(&String::from_utf8_lossy(&output.stdout)).ok_or("the shell tells no times")?;
    Ok((cpu, wall, target.join(profile).join(program)))
}

/// Seconds of the children in what `times` prints: a line of the shell's own user and system time, and one of the children's.
fn cpu(times: &str) -> Option<f64> {
    let seconds = |time: &str| {
        let (minutes, seconds) = time.strip_suffix('s')?.split_once('m')?;
        Some(60.0 * minutes.parse::<f64>().ok()? + seconds.parse::<f64>().ok()?)
    };
    times.lines().nth(1)?.split_whitespace().map(seconds).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_times_of_the_children_count() {
        assert_eq!(cpu("0m0.01s 0m0.02s\n2m3.500000s 0m1.25s\n"), Some(124.75));
        assert_eq!(cpu("0m0.01s 0m0.02s\n"), None);
        assert_eq!(cpu("a\nb c\n"), None);
    }

    #[test]
    fn the_programs_are_there() {
        for (name, _, folder, program) in PROGRAMS {
            let manifest = fs::read_to_string(program::folder().join(folder).join("Cargo.toml")).unwrap();
            assert!(manifest.contains(&format!("name = \"{}\"", package_of(program))), "{name}");
        }
    }

    /// The least that a controller on threads is made of.
    #[test]
    fn the_mirror_has_few_packages() {
        let all = program::packages(&program::folder().join("mirror"), &[], |_| true).unwrap();
        assert!((10..=62).contains(&all), "{all}");
    }
}
