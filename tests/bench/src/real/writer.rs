//! Changes at a rate.

use std::thread;
use std::time::{Duration, Instant};

use super::cluster::{Folder, IN_FLIGHT, at_once};
use super::objects;
use crate::args::Args;
use crate::contestant::nanos_since_1970;

/// What became of the changes.
pub(super) struct Written {
    /// How many were answered a second.
    pub rate: f64,
    /// From the moment at which a patch was sent until it was answered, in seconds.
    pub p50: f64,
    pub p99: f64,
}

/// Patches one object after the other, events `before + 1` to `before + events`; the last one alone and after all others,
/// since with it everybody is done.
///
/// # Errors
/// If the server refuses one.
pub(super) fn change(folder: &Folder, args: &Args, before: u64) -> Result<Written, String> {
    let path = folder.path(args.resource);
    let began = Instant::now();
    let patch = |event: u64| {
        if let Some(nanos) = (event - 1).saturating_mul(1_000_000_000).checked_div(args.rate) {
            let due = Duration::from_nanos(nanos);
            while began.elapsed() < due {
                thread::park_timeout(due.saturating_sub(began.elapsed()));
            }
        }
        let sent = Instant::now();
        let path = format!("{path}/{}", objects::name(event % args.objects));
        folder.patch(&path, objects::patch(before + event, nanos_since_1970()))?;
        Ok::<_, String>(sent.elapsed())
    };
    let all = at_once(|thread| {
        (1..args.events)
            .skip(thread as usize)
            .step_by(IN_FLIGHT as usize)
            .map(patch)
            .collect::<Result<Vec<_>, _>>()
    })?;
    let mut all = all.concat();
    all.push(patch(args.events)?);
    let rate = args.events as f64 / began.elapsed().as_secs_f64();
    all.sort_unstable();
    let at = |part: f64| all[((all.len() - 1) as f64 * part) as usize].as_secs_f64();
    Ok(Written { rate, p50: at(0.5), p99: at(0.99) })
}
