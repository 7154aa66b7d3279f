use alloc::collections::BTreeMap;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use alloc::{format, vec};
use std::collections::BTreeSet;

use quickcheck::{Arbitrary, Gen};

use super::*;
use crate::object::OwnerReference;

mod indexes;

#[derive(Clone, Debug, PartialEq, Eq)]
struct Obj {
    key: Key,
    uid: String,
    rv: String,
    data: u32,
}

impl Resource for Obj {
    fn key(&self) -> Key {
        self.key.clone()
    }
    fn uid(&self) -> &str {
        &self.uid
    }
    fn resource_version(&self) -> &str {
        &self.rv
    }
    fn each_owner(&self, _: &mut dyn FnMut(&OwnerReference)) {}

    fn to_packable(&self, out: &mut Vec<u8>) -> bool {
        let Self { key, uid, rv, data } = self;
        out.extend_from_slice(format!("{BOILERPLATE}\0{key}\0{uid}\0{rv}\0{data}").as_bytes());
        true
    }

    fn from_packable(bytes: &mut [u8]) -> Option<Self> {
        let mut parts = std::str::from_utf8(bytes).ok()?.split('\0').skip(1);
        let mut part = || parts.next().map(String::from);
        Some(Self { key: part()?.parse().ok()?, uid: part()?, rv: part()?, data: part()?.parse().ok()? })
    }
}

/// What all of them have in common.
const BOILERPLATE: &str = "an object of which the greater part is in all the others as well";

fn obj(name: &str, uid: u32, rv: u32) -> Obj {
    Obj { key: name.parse().unwrap(), uid: format!("u{uid}"), rv: rv.to_string(), data: rv }
}

fn done(rv: u32) -> Event<Obj> {
    Event::InitDone { resource_version: rv.to_string() }
}

fn synced(objects: &[Obj], rv: u32) -> Store<Obj> {
    let mut store = Store::new();
    let mut sink = Vec::new();
    store.apply(Event::Init, &mut sink);
    for o in objects {
        store.apply(Event::InitApply(o.clone()), &mut sink);
    }
    store.apply(done(rv), &mut sink);
    store
}

fn run(store: &mut Store<Obj>, events: impl IntoIterator<Item = Event<Obj>>) -> Vec<Change<Obj>> {
    let mut sink = Vec::new();
    for e in events {
        store.apply(e, &mut sink);
    }
    sink
}

#[test]
fn nothing_of_a_full_state_shows_before_it_is_whole() {
    let mut store = synced(&[obj("a", 1, 1)], 5);
    let changes = run(&mut store, [Event::Init, Event::InitApply(obj("b", 2, 6))]);
    assert_eq!(changes, []);
    assert_eq!((store.len(), store.staged(), store.resource_version()), (1, 1, "5"));
    let changes = run(&mut store, [done(7)]);
    assert_eq!(
        changes,
        [
            Change::Deleted { old: obj("a", 1, 1), final_unknown: true },
            Change::Added { new: obj("b", 2, 6), initial: false },
        ]
    );
    assert_eq!((store.len(), store.staged(), store.resource_version()), (1, 0, "7"));
}

#[test]
fn a_second_init_drops_the_first_staging() {
    let mut store = Store::new();
    let changes = run(
        &mut store,
        [
            Event::Init,
            Event::InitApply(obj("ghost", 1, 1)),
            Event::Init,
            Event::InitApply(obj("b", 2, 6)),
            done(7),
        ],
    );
    assert_eq!(changes, [Change::Added { new: obj("b", 2, 6), initial: true }]);
}

#[test]
fn an_end_without_a_beginning_deletes_nothing() {
    let mut store = synced(&[obj("a", 1, 1)], 5);
    assert_eq!(run(&mut store, [done(9)]), []);
    assert_eq!((store.len(), store.resource_version()), (1, "5"));
}

#[test]
fn unchanged_objects_give_no_change_and_keep_the_old_allocation() {
    let mut store = synced(&[obj("a", 1, 1), obj("b", 2, 2)], 5);
    let mut other = obj("a", 1, 1);
    other.data = 99;
    let changes =
        run(&mut store, [Event::Init, Event::InitApply(other), Event::InitApply(obj("b", 2, 6)), done(7)]);
    assert_eq!(changes, [Change::Updated { old: obj("b", 2, 2), new: obj("b", 2, 6), relisted: true }]);
    assert_eq!(store.get(&"a".parse().unwrap()).unwrap().data, 1);
}

