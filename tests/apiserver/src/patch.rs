//! JSON merge patch (RFC 7396) and JSON patch (RFC 6902) on values.

use serde_json::{Map, Value};

use crate::status::Failure;

/// Deepest nesting that a patched document may have; `serde_json` reads no deeper than 128.
const DEPTH: usize = 128;
/// Most operations of one JSON patch, the real server's number.
const OPERATIONS: usize = 10_000;
/// Most bytes that all `copy` operations of one patch may add, about; the real server has such a limit too.
const COPIED: usize = 3 * 1024 * 1024;

/// Applies an RFC 7396 merge patch.
pub(crate) fn merge(target: &mut Value, patch: Value) {
    let Value::Object(patch) = patch else {
        *target = patch;
        return;
    };
    if !target.is_object() {
        *target = Value::Object(Map::new());
    }
    let Value::Object(map) = target else { return };
    for (name, value) in patch {
        if value.is_null() {
            map.remove(&name);
        } else {
            merge(map.entry(name).or_insert(Value::Null), value);
        }
    }
}

/// Applies an RFC 6902 patch; nothing is changed if one operation fails.
pub(crate) fn json_patch(target: &Value, patch: &Value) -> Result<Value, Failure> {
    let Value::Array(operations) = patch else {
        return Err(Failure::bad_request(format!(
            "error decoding patch: json: cannot unmarshal {} into Go value of type []handlers.jsonPatchOp",
            crate::json::go_type(patch)
        )));
    };
    if operations.len() > OPERATIONS {
        return Err(Failure {
            code: 413,
            reason: "RequestEntityTooLarge",
            message: format!(
                "The allowed maximum operations in a JSON patch is {OPERATIONS}, got {}",
                operations.len()
            ),
            ..Failure::default()
        });
    }
    let mut doc = target.clone();
    let mut budget = COPIED;
    for operation in operations {
        apply(&mut doc, operation, &mut budget).ok_or_else(Failure::patch_rejected)?;
    }
    Ok(doc)
}

fn apply(doc: &mut Value, operation: &Value, budget: &mut usize) -> Option<()> {
    let path = pointer(operation.get("path")?.as_str()?)?;
    match operation.get("op")?.as_str()? {
        "add" => add(doc, &path, operation.get("value")?.clone()),
        "remove" => remove(doc, &path).map(drop),
        "replace" => {
            let value = operation.get("value")?.clone();
            // The real server's library lets a member that is missing be "replaced"; an index must exist.
            if let Some(place) = find(doc, &path) {
                *place = value;
                return Some(());
            }
            let (last, parents) = path.split_last()?;
            find(doc, parents)?.as_object_mut()?.insert(last.clone(), value);
            Some(())
        }
        "move" => {
            let from = pointer(operation.get("from")?.as_str()?)?;
            if path.len() > from.len() && path[..from.len()] == from[..] {
                return None;
            }
            let value = remove(doc, &from)?;
            add(doc, &path, value)
        }
        "copy" => {
            let from = pointer(operation.get("from")?.as_str()?)?;
            let value = find(doc, &from)?.clone();
            *budget = budget.checked_sub(size(&value))?;
            add(doc, &path, value)
        }
        "test" => {
            let wanted = operation.get("value").unwrap_or(&Value::Null);
            let found = find(doc, &path).map_or(&Value::Null, |v| &*v);
            (found == wanted).then_some(())
        }
        _ => None,
    }
}

fn pointer(text: &str) -> Option<Vec<String>> {
    if text.is_empty() {
        return Some(Vec::new());
    }
    let tokens: Vec<String> =
        text.strip_prefix('/')?.split('/').map(|t| t.replace("~1", "/").replace("~0", "~")).collect();
    (tokens.len() <= DEPTH).then_some(tokens)
}

fn index(token: &str, len: usize) -> Option<usize> {
    // Negative indices count from the end in the real server's library.
    let i = match token.strip_prefix('-') {
        Some(back) => len.checked_sub(back.parse::<usize>().ok()?)?,
        None => token.parse::<usize>().ok()?,
    };
    (i < len).then_some(i)
}

fn find<'a>(doc: &'a mut Value, path: &[String]) -> Option<&'a mut Value> {
    path.iter().try_fold(doc, |at, token| match at {
        Value::Object(map) => map.get_mut(token),
        Value::Array(items) => {
            let i = index(token, items.len())?;
            items.get_mut(i)
        }
        _ => None,
    })
}

