use alloc::string::{String, ToString};
use alloc::vec::Vec;
use alloc::{format, vec};

use quickcheck::quickcheck;

use super::LIMITS;
use crate::wire::WireError;
use crate::wire::http::{
    BodyFraming, IncomingRequest, Method, RequestDecoder, RequestEvent, RequestHead, write_continue,
    write_request, write_response, write_response_head,
};

/// The requests on a connection, `100` for each wait, and how it ended.
type Verdict = (Vec<String>, Option<String>);

fn show(request: &IncomingRequest) -> String {
    let IncomingRequest { head, body } = request;
    let keep = if head.keep_alive { "keep" } else { "close" };
    format!("{} {} {} {}", head.method, head.target, String::from_utf8_lossy(body), keep)
}

fn serve<'a>(parts: impl IntoIterator<Item = &'a [u8]>) -> Verdict {
    let mut decoder = RequestDecoder::new(LIMITS);
    let mut out = vec![];
    for mut part in parts {
        loop {
            match decoder.next(&mut part) {
                Ok(Some(RequestEvent::Request(request))) => out.push(show(&request)),
                Ok(Some(RequestEvent::ExpectsContinue)) => out.push("100".into()),
                Ok(None) => break,
                Err(error) => {
                    assert!(decoder.next(&mut part) == Err(error.clone()), "an error stays");
                    return (out, Some(format!("{} {error}", error.response_code())));
                }
            }
        }
        assert!(part.is_empty(), "the input is used up");
    }
    let end = decoder.eof().err().map(|e| e.to_string());
    assert_eq!(end.is_none(), decoder.is_idle());
    (out, end)
}

fn check_cuts(text: &str) -> Verdict {
    let bytes = text.as_bytes();
    let whole = serve([bytes]);
    assert_eq!(serve(bytes.chunks(1)), whole, "byte by byte: {text:?}");
    for cut in (0..=bytes.len()).step_by((bytes.len() / 300).max(1)) {
        let (a, b) = bytes.split_at(cut);
        assert_eq!(serve([a, b]), whole, "cut at {cut}: {text:?}");
    }
    whole
}

#[test]
fn requests_one_after_the_other() {
    let (got, end) = check_cuts(
        "GET /api?x=1 HTTP/1.1\r\nHost: h\r\n\r\n\
         \r\nPOST /a HTTP/1.1\r\nhost: h\r\nContent-Length: 2\r\n\r\n{}\
         PUT /b HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\nExpect: 100-Continue\r\n\r\n1\r\n{\r\n1\r\n}\r\n0\r\n\r\n\
         POST /e HTTP/1.1\r\nHost: h\r\nContent-Length: 0\r\nExpect: 100-continue\r\n\r\n\
         DELETE /c HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n\
         GET /d HTTP/1.0\r\n\r\nHEAD /d HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n",
    );
    assert_eq!(end, None);
    assert_eq!(
        got,
        [
            "GET /api?x=1  keep",
            "POST /a {} keep",
            "100",
            "PUT /b {} keep",
            "POST /e  keep",
            "DELETE /c  close",
            "GET /d  close",
            "HEAD /d  keep"
        ]
    );
}

#[test]
fn paths_and_headers() {
    let mut input: &[u8] = b"GET /a/b?c=d?e HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer x\r\n\r\n";
    let mut decoder = RequestDecoder::new(LIMITS);
    let Ok(Some(RequestEvent::Request(request))) = decoder.next(&mut input) else { panic!() };
    assert_eq!((request.head.path(), request.head.query()), ("/a/b", "c=d?e"));
    assert_eq!(request.head.header("authorization"), Some("Bearer x"));
}

