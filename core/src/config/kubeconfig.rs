//! The kubeconfig file: parse, merge, resolve. Only what is read here is understood; what would change who we are or
//! how we connect and is not understood, is an error.

use alloc::borrow::ToOwned;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use serde::de::IgnoredAny;

use super::loader::{ConfigError, Facts, Stop, beside, check_token_file};
use super::{Bearer, ClientCert, Cluster, Config, Scheme, Secret};

#[derive(Deserialize)]
struct RawConfig {
    kind: Option<String>,
    #[serde(rename = "apiVersion")]
    api_version: Option<String>,
    clusters: Option<Vec<RawNamedCluster>>,
    contexts: Option<Vec<RawNamedContext>>,
    users: Option<Vec<RawNamedUser>>,
    #[serde(rename = "current-context")]
    current_context: Option<String>,
}

#[derive(Deserialize)]
struct RawNamedCluster {
    #[serde(default)]
    name: String,
    cluster: Option<RawCluster>,
}

#[derive(Deserialize)]
struct RawNamedContext {
    #[serde(default)]
    name: String,
    context: Option<RawContext>,
}

#[derive(Deserialize)]
struct RawNamedUser {
    #[serde(default)]
    name: String,
    user: Option<RawUser>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "kebab-case")]
struct RawCluster {
    server: Option<String>,
    tls_server_name: Option<String>,
    insecure_skip_tls_verify: Option<bool>,
    certificate_authority: Option<String>,
    certificate_authority_data: Option<String>,
    proxy_url: Option<String>,
}

#[derive(Deserialize, Default)]
struct RawContext {
    cluster: Option<String>,
    user: Option<String>,
    namespace: Option<String>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "kebab-case")]
struct RawUser {
    client_certificate: Option<String>,
    client_certificate_data: Option<String>,
    client_key: Option<String>,
    client_key_data: Option<String>,
    token: Option<String>,
    #[serde(rename = "tokenFile")]
    token_file: Option<String>,
    username: Option<String>,
    password: Option<IgnoredAny>,
    #[serde(rename = "as")]
    impersonate: Option<String>,
    as_uid: Option<String>,
    as_groups: Option<Vec<IgnoredAny>>,
    as_user_extra: Option<IgnoredAny>,
    exec: Option<IgnoredAny>,
    auth_provider: Option<IgnoredAny>,
}

/// One entry and the file that defined it.
struct Entry<T> {
    name: String,
    file: String,
    value: T,
}

/// One file, or several merged. No `Debug`: it holds secrets.
#[derive(Default)]
pub(super) struct Kubeconfig {
    files: Vec<String>,
    clusters: Vec<Entry<RawCluster>>,
    contexts: Vec<Entry<RawContext>>,
    users: Vec<Entry<RawUser>>,
    current_context: Option<String>,
}

pub(super) fn directory_of(path: &str) -> Option<&str> {
    let at = path.rfind(|c| c == '/' || (cfg!(windows) && c == '\\'))?;
    Some(&path[..at])
}

pub(super) fn parse(path: &str, bytes: &[u8]) -> Result<Kubeconfig, ConfigError> {
    let fail = |what: String| ConfigError::new(format!("kubeconfig {path}: {what}"));
    let text = core::str::from_utf8(bytes).map_err(|_| fail("it is not UTF-8 text".into()))?;
    let mut kubeconfig = Kubeconfig { files: alloc::vec![path.to_owned()], ..Kubeconfig::default() };
    let raw: Option<RawConfig> =
        serde_saphyr::from_str_with_options(text, yaml_options()).map_err(|e| fail(describe(&e)))?;
    let Some(raw) = raw else { return Ok(kubeconfig) };
    if let Some(kind) = raw.kind.filter(|k| !k.is_empty() && k != "Config") {
        return Err(fail(format!("kind is {kind:?}, not \"Config\"")));
    }
    if let Some(v) = raw.api_version.filter(|v| !v.is_empty() && v != "v1") {
        return Err(fail(format!("apiVersion is {v:?}, not \"v1\"")));
    }
    let clusters = raw.clusters.into_iter().flatten().map(|e| (e.name, e.cluster.unwrap_or_default()));
    let contexts = raw.contexts.into_iter().flatten().map(|e| (e.name, e.context.unwrap_or_default()));
    let users = raw.users.into_iter().flatten().map(|e| (e.name, e.user.unwrap_or_default()));
    kubeconfig.clusters = entries("clusters", path, clusters)?;
    kubeconfig.contexts = entries("contexts", path, contexts)?;
    kubeconfig.users = entries("users", path, users)?;
    kubeconfig.current_context = raw.current_context.filter(|c| !c.is_empty());
    Ok(kubeconfig)
}

