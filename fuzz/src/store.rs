//! Operations on a store with indexes, compared with a naive model after each.
//!
//! Three bytes are one operation. The model holds whole maps and compares them; it clones the allocations that the store
//! must hold, so what is alive beyond those is what the store holds too much.

use std::cell::Cell;
use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use steersman_core::object::{Key, OwnerReference, Resource};
use steersman_core::store::{Applied, Change, Index, Indexes, Snapshot, Store};
use steersman_core::watcher::Event;

/// Plays the operations that `data` spells.
///
/// # Panics
/// If contents, changes, indexes, versions or memory differ from the model, or a snapshot changes.
pub fn run(data: &[u8]) {
    play(data, false);
    play(data, true);
}

/// With objects that lie whole in the store, or packed.
fn play(data: &[u8], packs: bool) {
    let mut world = World::new(packs);
    for op in data.chunks_exact(3) {
        world.step(op[0], op[1], op[2]);
        world.check();
    }
    world.views.drain(..).for_each(|view| view.check());
    let live = Rc::clone(&world.live);
    drop(world);
    assert_eq!(live.get(), 0, "something outlives the store and its snapshots");
}

/// The stand-in for an object; clones share what it holds.
#[derive(Clone, Debug)]
struct Obj(Rc<Held>);

#[derive(Debug)]
struct Held {
    name: u8,
    uid: u64,
    uid_text: String,
    rv: String,
    traits: u8,
    packs: bool,
    live: Rc<Cell<usize>>,
}

impl Drop for Held {
    fn drop(&mut self) {
        self.live.set(self.live.get() - 1);
    }
}

impl PartialEq for Obj {
    fn eq(&self, other: &Self) -> bool {
        let said = |o: &Self| (o.0.name, o.0.uid, o.0.rv.clone(), o.0.traits);
        Rc::ptr_eq(&self.0, &other.0) || (self.0.packs && said(self) == said(other))
    }
}

impl Resource for Obj {
    fn key(&self) -> Key {
        key(self.0.name)
    }
    fn uid(&self) -> &str {
        &self.0.uid_text
    }
    fn resource_version(&self) -> &str {
        &self.0.rv
    }
    fn each_owner(&self, each: &mut dyn FnMut(&OwnerReference)) {
        for uid in owners(self.0.traits) {
            each(&OwnerReference { uid, ..OwnerReference::default() });
        }
    }

    fn to_packable(&self, out: &mut Vec<u8>) -> bool {
        let Held { name, uid, rv, traits, packs, .. } = &*self.0;
        let common = "what is the same in all of them, and so costs next to nothing in each";
        out.extend_from_slice(format!("{common} {name} {uid} {traits} {rv}").as_bytes());
        *packs
    }

    fn from_packable(bytes: &mut [u8]) -> Option<Self> {
        let text = std::str::from_utf8(bytes).ok()?;
        let mut parts = text.split(' ').skip(16);
        let (name, uid, traits) = (parts.next()?, parts.next()?.parse().ok()?, parts.next()?);
        let (name, traits) = (name.parse().ok()?, traits.parse().ok()?);
        let (uid_text, rv) = (format!("u{uid}"), parts.next()?.to_owned());
        // It counts nowhere: whether objects are alive twice is asked of those that lie whole.
        let live = Rc::new(Cell::new(1));
        Some(Self(Rc::new(Held { name, uid, uid_text, rv, traits, packs: true, live })))
    }
}

fn key(name: u8) -> Key {
    match name % 4 {
        0 => Key::cluster(&name.to_string()),
        ns => Key::namespaced(&format!("ns{ns}"), &name.to_string()),
    }
}

/// Up to two owners, perhaps the same one twice.
fn owners(traits: u8) -> Vec<String> {
    let (a, b) = (traits & 3, traits >> 2 & 3);
    [a, b].iter().filter(|n| **n > 0).map(|n| format!("o{n}")).collect()
}

/// Up to three tags.
fn tags(o: &Obj) -> Vec<String> {
    let t = o.0.traits;
    (0..t >> 4 & 3).map(|n| format!("t{}", (t >> 6) + n % 2)).collect()
}

type Map = BTreeMap<Key, Obj>;

