//! What the `Accept` header asks for: the object, its metadata alone, or rows for people.

use serde_json::Value;
use steersman_core::time::UnixMillis;

use super::store::Record;
use crate::clock::{human, parse_rfc3339};
use crate::json::{self, Members};
use crate::resource::{Resource, Rules};
use crate::status::Failure;

/// The form of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Format {
    Plain,
    Metadata,
    Table(Include),
}

/// What rows carry beside their cells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Include {
    None,
    Metadata,
    Object,
}

impl Format {
    /// The form that `accept` asks for; `streams` tells whether a watch could be asked for as well, `list` whether the
    /// answer is one object (or its events) or many.
    pub(super) fn negotiate(accept: &str, streams: bool, list: bool) -> Result<Self, Failure> {
        if accept.trim().is_empty() {
            return Ok(Self::Plain);
        }
        for range in accept.split(',') {
            let mut parts = range.split(';').map(str::trim);
            let media = parts.next().unwrap_or("");
            if !matches!(media, "application/json" | "application/*" | "*/*") {
                continue;
            }
            let (mut form, mut meta_group) = ("", true);
            for p in parts {
                match p.split_once('=') {
                    Some(("as", v)) => form = v,
                    Some(("g", v)) => meta_group = v == "meta.k8s.io",
                    _ => {}
                }
            }
            match form {
                "" => return Ok(Self::Plain),
                "Table" if meta_group => return Ok(Self::Table(Include::Metadata)),
                "PartialObjectMetadata" | "PartialObjectMetadataList" if meta_group => {
                    if list == form.ends_with("List") {
                        return Ok(Self::Metadata);
                    }
                    let is = if list { "a list" } else { "not a list" };
                    return Err(not_acceptable(format!(
                        "you requested {form}, but the requested object is {is}"
                    )));
                }
                _ => {}
            }
        }
        let streams = if streams {
            ", application/json;stream=watch, application/vnd.kubernetes.protobuf;stream=watch"
        } else {
            ""
        };
        Err(not_acceptable(format!(
            "406: Not Acceptable\n\nAvailable representations: application/json, application/yaml, application/vnd.kubernetes.protobuf{streams}"
        )))
    }

    /// The same with what `includeObject` says.
    pub(super) fn including(self, what: &str) -> Self {
        match (self, what) {
            (Self::Table(_), "None") => Self::Table(Include::None),
            (Self::Table(_), "Object") => Self::Table(Include::Object),
            _ => self,
        }
    }
}

fn not_acceptable(message: String) -> Failure {
    Failure {
        code: 406,
        reason: "NotAcceptable",
        message,
        details: Some(Box::default()),
        ..Failure::default()
    }
}

/// `PartialObjectMetadata` of an object.
pub(super) fn write_partial(out: &mut Vec<u8>, record: &Record) {
    out.extend_from_slice(
        b"{\"kind\":\"PartialObjectMetadata\",\"apiVersion\":\"meta.k8s.io/v1\",\"metadata\":",
    );
    json::write_metadata(out, record.meta());
    out.push(b'}');
}

type Cell = fn(&Value, &Record, UnixMillis) -> Value;

struct Column {
    name: &'static str,
    wide: bool,
    cell: Cell,
}

const fn column(name: &'static str, cell: Cell) -> Column {
    Column { name, wide: false, cell }
}

const fn wide(name: &'static str, cell: Cell) -> Column {
    Column { name, wide: true, cell }
}

fn text(v: &Value, path: &str, or: &str) -> Value {
    let found =
        path.split('.').try_fold(v, |v, name| v.get(name)).and_then(Value::as_str).filter(|s| !s.is_empty());
    found.unwrap_or(or).into()
}

fn number(v: &Value, path: &str) -> i64 {
    path.split('.').try_fold(v, |v, name| v.get(name)).and_then(Value::as_i64).unwrap_or(0)
}

fn count(v: &Value, names: &[&str]) -> usize {
    names.iter().filter_map(|n| v.get(*n).and_then(Value::as_object)).map(serde_json::Map::len).sum()
}

fn since(v: &Value, wall: UnixMillis) -> Value {
    match v.as_str().and_then(parse_rfc3339) {
        Some(at) => human(wall.0.div_euclid(1000) - at).into(),
        None => "<unknown>".into(),
    }
}

