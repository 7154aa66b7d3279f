//! Finds the configuration: asks for variables and files, one at a time, and decides what they mean.

use alloc::borrow::ToOwned;
use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use super::kubeconfig::{self, Kubeconfig, directory_of};
use super::{Bearer, Cluster, Config, FileError, Scheme, Secret};
use crate::limits::FILE_BYTES;
use crate::machine::{Deadline, Machine, Outputs};
use crate::time::Time;

/// Where a pod finds its credentials (`rest.InClusterConfig` of client-go).
const SERVICE_ACCOUNT: &str = "/var/run/secrets/kubernetes.io/serviceaccount";
/// Most files in `KUBECONFIG`.
const FILES: usize = 64;

/// What the user asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// This kubeconfig and no other (`--kubeconfig`); it must exist.
    pub path: Option<String>,
    /// This context and not the current one (`--context`).
    pub context: Option<String>,
    /// What stands between the paths of `KUBECONFIG`: `:`, on Windows `;`.
    pub list_separator: char,
}

impl Default for Options {
    fn default() -> Self {
        Self { path: None, context: None, list_separator: if cfg!(windows) { ';' } else { ':' } }
    }
}

/// Why there is no configuration: one line that names the file, the field and what is wrong. Holds no secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigError(String);

impl ConfigError {
    pub(super) fn new(text: impl AsRef<str>) -> Self {
        Self(text.as_ref().split_whitespace().collect::<Vec<_>>().join(" "))
    }
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl core::error::Error for ConfigError {}

/// What can happen to a loader.
#[derive(Clone, Copy, Debug)]
pub enum Input<'a> {
    /// Begin. A second one does nothing.
    Start,
    /// The value of an environment variable that was asked for.
    Var {
        /// Its name.
        name: &'a str,
        /// Its value; `None` if it is not set.
        value: Option<&'a str>,
    },
    /// The content of a file that was asked for.
    File {
        /// Its path, as it was asked for.
        path: &'a str,
        /// All its bytes.
        result: Result<&'a [u8], &'a FileError>,
    },
    /// Time moved. A loader waits for nothing but answers.
    Deadline,
}

/// What a loader asks for or tells.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Output {
    /// Say what this environment variable holds.
    NeedVar(String),
    /// Read this file; the path is relative to the working directory unless absolute.
    NeedFile(String),
    /// The end, once.
    Done(Result<Box<Config>, ConfigError>),
}

/// Finds the configuration in the order of kubectl: the path given; else the files in `KUBECONFIG`; else
/// `~/.kube/config`; else the service account of the pod.
///
/// An executor answers `NeedVar` and `NeedFile`, or hands two closures to [`Loader::run`]:
///
/// ```
/// use steersman_core::config::{FileError, Loader, Options};
/// let yaml = "
/// current-context: a
/// contexts: [{name: a, context: {cluster: c, user: u, namespace: prod}}]
/// clusters: [{name: c, cluster: {server: 'https://10.0.0.1:6443'}}]
/// users: [{name: u, user: {token: hunter2}}]";
/// let config = Loader::new(Options::default())
///     .run(
///         |var| (var == "HOME").then(|| "/home/a".into()),
///         |path| if path == "/home/a/.kube/config" { Ok(yaml.into()) } else { Err(FileError::NotFound) },
///     )
///     .unwrap();
/// assert_eq!(config.namespace, "prod");
/// assert_eq!(config.source, "kubeconfig /home/a/.kube/config, context a");
/// ```
pub struct Loader {
    options: Options,
    state: State,
    facts: Facts,
    /// Inputs that named nothing that was asked for.
    pub ignored: u64,
}

