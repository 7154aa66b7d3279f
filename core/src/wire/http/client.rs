//! The client half.

use alloc::string::ToString;
use alloc::vec::Vec;
use alloc::{format, vec};
use core::ops::Range;

use super::body::Body;
use super::head::{Collected, HeadBuffer, Lengths, connection_has, elements, owned, parse_error};
use super::{HttpLimits, Method, RequestHead, ResponseHead};
use crate::wire::WireError;
use crate::wire::gzip::Gunzip;
use crate::wire::quote::{QUOTE_BYTES, quote};

/// Most 1xx answers before the real one. Go stops after 5.
const INFORMATIONAL: u32 = 16;

/// The bytes of a request: head with `Host`, and `Content-Length` where there is a body or the method implies one.
///
/// # Errors
/// [`WireError::Misuse`] for what would break the message apart (a line end in a header value, a blank in the target):
/// credentials from files and plugins end in newlines surprisingly often.
///
/// ```
/// use steersman_core::wire::http::{Method, RequestHead, write_request};
/// let head = RequestHead { method: Method::Get, target: "/api".into(), headers: vec![] };
/// assert_eq!(write_request(&head, "kube:6443", None).unwrap(), b"GET /api HTTP/1.1\r\nHost: kube:6443\r\n\r\n");
/// ```
pub fn write_request(head: &RequestHead, host: &str, body: Option<&[u8]>) -> Result<Vec<u8>, WireError> {
    let printable = |text: &str| !text.is_empty() && text.bytes().all(|b| b > b' ' && b != 0x7f);
    if !printable(&head.target) {
        return Err(WireError::Misuse(
            "the request target is empty or holds blanks or control characters".into(),
        ));
    }
    if !printable(host) {
        return Err(WireError::Misuse("the host is empty or holds blanks or control characters".into()));
    }
    let size = head.headers.iter().map(|(n, v)| n.len() + v.len() + 4).sum::<usize>();
    let mut out =
        Vec::with_capacity(head.target.len() + host.len() + size + 80 + body.map_or(0, <[u8]>::len));
    for part in [head.method.as_str(), " ", &head.target, " HTTP/1.1\r\nHost: ", host, "\r\n"] {
        out.extend_from_slice(part.as_bytes());
    }
    for (name, value) in &head.headers {
        if name.is_empty()
            || !name.bytes().all(|b| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b))
        {
            return Err(WireError::Misuse(format!("{name:?} is no header name")));
        }
        if value.bytes().any(|b| b != b'\t' && (b < b' ' || b == 0x7f)) {
            return Err(WireError::Misuse(format!(
                "the value of header {name} holds a line end or control character"
            )));
        }
        if ["host", "content-length", "transfer-encoding"].iter().any(|own| name.eq_ignore_ascii_case(own)) {
            return Err(WireError::Misuse(format!("header {name} is written by the codec itself")));
        }
        for part in [name, ": ", value, "\r\n"] {
            out.extend_from_slice(part.as_bytes());
        }
    }
    let implied = matches!(head.method, Method::Post | Method::Put | Method::Patch);
    if body.is_some() || implied {
        let length = body.map_or(0, <[u8]>::len).to_string();
        for part in ["Content-Length: ", &length, "\r\n"] {
            out.extend_from_slice(part.as_bytes());
        }
    }
    out.extend_from_slice(b"\r\n");
    out.extend_from_slice(body.unwrap_or_default());
    Ok(out)
}

/// What the decoder has to know of the request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ResponseContext {
    /// The request was a `HEAD`: whatever the head says, no body follows.
    pub method_is_head: bool,
}

/// What comes out of a response, in this order: one `Head`, any number of `Body`, one `End`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HttpEvent<'a> {
    /// The head is whole. Informational heads (1xx) do not come out.
    Head(ResponseHead),
    /// Bytes of the body, inflated if it was gzip, never empty. Where one piece ends and the next begins means nothing.
    Body(&'a [u8]),
    /// The response is whole.
    End {
        /// Whether the connection can carry another exchange. Not so after `Connection: close`, HTTP/1.0, a body that
        /// the end of the connection ends, doubtful lengths, or bytes beyond the response in the same input. Bytes that
        /// come later, unasked, must end the connection too.
        reusable: bool,
    },
}

