//! Recorded truth: request steps in a text file, each with the answer of a real API server, normalised.
//!
//! The files in `truth/` are played on a server and the answers compared with the record. On the real server this checks the
//! record, on the embedded one it checks the server. `STEERSMAN_BLESS=1` on a real server writes the record anew.
//!
//! A file is a row of steps, separated by blank lines:
//!
//! ```text
//! # what this step shows
//! POST /api/v1/namespaces/truth/configmaps
//! | {"metadata":{"name":"a"}}
//! save rv /metadata/resourceVersion
//! < 201 application/json
//! < {...}
//! ```
//!
//! | line | meaning |
//! |---|---|
//! | `# text` | what the step shows |
//! | `METHOD target` | the request; `$name` stands for a saved value |
//! | `do restart`, `do compact`, `do register widgets` | instead of a request: done to the server |
//! | `as nobody`, `user`, `wrong`, `certificate` | who asks; the administrator's token if missing |
//! | `header Name: value` | one more header; `Content-Type` is `application/json` if missing |
//! | `\| text` | a line of the body; `$name` stands for a saved value |
//! | `save name /pointer` | keeps a value of the answer (of a watch: of the array of its events) |
//! | `take n` | leaves a watch after its n-th event instead of waiting for its end |
//! | `only /pointer ...` | compares these parts of the answer alone |
//! | `pick /pointer name ...` | keeps only the elements of that array with these names |
//! | `differs reason` | the embedded server answers otherwise, on purpose; it is a failure if it does not |
//! | `< text` | the record |

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::Duration;

use serde_json::{Map, Value, json};

use crate::https::{Answer, Client, Who};

mod normalise;
#[cfg(test)]
mod tests;

pub use normalise::Normaliser;

/// No step takes longer; a watch without `timeoutSeconds` is cut here, and its record shows that it did not end.
const STEP_LIMIT: Duration = Duration::from_secs(30);

/// A file of steps.
#[derive(Clone, Debug, Default)]
pub struct Script {
    /// In order.
    pub steps: Vec<Step>,
}

/// One step.
#[derive(Clone, Debug, Default)]
pub struct Step {
    /// The line of its request.
    pub line: usize,
    /// Its lines but the record, as written.
    pub source: Vec<String>,
    /// The method, or `do`.
    pub method: String,
    /// The path and query, or what to do.
    pub target: String,
    who: String,
    headers: Vec<(String, String)>,
    body: Option<String>,
    saves: Vec<(String, String)>,
    only: Vec<String>,
    pick: Vec<(String, Vec<String>)>,
    take: Option<usize>,
    /// Why the embedded server may answer otherwise.
    pub differs: Option<String>,
    /// The recorded answer.
    pub record: Vec<String>,
}

/// What a script needs of a server.
pub trait Stage {
    /// Asks as the administrator.
    fn admin(&self) -> Client;
    /// Who is meant by a name: `nobody`, `user`, `wrong`, `certificate`.
    fn who(&self, name: &str) -> Option<Who>;
    /// Does what a `do` line names.
    ///
    /// # Errors
    /// What went wrong, or that it cannot.
    fn act(&mut self, what: &str) -> Result<(), String>;
}

/// A step as it was played.
#[derive(Clone, Debug)]
pub struct Played {
    /// The step.
    pub step: Step,
    /// What came back, normalised.
    pub answer: Vec<String>,
}

impl Played {
    /// Whether the answer is the recorded one.
    #[must_use]
    pub fn agrees(&self) -> bool {
        self.answer == self.step.record
    }

    /// The step, and the lines that are only in the record (`-`) or only in the answer (`+`).
    #[must_use]
    pub fn difference(&self) -> String {
        let mut text = format!("line {}: {} {}\n", self.step.line, self.step.method, self.step.target);
        for line in diff(&self.step.record, &self.answer) {
            let _ = writeln!(text, "    {line}");
        }
        text
    }
}

