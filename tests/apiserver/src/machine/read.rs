//! GET and LIST: versions, pages, selectors.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::Value;
use steersman_core::machine::Outputs;
use steersman_core::time::Time;

use super::store::{KeyRange, Record};
use super::table::{self, Format};
use super::{ApiServer, Call, Output, Reply, Waiting, key_of};
use crate::json;
use crate::kinds;
use crate::selector::{Fields, Labels};
use crate::status::{About, Failure, FieldError};

const CONTINUE_VERSION: &str = "meta.k8s.io/v1";
const EXPIRED_PAGE: &str = "The provided continue parameter is too old to display a consistent list result. You can start a new list without the continue parameter, or use the continue token in this response to retrieve the remainder of the results. Continuing with the provided token results in an inconsistent list - objects that were created, modified, or deleted between the time the first chunk was returned and now may show up in the list.";
const EXPIRED_LIST: &str = "The resourceVersion for the provided list is too old.";

/// The version that a parameter names; `None` if it is absent or empty.
pub(super) fn version_param(call: &Call<'_>) -> Result<Option<u64>, String> {
    let text = call.query.get("resourceVersion");
    if text.is_empty() {
        return Ok(None);
    }
    text.parse::<u64>()
        .map(Some)
        .map_err(|_| format!("resourceVersion: Invalid value: {text:?}: {}", parse_error("ParseUint", text)))
}

/// Go's words for a number that is none.
pub(super) fn parse_error(function: &str, text: &str) -> String {
    let digits = text.strip_prefix('-').unwrap_or(text);
    let why = if !digits.is_empty()
        && digits.bytes().all(|b| b.is_ascii_digit())
        && !(function == "ParseUint" && text.starts_with('-'))
    {
        "value out of range"
    } else {
        "invalid syntax"
    };
    format!("strconv.{function}: parsing {text:?}: {why}")
}

/// A number parameter; 0 if absent.
pub(super) fn int_param(call: &Call<'_>, name: &str) -> Result<i64, Failure> {
    let text = call.query.get(name);
    if text.is_empty() {
        return Ok(0);
    }
    text.parse().map_err(|_| Failure::bad_request(parse_error("ParseInt", text)))
}

pub(super) fn options_invalid(kind: &str, errors: Vec<FieldError>) -> Failure {
    Failure::invalid(About { group: "meta.k8s.io", kind }, "", errors)
}

/// Both selectors of a list, watch or deletion of a collection.
pub(super) struct Selection {
    pub(super) labels: Labels,
    pub(super) fields: Fields,
}

impl Selection {
    pub(super) fn is_empty(&self) -> bool {
        self.labels.is_empty() && self.fields.is_empty()
    }

    pub(super) fn matches(&self, object: &Value) -> bool {
        (self.labels.is_empty() || self.labels.matches(object["metadata"].get("labels")))
            && (self.fields.is_empty() || self.fields.matches(object))
    }
}

struct Page {
    version: u64,
    range: KeyRange,
}

impl ApiServer {
    pub(super) fn selection(&self, call: &Call<'_>) -> Result<Selection, Failure> {
        let labels = Labels::parse(call.query.get("labelSelector")).map_err(Failure::bad_request)?;
        let resource = &self.resources[call.res];
        let fields = Fields::parse(call.query.get("fieldSelector"), |path| kinds::selectable(resource, path))
            .map_err(Failure::bad_request)?;
        Ok(Selection { labels, fields })
    }

    pub(super) fn record(&self, call: &Call<'_>) -> Result<std::sync::Arc<Record>, Failure> {
        let key = key_of(self.scope(call), &call.target.name);
        self.shelves[self.shelf_of(call.res)]
            .objects
            .get(&key)
            .cloned()
            .ok_or_else(|| Failure::not_found(self.about(call.res), &call.target.name))
    }

    /// The namespace that keys of this call start with.
    pub(super) fn scope<'a>(&self, call: &'a Call<'_>) -> &'a str {
        if self.resources[call.res].namespaced() { &call.target.namespace } else { "" }
    }

