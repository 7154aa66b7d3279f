//! Bytes of connections without secrets: responses as they come in, requests as they go out.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use super::mask::{MASK, Masker};
use super::redact::{Rules, is_secret_header};
use super::text::Sum;
use crate::wire::http::{HttpEvent, HttpLimits, ResponseContext, ResponseDecoder};

/// Masks responses in place: cookies in their heads and, by [`Rules`], values in their bodies.
#[derive(Debug)]
pub(super) struct Responses {
    limits: HttpLimits,
    rules: Option<Rules>,
    head: Head,
    body: Option<Body>,
    echo: Echo,
}

#[derive(Debug)]
struct Body {
    /// `None` when the response is over or broken: what still comes on the connection belongs to nothing.
    decoder: Option<ResponseDecoder>,
    masker: Masker,
    /// So many bytes of [`START`] have come; `None` if something else has.
    start: Option<usize>,
}

/// What a response begins with.
const START: &[u8] = b"HTTP/1.";

/// Makes no sense of bytes that may be a body without its head, wherever they are looked at: at a line end.
fn void(bytes: &mut [u8]) {
    bytes.iter_mut().filter(|b| **b != b'\n').for_each(|b| *b = 0);
}

/// Bytes that cannot be masked in place.
#[derive(Debug)]
pub(super) struct Compressed;

impl Responses {
    pub(super) fn new(limits: HttpLimits, rules: Option<Rules>) -> Self {
        Self { limits, rules, head: Head::default(), body: None, echo: Echo::default() }
    }

    pub(super) const fn rules(&self) -> Option<&Rules> {
        self.rules.as_ref()
    }

    /// A request was written: what comes next is its response.
    pub(super) fn expect(&mut self, request: &[u8]) {
        self.head = Head::default();
        self.echo = Echo::of(request);
        let context = ResponseContext { method_is_head: request.starts_with(b"HEAD ") };
        self.body = self.rules.as_ref().map(|rules| Body {
            decoder: Some(ResponseDecoder::new(self.limits, context)),
            masker: rules.masker(),
            start: Some(0),
        });
    }

    /// A copy of what came, masked.
    pub(super) fn received(&mut self, bytes: &[u8]) -> Result<Vec<u8>, Compressed> {
        let mut copy = bytes.to_vec();
        self.head.mask(&mut copy);
        match &mut self.body {
            Some(body) => body.mask(bytes, &mut copy)?,
            // No request: nothing is expected, and nothing is made of it.
            None if self.rules.is_some() => copy.fill(MASK),
            None => {}
        }
        self.echo.mask(&mut copy);
        Ok(copy)
    }
}

impl Body {
    fn mask(&mut self, bytes: &[u8], copy: &mut [u8]) -> Result<(), Compressed> {
        let Self { decoder, masker, start } = self;
        for byte in bytes {
            *start = match *start {
                Some(n) if n == START.len() => break,
                Some(0) if matches!(byte, b'\r' | b'\n') => Some(0),
                Some(n) if START[n] == *byte => Some(n + 1),
                _ => None,
            };
        }
        let mut rest = bytes;
        // What is known to be something.
        let mut known = 0;
        while let Some(open) = decoder {
            match open.next(&mut rest) {
                Ok(Some(HttpEvent::Head(_))) => known = bytes.len() - rest.len(),
                Ok(Some(HttpEvent::Body(piece))) => {
                    // What is lent from the input lies in it; what was unfolded lies elsewhere.
                    let from = (piece.as_ptr() as usize).wrapping_sub(bytes.as_ptr() as usize);
                    let piece = from.checked_add(piece.len()).and_then(|end| copy.get_mut(from..end));
                    masker.mask(piece.ok_or(Compressed)?);
                    known = bytes.len() - rest.len();
                }
                Ok(None) => {
                    if start.is_none() {
                        void(copy);
                    }
                    return Ok(());
                }
                Ok(Some(HttpEvent::End { .. })) => *decoder = None,
                Err(_) => {
                    *decoder = None;
                    void(&mut copy[known..]);
                    return Ok(());
                }
            }
        }
        let left = copy.len() - rest.len();
        copy[left..].fill(MASK);
        Ok(())
    }
}

/// Finds the credential that was sent in what comes back, whole or cut off, as [`client`](crate::client) does for messages.
#[derive(Debug, Default)]
struct Echo {
    secret: Vec<u8>,
    /// So much of it stood at the end of what came last.
    matched: usize,
}

