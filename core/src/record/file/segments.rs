//! Which parts of a recording are kept.

use alloc::collections::VecDeque;
use alloc::format;
use alloc::vec::Vec;

use super::{Header, end, line};
use crate::limits;
use crate::machine::Outputs;

/// How much of a recording is kept: `segment * segments` bytes at most, and the line that tells why nothing follows, where there
/// is one ([`limits::RECORDING_END`]).
///
/// A machine can be replayed only from its beginning: it has no form in which its state could be put down in between. So a
/// recording that has outgrown its bound can either end, and be replayed up to there, or lose its beginning, and then only be
/// read (recorded calls, each of which has a beginning of its own, can still be replayed). Choose a bound that holds what is
/// looked for, or [`Keep::Beginning`] for trouble that comes early. A single record that is longer than the bound ends the
/// recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bound {
    /// Most bytes of a segment. One record that is longer has a segment of its own, in the place of several.
    pub segment: u64,
    /// Most segments, at least one.
    pub segments: u64,
    /// What is kept when there would be more.
    pub keep: Keep,
}

/// Which end of a recording is kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Keep {
    /// The latest records; the oldest segments go.
    #[default]
    Latest,
    /// The first records; nothing more is recorded.
    Beginning,
}

impl Default for Bound {
    /// The latest 64 MiB.
    fn default() -> Self {
        Self { segment: limits::RECORDING_SEGMENT, segments: limits::RECORDING_SEGMENTS, keep: Keep::Latest }
    }
}

impl Bound {
    /// Bytes of all segments.
    const fn total(&self) -> u64 {
        self.segment.saturating_mul(if self.segments == 0 { 1 } else { self.segments })
    }
}

/// What to do with the files of one recording.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Write {
    /// Begin the segment with this number.
    Begin(u64),
    /// Append to the segment that was begun last.
    Append(Vec<u8>),
    /// Remove this segment.
    Remove(u64),
}

/// Cuts a recording into segments and keeps it within its [`Bound`]. Pure: whoever has files does what it says.
#[derive(Debug)]
pub struct Segments {
    header: Header,
    bound: Bound,
    /// Bytes of each segment that is kept; the last one is the present one.
    kept: VecDeque<u64>,
    /// The number of the segment that would be begun next.
    next: u64,
    records: u64,
    over: bool,
}

impl Segments {
    /// Of a recording with this header.
    #[must_use]
    pub const fn new(header: Header, bound: Bound) -> Self {
        Self { header, bound, kept: VecDeque::new(), next: 0, records: 0, over: false }
    }

    /// Takes one record, a whole line. Whether it takes more after it.
    pub fn push(&mut self, record: Vec<u8>, out: &mut Outputs<Write>) -> bool {
        if self.over {
            return false;
        }
        let Bound { segment, segments, keep } = self.bound;
        let (bytes, most) = (record.len() as u64, self.bound.total());
        if let Err(why) = fits(record.len()) {
            self.end(&why, out);
            return false;
        }
        let header = self.kept.back().is_none_or(|kept| kept + bytes > segment).then(|| self.next_header());
        let more = bytes + header.as_ref().map_or(0, |header| header.len() as u64);
        if more > most {
            self.end(&format!("a record of {bytes} bytes does not fit into the bound of {most}"), out);
            return false;
        }
        let begins = u64::from(header.is_some());
        while self.kept.len() as u64 + begins > segments.max(1) || self.kept.iter().sum::<u64>() + more > most
        {
            if keep == Keep::Beginning {
                self.end(&format!("the bound of {segments} segments of {segment} bytes is reached"), out);
                return false;
            }
            out.push(Write::Remove(self.next - self.kept.len() as u64));
            self.kept.pop_front();
        }
        self.append(header, record, out);
        true
    }

    /// Says why nothing follows.
    pub fn end(&mut self, why: &str, out: &mut Outputs<Write>) {
        if !self.over {
            let header = self.kept.is_empty().then(|| self.next_header());
            let ends = why.char_indices().map(|(at, c)| at + c.len_utf8());
            let short = ends.take_while(|end| *end <= limits::RECORDING_END).last().unwrap_or(0);
            self.append(header, end(&why[..short]), out);
            self.over = true;
        }
    }

    fn next_header(&mut self) -> Vec<u8> {
        (self.header.segment, self.header.first) = (self.next, self.records);
        line(&self.header)
    }

    /// Appends to the present segment, or to one that begins with this header.
    fn append(&mut self, header: Option<Vec<u8>>, record: Vec<u8>, out: &mut Outputs<Write>) {
        if let Some(header) = header {
            out.push(Write::Begin(self.next));
            self.next += 1;
            self.kept.push_back(header.len() as u64);
            out.push(Write::Append(header));
        }
        if let Some(kept) = self.kept.back_mut() {
            *kept += record.len() as u64;
        }
        self.records += 1;
        out.push(Write::Append(record));
    }
}

/// Whether a record may have so many bytes.
///
/// # Errors
/// Why not.
pub(in crate::record) fn fits(bytes: usize) -> Result<(), alloc::string::String> {
    if bytes <= limits::RECORD_BYTES {
        return Ok(());
    }
    Err(format!("a record of {bytes} bytes is longer than {}", limits::RECORD_BYTES))
}
