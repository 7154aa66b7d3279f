use alloc::string::{String, ToString};
use alloc::vec::Vec;
use alloc::{format, vec};

use quickcheck::{Arbitrary, Gen, quickcheck};

use super::{ListHead, ListSplitter};
use crate::wire::tests::object;
use crate::wire::{Piece, WireError};

const LIMIT: usize = 1500;

type Verdict = (Vec<String>, Result<ListHead, WireError>);

fn split<'a>(parts: impl IntoIterator<Item = &'a [u8]>) -> Verdict {
    take(parts, false)
}

fn take<'a>(parts: impl IntoIterator<Item = &'a [u8]>, ahead: bool) -> Verdict {
    let mut splitter = ListSplitter::new(LIMIT);
    let mut out = vec![];
    for mut part in parts {
        loop {
            if ahead && let Some(item) = splitter.read(&mut part, object) {
                out.push(item);
                continue;
            }
            match splitter.next(&mut part) {
                Ok(Some(Piece::Value(b))) => out.push(String::from_utf8_lossy(b).to_string()),
                Ok(Some(Piece::TooLong { bytes, start })) => {
                    out.push(format!("too long:{bytes}:{}", start.len()))
                }
                Ok(Some(other)) => panic!("{other:?}"),
                Ok(None) => break,
                Err(error) => {
                    assert_eq!(splitter.finish(), Err(error.clone()));
                    return (out, Err(error));
                }
            }
        }
        assert!(part.is_empty(), "the input is used up");
        assert!(splitter.buffered() <= super::MEMBER_BYTES);
    }
    (out, splitter.finish())
}

fn check_cuts(bytes: &[u8]) -> Verdict {
    let whole = split([bytes]);
    assert_eq!(take([bytes], true), whole, "read ahead: {:?}", String::from_utf8_lossy(bytes));
    assert_eq!(split(bytes.chunks(1)), whole, "byte by byte: {:?}", String::from_utf8_lossy(bytes));
    for cut in (0..=bytes.len()).step_by((bytes.len() / 400).max(1)) {
        let (a, b) = bytes.split_at(cut);
        for ahead in [false, true] {
            assert_eq!(take([a, b], ahead), whole, "cut at {cut}: {:?}", String::from_utf8_lossy(bytes));
        }
    }
    whole
}