impl Script {
    /// Reads a file's text.
    ///
    /// # Errors
    /// The number of a line that means nothing, and why.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut steps = Vec::new();
        let mut step = Step::default();
        for (n, line) in text.lines().enumerate() {
            let fail = |why: &str| Err(format!("line {}: {why}: {line}", n + 1));
            if line.trim().is_empty() {
                if !step.source.is_empty() {
                    steps.push(std::mem::take(&mut step));
                }
                continue;
            }
            if let Some(recorded) = line.strip_prefix('<') {
                step.record.push(recorded.strip_prefix(' ').unwrap_or(recorded).to_owned());
                continue;
            }
            if !step.record.is_empty() {
                return fail("the record ends a step; a blank line is missing");
            }
            step.source.push(line.to_owned());
            let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
            let words = || rest.split_whitespace().map(str::to_owned);
            match word {
                "#" => {}
                "GET" | "POST" | "PUT" | "PATCH" | "DELETE" | "HEAD" | "OPTIONS" | "do" => {
                    if !step.method.is_empty() {
                        return fail("a second request in one step");
                    }
                    step.line = n + 1;
                    step.method = word.to_owned();
                    step.target = rest.to_owned();
                }
                "as" => step.who = rest.to_owned(),
                "header" => match rest.split_once(": ") {
                    Some((name, value)) => step.headers.push((name.to_owned(), value.to_owned())),
                    None => return fail("not a header"),
                },
                "|" => {
                    let body = step.body.get_or_insert_default();
                    if !body.is_empty() {
                        body.push('\n');
                    }
                    body.push_str(rest);
                }
                "save" => match rest.split_once(' ') {
                    Some((name, pointer)) => step.saves.push((name.to_owned(), pointer.to_owned())),
                    None => return fail("save needs a name and a pointer"),
                },
                "only" => step.only.extend(words()),
                "pick" => match rest.split_once(' ') {
                    Some((at, names)) => {
                        step.pick.push((at.to_owned(), names.split_whitespace().map(str::to_owned).collect()))
                    }
                    None => return fail("pick needs a pointer and names"),
                },
                "take" => match rest.parse() {
                    Ok(n) => step.take = Some(n),
                    Err(_) => return fail("not a number"),
                },
                "differs" => step.differs = Some(rest.to_owned()),
                _ => return fail("unknown word"),
            }
        }
        if !step.source.is_empty() {
            steps.push(step);
        }
        Ok(Self { steps })
    }

    /// How many steps send a request.
    #[must_use]
    pub fn requests(&self) -> usize {
        self.steps.iter().filter(|s| !s.method.is_empty() && s.method != "do").count()
    }

    /// Plays all steps.
    ///
    /// # Errors
    /// When the server cannot be reached, or a step names what it does not have.
    pub fn play(&self, stage: &mut impl Stage) -> Result<Vec<Played>, String> {
        let mut names = BTreeMap::new();
        let mut normaliser = Normaliser::default();
        let mut played = Vec::new();
        for step in &self.steps {
            let answer = match (step.method.as_str(), step.target.as_str()) {
                ("", _) => Vec::new(),
                ("do", what) => {
                    stage.act(what).map_err(|e| format!("line {}: {e}", step.line))?;
                    Vec::new()
                }
                _ => step
                    .send(stage, &mut names, &mut normaliser)
                    .map_err(|e| format!("line {}: {} {}: {e}", step.line, step.method, step.target))?,
            };
            played.push(Played { step: step.clone(), answer });
        }
        Ok(played)
    }
}

/// The text of a file whose record is what was played.
#[must_use]
pub fn bless(played: &[Played]) -> String {
    let mut text = String::new();
    for p in played {
        if !text.is_empty() {
            text.push('\n');
        }
        for line in &p.step.source {
            text.push_str(line);
            text.push('\n');
        }
        for line in &p.answer {
            let _ = writeln!(text, "< {line}");
        }
    }
    text
}

impl Step {
    fn is_watch(&self) -> bool {
        self.target.contains("watch=")
    }

    fn send(
        &self,
        stage: &impl Stage,
        names: &mut BTreeMap<String, String>,
        normaliser: &mut Normaliser,
    ) -> Result<Vec<String>, String> {
        let admin = stage.admin();
        let client = match self.who.as_str() {
            "" => admin,
            name => admin.as_who(stage.who(name).ok_or_else(|| format!("nobody is called {name}"))?),
        };
        let target = substitute(&self.target, names)?;
        let body = self.body.as_deref().map(|b| substitute(b, names)).transpose()?;
        let mut headers: Vec<(&str, &str)> =
            self.headers.iter().map(|(n, v)| (n.as_str(), v.as_str())).collect();
        let has = |name: &str| self.headers.iter().any(|(n, _)| n.eq_ignore_ascii_case(name));
        if body.is_some() && !has("content-type") {
            headers.push(("Content-Type", "application/json"));
        }
        if !has("accept") {
            headers.push(("Accept", "application/json"));
        }
        let enough =
            |a: &Answer| self.take.is_some_and(|n| a.body.iter().filter(|b| **b == b'\n').count() >= n);
        let answer = client
            .send_until(
                &self.method,
                &target,
                &headers,
                body.as_deref().map(str::as_bytes),
                STEP_LIMIT,
                enough,
            )
            .map_err(|e| e.to_string())?;
        let value = self.value(&answer);
        for (name, pointer) in &self.saves {
            let found = value.pointer(pointer).and_then(Value::as_str);
            let found = found.ok_or_else(|| {
                format!(
                    "nothing to save at {pointer}: {} {}",
                    answer.status,
                    String::from_utf8_lossy(&answer.body)
                )
            })?;
            names.insert(name.clone(), found.to_owned());
        }
        Ok(self.render(&answer, value, normaliser))
    }

