//! Texts as what they share with a dictionary, and the rest.
//!
//! An LZ77 format whose dictionary lies ready. (`lz4_flex`, the crate that comes nearest, hashes a dictionary anew for each
//! text, which costs more than the text; `zstd` is C.) It is made for objects of one kind, which differ here and there in
//! places of much the same width: where a place is over, the text goes on where the dictionary does.
//!
//! ```text
//! packed   := total text(uid) text(version) sequence*
//! text     := 0 number byte*              as it is, with its length
//!           | 1 byte[16]                  a uid in its usual form
//!           | 2 number halves             lower-case hexadecimal digits, with their number
//! sequence := head [number] (byte* | halves) [[number] source]
//! head     := halves? (bit 7), literals (bits 4..=6; 7: and the number that follows),
//!             copied (bits 0..=3; 0: nothing, n: n + 2, 15: 17 and the number that follows)
//! source   := number: odd: half of it is how far back in what is there already, of which uid and version are the beginning
//!           | even: half of it, in zigzag, is how far the place in the dictionary less the place in the text has moved
//! number   := 7 bits a byte, the lowest first, bit 7: more follow
//! halves   := two digits a byte, the first in the upper half
//! ```
//!
//! `total` is the length of the text; uid and version, which a store looks at whenever something comes, can be read alone.

use alloc::string::String;
use alloc::vec::Vec;

/// The least that is looked for by its hash: less costs as much as it saves.
const HASHED: usize = 6;
/// The least that is copied from where the dictionary goes on.
const NEAR: usize = 4;
/// So much more than that, and nothing better is looked for.
const ENOUGH: usize = 16;
/// So long a run of hexadecimal digits is worth a sequence of its own.
const HALVED: usize = 8;
/// Longer texts than any object are nonsense.
const LONGEST: usize = 1 << 28;

/// What is known before an object is read: its uid and version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stamp<'a> {
    pub(super) uid: &'a str,
    pub(super) version: &'a str,
}

/// Finds where six bytes have been.
pub(super) struct Places {
    /// By hash: place plus one, of those with the same hash the one that was put first or last, as its owner likes.
    slots: Vec<u32>,
    shift: u32,
}

impl Places {
    /// For `1 << bits` places.
    pub(super) fn new(bits: u32) -> Self {
        Self { slots: alloc::vec![0; 1 << bits], shift: 64 - bits }
    }

    pub(super) fn clear(&mut self) {
        self.slots.fill(0);
    }

    /// The slot for what is at `at`, if six bytes are there and two more.
    #[inline]
    fn slot(&mut self, text: &[u8], at: usize) -> Option<&mut u32> {
        let bytes: [u8; 8] = text.get(at..at + 8)?.try_into().ok()?;
        let six = u64::from_le_bytes(bytes) << 16;
        self.slots.get_mut((six.wrapping_mul(0x9E37_79B1_85EB_CA87) >> self.shift) as usize)
    }

    /// Puts all places of `text` from `from` on; those that are there stay.
    pub(super) fn learn(&mut self, text: &[u8], from: usize) {
        for at in from..text.len() {
            match self.slot(text, at) {
                Some(slot) if *slot == 0 => *slot = at as u32 + 1,
                Some(_) => {}
                None => break,
            }
        }
    }
}

/// What the packer works with: the dictionary, its places, and buffers that are used again.
pub(super) struct Work {
    /// Uid, version and text.
    text: Vec<u8>,
    own: Places,
}

impl Default for Work {
    fn default() -> Self {
        Self { text: Vec::new(), own: Places::new(10) }
    }
}

/// Where a copy comes from.
#[derive(Clone, Copy)]
enum Source {
    /// So far back.
    Own(usize),
    /// The place in the dictionary.
    Dictionary(usize),
}

/// What became of a part of a text.
pub(super) enum Found {
    /// It was found nowhere; its places in [`Work::text`].
    Nowhere(usize, usize),
    /// It was found in the dictionary, at these places.
    At(usize, usize),
}

impl Work {
    /// Begins a text: what `put` appends is it; nothing if it says no.
    pub(super) fn begin(
        &mut self,
        stamp: Stamp<'_>,
        put: impl FnOnce(&mut Vec<u8>) -> bool,
    ) -> Option<usize> {
        self.text.clear();
        self.text.extend_from_slice(stamp.uid.as_bytes());
        self.text.extend_from_slice(stamp.version.as_bytes());
        let start = self.text.len();
        (put(&mut self.text) && self.text.len() - start < LONGEST).then_some(start)
    }

