//! Raw frames and items, collected so that they can be decoded by several cores and joined in order.

use alloc::vec::Vec;
use core::ops::Range;

/// One thing that a splitter cut out of a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Piece<'a> {
    /// One JSON value, nothing around it. Only its brackets and strings were looked at.
    Value(&'a [u8]),
    /// A line, or the rest of one, that is no JSON value. At most [`Piece::START_BYTES`] of it stand here.
    Garbage(&'a [u8]),
    /// A value longer than the limit. It was skipped.
    TooLong {
        /// How long it was.
        bytes: u64,
        /// Its beginning, at most [`Piece::START_BYTES`]: enough to say what it was.
        start: &'a [u8],
    },
    /// The body ended inside this value. At most [`Piece::START_BYTES`] of it stand here.
    Truncated(&'a [u8]),
}

impl<'a> Piece<'a> {
    /// How much is kept of what cannot be used.
    pub const START_BYTES: usize = 1024;

    /// The bytes that are kept of it.
    #[must_use]
    pub const fn bytes(self) -> &'a [u8] {
        match self {
            Self::Value(b) | Self::Garbage(b) | Self::Truncated(b) => b,
            Self::TooLong { start, .. } => start,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Value,
    Garbage,
    TooLong(u64),
    Truncated,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Span {
    start: usize,
    end: usize,
    kind: Kind,
}

/// An ordered collection of pieces in one allocation, for decoding in parallel.
///
/// The core only splits; an executor gives each part a core, and the results joined in the order of the parts are the
/// results in the order of the bytes. With a pool that needs `'static` jobs, share it as `Arc<Run>` and give each job
/// one of the ranges of [`Run::cut`].
///
/// ```
/// use steersman_core::wire::{run::Run, Piece};
/// let mut run = Run::new();
/// for frame in ["{}", "[1,2,3]", "[]"] {
///     run.push(Piece::Value(frame.as_bytes()));
/// }
/// let (left, right) = run.all().split().unwrap();
/// let mut lengths = left.map(|p| p.bytes().len());
/// lengths.extend(right.map(|p| p.bytes().len())); // could be another thread
/// assert_eq!(lengths, [2, 7, 2]);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Run {
    bytes: Vec<u8>,
    spans: Vec<Span>,
}

impl Run {
    /// An empty run.
    #[must_use]
    pub const fn new() -> Self {
        Self { bytes: Vec::new(), spans: Vec::new() }
    }

    /// Appends a piece; its bytes are copied.
    pub fn push(&mut self, piece: Piece<'_>) {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(piece.bytes());
        let kind = match piece {
            Piece::Value(_) => Kind::Value,
            Piece::Garbage(_) => Kind::Garbage,
            Piece::TooLong { bytes, .. } => Kind::TooLong(bytes),
            Piece::Truncated(_) => Kind::Truncated,
        };
        self.spans.push(Span { start, end: self.bytes.len(), kind });
    }

    /// How many pieces it holds.
    #[must_use]
    pub fn len(&self) -> usize {
        self.spans.len()
    }

    /// Whether it holds none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.spans.is_empty()
    }

    /// How many bytes its pieces have together.
    #[must_use]
    pub fn byte_len(&self) -> usize {
        self.bytes.len()
    }

    /// Forgets the pieces; the allocations stay.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.spans.clear();
    }

    /// All of it, as a part that can be split.
    #[must_use]
    pub fn all(&self) -> Part<'_> {
        Part { bytes: &self.bytes, spans: &self.spans }
    }

    /// The pieces with these numbers; beyond the end there are none.
    #[must_use]
    pub fn part(&self, range: Range<usize>) -> Part<'_> {
        let end = range.end.min(self.spans.len());
        Part { bytes: &self.bytes, spans: &self.spans[range.start.min(end)..end] }
    }

    /// Ranges of piece numbers that cover the run in order, at most `parts` of them, of about equal bytes and none empty.
    #[must_use]
    pub fn cut(&self, parts: usize) -> Vec<Range<usize>> {
        let mut cuts = Vec::new();
        let mut from = 0;
        for left in (1..=parts.max(1)).rev() {
            if from == self.spans.len() {
                break;
            }
            let rest = &self.spans[from..];
            let share = (self.bytes.len() - rest[0].start).div_ceil(left);
            let target = rest[0].start + share;
            let n = if left == 1 { rest.len() } else { rest.partition_point(|s| s.end <= target).max(1) };
            cuts.push(from..from + n);
            from += n;
        }
        cuts
    }
}

/// A part of a [`Run`]: a view that is `Copy` and can go to another thread.
#[derive(Clone, Copy, Debug)]
pub struct Part<'a> {
    bytes: &'a [u8],
    spans: &'a [Span],
}

impl<'a> Part<'a> {
    /// How many pieces it holds.
    #[must_use]
    pub const fn len(self) -> usize {
        self.spans.len()
    }

    /// Whether it holds none.
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.spans.is_empty()
    }

    /// How many bytes its pieces have together.
    #[must_use]
    pub fn byte_len(self) -> usize {
        match (self.spans.first(), self.spans.last()) {
            (Some(first), Some(last)) => last.end - first.start,
            _ => 0,
        }
    }

    /// Two halves of about equal bytes, neither empty; `None` if there are not two pieces.
    #[must_use]
    pub fn split(self) -> Option<(Self, Self)> {
        if self.spans.len() < 2 {
            return None;
        }
        let middle = self.spans[0].start + self.byte_len() / 2;
        let n = self.spans.partition_point(|s| s.end <= middle).clamp(1, self.spans.len() - 1);
        let (left, right) = self.spans.split_at(n);
        Some((Self { bytes: self.bytes, spans: left }, Self { bytes: self.bytes, spans: right }))
    }

    /// Its pieces in order.
    pub fn iter(self) -> impl ExactSizeIterator<Item = Piece<'a>> {
        self.spans.iter().map(move |span| {
            let bytes = &self.bytes[span.start..span.end];
            match span.kind {
                Kind::Value => Piece::Value(bytes),
                Kind::Garbage => Piece::Garbage(bytes),
                Kind::TooLong(n) => Piece::TooLong { bytes: n, start: bytes },
                Kind::Truncated => Piece::Truncated(bytes),
            }
        })
    }

    /// `decode` of each piece, in order.
    pub fn map<R>(self, decode: impl FnMut(Piece<'a>) -> R) -> Vec<R> {
        self.iter().map(decode).collect()
    }
}

#[cfg(test)]
mod tests;
