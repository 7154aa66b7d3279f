//! Draws faults from a seed. Each seed switches on its own few kinds, with its own weights ("swarm testing", Groce et al.,
//! ISSTA 2012): a run with everything at once hides what one kind alone would show.

use std::ops::Range;
use std::time::Duration;

use steersman_core::rng::Rng;
use steersman_core::time::Time;

use crate::faults::{Fault, Ill, Moment, What, When};

/// What there is to disturb.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// How many processes.
    pub replicas: usize,
    /// How many servers, the one that writes included.
    pub servers: usize,
    /// Faults happen before this.
    pub window: Duration,
    /// Most faults.
    pub most: u64,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    CrashAtMoment,
    CrashAtTime,
    Stop,
    Pause,
    Clock,
    Partition,
    Blind,
    Reset,
    Cut,
    HalfOpen,
    Refuse,
    Slow,
    Loss,
    ServerRestart,
    Compact,
    NoBookmarks,
    Freeze,
    Lead,
    Answer,
    Trigger,
}

const KINDS: [Kind; 20] = [
    Kind::CrashAtMoment,
    Kind::CrashAtTime,
    Kind::Stop,
    Kind::Pause,
    Kind::Clock,
    Kind::Partition,
    Kind::Blind,
    Kind::Reset,
    Kind::Cut,
    Kind::HalfOpen,
    Kind::Refuse,
    Kind::Slow,
    Kind::Loss,
    Kind::ServerRestart,
    Kind::Compact,
    Kind::NoBookmarks,
    Kind::Freeze,
    Kind::Lead,
    Kind::Answer,
    Kind::Trigger,
];

/// The faults of a seed.
pub(crate) fn draw(seed: u64, shape: &Shape) -> Vec<Fault> {
    let mut rng = Rng::new(seed ^ 0x005E_ED0F_FA17);
    let mut kinds: Vec<(Kind, u64)> = Vec::new();
    for kind in KINDS {
        let needs_followers = matches!(kind, Kind::Freeze | Kind::Lead);
        if rng.below(3) == 0 && (!needs_followers || shape.servers > 1) {
            kinds.push((kind, 1 + rng.below(8)));
        }
    }
    if kinds.is_empty() {
        kinds.push((Kind::CrashAtMoment, 1));
    }
    let total: u64 = kinds.iter().map(|(_, weight)| weight).sum();
    let mut faults: Vec<Fault> = (0..=rng.below(shape.most))
        .map(|_| {
            let mut at = rng.below(total);
            let kind = kinds.iter().find(|(_, weight)| {
                let hit = at < *weight;
                at = at.wrapping_sub(*weight);
                hit
            });
            one(kind.map_or(Kind::Reset, |(kind, _)| *kind), &mut rng, shape)
        })
        .collect();
    faults.sort_by_key(|f| f.when);
    faults
}

/// Between `range` milliseconds, short ones as likely as long ones.
fn lasting(rng: &mut Rng, range: Range<u64>) -> Duration {
    let (low, high) = ((range.start.max(1) as f64).ln(), (range.end as f64).ln());
    let unit = rng.below(1 << 20) as f64 / f64::from(1u32 << 20);
    Duration::from_millis((low + (high - low) * unit).exp() as u64)
}

fn one(kind: Kind, rng: &mut Rng, shape: &Shape) -> Fault {
    let replica = rng.below(shape.replicas.max(1) as u64) as usize;
    let server = rng.below(shape.servers.max(1) as u64) as usize;
    let window = u64::try_from(shape.window.as_millis()).unwrap_or(u64::MAX);
    // Most of what a controller does it does soon after something happened: early times are more likely.
    let time = match rng.below(3) {
        0 => Time::from_nanos(rng.below(1 + window.min(1_000) * 1_000_000)),
        _ => Time::from_nanos(rng.below(1 + window.saturating_mul(1_000_000))),
    };
    let which = rng.below(8) as usize;
    let what = match kind {
        Kind::CrashAtMoment | Kind::CrashAtTime => {
            What::Crash { replica, down: lasting(rng, 1..20_000), silent: rng.below(4) == 0 }
        }
        Kind::Stop => What::Stop { replica, down: lasting(rng, 1..10_000) },
        Kind::Pause => What::Pause { replica, lasts: lasting(rng, 1..40_000) },
        Kind::Clock => {
            let far = lasting(rng, 1..100_000_000).as_millis() as i64;
            What::Clock { replica, by: if rng.below(2) == 0 { far } else { -far } }
        }
        Kind::Partition => What::Partition { replica, server, lasts: lasting(rng, 10..120_000) },
        Kind::Blind => What::Blind { replica, lasts: lasting(rng, 10..30_000) },
        Kind::Reset => What::Reset { replica },
        Kind::Cut => What::Cut { replica, which, after: rng.below(2_000) as usize },
        Kind::HalfOpen => What::HalfOpen { replica, which },
        Kind::Refuse => What::Refuse { server, lasts: lasting(rng, 10..20_000) },
        Kind::Slow => What::Slow { replica, lasts: lasting(rng, 100..20_000) },
        Kind::Loss => What::Loss { replica, share: 1 + rng.below(400), lasts: lasting(rng, 100..30_000) },
        Kind::ServerRestart => What::ServerRestart { server, down: lasting(rng, 1..20_000) },
        Kind::Compact => What::Compact,
        Kind::NoBookmarks => What::NoBookmarks { lasts: lasting(rng, 1_000..300_000) },
        Kind::Freeze => {
            What::Freeze { server: 1 + server % (shape.servers.max(2) - 1), lasts: lasting(rng, 100..60_000) }
        }
        Kind::Lead => What::Lead { replica, server, lasts: lasting(rng, 1_000..60_000) },
        Kind::Answer => {
            let ill = match rng.below(8) {
                0 => Ill::Conflict,
                1 => Ill::TooMany(rng.below(5) as u32),
                2 => Ill::Error,
                3 => Ill::Unavailable,
                4 => Ill::Hang,
                5 => Ill::Drop,
                6 => Ill::DropAfter,
                _ => Ill::Twice,
            };
            let verbs = ["get", "list", "watch", "create", "update", "patch", "delete"];
            let verb = (rng.below(2) == 0).then(|| verbs[rng.below(verbs.len() as u64) as usize].to_owned());
            What::Answer { ill, verb, replica: None, skip: 0, times: 1 + rng.below(5) as u32 }
        }
        Kind::Trigger => What::Trigger { replica },
    };
    let when = match kind {
        Kind::CrashAtMoment => {
            let n = 1 + rng.below(12);
            let moment = match rng.below(5) {
                0 => Moment::Effect(1 + rng.below(60)),
                1 => Moment::BeforeWrite(n),
                2 => Moment::AfterWrite(n),
                3 => Moment::BeforeAnswer(n),
                _ => Moment::Start(2),
            };
            When::In { replica, moment }
        }
        Kind::CrashAtTime => When::At(time),
        // Disturbances close to what matters find more.
        _ if rng.below(4) == 0 => When::Commit(1 + rng.below(20)),
        _ => When::At(time),
    };
    Fault { when, what }
}