fn add(doc: &mut Value, path: &[String], value: Value) -> Option<()> {
    if path.len() + depth(&value) > DEPTH {
        return None;
    }
    let Some((last, parents)) = path.split_last() else {
        *doc = value;
        return Some(());
    };
    match find(doc, parents)? {
        Value::Object(map) => {
            map.insert(last.clone(), value);
        }
        Value::Array(items) if last == "-" => items.push(value),
        Value::Array(items) => {
            let i = if last.parse() == Ok(items.len()) { items.len() } else { index(last, items.len())? };
            items.insert(i, value);
        }
        _ => return None,
    }
    Some(())
}

fn remove(doc: &mut Value, path: &[String]) -> Option<Value> {
    let (last, parents) = path.split_last()?;
    match find(doc, parents)? {
        Value::Object(map) => map.remove(last),
        Value::Array(items) => {
            let i = index(last, items.len())?;
            Some(items.remove(i))
        }
        _ => None,
    }
}

// Documents are never deeper than twice `DEPTH`, so these two recurse no deeper either.
fn depth(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(depth).max().unwrap_or(0),
        Value::Object(map) => 1 + map.values().map(depth).max().unwrap_or(0),
        _ => 0,
    }
}

fn size(value: &Value) -> usize {
    match value {
        Value::String(s) => 16 + s.len(),
        Value::Array(items) => 16 + items.iter().map(size).sum::<usize>(),
        Value::Object(map) => 16 + map.iter().map(|(k, v)| 16 + k.len() + size(v)).sum::<usize>(),
        _ => 16,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn merge_patch_follows_the_rfc() {
        for (target, patch, wanted) in [
            (json!({"a":"b"}), json!({"a":"c"}), json!({"a":"c"})),
            (json!({"a":"b","b":"c"}), json!({"a":null}), json!({"b":"c"})),
            (json!({"a":["b"]}), json!({"a":"c"}), json!({"a":"c"})),
            (json!({"a":{"b":"c"}}), json!({"a":{"b":"d","c":null}}), json!({"a":{"b":"d"}})),
            (json!({"e":null}), json!({"a":1}), json!({"e":null,"a":1})),
            (json!({}), json!({"a":{"bb":{"ccc":null}}}), json!({"a":{"bb":{}}})),
            (json!([1, 2]), json!({"a":"b","c":null}), json!({"a":"b"})),
        ] {
            let mut got = target.clone();
            merge(&mut got, patch.clone());
            assert_eq!(got, wanted, "{target} + {patch}");
        }
    }

    #[test]
    fn json_patch_operations() {
        let doc = json!({"a":{"b":[1,2,3]},"c~/d":"x"});
        let run = |ops: Value| json_patch(&doc, &ops).ok();
        assert_eq!(
            run(json!([{"op":"add","path":"/a/b/1","value":9}])).unwrap()["a"]["b"],
            json!([1, 9, 2, 3])
        );
        assert_eq!(
            run(json!([{"op":"add","path":"/a/b/-","value":9}])).unwrap()["a"]["b"],
            json!([1, 2, 3, 9])
        );
        assert_eq!(run(json!([{"op":"remove","path":"/a/b/0"}])).unwrap()["a"]["b"], json!([2, 3]));
        assert_eq!(run(json!([{"op":"move","from":"/c~0~1d","path":"/e"}])).unwrap()["e"], json!("x"));
        assert_eq!(run(json!([{"op":"copy","from":"/a","path":"/z"}])).unwrap()["z"], doc["a"]);
        assert_eq!(run(json!([{"op":"test","path":"/a/b/1","value":2}])).unwrap(), doc);
        assert_eq!(run(json!([{"op":"test","path":"/a/b/1","value":3}])), None);
        assert_eq!(run(json!([{"op":"remove","path":"/nope"}])), None);
        assert_eq!(run(json!([{"op":"replace","path":"/new","value":1}])).unwrap()["new"], json!(1));
        assert_eq!(run(json!([{"op":"add","path":"/x/y","value":1}])), None);
        assert_eq!(run(json!([{"op":"move","from":"/a","path":"/a/b"}])), None);
        assert_eq!(run(json!([{"op":"frob","path":"/a"}])), None);
    }

    #[test]
    fn hostile_patches_stay_small_and_shallow() {
        // Doubling copies, and one level more per operation.
        let copies: Vec<Value> =
            (0..200).map(|i| json!({"op":"copy","from":"","path":format!("/{i}")})).collect();
        assert!(json_patch(&json!({"a":1}), &Value::Array(copies)).is_err());
        let path = |n: usize| "/a".repeat(n);
        let deep: Vec<Value> = (1..500).map(|n| json!({"op":"add","path":path(n),"value":{}})).collect();
        assert!(json_patch(&json!({}), &Value::Array(deep)).is_err());
    }
}
