//! With how many cases properties are tried: each has a number that takes a moment; `QUICKCHECK_TESTS` in the environment
//! goes for all of them.

use quickcheck::QuickCheck;

/// So many cases, unless the environment says how many.
#[expect(clippy::disallowed_methods, reason = "a test may ask for a variable")]
pub(crate) fn cases(n: u64) -> QuickCheck {
    // A limit of 10,000 would go before the number that `tests` sets.
    match std::env::var_os("QUICKCHECK_TESTS") {
        Some(_) => QuickCheck::new(),
        None => QuickCheck::new().tests(n),
    }
}
