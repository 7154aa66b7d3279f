//! What the other side sent, fit for a message: one line, short, without what may be a credential or a secret.

use alloc::string::String;

/// Longest quotation of a first line of HTTP.
pub(crate) const QUOTE_BYTES: usize = 120;

/// What stands for something that is not shown.
pub(crate) const HIDDEN: char = '…';

/// After one of these comes a credential, whatever stands between.
const SCHEMES: [&str; 5] = ["authorization", "bearer", "basic", "negotiate", "cookie"];
/// After one of these and a colon or an equals sign comes a credential.
const NAMES: [&str; 8] =
    ["token", "passw", "secret", "credential", "api-key", "api_key", "apikey", "session"];
/// Members of JSON whose texts say what it is, and are no data.
const SHOWN: [&str; 7] = ["kind", "apiVersion", "status", "reason", "message", "error", "code"];

/// The first line of `bytes`, at most `longest` bytes of it.
///
/// A server may send back what it was sent, a `Secret` may come where something else should, and the message ends in
/// logs. So the quotation ends where a credential is announced (`Authorization`, `Bearer`, `password=`), long words that
/// mix letters and digits are left out, and of JSON nearly all texts.
pub(crate) fn quote(bytes: &[u8], longest: usize) -> String {
    let line = bytes.split(|b| *b == b'\n').next().unwrap_or_default();
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    let text = String::from_utf8_lossy(&line[..line.len().min(longest)]);
    quote_text(&text, line.len() >= longest)
}

/// The same of a line of text. `cut`: it goes on, so that its last word may be the beginning of a longer one.
pub(crate) fn quote_text(line: &str, cut: bool) -> String {
    let mut quoter = Quoter { out: String::with_capacity(line.len()), key: "" };
    quoter.json(line, cut);
    quoter.out
}

struct Quoter<'a> {
    out: String,
    /// The text in quotes before this one: perhaps the name of a member.
    key: &'a str,
}

impl<'a> Quoter<'a> {
    /// Any text, which may be JSON; whether it could be shown to its end.
    fn json(&mut self, line: &'a str, cut: bool) {
        let mut rest = line;
        while let Some((before, after)) = rest.split_once('"') {
            if !self.words(before, after, false) {
                return;
            }
            self.out.push('"');
            let (inside, end) = string(after);
            let value = before.trim_end().ends_with(':');
            let shown = value && SHOWN.contains(&self.key);
            // JSON within JSON is not looked into.
            if !shown && (value || inside.contains("\\\"")) {
                self.out.push(HIDDEN);
            } else if !self.words(inside, "", cut && end.is_none()) {
                return;
            }
            self.key = inside;
            let Some(end) = end else { return };
            self.out.push('"');
            rest = end;
        }
        self.words(rest, "", cut);
    }

    /// Text without quotes; `next` is what follows it. Whether all of it could be shown.
    fn words(&mut self, text: &str, next: &str, cut: bool) -> bool {
        let mut rest = text;
        while let Some(first) = rest.chars().next() {
            if !in_word(first) {
                self.out.push(first);
                rest = &rest[first.len_utf8()..];
                continue;
            }
            let (word, after) = rest.split_at(rest.find(|c| !in_word(c)).unwrap_or(rest.len()));
            let lower = word.to_ascii_lowercase();
            let announced = after.trim_start_matches(['\'', '"', '\\', ' ']).starts_with([':', '=']);
            if SCHEMES.iter().any(|s| lower.contains(s)) && !(after.is_empty() && next.is_empty()) {
                self.out.push_str(word);
                self.out.push(HIDDEN);
                return false;
            }
            let named = NAMES.iter().filter_map(|n| lower.find(n)).min();
            match (named, word.find('=')) {
                (Some(name), Some(equals)) if name < equals => {
                    self.out.push_str(&word[..=equals]);
                    self.out.push(HIDDEN);
                    return false;
                }
                (Some(_), _) if announced => {
                    self.out.push_str(word);
                    self.out.push(HIDDEN);
                    return false;
                }
                _ if is_token(word, cut && after.is_empty()) => self.out.push(HIDDEN),
                _ => self.out.push_str(word),
            }
            rest = after;
        }
        true
    }
}

