//! Recordings of steersman's machines in files, and how they are replayed.
//!
//! A program gives a [`Directory`] to its manager (or client) and is recorded from then on:
//!
//! ```no_run
//! # fn main() -> std::io::Result<()> {
//! let recordings = steersman_record::Directory::new("/var/lib/operator/recordings")?;
//! // Manager::new(client).record(&recordings)...
//! # Ok(())
//! # }
//! ```
//!
//! The program `steersman-replay` makes the recorded decisions again, shows them, stops where it is told, and names the first
//! one that is another one now. A controller with functions of its own (`watches`, `filter`) is replayed by a program that has
//! those functions: [`program::run`] is the whole of `steersman-replay` and takes them.

mod directory;
mod files;
pub mod program;
mod writer;

pub use directory::Directory;
pub use files::{read, recordings};
