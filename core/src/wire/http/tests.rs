use alloc::string::{String, ToString};
use alloc::vec::Vec;
use alloc::{format, vec};
use core::time::Duration;

use quickcheck::{Arbitrary, Gen, quickcheck};

use super::{
    BodyFraming, HttpEvent, HttpLimits, Method, RequestHead, ResponseContext, ResponseDecoder, retry_after,
    warnings, write_chunk, write_last_chunk, write_request, write_response, write_response_head,
};
use crate::wire::WireError;
use crate::wire::gzip::GzipLimits;

mod server;

const LIMITS: HttpLimits =
    HttpLimits { head_bytes: 2000, headers: 8, body_bytes: 100, gzip: GzipLimits::DEFAULT };

/// What came out of one response.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Seen {
    head: Option<super::ResponseHead>,
    body: Vec<u8>,
    /// `reusable` of the end, if it came; false too if bytes were left.
    end: Option<bool>,
    error: Option<WireError>,
}

impl Seen {
    fn status(&self) -> u16 {
        self.head.as_ref().map_or(0, |h| h.status)
    }
}

fn decode<'a>(parts: impl IntoIterator<Item = &'a [u8]>, context: ResponseContext, eof: bool) -> Seen {
    let mut decoder = ResponseDecoder::new(LIMITS, context);
    let mut seen = Seen { head: None, body: vec![], end: None, error: None };
    let mut left = false;
    for mut part in parts {
        loop {
            match decoder.next(&mut part) {
                Ok(Some(event)) => take(&mut seen, event),
                Ok(None) => break,
                Err(error) => {
                    assert_eq!(decoder.next(&mut part), Err(error.clone()), "an error stays");
                    assert_eq!(decoder.eof(), Err(error.clone()));
                    seen.error = Some(error);
                    return seen;
                }
            }
        }
        assert!(part.is_empty() || decoder.is_done(), "the input is used up");
        left |= !part.is_empty();
    }
    if eof && !decoder.is_done() {
        match decoder.eof() {
            Ok(Some(event)) => take(&mut seen, event),
            Ok(None) => panic!("the end of an unfinished response says something"),
            Err(error) => seen.error = Some(error),
        }
    }
    seen.end = seen.end.map(|reusable| reusable && !left);
    seen
}

fn take(seen: &mut Seen, event: HttpEvent<'_>) {
    assert!(seen.end.is_none(), "nothing follows the end");
    match event {
        HttpEvent::Head(head) => assert!(seen.head.replace(head).is_none(), "one head"),
        HttpEvent::Body(data) => {
            assert!(seen.head.is_some() && !data.is_empty());
            seen.body.extend_from_slice(data);
        }
        HttpEvent::End { reusable } => {
            assert!(seen.head.is_some());
            seen.end = Some(reusable);
        }
    }
}

fn check_cuts(bytes: &[u8], context: ResponseContext) -> Seen {
    let whole = decode([bytes], context, true);
    assert_eq!(decode(bytes.chunks(1), context, true), whole, "byte by byte: {}", bytes.escape_ascii());
    for cut in (0..=bytes.len()).step_by((bytes.len() / 300).max(1)) {
        let (a, b) = bytes.split_at(cut);
        assert_eq!(decode([a, b], context, true), whole, "cut at {cut}: {}", bytes.escape_ascii());
    }
    whole
}

fn get(bytes: impl AsRef<[u8]>) -> Seen {
    check_cuts(bytes.as_ref(), ResponseContext::default())
}

