//! The HTTP codec: any bytes, whole and in pieces, as a response and as requests.

use steersman_core::wire::WireError;
use steersman_core::wire::gzip::GzipLimits;
use steersman_core::wire::http::{
    HttpEvent, HttpLimits, IncomingRequest, RequestDecoder, RequestEvent, ResponseContext, ResponseDecoder,
    ResponseHead,
};

use crate::cuts::{ragged, seed};

const LIMITS: HttpLimits =
    HttpLimits { head_bytes: 600, headers: 8, body_bytes: 200, gzip: GzipLimits::DEFAULT };

#[derive(Debug, PartialEq)]
struct Response {
    heads: Vec<ResponseHead>,
    body: Vec<u8>,
    end: Option<bool>,
    error: Option<WireError>,
}

fn response(parts: &[&[u8]], context: ResponseContext) -> Response {
    let mut decoder = ResponseDecoder::new(LIMITS, context);
    let mut seen = Response { heads: vec![], body: vec![], end: None, error: None };
    let take = |seen: &mut Response, event: HttpEvent<'_>| {
        assert!(seen.end.is_none(), "something follows the end");
        match event {
            HttpEvent::Head(head) => seen.heads.push(head),
            HttpEvent::Body(data) => {
                assert!(seen.heads.len() == 1 && !data.is_empty());
                seen.body.extend_from_slice(data);
            }
            HttpEvent::End { reusable } => seen.end = Some(reusable),
        }
    };
    let mut left = false;
    for part in parts {
        let mut input = *part;
        loop {
            match decoder.next(&mut input) {
                Ok(Some(event)) => take(&mut seen, event),
                Ok(None) => break,
                Err(error) => {
                    assert_eq!(decoder.next(&mut input), Err(error.clone()), "an error stays");
                    seen.error = Some(error);
                    return seen;
                }
            }
        }
        assert!(input.is_empty() || decoder.is_done(), "the input is used up");
        left |= !input.is_empty();
    }
    match decoder.eof() {
        Ok(event) => event.into_iter().for_each(|e| take(&mut seen, e)),
        Err(error) => seen.error = Some(error),
    }
    assert_eq!(seen.end.is_some(), seen.error.is_none());
    seen.end = seen.end.map(|reusable| reusable && !left);
    seen
}

#[derive(PartialEq)]
struct Requests {
    requests: Vec<IncomingRequest>,
    waits: usize,
    error: Option<WireError>,
}

fn requests(parts: &[&[u8]]) -> Requests {
    let mut decoder = RequestDecoder::new(LIMITS);
    let mut seen = Requests { requests: vec![], waits: 0, error: None };
    for part in parts {
        let mut input = *part;
        loop {
            match decoder.next(&mut input) {
                Ok(Some(RequestEvent::Request(request))) => {
                    assert!(request.body.len() <= LIMITS.body_bytes);
                    seen.requests.push(request);
                }
                Ok(Some(RequestEvent::ExpectsContinue)) => seen.waits += 1,
                Ok(None) => break,
                Err(error) => {
                    assert!((400..600).contains(&error.response_code()));
                    seen.error = Some(error);
                    return seen;
                }
            }
        }
        assert!(input.is_empty(), "the input is used up");
    }
    seen.error = decoder.eof().err();
    seen
}

/// The first byte says whether the request was a `HEAD`, the second how to cut.
pub fn run(data: &[u8]) {
    let Some((flags, cut, bytes)) = seed(data) else { return };
    let context = ResponseContext { method_is_head: flags & 1 != 0 };
    let single: Vec<_> = bytes.chunks(1).collect();
    let ragged = ragged(bytes, cut);
    let whole = response(&[bytes], context);
    assert_eq!(whole, response(&single, context));
    assert_eq!(whole, response(&ragged, context));
    let whole = requests(&[bytes]);
    assert!(whole == requests(&single));
    assert!(whole == requests(&ragged));
}
