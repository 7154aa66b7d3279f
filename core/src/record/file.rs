//! The format of a recording, without the files: records and how they are read again.
//!
//! A recording is text: lines of `LENGTH CHECKSUM JSON`, both in eight hexadecimal digits, the length in bytes of the JSON, the
//! checksum its CRC-32. The first line of each segment is its [`Header`], all others are [`Record`]s.

use alloc::collections::VecDeque;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::Redaction;
use crate::wire::gzip::crc::crc32;

mod segments;

pub use segments::{Bound, Keep, Segments, Write};

pub(super) use segments::fits;

/// The version of the format that this code writes and reads.
pub const FORMAT: u32 = 1;

/// No process lives to write more of them.
const MOST_RECORDS: u64 = 1 << 53;

/// Bytes of a line before its JSON.
const PREFIX: usize = 18;

/// What kind of machine was recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Kind {
    /// A [`Source`](crate::source::Source).
    Source,
    /// A [`Controller`](crate::controller::Controller).
    Controller,
    /// A [`Manager`](crate::manager::Manager).
    Manager,
    /// Any number of [`Call`](crate::client::Call)s, each with a number of its own.
    Calls,
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Source => "source",
            Self::Controller => "controller",
            Self::Manager => "manager",
            Self::Calls => "calls",
        })
    }
}

/// What stands at the beginning of each segment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Header {
    /// [`FORMAT`].
    pub format: u32,
    /// The version of steersman that recorded.
    pub steersman: String,
    /// What was recorded.
    pub kind: Kind,
    /// Its name, unique within the process: `source 0 configmaps.v1`.
    pub name: String,
    /// What is masked; a replay masks the same.
    pub redaction: Redaction,
    /// What the machine was made with; `null` for calls, which each say it themselves.
    pub made: Value,
    /// The place of this segment: 0 is the beginning.
    pub segment: u64,
    /// The number of its first record: 0 is the first of all.
    pub first: u64,
}

impl Header {
    /// The header of a first segment.
    #[must_use]
    pub fn new(kind: Kind, name: impl Into<String>, redaction: Redaction, made: Value) -> Self {
        let steersman = env!("CARGO_PKG_VERSION").to_string();
        Self { format: FORMAT, steersman, kind, name: name.into(), redaction, made, segment: 0, first: 0 }
    }
}

/// One line after the header.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Record<I> {
    /// A call was made.
    Made {
        /// Its number.
        call: u64,
        /// What it was made with.
        made: Value,
    },
    /// A machine was told something.
    Step(Step<I>),
    /// No more of this call follows.
    Lost {
        /// Its number.
        call: u64,
        /// Why.
        why: String,
    },
    /// Nothing follows, for this reason.
    End(String),
}

/// One input and what followed from it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Step<I> {
    /// When.
    pub at: crate::time::Time,
    /// Which call, in a recording of calls.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call: Option<u64>,
    /// What it was told.
    pub input: I,
    /// What it said, a line each.
    pub out: Vec<String>,
    /// What it waits for after that, and until when.
    pub next: String,
}

/// One line of a recording.
pub(super) fn line(value: &impl Serialize) -> Vec<u8> {
    let mut line = serde_json::to_vec(value).unwrap_or_default();
    let prefix = format!("{:08x} {:08x} ", line.len(), crc32(0, &line));
    // In place: a second copy of a long one is not worth it.
    line.reserve_exact(PREFIX + 1);
    line.splice(..0, prefix.into_bytes());
    line.push(b'\n');
    line
}

/// The record after which nothing follows.
pub(super) fn end(why: &str) -> Vec<u8> {
    line(&Record::<()>::End(why.to_string()))
}

/// A recording that was read.
#[derive(Clone, Debug)]
pub struct Recording {
    /// The header of its earliest segment.
    pub header: Header,
    /// The JSON of its records, in order.
    pub records: Vec<String>,
    /// How it ends.
    pub end: End,
}

/// How a recording ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End {
    /// With a whole record: the machine, or the process, ended there, or still runs.
    Whole,
    /// In the middle of a record, as a process that crashed leaves it; what was whole counts.
    Torn,
    /// With this reason for ending.
    Ended(String),
}

/// Why a recording cannot be read. One line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadError(String);

impl ReadError {
    pub(super) fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }
}

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl core::error::Error for ReadError {}