struct View {
    view: Snapshot<Obj>,
    objects: Map,
    version: String,
    synced: bool,
}

struct World {
    packs: bool,
    store: Store<Obj>,
    live: Rc<Cell<usize>>,
    objects: Map,
    staged: Option<Map>,
    version: String,
    synced: bool,
    stale: u64,
    views: Vec<View>,
    changes: Vec<Change<Obj>>,
    rv: u64,
    uids: u64,
}

/// The numbers of two versions, if both are some.
fn order(a: &str, b: &str) -> Option<Ordering> {
    let number = |v: &str| v.parse::<u64>().ok().filter(|n| *n > 0);
    Some(number(a)?.cmp(&number(b)?))
}

fn same(a: &Obj, b: &Obj) -> bool {
    a.0.uid == b.0.uid && a.0.rv == b.0.rv && !a.0.rv.is_empty()
}

impl World {
    fn new(packs: bool) -> Self {
        let indexes = Indexes::of([Index::by_owner_uid(), Index::new("tag", tags)]);
        let store = Store::with_indexes(indexes.expect("two names"));
        Self {
            packs,
            store: if packs { store.compact() } else { store },
            live: Rc::default(),
            objects: Map::new(),
            staged: None,
            version: String::new(),
            synced: false,
            stale: 0,
            views: Vec::new(),
            changes: Vec::new(),
            rv: 100,
            uids: 0,
        }
    }

    fn obj(&mut self, name: u8, uid: u64, rv: String, traits: u8) -> Obj {
        self.live.set(self.live.get() + 1);
        let uid_text = format!("u{uid}");
        Obj(Rc::new(Held { name, uid, uid_text, rv, traits, packs: self.packs, live: Rc::clone(&self.live) }))
    }

    /// Something that a server may send for `name`: news, old news, another life, an odd version.
    fn some(&mut self, what: u8, name: u8, traits: u8) -> Obj {
        let known = self.objects.get(&key(name)).map(|o| (o.0.uid, o.0.rv.clone(), o.0.traits));
        self.rv += 1;
        let rv = self.rv.to_string();
        self.uids += 1;
        let Some((uid, known_rv, known_traits)) = known else {
            return self.obj(name, self.uids, rv, traits);
        };
        match what % 16 {
            0..=7 => self.obj(name, uid, rv, traits),
            8..=9 => self.obj(name, self.uids, rv, traits),
            // The same state in a new allocation.
            10..=11 => self.obj(name, uid, known_rv, known_traits),
            12 => self.obj(name, uid, (self.rv / 2).to_string(), traits),
            13 => self.obj(name, self.uids, (self.rv / 2).to_string(), traits),
            14 => self.obj(name, uid, String::new(), traits),
            _ => self.obj(name, uid, format!("odd-{}", traits % 3), traits),
        }
    }

    fn step(&mut self, op: u8, name: u8, arg: u8) {
        let (what, name) = (op >> 4, name % 12);
        match op % 16 {
            0..=3 => {
                let o = self.some(what, name, arg);
                self.apply(o);
            }
            4..=5 => {
                let o = self.some(what, name, arg);
                self.delete(o);
            }
            6 => {
                let resource_version = self.some_version(what);
                self.bookmark(resource_version);
            }
            7 => {
                self.init();
            }
            8..=10 => {
                let o = self.some(if arg.is_multiple_of(2) { 10 } else { what }, name, arg);
                self.init_apply(o);
            }
            11 => self.init_keep(name),
            12 => {
                let resource_version = self.some_version(what);
                self.init_done(resource_version);
            }
            13 => self.relist(what, name, arg),
            14 => self.look(),
            _ => {
                if !self.views.is_empty() {
                    self.views.swap_remove(usize::from(arg) % self.views.len()).check();
                }
            }
        }
    }

    fn some_version(&mut self, what: u8) -> String {
        self.rv += 1;
        match what {
            0..=11 => self.rv.to_string(),
            12..=13 => (self.rv / 2).to_string(),
            14 => String::new(),
            _ => "odd".into(),
        }
    }

