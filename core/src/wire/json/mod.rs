//! The incremental structural scanner under the splitters: where does this JSON value end?
//!
//! It knows strings, escapes and depth, nothing more; whether the value is valid is for the decoder to say. State is a
//! few bytes, so input may stop anywhere, and depth is a number, so nesting cannot exhaust a stack. Blocks of 64 bytes
//! become bit masks (after simdjson, Langdale & Lemire 2019), and most blocks are then two population counts.

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

const QUOTE: u8 = b'"';
const BACKSLASH: u8 = b'\\';
const BLOCK: usize = 64;

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
            let stop =
                if LINES && any(block, b'\n') { self.bytewise::<LINES>(block) } else { self.block(block) };
            match stop {
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
        let backslashes = if any(block, BACKSLASH) { mask(block, |b| b == BACKSLASH) } else { 0 };
        let escaped = self.escaped(backslashes);
        let quotes = mask(block, |b| b == QUOTE) & !escaped;
        let strings = prefix_xor(quotes) ^ if self.in_string { u64::MAX } else { 0 };
        self.in_string = strings >> 63 != 0;
        // `[` and `{`, as `]` and `}`, differ only in the bit 0x20.
        let opens = mask(block, |b| b | 0x20 == b'{') & !strings;
        let closes = mask(block, |b| b | 0x20 == b'}') & !strings;
        if u64::from(closes.count_ones()) < self.depth {
            self.depth = self.depth + u64::from(opens.count_ones()) - u64::from(closes.count_ones());
            return Stop::More;
        }
        // The value may end in this block (or it is a string, or has not begun).
        *self = before;
        self.bytewise::<false>(block)
    }

    /// Which bytes follow an unescaped backslash.
    fn escaped(&mut self, backslashes: u64) -> u64 {
        let carried = u64::from(self.escape);
        if backslashes == 0 {
            self.escape = false;
            return carried;
        }
        const ODD: u64 = 0xAAAA_AAAA_AAAA_AAAA;
        let starts = backslashes & !carried;
        let codes = ((starts << 1) | ODD).wrapping_sub(starts) ^ ODD;
        self.escape = (codes & backslashes) >> 63 != 0;
        codes ^ (backslashes | carried)
    }
}

// Loops over indices: chains of iterators become calls in a build without link-time optimisation, nine instructions a byte.

/// Whether `byte` is among them; without an early end, so that it becomes a few vector instructions.
#[inline(always)]
fn any(block: &[u8; BLOCK], byte: u8) -> bool {
    let (mut found, mut at) = (0, 0);
    while at < BLOCK {
        found |= u8::from(block[at] == byte);
        at += 1;
    }
    found != 0
}

/// One bit per byte for which `test` holds; byte 0 is the lowest bit.
#[inline(always)]
fn mask(block: &[u8; BLOCK], test: impl Fn(u8) -> bool) -> u64 {
    // Two steps that compilers make vectors of: a byte of 0 or 1 each, then eight of them to eight bits by one product.
    let mut ones = [0; BLOCK];
    let mut at = 0;
    while at < BLOCK {
        ones[at] = u8::from(test(block[at]));
        at += 1;
    }
    let (mut bits, mut at) = (0, 0);
    while let Some(eight) = ones[at..].first_chunk::<8>() {
        bits |= (u64::from_le_bytes(*eight).wrapping_mul(0x0102_0408_1020_4080) >> 56) << at;
        at += 8;
    }
    bits
}

/// Bit n of the result is the parity of the bits 0..=n: between quotes, ones.
const fn prefix_xor(mut bits: u64) -> u64 {
    bits ^= bits << 1;
    bits ^= bits << 2;
    bits ^= bits << 4;
    bits ^= bits << 8;
    bits ^= bits << 16;
    bits ^= bits << 32;
    bits
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
