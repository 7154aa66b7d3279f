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
/// So many quiet entries are shown around each that matters most, the first that gives not too many in all.
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
        // Still too many: nothing from the middle.
        let places: Vec<usize> = (0..entries.len()).filter(|n| shown[*n]).collect();
        if let Some(too_many) = places.len().checked_sub(SHOWN) {
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

/// All that is loud, and so many around what matters most.
fn choose(entries: &[Entry], around: usize) -> Vec<bool> {
    let mut shown: Vec<bool> = entries
        .iter()
        .map(|e| e.kind.is_loud() || (around > 0 && matches!(e.kind, Kind::Fails(..))))
        .collect();
    for (n, entry) in entries.iter().enumerate() {
        if matches!(entry.kind, Kind::Strikes | Kind::Dies | Kind::Violated) {
            let end = (n + around + 1).min(entries.len());
            shown[n.saturating_sub(around)..end].fill(true);
        }
    }
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
