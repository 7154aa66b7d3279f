use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use super::*;
use crate::object::Key;

/// What Rust's `DefaultHasher` makes of 0, 1, 2, 3 words.
#[test]
fn it_is_siphash() {
    let hashes = [0xd1fb_a762_150c_532c, 0xbd60_acb6_58c7_9e45, 0xb88a_c422_9252_8625, 0x3d53_0d0f_6a49_3b82];
    for (words, hash) in (0..).zip(hashes) {
        let mut sip = Secret(0, 0).words();
        (0..words).for_each(|n: u64| sip.write_u64(n.wrapping_mul(0x0123_4567_89ab_cdef)));
        // The last word of the original is the length.
        sip.write_u64((words * 8) << 56);
        assert_eq!(sip.finish(), hash, "{words} words");
    }
}

#[test]
fn what_differs_is_hashed_differently() {
    let secret = Secret::new(7);
    let texts = ["", "\0", "a", "a\0", "aaaaaaa", "aaaaaaaa", "aaaaaaaa\0", "aaaaaaaaa", "aaaaaaaaaaaaaaaa"];
    for (n, a) in texts.iter().enumerate() {
        for b in &texts[n + 1..] {
            assert_ne!(secret.hash(a), secret.hash(b), "{a:?} {b:?}");
        }
    }
    assert_ne!(
        secret.hash(&Key::namespaced("ab", "c")),
        secret.hash(&Key::namespaced("a", "bc")),
        "where the namespace ends"
    );
}

/// Whoever knows one secret can choose names that collide; with another secret they do not.
#[test]
fn names_that_collide_with_one_secret_do_not_with_another() {
    let group = |secret: Secret, name: &String| secret.hash(name) >> 20;
    let (known, other) = (Secret::new(1), Secret::new(2));
    let chosen: Vec<String> =
        (0..400_000).map(|n| format!("web-{n}")).filter(|name| group(known, name) == 0).collect();
    assert!(chosen.len() > 50, "{}", chosen.len());
    let mut groups = BTreeMap::<u32, usize>::new();
    for name in &chosen {
        *groups.entry(group(other, name)).or_default() += 1;
    }
    assert!(*groups.values().max().unwrap() <= 4, "{groups:?}");
}
