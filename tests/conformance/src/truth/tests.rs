use super::*;

const FILE: &str = "\
# makes one
POST /api/v1/namespaces/a/configmaps
as user
header X: y
| {\"a\":
| \"$v\"}
save uid /metadata/uid
< 201 application/json
< {}

do compact
";

#[test]
fn a_file_is_read_and_written_back_as_it_was() {
    let script = Script::parse(FILE).unwrap();
    assert_eq!((script.steps.len(), script.requests()), (2, 1));
    let step = &script.steps[0];
    assert_eq!((step.line, step.who.as_str(), step.body.as_deref()), (2, "user", Some("{\"a\":\n\"$v\"}")));
    let played: Vec<Played> =
        script.steps.iter().map(|s| Played { step: s.clone(), answer: s.record.clone() }).collect();
    assert_eq!(bless(&played), FILE);
    assert!(played.iter().all(Played::agrees));
}

#[test]
fn what_means_nothing_is_an_error_with_its_line() {
    for (text, line) in [("GOT /x", 1), ("GET /x\nGET /y", 2), ("GET /x\n< 200\nsave a /b", 3), ("take x", 1)]
    {
        let e = Script::parse(text).unwrap_err();
        assert!(e.starts_with(&format!("line {line}:")), "{e}");
    }
}

#[test]
fn saved_names_stand_for_their_values() {
    let names = BTreeMap::from([("a".to_owned(), "1".to_owned()), ("ab".to_owned(), "2".to_owned())]);
    assert_eq!(substitute("x$a/$ab?$a", &names).unwrap(), "x1/2?1");
    assert!(substitute("$c", &names).unwrap_err().contains("$c"));
}

#[test]
fn a_difference_shows_both_sides() {
    let (old, new) = (["a", "b", "c"], ["a", "x", "c", "d"]);
    let lines = |l: &[&str]| l.iter().map(|s| (*s).to_owned()).collect::<Vec<_>>();
    assert_eq!(diff(&lines(&old), &lines(&new)), ["- b", "+ x", "+ d"]);
    assert!(diff(&lines(&old), &lines(&old)).is_empty());
}

#[test]
fn normalising_keeps_what_is_equal_and_drops_what_moves() {
    let mut n = Normaliser::default();
    let mut go = |mut v: Value| {
        n.normalise(&mut v);
        v
    };
    let object = |uid: &str, version: &str| {
        json!({"metadata": {"uid": uid, "resourceVersion": version, "creationTimestamp": "2026-01-02T03:04:05Z",
               "managedFields": [1], "generateName": "g-", "name": "g-abcde"}})
    };
    let named = |uid: &str, version: &str| {
        json!({"metadata": {"uid": uid, "resourceVersion": version, "creationTimestamp": "TIME",
               "generateName": "g-", "name": "g-GEN1"}})
    };
    assert_eq!(go(object("uid-one", "10")), named("UID1", "RV1"));
    assert_eq!(go(object("uid-two", "11")), named("UID2", "RV2"));
    assert_eq!(go(object("uid-one", "11")), named("UID1", "RV2"));
    assert_eq!(
        go(
            json!({"items": [object("uid-one", "10")], "metadata": {"resourceVersion": "99", "continue": "abc"}})
        ),
        json!({"items": [named("UID1", "RV1")], "metadata": {"resourceVersion": "RV", "continue": "CONTINUE"}})
    );
    let bookmark =
        |version: &str| json!({"type": "BOOKMARK", "object": {"metadata": {"resourceVersion": version}}});
    assert_eq!(
        go(json!([bookmark("98"), bookmark("99")])),
        json!([{"type": "BOOKMARK", "object": {"metadata": {"resourceVersion": "RV"}}}])
    );
    assert_eq!(
        go(json!({"kind": "Status", "message": "too old resource version: 5 (99)", "code": 410})),
        json!({"kind": "Status", "message": "too old resource version: N (N)", "code": 410})
    );
}
