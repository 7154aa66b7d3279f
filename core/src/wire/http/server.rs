//! The server half: for the embedded API server and the health endpoint.

use alloc::string::{String, ToString};
use alloc::vec;
use alloc::vec::Vec;

use super::body::Body;
use super::head::{Collected, HeadBuffer, Lengths, connection_has, elements, owned, parse_error};
use super::{HttpLimits, Method, header};
use crate::wire::WireError;
use crate::wire::quote::{QUOTE_BYTES, quote};

/// The head of a request as a server sees it.
///
/// `Debug` is left out on purpose: headers hold credentials.
#[derive(Clone, PartialEq, Eq)]
pub struct IncomingHead {
    /// The method.
    pub method: Method,
    /// Path and query as sent, percent-encoded.
    pub target: String,
    /// Names as they came and values, in order.
    pub headers: Vec<(String, String)>,
    /// The client waits for [`write_continue`] before it sends the body.
    pub expects_continue: bool,
    /// The client is ready to send another request on this connection.
    pub keep_alive: bool,
    /// The client speaks HTTP/1.0 and understands no chunks: a stream to it goes [`BodyFraming::UntilClose`].
    pub http10: bool,
}

impl IncomingHead {
    /// The first value of a header; names are compared without case.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        header(&self.headers, name)
    }

    /// The part of the target before `?`.
    #[must_use]
    pub fn path(&self) -> &str {
        self.target.split('?').next().unwrap_or_default()
    }

    /// The part of the target after the first `?`; empty if there is none.
    #[must_use]
    pub fn query(&self) -> &str {
        self.target.split_once('?').map_or("", |(_, query)| query)
    }
}

/// A whole request.
#[derive(Clone, PartialEq, Eq)]
pub struct IncomingRequest {
    /// What stood above the body.
    pub head: IncomingHead,
    /// The body, de-chunked.
    pub body: Vec<u8>,
}

/// What comes out of a connection, for each request in turn.
#[derive(Clone, PartialEq, Eq)]
pub enum RequestEvent {
    /// The head says `Expect: 100-continue` and a body follows: answer [`write_continue`], or refuse and close.
    ExpectsContinue,
    /// A request is whole.
    Request(IncomingRequest),
}

/// Decodes requests from bytes cut anywhere, one after the other.
pub struct RequestDecoder {
    limits: HttpLimits,
    buffer: HeadBuffer,
    state: State,
}

enum State {
    Head,
    Body { head: IncomingHead, framing: Body, body: Vec<u8> },
    Failed(WireError),
}

impl RequestDecoder {
    /// A decoder for a new connection.
    #[must_use]
    pub fn new(limits: HttpLimits) -> Self {
        Self { limits, buffer: HeadBuffer::default(), state: State::Head }
    }

