//! 64 bytes at a time as bit masks: bit n of a mask tells of byte n.

use wide::u8x16;

pub(crate) const BLOCK: usize = 64;

/// 64 bytes in registers.
#[derive(Clone, Copy)]
pub(crate) struct Block([u8x16; BLOCK / 16]);

impl Block {
    #[inline(always)]
    pub(crate) fn new(bytes: &[u8; BLOCK]) -> Self {
        let (parts, _) = bytes.as_chunks::<16>();
        Self([u8x16::new(parts[0]), u8x16::new(parts[1]), u8x16::new(parts[2]), u8x16::new(parts[3])])
    }

    /// Which bytes are this one.
    #[inline(always)]
    pub(crate) fn equal(self, byte: u8) -> u64 {
        let byte = u8x16::splat(byte);
        Self(self.0.map(|part| part.simd_eq(byte))).bits()
    }

    /// Which bytes are no larger than this one.
    #[inline(always)]
    pub(crate) fn at_most(self, byte: u8) -> u64 {
        let byte = u8x16::splat(byte);
        Self(self.0.map(|part| part.min(byte).simd_eq(part))).bits()
    }

    /// Whether any byte is this one.
    #[inline(always)]
    pub(crate) fn has(self, byte: u8) -> bool {
        let byte = u8x16::splat(byte);
        let [a, b, c, d] = self.0.map(|part| part.simd_eq(byte));
        (a | b | c | d).to_bitmask() != 0
    }

    /// Whether any byte is `byte`, or no larger than `most`: cheaper than two masks.
    #[inline(always)]
    pub(crate) fn any(self, byte: u8, most: u8) -> bool {
        let (byte, most) = (u8x16::splat(byte), u8x16::splat(most));
        let [a, b, c, d] = self.0.map(|part| part.simd_eq(byte) | part.min(most).simd_eq(part));
        (a | b | c | d).to_bitmask() != 0
    }

    /// Each byte with these bits set.
    #[inline(always)]
    pub(crate) fn or(self, bits: u8) -> Self {
        let bits = u8x16::splat(bits);
        Self(self.0.map(|part| part | bits))
    }

    /// The highest bit of each byte.
    #[inline(always)]
    fn bits(self) -> u64 {
        let [a, b, c, d] = self.0.map(|part| part.to_bitmask());
        u64::from(a | b << 16) | u64::from(c | d << 16) << 32
    }
}

/// Which bytes follow an unescaped backslash. `carried`: the first byte of this block does; then, whether that of the next does.
#[inline(always)]
pub(crate) fn escaped(backslashes: u64, carried: &mut bool) -> u64 {
    let before = u64::from(*carried);
    if backslashes == 0 {
        *carried = false;
        return before;
    }
    const ODD: u64 = 0xAAAA_AAAA_AAAA_AAAA;
    let starts = backslashes & !before;
    let codes = ((starts << 1) | ODD).wrapping_sub(starts) ^ ODD;
    *carried = (codes & backslashes) >> 63 != 0;
    codes ^ (backslashes | before)
}

/// Bit n of the result is the parity of the bits 0..=n: between quotes, ones.
#[inline(always)]
pub(crate) const fn prefix_xor(mut bits: u64) -> u64 {
    bits ^= bits << 1;
    bits ^= bits << 2;
    bits ^= bits << 4;
    bits ^= bits << 8;
    bits ^= bits << 16;
    bits ^= bits << 32;
    bits
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As it is defined, byte by byte.
    fn mask(bytes: &[u8; BLOCK], test: impl Fn(u8) -> bool) -> u64 {
        bytes.iter().rev().fold(0, |bits, &b| bits << 1 | u64::from(test(b)))
    }

    #[test]
    fn masks_tell_of_every_byte_in_every_place() {
        for byte in 0..=u8::MAX {
            let bytes: [u8; BLOCK] =
                core::array::from_fn(|n| byte.wrapping_mul(31).wrapping_add((n * n) as u8));
            let block = Block::new(&bytes);
            for other in [0, byte, 0x1F, b'"', b'{', 0x7F, 0x80, 0xFF] {
                assert_eq!(block.equal(other), mask(&bytes, |b| b == other));
                assert_eq!(block.at_most(other), mask(&bytes, |b| b <= other));
                assert_eq!(block.or(0x20).equal(other), mask(&bytes, |b| b | 0x20 == other));
                assert_eq!(block.has(other), bytes.contains(&other));
                assert_eq!(block.any(other, 0x1F), bytes.iter().any(|&b| b == other || b <= 0x1F));
            }
        }
    }

    #[test]
    fn parities_and_escapes_are_those_of_a_walk() {
        let mut random = crate::rng::Rng::new(1);
        let mut carried = false;
        for _ in 0..2000 {
            let bits = random.next_u64() & random.next_u64().rotate_left(7) | random.next_u64() & 0xFF;
            let (mut parity, mut parities, mut escape, mut escapes) = (0, 0, carried, 0);
            for n in 0..64 {
                let bit = bits >> n & 1;
                parity ^= bit;
                parities |= parity << n;
                escapes |= u64::from(escape) << n;
                escape = bit == 1 && !escape;
            }
            assert_eq!(prefix_xor(bits), parities);
            assert_eq!(escaped(bits, &mut carried), escapes);
            assert_eq!(carried, escape);
        }
    }
}
