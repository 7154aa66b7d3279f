use alloc::string::{String, ToString};
use alloc::vec::Vec;
use alloc::{format, vec};

use quickcheck::{Arbitrary, Gen, quickcheck};

use super::FrameSplitter;
use crate::wire::Piece;
use crate::wire::tests::object;

const LIMIT: usize = 2000;

fn show(piece: Piece<'_>) -> String {
    let text = |b: &[u8]| String::from_utf8_lossy(b).to_string();
    match piece {
        Piece::Value(b) => text(b),
        Piece::Garbage(b) => format!("garbage:{}", text(b)),
        Piece::TooLong { bytes, start } => format!("too long:{bytes}:{}", text(start)),
        Piece::Truncated(b) => format!("truncated:{}", text(b)),
    }
}

/// Everything that comes out of the parts, the end included.
fn pieces<'a>(parts: impl IntoIterator<Item = &'a [u8]>) -> Vec<String> {
    take(parts, false)
}

fn take<'a>(parts: impl IntoIterator<Item = &'a [u8]>, ahead: bool) -> Vec<String> {
    let mut splitter = FrameSplitter::new(LIMIT);
    let mut out = vec![];
    for mut part in parts {
        loop {
            if ahead && let Some(piece) = splitter.read(&mut part, object) {
                out.push(piece);
                continue;
            }
            let Some(piece) = splitter.next(&mut part) else { break };
            out.push(show(piece));
        }
        assert!(part.is_empty(), "the input is used up");
        assert!(splitter.buffered() <= LIMIT);
    }
    out.extend(splitter.finish().map(show));
    out
}

fn check_cuts(bytes: &[u8]) -> Vec<String> {
    let whole = pieces([bytes]);
    assert_eq!(take([bytes], true), whole, "read ahead: {:?}", String::from_utf8_lossy(bytes));
    assert_eq!(pieces(bytes.chunks(1)), whole, "byte by byte: {:?}", String::from_utf8_lossy(bytes));
    // Every cut of what is short, some of what is long.
    let step = (bytes.len() / 400).max(1);
    for cut in (0..=bytes.len()).step_by(step) {
        let (a, b) = bytes.split_at(cut);
        for ahead in [false, true] {
            assert_eq!(take([a, b], ahead), whole, "cut at {cut}: {:?}", String::from_utf8_lossy(bytes));
        }
    }
    whole
}

#[test]
fn what_is_read_ahead_is_taken() {
    let mut splitter = FrameSplitter::new(LIMIT);
    let mut input: &[u8] = b"{\"a\":1}\n {\"b\":{}}{}\n{\"c";
    for want in ["{\"a\":1}", "{\"b\":{}}", "{}"] {
        assert_eq!(splitter.read(&mut input, object).as_deref(), Some(want));
    }
    // No line end: it is not begun.
    assert_eq!(splitter.read(&mut input, |_| -> Option<((), usize)> { panic!("it is asked") }), None);
    assert_eq!(splitter.next(&mut input), None);
    // Nor is what has begun before.
    let mut input: &[u8] = b"\":{}}\n";
    assert_eq!(splitter.read(&mut input, object), None);
    assert_eq!(splitter.next(&mut input), Some(Piece::Value(b"{\"c\":{}}")));
}

#[test]
fn table() {
    let table: &[(&str, &[&str])] = &[
        ("", &[]),
        ("\n\r\n \n", &[]),
        // One per line, as servers send them; the last without its newline.
        ("{\"a\":1}\n{\"b\":2}\n", &["{\"a\":1}", "{\"b\":2}"]),
        ("{\"a\":1}\n{\"b\":2}", &["{\"a\":1}", "{\"b\":2}"]),
        ("{\"a\":1}\r\n{\"b\":2}\r\n", &["{\"a\":1}", "{\"b\":2}"]),
        ("\n\n{\"a\":1}\n\n \n{\"b\":2}\n", &["{\"a\":1}", "{\"b\":2}"]),
        // By value, not by line.
        ("{\"a\":1}{\"b\":2}  {\"c\":3}\n", &["{\"a\":1}", "{\"b\":2}", "{\"c\":3}"]),
        (
            "{\n  \"a\": [\n    {\n    },\n{}\n  ]\n}\n{}\n",
            &["{\n  \"a\": [\n    {\n    },\n{}\n  ]\n}", "{}"],
        ),
        ("{\"a\":\n{\"b\":1}\n}\n", &["{\"a\":\n{\"b\":1}\n}"]),
        ("[1,{}]\n{}\n", &["[1,{}]", "{}"]),
        // Brackets, quotes and line separators of Unicode inside of strings.
        (
            "{\"a\":\"}{][\\\"}\\\\\"}\n{\"b\":\"\u{2028}\u{85}\"}\n",
            &["{\"a\":\"}{][\\\"}\\\\\"}", "{\"b\":\"\u{2028}\u{85}\"}"],
        ),
        // A byte order mark at the start, and only there.
        ("\u{feff}{\"a\":1}\n", &["{\"a\":1}"]),
        ("{}\n\u{feff}{}\n{}\n", &["{}", "garbage:\u{feff}{}", "{}"]),
        // Garbage costs its line.
        ("<html>{}\n{\"a\":1}\n", &["garbage:<html>{}", "{\"a\":1}"]),
        ("{} oops\r\n{\"a\":1}\n", &["{}", "garbage:oops", "{\"a\":1}"]),
        ("null\n\"x{\"\n12\n{}\n", &["garbage:null", "garbage:\"x{\"", "garbage:12", "{}"]),
        ("}\n{}\n", &["garbage:}", "{}"]),
        ("error: etcdserver: no leader", &["garbage:error: etcdserver: no leader"]),
        // A value that breaks off at a line end costs itself: an open string, an open object.
        ("{\"a\":\"abc\n{\"b\":2}\n", &["garbage:{\"a\":\"abc", "{\"b\":2}"]),
        ("{\"a\":{\"b\":1}\n{\"c\":3}\n{\"d\":4}\n", &["garbage:{\"a\":{\"b\":1}", "{\"c\":3}", "{\"d\":4}"]),
        ("{\"a\":1\n\n  {\"c\":3}\n", &["garbage:{\"a\":1", "{\"c\":3}"]),
        ("{\"a\":\"b,\n{\"c\":3}\n", &["garbage:{\"a\":\"b,", "{\"c\":3}"]),
        ("{\"a\":\"b\nc\"}\n{}\n", &["garbage:{\"a\":\"b", "garbage:c\"}", "{}"]),
        // The end in the middle of a value.
        ("{\"a\":1}\n{\"b\":", &["{\"a\":1}", "truncated:{\"b\":"]),
        ("{", &["truncated:{"]),
    ];
    for (input, want) in table {
        assert_eq!(check_cuts(input.as_bytes()), *want, "{input:?}");
    }
}

