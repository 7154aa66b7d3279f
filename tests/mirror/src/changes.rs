//! What the harness makes and does: each ConfigMap has a fate, drawn from the seed, and with it a known end.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};
use steersman_core::api::kinds::{ByteString, ConfigMap, Secret};
use steersman_core::api::{Api, DeleteParams, Deleted, Patch, PatchParams, Request};
use steersman_core::object::ObjectMeta;
use steersman_core::rng::Rng;

use crate::plan::MIRROR;

/// Keys and what they hold.
pub(crate) type Data = BTreeMap<String, ByteString>;

/// What happens to one ConfigMap while the controller runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Fate {
    /// Nothing.
    Stays,
    /// Its data change.
    Changes,
    /// It is deleted.
    Deleted,
    /// Somebody edits its Secret: another value, a key too many, a key too few.
    SecretEdited,
    /// Somebody deletes its Secret.
    SecretDeleted,
    /// Somebody takes the owner reference off its Secret.
    SecretDisowned,
    /// Somebody edits its Secret and makes it immutable.
    SecretFrozen,
    /// It loses its label.
    Unlabelled,
    /// It gets its label only now.
    Labelled,
    /// It is deleted and made anew with other data.
    Recreated,
    /// A foreign Secret is in the way, and goes.
    FreedLater,
    /// A foreign Secret is in the way, and stays.
    Blocked,
}

/// Per thousand; at least one of each as long as there are objects.
const SHARES: [(Fate, usize); 11] = [
    (Fate::Changes, 100),
    (Fate::Deleted, 50),
    (Fate::SecretEdited, 20),
    (Fate::SecretDeleted, 15),
    (Fate::SecretDisowned, 15),
    (Fate::Unlabelled, 10),
    (Fate::Labelled, 10),
    (Fate::Recreated, 10),
    (Fate::SecretFrozen, 5),
    (Fate::FreedLater, 2),
    (Fate::Blocked, 1),
];

/// One ConfigMap.
#[derive(Clone, Debug)]
pub(crate) struct Item {
    pub(crate) name: String,
    pub(crate) fate: Fate,
    before: Data,
    after: Data,
}

/// How it must end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End<'a> {
    /// With a mirror that holds this.
    Mirrored(&'a Data),
    /// Without a Secret.
    None,
    /// With somebody else's Secret, untouched.
    Foreign,
}

/// The ConfigMaps of a run.
pub(crate) fn items(objects: usize, seed: u64) -> Vec<Item> {
    let mut rng = Rng::new(seed);
    let mut fates = Vec::with_capacity(objects);
    for (fate, share) in SHARES {
        let n = (objects * share / 1000).max(1).min(objects - fates.len());
        fates.extend(std::iter::repeat_n(fate, n));
    }
    fates.resize(objects, Fate::Stays);
    for i in (1..objects).rev() {
        fates.swap(i, rng.below(i as u64 + 1) as usize);
    }
    let width = objects.saturating_sub(1).to_string().len();
    let item = |(i, fate)| {
        let before = data(&mut rng);
        let mut after = data(&mut rng);
        if matches!(fate, Fate::Changes | Fate::Recreated) {
            // Never by chance the same.
            after.insert("changed".into(), "yes".into());
        } else {
            after.clone_from(&before);
        }
        Item { name: format!("map-{i:0width$}"), fate, before, after }
    };
    fates.into_iter().enumerate().map(item).collect()
}

/// One to five keys, text and bytes, some hundred bytes together.
fn data(rng: &mut Rng) -> Data {
    let key = |rng: &mut Rng, i| {
        let binary = rng.below(5) == 0;
        let length = rng.below(200) as usize;
        let bytes: Vec<u8> = (0..length)
            .map(|_| if binary { 0x80 | rng.next_u64() as u8 } else { b' ' + rng.below(95) as u8 })
            .collect();
        (format!("key{i}.{}", if binary { "bin" } else { "txt" }), ByteString(bytes))
    };
    (0..=rng.below(5)).map(|i| key(rng, i)).collect()
}

/// What the harness does to the Secret that the controller made; it waits for it first.
#[derive(Debug)]
pub(crate) enum Break {
    Patch(Value),
    Delete,
}

