//! A trace as one page for a browser: lanes for faults, the cluster, processes, servers and objects. It needs nothing but
//! itself. Names of objects are anybody's input: they are data or escaped text in it, never markup.

use std::collections::BTreeMap;
use std::fmt::{self, Write as _};
use std::path::{Path, PathBuf};
use std::{env, fs, io};

use serde::Serialize;
use steersman_core::time::Time;

use crate::failure::Failure;
use crate::replay::Program;
use crate::trace::{Entry, Kind, Lane, Trace};

/// Most entries that a page holds; of more, the ones in the middle are left out.
const MOST_ENTRIES: usize = 60_000;
/// Most objects that have a lane of their own; others share one.
const MOST_OBJECTS: usize = 200;

#[derive(Serialize)]
struct Run<'a> {
    lanes: Vec<LaneOf>,
    spans: Vec<Span>,
    entries: Vec<(u64, usize, &'static str, isize, &'a str)>,
}

#[derive(Serialize)]
struct LaneOf {
    name: String,
    /// The name, and what a fault is.
    title: String,
    kind: &'static str,
}

impl LaneOf {
    fn object(name: &str) -> Self {
        Self { name: name.to_owned(), title: name.to_owned(), kind: "object" }
    }
}

/// Something that lasts.
#[derive(Serialize)]
struct Span {
    lane: usize,
    kind: &'static str,
    from: u64,
    to: u64,
    text: String,
    ill: bool,
}

impl Trace {
    /// One page for a browser. `facts` stand above the lanes.
    #[must_use]
    pub fn page(&self, title: &str, facts: &[(&str, String)]) -> String {
        let left_out = self.entries.len().saturating_sub(MOST_ENTRIES);
        let half = MOST_ENTRIES / 2;
        let (first, last) = match left_out {
            0 => (&self.entries[..], &[][..]),
            n => (&self.entries[..half], &self.entries[half + n..]),
        };
        let lanes = Lanes::of(&self.entries);
        let entries = first.iter().chain(last).map(|e| lanes.entry(e)).collect();
        let run = Run { spans: lanes.spans(&self.entries), entries, lanes: lanes.names };
        let mut page = String::new();
        // A String takes everything.
        let _ = write_page(&mut page, title, facts, left_out, self, &run);
        page
    }
}

fn write_page(
    page: &mut String,
    title: &str,
    facts: &[(&str, String)],
    left_out: usize,
    trace: &Trace,
    run: &Run<'_>,
) -> fmt::Result {
    let css = include_str!("page/page.css");
    let js = include_str!("page/page.js");
    write!(
        page,
        r#"<!doctype html>
<html lang="en"><head><meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'">
<meta name="viewport" content="width=device-width"><title>{}</title>
<style>
{css}</style></head><body>
<h1{}>{}</h1>
<dl>
"#,
        Html(title),
        if trace.entries.last().is_some_and(|e| e.kind == Kind::Violated) {
            " class=\"violated\""
        } else {
            ""
        },
        Html(title)
    )?;
    for (name, text) in facts {
        write!(page, "<dt>{}</dt><dd>", Html(name))?;
        let mut lines = text.lines();
        match (text.lines().count(), *name) {
            (_, "replay") => write!(page, "<code>{}</code>", Html(text))?,
            (0 | 1, _) => write!(page, "{}", Html(text))?,
            _ => {
                page.push_str("<ol start=\"0\">");
                lines.try_for_each(|line| write!(page, "<li>{}</li>", Html(line)))?;
                page.push_str("</ol>");
            }
        }
        page.push_str("</dd>\n");
    }
    if left_out > 0 {
        writeln!(page, "<dt>left out</dt><dd>{left_out} entries from the middle</dd>")?;
    }
    page.push_str(
        r#"</dl>
<div class="bar"><button id="all">whole run</button><button id="in">zoom in</button><button id="out">zoom out</button>
<button id="scale" aria-pressed="true" title="a pause counts with its logarithm">squeezed time</button>
<button id="fault">next fault</button><button id="violation">violation</button>
<input id="find" type="search" placeholder="find in entries" aria-label="find in entries">
<span class="hint">drag to move, double click or Ctrl and wheel to zoom, arrows for the next entry</span></div>
<div class="lanes" id="lanes"><canvas id="canvas"></canvas></div><div class="tip" id="tip"></div>
<div class="legend"><span><i style="background:var(--fault)"></i>fault</span>
<span><i style="background:var(--violation)"></i>violation, failed run</span>
<span><i style="background:var(--replica)"></i>process: pale while it lives, a bar for each run</span>
<span><i style="background:var(--server)"></i>API server</span>
<span><i style="background:var(--object)"></i>object: pale while it exists, a dot for each version</span></div>
<div class="log" id="log"></div>
<noscript><p>The lanes need a script, which this browser does not run; the text below does not.</p></noscript>
<details><summary>what matters most, as text</summary><pre>"#,
    );
    write!(
        page,
        "{}</pre></details>\n<script type=\"application/json\" id=\"run\">",
        Html(&trace.timeline())
    )?;
    push_json(page, run)?;
    write!(page, "</script>\n<script>\n{js}</script></body></html>\n")
}