#[test]
fn objects_without_a_version_are_never_taken_for_unchanged() {
    let bare = |data| Obj { key: "a".parse().unwrap(), uid: "u".into(), rv: String::new(), data };
    let mut store = synced(&[bare(1)], 5);
    let changes = run(&mut store, [Event::Init, Event::InitApply(bare(2)), done(6)]);
    assert_eq!(changes, [Change::Updated { old: bare(1), new: bare(2), relisted: true }]);
    let changes = run(&mut store, [Event::Apply(bare(3))]);
    assert_eq!(changes, [Change::Updated { old: bare(2), new: bare(3), relisted: false }]);
    assert_eq!(store.stale(), 0);
}

#[test]
fn another_uid_is_another_object() {
    let mut store = synced(&[obj("a", 1, 1)], 5);
    let changes = run(&mut store, [Event::Apply(obj("a", 2, 6))]);
    let by_event = vec![
        Change::Deleted { old: obj("a", 1, 1), final_unknown: true },
        Change::Added { new: obj("a", 2, 6), initial: false },
    ];
    assert_eq!(changes, by_event);

    let mut store = synced(&[obj("a", 1, 1)], 5);
    let changes = run(&mut store, [Event::Init, Event::InitApply(obj("a", 2, 6)), done(7)]);
    assert_eq!(changes, by_event);
}

#[test]
fn events_that_are_not_above_the_stored_version_are_dropped_and_counted() {
    let mut store = synced(&[obj("a", 1, 10)], 10);
    let mut sink = Vec::new();
    let key: Key = "a".parse().unwrap();
    assert_eq!(store.apply(Event::Apply(obj("a", 1, 9)), &mut sink), Applied::Stale(key.clone()));
    assert_eq!(store.apply(Event::Apply(obj("a", 1, 10)), &mut sink), Applied::Stale(key.clone()));
    // The end of an earlier life, told again.
    assert_eq!(store.apply(Event::Delete(obj("a", 0, 4)), &mut sink), Applied::Stale(key));
    assert_eq!((sink.len(), store.stale(), store.len()), (0, 3, 1));
    assert_eq!(store.apply(Event::Apply(obj("a", 1, 11)), &mut sink), Applied::Done);
    assert_eq!(store.resource_version(), "11");
}

#[test]
fn a_deletion_hands_out_the_last_state() {
    let mut store = synced(&[obj("a", 1, 10)], 10);
    let changes = run(&mut store, [Event::Delete(obj("a", 1, 12)), Event::Delete(obj("a", 1, 12))]);
    assert_eq!(changes, [Change::Deleted { old: obj("a", 1, 12), final_unknown: false }]);
    assert_eq!(store.resource_version(), "12");
}

#[test]
fn what_cannot_be_read_in_a_list_stays_as_it_was() {
    let mut store = synced(&[obj("a", 1, 1), obj("b", 2, 2)], 5);
    let changes = run(
        &mut store,
        [
            Event::Init,
            Event::InitKeep("a".parse().unwrap()),
            Event::InitKeep("never-seen".parse().unwrap()),
            done(7),
        ],
    );
    assert_eq!(changes, [Change::Deleted { old: obj("b", 2, 2), final_unknown: true }]);
    assert_eq!(store.len(), 1);
}

#[test]
fn a_list_may_go_back_in_time_but_an_event_or_bookmark_may_not() {
    let mut store = synced(&[obj("a", 1, 100)], 100);
    run(&mut store, [Event::Bookmark { resource_version: "90".into() }]);
    assert_eq!(store.resource_version(), "100");
    run(&mut store, [Event::Bookmark { resource_version: "110".into() }]);
    assert_eq!(store.resource_version(), "110");
    let changes = run(&mut store, [Event::Init, Event::InitApply(obj("a", 1, 40)), done(50)]);
    assert_eq!(changes, [Change::Updated { old: obj("a", 1, 100), new: obj("a", 1, 40), relisted: true }]);
    assert_eq!(store.resource_version(), "50");
}

#[test]
fn a_snapshot_stands_still() {
    let mut store = synced(&[obj("a", 1, 1), obj("b", 2, 2)], 5);
    let before = store.snapshot();
    run(&mut store, [Event::Delete(obj("a", 1, 6)), Event::Apply(obj("c", 3, 7))]);
    assert_eq!(before.values().collect::<Vec<_>>(), [obj("a", 1, 1), obj("b", 2, 2)]);
    assert_eq!(before.resource_version(), "5");
    assert_eq!(store.snapshot().values().collect::<Vec<_>>(), [obj("b", 2, 2), obj("c", 3, 7)]);
    fn shareable<T: Send + Sync + Clone>(_: &T) {}
    shareable(&before);
}

