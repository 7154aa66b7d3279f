//! The figures: medians for people, every run for programs.

use std::fmt::Write as _;

use serde_json::{Value, json};

use crate::args::Args;
use crate::contest::Contestant;
use crate::pods::{Form, Pods};

/// A column: its head, and a figure of one run.
type Column<'a> = (&'static str, usize, Box<dyn Fn(&Value) -> f64 + 'a>);

/// The median of every figure.
pub(crate) fn table(args: &Args, pods: &Pods, contestants: &[Contestant]) -> String {
    let form = if args.metadata { Form::Metadata } else { Form::Whole };
    let raw = (pods.count() * pods.size(form) as u64) as f64;
    let number = |run: &Value, name: &str| run[name].as_f64().unwrap_or(f64::NAN);
    let (objects, events) = (pods.count() as f64, args.events as f64);
    let columns: Vec<Column<'_>> = if args.watch {
        vec![
            ("first reconciles/s", 0, Box::new(move |r| objects / number(r, "first"))),
            ("events/s", 0, Box::new(move |r| events / number(r, "time"))),
            ("CPU us/event", 2, Box::new(move |r| number(r, "cpu") * 1e6 / events)),
            ("reconciles", 0, Box::new(move |r| number(r, "reconciles"))),
            ("late p50 us", 0, Box::new(move |r| number(r, "p50") * 1e6)),
            ("p99 us", 0, Box::new(move |r| number(r, "p99") * 1e6)),
            ("max us", 0, Box::new(move |r| number(r, "max") * 1e6)),
            ("RSS MB", 1, Box::new(move |r| number(r, "resident") / 1e6)),
            ("peak MB", 1, Box::new(move |r| number(r, "peak") / 1e6)),
        ]
    } else {
        vec![
            ("first state s", 2, Box::new(move |r| number(r, "sync"))),
            ("CPU us/object", 2, Box::new(move |r| number(r, "cpu") * 1e6 / objects)),
            ("start ms", 1, Box::new(move |r| number(r, "start") * 1e3)),
            ("threads", 0, Box::new(move |r| number(r, "threads"))),
            ("RSS MB", 1, Box::new(move |r| number(r, "resident") / 1e6)),
            ("peak MB", 1, Box::new(move |r| number(r, "peak") / 1e6)),
            ("RSS/JSON", 2, Box::new(move |r| number(r, "resident") / raw)),
            ("peak/JSON", 2, Box::new(move |r| number(r, "peak") / raw)),
            ("peak/RSS", 2, Box::new(move |r| number(r, "peak") / number(r, "resident"))),
        ]
    };
    let mut text = String::new();
    let _ = writeln!(
        text,
        "{} pods of {} bytes of JSON each, {} of them managedFields; {:.1} MB. {}. Medians of {}.\n",
        pods.count(),
        pods.size(form),
        pods.managed_fields(),
        raw / 1e6,
        way(args),
        args.runs
    );
    let _ = write!(text, "| {:12} |", "");
    for (head, ..) in &columns {
        let _ = write!(text, " {head} |");
    }
    let _ = writeln!(text, "\n|---|{}", "--:|".repeat(columns.len()));
    for contestant in contestants {
        let _ = write!(text, "| {:12} |", contestant.name);
        for (head, places, figure) in &columns {
            let median = median(contestant.runs.iter().map(figure).collect());
            let _ = write!(text, " {median:>width$.places$} |", width = head.len());
        }
        text.push('\n');
    }
    text
}

fn way(args: &Args) -> String {
    let mut way = match (args.streaming, args.page_size) {
        (true, _) => "Streaming list".to_owned(),
        (false, 0) => "One response".to_owned(),
        (false, n) => format!("Pages of {n}"),
    };
    if args.gzip {
        way += ", gzip";
    }
    if args.metadata {
        way += ", metadata alone";
    }
    if args.watch {
        way += &format!(", then {} events", args.events);
        way += &if args.rate > 0 { format!(" at {} a second", args.rate) } else { " at once".to_owned() };
    }
    way
}

/// Every run of every contestant.
pub(crate) fn json(args: &Args, contestants: &[Contestant]) -> Value {
    let contestants: serde_json::Map<_, _> =
        contestants.iter().map(|c| (c.name.clone(), Value::Array(c.runs.clone()))).collect();
    json!({
        "way": way(args),
        "objects": args.objects,
        "size": args.size,
        "seed": args.seed,
        "contestants": contestants,
    })
}

/// The middle one, or the mean of the two in the middle.
pub(crate) fn median(mut all: Vec<f64>) -> f64 {
    all.sort_by(f64::total_cmp);
    let (low, high) = (all.get((all.len().max(1) - 1) / 2), all.get(all.len() / 2));
    low.zip(high).map_or(f64::NAN, |(a, b)| (a + b) / 2.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_in_the_middle() {
        assert_eq!(median(vec![3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(vec![4.0, 1.0, 2.0, 3.0]), 2.5);
        assert!(median(Vec::new()).is_nan());
    }
}
