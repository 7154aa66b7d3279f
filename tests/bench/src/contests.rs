//! The contests of `compare`: what is done in each, and which figures count.

use crate::args::Args;
use crate::comparison::Figure;
use crate::peer;

/// Pods of a watch, unless there are fewer.
const WATCHED: u64 = 10_000;
/// Events a second where it is asked how late a reconcile is, and for how many seconds.
const RATE: u64 = 2_000;
const SECONDS: u64 = 10;
/// Controllers that share a watch, unless their number is said.
const CONTROLLERS: u64 = 200;

/// One thing to do.
pub(crate) struct Contest {
    pub name: &'static str,
    pub title: String,
    pub args: Args,
    /// The same without what is asked about, to stand beside it.
    pub base: Option<Args>,
    pub figures: Vec<Figure>,
}

impl Contest {
    fn new(name: &'static str, title: String, args: Args, figures: Vec<Figure>) -> Self {
        Self { name, title, args, base: None, figures }
    }
}

/// What was asked for in general, and the contests of it.
///
/// # Errors
/// If the words make no sense.
pub(crate) fn of_words(words: &[String]) -> Result<(Args, Vec<Contest>), String> {
    let parse = |watch| Args::parse(watch, words.iter().cloned());
    let (mut list, mut watch) = (parse(false)?, parse(true)?);
    for (option, given) in [
        ("--metadata", list.metadata),
        ("--streaming", list.streaming),
        ("--requeue", list.requeue),
        ("--parse", list.parse),
    ] {
        if given {
            return Err(format!("{option}: `compare` has a contest of it"));
        }
    }
    list.events = 0;
    watch.objects = list.objects.min(WATCHED);
    let controllers = if watch.controllers > 1 { watch.controllers } else { CONTROLLERS };
    (list.controllers, watch.controllers) = (1, 1);
    for args in [&mut list, &mut watch] {
        args.peers.get_or_insert_with(|| peer::ALL.to_vec());
        args.limit = true;
    }
    // What it costs to keep objects packed is a question where there are many.
    let compact = !words.iter().any(|word| word == "--executor");
    let packed = |args: &Args| {
        let mut args = args.clone();
        if compact {
            args.executors.push("threads-compact".to_owned());
        }
        args
    };
    let late = Args { rate: RATE, events: watch.events.min(RATE * SECONDS), ..watch.clone() };
    let (pods, events) = (list.objects, watch.events);
    // No limit in what it does not do.
    let timers = Args { metadata: true, requeue: true, objects: list.objects, limit: false, ..watch.clone() };
    let parsing = Args { parse: true, limit: false, ..watch.clone() };
    let sharing = Args { controllers, limit: false, ..watch.clone() };
    let spike = Args { spike: true, limit: false, ..list.clone() };
    let mut all = vec![
        Contest::new("list", format!("first state of {pods} pods"), packed(&list), first_state(&list)),
        Contest::new(
            "streaming",
            format!("first state of {pods} pods, streaming list"),
            Args { streaming: true, ..packed(&list) },
            first_state(&list),
        ),
        Contest::new(
            "metadata",
            format!("first state of {pods} pods, metadata alone"),
            Args { metadata: true, ..list.clone() },
            first_state(&list),
        ),
        Contest::new(
            "watch",
            format!("{} pods reconciled, then {events} events", watch.objects),
            packed(&watch),
            events_of(&watch),
        ),
        Contest::new(
            "latency",
            format!("{} events at {RATE} a second", late.events),
            late.clone(),
            lateness(&late),
        ),
        Contest::new(
            "idle",
            "one pod and nothing to do".to_owned(),
            // Starts are short and differ much.
            Args { objects: 1, runs: 4 * list.runs + 1, ..list.clone() },
            idle(),
        ),
        Contest {
            base: Some(Args { parse: false, ..parsing.clone() }),
            ..Contest::new(
                "parse",
                format!("{} pods, {events} events, each reconcile decodes its pod", parsing.objects),
                parsing.clone(),
                parsed(&parsing),
            )
        },
        Contest {
            base: Some(Args { requeue: false, ..timers.clone() }),
            ..Contest::new(
                "timers",
                format!("metadata of {pods} pods, each to be reconciled again in an hour; {events} events"),
                timers.clone(),
                pending(&timers),
            )
        },
        Contest {
            base: Some(Args { controllers: 1, ..sharing.clone() }),
            ..Contest::new(
                "sharing",
                format!("{} pods, {controllers} controllers, {events} events", sharing.objects),
                sharing.clone(),
                shared(&sharing),
            )
        },
        Contest::new(
            "spike",
            format!("{pods} pods, listed anew, then 1 in 100 is left"),
            spike.clone(),
            spiked(&spike),
        ),
    ];
    if let Some(other) = list.contests.iter().find(|name| all.iter().all(|c| c.name != **name)) {
        let names: Vec<_> = all.iter().map(|c| c.name).collect();
        return Err(format!("no contest is called {other:?}; there are: {}", names.join(", ")));
    }
    all.retain(|c| list.contests.is_empty() || list.contests.iter().any(|name| name == c.name));
    Ok((list, all))
}

