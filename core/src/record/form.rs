//! What machines were made with and what they were told, as values to keep: owned, with serde forms, without secrets.

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;
use core::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::redact::{self, Redaction};
use crate::api::{Method, Raw, Request, ResourceType, Written};
use crate::auth::{AuthForm, Authenticator};
use crate::backoff::Policy;
use crate::client::{Call, Endpoint, RetryPolicy, Timeouts};
use crate::config::FileError;
use crate::controller::{Config, Controller, Mapping, Outcome, ReconcileId, SourceId, WatchSpec};
use crate::manager::{self, Manager};
use crate::net::{ConnId, NetError};
use crate::object::{Key, Object, Reads};
use crate::queue::{Aging, Priority, Rate};
use crate::source::{Options, Source};
use crate::time::Time;
use crate::watcher::ReqId;

/// Bytes: as text where they are text, else as base64.
#[derive(Clone, PartialEq, Eq)]
pub struct Data(pub Vec<u8>);

impl fmt::Debug for Data {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes", self.0.len())
    }
}

impl Serialize for Data {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        match core::str::from_utf8(&self.0) {
            Ok(text) => s.serialize_newtype_variant("Data", 0, "text", text),
            Err(_) => s.serialize_newtype_variant("Data", 1, "base64", &STANDARD.encode(&self.0)),
        }
    }
}

impl<'de> Deserialize<'de> for Data {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(rename_all = "lowercase")]
        enum Form {
            Text(String),
            Base64(String),
        }
        match Form::deserialize(d)? {
            Form::Text(text) => Ok(Self(text.into_bytes())),
            Form::Base64(text) => STANDARD.decode(text).map(Self).map_err(serde::de::Error::custom),
        }
    }
}

/// What a source or a call was told.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[allow(missing_docs, reason = "as in `source::Input` and `net::NetEvent`")]
pub enum Told {
    Start,
    /// A source: stop. A call: abort.
    Stop,
    Connected {
        conn: ConnId,
        reused: bool,
    },
    ConnectFailed {
        conn: ConnId,
        error: NetError,
    },
    Received {
        conn: ConnId,
        bytes: Data,
    },
    Eof {
        conn: ConnId,
    },
    Broken {
        conn: ConnId,
        error: NetError,
    },
    File {
        path: String,
        /// The content is a placeholder.
        result: Result<Data, FileError>,
    },
    /// The job is found again among the outputs.
    Decoded {
        request: ReqId,
        received: Time,
    },
    Deadline,
}

/// What a source was made with.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SourceMade {
    /// What it watches.
    pub watch: WatchSpec,
    /// Its settings.
    pub options: Options,
    /// The server.
    pub endpoint: Endpoint,
    /// Who asks.
    pub auth: AuthForm,
    /// Its seed.
    pub seed: u64,
}

impl SourceMade {
    pub(super) fn new(source: &Source, seed: u64) -> Self {
        let (watch, options, exchange) = source.parts();
        Self {
            watch: watch.clone(),
            options: options.clone(),
            endpoint: exchange.endpoint().clone(),
            auth: exchange.auth().into(),
            seed,
        }
    }

    /// The same source again, with a placeholder for its token.
    #[must_use]
    pub fn source(&self) -> Source {
        let auth = Authenticator::from(&self.auth);
        Source::new(&self.watch, self.options.clone(), Arc::new(self.endpoint.clone()), auth, self.seed)
    }
}

/// What a call was made with.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct CallMade {
    /// What it is, for people.
    pub what: String,
    /// The method.
    pub method: Method,
    /// Path and query.
    pub path: String,
    /// Headers.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: Option<Data>,
    /// Whether it may be sent twice.
    pub idempotent: bool,
    /// Why it must not be sent.
    pub misuse: Option<String>,
    /// The server.
    pub endpoint: Endpoint,
    /// Who asks.
    pub auth: AuthForm,
    /// Its deadlines.
    pub timeouts: Timeouts,
    /// Its retries.
    pub policy: RetryPolicy,
    /// Longest answer.
    pub body_limit: usize,
    /// Its seed.
    pub seed: u64,
}

impl CallMade {
    pub(super) fn new<R: crate::api::Answer>(call: &Call<R>, seed: u64, redaction: &Redaction) -> Self {
        let (exchange, timeouts, policy, body_limit) = call.parts();
        let request = call.request();
        let mut body = request.body.clone();
        if let (Some(body), Some(rules)) =
            (&mut body, redaction.of_request(request.method, &request.path_and_query))
        {
            rules.body(body);
        }
        Self {
            what: request.what.clone(),
            method: request.method,
            path: request.path_and_query.clone(),
            headers: request.headers.iter().map(redact::header).collect(),
            body: body.map(Data),
            idempotent: request.idempotent,
            misuse: request.misuse().map(String::from),
            endpoint: exchange.endpoint().clone(),
            auth: exchange.auth().into(),
            timeouts,
            policy,
            body_limit,
            seed,
        }
    }

