//! What a kind does to an object on its way in: types, defaults, the status subresource, its own rules.

use serde_json::{Map, Value, json};

use crate::json::go_type;
use crate::resource::{Resource, Rules};
use crate::status::FieldError;
use crate::validate;

/// Brings a decoded object into the form in which it is stored, or says why it cannot be, in the words of Go's decoder.
/// Unknown members of built-in kinds are dropped and named in `unknown`.
pub(crate) fn normalise(
    resource: &Resource,
    value: &mut Value,
    unknown: &mut Vec<String>,
) -> Result<(), String> {
    let Some(map) = value.as_object_mut() else { return Err("not an object".into()) };
    let kind = resource.of.kind.as_ref();
    let meta = map.entry("metadata").or_insert_with(|| json!({}));
    if meta.is_null() {
        *meta = json!({});
    }
    let Some(meta) = meta.as_object_mut() else {
        let what = go_type(meta);
        return Err(if resource.is_custom() {
            format!("json: cannot unmarshal {what} into Go value of type v1.ObjectMeta")
        } else {
            format!(
                "json: cannot unmarshal {what} into Go struct field {kind}.metadata of type v1.ObjectMeta"
            )
        });
    };
    metadata(meta, if resource.is_custom() { "ObjectMeta." } else { "ObjectMeta.metadata." }, unknown)?;
    if resource.is_custom() {
        return Ok(());
    }
    map.retain(|name, v| {
        let known = matches!(name.as_str(), "kind" | "apiVersion" | "metadata")
            || resource.fields.contains(&name.as_str());
        if !known {
            unknown.push(name.clone());
        }
        known && !v.is_null()
    });
    let field = |name: &str| format!("{kind}.{name}");
    match resource.rules {
        Rules::ConfigMap => {
            string_map(map, "data", &field("data"))?;
            bytes_map(map, "binaryData", &field("binaryData"))?;
            typed(map, "immutable", &field("immutable"), "bool", Value::is_boolean)?;
        }
        Rules::Secret => {
            bytes_map(map, "data", &field("data"))?;
            string_map(map, "stringData", &field("stringData"))?;
            typed(map, "type", &field("type"), "v1.SecretType", Value::is_string)?;
            typed(map, "immutable", &field("immutable"), "bool", Value::is_boolean)?;
        }
        Rules::Lease => {
            typed(map, "spec", &field("spec"), "v1.LeaseSpec", Value::is_object)?;
            for name in ["acquireTime", "renewTime"] {
                if let Some(text) = map.get("spec").and_then(|s| s.get(name)).and_then(Value::as_str) {
                    micro_time(text)?;
                }
            }
        }
        Rules::Event | Rules::ServiceAccount => {}
        _ => {
            typed(map, "spec", &field("spec"), &format!("v1.{kind}Spec"), Value::is_object)?;
            typed(map, "status", &field("status"), &format!("v1.{kind}Status"), Value::is_object)?;
        }
    }
    Ok(())
}

