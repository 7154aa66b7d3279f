//! Objects: any bytes, read with every option, against `serde_json`.

use serde_json::{Map, Value};
use steersman_core::object::{Dropped, Object, ObjectOptions, Resource};
use steersman_core::store::{Kept, Packer, unpack};

const TYPE: (&str, &str) = ("example.com/v1", "Wid\"get");

/// The first byte sets options (of the ASCII digits, `1`: a type, `2`: metadata alone, `4`: `managedFields` dropped); up
/// to the end of the line follow pointers to drop, each after a blank; the rest is the JSON.
pub fn run(data: &[u8]) {
    let Some((&flags, rest)) = data.split_first() else { return };
    let line = rest.iter().position(|b| *b == b'\n').unwrap_or(rest.len());
    let json = rest.get(line + 1..).unwrap_or_default();
    let mut options = ObjectOptions::default();
    options.default_type = (flags & 1 != 0).then(|| (TYPE.0.into(), TYPE.1.into()));
    options.metadata_only = flags & 2 != 0;
    options.dropped = if flags & 4 != 0 { Dropped::default() } else { Dropped::none() };
    for pointer in String::from_utf8_lossy(&rest[..line]).split(' ').skip(1) {
        match options.dropped.clone().and(pointer) {
            Ok(more) => options.dropped = more,
            Err(e) => assert_eq!(e.pointer, pointer),
        }
    }
    check(json, &options);
}

fn check(json: &[u8], options: &ObjectOptions) {
    let read = Object::from_json_with(json, options);
    assert_eq!(read, Object::from_json_with(json, options), "twice the same");
    let naive = serde_json::from_slice::<Value>(json).map(|value| model(value, options));
    match (&read, &naive) {
        (Ok(object), Ok(right)) => agree(object, right),
        (Ok(object), Err(e)) => {
            // Go accepts more than it does: deeper nesting, and numbers that are too large for its types.
            let e = e.to_string();
            assert!(e.contains("recursion limit") || e.contains("number out of range"), "{e}: {object:?}");
        }
        (Err(e), Ok(right)) if usable(right) => {
            // Only an earlier one of several members of one name can be the reason.
            let once = right.to_string();
            let again = Object::from_json_with(once.as_bytes(), &ObjectOptions::whole());
            assert!(again.is_ok_and(|o| o.value().unwrap() == *right), "{e}");
        }
        (Err(_), _) => {}
    }
    let Ok(object) = read else { return };
    // Unescaped texts stand beside the JSON, each with five bytes before it.
    let most = 3 * json.len() + TYPE.0.len() + TYPE.1.len() + 256;
    assert!(object.retained_bytes() <= most, "{} of {}", object.retained_bytes(), json.len());
    // What is left is an object of its own.
    let whole = Object::from_json_with(object.raw(), &ObjectOptions::whole()).unwrap();
    assert_eq!(fields(&object), fields(&whole));
    assert_eq!(object.json(), whole.json());
    assert_eq!(object.raw_at(&[]), Some(object.json()));
    packed(&object, json);
}

/// Packed and unpacked it is what it was, and bytes that nobody packed do no harm.
fn packed(object: &Object, noise: &[u8]) {
    let mut packer = Packer::default();
    for _ in 0..4 {
        let kept = packer.keep(object);
        assert_eq!(kept.get(), *object);
        assert_eq!(fields(&kept.get()), fields(object));
        let Kept::Packed(packed) = kept else { continue };
        let (bytes, dictionary) = packed.parts();
        assert!(bytes.len() < object.retained_bytes());
        // The first bytes are lengths; what claims to be huge would only take long.
        let mut torn = bytes.to_vec();
        for (n, byte) in noise.iter().take(16).enumerate() {
            let at = 3 + usize::from(*byte) * 251 % (torn.len() - 2).max(1);
            if let Some(torn) = torn.get_mut(at) {
                *torn ^= 1 << (n % 8);
            }
        }
        for bytes in [&torn[..], &bytes[..bytes.len() / 2]] {
            if let Some(other) = unpack::<Object>(bytes, dictionary) {
                let _ = (fields(&other), other.key(), other.json().len());
            }
        }
    }
}

/// What should be left of it.
fn model(mut value: Value, options: &ObjectOptions) -> Value {
    let paths: Vec<Vec<String>> = options
        .dropped
        .pointers()
        .iter()
        .map(|p| p[1..].split('/').map(|s| s.replace("~1", "/").replace("~0", "~")).collect())
        .collect();
    drop_all(&mut value, &paths.iter().map(Vec::as_slice).collect::<Vec<_>>());
    let Value::Object(object) = &mut value else { return value };
    if options.metadata_only {
        object.retain(|name, _| matches!(name.as_str(), "apiVersion" | "kind" | "metadata"));
    }
    if let Some((api_version, kind)) = &options.default_type {
        let none = |v: Option<&Value>, foreign: fn(&str) -> bool| match v {
            None | Some(Value::Null) => true,
            Some(Value::String(s)) => s.is_empty() || foreign(s),
            Some(_) => false,
        };
        if none(object.get("kind"), |s| s == "PartialObjectMetadata") {
            object.insert("kind".into(), kind.as_str().into());
        }
        if none(object.get("apiVersion"), |s| s.starts_with("meta.k8s.io/")) {
            object.insert("apiVersion".into(), api_version.as_str().into());
        }
    }
    value
}