    /// Bytes of the buffer that are in use.
    pub(super) fn text(&self) -> &[u8] {
        &self.text
    }

    /// Lets a large buffer go.
    pub(super) fn shrink(&mut self, to: usize) {
        if self.text.capacity() > to {
            self.text = Vec::new();
        }
    }

    /// Packs what was begun with `stamp` against `dictionary`, which `places` knows (and perhaps more). Tells
    /// what was found where.
    pub(super) fn pack(
        &mut self,
        stamp: Stamp<'_>,
        dictionary: &[u8],
        places: &mut Places,
        out: &mut Vec<u8>,
        tell: &mut impl FnMut(Found),
    ) {
        let text = &*self.text;
        let start = stamp.uid.len() + stamp.version.len();
        out.clear();
        number(out, text.len() - start);
        put_text(out, stamp.uid);
        put_text(out, stamp.version);
        self.own.clear();
        for at in [0, stamp.uid.len()].into_iter().filter(|at| *at < start) {
            if let Some(slot) = self.own.slot(text, at) {
                *slot = at as u32 + 1;
            }
        }
        // `base`: a place of the dictionary less the place of the text where it goes on.
        let (mut at, mut from, mut base) = (start, start, -(start as i64));
        while at < text.len() {
            let Some((source, length)) = find(text, dictionary, (&mut self.own, places), at, base) else {
                at += 1 + ((at - from) >> 6);
                continue;
            };
            let end = at + length;
            let coded = match source {
                Source::Own(distance) => (distance as u64) << 1 | 1,
                Source::Dictionary(place) => {
                    // What comes before may be the same as well.
                    let before = text[from..at].iter().rev().zip(dictionary[..place].iter().rev());
                    at -= before.take_while(|(a, b)| a == b).count();
                    let moved = (place + length) as i64 - end as i64 - base;
                    base += moved;
                    tell(Found::At(place + length - (end - at), place + length));
                    ((moved << 1) ^ (moved >> 63)).cast_unsigned() << 1
                }
            };
            if from < at {
                tell(Found::Nowhere(from, at));
            }
            sequences(out, &text[from..at], Some((coded, end - at)));
            (at, from) = (end, end);
        }
        if from < text.len() {
            tell(Found::Nowhere(from, text.len()));
            sequences(out, &text[from..], None);
        }
    }
}

/// The copy that pays best at `at`. The first of `places` are those of the text itself, and get this one.
#[inline]
fn find(
    text: &[u8],
    dictionary: &[u8],
    (own, places): (&mut Places, &mut Places),
    at: usize,
    base: i64,
) -> Option<(Source, usize)> {
    let rest = &text[at..];
    let (mut best, mut gain) = (None, 0);
    let mut consider = |source, length: usize, least: usize| {
        if length >= least && length - least >= gain {
            (best, gain) = (Some((source, length)), length - least + 1);
        }
        gain
    };
    let next = usize::try_from(at as i64 + base).ok();
    if let Some(next) = next.filter(|next| *next < dictionary.len())
        && consider(Source::Dictionary(next), common(&dictionary[next..], rest), NEAR) > ENOUGH
    {
        return best;
    }
    if let Some(slot) = own.slot(text, at) {
        let before = core::mem::replace(slot, at as u32 + 1) as usize;
        if before > 0 {
            consider(Source::Own(at + 1 - before), common(&text[before - 1..], rest), HASHED);
        }
        let place = places.slot(text, at).map_or(0, |slot| *slot as usize);
        if (1..=dictionary.len()).contains(&place) {
            consider(Source::Dictionary(place - 1), common(&dictionary[place - 1..], rest), HASHED);
        }
    }
    best
}

/// How many bytes both begin with.
#[inline]
fn common(a: &[u8], b: &[u8]) -> usize {
    let mut same = 0;
    for (x, y) in a.chunks_exact(8).zip(b.chunks_exact(8)) {
        let word = |bytes: &[u8]| bytes.try_into().map_or(0, u64::from_le_bytes);
        let differ = word(x) ^ word(y);
        if differ != 0 {
            return same + differ.trailing_zeros() as usize / 8;
        }
        same += 8;
    }
    same + a[same..].iter().zip(&b[same..]).take_while(|(x, y)| x == y).count()
}

