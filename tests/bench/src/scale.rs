//! The same watch with few and with many pods: whether what an event costs hangs on how many objects there are.

use std::fmt::Write as _;

use serde_json::{Map, Value};

use crate::args::Args;
use crate::comparison::{Figure, Group};
use crate::contest;
use crate::plot::{self, Line};
use crate::table;

/// Runs the watch with each number of pods and prints one table.
///
/// # Errors
/// If somebody fails.
pub(crate) fn run(args: &Args) -> Result<(), String> {
    let (mut groups, mut all) = (Vec::new(), Map::new());
    for &objects in &args.sizes {
        let mut args = Args { objects, ..args.clone() };
        if objects > args.peer_objects {
            args.peers = None;
        }
        let contestants = contest::hold(&args, None)?;
        all.insert(objects.to_string(), table::json(&args, &contestants));
        groups.push((objects, Group::new(format!("{objects} pods"), &contestants, &figures(&args))));
    }
    println!(
        "Pods of {} bytes, reconciled, then {} events; medians of {}, in turns.\n",
        args.size, args.events, args.runs
    );
    print!("{}", text(&groups));
    if let Some(path) = &args.json {
        let figures = groups.iter().flat_map(|(_, group)| group.json()).collect();
        all.insert("figures".to_owned(), Value::Array(figures));
        contest::write(path, &(Value::Object(all).to_string() + "\n"))?;
    }
    if let Some(path) = &args.svg {
        contest::write(path, &plot::svg("CPU of an event by the number of pods", "us", &lines(&groups)))?;
    }
    Ok(())
}

fn figures(args: &Args) -> [Figure; 6] {
    let (pods, events) = (args.objects as f64, args.events as f64);
    let figure = |name, places, key, times| Figure { name, places, key, times, rate: false, charted: false };
    [
        figure("CPU us/event", 1, "cpu", 1e6 / events),
        // Several events of one pod may be one, the more so the fewer pods there are.
        figure("reconciles/event", 2, "reconciles", 1.0 / events),
        figure("CPU us/pod until reconciled", 1, "first_cpu", 1e6 / pods),
        Figure { rate: true, ..figure("first reconciles/s", 0, "first", pods) },
        figure("resident B/pod", 0, "resident", 1.0 / pods),
        figure("resident MB", 1, "resident", 1e-6),
    ]
}

/// A line for each contestant with each number of pods.
fn text(groups: &[(u64, Group)]) -> String {
    let heads: Vec<_> = groups[0].1.rows.iter().map(|r| r.what.name).collect();
    let mut text = format!("| pods | | {} |\n|--:|---|{}\n", heads.join(" | "), "--:|".repeat(heads.len()));
    for (objects, group) in groups {
        for (n, (name, _)) in group.names.iter().enumerate() {
            let cells: Vec<_> = group.rows.iter().map(|row| row.what.text(row.medians[n])).collect();
            let _ = writeln!(text, "| {objects} | {name} | {} |", cells.join(" | "));
        }
    }
    text
}

/// The cost of an event, a line a contestant.
fn lines(groups: &[(u64, Group)]) -> Vec<Line> {
    let mut lines: Vec<Line> = Vec::new();
    for (objects, group) in groups {
        for ((name, kind), cost) in group.names.iter().zip(&group.rows[0].medians) {
            let line = match lines.iter_mut().find(|l| l.name == *name) {
                Some(line) => line,
                None => {
                    lines.push(Line { name: name.clone(), kind: *kind, points: Vec::new() });
                    lines.last_mut().expect("it was put there")
                }
            };
            line.points.push((*objects as f64, *cost));
        }
    }
    lines
}
