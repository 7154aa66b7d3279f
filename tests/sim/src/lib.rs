//! A deterministic simulator: controllers, exactly as they run in production, against an API server in one world of
//! virtual time, and everything that can go wrong between them. One seed is one run, to the byte.
//!
//! It is a third executor beside `steersman-threads` and `steersman-smol`. There is one thread, one heap of events, one
//! clock that jumps from event to event, and one source of chance. Bytes go over a simulated network, through the same
//! HTTP codec as ever, to the embedded API server, which is a pure machine.
//!
//! [`Sim`] says what is simulated; [`Sim::run`] runs it from a seed, whose [`Fault`]s are a list of plain values. What must
//! hold in every run is looked at in every run:
//!
//! - `one run per key`: no key runs twice at once in a process;
//! - `lost key`: what changed, failed or wanted to be looked at again does run;
//! - `versions`: no object goes back in time, as a watch tells it;
//! - `store`: at rest, what a watch knows is what the cluster holds;
//! - `hot loop`: while nothing changes, next to nothing is done;
//! - `converges`, `stable`: what the user says must come of it, comes within a bound once faults end, and stays;
//! - `always`, `only writes`: what the user says of each single write.
//!
//! # What a reconcile may do
//! An `async fn` or `fn` sends and waits with its client ([`send`](steersman_smol::Client::send),
//! [`sleep`](steersman_smol::Client::sleep)), and reads the time there. What waits for anything else (a thread of its own, a
//! real timer, a lock that another reconcile holds while it sends) waits for something that does not happen here.

#![forbid(unsafe_code)]

mod adversary;
mod base;
mod cluster;
mod desk;
mod draw;
mod drive;
mod end;
mod failure;
mod faults;
mod job;
mod judge;
mod life;
mod lockstep;
mod net;
mod oracle;
mod page;
mod process;
mod replay;
mod replica;
mod run;
mod server;
mod shrink;
mod sim;
mod tasks;
mod timeline;
mod trace;
mod world;

pub use cluster::Cluster;
pub use draw::Shape;
pub use end::EndState;
pub use failure::Failure;
pub use faults::{Fault, Ill, Moment, What, When};
pub use oracle::Violation;
pub use replica::{Reconcile, Replica};
pub use sim::{Quiet, Report, Sim};
pub use steersman_apiserver::machine::Options as ServerOptions;
pub use timeline::Timeline;
pub use trace::{Entry, Kind, Lane, Trace};
