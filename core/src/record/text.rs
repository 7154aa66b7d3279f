//! Outputs as lines: short for people, and equal when the decisions are.

use alloc::format;
use alloc::string::{String, ToString};
use core::fmt::{self, Write as _};

use crate::machine::Deadline;
use crate::object::{Object, Resource as _};
use crate::store::{Change, Delta};

/// Changes of one delta that stand in its line; the others are in its checksum.
const SHOWN: usize = 8;

/// FNV-1a of 64 bits: it tells differences, and hides nothing.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sum(u64);

impl Default for Sum {
    fn default() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }
}

impl Sum {
    pub(super) fn add(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }
}

impl fmt::Display for Sum {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "#{:016x}", self.0)
    }
}

/// `prod/db@12 uid 7 (345 bytes)`: which state of which object, without what is in it.
pub(super) fn object(object: &Object) -> String {
    format!(
        "{}@{} uid {} ({} bytes)",
        object.key(),
        object.resource_version(),
        object.uid(),
        object.raw().len()
    )
}

fn change(change: &Change<Object>) -> String {
    match change {
        Change::Added { new, initial } => {
            format!("+ {}{}", object(new), if *initial { " initial" } else { "" })
        }
        Change::Updated { old, new, relisted } => {
            let relisted = if *relisted { " relisted" } else { "" };
            format!("~ {} before @{}{relisted}", object(new), old.resource_version())
        }
        Change::Deleted { old, final_unknown } => {
            format!("- {}{}", object(old), if *final_unknown { " final state unknown" } else { "" })
        }
    }
}

pub(super) fn delta(delta: &Delta<Object>) -> String {
    let Delta { changes, view, synced, resource_version, received } = delta;
    let mut text = format!(
        "delta at {resource_version:?}, {}, {} objects, received {received:?}, {} changes",
        if *synced { "synced" } else { "not synced" },
        view.len(),
        changes.len()
    );
    for c in changes.iter().take(SHOWN) {
        let _ = write!(text, "; {}", change(&c));
    }
    if changes.len() > SHOWN {
        let mut sum = Sum::default();
        changes.iter().skip(SHOWN).for_each(|c| sum.add(change(&c).as_bytes()));
        let _ = write!(text, "; and {} more {sum}", changes.len() - SHOWN);
    }
    text
}

pub(super) fn deadline(deadline: Option<Deadline>) -> String {
    deadline.map_or_else(|| "nothing".to_string(), |d| format!("{} until {:?}", d.why, d.at))
}
