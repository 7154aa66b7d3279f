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
//! Each run of the program has a directory of its own, and in that one recording for each machine: `source-0-configmaps.v1`, and
//! so on for every watch, `controller-NAME`, `manager`, and `calls`, the requests of reconciles. A recording is a ring of
//! segments, files of a bounded size of which the oldest go ([`Bound`](steersman_core::record::file::Bound)). What is masked
//! tells [`Redaction`](steersman_core::record::Redaction).
//!
//! # steersman-replay
//!
//! It needs a recording, and neither a cluster nor the program that was recorded.
//!
//! ```text
//! steersman-replay DIRECTORY         its recordings, a line each
//! steersman-replay FILE              makes every decision again and prints it
//! steersman-replay --step 12 FILE    stops after step 12, prints it, and the state of the machine there
//! steersman-replay --until 12 FILE   the same, and all the steps before
//! steersman-replay --diff FILE       prints only the steps that come out otherwise
//! ```
//!
//! A step is a head line with its number, the time on the executor's clock and what the machine was told; then what it said, a
//! line each, and what it waits for. With another version of the code some steps may come out otherwise. There `-` is what was
//! recorded and `+` what is said now; the last line names the first such step, and the exit status is 1:
//!
//! ```text
//! source 0 configmaps.v1, recorded by steersman 0.1.0, 3 records
//! #1 1.000000000s connection 1 stands
//!   - write 1: GET /api/v1/configmaps?limit=500 (135 bytes, #e2bd8c7af32bb282)
//!   + write 1: GET /api/v1/configmaps?limit=7 (133 bytes, #67383fdd65108e3c)
//!     waits: waiting for the response until 71.000000000s
//! 3 steps replayed, 1 differ from what was recorded, the first is 1
//! ```
//!
//! What follows that step follows from what was recorded, which another decision might not have brought about: the first
//! difference tells, later ones may be its echo. A file that is no recording, is damaged, or comes from another format is told
//! in one line, with exit status 2; one that a crash has cut off in the middle of a record is replayed up to there. A recording
//! that has lost its beginning can only be read, and `--diff` says so, with status 2.
//!
//! A controller with functions of its own (`watches`, `filter`) is replayed by a program that has those functions:
//! [`program::run`] is the whole of `steersman-replay` and takes them.

mod directory;
mod files;
pub mod program;
mod run;
mod writer;

pub use directory::Directory;
pub use files::{read, recordings};