    /// Whether it stands between two requests: the connection may be closed without harm.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        matches!(self.state, State::Head) && self.buffer.is_empty()
    }

    /// The next event, from bytes taken off the front of `input`; `None` when all of it is used. Bytes of a following
    /// request are left in `input`.
    ///
    /// # Errors
    /// What is no acceptable HTTP/1 request; [`WireError::response_code`] says how to answer before closing.
    pub fn next(&mut self, input: &mut &[u8]) -> Result<Option<RequestEvent>, WireError> {
        let result = self.step(input);
        if let Err(error) = &result {
            self.state = State::Failed(error.clone());
        }
        result
    }

    fn step(&mut self, input: &mut &[u8]) -> Result<Option<RequestEvent>, WireError> {
        loop {
            match &mut self.state {
                State::Failed(error) => return Err(error.clone()),
                State::Head => match self.buffer.take(input, self.limits.head_bytes)? {
                    Collected::More => return Ok(None),
                    Collected::FirstLine => first_line(self.buffer.bytes())?,
                    Collected::Complete => {
                        let (head, framing) = self.parse_head()?;
                        self.buffer.clear();
                        let waits = head.expects_continue;
                        self.state = State::Body { head, framing, body: Vec::new() };
                        if waits {
                            return Ok(Some(RequestEvent::ExpectsContinue));
                        }
                    }
                },
                State::Body { framing, body, .. } => {
                    while let Some(data) = framing.next(input)? {
                        if data.len() > self.limits.body_bytes - body.len() {
                            return Err(WireError::BodyTooLong(self.limits.body_bytes));
                        }
                        body.extend_from_slice(data);
                    }
                    if !framing.ended() {
                        return Ok(None);
                    }
                    let State::Body { head, body, .. } = core::mem::replace(&mut self.state, State::Head)
                    else {
                        return Ok(None);
                    };
                    return Ok(Some(RequestEvent::Request(IncomingRequest { head, body })));
                }
            }
        }
    }

    /// The connection ended.
    ///
    /// # Errors
    /// [`WireError::Truncated`] inside a request.
    pub fn eof(&self) -> Result<(), WireError> {
        match &self.state {
            State::Failed(error) => Err(error.clone()),
            State::Head if self.buffer.is_empty() => Ok(()),
            State::Head => Err(WireError::Truncated("the head of a request")),
            State::Body { .. } => Err(WireError::Truncated("the body of a request")),
        }
    }

    fn parse_head(&self) -> Result<(IncomingHead, Body), WireError> {
        let mut lines = vec![httparse::EMPTY_HEADER; self.buffer.lines(self.limits.headers)];
        let mut parsed = httparse::Request::new(&mut lines);
        match parsed.parse(self.buffer.bytes()) {
            Ok(httparse::Status::Complete(_)) => {}
            Ok(httparse::Status::Partial) => return Err(WireError::BadHead("it ends early")),
            Err(error) => return Err(parse_error(error, self.limits.headers)),
        }
        let name = parsed.method.unwrap_or_default();
        let method = Method::from_name(name)
            .ok_or_else(|| WireError::UnknownMethod(quote(name.as_bytes(), QUOTE_BYTES)))?;
        let http10 = parsed.version == Some(0);
        let target = parsed.path.unwrap_or_default().into();
        let headers = owned(parsed.headers);
        let hosts = headers.iter().filter(|(n, _)| n.eq_ignore_ascii_case("host")).count();
        if hosts > 1 || (hosts == 0 && !http10) {
            return Err(WireError::BadHead("exactly one Host header is expected"));
        }
        let lengths = Lengths::of(&headers)?;
        if lengths.chunked && (lengths.length.is_some() || http10) {
            // What smuggles requests past proxies is refused, not interpreted.
            return Err(WireError::BadLength("Content-Length, or HTTP/1.0, together with Transfer-Encoding"));
        }
        if let Some(coding) =
            elements(&headers, "content-encoding").find(|c| !c.eq_ignore_ascii_case("identity"))
        {
            return Err(WireError::ContentEncoding(coding.into()));
        }
        if lengths.length.is_some_and(|n| n > self.limits.body_bytes as u64) {
            return Err(WireError::BodyTooLong(self.limits.body_bytes));
        }
        let has_body = lengths.chunked || lengths.length.is_some_and(|n| n > 0);
        let expects = elements(&headers, "expect").any(|e| e.eq_ignore_ascii_case("100-continue"));
        let keep_alive =
            if http10 { connection_has(&headers, "keep-alive") } else { !connection_has(&headers, "close") };
        let framing = match lengths.length {
            Some(n) => Body::Length(n),
            None if lengths.chunked => Body::chunked(self.limits.head_bytes),
            None => Body::Length(0),
        };
        let expects_continue = expects && has_body && !http10;
        Ok((IncomingHead { method, target, headers, expects_continue, keep_alive, http10 }, framing))
    }
}

/// Tells another protocol (TLS, HTTP/2 without asking) before a whole head is waited for.
fn first_line(line: &[u8]) -> Result<(), WireError> {
    let is_token = |b: &u8| b.is_ascii_alphanumeric() || *b == b'-' || *b == b'_';
    let method = line.iter().take_while(|b| is_token(b)).count();
    if method == 0 || line.get(method) != Some(&b' ') {
        return Err(WireError::NotHttp(quote(line, QUOTE_BYTES)));
    }
    let text = line.strip_suffix(b"\n").map(|l| l.strip_suffix(b"\r").unwrap_or(l));
    if let Some(version) = text.and_then(|t| t.rsplit(|b| *b == b' ').next())
        && version.starts_with(b"HTTP/")
        && !version.starts_with(b"HTTP/1.")
    {
        return Err(WireError::Version(quote(version, QUOTE_BYTES)));
    }
    Ok(())
}

/// How the body that follows a response head is delimited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BodyFraming {
    /// So many bytes follow.
    Length(u64),
    /// Chunks follow: [`write_chunk`], at the end [`write_last_chunk`].
    Chunked,
    /// Everything until the connection ends; for HTTP/1.0 clients. Says `Connection: close`.
    UntilClose,
    /// Nothing follows and nothing is said about it: 204, 304.
    None,
}

