//! A trace for a person at a terminal: what matters, and how much was left out between.

use std::fmt;
use std::time::Duration;

use steersman_core::time::Time;

use crate::failure::Failure;
use crate::trace::{Entry, EscapeControl as _, Kind, Lane, Stamp, Trace};

/// Most entries that are shown.
const SHOWN: usize = 120;
/// If there are too many even of the loud ones: so many from the beginning, the others from the end.
const FROM_BEGINNING: usize = 40;
/// Most entries of the reconcile that a violation is about.
const ACCUSED: usize = 20;
/// So many quiet entries, but for those of idle watches, are shown around each that matters most, the first that gives not too many in all.
const AROUND: [usize; 4] = [6, 3, 1, 0];

/// The part of a [`Trace`] that says most; [`Trace::timeline`] makes it.
#[derive(Clone, Debug)]
pub struct Timeline<'a> {
    entries: &'a [Entry],
    shown: Vec<bool>,
}

impl Trace {
    /// The entries that say most, for a person: [`Display`](fmt::Display) gives time, lane and words of each. Faults are
    /// marked by `>>` where they begin and `<<` where they end, a violation by `XX`.
    #[must_use]
    pub fn timeline(&self) -> Timeline<'_> {
        let entries = &self.entries[..];
        let mut shown = Vec::new();
        for around in AROUND {
            shown = choose(entries, around);
            if shown.iter().filter(|s| **s).count() <= SHOWN {
                break;
            }
        }
        // Still too many: nothing from the middle, but for what it is all about.
        let accused = accused(entries);
        let all = shown.iter().filter(|s| **s).count();
        let places: Vec<usize> = (0..entries.len()).filter(|n| shown[*n] && !accused.contains(n)).collect();
        if let Some(too_many) = all.checked_sub(SHOWN) {
            places.iter().skip(FROM_BEGINNING).take(too_many).for_each(|n| shown[*n] = false);
        }
        Timeline { entries, shown }
    }
}

impl Failure {
    /// The entries that say most of how it came to this.
    #[must_use]
    pub fn timeline(&self) -> Timeline<'_> {
        self.trace.timeline()
    }
}

/// The reconcile that a violation is about: the last before it of an object that it names, or else the last before it, with
/// what its process did meanwhile.
fn accused(entries: &[Entry]) -> Vec<usize> {
    let Some(end) = entries.iter().rposition(|e| e.kind == Kind::Violated) else { return Vec::new() };
    let (at, text) = (entries[end].at, &entries[end].text);
    let is_run = |e: &Entry| matches!(e.kind, Kind::Runs(..)) && e.at <= at;
    let names = |e: &Entry| {
        // `ConfigMap prod/a`
        let key = e.key.as_deref().map(|key| key.rsplit(' ').next().unwrap_or(key));
        key.is_some_and(|key| text.split(|c: char| !is_of_a_key(c)).any(|word| word == key))
    };
    let begin = entries[..end]
        .iter()
        .rposition(|e| is_run(e) && names(e))
        .or_else(|| entries[..end].iter().rposition(is_run));
    let Some(begin) = begin else { return Vec::new() };
    let (lane, Kind::Runs(controller, run)) = (entries[begin].lane, entries[begin].kind) else {
        return Vec::new();
    };
    let mut all = Vec::new();
    for n in (begin..end).filter(|n| entries[*n].lane == lane) {
        let kind = entries[n].kind;
        if n == begin || !matches!(kind, Kind::Sees | Kind::Notes | Kind::Runs(..)) {
            all.push(n);
        }
        if kind == Kind::Done(controller, run) || kind == Kind::Fails(controller, run) || kind == Kind::Dies {
            break;
        }
    }
    // One that goes round in circles: how it began, and how it ended.
    if let Some(too_many) = all.len().checked_sub(ACCUSED) {
        all.drain(ACCUSED / 2..ACCUSED / 2 + too_many);
    }
    all
}

/// Whether a key may have it in its name.
fn is_of_a_key(c: char) -> bool {
    c.is_ascii_alphanumeric() || "/-.:".contains(c)
}

/// A watch that goes on as before: it is asked for again because its time was over.
fn is_idle(entry: &Entry) -> bool {
    match entry.kind {
        Kind::Gets => entry.text.contains("watch=true") || entry.text.contains("watch=1"),
        Kind::Notes => entry.text.contains(": Watching "),
        Kind::Sees => entry.text.contains("sees 0 changes"),
        _ => false,
    }
}

/// All that is loud, the reconcile that the violation is about, and so many around what matters most.
fn choose(entries: &[Entry], around: usize) -> Vec<bool> {
    let mut shown: Vec<bool> = entries
        .iter()
        .map(|e| e.kind.is_loud() || (around > 0 && matches!(e.kind, Kind::Fails(..))))
        .collect();
    for (n, entry) in entries.iter().enumerate() {
        if matches!(entry.kind, Kind::Strikes | Kind::Dies | Kind::Violated) {
            shown[n] = true;
            let is_busy = |n: &usize| !is_idle(&entries[*n]);
            (0..n).rev().filter(is_busy).take(around).for_each(|n| shown[n] = true);
            (n + 1..entries.len()).filter(is_busy).take(around).for_each(|n| shown[n] = true);
        }
    }
    accused(entries).into_iter().for_each(|n| shown[n] = true);
    shown
}

impl fmt::Display for Timeline<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let n = self.shown.iter().filter(|s| **s).count();
        writeln!(f, "timeline, {n} of {} entries:", self.entries.len())?;
        let mut gap = Gap::default();
        for (entry, shown) in self.entries.iter().zip(&self.shown) {
            if !shown {
                gap.left_out += 1;
                continue;
            }
            gap.close(f, entry.at)?;
            let lane = entry.lane.to_string();
            writeln!(f, "{} {}  {lane:<9}  {}", mark(entry), Stamp(entry.at), entry.text.escape_control())?;
        }
        let end = self.entries.last().map_or(Time::ZERO, |e| e.at);
        gap.close(f, end)
    }
}

/// What is left out between two entries.
#[derive(Default)]
struct Gap {
    left_out: usize,
    since: Time,
}

impl Gap {
    fn close(&mut self, f: &mut fmt::Formatter<'_>, now: Time) -> fmt::Result {
        if self.left_out > 0 {
            // To the millisecond, which says enough.
            let millis = u64::try_from(now.since(self.since).as_millis()).unwrap_or(u64::MAX);
            writeln!(f, "          ... {} more in {:?}", self.left_out, Duration::from_millis(millis))?;
        }
        *self = Self { left_out: 0, since: now };
        Ok(())
    }
}

fn mark(entry: &Entry) -> &'static str {
    match (entry.kind, entry.lane) {
        (Kind::Violated, _) => "XX",
        (Kind::Strikes, _) => ">>",
        (Kind::Heals, Lane::Fault(_) | Lane::Cluster) => "<<",
        _ => "  ",
    }
}

#[cfg(test)]
mod tests;