/// JSON that no parser of HTML sees an end or a beginning in.
fn push_json(page: &mut String, run: &Run<'_>) -> fmt::Result {
    let json = serde_json::to_string(run).map_err(|_| fmt::Error)?;
    for c in json.chars() {
        match c {
            '<' | '>' | '&' | '\u{2028}' | '\u{2029}' => write!(page, "\\u{:04x}", u32::from(c))?,
            c => page.push(c),
        }
    }
    Ok(())
}

/// Text in a document or an attribute.
struct Html<T>(T);

impl<T: fmt::Display> fmt::Display for Html<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for c in self.0.to_string().chars() {
            match c {
                '<' => f.write_str("&lt;")?,
                '>' => f.write_str("&gt;")?,
                '&' => f.write_str("&amp;")?,
                '"' => f.write_str("&quot;")?,
                '\'' => f.write_str("&#39;")?,
                c if c.is_control() && c != '\n' => write!(f, "{}", c.escape_default())?,
                c => f.write_char(c)?,
            }
        }
        Ok(())
    }
}

fn micros(at: Time) -> u64 {
    at.as_nanos() / 1_000
}

/// What has begun and not ended: in which row, what kind of thing, and which one if it is a run.
type Open = (usize, &'static str, (u32, u64));

/// Which lane is which row.
struct Lanes {
    names: Vec<LaneOf>,
    rows: BTreeMap<Lane, usize>,
    objects: BTreeMap<String, usize>,
}

impl Lanes {
    fn of(entries: &[Entry]) -> Self {
        let mut rows: BTreeMap<Lane, usize> = entries.iter().map(|e| (e.lane, 0)).collect();
        let mut objects: BTreeMap<String, usize> =
            entries.iter().filter_map(|e| Some((e.key.clone()?, 0))).collect();
        let mut names = Vec::new();
        for (lane, row) in &mut rows {
            *row = names.len();
            let kind = match lane {
                Lane::Fault(_) => "fault",
                Lane::Cluster => "cluster",
                Lane::Replica(_) => "replica",
                Lane::Server(_) => "server",
            };
            let what = entries.iter().find(|e| e.lane == *lane && e.kind == Kind::Strikes);
            let name = lane.to_string();
            let title = what.map_or_else(|| name.clone(), |e| format!("{name}: {}", e.text));
            names.push(LaneOf { name, title, kind });
        }
        let from = names.len();
        for (n, (name, row)) in objects.iter_mut().enumerate() {
            *row = from + n.min(MOST_OBJECTS);
            match n {
                0..MOST_OBJECTS => names.push(LaneOf::object(name)),
                MOST_OBJECTS => names.push(LaneOf::object("other objects")),
                _ => {}
            }
        }
        Self { names, rows, objects }
    }

    fn key(&self, entry: &Entry) -> Option<usize> {
        self.objects.get(entry.key.as_ref()?).copied()
    }

    fn entry<'a>(&self, entry: &'a Entry) -> (u64, usize, &'static str, isize, &'a str) {
        let key = self.key(entry).and_then(|row| isize::try_from(row).ok()).unwrap_or(-1);
        (micros(entry.at), self.rows[&entry.lane], name(entry.kind), key, &entry.text)
    }

    /// What begins with one entry and ends with another.
    fn spans(&self, entries: &[Entry]) -> Vec<Span> {
        let end = entries.last().map_or(0, |e| micros(e.at));
        let mut spans: Vec<Span> = Vec::new();
        // By row and kind, and for runs by number: the places of those that have begun and not ended.
        let mut open: BTreeMap<Open, Vec<usize>> = BTreeMap::new();
        for entry in entries {
            let (at, row) = (micros(entry.at), self.rows[&entry.lane]);
            let key = self.key(entry);
            let none = (0, 0);
            let mut close = |kind, number, row, ill| {
                for place in open.remove(&(row, kind, number)).unwrap_or_default() {
                    (spans[place].to, spans[place].ill) = (at, ill);
                }
            };
            match entry.kind {
                Kind::Heals => close("fault", none, row, false),
                Kind::GoesOn => close("still", none, row, false),
                Kind::Back => close("down", none, row, false),
                Kind::Deletes => key.into_iter().for_each(|row| close("exists", none, row, false)),
                Kind::Done(c, id) => close("run", (c, id), row, false),
                Kind::Fails(c, id) => close("run", (c, id), row, true),
                Kind::Dies => {
                    ["life", "still"].into_iter().for_each(|kind| close(kind, none, row, false));
                    // Its runs end with it.
                    open.retain(|(lane, kind, _), places| {
                        let dead = *lane == row && *kind == "run";
                        if dead {
                            places
                                .iter()
                                .for_each(|place| (spans[*place].to, spans[*place].ill) = (at, true));
                        }
                        !dead
                    });
                }
                _ => {}
            }
            let begun = match entry.kind {
                Kind::Strikes => Some(("fault", none, row)),
                Kind::Starts => Some(("life", none, row)),
                Kind::Stands => Some(("still", none, row)),
                Kind::Down => Some(("down", none, row)),
                Kind::Runs(c, id) => Some(("run", (c, id), row)),
                Kind::Creates => key.map(|row| ("exists", none, row)),
                _ => None,
            };
            if let Some((kind, number, lane)) = begun {
                // A fault that is never said to end is over at once.
                let to = if kind == "fault" { at } else { end };
                open.entry((lane, kind, number)).or_default().push(spans.len());
                spans.push(Span { lane, kind, from: at, to, text: entry.text.clone(), ill: false });
            }
        }
        spans
    }
}