#[test]
fn debug_shows_numbers_not_data() {
    let text = format!("{:?} {:?}", synced(&[obj("a", 1, 1)], 5), synced(&[obj("a", 1, 1)], 5).snapshot());
    assert!(!text.contains("u1"), "{text}");
}

#[test]
fn what_is_packed_is_counted_and_is_all_that_is_kept() {
    let all: Vec<_> = (0..200).map(|n| obj(&format!("n{n}"), n, n + 1)).collect();
    let mut store = Store::new().compact();
    run(&mut store, [Event::Init]);
    let mut changes = Vec::new();
    for object in &all {
        store.apply_kept(Event::InitApply(object.clone()), &mut changes);
    }
    store.apply_kept(done(300), &mut changes);
    let size = store.packed();
    assert!(size.objects > 190 && size.kept * 2 < size.whole, "{size:?}");
    // Of a first list, which is all there is, the changes are packed, too.
    let packed = changes.iter().filter(|c| matches!(c, Change::Added { new: Kept::Packed(_), .. })).count();
    assert_eq!((changes.len(), packed as u64), (200, size.objects));
    run(&mut store, [Event::Apply(obj("n7", 7, 301)), Event::Delete(obj("n8", 8, 302))]);
    assert_eq!(store.packed().objects, size.objects - 1);
    // A list of the same keeps what there is.
    run(&mut store, [Event::Init]);
    run(&mut store, all.iter().map(|object| Event::InitApply(object.clone())));
    run(&mut store, [done(303)]);
    assert_eq!(store.packed().objects, size.objects);
    run(&mut store, [Event::Init, done(304)]);
    assert_eq!(store.packed(), PackedSize::default());
}

#[test]
fn a_view_of_one_namespace() {
    let names = ["z", "a/1", "a/2", "b/1", "aa/1", "a/3"];
    let view: Snapshot<Obj> = names.iter().map(|n| obj(n, 1, 1)).collect();
    let keys = |ns| view.in_namespace(ns).map(|(k, _)| k.to_string()).collect::<Vec<_>>();
    assert_eq!(keys("a"), ["a/1", "a/2", "a/3"]);
    assert_eq!(keys("b"), ["b/1"]);
    assert_eq!(keys("c"), [] as [&str; 0]);
    assert_eq!(keys(""), ["z"]);
    assert_eq!(view.iter().rev().count(), 6);
    assert!(view.is_synced());
}

/// One operation of the model tests, over few names so that they meet.
#[derive(Clone, Debug)]
enum Op {
    Put(u8),
    Recreate(u8),
    Delete(u8),
    Replay(u8),
    List(Vec<u8>),
    BrokenList(Vec<u8>),
    Bookmark,
    Look,
}

impl Arbitrary for Op {
    fn arbitrary(g: &mut Gen) -> Self {
        match u8::arbitrary(g) % 12 {
            0..=3 => Self::Put(u8::arbitrary(g)),
            4 => Self::Recreate(u8::arbitrary(g)),
            5..=6 => Self::Delete(u8::arbitrary(g)),
            7 => Self::Replay(u8::arbitrary(g)),
            8 => Self::List(Vec::arbitrary(g)),
            9 => Self::BrokenList(Vec::arbitrary(g)),
            10 => Self::Bookmark,
            _ => Self::Look,
        }
    }
}

/// Replays changes on a plain map; whoever follows the changes must know the state.
fn follow(map: &mut BTreeMap<Key, Obj>, changes: &[Change<Obj>]) {
    for c in changes {
        match c {
            Change::Added { new, .. } => assert_eq!(map.insert(new.key(), new.clone()), None, "{c:?}"),
            Change::Updated { old, new, .. } => {
                assert_eq!((old.key(), old.uid()), (new.key(), new.uid()));
                assert_eq!(map.insert(new.key(), new.clone()).as_ref(), Some(old), "{c:?}");
            }
            Change::Deleted { old, .. } => {
                let had = map.remove(&old.key()).expect("a deletion of what was there");
                assert_eq!(had.uid(), old.uid(), "{c:?}");
            }
        }
    }
}

