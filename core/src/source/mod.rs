//! One watch from bytes to differences: the HTTP exchange, the splitters, the decoder, the watcher and the store in one
//! machine. An executor gives it connections and gets [`Delta`](crate::store::Delta)s.
//!
//! ```text
//!   bytes -> Exchange -> ListSplitter / FrameSplitter -> decode -> Watcher -> Store -> Delta
//!                ^                                                    |
//!                +---------------- request, cancel -------------------+
//! ```

pub mod decode;
mod job;
mod machine;
mod reading;
mod status;

#[cfg(test)]
mod tests;

pub use job::{DecodeJob, Decoded, Part, Piece};
pub use machine::{Input, Options, Output, Source};
pub use status::SourceStatus;