    pub(super) fn get(&mut self, call: &Call<'_>) -> Result<Reply, Failure> {
        if let Some(version) = version_param(call).map_err(Failure::internal)?
            && version > self.revision
        {
            return Ok(self.wait(call, version, false));
        }
        Ok(Reply::Object(200, self.record(call)?))
    }

    /// Parks a read until its version comes, or the wait is over.
    pub(super) fn wait(&mut self, call: &Call<'_>, version: u64, stream: bool) -> Reply {
        let until = call.now + self.options.future_wait;
        self.timers.insert((until, call.conn));
        self.waiting.insert(call.conn, Waiting { request: call.request.clone(), version, until, stream });
        Reply::Later
    }

    /// Runs the reads whose version has come, and gives up on those whose time is over.
    pub(super) fn wake_waiting(&mut self, now: Time, out: &mut Outputs<Output>) {
        if self.waiting.is_empty() {
            return;
        }
        let revision = self.revision;
        let ready: Vec<_> = self
            .waiting
            .iter()
            .filter(|(_, w)| w.version <= revision || w.until <= now)
            .map(|(c, _)| *c)
            .collect();
        for conn in ready {
            let Some(w) = self.waiting.remove(&conn) else { continue };
            self.timers.remove(&(w.until, conn));
            if w.version <= revision {
                self.answer(now, conn, w.request, out);
                continue;
            }
            let failure = Failure::too_large_version(w.version, revision);
            if w.stream {
                super::watch::error_stream(conn, &failure, out);
            } else {
                self.fail(conn, &w.request, &failure, out);
            }
        }
    }

    pub(super) fn list(&mut self, call: &Call<'_>) -> Result<Reply, Failure> {
        let selection = self.selection(call)?;
        let limit = int_param(call, "limit")?.max(0);
        int_param(call, "timeoutSeconds")?;
        let q = &call.query;
        let (matching, token) = (q.get("resourceVersionMatch"), q.get("continue"));
        let given = q.get("resourceVersion");
        list_options(q.has("sendInitialEvents"), given, matching, token)?;
        let asked =
            version_param(call).map_err(|e| Failure::bad_request(format!("invalid resource version: {e}")));
        let shelf = self.shelf_of(call.res);
        let scope = self.scope(call).to_owned();
        let all = if scope.is_empty() { KeyRange::all() } else { KeyRange::namespace(&scope) };
        let mut limit = usize::try_from(limit).unwrap_or(usize::MAX);
        let page = if token.is_empty() {
            match asked? {
                None => Page { version: self.revision, range: all },
                Some(0) => {
                    limit = 0;
                    Page { version: self.revision, range: all }
                }
                Some(v) if v > self.revision => return Ok(self.wait(call, v, false)),
                // A limit makes an old version exact, unless it is said to be a lower bound.
                Some(v) if matching == "Exact" || (matching.is_empty() && limit > 0) => {
                    if v < self.exact_floor(shelf) {
                        return Err(Failure::expired(EXPIRED_LIST));
                    }
                    Page { version: v, range: all }
                }
                Some(_) => Page { version: self.revision, range: all },
            }
        } else {
            let (version, start) = parse_token(token).map_err(|e| {
                Failure::bad_request(format!("invalid continue token: continue key is not valid: {e}"))
            })?;
            if !given.is_empty() && given != "0" {
                return Err(Failure::bad_request(
                    "specifying resource version is not allowed when using continue",
                ));
            }
            let start = if scope.is_empty() { start } else { format!("{scope}/{start}") };
            let range = KeyRange { start, end: all.end };
            match u64::try_from(version) {
                Err(_) => Page { version: self.revision, range },
                Ok(v) if v < self.exact_floor(shelf) => {
                    let mut f = Failure::expired(EXPIRED_PAGE);
                    let rest = &range.start[if scope.is_empty() { 0 } else { scope.len() + 1 }..];
                    f.continue_token = make_token(-1, rest);
                    return Err(f);
                }
                Ok(v) => Page { version: v.min(self.revision), range },
            }
        };
        Ok(Reply::Json(200, self.page(call, shelf, &scope, &selection, limit, &page)))
    }

