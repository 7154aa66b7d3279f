//! Bodies in Kubernetes' protobuf, which `kubectl create` and every typed Go client prefer to send.
//!
//! Only requests: answers are JSON, which the same clients accept. The field numbers are those of the `generated.proto`
//! files of `k8s.io/api` and `k8s.io/apimachinery`. A field that is not listed here and carries a value is an error, so that
//! nothing is lost in silence.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value, json};
use steersman_core::time::UnixMillis;

/// `k8s\0` opens every such body.
const MAGIC: &[u8] = b"k8s\0";

type Message = &'static [Field];
type Field = (u32, &'static str, Kind);

/// How a field's bytes become JSON. Zero values of fields that are no pointers are always sent, and stand for nothing.
#[derive(Clone, Copy)]
enum Kind {
    Text,
    /// A number; zero is nothing.
    Int,
    /// A number behind a pointer; zero counts.
    OptInt,
    Bool,
    OptBool,
    Time,
    MicroTime,
    Of(Message),
    Texts,
    Many(Message),
    TextMap,
    BytesMap,
    IntOrText,
    /// The server's own business.
    Skip,
}
use Kind::{
    Bool, BytesMap, Int, IntOrText, Many, MicroTime, Of, OptBool, OptInt, Skip, Text, TextMap, Texts, Time,
};

const OWNER: Message = &[
    (1, "kind", Text),
    (3, "name", Text),
    (4, "uid", Text),
    (5, "apiVersion", Text),
    (6, "controller", OptBool),
    (7, "blockOwnerDeletion", OptBool),
];
const META: Message = &[
    (1, "name", Text),
    (2, "generateName", Text),
    (3, "namespace", Text),
    (4, "selfLink", Text),
    (5, "uid", Text),
    (6, "resourceVersion", Text),
    (7, "generation", Int),
    (8, "creationTimestamp", Time),
    (9, "deletionTimestamp", Time),
    (10, "deletionGracePeriodSeconds", OptInt),
    (11, "labels", TextMap),
    (12, "annotations", TextMap),
    (13, "ownerReferences", Many(OWNER)),
    (14, "finalizers", Texts),
    (17, "managedFields", Skip),
];
const NAMED: Message = &[(1, "name", Text)];
const REFERENCE: Message = &[
    (1, "kind", Text),
    (2, "namespace", Text),
    (3, "name", Text),
    (4, "uid", Text),
    (5, "apiVersion", Text),
    (6, "resourceVersion", Text),
    (7, "fieldPath", Text),
];
const CONFIG_MAP: Message = &[
    (1, "metadata", Of(META)),
    (2, "data", TextMap),
    (3, "binaryData", BytesMap),
    (4, "immutable", OptBool),
];
const SECRET: Message = &[
    (1, "metadata", Of(META)),
    (2, "data", BytesMap),
    (3, "type", Text),
    (4, "stringData", TextMap),
    (5, "immutable", OptBool),
];
const NAMESPACE: Message =
    &[(1, "metadata", Of(META)), (2, "spec", Of(&[(1, "finalizers", Texts)])), (3, "status", Skip)];
const SERVICE_ACCOUNT: Message = &[
    (1, "metadata", Of(META)),
    (2, "secrets", Many(REFERENCE)),
    (3, "imagePullSecrets", Many(NAMED)),
    (4, "automountServiceAccountToken", OptBool),
];
const LEASE_SPEC: Message = &[
    (1, "holderIdentity", Text),
    (2, "leaseDurationSeconds", OptInt),
    (3, "acquireTime", MicroTime),
    (4, "renewTime", MicroTime),
    (5, "leaseTransitions", OptInt),
    (6, "strategy", Text),
    (7, "preferredHolder", Text),
];
const LEASE: Message = &[(1, "metadata", Of(META)), (2, "spec", Of(LEASE_SPEC))];
const SOURCE: Message = &[(1, "component", Text), (2, "host", Text)];
const SERIES: Message = &[(1, "count", Int), (2, "lastObservedTime", MicroTime)];
const EVENT: Message = &[
    (1, "metadata", Of(META)),
    (2, "involvedObject", Of(REFERENCE)),
    (3, "reason", Text),
    (4, "message", Text),
    (5, "source", Of(SOURCE)),
    (6, "firstTimestamp", Time),
    (7, "lastTimestamp", Time),
    (8, "count", Int),
    (9, "type", Text),
    (10, "eventTime", MicroTime),
    (11, "series", Of(SERIES)),
    (12, "action", Text),
    (13, "related", Of(REFERENCE)),
    (14, "reportingComponent", Text),
    (15, "reportingInstance", Text),
];
const EVENT_NEW: Message = &[
    (1, "metadata", Of(META)),
    (2, "eventTime", MicroTime),
    (3, "series", Of(SERIES)),
    (4, "reportingController", Text),
    (5, "reportingInstance", Text),
    (6, "action", Text),
    (7, "reason", Text),
    (8, "regarding", Of(REFERENCE)),
    (9, "related", Of(REFERENCE)),
    (10, "note", Text),
    (11, "type", Text),
    (12, "deprecatedSource", Of(SOURCE)),
    (13, "deprecatedFirstTimestamp", Time),
    (14, "deprecatedLastTimestamp", Time),
    (15, "deprecatedCount", Int),
];
const PORT: Message = &[
    (1, "name", Text),
    (2, "hostPort", Int),
    (3, "containerPort", Int),
    (4, "protocol", Text),
    (5, "hostIP", Text),
];
const CONTAINER: Message = &[
    (1, "name", Text),
    (2, "image", Text),
    (3, "command", Texts),
    (4, "args", Texts),
    (5, "workingDir", Text),
    (6, "ports", Many(PORT)),
    (7, "env", Many(&[(1, "name", Text), (2, "value", Text)])),
    (8, "resources", Of(&[])),
    (13, "terminationMessagePath", Text),
    (14, "imagePullPolicy", Text),
    (16, "stdin", Bool),
    (17, "stdinOnce", Bool),
    (18, "tty", Bool),
    (20, "terminationMessagePolicy", Text),
];
const TOLERATION: Message = &[
    (1, "key", Text),
    (2, "operator", Text),
    (3, "value", Text),
    (4, "effect", Text),
    (5, "tolerationSeconds", OptInt),
];
const POD_SPEC: Message = &[
    (2, "containers", Many(CONTAINER)),
    (3, "restartPolicy", Text),
    (4, "terminationGracePeriodSeconds", OptInt),
    (5, "activeDeadlineSeconds", OptInt),
    (6, "dnsPolicy", Text),
    (7, "nodeSelector", TextMap),
    (8, "serviceAccountName", Text),
    (9, "serviceAccount", Text),
    (10, "nodeName", Text),
    (11, "hostNetwork", Bool),
    (12, "hostPID", Bool),
    (13, "hostIPC", Bool),
    (14, "securityContext", Of(&[])),
    (15, "imagePullSecrets", Many(NAMED)),
    (16, "hostname", Text),
    (17, "subdomain", Text),
    (19, "schedulerName", Text),
    (20, "initContainers", Many(CONTAINER)),
    (21, "automountServiceAccountToken", OptBool),
    (22, "tolerations", Many(TOLERATION)),
    (24, "priorityClassName", Text),
    (25, "priority", OptInt),
    (30, "enableServiceLinks", OptBool),
    (31, "preemptionPolicy", Text),
];
const POD: Message = &[(1, "metadata", Of(META)), (2, "spec", Of(POD_SPEC)), (3, "status", Skip)];
const SELECTOR: Message = &[
    (1, "matchLabels", TextMap),
    (2, "matchExpressions", Many(&[(1, "key", Text), (2, "operator", Text), (3, "values", Texts)])),
];
const STRATEGY: Message = &[
    (1, "type", Text),
    (2, "rollingUpdate", Of(&[(1, "maxUnavailable", IntOrText), (2, "maxSurge", IntOrText)])),
];
const DEPLOYMENT_SPEC: Message = &[
    (1, "replicas", OptInt),
    (2, "selector", Of(SELECTOR)),
    (3, "template", Of(&[(1, "metadata", Of(META)), (2, "spec", Of(POD_SPEC))])),
    (4, "strategy", Of(STRATEGY)),
    (5, "minReadySeconds", Int),
    (6, "revisionHistoryLimit", OptInt),
    (7, "paused", Bool),
    (9, "progressDeadlineSeconds", OptInt),
];
const DEPLOYMENT: Message =
    &[(1, "metadata", Of(META)), (2, "spec", Of(DEPLOYMENT_SPEC)), (3, "status", Skip)];
const SERVICE_PORT: Message = &[
    (1, "name", Text),
    (2, "protocol", Text),
    (3, "port", Int),
    (4, "targetPort", IntOrText),
    (5, "nodePort", Int),
    (6, "appProtocol", Text),
];
const SERVICE_SPEC: Message = &[
    (1, "ports", Many(SERVICE_PORT)),
    (2, "selector", TextMap),
    (3, "clusterIP", Text),
    (4, "type", Text),
    (5, "externalIPs", Texts),
    (7, "sessionAffinity", Text),
    (10, "externalName", Text),
    (11, "externalTrafficPolicy", Text),
    (13, "publishNotReadyAddresses", Bool),
    (17, "ipFamilyPolicy", Text),
    (18, "clusterIPs", Texts),
    (19, "ipFamilies", Texts),
    (22, "internalTrafficPolicy", Text),
];
const SERVICE: Message = &[(1, "metadata", Of(META)), (2, "spec", Of(SERVICE_SPEC)), (3, "status", Skip)];
const DELETE_OPTIONS: Message = &[
    (1, "gracePeriodSeconds", OptInt),
    (2, "preconditions", Of(&[(1, "uid", Text), (2, "resourceVersion", Text)])),
    (3, "orphanDependents", OptBool),
    (4, "propagationPolicy", Text),
    (5, "dryRun", Texts),
    (6, "ignoreStoreReadErrorWithClusterBreakingPotential", OptBool),
];
const TYPE: Message = &[(1, "apiVersion", Text), (2, "kind", Text)];

const KINDS: [(&str, &str, Message); 12] = [
    ("v1", "ConfigMap", CONFIG_MAP),
    ("v1", "Secret", SECRET),
    ("v1", "Namespace", NAMESPACE),
    ("v1", "ServiceAccount", SERVICE_ACCOUNT),
    ("v1", "Event", EVENT),
    ("v1", "Pod", POD),
    ("v1", "Service", SERVICE),
    ("apps/v1", "Deployment", DEPLOYMENT),
    ("coordination.k8s.io/v1", "Lease", LEASE),
    ("events.k8s.io/v1", "Event", EVENT_NEW),
    ("policy/v1", "Eviction", &[(1, "metadata", Of(META)), (2, "deleteOptions", Of(DELETE_OPTIONS))]),
    ("", "DeleteOptions", DELETE_OPTIONS),
];

/// The body as JSON, or one line that says what is wrong with it.
pub(crate) fn to_json(body: &[u8]) -> Result<Value, String> {
    let mut rest =
        body.strip_prefix(MAGIC).ok_or("provided data does not appear to be a protobuf message")?;
    let (mut meta, mut raw) = (Map::new(), &[][..]);
    while let Some((number, wire)) = field(&mut rest)? {
        match (number, wire) {
            (1, Wire::Bytes(b)) => meta = message(b, TYPE)?,
            (2, Wire::Bytes(b)) => raw = b,
            _ => {}
        }
    }
    let text = |name: &str| meta.get(name).and_then(Value::as_str).unwrap_or("");
    let (api_version, kind) = (text("apiVersion"), text("kind"));
    let known = KINDS.iter().find(|(a, k, _)| *k == kind && (a.is_empty() || *a == api_version));
    let Some((_, _, fields)) = known else {
        return Err(format!("{api_version} {kind} is not understood as protobuf here; send JSON"));
    };
    let mut object = message(raw, fields)?;
    object.append(&mut meta);
    Ok(Value::Object(object))
}

enum Wire<'a> {
    Number(u64),
    Bytes(&'a [u8]),
}

fn varint(bytes: &mut &[u8]) -> Result<u64, String> {
    let mut n = 0;
    for shift in (0..64).step_by(7) {
        let (first, rest) = bytes.split_first().ok_or("unexpected EOF")?;
        *bytes = rest;
        n |= u64::from(first & 0x7f) << shift;
        if first & 0x80 == 0 {
            return Ok(n);
        }
    }
    Err("proto: integer overflow".into())
}

fn field<'a>(bytes: &mut &'a [u8]) -> Result<Option<(u32, Wire<'a>)>, String> {
    if bytes.is_empty() {
        return Ok(None);
    }
    let tag = varint(bytes)?;
    let number = u32::try_from(tag >> 3).map_err(|_| "proto: illegal tag")?;
    let mut take = |n: u64| {
        let n = usize::try_from(n).map_err(|_| "unexpected EOF")?;
        let (head, rest) = bytes.split_at_checked(n).ok_or("unexpected EOF")?;
        *bytes = rest;
        Ok::<_, String>(head)
    };
    let wire = match tag & 7 {
        0 => Wire::Number(varint(bytes)?),
        1 => Wire::Bytes(take(8)?),
        5 => Wire::Bytes(take(4)?),
        2 => {
            let n = varint(bytes)?;
            let n = usize::try_from(n).map_err(|_| "unexpected EOF")?;
            let (head, rest) = bytes.split_at_checked(n).ok_or("unexpected EOF")?;
            *bytes = rest;
            Wire::Bytes(head)
        }
        other => return Err(format!("proto: illegal wireType {other}")),
    };
    Ok(Some((number, wire)))
}

