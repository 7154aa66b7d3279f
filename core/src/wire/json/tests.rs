use alloc::vec::Vec;

use quickcheck::{Arbitrary, Gen, quickcheck};

use super::{Scanner, Stop};

/// Bytes that matter to the scanner, far more often than chance would have them.
#[derive(Clone, Debug)]
struct Soup(Vec<u8>);

impl Arbitrary for Soup {
    fn arbitrary(g: &mut Gen) -> Self {
        let n = usize::arbitrary(g) % 400;
        let pools: [&[u8]; 3] = [b"\"\\{}[]a\n", b"aaaaaaaaaaaaaaaaaaaa\"\\{[}", b"\\\\\\\"{}a"];
        let pool = g.choose(&pools).copied().unwrap_or_default();
        Self((0..n).map(|_| *g.choose(pool).unwrap_or(&b'a')).collect())
    }

    fn shrink(&self) -> alloc::boxed::Box<dyn Iterator<Item = Self>> {
        alloc::boxed::Box::new(self.0.shrink().map(Self))
    }
}

fn reference<const LINES: bool>(s: &mut Scanner, bytes: &[u8]) -> Stop {
    s.bytewise::<LINES>(bytes)
}

quickcheck! {
    fn blocks_do_what_bytes_do(soup: Soup, deep: u8) -> bool {
        let start = alloc::vec![b'['; usize::from(deep)];
        let bytes = [start, soup.0].concat();
        let (mut fast, mut slow) = (Scanner::new(), Scanner::new());
        let mut same = fast.scan(&bytes) == reference::<false>(&mut slow, &bytes) && fast == slow;
        let (mut fast, mut slow) = (Scanner::new(), Scanner::new());
        same &= fast.scan_line(&bytes) == reference::<true>(&mut slow, &bytes) && fast == slow;
        same
    }

    fn a_cut_changes_nothing(soup: Soup, deep: u8, cut: usize) -> bool {
        let bytes = [alloc::vec![b'{'; usize::from(deep)], soup.0].concat();
        let whole = Scanner::new().scan(&bytes);
        let (a, b) = bytes.split_at(cut % (bytes.len() + 1));
        let mut s = Scanner::new();
        let parts = match s.scan(a) {
            Stop::More => match s.scan(b) {
                Stop::End(n) => Stop::End(a.len() + n),
                stop => stop,
            },
            stop => stop,
        };
        whole == parts
    }
}

#[test]
fn ends() {
    for (text, end) in [
        (r#"{}"#, Some(2)),
        (r#"{"a":{"b":[1,2,{}]}}x"#, Some(20)),
        (r#"{"a":"}"}"#, Some(9)),
        (r#"{"a":"\"}"}"#, Some(11)),
        (r#"{"a":"\\"}"#, Some(10)),
        (r#""abc"def"#, Some(5)),
        (r#""a\"c"def"#, Some(6)),
        (r#"[[[[[]"#, None),
        (r#"{"a":"#, None),
    ] {
        let want = end.map_or(Stop::More, Stop::End);
        assert_eq!(Scanner::new().scan(text.as_bytes()), want, "{text}");
    }
}

#[test]
fn depth_is_only_a_number() {
    let mut deep = alloc::vec![b'['; 5_000_000];
    deep.extend(alloc::vec![b']'; 5_000_000]);
    assert_eq!(Scanner::new().scan(&deep), Stop::End(10_000_000));
}