impl Echo {
    /// So much of the beginning gives it away.
    const PREFIX: usize = 8;
    /// Shorter ones are words of a language as well.
    const SHORTEST: usize = 4;

    fn of(request: &[u8]) -> Self {
        let head = memchr::memmem::find(request, b"\r\n\r\n").map_or(request, |end| &request[..end]);
        let value = head.split(|b| *b == b'\n').find_map(|line| {
            let colon = memchr::memchr(b':', line)?;
            line[..colon].eq_ignore_ascii_case(b"authorization").then(|| line[colon + 1..].trim_ascii())
        });
        let value = value.unwrap_or_default();
        let secret = memchr::memchr(b' ', value).map_or(value, |blank| value[blank..].trim_ascii());
        Self { secret: if secret.len() < Self::SHORTEST { Vec::new() } else { secret.to_vec() }, matched: 0 }
    }

    fn mask(&mut self, bytes: &mut [u8]) {
        let Self { secret, matched } = self;
        if secret.is_empty() {
            return;
        }
        let prefix = secret.len().min(Self::PREFIX);
        let same = |secret: &[u8], bytes: &[u8]| secret.iter().zip(bytes).take_while(|(a, b)| a == b).count();
        let mut at = 0;
        if *matched > 0 {
            let more = same(&secret[*matched..], bytes);
            *matched += more;
            if *matched >= prefix {
                bytes[..more].fill(b'x');
                at = more;
            }
            if more == bytes.len() && *matched < secret.len() {
                return;
            }
        }
        *matched = 0;
        while let Some(found) = memchr::memmem::find(&bytes[at..], &secret[..prefix]) {
            let start = at + found;
            let length = same(secret, &bytes[start..]);
            at = start + length;
            bytes[start..at].fill(b'x');
            if at == bytes.len() && length < secret.len() {
                *matched = length;
            }
        }
        if *matched == 0 {
            *matched = (1..prefix).rev().find(|n| bytes[at..].ends_with(&secret[..*n])).unwrap_or(0);
        }
    }
}

/// Finds header lines with secrets.
#[derive(Debug)]
struct Head {
    /// The line up to its colon, in lower case; no longer than a name of interest.
    name: Vec<u8>,
    place: Place,
    /// The first line tells of another response to come.
    informational: bool,
    first: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Name,
    /// A value that is masked.
    Secret,
    /// A value that is masked from its query on.
    Location,
    Plain,
    Over,
}

impl Default for Head {
    fn default() -> Self {
        Self { name: Vec::new(), place: Place::Name, informational: false, first: true }
    }
}

impl Head {
    fn mask(&mut self, bytes: &mut [u8]) {
        for byte in bytes {
            match (self.place, *byte) {
                (Place::Over, _) => return,
                (_, b'\n') => self.line_end(),
                (_, b'\r') => {}
                (Place::Name, b':') if !self.first => {
                    let name = String::from_utf8_lossy(&self.name);
                    self.place = match &*name {
                        "location" => Place::Location,
                        name if is_secret_header(name) => Place::Secret,
                        _ => Place::Plain,
                    };
                }
                (Place::Name, b) if self.name.len() < 64 => self.name.push(b.to_ascii_lowercase()),
                (Place::Location, b'?') => self.place = Place::Secret,
                (Place::Secret, b) if b.is_ascii_graphic() => *byte = b'x',
                _ => {}
            }
        }
    }

    fn line_end(&mut self) {
        if self.first {
            // `HTTP/1.1 103 Early Hints`
            let code = self.name.split(|b| *b == b' ').nth(1).unwrap_or_default();
            self.informational = code.len() == 3 && code[0] == b'1';
            // An empty line before the first one means nothing.
            self.first = self.name.is_empty();
            self.place = Place::Name;
        } else if self.place == Place::Name && self.name.is_empty() {
            self.place = if self.informational { Place::Name } else { Place::Over };
            self.first = true;
        } else {
            self.place = Place::Name;
        }
        self.name.clear();
    }
}

