use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use std::boxed::Box;

use quickcheck::{Arbitrary, Gen};
use serde_json::Value;

use super::super::{Object, ObjectOptions};
use super::*;

fn dropped(pointers: &[&str]) -> Dropped {
    pointers.iter().try_fold(Dropped::none(), |all, p| all.and(p)).unwrap()
}

fn without(json: &str, pointers: &[&str]) -> Object {
    let options = ObjectOptions::default().dropping(dropped(pointers));
    Object::from_json_with(json.as_bytes(), &options).unwrap()
}

#[test]
fn what_is_pointed_to_is_cut_and_nothing_else() {
    const M: &str = r#""metadata":{"name":"a"}"#;
    for (json, pointers, kept) in [
        (r#"{M,"status":{"x":[1]},"spec":1}"#, &["/status"][..], r#"{M,"spec":1}"#),
        (r#"{"status":{},"data":{"k":"v"},M}"#, &["/status", "/data"], "{M}"),
        (r#"{M,"data":{"a":"1","b":"2","c":"3"}}"#, &["/data/a", "/data/c"], r#"{M,"data":{"b":"2"}}"#),
        // What is not there, or is no container.
        (r#"{M,"data":"text"}"#, &["/data/a", "/spec", "/nothing/at/all"], r#"{M,"data":"text"}"#),
        (r#"{M,"data":null}"#, &["/data/a"], r#"{M,"data":null}"#),
        // Of arrays, by the index as it came; a step that is no index is none.
        (r#"{M,"s":[0,1,2,3]}"#, &["/s/0", "/s/2", "/s/9"], r#"{M,"s":[1,3]}"#),
        (r#"{M,"s":[0]}"#, &["/s/0"], r#"{M,"s":[]}"#),
        (r#"{M,"s":[0,1]}"#, &["/s/-", "/s/01", "/s/+1", "/s/"], r#"{M,"s":[0,1]}"#),
        (r#"{M,"s":{"01":1,"-":2,"":3,"0":4}}"#, &["/s/01", "/s/-", "/s/"], r#"{M,"s":{"0":4}}"#),
        (
            r#"{M,"spec":{"containers":[{"env":[1],"image":"i"},{"env":[2]}]}}"#,
            &["/spec/containers/0/env"],
            r#"{M,"spec":{"containers":[{"image":"i"},{"env":[2]}]}}"#,
        ),
        // Escapes, in the pointer and in the name; every one of several.
        (r#"{M,"a/b":1,"m~n":2,"~1":3}"#, &["/a~1b", "/m~0n"], r#"{M,"~1":3}"#),
        (r#"{M,"~1":3}"#, &["/~01"], "{M}"),
        (r#"{M,"\u0073tatus":1,"status":2,"spec":3}"#, &["/status"], r#"{M,"spec":3}"#),
        (r#"{"d":{"x":1,"y":2},M,"d":{"y":3,"x":4}}"#, &["/d/x"], r#"{"d":{"y":2},M,"d":{"y":3}}"#),
        // The shorter of two pointers.
        (r#"{M,"d":{"x":1}}"#, &["/d", "/d/x"], "{M}"),
        (r#"{M,"d":{"x":1}}"#, &["/d/x", "/d"], "{M}"),
    ] {
        let (json, kept) = (json.replace('M', M), kept.replace('M', M));
        let o = without(&json, pointers);
        assert_eq!((o.json(), o.name()), (&*kept, "a"), "{json} {pointers:?}");
    }
}

#[test]
fn fields_that_are_cut_are_absent_and_those_around_them_are_found() {
    let json = r#"{"kind":"Pod","metadata":{"labels":{"x":"1","\u0079":"2","z":"3"},"creationTimestamp":"2026-01-02T03:04:05Z",
        "managedFields":[{"time":"t"},{}],"annotations":{"a":"1","last/applied":"{\"x\":1}","b":"2"},"name":"a",
        "labels":{"x":"4","\u0079":"5","z":"6"},"uid":"u"},"apiVersion":"v1"}"#;
    let o = without(
        json,
        &[
            "/metadata/labels/y",
            "/metadata/annotations/last~1applied",
            "/metadata/creationTimestamp",
            "/metadata/managedFields/0",
        ],
    );
    assert_eq!(o.labels().collect::<Vec<_>>(), [("x", "4"), ("z", "6")]);
    assert_eq!(o.annotations().map(|(k, v)| format!("{k}={v}")).collect::<Vec<_>>(), ["a=1", "b=2"]);
    assert_eq!((o.kind(), o.api_version(), o.name(), o.uid()), ("Pod", "v1", "a", "u"));
    assert_eq!(o.creation_timestamp(), None);
    assert_eq!(o.raw_at(&["metadata", "managedFields"]), Some("[{}]"));

    let o = without(json, &["/metadata/labels", "/metadata/annotations"]);
    assert_eq!((o.labels().count(), o.annotations().count(), o.name(), o.uid()), (0, 0, "a", "u"));
    // What nobody will see may be of any type.
    let odd = r#"{"metadata":{"labels":{"x":{},"y":"1"},"annotations":7,"name":"a"}}"#;
    let o = without(odd, &["/metadata/labels/x", "/metadata/annotations"]);
    assert_eq!(o.json(), r#"{"metadata":{"labels":{"y":"1"},"name":"a"}}"#);
}

#[test]
fn metadata_alone_is_kept_whatever_came() {
    let options =
        ObjectOptions::default().dropping(dropped(&["/spec/x", "/metadata/labels/l"])).metadata_only();
    let json = br#"{"spec":{"x":1},"metadata":{"labels":{"l":"1"},"name":"a"},"kind":"Pod","data":[],"apiVersion":"v1"}"#;
    let o = Object::from_json_with(json, &options).unwrap();
    assert_eq!(o.json(), r#"{"metadata":{"labels":{},"name":"a"},"kind":"Pod","apiVersion":"v1"}"#);
    assert_eq!((o.kind(), o.api_version(), o.name()), ("Pod", "v1", "a"));
}

#[test]
fn bad_pointers_are_refused_by_name() {
    for (pointer, why) in [
        ("", "that is the whole object"),
        ("status", "a JSON pointer begins with `/`"),
        ("/a~", "in a JSON pointer `~` is followed by 0 or 1"),
        ("/a~2b", "in a JSON pointer `~` is followed by 0 or 1"),
        ("/a/~~1", "in a JSON pointer `~` is followed by 0 or 1"),
        ("/apiVersion", "it says what the object is"),
        ("/kind", "it says what the object is"),
        ("/metadata", "it says who the object is"),
        ("/metadata/name", "it is the object's key"),
        ("/metadata/name/x", "it is the object's key"),
        ("/metadata/ownerReferences/0", "they say whom the object concerns"),
        ("/metadata/finalizers", "a change of them would lose those that were not seen"),
        ("/metadata/deletionTimestamp", "it says that the object is ending"),
    ] {
        let e = Dropped::default().and(pointer).unwrap_err();
        assert_eq!((e.pointer.as_str(), e.why), (pointer, why));
        assert!(e.to_string().contains(&format!("{pointer:?}")), "{e}");
    }
    for field in ["namespace", "uid", "resourceVersion", "generation", "ownerReferences"] {
        Dropped::none().and(&format!("/metadata/{field}")).unwrap_err();
    }
    Dropped::none().and(&"/x".repeat(64)).unwrap();
    Dropped::none().and(&"/x".repeat(65)).unwrap_err();
    // Of the same name elsewhere.
    dropped(&["/spec/metadata", "/spec/kind", "/Metadata", "/metadata/names", "/"]);
}

#[test]
fn equal_sets_are_equal_however_they_were_said() {
    let one = dropped(&["/b/c", "/a~1x", "/b"]);
    assert_eq!(one, dropped(&["/b", "/a~1x", "/b/d/e"]));
    assert_eq!(
        (one.pointers(), one.to_string()),
        (["/a~1x", "/b"].map(String::from).into(), "/a~1x, /b".into())
    );
    assert_ne!(one, one.clone().and("/c").unwrap());
    assert_eq!((Dropped::none().to_string(), Dropped::none().is_none()), ("nothing".into(), true));
    assert_eq!(Dropped::default().pointers(), ["/metadata/managedFields"]);
    let json = serde_json::to_string(&one).unwrap();
    assert_eq!(json, r#"["/a~1x","/b"]"#);
    assert_eq!(serde_json::from_str::<Dropped>(&json).unwrap(), one);
    assert!(serde_json::from_str::<Dropped>(r#"["/kind"]"#).unwrap_err().to_string().contains("/kind"));
}

#[test]
fn depth_and_numbers_of_cuts_are_no_danger() {
    let deep = format!(r#"{{"metadata":{{"name":"a"}},"x":{}1{}}}"#, "[".repeat(9990), "]".repeat(9990));
    assert_eq!(without(&deep, &["/x"]).json(), r#"{"metadata":{"name":"a"}}"#);
    let below = "/x".to_owned() + &"/0".repeat(63);
    let o = without(&deep, &[&below]);
    assert_eq!(o.raw_at(&["x"]), Some(&*("[".repeat(63) + &"]".repeat(63))));
    let many = format!(r#"{{{}"metadata":{{"name":"a"}}}}"#, r#""s":0,"#.repeat(200_000));
    assert_eq!(without(&many, &["/s"]).json(), r#"{"metadata":{"name":"a"}}"#);
}

/// An object of few names, so that pointers hit.
#[derive(Clone, Debug)]
struct Case {
    json: String,
    pointers: Vec<String>,
}

const NAMES: [&str; 9] = ["a", "\\u0061", "b", "0", "1", "a/b", "~", "labels", "annotations"];

fn tree(g: &mut Gen, depth: usize) -> String {
    let n = usize::arbitrary(g) % 4;
    let space = *g.choose(&["", " ", "\n\t"]).unwrap();
    match usize::arbitrary(g) % if depth == 0 { 2 } else { 4 } {
        2 => format!("[{space}{}{space}]", (0..n).map(|_| tree(g, depth - 1)).collect::<Vec<_>>().join(",")),
        3 => members(g, n, |g| tree(g, depth - 1)),
        _ => (*g.choose(&["1", "\"x\"", "null", "{}", "[]", "\"\\n\""]).unwrap()).to_string(),
    }
}

fn members(g: &mut Gen, n: usize, mut value: impl FnMut(&mut Gen) -> String) -> String {
    let space = *g.choose(&["", " ", "\n"]).unwrap();
    let all: Vec<_> = (0..n)
        .map(|_| format!("{space}\"{}\"{space}:{space}{}{space}", g.choose(&NAMES).unwrap(), value(g)))
        .collect();
    format!("{{{}}}", all.join(","))
}

impl Arbitrary for Case {
    fn arbitrary(g: &mut Gen) -> Self {
        let text = |g: &mut Gen| (*g.choose(&["\"1\"", "\"\\u0032\"", "null"]).unwrap()).to_string();
        let meta = |g: &mut Gen| {
            let (l, a) = (members(g, 3, text), members(g, 3, text));
            let tail = members(g, 2, |g| format!("null,\"x\":{}", tree(g, 2)));
            let mut all =
                [format!("\"labels\":{l}"), format!("\"annotations\":{a}"), "\"name\":\"n\"".into(), {
                    format!("\"managedFields\":{}", tail)
                }];
            all.rotate_left(usize::arbitrary(g) % 4);
            format!("{{{}}}", all.join(","))
        };
        let mut all: Vec<String> = (0..usize::arbitrary(g) % 4)
            .map(|_| format!("\"{}\":{}", g.choose(&NAMES).unwrap(), tree(g, 3)))
            .collect();
        for _ in 0..=usize::arbitrary(g) % 2 {
            all.push(format!("\"metadata\":{}", meta(g)));
        }
        let turn = usize::arbitrary(g) % all.len();
        all.rotate_left(turn);
        let pointers = (0..usize::arbitrary(g) % 5)
            .map(|_| {
                let mut path = Vec::new();
                if bool::arbitrary(g) {
                    path.push("metadata");
                    path.push(*g.choose(&["labels", "annotations", "managedFields", "x"]).unwrap());
                } else {
                    path.push(*g.choose(&["a", "b", "a/b", "~"]).unwrap());
                }
                for _ in 0..usize::arbitrary(g) % 3 {
                    path.push(*g.choose(&["a", "b", "0", "1", "a/b", "~", "x"]).unwrap());
                }
                pointer(&path)
            })
            .collect();
        Self { json: format!("{{{}}}", all.join(" ,")), pointers }
    }

    fn shrink(&self) -> Box<dyn Iterator<Item = Self>> {
        let one = self.clone();
        Box::new((0..self.pointers.len()).map(move |i| {
            let mut fewer = one.clone();
            fewer.pointers.remove(i);
            fewer
        }))
    }
}

/// The pointers' places are found first and removed together, the last ones first.
fn naive(mut value: Value, pointers: &[String]) -> Value {
    let mut there: Vec<Vec<String>> = pointers
        .iter()
        .filter(|p| value.pointer(p).is_some())
        .map(|p| p[1..].split('/').map(|s| s.replace("~1", "/").replace("~0", "~")).collect())
        .collect();
    // Longer ones first, then by index from the end.
    there.sort_by_key(|path| {
        let last = path.last().and_then(|s| s.parse::<u64>().ok()).unwrap_or(0);
        (core::cmp::Reverse(path.len()), core::cmp::Reverse(last))
    });
    there.dedup();
    for path in there {
        let (last, up) = path.split_last().unwrap();
        let up = pointer(&up.iter().map(String::as_str).collect::<Vec<_>>());
        match value.pointer_mut(&up) {
            Some(Value::Object(map)) => drop(map.remove(last)),
            Some(Value::Array(all)) => drop(all.remove(last.parse().unwrap())),
            _ => {}
        }
    }
    value
}

#[test]
fn dropping_agrees_with_a_naive_model() {
    fn agrees(case: Case) -> bool {
        let right = naive(serde_json::from_str(&case.json).unwrap(), &case.pointers);
        let pointers: Vec<_> = case.pointers.iter().map(String::as_str).collect();
        let options = ObjectOptions::default().dropping(dropped(&pointers));
        let o = Object::from_json_with(case.json.as_bytes(), &options).unwrap();
        let labels: Vec<_> = o.labels().map(|(k, _)| k).collect();
        let annotations: Vec<_> = o.annotations().map(|(k, _)| k.into_owned()).collect();
        let all = |name: &str, seen: &[String]| match right["metadata"][name].as_object() {
            Some(map) => map.keys().all(|k| seen.contains(k)) && seen.iter().all(|k| map.contains_key(k)),
            None => seen.is_empty(),
        };
        o.value().unwrap() == right
            && o.name() == "n"
            && all("labels", &labels.iter().map(ToString::to_string).collect::<Vec<_>>())
            && all("annotations", &annotations)
            // Cut once is cut for good.
            && Object::from_json_with(o.raw(), &ObjectOptions::whole()).unwrap() == o
    }
    crate::cases::cases(5000).quickcheck(agrees as fn(Case) -> bool);
}