    /// The body as one JSON value: an array of events for a watch, a string for what is not JSON.
    fn value(&self, answer: &Answer) -> Value {
        let text = || Value::String(String::from_utf8_lossy(&answer.body).into_owned());
        if self.is_watch() && answer.status == 200 {
            let lines = answer.body.split(|b| *b == b'\n').filter(|l| !l.is_empty());
            let events = lines
                .map(|l| serde_json::from_slice(l).unwrap_or_else(|_| json!(String::from_utf8_lossy(l))));
            return match self.take {
                Some(n) => events.take(n).collect(),
                None => events.collect(),
            };
        }
        if answer.body.is_empty() {
            return Value::Null;
        }
        serde_json::from_slice(&answer.body).unwrap_or_else(|_| text())
    }

    fn render(&self, answer: &Answer, mut value: Value, normaliser: &mut Normaliser) -> Vec<String> {
        normaliser.normalise(&mut value);
        for (pointer, names) in &self.pick {
            if let Some(Value::Array(items)) = value.pointer_mut(pointer) {
                items.retain(|i| i["name"].as_str().is_some_and(|n| names.iter().any(|p| p == n)));
            }
        }
        if !self.only.is_empty() {
            let parts = self.only.iter();
            value = parts
                .map(|p| (p.clone(), value.pointer(p).cloned().unwrap_or_default()))
                .collect::<Map<_, _>>()
                .into();
        }
        let mut head = answer.status.to_string();
        if let Some(kind) = answer.header("content-type") {
            let _ = write!(head, " {kind}");
        }
        if let Some(seconds) = answer.header("retry-after") {
            let _ = write!(head, " retry-after={seconds}");
        }
        if !answer.complete && self.take.is_none() {
            head.push_str(" (did not end)");
        }
        let mut lines = vec![head];
        match value {
            Value::Null => {}
            Value::Array(events) if self.is_watch() => events.iter().for_each(|e| print(e, &mut lines)),
            Value::String(text) => lines.extend(text.lines().map(str::to_owned)),
            value => print(&value, &mut lines),
        }
        lines
    }
}

/// On one line if it is short, else one line a member.
fn print(value: &Value, lines: &mut Vec<String>) {
    let short = value.to_string();
    if short.len() <= 220 {
        lines.push(short);
    } else {
        let pretty = serde_json::to_string_pretty(value).unwrap_or(short);
        lines.extend(pretty.lines().map(str::to_owned));
    }
}

/// Puts saved values where `$name` stands; the longest name that fits counts.
fn substitute(text: &str, names: &BTreeMap<String, String>) -> Result<String, String> {
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find('$') {
        out.push_str(&rest[..at]);
        rest = &rest[at + 1..];
        let length = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(rest.len());
        let name = &rest[..length];
        out.push_str(names.get(name).ok_or_else(|| format!("${name} was not saved"))?);
        rest = &rest[length..];
    }
    out.push_str(rest);
    Ok(out)
}

/// The lines that differ, by a longest common subsequence.
fn diff(old: &[String], new: &[String]) -> Vec<String> {
    let mut common = vec![vec![0_usize; new.len() + 1]; old.len() + 1];
    for i in (0..old.len()).rev() {
        for j in (0..new.len()).rev() {
            common[i][j] = if old[i] == new[j] {
                common[i + 1][j + 1] + 1
            } else {
                common[i + 1][j].max(common[i][j + 1])
            };
        }
    }
    let (mut i, mut j, mut lines) = (0, 0, Vec::new());
    while i < old.len() || j < new.len() {
        if i < old.len() && j < new.len() && old[i] == new[j] {
            (i, j) = (i + 1, j + 1);
        } else if j == new.len() || (i < old.len() && common[i + 1][j] >= common[i][j + 1]) {
            lines.push(format!("- {}", old[i]));
            i += 1;
        } else {
            lines.push(format!("+ {}", new[j]));
            j += 1;
        }
    }
    lines
}