    /// A whole list of what there is, with some of it changed, gone or unreadable.
    fn relist(&mut self, what: u8, name: u8, arg: u8) {
        self.init();
        for (n, key) in self.objects.keys().cloned().collect::<Vec<_>>().into_iter().enumerate() {
            let Ok(number) = key.name().parse::<u8>() else { continue };
            match arg.wrapping_mul(31).wrapping_add(n as u8 * 7) % 8 {
                0 => {}
                1 => self.init_keep(number),
                2 => {
                    let o = self.some(what, number, arg);
                    self.init_apply(o);
                }
                _ => {
                    let o = self.some(10, number, arg);
                    self.init_apply(o);
                }
            }
            self.check();
        }
        let o = self.some(what, name, arg);
        self.init_apply(o);
        self.init_done(self.rv.to_string());
    }

    fn give(&mut self, event: Event<Obj>) -> Applied {
        self.changes.clear();
        self.store.apply(event, &mut self.changes)
    }

    fn advance(&mut self, to: &str) {
        let above = match order(to, &self.version) {
            Some(order) => order == Ordering::Greater,
            None => to != self.version,
        };
        if !to.is_empty() && above {
            to.clone_into(&mut self.version);
        }
    }

    fn apply(&mut self, new: Obj) {
        if self.staged.is_some() {
            assert_eq!(self.give(Event::Apply(new.clone())), Applied::Staged);
            return self.stage(new);
        }
        let key = new.key();
        let old = self.objects.get(&key).cloned();
        let applied = self.give(Event::Apply(new.clone()));
        let is_stale = |old: &Obj| {
            let no_news = matches!(order(&new.0.rv, &old.0.rv), Some(Ordering::Less | Ordering::Equal))
                || (!new.0.rv.is_empty() && new.0.rv == old.0.rv);
            old.0.uid == new.0.uid && no_news
        };
        if old.as_ref().is_some_and(is_stale) {
            self.stale += 1;
            assert_eq!(applied, Applied::Stale(key));
            return self.expect(&[]);
        }
        assert_eq!(applied, Applied::Done);
        self.advance(&new.0.rv);
        self.objects.insert(key, new.clone());
        self.expect(&difference(old, Some(new), false, false, false));
    }

    fn delete(&mut self, last: Obj) {
        let key = last.key();
        let applied = self.give(Event::Delete(last.clone()));
        if let Some(staged) = &mut self.staged {
            assert_eq!(applied, Applied::Staged);
            staged.remove(&key);
            return self.expect(&[]);
        }
        let Some(old) = self.objects.get(&key).cloned() else {
            assert_eq!(applied, Applied::Void);
            self.advance(&last.0.rv);
            return self.expect(&[]);
        };
        if order(&last.0.rv, &old.0.rv) == Some(Ordering::Less) {
            self.stale += 1;
            assert_eq!(applied, Applied::Stale(key));
            return self.expect(&[]);
        }
        assert_eq!(applied, Applied::Done);
        self.advance(&last.0.rv);
        self.objects.remove(&key);
        let old = if old.0.uid == last.0.uid { last } else { old };
        self.expect(&[Change::Deleted { old, final_unknown: false }]);
    }

    fn bookmark(&mut self, resource_version: String) {
        let event = Event::Bookmark { resource_version: resource_version.clone() };
        assert_eq!(self.give(event), Applied::Void);
        if self.staged.is_none() {
            self.advance(&resource_version);
        }
        self.expect(&[]);
    }

    fn init(&mut self) {
        assert_eq!(self.give(Event::Init), Applied::Staged);
        self.staged = Some(Map::new());
        self.expect(&[]);
    }

    fn stage(&mut self, new: Obj) {
        let key = new.key();
        let object = self.objects.get(&key).filter(|old| same(old, &new)).cloned().unwrap_or(new);
        if let Some(staged) = &mut self.staged {
            staged.insert(key, object);
        }
        self.expect(&[]);
    }

    fn init_apply(&mut self, new: Obj) {
        if self.staged.is_none() {
            return self.apply(new);
        }
        assert_eq!(self.give(Event::InitApply(new.clone())), Applied::Staged);
        self.stage(new);
    }

    fn init_keep(&mut self, name: u8) {
        let key = key(name);
        let applied = self.give(Event::InitKeep(key.clone()));
        match &mut self.staged {
            None => assert_eq!(applied, Applied::Void),
            Some(staged) => {
                assert_eq!(applied, Applied::Staged);
                staged.extend(self.objects.get(&key).map(|old| (key, old.clone())));
            }
        }
        self.expect(&[]);
    }

