//! Watch frames: one JSON value after another.
//!
//! Servers send one value per line, but what counts is the value (as in Go's reader): it may span lines, and two may
//! share one. Only objects and arrays are values here; anything else is garbage up to the end of its line, after which
//! frames are looked for again. So one broken line costs only itself.

use alloc::vec::Vec;

use super::Piece;
use super::json::{Scanner, Stop, is_space, trim_start};

const BOM: [u8; 3] = [0xEF, 0xBB, 0xBF];

/// Cuts the body of a watch into frames.
///
/// A frame that lies in the input as a whole is lent from there; one that spans inputs is collected in a buffer, once.
///
/// ```
/// use steersman_core::wire::{framing::FrameSplitter, Piece};
/// let mut splitter = FrameSplitter::new(1024);
/// let mut input: &[u8] = b"{\"a\":1}\n{\"b\"";
/// assert_eq!(splitter.next(&mut input), Some(Piece::Value(b"{\"a\":1}")));
/// assert_eq!(splitter.next(&mut input), None);
/// let mut input: &[u8] = b":2}<html>\n";
/// assert_eq!(splitter.next(&mut input), Some(Piece::Value(b"{\"b\":2}")));
/// assert_eq!(splitter.next(&mut input), Some(Piece::Garbage(b"<html>")));
/// assert_eq!(splitter.next(&mut input), None);
/// assert_eq!(splitter.finish(), None);
/// ```
#[derive(Debug)]
pub struct FrameSplitter {
    limit: usize,
    state: State,
    /// What is kept of the piece that has begun.
    buffer: Vec<u8>,
    /// The buffer was lent with the last piece.
    spent: bool,
}

#[derive(Debug)]
enum State {
    /// At the start of the body, so many bytes of a byte order mark seen.
    Start(usize),
    Between,
    Value(Value),
    Garbage,
}

/// A value that has begun.
#[derive(Debug)]
struct Value {
    scanner: Scanner,
    /// How long it is so far.
    bytes: u64,
    /// The last byte that was not white space.
    last: u8,
    /// Only white space has come since a newline.
    fresh_line: bool,
}

impl FrameSplitter {
    /// A splitter at the start of a body. Frames longer than `limit` bytes are skipped and reported.
    #[must_use]
    pub const fn new(limit: usize) -> Self {
        Self { limit, state: State::Start(0), buffer: Vec::new(), spent: false }
    }

    /// How many bytes of an unfinished piece are held.
    #[must_use]
    pub const fn buffered(&self) -> usize {
        if self.spent { 0 } else { self.buffer.len() }
    }

    /// The next piece, from bytes taken off the front of `input`; `None` when all of it is used.
    pub fn next<'r, 'i: 'r>(&'r mut self, input: &mut &'i [u8]) -> Option<Piece<'r>> {
        self.reclaim();
        loop {
            match &mut self.state {
                State::Start(seen) => {
                    let b = *input.first()?;
                    if *seen < BOM.len() && b == BOM[*seen] {
                        *seen += 1;
                        *input = &input[1..];
                        if *seen == BOM.len() {
                            self.state = State::Between;
                        }
                    } else if *seen == 0 {
                        self.state = State::Between;
                    } else {
                        self.buffer.extend_from_slice(&BOM[..*seen]);
                        self.state = State::Garbage;
                    }
                }
                State::Between => {
                    *input = trim_start(input);
                    self.state = match *input.first()? {
                        first @ (b'{' | b'[') => State::Value(Value {
                            scanner: Scanner::new(),
                            bytes: 0,
                            last: first,
                            fresh_line: false,
                        }),
                        _ => State::Garbage,
                    };
                }
                State::Garbage => {
                    let end = memchr::memchr(b'\n', input);
                    let line = &input[..end.unwrap_or(input.len())];
                    *input = &input[end.map_or(input.len(), |n| n + 1)..];
                    let ended = end.is_some();
                    if ended {
                        self.state = State::Between;
                    }
                    if ended && self.buffer.is_empty() {
                        return Some(Piece::Garbage(trim_end(clip(line))));
                    }
                    keep_start(&mut self.buffer, line);
                    self.spent = ended;
                    return ended.then(|| Piece::Garbage(trim_end(&self.buffer)));
                }
                State::Value(value) => {
                    let all = *input;
                    let (bytes, end) = value.advance(all);
                    *input = &all[bytes.len()..];
                    value.bytes += bytes.len() as u64;
                    let total = value.bytes;
                    match end {
                        Some(end) => {
                            self.state = State::Between;
                            let fits = total <= self.limit as u64;
                            if !fits {
                                // What is kept is the same whether it came at once or in bits.
                                self.buffer.truncate(Piece::START_BYTES);
                            }
                            let whole = if fits {
                                self.complete(bytes)
                            } else if self.buffer.is_empty() {
                                clip(bytes)
                            } else {
                                keep_start(&mut self.buffer, bytes);
                                self.spent = true;
                                &self.buffer
                            };
                            return Some(match end {
                                End::Closed if fits => Piece::Value(whole),
                                End::Closed => Piece::TooLong { bytes: total, start: whole },
                                End::Broken => Piece::Garbage(trim_end(clip(whole))),
                            });
                        }
                        None => {
                            if total <= self.limit as u64 {
                                self.buffer.extend_from_slice(bytes);
                            } else {
                                self.buffer.truncate(Piece::START_BYTES);
                                self.buffer.shrink_to_fit();
                                keep_start(&mut self.buffer, bytes);
                            }
                            return None;
                        }
                    }
                }
            }
        }
    }