/// Recurses as deep as the tables above, which are finite.
fn message(mut bytes: &[u8], fields: Message) -> Result<Map<String, Value>, String> {
    let mut map = Map::new();
    while let Some((number, wire)) = field(&mut bytes)? {
        let Some((_, name, kind)) = fields.iter().find(|(n, ..)| *n == number) else {
            match wire {
                Wire::Number(0) | Wire::Bytes([]) => continue,
                _ => return Err(format!("protobuf field {number} is not understood here; send JSON")),
            }
        };
        put(&mut map, name, *kind, wire).map_err(|e| format!("{name}: {e}"))?;
    }
    Ok(map)
}

fn text(bytes: &[u8]) -> Result<Value, String> {
    Ok(Value::String(String::from_utf8(bytes.to_vec()).map_err(|_| "not UTF-8")?))
}

fn put(map: &mut Map<String, Value>, name: &str, kind: Kind, wire: Wire<'_>) -> Result<(), String> {
    let value = match (kind, wire) {
        (Skip, _) | (Text, Wire::Bytes([])) | (Int, Wire::Number(0)) | (Bool, Wire::Number(0)) => {
            return Ok(());
        }
        (Text, Wire::Bytes(b)) => text(b)?,
        // Negative numbers are sent as 64 bits in two's complement.
        (Int | OptInt, Wire::Number(n)) => json!(n.cast_signed()),
        (Bool | OptBool, Wire::Number(n)) => Value::Bool(n != 0),
        (Time | MicroTime, Wire::Bytes([])) => return Ok(()),
        (Time | MicroTime, Wire::Bytes(b)) => time(b, matches!(kind, MicroTime))?,
        (Of(fields), Wire::Bytes(b)) => Value::Object(message(b, fields)?),
        (IntOrText, Wire::Bytes(b)) => {
            let parts = message(b, &[(1, "type", Int), (2, "int", OptInt), (3, "text", Text)])?;
            let which = if parts.contains_key("type") { "text" } else { "int" };
            parts.get(which).cloned().unwrap_or(Value::Null)
        }
        (Texts | Many(_), Wire::Bytes(b)) => {
            let item = if let Many(fields) = kind { Value::Object(message(b, fields)?) } else { text(b)? };
            let list = map.entry(name).or_insert_with(|| json!([]));
            if let Some(list) = list.as_array_mut() {
                list.push(item);
            }
            return Ok(());
        }
        (TextMap | BytesMap, Wire::Bytes(mut b)) => {
            let (mut key, mut value) = (String::new(), json!(""));
            while let Some((number, wire)) = field(&mut b)? {
                match (number, wire) {
                    (1, Wire::Bytes(k)) => key = String::from_utf8(k.to_vec()).map_err(|_| "not UTF-8")?,
                    (2, Wire::Bytes(v)) if matches!(kind, BytesMap) => value = json!(STANDARD.encode(v)),
                    (2, Wire::Bytes(v)) => value = text(v)?,
                    _ => {}
                }
            }
            let entries = map.entry(name).or_insert_with(|| json!({}));
            entries[key.as_str()] = value;
            return Ok(());
        }
        (_, Wire::Number(_) | Wire::Bytes(_)) => return Err("proto: wrong wireType".into()),
    };
    map.insert(name.to_owned(), value);
    Ok(())
}