fn metadata(meta: &mut Map<String, Value>, at: &str, unknown: &mut Vec<String>) -> Result<(), String> {
    meta.remove("managedFields");
    meta.retain(|name, v| {
        let known = crate::json::is_metadata_member(name);
        if !known {
            unknown.push(format!("metadata.{name}"));
        }
        known && !v.is_null() && v.as_str() != Some("")
    });
    for name in ["name", "generateName", "namespace", "selfLink", "uid", "resourceVersion"] {
        let go = if name == "uid" { "types.UID" } else { "string" };
        typed(meta, name, &format!("{at}{name}"), go, Value::is_string)?;
    }
    for name in ["generation", "deletionGracePeriodSeconds"] {
        typed(meta, name, &format!("{at}{name}"), "int64", Value::is_i64)?;
    }
    for name in ["creationTimestamp", "deletionTimestamp"] {
        if let Some(v) = meta.get(name) {
            let text = v.as_str().unwrap_or("");
            if crate::clock::parse_rfc3339(text).is_none() {
                return Err(bad_time(text, "2006-01-02T15:04:05Z07:00"));
            }
        }
    }
    string_map(meta, "labels", &format!("{at}labels"))?;
    string_map(meta, "annotations", &format!("{at}annotations"))?;
    for (name, go) in [("finalizers", "[]string"), ("ownerReferences", "[]v1.OwnerReference")] {
        typed(meta, name, &format!("{at}{name}"), go, Value::is_array)?;
        let want: fn(&Value) -> bool = if name == "finalizers" { Value::is_string } else { Value::is_object };
        let items = meta.get(name).and_then(Value::as_array);
        if let Some(bad) = items.into_iter().flatten().find(|v| !want(v)) {
            return Err(mismatch(bad, &format!("{at}{name}"), go.trim_start_matches("[]")));
        }
        if items.is_some_and(Vec::is_empty) {
            meta.remove(name);
        }
    }
    for owner in meta.get_mut("ownerReferences").and_then(Value::as_array_mut).into_iter().flatten() {
        for name in ["apiVersion", "kind", "name", "uid"] {
            if let Some(owner) = owner.as_object_mut() {
                typed(
                    owner,
                    name,
                    &format!("OwnerReference.{}ownerReferences.{name}", &at[11..]),
                    "string",
                    Value::is_string,
                )?;
            }
        }
    }
    Ok(())
}

fn mismatch(value: &Value, field: &str, go: &str) -> String {
    format!("json: cannot unmarshal {} into Go struct field {field} of type {go}", go_type(value))
}

fn typed(
    map: &mut Map<String, Value>,
    name: &str,
    field: &str,
    go: &str,
    is: fn(&Value) -> bool,
) -> Result<(), String> {
    match map.get(name) {
        Some(Value::Null) => {
            map.remove(name);
            Ok(())
        }
        Some(v) if !is(v) => Err(mismatch(v, field, go)),
        _ => Ok(()),
    }
}

fn string_map(map: &mut Map<String, Value>, name: &str, field: &str) -> Result<(), String> {
    typed(map, name, field, "map[string]string", Value::is_object)?;
    let Some(entries) = map.get_mut(name).and_then(Value::as_object_mut) else { return Ok(()) };
    if entries.is_empty() {
        map.remove(name);
        return Ok(());
    }
    for v in entries.values_mut() {
        if v.is_null() {
            *v = Value::String(String::new());
        } else if !v.is_string() {
            return Err(mismatch(v, field, "string"));
        }
    }
    Ok(())
}

fn bytes_map(map: &mut Map<String, Value>, name: &str, field: &str) -> Result<(), String> {
    typed(map, name, field, "map[string][]uint8", Value::is_object)?;
    let Some(entries) = map.get_mut(name).and_then(Value::as_object_mut) else { return Ok(()) };
    if entries.is_empty() {
        map.remove(name);
        return Ok(());
    }
    for v in entries.values_mut() {
        let Some(text) = v.as_str() else {
            if v.is_null() {
                continue;
            }
            return Err(mismatch(v, field, "[]uint8"));
        };
        if let Some(at) = bad_base64(text) {
            return Err(format!("illegal base64 data at input byte {at}"));
        }
    }
    Ok(())
}

/// Where standard, padded base64 goes wrong.
fn bad_base64(text: &str) -> Option<usize> {
    let clean: Vec<u8> = text.bytes().filter(|b| !matches!(b, b'\r' | b'\n')).collect();
    let digits = clean.iter().position(|b| *b == b'=').unwrap_or(clean.len());
    let alphabet = |b: &u8| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'/');
    if let Some(at) = clean[..digits].iter().position(|b| !alphabet(b)) {
        return Some(at);
    }
    let padding = clean.len() - digits;
    if clean.len().is_multiple_of(4) && padding <= 2 && clean[digits..].iter().all(|b| *b == b'=') {
        return None;
    }
    Some(if padding == 0 { clean.len() } else { digits.min(clean.len()) })
}

fn bad_time(text: &str, layout: &str) -> String {
    let first = layout.split(['-', 'T']).next().unwrap_or(layout);
    format!("parsing time {text:?} as {layout:?}: cannot parse {text:?} as {first:?}")
}

