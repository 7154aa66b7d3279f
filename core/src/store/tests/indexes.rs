//! Indexes against a naive model: whatever happens, they find what a look at every object finds.

use alloc::collections::BTreeMap;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use alloc::{format, vec};

use quickcheck::{Arbitrary, Gen};

use super::super::*;
use crate::object::OwnerReference;

#[derive(Clone, Debug, PartialEq, Eq)]
struct Obj {
    name: u8,
    uid: u32,
    rv: String,
    /// Numbers of owners; one may stand twice.
    owners: Vec<u8>,
    tag: u8,
}

impl Resource for Obj {
    fn key(&self) -> Key {
        Key::namespaced(&format!("ns{}", self.name % 3), &self.name.to_string())
    }
    fn uid(&self) -> &str {
        ["0", "1", "2", "3", "4", "5", "6", "7"][self.uid as usize % 8]
    }
    fn resource_version(&self) -> &str {
        &self.rv
    }
    fn each_owner(&self, each: &mut dyn FnMut(&OwnerReference)) {
        for owner in &self.owners {
            let uid = if *owner == 0 { String::new() } else { format!("owner-{owner}") };
            each(&OwnerReference { uid, ..OwnerReference::default() });
        }
    }
}

/// One value, none, or two of which one is all objects'.
fn tags(o: &Obj) -> Vec<String> {
    match o.tag % 4 {
        0 => vec![],
        1 => vec![format!("t{}", o.tag)],
        _ => vec!["all".into(), format!("t{}", o.tag), "all".into()],
    }
}

fn explodes(o: &Obj) -> bool {
    matches!(o.tag, 5 | 10)
}

fn indexes() -> Indexes<Obj> {
    let touchy = Index::new("touchy", |o: &Obj| {
        assert!(!explodes(o), "boom {}", o.tag);
        [o.tag.to_string()]
    });
    Indexes::of([Index::by_owner_uid(), Index::new("tag", tags), touchy]).unwrap()
}

fn naive(model: &BTreeMap<Key, Obj>, has: impl Fn(&Obj) -> bool) -> Vec<(&Key, Obj)> {
    model.iter().filter(|(_, o)| has(o)).map(|(k, o)| (k, o.clone())).collect()
}

fn check(view: &Snapshot<Obj>, model: &BTreeMap<Key, Obj>) {
    assert!(view.iter().eq(naive(model, |_| true)));
    for n in 0..6 {
        let uid = format!("owner-{n}");
        let found: Vec<_> = view.owned_by(&uid).unwrap().collect();
        assert_eq!(found, naive(model, |o| n != 0 && o.owners.contains(&n)), "{uid}");
    }
    assert_eq!(view.owned_by("").unwrap().count(), 0);
    for value in (0..=16).map(|n| format!("t{n}")).chain(["all".into()]) {
        let found: Vec<_> = view.by_index("tag", &value).unwrap().collect();
        assert_eq!(found, naive(model, |o| tags(o).contains(&value)), "{value}");
    }
    for n in 0..16_u8 {
        let value = n.to_string();
        let found: Vec<_> = view.by_index("touchy", &value).unwrap().collect();
        assert_eq!(found, naive(model, |o| o.tag == n && !explodes(o)), "{value}");
    }
}

#[derive(Clone, Debug)]
enum Op {
    Apply(u8, u8),
    Recreate(u8, u8),
    Delete(u8, u8),
    Replay(u8),
    /// Of each: its number, and whether it is as it was, changed, or cannot be read.
    List(Vec<(u8, u8)>, bool),
    Look,
}

impl Arbitrary for Op {
    fn arbitrary(g: &mut Gen) -> Self {
        let (n, m) = (u8::arbitrary(g) % 24, u8::arbitrary(g));
        match u8::arbitrary(g) % 12 {
            0..=4 => Self::Apply(n, m),
            5 => Self::Recreate(n, m),
            6..=7 => Self::Delete(n, m),
            8 => Self::Replay(n),
            9..=10 => {
                let list: Vec<(u8, u8)> = Vec::arbitrary(g);
                Self::List(list.into_iter().map(|(n, m)| (n % 24, m)).collect(), m.is_multiple_of(4))
            }
            _ => Self::Look,
        }
    }
}

