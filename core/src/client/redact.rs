//! What a server sends back of what we sent it does not get into a message.

use alloc::string::String;
use alloc::vec::Vec;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

/// So much of the beginning of a credential gives it away.
const PREFIX: usize = 8;
/// Shorter ones are words of a language as well, and no secrets.
const SHORTEST: usize = 4;

/// `text` without the credential in an `Authorization` header, whole or cut off.
pub(super) fn redact(mut text: String, authorization: &str) -> String {
    let mut secrets: Vec<String> = Vec::new();
    match authorization.split_once(' ') {
        Some((scheme, rest)) => {
            if scheme.eq_ignore_ascii_case("basic")
                && let Some(plain) = STANDARD.decode(rest.trim()).ok().and_then(|b| String::from_utf8(b).ok())
                && let Some((_, password)) = plain.split_once(':')
            {
                secrets.push(password.into());
            }
            secrets.extend(rest.split_whitespace().map(String::from));
        }
        None => secrets.push(authorization.into()),
    }
    for secret in secrets.iter().filter(|s| s.len() >= SHORTEST) {
        let prefix = secret.get(..PREFIX).unwrap_or(secret);
        let mut from = 0;
        while let Some(found) = text[from..].find(prefix) {
            let start = from + found;
            let same: usize = text[start..]
                .chars()
                .zip(secret.chars())
                .take_while(|(a, b)| a == b)
                .map(|(a, _)| a.len_utf8())
                .sum();
            text.replace_range(start..start + same, "…");
            from = start + '…'.len_utf8();
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_sent_is_not_shown_whole_or_in_part() {
        let text = |t: &str, authorization: &str| redact(t.into(), authorization);
        assert_eq!(text("no hunter2, hunter2!", "Bearer hunter2"), "no …, …!");
        assert_eq!(text("it begins: correcthorseb", "Bearer correcthorsebattery"), "it begins: …");
        assert_eq!(text("dTpodW50ZXIy means u:hunter2", "Basic dTpodW50ZXIy"), "… means u:…");
        assert_eq!(text("a b", "Bearer a"), "a b");
        assert_eq!(text("correct", "Bearer correcthorsebattery"), "correct");
        assert_eq!(text("raw-token", "raw-token"), "…");
        assert_eq!(text("", ""), "");
    }
}