impl Item {
    /// How it must end.
    pub(crate) fn end(&self) -> End<'_> {
        match self.fate {
            Fate::Deleted | Fate::Unlabelled => End::None,
            Fate::Blocked => End::Foreign,
            _ => End::Mirrored(&self.after),
        }
    }

    /// Whether its ConfigMap is there at the end.
    pub(crate) fn survives(&self) -> bool {
        self.fate != Fate::Deleted
    }

    /// The ConfigMap as it is made first.
    pub(crate) fn create(&self, namespace: &str) -> Request<ConfigMap> {
        self.make(namespace, &self.before, self.fate != Fate::Labelled)
    }

    /// The ConfigMap as it is made for the second time.
    pub(crate) fn create_again(&self, namespace: &str) -> Request<ConfigMap> {
        self.make(namespace, &self.after, true)
    }

    fn make(&self, namespace: &str, data: &Data, labelled: bool) -> Request<ConfigMap> {
        let mut map =
            ConfigMap { metadata: ObjectMeta::named(namespace, &self.name), ..ConfigMap::default() };
        if labelled {
            map.metadata = map.metadata.label(MIRROR, "true");
        }
        for (key, bytes) in data {
            match String::from_utf8(bytes.0.clone()) {
                Ok(text) => drop(map.data.insert(key.clone(), text)),
                Err(_) => drop(map.binary_data.insert(key.clone(), bytes.clone())),
            }
        }
        Api::namespaced(namespace).create(&map)
    }

    /// The foreign Secret in the way, if there is one.
    pub(crate) fn obstacle(&self, namespace: &str) -> Option<Request<Secret>> {
        matches!(self.fate, Fate::FreedLater | Fate::Blocked).then(|| {
            let metadata = ObjectMeta::named(namespace, &self.name).label("made-by", "somebody-else");
            let secret = Secret { metadata, data: foreign_data(), ..Secret::default() };
            Api::<Secret>::namespaced(namespace).create(&secret)
        })
    }

    /// What changes in the ConfigMap.
    pub(crate) fn patch(&self, namespace: &str) -> Option<Request<ConfigMap>> {
        let patch = match self.fate {
            Fate::Changes => self.data_patch(),
            Fate::Unlabelled => json!({"metadata": {"labels": {MIRROR: null}}}),
            Fate::Labelled => json!({"metadata": {"labels": {MIRROR: "true"}}}),
            _ => return None,
        };
        let api = Api::<ConfigMap>::namespaced(namespace);
        Some(api.patch(&self.name, &Patch::Merge(patch), &PatchParams::default()))
    }

    /// From the data before to those after.
    fn data_patch(&self) -> Value {
        let mut patch = json!({"data": {}, "binaryData": {}});
        let is_text = |bytes: &ByteString| std::str::from_utf8(&bytes.0).ok().map(str::to_owned);
        for (key, bytes) in &self.before {
            let member = if is_text(bytes).is_some() { "data" } else { "binaryData" };
            patch[member][key] = Value::Null;
        }
        for (key, bytes) in &self.after {
            match is_text(bytes) {
                Some(text) => patch["data"][key] = text.into(),
                None => patch["binaryData"][key] = json!(bytes),
            }
        }
        patch
    }

    /// The deletion of the ConfigMap.
    pub(crate) fn delete(&self, namespace: &str) -> Option<Request<Deleted>> {
        matches!(self.fate, Fate::Deleted | Fate::Recreated)
            .then(|| Api::<ConfigMap>::namespaced(namespace).delete(&self.name, &DeleteParams::background()))
    }

    /// What is done to the Secret.
    pub(crate) fn broken(&self) -> Option<Break> {
        let mut edit = json!({"data": {"too-many": "AAAA"}});
        for (i, key) in self.before.keys().enumerate() {
            edit["data"][key] = if i % 2 == 0 { Value::Null } else { "d3Jvbmc=".into() };
        }
        match self.fate {
            Fate::SecretEdited => Some(Break::Patch(edit)),
            Fate::SecretFrozen => {
                edit["immutable"] = true.into();
                Some(Break::Patch(edit))
            }
            Fate::SecretDisowned => Some(Break::Patch(json!({"metadata": {"ownerReferences": null}}))),
            Fate::SecretDeleted | Fate::FreedLater => Some(Break::Delete),
            _ => None,
        }
    }
}

/// What a foreign Secret holds.
pub(crate) fn foreign_data() -> Data {
    Data::from([("password".to_owned(), "not-yours".into())])
}

/// How often each fate was drawn, in words for the first line of a run.
pub(crate) fn summary(items: &[Item]) -> String {
    let count = |fates: &[Fate]| items.iter().filter(|item| fates.contains(&item.fate)).count();
    use Fate::*;
    format!(
        "{} changed, {} deleted, {} made anew, {} relabelled, {} Secrets broken, {} foreign ones in the way",
        count(&[Changes]),
        count(&[Deleted]),
        count(&[Recreated]),
        count(&[Labelled, Unlabelled]),
        count(&[SecretEdited, SecretDeleted, SecretDisowned, SecretFrozen]),
        count(&[FreedLater, Blocked]),
    )
}

/// Every name once.
pub(crate) fn names(items: &[Item]) -> BTreeSet<&str> {
    items.iter().map(|item| item.name.as_str()).collect()
}
