//! What was recorded, and what it says of what is counted now.

use std::collections::BTreeMap;
use std::fmt::Write as _;

/// So many percent above its ceiling a step is too slow: a change elsewhere that makes the compiler choose otherwise is worth one or two.
const TOO_MANY: u64 = 5;
/// The same where the compiler, the C library or the processor is not that of the ceilings: what they change cannot be told from
/// what we changed, unless it is much.
const TOO_MANY_ELSEWHERE: u64 = 50;
/// So many percent below it, what was won can be lost again unnoticed.
const MANY_FEWER: u64 = 10;
const AGAIN: &str = "cargo run --release -p steersman-steps -- check --write";

/// Instructions of one operation, by step, and with what they were counted.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Ceilings {
    /// The compiler and whatever else is part of the number.
    pub(crate) with: BTreeMap<String, String>,
    pub(crate) steps: BTreeMap<String, u64>,
}

impl Ceilings {
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let mut this = Self::default();
        for (n, line) in text.lines().enumerate().filter(|(_, l)| !l.is_empty() && !l.starts_with('#')) {
            let bad = || format!("line {}: neither `with NAME VALUE` nor `STEP NUMBER`: {line:?}", n + 1);
            let (name, value) = line.split_once(' ').ok_or_else(bad)?;
            if name == "with" {
                let (name, value) = value.split_once(' ').ok_or_else(bad)?;
                this.with.insert(name.to_owned(), value.to_owned());
            } else {
                this.steps.insert(name.to_owned(), value.trim().parse().map_err(|_| bad())?);
            }
        }
        Ok(this)
    }

    pub(crate) fn text(&self) -> String {
        let mut text = format!("# Instructions of one operation of each step, recorded by\n#   {AGAIN}\n");
        for (name, value) in &self.with {
            let _ = writeln!(text, "with {name} {value}");
        }
        for (name, count) in &self.steps {
            let _ = writeln!(text, "{name} {count}");
        }
        text
    }

    /// Holds what was `counted`, in this order, against the ceilings: the table, and what is wrong.
    pub(crate) fn judge(
        &self,
        counted: &[(&str, u64)],
        with: &BTreeMap<String, String>,
    ) -> (String, Vec<String>) {
        let others = self.others(with);
        let too_many = if others.is_empty() { TOO_MANY } else { TOO_MANY_ELSEWHERE };
        let mut wrong = Vec::new();
        let mut table = format!("{:18}{:>14}{:>12}{:>12}\n", "step", "instructions", "ceiling", "difference");
        for &(name, count) in counted {
            let Some(&ceiling) = self.steps.get(name) else {
                let _ = writeln!(table, "{name:18}{count:>14}{:>12}{:>12}", "-", "-");
                wrong.push(format!("{name} has no ceiling"));
                continue;
            };
            let percent = (count as f64 / ceiling as f64 - 1.0) * 100.0;
            let _ = writeln!(table, "{name:18}{count:>14}{ceiling:>12}{percent:>+10.1} %");
            if count * 100 > ceiling * (100 + too_many) {
                wrong.push(format!("{name} takes {percent:.1} % more instructions than its ceiling"));
            } else if count * 100 < ceiling * (100 - MANY_FEWER) {
                let _ = writeln!(
                    table,
                    "  fewer by more than {MANY_FEWER} %: record it, so that it stays so ({AGAIN})"
                );
            }
        }
        for name in self.steps.keys().filter(|name| counted.iter().all(|(counted, _)| counted != name)) {
            wrong.push(format!("{name} has a ceiling and is no step that is counted"));
        }
        for other in others {
            let _ = writeln!(table, "  {other}: more than {too_many} % is too many, not {TOO_MANY} %");
        }
        if !wrong.is_empty() {
            wrong.push(format!("if it must be so, record it: {AGAIN}"));
        }
        (table, wrong)
    }

    /// What is not as it was when the ceilings were recorded.
    fn others(&self, with: &BTreeMap<String, String>) -> Vec<String> {
        let names = self.with.keys().chain(with.keys().filter(|name| !self.with.contains_key(*name)));
        let [recorded, now] = [&self.with, with]
            .map(|with| move |name: &String| with.get(name).map_or("unknown", String::as_str));
        let differs = |name: &&String| recorded(name) != now(name);
        names
            .filter(differs)
            .map(|name| format!("{name} is {}, and was {} for the ceilings", now(name), recorded(name)))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "# For people.\nwith cpu x86_64\nwith rustc rustc 1.89.0 (abc)\na 1000\nb 100000\n";

    fn wrong(counted: &[(&str, u64)], rustc: &str) -> Vec<String> {
        let with = [("cpu", "x86_64"), ("rustc", rustc)].map(|(a, b)| (a.to_owned(), b.to_owned())).into();
        Ceilings::parse(TEXT).unwrap().judge(counted, &with).1
    }

    #[test]
    fn more_than_five_percent_are_too_many() {
        assert_eq!(wrong(&[("a", 1_050), ("b", 1)], "rustc 1.89.0 (abc)"), [""; 0]);
        let told = wrong(&[("a", 1_051), ("b", 100_000)], "rustc 1.89.0 (abc)");
        assert_eq!(told.len(), 2, "{told:?}");
        assert!(told[0].starts_with("a takes 5.1 % more") && told[1].contains("--write"), "{told:?}");
    }

    #[test]
    fn with_another_compiler_only_much_more_is_too_many() {
        assert_eq!(wrong(&[("a", 1_500), ("b", 100_000)], "rustc 1.90.0"), [""; 0]);
        let told = wrong(&[("a", 1_501), ("b", 100_000)], "rustc 1.90.0");
        assert!(told[0].starts_with("a takes 50.1 % more"), "{told:?}");
        let with = [("cpu", "x86_64"), ("rustc", "rustc 1.90.0")].map(|(a, b)| (a.to_owned(), b.to_owned()));
        let (table, _) = Ceilings::parse(TEXT).unwrap().judge(&[("a", 1), ("b", 1)], &with.into());
        assert!(table.contains("rustc is rustc 1.90.0, and was rustc 1.89.0 (abc)"), "{table}");
        assert!(!table.contains("cpu"), "{table}");
    }

    #[test]
    fn many_fewer_are_told_and_no_failure() {
        let ceilings = Ceilings::parse(TEXT).unwrap();
        let (table, wrong) = ceilings.judge(&[("a", 899), ("b", 90_001)], &BTreeMap::new());
        assert_eq!((table.matches("record it").count(), wrong.len()), (1, 0), "{table}");
    }

    #[test]
    fn steps_without_ceiling_and_ceilings_without_step_are_told() {
        let told = wrong(&[("a", 1_000), ("c", 1)], "rustc 1.89.0 (abc)");
        assert!(told[0].contains("c has no ceiling") && told[1].contains("b has a ceiling"), "{told:?}");
    }

    #[test]
    fn what_is_written_is_read() {
        let ceilings = Ceilings::parse(TEXT).unwrap();
        assert_eq!(Ceilings::parse(&ceilings.text()), Ok(ceilings));
        for (line, nonsense) in [(1, "a"), (2, "\na b"), (1, "with x")] {
            let error = Ceilings::parse(nonsense).unwrap_err();
            assert!(error.contains(&format!("line {line}")), "{error}");
        }
    }
}
