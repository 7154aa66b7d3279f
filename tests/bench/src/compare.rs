//! Everything with everybody, one contest after the other.

use serde_json::Value;

use crate::args::Args;
use crate::comparison::{Figure, Group};
use crate::{chart, contest, peer, program, table};

/// Pods of a watch, unless there are fewer.
const WATCHED: u64 = 10_000;
/// Events a second where it is asked how late a reconcile is, and for how many seconds.
const RATE: u64 = 2_000;
const SECONDS: u64 = 10;

/// One thing to do.
struct Contest {
    name: &'static str,
    title: String,
    args: Args,
    figures: Vec<Figure>,
}

/// Runs the contests and prints their tables.
///
/// # Errors
/// If the words make no sense, or somebody fails.
pub(crate) fn run(words: &[String]) -> Result<(), String> {
    let (list, contests) = contests(words)?;
    let (mut groups, mut all) = (Vec::new(), serde_json::Map::new());
    for contest in contests {
        let mut contestants = contest::hold(&contest.args)?;
        if contest.figures.iter().any(|f| f.key == "packages") {
            program::tell(&mut contestants);
        }
        groups.push(Group::new(contest.title, &contestants, &contest.figures));
        all.insert(contest.name.to_owned(), table::json(&contest.args, &contestants));
    }
    println!("Pods of {} bytes; medians of {}, in turns. Ratios below 1 are better.", list.size, list.runs);
    for group in &groups {
        print!("\n{}", group.table());
    }
    if let Some(path) = &list.json {
        all.insert("figures".to_owned(), Value::Array(groups.iter().flat_map(Group::json).collect()));
        contest::write(path, &(Value::Object(all).to_string() + "\n"))?;
    }
    if let Some(path) = &list.svg {
        contest::write(path, &chart::svg(&groups))?;
    }
    Ok(())
}

fn contests(words: &[String]) -> Result<(Args, Vec<Contest>), String> {
    let parse = |watch| Args::parse(watch, words.iter().cloned());
    let (mut list, mut watch) = (parse(false)?, parse(true)?);
    for (option, given) in [("--metadata", list.metadata), ("--streaming", list.streaming)] {
        if given {
            return Err(format!("{option}: `compare` has a contest of it"));
        }
    }
    list.events = 0;
    watch.objects = list.objects.min(WATCHED);
    for args in [&mut list, &mut watch] {
        args.peers.get_or_insert_with(|| peer::ALL.to_vec());
        args.limit = true;
    }
    let late = Args { rate: RATE, events: watch.events.min(RATE * SECONDS), ..watch.clone() };
    let (pods, events) = (list.objects, watch.events);
    let mut all = vec![
        Contest {
            name: "list",
            title: format!("first state of {pods} pods"),
            figures: first_state(&list),
            args: list.clone(),
        },
        Contest {
            name: "streaming",
            title: format!("first state of {pods} pods, streaming list"),
            figures: first_state(&list),
            args: Args { streaming: true, ..list.clone() },
        },
        Contest {
            name: "metadata",
            title: format!("first state of {pods} pods, metadata alone"),
            figures: first_state(&list),
            args: Args { metadata: true, ..list.clone() },
        },
        Contest {
            name: "watch",
            title: format!("{} pods reconciled, then {events} events", watch.objects),
            figures: events_of(&watch),
            args: watch,
        },
        Contest {
            name: "latency",
            title: format!("{} events at {RATE} a second", late.events),
            figures: lateness(&late),
            args: late,
        },
        Contest {
            name: "idle",
            title: "one pod and nothing to do".to_owned(),
            figures: idle(),
            args: Args { objects: 1, ..list.clone() },
        },
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
        figure("max us", 0, "max", 1e6),
        figure("CPU us/event", 1, "cpu", 1e6 / events),
    ]
}

fn idle() -> Vec<Figure> {
    vec![
        Figure { charted: true, ..figure("start ms", 1, "start", 1e3) },
        Figure { charted: true, ..figure("resident MB", 1, "resident", 1e-6) },
        figure("threads", 0, "threads", 1.0),
        Figure { charted: true, ..figure("stripped MB", 1, "stripped", 1e-6) },
        figure("packages", 0, "packages", 1.0),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(line: &str) -> Result<Vec<Contest>, String> {
        contests(&line.split_whitespace().map(str::to_owned).collect::<Vec<_>>()).map(|(_, all)| all)
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
            ]
        );
        assert!(all.iter().all(|c| c.args.limit && c.args.peers.as_ref().is_some_and(Vec::is_empty)));
    }

    #[test]
    fn some_can_be_chosen_and_nonsense_is_named() {
        let names: Vec<_> = of("--contest idle --contest list").unwrap().iter().map(|c| c.name).collect();
        assert_eq!(names, ["list", "idle"]);
        for (line, named) in [("--contest race", "\"race\""), ("--metadata", "--metadata")] {
            assert!(of(line).err().unwrap().contains(named));
        }
    }
}