fn number(out: &mut Vec<u8>, value: usize) {
    number64(out, value as u64);
}

fn number64(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// The value of a hexadecimal digit.
const fn half(byte: u8) -> Option<u8> {
    match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'a'..=b'f' => Some(byte - b'a' + 10),
        _ => None,
    }
}

const DIGITS: &[u8; 16] = b"0123456789abcdef";

fn halves(out: &mut Vec<u8>, digits: &[u8]) {
    let value = |byte: &u8| half(*byte).unwrap_or(0);
    out.extend(digits.chunks(2).map(|two| value(&two[0]) << 4 | two.get(1).map_or(0, value)));
}

/// Where the dashes of a uid are.
const DASHES: [usize; 4] = [8, 13, 18, 23];

fn put_text(out: &mut Vec<u8>, text: &str) {
    let bytes = text.as_bytes();
    let is_uid = bytes.len() == 36
        && bytes.iter().enumerate().all(|(n, byte)| match DASHES.contains(&n) {
            true => *byte == b'-',
            false => half(*byte).is_some(),
        });
    if is_uid {
        out.push(1);
        let digits: Vec<u8> = bytes.iter().copied().filter(|byte| *byte != b'-').collect();
        halves(out, &digits);
    } else if bytes.iter().all(|byte| half(*byte).is_some()) {
        out.push(2);
        number(out, bytes.len());
        halves(out, bytes);
    } else {
        out.push(0);
        number(out, bytes.len());
        out.extend_from_slice(bytes);
    }
}

/// Literals, long runs of hexadecimal digits by halves, and then the copy.
fn sequences(out: &mut Vec<u8>, mut literals: &[u8], copy: Option<(u64, usize)>) {
    loop {
        let (plain, digits) = plain_and_digits(literals);
        let (length, is_halves) = if plain > 0 { (plain, false) } else { (digits, digits > 0) };
        let is_last = length == literals.len();
        sequence(out, &literals[..length], is_halves, copy.filter(|_| is_last));
        if is_last {
            break;
        }
        literals = &literals[length..];
    }
}

/// How many bytes there are before a run of digits that is worth it, and how many digits it has.
fn plain_and_digits(literals: &[u8]) -> (usize, usize) {
    let mut plain = 0;
    while plain < literals.len() {
        let digits = literals[plain..].iter().take_while(|byte| half(**byte).is_some()).count();
        if digits >= HALVED || digits == literals.len() {
            return (plain, digits);
        }
        plain = (plain + digits + 1).min(literals.len());
    }
    (plain, 0)
}

fn sequence(out: &mut Vec<u8>, literals: &[u8], is_halves: bool, copy: Option<(u64, usize)>) {
    let (few, copied) = (literals.len().min(7), copy.map_or(0, |(_, length)| (length - 2).min(15)));
    out.push(u8::from(is_halves) << 7 | (few as u8) << 4 | copied as u8);
    if few == 7 {
        number(out, literals.len() - 7);
    }
    if is_halves {
        halves(out, literals);
    } else {
        out.extend_from_slice(literals);
    }
    if let Some((source, length)) = copy {
        if copied == 15 {
            number(out, length - 17);
        }
        number64(out, source);
    }
}

/// Reads packed bytes. Whatever they are, it ends, and takes no more memory than they say the text has.
#[derive(Clone)]
pub(super) struct Reader<'a>(&'a [u8]);

/// Uid and version of packed bytes.
#[derive(Clone, Default, PartialEq, Eq)]
pub(in crate::store) struct Read {
    pub(super) total: usize,
    pub(super) uid: String,
    pub(super) version: String,
}

impl<'a> Reader<'a> {
    pub(super) const fn new(packed: &'a [u8]) -> Self {
        Self(packed)
    }

