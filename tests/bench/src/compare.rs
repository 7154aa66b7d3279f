//! Everything with everybody: a list, a list of metadata alone and a watch, and what steersman costs in each beside the best of
//! the peers.

use std::fmt::Write as _;

use serde_json::{Value, json};

use crate::args::Args;
use crate::contest::{self, Contestant};
use crate::table::median;
use crate::{chart, peer, table};

/// Pods of the watch, unless there are fewer.
const WATCHED: u64 = 10_000;

/// What was measured, less of each being better.
#[derive(Debug)]
pub(crate) struct Comparison {
    /// The contestants, ours before the peers.
    pub names: Vec<String>,
    /// How many of them are ours.
    pub ours: usize,
    pub groups: Vec<Group>,
}

/// The figures of one contest.
#[derive(Debug)]
pub(crate) struct Group {
    /// What was done.
    pub title: String,
    pub rows: Vec<Row>,
}

/// One figure of every contestant.
#[derive(Debug)]
pub(crate) struct Row {
    /// What and in which unit.
    pub name: &'static str,
    pub places: usize,
    pub medians: Vec<f64>,
    /// The largest distance of a run from the median of its contestant, as a part of that median.
    pub spread: f64,
}

impl Row {
    fn new(
        name: &'static str,
        places: usize,
        contestants: &[Contestant],
        of: impl Fn(&Value) -> f64,
    ) -> Self {
        let mut row = Self { name, places, medians: Vec::new(), spread: 0.0 };
        for contestant in contestants {
            let runs: Vec<f64> = contestant.runs.iter().map(&of).collect();
            let middle = median(runs.clone());
            row.spread = runs.iter().fold(row.spread, |most, run| most.max((run / middle - 1.0).abs()));
            row.medians.push(middle);
        }
        row
    }

    /// A figure as text.
    pub(crate) fn text(&self, figure: f64) -> String {
        format!("{figure:.*}", self.places)
    }

    /// How many times the best of the peers each of ours needs.
    fn ratios(&self, ours: usize) -> Option<Vec<f64>> {
        let (ours, peers) = self.medians.split_at(ours);
        let best = peers.iter().copied().min_by(f64::total_cmp)?;
        Some(ours.iter().map(|figure| figure / best).collect())
    }
}

/// Runs the three contests and prints their table.
///
/// # Errors
/// If the words make no sense, or somebody fails.
pub(crate) fn run(words: &[String]) -> Result<(), String> {
    let parse = |watch| Args::parse(watch, words.iter().cloned());
    let (mut list, mut watch) = (parse(false)?, parse(true)?);
    if list.metadata {
        return Err("--metadata: `compare` asks for whole pods and for metadata alone".to_owned());
    }
    list.events = 0;
    watch.objects = list.objects.min(WATCHED);
    for args in [&mut list, &mut watch] {
        args.peers.get_or_insert_with(|| peer::ALL.to_vec());
    }
    let metadata = Args { metadata: true, ..list.clone() };
    let mut comparison = Comparison { names: Vec::new(), ours: list.executors.len(), groups: Vec::new() };
    let mut all = serde_json::Map::new();
    for (name, args) in [("list", &list), ("metadata", &metadata), ("watch", &watch)] {
        let contestants = contest::hold(args)?;
        comparison.names = contestants.iter().map(|c| c.name.clone()).collect();
        comparison.groups.push(Group { title: title(args), rows: rows(args, &contestants) });
        all.insert(name.to_owned(), table::json(args, &contestants));
    }
    println!("Pods of {} bytes; medians of {}, in turns. Less is better.\n", list.size, list.runs);
    print!("{}", comparison.table());
    if let Some(path) = &list.json {
        all.insert("figures".to_owned(), comparison.json());
        contest::write(path, &(Value::Object(all).to_string() + "\n"))?;
    }
    if let Some(path) = &list.svg {
        contest::write(path, &chart::svg(&comparison))?;
    }
    Ok(())
}

fn title(args: &Args) -> String {
    match (args.watch, args.metadata) {
        (true, _) => format!("{} events of {} pods", args.events, args.objects),
        (false, true) => format!("first state of {} pods, metadata alone", args.objects),
        (false, false) => format!("first state of {} pods", args.objects),
    }
}