#[test]
fn store_and_followers_agree_with_a_map() {
    fn prop(ops: Vec<Op>, compact: bool) -> bool {
        let mut store = if compact { Store::new().compact() } else { Store::new() };
        let mut model: BTreeMap<Key, Obj> = BTreeMap::new();
        let mut follower: BTreeMap<Key, Obj> = BTreeMap::new();
        let mut views: Vec<(Snapshot<Obj>, BTreeMap<Key, Obj>)> = Vec::new();
        let (mut rv, mut uid) = (10, 100);
        let mut changes = Vec::new();
        for op in ops {
            rv += 1;
            changes.clear();
            let name = |n: u8| format!("ns{}/{n}", n % 3);
            match op {
                Op::Put(n) => {
                    let key: Key = name(n).parse().unwrap();
                    let mut o = obj(&name(n), 0, rv);
                    if let Some(old) = model.get(&key) {
                        o.uid = old.uid.clone();
                    } else {
                        uid += 1;
                        o.uid = format!("u{uid}");
                    }
                    model.insert(key, o.clone());
                    assert_eq!(store.apply(Event::Apply(o), &mut changes), Applied::Done);
                }
                Op::Recreate(n) => {
                    uid += 1;
                    let o = obj(&name(n), uid, rv);
                    model.insert(o.key(), o.clone());
                    store.apply(Event::Apply(o), &mut changes);
                }
                Op::Delete(n) => {
                    let key: Key = name(n).parse().unwrap();
                    let mut last = model.remove(&key).unwrap_or_else(|| obj(&name(n), 0, rv));
                    last.rv = rv.to_string();
                    store.apply(Event::Delete(last), &mut changes);
                }
                Op::Replay(n) => {
                    if let Some(o) = model.get(&name(n).parse().unwrap()).cloned() {
                        assert_eq!(
                            store.apply(Event::Apply(o.clone()), &mut changes),
                            Applied::Stale(o.key())
                        );
                    }
                }
                Op::List(ns) => {
                    // What the list does not name is gone; what it names stays, every third one changed.
                    let keep: BTreeSet<String> = ns.iter().map(|n| name(*n)).collect();
                    model.retain(|k, _| keep.contains(&k.to_string()));
                    store.apply(Event::Init, &mut changes);
                    for n in ns {
                        let key: Key = name(n).parse().unwrap();
                        let o = model.entry(key).or_insert_with(|| {
                            uid += 1;
                            obj(&name(n), uid, rv)
                        });
                        if n % 3 == 0 {
                            o.rv = rv.to_string();
                        }
                        store.apply(Event::InitApply(o.clone()), &mut changes);
                    }
                    assert!(changes.is_empty());
                    store.apply(done(rv), &mut changes);
                    assert_eq!(store.resource_version(), rv.to_string());
                }
                Op::BrokenList(ns) => {
                    store.apply(Event::Init, &mut changes);
                    for n in ns {
                        store.apply(Event::InitApply(obj(&name(n), 7, rv)), &mut changes);
                    }
                    store.apply(Event::Init, &mut changes);
                    for o in model.values() {
                        store.apply(Event::InitApply(o.clone()), &mut changes);
                    }
                    store.apply(done(rv), &mut changes);
                    assert!(changes.is_empty(), "{changes:?}");
                }
                Op::Bookmark => {
                    store.apply(Event::Bookmark { resource_version: rv.to_string() }, &mut changes);
                    assert_eq!(store.resource_version(), rv.to_string());
                }
                Op::Look => views.push((store.snapshot(), model.clone())),
            }
            follow(&mut follower, &changes);
        }
        views.push((store.snapshot(), model.clone()));
        for (view, model) in &views {
            let pairs: Vec<_> = view.iter().map(|(k, o)| (k.clone(), o.clone())).collect();
            let expected: Vec<_> = model.clone().into_iter().collect();
            assert_eq!(pairs, expected);
            assert_eq!(view.len(), model.len());
            let mut backward: Vec<_> = view.iter().rev().map(|(k, o)| (k.clone(), o.clone())).collect();
            backward.reverse();
            assert_eq!(backward, pairs);
            for (k, o) in model {
                assert_eq!(view.get(k).as_ref(), Some(o));
            }
        }
        // A follower sees the last state of each object, whose version may be one that the list did not repeat.
        follower.keys().eq(model.keys())
            && follower.values().zip(model.values()).all(|(a, b)| (&a.uid, &a.rv) == (&b.uid, &b.rv))
    }
    crate::cases::cases(400).quickcheck(prop as fn(Vec<Op>, bool) -> bool);
}