/// One line about a request: what it asks for, its length and a checksum of its bytes, both without credentials and with masked
/// values masked.
pub(super) fn request(bytes: &[u8], rules: Option<&Rules>) -> String {
    let head_end = memchr::memmem::find(bytes, b"\r\n\r\n").map_or(bytes.len(), |at| at + 4);
    let (head, body) = bytes.split_at(head_end);
    let mut sum = Sum::default();
    let mut length = body.len();
    let mut first = None;
    for line in head.split_inclusive(|b| *b == b'\n') {
        let name = line.split(|b| *b == b':').next().unwrap_or_default();
        if first.is_some() && is_secret_header(&String::from_utf8_lossy(name).to_ascii_lowercase()) {
            continue;
        }
        first = first.or(Some(line));
        length += line.len();
        sum.add(line);
    }
    match rules {
        Some(rules) => {
            let mut body = body.to_vec();
            rules.body(&mut body);
            sum.add(&body);
        }
        None => sum.add(body),
    }
    let line = String::from_utf8_lossy(first.unwrap_or_default());
    let line = line.trim_end().trim_end_matches(" HTTP/1.1");
    format!("{line} ({length} bytes, {sum})")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::Method;
    use crate::record::Redaction;

    fn rules() -> Option<Rules> {
        Redaction::default().of_request(Method::Get, "/api/v1/secrets")
    }

    fn masked(rules: Option<Rules>, response: &str, cut: usize) -> String {
        let mut responses = Responses::new(HttpLimits::default(), rules);
        responses.expect(b"GET / HTTP/1.1\r\n\r\n");
        let pieces = response.as_bytes().chunks(cut).map(|piece| responses.received(piece).unwrap());
        String::from_utf8(pieces.collect::<Vec<_>>().concat()).unwrap()
    }

    #[test]
    fn a_chunk_may_end_anywhere() {
        let response = "HTTP/1.1 103 Hints\r\nset-cookie: a\r\n\r\nHTTP/1.1 200 OK\r\nSet-Cookie: id=5; x\r\n\
            Transfer-Encoding: chunked\r\n\r\n9\r\n{\"data\":{\r\n9\r\n\"k\":\"hunt\r\n6\r\ner2\"}}\r\n0\r\n\r\nmore\"";
        let want = "HTTP/1.1 103 Hints\r\nset-cookie: x\r\n\r\nHTTP/1.1 200 OK\r\nSet-Cookie: xxxxx x\r\n\
            Transfer-Encoding: chunked\r\n\r\n9\r\n{\"data\":{\r\n9\r\n\"k\":\"AAAA\r\n6\r\nAAA\"}}\r\n0\r\n\r\nAAAAA";
        for cut in [1, 2, 7, 1000] {
            assert_eq!(masked(rules(), response, cut), want, "cut {cut}");
        }
    }

    #[test]
    fn without_rules_only_heads_are_masked() {
        let response =
            "HTTP/1.1 302 Found\r\nLocation: https://a/b?code=1\r\nX-Auth-Token: z\r\n\r\nset-cookie: a";
        let want =
            "HTTP/1.1 302 Found\r\nLocation: https://a/b?xxxxxx\r\nX-Auth-Token: x\r\n\r\nset-cookie: a";
        for cut in [1, 3, 1000] {
            assert_eq!(masked(None, response, cut), want, "cut {cut}");
        }
    }

    #[test]
    fn a_credential_that_comes_back_is_masked() {
        let request = b"GET / HTTP/1.1\r\nAuthorization: Bearer correct-horse-battery\r\n\r\n";
        let answer =
            "you sent correct-horse-battery, correct-horse-b, correct-x and Bearer correct-horse-battery";
        let want =
            "you sent xxxxxxxxxxxxxxxxxxxxx, xxxxxxxxxxxxxxx, xxxxxxxxx and Bearer xxxxxxxxxxxxxxxxxxxxx";
        for cut in 1..answer.len() + 1 {
            let mut echo = Echo::of(request);
            let mut bytes = answer.as_bytes().to_vec();
            bytes.chunks_mut(cut).for_each(|piece| echo.mask(piece));
            let masked = String::from_utf8(bytes).unwrap();
            assert!(!masked.contains("correct-") && !masked.contains("horse"), "cut {cut}: {masked}");
            if cut >= answer.len() {
                assert_eq!(masked, want);
            }
        }
    }

    #[test]
    fn the_line_of_a_request_does_not_hang_on_its_secrets() {
        let with = |token: &str, data: &str| {
            let bytes = format!(
                "POST /api/v1/secrets HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer {token}\r\n\r\n{{\"data\":{{\"k\":\"{data}\"}}}}"
            );
            request(bytes.as_bytes(), rules().as_ref())
        };
        let line = with("hunter2", "c2Vj");
        assert!(line.starts_with("POST /api/v1/secrets (") && !line.contains("hunter2"), "{line}");
        assert_eq!(line, with("placeholder", "QUFB"));
        assert_ne!(line, with("hunter2", "c2VjcmV0"), "another length is another request");
    }
}