/// A figure of which less is better, not charted.
pub(crate) const fn figure(name: &'static str, places: usize, key: &'static str, times: f64) -> Figure {
    Figure { name, places, key, times, rate: false, charted: false }
}

fn memory(args: &Args) -> [Figure; 2] {
    let pods = args.objects as f64;
    [figure("resident B/pod", 0, "resident", 1.0 / pods), figure("peak B/pod", 0, "peak", 1.0 / pods)]
        .map(|f| Figure { charted: !args.watch, ..f })
}

fn first_state(args: &Args) -> Vec<Figure> {
    let pods = args.objects as f64;
    let mut figures = vec![
        figure("wall s", 2, "sync", 1.0),
        Figure { charted: true, ..figure("CPU us/pod", 1, "cpu", 1e6 / pods) },
    ];
    figures.extend(memory(args));
    figures
}

fn events_of(args: &Args) -> Vec<Figure> {
    let (pods, events) = (args.objects as f64, args.events as f64);
    let mut figures = vec![
        Figure { rate: true, ..figure("first reconciles/s", 0, "first", pods) },
        Figure { rate: true, ..figure("events/s", 0, "time", events) },
        Figure { charted: true, ..figure("CPU us/event", 1, "cpu", 1e6 / events) },
    ];
    figures.extend(memory(args));
    figures
}

fn lateness(args: &Args) -> Vec<Figure> {
    let events = args.events as f64;
    vec![
        Figure { charted: true, ..figure("p50 us", 0, "p50", 1e6) },
        Figure { charted: true, ..figure("p99 us", 0, "p99", 1e6) },
        figure("later p99 us", 0, "later_p99", 1e6),
        figure("max us", 0, "max", 1e6),
        figure("CPU us/event", 1, "cpu", 1e6 / events),
    ]
}

fn idle() -> Vec<Figure> {
    vec![
        Figure { charted: true, ..figure("start ms", 1, "start", 1e3) },
        figure("exec to main ms", 1, "exec", 1e3),
        figure("main to list ms", 1, "ask", 1e3),
        Figure { charted: true, ..figure("resident MB", 1, "resident", 1e-6) },
        figure("threads", 0, "threads", 1.0),
        Figure { charted: true, ..figure("stripped MB", 1, "stripped", 1e-6) },
        figure("packages", 0, "packages", 1.0),
    ]
}

fn parsed(args: &Args) -> Vec<Figure> {
    let events = args.events as f64;
    vec![
        Figure { charted: true, ..figure("CPU us/event", 1, "cpu", 1e6 / events) },
        figure("without", 1, "base_cpu", 1e6 / events),
        figure("decoded/reconcile", 2, "parses", 1.0),
        figure("reconciles by metadata alone", 2, "metadata_alone", 1.0),
    ]
}