/// Decodes one response from bytes cut anywhere.
#[derive(Debug)]
pub struct ResponseDecoder {
    limits: HttpLimits,
    context: ResponseContext,
    head: HeadBuffer,
    informational: u32,
    started: bool,
    keep: bool,
    gunzip: Option<Gunzip>,
    state: State,
}

/// An event, or where the window of the inflater has the bytes of one: what is lent from the decoder itself can only be
/// taken when the decoder changes no more.
enum Step<'i> {
    Event(HttpEvent<'i>),
    Inflated(Range<usize>),
}

#[derive(Debug)]
enum State {
    Head,
    Body(Body),
    Done,
    Failed(WireError),
}

impl ResponseDecoder {
    /// A decoder in front of a response.
    #[must_use]
    pub fn new(limits: HttpLimits, context: ResponseContext) -> Self {
        Self {
            limits,
            context,
            head: HeadBuffer::default(),
            informational: 0,
            started: false,
            keep: true,
            gunzip: None,
            state: State::Head,
        }
    }

    /// Whether any byte has come.
    #[must_use]
    pub const fn started(&self) -> bool {
        self.started
    }

    /// Whether the response is whole.
    #[must_use]
    pub const fn is_done(&self) -> bool {
        matches!(self.state, State::Done)
    }

    /// The next event, from bytes taken off the front of `input`.
    ///
    /// `None`: all of `input` is used and more is needed; or, after `End`, nothing more comes and bytes that are left in
    /// `input` do not belong to this response.
    ///
    /// # Errors
    /// What makes no sense as an HTTP/1 response, or is beyond the limits. The same error from then on.
    pub fn next<'a, 'i: 'a>(&'a mut self, input: &mut &'i [u8]) -> Result<Option<HttpEvent<'a>>, WireError> {
        self.started |= !input.is_empty();
        match self.step(input) {
            Ok(Some(Step::Event(event))) => Ok(Some(event)),
            Ok(Some(Step::Inflated(range))) => {
                Ok(self.gunzip.as_ref().map(|gunzip| HttpEvent::Body(gunzip.window(range))))
            }
            Ok(None) => Ok(None),
            Err(error) => {
                self.state = State::Failed(error.clone());
                Err(error)
            }
        }
    }

