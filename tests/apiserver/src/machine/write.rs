//! POST, PUT, PATCH and DELETE.

use std::sync::Arc;

use serde_json::{Value, json};
use steersman_core::machine::Outputs;

use super::store::{Record, finalizers};
use super::{ApiServer, Call, Change, Output, Reply, key_of, read};
use crate::resource::{NAMESPACES, Rules};
use crate::status::{Failure, FieldError};
use crate::{json, kinds, patch, protobuf, strategic};

const BODY_TYPES: &str = "application/json, application/yaml, application/vnd.kubernetes.protobuf";
pub(super) const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";
const CUSTOM_PATCHES: &str =
    "application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml";
const NAME_ALPHABET: &[u8; 27] = b"bcdfghjklmnpqrstvwxz2456789";

/// What to do with members that a kind does not have.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Unknown {
    Ignore,
    Refuse,
}

pub(super) fn media_type(call: &Call<'_>) -> String {
    let value = call.request.get("content-type").unwrap_or("");
    value.split(';').next().unwrap_or("").trim().to_ascii_lowercase()
}

impl ApiServer {
    pub(super) fn dry_run(call: &Call<'_>, options: &str) -> Result<bool, Failure> {
        let values: Vec<&str> = call.query.all("dryRun").filter(|v| !v.is_empty()).collect();
        check_dry_run(&values, options)
    }

    fn unknown_fields(call: &Call<'_>) -> Unknown {
        if call.query.get("fieldValidation") == "Strict" { Unknown::Refuse } else { Unknown::Ignore }
    }

    /// The object of a body, with apiVersion and kind of the resource.
    fn body_object(&self, call: &Call<'_>) -> Result<Value, Failure> {
        let resource = &self.resources[call.res];
        let kind = &resource.of.kind;
        let media = media_type(call);
        // An absent type counts as JSON; YAML is not spoken here.
        if !matches!(media.as_str(), "application/json" | PROTOBUF | "") {
            return Err(Failure::unsupported_media(BODY_TYPES));
        }
        let body = &call.request.body;
        let shown = || {
            if body.is_empty() {
                "<empty>".into()
            } else {
                String::from_utf8_lossy(&body[..body.len().min(256)])
            }
        };
        let unrecognized = |why: &str| {
            Failure::bad_request(format!(
                "the object provided is unrecognized (must be of type {kind}): {why} ({})",
                shown()
            ))
        };
        let mut value = if media == PROTOBUF {
            protobuf::to_json(body).map_err(Failure::bad_request)?
        } else {
            json::parse(body)
                .map_err(|e| unrecognized(&format!("couldn't get version/kind; json parse error: {e}")))?
        };
        if value.is_null() {
            value = json!({});
        }
        if !value.is_object() {
            return Err(unrecognized(&format!(
                "couldn't get version/kind; json parse error: json: cannot unmarshal {} into Go value of type struct {{ APIVersion string \"json:\\\"apiVersion,omitempty\\\"\"; Kind string \"json:\\\"kind,omitempty\\\"\" }}",
                json::go_type(&value)
            )));
        }
        let text = |name: &str| value.get(name).and_then(Value::as_str).unwrap_or("").to_owned();
        let (api_version, given_kind) = (text("apiVersion"), text("kind"));
        let wanted = resource.of.api_version();
        if resource.is_custom() {
            if given_kind.is_empty() {
                let text = json::to_string(&value);
                return Err(unrecognized(&format!("Object 'Kind' is missing in '{text}'")));
            }
            if api_version != wanted {
                return Err(Failure::bad_request(format!(
                    "the API version in the data ({api_version}) does not match the expected API version ({wanted})"
                )));
            }
        } else {
            let api = if api_version.is_empty() { &wanted } else { &api_version };
            let k = if given_kind.is_empty() { kind.as_ref() } else { &given_kind };
            if *api != wanted || k != kind {
                let version = api.rsplit('/').next().unwrap_or(api);
                let known = self
                    .resources
                    .iter()
                    .any(|r| !r.is_custom() && r.of.kind == *k && r.of.api_version() == *api);
                let why = if known {
                    let internal =
                        if resource.of.group.is_empty() { "core" } else { resource.of.group.as_ref() };
                    format!("converting (v1.{k}) to ({internal}.{kind}): unknown conversion")
                } else {
                    format!(
                        "no kind {k:?} is registered for version {api:?} in scheme \"pkg/runtime/scheme.go:111\""
                    )
                };
                return Err(Failure::bad_request(format!(
                    "{k} in version {version:?} cannot be handled as a {kind}: {why}"
                )));
            }
            value["apiVersion"] = json!(wanted);
            value["kind"] = json!(kind);
        }
        Ok(value)
    }

