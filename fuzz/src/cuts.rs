//! Where to cut an input: fuzz data begin with two bytes that say it.

/// The two bytes, and the rest of the data.
pub(crate) fn seed(data: &[u8]) -> Option<(u8, u8, &[u8])> {
    match data {
        [a, b, rest @ ..] => Some((*a, *b, rest)),
        _ => None,
    }
}

/// `bytes` in pieces of sizes that change with `seed`; empty ones among them.
pub(crate) fn ragged(bytes: &[u8], seed: u8) -> Vec<&[u8]> {
    let mut state = u32::from(seed) * 2 + 1;
    let mut rest = bytes;
    let mut parts = vec![];
    while !rest.is_empty() {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let (part, after) = rest.split_at(((state >> 24) as usize % 97).min(rest.len()));
        parts.push(part);
        rest = after;
    }
    parts
}

/// The object that `rest` begins with and how long it is, if all of it is there.
pub(crate) fn object(rest: &[u8]) -> Option<(&[u8], usize)> {
    let mut values = serde_json::Deserializer::from_slice(rest).into_iter::<serde_json::Value>();
    values.next()?.ok()?;
    let n = values.byte_offset();
    Some((&rest[..n], n))
}
