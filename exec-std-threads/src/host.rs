//! What stands in for sockets and clocks where a program brings its own.

use std::time::Duration;

use steersman_core::api::{Raw, Request};
use steersman_core::client::Error;
use steersman_core::time::{Time, UnixMillis};

/// Sends the requests of a [hosted client](crate::Client::hosted) and keeps its time. Deadlines and retries are the
/// host's; [`Call`](steersman_core::client::Call) has those of the other clients.
pub trait Host: Send + Sync {
    /// Brings a request to its answer; blocks until then.
    ///
    /// # Errors
    /// The server's refusal, or why there is no answer.
    fn send(&self, request: Request<Raw>) -> Result<Raw, Error>;

    /// Blocks for `d`.
    fn sleep(&self, d: Duration);

    /// Monotonic time since a moment of the host's choice.
    fn now(&self) -> Time;

    /// Wall-clock time.
    fn wall(&self) -> UnixMillis;
}
