//! Odd answers to the first list, from the status line on: each whole, byte by byte, with late decode jobs, and in two
//! pieces cut at every offset; then the connection ends.

use super::lessons::a;
use super::*;

/// What a list answer came to.
#[derive(Clone, Debug, PartialEq)]
struct Verdict {
    names: Vec<String>,
    errors: Vec<String>,
    /// The pauses after the errors, in whole seconds.
    pauses: Vec<u64>,
    /// Whether the connection was used for the watch that follows.
    reused: bool,
}

fn verdict(style: Style, parts: &[&[u8]]) -> Verdict {
    let mut play = Play::new(style, vec![]);
    let conn = play.open.expect("a connection");
    for part in parts.iter().copied().filter(|part| !part.is_empty()) {
        for piece in part.chunks(style.cut) {
            // Bytes behind the answer have no reader.
            if play.closed == 0 {
                play.feed(Input::Net { conn, event: NetEvent::Received(piece) });
            }
        }
    }
    let reused = play.asked.len() == 2 && play.opened == 1;
    if play.closed == 0 && !reused {
        play.feed(Input::Net { conn, event: NetEvent::Eof });
    }
    let mut pauses = vec![];
    for notice in &play.notices {
        if let Notice::Failed { delay, .. } = notice {
            pauses.push(delay.as_secs());
        }
    }
    Verdict {
        names: play.names(),
        errors: play.errors().iter().map(|e| (*e).to_string()).collect(),
        pauses,
        reused,
    }
}

fn any_cut(what: &str, bytes: &[u8]) -> Verdict {
    let whole = verdict(STYLES[0], &[bytes]);
    for style in STYLES {
        assert_eq!(verdict(style, &[bytes]), whole, "{what}: {style:?}");
    }
    for cut in 1..bytes.len() {
        let (left, right) = bytes.split_at(cut);
        assert_eq!(verdict(STYLES[0], &[left, right]), whole, "{what}: cut at {cut}");
    }
    whole
}

/// A list of `a` at 5, and its length.
fn one() -> String {
    list(10, "", &[a()])
}

fn chunks(body: &[u8], size: usize, extension: &str) -> Vec<u8> {
    let mut out = vec![];
    for part in body.chunks(size) {
        out.extend_from_slice(format!("{:X}{extension}\r\n", part.len()).as_bytes());
        out.extend_from_slice(part);
        out.extend_from_slice(b"\r\n");
    }
    out
}

const OK: &str = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n";

