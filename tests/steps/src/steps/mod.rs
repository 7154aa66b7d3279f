//! What is prepared, and what one operation is.

mod decode;
mod machines;
mod queue;
mod store;
mod wire;

pub(crate) use decode::{list_item, watch_frame};
pub(crate) use machines::{controller_turn, source_event};
pub(crate) use queue::{queue_turn, queue_turn_cold, queue_turn_shuffled, timer_turn};
pub(crate) use store::{pack, store_get, store_put, unpack};
pub(crate) use wire::{chunk, frame_split, http_head, list_split};

/// 0 to `n` - 1 over and over.
fn round(n: usize) -> impl FnMut() -> usize {
    let mut next = 0;
    move || {
        let this = next;
        next = if next + 1 == n { 0 } else { next + 1 };
        this
    }
}

/// The `i`th of `n` in an order in which neighbours are far apart: every one of them once, if `n` has no factor but 2 and 5.
const fn far_apart(i: usize, n: usize) -> usize {
    // A prime.
    i * 314_159 % n
}
