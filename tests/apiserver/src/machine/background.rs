//! What a real cluster's controllers do after a write: garbage collection by owners, and emptying namespaces.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use steersman_core::machine::Outputs;
use steersman_core::time::Time;

use super::delete::Propagation;
use super::store::{Entry, KeyRange, Record, owners};
use super::{ApiServer, Change, Output};
use crate::resource::NAMESPACES;

/// Most objects looked at before other inputs get their turn.
const BATCH: usize = 500;

/// What is to be done, and when.
#[derive(Default)]
pub(super) struct Work {
    due: Option<Time>,
    /// Objects whose owners may be gone.
    orphans: BTreeSet<(usize, Arc<str>)>,
    /// Objects whose deletion waits for what they own.
    owners: BTreeSet<(usize, Arc<str>)>,
    /// Namespaces that end.
    namespaces: BTreeSet<Arc<str>>,
}

impl Work {
    pub(super) fn due(&self) -> Option<Time> {
        self.due
    }

    fn is_empty(&self) -> bool {
        self.orphans.is_empty() && self.owners.is_empty() && self.namespaces.is_empty()
    }
}

impl ApiServer {
    /// Notes what follows from a write.
    pub(super) fn follow_up(&mut self, now: Time, shelf: usize, entry: &Entry) {
        let new = &entry.new;
        let place = (shelf, Arc::clone(&new.key));
        if entry.deleted {
            if let Some(dependents) = self.dependents.get(new.uid()) {
                self.background.orphans.extend(dependents.iter().cloned());
            }
            for owner in new.owners() {
                if let Some(at) = self.uids.get(owner) {
                    self.background.owners.insert(at.clone());
                }
            }
            let ns = new.namespace();
            if !ns.is_empty() && self.shelves[NAMESPACES].objects.get(ns).is_some_and(|n| n.ending()) {
                self.background.namespaces.insert(ns.into());
            }
        } else {
            if new.owners().any(|uid| !self.uids.contains_key(uid)) {
                self.background.orphans.insert(place.clone());
            }
            if new.ending() {
                if new.finalizers().any(|f| matches!(f, "foregroundDeletion" | "orphan")) {
                    self.background.owners.insert(place);
                }
                if shelf == NAMESPACES {
                    self.background.namespaces.insert(Arc::clone(&new.key));
                }
            }
        }
        if !self.background.is_empty() && self.background.due.is_none() {
            self.background.due = Some(now + self.options.background_delay);
        }
    }

    pub(super) fn run_background(&mut self, now: Time, out: &mut Outputs<Output>) {
        if self.background.due.is_none_or(|due| due > now) {
            return;
        }
        let mut budget = BATCH;
        while budget > 0 {
            budget -= 1;
            if let Some((shelf, key)) = self.background.orphans.pop_first() {
                self.check_owners(now, shelf, &key, out);
            } else if let Some((shelf, key)) = self.background.owners.pop_first() {
                self.check_owner(now, shelf, &key, out);
            } else if let Some(ns) = self.background.namespaces.pop_first() {
                budget = budget.saturating_sub(self.empty_namespace(now, &ns, out));
            } else {
                break;
            }
        }
        // Work that came of this work waits its turn, but never at a time that is already served.
        let delay = self.options.background_delay.max(Duration::from_millis(1));
        self.background.due = (!self.background.is_empty()).then(|| now + delay);
    }

    /// Deletes an object all of whose owners are gone; takes gone owners off one that still has others.
    fn check_owners(&mut self, now: Time, shelf: usize, key: &Arc<str>, out: &mut Outputs<Output>) {
        let Some(record) = self.shelves[shelf].objects.get(key).cloned() else { return };
        let (mut solid, mut gone, mut waiting) = (0, 0, 0);
        for uid in record.owners() {
            match self.uids.get(uid).and_then(|(s, k)| self.shelves[*s].objects.get(k)) {
                None => gone += 1,
                Some(o) if o.ending() && o.finalizers().any(|f| f == "foregroundDeletion") => waiting += 1,
                Some(_) => solid += 1,
            }
        }
        if gone + waiting == 0 {
            return;
        }
        if solid == 0 {
            if !record.ending() {
                let how = match waiting {
                    0 => Propagation::Background,
                    _ if self.dependents.contains_key(record.uid()) => Propagation::Foreground,
                    _ => Propagation::Background,
                };
                // Finalizers that say how to go on outlive the owner.
                let asked = record.finalizers().find_map(|f| match f {
                    "orphan" => Some(Propagation::Orphan),
                    "foregroundDeletion" => Some(Propagation::Foreground),
                    _ => None,
                });
                self.remove(now, shelf, &record, Some(asked.unwrap_or(how)), None, out);
            }
        } else if gone > 0 {
            let dead: Vec<String> =
                record.owners().filter(|uid| !self.uids.contains_key(*uid)).map(str::to_owned).collect();
            self.drop_owners(now, shelf, &record, |uid| dead.iter().any(|d| d == uid), out);
        }
    }