    /// The lowest version at which a list can be exact.
    fn exact_floor(&self, shelf: usize) -> u64 {
        // The event log is what old states are made from.
        self.compacted.max(self.shelves[shelf].floor)
    }

    fn page(
        &self,
        call: &Call<'_>,
        shelf: usize,
        scope: &str,
        selection: &Selection,
        limit: usize,
        page: &Page,
    ) -> Vec<u8> {
        let mut items: Vec<&Record> = Vec::new();
        let (mut more, mut rest) = (false, 0u64);
        for record in self.shelves[shelf].at(page.version, &page.range) {
            if !selection.matches(&record.value) {
                continue;
            }
            if limit > 0 && items.len() == limit {
                more = true;
                rest += 1;
                if !selection.is_empty() {
                    break;
                }
            } else {
                items.push(record);
            }
        }
        let (mut token, mut remaining) = (String::new(), None);
        if more {
            let last = items.last().map_or("", |r| &*r.key);
            let last = if scope.is_empty() { last } else { &last[scope.len() + 1..] };
            token = make_token(i64::try_from(page.version).unwrap_or(i64::MAX), &format!("/{last}\0"));
            remaining = selection.is_empty().then_some(rest);
        }
        self.render_list(call.res, call.format, &items, page.version, &token, remaining)
    }

    pub(super) fn render_list(
        &self,
        res: usize,
        format: Format,
        items: &[&Record],
        version: u64,
        token: &str,
        remaining: Option<u64>,
    ) -> Vec<u8> {
        let resource = &self.resources[res];
        let version = version.to_string();
        let total: usize = items.iter().map(|r| r.json.len() + 1).sum();
        let mut out = Vec::with_capacity(total + 256);
        if let Format::Table(include) = format {
            table::write_table(
                &mut out,
                resource,
                items,
                include,
                self.wall,
                &version,
                Some((token, remaining)),
                true,
            );
            out.push(b'\n');
            return out;
        }
        let api_version = resource.of.api_version();
        let kind = format!("{}List", resource.of.kind);
        let metadata = |out: &mut Vec<u8>| {
            let mut m = json::Members::new(out);
            if resource.is_custom() && format == Format::Plain {
                json::write_str(m.raw("continue"), token);
                if let Some(n) = remaining {
                    m.raw("remainingItemCount").extend_from_slice(n.to_string().as_bytes());
                }
                m.text("resourceVersion", &version);
            } else {
                m.text("resourceVersion", &version);
                m.text("continue", token);
                if let Some(n) = remaining {
                    m.raw("remainingItemCount").extend_from_slice(n.to_string().as_bytes());
                }
            }
            m.end();
        };
        let list = |out: &mut Vec<u8>| {
            out.push(b'[');
            for (i, record) in items.iter().enumerate() {
                if i > 0 {
                    out.push(b',');
                }
                match format {
                    Format::Metadata => table::write_partial(out, record),
                    _ if resource.is_custom() => out.extend_from_slice(&record.json),
                    _ if resource.stored_as.is_some() => {
                        let json = super::store::encode(resource, &kinds::event_out(&record.value));
                        out.extend_from_slice(&without_type(&json, resource));
                    }
                    _ => out.extend_from_slice(&without_type(&record.json, resource)),
                }
            }
            out.push(b']');
        };
        let mut m = json::Members::new(&mut out);
        if resource.is_custom() && format == Format::Plain {
            m.text("apiVersion", &api_version);
            list(m.raw("items"));
            m.text("kind", &kind);
            metadata(m.raw("metadata"));
        } else {
            let partial = format == Format::Metadata;
            m.text("kind", if partial { "PartialObjectMetadataList" } else { &kind });
            m.text("apiVersion", if partial { "meta.k8s.io/v1" } else { &api_version });
            metadata(m.raw("metadata"));
            list(m.raw("items"));
        }
        m.end();
        out.push(b'\n');
        out
    }
}

