//! Breaks the core on purpose, one line at a time, and tells which test noticed.
//!
//! ```text
//! cargo run -p steersman-sim --bin mutations                 every fault, until the first test notices it
//! cargo run -p steersman-sim --bin mutations -- NAME...      only faults whose names contain one of these
//!     --stage S     only this stage of tests (units, models, corpus, simulator); may be given several times
//!     --all         go through all stages, also after one has noticed
//! ```
//!
//! The faults lie in `tests/sim/mutations/*.txt`: what stands there behind `-` is replaced by what stands behind `+`. A
//! fault that no test notices is a survivor, and the program fails: a test is missing. The sources are copied first, so the
//! tree at hand is never touched.

use std::error::Error;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// Tests that take longer than this hang: noticed as well.
const PATIENCE: Duration = Duration::from_secs(600);

const STAGES: [(&str, &[&str]); 4] = [
    ("units", &["-p", "steersman-core", "--lib"]),
    ("models", &["-p", "steersman-core", "--test", "*"]),
    ("corpus", &["-p", "steersman-fuzz", "--tests"]),
    ("simulator", &["-p", "steersman-sim", "--lib", "--test", "*"]),
];

/// One fault.
struct Mutation {
    name: String,
    why: String,
    file: String,
    old: String,
    new: String,
}

struct Arguments {
    names: Vec<String>,
    stages: Vec<String>,
    all: bool,
}

/// What a stage of tests said.
enum Verdict {
    Passed,
    DoesNotCompile(String),
    Noticed(Vec<String>),
}

fn main() -> ExitCode {
    match run() {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(e) => {
            eprintln!("mutations: {e}");
            ExitCode::from(2)
        }
    }
}

fn run() -> Result<bool, Box<dyn Error>> {
    let arguments = arguments()?;
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize()?;
    let mut mutations = read_all(&root.join("tests/sim/mutations"))?;
    mutations.retain(|m| {
        arguments.names.is_empty() || arguments.names.iter().any(|n| m.name.contains(n.as_str()))
    });
    let stages: Vec<_> = STAGES
        .iter()
        .filter(|(name, _)| arguments.stages.is_empty() || arguments.stages.iter().any(|s| s == name))
        .collect();
    if mutations.is_empty() || stages.is_empty() {
        return Err("nothing has such a name".into());
    }
    // Below the scratch folder, so that it is outside of every repository's `target`.
    let tree = root.join("target/mutations/tree");
    copy(&root, &tree)?;
    for (stage, tests) in &stages {
        match test(&tree, tests)? {
            Verdict::Passed => {}
            Verdict::DoesNotCompile(e) => return Err(format!("{stage}: without any fault: {e}").into()),
            Verdict::Noticed(tests) => {
                return Err(format!("{stage}: fails without any fault: {}", tests.join(", ")).into());
            }
        }
    }
    let (mut noticed, mut survivors) = (0, Vec::new());
    for mutation in &mutations {
        let path = tree.join(&mutation.file);
        let original = fs::read_to_string(&path).map_err(|e| format!("{}: {e}", mutation.file))?;
        match original.matches(&mutation.old).count() {
            1 => {}
            n => {
                return Err(format!(
                    "{}: what it replaces stands {n} times in {}",
                    mutation.name, mutation.file
                )
                .into());
            }
        }
        fs::write(&path, original.replacen(&mutation.old, &mutation.new, 1))?;
        let mut lines = Vec::new();
        for (stage, tests) in &stages {
            match test(&tree, tests)? {
                Verdict::Passed => {}
                Verdict::DoesNotCompile(e) => return Err(format!("{}: {e}", mutation.name).into()),
                Verdict::Noticed(tests) => {
                    let more = tests.len().saturating_sub(3);
                    let mut line = format!("{stage}: {}", tests[..tests.len().min(3)].join(", "));
                    if more > 0 {
                        line.push_str(&format!(" and {more} more"));
                    }
                    lines.push(line);
                    if !arguments.all {
                        break;
                    }
                }
            }
        }
        fs::write(&path, original)?;
        if lines.is_empty() {
            println!("SURVIVED {}: {}", mutation.name, mutation.why);
            survivors.push(mutation.name.as_str());
        } else {
            noticed += 1;
            println!("{}: {}", mutation.name, lines.join("; "));
        }
    }
    println!("{noticed} of {} faults were noticed", mutations.len());
    Ok(survivors.is_empty())
}

fn arguments() -> Result<Arguments, String> {
    let mut all = false;
    let (mut names, mut stages) = (Vec::new(), Vec::new());
    let mut given = std::env::args().skip(1);
    while let Some(argument) = given.next() {
        match argument.as_str() {
            "--all" => all = true,
            "--stage" => {
                let stage = given.next().ok_or("--stage needs a name")?;
                if !STAGES.iter().any(|(name, _)| *name == stage) {
                    return Err(format!("no stage is called {stage}"));
                }
                stages.push(stage);
            }
            option if option.starts_with('-') => return Err(format!("what is {option}?")),
            name => names.push(name.to_owned()),
        }
    }
    Ok(Arguments { names, stages, all })
}