#[test]
fn bodies_of_every_framing() {
    // (what follows `HTTP/1.1 200 OK`, body, reusable)
    let table: &[(&str, &str, bool)] = &[
        ("\r\nContent-Length: 5\r\n\r\nhello", "hello", true),
        ("\r\nContent-Length: 0\r\n\r\n", "", true),
        ("\r\ncontent-length: 005\r\n\r\nhello", "hello", true),
        ("\r\nContent-Length: 5\r\nContent-Length: 5\r\n\r\nhello", "hello", true),
        ("\r\nContent-Length: 5, 5\r\n\r\nhello", "hello", true),
        ("\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello", "hello", false),
        ("\r\nContent-Length: 5\r\nConnection: keep-alive, Close\r\n\r\nhello", "hello", false),
        // Bytes beyond the end belong to nobody.
        ("\r\nContent-Length: 5\r\n\r\nhello!", "hello", false),
        ("\r\nContent-Length: 5\r\n\r\nhelloHTTP/1.1 200 OK\r\n\r\n", "hello", false),
        // No length: until the connection ends.
        ("\r\n\r\nhello", "hello", false),
        ("\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n", "hello", true),
        ("\r\ntransfer-encoding: Chunked\r\n\r\n2\r\nhe\r\n3\r\nllo\r\n0\r\n\r\n", "hello", true),
        ("\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", "", true),
        (
            "\r\nTransfer-Encoding: chunked\r\n\r\nA;x=\"y;\\\"\"\r\n0123456789\r\n00;z\r\n\r\n",
            "0123456789",
            true,
        ),
        ("\r\nTransfer-Encoding: chunked\r\n\r\n0000000000000005  \r\nhello\r\n0\r\n\r\n", "hello", true),
        ("\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\nA: b\r\nC:\r\n\r\n", "hello", true),
        ("\r\nTransfer-Encoding: chunked\r\n\r\n1\r\n\n\r\n0\r\n\r\n", "\n", true),
        // Both lengths: chunks count, and the connection ends.
        (
            "\r\nContent-Length: 9\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
            "hello",
            false,
        ),
        ("\r\nContent-Encoding: identity\r\nContent-Length: 5\r\n\r\nhello", "hello", true),
        ("\r\nX: j\u{fc}rgen\r\nContent-Length: 5\r\n\r\nhello", "hello", true),
        // A bare line feed in the head is tolerated, as everywhere.
        ("\nContent-Length: 5\n\nhello", "hello", true),
    ];
    for (rest, body, reusable) in table {
        let seen = get(format!("HTTP/1.1 200 OK{rest}"));
        assert_eq!(seen.error, None, "{rest:?}");
        assert_eq!(seen.body, body.as_bytes(), "{rest:?}");
        assert_eq!(seen.end, Some(*reusable), "{rest:?}");
    }
}

