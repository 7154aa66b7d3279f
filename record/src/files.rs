//! The names of the files, and how they are found again.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use steersman_core::record::Recording;

use crate::run;

/// What the names of the directories of runs begin with.
pub(crate) const RUN: &str = "run-";
/// What the names of segments end with.
const END: &str = ".rec";
/// Bytes within which the header of a segment begins.
const BEGINNING: u64 = 64;

/// A recording's name as part of a file's.
pub(crate) fn stem(name: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || "._-".contains(c) { c } else { '-' };
    let stem: String = name.chars().take(150).map(plain).collect();
    stem.trim_start_matches('.').to_owned()
}

pub(crate) fn name(stem: &str, segment: u64) -> String {
    format!("{stem}.{segment:06}{END}")
}

/// The stem of the name of a segment.
fn stem_of(name: &str) -> Option<&str> {
    let (stem, number) = name.strip_suffix(END)?.rsplit_once('.')?;
    number.bytes().all(|b| b.is_ascii_digit()).then_some(stem)
}

fn names(directory: &Path) -> Result<Vec<String>, String> {
    let list = fs::read_dir(directory).map_err(|e| format!("{}: {e}", directory.display()))?;
    let mut names: Vec<_> = list.filter_map(|entry| entry.ok()?.file_name().into_string().ok()).collect();
    names.sort();
    Ok(names)
}

/// Removes the oldest runs, so that `keep` are left. What holds anything but recordings is not touched, nor what a living process
/// writes into.
pub(crate) fn forget_runs(path: &Path, keep: usize) {
    let Ok(mut runs) = names(path) else { return };
    runs.retain(|name| name.starts_with(RUN));
    let old = runs.len().saturating_sub(keep);
    for run in runs.iter().take(old) {
        let run = path.join(run);
        if names(&run)
            .is_ok_and(|files| files.iter().all(|file| stem_of(file).is_some() || file == run::LOCK))
            && run::is_over(&run)
        {
            // Another process may have been faster.
            drop(fs::remove_dir_all(run));
        }
    }
}

/// The recordings in a directory and in the directories of runs in it, each as a path that [`read`] takes.
///
/// # Errors
/// A directory that cannot be read.
pub fn recordings(directory: &Path) -> Result<Vec<PathBuf>, String> {
    let mut paths = recordings_of(directory)?;
    for run in names(directory)?.iter().filter(|name| name.starts_with(RUN)).map(|name| directory.join(name))
    {
        if run.is_dir() {
            paths.extend(recordings_of(&run)?);
        }
    }
    Ok(paths)
}

fn recordings_of(directory: &Path) -> Result<Vec<PathBuf>, String> {
    let names = names(directory)?;
    let stems: BTreeSet<_> = names.iter().filter_map(|name| stem_of(name)).collect();
    Ok(stems.into_iter().map(|stem| directory.join(stem)).collect())
}

/// One segment. Of what does not begin like one only the beginning: it may be anything, and have no end.
fn segment(path: &Path) -> io::Result<Vec<u8>> {
    if !fs::metadata(path)?.is_file() {
        return Err(io::Error::other("not a regular file"));
    }
    let mut file = fs::File::open(path)?;
    let mut bytes = Vec::new();
    file.by_ref().take(BEGINNING).read_to_end(&mut bytes)?;
    if bytes.windows(2).any(|pair| pair == b" {") {
        file.read_to_end(&mut bytes)?;
    }
    Ok(bytes)
}

/// Reads a recording: from the path of any of its segments, or the same without number and ending.
///
/// # Errors
/// One line that names the path: no such file, no recording, a damaged one.
pub fn read(path: &Path) -> Result<Recording, String> {
    let error = |e: &dyn std::fmt::Display| format!("{}: {e}", path.display());
    let name = path.file_name().and_then(OsStr::to_str).ok_or_else(|| error(&"not the name of a file"))?;
    let directory = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or_else(|| Path::new("."));
    let stem = stem_of(name).unwrap_or(name);
    let mut files: Vec<_> = names(directory)?.into_iter().filter(|n| stem_of(n) == Some(stem)).collect();
    if files.is_empty() {
        files.push(name.to_owned());
    }
    let segments: Result<Vec<_>, _> = files.iter().map(|file| segment(&directory.join(file))).collect();
    let segments = segments.map_err(|e| error(&e))?;
    Recording::read(segments.iter().map(Vec::as_slice)).map_err(|e| error(&e))
}
