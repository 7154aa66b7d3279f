//! A plot of lines over a logarithmic axis, drawn with nothing but text. Colours are those of the chart.

use std::fmt::Write as _;

use crate::chart::{STYLE, class, escaped};
use crate::contest::Kind;

const WIDTH: f64 = 760.0;
const HEIGHT: f64 = 400.0;
/// What is drawn in; names stand to its right.
const LEFT: f64 = 60.0;
const RIGHT: f64 = 620.0;
const TOP: f64 = 44.0;
const BOTTOM: f64 = 356.0;
/// The least distance of two names.
const APART: f64 = 15.0;
/// About so many lines across.
const STEPS: f64 = 5.0;

/// Lines of one kind differ in how they are dashed.
const DASHES: [&str; 5] = ["none", "7 3", "2 3", "10 3 2 3", "1 5"];

const LINES: &str = "\
.a{stroke:#8c959f;stroke-opacity:.35}path{fill:none;stroke-width:2}path.o{fill:none;stroke:#0b6bcb}path.p{fill:none;stroke:#c9822b}
path.l{fill:none;stroke:#8c959f}.m{text-anchor:middle}
@media(prefers-color-scheme:dark){path.o{stroke:#3b8eea}path.p{stroke:#d99545}path.l{stroke:#6e7681}}
";

/// What one contestant needs.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Line {
    pub name: String,
    pub kind: Kind,
    /// Of how many, and how much.
    pub points: Vec<(f64, f64)>,
}

/// The axes.
struct Scale {
    /// Logarithms of the first and of the last number.
    from: f64,
    to: f64,
    most: f64,
}

impl Scale {
    fn new(lines: &[Line]) -> Self {
        let points = || lines.iter().flat_map(|l| &l.points);
        let from = points().map(|p| p.0.log10()).fold(f64::INFINITY, f64::min);
        let to = points().map(|p| p.0.log10()).fold(f64::NEG_INFINITY, f64::max);
        // One number alone stands in the middle.
        let (from, to) = if to - from < 0.1 { (from - 0.5, to + 0.5) } else { (from, to) };
        let most = points().map(|p| p.1).filter(|y| y.is_finite()).fold(0.0, f64::max);
        Self { from, to, most: if most > 0.0 { most } else { 1.0 } }
    }

    fn x(&self, x: f64) -> f64 {
        LEFT + (x.log10() - self.from) / (self.to - self.from) * (RIGHT - LEFT)
    }

    fn y(&self, y: f64) -> f64 {
        BOTTOM - y / self.most * (BOTTOM - TOP)
    }

    /// The distance of lines across: 1, 2 or 5 of some power of ten.
    fn step(&self) -> f64 {
        let least = self.most / STEPS;
        let power = 10_f64.powf(least.log10().floor());
        [1.0, 2.0, 5.0].into_iter().map(|n| n * power).find(|s| *s >= least).unwrap_or(10.0 * power)
    }
}

/// The plot as a document of its own.
pub(crate) fn svg(title: &str, unit: &str, lines: &[Line]) -> String {
    let scale = Scale::new(lines);
    let (title, mut body) = (escaped(title), String::new());
    axes(&scale, lines, unit, &mut body);
    let heights = apart(lines.iter().map(|l| l.points.last().map_or(BOTTOM, |p| scale.y(p.1))).collect());
    for (n, (line, height)) in lines.iter().zip(heights).enumerate() {
        let dash = DASHES[lines[..n].iter().filter(|l| l.kind == line.kind).count() % DASHES.len()];
        draw(&scale, line, dash, height, &mut body);
    }
    format!(
        r#"<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{HEIGHT}" viewBox="0 0 {WIDTH} {HEIGHT}" role="img">
<title>{title}; lower is better</title>
<style>{STYLE}{LINES}</style>
<rect class="g" width="{WIDTH}" height="{HEIGHT}"/>
<text class="t" x="{LEFT}" y="20">{title}</text>
{body}</svg>
"#
    )
}

fn axes(scale: &Scale, lines: &[Line], unit: &str, body: &mut String) {
    let mut at = 0.0;
    while at <= scale.most {
        let y = scale.y(at);
        let _ = writeln!(
            body,
            r#"<line class="a" x1="{LEFT}" x2="{RIGHT}" y1="{y:.1}" y2="{y:.1}"/><text class="e" x="{:.1}" y="{:.1}">{at} {unit}</text>"#,
            LEFT - 8.0,
            y + 4.0
        );
        at += scale.step();
    }
    let mut numbers: Vec<f64> = lines.iter().flat_map(|l| &l.points).map(|p| p.0).collect();
    numbers.sort_by(f64::total_cmp);
    numbers.dedup();
    for number in numbers {
        let x = scale.x(number);
        let _ = writeln!(
            body,
            r#"<line class="a" x1="{x:.1}" x2="{x:.1}" y1="{TOP}" y2="{BOTTOM}"/><text class="m" x="{x:.1}" y="{:.1}">{}</text>"#,
            BOTTOM + 18.0,
            thousands(number)
        );
    }
}

fn draw(scale: &Scale, line: &Line, dash: &str, height: f64, body: &mut String) {
    let class = class(line.kind);
    let places: Vec<_> = line.points.iter().filter(|p| p.1.is_finite()).collect();
    let Some(last) = places.last() else { return };
    let path: Vec<_> = places.iter().map(|p| format!("{:.1},{:.1}", scale.x(p.0), scale.y(p.1))).collect();
    let _ = writeln!(body, r#"<path class="{class}" stroke-dasharray="{dash}" d="M{}"/>"#, path.join("L"));
    for (x, y) in places.iter().map(|p| (scale.x(p.0), scale.y(p.1))) {
        let _ = writeln!(body, r#"<circle class="{class}" cx="{x:.1}" cy="{y:.1}" r="3"/>"#);
    }
    // From the end of a line to its name, which may stand higher or lower.
    let (x, y) = (scale.x(last.0), scale.y(last.1));
    let _ = writeln!(
        body,
        r#"<line class="a" x1="{:.1}" y1="{y:.1}" x2="{:.1}" y2="{height:.1}"/><text x="{:.1}" y="{:.1}">{} {:.0}</text>"#,
        x + 4.0,
        RIGHT + 12.0,
        RIGHT + 15.0,
        height + 4.0,
        escaped(&line.name),
        last.1
    );
}

/// The same heights, as far apart as names must be, from the lowest place upwards.
fn apart(heights: Vec<f64>) -> Vec<f64> {
    let mut order: Vec<usize> = (0..heights.len()).collect();
    order.sort_by(|a, b| heights[*b].total_cmp(&heights[*a]));
    let (mut placed, mut above) = (heights.clone(), f64::INFINITY);
    for n in order {
        placed[n] = heights[n].min(above - APART);
        above = placed[n];
    }
    placed
}

/// With commas.
fn thousands(number: f64) -> String {
    let digits = format!("{number:.0}");
    let mut text = String::new();
    for (n, digit) in digits.chars().enumerate() {
        if n > 0 && (digits.len() - n).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(name: &str, kind: Kind, points: &[(f64, f64)]) -> Line {
        Line { name: name.to_owned(), kind, points: points.to_vec() }
    }

    #[test]
    fn ten_times_as_many_are_as_far_wherever_and_nothing_is_below_the_axis() {
        let ours = line("threads", Kind::Ours, &[(1_000.0, 10.0), (10_000.0, 20.0), (100_000.0, 30.0)]);
        let peer = line("a <peer>", Kind::Peer, &[(1_000.0, 100.0), (10_000.0, f64::NAN)]);
        let plot = svg("cost", "us", &[ours, peer]);
        // 560 wide, 312 high: 100 is the most.
        assert!(plot.contains(r#"d="M60.0,324.8L340.0,293.6L620.0,262.4""#), "{plot}");
        assert!(plot.contains(r#"d="M60.0,44.0""#), "{plot}");
        for text in [">1,000<", ">100,000<", ">20 us<", ">100 us<", ">threads 30<", ">a &lt;peer> 100<"] {
            assert!(plot.contains(text), "{text}: {plot}");
        }
    }

    #[test]
    fn names_do_not_stand_on_each_other() {
        assert_eq!(apart(vec![300.0, 302.0, 100.0, 290.0]), [287.0, 302.0, 100.0, 272.0]);
    }

    #[test]
    fn steps_are_round() {
        for (most, step) in [(437.0, 100.0), (37.8, 10.0), (60.0, 20.0), (9.0, 2.0), (0.9, 0.2)] {
            let scale = Scale::new(&[line("a", Kind::Ours, &[(1.0, most)])]);
            assert!((scale.step() - step).abs() < 1e-9, "{most}: {}", scale.step());
        }
    }
}