#[test]
fn what_is_read_ahead_is_taken() {
    let mut splitter = ListSplitter::new(LIMIT);
    let mut input: &[u8] = br#"{"items":[{"a":1}, {"b":{}},{"c":[]},{"d":0},{"#;
    assert_eq!(splitter.read(&mut input, object), None, "no item begins here");
    assert_eq!(splitter.next(&mut input), Ok(Some(Piece::Value(br#"{"a":1}"#))));
    for want in [r#"{"b":{}}"#, r#"{"c":[]}"#] {
        assert_eq!(splitter.read(&mut input, object).as_deref(), Some(want));
    }
    assert_eq!(splitter.read(&mut input, object).as_deref(), Some(r#"{"d":0}"#));
    // Shorter than the last one: it is not begun.
    assert_eq!(splitter.read(&mut input, |_| -> Option<((), usize)> { panic!("it is asked") }), None);
    assert_eq!(splitter.next(&mut input), Ok(None));
    let mut input: &[u8] = b"}]}";
    assert_eq!(splitter.read(&mut input, object), None, "it has begun before");
    assert_eq!(splitter.next(&mut input), Ok(Some(Piece::Value(b"{}"))));
    assert_eq!(splitter.read(&mut input, object), None, "there are no more");
    assert_eq!(splitter.next(&mut input), Ok(None));
    assert!(splitter.finish().is_ok());
}

#[test]
fn members_in_any_order() {
    let want = ListHead {
        kind: "PodList".into(),
        api_version: "v1".into(),
        resource_version: "12".into(),
        continue_token: "eyJ2IjoibWV0YS5rOHMuaW8vdjEifQ".into(),
        remaining_item_count: Some(7),
    };
    let members = [
        r#""kind":"PodList""#,
        r#""apiVersion" : "v1""#,
        r#""metadata":{"resourceVersion":"12","continue":"eyJ2IjoibWV0YS5rOHMuaW8vdjEifQ","remainingItemCount":7}"#,
        r#""items": [ {"a":"]"} ,{"b":[{"items":[1]}]}]"#,
        r#""extra":{"items":[{"not":"me"}],"metadata":{"resourceVersion":"99"}}"#,
    ];
    for turn in 0..members.len() {
        let mut turned = members;
        turned.rotate_left(turn);
        for swapped in [false, true] {
            if swapped {
                turned.reverse();
            }
            let (items, head) = check_cuts(format!("{{{}}}\n", turned.join(",\n ")).as_bytes());
            assert_eq!(items, [r#"{"a":"]"}"#, r#"{"b":[{"items":[1]}]}"#]);
            assert_eq!(head.as_ref(), Ok(&want));
        }
    }
}

#[test]
fn lists_that_are_fine() {
    for (text, items, version) in [
        (r#"{"items":[]}"#, 0, ""),
        (r#"{"items":null,"metadata":{"resourceVersion":"5"}}"#, 0, "5"),
        (r#"{"kind":null,"items":[],"metadata":null}"#, 0, ""),
        (
            r#"{"items":[],"metadata":{"resourceVersion":null,"continue":null,"remainingItemCount":null}}"#,
            0,
            "",
        ),
        (r#"{"items":[],"metadata":{"resourceVersion":"1","resourceVersion":"2"}}"#, 0, "2"),
        (r#"{"items":[],"metadata":{"resourceVersion":276}}"#, 0, "276"),
        // What an item is, is for the decoder to say.
        (r#"{"items":[null, {} ,1,"x",[true]]}"#, 5, ""),
        ("\u{feff}\n {\"items\":[{}]}\n\n", 1, ""),
        (r#"{"a":-1.5e3,"b":true,"items":[{}],"c":"\\\""}"#, 1, ""),
    ] {
        let (got, head) = check_cuts(text.as_bytes());
        assert_eq!(got.len(), items, "{text}");
        assert_eq!(head.unwrap().resource_version, version, "{text}");
    }
}

#[test]
fn what_is_not_a_list_is_an_error_and_never_an_empty_list() {
    for (text, want) in [
        ("", "connection closed in the middle of a list: the body is empty"),
        ("<!DOCTYPE html>\n<html>", "not a JSON list: the answer begins with \"<!DOCTYPE html>\""),
        ("404 page not found\n", "not a JSON list: the answer begins with \"404 page not found\""),
        ("k8s\0\n\u{c}", "not a JSON list: the answer begins with \"k8s\\0\""),
        ("[{}]", "not a JSON list: the answer begins with \"[{}]\""),
        ("null", "not a JSON list: the answer begins with \"null\""),
        (
            r#"{"kind":"Status","status":"Failure","message":"no"}"#,
            "not a list but a Status: the answer begins with \"{\\\"kind\\\":\\\"Status\\\",\\\"status\\\":\\\"Failure\\\",\\\"message\\\":\\\"no\\\"}\"",
        ),
        (
            r#"{"kind":"Table","columnDefinitions":[],"rows":[{"object":{}}]}"#,
            "not a list but a Table: the answer begins with \"{\\\"kind\\\":\\\"Table\\\",\\\"columnDefinitions\\\":[],\\\"rows\\\":[{\\\"object\\\":{}}]}\"",
        ),
        (
            r#"{"items":[{}],"kind":"Status"}"#,
            "not a list but a Status: the answer begins with \"{\\\"items\\\":[{}],\\\"kind\\\":\\\"Status\\\"}\"",
        ),
        (r#"{"kind":"Pod"}"#, "not a list but a Pod: the answer begins with \"{\\\"kind\\\":\\\"Pod\\\"}\""),
        ("{}", "not a list: the answer begins with \"{}\""),
        (r#"{"items":{}}"#, "broken list: its items are not an array"),
        (r#"{"items":7}"#, "broken list: its items are not an array"),
        (r#"{"items":[],"items":[]}"#, "broken list: it has items twice"),
        (r#"{"items":[{}"#, "connection closed in the middle of a list"),
        (r#"{"items":[{}]"#, "connection closed in the middle of a list"),
        (r#"{"items":[{}],"#, "connection closed in the middle of a list"),
        (r#"{"items":[{}{}]}"#, "broken list: a comma or the end is expected after an item"),
        (r#"{"items":[{},]}"#, "broken list: a value is expected"),
        (r#"{"items":[],}"#, "broken list: a member name is expected"),
        (r#"{"items":[]}}"#, "broken list: something follows its end"),
        (r#"{"items" []}"#, "broken list: a colon is expected"),
        (r#"{"items":[],"metadata":[]}"#, "broken list: its metadata is not an object"),
        (
            r#"{"items":[],"metadata":{"resourceVersion":{}}}"#,
            "broken list: a member of its metadata has the wrong type",
        ),
        (r#"{"items":[],"kind":3}"#, "broken list: its kind or apiVersion is not a string"),
    ] {
        let (_, head) = check_cuts(text.as_bytes());
        assert_eq!(head.unwrap_err().to_string(), want, "{text}");
    }
}

#[test]
fn an_item_beyond_the_limit_costs_only_itself() {
    let long = format!("{{\"a\":\"{}\"}}", "x".repeat(LIMIT));
    let (items, head) = check_cuts(format!("{{\"items\":[{{}},{long},[1]],\"kind\":\"L\"}}").as_bytes());
    assert_eq!(
        items,
        ["{}".to_string(), format!("too long:{}:{}", long.len(), Piece::START_BYTES), "[1]".to_string()]
    );
    assert_eq!(head.unwrap().kind, "L");
}

#[test]
fn memory_is_bounded_whatever_comes() {
    for start in ["{\"items\":[\"", "{\"", "{\"other\":\"", "{\"items\":[{", "<", " ", "{\"items\":[1"] {
        let mut splitter = ListSplitter::new(LIMIT);
        let mut part = start.as_bytes();
        assert_eq!(splitter.next(&mut part), Ok(None), "{start}");
        for _ in 0..1000 {
            let mut part: &[u8] = &[b'x'; 4096];
            let _ = splitter.next(&mut part);
            assert!(splitter.buffer.capacity() <= 2 * LIMIT.max(Piece::START_BYTES), "{start}");
        }
    }
    let mut splitter = ListSplitter::new(LIMIT);
    let mut bytes = b"{\"metadata\":\"".to_vec();
    bytes.extend(vec![b'x'; super::MEMBER_BYTES]);
    assert!(splitter.next(&mut bytes.as_slice()).is_err());
}

#[test]
fn deep_nesting_is_only_bytes() {
    let mut bytes = b"{\"items\":[".to_vec();
    bytes.extend(vec![b'['; 100_000]);
    bytes.extend(vec![b']'; 100_000]);
    bytes.extend(b"],\"metadata\":{\"a\":");
    bytes.extend(vec![b'['; 100_000]);
    bytes.extend(vec![b']'; 100_000]);
    bytes.extend(b"}}");
    let (items, head) = split([bytes.as_slice()]);
    assert_eq!(items.len(), 1);
    assert_eq!(head, Err(WireError::BadList("its metadata is not an object")));
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
            " ",
            ",",
            ":",
            "{}",
            "\"items\":",
            "\"items\":[{},",
            "\"kind\":\"L\",",
            "\"metadata\":{\"resourceVersion\":\"1\"}",
            "null",
            "x",
            "1",
            ",{\"a\":[\"]\"]}",
            "\u{feff}",
            "]}",
        ];
        let mut bytes = if bool::arbitrary(g) { b"{".to_vec() } else { vec![] };
        for _ in 0..usize::arbitrary(g) % 40 {
            bytes.extend_from_slice(g.choose(&fragments).unwrap_or(&"").as_bytes());
        }
        Self(bytes)
    }

    fn shrink(&self) -> alloc::boxed::Box<dyn Iterator<Item = Self>> {
        alloc::boxed::Box::new(self.0.shrink().map(Self))
    }
}

quickcheck! {
    fn cuts_change_nothing(soup: Soup, cuts: Vec<usize>) -> bool {
        let whole = split([soup.0.as_slice()]);
        let mut at: Vec<usize> = cuts.iter().map(|c| c % (soup.0.len() + 1)).collect();
        at.push(0);
        at.push(soup.0.len());
        at.sort_unstable();
        let parts = at.windows(2).map(|w| &soup.0[w[0]..w[1]]);
        whole == split(parts) && whole == split(soup.0.chunks(1))
    }

    fn valid_lists_split_as_serde_json_reads_them(texts: Vec<(String, u32)>, pretty: bool) -> bool {
        let items: Vec<_> = texts.iter().map(|(s, n)| serde_json::json!({ "n": n, "x": [s], s.as_str(): { "y": s } })).collect();
        let list = serde_json::json!({ "items": items, "kind": "L", "metadata": { "resourceVersion": "3" } });
        let text = if pretty { format!("{list:#}") } else { list.to_string() };
        let (got, head) = split([text.as_bytes()]);
        let got: Vec<serde_json::Value> =
            got.iter().filter(|g| !g.starts_with("too long")).map(|g| serde_json::from_str(g).unwrap()).collect();
        head.unwrap().resource_version == "3" && (got == items || text.len() > LIMIT)
    }
}
