//! What the tests of both splitters need.

use alloc::string::{String, ToString};

use serde::de::IgnoredAny;

/// The object that `rest` begins with, if all of it is there.
pub(super) fn object(rest: &[u8]) -> Option<(String, usize)> {
    let mut values = serde_json::Deserializer::from_slice(rest).into_iter::<IgnoredAny>();
    values.next()?.ok()?;
    let n = values.byte_offset();
    Some((String::from_utf8_lossy(&rest[..n]).to_string(), n))
}
