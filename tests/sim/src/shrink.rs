//! Makes a failing run small: the fewest faults, the fewest processes, the plainest numbers with which the same oracle
//! still objects (delta debugging, after Zeller and Hildebrandt, TSE 2002).

use std::time::Duration;

use serde_json::{Number, Value};

use crate::faults::Fault;
use crate::judge::Case;
use crate::oracle::Violation;
use crate::sim::{Report, Sim};

/// A run that fails, and how many runs it took to find it.
pub(crate) struct Small {
    pub(crate) faults: Vec<Fault>,
    pub(crate) sim: Sim,
    pub(crate) report: Report,
    pub(crate) runs: u64,
}

/// The smallest run that fails as this one does, as far as the simulator may look for it.
pub(crate) fn shrink(sim: &Sim, case: &Case<'_>, report: Report, violation: &Violation) -> Small {
    let best = Small { faults: case.faults.to_vec(), sim: sim.clone(), report, runs: 0 };
    let mut search = Search { case, violation, most: sim.shrink_runs, best };
    // What is plainer may take less, and less may be plainer.
    loop {
        let (faults, shape) = (search.best.faults.clone(), search.best.sim.shape());
        search.fewer_faults();
        search.fewer_processes();
        search.plainer_faults();
        if search.is_over() || (search.best.faults == faults && search.best.sim.shape() == shape) {
            // Last, for a later begin is no plainer one.
            (0..search.best.faults.len()).for_each(|n| search.later(n));
            return search.best;
        }
    }
}

struct Search<'a> {
    case: &'a Case<'a>,
    violation: &'a Violation,
    most: u64,
    best: Small,
}

impl Search<'_> {
    fn is_over(&self) -> bool {
        self.best.runs >= self.most
    }

    /// Takes these faults if they do as well.
    fn try_faults(&mut self, faults: Vec<Fault>) -> bool {
        if self.is_over() {
            return false;
        }
        self.best.runs += 1;
        let Some(report) = self.best.sim.same(self.case, &faults, self.violation) else { return false };
        (self.best.faults, self.best.report) = (faults, report);
        true
    }

    /// Takes out halves, quarters, ..., single ones.
    fn fewer_faults(&mut self) {
        if self.best.faults.is_empty() || self.try_faults(Vec::new()) {
            return;
        }
        let mut size = self.best.faults.len().div_ceil(2);
        loop {
            let mut from = 0;
            while from < self.best.faults.len() && !self.is_over() {
                let mut rest = self.best.faults.clone();
                rest.drain(from..(from + size).min(rest.len()));
                // None at all was tried before.
                if rest.is_empty() || !self.try_faults(rest) {
                    from += size;
                }
            }
            if size == 1 || self.is_over() {
                return;
            }
            size = size.div_ceil(2).min(self.best.faults.len()).max(1);
        }
    }

    /// Takes out processes and followers, from the last.
    fn fewer_processes(&mut self) {
        while self.best.sim.programs.len() > 1 {
            // It may be the last one that matters.
            let last = self.best.sim.programs.len() - 1;
            let swapped: Vec<Fault> = self.best.faults.iter().map(|f| renumbered(f, last)).collect();
            if swapped != self.best.faults {
                self.try_faults(swapped);
            }
            let sim = self.best.sim.first(Some(self.best.sim.programs.len() - 1), None);
            if !self.try_sim(sim) {
                break;
            }
        }
        while let Some(left) = self.best.sim.followers.len().checked_sub(1) {
            let sim = self.best.sim.first(None, Some(left));
            if !self.try_sim(sim) {
                break;
            }
        }
    }

    fn try_sim(&mut self, sim: Sim) -> bool {
        if self.is_over() {
            return false;
        }
        self.best.runs += 1;
        // What happens to those who are not there would be an error in the command that is printed.
        let shape = sim.shape();
        let mut faults = self.best.faults.clone();
        faults.retain(|fault| fault.unknown(shape.replicas, shape.servers).is_none());
        let Some(report) = sim.same(self.case, &faults, self.violation) else { return false };
        if self.case.end.is_some() {
            // Fewer processes must not be what makes the difference.
            self.best.runs += 1;
            if !sim.is_well_alone(self.case) {
                return false;
            }
        }
        (self.best.sim, self.best.faults, self.best.report) = (sim, faults, report);
        true
    }

    /// Makes the numbers in each fault plainer, one after the other.
    fn plainer_faults(&mut self) {
        let mut n = 0;
        while n < self.best.faults.len() {
            let mut place = 0;
            while !self.is_over() && self.plainer_leaf(n, place) {
                place += 1;
            }
            n += 1;
        }
    }

    /// Lets a fault that lasts begin later and end when it did: by half of what it lasts, a quarter, ..., a second.
    fn later(&mut self, fault: usize) {
        let Some(lasts) = self.best.faults[fault].lasts_mut().map(|lasts| lasts.as_secs()) else { return };
        let mut by = lasts / 2;
        while by > 0 && !self.is_over() {
            let mut faults = self.best.faults.clone();
            if !(faults[fault].begin_later(Duration::from_secs(by)) && self.try_faults(faults)) {
                by /= 2;
            }
        }
    }

    /// Makes one number of a fault plainer, again and again. Whether there is such a number.
    fn plainer_leaf(&mut self, fault: usize, place: usize) -> bool {
        'plainer: loop {
            let Ok(mut value) = serde_json::to_value(&self.best.faults[fault]) else { return false };
            let Some(now) = leaf(&mut value, &mut place.clone()).map(|leaf| leaf.clone()) else {
                return false;
            };
            for candidate in plainer(&now) {
                if let Some(leaf) = leaf(&mut value, &mut place.clone()) {
                    *leaf = candidate;
                }
                let Ok(changed) = serde_json::from_value(value.clone()) else { continue };
                let mut faults = self.best.faults.clone();
                faults[fault] = changed;
                if self.try_faults(faults) {
                    continue 'plainer;
                }
            }
            return true;
        }
    }
}