    fn step<'i>(&mut self, input: &mut &'i [u8]) -> Result<Option<Step<'i>>, WireError> {
        match &mut self.state {
            State::Failed(error) => Err(error.clone()),
            State::Done => Ok(None),
            State::Head => loop {
                match self.head.take(input, self.limits.head_bytes)? {
                    Collected::More => return Ok(None),
                    Collected::FirstLine => not_http(self.head.bytes())?,
                    Collected::Complete => {
                        if let Some(head) = self.parse_head()? {
                            return Ok(Some(Step::Event(HttpEvent::Head(head))));
                        }
                    }
                }
            },
            State::Body(body) => loop {
                if let Some(range) = self.gunzip.as_mut().map_or(Ok(None), Gunzip::rest)? {
                    return Ok(Some(Step::Inflated(range)));
                }
                let before = *input;
                match (body.next(input)?, &mut self.gunzip) {
                    (Some(data), None) => return Ok(Some(Step::Event(HttpEvent::Body(data)))),
                    (Some(mut data), Some(gunzip)) => {
                        let inflated = gunzip.advance(&mut data)?;
                        // What was not needed yet goes back; it lies just before the input that is left.
                        body.put_back(data.len());
                        *input = &before[before.len() - input.len() - data.len()..];
                        if let Some(range) = inflated {
                            return Ok(Some(Step::Inflated(range)));
                        }
                    }
                    (None, gunzip) if body.ended() => {
                        gunzip.as_ref().map_or(Ok(()), Gunzip::eof)?;
                        self.state = State::Done;
                        let reusable = self.keep && input.is_empty();
                        return Ok(Some(Step::Event(HttpEvent::End { reusable })));
                    }
                    (None, _) => return Ok(None),
                }
            },
        }
    }

    /// The connection ended in order.
    ///
    /// # Errors
    /// [`WireError::ClosedBeforeResponse`] if no byte has come, [`WireError::Truncated`] if something was unfinished.
    pub fn eof(&mut self) -> Result<Option<HttpEvent<'static>>, WireError> {
        let result = match &self.state {
            State::Failed(error) => Err(error.clone()),
            State::Done => Ok(None),
            State::Head if !self.started => Err(WireError::ClosedBeforeResponse),
            State::Head => {
                not_http(self.head.bytes()).and(Err(WireError::Truncated("the head of the response")))
            }
            State::Body(body) => (if body.ended() { Ok(()) } else { body.eof() })
                .and_then(|()| self.gunzip.as_ref().map_or(Ok(()), Gunzip::eof))
                .map(|()| Some(HttpEvent::End { reusable: false })),
        };
        self.state = match &result {
            Ok(_) => State::Done,
            Err(error) => State::Failed(error.clone()),
        };
        result
    }

    /// The head, or `None` if it was informational; what follows it becomes the state.
    fn parse_head(&mut self) -> Result<Option<ResponseHead>, WireError> {
        let mut lines = vec![httparse::EMPTY_HEADER; self.head.lines(self.limits.headers)];
        let mut parsed = httparse::Response::new(&mut lines);
        match parsed.parse(self.head.bytes()) {
            Ok(httparse::Status::Complete(_)) => {}
            Ok(httparse::Status::Partial) => return Err(WireError::BadHead("it ends early")),
            Err(error) => return Err(parse_error(error, self.limits.headers)),
        }
        let head = ResponseHead {
            status: parsed.code.unwrap_or_default(),
            reason: parsed.reason.unwrap_or_default().into(),
            http10: parsed.version == Some(0),
            headers: owned(parsed.headers),
        };
        self.head.clear();
        match head.status {
            0..100 => return Err(WireError::BadHead("invalid status")),
            101 => return Err(WireError::SwitchingProtocols),
            100..200 => {
                self.informational += 1;
                if self.informational > INFORMATIONAL {
                    return Err(WireError::TooManyInformational);
                }
                return Ok(None);
            }
            _ => {}
        }
        self.keep = !head.http10 && !connection_has(&head.headers, "close");
        self.state = if self.context.method_is_head || matches!(head.status, 204 | 304) {
            State::Body(Body::Length(0))
        } else {
            match self.body_of(&head) {
                Ok(body) => State::Body(body),
                // The status is good to know even where the body cannot be read: the error follows it.
                Err(error @ WireError::ContentEncoding(_)) => State::Failed(error),
                Err(error) => return Err(error),
            }
        };
        Ok(Some(head))
    }

    /// RFC 9112 6.3.
    fn body_of(&mut self, head: &ResponseHead) -> Result<Body, WireError> {
        let lengths = Lengths::of(&head.headers)?;
        let codings: Vec<_> = elements(&head.headers, "content-encoding")
            .filter(|coding| !coding.eq_ignore_ascii_case("identity"))
            .collect();
        match codings[..] {
            _ if !lengths.chunked && lengths.length == Some(0) => {}
            [] => {}
            // RFC 9110 8.4.1.3: the second name is an old one of the first.
            [one] if one.eq_ignore_ascii_case("gzip") || one.eq_ignore_ascii_case("x-gzip") => {
                self.gunzip = Some(Gunzip::new(self.limits.gzip));
            }
            _ => return Err(WireError::ContentEncoding(quote(codings.join(", ").as_bytes(), QUOTE_BYTES))),
        }
        Ok(match lengths.length {
            _ if lengths.chunked => {
                // Both: what is right is unclear to others on the way, so the connection ends with it.
                self.keep &= lengths.length.is_none();
                Body::chunked(self.limits.head_bytes)
            }
            Some(length) => Body::Length(length),
            None => {
                self.keep = false;
                Body::UntilClose
            }
        })
    }
}

/// Tells a first line that cannot be HTTP/1 before a whole head is waited for.
fn not_http(start: &[u8]) -> Result<(), WireError> {
    let want: &[u8] = b"HTTP/1.";
    let n = want.len().min(start.len());
    if start[..n] == want[..n] { Ok(()) } else { Err(WireError::NotHttp(quote(start, QUOTE_BYTES))) }
}
