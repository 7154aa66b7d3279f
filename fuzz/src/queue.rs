//! Operations on the work queue, compared with a naive model after each.

// One model for the property tests and for fuzzing.
#[path = "../../core/tests/queue_model/mod.rs"]
mod model;

/// Plays the operations that `data` spells.
///
/// # Panics
/// If the queue differs from the model, hands out a key twice at once, exceeds its limit, loses a key, or asks again for
/// a deadline that was served.
pub fn run(data: &[u8]) {
    model::play(data);
}