    /// Types, unknown members, and the stored form.
    fn settle(&self, call: &Call<'_>, value: &mut Value, unknown: Unknown) -> Result<(), String> {
        let resource = &self.resources[call.res];
        let mut names = Vec::new();
        kinds::normalise(resource, value, &mut names)?;
        if unknown == Unknown::Refuse && !names.is_empty() {
            let list: Vec<String> = names.iter().map(|n| format!("unknown field {n:?}")).collect();
            return Err(format!("strict decoding error: {}", list.join(", ")));
        }
        if resource.stored_as.is_some() {
            *value = kinds::event_in(value);
        }
        Ok(())
    }

    fn decode(&self, call: &Call<'_>) -> Result<Value, Failure> {
        let mut value = self.body_object(call)?;
        self.settle(call, &mut value, Self::unknown_fields(call)).map_err(|e| {
            let of = &self.resources[call.res].of;
            Failure::bad_request(format!(
                "{} in version {:?} cannot be handled as a {}: {e}",
                of.kind, of.version, of.kind
            ))
        })?;
        Ok(value)
    }

    fn check_namespace(&self, call: &Call<'_>, value: &mut Value) -> Result<(), Failure> {
        let resource = &self.resources[call.res];
        let given = value["metadata"].get("namespace").and_then(Value::as_str).unwrap_or("");
        if resource.namespaced() {
            if !given.is_empty() && given != call.target.namespace {
                return Err(Failure::bad_request(
                    "the namespace of the provided object does not match the namespace sent on the request",
                ));
            }
            value["metadata"]["namespace"] = json!(call.target.namespace);
        } else if let Some(meta) = value["metadata"].as_object_mut() {
            meta.remove("namespace");
        }
        Ok(())
    }

    pub(super) fn create(&mut self, call: &Call<'_>, out: &mut Outputs<Output>) -> Result<Reply, Failure> {
        let dry = Self::dry_run(call, "CreateOptions")?;
        let value = self.decode(call)?;
        let record = self.create_value(call, value, dry, out)?;
        Ok(Reply::Object(201, record))
    }

    fn create_value(
        &mut self,
        call: &Call<'_>,
        mut value: Value,
        dry: bool,
        out: &mut Outputs<Output>,
    ) -> Result<Arc<Record>, Failure> {
        self.check_namespace(call, &mut value)?;
        if value["metadata"].get("resourceVersion").and_then(Value::as_str).is_some_and(|v| v != "0") {
            return Err(Failure::internal("resourceVersion should not be set on objects to be created"));
        }
        let text =
            |v: &Value, name: &str| v["metadata"].get(name).and_then(Value::as_str).unwrap_or("").to_owned();
        let prefix = text(&value, "generateName");
        if text(&value, "name").is_empty() && !prefix.is_empty() {
            value["metadata"]["name"] = json!(self.generate_name(&prefix));
        }
        let name = text(&value, "name");
        self.admit(call, &name)?;
        if let Some(meta) = value["metadata"].as_object_mut() {
            for ours in [
                "uid",
                "creationTimestamp",
                "deletionTimestamp",
                "deletionGracePeriodSeconds",
                "selfLink",
                "resourceVersion",
            ] {
                meta.remove(ours);
            }
        }
        self.stamp(&mut value);
        let shelf = self.shelf_of(call.res);
        let stored = self.resources[shelf].clone();
        self.addresses += u64::from(stored.rules == Rules::Service);
        kinds::prepare_create(&stored, &mut value, self.addresses);
        let errors = kinds::validate(&self.resources[shelf], &value, None);
        if !errors.is_empty() {
            return Err(self.invalid(call, &value, errors));
        }
        let key = key_of(self.scope(call), &name);
        if let Some(have) = self.shelves[shelf].objects.get(&key) {
            return Err(Failure::already_exists(self.about(call.res), &name, have.ending()));
        }
        if dry {
            return Ok(Arc::new(dry_record(&stored, &key, value)));
        }
        Ok(self.commit(call.now, shelf, &key, Change::Put(value), out))
    }