fn time(bytes: &[u8], micro: bool) -> Result<Value, String> {
    let parts = message(bytes, &[(1, "seconds", OptInt), (2, "nanos", OptInt)])?;
    let part = |name: &str| parts.get(name).and_then(Value::as_i64).unwrap_or(0);
    let (seconds, nanos) = (part("seconds"), part("nanos"));
    // The zero time of Go, and what cannot be shown with four digits of year.
    if !(-62_135_596_799..=253_402_300_799).contains(&seconds) || !(0..1_000_000_000).contains(&nanos) {
        return Ok(Value::Null);
    }
    let mut shown = crate::clock::rfc3339(UnixMillis(seconds * 1000));
    if micro {
        shown.truncate(shown.len() - 1);
        shown += &format!(".{:06}Z", nanos / 1000);
    }
    Ok(Value::String(shown))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(number: u32, body: &[u8]) -> Vec<u8> {
        let mut out = vec![u8::try_from(number << 3 | 2).unwrap()];
        out.push(u8::try_from(body.len()).unwrap());
        out.extend_from_slice(body);
        out
    }

    fn body(api: &str, kind: &str, object: &[u8]) -> Vec<u8> {
        let types = [bytes(1, api.as_bytes()), bytes(2, kind.as_bytes())].concat();
        [MAGIC.to_vec(), bytes(1, &types), bytes(2, object), bytes(3, b""), bytes(4, b"")].concat()
    }

    #[test]
    fn a_config_map() {
        let meta = [bytes(1, b"a"), bytes(2, b""), vec![7 << 3, 0], bytes(8, b"")].concat();
        let entry = [bytes(1, b"k"), bytes(2, b"v")].concat();
        let object = [bytes(1, &meta), bytes(2, &entry)].concat();
        assert_eq!(
            to_json(&body("v1", "ConfigMap", &object)).unwrap(),
            json!({"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"},"data":{"k":"v"}})
        );
    }

    #[test]
    fn times_and_numbers() {
        let time = [vec![1 << 3, 1], vec![2 << 3, 0xe8, 0x07]].concat();
        let spec = [bytes(1, b"me"), vec![2 << 3, 15], bytes(4, &time), vec![5 << 3, 0]].concat();
        let lease = to_json(&body("coordination.k8s.io/v1", "Lease", &bytes(2, &spec))).unwrap();
        assert_eq!(
            lease["spec"],
            json!({"holderIdentity":"me","leaseDurationSeconds":15,"renewTime":"1970-01-01T00:00:01.000001Z","leaseTransitions":0})
        );
    }

    #[test]
    fn what_is_not_understood_is_said_and_never_lost() {
        assert!(to_json(b"{}").is_err());
        assert!(to_json(&body("v1", "Node", b"")).unwrap_err().contains("send JSON"));
        let volumes = bytes(2, &bytes(1, b"x"));
        assert!(to_json(&body("v1", "Pod", &volumes)).unwrap_err().contains("field 1"));
        let whole = body("v1", "ConfigMap", &bytes(2, &[bytes(1, b"k"), bytes(2, b"v")].concat()));
        for cut in 0..whole.len() {
            let _ = to_json(&whole[..cut]);
        }
    }
}
