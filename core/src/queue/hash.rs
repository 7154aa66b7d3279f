//! How keys are hashed: SipHash-1-3 (Aumasson and Bernstein, 2012), which Rust's own maps use against chosen names, over the words
//! of a key.
//!
//! Names are chosen by whoever may create objects. Without the two secret words nobody can tell which of them collide.

use core::hash::{Hash, Hasher};

use crate::rng::Rng;

/// The two words that make the hashes of one queue its own.
#[derive(Clone, Copy)]
pub(super) struct Secret(u64, u64);

impl Secret {
    pub(super) const fn new(seed: u64) -> Self {
        // Apart from the numbers that the same seed gives for jitter, which can be told from outside.
        let mut rng = Rng::new(seed ^ 0x6b65_7973_5f68_6173);
        Self(rng.next_u64(), rng.next_u64())
    }

    const fn words(self) -> Words {
        Words([
            self.0 ^ 0x736f_6d65_7073_6575,
            self.1 ^ 0x646f_7261_6e64_6f6d,
            self.0 ^ 0x6c79_6765_6e65_7261,
            self.1 ^ 0x7465_6462_7974_6573,
        ])
    }

    pub(super) fn hash<K: Hash>(self, key: &K) -> u32 {
        let mut words = self.words();
        key.hash(&mut words);
        (words.finish() >> 32) as u32
    }
}

/// The state of SipHash. Each number is a word, and so are eight bytes; the last bytes of a text come with their number.
struct Words([u64; 4]);

impl Words {
    #[inline]
    const fn word(&mut self, word: u64) {
        self.0[3] ^= word;
        self.round();
        self.0[0] ^= word;
    }

    #[inline]
    const fn round(&mut self) {
        let [mut a, mut b, mut c, mut d] = self.0;
        a = a.wrapping_add(b);
        c = c.wrapping_add(d);
        b = b.rotate_left(13) ^ a;
        d = d.rotate_left(16) ^ c;
        a = a.rotate_left(32).wrapping_add(d);
        c = c.wrapping_add(b);
        d = d.rotate_left(21) ^ a;
        b = b.rotate_left(17) ^ c;
        self.0 = [a, b, c.rotate_left(32), d];
    }
}

impl Hasher for Words {
    #[inline]
    fn write(&mut self, bytes: &[u8]) {
        let (words, rest) = bytes.as_chunks::<8>();
        for word in words {
            self.word(u64::from_le_bytes(*word));
        }
        let mut last = [0; 8];
        last[..rest.len()].copy_from_slice(rest);
        last[7] = rest.len() as u8;
        self.word(u64::from_le_bytes(last));
    }

    #[inline]
    fn write_u8(&mut self, n: u8) {
        self.word(n.into());
    }

    fn write_u16(&mut self, n: u16) {
        self.word(n.into());
    }

    fn write_u32(&mut self, n: u32) {
        self.word(n.into());
    }

    #[inline]
    fn write_u64(&mut self, n: u64) {
        self.word(n);
    }

    #[inline]
    fn write_usize(&mut self, n: usize) {
        self.word(n as u64);
    }

    #[inline]
    fn finish(&self) -> u64 {
        let mut end = Self(self.0);
        end.0[2] ^= 0xff;
        end.round();
        end.round();
        end.round();
        end.0[0] ^ end.0[1] ^ end.0[2] ^ end.0[3]
    }
}

#[cfg(test)]
mod tests;
