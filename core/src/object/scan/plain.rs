//! The short way through a value: JSON as API servers write it, without white space and rare forms.
//!
//! What is odd in any way is left to the scanner, which knows all of JSON and says what is wrong. Most of what a watch
//! costs a core is here, so that this is written for speed: where strings end is read off the bit mask of the quotes of a
//! block, since to look for each end in the bytes makes every step wait for the one before it.

use super::Scanner;
use crate::wire::json::{BACKSLASH, BLOCK, Block, QUOTE, escaped};

/// The last control character, which strings must not hold.
const CONTROL: u8 = 0x1F;

/// The end of the value that begins at `at`, if it is plain: no white space in it, no surrogate pairs, at most 64 levels
/// deep.
pub(super) fn value(bytes: &[u8], mut at: usize) -> Option<usize> {
    let mut quotes = Quotes::new(bytes, at);
    // One bit for each level, the innermost lowest: whether it is an object.
    let (mut objects, mut depth) = (0_u64, 0_u32);
    loop {
        match *bytes.get(at)? {
            QUOTE => at = quotes.string_end()?,
            open @ (b'{' | b'[') => {
                let object = open == b'{';
                at += 1;
                if *bytes.get(at)? != if object { b'}' } else { b']' } {
                    if depth == u64::BITS {
                        return None;
                    }
                    depth += 1;
                    objects = objects << 1 | u64::from(object);
                    if object {
                        at = key(&mut quotes, at)?;
                    }
                    continue;
                }
                at += 1;
            }
            b'-' | b'0'..=b'9' => at = number(bytes, at)?,
            b't' if bytes[at..].starts_with(b"true") => at += 4,
            b'f' if bytes[at..].starts_with(b"false") => at += 5,
            b'n' if bytes[at..].starts_with(b"null") => at += 4,
            _ => return None,
        }
        // Behind a value: another one, or the ends of what it is in.
        loop {
            if depth == 0 {
                return (at <= quotes.control).then_some(at);
            }
            let object = objects & 1 == 1;
            match *bytes.get(at)? {
                b',' => {
                    at += 1;
                    if object {
                        at = key(&mut quotes, at)?;
                    }
                    break;
                }
                b'}' if object => {}
                b']' if !object => {}
                _ => return None,
            }
            depth -= 1;
            objects >>= 1;
            at += 1;
        }
    }
}

/// Behind the colon of the member name that begins at `at`.
#[inline(always)]
fn key(quotes: &mut Quotes<'_>, at: usize) -> Option<usize> {
    if *quotes.bytes.get(at)? != QUOTE {
        return None;
    }
    let at = quotes.string_end()?;
    (*quotes.bytes.get(at)? == b':').then_some(at + 1)
}

/// Most numbers are short and whole.
#[inline]
fn number(bytes: &[u8], at: usize) -> Option<usize> {
    let mut scanner = Scanner { bytes, at };
    scanner.number().ok()?;
    Some(scanner.at)
}

/// The quotes that begin and end strings, from some place outside of strings on, block by block. Who walks over what is
/// outside of strings meets each that begins one, so that the next is its end.
struct Quotes<'a> {
    bytes: &'a [u8],
    /// Those of the block that were not met yet.
    left: u64,
    /// Where the next block begins.
    next: usize,
    /// The last byte of the block escapes the next one.
    escape: bool,
    /// Where the first control character is. All before must be looked at by who walks there, or is in a string.
    control: usize,
}

impl<'a> Quotes<'a> {
    const fn new(bytes: &'a [u8], next: usize) -> Self {
        Self { bytes, left: 0, next, escape: false, control: usize::MAX }
    }

    /// Behind the string whose first quote is the next one.
    #[inline(always)]
    fn string_end(&mut self) -> Option<usize> {
        self.quote()?;
        Some(self.quote()? + 1)
    }

    #[inline(always)]
    fn quote(&mut self) -> Option<usize> {
        while self.left == 0 {
            match self.bytes.get(self.next..)?.first_chunk() {
                Some(block) => self.block(block)?,
                None => self.last()?,
            }
        }
        let at = self.next - BLOCK + self.left.trailing_zeros() as usize;
        self.left &= self.left - 1;
        Some(at)
    }

    #[inline(always)]
    fn block(&mut self, bytes: &[u8; BLOCK]) -> Option<()> {
        let block = Block::new(bytes);
        self.left = block.equal(QUOTE);
        let odd = self.escape || block.any(BACKSLASH, CONTROL);
        let found = if odd { self.odd(block) } else { Some(()) };
        self.next += BLOCK;
        found
    }

    /// Less than a block is left.
    #[cold]
    fn last(&mut self) -> Option<()> {
        let rest = self.bytes.get(self.next..).filter(|rest| !rest.is_empty())?;
        let mut padded = [b' '; BLOCK];
        padded[..rest.len()].copy_from_slice(rest);
        self.block(&padded)
    }

    /// A block with backslashes or control characters.
    #[inline(never)]
    fn odd(&mut self, block: Block) -> Option<()> {
        let control = block.at_most(CONTROL);
        if control != 0 {
            self.control = self.control.min(self.next + control.trailing_zeros() as usize);
        }
        let backslashes = block.equal(BACKSLASH);
        let escaped = escaped(backslashes, &mut self.escape);
        let mut letters = escaped & !(self.left | backslashes);
        self.left &= !escaped;
        while letters != 0 {
            let at = self.next + letters.trailing_zeros() as usize;
            Scanner { bytes: self.bytes, at: at - 1 }.escape().ok()?;
            letters &= letters - 1;
        }
        Some(())
    }
}