    /// The same call again, with placeholders for what is secret. Its answer stays bytes.
    #[must_use]
    pub fn call(&self) -> Call<Raw> {
        let mut request = Request::new(self.method, self.path.clone()).with_misuse(self.misuse.clone());
        request.headers.clone_from(&self.headers);
        request.body = self.body.as_ref().map(|data| data.0.clone());
        request.what.clone_from(&self.what);
        request.idempotent = self.idempotent;
        Call::new(Arc::new(self.endpoint.clone()), Authenticator::from(&self.auth), request, self.seed)
            .with_policy(self.policy)
            .with_timeouts(self.timeouts)
            .with_body_limit(self.body_limit)
    }
}

/// What a manager was made with.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ManagerMade {
    /// How many controllers.
    pub controllers: usize,
    /// How many watches.
    pub sources: usize,
    /// Its settings.
    pub config: manager::Config,
}

impl ManagerMade {
    pub(super) fn new(manager: &Manager) -> Self {
        let (controllers, sources, config) = manager.parts();
        Self { controllers, sources, config }
    }

    /// The same manager again.
    #[must_use]
    pub fn manager(&self) -> Manager {
        Manager::with_counts(self.controllers, self.sources, self.config)
    }
}

/// What a controller was made with, as far as it is not code.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ControllerMade {
    /// Its name.
    pub name: String,
    /// Its sources.
    pub sources: Vec<SourceForm>,
    /// How many keys run at once.
    pub concurrency: usize,
    /// The pauses of a failing key.
    pub backoff: Policy,
    /// How long one run may take.
    pub reconcile_timeout: Option<Duration>,
    /// How long events of one key are collected.
    pub debounce: Duration,
    /// How old keys get a share.
    pub aging: Option<Aging>,
    /// Most runs per time.
    pub rate: Option<Rate>,
    /// How often to say that a source is late.
    pub sync_notice: Duration,
    /// How long a key that has written waits until its sources show it.
    pub catch_up: Duration,
    /// Its seed.
    pub seed: u64,
}

/// One source of a controller.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SourceForm {
    /// What it watches.
    pub watch: WatchSpec,
    /// Whom it concerns.
    pub mapping: MappingForm,
    /// How many predicates it has: functions, which cannot be recorded.
    pub predicates: usize,
}

/// A [`Mapping`] as far as it is not code.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum MappingForm {
    /// The object itself.
    Primary,
    /// Its owners.
    Owner {
        /// Their resource.
        of: ResourceType,
        /// Only the one that manages it.
        controller_only: bool,
    },
    /// A function, which cannot be recorded.
    Function,
}

impl ControllerMade {
    pub(super) fn new(config: &Config<Object>, seed: u64) -> Self {
        let sources = config.sources.iter().map(|source| SourceForm {
            watch: source.watch.clone(),
            mapping: match &source.mapping {
                Mapping::Primary => MappingForm::Primary,
                Mapping::Owner { of, controller_only } => {
                    MappingForm::Owner { of: of.clone(), controller_only: *controller_only }
                }
                Mapping::Map(_) => MappingForm::Function,
            },
            predicates: source.predicates.len(),
        });
        Self {
            name: config.name.clone(),
            sources: sources.collect(),
            concurrency: config.concurrency,
            backoff: config.backoff,
            reconcile_timeout: config.reconcile_timeout,
            debounce: config.debounce,
            aging: config.aging,
            rate: config.rate,
            sync_notice: config.sync_notice,
            catch_up: config.catch_up,
            seed,
        }
    }