impl fmt::Debug for Loader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Loader")
            .field("options", &self.options)
            .field("state", &self.state)
            .finish_non_exhaustive()
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum State {
    New,
    Waiting(Need),
    Done,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Need {
    Var(String),
    File(String),
}

/// Why a resolution stops before its end.
pub(super) enum Stop {
    Need(Need),
    Error(ConfigError),
}

impl From<ConfigError> for Stop {
    fn from(e: ConfigError) -> Self {
        Self::Error(e)
    }
}

/// What is known so far. A question that has no answer yet stops the resolution, which begins anew with the answer:
/// there are a dozen questions at most, and no state to get wrong between them.
#[derive(Default)]
pub(super) struct Facts {
    vars: BTreeMap<String, Option<String>>,
    files: BTreeMap<String, Result<Vec<u8>, FileError>>,
}

impl Facts {
    /// `Ok(None)`: not set, or empty.
    fn var(&self, name: &str) -> Result<Option<&str>, Stop> {
        match self.vars.get(name) {
            None => Err(Stop::Need(Need::Var(name.into()))),
            Some(value) => Ok(value.as_deref().filter(|v| !v.is_empty())),
        }
    }

    pub(super) fn file(&self, path: &str) -> Result<Result<&[u8], &FileError>, Stop> {
        match self.files.get(path) {
            None => Err(Stop::Need(Need::File(path.into()))),
            Some(result) => Ok(result.as_deref()),
        }
    }
}

impl Machine for Loader {
    type Input<'a> = Input<'a>;
    type Output = Output;

    fn handle(&mut self, _now: Time, input: Input<'_>, out: &mut Outputs<Output>) {
        match (input, &self.state) {
            (Input::Start, State::New) => {}
            (Input::Var { name, value }, State::Waiting(Need::Var(wanted))) if name == wanted => {
                self.facts.vars.insert(name.into(), value.map(ToOwned::to_owned));
            }
            (Input::File { path, result }, State::Waiting(Need::File(wanted))) if path == wanted => {
                let result = match result {
                    Ok(bytes) if bytes.len() > FILE_BYTES => Err(FileError::TooLong),
                    Ok(bytes) => Ok(bytes.to_vec()),
                    Err(e) => Err(e.clone()),
                };
                self.facts.files.insert(path.into(), result);
            }
            (Input::Start | Input::Deadline, _) => return,
            (Input::Var { .. } | Input::File { .. }, _) => {
                self.ignored += 1;
                return;
            }
        }
        let done = match resolve(&self.options, &self.facts) {
            Err(Stop::Need(need)) => {
                out.push(match &need {
                    Need::Var(name) => Output::NeedVar(name.clone()),
                    Need::File(path) => Output::NeedFile(path.clone()),
                });
                self.state = State::Waiting(need);
                return;
            }
            Err(Stop::Error(e)) => Err(e),
            Ok(config) => Ok(Box::new(config)),
        };
        self.state = State::Done;
        self.facts = Facts::default();
        out.push(Output::Done(done));
    }

    fn next_deadline(&self) -> Option<Deadline> {
        None
    }
}

impl Loader {
    /// A loader that has asked for nothing yet.
    #[must_use]
    pub fn new(options: Options) -> Self {
        Self { options, state: State::New, facts: Facts::default(), ignored: 0 }
    }

    /// Drives a fresh loader to its end with two functions that answer at once.
    ///
    /// # Errors
    /// The error of the configuration; also if this loader was already used.
    pub fn run(
        mut self,
        mut var: impl FnMut(&str) -> Option<String>,
        mut file: impl FnMut(&str) -> Result<Vec<u8>, FileError>,
    ) -> Result<Config, ConfigError> {
        let mut out = Outputs::new();
        self.handle(Time::ZERO, Input::Start, &mut out);
        loop {
            let Some(output) = out.drain().next() else {
                return Err(ConfigError::new("the configuration loader was used before"));
            };
            match output {
                Output::Done(result) => return result.map(|config| *config),
                Output::NeedVar(name) => {
                    let value = var(&name);
                    self.handle(Time::ZERO, Input::Var { name: &name, value: value.as_deref() }, &mut out);
                }
                Output::NeedFile(path) => {
                    let result = file(&path);
                    let result = result.as_deref();
                    self.handle(Time::ZERO, Input::File { path: &path, result }, &mut out);
                }
            }
        }
    }
}

fn resolve(options: &Options, facts: &Facts) -> Result<Config, Stop> {
    // What to say if nothing is found at all.
    let looked_at;
    if let Some(path) = &options.path {
        let bytes = facts.file(path)?.map_err(|e| ConfigError::new(format!("kubeconfig {path}: {e}")))?;
        return kubeconfig::parse(path, bytes)?.resolve(options.context.as_deref(), facts);
    }
    if let Some(list) = facts.var("KUBECONFIG")? {
        let mut merged = Kubeconfig::default();
        let mut paths: Vec<&str> = Vec::new();
        for path in list.split(options.list_separator).filter(|p| !p.is_empty()) {
            if !paths.contains(&path) {
                paths.push(path);
            }
        }
        if paths.len() > FILES {
            return Err(ConfigError::new(format!("KUBECONFIG names more than {FILES} files")).into());
        }
        let mut found = false;
        for path in &paths {
            match facts.file(path)? {
                Ok(bytes) => {
                    found = true;
                    merged.merge(kubeconfig::parse(path, bytes)?);
                }
                // kubectl goes on without a file that is not there, since `kubectl config` may write it later.
                Err(FileError::NotFound) => {}
                Err(e) => return Err(ConfigError::new(format!("kubeconfig {path}: {e}")).into()),
            }
        }
        if found && !merged.is_empty() {
            return merged.resolve(options.context.as_deref(), facts);
        }
        looked_at = format!(
            "no configuration found: KUBECONFIG={list} names {}",
            if found { "only empty files" } else { "no file that exists" }
        );
    } else {
        let home = match facts.var("HOME")? {
            None if cfg!(windows) => facts.var("USERPROFILE")?,
            home => home,
        };
        match home {
            None => {
                looked_at = "no configuration found: neither KUBECONFIG nor HOME is set".to_owned();
            }
            Some(home) => {
                let path = format!("{}/.kube/config", home.trim_end_matches('/'));
                match facts.file(&path)? {
                    Ok(bytes) => {
                        let file = kubeconfig::parse(&path, bytes)?;
                        if !file.is_empty() {
                            return file.resolve(options.context.as_deref(), facts);
                        }
                        looked_at = format!("no configuration found: {path} is empty");
                    }
                    Err(FileError::NotFound) => {
                        looked_at = format!(
                            "no configuration found: KUBECONFIG is not set and {path} does not exist"
                        );
                    }
                    Err(e) => return Err(ConfigError::new(format!("kubeconfig {path}: {e}")).into()),
                }
            }
        }
    }
    if let Some(context) = &options.context {
        return Err(ConfigError::new(format!("{looked_at}, so there is no context {context:?}")).into());
    }
    in_cluster(facts, &looked_at)
}

fn in_cluster(facts: &Facts, looked_at: &str) -> Result<Config, Stop> {
    let host = facts.var("KUBERNETES_SERVICE_HOST")?;
    let port = facts.var("KUBERNETES_SERVICE_PORT")?;
    let (Some(host), Some(port)) = (host, port) else {
        return Err(ConfigError::new(format!(
            "{looked_at}, and this is no pod: KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT are not set"
        ))
        .into());
    };
    let address = if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") };
    let cluster = Cluster::parse_with_default(&address, Scheme::Https)
        .map_err(|e| ConfigError::new(format!("KUBERNETES_SERVICE_HOST={host:?} and _PORT={port:?}: {e}")))?;
    let mut config = Config::new(cluster);
    config.source = "the service account of this pod".into();

    let token = format!("{SERVICE_ACCOUNT}/token");
    check_token_file(facts, &token).map_err(|stop| match stop {
        Stop::Error(e) => Stop::Error(ConfigError::new(format!("in-cluster configuration: {e}"))),
        need => need,
    })?;
    config.credentials.bearer = Bearer::File(token);

    let ca = format!("{SERVICE_ACCOUNT}/ca.crt");
    match facts.file(&ca)? {
        Ok(pem) => config.tls.ca_pem = Some(pem.to_vec()),
        // client-go goes on with the system's roots and logs it.
        Err(e) => config.warnings.push(format!("{ca}: {e}; only the system's certificates are trusted")),
    }
    if let Ok(bytes) = facts.file(&format!("{SERVICE_ACCOUNT}/namespace"))? {
        let namespace = String::from_utf8_lossy(bytes);
        if !namespace.trim().is_empty() {
            namespace.trim().clone_into(&mut config.namespace);
        }
    }
    Ok(config)
}

/// A token file must be readable and hold a token at load already (client-go); later failures keep the old one.
pub(super) fn check_token_file(facts: &Facts, path: &str) -> Result<(), Stop> {
    let bytes = facts.file(path)?.map_err(|e| ConfigError::new(format!("token file {path}: {e}")))?;
    let text = core::str::from_utf8(bytes)
        .map_err(|_| ConfigError::new(format!("token file {path}: it is not text")))?;
    Secret::token(text).map_err(|e| ConfigError::new(format!("token file {path}: {e}")))?;
    Ok(())
}

/// The path of a file that is named in another one.
pub(super) fn beside(file: &str, path: &str) -> String {
    let absolute =
        path.starts_with('/') || (cfg!(windows) && (path.starts_with('\\') || path.get(1..2) == Some(":")));
    match directory_of(file) {
        Some(dir) if !absolute => format!("{dir}/{path}"),
        _ => path.to_owned(),
    }
}