/// Every fault of every file, in the order of file names.
fn read_all(folder: &Path) -> Result<Vec<Mutation>, Box<dyn Error>> {
    let mut files: Vec<PathBuf> =
        fs::read_dir(folder)?.map(|e| e.map(|e| e.path())).collect::<io::Result<_>>()?;
    files.sort();
    let mut all = Vec::new();
    for file in files {
        let text = fs::read_to_string(&file)?;
        for block in text.split("\n\n").map(str::trim).filter(|b| !b.is_empty()) {
            all.push(parse(block).ok_or_else(|| format!("{}: cannot read: {block}", file.display()))?);
        }
    }
    Ok(all)
}

fn parse(block: &str) -> Option<Mutation> {
    let mut mutation = Mutation {
        name: String::new(),
        why: String::new(),
        file: String::new(),
        old: String::new(),
        new: String::new(),
    };
    for line in block.lines() {
        if let Some(old) = line.strip_prefix('-') {
            mutation.old += &format!("{old}\n");
        } else if let Some(new) = line.strip_prefix('+') {
            mutation.new += &format!("{new}\n");
        } else {
            let (word, rest) = line.split_once(' ')?;
            let field = match word {
                "#" => &mut mutation.why,
                "name" => &mut mutation.name,
                "file" => &mut mutation.file,
                _ => return None,
            };
            rest.clone_into(field);
        }
    }
    // The last line may be the start of a longer one.
    for text in [&mut mutation.old, &mut mutation.new] {
        text.truncate(text.trim_end_matches('\n').len());
    }
    let whole = [&mutation.name, &mutation.why, &mutation.file, &mutation.old].iter().all(|t| !t.is_empty());
    whole.then_some(mutation)
}

/// Copies what git knows of, as it lies on disk now.
fn copy(root: &Path, tree: &Path) -> Result<(), Box<dyn Error>> {
    let listed = Command::new("git")
        .arg("-C")
        .arg(root)
        .args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"])
        .output()?;
    if !listed.status.success() {
        return Err(String::from_utf8_lossy(&listed.stderr).into_owned().into());
    }
    for name in String::from_utf8(listed.stdout)?.split('\0').filter(|n| !n.is_empty()) {
        let (from, to) = (root.join(name), tree.join(name));
        let Ok(new) = fs::read(&from) else { continue };
        // Untouched files keep their time, and with it what was built from them.
        if fs::read(&to).is_ok_and(|old| old == new) {
            continue;
        }
        fs::create_dir_all(to.parent().ok_or("a file without a folder")?)?;
        fs::write(&to, new)?;
        fs::set_permissions(&to, fs::metadata(&from)?.permissions())?;
    }
    Ok(())
}

/// Runs one stage, and names the tests that failed.
#[expect(clippy::disallowed_methods, reason = "the end of a process with a deadline can only be asked for")]
fn test(tree: &Path, tests: &[&str]) -> Result<Verdict, Box<dyn Error>> {
    let (out, err) = (tree.join("../stdout"), tree.join("../stderr"));
    let mut child = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
        .current_dir(tree)
        .env("CARGO_TARGET_DIR", tree.join("../target"))
        .args(["test", "--locked", "--offline", "--quiet", "--no-fail-fast"])
        .args(tests)
        .stdin(Stdio::null())
        .stdout(fs::File::create(&out)?)
        .stderr(fs::File::create(&err)?)
        .spawn()?;
    let began = Instant::now();
    let status = loop {
        if let Some(status) = child.try_wait()? {
            break status;
        }
        if began.elapsed() > PATIENCE {
            let _ = Command::new("pkill").args(["-P", &child.id().to_string()]).status();
            child.kill()?;
            child.wait()?;
            return Ok(Verdict::Noticed(vec![format!("no end after {} s", PATIENCE.as_secs())]));
        }
        thread::sleep(Duration::from_millis(100));
    };
    if status.success() {
        return Ok(Verdict::Passed);
    }
    let (out, err) = (fs::read_to_string(out)?, fs::read_to_string(err)?);
    let mut failed: Vec<String> = out
        .lines()
        .filter_map(|l| l.strip_prefix("---- ")?.strip_suffix(" stdout ----").map(str::to_owned))
        .collect();
    failed.sort();
    failed.dedup();
    if failed.is_empty() {
        let first = err.lines().find(|l| l.starts_with("error")).unwrap_or("the tests failed without a name");
        if err.contains("could not compile") {
            return Ok(Verdict::DoesNotCompile(first.to_owned()));
        }
        return Ok(Verdict::Noticed(vec![first.to_owned()]));
    }
    Ok(Verdict::Noticed(failed))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_fault_can_be_put_into_the_sources_of_today() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let all = read_all(&root.join("tests/sim/mutations")).unwrap();
        assert!(all.len() >= 30, "{}", all.len());
        for Mutation { name, file, old, new, .. } in all {
            let source =
                fs::read_to_string(root.join(&file)).unwrap_or_else(|e| panic!("{name}: {file}: {e}"));
            assert_eq!(source.matches(&old).count(), 1, "{name}: what it replaces in {file}");
            assert_ne!(old, new, "{name}");
        }
    }
}
