//! Strategic merge patch: merge patch with lists that merge by a key.

use serde_json::{Map, Value};

/// Lists that merge, by the name of their member, and the key by which; an empty key is a list of plain values that
/// becomes a union. All other lists are replaced. (The `patchMergeKey` tags of `k8s.io/api`.)
const LISTS: [(&str, &str); 23] = [
    ("containers", "name"),
    ("initContainers", "name"),
    ("ephemeralContainers", "name"),
    ("env", "name"),
    ("volumes", "name"),
    ("volumeMounts", "mountPath"),
    ("volumeDevices", "devicePath"),
    ("imagePullSecrets", "name"),
    ("hostAliases", "ip"),
    ("topologySpreadConstraints", "topologyKey"),
    ("readinessGates", "conditionType"),
    ("schedulingGates", "name"),
    ("resourceClaims", "name"),
    ("conditions", "type"),
    ("addresses", "type"),
    ("podIPs", "ip"),
    ("hostIPs", "ip"),
    ("taints", "key"),
    ("secrets", "name"),
    ("ownerReferences", "uid"),
    ("finalizers", ""),
    ("podCIDRs", ""),
    ("ports", "containerPort"),
];

/// Applies a strategic merge patch of a built-in kind.
pub(crate) fn merge(target: &mut Value, patch: Value) -> Result<(), String> {
    let Value::Object(patch) = patch else {
        *target = patch;
        return Ok(());
    };
    if !target.is_object() {
        *target = Value::Object(Map::new());
    }
    let Value::Object(map) = target else { return Ok(()) };
    merge_map(map, patch)
}

fn merge_map(map: &mut Map<String, Value>, mut patch: Map<String, Value>) -> Result<(), String> {
    match patch.remove("$patch").as_ref().and_then(Value::as_str) {
        None | Some("merge") => {}
        Some("replace") => {
            *map = patch;
            return Ok(());
        }
        Some("delete") => {
            map.clear();
            return Ok(());
        }
        Some(other) => return Err(format!("unknown patch type: {other}")),
    }
    if let Some(keep) = patch.remove("$retainKeys") {
        let keep: Vec<&str> = keep.as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        map.retain(|name, _| keep.contains(&name.as_str()));
    }
    for (name, value) in patch {
        if name.starts_with("$setElementOrder/") {
            continue;
        }
        if let Some(list) = name.strip_prefix("$deleteFromPrimitiveList/") {
            if let (Some(Value::Array(have)), Value::Array(gone)) = (map.get_mut(list), value) {
                have.retain(|v| !gone.contains(v));
            }
            continue;
        }
        match value {
            Value::Null => {
                map.remove(&name);
            }
            Value::Object(_) => merge(map.entry(name).or_insert(Value::Null), value)?,
            Value::Array(items) => {
                let key = LISTS.iter().find(|(list, _)| *list == name).map(|(_, key)| *key);
                let have = map.entry(name.clone()).or_insert_with(|| Value::Array(Vec::new()));
                match (key, have) {
                    (Some(key), Value::Array(have)) => merge_list(have, items, key, &name)?,
                    (_, have) => *have = Value::Array(items),
                }
            }
            other => {
                map.insert(name, other);
            }
        }
    }
    Ok(())
}

fn merge_list(have: &mut Vec<Value>, items: Vec<Value>, key: &str, name: &str) -> Result<(), String> {
    if key.is_empty() {
        for item in items {
            if !have.contains(&item) {
                have.push(item);
            }
        }
        return Ok(());
    }
    if items.iter().any(|i| i.get("$patch").and_then(Value::as_str) == Some("replace")) {
        *have = items.into_iter().filter(|i| i.get("$patch").is_none()).collect();
        return Ok(());
    }
    for item in items {
        // A service's ports merge by `port`, a container's by `containerPort`.
        let key = if name == "ports" && item.get(key).is_none() { "port" } else { key };
        let Some(id) = item.get(key).cloned() else {
            return Err(format!(
                "map: {} does not contain declared merge key: {key}",
                crate::json::to_string(&item)
            ));
        };
        let place = have.iter().position(|h| h.get(key) == Some(&id));
        if item.get("$patch").and_then(Value::as_str) == Some("delete") {
            if let Some(i) = place {
                have.remove(i);
            }
            continue;
        }
        match place {
            Some(i) => merge(&mut have[i], item)?,
            None => {
                let mut new = Value::Object(Map::new());
                merge(&mut new, item)?;
                have.push(new);
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn lists_merge_by_their_key() {
        let mut pod = json!({"spec":{"containers":[{"name":"a","image":"1"},{"name":"b","image":"1"}],"tolerations":[1]}});
        merge(
            &mut pod,
            json!({"spec":{"$setElementOrder/containers":[{"name":"a"}],"tolerations":[2],
                "containers":[{"name":"a","image":"2"},{"name":"b","$patch":"delete"},{"name":"c","image":"3"}]}}),
        )
        .unwrap();
        assert_eq!(
            pod,
            json!({"spec":{"containers":[{"name":"a","image":"2"},{"name":"c","image":"3"}],"tolerations":[2]}})
        );
    }

    #[test]
    fn directives_and_primitive_lists() {
        let mut v = json!({"metadata":{"finalizers":["a","b"],"labels":{"x":"1"}},"data":{"k":"v"}});
        merge(
            &mut v,
            json!({"metadata":{"finalizers":["c"],"$deleteFromPrimitiveList/finalizers":["a"]},
                "data":{"$patch":"replace","z":"1"}}),
        )
        .unwrap();
        assert_eq!(v["metadata"]["finalizers"], json!(["b", "c"]));
        assert_eq!(v["data"], json!({"z":"1"}));
        assert!(merge(&mut v, json!({"spec":{"containers":[{"image":"x"}]}})).is_err());
    }
}
