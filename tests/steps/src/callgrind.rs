//! Instructions, counted by callgrind: the same number on every run, whatever else the machine does.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::{env, fs, io, process};

use steersman_steps::Step;

/// The name of its package, for people.
const PACKAGE: &str =
    "valgrind is not there: it is in Debian's package `valgrind` (apt-get install valgrind)";

/// Counts by running this very program below callgrind.
pub(crate) struct Callgrind {
    /// As valgrind tells it.
    pub(crate) version: String,
    program: PathBuf,
    /// For its files; removed at the end.
    folder: PathBuf,
}

impl Callgrind {
    pub(crate) fn new() -> Result<Self, String> {
        let version = match Command::new("valgrind").arg("--version").output() {
            Ok(output) => String::from_utf8_lossy(&output.stdout).trim().to_owned(),
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Err(PACKAGE.to_owned()),
            Err(e) => return Err(format!("valgrind cannot be run: {e}")),
        };
        let program = env::current_exe().map_err(|e| format!("this program cannot be found: {e}"))?;
        let folder = env::temp_dir().join(format!("steersman-steps-{}", process::id()));
        fs::create_dir_all(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
        Ok(Self { version, program, folder })
    }

    /// Instructions of one operation: those of 2 N less those of N, so that what was prepared does not count.
    pub(crate) fn count(&self, step: &Step, times: u32) -> Result<u64, String> {
        let runs = [times, 2 * times].map(|times| {
            let out = self.folder.join(format!("{}.{times}", step.name));
            (self.start(step.name, times, &out), out)
        });
        let [once, twice] = runs.map(|(child, out)| child.and_then(|child| ended(step.name, child, &out)));
        let (once, twice) = (once?, twice?);
        let more = twice.checked_sub(once).ok_or_else(|| format!("{}: more is less", step.name))?;
        Ok(more / u64::from(times))
    }

    fn start(&self, name: &str, times: u32, out: &Path) -> Result<Child, String> {
        Command::new("valgrind")
            .args(["--tool=callgrind", "--quiet"])
            .arg(format!("--callgrind-out-file={}", out.display()))
            .arg(&self.program)
            .args(["run", name, &times.to_string()])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|e| format!("valgrind cannot be run: {e}"))
    }
}

impl Drop for Callgrind {
    fn drop(&mut self) {
        // What stays is in the folder of what may go.
        let _ = fs::remove_dir_all(&self.folder);
    }
}

fn ended(name: &str, child: Child, out: &Path) -> Result<u64, String> {
    let output = child.wait_with_output().map_err(|e| format!("{name}: {e}"))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        return Err(format!("{name}: {} below callgrind: {}", output.status, said.trim()));
    }
    let file = fs::read_to_string(out).map_err(|e| format!("{}: {e}", out.display()))?;
    total(&file).ok_or_else(|| format!("{}: callgrind says no total", out.display()))
}

/// The sum that callgrind writes below (in some versions above) all costs; the first figure is that of instructions.
fn total(file: &str) -> Option<u64> {
    let line =
        file.lines().rev().find_map(|l| l.strip_prefix("totals:").or_else(|| l.strip_prefix("summary:")));
    line?.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::total;

    #[test]
    fn the_total_is_found() {
        assert_eq!(total("version: 1\nevents: Ir\nsummary: 17\n\nfn=(1)\n3 4\n"), Some(17));
        assert_eq!(total("events: Ir\nfn=(1)\n3 4\ntotals: 123456789012\n"), Some(123_456_789_012));
        assert_eq!(total("fn=(1)\n3 4\n"), None);
    }
}