    fn invalid(&self, call: &Call<'_>, value: &Value, errors: Vec<FieldError>) -> Failure {
        let name = value["metadata"].get("name").and_then(Value::as_str).unwrap_or("");
        let of = &self.resources[call.res].of;
        // A custom object is named by the kind that it claims to have.
        let kind = value.get("kind").and_then(Value::as_str).unwrap_or(&of.kind);
        let kind = if self.resources[call.res].is_custom() { kind } else { &of.kind };
        Failure::invalid(crate::status::About { group: &of.group, kind }, name, errors)
    }

    fn generate_name(&mut self, prefix: &str) -> String {
        let mut end = prefix.len().min(58);
        while !prefix.is_char_boundary(end) {
            end -= 1;
        }
        let mut name = prefix[..end].to_owned();
        for _ in 0..5 {
            let i = usize::try_from(self.rng.below(27)).unwrap_or(0);
            name.push(char::from(NAME_ALPHABET[i]));
        }
        name
    }

    /// The namespace must exist and stay.
    fn admit(&self, call: &Call<'_>, name: &str) -> Result<(), Failure> {
        if !self.resources[call.res].namespaced() {
            return Ok(());
        }
        let ns = call.target.namespace.as_str();
        let namespaces = self.about(NAMESPACES);
        let record =
            self.shelves[NAMESPACES].objects.get(ns).ok_or_else(|| Failure::not_found(namespaces, ns))?;
        if !record.ending() {
            return Ok(());
        }
        let why = format!("unable to create new content in namespace {ns} because it is being terminated");
        let mut f = Failure::forbidden(self.about(call.res), name, &why);
        if let Some(d) = &mut f.details {
            d.causes.push(crate::status::Cause {
                reason: "NamespaceTerminating",
                message: format!("namespace {ns} is being terminated"),
                field: "metadata.namespace".into(),
            });
        }
        Err(f)
    }

    pub(super) fn replace(&mut self, call: &Call<'_>, out: &mut Outputs<Output>) -> Result<Reply, Failure> {
        let dry = Self::dry_run(call, "UpdateOptions")?;
        let mut value = self.decode(call)?;
        let url = call.target.name.as_str();
        let name = value["metadata"].get("name").and_then(Value::as_str).unwrap_or("");
        if name.is_empty() {
            return Err(Failure::bad_request(format!(
                "the name of the object ({url} based on URL) was undeterminable: name must be provided"
            )));
        }
        if name != url {
            return Err(Failure::bad_request(format!(
                "the name of the object ({name}) does not match the name on the URL ({url})"
            )));
        }
        self.check_namespace(call, &mut value)?;
        let uid = value["metadata"].get("uid").and_then(Value::as_str).unwrap_or("").to_owned();
        let old = match self.record(call) {
            Ok(old) => old,
            Err(e)
                if e.code == 404
                    && call.target.subresource.is_empty()
                    && self.resources[call.res].put_creates() =>
            {
                if !uid.is_empty() {
                    return Err(self.uid_mismatch(call, &uid, ""));
                }
                if let Some(meta) = value["metadata"].as_object_mut() {
                    meta.remove("resourceVersion");
                }
                let record = self.create_value(call, value, dry, out)?;
                return Ok(Reply::Object(201, record));
            }
            Err(e) => return Err(e),
        };
        if !uid.is_empty() && uid != old.uid() {
            return Err(self.uid_mismatch(call, &uid, old.uid()));
        }
        let needs = self.resources[call.res].put_needs_version();
        let record = self.update(call, &old, value, needs, dry, out)?;
        Ok(Reply::Object(200, record))
    }