fn rows(args: &Args, contestants: &[Contestant]) -> Vec<Row> {
    let number = |run: &Value, name: &str| run[name].as_f64().unwrap_or(f64::NAN);
    let (time, cpu, many) = if args.watch {
        (("time us/event", 1, "time"), "CPU us/event", args.events as f64)
    } else {
        (("time us/pod", 1, "sync"), "CPU us/pod", args.objects as f64)
    };
    let row = |name, places, key: &'static str, part: f64| {
        Row::new(name, places, contestants, move |run| number(run, key) / part)
    };
    vec![
        row(time.0, time.1, time.2, many / 1e6),
        row(cpu, 1, "cpu", many / 1e6),
        row("resident MB", 1, "resident", 1e6),
        row("peak MB", 1, "peak", 1e6),
    ]
}

impl Comparison {
    /// For people.
    fn table(&self) -> String {
        let (ours, _) = self.names.split_at(self.ours);
        let with_peers = self.names.len() > self.ours;
        let mut heads = self.names.clone();
        if with_peers {
            heads.extend(ours.iter().map(|name| format!("{name} : best peer")));
        }
        heads.push("spread".to_owned());
        let mut text = format!("| | {} |\n|---|{}\n", heads.join(" | "), "--:|".repeat(heads.len()));
        for group in &self.groups {
            let _ = writeln!(text, "| **{}** |{}", group.title, " |".repeat(heads.len()));
            for row in &group.rows {
                let mut cells: Vec<String> = row.medians.iter().map(|m| row.text(*m)).collect();
                cells.extend(row.ratios(self.ours).into_iter().flatten().map(|r| format!("{r:.2}")));
                cells.push(format!("{:.0} %", row.spread * 100.0));
                let _ = writeln!(text, "| {} | {} |", row.name, cells.join(" | "));
            }
        }
        text
    }

    /// For programs.
    fn json(&self) -> Value {
        let row = |title: &str, row: &Row| {
            json!({
                "contest": title,
                "figure": row.name,
                "medians": self.names.iter().cloned().zip(row.medians.iter().copied().map(Value::from))
                    .collect::<serde_json::Map<_, _>>(),
                "to_best_peer": row.ratios(self.ours),
                "spread": row.spread,
            })
        };
        self.groups.iter().flat_map(|g| g.rows.iter().map(|r| row(&g.title, r))).collect()
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    fn contestant(name: &str, runs: &[f64]) -> Contestant {
        Contestant::of_runs(name, runs.iter().map(|n| json!({ "cpu": n })).collect())
    }

    /// Two of ours, and `peers`.
    pub(crate) fn comparison(peers: &[(&str, f64)]) -> Comparison {
        let mut all = vec![contestant("threads", &[2.0, 1.0, 9.0]), contestant("smol", &[3.0])];
        all.extend(peers.iter().map(|(name, n)| contestant(name, &[*n])));
        let row = Row::new("CPU s", 1, &all, |run| run["cpu"].as_f64().unwrap());
        let group = Group { title: "a <contest>".to_owned(), rows: vec![row] };
        Comparison { names: all.into_iter().map(|c| c.name).collect(), ours: 2, groups: vec![group] }
    }

    #[test]
    fn ours_stand_beside_the_best_of_the_peers() {
        let all = comparison(&[("a", 5.0), ("b", 4.0)]);
        let table = all.table();
        assert!(table.contains("| CPU s | 2.0 | 3.0 | 5.0 | 4.0 | 0.50 | 0.75 | 350 % |"), "{table}");
        assert!(
            table.starts_with("| | threads | smol | a | b | threads : best peer | smol : best peer |"),
            "{table}"
        );
        assert_eq!(all.json()[0]["to_best_peer"], json!([0.5, 0.75]));
    }

    #[test]
    fn without_peers_there_is_no_ratio() {
        let all = comparison(&[]);
        assert!(all.table().contains("| CPU s | 2.0 | 3.0 | 350 % |"), "{}", all.table());
        assert!(all.json()[0]["to_best_peer"].is_null());
    }
}