struct World {
    store: Store<Obj>,
    model: BTreeMap<Key, Obj>,
    rv: u32,
    uid: u32,
    changes: Vec<Change<Obj>>,
}

impl World {
    fn made(&mut self, name: u8, m: u8, anew: bool) -> Obj {
        self.rv += 1;
        let mut o =
            Obj { name, uid: 0, rv: self.rv.to_string(), owners: vec![m % 6, m / 6 % 6, m % 6], tag: m % 16 };
        match self.model.get(&o.key()) {
            Some(old) if !anew => o.uid = old.uid,
            _ => {
                self.uid += 1;
                o.uid = self.uid;
            }
        }
        o
    }

    fn apply(&mut self, event: Event<Obj>) {
        self.store.apply(event, &mut self.changes);
    }

    fn list(&mut self, list: Vec<(u8, u8)>, interrupted: bool) {
        if interrupted {
            self.apply(Event::Init);
            for (name, m) in &list {
                let o = self.made(*name, *m, false);
                self.apply(Event::InitApply(o));
            }
            // Nothing of it shows, then or later.
            check(&self.store.snapshot(), &self.model);
        }
        let mut model = BTreeMap::new();
        self.apply(Event::Init);
        for (name, m) in list {
            let new = self.made(name, m, m.is_multiple_of(11));
            let key = new.key();
            match (m % 3, self.model.get(&key).cloned()) {
                (0, Some(old)) => {
                    self.apply(Event::InitApply(old.clone()));
                    model.insert(key, old);
                }
                (1, old) => {
                    self.apply(Event::InitKeep(key.clone()));
                    model.extend(old.map(|old| (key, old)));
                }
                _ => {
                    self.apply(Event::InitApply(new.clone()));
                    model.insert(key, new);
                }
            }
        }
        check(&self.store.snapshot(), &self.model);
        self.apply(Event::InitDone { resource_version: self.rv.to_string() });
        self.model = model;
    }
}

#[test]
fn indexes_find_what_a_look_at_every_object_finds() {
    fn prop(ops: Vec<Op>) -> bool {
        let mut world = World {
            store: Store::with_indexes(indexes()),
            model: BTreeMap::new(),
            rv: 10,
            uid: 0,
            changes: Vec::new(),
        };
        let mut views = Vec::new();
        for op in ops {
            match op {
                Op::Apply(name, m) | Op::Recreate(name, m) => {
                    let o = world.made(name, m, matches!(op, Op::Recreate(..)));
                    world.model.insert(o.key(), o.clone());
                    world.apply(Event::Apply(o));
                }
                Op::Delete(name, m) => {
                    // The last state differs from what is stored.
                    let o = world.made(name, m, false);
                    world.model.remove(&o.key());
                    world.apply(Event::Delete(o));
                }
                Op::Replay(name) => {
                    let mut o = world.made(name, 7, false);
                    if let Some(old) = world.model.get(&o.key()) {
                        o.rv.clone_from(&old.rv);
                        world.apply(Event::Apply(o));
                    }
                }
                Op::List(list, interrupted) => world.list(list, interrupted),
                Op::Look => views.push((world.store.snapshot(), world.model.clone())),
            }
            check(&world.store.snapshot(), &world.model);
        }
        views.iter().for_each(|(view, model)| check(view, model));
        true
    }
    crate::cases::cases(60).quickcheck(prop as fn(Vec<Op>) -> bool);
}

fn obj(name: u8, rv: u32, tag: u8) -> Obj {
    Obj { name, uid: name.into(), rv: rv.to_string(), owners: vec![name], tag }
}

