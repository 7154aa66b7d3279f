//! Bytes to meaning and back: HTTP/1.1, watch frames, list items. No I/O, no clock.
//!
//! Everything here is a *pull* parser over the caller's bytes: `next(&mut input)` takes what it needs off the front of
//! `input` and answers with one thing at a time, lent from the input where it lies there whole. `None` means that the
//! input is used up (or, for HTTP, that the message has ended and what is left in `input` belongs to the next one).
//! **However the bytes are cut, the same things come out**; only the borders of HTTP body pieces move.
//!
//! ```
//! use steersman_core::wire::http::{HttpEvent, HttpLimits, ResponseContext, ResponseDecoder};
//! use steersman_core::wire::{framing::FrameSplitter, Piece};
//!
//! let mut http = ResponseDecoder::new(HttpLimits::default(), ResponseContext::default());
//! let mut frames = FrameSplitter::new(1 << 20);
//! let mut seen = 0;
//! let mut input: &[u8] = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n12\r\n{\"type\":\"ADDED\"}\r\n\r\n";
//! while let Some(event) = http.next(&mut input).unwrap() {
//!     if let HttpEvent::Body(mut body) = event {
//!         while let Some(piece) = frames.next(&mut body) {
//!             assert_eq!(piece, Piece::Value(b"{\"type\":\"ADDED\"}"));
//!             seen += 1;
//!         }
//!     }
//! }
//! assert_eq!(seen, 1);
//! ```

mod error;
pub mod framing;
pub mod gzip;
pub mod http;
pub mod json;
pub mod list;
pub(crate) mod quote;
pub mod run;

#[cfg(test)]
mod tests;

pub use error::WireError;
pub use run::Piece;
