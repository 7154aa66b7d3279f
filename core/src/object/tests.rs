use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use quickcheck::{Arbitrary, Gen};
use serde_json::{Value, json};

use super::scan::MAX_DEPTH;
use super::*;

fn read(json: &str) -> Object {
    Object::from_json(json.as_bytes()).unwrap()
}

fn refused(json: &str) -> ObjectError {
    Object::from_json(json.as_bytes()).unwrap_err()
}

#[test]
fn fields_are_where_they_are_whatever_is_cut_and_put_in() {
    let json = r#" {"kind":"ConfigMap","apiVersion":"v1","metadata":{"managedFields":[{"x":{}}],"name":"a","namespace":"n",
        "uid":"u-1","resourceVersion":"41","generation":3,"creationTimestamp":"2026-01-02T03:04:05Z","labels":{"l":"1","m":"2"},
        "annotations":{"a":"q\"q"},"finalizers":["f/1","f/2"],"ownerReferences":[{"apiVersion":"apps/v1","kind":"Deployment",
        "name":"d","uid":"u-0","controller":true,"blockOwnerDeletion":null}],"deletionTimestamp":null},"data":{"k":"v"}} "#;
    for options in [ObjectOptions::default(), ObjectOptions::whole()] {
        let o = Object::from_json_with(json.as_bytes(), &options).unwrap();
        assert_eq!(o.json().contains("managedFields"), options.dropped.is_none());
        assert_eq!((o.api_version(), o.kind(), o.name()), ("v1", "ConfigMap", "a"));
        assert_eq!((o.namespace(), o.uid(), o.resource_version()), (Some("n"), "u-1", "41"));
        assert_eq!((o.generation(), o.deletion_timestamp()), (Some(3), None));
        assert_eq!(o.creation_timestamp(), Some("2026-01-02T03:04:05Z"));
        assert_eq!(o.labels().collect::<Vec<_>>(), [("l", "1"), ("m", "2")]);
        assert_eq!(o.annotation("a").as_deref(), Some("q\"q"));
        assert_eq!(o.finalizers().collect::<Vec<_>>(), ["f/1", "f/2"]);
        let owner = o.controller_owner().unwrap();
        assert_eq!((&*owner.uid, owner.controller, owner.block_owner_deletion), ("u-0", Some(true), None));
        assert!(o.is_owned_by("u-0") && !o.is_owned_by("u-1"));
        assert_eq!(o.value().unwrap()["data"]["k"], "v");
        assert_eq!(format!("{o:?}"), "ConfigMap(n/a @41)");
        assert_eq!(serde_json::to_string(&o).unwrap(), o.json());
        assert_eq!(serde_json::from_str::<Object>(read(json).json()).unwrap(), read(json));
    }
}