fn entries<T>(
    list: &str,
    path: &str,
    raw: impl Iterator<Item = (String, T)>,
) -> Result<Vec<Entry<T>>, ConfigError> {
    let mut entries: Vec<Entry<T>> = Vec::new();
    for (name, value) in raw {
        if entries.iter().any(|e| e.name == name) {
            return Err(ConfigError::new(format!(
                "kubeconfig {path}: {list}: two entries are named {name:?}"
            )));
        }
        entries.push(Entry { name, file: path.to_owned(), value });
    }
    Ok(entries)
}

fn yaml_options() -> serde_saphyr::Options {
    // A snippet of the text around an error could show a token. A repeated key stays an error: which of two servers
    // or tokens is meant cannot be known. `yes` is a string to kubectl's JSON step, never a bool.
    serde_saphyr::options! { with_snippet: false, strict_booleans: true }
}

/// What is wrong with the text, and where; nothing that stands in the file is shown but our own field names, since the
/// error may be about a token that slipped out of its place.
fn describe(e: &serde_saphyr::Error) -> String {
    use serde_saphyr::Error as E;
    let e = match e.without_snippet() {
        E::AliasError { error, .. } => error.without_snippet(),
        e => e,
    };
    let what = match e {
        E::DuplicateMappingKey { key: Some(key), .. } if FIELDS.contains(&key.as_str()) => {
            format!("{key} is given twice")
        }
        E::DuplicateMappingKey { .. } => "a key is given twice".into(),
        E::Unexpected { expected, .. } => format!("expected {expected}"),
        E::InvalidBooleanStrict { .. } => "expected true or false".into(),
        E::InvalidScalar { ty, .. } => format!("expected a {ty}"),
        E::SerdeInvalidType { .. } | E::SerdeInvalidValue { .. } => "a value of the wrong type".into(),
        E::UnknownAnchor { .. } => "an alias without its anchor".into(),
        E::MultipleDocuments { .. } => "more than one YAML document".into(),
        E::Eof { .. } => "it ends too early".into(),
        E::Message { msg, .. } | E::ExternalMessage { msg, .. } => {
            redact(msg.lines().next().unwrap_or_default())
        }
        _ => "it cannot be read as a kubeconfig".into(),
    };
    match e.location() {
        Some(at) if at.line() > 0 => format!("line {}, column {}: {what}", at.line(), at.column()),
        _ => what,
    }
}

/// Names of fields that may stand in an error.
const FIELDS: &[&str] = &[
    "kind",
    "apiVersion",
    "clusters",
    "contexts",
    "users",
    "current-context",
    "name",
    "cluster",
    "context",
    "user",
    "server",
    "tls-server-name",
    "insecure-skip-tls-verify",
    "certificate-authority",
    "certificate-authority-data",
    "proxy-url",
    "namespace",
    "client-certificate",
    "client-certificate-data",
    "client-key",
    "client-key-data",
    "token",
    "tokenFile",
    "username",
    "password",
    "as",
    "as-uid",
    "as-groups",
    "as-user-extra",
    "exec",
    "auth-provider",
];

/// Replaces what stands between quotes of any kind, unless it is a name of ours or punctuation.
fn redact(message: &str) -> String {
    let mut out = String::new();
    let mut chars = message.char_indices();
    while let Some((at, c)) = chars.next() {
        out.push(c);
        if !matches!(c, '"' | '`' | '\'') {
            continue;
        }
        let from = at + c.len_utf8();
        let mut end = message.len();
        let mut escaped = false;
        for (i, d) in chars.by_ref() {
            if d == c && !escaped {
                end = i;
                break;
            }
            escaped = d == '\\' && !escaped;
        }
        let quoted = &message[from..end];
        let harmless = FIELDS.contains(&quoted)
            || (quoted.len() <= 2 && !quoted.bytes().any(|b| b.is_ascii_alphanumeric()));
        out.push_str(if harmless { quoted } else { ".." });
        if end < message.len() {
            out.push(c);
        }
    }
    out
}

fn non_empty(field: Option<&String>) -> Option<&str> {
    field.map(String::as_str).filter(|s| !s.is_empty())
}

