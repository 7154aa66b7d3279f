//! One run, named so that it can be run again: as variables of the environment, and as a command that sets them.

use std::env;
use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;

use crate::adversary;
use crate::faults::Fault;
use crate::sim::Sim;

const SEED: &str = "STEERSMAN_SIM_SEED";
const FAULTS: &str = "STEERSMAN_SIM_FAULTS";
const REPLICAS: &str = "STEERSMAN_SIM_REPLICAS";
const FOLLOWERS: &str = "STEERSMAN_SIM_FOLLOWERS";
const ADVERSARY: &str = "STEERSMAN_SIM_ADVERSARY";

/// Which run is wanted, of all that a test makes: what the environment says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Replay {
    /// `STEERSMAN_SIM_SEED`.
    pub(crate) seed: Option<u64>,
    /// `STEERSMAN_SIM_FAULTS`, a JSON list.
    pub(crate) faults: Option<Vec<Fault>>,
    /// `STEERSMAN_SIM_REPLICAS`: only the first so many.
    pub(crate) replicas: Option<usize>,
    /// `STEERSMAN_SIM_FOLLOWERS`: only the first so many.
    pub(crate) followers: Option<usize>,
    /// `STEERSMAN_SIM_ADVERSARY`: who compares the run with another one.
    pub(crate) adversary: Option<String>,
}

impl Replay {
    /// # Panics
    /// If a variable cannot be read or would be ignored: a wish that is not understood must not look as if it were granted.
    pub(crate) fn of_environment() -> Self {
        let var = |name: &str| env::var_os(name).map(|value| value.to_string_lossy().into_owned());
        Self::read(&var).unwrap_or_else(|e| panic!("{e}"))
    }

    pub(crate) fn read(var: &dyn Fn(&str) -> Option<String>) -> Result<Self, String> {
        let replay = Self {
            seed: parsed(var, SEED)?,
            faults: parsed(var, FAULTS)?,
            replicas: parsed(var, REPLICAS)?,
            followers: parsed(var, FOLLOWERS)?,
            adversary: var(ADVERSARY),
        };
        if let Some(name) = replay.adversary.as_deref().filter(|name| !adversary::NAMES.contains(name)) {
            let names = adversary::NAMES.join(", ");
            return Err(format!("{ADVERSARY}={name:?}: there is no such adversary; there are {names}"));
        }
        if replay.replicas == Some(0) {
            return Err(format!("{REPLICAS}=0: without a replica nothing runs"));
        }
        if replay.faults.is_none() {
            let ignored = [REPLICAS, FOLLOWERS, ADVERSARY].into_iter().find_map(|n| Some((n, var(n)?)));
            if let Some((name, value)) = ignored {
                return Err(format!("{name}={value}: it says nothing without {FAULTS}"));
            }
        }
        Ok(replay)
    }

    /// The first so many processes and followers of a simulation.
    ///
    /// # Errors
    /// If it has not got so many, or has none that a fault names.
    pub(crate) fn part_of(&self, sim: &Sim) -> Result<Sim, String> {
        for (name, wanted, has, what) in [
            (REPLICAS, self.replicas, sim.programs.len(), "replicas"),
            (FOLLOWERS, self.followers, sim.followers.len(), "followers"),
        ] {
            if let Some(wanted) = wanted.filter(|wanted| *wanted > has) {
                return Err(format!("{name}={wanted}: the simulation has {has} {what}"));
            }
        }
        let sim = sim.first(self.replicas, self.followers);
        let shape = sim.shape();
        for fault in self.faults.iter().flatten() {
            if let Some(unknown) = fault.unknown(shape.replicas, shape.servers) {
                let (replicas, servers) = (shape.replicas, shape.servers);
                return Err(format!(
                    "{FAULTS}: there is no {unknown} ({fault}); there are {replicas} replicas and {servers} servers, from 0"
                ));
            }
        }
        Ok(sim)
    }

    /// The seed that is wanted of a range; none if another run than those of a range is meant.
    pub(crate) fn seed_of_range(&self) -> Option<u64> {
        self.seed.filter(|_| self.adversary.is_none())
    }

    /// Whether this one of several adversaries is wanted: all of them are unless one of them is named.
    pub(crate) fn wants(&self, name: &str, all: &[&str]) -> bool {
        self.adversary.as_deref().is_none_or(|wanted| wanted == name || !all.contains(&wanted))
    }

    /// Whether it means a run of this seed, on its own or of this adversary.
    pub(crate) fn means(&self, seed: u64, adversary: Option<&str>) -> bool {
        self.faults.is_some()
            && self.seed.is_none_or(|wanted| wanted == seed)
            && self.adversary.as_deref() == adversary
    }

    /// The variables, as a shell takes them.
    pub(crate) fn variables(&self) -> String {
        let mut all = Vec::new();
        let mut set = |name, value: Option<String>| all.extend(value.map(|v| format!("{name}={v}")));
        set(SEED, self.seed.map(|n| n.to_string()));
        set(REPLICAS, self.replicas.map(|n| n.to_string()));
        set(FOLLOWERS, self.followers.map(|n| n.to_string()));
        set(ADVERSARY, self.adversary.clone());
        let faults = self.faults.as_ref().map(|faults| serde_json::to_string(faults).unwrap_or_default());
        set(FAULTS, faults.map(|json| quoted(&json)));
        all.join(" ")
    }