/// What happens to this process happens to the first one instead.
fn renumbered(fault: &Fault, from: usize) -> Fault {
    fn walk(value: &mut Value, from: &Value) {
        let Value::Object(members) = value else { return };
        for (name, member) in members {
            if name == "replica" && member == from {
                *member = 0.into();
            }
            walk(member, from);
        }
    }
    let Ok(mut value) = serde_json::to_value(fault) else { return fault.clone() };
    walk(&mut value, &from.into());
    serde_json::from_value(value).unwrap_or_else(|_| fault.clone())
}

/// The number or truth value with this place among all of them.
fn leaf<'a>(value: &'a mut Value, place: &mut usize) -> Option<&'a mut Value> {
    match value {
        Value::Number(_) | Value::Bool(_) if *place == 0 => Some(value),
        Value::Number(_) | Value::Bool(_) => {
            *place -= 1;
            None
        }
        Value::Array(items) => items.iter_mut().find_map(|item| leaf(item, place)),
        Value::Object(members) => members.values_mut().find_map(|member| leaf(member, place)),
        Value::Null | Value::String(_) => None,
    }
}

/// What a value could be instead, the plainest first. Each is plainer, so that this comes to an end: of two numbers the
/// plainer one has fewer digits before its zeros; then it is the smaller one.
fn plainer(value: &Value) -> Vec<Value> {
    match value {
        Value::Bool(true) => vec![Value::Bool(false)],
        Value::Number(number) => {
            let negative = number.as_i64().is_some_and(|n| n < 0);
            let size = number.as_u64().or_else(|| number.as_i64().map(i64::unsigned_abs)).unwrap_or(0);
            plainer_number(size)
                .into_iter()
                .filter_map(|n| {
                    if negative { Some(Number::from(-i64::try_from(n).ok()?)) } else { Some(n.into()) }
                })
                .map(Value::Number)
                .collect()
        }
        _ => Vec::new(),
    }
}

fn plainer_number(n: u64) -> Vec<u64> {
    let mut all = vec![0, 1];
    let mut unit = 10u64.pow(n.checked_ilog10().unwrap_or(0));
    while unit > 0 {
        let down = n / unit * unit;
        all.extend([down, down.saturating_add(unit)]);
        unit /= 10;
    }
    all.extend([n / 2, n.saturating_sub(1)]);
    let mut tried = Vec::new();
    for candidate in all {
        if (digits(candidate), candidate) < (digits(n), n) && !tried.contains(&candidate) {
            tried.push(candidate);
        }
    }
    tried
}

/// How many digits stand before the zeros at the end.
fn digits(mut n: u64) -> u32 {
    if n == 0 {
        return 0;
    }
    while n.is_multiple_of(10) {
        n /= 10;
    }
    n.ilog10() + 1
}

#[cfg(test)]
mod tests;
