//! DELETE: preconditions, finalizers, grace, and what is left to say.

use std::sync::Arc;

use serde_json::{Value, json};
use steersman_core::machine::Outputs;
use steersman_core::time::{Time, UnixMillis};

use super::store::{KeyRange, Record};
use super::write::{PROTOBUF, check_dry_run, media_type};
use super::{ApiServer, Call, Change, Output, Reply, read};
use crate::clock::rfc3339;
use crate::resource::{NAMESPACES, Rules};
use crate::status::{Failure, FieldError, deleted_body};
use crate::{json, kinds, protobuf};

/// How a deletion goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Propagation {
    Background,
    Foreground,
    Orphan,
}

#[derive(Debug, Default)]
struct DeleteOptions {
    uid: Option<String>,
    version: Option<String>,
    propagation: Option<Propagation>,
    grace: Option<i64>,
    dry_run: bool,
}

/// What a deletion came to.
pub(super) enum Deleted {
    /// Gone; the record has the version of the deletion.
    Gone(Arc<Record>),
    /// Something holds it: finalizers, grace, a namespace's contents.
    Ending(Arc<Record>),
}

impl ApiServer {
    pub(super) fn delete(&mut self, call: &Call<'_>, out: &mut Outputs<Output>) -> Result<Reply, Failure> {
        let options = delete_options(call)?;
        let old = self.record(call)?;
        self.check_preconditions(call, &options, &old)?;
        if call.res == NAMESPACES && matches!(old.name(), "default" | "kube-system" | "kube-public") {
            let why = "this namespace may not be deleted";
            return Err(Failure::forbidden(self.about(call.res), old.name(), why));
        }
        let shelf = self.shelf_of(call.res);
        if options.dry_run {
            return Ok(self.deleted_reply(call, &old, self.resources[call.res].delete_returns_object()));
        }
        match self.remove(call.now, shelf, &old, options.propagation, options.grace, out) {
            Deleted::Ending(record) => Ok(Reply::Object(200, record)),
            Deleted::Gone(record) => {
                Ok(self.deleted_reply(call, &record, self.resources[call.res].delete_returns_object()))
            }
        }
    }

    fn deleted_reply(&self, call: &Call<'_>, record: &Arc<Record>, whole: bool) -> Reply {
        if whole {
            return Reply::Object(200, Arc::clone(record));
        }
        Reply::Json(200, deleted_body(self.about(call.res), record.name(), record.uid()))
    }

    fn check_preconditions(
        &self,
        call: &Call<'_>,
        options: &DeleteOptions,
        old: &Record,
    ) -> Result<(), Failure> {
        let about = self.about_kind(call.res);
        if let Some(uid) = &options.uid
            && uid != old.uid()
        {
            let why = format!(
                "the UID in the precondition ({uid}) does not match the UID in record ({}). The object might have been deleted and then recreated",
                old.uid()
            );
            return Err(Failure::conflict(about, old.name(), &why));
        }
        if let Some(version) = &options.version
            && *version != old.version.to_string()
        {
            let why = format!(
                "the ResourceVersion in the precondition ({version}) does not match the ResourceVersion in record ({}). The object might have been modified",
                old.version
            );
            return Err(Failure::conflict(about, old.name(), &why));
        }
        Ok(())
    }

    /// Deletes, or begins to.
    pub(super) fn remove(
        &mut self,
        now: Time,
        shelf: usize,
        old: &Arc<Record>,
        propagation: Option<Propagation>,
        grace: Option<i64>,
        out: &mut Outputs<Output>,
    ) -> Deleted {
        let rules = self.resources[shelf].rules;
        let mut value = old.value.clone();
        if rules == Rules::Namespace {
            if old.ending() {
                return Deleted::Ending(Arc::clone(old));
            }
            value["metadata"]["deletionTimestamp"] = json!(rfc3339(self.wall));
            value["status"]["phase"] = json!("Terminating");
            return Deleted::Ending(self.commit(now, shelf, &old.key, Change::Put(value), out));
        }
        let mut held: Vec<String> = old.finalizers().map(str::to_owned).collect();
        if let Some(p) = propagation {
            held.retain(|f| !matches!(f.as_str(), "orphan" | "foregroundDeletion"));
            match p {
                Propagation::Foreground => held.push("foregroundDeletion".into()),
                Propagation::Orphan => held.push("orphan".into()),
                Propagation::Background => {}
            }
        }
        let grace = if rules == Rules::Pod { pod_grace(&old.value, grace) } else { 0 };
        let had = old.meta().get("deletionGracePeriodSeconds").and_then(Value::as_i64);
        let same_finalizers = held.iter().map(String::as_str).eq(old.finalizers());
        if old.ending()
            && same_finalizers
            && had.is_some_and(|had| had <= grace)
            && !(held.is_empty() && grace == 0)
        {
            return Deleted::Ending(Arc::clone(old));
        }
        if held.is_empty() && grace == 0 && rules != Rules::Pod {
            return Deleted::Gone(self.commit(now, shelf, &old.key, Change::Delete, out));
        }
        let meta = &mut value["metadata"];
        if !old.ending() || had.is_none_or(|had| had > grace) {
            let at = UnixMillis(self.wall.0.saturating_add(grace.saturating_mul(1000)));
            meta["deletionTimestamp"] = json!(rfc3339(at));
            meta["deletionGracePeriodSeconds"] = json!(grace);
        }
        if held.is_empty() {
            if let Some(m) = meta.as_object_mut() {
                m.remove("finalizers");
            }
        } else {
            meta["finalizers"] = json!(held);
        }
        if !old.ending() {
            kinds::bump_generation(&mut value);
        }
        let record = if value == old.value {
            Arc::clone(old)
        } else {
            self.commit(now, shelf, &old.key, Change::Put(value), out)
        };
        if held.is_empty() && grace == 0 {
            return Deleted::Gone(self.commit(now, shelf, &old.key, Change::Delete, out));
        }
        Deleted::Ending(record)
    }