#[test]
fn a_panic_costs_its_object_and_its_index_only_and_is_told_once() {
    let mut store = Store::with_indexes(indexes());
    let mut changes = Vec::new();
    store.apply(Event::Apply(obj(1, 1, 5)), &mut changes);
    store.apply(Event::Apply(obj(2, 2, 6)), &mut changes);
    assert_eq!(changes.len(), 2);
    let told = store.take_index_panics();
    assert_eq!(
        told,
        [IndexPanic { index: "touchy".into(), key: obj(1, 1, 5).key(), error: "boom 5".into() }]
    );
    let view = store.snapshot();
    assert_eq!(view.by_index("tag", "t5").unwrap().count(), 1);
    assert_eq!(view.by_index("touchy", "5").unwrap().count(), 0);
    assert_eq!(view.by_index("touchy", "6").unwrap().count(), 1);
    // It changes into something harmless, and back, and goes.
    store.apply(Event::Apply(obj(1, 3, 6)), &mut changes);
    assert_eq!(store.snapshot().by_index("touchy", "6").unwrap().count(), 2);
    store.apply(Event::Apply(obj(1, 4, 10)), &mut changes);
    store.apply(Event::Delete(obj(1, 5, 10)), &mut changes);
    assert_eq!(store.snapshot().by_index("touchy", "6").unwrap().count(), 1);
    assert_eq!((store.take_index_panics().len(), store.index_panics()), (1, 2));
}

#[test]
fn panics_are_kept_up_to_a_limit_and_counted_beyond() {
    let mut store = Store::with_indexes(indexes());
    let mut changes = Vec::new();
    for n in 1..=200 {
        store.apply(Event::Apply(obj(1, n, 5)), &mut changes);
    }
    assert_eq!(store.take_index_panics().len(), crate::limits::INDEX_PANICS);
    assert_eq!((store.take_index_panics().len(), store.index_panics()), (0, 200));
}

#[test]
fn an_index_that_nobody_asked_for_is_an_error_that_names_those_there_are() {
    let view = Store::with_indexes(indexes()).snapshot();
    let e = view.by_index("tags", "x").err().unwrap();
    assert_eq!(e.to_string(), r#"no index is named "tags": this view has ["owner-uid", "tag", "touchy"]"#);
    let e = Snapshot::<Obj>::default().owned_by("u").err().unwrap();
    assert!(e.to_string().contains("this view has none; name those it shall have with `index`"), "{e}");
}

#[test]
fn one_name_is_one_function() {
    let tag = |name: &str| Index::new(name, tags);
    assert_eq!(tag("a"), tag("a"));
    assert_ne!(tag("a"), tag("b"));
    assert_ne!(tag("a"), Index::new("a", |o: &Obj| Some(o.tag.to_string())));
    // One that captures something is only the same as its clones.
    let prefixed = |p: String| Index::new("a", move |o: &Obj| Some(format!("{p}{}", o.tag)));
    let one = prefixed("x".into());
    assert_eq!(one, one.clone());
    assert_ne!(one, prefixed("x".into()));

    let mut all = indexes();
    assert_eq!(all.add(tag("tag")), Ok(()));
    assert_eq!(all.iter().count(), 3);
    let e = all.add(Index::new(OWNER_UID, tags)).unwrap_err();
    assert_eq!(e.to_string(), "two different indexes are named \"owner-uid\"");
}

#[test]
fn objects_with_one_value_share_it_and_an_unchanged_value_costs_no_write() {
    let mut store = Store::with_indexes(indexes());
    let mut changes = Vec::new();
    for n in 0..100 {
        store.apply(Event::Apply(obj(n, n.into(), 2)), &mut changes);
    }
    let before = store.snapshot();
    for n in 0..100 {
        store.apply(Event::Apply(obj(n, 200 + u32::from(n), 2)), &mut changes);
    }
    assert!(before.shares_indexes_with(&store.snapshot()));
    store.apply(Event::Apply(obj(0, 400, 3)), &mut changes);
    assert!(!before.shares_indexes_with(&store.snapshot()));
}