fn drop_all(value: &mut Value, paths: &[&[String]]) {
    let fate = |name: &str| -> Option<Vec<&[String]>> {
        let below: Vec<_> = paths.iter().filter(|p| p[0] == name).map(|p| &p[1..]).collect();
        (!below.iter().any(|p| p.is_empty())).then_some(below)
    };
    match value {
        Value::Object(map) => map.retain(|name, value| {
            fate(name).is_some_and(|below| {
                drop_all(value, &below);
                true
            })
        }),
        Value::Array(all) => {
            let mut index = 0;
            all.retain_mut(|value| {
                index += 1;
                fate(&(index - 1).to_string()).is_some_and(|below| {
                    drop_all(value, &below);
                    true
                })
            });
        }
        _ => {}
    }
}

/// Whether it has a name, and the right types where the runtime looks.
fn usable(value: &Value) -> bool {
    let text = |v: &Value| v.is_string() || v.is_null();
    let map = |v: &Value| v.is_null() || v.as_object().is_some_and(|m| m.values().all(text));
    let list = |v: &Value, each: &dyn Fn(&Value) -> bool| {
        v.is_null() || v.as_array().is_some_and(|a| a.iter().all(each))
    };
    let owner = |v: &Value| {
        let flag = |v: &Value| v.is_boolean() || v.is_null();
        v.is_object()
            && ["apiVersion", "kind", "name", "uid"].iter().all(|n| text(&v[n]))
            && ["controller", "blockOwnerDeletion"].iter().all(|n| flag(&v[n]))
    };
    let meta = &value["metadata"];
    const TEXTS: [&str; 6] =
        ["name", "namespace", "uid", "resourceVersion", "creationTimestamp", "deletionTimestamp"];
    value.is_object()
        && text(&value["kind"])
        && text(&value["apiVersion"])
        && meta.is_object()
        && meta["name"].as_str().is_some_and(|n| !n.is_empty())
        && TEXTS.iter().all(|n| text(&meta[n]))
        && (meta["generation"].is_number() || meta["generation"].is_null())
        && map(&meta["labels"])
        && map(&meta["annotations"])
        && list(&meta["finalizers"], &text)
        && list(&meta["ownerReferences"], &owner)
}

/// All that the runtime sees of an object.
#[derive(Debug, PartialEq)]
struct Fields {
    texts: [String; 8],
    generation: Option<i64>,
    labels: Map<String, Value>,
    annotations: Map<String, Value>,
    finalizers: Vec<String>,
    owners: Vec<Value>,
}

fn fields(o: &Object) -> Fields {
    let labels: Map<_, _> = o.labels().map(|(k, v)| (k.to_owned(), v.into())).collect();
    let annotations: Map<_, _> =
        o.annotations().map(|(k, v)| (k.into_owned(), v.into_owned().into())).collect();
    assert!(labels.iter().all(|(k, v)| o.label(k) == v.as_str()));
    assert!(annotations.iter().all(|(k, v)| o.annotation(k).as_deref() == v.as_str()));
    let owners = o.owner_references();
    let mut count = 0;
    o.each_owner(&mut |_| count += 1);
    assert_eq!(count, owners.len());
    assert_eq!(o.key().name(), o.name());
    Fields {
        texts: [
            o.api_version(),
            o.kind(),
            o.name(),
            o.namespace().unwrap_or_default(),
            o.uid(),
            o.resource_version(),
            o.creation_timestamp().unwrap_or_default(),
            o.deletion_timestamp().unwrap_or_default(),
        ]
        .map(String::from),
        // `-0` is a whole number in Go, and not for `serde_json`.
        generation: o.generation().filter(|n| *n != 0),
        labels,
        annotations,
        finalizers: o.finalizers().map(String::from).collect(),
        owners: owners.iter().map(|o| serde_json::to_value(o).unwrap()).collect(),
    }
}

fn agree(object: &Object, right: &Value) {
    assert!(usable(right), "{right}");
    assert_eq!(object.value().unwrap(), *right);
    let meta = &right["metadata"];
    let text = |v: &Value| v.as_str().unwrap_or_default().to_owned();
    let map = |name: &str| -> Map<String, Value> {
        let all = meta[name].as_object().cloned().unwrap_or_default();
        all.into_iter().map(|(k, v)| (k, text(&v).into())).collect()
    };
    let owner = |v: &Value| {
        let mut owner = Map::new();
        for name in ["apiVersion", "kind", "name", "uid"] {
            owner.insert(name.into(), text(&v[name]).into());
        }
        for name in ["controller", "blockOwnerDeletion"] {
            if let Value::Bool(flag) = v[name] {
                owner.insert(name.into(), flag.into());
            }
        }
        Value::Object(owner)
    };
    let list = |name: &str| meta[name].as_array().cloned().unwrap_or_default();
    let naive = Fields {
        texts: [
            &right["apiVersion"],
            &right["kind"],
            &meta["name"],
            &meta["namespace"],
            &meta["uid"],
            &meta["resourceVersion"],
            &meta["creationTimestamp"],
            &meta["deletionTimestamp"],
        ]
        .map(text),
        generation: meta["generation"].as_i64().filter(|n| *n != 0),
        labels: map("labels"),
        annotations: map("annotations"),
        finalizers: list("finalizers").iter().map(text).collect(),
        owners: list("ownerReferences").iter().map(owner).collect(),
    };
    assert_eq!(fields(object), naive);
}
