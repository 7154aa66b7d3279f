//! What can be told of a program without running it, and how ours are built.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs, process};

use crate::args::Args;
use crate::contest::{Contestant, Kind};
use crate::peer::Peer;

/// The programs of the executors that were asked for, built as the harness `me` was and beside it.
///
/// # Errors
/// If they cannot be built, or were not and must not be.
pub(crate) fn ours(args: &Args, me: &Path) -> Result<Vec<PathBuf>, String> {
    let names: Vec<_> = args.executors.iter().map(|name| format!("{}-contestant", executor(name))).collect();
    built(args, me, "steersman-bench", &names)
}

/// Programs of a package of this workspace, built as the harness `me` was and beside it.
///
/// # Errors
/// If they cannot be built, or were not and must not be.
pub(crate) fn built(args: &Args, me: &Path, package: &str, names: &[String]) -> Result<Vec<PathBuf>, String> {
    let programs: Vec<_> = names.iter().map(|name| me.with_file_name(name)).collect();
    if !args.no_build && !programs.is_empty() {
        let mut cargo = cargo();
        cargo.args(["build", "--locked", "-p", package, "--manifest-path"]);
        cargo.arg(folder().join("Cargo.toml"));
        for name in names {
            cargo.args(["--bin", name]);
        }
        if me.parent().is_some_and(|p| p.ends_with("release")) {
            cargo.arg("--release");
        }
        cargo.arg("--target-dir").args(me.ancestors().nth(2));
        let built = cargo.status().map_err(|e| format!("cargo does not start: {e}"))?;
        if !built.success() {
            return Err(format!("{} cannot be built: {built}", names.join(" and ")));
        }
    }
    match programs.iter().find(|p| !p.is_file()) {
        Some(missing) => Err(format!("{} was not built", missing.display())),
        None => Ok(programs),
    }
}

/// The executor of a contestant of ours: one that keeps its objects packed is the same program.
fn executor(name: &str) -> &str {
    name.strip_suffix("-compact").unwrap_or(name)
}

/// Adds to the runs of contestants what is the same in each: bytes of the stripped program, and how many packages of others are in
/// it. (Not for the limit: its program is the harness.)
pub(crate) fn tell(contestants: &mut [Contestant]) {
    for contestant in contestants.iter_mut().filter(|c| c.kind != Kind::Limit) {
        let packages = match executor(&contestant.name) {
            "threads" => packages(folder(), &["steersman-threads"], |_| true),
            // And what its tasks run on.
            "smol" => packages(folder(), &["steersman-smol", "smol"], |_| true),
            name => Peer::of(name).ok().and_then(Peer::packages),
        };
        let stripped = stripped(&contestant.program);
        for run in &mut contestant.runs {
            run["packages"] = packages.into();
            run["stripped"] = stripped.into();
        }
    }
}

/// Cargo, without what `cargo run` has told this process of its own package: build scripts that look at it (that of ring does) would
/// take everything for changed, each time.
pub(crate) fn cargo() -> Command {
    let mut cargo = Command::new("cargo");
    without_ours(&mut cargo);
    cargo
}

/// The same for another command that starts cargo.
pub(crate) fn without_ours(command: &mut Command) {
    for (name, _) in env::vars_os() {
        if name.to_str().is_some_and(|n| n.starts_with("CARGO_PKG_") || n.starts_with("CARGO_MANIFEST_")) {
            command.env_remove(name);
        }
    }
}

/// The folder of this package.
pub(crate) fn folder() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Bytes of a program without symbols and debug information, if there is `strip`.
pub(crate) fn stripped(program: &Path) -> Option<u64> {
    let to = env::temp_dir().join(format!("steersman-bench-{}-stripped", process::id()));
    let done = Command::new("strip").arg("-o").arg(&to).arg(program).status();
    let size = done.ok().filter(process::ExitStatus::success).and_then(|_| fs::metadata(&to).ok());
    let _ = fs::remove_file(to);
    size.map(|size| size.len())
}

/// How many packages are linked into what depends on `of`, or on the package of this folder. Macros, which run in the compiler, are
/// none.
pub(crate) fn packages(folder: &Path, of: &[&str], counts: impl Fn(&str) -> bool) -> Option<usize> {
    let mut cargo = cargo();
    cargo.current_dir(folder).args(["tree", "--locked", "-e", "normal,no-proc-macro", "--prefix", "none"]);
    cargo.args(["--format", "{p}"]);
    for package in of {
        cargo.args(["-p", package]);
    }
    different_lines(&mut cargo, counts)
}

/// How many different lines a command prints.
pub(crate) fn different_lines(command: &mut Command, counts: impl Fn(&str) -> bool) -> Option<usize> {
    let output = command.output().ok().filter(|o| o.status.success())?;
    let text = String::from_utf8_lossy(&output.stdout);
    let lines: BTreeSet<_> = text.lines().map(|l| l.trim_end_matches(" (*)").trim()).collect();
    Some(lines.into_iter().filter(|l| !l.is_empty() && counts(l)).count())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_counts_once() {
        let mut echo = Command::new("printf");
        echo.arg("a v1\nb v1\n\na v1 (*)\nc v1\n");
        assert_eq!(different_lines(&mut echo, |l| !l.starts_with("c ")), Some(2));
        assert_eq!(different_lines(&mut Command::new("false"), |_| true), None);
    }

    #[test]
    fn cargo_is_not_told_of_this_package() {
        let cargo = cargo();
        let told = |name: &str| cargo.get_envs().all(|(n, value)| n != name || value.is_some());
        // (Tests run with these.)
        for name in ["CARGO_PKG_NAME", "CARGO_MANIFEST_DIR"] {
            assert!(env::var_os(name).is_none() || !told(name), "{name}");
        }
    }

    #[test]
    fn ours_have_few_packages() {
        let threads = packages(folder(), &["steersman-threads"], |_| true).unwrap();
        assert!((5..100).contains(&threads), "{threads}");
        assert!(stripped(&env::current_exe().unwrap()).is_none_or(|size| size > 100_000));
    }
}