fn map_text(v: &Value) -> Value {
    let pairs: Vec<String> = v
        .as_object()
        .into_iter()
        .flatten()
        .map(|(k, v)| format!("{k}={}", v.as_str().unwrap_or("")))
        .collect();
    if pairs.is_empty() { "<none>".into() } else { pairs.join(",").into() }
}

fn join(v: &Value, list: &str, member: &str) -> Value {
    let all: Vec<&str> = v
        .get(list)
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(|c| c.get(member)?.as_str())
        .collect();
    all.join(",").into()
}

const NAME: Column = column("Name", |_, r, _| r.name().into());
const AGE: Column = column("Age", |_, r, wall| since(&r.meta()["creationTimestamp"], wall));

const CUSTOM: &[Column] = &[NAME, AGE];
const CONFIG_MAP: &[Column] =
    &[NAME, column("Data", |v, _, _| count(v, &["data", "binaryData"]).into()), AGE];
const SECRET: &[Column] = &[
    NAME,
    column("Type", |v, _, _| text(v, "type", "")),
    column("Data", |v, _, _| count(v, &["data"]).into()),
    AGE,
];
const NAMESPACE: &[Column] = &[NAME, column("Status", |v, _, _| text(v, "status.phase", "")), AGE];
const LEASE: &[Column] = &[NAME, column("Holder", |v, _, _| text(v, "spec.holderIdentity", "")), AGE];
const POD: &[Column] = &[
    NAME,
    column("Ready", |v, _, _| {
        let all = v["spec"].get("containers").and_then(Value::as_array).map_or(0, Vec::len);
        let statuses = v["status"].get("containerStatuses").and_then(Value::as_array);
        let ready =
            statuses.into_iter().flatten().filter(|c| c.get("ready") == Some(&Value::Bool(true))).count();
        format!("{ready}/{all}").into()
    }),
    column("Status", |v, r, _| {
        if r.ending() {
            "Terminating".into()
        } else {
            text(v, "status.reason", v["status"]["phase"].as_str().unwrap_or(""))
        }
    }),
    column("Restarts", |v, _, _| {
        let statuses = v["status"].get("containerStatuses").and_then(Value::as_array);
        statuses.into_iter().flatten().map(|c| number(c, "restartCount")).sum::<i64>().to_string().into()
    }),
    AGE,
    wide("IP", |v, _, _| text(v, "status.podIP", "<none>")),
    wide("Node", |v, _, _| text(v, "spec.nodeName", "<none>")),
    wide("Nominated Node", |v, _, _| text(v, "status.nominatedNodeName", "<none>")),
    wide("Readiness Gates", |_, _, _| "<none>".into()),
];
const SERVICE: &[Column] = &[
    NAME,
    column("Type", |v, _, _| text(v, "spec.type", "")),
    column("Cluster-IP", |v, _, _| text(v, "spec.clusterIP", "<none>")),
    column("External-IP", |_, _, _| "<none>".into()),
    column("Port(s)", |v, _, _| {
        let ports = v["spec"].get("ports").and_then(Value::as_array);
        let all: Vec<String> = ports
            .into_iter()
            .flatten()
            .map(|p| format!("{}/{}", number(p, "port"), p["protocol"].as_str().unwrap_or("TCP")))
            .collect();
        if all.is_empty() { "<none>".into() } else { all.join(",").into() }
    }),
    AGE,
    wide("Selector", |v, _, _| map_text(&v["spec"]["selector"])),
];
const NODE: &[Column] = &[
    NAME,
    column("Status", |v, _, _| {
        let conditions = v["status"].get("conditions").and_then(Value::as_array);
        let ready = conditions.into_iter().flatten().find(|c| c["type"] == "Ready");
        ready.map_or("Unknown", |c| if c["status"] == "True" { "Ready" } else { "NotReady" }).into()
    }),
    column("Roles", |_, _, _| "<none>".into()),
    AGE,
    column("Version", |v, _, _| text(v, "status.nodeInfo.kubeletVersion", "")),
];
const DEPLOYMENT: &[Column] = &[
    NAME,
    column("Ready", |v, _, _| {
        format!("{}/{}", number(v, "status.readyReplicas"), number(v, "spec.replicas")).into()
    }),
    column("Up-to-date", |v, _, _| number(v, "status.updatedReplicas").into()),
    column("Available", |v, _, _| number(v, "status.availableReplicas").into()),
    AGE,
    wide("Containers", |v, _, _| join(&v["spec"]["template"]["spec"], "containers", "name")),
    wide("Images", |v, _, _| join(&v["spec"]["template"]["spec"], "containers", "image")),
    wide("Selector", |v, _, _| map_text(&v["spec"]["selector"]["matchLabels"])),
];
const EVENT: &[Column] = &[
    column("Last Seen", |v, r, wall| {
        let at = ["lastTimestamp", "eventTime", "firstTimestamp"].iter().find(|n| v[**n].is_string());
        since(at.map_or_else(|| &r.meta()["creationTimestamp"], |n| &v[*n]), wall)
    }),
    column("Type", |v, _, _| text(v, "type", "")),
    column("Reason", |v, _, _| text(v, "reason", "")),
    column("Object", |v, _, _| {
        let of = &v["involvedObject"];
        let kind = of["kind"].as_str().unwrap_or("").to_ascii_lowercase();
        format!("{kind}/{}", of["name"].as_str().unwrap_or("")).into()
    }),
    wide("Subobject", |v, _, _| text(v, "involvedObject.fieldPath", "")),
    wide("Source", |v, _, _| text(v, "source.component", v["reportingComponent"].as_str().unwrap_or(""))),
    column("Message", |v, _, _| text(v, "message", "").as_str().unwrap_or("").trim().into()),
    wide("First Seen", |v, r, wall| {
        let at = ["firstTimestamp", "eventTime"].iter().find(|n| v[**n].is_string());
        since(at.map_or_else(|| &r.meta()["creationTimestamp"], |n| &v[*n]), wall)
    }),
    wide("Count", |v, _, _| number(v, "count").max(1).into()),
    wide("Name", |_, r, _| r.name().into()),
];

