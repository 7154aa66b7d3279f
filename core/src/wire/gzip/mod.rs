//! Gzip (RFC 1952) unfolded as it comes.
//!
//! A server that compresses a watch ends a deflate block, or a whole gzip member, with every flush: what can be told from
//! the bytes that have come is given out at once, never held back for more. Any number of members make one body, and
//! zeros may follow the last.

pub(crate) mod crc;

use alloc::boxed::Box;
use alloc::vec;
use core::fmt;
use core::ops::Range;

use miniz_oxide::inflate::TINFLStatus;
use miniz_oxide::inflate::core::inflate_flags::TINFL_FLAG_HAS_MORE_INPUT;
use miniz_oxide::inflate::core::{DecompressorOxide, decompress};

use self::crc::crc32;
use super::WireError;
use crate::limits;

/// How far back deflate refers, which is all that is kept of a body: the format's own number.
pub const WINDOW_BYTES: usize = 32 * 1024;

/// What a gzip body may be. The defaults are those of [`crate::limits`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GzipLimits {
    /// Most bytes that one byte may become, beyond `free_bytes`.
    pub ratio: u32,
    /// Bytes that a body may become whatever its ratio.
    pub free_bytes: u64,
    /// Longest header of a member, in bytes.
    pub head_bytes: usize,
}

impl GzipLimits {
    /// The defaults, as a constant.
    pub const DEFAULT: Self = Self {
        ratio: limits::GZIP_RATIO,
        free_bytes: limits::GZIP_FREE_BYTES,
        head_bytes: limits::GZIP_HEAD_BYTES,
    };
}

impl Default for GzipLimits {
    fn default() -> Self {
        Self::DEFAULT
    }
}

/// Unfolds a gzip body from bytes cut anywhere. It holds 43 KiB, whatever comes.
///
/// ```
/// use steersman_core::wire::gzip::{Gunzip, GzipLimits};
/// let bytes = b"\x1f\x8b\x08\0\0\0\0\0\0\xff\x4b\x4c\x4a\x06\0\xc2\x41\x24\x35\x03\0\0\0";
/// let mut gunzip = Gunzip::new(GzipLimits::default());
/// let mut input = bytes.as_slice();
/// assert_eq!(gunzip.next(&mut input).unwrap(), Some(b"abc".as_slice()));
/// assert_eq!(gunzip.next(&mut input).unwrap(), None);
/// assert!(gunzip.eof().is_ok());
/// ```
pub struct Gunzip {
    limits: GzipLimits,
    state: State,
    inflate: Box<DecompressorOxide>,
    window: Box<[u8]>,
    /// Where in the window the next byte goes.
    at: usize,
    /// The inflater has more to give than there was room for.
    more: bool,
    /// Of the header, then of the content.
    crc: u32,
    /// Bytes of the header, then of the content (modulo 2^32, as the trailer has it).
    size: u32,
    taken: u64,
    given: u64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum State {
    /// Before the first byte of the body.
    Start,
    /// In the ten bytes that every header begins with.
    Head {
        flags: u8,
    },
    /// In what the flags announce: at which part, and the bytes that are left of it or how many have come.
    ExtraLength {
        flags: u8,
        low: Option<u8>,
    },
    Extra {
        flags: u8,
        left: u16,
    },
    Text {
        flags: u8,
    },
    HeadCrc {
        low: Option<u8>,
    },
    Deflate,
    /// So many bytes of checksum and length have come.
    Trailer {
        have: u8,
        bytes: u64,
    },
    /// A member has ended.
    Between,
    /// Zeros after the last member.
    Padding,
    Failed(WireError),
}

const FHCRC: u8 = 2;
const FEXTRA: u8 = 4;
const FNAME: u8 = 8;
const FCOMMENT: u8 = 16;
const RESERVED: u8 = 0xE0;

impl fmt::Debug for Gunzip {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { state, taken, given, .. } = self;
        f.debug_struct("Gunzip")
            .field("state", state)
            .field("taken", taken)
            .field("given", given)
            .finish_non_exhaustive()
    }
}

