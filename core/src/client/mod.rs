//! From a request to its answer: connections, deadlines, credentials, retries.

mod pool;

pub use pool::{IDLE_AGE, MAX_IDLE, Pool};
