//! One pass over JSON bytes, without recursion and without building anything: validates, and tells where things are.
//!
//! It accepts what `serde_json` accepts, except that nesting may be as deep as Go's decoder allows (10,000) and that
//! numbers beyond the range of `f64` are left as the text they are. Member names are compared exactly; Go's habit of
//! matching them without regard to case is not followed, since it makes `METADATA` a second way to name an object.

mod plain;

#[cfg(test)]
mod tests;

use alloc::borrow::Cow;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use wide::u8x16;

/// Go's `encoding/json` gives up at this depth, so no API server can hold anything deeper.
pub(crate) const MAX_DEPTH: usize = 10_000;

/// Where and why the bytes are not JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SyntaxError {
    pub(crate) at: usize,
    pub(crate) what: &'static str,
}

impl fmt::Display for SyntaxError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at byte {}", self.what, self.at)
    }
}

/// The inside of a JSON string: between its quotes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Text {
    pub(crate) start: usize,
    pub(crate) end: usize,
    pub(crate) escaped: bool,
}

impl Text {
    /// Whether the string, unescaped, is `what`.
    pub(crate) fn is(self, json: &str, what: &str) -> bool {
        if self.escaped { self.get(json) == what } else { &json[self.start..self.end] == what }
    }

    /// The string, unescaped.
    pub(crate) fn get(self, json: &str) -> Cow<'_, str> {
        let inside = &json[self.start..self.end];
        if self.escaped { Cow::Owned(unescape(inside)) } else { Cow::Borrowed(inside) }
    }
}

/// The kind of the next value, by its first byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Token {
    Object,
    Array,
    String,
    Number,
    Bool,
    Null,
}

impl Token {
    /// For error messages.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Object => "an object",
            Self::Array => "an array",
            Self::String => "a string",
            Self::Number => "a number",
            Self::Bool => "a boolean",
            Self::Null => "null",
        }
    }
}