/// Why a line is none.
enum Bad {
    /// It ends early.
    Torn,
    /// It is something else.
    Damaged(&'static str),
}

/// Takes the JSON of one line off the front of `input`.
fn take_line<'i>(input: &mut &'i [u8]) -> Result<&'i str, Bad> {
    let hex = |bytes: &[u8]| {
        core::str::from_utf8(bytes)
            .ok()
            .filter(|text| !text.starts_with('+'))
            .and_then(|text| u32::from_str_radix(text, 16).ok())
            .ok_or(Bad::Damaged("no length and checksum"))
    };
    // JSON in one line has no line end in it: what is cut off has none at all.
    let torn = |why| if memchr::memchr(b'\n', input).is_none() { Bad::Torn } else { Bad::Damaged(why) };
    if input.len() < PREFIX {
        return Err(torn("no length and checksum"));
    }
    if input[8] != b' ' || input[17] != b' ' {
        return Err(Bad::Damaged("no length and checksum"));
    }
    let length = hex(&input[..8])? as usize;
    let sum = hex(&input[9..17])?;
    if input.len() - PREFIX <= length {
        return Err(torn("its length is another one"));
    }
    let json = &input[PREFIX..PREFIX + length];
    if crc32(0, json) != sum {
        return Err(Bad::Damaged("the checksum is another one"));
    }
    if input[PREFIX + length] != b'\n' {
        return Err(Bad::Damaged("no line end"));
    }
    *input = &input[PREFIX + length + 1..];
    core::str::from_utf8(json).map_err(|_| Bad::Damaged("not UTF-8"))
}

impl Recording {
    /// Reads a recording from its segments, in any order.
    ///
    /// # Errors
    /// What is not a recording, or of another format; segments that do not belong together; a record that is damaged, which is
    /// not the same as one that was cut off at the very end.
    pub fn read<'a>(segments: impl IntoIterator<Item = &'a [u8]>) -> Result<Self, ReadError> {
        let mut all = Vec::new();
        for mut bytes in segments {
            let json = match take_line(&mut bytes) {
                Ok(json) => json,
                // Begun, and nothing more.
                Err(Bad::Torn) if !all.is_empty() || bytes.is_empty() => continue,
                Err(Bad::Torn) => return Err(ReadError::new("not a recording: it ends within its header")),
                Err(Bad::Damaged(why)) => return Err(ReadError::new(format!("not a recording: {why}"))),
            };
            let format = serde_json::from_str::<Value>(json).ok().and_then(|v| v["format"].as_u64());
            if format != Some(FORMAT.into()) {
                let of = format.map_or_else(|| "no format".to_string(), |n| format!("format {n}"));
                return Err(ReadError::new(format!(
                    "a recording of {of}; this program reads format {FORMAT}"
                )));
            }
            let header: Header = serde_json::from_str(json)
                .map_err(|e| ReadError::new(format!("the header cannot be read: {e}")))?;
            if header.first.max(header.segment) > MOST_RECORDS {
                return Err(ReadError::new("the header cannot be read: its numbers make no sense"));
            }
            all.push((header, bytes));
        }
        all.sort_by_key(|(header, _)| header.segment);
        let mut all = VecDeque::from(all);
        let Some((header, first)) = all.pop_front() else {
            return Err(ReadError::new("not a recording: it is empty"));
        };
        let mut recording = Self { header, records: Vec::new(), end: End::Whole };
        let mut segment = recording.header.segment;
        let mut bytes = first;
        loop {
            recording.take_segment(segment, bytes, all.is_empty())?;
            let Some((next, rest)) = all.pop_front() else { return Ok(recording) };
            let Header { kind, name, .. } = &recording.header;
            if (next.kind, &next.name) != (*kind, name) {
                let (a, b) = (name, next.name);
                return Err(ReadError::new(format!("segments of two recordings: {a:?} and {b:?}")));
            }
            if next.segment != segment + 1 || next.first != recording.next_number() {
                return Err(ReadError::new(format!("segment {} is missing or not whole", segment + 1)));
            }
            (segment, bytes) = (next.segment, rest);
        }
    }

    fn take_segment(&mut self, segment: u64, mut bytes: &[u8], last: bool) -> Result<(), ReadError> {
        let whole = bytes.len();
        while !bytes.is_empty() {
            let at = whole - bytes.len();
            match take_line(&mut bytes) {
                Ok(json) => match serde_json::from_str::<Record<serde::de::IgnoredAny>>(json) {
                    Ok(Record::End(why)) => self.end = End::Ended(why),
                    Ok(_) => self.records.push(json.to_string()),
                    Err(e) => {
                        let n = self.next_number();
                        return Err(ReadError::new(format!("record {n} (segment {segment}): {e}")));
                    }
                },
                Err(Bad::Torn) if last => {
                    self.end = End::Torn;
                    return Ok(());
                }
                Err(bad) => {
                    let why = if let Bad::Damaged(why) = bad { why } else { "it ends early" };
                    let n = self.next_number();
                    return Err(ReadError::new(format!(
                        "record {n} is damaged (segment {segment}, {at} bytes after the header): {why}"
                    )));
                }
            }
        }
        Ok(())
    }

    /// The number of the record that would follow.
    fn next_number(&self) -> u64 {
        self.header.first + self.records.len() as u64
    }

    /// Whether its beginning is there.
    #[must_use]
    pub const fn is_whole(&self) -> bool {
        self.header.first == 0
    }

    /// The records with their numbers.
    pub fn numbered(&self) -> impl Iterator<Item = (u64, &str)> {
        (self.header.first..).zip(self.records.iter().map(String::as_str))
    }
}
