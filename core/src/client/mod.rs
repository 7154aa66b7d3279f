//! From a request to its answer: connections, deadlines, credentials, retries.
//!
//! - [`Exchange`] sends one request at a time over one connection at a time and gives the answer as it comes; watches and
//!   streamed lists stand on it.
//! - [`Call`] brings one [`Request`](crate::api::Request) to its typed answer, with retries.
//! - [`Pool`] keeps idle connections for whoever comes next.

mod call;
mod effect;
mod endpoint;
mod error;
mod exchange;
mod hosted;
mod pool;
mod redact;

pub use call::{Call, CallInput, CallOutput, RetryPolicy};
pub use effect::{Driven, Effect, Happening};
pub use endpoint::{Endpoint, USER_AGENT};
pub use error::{Error, ErrorKind, ExchangeError, ExchangeErrorKind};
pub use exchange::{Bytes, Exchange, Input, Outgoing, Output, Stats, Timeouts};
pub use hosted::read_answer;
pub use pool::{IDLE_AGE, MAX_IDLE, Pool};