#[test]
fn odd_answers_that_are_a_list() {
    let body = one();
    let n = body.len();
    let with = |head: &str| [head.as_bytes(), body.as_bytes()].concat();
    let chunked = |head: &str, chunks: Vec<u8>, end: &str| {
        [format!("{OK}{head}\r\n\r\n").as_bytes(), &chunks, end.as_bytes()].concat()
    };
    let zipped = member(body.as_bytes());
    let (half, rest) = body.as_bytes().split_at(40);
    let members = [member(half), member(rest)].concat();
    let many: String = (0..126).map(|n| format!("X-{n}: v\r\n")).collect();
    let long = format!("X-Long: {}\r\n", "v".repeat(13_000));
    let rows: Vec<(&str, Vec<u8>, bool)> = vec![
        ("of known length", with(&format!("{OK}Content-Length: {n}\r\n\r\n")), true),
        (
            "without a reason",
            with(&format!("HTTP/1.1 200\r\nContent-Type: application/json\r\nContent-Length: {n}\r\n\r\n")),
            true,
        ),
        ("HTTP/1.0, up to the end", with("HTTP/1.0 200 OK\r\nContent-Type: application/json\r\n\r\n"), false),
        ("without a type", with(&format!("HTTP/1.1 200 OK\r\nContent-Length: {n}\r\n\r\n")), true),
        ("empty lines before it", with(&format!("\r\n\r\n{OK}Content-Length: {n}\r\n\r\n")), true),
        (
            "after a 100 that nobody asked for",
            with(&format!("HTTP/1.1 100 Continue\r\n\r\n{OK}Content-Length: {n}\r\n\r\n")),
            true,
        ),
        (
            "the same length twice",
            with(&format!("{OK}Content-Length: {n}\r\nContent-Length: {n}\r\n\r\n")),
            true,
        ),
        ("the same length twice in one line", with(&format!("{OK}Content-Length: {n}, {n}\r\n\r\n")), true),
        (
            "a name in UTF-8 in a header",
            with(&format!("{OK}X-Name: j\u{fc}rgen\r\nContent-Length: {n}\r\n\r\n")),
            true,
        ),
        (
            "warnings of all kinds",
            with(&format!(
                "{OK}Warning: 299 - \"old\", garbage\r\nWarning: 299\r\nContent-Length: {n}\r\n\r\n"
            )),
            true,
        ),
        ("connection: close", with(&format!("{OK}Connection: close\r\nContent-Length: {n}\r\n\r\n")), false),
        (
            "126 header lines",
            with(
                &format!("{OK}{many}Content-Length: {n}\r\n\r\n")
                    .replace("X-125: v\r\n", "")
                    .replace("X-124: v\r\n", ""),
            ),
            true,
        ),
        ("13 KB of headers", with(&format!("{OK}{long}Content-Length: {n}\r\n\r\n")), true),
        (
            "in chunks",
            chunked("Transfer-Encoding: chunked", chunks(body.as_bytes(), 7, ""), "0\r\n\r\n"),
            true,
        ),
        (
            "in Chunks, with extensions and trailers",
            chunked(
                "transfer-encoding: Chunked",
                chunks(body.as_bytes(), 30, ";a=\"b;\\\"c\""),
                "000;z\r\nDigest: x\r\n\r\n",
            ),
            true,
        ),
        (
            "spaces behind the sizes of chunks",
            chunked("Transfer-Encoding: chunked", chunks(body.as_bytes(), 50, "  "), "0\r\n\r\n"),
            true,
        ),
        (
            "a length and chunks",
            chunked(
                "Content-Length: 3\r\nTransfer-Encoding: chunked",
                chunks(body.as_bytes(), 50, ""),
                "0\r\n\r\n",
            ),
            false,
        ),
        (
            "as gzip",
            [
                format!("{OK}Content-Encoding: gzip\r\nContent-Length: {}\r\n\r\n", zipped.len()).as_bytes(),
                &zipped,
            ]
            .concat(),
            true,
        ),
        (
            "as gzip of two members",
            [
                format!("{OK}Content-Encoding: gzip\r\nContent-Length: {}\r\n\r\n", members.len()).as_bytes(),
                &members,
            ]
            .concat(),
            true,
        ),
    ];
    for (what, bytes, reused) in rows {
        let got = any_cut(what, &bytes);
        assert_eq!((&*got.names, &*got.errors), (&["a@5".to_string()][..], &[][..]), "{what}");
        assert_eq!(got.reused, reused, "{what}");
    }
    // Where the first answer ends, another one seems to begin: nobody trusts this connection again.
    let twice = with(&format!("{OK}Content-Length: {n}\r\n\r\n")).repeat(2);
    let got = verdict(STYLES[0], &[&twice]);
    assert_eq!((&*got.names, got.reused), (&["a@5".to_string()][..], false));
}

