//! What a process costs, as the kernel counts it. The contestants share this file, whatever they are built with.

use std::fs;
use std::time::Duration;

/// What this process holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Held {
    /// Bytes of memory that are resident now.
    pub resident: u64,
    /// The most bytes that ever were.
    pub peak: u64,
    pub threads: u64,
}

/// From `/proc`; zeros where there is none.
#[must_use]
pub(crate) fn held() -> Held {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let field = |name: &str| {
        let line = status.lines().find_map(|l| l.strip_prefix(name)).unwrap_or_default();
        line.trim_end_matches("kB").trim().parse::<u64>().unwrap_or(0)
    };
    Held { resident: field("VmRSS:") * 1024, peak: field("VmHWM:") * 1024, threads: field("Threads:") }
}

/// Time that all threads of this process, also those that ended, have used: user and system. In steps of 10 ms.
#[must_use]
pub(crate) fn cpu() -> Duration {
    let stat = fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // The name, in brackets, may hold anything; `utime` and `stime` are the 12th and 13th word after it.
    let words = stat.rsplit_once(')').map_or("", |(_, rest)| rest).split_whitespace();
    let ticks: u64 = words.skip(11).take(2).filter_map(|w| w.parse::<u64>().ok()).sum();
    // `USER_HZ` is 100 on every architecture of today.
    Duration::from_millis(10 * ticks)
}
