//! A target that must fail: if a fuzzing run does not find it, the run finds nothing.

/// Panics on bytes that begin with `ship`.
///
/// # Panics
/// On those bytes, and on no others.
pub fn run(data: &[u8]) {
    if let [b's', b'h', b'i', b'p', ..] = data {
        panic!("the canary was found");
    }
}