#[test]
fn odd_answers_that_are_no_list() {
    let body = one();
    let n = body.len();
    let plain = |status: &str, headers: &str, body: &str| {
        format!("HTTP/1.1 {status}\r\n{headers}Content-Length: {}\r\n\r\n{body}", body.len())
    };
    let chunked = |head: &str, body: &str| format!("{OK}{head}\r\n\r\n{body}");
    let html =
        "<html>\r\n<head><title>502 Bad Gateway</title></head>\r\n<body>\r\n<hr>nginx</body>\r\n</html>";
    // What, the answer, what the error must hold, the pause in seconds.
    let rows: Vec<(&str, String, &str, core::ops::Range<u64>)> = vec![
        (
            "301",
            plain("301 Moved Permanently", "Location: https://other/api/v1/configmaps\r\n", ""),
            "https://other",
            0..2,
        ),
        ("307, relative", plain("307 Temporary Redirect", "Location: /login\r\n", ""), "/login", 0..2),
        ("401", plain("401 Unauthorized", "", "who are you"), "401", 0..2),
        (
            "404 as text",
            plain("404 Not Found", "Content-Type: text/plain\r\n", "404 page not found\n"),
            "404 page not found",
            0..2,
        ),
        ("429", plain("429 Too Many Requests", "Retry-After: 5\r\n", "busy"), "429", 5..6),
        (
            "429 and a date",
            plain(
                "429 Too Many Requests",
                "Date: Wed, 18 Sep 2024 15:17:06 GMT\r\nRetry-After: Wed, 18 Sep 2024 15:17:16 GMT\r\n",
                "busy",
            ),
            "429",
            10..11,
        ),
        (
            "429 for ages",
            plain("429 Too Many Requests", "Retry-After: 99999999999999999999\r\n", "busy"),
            "429",
            300..301,
        ),
        ("429 and no number", plain("429 Too Many Requests", "Retry-After: 1.5\r\n", "busy"), "429", 0..2),
        (
            "429, and the connection ends",
            plain("429 Too Many Requests", "Retry-After: 5\r\nConnection: close\r\n", "bye"),
            "429",
            5..6,
        ),
        (
            "502 of nginx",
            plain("502 Bad Gateway", "Content-Type: text/html\r\n", html),
            "502 Bad Gateway",
            0..2,
        ),
        (
            "503 of envoy",
            plain(
                "503 Service Unavailable",
                "Content-Type: text/plain\r\n",
                "upstream connect error or disconnect/reset before headers",
            ),
            "upstream connect error",
            0..2,
        ),
        (
            "503 of konnectivity",
            plain(
                "503 Service Unavailable",
                "Content-Type: text/plain\r\n",
                "error trying to reach service: No agent available",
            ),
            "No agent available",
            0..2,
        ),
        (
            "503 with nothing but a reason",
            plain("503 Service Unavailable: Back-end server is at capacity", "", ""),
            "503",
            0..2,
        ),
        ("504 with nothing at all", plain("504 GATEWAY_TIMEOUT", "", ""), "504", 0..2),
        (
            "522",
            format!(
                "HTTP/1.1 522 <none>\r\nContent-Type: text/html\r\nTransfer-Encoding: chunked\r\n\r\n{}0\r\n\r\n",
                String::from_utf8(chunks(b"<html><title>522: timed out</title>", 20, "")).unwrap()
            ),
            "522",
            0..2,
        ),
        ("204", plain("204 No Content", "", ""), "", 0..2),
        ("304", "HTTP/1.1 304 Not Modified\r\nContent-Length: 5913\r\n\r\n".into(), "304", 0..2),
        (
            "HTTPS on an HTTP port",
            "HTTP/1.0 400 Bad Request\r\n\r\nClient sent an HTTP request to an HTTPS server.\n".into(),
            "Client sent an HTTP request to an HTTPS server",
            0..2,
        ),
        ("another protocol", "SSH-2.0-OpenSSH_9.6\r\n".into(), "SSH-2.0-OpenSSH_9.6", 0..2),
        ("HTTP/0.9", body.clone(), "not an HTTP/1 server", 0..2),
        (
            "protobuf",
            plain("200 OK", "Content-Type: application/vnd.kubernetes.protobuf\r\n", "k8s\0"),
            "protobuf",
            0..2,
        ),
        ("deflate", plain("200 OK", "Content-Encoding: deflate\r\n", "xxxx"), "deflate", 0..2),
        ("NUL in a header", plain("200 OK", "X-Nul: a\0b\r\n", &body), "header value", 0..2),
        (
            "a length beyond 64 bits",
            format!("{OK}Content-Length: 99999999999999999999\r\n\r\n{body}"),
            "64 bits",
            0..2,
        ),
        ("a length of 4 GiB, and less", format!("{OK}Content-Length: 4294967296\r\n\r\n{body}"), "", 0..2),
        (
            "lengths that differ",
            format!("{OK}Content-Length: {n}\r\nContent-Length: 7\r\n\r\n{body}"),
            "differ",
            0..2,
        ),
        (
            "bare line feeds in chunks",
            chunked("Transfer-Encoding: chunked", "5\n{\"kin\n0\n\n"),
            "bare line feed",
            0..2,
        ),
        (
            "a chunk size with 0x",
            chunked("Transfer-Encoding: chunked", "0x5\r\n{\"kin\r\n0\r\n\r\n"),
            "chunk size",
            0..2,
        ),
        (
            "gzip as transfer coding",
            chunked("Transfer-Encoding: gzip, chunked", "5\r\n{\"kin\r\n0\r\n\r\n"),
            "gzip, chunked",
            0..2,
        ),
        (
            "chunked twice",
            chunked("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked", "5\r\n{\"kin\r\n0\r\n\r\n"),
            "chunked, chunked",
            0..2,
        ),
        (
            "an end in a chunk size",
            chunked("Transfer-Encoding: chunked", &format!("{n:x}\r\n{body}\r\n8")),
            "closed in the middle",
            0..2,
        ),
        ("an end in the head", "HTTP/1.1 200 OK\r\nContent-Ty".into(), "closed in the middle", 0..2),
        (
            "a page to sign in",
            plain("200 OK", "Content-Type: text/html\r\n", "<html>sign in"),
            "text/html",
            0..2,
        ),
    ];
    for (what, answer, error, pause) in rows {
        let got = any_cut(what, answer.as_bytes());
        assert_eq!(got.names, [] as [String; 0], "{what}");
        assert!(got.errors.len() == 1 && got.errors[0].contains(error), "{what}: {:?}", got.errors);
        assert!(pause.contains(&got.pauses[0]), "{what}: {:?}", got.pauses);
        assert!(!got.errors[0].contains('\n') && got.errors[0].len() < 600, "{what}: {:?}", got.errors);
    }
}