#[test]
fn heads() {
    let seen = get(
        "HTTP/1.1 503 Service Unavailable: Back-end server is at capacity\r\nContent-Length: 0\r\nA: b\r\n\r\n",
    );
    let head = seen.head.unwrap();
    assert_eq!((head.status, head.http10), (503, false));
    assert_eq!(head.reason, "Service Unavailable: Back-end server is at capacity");
    assert_eq!(
        (head.header("a"), head.header("content-length"), head.header("b")),
        (Some("b"), Some("0"), None)
    );
    for (text, status, reusable) in [
        ("HTTP/1.1 200\r\nContent-Length: 0\r\n\r\n", 200, true),
        ("HTTP/1.1 522 <none>\r\nContent-Length: 0\r\n\r\n", 522, true),
        ("\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", 200, true),
        ("HTTP/1.0 200 OK\r\nContent-Length: 0\r\n\r\n", 200, false),
        ("HTTP/1.0 400 Bad Request\r\n\r\nClient sent an HTTP request to an HTTPS server.\n", 400, false),
        // No body, whatever is announced.
        ("HTTP/1.1 204 No Content\r\nContent-Length: 7\r\n\r\n", 204, true),
        ("HTTP/1.1 304 Not Modified\r\nContent-Length: 5913\r\nContent-Encoding: gzip\r\n\r\n", 304, true),
        ("HTTP/1.1 204 No Content\r\n\r\nHTTP/1.1 200 OK\r\n\r\n", 204, false),
        // Informational answers come unasked.
        (
            "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nA: b\r\n\r\nHTTP/1.1 201 Created\r\nContent-Length: 0\r\n\r\n",
            201,
            true,
        ),
    ] {
        let seen = get(text);
        assert_eq!((seen.status(), seen.end, seen.error), (status, Some(reusable), None), "{text:?}");
    }
    let head_request = ResponseContext { method_is_head: true };
    let seen = check_cuts(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n", head_request);
    assert_eq!((seen.end, seen.body.len()), (Some(true), 0));
}

#[test]
fn bytes_after_the_end_forbid_reuse_at_once() {
    let mut decoder = ResponseDecoder::new(LIMITS, ResponseContext::default());
    let mut input: &[u8] = b"HTTP/1.1 204 No Content\r\n\r\nHTTP/1.1 408 Request Time-out\r\n";
    assert!(matches!(decoder.next(&mut input), Ok(Some(HttpEvent::Head(_)))));
    assert_eq!(decoder.next(&mut input), Ok(Some(HttpEvent::End { reusable: false })));
    assert_eq!(decoder.next(&mut input), Ok(None));
    assert!(decoder.is_done() && input.starts_with(b"HTTP/1.1 408"));
}

#[test]
fn two_answers_one_after_the_other() {
    let mut input: &[u8] =
        b"HTTP/1.1 204 No Content\r\nContent-Length: 0\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx";
    for status in [204, 200] {
        let mut decoder = ResponseDecoder::new(LIMITS, ResponseContext::default());
        let mut seen = Seen { head: None, body: vec![], end: None, error: None };
        while let Some(event) = decoder.next(&mut input).unwrap() {
            take(&mut seen, event);
        }
        assert_eq!(seen.status(), status);
    }
    assert!(input.is_empty());
}

#[test]
fn nonsense_is_an_error_that_says_what() {
    let long = "x".repeat(LIMITS.head_bytes);
    let many: String = (0..9).map(|n| format!("H-{n}: v\r\n")).collect();
    let chunked = |body: &str| format!("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n{body}");
    let with = |header: &str| format!("HTTP/1.1 200 OK\r\n{header}\r\n\r\nhello");
    let table: Vec<(String, &str)> = vec![
        ("".into(), "connection closed before the response"),
        ("\r\n".into(), "connection closed in the middle of the head of the response"),
        ("SSH-2.0-OpenSSH_9.6\r\n".into(), "not an HTTP/1 server: it sent \"SSH-2.0-OpenSSH_9.6\""),
        ("{\"kind\":\"Pod\"}".into(), "not an HTTP/1 server: it sent \"{\\\"kind\\\":\\\"Pod\\\"}\""),
        ("\u{15}\u{3}\u{1}\0".into(), "not an HTTP/1 server: it sent \"\\u{15}\\u{3}\\u{1}\\0\""),
        ("HTTP/2 200\r\n\r\n".into(), "not an HTTP/1 server: it sent \"HTTP/2 200\""),
        ("HTTP/1.1 200 OK\r\nA: b".into(), "connection closed in the middle of the head of the response"),
        ("HTTP/1.1 20 OK\r\n\r\n".into(), "malformed HTTP head: invalid status"),
        ("HTTP/1.1 099 OK\r\n\r\n".into(), "malformed HTTP head: invalid status"),
        ("HTTP/1.1 101 Switching Protocols\r\n\r\n".into(), "the server switched protocols unasked (101)"),
        ("HTTP/1.1 100 Go\r\n\r\n".repeat(99), "the server sends informational answers (1xx) without end"),
        (with("a b: c"), "malformed HTTP head: invalid byte in a header name"),
        (with("X-Nul: a\0b"), "malformed HTTP head: invalid byte in a header value"),
        (with(&format!("A: {long}")), "HTTP head longer than 2000 bytes"),
        (
            long.clone(),
            &*alloc::boxed::Box::leak(
                format!("not an HTTP/1 server: it sent {:?}", &long[..120]).into_boxed_str(),
            ),
        ),
        (with(&many), "more than 8 HTTP header lines"),
        (with("Content-Length: five"), "unusable length of the HTTP body: Content-Length is not a number"),
        (with("Content-Length: -5"), "unusable length of the HTTP body: Content-Length is not a number"),
        (with("Content-Length: +5"), "unusable length of the HTTP body: Content-Length is not a number"),
        (with("Content-Length:"), "unusable length of the HTTP body: Content-Length is empty"),
        (
            with("Content-Length: 5\r\nContent-Length: 6"),
            "unusable length of the HTTP body: several Content-Length that differ",
        ),
        (
            with("Content-Length: 5, 6"),
            "unusable length of the HTTP body: several Content-Length that differ",
        ),
        (
            with("Content-Length: 18446744073709551616"),
            "unusable length of the HTTP body: Content-Length is beyond 64 bits",
        ),
        (with("Content-Length: 4294967296"), "connection closed in the middle of a body of known length"),
        (with("Transfer-Encoding: gzip, chunked"), "unsupported transfer coding \"gzip, chunked\""),
        (
            with("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked"),
            "unsupported transfer coding \"chunked, chunked\"",
        ),
        (with("Transfer-Encoding: identity"), "unsupported transfer coding \"identity\""),
        (with("Content-Encoding: gzip"), "broken gzip body: it does not begin as gzip does"),
        (
            with("Content-Encoding: gzip, gzip\r\nContent-Length: 5"),
            "unsupported encoding of the body: \"gzip, gzip\"",
        ),
        (
            with("Content-Encoding: deflate\r\nContent-Length: 5"),
            "unsupported encoding of the body: \"deflate\"",
        ),
        (chunked("0x5\r\nhello"), "broken chunked body: chunk size is not a hexadecimal number"),
        (chunked("\r\n"), "broken chunked body: chunk size expected"),
        (chunked("-1\r\n"), "broken chunked body: chunk size expected"),
        (chunked("5\nhello\n0\n\n"), "broken chunked body: bare line feed"),
        (chunked("5;a\nhello\n"), "broken chunked body: bare line feed"),
        (chunked("5\r\nhello!\r\n"), "broken chunked body: chunk longer than its size"),
        (chunked("5\r\nhello\n0\r\n\r\n"), "broken chunked body: chunk longer than its size"),
        (chunked("5\rhello"), "broken chunked body: bare carriage return"),
        (chunked("10000000000000000\r\n"), "broken chunked body: chunk size beyond 64 bits"),
        (chunked(&format!("5;{}", "x".repeat(5000))), "broken chunked body: endless size line"),
        (chunked(&format!("0\r\n{}", "A: b\r\n".repeat(1000))), "broken chunked body: endless trailers"),
        (chunked("5\r\nhello\r\n8"), "connection closed in the middle of a chunked body"),
        (chunked("5\r\nhel"), "connection closed in the middle of a chunk"),
        (chunked("5\r\nhello\r\n0\r\n"), "connection closed in the middle of the end of a chunked body"),
    ];
    for (text, want) in table {
        let seen = get(&text);
        assert_eq!(seen.error.map(|e| e.to_string()).as_deref(), Some(want), "{}", text.escape_debug());
        assert_eq!(seen.end, None, "{}", text.escape_debug());
    }
}

#[test]
fn what_came_before_an_error_is_given_out() {
    let seen = get("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n8");
    assert_eq!(seen.body, b"hello");
    // The status is known even if the body cannot be read.
    let seen = get("HTTP/1.1 401 Unauthorized\r\nContent-Encoding: br\r\nContent-Length: 3\r\n\r\nabc");
    assert_eq!(seen.status(), 401);
    assert_eq!(seen.error, Some(WireError::ContentEncoding("br".into())));
}

/// `abc` as gzip writes it.
const ABC: &[u8] = b"\x1f\x8b\x08\0\0\0\0\0\0\xff\x4b\x4c\x4a\x06\0\xc2\x41\x24\x35\x03\0\0\0";

#[test]
fn gzip_comes_out_as_it_went_in_under_every_framing() {
    let with = |head: &str, body: &[u8]| {
        let head = format!("HTTP/1.1 200 OK\r\nContent-Encoding: GZip\r\n{head}\r\n");
        get([head.as_bytes(), body].concat())
    };
    let twice = ABC.repeat(2);
    let length = |n: usize| format!("Content-Length: {n}\r\n");
    let chunks = |n: usize, last: &str| {
        let mut out: Vec<u8> = vec![];
        twice.chunks(n).for_each(|chunk| write_chunk(&mut out, chunk));
        out.extend_from_slice(last.as_bytes());
        out
    };
    let chunked = "Transfer-Encoding: chunked\r\n";
    for seen in [with(&length(ABC.len()), ABC), with(&length(ABC.len() + 3), &[ABC, &[0; 3]].concat())] {
        assert_eq!((seen.body.as_slice(), seen.end), (b"abc".as_slice(), Some(true)), "{seen:?}");
    }
    for n in [1, 7, 23, 100] {
        let seen = with(chunked, &chunks(n, "0\r\n\r\n"));
        assert_eq!((seen.body.as_slice(), seen.end), (b"abcabc".as_slice(), Some(true)));
        let seen = with(chunked, &chunks(n, ""));
        assert_eq!((seen.body.as_slice(), seen.end), (b"abcabc".as_slice(), None));
        assert!(matches!(seen.error, Some(WireError::Truncated(_))));
    }
    let seen = with("", &twice);
    assert_eq!((seen.body.as_slice(), seen.end), (b"abcabc".as_slice(), Some(false)));
    // Whole as HTTP, half as gzip.
    for seen in [with(&length(20), &ABC[..20]), with("", &ABC[..20])] {
        assert_eq!(seen.error, Some(WireError::Truncated("a gzip body")), "{seen:?}");
        assert_eq!(seen.body, b"abc");
    }
    // Nothing at all is no gzip either, and common.
    assert_eq!(with(chunked, b"0\r\n\r\n").end, Some(true));
}

#[test]
fn a_huge_announced_length_allocates_nothing_and_a_body_is_lent() {
    let bytes = b"HTTP/1.1 200 OK\r\nContent-Length: 18446744073709551615\r\n\r\nhello";
    let mut decoder = ResponseDecoder::new(LIMITS, ResponseContext::default());
    let mut input = bytes.as_slice();
    assert!(matches!(decoder.next(&mut input), Ok(Some(HttpEvent::Head(_)))));
    let Ok(Some(HttpEvent::Body(body))) = decoder.next(&mut input) else { panic!() };
    assert_eq!(body.as_ptr_range().end, bytes.as_ptr_range().end);
}

#[test]
fn the_head_may_be_as_long_as_the_limit() {
    let head = |n: usize| format!("HTTP/1.1 200 OK\r\nContent-Length: 0\r\nA: {}\r\n\r\n", "x".repeat(n));
    let room = LIMITS.head_bytes - head(0).len();
    assert_eq!(get(head(room)).error, None);
    assert_eq!(get(head(room + 1)).error, Some(WireError::HeadTooLong(LIMITS.head_bytes)));
    let eight: String = (0..8).map(|n| format!("H-{n}: v\r\n")).collect();
    assert_eq!(get(format!("HTTP/1.1 204 OK\r\n{eight}\r\n")).error, None);
}

#[test]
fn requests() {
    let head = |method, headers: &[(&str, &str)]| RequestHead {
        method,
        target: "/api/v1/pods?limit=5".into(),
        headers: headers.iter().map(|(n, v)| (n.to_string(), v.to_string())).collect(),
    };
    let text = |head: &RequestHead, body: Option<&[u8]>| {
        String::from_utf8(write_request(head, "[::1]:6443", body).unwrap()).unwrap()
    };
    assert_eq!(
        text(&head(Method::Get, &[("Accept", "application/json"), ("X", "")]), None),
        "GET /api/v1/pods?limit=5 HTTP/1.1\r\nHost: [::1]:6443\r\nAccept: application/json\r\nX: \r\n\r\n"
    );
    assert_eq!(
        text(&head(Method::Post, &[]), Some(b"{}")),
        "POST /api/v1/pods?limit=5 HTTP/1.1\r\nHost: [::1]:6443\r\nContent-Length: 2\r\n\r\n{}"
    );
    assert!(text(&head(Method::Put, &[]), None).ends_with("\r\nContent-Length: 0\r\n\r\n"));
    assert!(!text(&head(Method::Delete, &[]), None).contains("Content-Length"));

    let refused = |head: &RequestHead, host: &str| match write_request(head, host, None) {
        Err(WireError::Misuse(what)) => what,
        other => panic!("{other:?}"),
    };
    // A token file that ends in a newline must not become another header, and must not be shown.
    let what = refused(&head(Method::Get, &[("Authorization", "Bearer s3cret\nX: y")]), "h");
    assert!(what.contains("Authorization") && !what.contains("s3cret"), "{what}");
    assert!(refused(&head(Method::Get, &[("A\r\nB", "c")]), "h").contains("no header name"));
    assert!(refused(&head(Method::Get, &[("Content-Length", "3")]), "h").contains("codec"));
    assert!(refused(&head(Method::Get, &[]), "h\r\nX: y").contains("host"));
    let mut broken = head(Method::Get, &[]);
    broken.target = "/api/v1 HTTP/1.1\r\nX: y".into();
    assert!(refused(&broken, "h").contains("target"));
    let shown = format!("{:?}", head(Method::Get, &[("Authorization", "Bearer s3cret")]));
    assert!(shown.contains("Authorization") && !shown.contains("s3cret"), "{shown}");
}

#[test]
fn retry_after_forms() {
    let date = "Wed, 18 Sep 2024 15:17:06 GMT";
    for (value, date, want) in [
        ("5", "", Some(5)),
        ("0", "", Some(0)),
        (" 7\t", "", Some(7)),
        ("99999999999999999999", "", Some(300)),
        ("Wed, 18 Sep 2024 15:17:16 GMT", date, Some(10)),
        ("Thu, 19 Sep 2024 15:17:16 GMT", date, Some(300)),
        ("Wed, 18 Sep 2024 15:17:05 GMT", date, Some(0)),
        ("Wed, 18 Sep 2024 15:17:16 GMT", "", None),
        ("Sun, 01 Mar 2020 00:00:10 GMT", "Sat, 29 Feb 2020 23:59:50 GMT", Some(20)),
        ("Fri, 01 Jan 2021 00:00:01 GMT", "Thu, 31 Dec 2020 23:59:59 GMT", Some(2)),
        ("1.5", date, None),
        ("-1", date, None),
        ("", date, None),
        ("soon", date, None),
        ("Wed, 99 Sep 2024 15:17:16 GMT", date, None),
        ("Wed, 18 Sep 0000 15:17:16 GMT", date, None),
    ] {
        let headers = vec![("retry-after".into(), value.into()), ("Date".into(), date.into())];
        let head = super::ResponseHead { status: 429, reason: String::new(), http10: false, headers };
        assert_eq!(retry_after(&head), want.map(Duration::from_secs), "{value} {date}");
    }
}

#[test]
fn warnings_are_given_out_once_and_never_fail() {
    let values = [
        r#"299 - "v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice""#,
        r#"299 - "unknown field \"spec.foo\"", 299 kube-apiserver "second, with comma" "Sat, 25 Aug 2012 23:34:45 GMT""#,
        "299 - \"m\u{fc}de\"",
        "299 - \"m\u{fc}de\"",
        "garbage",
        "299 - \"open",
        "299 -",
        "199 - \"another code\", 299 -  \"after it\"",
        "",
    ];
    let headers = values.iter().map(|v| ("warning".into(), (*v).into())).collect();
    let head = super::ResponseHead { status: 200, reason: String::new(), http10: false, headers };
    assert_eq!(
        warnings(&head),
        [
            "v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice",
            "unknown field \"spec.foo\"",
            "second, with comma",
            "m\u{fc}de",
            "after it"
        ]
    );
}

/// Responses of many forms, sometimes damaged.
#[derive(Clone, Debug)]
struct Response(Vec<u8>);

impl Arbitrary for Response {
    fn arbitrary(g: &mut Gen) -> Self {
        let fragments = [
            "HTTP/1.1 200 OK\r\n",
            "HTTP/1.0 200 OK\r\n",
            "HTTP/1.1 100 Continue\r\n\r\n",
            "HTTP/1.1 204 No\r\n",
            "Content-Length: 3\r\n",
            "Content-Length: 9999\r\n",
            "Transfer-Encoding: chunked\r\n",
            "A: b\r\n",
            "Connection: close\r\n",
            "Content-Encoding: gzip\r\n",
            "\r\n",
            "\n",
            "3\r\nabc\r\n",
            "0\r\n",
            "5;x\r\n",
            "abc",
            "\r",
            "ff",
            " ",
            "\0",
            "\u{fc}",
        ];
        let mut bytes = if u8::arbitrary(g) < 200 { fragments[0].as_bytes().to_vec() } else { vec![] };
        for _ in 0..usize::arbitrary(g) % 16 {
            bytes.extend_from_slice(g.choose(&fragments).unwrap_or(&"").as_bytes());
        }
        Self(bytes)
    }

    fn shrink(&self) -> alloc::boxed::Box<dyn Iterator<Item = Self>> {
        alloc::boxed::Box::new(self.0.shrink().map(Self))
    }
}

quickcheck! {
    fn cuts_change_nothing(response: Response, cuts: Vec<usize>, method_is_head: bool, eof: bool) -> bool {
        let context = ResponseContext { method_is_head };
        let bytes = response.0.as_slice();
        let mut at: Vec<usize> = cuts.iter().map(|c| c % (bytes.len() + 1)).collect();
        at.push(0);
        at.push(bytes.len());
        at.sort_unstable();
        let whole = decode([bytes], context, eof);
        whole == decode(at.windows(2).map(|w| &bytes[w[0]..w[1]]), context, eof)
            && whole == decode(bytes.chunks(1), context, eof)
    }

    fn what_the_server_half_writes_the_client_half_reads(pieces: Vec<Vec<u8>>, cuts: Vec<usize>) -> bool {
        let mut chunked = vec![];
        write_response_head(&mut chunked, 200, &[("A", "b")], BodyFraming::Chunked);
        pieces.iter().for_each(|p| write_chunk(&mut chunked, p));
        write_last_chunk(&mut chunked);
        let body = pieces.concat();
        let mut full = vec![];
        write_response(&mut full, 200, &[("A", "b")], &body);
        [chunked, full].iter().all(|bytes| {
            let mut at: Vec<usize> = cuts.iter().map(|c| c % (bytes.len() + 1)).collect();
            at.extend([0, bytes.len()]);
            at.sort_unstable();
            let seen = decode(at.windows(2).map(|w| &bytes[w[0]..w[1]]), ResponseContext::default(), false);
            seen.body == body && seen.end == Some(true) && seen.error.is_none()
        })
    }
}