/// `metav1.MicroTime`: six digits after the point, no more and no fewer.
fn micro_time(text: &str) -> Result<(), String> {
    const LAYOUT: &str = "2006-01-02T15:04:05.000000Z07:00";
    if crate::clock::parse_rfc3339(text).is_none() {
        return Err(bad_time(text, LAYOUT));
    }
    let rest = &text[19..];
    let digits = rest.strip_prefix('.').map_or(0, |r| r.bytes().take_while(u8::is_ascii_digit).count());
    if digits == 6 {
        return Ok(());
    }
    Err(format!("parsing time {text:?} as {LAYOUT:?}: cannot parse {rest:?} as \".000000\""))
}

fn object<'a>(value: &'a mut Value, name: &str) -> &'a mut Map<String, Value> {
    let slot = &mut value[name];
    if !slot.is_object() {
        *slot = json!({});
    }
    slot.as_object_mut().expect("just made one")
}

fn default(map: &mut Map<String, Value>, name: &str, value: Value) {
    map.entry(name).or_insert(value);
}

/// Defaults that hold for new and changed objects alike.
pub(crate) fn apply_defaults(resource: &Resource, value: &mut Value) {
    match resource.rules {
        Rules::Secret => {
            if let Some(Value::Object(plain)) = value.as_object_mut().and_then(|m| m.remove("stringData")) {
                use base64::Engine as _;
                let data = object(value, "data");
                for (k, v) in plain {
                    let text = base64::engine::general_purpose::STANDARD.encode(v.as_str().unwrap_or(""));
                    data.insert(k, Value::String(text));
                }
            }
            if value.get("type").and_then(Value::as_str).unwrap_or("").is_empty() {
                value["type"] = json!("Opaque");
            }
        }
        Rules::Pod => pod_spec(object(value, "spec")),
        Rules::Deployment => {
            let spec = object(value, "spec");
            default(spec, "replicas", json!(1));
            default(
                spec,
                "strategy",
                json!({"type":"RollingUpdate","rollingUpdate":{"maxUnavailable":"25%","maxSurge":"25%"}}),
            );
            default(spec, "revisionHistoryLimit", json!(10));
            default(spec, "progressDeadlineSeconds", json!(600));
            if let Some(template) =
                spec.get_mut("template").and_then(|t| t.get_mut("spec")).and_then(Value::as_object_mut)
            {
                pod_spec(template);
            }
            object(value, "status");
        }
        Rules::Service => {
            let spec = object(value, "spec");
            default(spec, "type", json!("ClusterIP"));
            default(spec, "sessionAffinity", json!("None"));
            default(spec, "ipFamilies", json!(["IPv4"]));
            default(spec, "ipFamilyPolicy", json!("SingleStack"));
            default(spec, "internalTrafficPolicy", json!("Cluster"));
            for port in spec.get_mut("ports").and_then(Value::as_array_mut).into_iter().flatten() {
                if let Some(port) = port.as_object_mut() {
                    default(port, "protocol", json!("TCP"));
                    let same = port.get("port").cloned().unwrap_or(Value::Null);
                    default(port, "targetPort", same);
                }
            }
            default(object(value, "status"), "loadBalancer", json!({}));
        }
        Rules::Lease => {
            object(value, "spec");
        }
        Rules::Event => {
            for (name, v) in [
                ("source", json!({})),
                ("firstTimestamp", Value::Null),
                ("lastTimestamp", Value::Null),
                ("eventTime", Value::Null),
                ("reportingComponent", json!("")),
                ("reportingInstance", json!("")),
                ("involvedObject", json!({})),
            ] {
                if let Some(map) = value.as_object_mut() {
                    default(map, name, v);
                }
            }
        }
        Rules::Node => {
            object(value, "spec");
            object(value, "status");
        }
        _ => {}
    }
}

