//! A chart of bars, drawn with nothing but text: one group a figure, one bar a contestant, each group to its own scale.

use std::fmt::Write as _;

use crate::compare::{Comparison, Group, Row};

const WIDTH: usize = 760;
/// Where bars begin, and how long the longest is.
const LEFT: usize = 240;
const LONGEST: usize = 420;
const BAR: usize = 14;
const TITLE: usize = 34;
const GAP: usize = 8;

/// Colours of its own on a ground of its own, light or dark as its reader has it: it can stand on any page. Ours are blue, peers
/// are ochre.
const STYLE: &str = "\
text{font:12px system-ui,sans-serif;fill:#1f2328}.t{font-weight:600;font-size:14px}.e{text-anchor:end}
.g{fill:#fff}.o0{fill:#0b6bcb}.o1{fill:#6aaef2}.p0{fill:#c9822b}.p1{fill:#e8bd85}
@media(prefers-color-scheme:dark){text{fill:#e6edf3}.g{fill:#0d1117}.o0{fill:#3b8eea}.o1{fill:#1f5f9f}.p0{fill:#d99545}.p1{fill:#8a6434}}
";

/// The chart as a document of its own.
pub(crate) fn svg(comparison: &Comparison) -> String {
    let mut body = String::new();
    let mut y = GAP;
    let mut x = LEFT;
    for (n, name) in comparison.names.iter().enumerate() {
        let _ = writeln!(
            body,
            r#"<rect class="{}" x="{x}" y="{y}" width="{BAR}" height="{BAR}"/><text x="{}" y="{}">{}</text>"#,
            class(comparison, n),
            x + BAR + 5,
            y + BAR - 3,
            escaped(name)
        );
        x += LONGEST / comparison.names.len().max(1);
    }
    y += BAR;
    for group in &comparison.groups {
        y = draw(comparison, group, y, &mut body);
    }
    let height = y + GAP;
    format!(
        r#"<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" viewBox="0 0 {WIDTH} {height}" role="img">
<title>Cost of each contestant; shorter is better</title>
<style>{STYLE}</style>
<rect class="g" width="{WIDTH}" height="{height}"/>
{body}</svg>
"#
    )
}

/// Draws a contest below `y` and says where it ends.
fn draw(comparison: &Comparison, group: &Group, mut y: usize, body: &mut String) -> usize {
    y += TITLE;
    let _ = writeln!(body, r#"<text class="t" x="{GAP}" y="{}">{}</text>"#, y - GAP, escaped(&group.title));
    for row in &group.rows {
        let middle = y + row.medians.len() * BAR / 2 + 4;
        let _ =
            writeln!(body, r#"<text class="e" x="{}" y="{middle}">{}</text>"#, LEFT - GAP, escaped(row.name));
        for (n, figure) in row.medians.iter().enumerate() {
            let length = length(row, *figure);
            let _ = writeln!(
                body,
                r#"<rect class="{}" x="{LEFT}" y="{y}" width="{length:.1}" height="{}"/><text x="{:.1}" y="{}">{}</text>"#,
                class(comparison, n),
                BAR - 2,
                LEFT as f64 + length + 5.0,
                y + BAR - 4,
                row.text(*figure)
            );
            y += BAR;
        }
        y += GAP;
    }
    y
}

fn length(row: &Row, figure: f64) -> f64 {
    let most = row.medians.iter().copied().fold(0.0, f64::max);
    if most > 0.0 { figure / most * LONGEST as f64 } else { 0.0 }
}

fn class(comparison: &Comparison, n: usize) -> String {
    match n.checked_sub(comparison.ours) {
        None => format!("o{}", n % 2),
        Some(peer) => format!("p{}", peer % 2),
    }
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::tests::comparison;

    #[test]
    fn bars_are_as_long_as_their_figures() {
        let chart = svg(&comparison(&[("a", 4.0)]));
        for (class, length, text) in [("o0", "210.0", "2.0"), ("o1", "315.0", "3.0"), ("p0", "420.0", "4.0")]
        {
            let bar = format!(r#"<rect class="{class}" x="{LEFT}""#);
            let line =
                chart.lines().filter(|l| l.starts_with(&bar)).find(|l| l.contains("height=\"12\"")).unwrap();
            assert!(
                line.contains(&format!(r#"width="{length}""#)) && line.contains(&format!(">{text}<")),
                "{line}"
            );
        }
        assert!(chart.contains("a &lt;contest>"));
    }
}
