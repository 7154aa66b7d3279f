//! What a new list of a known world costs: the old state and what changed, not two states.

use alloc::rc::Rc;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::cell::Cell;

use super::super::*;
use crate::machine::{Machine, Outputs};
use crate::object::{Key, OwnerReference, Resource};
use crate::store::{Index, Indexes, Store};
use crate::time::Time;

/// How many objects are alive, and how many ever were at once.
#[derive(Debug, Default)]
struct Count {
    now: Cell<usize>,
    peak: Cell<usize>,
}

#[derive(Debug)]
struct Held {
    name: usize,
    rv: String,
    count: Rc<Count>,
}

impl Drop for Held {
    fn drop(&mut self) {
        self.count.now.set(self.count.now.get() - 1);
    }
}

/// Clones share what is counted, as those of a real object share its bytes.
#[derive(Clone, Debug)]
struct Obj(Rc<Held>);

impl Resource for Obj {
    fn key(&self) -> Key {
        Key::namespaced("n", &self.0.name.to_string())
    }
    fn uid(&self) -> &'static str {
        "u"
    }
    fn resource_version(&self) -> &str {
        &self.0.rv
    }
    fn each_owner(&self, _: &mut dyn FnMut(&OwnerReference)) {}
}

struct World {
    watcher: Watcher<Obj>,
    store: Store<Obj>,
    count: Rc<Count>,
    id: ReqId,
    out: Outputs<Output<Obj>>,
}

impl World {
    fn new(streaming: bool) -> Self {
        let parity = Index::new("parity", |o: &Obj| [(o.0.name % 2).to_string()]);
        let mut world = Self {
            watcher: Watcher::new(Config { streaming, ..Config::default() }, 1),
            store: Store::with_indexes(Indexes::of([parity]).unwrap()),
            count: Rc::default(),
            id: ReqId(0),
            out: Outputs::new(),
        };
        world.give(Input::Start);
        world
    }

    fn obj(&self, name: usize, rv: usize) -> Obj {
        let now = self.count.now.get() + 1;
        self.count.now.set(now);
        self.count.peak.set(self.count.peak.get().max(now));
        Obj(Rc::new(Held { name, rv: rv.to_string(), count: Rc::clone(&self.count) }))
    }

    fn give(&mut self, input: Input<Obj>) {
        let mut changes = Vec::new();
        let now = self.watcher.next_deadline().map_or(Time::ZERO, |d| d.at);
        self.watcher.handle(now, input, &mut self.out);
        for output in self.out.drain() {
            match output {
                Output::Request(id, _) => self.id = id,
                Output::Event(event) => drop(self.store.apply(event, &mut changes)),
                _ => {}
            }
        }
    }

    /// A full state at `rv` of `objects` objects, of which every `changed`th is new.
    fn list(&mut self, streaming: bool, objects: usize, changed: usize, rv: usize) {
        for name in 0..objects {
            let object = self.obj(name, if name.is_multiple_of(changed) { rv } else { 10 });
            let id = self.id;
            self.give(if streaming {
                Input::Frame(id, Frame::Added(object))
            } else {
                Input::Item(id, object)
            });
        }
        let (id, resource_version) = (self.id, rv.to_string());
        self.give(if streaming {
            Input::Frame(id, Frame::Bookmark { resource_version, initial_events_end: true })
        } else {
            Input::ListEnd(id, ListMeta { resource_version, ..ListMeta::default() })
        });
    }

    /// The watch ends with 410, and the state is told again.
    fn list_again(&mut self, streaming: bool, objects: usize, changed: usize, rv: usize) {
        self.count.peak.set(self.count.now.get());
        self.give(Input::Frame(self.id, Frame::Error(gone())));
        self.give(Input::Deadline);
        self.list(streaming, objects, changed, rv);
        assert_eq!(self.store.resource_version(), rv.to_string());
    }
}

#[test]
fn a_relist_costs_what_changed() {
    const ALL: usize = 10_000;
    for streaming in [false, true] {
        let mut world = World::new(streaming);
        world.list(streaming, ALL, 1, 10);
        assert_eq!((world.store.len(), world.count.now.get()), (ALL, ALL));
        world.list_again(streaming, ALL, 1_000_000, 20);
        // What is unchanged keeps its allocation: the first one is new, and one is being read.
        assert!(
            world.count.peak.get() <= ALL + 2,
            "{} of {ALL}: streaming {streaming}",
            world.count.peak.get()
        );
        world.list_again(streaming, ALL, 50, 30);
        let most = ALL + ALL / 50 + 1;
        assert!(
            world.count.peak.get() <= most,
            "{} of {most}: streaming {streaming}",
            world.count.peak.get()
        );
        // The old states are gone with the list, and the rest with the store.
        assert_eq!((world.store.len(), world.count.now.get()), (ALL, ALL));
        assert_eq!(world.store.snapshot().by_index("parity", "1").unwrap().count(), ALL / 2);
        let count = Rc::clone(&world.count);
        drop(world);
        assert_eq!(count.now.get(), 0);
    }
}

#[test]
fn a_list_that_is_broken_off_again_and_again_costs_one_staging() {
    const ALL: usize = 1_000;
    let mut world = World::new(false);
    world.list(false, ALL, 1, 10);
    world.give(Input::Frame(world.id, Frame::Error(gone())));
    for n in 0..20 {
        world.give(Input::Deadline);
        for name in 0..ALL {
            let object = world.obj(name, 100 + n);
            world.give(Input::Item(world.id, object));
        }
        world.give(Input::Closed(world.id, CloseReason::Broken("reset".into())));
        assert!(world.count.peak.get() <= 2 * ALL + 1, "{} after {n}", world.count.peak.get());
    }
}

fn gone() -> crate::api::Status {
    crate::api::Status { code: 410, reason: "Expired".into(), ..crate::api::Status::default() }
}