fn name(kind: Kind) -> &'static str {
    match kind {
        Kind::Strikes => "strikes",
        Kind::Heals => "heals",
        Kind::Starts => "starts",
        Kind::Dies => "dies",
        Kind::Stands => "stands",
        Kind::GoesOn => "goes-on",
        Kind::Sees => "sees",
        Kind::Runs(..) => "runs",
        Kind::Done(..) => "done",
        Kind::Fails(..) => "fails",
        Kind::Asks => "asks",
        Kind::Hears => "hears",
        Kind::Notes => "notes",
        Kind::Gets => "gets",
        Kind::Follows => "follows",
        Kind::Down => "down",
        Kind::Back => "back",
        Kind::Changes => "changes",
        Kind::Creates => "creates",
        Kind::Updates => "updates",
        Kind::Deletes => "deletes",
        Kind::Violated => "violated",
    }
}

impl Failure {
    /// Its page for a browser.
    #[must_use]
    pub fn html(&self) -> String {
        let faults: Vec<String> = self.faults.iter().map(ToString::to_string).collect();
        let mut facts =
            vec![("run", self.summary()), ("faults", faults.join("\n")), ("replay", self.replay.clone())];
        facts.retain(|(_, text)| !text.is_empty());
        self.trace.page(&self.violation.to_string(), &facts)
    }

    /// Writes the page to where `STEERSMAN_SIM_REPORT` says, or into the target folder. A page that cannot be written must
    /// not hide the failure.
    pub(crate) fn write_page(&mut self) {
        let wish = env::var_os("STEERSMAN_SIM_REPORT").map(PathBuf::from);
        let program = Program::current();
        let Some(path) = place(wish, &program, self.seed) else { return };
        match write(&path, &self.html()) {
            Ok(()) => self.page = Ok(Some(path)),
            Err(e) => self.page = Err(format!("{}: {e}", path.display())),
        }
    }
}

/// Where a page goes: a file if it is called `.html`, else a folder; nowhere if it has no name.
fn place(wish: Option<PathBuf>, program: &Program, seed: u64) -> Option<PathBuf> {
    let file = format!("{}-{seed}.html", program.name());
    match wish {
        Some(wish) if wish.as_os_str().is_empty() => None,
        Some(wish) if wish.extension().is_some_and(|e| e == "html") => Some(wish),
        Some(wish) => Some(wish.join(file)),
        None => Some(program.folder().join(file)),
    }
}

fn write(path: &Path, page: &str) -> io::Result<()> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    fs::write(path, page)
}

#[cfg(test)]
mod tests;