#[test]
fn a_frame_beyond_the_limit_costs_only_itself() {
    let long = format!("{{\"name\":\"{}\"}}", "x".repeat(LIMIT));
    let fits = format!("{{\"n\":\"{}\"}}", "x".repeat(LIMIT - 8));
    assert_eq!(fits.len(), LIMIT);
    let got = check_cuts(format!("{fits}\n{long}{{\"a\":1}}\n{long}\n{long}x").as_bytes());
    let too_long = format!("too long:{}:{}", long.len(), &long[..Piece::START_BYTES]);
    assert_eq!(got, [&fits, &too_long, "{\"a\":1}", &too_long, &too_long, "garbage:x"]);
}

#[test]
fn an_endless_frame_and_endless_garbage_are_bounded() {
    for start in ["{\"a\":\"", "garbage", "{\"a\":{"] {
        let mut splitter = FrameSplitter::new(LIMIT);
        let mut part = start.as_bytes();
        assert_eq!(splitter.next(&mut part), None);
        for _ in 0..1000 {
            let mut part: &[u8] = &[b'x'; 4096];
            assert_eq!(splitter.next(&mut part), None);
            assert!(splitter.buffered() <= LIMIT && splitter.buffer.capacity() <= 2 * LIMIT);
        }
    }
}

#[test]
fn lent_from_the_input_where_it_lies_whole() {
    let bytes = b"{\"a\":1}\n".as_slice();
    let mut input = bytes;
    let mut splitter = FrameSplitter::new(LIMIT);
    let Some(Piece::Value(v)) = splitter.next(&mut input) else { panic!() };
    assert_eq!(v.as_ptr(), bytes.as_ptr());
}

/// Fragments that are likely to matter, in any order.
#[derive(Clone, Debug)]
struct Soup(Vec<u8>);

impl Arbitrary for Soup {
    fn arbitrary(g: &mut Gen) -> Self {
        let fragments = [
            "{",
            "}",
            "[",
            "]",
            "\"",
            "\\",
            "\n",
            "\r\n",
            " ",
            ",",
            ":",
            "{}",
            "{}\n",
            "\u{feff}",
            "null",
            "x",
            "{\"type\":\"ADDED\",\"object\":{\"a\":\"\\\"\"}}",
            "{\"a\":\"é\"}",
            "<html>",
        ];
        let n = usize::arbitrary(g) % 60;
        let mut bytes = vec![];
        for _ in 0..n {
            bytes.extend_from_slice(g.choose(&fragments).unwrap_or(&"").as_bytes());
            if u8::arbitrary(g) == 0 {
                bytes.extend(vec![b'y'; LIMIT - 10 + usize::arbitrary(g) % 20]);
            }
        }
        Self(bytes)
    }

    fn shrink(&self) -> alloc::boxed::Box<dyn Iterator<Item = Self>> {
        alloc::boxed::Box::new(self.0.shrink().map(Self))
    }
}

quickcheck! {
    fn cuts_change_nothing(soup: Soup, cuts: Vec<usize>) -> bool {
        let whole = pieces([soup.0.as_slice()]);
        let mut at: Vec<usize> = cuts.iter().map(|c| c % (soup.0.len() + 1)).collect();
        at.push(0);
        at.push(soup.0.len());
        at.sort_unstable();
        let parts = at.windows(2).map(|w| &soup.0[w[0]..w[1]]);
        whole == pieces(parts) && whole == pieces(soup.0.chunks(1))
    }

    fn lines_of_values_come_out_as_they_went_in(texts: Vec<(String, u32)>) -> bool {
        let lines: Vec<String> =
            texts.iter().map(|(s, n)| serde_json::json!({ "type": s, "object": { "n": n, "x": [s] } }).to_string()).collect();
        pieces([lines.join("\n").as_bytes()]) == lines
    }
}