    pub(super) fn delete_collection(
        &mut self,
        call: &Call<'_>,
        out: &mut Outputs<Output>,
    ) -> Result<Reply, Failure> {
        let options = delete_options(call)?;
        let selection = self.selection(call)?;
        let shelf = self.shelf_of(call.res);
        let scope = self.scope(call);
        let range = if scope.is_empty() { KeyRange::all() } else { KeyRange::namespace(scope) };
        let chosen: Vec<Arc<Record>> =
            self.shelves[shelf].range(&range).filter(|r| selection.matches(&r.value)).cloned().collect();
        let version = self.revision;
        if !options.dry_run {
            for old in &chosen {
                self.remove(call.now, shelf, old, options.propagation, options.grace, out);
            }
        }
        let items: Vec<&Record> = chosen.iter().map(|r| &**r).collect();
        Ok(Reply::Json(200, self.render_list(call.res, call.format, &items, version, "", None)))
    }

    /// `pods/eviction`: a deletion that nothing here ever forbids, since there are no disruption budgets.
    pub(super) fn evict(&mut self, call: &Call<'_>, out: &mut Outputs<Output>) -> Result<Reply, Failure> {
        let old = self.record(call)?;
        let dry = Self::dry_run(call, "CreateOptions")?;
        if !dry {
            let shelf = self.shelf_of(call.res);
            self.remove(call.now, shelf, &old, None, None, out);
        }
        Ok(Reply::Json(201, b"{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"metadata\":{},\"status\":\"Success\",\"code\":201}\n".to_vec()))
    }
}

fn pod_grace(pod: &Value, asked: Option<i64>) -> i64 {
    let node = pod["spec"].get("nodeName").and_then(Value::as_str).unwrap_or("");
    let phase = pod["status"].get("phase").and_then(Value::as_str).unwrap_or("");
    if node.is_empty() || matches!(phase, "Succeeded" | "Failed") {
        return 0;
    }
    let own = pod["spec"].get("terminationGracePeriodSeconds").and_then(Value::as_i64).unwrap_or(30);
    let grace = asked.unwrap_or(own);
    if grace < 0 { 1 } else { grace }
}

/// Options of a deletion: from the body if there is one, else from the query.
fn delete_options(call: &Call<'_>) -> Result<DeleteOptions, Failure> {
    let mut options = DeleteOptions::default();
    let policy: String;
    let mut orphan: Option<bool> = None;
    let mut dry: Vec<String> = Vec::new();
    if call.request.body.is_empty() {
        policy = call.query.get("propagationPolicy").to_owned();
        if call.query.has("orphanDependents") {
            orphan = Some(call.query.flag("orphanDependents"));
        }
        if !call.query.get("gracePeriodSeconds").is_empty() {
            options.grace = Some(read::int_param(call, "gracePeriodSeconds")?);
        }
        dry.extend(call.query.all("dryRun").filter(|v| !v.is_empty()).map(str::to_owned));
    } else {
        let body = if media_type(call) == PROTOBUF {
            protobuf::to_json(&call.request.body).map_err(Failure::bad_request)?
        } else {
            json::parse(&call.request.body).map_err(|e| {
                Failure::bad_request(format!("couldn't get version/kind; json parse error: {e}"))
            })?
        };
        let text = |v: &Value| v.as_str().map(str::to_owned);
        if let Some(kind) = body.get("kind").and_then(text).filter(|k| k != "DeleteOptions") {
            let version = body.get("apiVersion").and_then(text).unwrap_or_default();
            return Err(Failure::bad_request(format!(
                "no kind {kind:?} is registered for version {version:?} in scheme \"pkg/runtime/scheme.go:111\""
            )));
        }
        options.uid = body.get("preconditions").and_then(|p| p.get("uid")).and_then(text);
        options.version = body.get("preconditions").and_then(|p| p.get("resourceVersion")).and_then(text);
        options.grace = body.get("gracePeriodSeconds").and_then(Value::as_i64);
        policy = body.get("propagationPolicy").and_then(text).unwrap_or_default();
        orphan = body.get("orphanDependents").and_then(Value::as_bool);
        dry.extend(body.get("dryRun").and_then(Value::as_array).into_iter().flatten().filter_map(text));
    }
    let mut errors = Vec::new();
    if orphan.is_some() && !policy.is_empty() {
        errors.push(FieldError::invalid_str(
            "propagationPolicy",
            &policy,
            "orphanDependents and deletionPropagation cannot be both set",
        ));
    }
    options.propagation = match policy.as_str() {
        "" => orphan.map(|o| if o { Propagation::Orphan } else { Propagation::Background }),
        "Background" => Some(Propagation::Background),
        "Foreground" => Some(Propagation::Foreground),
        "Orphan" => Some(Propagation::Orphan),
        other => {
            errors.push(FieldError::unsupported(
                "propagationPolicy",
                &format!("{other:?}"),
                "\"Foreground\", \"Background\", \"Orphan\", \"nil\"",
            ));
            None
        }
    };
    if !errors.is_empty() {
        return Err(read::options_invalid("DeleteOptions", errors));
    }
    let dry: Vec<&str> = dry.iter().map(String::as_str).collect();
    options.dry_run = check_dry_run(&dry, "DeleteOptions")?;
    Ok(options)
}