fn find<'a, T>(entries: &'a [Entry<T>], name: &str) -> Option<&'a Entry<T>> {
    entries.iter().find(|e| e.name == name)
}

/// Says where an entry stands, for errors.
struct Place<'a> {
    file: &'a str,
    list: &'static str,
    name: &'a str,
}

impl Place<'_> {
    fn error(&self, what: impl AsRef<str>) -> Stop {
        ConfigError::new(format!("kubeconfig {}: {}[{}]: {}", self.file, self.list, self.name, what.as_ref()))
            .into()
    }

    /// Bytes that stand in the file as base64, or in a file of their own.
    fn data_or_file(
        &self,
        field: &str,
        data: Option<&String>,
        path: Option<&String>,
        facts: &Facts,
    ) -> Result<Option<Vec<u8>>, Stop> {
        match (non_empty(data), non_empty(path)) {
            (None, None) => Ok(None),
            (Some(_), Some(_)) => Err(self.error(format!("both {field} and {field}-data are given"))),
            (Some(data), None) => {
                // As Go's decoder: line ends are allowed, blanks are not.
                let data: Vec<u8> = data.bytes().filter(|b| !matches!(b, b'\r' | b'\n')).collect();
                match STANDARD.decode(data) {
                    Ok(bytes) => Ok(Some(bytes)),
                    // Not the decoder's own error: it quotes a byte of the data.
                    Err(_) => Err(self.error(format!("{field}-data is not base64"))),
                }
            }
            (None, Some(path)) => {
                let path = beside(self.file, path);
                match facts.file(&path)? {
                    Ok(bytes) => Ok(Some(bytes.to_vec())),
                    Err(e) => Err(self.error(format!("{field} {path}: {e}"))),
                }
            }
        }
    }
}

impl Kubeconfig {
    /// Nothing in it that could lead anywhere.
    pub(super) fn is_empty(&self) -> bool {
        self.clusters.is_empty()
            && self.contexts.is_empty()
            && self.users.is_empty()
            && self.current_context.is_none()
    }

    /// The first file that has an entry wins, whole; so does the first that names a current context.
    pub(super) fn merge(&mut self, other: Self) {
        fn add<T>(to: &mut Vec<Entry<T>>, from: Vec<Entry<T>>) {
            for entry in from {
                if find(to, &entry.name).is_none() {
                    to.push(entry);
                }
            }
        }
        self.files.extend(other.files);
        add(&mut self.clusters, other.clusters);
        add(&mut self.contexts, other.contexts);
        add(&mut self.users, other.users);
        if self.current_context.is_none() {
            self.current_context = other.current_context;
        }
    }

    pub(super) fn resolve(&self, context: Option<&str>, facts: &Facts) -> Result<Config, Stop> {
        let files = self.files.join(", ");
        let fail = |what: String| Stop::from(ConfigError::new(format!("kubeconfig {files}: {what}")));
        let names = || {
            let names: Vec<&str> = self.contexts.iter().map(|e| e.name.as_str()).take(10).collect();
            if names.is_empty() {
                "there are none".to_owned()
            } else {
                format!("there are: {}", names.join(", "))
            }
        };
        let Some(context_name) = context.or(self.current_context.as_deref()) else {
            return Err(fail(format!(
                "no current-context is set, and no context was asked for ({})",
                names()
            )));
        };
        let Some(context) = find(&self.contexts, context_name) else {
            return Err(fail(format!("there is no context {context_name:?} ({})", names())));
        };
        let place = Place { file: &context.file, list: "contexts", name: context_name };
        let cluster_name = context.value.cluster.as_deref().unwrap_or_default();
        let Some(cluster) = find(&self.clusters, cluster_name) else {
            return Err(place.error(format!("it names the cluster {cluster_name:?}, which does not exist")));
        };
        let user_name = context.value.user.as_deref().unwrap_or_default();
        let user = find(&self.users, user_name);
        if user.is_none() && !user_name.is_empty() {
            return Err(place.error(format!("it names the user {user_name:?}, which does not exist")));
        }

        let mut config = cluster_config(cluster, user, facts)?;
        if let Some(user) = user {
            if config.cluster.scheme == Scheme::Https {
                credentials(user, &mut config, facts)?;
            } else {
                config.warnings.push(format!(
                    "the server {} is plain http: the credentials of the user {:?} are not sent",
                    config.cluster, user.name
                ));
            }
        }
        if let Some(namespace) = non_empty(context.value.namespace.as_ref()) {
            namespace.clone_into(&mut config.namespace);
        }
        config.source = format!("kubeconfig {}, context {context_name}", context.file);
        config.context = Some(context_name.to_owned());
        Ok(config)
    }
}