impl Gunzip {
    /// At the beginning of a body.
    #[must_use]
    pub fn new(limits: GzipLimits) -> Self {
        Self {
            limits,
            state: State::Start,
            inflate: Box::default(),
            window: vec![0; WINDOW_BYTES].into(),
            at: 0,
            more: false,
            crc: 0,
            size: 0,
            taken: 0,
            given: 0,
        }
    }

    /// The next bytes, never empty, from what is taken off the front of `input`. `None`: all of `input` is used and more
    /// is needed.
    ///
    /// # Errors
    /// [`WireError::Gzip`] and [`WireError::GzipRatio`], after everything that came before the fault; the same from then on.
    pub fn next(&mut self, input: &mut &[u8]) -> Result<Option<&[u8]>, WireError> {
        Ok(match self.rest()? {
            None => self.advance(input)?,
            some => some,
        }
        .map(|range| self.window(range)))
    }

    /// The body has ended.
    ///
    /// # Errors
    /// If it may not end here.
    pub fn eof(&self) -> Result<(), WireError> {
        match &self.state {
            State::Failed(error) => Err(error.clone()),
            // Some servers name the coding and then have nothing to say.
            State::Start | State::Between | State::Padding => Ok(()),
            State::Deflate | State::Trailer { .. } => Err(WireError::Truncated("a gzip body")),
            _ => Err(WireError::Truncated("a gzip header")),
        }
    }

    /// What [`advance`](Self::advance) and [`rest`](Self::rest) have told of.
    pub(super) fn window(&self, range: Range<usize>) -> &[u8] {
        &self.window[range]
    }

    /// What the window had no room for, before more input is given.
    pub(super) fn rest(&mut self) -> Result<Option<Range<usize>>, WireError> {
        if self.more { self.advance(&mut [].as_slice()) } else { Ok(None) }
    }

    pub(super) fn advance(&mut self, input: &mut &[u8]) -> Result<Option<Range<usize>>, WireError> {
        loop {
            if let State::Failed(error) = &self.state {
                return Err(error.clone());
            }
            if self.state == State::Deflate {
                if input.is_empty() && !self.more {
                    return Ok(None);
                }
                if let Some(range) = self.inflate(input) {
                    return Ok(Some(range));
                }
                continue;
            }
            let Some((&byte, rest)) = input.split_first() else { return Ok(None) };
            *input = rest;
            self.taken += 1;
            self.state = self.step(byte).unwrap_or_else(State::Failed);
        }
    }

    fn inflate(&mut self, input: &mut &[u8]) -> Option<Range<usize>> {
        let (status, used, wrote) =
            decompress(&mut self.inflate, input, &mut self.window, self.at, TINFL_FLAG_HAS_MORE_INPUT);
        *input = &input[used..];
        let range = self.at..self.at + wrote;
        self.crc = crc32(self.crc, &self.window[range.clone()]);
        self.size = self.size.wrapping_add(wrote as u32);
        self.taken += used as u64;
        self.given += wrote as u64;
        self.at = range.end % WINDOW_BYTES;
        self.more = status == TINFLStatus::HasMoreOutput;
        let stuck = used == 0 && wrote == 0;
        match status {
            TINFLStatus::Done => self.state = State::Trailer { have: 0, bytes: 0 },
            TINFLStatus::HasMoreOutput | TINFLStatus::NeedsMoreInput if !stuck => {
                let allowed = self.taken.saturating_mul(self.limits.ratio.into());
                // Only where the window is full, so that it does not hang on how the bytes were cut.
                if self.at == 0 && self.given.saturating_sub(self.limits.free_bytes) > allowed {
                    self.state = State::Failed(WireError::GzipRatio(self.limits.ratio));
                }
            }
            TINFLStatus::NeedsMoreInput if input.is_empty() => {}
            _ => self.state = State::Failed(WireError::Gzip("the data make no sense")),
        }
        (wrote > 0).then_some(range)
    }