fn pod_spec(spec: &mut Map<String, Value>) {
    for list in ["initContainers", "containers"] {
        for container in spec.get_mut(list).and_then(Value::as_array_mut).into_iter().flatten() {
            let Some(c) = container.as_object_mut() else { continue };
            default(c, "resources", json!({}));
            default(c, "terminationMessagePath", json!("/dev/termination-log"));
            default(c, "terminationMessagePolicy", json!("File"));
            let image = c.get("image").and_then(Value::as_str).unwrap_or("");
            let tag = image.rsplit('/').next().unwrap_or("").split_once(':').map_or("latest", |(_, t)| t);
            let policy = if tag == "latest" { "Always" } else { "IfNotPresent" };
            default(c, "imagePullPolicy", json!(policy));
        }
    }
    default(spec, "restartPolicy", json!("Always"));
    default(spec, "terminationGracePeriodSeconds", json!(30));
    default(spec, "dnsPolicy", json!("ClusterFirst"));
    default(spec, "securityContext", json!({}));
    default(spec, "schedulerName", json!("default-scheduler"));
}

/// What a new object gets that a changed one does not. `address` numbers cluster addresses of services.
pub(crate) fn prepare_create(resource: &Resource, value: &mut Value, address: u64) {
    if resource.status
        && !matches!(resource.rules, Rules::Node | Rules::Namespace)
        && let Some(map) = value.as_object_mut()
    {
        map.remove("status");
    }
    apply_defaults(resource, value);
    if resource.counts_generation() {
        value["metadata"]["generation"] = json!(1);
    }
    match resource.rules {
        Rules::Pod => {
            let spec = object(value, "spec");
            default(spec, "priority", json!(0));
            default(spec, "enableServiceLinks", json!(true));
            default(spec, "preemptionPolicy", json!("PreemptLowerPriority"));
            let wait = |key: &str| json!({"key":key,"operator":"Exists","effect":"NoExecute","tolerationSeconds":300});
            default(
                spec,
                "tolerations",
                json!([wait("node.kubernetes.io/not-ready"), wait("node.kubernetes.io/unreachable")]),
            );
            value["status"] = json!({"phase":"Pending","qosClass":"BestEffort"});
        }
        Rules::Namespace => {
            let name = value["metadata"]["name"].clone();
            object(&mut value["metadata"], "labels").insert("kubernetes.io/metadata.name".into(), name);
            value["spec"] = json!({"finalizers":["kubernetes"]});
            value["status"] = json!({"phase":"Active"});
        }
        Rules::Service => {
            let ip = format!("10.0.{}.{}", address / 254 % 256, address % 254 + 1);
            let spec = object(value, "spec");
            if spec.get("type").and_then(Value::as_str) != Some("ExternalName") {
                default(spec, "clusterIP", json!(ip));
                let ip = spec["clusterIP"].clone();
                default(spec, "clusterIPs", json!([ip]));
            }
        }
        _ => {}
    }
}

/// Settles what an update may touch. `old` and `new` both carry complete metadata.
pub(crate) fn prepare_update(resource: &Resource, subresource: &str, old: &Value, new: &mut Value) {
    if subresource == "status" {
        let status = new.get("status").cloned();
        let meta = new["metadata"].clone();
        *new = old.clone();
        match status {
            Some(s) => new["status"] = s,
            None => {
                if let Some(map) = new.as_object_mut() {
                    map.remove("status");
                }
            }
        }
        if !resource.is_custom() {
            new["metadata"] = meta;
        }
    } else if resource.status {
        match old.get("status") {
            Some(s) => new["status"] = s.clone(),
            None => {
                if let Some(map) = new.as_object_mut() {
                    map.remove("status");
                }
            }
        }
    }
    if resource.rules == Rules::Namespace && subresource != "finalize" {
        new["spec"]["finalizers"] = old["spec"]["finalizers"].clone();
    }
    apply_defaults(resource, new);
    for name in ["creationTimestamp", "deletionGracePeriodSeconds"] {
        copy(old, new, name);
    }
    if new["metadata"].get("deletionTimestamp").is_none() {
        copy(old, new, "deletionTimestamp");
    }
    if resource.counts_generation() {
        copy(old, new, "generation");
        let changed = match resource.rules {
            Rules::Custom => differs_beyond(old, new, resource.status),
            Rules::Deployment => {
                old.get("spec") != new.get("spec")
                    || old["metadata"].get("annotations") != new["metadata"].get("annotations")
            }
            _ => old.get("spec") != new.get("spec"),
        };
        if changed {
            bump_generation(new);
        }
    }
}