/// A position in JSON text.
pub(crate) struct Scanner<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Scanner<'a> {
    pub(crate) fn new(json: &'a str) -> Self {
        Self { bytes: json.as_bytes(), at: 0 }
    }

    /// From a byte on; positions still count from the beginning of `json`.
    pub(crate) fn from(json: &'a str, at: usize) -> Self {
        Self { bytes: json.as_bytes(), at }
    }

    pub(crate) fn at(&self) -> usize {
        self.at
    }

    fn err<T>(&self, what: &'static str) -> Result<T, SyntaxError> {
        let what = if self.at >= self.bytes.len() { "unexpected end of JSON" } else { what };
        Err(SyntaxError { at: self.at, what })
    }

    #[inline]
    fn space(&mut self) {
        while let Some(b' ' | b'\n' | b'\r' | b'\t') = self.bytes.get(self.at) {
            self.at += 1;
        }
    }

    #[inline]
    fn next(&mut self) -> Option<u8> {
        self.space();
        self.bytes.get(self.at).copied()
    }

    #[inline]
    fn eat(&mut self, byte: u8) -> bool {
        let found = self.next() == Some(byte);
        self.at += usize::from(found);
        found
    }

    /// Nothing but white space may follow.
    pub(crate) fn end(&mut self) -> Result<(), SyntaxError> {
        match self.next() {
            None => Ok(()),
            Some(_) => self.err("trailing characters"),
        }
    }

    /// What the next value is; does not consume it.
    #[inline]
    pub(crate) fn peek(&mut self) -> Result<Token, SyntaxError> {
        Ok(match self.next() {
            Some(b'{') => Token::Object,
            Some(b'[') => Token::Array,
            Some(b'"') => Token::String,
            Some(b'-' | b'0'..=b'9') => Token::Number,
            Some(b't' | b'f') => Token::Bool,
            Some(b'n') => Token::Null,
            _ => return self.err("expected a value"),
        })
    }

    /// Calls `each` for every member of the object that must come next; `each` must consume the member's value.
    pub(crate) fn members<E: From<SyntaxError>>(
        &mut self,
        mut each: impl FnMut(&mut Self, Text) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut more = self.open_object()?;
        while more {
            let key = self.key()?;
            each(self, key)?;
            more = self.next_member()?;
        }
        Ok(())
    }

    /// Calls `each` for every element of the array that must come next; `each` must consume it.
    pub(crate) fn elements<E: From<SyntaxError>>(
        &mut self,
        mut each: impl FnMut(&mut Self) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut more = self.open_array()?;
        while more {
            each(self)?;
            more = self.next_element()?;
        }
        Ok(())
    }

    /// Enters an object; whether it has a member.
    pub(crate) fn open_object(&mut self) -> Result<bool, SyntaxError> {
        if !self.eat(b'{') {
            return self.err("expected an object");
        }
        Ok(!self.eat(b'}'))
    }

    /// After a member: whether another follows.
    pub(crate) fn next_member(&mut self) -> Result<bool, SyntaxError> {
        if self.eat(b',') {
            return Ok(true);
        }
        if self.eat(b'}') {
            return Ok(false);
        }
        self.err("expected `,` or `}`")
    }

    /// Enters an array; whether it has an element.
    pub(crate) fn open_array(&mut self) -> Result<bool, SyntaxError> {
        if !self.eat(b'[') {
            return self.err("expected an array");
        }
        Ok(!self.eat(b']'))
    }

    /// After an element: whether another follows.
    pub(crate) fn next_element(&mut self) -> Result<bool, SyntaxError> {
        if self.eat(b',') {
            return Ok(true);
        }
        if self.eat(b']') {
            return Ok(false);
        }
        self.err("expected `,` or `]`")
    }

    /// A member's name and the colon.
    pub(crate) fn key(&mut self) -> Result<Text, SyntaxError> {
        if self.next() != Some(b'"') {
            return self.err("expected a member name");
        }
        let text = self.string()?;
        if !self.eat(b':') {
            return self.err("expected `:`");
        }
        Ok(text)
    }

    /// A string, which must come next.
    pub(crate) fn string(&mut self) -> Result<Text, SyntaxError> {
        if self.next() != Some(b'"') {
            return self.err("expected a string");
        }
        self.at += 1;
        let start = self.at;
        let mut escaped = false;
        loop {
            self.at = plain_end(self.bytes, self.at);
            match self.bytes.get(self.at) {
                Some(b'"') => {
                    let end = self.at;
                    self.at += 1;
                    return Ok(Text { start, end, escaped });
                }
                Some(b'\\') => {
                    escaped = true;
                    self.escape()?;
                }
                _ => return self.err("control character in a string"),
            }
        }
    }

    fn escape(&mut self) -> Result<(), SyntaxError> {
        match self.bytes.get(self.at + 1) {
            Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => {
                self.at += 2;
                Ok(())
            }
            Some(b'u') => match hex4(self.bytes, self.at + 2) {
                None => self.err("invalid \\u escape"),
                Some(0xDC00..=0xDFFF) => self.err("lone surrogate in a string"),
                Some(0xD800..=0xDBFF) => {
                    let low = (self.bytes.get(self.at + 6..self.at + 8) == Some(b"\\u"))
                        .then(|| hex4(self.bytes, self.at + 8))
                        .flatten();
                    if !matches!(low, Some(0xDC00..=0xDFFF)) {
                        return self.err("lone surrogate in a string");
                    }
                    self.at += 12;
                    Ok(())
                }
                Some(_) => {
                    self.at += 6;
                    Ok(())
                }
            },
            _ => self.err("invalid escape"),
        }
    }

    fn digits(&mut self) -> Result<(), SyntaxError> {
        let from = self.at;
        while let Some(b'0'..=b'9') = self.bytes.get(self.at) {
            self.at += 1;
        }
        if self.at == from { self.err("invalid number") } else { Ok(()) }
    }

    fn number(&mut self) -> Result<(), SyntaxError> {
        if self.bytes.get(self.at) == Some(&b'-') {
            self.at += 1;
        }
        if self.bytes.get(self.at) == Some(&b'0') {
            self.at += 1;
            if let Some(b'0'..=b'9') = self.bytes.get(self.at) {
                return self.err("invalid number");
            }
        } else {
            self.digits()?;
        }
        if self.bytes.get(self.at) == Some(&b'.') {
            self.at += 1;
            self.digits()?;
        }
        if let Some(b'e' | b'E') = self.bytes.get(self.at) {
            self.at += 1;
            if let Some(b'+' | b'-') = self.bytes.get(self.at) {
                self.at += 1;
            }
            self.digits()?;
        }
        Ok(())
    }

    fn literal(&mut self, word: &'static [u8]) -> Result<(), SyntaxError> {
        if self.bytes[self.at..].starts_with(word) {
            self.at += word.len();
            return Ok(());
        }
        self.err("expected a value")
    }

    #[inline]
    fn scalar(&mut self, first: Option<u8>) -> Result<(), SyntaxError> {
        match first {
            Some(b'"') => self.string().map(drop),
            Some(b'-' | b'0'..=b'9') => self.number(),
            Some(b't') => self.literal(b"true"),
            Some(b'f') => self.literal(b"false"),
            Some(b'n') => self.literal(b"null"),
            _ => self.err("expected a value"),
        }
    }

    /// Any value, with all that is in it; where it lies. One bit of memory for each level of nesting.
    pub(crate) fn value(&mut self) -> Result<(usize, usize), SyntaxError> {
        let mut first = self.next();
        let start = self.at;
        if !matches!(first, Some(b'{' | b'[')) {
            self.scalar(first)?;
            return Ok((start, self.at));
        }
        if let Some(end) = plain::value(self.bytes, start) {
            self.at = end;
            return Ok((start, end));
        }
        let mut nest = Nest::default();
        loop {
            // At the first byte of a value.
            let opened = match first {
                Some(b'{') => {
                    self.at += 1;
                    nest.push(true).map_err(|what| SyntaxError { at: self.at, what })?;
                    !self.eat(b'}')
                }
                Some(b'[') => {
                    self.at += 1;
                    nest.push(false).map_err(|what| SyntaxError { at: self.at, what })?;
                    !self.eat(b']')
                }
                _ => {
                    self.scalar(first)?;
                    if self.next_in(nest.in_object())? {
                        if nest.in_object() {
                            self.key()?;
                        }
                        first = self.next();
                        continue;
                    }
                    false
                }
            };
            if opened {
                if nest.in_object() {
                    self.key()?;
                }
                first = self.next();
                continue;
            }
            // A container has just ended.
            loop {
                nest.pop();
                if nest.depth == 0 {
                    return Ok((start, self.at));
                }
                if self.next_in(nest.in_object())? {
                    if nest.in_object() {
                        self.key()?;
                    }
                    first = self.next();
                    break;
                }
            }
        }
    }

    /// After a member of an object, or an element of an array: whether another follows.
    #[inline]
    pub(crate) fn next_in(&mut self, object: bool) -> Result<bool, SyntaxError> {
        if object { self.next_member() } else { self.next_element() }
    }
}