    fn uid_mismatch(&self, call: &Call<'_>, given: &str, have: &str) -> Failure {
        let about = self.about(call.res);
        let key = key_of(self.scope(call), &call.target.name);
        let group = if about.group.is_empty() || !self.resources[call.res].is_custom() {
            String::new()
        } else {
            format!("{}/", about.group)
        };
        let why = format!(
            "StorageError: invalid object, Code: 4, Key: /registry/{group}{}/{key}, ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: UID in precondition: {given}, UID in object meta: {have}",
            about.kind
        );
        Failure::conflict(about, &call.target.name, &why)
    }

    /// Puts `new` in the place of `old`, if the rules allow it; a write that changes nothing makes no version.
    fn update(
        &mut self,
        call: &Call<'_>,
        old: &Arc<Record>,
        mut new: Value,
        needs_version: bool,
        dry: bool,
        out: &mut Outputs<Output>,
    ) -> Result<Arc<Record>, Failure> {
        let name = old.name();
        let given = new["metadata"].get("resourceVersion").and_then(Value::as_str).unwrap_or("").to_owned();
        let version = if given.is_empty() {
            0
        } else {
            given.parse::<u64>().map_err(|_| Failure::internal(read::parse_error("ParseUint", &given)))?
        };
        if version == 0 && needs_version {
            let error =
                FieldError::invalid("metadata.resourceVersion", &json!(0), "must be specified for an update");
            return Err(Failure::invalid(self.about(call.res), name, vec![error]));
        }
        if version != 0 && version != old.version {
            return Err(Failure::modified(self.about(call.res), name));
        }
        if let Some(meta) = new["metadata"].as_object_mut() {
            meta.entry("uid").or_insert_with(|| json!(old.uid()));
            meta.insert("resourceVersion".into(), json!(old.version.to_string()));
        }
        let shelf = self.shelf_of(call.res);
        kinds::prepare_update(&self.resources[shelf], &call.target.subresource, &old.value, &mut new);
        let errors = kinds::validate(&self.resources[shelf], &new, Some(&old.value));
        if !errors.is_empty() {
            return Err(self.invalid(call, &new, errors));
        }
        if new == old.value {
            return Ok(Arc::clone(old));
        }
        let stored = &self.resources[shelf];
        if dry {
            return Ok(Arc::new(Record::new(stored, &old.key, new, old.version)));
        }
        let graceless =
            new["metadata"].get("deletionGracePeriodSeconds").and_then(Value::as_i64).unwrap_or(0) == 0;
        let freed = stored.rules != Rules::Namespace
            || new["spec"].get("finalizers").and_then(Value::as_array).is_none_or(Vec::is_empty);
        if old.ending() && graceless && freed && finalizers(&new["metadata"]).next().is_none() {
            // The last finalizer went. What is stored stays as it was until it is gone, and the answer has the old version.
            let answer = Arc::new(Record::new(stored, &old.key, new, old.version));
            self.commit(call.now, shelf, &old.key, Change::Delete, out);
            return Ok(answer);
        }
        Ok(self.commit(call.now, shelf, &old.key, Change::Put(new), out))
    }

