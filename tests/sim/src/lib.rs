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
//! - `always`, `only writes`: what the user says of each single write;
//! - `panic`: no change and no check panics.
//!
//! # Test your controller
//! A [`Sim`] is a cluster, the programs that run against it as they are, what somebody changes, and what must come of it. The
//! mirror controller of the examples, twice, through twenty seeds of faults and a crash at each of its writes:
//!
//! ```
//! use std::sync::Arc;
//! use std::time::Duration;
//!
//! use steersman_core::api::kinds::{ConfigMap, Secret};
//! use steersman_core::object::ObjectMeta;
//! use steersman_mirror::{Mirror, plan};
//! use steersman_sim::Sim;
//!
//! fn map(text: &str) -> ConfigMap {
//!     let metadata = ObjectMeta::named("default", "a").label("mirror", "true");
//!     ConfigMap { metadata, data: [("text".into(), text.into())].into(), ..ConfigMap::default() }
//! }
//!
//! let sim = Sim::new()
//!     .replicas(2, |m| m.controller(plan::controller(None).run(Arc::new(Mirror))))
//!     .given(|cluster| cluster.put(&map("one")))
//!     .change(Duration::from_secs(2), |cluster| cluster.put(&map("two")))
//!     .converges_to(|cluster| match cluster.get::<Secret>("default", "a") {
//!         Some(secret) if secret.data.get("text").is_some_and(|text| text.0 == b"two") => Ok(()),
//!         other => Err(format!("the mirror is {other:?}")),
//!     });
//! sim.check(0..20);
//! sim.crash_at_every_write(1).unwrap_or_else(|failure| panic!("{failure}"));
//! ```
//!
//! Hundreds of seeds take seconds in a test; more find more. A [`Failure`] says which seed it was and what was violated,
//! shows the fewest and plainest faults that it takes, and how it came to that as a timeline, and gives one command that
//! runs it again. It also writes a page with a lane for each fault, process, server and object, for a browser.
//!
//! | variable | what it does |
//! |---|---|
//! | `STEERSMAN_SIM_SEED` | [`Sim::check`] runs this seed alone |
//! | `STEERSMAN_SIM_FAULTS` | the run of that seed has these faults, a JSON list |
//! | `STEERSMAN_SIM_REPLICAS`, `STEERSMAN_SIM_FOLLOWERS` | it has only the first so many |
//! | `STEERSMAN_SIM_ADVERSARY` | it is the run of this adversary that has these faults |
//! | `STEERSMAN_SIM_REPORT` | where pages go: a folder, or a file that ends in `.html`; if empty, none is written. `target/steersman-sim` otherwise |
//!
//! The first five are what the command of a failure sets.
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
