//! Who asks, and whether they may; and the disturbances that tests ask for.

use super::route::{Path, Query, Target};
use super::{ApiRequest, ApiServer, FaultKind, Identity};
use crate::status::{About, Failure};

impl ApiServer {
    /// A certificate counts first, then a token; a bad token is refused, no token is anonymous.
    pub(super) fn authenticate(&self, request: &ApiRequest) -> Result<Identity, Failure> {
        if let Some(user) = &request.user {
            return Ok(user.clone());
        }
        let token = request.get("authorization").and_then(|v| {
            let (scheme, token) = v.split_once(' ')?;
            scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
        });
        match token {
            Some(token) if !token.is_empty() => self
                .options
                .tokens
                .iter()
                .find(|(t, _)| t == token)
                .map(|(_, who)| who.clone())
                .ok_or_else(Failure::unauthorized),
            _ if request.untrusted_certificate => Err(Failure::unauthorized()),
            _ if self.options.open => Ok(Identity::new("system:anonymous", &["system:masters"])),
            _ => Ok(Identity::new("system:anonymous", &["system:unauthenticated"])),
        }
    }

    /// Comes before everything else, so that nobody learns what exists without the right to.
    pub(super) fn authorise(
        &self,
        user: &Identity,
        request: &ApiRequest,
        path: &Path,
        query: &Query,
    ) -> Result<(), Failure> {
        if user.groups.iter().any(|g| g == "system:masters") {
            return Ok(());
        }
        match path {
            Path::Other(segments) => {
                let first = segments.first().map_or("", String::as_str);
                let public = matches!(first, "healthz" | "livez" | "readyz" | "version");
                let discovery = matches!(first, "api" | "apis" | "openapi");
                let known = user.user != "system:anonymous";
                if public || (discovery && known) {
                    return Ok(());
                }
                let verb = request.method.to_ascii_lowercase();
                let about = About { group: "", kind: "" };
                let mut f = Failure::forbidden(about, "", "");
                f.message = format!("forbidden: User {:?} cannot {verb} path {:?}", user.user, request.path);
                Err(f)
            }
            Path::Resource(target) => {
                let verb = verb(&request.method, target, query);
                let plural = resource_text(target);
                let granted = self.options.grants.iter().any(|g| {
                    g.user == user.user
                        && (g.resource == "*" || g.resource == plural)
                        && g.verbs.iter().any(|v| v == "*" || v == verb)
                });
                if granted {
                    return Ok(());
                }
                let place = if target.namespace.is_empty() {
                    "at the cluster scope".to_owned()
                } else {
                    format!("in the namespace {:?}", target.namespace)
                };
                let why = format!(
                    "User {:?} cannot {verb} resource {plural:?} in API group {:?} {place}",
                    user.user, target.group
                );
                Err(Failure::forbidden(
                    About { group: &target.group, kind: &target.plural },
                    &target.name,
                    &why,
                ))
            }
        }
    }

    /// The disturbance that hits this request, if one does.
    pub(super) fn fault(&mut self, request: &ApiRequest) -> Option<FaultKind> {
        if self.faults.is_empty() {
            return None;
        }
        let Some(Path::Resource(target)) = super::route::parse(&request.path) else { return None };
        let query = Query::parse(&request.query);
        let verb = verb(&request.method, &target, &query);
        let mut hit = None;
        for fault in &mut self.faults {
            let fits = fault.verb.as_deref().is_none_or(|v| v == verb)
                && fault.resource.as_deref().is_none_or(|r| r == target.plural);
            if !fits || fault.times == 0 {
                continue;
            }
            if fault.skip > 0 {
                fault.skip -= 1;
                continue;
            }
            fault.times -= 1;
            hit = Some(fault.then.clone());
            break;
        }
        self.faults.retain(|f| f.times > 0);
        hit
    }
}

fn resource_text(target: &Target) -> String {
    if target.subresource.is_empty() {
        target.plural.clone()
    } else {
        format!("{}/{}", target.plural, target.subresource)
    }
}

pub(super) fn verb(method: &str, target: &Target, query: &Query) -> &'static str {
    let one = !target.name.is_empty();
    match method {
        "GET" | "HEAD" if one && !target.watch => "get",
        "GET" | "HEAD" if target.watch || query.flag("watch") => "watch",
        "GET" | "HEAD" => "list",
        "POST" => "create",
        "PUT" => "update",
        "PATCH" => "patch",
        "DELETE" if one => "delete",
        "DELETE" => "deletecollection",
        _ => "",
    }
}