    /// What `read` makes of the frame at the front of `input`: it is given all that there is, says how many bytes the frame had,
    /// and these are taken. Where no frame begins, it is longer than the limit or `read` gives `None`, nothing is taken but
    /// white space, and [`next`](Self::next) goes on. Whoever reads frames finds their ends by that, and need not have them
    /// looked for.
    ///
    /// `read` must take whole JSON objects only, of which [`next`](Self::next) would say the same.
    pub fn read<'i, T>(
        &mut self,
        input: &mut &'i [u8],
        read: impl FnOnce(&'i [u8]) -> Option<(T, usize)>,
    ) -> Option<T> {
        self.reclaim();
        match self.state {
            State::Between => *input = trim_start(input),
            State::Start(0) => {}
            _ => return None,
        }
        // Without a line end it has hardly come as a whole, and to begin it would be in vain.
        if input.first() != Some(&b'{') || memchr::memchr(b'\n', input).is_none() {
            return None;
        }
        let (value, bytes) = read(input)?;
        if bytes > self.limit {
            return None;
        }
        self.state = State::Between;
        *input = &input[bytes..];
        Some(value)
    }

    /// The body has ended: what was left unfinished. The splitter is at a start again.
    pub fn finish(&mut self) -> Option<Piece<'_>> {
        self.reclaim();
        let state = core::mem::replace(&mut self.state, State::Start(0));
        self.spent = true;
        match state {
            State::Start(0) | State::Between => None,
            State::Start(seen) => {
                self.buffer.extend_from_slice(&BOM[..seen]);
                Some(Piece::Garbage(&self.buffer))
            }
            State::Garbage => Some(Piece::Garbage(trim_end(&self.buffer))),
            State::Value(_) => Some(Piece::Truncated(clip(&self.buffer))),
        }
    }

    /// Takes back what was lent.
    fn reclaim(&mut self) {
        if core::mem::take(&mut self.spent) {
            self.buffer.clear();
            // One huge frame must not hold its memory for the life of the watch.
            if self.buffer.capacity() > 1 << 20 {
                self.buffer = Vec::new();
            }
        }
    }

    /// The buffered start and `rest` as one slice.
    fn complete<'r>(&'r mut self, rest: &'r [u8]) -> &'r [u8] {
        if self.buffer.is_empty() {
            return rest;
        }
        self.buffer.extend_from_slice(rest);
        self.spent = true;
        &self.buffer
    }
}

enum End {
    /// By its last bracket.
    Closed,
    /// By a line end at which it cannot be JSON any more.
    Broken,
}

impl Value {
    /// The bytes of `input` that belong to this value, and whether it ends with them.
    fn advance<'i>(&mut self, input: &'i [u8]) -> (&'i [u8], Option<End>) {
        let mut at = 0;
        loop {
            if self.fresh_line {
                at = input.len() - trim_start(&input[at..]).len();
                let Some(&first) = input.get(at) else { return (input, None) };
                self.fresh_line = false;
                // An object starts here only after a colon, a comma or a bracket: otherwise the value broke off, and
                // this is the next frame.
                if first == b'{' && !matches!(self.last, b':' | b',' | b'[') {
                    return (&input[..at], Some(End::Broken));
                }
            }
            let rest = &input[at..];
            let stop = self.scanner.scan_line(rest);
            let scanned = match stop {
                Stop::End(n) => return (&input[..at + n], Some(End::Closed)),
                Stop::Newline(n) => &rest[..n],
                Stop::More => rest,
            };
            if let Some(last) = scanned.iter().rfind(|b| !is_space(**b)) {
                self.last = *last;
            }
            let Stop::Newline(n) = stop else { return (input, None) };
            at += n + 1;
            if self.scanner.in_string() {
                // JSON strings hold no raw newlines.
                return (&input[..at], Some(End::Broken));
            }
            self.fresh_line = true;
        }
    }
}

fn clip(bytes: &[u8]) -> &[u8] {
    &bytes[..bytes.len().min(Piece::START_BYTES)]
}

fn trim_end(bytes: &[u8]) -> &[u8] {
    let n = bytes.iter().rev().take_while(|b| is_space(**b)).count();
    &bytes[..bytes.len() - n]
}

/// Appends to a buffer of which only the start matters.
pub(super) fn keep_start(buffer: &mut Vec<u8>, bytes: &[u8]) {
    let room = Piece::START_BYTES.saturating_sub(buffer.len());
    buffer.extend_from_slice(&bytes[..bytes.len().min(room)]);
}

#[cfg(test)]
mod tests;
