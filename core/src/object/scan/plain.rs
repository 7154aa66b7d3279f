//! The short way through a value: JSON as API servers write it, without white space and rare forms.
//!
//! What is odd in any way is left to the scanner, which knows all of JSON and says what is wrong. Most of what a watch
//! costs a core is here, so that this is written for speed: one position, no error values, one byte looked at once.

/// The end of the value that begins at `at`, if it is plain: no white space in it, whole numbers, no escapes of code
/// points, at most 64 levels deep.
pub(super) fn value(bytes: &[u8], mut at: usize) -> Option<usize> {
    // One bit for each level, the innermost lowest: whether it is an object.
    let (mut objects, mut depth) = (0_u64, 0_u32);
    loop {
        match *bytes.get(at)? {
            b'"' => at = string(bytes, at + 1)?,
            open @ (b'{' | b'[') => {
                if depth == u64::BITS {
                    return None;
                }
                let object = open == b'{';
                depth += 1;
                objects = objects << 1 | u64::from(object);
                at += 1;
                if *bytes.get(at)? != if object { b'}' } else { b']' } {
                    if object {
                        at = key(bytes, at)?;
                    }
                    continue;
                }
                depth -= 1;
                objects >>= 1;
                at += 1;
            }
            b'-' | b'0'..=b'9' => at = whole_number(bytes, at)?,
            b't' if bytes[at..].starts_with(b"true") => at += 4,
            b'f' if bytes[at..].starts_with(b"false") => at += 5,
            b'n' if bytes[at..].starts_with(b"null") => at += 4,
            _ => return None,
        }
        // Behind a value: another one, or the ends of what it is in.
        loop {
            if depth == 0 {
                return Some(at);
            }
            let object = objects & 1 == 1;
            match *bytes.get(at)? {
                b',' => {
                    at += 1;
                    if object {
                        at = key(bytes, at)?;
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
#[inline]
fn key(bytes: &[u8], at: usize) -> Option<usize> {
    if *bytes.get(at)? != b'"' {
        return None;
    }
    let at = string(bytes, at + 1)?;
    (*bytes.get(at)? == b':').then_some(at + 1)
}

#[inline]
fn string(bytes: &[u8], mut at: usize) -> Option<usize> {
    loop {
        at = super::plain_end(bytes, at);
        match *bytes.get(at)? {
            b'"' => return Some(at + 1),
            b'\\' => match *bytes.get(at + 1)? {
                b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't' => at += 2,
                _ => return None,
            },
            _ => return None,
        }
    }
}

#[inline]
fn whole_number(bytes: &[u8], mut at: usize) -> Option<usize> {
    at += usize::from(bytes[at] == b'-');
    let first = *bytes.get(at)?;
    if !first.is_ascii_digit() {
        return None;
    }
    at += 1;
    while first != b'0' && bytes.get(at)?.is_ascii_digit() {
        at += 1;
    }
    (!matches!(bytes.get(at)?, b'.' | b'e' | b'E' | b'0'..=b'9')).then_some(at)
}
