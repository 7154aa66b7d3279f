//! A run of raw frames or items, to be decoded by as many cores as the executor wants to give.

use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::ops::Range;

use super::reading::{self, Decoding};
use crate::object::Object;
use crate::time::Time;
use crate::watcher::{BadObject, Frame, ReqId};
use crate::wire::run::Run;

/// Work that may be done anywhere, in parts, in any order. The parts joined in the order of their ranges are the answer.
///
/// ```
/// # use steersman_core::source::DecodeJob;
/// // What an executor does with two cores:
/// fn decode(job: &DecodeJob) -> steersman_core::source::Decoded {
///     let parts = job.cut(2);
///     job.join(std::thread::scope(|s| {
///         let threads: Vec<_> = parts.into_iter().map(|r| s.spawn(move || job.decode(r))).collect();
///         threads.into_iter().map(|t| t.join().unwrap()).collect()
///     }))
/// }
/// ```
#[derive(Debug)]
pub struct DecodeJob {
    pub(super) request: ReqId,
    pub(super) received: Time,
    pub(super) run: Run,
    pub(super) decoding: Arc<Decoding>,
}

/// A part of the answer.
pub type Part = Vec<Piece>;

/// One decoded frame or item.
#[derive(Debug)]
pub enum Piece {
    /// An element of a list, or why it cannot be used.
    Item(Result<Object, BadObject>),
    /// A frame of a watch.
    Frame(Frame<Object>),
}

/// The whole answer of a [`DecodeJob`].
#[derive(Debug)]
pub struct Decoded {
    pub(super) request: ReqId,
    pub(super) received: Time,
    pub(super) pieces: Part,
}

impl DecodeJob {
    /// What names it: the request, and when its last bytes came.
    #[cfg(feature = "record")]
    pub(crate) const fn name(&self) -> (ReqId, Time) {
        (self.request, self.received)
    }

    /// How many bytes wait.
    #[must_use]
    pub fn byte_len(&self) -> usize {
        self.run.byte_len()
    }

    /// At most `parts` ranges of about the same number of bytes.
    #[must_use]
    pub fn cut(&self, parts: usize) -> Vec<Range<usize>> {
        self.run.cut(parts)
    }

    /// Decodes one range of [`cut`](Self::cut).
    #[must_use]
    pub fn decode(&self, range: Range<usize>) -> Part {
        let mut scratch = String::new();
        self.run.part(range).map(|piece| reading::decode(piece, &self.decoding, &mut scratch))
    }

    /// Decodes all of it here.
    #[must_use]
    pub fn decode_all(&self) -> Decoded {
        let mut scratch = String::new();
        let all = self.run.all().map(|piece| reading::decode(piece, &self.decoding, &mut scratch));
        self.join(Vec::from([all]))
    }

    /// Puts the parts together, in the order of their ranges.
    #[must_use]
    pub fn join(&self, parts: Vec<Part>) -> Decoded {
        let mut pieces = Vec::with_capacity(self.run.len());
        parts.into_iter().for_each(|mut part| pieces.append(&mut part));
        Decoded { request: self.request, received: self.received, pieces }
    }
}

#[cfg(feature = "record")]
impl Decoded {
    /// The name of the job whose answer it is.
    pub(crate) const fn name(&self) -> (ReqId, Time) {
        (self.request, self.received)
    }
}
