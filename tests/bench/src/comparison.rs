//! Medians of all contestants, and what steersman costs beside the best of the peers and beside the limit.

use std::fmt::Write as _;

use serde_json::{Value, json};

use crate::contest::{Contestant, Kind};
use crate::table::median;

/// The figures of one contest.
#[derive(Debug)]
pub(crate) struct Group {
    /// What was done.
    pub title: String,
    /// The contestants.
    pub names: Vec<(String, Kind)>,
    pub rows: Vec<Row>,
}

/// One figure of every contestant.
#[derive(Debug)]
pub(crate) struct Row {
    pub what: Figure,
    /// NaN for one who has none.
    pub medians: Vec<f64>,
    /// The largest distance of a run from the median of its contestant, as a part of that median.
    pub spread: f64,
}

/// How a figure is made of a run and shown.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Figure {
    /// What and in which unit.
    pub name: &'static str,
    pub places: usize,
    /// Which number of a run it is, and by what that is multiplied.
    pub key: &'static str,
    pub times: f64,
    /// More of it is better: the number of the run is a divisor.
    pub rate: bool,
    /// Whether it stands in the chart.
    pub charted: bool,
}

impl Figure {
    fn of(&self, run: &Value) -> f64 {
        let number = run[self.key].as_f64().unwrap_or(f64::NAN);
        if self.rate { self.times / number } else { self.times * number }
    }

    /// As text.
    pub(crate) fn text(&self, figure: f64) -> String {
        if figure.is_nan() { "-".to_owned() } else { format!("{figure:.*}", self.places) }
    }
}

impl Group {
    pub(crate) fn new(title: String, contestants: &[Contestant], figures: &[Figure]) -> Self {
        let names = contestants.iter().map(|c| (c.name.clone(), c.kind)).collect();
        Self { title, names, rows: figures.iter().map(|f| Row::new(*f, contestants)).collect() }
    }

    /// The ratios that there are: their name, and the contestants on both sides; of several the best counts.
    fn ratios(&self) -> Vec<(String, usize, Vec<usize>)> {
        let all = |kind| self.names.iter().enumerate().filter(move |(_, n)| n.1 == kind).map(|(n, _)| n);
        let mut ratios = Vec::new();
        for (name, kind) in [("best peer", Kind::Peer), ("limit", Kind::Limit)] {
            let others: Vec<_> = all(kind).collect();
            if !others.is_empty() {
                ratios.extend(
                    all(Kind::Ours).map(|n| (format!("{} : {name}", self.names[n].0), n, others.clone())),
                );
            }
        }
        ratios
    }

    /// For people: a line a contestant, a column a figure.
    pub(crate) fn table(&self) -> String {
        let heads: Vec<_> = self.rows.iter().map(|r| r.what.name).collect();
        let mut text =
            format!("| {} | {} |\n|---|{}\n", self.title, heads.join(" | "), "--:|".repeat(heads.len()));
        let mut line = |name: &str, cell: &dyn Fn(&Row) -> String| {
            let cells: Vec<_> = self.rows.iter().map(cell).collect();
            let _ = writeln!(text, "| {name} | {} |", cells.join(" | "));
        };
        for (n, (name, _)) in self.names.iter().enumerate() {
            line(name, &|row| row.what.text(row.medians[n]));
        }
        for (name, ours, others) in self.ratios() {
            line(&format!("*{name}*"), &|row| format!("{:.2}", row.ratio(ours, &others)).replace("NaN", "-"));
        }
        line("*spread*", &|row| format!("{:.0} %", row.spread * 100.0).replace("NaN", "-"));
        text
    }

