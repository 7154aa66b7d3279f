//! Keeps the state of one resource in step with the server: list, then watch, for ever.

mod types;

pub use types::*;
