//! The incremental structural scanner under the splitters: where does this JSON value end?
//!
//! It knows strings, escapes and depth, nothing more; whether the value is valid is for the decoder to say. State is a
//! few bytes, so input may stop anywhere, and depth is a number, so nesting cannot exhaust a stack. Blocks of 64 bytes
//! become bit masks (after simdjson, Langdale & Lemire 2019), and most blocks are then two population counts.

mod block;

use block::prefix_xor;
pub(crate) use block::{BLOCK, Block, escaped};

/// Where a scan stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// The value ended; this many bytes of the input belong to it.
    End(usize),
    /// A raw newline stands at this index, inside the value. The scan goes on at the next byte.
    Newline(usize),
    /// The input is used up.
    More,
}

/// Follows one JSON object, array or string from its first byte.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Scanner {
    depth: u64,
    in_string: bool,
    /// The byte before was an unescaped backslash.
    escape: bool,
}

pub(crate) const QUOTE: u8 = b'"';
pub(crate) const BACKSLASH: u8 = b'\\';

impl Scanner {
    /// A scanner in front of a value.
    #[must_use]
    pub const fn new() -> Self {
        Self { depth: 0, in_string: false, escape: false }
    }

    /// Whether the scan stands inside a string.
    #[must_use]
    pub const fn in_string(&self) -> bool {
        self.in_string
    }

    /// Goes on through `bytes` to the end of the value. The first byte of all must be `{`, `[` or `"`.
    ///
    /// ```
    /// use steersman_core::wire::json::{Scanner, Stop};
    /// let mut s = Scanner::new();
    /// assert_eq!(s.scan(br#"{"a":"}\"#), Stop::More);
    /// assert_eq!(s.scan(br#""}","b":[1]} {"#), Stop::End(12));
    /// ```
    pub fn scan(&mut self, bytes: &[u8]) -> Stop {
        self.run::<false>(bytes)
    }

    /// The same, and stops at raw newlines inside the value.
    pub fn scan_line(&mut self, bytes: &[u8]) -> Stop {
        self.run::<true>(bytes)
    }

    fn run<const LINES: bool>(&mut self, bytes: &[u8]) -> Stop {
        let mut at = 0;
        while let Some(block) = bytes[at..].first_chunk::<BLOCK>() {
            let lines = LINES && Block::new(block).has(b'\n');
            match if lines { self.bytewise::<LINES>(block) } else { self.block(block) } {
                Stop::End(n) => return Stop::End(at + n),
                Stop::Newline(n) => return Stop::Newline(at + n),
                Stop::More => at += BLOCK,
            }
        }
        match self.bytewise::<LINES>(&bytes[at..]) {
            Stop::End(n) => Stop::End(at + n),
            Stop::Newline(n) => Stop::Newline(at + n),
            Stop::More => Stop::More,
        }
    }

    /// The definition; [`Self::block`] does the same, faster. A backslash escapes a quote or backslash after it, inside
    /// of strings and (where it is invalid anyway) outside.
    fn bytewise<const LINES: bool>(&mut self, bytes: &[u8]) -> Stop {
        for (i, &b) in bytes.iter().enumerate() {
            let escaped = core::mem::take(&mut self.escape);
            match b {
                QUOTE if !escaped => {
                    self.in_string = !self.in_string;
                    if !self.in_string && self.depth == 0 {
                        return Stop::End(i + 1);
                    }
                }
                BACKSLASH if !escaped => self.escape = true,
                b'{' | b'[' if !self.in_string => self.depth += 1,
                b'}' | b']' if !self.in_string => {
                    self.depth = self.depth.saturating_sub(1);
                    if self.depth == 0 {
                        return Stop::End(i + 1);
                    }
                }
                b'\n' if LINES => return Stop::Newline(i),
                _ => {}
            }
        }
        Stop::More
    }

    fn block(&mut self, block: &[u8; BLOCK]) -> Stop {
        let before = self.clone();
        let bytes = Block::new(block);
        let quotes = bytes.equal(QUOTE) & !escaped(bytes.equal(BACKSLASH), &mut self.escape);
        let strings = prefix_xor(quotes) ^ if self.in_string { u64::MAX } else { 0 };
        self.in_string = strings >> 63 != 0;
        // `[` and `{`, as `]` and `}`, differ only in the bit 0x20.
        let bytes = bytes.or(0x20);
        let opens = bytes.equal(b'{') & !strings;
        let closes = bytes.equal(b'}') & !strings;
        if u64::from(closes.count_ones()) < self.depth {
            self.depth = self.depth + u64::from(opens.count_ones()) - u64::from(closes.count_ones());
            return Stop::More;
        }
        // The value may end in this block (or it is a string, or has not begun).
        *self = before;
        self.bytewise::<false>(block)
    }
}

/// JSON's white space.
pub(crate) const fn is_space(b: u8) -> bool {
    matches!(b, b' ' | b'\t' | b'\r' | b'\n')
}

/// `bytes` without the white space in front.
pub(crate) fn trim_start(bytes: &[u8]) -> &[u8] {
    let n = bytes.iter().take_while(|b| is_space(**b)).count();
    &bytes[n..]
}

#[cfg(test)]
mod tests;