    /// For programs.
    pub(crate) fn json(&self) -> Vec<Value> {
        let ratios = self.ratios();
        let row = |row: &Row| {
            let medians = self.names.iter().zip(&row.medians);
            let medians: serde_json::Map<_, _> =
                medians.map(|(n, m)| (n.0.clone(), Value::from(*m))).collect();
            let ratios: serde_json::Map<_, _> = ratios
                .iter()
                .map(|(name, ours, others)| (name.clone(), Value::from(row.ratio(*ours, others))))
                .collect();
            json!({
                "contest": self.title,
                "figure": row.what.name,
                "more_is_better": row.what.rate,
                "medians": medians,
                "ratios": ratios,
                "spread": row.spread,
            })
        };
        self.rows.iter().map(row).collect()
    }
}

impl Row {
    fn new(what: Figure, contestants: &[Contestant]) -> Self {
        let mut row = Self { what, medians: Vec::new(), spread: 0.0 };
        for contestant in contestants {
            let runs: Vec<f64> = contestant.runs.iter().map(|run| what.of(run)).collect();
            let middle = median(runs.clone());
            row.spread = runs.iter().fold(row.spread, |most, run| most.max((run / middle - 1.0).abs()));
            row.medians.push(middle);
        }
        row
    }

    /// How many times the cost of the best of the `others` this one of ours has.
    fn ratio(&self, ours: usize, others: &[usize]) -> f64 {
        let cost = |n: usize| if self.what.rate { 1.0 / self.medians[n] } else { self.medians[n] };
        let best = others.iter().map(|n| cost(*n)).fold(f64::NAN, f64::min);
        // A difference below zero is noise, and nothing can be said of it.
        if cost(ours) > 0.0 && best > 0.0 { cost(ours) / best } else { f64::NAN }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Two of ours, and others.
    pub(crate) fn group(others: &[(&str, Kind, f64)]) -> Group {
        let contestant = |name: &str, kind, runs: &[f64]| {
            Contestant::of_runs(name, kind, runs.iter().map(|n| json!({ "cpu": n })).collect())
        };
        let mut all =
            vec![contestant("threads", Kind::Ours, &[2.0, 1.0, 9.0]), contestant("smol", Kind::Ours, &[3.0])];
        all.extend(others.iter().map(|(name, kind, n)| contestant(name, *kind, &[*n])));
        let cpu = Figure { name: "CPU s", places: 1, key: "cpu", times: 1.0, rate: false, charted: true };
        let rate = Figure { name: "/s", places: 0, times: 12.0, rate: true, charted: false, ..cpu };
        let none = Figure { name: "none", key: "none", charted: false, ..cpu };
        Group::new("a <contest>".to_owned(), &all, &[cpu, rate, none])
    }

    #[test]
    fn ours_stand_beside_the_best_of_the_peers_and_the_limit() {
        let group = group(&[("a", Kind::Peer, 6.0), ("b", Kind::Peer, 4.0), ("limit", Kind::Limit, 1.0)]);
        let expected = "\
| a <contest> | CPU s | /s | none |
|---|--:|--:|--:|
| threads | 2.0 | 6 | - |
| smol | 3.0 | 4 | - |
| a | 6.0 | 2 | - |
| b | 4.0 | 3 | - |
| limit | 1.0 | 12 | - |
| *threads : best peer* | 0.50 | 0.50 | - |
| *smol : best peer* | 0.75 | 0.75 | - |
| *threads : limit* | 2.00 | 2.00 | - |
| *smol : limit* | 3.00 | 3.00 | - |
";
        let table = group.table();
        assert!(table.starts_with(expected), "{table}");
        assert!(table.ends_with("| *spread* | 350 % | 100 % | 0 % |\n"), "{table}");
        let json = &group.json()[0];
        assert_eq!((&json["ratios"]["smol : best peer"], &json["medians"]["b"]), (&json!(0.75), &json!(4.0)));
    }

    #[test]
    fn without_peers_there_is_no_ratio() {
        let group = group(&[]);
        assert!(!group.table().contains(" : "), "{}", group.table());
        assert_eq!(group.json()[0]["ratios"], json!({}));
    }
}
