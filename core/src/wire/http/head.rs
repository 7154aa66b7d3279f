//! What both halves share: collecting a head, and what it says about the body.

use alloc::string::String;
use alloc::vec::Vec;

use crate::wire::WireError;
use crate::wire::quote::{QUOTE_BYTES, quote};

/// Collects the bytes of a head up to its blank line. Each byte is looked at once, however they come.
#[derive(Debug, Default)]
pub(super) struct HeadBuffer {
    bytes: Vec<u8>,
    line_start: usize,
}

/// What [`HeadBuffer::take`] has.
pub(super) enum Collected {
    /// The input is used up.
    More,
    /// The first line is complete, or long enough to tell what it is. Asked once.
    FirstLine,
    /// The blank line has come.
    Complete,
}

impl HeadBuffer {
    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Room for its headers, up to the limit.
    pub(super) fn lines(&self, limit: usize) -> usize {
        memchr::memchr_iter(b'\n', &self.bytes).count().min(limit)
    }

    pub(super) fn clear(&mut self) {
        self.bytes.clear();
        self.line_start = 0;
    }

    pub(super) fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Takes bytes off the front of `input` until something is complete.
    pub(super) fn take(&mut self, input: &mut &[u8], limit: usize) -> Result<Collected, WireError> {
        while !input.is_empty() {
            let first = self.line_start == 0;
            // The first line stops at the length of a quotation, so that what is quoted of it does not hang on the cuts.
            let window = match first {
                true if self.bytes.len() < QUOTE_BYTES => input.len().min(QUOTE_BYTES - self.bytes.len()),
                _ => input.len(),
            };
            let newline = memchr::memchr(b'\n', &input[..window]);
            let n = newline
                .map_or(window, |i| i + 1)
                .min(limit.saturating_add(1).saturating_sub(self.bytes.len()));
            self.bytes.extend_from_slice(&input[..n]);
            *input = &input[n..];
            if self.bytes.len() > limit {
                return Err(WireError::HeadTooLong(limit));
            }
            if newline.is_none() {
                if first && self.bytes.len() == QUOTE_BYTES {
                    return Ok(Collected::FirstLine);
                }
                continue;
            }
            let blank = matches!(&self.bytes[self.line_start..], b"\n" | b"\r\n");
            if blank && first {
                // RFC 9112 2.2: an empty line before the first line is to be ignored.
                self.bytes.clear();
                continue;
            }
            self.line_start = self.bytes.len();
            if blank {
                return Ok(Collected::Complete);
            }
            if first && self.bytes.len() <= QUOTE_BYTES {
                return Ok(Collected::FirstLine);
            }
        }
        Ok(Collected::More)
    }
}

/// Header lines as text. Values that are not UTF-8 are made so.
pub(super) fn owned(headers: &[httparse::Header<'_>]) -> Vec<(String, String)> {
    let text = |value| match core::str::from_utf8(value) {
        Ok(value) => value.into(),
        Err(_) => String::from_utf8_lossy(value).into_owned(),
    };
    headers.iter().map(|h| (h.name.into(), text(h.value))).collect()
}

/// What went wrong, in words of our own.
pub(super) fn parse_error(error: httparse::Error, max_headers: usize) -> WireError {
    WireError::BadHead(match error {
        httparse::Error::TooManyHeaders => return WireError::TooManyHeaders(max_headers),
        httparse::Error::HeaderName => "invalid byte in a header name",
        httparse::Error::HeaderValue => "invalid byte in a header value",
        httparse::Error::NewLine => "invalid line end",
        httparse::Error::Status => "invalid status",
        httparse::Error::Token => "invalid byte in the first line",
        httparse::Error::Version => "invalid version",
    })
}

/// The comma-separated elements of all headers of this name.
pub(super) fn elements<'a>(headers: &'a [(String, String)], name: &'a str) -> impl Iterator<Item = &'a str> {
    headers
        .iter()
        .filter(move |(n, _)| n.eq_ignore_ascii_case(name))
        .flat_map(|(_, v)| v.split(','))
        .map(|e| e.trim_matches([' ', '\t']))
        .filter(|e| !e.is_empty())
}

/// What `Content-Length` and `Transfer-Encoding` say.
pub(super) struct Lengths {
    pub(super) length: Option<u64>,
    pub(super) chunked: bool,
}

impl Lengths {
    pub(super) fn of(headers: &[(String, String)]) -> Result<Self, WireError> {
        let mut codings = elements(headers, "transfer-encoding");
        let chunked = match (codings.next(), codings.next()) {
            (None, _) => false,
            (Some(only), None) if only.eq_ignore_ascii_case("chunked") => true,
            (Some(only), None) => {
                return Err(WireError::TransferCoding(quote(only.as_bytes(), QUOTE_BYTES)));
            }
            (Some(one), Some(two)) => {
                let both = alloc::format!("{one}, {two}");
                return Err(WireError::TransferCoding(quote(both.as_bytes(), QUOTE_BYTES)));
            }
        };
        let mut length = None;
        for value in elements(headers, "content-length") {
            if value.is_empty() || !value.bytes().all(|b| b.is_ascii_digit()) {
                return Err(WireError::BadLength("Content-Length is not a number"));
            }
            let n: u64 =
                value.parse().map_err(|_| WireError::BadLength("Content-Length is beyond 64 bits"))?;
            if length.is_some_and(|before| before != n) {
                return Err(WireError::BadLength("several Content-Length that differ"));
            }
            length = Some(n);
        }
        let named = headers.iter().any(|(n, _)| n.eq_ignore_ascii_case("content-length"));
        if named && length.is_none() {
            return Err(WireError::BadLength("Content-Length is empty"));
        }
        Ok(Self { length, chunked })
    }
}

/// Whether the `Connection` headers have this option.
pub(super) fn connection_has(headers: &[(String, String)], option: &str) -> bool {
    elements(headers, "connection").any(|o| o.eq_ignore_ascii_case(option))
}
