//! The steps of the core that a controller under load takes over and over, each alone: what one costs shows here, where a
//! benchmark of the whole drowns it.
//!
//! A [`Step`] is prepared once and then does one operation a call. `steersman-steps check` counts the instructions of an
//! operation, `cargo bench -p steersman-steps` takes the time.
//!
//! ```
//! let step = steersman_steps::find("queue_turn").unwrap();
//! let mut queue = step.prepare_with(10);
//! queue.turn();
//! ```

mod pods;
mod steps;

use std::fmt;

/// Objects of a store, as of a cluster of a few hundred nodes.
const OBJECTS: usize = 10_000;
/// Objects or keys where there need not be more.
const FEW: usize = 1_000;
/// Keys of the largest cluster.
const MILLION: usize = 1_000_000;

/// One operation, and what has to be there before.
#[derive(Debug)]
pub struct Step {
    /// Its name.
    pub name: &'static str,
    /// What one operation is.
    pub what: &'static str,
    /// Objects, keys or timers that are there.
    pub size: usize,
    /// Over how many operations the instructions are counted; `None`: time tells more, since what it costs is memory.
    pub counted: Option<u32>,
    prepare: fn(usize) -> Prepared,
}

impl Step {
    /// The state before the first operation.
    #[must_use]
    pub fn prepare(&self) -> Prepared {
        self.prepare_with(self.size)
    }

    /// The same with fewer things in it.
    #[must_use]
    pub fn prepare_with(&self, size: usize) -> Prepared {
        (self.prepare)(size)
    }
}

/// A step that can be taken.
pub struct Prepared(Box<dyn FnMut() -> bool>);

impl Prepared {
    /// `operation` says whether it did its work.
    fn new(operation: impl FnMut() -> bool + 'static) -> Self {
        Self(Box::new(operation))
    }

    /// One operation.
    ///
    /// # Panics
    /// If nothing came of it: what does nothing is not to be measured.
    pub fn turn(&mut self) {
        assert!((self.0)(), "the operation did not do its work");
    }
}

impl fmt::Debug for Prepared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Prepared")
    }
}

/// All of them, from the bytes to the reconcile.
pub static STEPS: &[Step] = &[
    Step {
        name: "http_head",
        what: "the head of a watch's answer is parsed",
        size: 1,
        counted: Some(2_000),
        prepare: steps::http_head,
    },
    Step {
        name: "chunk",
        what: "a chunk of 5 KB is taken out of a body",
        size: 1,
        counted: Some(10_000),
        prepare: steps::chunk,
    },
    Step {
        name: "frame_split",
        what: "a frame of 5 KB is cut out of a watch that comes 64 KiB at a time",
        size: FEW,
        counted: Some(2_000),
        prepare: steps::frame_split,
    },
    Step {
        name: "list_split",
        what: "an item of 5 KB is cut out of a list that comes 64 KiB at a time",
        size: FEW,
        counted: Some(2_000),
        prepare: steps::list_split,
    },
    Step {
        name: "list_item",
        what: "a pod of 5 KB in a list becomes an object",
        size: FEW,
        counted: Some(1_000),
        prepare: steps::list_item,
    },
    Step {
        name: "watch_frame",
        what: "a MODIFIED event with a pod of 5 KB is decoded",
        size: FEW,
        counted: Some(1_000),
        prepare: steps::watch_frame,
    },
    Step {
        name: "store_put",
        what: "a store takes a change while somebody holds the view before",
        size: OBJECTS,
        counted: Some(10_000),
        prepare: steps::store_put,
    },
    Step {
        name: "store_get",
        what: "an object is looked up",
        size: OBJECTS,
        counted: Some(10_000),
        prepare: steps::store_get,
    },
    Step {
        name: "pack",
        what: "a pod of 5 KB, 3.3 KB without `managedFields`, is packed for a compact store",
        size: FEW,
        counted: Some(1_000),
        prepare: steps::pack,
    },
    Step { name: "unpack", what: "and unpacked", size: FEW, counted: Some(1_000), prepare: steps::unpack },
    Step {
        name: "source_event",
        what: "a MODIFIED event comes in as bytes, and a delta out, while a controller holds the view before",
        size: OBJECTS,
        counted: Some(2_000),
        prepare: steps::source_event,
    },
    Step {
        name: "queue_turn",
        what: "a key is added, another one handed out and done",
        size: FEW,
        counted: Some(10_000),
        prepare: steps::queue_turn,
    },
    Step {
        name: "queue_turn_million",
        what: "the same with a million keys in line",
        size: MILLION,
        counted: None,
        prepare: steps::queue_turn,
    },
    Step {
        name: "queue_turn_million_shuffled",
        what: "the same, and neighbours in line lie far apart in memory",
        size: MILLION,
        counted: None,
        prepare: steps::queue_turn_shuffled,
    },
    Step {
        name: "queue_turn_million_cold",
        what: "the same, and whoever adds a key fetches it from far away first",
        size: MILLION,
        counted: None,
        prepare: steps::queue_turn_cold,
    },
    Step {
        name: "timer_turn_million",
        what: "a key is added for later, another one's time comes, it is handed out and done; a million wait",
        size: MILLION,
        counted: None,
        prepare: steps::timer_turn,
    },
    Step {
        name: "controller_turn",
        what: "a controller takes a delta of one change, asks for a run and hears that it is done",
        size: FEW,
        counted: Some(5_000),
        prepare: steps::controller_turn,
    },
];

/// The step of this name.
#[must_use]
pub fn find(name: &str) -> Option<&'static Step> {
    STEPS.iter().find(|step| step.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_step_does_its_work_over_and_over() {
        for step in STEPS {
            // More operations than there are things, so that each comes round to the first again.
            let mut prepared = step.prepare_with(step.size.min(100));
            (0..300).for_each(|_| prepared.turn());
        }
    }

    #[test]
    #[should_panic(expected = "did not do its work")]
    fn a_step_that_does_nothing_is_told() {
        let mut turns = 0;
        let mut prepared = Prepared::new(move || {
            turns += 1;
            turns < 3
        });
        (0..3).for_each(|_| prepared.turn());
    }

    #[test]
    fn names_are_told_apart() {
        for step in STEPS {
            assert!(std::ptr::eq(find(step.name).unwrap(), step), "{} is there twice", step.name);
        }
        assert!(find("nothing").is_none());
    }
}