/// A stack of bits: object or array. The first 64 levels cost no allocation.
#[derive(Default)]
struct Nest {
    depth: usize,
    top: u64,
    below: Vec<u64>,
}

impl Nest {
    #[inline]
    fn push(&mut self, object: bool) -> Result<(), &'static str> {
        if self.depth == MAX_DEPTH {
            return Err("nested deeper than 10000 levels");
        }
        if self.depth != 0 && self.depth.is_multiple_of(64) {
            self.below.push(self.top);
        }
        self.top = (self.top << 1) | u64::from(object);
        self.depth += 1;
        Ok(())
    }

    #[inline]
    fn pop(&mut self) {
        self.depth -= 1;
        self.top >>= 1;
        if self.depth != 0 && self.depth.is_multiple_of(64) {
            self.top = self.below.pop().unwrap_or_default();
        }
    }

    #[inline]
    fn in_object(&self) -> bool {
        self.top & 1 == 1
    }
}

/// The first byte from `at` on that is a quote, a backslash or a control character, 16 bytes at a time.
#[inline]
pub(super) fn plain_end(bytes: &[u8], mut at: usize) -> usize {
    let (quote, backslash, control) = (u8x16::splat(b'"'), u8x16::splat(b'\\'), u8x16::splat(0x1F));
    while let Some(chunk) = bytes.get(at..).and_then(|rest| rest.first_chunk()) {
        let chunk = u8x16::new(*chunk);
        let hits = chunk.simd_eq(quote) | chunk.simd_eq(backslash) | chunk.min(control).simd_eq(chunk);
        let hits = hits.to_bitmask();
        if hits != 0 {
            return at + hits.trailing_zeros() as usize;
        }
        at += 16;
    }
    while let Some(&byte) = bytes.get(at) {
        if byte == b'"' || byte == b'\\' || byte < 0x20 {
            break;
        }
        at += 1;
    }
    at
}

fn hex4(bytes: &[u8], at: usize) -> Option<u16> {
    let digits = bytes.get(at..at + 4)?;
    let mut value = 0;
    for &d in digits {
        value = value << 4 | char::from(d).to_digit(16)? as u16;
    }
    Some(value)
}

/// Undoes the escapes of a string's inside that the scanner has accepted; a bad escape (there is none) stays as it is.
pub(crate) fn unescape(inside: &str) -> String {
    let mut out = String::with_capacity(inside.len());
    let mut rest = inside;
    while let Some(at) = memchr::memchr(b'\\', rest.as_bytes()) {
        out.push_str(&rest[..at]);
        let bytes = rest.as_bytes();
        let (c, used) = match bytes.get(at + 1) {
            Some(b'b') => ('\u{8}', 2),
            Some(b'f') => ('\u{c}', 2),
            Some(b'n') => ('\n', 2),
            Some(b'r') => ('\r', 2),
            Some(b't') => ('\t', 2),
            Some(b'u') => {
                let high = hex4(bytes, at + 2).unwrap_or(0xFFFD);
                if let 0xD800..=0xDBFF = high {
                    let low = hex4(bytes, at + 8).unwrap_or(0);
                    let pair = char::decode_utf16([high, low]).next().and_then(Result::ok);
                    (pair.unwrap_or('\u{FFFD}'), 12)
                } else {
                    (char::from_u32(u32::from(high)).unwrap_or('\u{FFFD}'), 6)
                }
            }
            Some(&c) if c.is_ascii() => (char::from(c), 2),
            _ => ('\\', 1),
        };
        out.push(c);
        rest = rest.get(at + used..).unwrap_or_default();
    }
    out.push_str(rest);
    out
}
