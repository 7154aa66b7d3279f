//! Everything with everybody, one contest after the other.

use serde_json::Value;

use crate::comparison::Group;
use crate::contests::of_words;
use crate::{chart, contest, program, table};

/// Runs the contests and prints their tables.
///
/// # Errors
/// If the words make no sense, or somebody fails.
pub(crate) fn run(words: &[String]) -> Result<(), String> {
    let (list, contests) = of_words(words)?;
    let (mut groups, mut all) = (Vec::new(), serde_json::Map::new());
    for contest in contests {
        let mut contestants = contest::hold(&contest.args, contest.base.as_ref())?;
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