/// Items of built-in lists have no kind and apiVersion; they are the first two members.
fn without_type<'a>(json: &'a [u8], resource: &crate::resource::Resource) -> std::borrow::Cow<'a, [u8]> {
    let prefix =
        format!("{{\"kind\":\"{}\",\"apiVersion\":\"{}\",", resource.of.kind, resource.of.api_version());
    match json.strip_prefix(prefix.as_bytes()) {
        Some(rest) => {
            let mut item = Vec::with_capacity(rest.len() + 1);
            item.push(b'{');
            item.extend_from_slice(rest);
            item.into()
        }
        None => json.into(),
    }
}

fn list_options(initial: bool, given: &str, matching: &str, token: &str) -> Result<(), Failure> {
    let mut errors = Vec::new();
    if initial {
        errors.push(FieldError::forbidden("sendInitialEvents", "sendInitialEvents is forbidden for list"));
    }
    if !matching.is_empty() {
        let at = "resourceVersionMatch";
        if given.is_empty() {
            errors.push(FieldError::forbidden(
                at,
                "resourceVersionMatch is forbidden unless resourceVersion is provided",
            ));
        }
        if !token.is_empty() {
            errors.push(FieldError::forbidden(
                at,
                "resourceVersionMatch is forbidden when continue is provided",
            ));
        }
        if !matches!(matching, "Exact" | "NotOlderThan") {
            errors.push(FieldError::unsupported(
                at,
                &format!("{matching:?}"),
                "\"Exact\", \"NotOlderThan\", \"\"",
            ));
        }
        if matching == "Exact" && given == "0" {
            errors.push(FieldError::forbidden(
                at,
                "resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\"",
            ));
        }
    }
    if errors.is_empty() { Ok(()) } else { Err(options_invalid("ListOptions", errors)) }
}

fn make_token(version: i64, start: &str) -> String {
    let mut out = Vec::new();
    let mut m = json::Members::new(&mut out);
    m.text("v", CONTINUE_VERSION);
    m.raw("rv").extend_from_slice(version.to_string().as_bytes());
    m.text("start", start);
    m.end();
    URL_SAFE_NO_PAD.encode(out)
}

/// Version and start key of a token; the key is relative to the list, without the leading slash.
fn parse_token(token: &str) -> Result<(i64, String), String> {
    let bytes = URL_SAFE_NO_PAD.decode(token).map_err(|e| {
        let at = match e {
            base64::DecodeError::InvalidByte(at, _) | base64::DecodeError::InvalidLastSymbol(at, _) => at,
            _ => token.len(),
        };
        format!("illegal base64 data at input byte {at}")
    })?;
    let value = json::parse(&bytes)?;
    let version = value.get("v").and_then(Value::as_str).unwrap_or("");
    if version != CONTINUE_VERSION {
        return Err(format!("server does not recognize this encoded version {version}"));
    }
    let at = value.get("rv").and_then(Value::as_i64).unwrap_or(0);
    if at == 0 {
        return Err(format!("incorrect encoded start resourceVersion (version {CONTINUE_VERSION})"));
    }
    let start = value.get("start").and_then(Value::as_str).unwrap_or("");
    if start.is_empty() {
        return Err(format!("encoded start key empty (version {CONTINUE_VERSION})"));
    }
    if start.split('/').any(|part| matches!(part, "." | "..")) {
        return Err(start.to_owned());
    }
    Ok((at, start.strip_prefix('/').unwrap_or(start).to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_the_real_ones() {
        let token = "eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6MjE3LCJzdGFydCI6Ii9hXHUwMDAwIn0";
        assert_eq!(make_token(217, "/a\0"), token);
        assert_eq!(parse_token(token), Ok((217, "a\0".to_owned())));
        assert_eq!(parse_token("abc").unwrap_err(), "invalid character 'i' looking for beginning of value");
        assert_eq!(parse_token("!!!").unwrap_err(), "illegal base64 data at input byte 0");
    }
}
