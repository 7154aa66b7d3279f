//! Where a frame ends: a newline in a watch, the closing brace of an item in a list.

use memchr::{memchr, memmem};
use steersman_core::wire::json::{Scanner, Stop};

/// Cuts a body into frames; one that lies in the input as a whole is lent from there.
#[derive(Debug)]
pub(super) struct Cutter {
    body: Body,
    /// The beginning of a frame, or of a list in front of its items.
    kept: Vec<u8>,
    /// What stood in front of the items.
    pub head: Vec<u8>,
}

#[derive(Debug)]
enum Body {
    Lines,
    ListHead,
    Items,
    Item(Scanner),
}

const ITEMS: &[u8] = b"\"items\":[";

impl Cutter {
    pub(super) const fn watch() -> Self {
        Self { body: Body::Lines, kept: Vec::new(), head: Vec::new() }
    }

    pub(super) const fn list() -> Self {
        Self { body: Body::ListHead, kept: Vec::new(), head: Vec::new() }
    }

    /// Takes bytes of the body and gives every frame that ends in them.
    pub(super) fn feed(
        &mut self,
        mut bytes: &[u8],
        each: &mut impl FnMut(&[u8]) -> Result<(), String>,
    ) -> Result<(), String> {
        loop {
            match &mut self.body {
                Body::Lines => {
                    let Some(n) = memchr(b'\n', bytes) else { break };
                    self.give(&bytes[..n], each)?;
                    bytes = &bytes[n + 1..];
                }
                Body::ListHead => {
                    self.kept.extend_from_slice(bytes);
                    let Some(n) = memmem::find(&self.kept, ITEMS) else { return Ok(()) };
                    let rest = self.kept.split_off(n + ITEMS.len());
                    self.head = std::mem::take(&mut self.kept);
                    self.body = Body::Items;
                    return self.feed(&rest, each);
                }
                Body::Items => {
                    let Some(n) = memchr(b'{', bytes) else { return Ok(()) };
                    bytes = &bytes[n..];
                    self.body = Body::Item(Scanner::new());
                }
                Body::Item(scanner) => {
                    let Stop::End(n) = scanner.scan(bytes) else { break };
                    self.give(&bytes[..n], each)?;
                    bytes = &bytes[n..];
                    self.body = Body::Items;
                }
            }
        }
        self.kept.extend_from_slice(bytes);
        Ok(())
    }

    fn give(&mut self, end: &[u8], each: &mut impl FnMut(&[u8]) -> Result<(), String>) -> Result<(), String> {
        if self.kept.is_empty() {
            return each(end);
        }
        self.kept.extend_from_slice(end);
        each(&self.kept)?;
        self.kept.clear();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frames(mut cutter: Cutter, body: &[u8], step: usize) -> (Vec<String>, Vec<u8>) {
        let mut frames = Vec::new();
        for part in body.chunks(step) {
            let each = &mut |f: &[u8]| {
                frames.push(String::from_utf8_lossy(f).into_owned());
                Ok(())
            };
            cutter.feed(part, each).unwrap();
        }
        (frames, cutter.head)
    }

    #[test]
    fn frames_are_the_same_however_the_body_is_cut() {
        let list = br#"{"kind":"PodList","metadata":{"continue":"7"},"items":[{"a":"}"},{"b":[{}]},{}]}"#;
        let watch = b"{\"a\":1}\n{\"b\":2}\n{";
        for step in 1..list.len() + 1 {
            let (items, head) = frames(Cutter::list(), list, step);
            assert_eq!(items, [r#"{"a":"}"}"#, r#"{"b":[{}]}"#, "{}"], "{step}");
            assert!(head.ends_with(ITEMS));
            assert_eq!(frames(Cutter::watch(), watch, step).0, [r#"{"a":1}"#, r#"{"b":2}"#], "{step}");
        }
    }
}
