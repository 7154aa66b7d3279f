//! Compares every Secret with what it must be. Nothing that a Secret holds gets into a message.

use std::collections::BTreeMap;
use std::fmt;

use steersman_core::api::kinds::{ConfigMap, Secret};

use crate::changes::{End, Item, foreign_data, names};
use crate::plan::MIRROR_OF;

/// What is not as it should be.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Verdict {
    /// Secrets that were compared.
    pub(crate) checked: usize,
    /// Names, and what is wrong with them.
    pub(crate) wrong: Vec<(String, &'static str)>,
}

/// Most names in a message.
const SHOWN: usize = 4;

/// The Secret of a ConfigMap that was deleted is still there.
pub(crate) const UNCOLLECTED: &str = "not collected after its ConfigMap was deleted";

impl Verdict {
    /// What may help, if it stays so.
    pub(crate) fn hint(&self) -> &'static str {
        let uncollected = self.wrong.iter().any(|(_, what)| *what == UNCOLLECTED);
        if uncollected { " (does the cluster run a garbage collector?)" } else { "" }
    }
}

/// As `3 of 941 are wrong: map-1: missing; map-7: other data; ...`.
impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {} are wrong", self.wrong.len(), self.checked)?;
        for (i, (name, what)) in self.wrong.iter().take(SHOWN).enumerate() {
            write!(f, "{} {name}: {what}", if i == 0 { ":" } else { ";" })?;
        }
        if self.wrong.len() > SHOWN {
            f.write_str("; ...")?;
        }
        Ok(())
    }
}

/// Compares all ConfigMaps and all Secrets of the namespace with how the items must end.
pub(crate) fn compare(items: &[Item], maps: &[ConfigMap], secrets: &[Secret]) -> Verdict {
    let maps: BTreeMap<_, _> = maps.iter().map(|m| (m.metadata.name.as_str(), m)).collect();
    let by_name: BTreeMap<_, _> = secrets.iter().map(|s| (s.metadata.name.as_str(), s)).collect();
    let mut verdict = Verdict { checked: items.len(), wrong: Vec::new() };
    for item in items {
        let map = maps.get(item.name.as_str()).copied();
        let secret = by_name.get(item.name.as_str()).copied();
        if let Some(what) = fault(item, map, secret) {
            verdict.wrong.push((item.name.clone(), what));
        }
    }
    // Mirrors of nothing that we know; what a cluster puts into every namespace is not meant.
    let known = names(items);
    for secret in secrets.iter().filter(|s| s.metadata.labels.contains_key(MIRROR_OF)) {
        if !known.contains(secret.metadata.name.as_str()) {
            verdict.wrong.push((secret.metadata.name.clone(), "of no ConfigMap of ours"));
        }
    }
    verdict
}

fn fault(item: &Item, map: Option<&ConfigMap>, secret: Option<&Secret>) -> Option<&'static str> {
    match (item.survives(), map) {
        (true, None) => return Some("its ConfigMap is missing"),
        (false, Some(_)) => return Some("its ConfigMap is still there"),
        _ => {}
    }
    let Some(secret) = secret else { return (item.end() != End::None).then_some("missing") };
    if secret.metadata.deletion_timestamp.is_some() {
        return Some("being deleted");
    }
    let owner = secret.metadata.owner_references.iter().find(|o| o.controller == Some(true));
    match item.end() {
        End::None if map.is_none() => Some(UNCOLLECTED),
        End::None => Some("still there"),
        End::Foreign if secret.data != foreign_data() || owner.is_some() => Some("foreign, but was changed"),
        End::Foreign => None,
        End::Mirrored(data) => {
            let uid = map.map_or("", |m| m.metadata.uid.as_str());
            match owner {
                None => Some("not owned"),
                Some(owner) if owner.uid != uid || owner.kind != "ConfigMap" => Some("owned by another"),
                Some(_) if secret.metadata.labels.get(MIRROR_OF).is_none_or(|l| l != uid) => {
                    Some("not labelled as a mirror")
                }
                Some(_) if secret.data != *data => Some("other data"),
                Some(_) => None,
            }
        }
    }
}