fn cluster_config(
    entry: &Entry<RawCluster>,
    user: Option<&Entry<RawUser>>,
    facts: &Facts,
) -> Result<Config, Stop> {
    let raw = &entry.value;
    let place = Place { file: &entry.file, list: "clusters", name: &entry.name };
    if non_empty(raw.proxy_url.as_ref()).is_some() {
        // Not quoted: it may hold a password.
        return Err(place.error("proxy-url is not supported yet"));
    }
    let insecure = raw.insecure_skip_tls_verify.unwrap_or(false);
    let ca_pem = place.data_or_file(
        "certificate-authority",
        raw.certificate_authority_data.as_ref(),
        raw.certificate_authority.as_ref(),
        facts,
    )?;
    if insecure && ca_pem.is_some() {
        return Err(place.error("insecure-skip-tls-verify and a certificate authority exclude each other"));
    }
    // An address without a scheme is https if anything speaks for TLS, else http (client-go's `DefaultServerURL`).
    let cert = user
        .is_some_and(|u| u.value.client_certificate.is_some() || u.value.client_certificate_data.is_some());
    let default = if insecure || ca_pem.is_some() || cert { Scheme::Https } else { Scheme::Http };
    let server = raw.server.as_deref().unwrap_or_default();
    let cluster =
        Cluster::parse_with_default(server, default).map_err(|e| place.error(format!("server: {e}")))?;
    let mut config = Config::new(cluster);
    config.tls.ca_pem = ca_pem;
    config.tls.insecure = insecure;
    config.tls.server_name = non_empty(raw.tls_server_name.as_ref()).map(ToOwned::to_owned);
    Ok(config)
}

fn credentials(entry: &Entry<RawUser>, config: &mut Config, facts: &Facts) -> Result<(), Stop> {
    let raw = &entry.value;
    let place = Place { file: &entry.file, list: "users", name: &entry.name };
    let impersonates = raw.impersonate.is_some()
        || raw.as_uid.is_some()
        || raw.as_groups.as_ref().is_some_and(|g| !g.is_empty())
        || raw.as_user_extra.is_some();
    let unsupported = [
        ("exec", raw.exec.is_some()),
        ("auth-provider", raw.auth_provider.is_some()),
        ("username and password", non_empty(raw.username.as_ref()).is_some() || raw.password.is_some()),
        ("as (impersonation)", impersonates),
    ];
    if let Some((field, _)) = unsupported.iter().find(|(_, given)| *given) {
        return Err(place.error(format!(
            "{field} is not supported yet (a token, a token file, a client certificate are)"
        )));
    }

    let token = non_empty(raw.token.as_ref())
        .map(|t| Secret::token(t).map_err(|e| place.error(format!("token: {e}"))))
        .transpose()?;
    if let Some(path) = non_empty(raw.token_file.as_ref()) {
        let path = beside(&entry.file, path);
        match check_token_file(facts, &path) {
            Ok(()) => config.credentials.bearer = Bearer::File(path),
            // client-go: with both, the file wins once it can be read.
            Err(Stop::Error(e)) => match token {
                None => return Err(place.error(format!("tokenFile: {e}"))),
                Some(token) => {
                    config.warnings.push(format!("{e}; the token beside it is used"));
                    config.credentials.bearer = Bearer::Token(token);
                }
            },
            Err(need) => return Err(need),
        }
    } else if let Some(token) = token {
        config.credentials.bearer = Bearer::Token(token);
    }

    let cert = place.data_or_file(
        "client-certificate",
        raw.client_certificate_data.as_ref(),
        raw.client_certificate.as_ref(),
        facts,
    )?;
    let key =
        place.data_or_file("client-key", raw.client_key_data.as_ref(), raw.client_key.as_ref(), facts)?;
    config.credentials.client_cert = match (cert, key) {
        (None, None) => None,
        (Some(_), None) => return Err(place.error("a client-certificate without a client-key")),
        (None, Some(_)) => return Err(place.error("a client-key without a client-certificate")),
        (Some(cert_pem), Some(key)) => match String::from_utf8(key) {
            Ok(key) => Some(ClientCert { cert_pem, key_pem: Secret::new(key) }),
            Err(_) => return Err(place.error("the client-key is not PEM")),
        },
    };
    Ok(())
}