fn copy(old: &Value, new: &mut Value, name: &str) {
    let Some(meta) = new["metadata"].as_object_mut() else { return };
    match old["metadata"].get(name) {
        Some(v) => {
            meta.insert(name.to_owned(), v.clone());
        }
        None => {
            meta.remove(name);
        }
    }
}

fn differs_beyond(old: &Value, new: &Value, status_too: bool) -> bool {
    let (Some(old), Some(new)) = (old.as_object(), new.as_object()) else { return true };
    let counts = |name: &str| name != "metadata" && !(status_too && name == "status");
    old.iter().any(|(k, v)| counts(k) && new.get(k) != Some(v))
        || new.keys().any(|k| counts(k) && !old.contains_key(k))
}

/// One generation more, where generations are counted.
pub(crate) fn bump_generation(value: &mut Value) {
    if let Some(n) = value["metadata"].get("generation").and_then(Value::as_i64) {
        value["metadata"]["generation"] = json!(n.saturating_add(1));
    }
}

/// Everything wrong with an object; `old` if it is an update.
pub(crate) fn validate(resource: &Resource, value: &Value, old: Option<&Value>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    if old.is_none() {
        let check = match resource.rules {
            Rules::Namespace | Rules::Service => validate::dns_label,
            _ => validate::subdomain,
        };
        validate::metadata(&value["metadata"], check, resource.is_custom(), &mut errors);
    } else {
        validate::metadata(&value["metadata"], |_| None, resource.is_custom(), &mut errors);
    }
    if let Some(old) = old {
        immutable_metadata(&value["metadata"], &old["metadata"], &mut errors);
    }
    match resource.rules {
        Rules::ConfigMap => {
            config_keys(value, &["data", "binaryData"], &mut errors);
            for key in value.get("data").and_then(Value::as_object).into_iter().flat_map(Map::keys) {
                if value.get("binaryData").is_some_and(|b| b.get(key).is_some()) {
                    errors.push(FieldError::invalid_str(
                        format!("data[{key}]"),
                        key,
                        "duplicate of key present in binaryData",
                    ));
                }
            }
            immutable_data(value, old, &["data", "binaryData"], &mut errors);
        }
        Rules::Secret => {
            config_keys(value, &["data"], &mut errors);
            if let Some(old) = old
                && old.get("type") != value.get("type")
            {
                errors.push(FieldError::invalid("type", &value["type"], "field is immutable"));
            }
            immutable_data(value, old, &["data"], &mut errors);
        }
        Rules::Pod if value["spec"].get("containers").and_then(Value::as_array).is_none_or(Vec::is_empty) => {
            errors.push(FieldError::required("spec.containers", ""));
        }
        Rules::Lease => {
            let spec = &value["spec"];
            if spec.get("leaseDurationSeconds").and_then(Value::as_i64).is_some_and(|n| n <= 0) {
                errors.push(FieldError::invalid(
                    "spec.leaseDurationSeconds",
                    &spec["leaseDurationSeconds"],
                    "must be greater than 0",
                ));
            }
            if spec.get("leaseTransitions").and_then(Value::as_i64).is_some_and(|n| n < 0) {
                errors.push(FieldError::invalid(
                    "spec.leaseTransitions",
                    &spec["leaseTransitions"],
                    "must be greater than or equal to 0",
                ));
            }
        }
        Rules::Event => {
            let of = value["involvedObject"].get("namespace").and_then(Value::as_str).unwrap_or("");
            let own = value["metadata"].get("namespace").and_then(Value::as_str).unwrap_or("");
            if own != if of.is_empty() { "default" } else { of } {
                errors.push(FieldError::invalid_str(
                    "involvedObject.namespace",
                    of,
                    "does not match event.namespace",
                ));
            }
        }
        Rules::Custom => {
            let kind = value.get("kind").and_then(Value::as_str).unwrap_or("");
            if kind != resource.of.kind {
                errors.insert(
                    0,
                    FieldError::invalid_str("kind", kind, &format!("must be {}", resource.of.kind)),
                );
            }
        }
        _ => {}
    }
    errors
}

