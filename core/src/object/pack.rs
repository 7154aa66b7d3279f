//! The text of an object, with its table of places in a form that is much the same for like objects.
//!
//! Each number is told by how much more it is than the one before: if a name is a byte longer, one number differs and not all.

use alloc::vec::Vec;

use super::raw::NUMBERS;

/// Where the table begins, and how many bytes a number of it has.
fn table(text: &[u8]) -> Option<(usize, usize)> {
    let (width, rest) = text.split_last()?;
    let width = usize::from(*width);
    let start = rest.len().checked_sub(NUMBERS * width)?;
    (1..=4).contains(&width).then_some((start, width))
}

/// The number that these digits of seven bits are.
fn number(digits: &[u8]) -> usize {
    digits.iter().fold(0, |value, &digit| value << 7 | usize::from(digit & 0x7F))
}

fn put(digits: &mut [u8], mut value: usize) {
    for digit in digits.iter_mut().rev() {
        *digit = (value & 0x7F) as u8;
        value >>= 7;
    }
}

/// Appends the text of an object.
pub(super) fn append(text: &str, out: &mut Vec<u8>) {
    let from = out.len();
    out.extend_from_slice(text.as_bytes());
    let text = &mut out[from..];
    let Some((start, width)) = table(text) else { return };
    let end = start + NUMBERS * width;
    let mut before = 0;
    for digits in text[start..end].chunks_exact_mut(width) {
        let value = number(digits);
        put(digits, value.wrapping_sub(before));
        before = value;
    }
}

/// The text again; `None` if it is that of no object.
pub(super) fn read(text: &mut [u8]) -> Option<&str> {
    let (start, width) = table(text)?;
    let end = start + NUMBERS * width;
    let (mut value, mut numbers) = (0_usize, [0; NUMBERS]);
    for (digits, told) in text[start..end].chunks_exact_mut(width).zip(&mut numbers) {
        value = value.wrapping_add(number(digits)) & ((1 << (7 * width)) - 1);
        put(digits, value);
        *told = value;
    }
    let text = core::str::from_utf8(text).ok()?;
    let (fields, json) = numbers.split_at(NUMBERS - 1);
    let is_place = |n: usize| n <= start && text.is_char_boundary(n);
    let are_fields = fields.chunks_exact(2).all(|f| f[0] <= f[1] && is_place(f[0]) && is_place(f[1]));
    (are_fields && json.iter().all(|n| is_place(*n))).then_some(text)
}