fn pending(args: &Args) -> Vec<Figure> {
    let (pods, events) = (args.objects as f64, args.events as f64);
    vec![
        Figure { charted: true, ..figure("B/timer", 0, "more_resident", 1.0 / pods) },
        figure("resident B/pod", 0, "resident", 1.0 / pods),
        figure("CPU us/event", 1, "cpu", 1e6 / events),
        figure("without timers", 1, "base_cpu", 1e6 / events),
    ]
}

fn shared(args: &Args) -> Vec<Figure> {
    let (others, events) = ((args.controllers.max(2) - 1) as f64, args.events as f64);
    vec![
        figure("watches", 0, "watches", 1.0),
        Figure { charted: true, ..figure("CPU us/event", 1, "cpu", 1e6 / events) },
        figure("with one", 1, "base_cpu", 1e6 / events),
        Figure { charted: true, ..figure("resident MB", 1, "resident", 1e-6) },
        figure("KB/controller", 1, "more_resident", 1e-3 / others),
        figure("threads", 0, "threads", 1.0),
    ]
}

fn spiked(args: &Args) -> Vec<Figure> {
    vec![
        figure("resident MB", 1, "resident", 1e-6),
        Figure { charted: true, ..figure("peak of a relist : resident", 2, "relist_peak_part", 1.0) },
        figure("CPU us/pod relisted", 1, "relist_cpu", 1e6 / args.objects as f64),
        figure("MB after", 1, "after_resident", 1e-6),
        Figure { charted: true, ..figure("part kept", 2, "after_resident_part", 1.0) },
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(line: &str) -> Result<Vec<Contest>, String> {
        of_words(&line.split_whitespace().map(str::to_owned).collect::<Vec<_>>()).map(|(_, all)| all)
    }

    #[test]
    fn contests_differ_in_what_they_ask_for() {
        let all = of("--objects 50000 --events 70000 --peer none").unwrap();
        let seen: Vec<_> = all
            .iter()
            .map(|c| (c.name, c.args.objects, c.args.events, c.args.rate, c.args.streaming, c.args.metadata))
            .collect();
        assert_eq!(
            seen,
            [
                ("list", 50_000, 0, 0, false, false),
                ("streaming", 50_000, 0, 0, true, false),
                ("metadata", 50_000, 0, 0, false, true),
                ("watch", 10_000, 70_000, 0, false, false),
                ("latency", 10_000, 20_000, 2_000, false, false),
                ("idle", 1, 0, 0, false, false),
                ("parse", 10_000, 70_000, 0, false, false),
                ("timers", 50_000, 70_000, 0, false, true),
                ("sharing", 10_000, 70_000, 0, false, false),
                ("spike", 50_000, 0, 0, false, false),
            ]
        );
        assert!(all.iter().all(|c| c.args.peers.as_ref().is_some_and(Vec::is_empty)));
        for contest in all {
            let Args { limit, requeue, controllers, spike, .. } = contest.args;
            let base = contest.base.map(|b| (b.requeue, b.controllers));
            let expected = match contest.name {
                "timers" => (false, true, 1, false, Some((false, 1))),
                "parse" => (false, false, 1, false, Some((false, 1))),
                "sharing" => (false, false, CONTROLLERS, false, Some((false, 1))),
                "spike" => (false, false, 1, true, None),
                _ => (true, false, 1, false, None),
            };
            assert_eq!((limit, requeue, controllers, spike, base), expected, "{}", contest.name);
        }
    }

    #[test]
    fn some_can_be_chosen_and_nonsense_is_named() {
        let names: Vec<_> = of("--contest idle --contest list").unwrap().iter().map(|c| c.name).collect();
        assert_eq!(names, ["list", "idle"]);
        for (line, named) in
            [("--contest race", "\"race\""), ("--metadata", "--metadata"), ("--requeue", "--requeue")]
        {
            assert!(of(line).err().unwrap().contains(named));
        }
    }
}