    fn byte(&mut self) -> Option<u8> {
        let (first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(*first)
    }

    fn bytes(&mut self, n: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(n)?;
        self.0 = rest;
        Some(taken)
    }

    fn number(&mut self) -> Option<u64> {
        let mut value = 0;
        for shift in (0..63).step_by(7) {
            let byte = self.byte()?;
            value |= u64::from(byte & 0x7F) << shift;
            if byte < 0x80 {
                return Some(value);
            }
        }
        None
    }

    /// A number of bytes.
    fn length(&mut self) -> Option<usize> {
        usize::try_from(self.number()?).ok().filter(|length| *length < LONGEST)
    }

    fn halves(&mut self, digits: usize, out: &mut Vec<u8>) -> Option<()> {
        let packed = self.bytes(digits.div_ceil(2))?;
        let digit = |n: u8| DIGITS[usize::from(n)];
        out.extend(packed.iter().flat_map(|two| [digit(two >> 4), digit(two & 15)]).take(digits));
        Some(())
    }

    /// The length of the whole text.
    pub(super) fn total(&mut self) -> Option<usize> {
        self.length()
    }

    /// Appends a uid or a version.
    pub(super) fn text(&mut self, out: &mut Vec<u8>) -> Option<()> {
        match self.byte()? {
            0 => {
                let length = self.length()?;
                out.extend_from_slice(self.bytes(length)?);
            }
            1 => {
                let mut digits = Vec::with_capacity(32);
                self.halves(32, &mut digits)?;
                for (n, digit) in digits.iter().enumerate() {
                    if matches!(n, 8 | 12 | 16 | 20) {
                        out.push(b'-');
                    }
                    out.push(*digit);
                }
            }
            2 => {
                let digits = self.length()?;
                self.halves(digits, out)?;
            }
            _ => return None,
        }
        Some(())
    }

    /// Uid and version.
    pub(super) fn stamp(mut self) -> Option<Read> {
        let total = self.total()?;
        let (mut uid, mut version) = (Vec::new(), Vec::new());
        self.text(&mut uid)?;
        self.text(&mut version)?;
        Some(Read { total, uid: String::from_utf8(uid).ok()?, version: String::from_utf8(version).ok()? })
    }

    /// The bytes of the header that say the uid, and those that say the version: equal ones mean equal texts.
    pub(super) fn header(mut self) -> Option<(&'a [u8], &'a [u8])> {
        self.total()?;
        let mut part = || {
            let before = self.0;
            let length = match self.byte()? {
                0 => self.length()?,
                1 => 16,
                2 => self.length()?.div_ceil(2),
                _ => return None,
            };
            self.bytes(length)?;
            Some(&before[..before.len() - self.0.len()])
        };
        Some((part()?, part()?))
    }

    /// The text, after what is before it, and where it begins.
    pub(super) fn unpack(mut self, dictionary: &[u8]) -> Option<(Vec<u8>, usize)> {
        let total = self.total()?;
        // What lies about its length gets no more at once than it could hold.
        let room = total.min(self.0.len().saturating_mul(64).saturating_add(4096));
        let mut out = Vec::with_capacity(room + 64);
        self.text(&mut out)?;
        self.text(&mut out)?;
        let start = out.len();
        let end = start + total;
        let mut base = -(start as i64);
        while out.len() < end {
            let head = self.byte()?;
            let mut literals = usize::from(head >> 4 & 7);
            if literals == 7 {
                literals += self.length()?;
            }
            if head & 0x80 == 0 {
                out.extend_from_slice(self.bytes(literals)?);
            } else {
                self.halves(literals, &mut out)?;
            }
            let mut copied = usize::from(head & 15);
            if copied == 0 {
                continue;
            }
            copied += 2;
            if copied == 17 {
                copied += self.length()?;
            }
            let source = self.number()?;
            if out.len() + copied > end {
                return None;
            }
            if source & 1 == 1 {
                let from = out.len().checked_sub(usize::try_from(source >> 1).ok()?)?;
                if from + copied <= out.len() {
                    out.extend_from_within(from..from + copied);
                } else {
                    // What is copied begins what is copied.
                    for at in from..from + copied {
                        out.push(*out.get(at)?);
                    }
                }
            } else {
                let zigzag = source >> 1;
                let moved = (zigzag >> 1).cast_signed() ^ -(zigzag & 1).cast_signed();
                base = base.checked_add(moved)?;
                let place = usize::try_from((out.len() as i64).checked_add(base)?).ok()?;
                out.extend_from_slice(dictionary.get(place..place.checked_add(copied)?)?);
            }
        }
        (out.len() == end && self.0.is_empty()).then_some((out, start))
    }
}