/// The inside of a JSON string that has begun, and what follows its end.
fn string(text: &str) -> (&str, Option<&str>) {
    let mut escaped = false;
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b'"' if !escaped => return (&text[..at], Some(&text[at + 1..])),
            b'\\' => escaped = !escaped,
            _ => escaped = false,
        }
    }
    (text, None)
}

/// What credentials are made of: RFC 7235's `token68`.
fn in_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || "+/=_.~-".contains(c)
}

/// `open`: more of it may follow that is not seen.
fn is_token(word: &str, open: bool) -> bool {
    let has = |is: fn(&u8) -> bool| word.as_bytes().iter().any(is);
    let digits = has(u8::is_ascii_digit) && has(u8::is_ascii_alphabetic);
    let cases = has(u8::is_ascii_lowercase) && has(u8::is_ascii_uppercase);
    let length = word.len();
    (digits && (length >= 20 || open)) || (cases && (length >= 32 || (open && length >= 6)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const JWT: &str = "eyJhbGciOiJSUzI1NiIsImtpZCI6IjEifQ.eyJpc3MiOiJrdWJlcm5ldGVzIn0.c2lnbmF0dXJl";

    #[test]
    fn what_helps_is_shown() {
        for line in [
            "<html><head><title>502 Bad Gateway</title></head>",
            "<!DOCTYPE html PUBLIC \"-//W3C//DTD HTML\">",
            "404 page not found",
            "SSH-2.0-OpenSSH_9.6",
            "upstream connect error or disconnect/reset before headers",
            "token has expired",
            "invalid bearer",
            r#"{"kind":"Status","status":"Failure","message":"secrets is forbidden","code":403}"#,
            r#"{"kind":"Table","columnDefinitions":[],"rows":[{"object":{}}]}"#,
        ] {
            assert_eq!(quote(line.as_bytes(), QUOTE_BYTES), line);
        }
        assert_eq!(quote(b"one\r\ntwo", QUOTE_BYTES), "one");
        assert_eq!(quote("x".repeat(200).as_bytes(), QUOTE_BYTES), "x".repeat(120));
    }

    #[test]
    fn what_may_be_a_credential_is_not() {
        for (line, shown) in [
            ("Authorization: Bearer hunter2", "Authorization…"),
            ("GET / HTTP/1.1 authorization: hunter2", "GET / HTTP/1.1 authorization…"),
            ("you sent Bearer hunter2", "you sent Bearer…"),
            ("Basic dTpw", "Basic…"),
            ("password=hunter2", "password=…"),
            ("password: hunter2", "password…"),
            ("access_token = hunter2", "access_token…"),
            ("bad token abcdef.0123456789abcdef here", "bad token … here"),
            (r#"{"token":"hunter2","kind":"X"}"#, r#"{"token":"…","kind":"X"}"#),
            (r#"{"kind":"Secret","data":{"k":"hunter2"}}"#, r#"{"kind":"Secret","data":{"k":"…"}}"#),
            (r#"{"headers":{"Authorization":"Bearer hunter2"}}"#, r#"{"headers":{"Authorization":"…"}}"#),
            (r#"{"k" : "hunter2"#, r#"{"k" : "…"#),
            (r#"{"message":"Authorization: hunter2"}"#, r#"{"message":"Authorization…"#),
            (r#""{\"k\":\"hunter2\"}""#, r#""…""#),
            (r#"{"message":"{\"token\":\"hunter2\"}"}"#, r#"{"message":"{\"token…"#),
        ] {
            let quoted = quote(line.as_bytes(), QUOTE_BYTES);
            assert_eq!(quoted, shown, "{line}");
        }
    }

    /// Wherever it is cut.
    #[test]
    fn no_part_of_a_token_is_shown() {
        for before in 0..QUOTE_BYTES {
            let line = alloc::format!("{} {JWT}", "-".repeat(before));
            let quoted = quote(line.as_bytes(), QUOTE_BYTES);
            assert!(!quoted.contains("eyJhbG"), "{quoted}");
        }
    }
}
