//! What stands in for sockets and clocks where a program brings its own.

use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use steersman_core::api::{Raw, Request};
use steersman_core::client::Error;
use steersman_core::time::{Time, UnixMillis};

/// Sends the requests of a [hosted client](crate::Client::hosted) and keeps its time. Deadlines and retries are the
/// host's; [`Call`](steersman_core::client::Call) has those of the other clients.
pub trait Host: Send + Sync {
    /// Brings a request to its answer. A future that is dropped gives the request up.
    fn send(&self, request: Request<Raw>) -> Pin<Box<dyn Future<Output = Result<Raw, Error>> + Send>>;

    /// Ends after `d`.
    fn sleep(&self, d: Duration) -> Pin<Box<dyn Future<Output = ()> + Send>>;

    /// Monotonic time since a moment of the host's choice.
    fn now(&self) -> Time;

    /// Wall-clock time.
    fn wall(&self) -> UnixMillis;
}
