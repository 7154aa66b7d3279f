//! A chart of bars, drawn with nothing but text: one block a figure, one bar a contestant, each block to its own scale.

use std::fmt::Write as _;

use crate::comparison::{Group, Row};
use crate::contest::Kind;

const WIDTH: usize = 760;
/// Where bars begin, and how long the longest is.
const LEFT: usize = 170;
const LONGEST: usize = 500;
const BAR: usize = 14;
const TITLE: usize = 26;
const GAP: usize = 8;

/// Colours of its own on a ground of its own, light or dark as its reader has it: it can stand on any page. Ours are blue, peers
/// are ochre, the limit is grey.
pub(crate) const STYLE: &str = "\
text{font:12px system-ui,sans-serif;fill:#1f2328}.t{font-weight:600}.e{text-anchor:end}
.g{fill:#fff}.o{fill:#0b6bcb}.p{fill:#c9822b}.l{fill:#8c959f}
@media(prefers-color-scheme:dark){text{fill:#e6edf3}.g{fill:#0d1117}.o{fill:#3b8eea}.p{fill:#d99545}.l{fill:#6e7681}}
";

/// The chart as a document of its own.
pub(crate) fn svg(groups: &[Group]) -> String {
    let mut body = String::new();
    let mut y = 0;
    for group in groups {
        for row in group.rows.iter().filter(|r| r.what.charted) {
            y = draw(group, row, y, &mut body);
        }
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

/// Draws a figure below `y` and says where it ends.
fn draw(group: &Group, row: &Row, mut y: usize, body: &mut String) -> usize {
    y += TITLE;
    let title = escaped(&format!("{}: {}", group.title, row.what.name));
    let _ = writeln!(body, r#"<text class="t" x="{LEFT}" y="{}">{title}</text>"#, y - GAP);
    for ((name, kind), figure) in group.names.iter().zip(&row.medians) {
        let (text, length) = (y + BAR - 4, length(row, *figure));
        let _ = writeln!(
            body,
            r#"<text class="e" x="{}" y="{text}">{}</text><rect class="{}" x="{LEFT}" y="{y}" width="{length:.1}" height="{}"/><text x="{:.1}" y="{text}">{}</text>"#,
            LEFT - GAP,
            escaped(name),
            class(*kind),
            BAR - 2,
            LEFT as f64 + length + 5.0,
            row.what.text(*figure)
        );
        y += BAR;
    }
    y
}

fn length(row: &Row, figure: f64) -> f64 {
    let most = row.medians.iter().copied().fold(0.0, f64::max);
    if most > 0.0 && figure > 0.0 { figure / most * LONGEST as f64 } else { 0.0 }
}

pub(crate) const fn class(kind: Kind) -> char {
    match kind {
        Kind::Ours => 'o',
        Kind::Peer => 'p',
        Kind::Limit => 'l',
    }
}

pub(crate) fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::comparison::tests::group;

    #[test]
    fn bars_are_as_long_as_their_figures() {
        let chart = svg(&[group(&[("a", Kind::Peer, 4.0), ("limit", Kind::Limit, 1.0)])]);
        for (name, class, length, text) in [
            ("threads", 'o', "250.0", "2.0"),
            ("smol", 'o', "375.0", "3.0"),
            ("a", 'p', "500.0", "4.0"),
            ("limit", 'l', "125.0", "1.0"),
        ] {
            let line = chart.lines().find(|l| l.contains(&format!(">{name}<"))).unwrap();
            for part in [format!("class=\"{class}\""), format!("width=\"{length}\""), format!(">{text}<")] {
                assert!(line.contains(&part), "{part}: {line}");
            }
        }
        assert!(chart.contains("a &lt;contest>: CPU s"));
        assert!(!chart.contains("/s<"), "what is not charted is not there");
    }
}
