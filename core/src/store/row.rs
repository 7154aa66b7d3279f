//! An object in a store, and beside it what tells whether another one is newer.
//!
//! Objects that are replaced lie where no cache holds them, each on pages of its own. Most events are judged by numbers that lie
//! together instead.

use core::cmp::Ordering;

use super::Kept;
use crate::object::{Resource, version};

/// An object of a store.
#[derive(Clone)]
pub(super) struct Row<T> {
    pub(super) kept: Kept<T>,
    pub(super) life: Life,
}

/// Uid and version as numbers; zero if they are none. Where both of two are numbers, equal ones are equal texts, and no others are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Life {
    uid: [u64; 2],
    version: u64,
}

impl Life {
    pub(super) fn of<T: Resource>(object: &T) -> Self {
        Self { uid: uid(object.uid()), version: number(object.resource_version()) }
    }
}

impl<T: Resource> Row<T> {
    /// Whether both are one object, as their uids say.
    pub(super) fn is_same_life(&self, other: &Self) -> bool {
        same_uid(self.life.uid, other.life.uid).unwrap_or_else(|| self.kept.is_same_life(&other.kept))
    }

    /// Whether it has this uid.
    pub(super) fn has_uid(&self, text: &str) -> bool {
        same_uid(self.life.uid, uid(text)).unwrap_or_else(|| self.kept.stamp().uid() == text)
    }

    /// Whether it has a version.
    pub(super) fn has_version(&self) -> bool {
        self.life.version != 0 || !self.kept.stamp().version().is_empty()
    }

    /// How the version of `other`, whose life this is, compares with its own; `None` if nobody knows.
    pub(super) fn order_of(&self, other: &T, life: Life) -> Option<Ordering> {
        if self.life.version != 0 && life.version != 0 {
            return Some(life.version.cmp(&self.life.version));
        }
        version::compare(other.resource_version(), self.kept.stamp().version())
    }

    /// Whether `other`, whose life this is, is the same state of the same object.
    pub(super) fn is_same_state(&self, other: &T, life: Life) -> bool {
        self.order_of(other, life) == Some(Ordering::Equal) && self.is_of(other, life)
    }

    /// Whether `other`, whose life this is, is known not to be newer. Versions that cannot be compared are taken as they come.
    pub(super) fn outlives(&self, other: &T, life: Life) -> bool {
        self.is_of(other, life)
            && matches!(self.order_of(other, life), Some(Ordering::Less | Ordering::Equal))
    }

    /// Whether `other` is of the same life.
    pub(super) fn is_of(&self, other: &T, life: Life) -> bool {
        same_uid(self.life.uid, life.uid).unwrap_or_else(|| self.kept.stamp().uid() == other.uid())
    }
}

/// `None` if one of them is no number.
fn same_uid(a: [u64; 2], b: [u64; 2]) -> Option<bool> {
    (a != [0; 2] && b != [0; 2]).then_some(a == b)
}

/// A version that is a number and no greater than the system's.
fn number(text: &str) -> u64 {
    if version::is_number(text) { text.parse().unwrap_or(0) } else { 0 }
}

/// A UUID as the API server writes it: lower case, with hyphens.
fn uid(text: &str) -> [u64; 2] {
    let bytes: &[u8; 36] = match text.as_bytes().try_into() {
        Ok(bytes) => bytes,
        Err(_) => return [0; 2],
    };
    let mut halves = [0; 2];
    let mut digits = 0;
    for (at, &byte) in bytes.iter().enumerate() {
        let digit = match byte {
            b'-' if matches!(at, 8 | 13 | 18 | 23) => continue,
            b'0'..=b'9' => byte - b'0',
            b'a'..=b'f' => byte - b'a' + 10,
            _ => return [0; 2],
        };
        // A digit where a hyphen should be is one too many.
        let Some(half) = halves.get_mut(digits / 16) else { return [0; 2] };
        *half = *half << 4 | u64::from(digit);
        digits += 1;
    }
    halves
}

#[cfg(test)]
mod tests {
    use alloc::format;
    use alloc::string::{String, ToString as _};

    use super::*;
    use crate::object::Object;

    const UID: &str = "0b3f0a3e-7f1c-4a51-9d0e-5c2a6f7d8e90";

    fn object(uid: &str, version: &str) -> Object {
        let json = format!(r#"{{"metadata":{{"name":"a","uid":"{uid}","resourceVersion":"{version}"}}}}"#);
        Object::from_json(json.as_bytes()).unwrap()
    }

    fn row(uid: &str, version: &str) -> Row<Object> {
        let object = object(uid, version);
        Row { life: Life::of(&object), kept: Kept::Whole(object) }
    }

    /// What the texts say, whatever can be told by numbers.
    #[test]
    fn numbers_say_what_the_texts_say() {
        let upper = UID.to_uppercase();
        let other = UID.replace('0', "1");
        let moved = UID.replace('-', "") + "----";
        let (nil, hyphens) = (UID.replace(|c: char| c != '-', "0"), "-".repeat(36));
        let last = UID.replace("90", "91");
        let uids = [UID, &upper, &other, &last, &moved, &nil, &hyphens, "u", ""];
        let long = u64::MAX.to_string();
        let longer = long.clone() + "0";
        let versions = ["", "0", "1", "9", "10", "010", &long, &longer, "18446744073709551616", "v1"];
        for (a, v) in uids.iter().flat_map(|a| versions.iter().map(move |v| (a, v))) {
            let row = row(a, v);
            assert_eq!(row.has_version(), !v.is_empty());
            for (b, w) in uids.iter().flat_map(|b| versions.iter().map(move |w| (b, w))) {
                let new = object(b, w);
                let (life, order) = (Life::of(&new), version::compare(w, v));
                let what: String = format!("{a} at {v}, {b} at {w}");
                assert_eq!(row.has_uid(b), a == b, "{what}");
                assert_eq!(row.is_same_life(&self::row(b, w)), a == b, "{what}");
                assert_eq!(row.order_of(&new, life), order, "{what}");
                assert_eq!(row.is_same_state(&new, life), a == b && order == Some(Ordering::Equal), "{what}");
                let not_newer = matches!(order, Some(Ordering::Less | Ordering::Equal));
                assert_eq!(row.outlives(&new, life), a == b && not_newer, "{what}");
            }
        }
    }

    #[test]
    fn what_a_server_writes_is_a_number() {
        let life = Life::of(&object(UID, "4711"));
        assert_eq!(life, Life { uid: [0x0b3f_0a3e_7f1c_4a51, 0x9d0e_5c2a_6f7d_8e90], version: 4711 });
    }
}