    /// A command that makes this run alone, as far as the process tells which test it is.
    pub(crate) fn command(&self) -> String {
        format!("{} {}", self.variables(), Program::current().command())
    }
}

fn parsed<T: DeserializeOwned>(
    var: &dyn Fn(&str) -> Option<String>,
    name: &str,
) -> Result<Option<T>, String> {
    let read = |text: String| serde_json::from_str(&text).map_err(|e| format!("{name}={text:?}: {e}"));
    var(name).map(read).transpose()
}

/// A word, as a shell takes it.
fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=:,+@%".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

/// What cargo and the test harness tell about the process and the thread.
pub(crate) struct Program {
    exe: PathBuf,
    args: Vec<String>,
    /// Of the package.
    folder: Option<PathBuf>,
    package: Option<String>,
    /// The name of the thread, which the harness gives to a test's.
    thread: Option<String>,
}

impl Program {
    pub(crate) fn current() -> Self {
        Self {
            exe: env::current_exe().unwrap_or_default(),
            args: env::args_os().skip(1).map(|arg| arg.to_string_lossy().into_owned()).collect(),
            folder: env::var_os("CARGO_MANIFEST_DIR").map(PathBuf::from),
            package: env::var("CARGO_PKG_NAME").ok(),
            thread: std::thread::current().name().map(str::to_owned),
        }
    }

    /// The test, if it is one.
    fn test(&self) -> Option<&str> {
        self.thread.as_deref().filter(|name| *name != "main")
    }

    /// A name for files.
    pub(crate) fn name(&self) -> String {
        let name = match self.test() {
            Some(test) => test,
            None => stem(&self.exe),
        };
        name.chars().map(|c| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' }).take(100).collect()
    }

    fn command(&self) -> String {
        let args: Vec<String> = self.args.iter().map(|arg| quoted(arg)).collect();
        let Some(package) = &self.package else {
            // Cargo did not start it.
            let exe = quoted(&self.exe.to_string_lossy());
            return match self.test() {
                Some(test) => format!("{exe} --exact {} --nocapture", quoted(test)),
                None => [vec![exe], args].concat().join(" "),
            };
        };
        match self.test() {
            Some(test) => {
                let ignored = self.args.iter().any(|arg| arg == "--ignored" || arg == "--include-ignored");
                format!(
                    "cargo test{} -p {package}{} -- --exact {}{} --nocapture",
                    self.profile(),
                    self.target(package),
                    quoted(test),
                    if ignored { " --include-ignored" } else { "" }
                )
            }
            None if self.exe.parent().is_some_and(|p| p.ends_with("examples")) => {
                let more = if args.is_empty() { String::new() } else { format!(" -- {}", args.join(" ")) };
                format!("cargo run{} -p {package} --example {}{more}", self.profile(), stem(&self.exe))
            }
            // Programs of doc tests are gone when they have run.
            None if self.build().is_none() => format!("cargo test -p {package} --doc"),
            None => [vec![quoted(&self.exe.to_string_lossy())], args].concat().join(" "),
        }
    }

    /// The folder of the profile that it was built in.
    fn build(&self) -> Option<&Path> {
        let folder = self.exe.parent()?;
        let inner = folder.ends_with("deps") || folder.ends_with("examples");
        inner.then(|| folder.parent()).flatten()
    }

    fn profile(&self) -> String {
        match self.build().and_then(Path::file_name).and_then(|name| name.to_str()) {
            Some("release") => " --release".into(),
            Some("debug") | None => String::new(),
            Some(profile) => format!(" --profile {profile}"),
        }
    }

    /// Which of the package's targets it is.
    fn target(&self, package: &str) -> String {
        // name-0123456789abcdef, with '-' as '_' in the name.
        let stem = stem(&self.exe);
        let name = stem.rsplit_once('-').map_or(stem, |(name, _)| name);
        let Some(folder) = &self.folder else { return String::new() };
        let tests = folder.join("tests");
        for name in [name.to_owned(), name.replace('_', "-")] {
            if tests.join(format!("{name}.rs")).is_file() || tests.join(&name).join("main.rs").is_file() {
                return format!(" --test {name}");
            }
        }
        if name == package.replace('-', "_") && folder.join("src/lib.rs").is_file() {
            return " --lib".into();
        }
        String::new()
    }

    /// Where pages go unless somebody says otherwise: into the target folder that this was built in.
    pub(crate) fn folder(&self) -> PathBuf {
        let target = self.build().and_then(Path::parent).map(Path::to_path_buf);
        // Doc tests are built elsewhere.
        target.unwrap_or_else(env::temp_dir).join("steersman-sim")
    }
}

fn stem(path: &Path) -> &str {
    path.file_stem().and_then(|stem| stem.to_str()).unwrap_or("program")
}

#[cfg(test)]
mod tests;