    fn init_done(&mut self, resource_version: String) {
        let event = Event::InitDone { resource_version: resource_version.clone() };
        let applied = self.give(event);
        let Some(new) = self.staged.take() else {
            assert_eq!(applied, Applied::Void);
            return self.expect(&[]);
        };
        assert_eq!(applied, Applied::Done);
        let keys: BTreeSet<&Key> = self.objects.keys().chain(new.keys()).collect();
        let initial = !self.synced;
        let mut expected = Vec::new();
        for key in keys {
            expected.extend(difference(
                self.objects.get(key).cloned(),
                new.get(key).cloned(),
                initial,
                true,
                true,
            ));
        }
        self.objects = new;
        self.version = resource_version;
        self.synced = true;
        self.expect(&expected);
    }

    fn look(&mut self) {
        if self.views.len() < 4 {
            self.views.push(View {
                view: self.store.snapshot(),
                objects: self.objects.clone(),
                version: self.version.clone(),
                synced: self.synced,
            });
        }
    }

    fn expect(&self, changes: &[Change<Obj>]) {
        assert_eq!(self.changes, changes);
        for change in &self.changes {
            if let Change::Updated { old, new, relisted: false } = change {
                assert_ne!(order(&new.0.rv, &old.0.rv), Some(Ordering::Less), "back in time: {change:?}");
            }
        }
    }

    fn check(&mut self) {
        self.changes.clear();
        let view = self.store.snapshot();
        check(&view, &self.objects, &self.version, self.synced);
        assert_eq!(self.store.stale(), self.stale);
        assert_eq!(self.store.staged(), self.staged.as_ref().map_or(0, Map::len));
        if self.packs {
            return;
        }
        // What is alive is what the model knows: old states, what differs from them, and what snapshots keep.
        let known = [Some(&self.objects), self.staged.as_ref()].into_iter().flatten();
        let known = known.chain(self.views.iter().map(|v| &v.objects)).flat_map(Map::values);
        let known: BTreeSet<*const Held> = known.map(|o| Rc::as_ptr(&o.0)).collect();
        assert_eq!(self.live.get(), known.len(), "more or fewer objects are alive than must be");
    }
}

/// What leads from one state of a key to another.
fn difference(
    old: Option<Obj>,
    new: Option<Obj>,
    initial: bool,
    listed: bool,
    final_unknown: bool,
) -> Vec<Change<Obj>> {
    match (old, new) {
        (None, None) => vec![],
        (Some(old), Some(new)) if listed && same(&old, &new) => vec![],
        (Some(old), Some(new)) if old.0.uid == new.0.uid => {
            vec![Change::Updated { old, new, relisted: listed }]
        }
        (Some(old), Some(new)) => {
            vec![Change::Deleted { old, final_unknown: true }, Change::Added { new, initial }]
        }
        (None, Some(new)) => vec![Change::Added { new, initial }],
        (Some(old), None) => vec![Change::Deleted { old, final_unknown }],
    }
}

impl View {
    fn check(self) {
        check(&self.view, &self.objects, &self.version, self.synced);
    }
}

fn check(view: &Snapshot<Obj>, objects: &Map, version: &str, synced: bool) {
    let has = |what: &dyn Fn(&Obj) -> bool| {
        objects.iter().filter(|(_, o)| what(o)).map(|(k, o)| (k, o.clone())).collect::<Vec<_>>()
    };
    assert_eq!(view.iter().collect::<Vec<_>>(), has(&|_| true));
    assert_eq!((view.resource_version(), view.is_synced(), view.len()), (version, synced, objects.len()));
    for n in 0..4 {
        let (owner, tag) = (format!("o{n}"), format!("t{n}"));
        let owned: Vec<_> = view.owned_by(&owner).expect("it has this index").collect();
        assert_eq!(owned, has(&|o| owners(o.0.traits).contains(&owner)));
        let tagged: Vec<_> = view.by_index("tag", &tag).expect("it has this index").collect();
        assert_eq!(tagged, has(&|o| tags(o).contains(&tag)));
    }
    assert!(view.by_index("no such index", "").is_err());
}