#[test]
fn what_is_refused_and_how() {
    let with = |header: &str| format!("POST / HTTP/1.1\r\nHost: h\r\n{header}\r\n\r\n");
    for (text, want) in [
        (
            "\u{16}\u{3}\u{1}\u{2}\0\u{1}\n".to_string(),
            "400 not an HTTP/1 server: it sent \"\\u{16}\\u{3}\\u{1}\\u{2}\\0\\u{1}\"",
        ),
        ("hello\r\n".into(), "400 not an HTTP/1 server: it sent \"hello\""),
        ("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".into(), "505 unsupported HTTP version \"HTTP/2.0\""),
        ("BREW /pot HTTP/1.1\r\nHost: h\r\n\r\n".into(), "501 unknown HTTP method \"BREW\""),
        ("GET / HTTP/1.1\r\n\r\n".into(), "400 malformed HTTP head: exactly one Host header is expected"),
        (
            "GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n".into(),
            "400 malformed HTTP head: exactly one Host header is expected",
        ),
        (with("a b: c"), "400 malformed HTTP head: invalid byte in a header name"),
        (with(&format!("A: {}", "x".repeat(2000))), "431 HTTP head longer than 2000 bytes"),
        (with(&"A: b\r\n".repeat(8)), "431 more than 8 HTTP header lines"),
        (with("Content-Length: 101"), "413 body longer than 100 bytes"),
        (
            with("Transfer-Encoding: chunked") + "60\r\n" + &"x".repeat(96) + "\r\n5\r\nxxxxx\r\n0\r\n\r\n",
            "413 body longer than 100 bytes",
        ),
        (with("Transfer-Encoding: gzip"), "501 unsupported transfer coding \"gzip\""),
        (
            with("Content-Encoding: gzip\r\nContent-Length: 3"),
            "415 unsupported encoding of the body: \"gzip\"",
        ),
        (
            with("Content-Length: 3\r\nTransfer-Encoding: chunked"),
            "400 unusable length of the HTTP body: Content-Length, or HTTP/1.0, together with Transfer-Encoding",
        ),
        (with("Content-Length: x"), "400 unusable length of the HTTP body: Content-Length is not a number"),
        ("GET / HT".into(), "connection closed in the middle of the head of a request"),
        (with("Content-Length: 3") + "ab", "connection closed in the middle of the body of a request"),
    ] {
        assert_eq!(check_cuts(&text).1.as_deref(), Some(want), "{text:?}");
    }
}

#[test]
fn responses() {
    let mut out = vec![];
    write_continue(&mut out);
    write_response(&mut out, 201, &[("Content-Type", "application/json")], b"{}");
    write_response(&mut out, 204, &[] as &[(&str, &str)], b"left out");
    write_response_head(
        &mut out,
        429,
        &[("Retry-After", "1"), ("Warning", "a\r\nb")],
        BodyFraming::UntilClose,
    );
    assert_eq!(
        String::from_utf8(out).unwrap(),
        "HTTP/1.1 100 Continue\r\n\r\n\
         HTTP/1.1 201 Created\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}\
         HTTP/1.1 204 No Content\r\n\r\n\
         HTTP/1.1 429 Too Many Requests\r\nRetry-After: 1\r\nWarning: a  b\r\nConnection: close\r\n\r\n"
    );
    assert_eq!(WireError::BodyTooLong(3).response_code(), 413);
}

quickcheck! {
    fn what_the_client_half_writes_the_server_half_reads(requests: Vec<(u8, String, Option<Vec<u8>>)>, cuts: Vec<usize>) -> bool {
        let methods = [Method::Get, Method::Post, Method::Put, Method::Patch, Method::Delete, Method::Options];
        let (mut bytes, mut want) = (vec![], vec![]);
        for (n, text, body) in &requests {
            let target: String = core::iter::once('/').chain(text.chars().filter(char::is_ascii_alphanumeric)).collect();
            let method = methods[usize::from(*n) % methods.len()];
            let body = body.as_ref().map(|b| &b[..b.len().min(LIMITS.body_bytes)]);
            let head = RequestHead { method, target: target.clone(), headers: vec![] };
            let Ok(written) = write_request(&head, "h", body) else { return false };
            if written.len() - body.map_or(0, <[u8]>::len) > LIMITS.head_bytes {
                continue;
            }
            bytes.extend(written);
            want.push(format!("{method} {target} {} keep", String::from_utf8_lossy(body.unwrap_or_default())));
        }
        let mut at: Vec<usize> = cuts.iter().map(|c| c % (bytes.len() + 1)).collect();
        at.extend([0, bytes.len()]);
        at.sort_unstable();
        serve(at.windows(2).map(|w| &bytes[w[0]..w[1]])) == (want, None)
    }
}