    /// The same controller again.
    ///
    /// # Errors
    /// Which of its sources has a mapping function or predicates. Those only the program has that was recorded: see
    /// [`Replay::controller`](super::replay::Replay::controller).
    pub fn controller(&self) -> Result<Controller<Object>, String> {
        let mut config = Config { sources: Vec::new(), ..Config::new(self.name.clone(), self.primary()?) };
        for source in &self.sources {
            let mapping = match &source.mapping {
                MappingForm::Primary => Mapping::Primary,
                MappingForm::Owner { of, controller_only } => {
                    Mapping::Owner { of: of.clone(), controller_only: *controller_only }
                }
                MappingForm::Function => {
                    return Err(format!(
                        "{} has a mapping function, which only your program has",
                        source.watch
                    ));
                }
            };
            if source.predicates > 0 {
                return Err(format!("{} has predicates, which only your program has", source.watch));
            }
            config.sources.push(crate::controller::Source::new(source.watch.clone(), mapping));
        }
        config.concurrency = self.concurrency;
        config.backoff = self.backoff;
        config.reconcile_timeout = self.reconcile_timeout;
        config.debounce = self.debounce;
        config.aging = self.aging;
        config.rate = self.rate;
        config.sync_notice = self.sync_notice;
        config.catch_up = self.catch_up;
        Ok(Controller::new(config, self.seed))
    }

    fn primary(&self) -> Result<WatchSpec, String> {
        self.sources.first().map(|s| s.watch.clone()).ok_or_else(|| "the controller has no source".into())
    }
}

/// What a controller was told.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[allow(missing_docs, reason = "as in `controller::Input`")]
pub enum ControllerTold {
    Start,
    Delta {
        source: SourceId,
        changes: Vec<Changed>,
        /// The whole view, where it is not the one before with these changes.
        whole: Option<Vec<String>>,
        /// Version of the view, and whether it holds a first full state.
        view: (String, bool),
        synced: bool,
        resource_version: String,
        received: Time,
    },
    Trigger {
        key: Key,
        priority: Priority,
    },
    Wrote {
        id: ReconcileId,
        write: Written,
    },
    Read {
        id: ReconcileId,
        reads: Reads,
    },
    Done {
        id: ReconcileId,
        outcome: Outcome,
        started: Time,
    },
    Stop {
        grace: Option<Duration>,
    },
    Deadline,
}

/// One change, with the JSON of its object.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[allow(missing_docs, reason = "as in `store::Change`")]
pub enum Changed {
    Added {
        object: String,
        initial: bool,
    },
    /// What was there before is in the view before.
    Updated {
        object: String,
        relisted: bool,
    },
    Deleted {
        object: String,
        final_unknown: bool,
    },
}

/// How many of each kind of thing were told; for people.
pub(super) fn counts<'a>(words: impl Iterator<Item = &'a str>) -> String {
    let mut all = BTreeMap::<_, usize>::new();
    words.for_each(|word| *all.entry(word).or_default() += 1);
    let all: Vec<_> = all.iter().map(|(word, n)| format!("{n} {word}")).collect();
    all.join(", ")
}

/// For people.
impl fmt::Display for Told {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Start => f.write_str("start"),
            Self::Stop => f.write_str("stop"),
            Self::Connected { conn, reused } => {
                write!(f, "connection {} stands{}", conn.0, if *reused { ", from the pool" } else { "" })
            }
            Self::ConnectFailed { conn, error } => write!(f, "connection {} cannot be made: {error}", conn.0),
            Self::Received { conn, bytes } => write!(f, "connection {}: {bytes:?}", conn.0),
            Self::Eof { conn } => write!(f, "connection {} ended", conn.0),
            Self::Broken { conn, error } => write!(f, "connection {} broke: {error}", conn.0),
            Self::File { path, result: Ok(data) } => write!(f, "file {path}: {data:?}"),
            Self::File { path, result: Err(e) } => write!(f, "file {path}: {e}"),
            Self::Decoded { request, .. } => write!(f, "decoded what came for request {}", request.0),
            Self::Deadline => f.write_str("deadline"),
        }
    }
}

/// For people.
impl fmt::Display for ControllerTold {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Start => f.write_str("start"),
            Self::Delta { source, changes, view, .. } => {
                let words = changes.iter().map(|c| match c {
                    Changed::Added { .. } => "added",
                    Changed::Updated { .. } => "updated",
                    Changed::Deleted { .. } => "deleted",
                });
                write!(f, "source {} at {:?}: {}", source.0, view.0, counts(words))
            }
            Self::Trigger { key, priority } => write!(f, "trigger {key}, priority {}", priority.0),
            Self::Wrote { id, write } => write!(f, "run {id} wrote {write}"),
            Self::Read { id, reads } => {
                write!(
                    f,
                    "run {id} read {} objects, {} values, {} bytes",
                    reads.parses, reads.parts, reads.bytes
                )
            }
            Self::Done { id, outcome, .. } => write!(f, "run {id} done: {outcome:?}"),
            Self::Stop { grace } => write!(f, "stop, grace {grace:?}"),
            Self::Deadline => f.write_str("deadline"),
        }
    }
}