    pub(super) fn patch(&mut self, call: &Call<'_>, out: &mut Outputs<Output>) -> Result<Reply, Failure> {
        let custom = self.resources[call.res].is_custom();
        let kind = media_type(call);
        let spoken = match kind.as_str() {
            "application/merge-patch+json" | "application/json-patch+json" => true,
            "application/strategic-merge-patch+json" => !custom,
            _ => false,
        };
        if !spoken {
            if custom && kind.contains("patch") {
                return Err(Failure::unsupported_media(CUSTOM_PATCHES));
            }
            return Err(Failure {
                code: 415,
                reason: "UnsupportedMediaType",
                message: "415: Unsupported Media Type".into(),
                details: Some(Box::default()),
                ..Failure::default()
            });
        }
        let dry = Self::dry_run(call, "PatchOptions")?;
        let decode_error = |e: &str| Failure::bad_request(format!("error decoding patch: {e}"));
        let body = json::parse(&call.request.body).map_err(|e| decode_error(&e))?;
        if kind != "application/json-patch+json" && !body.is_object() {
            return Err(decode_error(&format!(
                "json: cannot unmarshal {} into Go value of type map[string]interface {{}}",
                json::go_type(&body)
            )));
        }
        let old = self.record(call)?;
        let before = if self.resources[call.res].stored_as.is_some() {
            kinds::event_out(&old.value)
        } else {
            old.value.clone()
        };
        let mut new = match kind.as_str() {
            "application/json-patch+json" => patch::json_patch(&before, &body)?,
            "application/merge-patch+json" => {
                let mut v = before.clone();
                patch::merge(&mut v, body);
                v
            }
            _ => {
                let mut v = before.clone();
                strategic::merge(&mut v, body).map_err(Failure::internal)?;
                v
            }
        };
        if json::to_string(&new).len() > self.options.max_body {
            return Err(Failure {
                code: 413,
                reason: "RequestEntityTooLarge",
                message: "etcdserver: request is too large".into(),
                ..Failure::default()
            });
        }
        self.settle_patched(call, &before, &mut new)?;
        let name = new["metadata"].get("name").and_then(Value::as_str).unwrap_or("");
        if name != call.target.name {
            return Err(Failure::bad_request(format!(
                "the name of the object ({name}) does not match the name on the URL ({})",
                call.target.name
            )));
        }
        self.check_namespace(call, &mut new)?;
        let record = self.update(call, &old, new, false, dry, out)?;
        Ok(Reply::Object(200, record))
    }

    fn settle_patched(&self, call: &Call<'_>, before: &Value, new: &mut Value) -> Result<(), Failure> {
        let custom = self.resources[call.res].is_custom();
        let refused = |message: String, field_message: String| Failure {
            code: 422,
            reason: "Invalid",
            message,
            details: Some(Box::new(crate::status::Details {
                causes: vec![crate::status::Cause {
                    reason: "FieldValueInvalid",
                    message: field_message,
                    field: "patch".into(),
                }],
                ..Default::default()
            })),
            ..Failure::default()
        };
        // The real server says nothing more about a patch that does not decode, except for custom objects.
        let plain = || refused(String::new(), String::new());
        if !new.is_object() {
            return Err(plain());
        }
        if !custom
            && (new.get("kind") != before.get("kind") || new.get("apiVersion") != before.get("apiVersion"))
        {
            return Err(plain());
        }
        let shown = custom.then(|| json::to_string(new));
        self.settle(call, new, Self::unknown_fields(call)).map_err(|e| match shown {
            Some(text) => {
                let message = format!("Invalid value: {text:?}: {e}");
                refused(format!(" \"\" is invalid: patch: {message}"), message)
            }
            None => plain(),
        })
    }
}

fn dry_record(resource: &crate::resource::Resource, key: &Arc<str>, value: Value) -> Record {
    let mut record = Record::new(resource, key, value, 0);
    if let Some(meta) = record.value["metadata"].as_object_mut() {
        meta.remove("resourceVersion");
    }
    record.json = super::store::encode(resource, &record.value).into();
    record
}

pub(super) fn check_dry_run(values: &[&str], options: &str) -> Result<bool, Failure> {
    match values {
        [] => Ok(false),
        values if values.iter().all(|v| *v == "All") => Ok(true),
        values => {
            let shown: Vec<String> = values.iter().map(|v| format!("{v:?}")).collect();
            let error = FieldError::unsupported("dryRun", &format!("[{}]", shown.join(",")), "\"All\"");
            Err(read::options_invalid(options, vec![error]))
        }
    }
}