    fn drop_owners(
        &mut self,
        now: Time,
        shelf: usize,
        record: &Arc<Record>,
        drop: impl Fn(&str) -> bool,
        out: &mut Outputs<Output>,
    ) {
        let mut value = record.value.clone();
        if let Some(list) = value["metadata"].get_mut("ownerReferences").and_then(Value::as_array_mut) {
            list.retain(|o| !o.get("uid").and_then(Value::as_str).is_some_and(&drop));
            if list.is_empty()
                && let Some(meta) = value["metadata"].as_object_mut()
            {
                meta.remove("ownerReferences");
            }
        }
        if value != record.value {
            self.commit(now, shelf, &record.key, Change::Put(value), out);
        }
    }

    /// Goes on with a deletion that waits for dependents to go, or to be let go.
    fn check_owner(&mut self, now: Time, shelf: usize, key: &Arc<str>, out: &mut Outputs<Output>) {
        let Some(record) = self.shelves[shelf].objects.get(key).cloned() else { return };
        if !record.ending() {
            return;
        }
        let uid = record.uid().to_owned();
        let dependents: Vec<(usize, Arc<str>)> =
            self.dependents.get(&uid).into_iter().flatten().cloned().collect();
        if record.finalizers().any(|f| f == "orphan") {
            for (s, k) in dependents {
                if let Some(dependent) = self.shelves[s].objects.get(&k).cloned() {
                    self.drop_owners(now, s, &dependent, |u| u == uid, out);
                }
            }
            self.drop_finalizer(now, shelf, key, "orphan", out);
        } else if record.finalizers().any(|f| f == "foregroundDeletion") {
            let mut blocked = false;
            for (s, k) in dependents {
                let Some(dependent) = self.shelves[s].objects.get(&k) else { continue };
                blocked |= owners(dependent.meta()).any(|o| {
                    o.get("uid").and_then(Value::as_str) == Some(&uid)
                        && o.get("blockOwnerDeletion") == Some(&Value::Bool(true))
                });
                if !dependent.ending() {
                    self.background.orphans.insert((s, k));
                }
            }
            if !blocked {
                self.drop_finalizer(now, shelf, key, "foregroundDeletion", out);
            }
        }
    }

    fn drop_finalizer(
        &mut self,
        now: Time,
        shelf: usize,
        key: &Arc<str>,
        name: &str,
        out: &mut Outputs<Output>,
    ) {
        let Some(record) = self.shelves[shelf].objects.get(key).cloned() else { return };
        let left: Vec<&str> = record.finalizers().filter(|f| *f != name).collect();
        if left.is_empty() {
            self.commit(now, shelf, key, Change::Delete, out);
            return;
        }
        let mut value = record.value.clone();
        value["metadata"]["finalizers"] = json!(left);
        self.commit(now, shelf, key, Change::Put(value), out);
    }

    /// Deletes what is in an ending namespace, then the namespace. Returns how many objects it touched.
    fn empty_namespace(&mut self, now: Time, ns: &Arc<str>, out: &mut Outputs<Output>) -> usize {
        let Some(namespace) = self.shelves[NAMESPACES].objects.get(ns).cloned() else { return 0 };
        if !namespace.ending() {
            return 0;
        }
        let range = KeyRange::namespace(ns);
        let (mut touched, mut held) = (0, false);
        for shelf in 0..self.shelves.len() {
            if !self.resources[shelf].namespaced() {
                continue;
            }
            let here: Vec<Arc<Record>> = self.shelves[shelf].range(&range).cloned().collect();
            for record in here {
                if record.ending() {
                    held = true;
                } else {
                    touched += 1;
                    let result = self.remove(now, shelf, &record, Some(Propagation::Background), None, out);
                    held |= matches!(result, super::delete::Deleted::Ending(_));
                }
            }
        }
        // What is held will say so when it goes, which brings the namespace back here.
        if !held && namespace.finalizers().next().is_none() {
            let mut value = namespace.value.clone();
            if let Some(spec) = value["spec"].as_object_mut() {
                spec.remove("finalizers");
            }
            self.commit(now, NAMESPACES, ns, Change::Put(value), out);
            self.background.namespaces.remove(ns);
            self.commit(now, NAMESPACES, ns, Change::Delete, out);
        }
        touched
    }
}
