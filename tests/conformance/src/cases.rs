//! Runs a folder of odd inputs (HTTP answers, watch streams, JSON, kubeconfigs) through the machines of the core, and
//! says what becomes of each, next to what an index says should: a person judges, the machine only compares.
//!
//! What it does judge: no file may panic, and none may give another verdict when its bytes are cut elsewhere.

mod http;
mod json;
mod kubeconfig;
mod play;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::panic::{self, AssertUnwindSafe};
use std::path::{Path, PathBuf};

/// What became of one file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// Its path below the folder.
    pub file: String,
    /// What the core makes of it, one finding a line.
    pub findings: Vec<String>,
    /// What the index says is right; empty if it says nothing.
    pub expected: String,
    /// What may never be: a panic, or a verdict that hangs on how the bytes were cut.
    pub faults: Vec<String>,
}

/// What a runner finds, and what it finds wrong by itself.
#[derive(Debug, Default)]
struct Findings {
    lines: Vec<String>,
    faults: Vec<String>,
}

impl Findings {
    fn say(&mut self, line: impl Into<String>) {
        self.lines.push(line.into());
    }
}

/// Runs every file of the folders `http`, `watch`, `json` and `kubeconfig` below `dir`, in the order of names.
///
/// # Errors
/// If a folder or file cannot be read, or if there is none of these folders.
pub fn try_all(dir: &Path) -> Result<Vec<Verdict>, String> {
    let index = fs::read_to_string(dir.join("INDEX.md")).map(|text| read_index(&text)).unwrap_or_default();
    let mut verdicts = Vec::new();
    let mut any = false;
    for folder in ["http", "watch", "json", "kubeconfig"] {
        let top = dir.join(folder);
        if !top.is_dir() {
            continue;
        }
        any = true;
        for path in files_below(&top)? {
            let name = path.strip_prefix(dir).unwrap_or(&path).to_string_lossy().into_owned();
            if folder == "kubeconfig" && !kubeconfig::is_one(&path) {
                continue;
            }
            let bytes = fs::read(&path).map_err(|e| format!("{}: {e}", path.display()))?;
            let outcome = panic::catch_unwind(AssertUnwindSafe(|| match folder {
                "http" => http::run(&bytes),
                "watch" => play::run_watch(&bytes),
                "json" => json::run(&name, &bytes),
                _ => kubeconfig::run(&path),
            }));
            let Findings { lines, faults } = outcome.unwrap_or_else(|cause| {
                let text = cause.downcast_ref::<String>().map(String::as_str);
                let text = text.or_else(|| cause.downcast_ref::<&str>().copied()).unwrap_or("no message");
                Findings { lines: Vec::new(), faults: vec![format!("panic: {text}")] }
            });
            let expected = index.get(&name).cloned().unwrap_or_default();
            verdicts.push(Verdict { file: name, findings: lines, expected, faults });
        }
    }
    if any {
        Ok(verdicts)
    } else {
        Err(format!("{} has none of http, watch, json, kubeconfig", dir.display()))
    }
}

/// The rows `| file | exercises | right |` of an index.
fn read_index(text: &str) -> BTreeMap<String, String> {
    let rows = text.lines().filter_map(|line| {
        let mut cells = line.strip_prefix("| ")?.splitn(3, " | ");
        let (file, exercises, right) = (cells.next()?, cells.next()?, cells.next()?);
        let right = right.trim_end().trim_end_matches('|').trim_end();
        Some((file.to_owned(), format!("{right} ({exercises})")))
    });
    rows.collect()
}

fn files_below(dir: &Path) -> Result<Vec<PathBuf>, String> {
    let mut files = Vec::new();
    for entry in fs::read_dir(dir).map_err(|e| format!("{}: {e}", dir.display()))? {
        let path = entry.map_err(|e| format!("{}: {e}", dir.display()))?.path();
        if path.is_dir() {
            files.extend(files_below(&path)?);
        } else {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

/// The ways in which `bytes` are handed over: whole, byte by byte, and in two parts cut at every offset (of long inputs
/// at offsets all over them, so that the work stays bounded).
fn cuts(len: usize) -> impl Iterator<Item = Cut> {
    const WORK: usize = 24_000_000;
    let step = (len.saturating_mul(len) / WORK).max(1);
    [Cut::Whole, Cut::Bytes].into_iter().chain((1..len).step_by(step).map(Cut::At))
}

#[derive(Clone, Copy, Debug)]
enum Cut {
    Whole,
    Bytes,
    At(usize),
}

impl Cut {
    fn parts(self, bytes: &[u8]) -> Vec<&[u8]> {
        match self {
            Self::Whole => vec![bytes],
            Self::Bytes => bytes.chunks(1).collect(),
            Self::At(at) => vec![&bytes[..at], &bytes[at..]],
        }
    }
}

/// What `read` makes of `bytes`, which must be the same for every cut.
fn same_for_all_cuts(
    what: &str,
    bytes: &[u8],
    found: &mut Findings,
    read: impl Fn(&[&[u8]]) -> Vec<String>,
) -> Vec<String> {
    let whole = read(&[bytes]);
    for cut in cuts(bytes.len()) {
        let other = read(&cut.parts(bytes));
        if other != whole {
            let (a, b) = first_difference(&whole, &other);
            found.faults.push(format!("{what} differs for {cut:?}: whole {a:?}, cut {b:?}"));
            break;
        }
    }
    whole
}

fn first_difference(a: &[String], b: &[String]) -> (String, String) {
    let at = a.iter().zip(b).take_while(|(a, b)| a == b).count();
    let line = |v: &[String]| v.get(at).cloned().unwrap_or_else(|| "nothing".into());
    (line(a), line(b))
}

/// A text on one line, at most `longest` characters of it.
fn brief(text: &str, longest: usize) -> String {
    let mut out = String::new();
    for c in text.chars() {
        if out.chars().count() >= longest {
            out.push_str("...");
            break;
        }
        if c.is_control() {
            let _ = write!(out, "{}", c.escape_default());
        } else {
            out.push(c);
        }
    }
    out
}

/// `lines` as text for a terminal.
#[must_use]
pub fn report(verdicts: &[Verdict]) -> String {
    let mut text = String::new();
    for v in verdicts {
        let _ = writeln!(text, "{}", v.file);
        for line in &v.findings {
            let _ = writeln!(text, "    {}", brief(line, 300));
        }
        if !v.expected.is_empty() {
            let _ = writeln!(text, "  wanted: {}", brief(&v.expected, 200));
        }
        for fault in &v.faults {
            let _ = writeln!(text, "  FAULT: {}", brief(fault, 600));
        }
    }
    let faulty = verdicts.iter().filter(|v| !v.faults.is_empty()).count();
    let _ = writeln!(text, "{} files, {faulty} with faults", verdicts.len());
    text
}

#[cfg(test)]
mod tests;
