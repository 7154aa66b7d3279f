//! `Warning`: how API servers tell of deprecated kinds and unknown fields.

use alloc::string::String;
use alloc::vec::Vec;

use super::ResponseHead;

/// The texts of all `Warning` headers with code 299, each once, in order. What cannot be parsed is left out: a warning
/// never fails a request (as in client-go).
///
/// ```
/// # use steersman_core::wire::http::{warnings, ResponseHead};
/// let headers = vec![("Warning".into(), r#"299 - "unknown field \"spec.foo\"""#.into())];
/// let head = ResponseHead { status: 200, reason: String::new(), http10: false, headers };
/// assert_eq!(warnings(&head), [r#"unknown field "spec.foo""#]);
/// ```
#[must_use]
pub fn warnings(head: &ResponseHead) -> Vec<String> {
    let mut texts: Vec<String> = Vec::new();
    for (_, value) in head.headers.iter().filter(|(name, _)| name.eq_ignore_ascii_case("warning")) {
        let mut rest = value.as_str();
        while let Some((code, text, after)) = warning(rest) {
            if code == "299" && !texts.contains(&text) {
                texts.push(text);
            }
            let Some(next) = after.trim_start().strip_prefix(',') else { break };
            rest = next;
        }
    }
    texts
}

/// `299 agent "text" "date"`: the code, the text and what follows.
fn warning(value: &str) -> Option<(&str, String, &str)> {
    let (code, rest) = value.trim_start().split_once(' ')?;
    let (_agent, rest) = rest.trim_start().split_once(' ')?;
    let (text, rest) = quoted(rest.trim_start())?;
    let after = quoted(rest.trim_start()).map_or(rest, |(_date, after)| after);
    Some((code, text, after))
}

/// A quoted string, unescaped, and what follows it. Control characters become blanks.
fn quoted(value: &str) -> Option<(String, &str)> {
    let mut text = String::new();
    let mut chars = value.strip_prefix('"')?.chars();
    loop {
        match chars.next()? {
            '"' => return Some((text, chars.as_str())),
            '\\' => text.push(chars.next()?),
            c if c.is_control() => text.push(' '),
            c => text.push(c),
        }
    }
}