#[test]
fn cutting_members_leaves_an_object_wherever_they_stand() {
    for (json, kept) in [
        (r#"{"metadata":{"managedFields":[],"name":"a"}}"#, r#"{"metadata":{"name":"a"}}"#),
        (r#"{"metadata":{"name":"a","managedFields":[]}}"#, r#"{"metadata":{"name":"a"}}"#),
        (
            r#"{"metadata":{"name":"a" , "managedFields":[] , "uid":"u"}}"#,
            r#"{"metadata":{"name":"a"  , "uid":"u"}}"#,
        ),
        (
            r#"{"metadata":{"managedFields":1,"managedFields":2,"name":"a","managedFields":3}}"#,
            r#"{"metadata":{"name":"a"}}"#,
        ),
        (
            r#"{"metadata":{"managedFields":1},"metadata":{"name":"a"}}"#,
            r#"{"metadata":{},"metadata":{"name":"a"}}"#,
        ),
        (
            r#"{"m":0,"metadata":{"name":"a","managed\u0046ields":[{}]}}"#,
            r#"{"m":0,"metadata":{"name":"a"}}"#,
        ),
    ] {
        let o = read(json);
        assert_eq!((o.json(), o.name()), (kept, "a"), "{json}");
    }
}

#[test]
fn items_get_the_type_that_was_asked_for() {
    let options =
        ObjectOptions { default_type: Some(("apps/v1".into(), "Deploy\"ment".into())), ..Default::default() };
    for (json, kept) in [
        (
            r#"{"metadata":{"name":"a"}}"#,
            r#"{"kind":"Deploy\"ment","apiVersion":"apps/v1","metadata":{"name":"a"}}"#,
        ),
        (
            r#"{"kind":null,"metadata":{"name":"a"}}"#,
            r#"{"kind":"Deploy\"ment","apiVersion":"apps/v1","metadata":{"name":"a"}}"#,
        ),
        (
            r#"{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":{"name":"a"}}"#,
            r#"{"kind":"Deploy\"ment","apiVersion":"apps/v1","metadata":{"name":"a"}}"#,
        ),
        (
            r#"{"metadata":{"name":"a"},"kind":"PartialObjectMetadata","x":1,"apiVersion":"meta.k8s.io/v1"}"#,
            r#"{"kind":"Deploy\"ment","apiVersion":"apps/v1","metadata":{"name":"a"},"x":1}"#,
        ),
    ] {
        let o = Object::from_json_with(json.as_bytes(), &options).unwrap();
        assert_eq!(
            (o.json(), o.kind(), o.api_version(), o.name()),
            (kept, "Deploy\"ment", "apps/v1", "a"),
            "{json}"
        );
    }
    // Of several the last counts, so what is put in comes after those that stay.
    let twice = br#"{"kind":"X","apiVersion":"x/v1","metadata":{"name":"a"},"kind":"","apiVersion":"meta.k8s.io/v1"}"#;
    let o = Object::from_json_with(twice, &options).unwrap();
    let kept = r#"{"kind":"X","apiVersion":"x/v1","metadata":{"name":"a"},"kind":"Deploy\"ment","apiVersion":"apps/v1"}"#;
    assert_eq!((o.json(), o.kind(), o.api_version(), o.name()), (kept, "Deploy\"ment", "apps/v1", "a"));
    let typed = br#"{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a"}}"#;
    let o = Object::from_json_with(typed, &options).unwrap();
    assert_eq!((o.raw(), o.kind(), o.api_version()), (&typed[..], "Pod", "v1"));
}

#[test]
fn go_writes_null_where_there_is_nothing() {
    let o = read(
        r#"{"kind":null,"metadata":{"name":"a","namespace":null,"uid":null,"generation":null,"labels":null,
        "annotations":null,"finalizers":null,"ownerReferences":null,"deletionTimestamp":null}}"#,
    );
    assert_eq!((o.kind(), o.namespace(), o.uid(), o.generation()), ("", None, "", None));
    assert_eq!((o.labels().count(), o.annotations().count(), o.finalizers().count()), (0, 0, 0));
    assert!(o.owner_references().is_empty() && !o.is_deleting());
    let o =
        read(r#"{"metadata":{"name":"a","labels":{"x":null},"annotations":{"y":null},"finalizers":[null]}}"#);
    assert_eq!((o.label("x"), o.annotation("y").as_deref()), (Some(""), Some("")));
    assert_eq!(o.finalizers().collect::<Vec<_>>(), [""]);
}

#[test]
fn what_cannot_be_kept_says_what_is_wrong_and_whose_it_is() {
    let key = Some(Key::namespaced("n", "a"));
    for (json, message, has_key) in [
        ("", "not JSON: unexpected end of JSON at byte 0", false),
        ("null", "the object is null", false),
        ("[{}]", "the object is an array", false),
        ("{}", "metadata is missing in an object without a kind", false),
        (r#"{"kind":"Status","metadata":{}}"#, "metadata.name is missing in a Status", false),
        (r#"{"metadata":null,"kind":"Pod"}"#, "metadata is missing in a Pod", false),
        (
            r#"{"metadata":{"namespace":"n","name":""}}"#,
            "metadata.name is missing in an object without a kind",
            false,
        ),
        (r#"{"METADATA":{"name":"a"}}"#, "metadata is missing in an object without a kind", false),
        (r#"{"metadata":7}"#, "metadata is a number, not an object", false),
        (r#"{"metadata":{"name":7}}"#, "metadata.name is a number, not a string", false),
        (
            r#"{"metadata":{"resourceVersion":41,"name":"a","namespace":"n"}}"#,
            "metadata.resourceVersion is a number, not a string",
            true,
        ),
        (
            r#"{"metadata":{"labels":{"x":1},"name":"a","namespace":"n"}}"#,
            "metadata.labels is a number, not a string in every place",
            true,
        ),
        (
            r#"{"metadata":{"ownerReferences":[{"uid":true}],"name":"a","namespace":"n"}}"#,
            "a member of metadata.ownerReferences is a boolean, not a string",
            true,
        ),
        (
            r#"{"metadata":{"name":"a","namespace":"n"},"data":{"k":"x\ud800"}}"#,
            "not JSON: lone surrogate in a string at byte 55",
            true,
        ),
        (r#"{"metadata":{"name":"a","namespace":"n"},"x":01}"#, "not JSON: invalid number at byte 46", true),
        (r#"{"metadata":{"name":"a","namespace":"n"}} {}"#, "not JSON: trailing characters at byte 42", true),
        (r#"{"metadata":{"name":"a","namespace":"n"}"#, "not JSON: unexpected end of JSON at byte 40", true),
    ] {
        let e = refused(json);
        assert_eq!((e.message.as_str(), e.key), (message, key.clone().filter(|_| has_key)), "{json}");
    }
    let e =
        Object::from_json(b"{\"metadata\":{\"name\":\"a\",\"namespace\":\"n\"},\"x\":\"\xff\"}").unwrap_err();
    assert_eq!(e.to_string(), "n/a: not UTF-8");
}

#[test]
fn of_duplicate_members_the_last_counts() {
    let o = read(
        r#"{"metadata":{"name":"gone","uid":"gone"},"kind":"X","kind":"Y","metadata":{"name":"a","name":"b",
        "labels":{"x":"1"},"labels":{"y":"1","y":"2"},"annotations":{"z":"1","z":"2"}}}"#,
    );
    assert_eq!((o.name(), o.uid(), o.kind()), ("b", "", "Y"));
    assert_eq!((o.label("x"), o.label("y"), o.annotation("z").as_deref()), (None, Some("2"), Some("2")));
    assert_eq!(o.raw_at(&["metadata", "labels", "y"]), Some("\"2\""));
}

#[test]
fn nesting_is_bounded_and_costs_no_stack() {
    let nested = |depth: usize| {
        format!(r#"{{"metadata":{{"name":"a"}},"x":{}{}}}"#, "[".repeat(depth), "]".repeat(depth))
    };
    let deep = read(&nested(MAX_DEPTH));
    assert_eq!(deep.name(), "a");
    assert!(deep.value().unwrap_err().message.contains("recursion limit"));
    assert_eq!(
        refused(&nested(MAX_DEPTH + 1)).message,
        "not JSON: nested deeper than 10000 levels at byte 10030"
    );
    assert!(refused(&"[".repeat(1 << 20)).message.contains("array"));
    assert!(refused(&"{\"metadata\":".repeat(1 << 18)).key.is_none());
    // Objects and arrays are told apart at every level, across the words of the stack.
    for depth in [63, 64, 65, 127, 128, 129, 300] {
        let mut json = String::from("1");
        for i in 0..depth {
            json = if i % 3 == 0 { format!("[{json},2]") } else { format!("{{\"k\":{json},\"l\":3}}") };
        }
        read(&format!(r#"{{"x":{json},"metadata":{{"name":"a"}}}}"#));
        let broken = json.replacen('}', "]", 1);
        assert!(
            refused(&format!(r#"{{"x":{broken},"metadata":{{"name":"a"}}}}"#))
                .message
                .contains("expected `,`")
        );
    }
}

#[test]
fn memory_is_near_the_bytes_on_the_wire() {
    for length in [10, 200, 20_000, 3_000_000] {
        let json = format!(
            r#"{{"data":"{}","metadata":{{"name":"a","labels":{{"l\u0041":"v"}}}}}}"#,
            "x".repeat(length)
        );
        let o = read(&json);
        assert_eq!((o.name(), o.label("lA"), o.json()), ("a", Some("v"), json.as_str()));
        assert!(o.retained_bytes() <= json.len() + 150, "{} for {}", o.retained_bytes(), json.len());
    }
    let before = read(r#"{"metadata":{"name":"a"}}"#);
    let clone = before.clone();
    assert!(before.ptr_eq(&clone) && !before.ptr_eq(&read(before.json())) && before == read(before.json()));
}

#[test]
fn errors_tell_no_values() {
    #[derive(Debug, serde::Deserialize)]
    #[allow(dead_code)]
    enum Sort {
        One,
    }
    let o = read(r#"{"metadata":{"name":"a"},"s":"hunter2, expected","o":{"hunter2":"hunter2"},"n":-77}"#);
    let errors = [
        o.get::<u8>(&["s"]).unwrap_err(),
        o.get::<Sort>(&["s"]).unwrap_err(),
        o.get::<Sort>(&["o", "hunter2"]).unwrap_err(),
        o.get::<core::net::Ipv4Addr>(&["s"]).unwrap_err(),
        o.get::<u8>(&["n"]).unwrap_err(),
        o.get::<char>(&["s"]).unwrap_err(),
        o.get::<bool>(&["o"]).unwrap_err(),
    ];
    for e in &errors[..] {
        let text = e.to_string();
        let path = text.split(": ").nth(1).unwrap();
        assert!(!text.replacen(path, "", 1).contains("hunter2") && !text.contains("77"), "{text}");
    }
    assert_eq!(errors[0].message, "s: invalid type: string, expected u8 at line 1 column 19");
    assert!(errors[1].message.starts_with("s: unknown variant, expected `One`"), "{}", errors[1].message);
}

#[test]
fn lazy_access_reads_only_what_is_asked_for() {
    let o = read(
        r#"{"metadata":{"name":"a"},"spec":{"n":3,"big":340282366920938463463374607431768211456,"z":null}}"#,
    );
    assert_eq!(o.get::<u32>(&["spec", "n"]).unwrap(), Some(3));
    assert_eq!(o.get::<u32>(&["spec", "z"]).unwrap(), None);
    assert_eq!(o.get::<u32>(&["spec", "n", "deeper"]).unwrap(), None);
    assert_eq!(o.raw_at(&["spec", "big"]), Some("340282366920938463463374607431768211456"));
    assert_eq!(o.raw_at(&[]), Some(o.json()));
}

#[test]
fn finalizers_come_and_go_by_patches_that_hold_for_this_object_only() {
    let o = read(r#"{"metadata":{"name":"a","uid":"u","resourceVersion":"7","finalizers":["x","y"]}}"#);
    let ops = |patch: Option<crate::api::Patch<()>>| match patch {
        Some(crate::api::Patch::Json(ops)) => serde_json::to_value(ops).unwrap(),
        other => panic!("{other:?}"),
    };
    let tests = [
        json!({"op": "test", "path": "/metadata/uid", "value": "u"}),
        json!({"op": "test", "path": "/metadata/resourceVersion", "value": "7"}),
    ];
    let change = |all: Value| json!({"op": "add", "path": "/metadata/finalizers", "value": all});
    assert_eq!(ops(add_finalizer(&o, "z")), json!([tests[0], tests[1], change(json!(["x", "y", "z"]))]));
    assert_eq!(ops(remove_finalizer(&o, "x")), json!([tests[0], tests[1], change(json!(["y"]))]));
    assert_eq!((add_finalizer(&o, "x"), remove_finalizer(&o, "z")), (None, None));
}

#[test]
fn owners_are_of_the_type_that_the_object_has() {
    let o = read(r#"{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"d","uid":"u"}}"#);
    let owner = controller_owner_reference(&o);
    let child =
        ObjectMeta::named("n", "c").owner(owner.clone()).owner(owner.clone()).finalizer("f").finalizer("f");
    let child = Object::from_serialize(&json!({"metadata": child})).unwrap();
    assert_eq!(child.owner_references(), core::slice::from_ref(&owner));
    let mut seen = Vec::new();
    child.each_owner(&mut |o| seen.push(o.clone()));
    assert_eq!(seen, [owner]);
    assert_eq!(child.finalizers().collect::<Vec<_>>(), ["f"]);
    assert_eq!(
        (child.key(), child.parse::<ByMeta>().unwrap().metadata.key()),
        (Key::namespaced("n", "c"), child.key())
    );
}

#[derive(serde::Deserialize)]
struct ByMeta {
    metadata: ObjectMeta,
}

/// JSON, or nearly.
#[derive(Clone, Debug)]
struct Document(String);

fn string(g: &mut Gen) -> String {
    const PIECES: [&str; 16] = [
        "a",
        "labels",
        "k8s.io/x",
        "",
        "é",
        "🚀",
        "\\n",
        "\\\"",
        "\\\\",
        "\\/",
        "\\u00e9",
        "\\ud83d\\ude80",
        "\\u0000",
        "\u{2028}",
        "0123456789abcdef",
        " ",
    ];
    let mut out = String::from("\"");
    for _ in 0..usize::arbitrary(g) % 4 {
        out.push_str(g.choose(&PIECES).unwrap());
    }
    out.push('"');
    out
}

fn value(g: &mut Gen, depth: usize) -> String {
    const SCALARS: [&str; 12] = [
        "0",
        "-0",
        "7",
        "-1.5",
        "1e3",
        "2E-2",
        "1.0e+9",
        "true",
        "false",
        "null",
        "18446744073709551616",
        "{}",
    ];
    let space = if bool::arbitrary(g) { "" } else { " \n" };
    match u8::arbitrary(g) % 5 {
        0 if depth > 0 => {
            let all: Vec<_> = (0..usize::arbitrary(g) % 4).map(|_| value(g, depth - 1)).collect();
            format!("[{space}{}]", all.join(","))
        }
        1 if depth > 0 => {
            let all: Vec<_> = (0..usize::arbitrary(g) % 4)
                .map(|_| format!("{}{space}:{}", string(g), value(g, depth - 1)))
                .collect();
            format!("{{{}{space}}}", all.join(&format!("{space},")))
        }
        2 => string(g),
        _ => (*g.choose(&SCALARS).unwrap()).to_string(),
    }
}

impl Arbitrary for Document {
    fn arbitrary(g: &mut Gen) -> Self {
        const NOISE: [&str; 22] = [
            "{", "}", "[", "]", ",", ":", "\"", "\\", "\\u12", "\\ud800", "\\udc00", "\\x", "0", "-", ".",
            "e", "1e", "nul", "\u{1}", "\u{7f}", " ", "\t",
        ];
        let mut json = value(g, 4);
        for _ in 0..[0, 0, 1, 2][usize::arbitrary(g) % 4] {
            let at = usize::arbitrary(g) % (json.len() + 1);
            if json.is_char_boundary(at) {
                json.insert_str(at, g.choose(&NOISE).unwrap());
            }
        }
        Self(json)
    }

    fn shrink(&self) -> std::boxed::Box<dyn Iterator<Item = Self>> {
        let s = self.0.clone();
        let shorter = move |i: usize| Some(Self(format!("{}{}", s.get(..i)?, s.get(i + 1..)?)));
        std::boxed::Box::new((0..self.0.len()).filter_map(shorter))
    }
}

#[test]
fn the_scanner_accepts_what_serde_json_accepts() {
    fn agrees(Document(json): Document) -> bool {
        let mut s = Scanner::new(&json);
        let ours = s.value().and_then(|_| s.end());
        match serde_json::from_str::<Value>(&json) {
            // A matter of the reader's types, not of JSON.
            Err(e) if e.to_string().starts_with("number out of range") => true,
            right => ours.is_ok() == right.is_ok(),
        }
    }
    crate::cases::cases(5000).quickcheck(agrees as fn(Document) -> bool);
}

#[test]
fn strings_come_out_as_serde_json_reads_them() {
    fn agrees(all: Vec<String>, escaped: Document) -> bool {
        let mut texts: Vec<String> = all.iter().map(|s| serde_json::to_string(s).unwrap()).collect();
        texts.push(escaped.0);
        texts.iter().filter(|t| t.starts_with('"')).all(|json| {
            let mut s = Scanner::new(json);
            match (s.string(), serde_json::from_str::<String>(json)) {
                (Ok(text), Ok(right)) => text.get(json) == right && text.is(json, &right),
                (Ok(_), Err(_)) => s.end().is_err(),
                (ours, right) => ours.is_err() == right.is_err(),
            }
        })
    }
    crate::cases::cases(2000).quickcheck(agrees as fn(Vec<String>, Document) -> bool);
}

/// The members of an object's metadata in any order, with odd texts.
#[derive(Clone, Debug)]
struct Metadata(String);

impl Arbitrary for Metadata {
    fn arbitrary(g: &mut Gen) -> Self {
        let map = |g: &mut Gen| {
            let all: Vec<_> =
                (0..u8::arbitrary(g) % 3).map(|_| format!("{}:{}", string(g), string(g))).collect();
            format!("{{{}}}", all.join(", "))
        };
        let mut members = Vec::new();
        for name in ["name", "namespace", "uid", "resourceVersion", "kind", "deletionTimestamp"] {
            members.push(format!("\"{name}\":{}", string(g)));
        }
        members.push(format!("\"labels\":{}", map(g)));
        members.push(format!("\"annotations\" : {}", map(g)));
        members.push(format!("\"finalizers\":[{},{}]", string(g), string(g)));
        members.push(format!("\"managedFields\":{}", value(g, 2)));
        members.push(format!("\"generation\":{}", i64::arbitrary(g)));
        members.push(format!("\"ownerReferences\":[{{\"uid\":{},\"controller\":true}}]", string(g)));
        for i in (1..members.len()).rev() {
            members.swap(i, usize::arbitrary(g) % (i + 1));
        }
        let gone = usize::arbitrary(g) % 3;
        members.truncate(members.len() - gone);
        let outer = [format!("\"metadata\":{{{}}}", members.join(",")), format!("\"kind\":{}", string(g)), {
            format!("\"spec\":{}", value(g, 3))
        }];
        let turn = usize::arbitrary(g) % 3;
        Self(format!("{{{},{},{}}}", outer[turn], outer[(turn + 1) % 3], outer[(turn + 2) % 3]))
    }
}

#[test]
fn accessors_agree_with_serde_json() {
    fn agrees(Metadata(json): Metadata, strip: bool, typed: bool) -> bool {
        let mut right: Value = serde_json::from_str(&json).unwrap();
        let options = ObjectOptions {
            dropped: if strip { Dropped::default() } else { Dropped::none() },
            default_type: typed.then(|| ("g/v".into(), "De\nfault".into())),
            ..ObjectOptions::whole()
        };
        let meta = right["metadata"].clone();
        let text = |name: &str| meta[name].as_str().unwrap_or_default().to_string();
        let Ok(o) = Object::from_json_with(json.as_bytes(), &options) else { return text("name").is_empty() };
        if strip {
            right["metadata"].as_object_mut().unwrap().remove("managedFields");
        }
        if typed {
            right["apiVersion"] = "g/v".into();
            if right["kind"].as_str().unwrap().is_empty() {
                right["kind"] = "De\nfault".into();
            }
        }
        let map = |name: &str| meta[name].as_object().cloned().unwrap_or_default();
        let labels: serde_json::Map<_, _> = o.labels().map(|(k, v)| (k.to_string(), v.into())).collect();
        let annotations: serde_json::Map<_, _> =
            o.annotations().map(|(k, v)| (k.into_owned(), Value::from(&*v))).collect();
        let finalizers: Vec<Value> = o.finalizers().map(Value::from).collect();
        let uids: Vec<Value> = o.owner_references().iter().map(|r| r.uid.as_str().into()).collect();
        o.value().unwrap() == right
            && o.kind() == right["kind"]
            && o.name() == text("name")
            && o.namespace().unwrap_or_default() == text("namespace")
            && o.uid() == text("uid")
            && o.resource_version() == text("resourceVersion")
            && o.deletion_timestamp().unwrap_or_default() == text("deletionTimestamp")
            && o.generation() == meta["generation"].as_i64()
            && labels == map("labels")
            && labels.iter().all(|(k, v)| o.label(k) == v.as_str())
            && annotations == map("annotations")
            && finalizers == meta["finalizers"].as_array().cloned().unwrap_or_default()
            && uids
                == meta["ownerReferences"]
                    .as_array()
                    .map(|a| a.iter().map(|r| r["uid"].clone()).collect::<Vec<_>>())
                    .unwrap_or_default()
    }
    crate::cases::cases(3000).quickcheck(agrees as fn(Metadata, bool, bool) -> bool);
}