fn immutable_metadata(new: &Value, old: &Value, errors: &mut Vec<FieldError>) {
    for name in ["uid", "deletionTimestamp"] {
        // The real server checks twice on its way, and says so twice.
        if let Some(v) = new.get(name)
            && old.get(name) != Some(v)
        {
            for _ in 0..2 {
                errors.push(FieldError::invalid(format!("metadata.{name}"), v, "field is immutable"));
            }
        }
    }
    if old.get("deletionTimestamp").is_some() {
        let list = |v: &Value| -> Vec<String> {
            v.get("finalizers")
                .and_then(Value::as_array)
                .into_iter()
                .flatten()
                .filter_map(Value::as_str)
                .map(str::to_owned)
                .collect()
        };
        let had = list(old);
        let added: Vec<String> =
            list(new).into_iter().filter(|f| !had.contains(f)).map(|f| format!("{f:?}")).collect();
        if !added.is_empty() {
            let text = format!(
                "no new finalizers can be added if the object is being deleted, found new finalizers []string{{{}}}",
                added.join(", ")
            );
            for _ in 0..2 {
                errors.push(FieldError::forbidden("metadata.finalizers", &text));
            }
        }
    }
}

fn config_keys(value: &Value, maps: &[&str], errors: &mut Vec<FieldError>) {
    for name in maps {
        for key in value.get(*name).and_then(Value::as_object).into_iter().flat_map(Map::keys) {
            if let Some(problem) = validate::config_key(key) {
                errors.push(FieldError::invalid_str(format!("{name}[{key}]"), key, &problem));
            }
        }
    }
}

fn immutable_data(value: &Value, old: Option<&Value>, maps: &[&str], errors: &mut Vec<FieldError>) {
    let Some(old) = old else { return };
    if old.get("immutable") != Some(&Value::Bool(true)) {
        return;
    }
    const WHY: &str = "field is immutable when `immutable` is set";
    if value.get("immutable") != Some(&Value::Bool(true)) {
        errors.push(FieldError::forbidden("immutable", WHY));
    }
    for name in maps {
        if value.get(*name) != old.get(*name) {
            errors.push(FieldError::forbidden(name, WHY));
        }
    }
}

const EVENT_NAMES: [(&str, &str); 7] = [
    ("involvedObject", "regarding"),
    ("message", "note"),
    ("source", "deprecatedSource"),
    ("firstTimestamp", "deprecatedFirstTimestamp"),
    ("lastTimestamp", "deprecatedLastTimestamp"),
    ("count", "deprecatedCount"),
    ("reportingComponent", "reportingController"),
];

/// A stored event as `events.k8s.io/v1` shows it.
pub(crate) fn event_out(stored: &Value) -> Value {
    rename(stored, "events.k8s.io/v1", |name| {
        EVENT_NAMES.iter().find(|(core, _)| *core == name).map_or(name, |(_, new)| *new)
    })
}

/// An event of `events.k8s.io/v1` as it is stored.
pub(crate) fn event_in(sent: &Value) -> Value {
    rename(sent, "v1", |name| {
        EVENT_NAMES.iter().find(|(_, new)| *new == name).map_or(name, |(core, _)| *core)
    })
}

fn rename(value: &Value, api_version: &str, names: impl Fn(&str) -> &str) -> Value {
    let Some(map) = value.as_object() else { return value.clone() };
    let mut renamed: Map<String, Value> = map.iter().map(|(k, v)| (names(k).to_owned(), v.clone())).collect();
    renamed.insert("apiVersion".into(), Value::String(api_version.to_owned()));
    Value::Object(renamed)
}

