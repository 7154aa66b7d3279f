//! Where a body ends.

use crate::wire::WireError;

/// Longest chunk-size line with its extensions. Go stops at 4 KiB.
const CHUNK_LINE_BYTES: usize = 4096;

/// Walks through a body, lending its bytes.
#[derive(Debug)]
pub(super) enum Body {
    /// So many bytes are left.
    Length(u64),
    /// Until the connection ends.
    UntilClose,
    /// `Transfer-Encoding: chunked`.
    Chunked(Chunked),
}

#[derive(Debug)]
pub(super) struct Chunked {
    state: State,
    /// Bytes left of the chunk, or its size as far as it is read.
    size: u64,
    /// Bytes of this line, or of all trailers.
    line: usize,
    trailer_limit: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Before the first digit of a size.
    SizeStart,
    Size,
    /// Blanks after a size.
    SizeBlank,
    Extension,
    SizeLf,
    Data,
    DataCr,
    DataLf,
    /// At the first byte of a trailer line, or of the line that ends everything.
    TrailerStart,
    Trailer,
    TrailerLf,
    EndLf,
    End,
}

impl Body {
    pub(super) const fn chunked(trailer_limit: usize) -> Self {
        Self::Chunked(Chunked { state: State::SizeStart, size: 0, line: 0, trailer_limit })
    }

    /// Whether the body has ended.
    pub(super) fn ended(&self) -> bool {
        match self {
            Self::Length(left) => *left == 0,
            Self::UntilClose => false,
            Self::Chunked(c) => c.state == State::End,
        }
    }

    /// The next bytes of the body, taken off the front of `input`. `None`: the body has ended or the input is used up.
    pub(super) fn next<'i>(&mut self, input: &mut &'i [u8]) -> Result<Option<&'i [u8]>, WireError> {
        let n = match self {
            Self::Length(left) => {
                let n = usize::try_from(*left).unwrap_or(usize::MAX).min(input.len());
                *left -= n as u64;
                n
            }
            Self::UntilClose => input.len(),
            Self::Chunked(chunked) => return chunked.next(input),
        };
        let (data, rest) = input.split_at(n);
        *input = rest;
        Ok((n > 0).then_some(data))
    }

    /// Takes back the last `n` of the bytes that were lent last; they will come again.
    pub(super) const fn put_back(&mut self, n: usize) {
        match self {
            Self::Length(left) => *left += n as u64,
            Self::Chunked(chunked) if n > 0 => {
                chunked.size += n as u64;
                chunked.state = State::Data;
            }
            Self::UntilClose | Self::Chunked(_) => {}
        }
    }

    /// What the end of the connection means.
    pub(super) const fn eof(&self) -> Result<(), WireError> {
        match self {
            Self::UntilClose => Ok(()),
            Self::Length(_) => Err(WireError::Truncated("a body of known length")),
            Self::Chunked(c) => Err(WireError::Truncated(match c.state {
                State::Data | State::DataCr | State::DataLf => "a chunk",
                State::TrailerStart | State::Trailer | State::TrailerLf | State::EndLf => {
                    "the end of a chunked body"
                }
                _ => "a chunked body",
            })),
        }
    }
}

impl Chunked {
    fn next<'i>(&mut self, input: &mut &'i [u8]) -> Result<Option<&'i [u8]>, WireError> {
        while let Some((&b, rest)) = input.split_first() {
            match self.state {
                State::Data => {
                    let n = usize::try_from(self.size).unwrap_or(usize::MAX).min(input.len());
                    let (data, rest) = input.split_at(n);
                    self.size -= n as u64;
                    *input = rest;
                    if self.size == 0 {
                        self.state = State::DataCr;
                    }
                    return Ok(Some(data));
                }
                State::End => return Ok(None),
                _ => {
                    *input = rest;
                    self.state = self.step(b)?;
                }
            }
        }
        Ok(None)
    }

    fn step(&mut self, b: u8) -> Result<State, WireError> {
        use State::{
            Data, DataCr, DataLf, End, EndLf, Extension, Size, SizeBlank, SizeLf, SizeStart, Trailer,
            TrailerLf, TrailerStart,
        };
        let in_trailers = matches!(self.state, TrailerStart | Trailer | TrailerLf | EndLf);
        self.line += 1;
        if self.line > if in_trailers { self.trailer_limit } else { CHUNK_LINE_BYTES } {
            return Err(WireError::BadChunk(if in_trailers {
                "endless trailers"
            } else {
                "endless size line"
            }));
        }
        Ok(match (self.state, b) {
            (SizeStart | Size, b'0'..=b'9' | b'a'..=b'f' | b'A'..=b'F') => {
                let digit = char::from(b).to_digit(16).unwrap_or(0);
                if self.size >> 60 != 0 {
                    return Err(WireError::BadChunk("chunk size beyond 64 bits"));
                }
                self.size = self.size << 4 | u64::from(digit);
                Size
            }
            (SizeStart, _) => return Err(WireError::BadChunk("chunk size expected")),
            // RFC 9112 7.1.1 allows blanks around extensions; some servers pad the size with them.
            (Size | SizeBlank, b' ' | b'\t') => SizeBlank,
            (Size | SizeBlank, b';') => Extension,
            (Size | SizeBlank | Extension, b'\r') => SizeLf,
            (Size | SizeBlank, b'\n') => return Err(WireError::BadChunk("bare line feed")),
            (Size | SizeBlank, _) => {
                return Err(WireError::BadChunk("chunk size is not a hexadecimal number"));
            }
            (Extension, b'\n') => return Err(WireError::BadChunk("bare line feed")),
            (Extension, _) => Extension,
            (SizeLf, b'\n') => {
                self.line = 0;
                if self.size == 0 { TrailerStart } else { Data }
            }
            (DataCr, b'\r') => DataLf,
            (DataLf, b'\n') => {
                self.line = 0;
                SizeStart
            }
            (DataCr | DataLf, _) => return Err(WireError::BadChunk("chunk longer than its size")),
            (TrailerStart, b'\r') => EndLf,
            (TrailerStart | Trailer, b'\n') => return Err(WireError::BadChunk("bare line feed")),
            (Trailer, b'\r') => TrailerLf,
            (TrailerStart | Trailer, _) => Trailer,
            (TrailerLf, b'\n') => TrailerStart,
            (EndLf, b'\n') => End,
            (SizeLf | TrailerLf | EndLf, _) => return Err(WireError::BadChunk("bare carriage return")),
            (Data | End, _) => self.state,
        })
    }
}