    /// One byte outside of the compressed data.
    fn step(&mut self, byte: u8) -> Result<State, WireError> {
        match self.state {
            State::Start | State::Between | State::Head { .. } => return self.head(byte),
            State::ExtraLength { .. } | State::Extra { .. } | State::Text { .. } => self.count(byte)?,
            _ => {}
        }
        Ok(match self.state {
            State::ExtraLength { flags, low: None } => State::ExtraLength { flags, low: Some(byte) },
            State::ExtraLength { flags, low: Some(low) } => match u16::from_le_bytes([low, byte]) {
                0 => self.part(flags),
                left => State::Extra { flags, left },
            },
            State::Extra { flags, left: 1 } => self.part(flags),
            State::Extra { flags, left } => State::Extra { flags, left: left - 1 },
            State::Text { flags } if byte == 0 => self.part(flags),
            State::Text { flags } => State::Text { flags },
            State::HeadCrc { low: None } => State::HeadCrc { low: Some(byte) },
            State::HeadCrc { low: Some(low) } if u16::from_le_bytes([low, byte]) == self.crc as u16 => {
                self.part(0)
            }
            State::HeadCrc { .. } => return Err(WireError::Gzip("the checksum of the header is wrong")),
            State::Trailer { have, bytes } => {
                let bytes = bytes | u64::from(byte) << (8 * have);
                if have < 7 {
                    return Ok(State::Trailer { have: have + 1, bytes });
                }
                if bytes as u32 != self.crc {
                    return Err(WireError::Gzip("the checksum is wrong"));
                }
                if (bytes >> 32) as u32 != self.size {
                    return Err(WireError::Gzip("the length is wrong"));
                }
                (self.crc, self.size) = (0, 0);
                State::Between
            }
            State::Padding if byte == 0 => State::Padding,
            State::Padding => return Err(WireError::Gzip("something follows the zeros at the end")),
            ref other => other.clone(),
        })
    }

    /// A byte that is part of a header.
    fn count(&mut self, byte: u8) -> Result<(), WireError> {
        self.size += 1;
        self.crc = crc32(self.crc, &[byte]);
        if self.size as usize > self.limits.head_bytes {
            return Err(WireError::Gzip("endless header"));
        }
        Ok(())
    }

    /// One of the ten bytes that every header begins with.
    fn head(&mut self, byte: u8) -> Result<State, WireError> {
        if self.state == State::Between && byte == 0 {
            return Ok(State::Padding);
        }
        let flags = if let State::Head { flags } = self.state { flags } else { 0 };
        self.count(byte)?;
        Ok(match (self.size, byte) {
            (1, 0x1F) | (2, 0x8B) | (3, 8) | (5..=9, _) => State::Head { flags },
            (1 | 2, _) if self.given > 0 => return Err(WireError::Gzip("something else follows a member")),
            (1 | 2, _) => return Err(WireError::Gzip("it does not begin as gzip does")),
            (3, _) => return Err(WireError::Gzip("unknown compression method")),
            (4, flags) if flags & RESERVED != 0 => return Err(WireError::Gzip("unknown flags")),
            (4, flags) => State::Head { flags },
            _ => self.part(flags),
        })
    }

    /// The next part of the header that `flags` still announce.
    fn part(&mut self, flags: u8) -> State {
        if flags & FEXTRA != 0 {
            State::ExtraLength { flags: flags & !FEXTRA, low: None }
        } else if flags & FNAME != 0 {
            State::Text { flags: flags & !FNAME }
        } else if flags & FCOMMENT != 0 {
            State::Text { flags: flags & !FCOMMENT }
        } else if flags & FHCRC != 0 {
            State::HeadCrc { low: None }
        } else {
            self.inflate.init();
            // Nothing of one member can be had from another, however wrong its distances are.
            let used = usize::try_from(self.given).unwrap_or(usize::MAX).min(WINDOW_BYTES);
            self.window[..used].fill(0);
            (self.at, self.more, self.crc, self.size) = (0, false, 0, 0);
            State::Deflate
        }
    }
}

#[cfg(test)]
pub(crate) mod tests;