/// Appends a response head. `Content-Length`, `Transfer-Encoding` follow from `framing`; `Connection` is the caller's.
/// Control characters in values become blanks, so that a value can never break the message apart.
pub fn write_response_head<N: AsRef<str>, V: AsRef<str>>(
    out: &mut Vec<u8>,
    status: u16,
    headers: &[(N, V)],
    framing: BodyFraming,
) {
    for part in ["HTTP/1.1 ", &status.to_string(), " ", reason_phrase(status), "\r\n"] {
        out.extend_from_slice(part.as_bytes());
    }
    let mut line = |name: &str, value: &str| {
        let clean = |b: u8| if b < b' ' || b == 0x7f { b' ' } else { b };
        out.extend(name.bytes().filter(|b| b.is_ascii_graphic() && *b != b':'));
        out.extend_from_slice(b": ");
        out.extend(value.bytes().map(clean));
        out.extend_from_slice(b"\r\n");
    };
    for (name, value) in headers {
        line(name.as_ref(), value.as_ref());
    }
    match framing {
        BodyFraming::Length(n) => line("Content-Length", &n.to_string()),
        BodyFraming::Chunked => line("Transfer-Encoding", "chunked"),
        BodyFraming::UntilClose => line("Connection", "close"),
        BodyFraming::None => {}
    }
    out.extend_from_slice(b"\r\n");
}

/// Appends one chunk. An empty one would end the body, so it is left out.
pub fn write_chunk(out: &mut Vec<u8>, bytes: &[u8]) {
    if bytes.is_empty() {
        return;
    }
    let mut digits = [0; 16];
    let mut at = digits.len();
    let mut n = bytes.len();
    while n > 0 {
        at -= 1;
        digits[at] = b"0123456789abcdef"[n & 15];
        n >>= 4;
    }
    out.reserve(bytes.len() + 20);
    out.extend_from_slice(&digits[at..]);
    out.extend_from_slice(b"\r\n");
    out.extend_from_slice(bytes);
    out.extend_from_slice(b"\r\n");
}

/// Appends the end of a chunked body.
pub fn write_last_chunk(out: &mut Vec<u8>) {
    out.extend_from_slice(b"0\r\n\r\n");
}

/// Appends `100 Continue`.
pub fn write_continue(out: &mut Vec<u8>) {
    out.extend_from_slice(b"HTTP/1.1 100 Continue\r\n\r\n");
}

/// Appends a whole response. With 204 and 304 the body is left out.
///
/// ```
/// let mut out = Vec::new();
/// steersman_core::wire::http::write_response(&mut out, 404, &[("Connection", "close")], b"no");
/// assert_eq!(out, b"HTTP/1.1 404 Not Found\r\nConnection: close\r\nContent-Length: 2\r\n\r\nno");
/// ```
pub fn write_response<N: AsRef<str>, V: AsRef<str>>(
    out: &mut Vec<u8>,
    status: u16,
    headers: &[(N, V)],
    body: &[u8],
) {
    if matches!(status, 204 | 304) {
        write_response_head(out, status, headers, BodyFraming::None);
    } else {
        write_response_head(out, status, headers, BodyFraming::Length(body.len() as u64));
        out.extend_from_slice(body);
    }
}

/// The usual words for a status code.
#[must_use]
pub const fn reason_phrase(status: u16) -> &'static str {
    match status {
        200 => "OK",
        201 => "Created",
        202 => "Accepted",
        204 => "No Content",
        206 => "Partial Content",
        301 => "Moved Permanently",
        302 => "Found",
        304 => "Not Modified",
        307 => "Temporary Redirect",
        308 => "Permanent Redirect",
        400 => "Bad Request",
        401 => "Unauthorized",
        403 => "Forbidden",
        404 => "Not Found",
        405 => "Method Not Allowed",
        406 => "Not Acceptable",
        408 => "Request Timeout",
        409 => "Conflict",
        410 => "Gone",
        412 => "Precondition Failed",
        413 => "Request Entity Too Large",
        415 => "Unsupported Media Type",
        422 => "Unprocessable Entity",
        429 => "Too Many Requests",
        431 => "Request Header Fields Too Large",
        500 => "Internal Server Error",
        501 => "Not Implemented",
        502 => "Bad Gateway",
        503 => "Service Unavailable",
        504 => "Gateway Timeout",
        505 => "HTTP Version Not Supported",
        _ => "Status",
    }
}
