//! Proof that steersman embeds anywhere.
//!
//! - [`Socketed`] and [`BareLoop`] drive the core's machines from one plain loop: one thread, non-blocking sockets, no executor
//!   of this project or any other. It is the smallest executor there is, and a starting point for another one.
//! - `tests/under_tokio.rs` runs `steersman-smol`, unchanged, on tokio.

mod bare_loop;
mod socketed;

pub use bare_loop::BareLoop;
pub use socketed::Socketed;
