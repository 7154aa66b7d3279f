use alloc::format;
use alloc::vec::Vec;

use super::*;

fn read(json: &str) -> Object {
    Object::from_json(json.as_bytes()).unwrap()
}

#[test]
fn fields_are_where_they_are_whatever_is_cut_and_put_in() {
    let json = r#" {"kind":"ConfigMap","apiVersion":"v1","metadata":{"managedFields":[{"x":{}}],"name":"a","namespace":"n",
        "uid":"u-1","resourceVersion":"41","generation":3,"creationTimestamp":"2026-01-02T03:04:05Z","labels":{"l":"1","m":"2"},
        "annotations":{"a":"q\"q"},"finalizers":["f/1","f/2"],"ownerReferences":[{"apiVersion":"apps/v1","kind":"Deployment",
        "name":"d","uid":"u-0","controller":true,"blockOwnerDeletion":null}],"deletionTimestamp":null},"data":{"k":"v"}} "#;
    for options in [ObjectOptions::default(), ObjectOptions::default().keep_managed_fields()] {
        let o = Object::from_json_with(json.as_bytes(), &options).unwrap();
        assert_eq!(o.json().contains("managedFields"), !options.strip_managed_fields);
        assert_eq!((o.api_version(), o.kind(), o.name()), ("v1", "ConfigMap", "a"));
        assert_eq!((o.namespace(), o.uid(), o.resource_version()), (Some("n"), "u-1", "41"));
        assert_eq!((o.generation(), o.deletion_timestamp()), (Some(3), None));
        assert_eq!(o.creation_timestamp(), Some("2026-01-02T03:04:05Z"));
        assert_eq!(o.labels().collect::<Vec<_>>(), [("l", "1"), ("m", "2")]);
        assert_eq!(o.annotation("a").as_deref(), Some("q\"q"));
        assert_eq!(o.finalizers().collect::<Vec<_>>(), ["f/1", "f/2"]);
        let owner = &o.owner_references()[0];
        assert_eq!((&*owner.uid, owner.controller, owner.block_owner_deletion), ("u-0", Some(true), None));
        assert!(o.is_owned_by("u-0") && !o.is_owned_by("u-1"));
        assert_eq!(o.value().unwrap()["data"]["k"], "v");
        assert_eq!(format!("{o:?}"), "ConfigMap(n/a @41)");
        assert_eq!(serde_json::to_string(&o).unwrap(), o.json());
        assert_eq!(serde_json::from_str::<Object>(read(json).json()).unwrap(), read(json));
    }
}