fn columns(resource: &Resource) -> &'static [Column] {
    match resource.rules {
        Rules::ConfigMap => CONFIG_MAP,
        Rules::Secret => SECRET,
        Rules::Pod => POD,
        Rules::Service => SERVICE,
        Rules::Node => NODE,
        Rules::Namespace => NAMESPACE,
        Rules::Deployment => DEPLOYMENT,
        Rules::Lease => LEASE,
        Rules::Event => EVENT,
        Rules::ServiceAccount | Rules::Custom => CUSTOM,
    }
}

/// A `Table` of records. `page` is the token and count of a list. `first`: whether columns are told.
#[allow(clippy::too_many_arguments)]
pub(super) fn write_table(
    out: &mut Vec<u8>,
    resource: &Resource,
    records: &[&Record],
    include: Include,
    wall: UnixMillis,
    version: &str,
    page: Option<(&str, Option<u64>)>,
    first: bool,
) {
    let mut m = Members::new(out);
    m.text("kind", "Table");
    m.text("apiVersion", "meta.k8s.io/v1");
    let mut meta = Members::new(m.raw("metadata"));
    meta.text("resourceVersion", version);
    if let Some((token, remaining)) = page {
        meta.text("continue", token);
        if let Some(n) = remaining {
            meta.raw("remainingItemCount").extend_from_slice(n.to_string().as_bytes());
        }
    }
    meta.end();
    let columns = columns(resource);
    let defs = m.raw("columnDefinitions");
    if first {
        defs.push(b'[');
        for (i, c) in columns.iter().enumerate() {
            if i > 0 {
                defs.push(b',');
            }
            let mut d = Members::new(defs);
            d.text("name", c.name);
            d.text("type", if c.name == "Age" && resource.is_custom() { "date" } else { "string" });
            json::write_str(d.raw("format"), if c.name == "Name" { "name" } else { "" });
            json::write_str(d.raw("description"), "");
            d.raw("priority").push(if c.wide { b'1' } else { b'0' });
            d.end();
        }
        defs.push(b']');
    } else {
        defs.extend_from_slice(b"null");
    }
    let rows = m.raw("rows");
    rows.push(b'[');
    for (i, record) in records.iter().enumerate() {
        if i > 0 {
            rows.push(b',');
        }
        let mut row = Members::new(rows);
        let cells: Vec<Value> = columns.iter().map(|c| (c.cell)(&record.value, record, wall)).collect();
        json::write(row.raw("cells"), &Value::Array(cells));
        let object = row.raw("object");
        match include {
            Include::None => object.extend_from_slice(b"null"),
            Include::Metadata => write_partial(object, record),
            Include::Object => object.extend_from_slice(&record.json),
        }
        row.end();
    }
    rows.push(b']');
    m.end();
}
