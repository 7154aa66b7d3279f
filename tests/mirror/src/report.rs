//! What a run tells: a line a second meanwhile, a table at the end.

use std::fmt;
use std::time::Duration;

use steersman_core::controller::stats::Histogram;
use steersman_core::manager::status::ManagerStatus;

/// The figures of a run that went well.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// ConfigMaps made.
    pub objects: usize,
    /// Secrets compared with what they must be, absent ones included.
    pub checked: usize,
    /// From the start of the controller to the first full state of every watch.
    pub first_sync: Duration,
    /// From the start of the controller to the state that was wanted.
    pub convergence: Duration,
    /// The same from the last change that the harness made.
    pub after_last_change: Duration,
    /// Connections that were killed; `None` if that was not asked for.
    pub killed: Option<usize>,
    /// Where everything stood at the end.
    pub status: ManagerStatus,
    /// The most memory that this process ever had, in KiB, if the system tells.
    pub peak_rss_kib: Option<u64>,
    /// Whether the API server ran in this process as well.
    pub embedded: bool,
    /// What was random came from it.
    pub seed: u64,
}

/// Sums over controllers and sources.
#[derive(Debug, Default)]
pub(crate) struct Sums {
    pub(crate) reconciles: u64,
    pub(crate) errors: u64,
    pub(crate) last_error: Option<String>,
    pub(crate) queued: usize,
    pub(crate) events: u64,
    pub(crate) relists: u64,
    pub(crate) watches: u64,
    pub(crate) latency: Histogram,
}

impl Sums {
    pub(crate) fn of(status: &ManagerStatus) -> Self {
        let mut sums = Self::default();
        for controller in &status.controllers {
            sums.reconciles += controller.results.total();
            sums.errors += controller.results.failed();
            sums.queued += controller.queued + controller.running;
            sums.latency.merge(&controller.queue_latency);
            if let Some(last) = &controller.last_error {
                sums.last_error = Some(format!("{}: {}", last.key, last.error));
            }
        }
        for watcher in status.sources.iter().filter_map(|s| s.status.as_ref()).map(|s| &s.watcher) {
            sums.events += watcher.events;
            sums.relists += watcher.relists;
            sums.watches += watcher.watches;
        }
        sums
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sums = Sums::of(&self.status);
        let mut row = |name: &str, value: &dyn fmt::Display, note: &str| {
            let gap = if note.is_empty() { "" } else { "  " };
            writeln!(f, "{name:<34}{:>12}{gap}{note}", value.to_string())
        };
        let quantile = |q| millis(sums.latency.quantile(q).unwrap_or_default());
        row("objects", &self.objects, &format!("every Secret checked, {} in all", self.checked))?;
        row("reconciles", &sums.reconciles, "")?;
        let last = sums.last_error.map(|e| format!("the last one: {e}")).unwrap_or_default();
        row("errors", &sums.errors, &last)?;
        row("watch events", &sums.events, &format!("{} watches, {} relists", sums.watches, sums.relists))?;
        if let Some(killed) = self.killed {
            row("connections killed", &killed, "")?;
        }
        row("time to first sync", &millis(self.first_sync), "")?;
        let after = format!("{} after the last change", millis(self.after_last_change));
        row("time to convergence", &millis(self.convergence), &after)?;
        row("event to start of reconcile, p50", &quantile(0.5), "")?;
        row("event to start of reconcile, p99", &quantile(0.99), "")?;
        if let Some(kib) = self.peak_rss_kib {
            let note = if self.embedded { "the API server included" } else { "" };
            row("peak RSS", &format_args!("{:.1} MiB", kib as f64 / 1024.0), note)?;
        }
        row("seed", &format_args!("{}", self.seed), "")
    }
}

fn millis(d: Duration) -> String {
    let ms = d.as_secs_f64() * 1e3;
    if ms < 10.0 { format!("{ms:.2} ms") } else { format!("{ms:.0} ms") }
}

/// `VmHWM` of this process in KiB, on Linux.
pub(crate) fn peak_rss_kib() -> Option<u64> {
    vm_hwm(&std::fs::read_to_string("/proc/self/status").ok()?)
}

fn vm_hwm(status: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.trim().strip_suffix("kB")?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_peak_is_read_from_the_line_that_has_it() {
        assert_eq!(vm_hwm("Name:\tx\nVmPeak:\t  99 kB\nVmHWM:\t   12345 kB\nVmRSS:\t 1 kB\n"), Some(12345));
        assert_eq!(vm_hwm("Name:\tx\n"), None);
    }

    #[test]
    fn the_table_is_aligned() {
        let report = Report {
            killed: Some(3),
            peak_rss_kib: Some(2048),
            convergence: Duration::from_secs(2),
            ..Report::default()
        };
        let text = report.to_string();
        let value_end = |line: &str| line.bytes().take(46).count() == 46 && line.as_bytes()[45] != b' ';
        assert!(text.lines().all(value_end), "{text}");
        let row = "\ntime to convergence                    2000 ms  0.00 ms after the last change\n";
        assert!(text.contains(row), "{text}");
        assert!(text.contains("\npeak RSS                               2.0 MiB\n"), "{text}");
    }
}