/// Whether a resource can be selected by a field, and the words if not.
pub(crate) fn selectable(resource: &Resource, path: &str) -> Result<(), String> {
    let own: &[&str] = match resource.rules {
        Rules::Pod => &[
            "spec.nodeName",
            "spec.restartPolicy",
            "spec.schedulerName",
            "spec.serviceAccountName",
            "spec.hostNetwork",
            "status.phase",
            "status.podIP",
            "status.podIPs",
            "status.nominatedNodeName",
        ],
        Rules::Secret => &["type"],
        Rules::Node => &["spec.unschedulable"],
        Rules::Namespace => &["status.phase"],
        Rules::Service => &["spec.clusterIP", "spec.type"],
        Rules::Event => &[
            "involvedObject.kind",
            "involvedObject.namespace",
            "involvedObject.name",
            "involvedObject.uid",
            "involvedObject.apiVersion",
            "involvedObject.resourceVersion",
            "involvedObject.fieldPath",
            "reason",
            "reportingComponent",
            "source",
            "type",
        ],
        _ => &[],
    };
    if matches!(path, "metadata.name" | "metadata.namespace") || own.contains(&path) {
        return Ok(());
    }
    Err(match resource.rules {
        Rules::Pod
        | Rules::Secret
        | Rules::Node
        | Rules::Namespace
        | Rules::Service
        | Rules::Event
        | Rules::Custom => {
            format!("field label not supported: {path}")
        }
        _ => {
            format!("{path:?} is not a known field selector: only \"metadata.name\", \"metadata.namespace\"")
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::resource::builtins;

    fn of(plural: &str) -> Resource {
        builtins().into_iter().find(|r| r.of.plural == plural).unwrap()
    }

    #[test]
    fn go_types_are_enforced_in_go_words() {
        let cm = of("configmaps");
        let check = |v: Value| {
            let mut v = v;
            normalise(&cm, &mut v, &mut Vec::new()).map(|()| v)
        };
        assert_eq!(
            check(json!({"data":{"k":5}})).unwrap_err(),
            "json: cannot unmarshal number into Go struct field ConfigMap.data of type string"
        );
        assert_eq!(
            check(json!({"metadata":{"labels":{"a":5}}})).unwrap_err(),
            "json: cannot unmarshal number into Go struct field ObjectMeta.metadata.labels of type string"
        );
        assert_eq!(
            check(json!({"metadata":{"ownerReferences":[{"uid":5}]}})).unwrap_err(),
            "json: cannot unmarshal number into Go struct field OwnerReference.metadata.ownerReferences.uid of type string"
        );
        assert_eq!(
            check(json!({"binaryData":{"a":"!"}})).unwrap_err(),
            "illegal base64 data at input byte 0"
        );
        assert_eq!(
            check(json!({"metadata":{"name":"a","annotations":{"x":null},"labels":{},"foo":1},"data":{}}))
                .unwrap(),
            json!({"metadata":{"name":"a","annotations":{"x":""}}})
        );
    }

    #[test]
    fn secrets_merge_their_plain_text() {
        let mut s = json!({"data":{"a":"YQ=="},"stringData":{"b":"b"}});
        apply_defaults(&of("secrets"), &mut s);
        assert_eq!(s, json!({"data":{"a":"YQ==","b":"Yg=="},"type":"Opaque"}));
    }

    #[test]
    fn lease_times_need_six_digits() {
        assert!(micro_time("2026-01-01T00:00:00.123456Z").is_ok());
        assert_eq!(
            micro_time("2026-01-01T00:00:00Z").unwrap_err(),
            "parsing time \"2026-01-01T00:00:00Z\" as \"2006-01-02T15:04:05.000000Z07:00\": cannot parse \"Z\" as \".000000\""
        );
    }

    #[test]
    fn events_turn_both_ways() {
        let core = json!({"apiVersion":"v1","kind":"Event","involvedObject":{"name":"a"},"message":"m"});
        let new = event_out(&core);
        assert_eq!(new["regarding"]["name"], "a");
        assert_eq!(event_in(&new), core);
    }

    #[test]
    fn base64_as_go_checks_it() {
        for good in ["", "YQ==", "YWI=", "YWJj", "YW\nJj"] {
            assert_eq!(bad_base64(good), None, "{good:?}");
        }
        for bad in ["!!", "YQ", "YQ=", "Y===", "YQ==YQ=="] {
            assert!(bad_base64(bad).is_some(), "{bad:?}");
        }
    }
}
