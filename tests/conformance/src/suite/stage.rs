//! What scenes are made of: a server with a namespace, a diary of runs, a gate, and waits with an end.

use std::fmt;
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use steersman_core::api::kinds::{CONFIGMAPS, SECRETS};
use steersman_core::controller::{Action, Builder, WatchSpec};
use steersman_core::manager::status::ManagerStatus;
use steersman_core::manager::{self, ExitReason};
use steersman_core::object::{Key, Object};

use super::executor::{Cx, Executor, Work, impatient};
use crate::servers::{Servers, TestServer};

/// How long anything in a scene may take.
pub const LIMIT: Duration = Duration::from_secs(20);
/// The namespace of every scene; each has a server of its own.
pub const NAMESPACE: &str = "scene";

/// Waits until `is` gives something.
///
/// # Panics
/// When it does not within [`LIMIT`]; says `what` and what `state` then is.
pub fn until<T>(what: &str, state: impl Fn() -> String, mut is: impl FnMut() -> Option<T>) -> T {
    let end = Instant::now() + LIMIT;
    loop {
        if let Some(found) = is() {
            return found;
        }
        assert!(Instant::now() < end, "{what}: not within {LIMIT:?}; {}", state());
        thread::park_timeout(Duration::from_millis(2));
    }
}

/// The ConfigMaps of the scene.
#[must_use]
pub fn maps() -> WatchSpec {
    WatchSpec::all(CONFIGMAPS).within(NAMESPACE).fields("metadata.name!=kube-root-ca.crt")
}

/// The Secrets of the scene.
#[must_use]
pub fn secrets() -> WatchSpec {
    WatchSpec::all(SECRETS).within(NAMESPACE)
}

/// A server with the namespace of a scene.
#[derive(Debug)]
pub struct Stage {
    /// The server.
    pub server: TestServer,
}

fn path(plural: &str, name: &str) -> String {
    let slash = if name.is_empty() { "" } else { "/" };
    format!("/api/v1/namespaces/{NAMESPACE}/{plural}{slash}{name}")
}

impl Stage {
    /// Of the server that the environment asks for.
    #[must_use]
    pub fn from_env() -> Self {
        Self::on(Servers::from_env().start())
    }

    /// Of this server.
    ///
    /// # Panics
    /// When the server does not make the namespace.
    #[must_use]
    pub fn on(server: TestServer) -> Self {
        let (status, answer) =
            server.ask("POST", "/api/v1/namespaces", Some(&json!({"metadata": {"name": NAMESPACE}})));
        assert_eq!(status, 201, "{answer}");
        Self { server }
    }

    fn ask(&self, method: &str, path: &str, body: Option<&Value>) -> Value {
        let (status, answer) = self.server.ask(method, path, body);
        assert!((200..300).contains(&status), "{method} {path}: {status} {answer}");
        answer
    }

    /// Makes a ConfigMap whose `data.v` is `value`.
    pub fn make(&self, name: &str, value: &str) -> Value {
        let body = json!({"metadata": {"name": name}, "data": {"v": value}});
        self.ask("POST", &path("configmaps", ""), Some(&body))
    }

    /// Changes `data.v` of a ConfigMap.
    pub fn set(&self, name: &str, value: &str) -> Value {
        self.ask("PATCH", &path("configmaps", name), Some(&json!({"data": {"v": value}})))
    }

    /// Deletes a ConfigMap.
    pub fn delete(&self, name: &str) {
        self.ask("DELETE", &path("configmaps", name), None);
    }

    /// Makes a Secret of the same name that `owner` (a ConfigMap) manages.
    pub fn make_child(&self, owner: &Value) -> Value {
        let owner = &owner["metadata"];
        let reference = json!({
            "apiVersion": "v1", "kind": "ConfigMap", "controller": true, "name": owner["name"], "uid": owner["uid"]
        });
        let body = json!({"metadata": {"name": owner["name"], "ownerReferences": [reference]}});
        self.ask("POST", &path("secrets", ""), Some(&body))
    }

    /// Changes an annotation of a Secret.
    pub fn touch_child(&self, name: &str, value: &str) {
        let body = json!({"metadata": {"annotations": {"touched": value}}});
        self.ask("PATCH", &path("secrets", name), Some(&body));
    }

    /// Deletes a Secret.
    pub fn delete_child(&self, name: &str) {
        self.ask("DELETE", &path("secrets", name), None);
    }

    /// Runs this controller against the server.
    pub fn run<E: Executor>(&self, controller: Builder<Object>, work: Work<Object>) -> Running<E> {
        Running::start(&self.server.kubeconfig(), |m| E::add(m, controller, work))
    }

    /// Runs a controller of all ConfigMaps whose runs are written into the diary and do nothing else.
    pub fn watch<E: Executor>(&self, diary: &Diary) -> Running<E> {
        self.run(Builder::of(maps()), diary.only())
    }
}

/// A running manager; killed when it is dropped.
pub struct Running<E: Executor>(pub E::Handle);

impl<E: Executor> fmt::Debug for Running<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        E::status(&self.0).fmt(f)
    }
}

impl<E: Executor> Running<E> {
    /// Starts the controllers that `add` adds.
    ///
    /// # Panics
    /// When it does not start.
    pub fn start(kubeconfig: &Path, add: impl FnOnce(E::Manager) -> E::Manager) -> Self {
        Self::start_with(kubeconfig, manager::Config::default(), add)
    }

    /// The same, with settings for its end.
    ///
    /// # Panics
    /// When it does not start.
    pub fn start_with(
        kubeconfig: &Path,
        end: manager::Config,
        add: impl FnOnce(E::Manager) -> E::Manager,
    ) -> Self {
        let client = E::client(kubeconfig).unwrap_or_else(|e| panic!("no client: {e}"));
        let manager = add(E::manager(client, end, impatient()));
        Self(E::start(manager).unwrap_or_else(|e| panic!("no start: {e}")))
    }

    /// Where it stands.
    #[must_use]
    pub fn status(&self) -> ManagerStatus {
        E::status(&self.0)
    }

    /// Waits until its status is as asked.
    ///
    /// # Panics
    /// When that does not happen.
    pub fn until(&self, what: &str, is: impl Fn(&ManagerStatus) -> bool) -> ManagerStatus {
        until(what, || format!("{:?}", self.status()), || Some(self.status()).filter(&is))
    }

    /// Waits until everything runs.
    ///
    /// # Panics
    /// When that does not happen.
    pub fn ready(&self) {
        self.until("ready", |s| s.ready().is_ok());
    }

    /// Stops it and waits for a clean end.
    ///
    /// # Panics
    /// When the end is another one.
    pub fn stop(self) {
        E::stop(&self.0);
        assert_eq!(self.exit(), ExitReason::Stopped);
    }

    /// Waits for the end.
    ///
    /// # Panics
    /// When there is none.
    #[must_use]
    pub fn exit(&self) -> ExitReason {
        let (ended, end) = std::sync::mpsc::channel();
        let handle = self.0.clone();
        thread::spawn(move || ended.send(E::wait(&handle)));
        end.recv_timeout(LIMIT).unwrap_or_else(|_| panic!("no end: {:?}", self.status()))
    }
}

impl<E: Executor> Drop for Running<E> {
    fn drop(&mut self) {
        E::kill(&self.0);
    }
}

/// One run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The object's name.
    pub name: String,
    /// `data.v` of what it saw.
    pub value: String,
    /// Which attempt it was.
    pub attempt: u32,
    /// Whether it is over.
    pub over: bool,
}

#[derive(Debug, Default)]
struct Pages {
    entries: Vec<Entry>,
    running: Vec<String>,
    most: usize,
    twice: Vec<String>,
}

/// What ran, in order.
#[derive(Clone, Debug, Default)]
pub struct Diary(Arc<(Mutex<Pages>, Condvar)>);

impl Diary {
    fn pages(&self) -> MutexGuard<'_, Pages> {
        self.0.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A reconcile that is written down and does nothing.
    #[must_use]
    pub fn only(&self) -> Work<Object> {
        self.and(|_, _| Ok(Action::await_change()))
    }

    /// A reconcile that is written down and then does `work`.
    pub fn and(
        &self,
        work: impl Fn(&Entry, &Cx) -> Result<Action, String> + Send + Sync + 'static,
    ) -> Work<Object> {
        let diary = self.clone();
        Arc::new(move |object, cx| {
            assert_eq!(object.name(), cx.key.name());
            let value = object.get::<String>(&["data", "v"]).ok().flatten().unwrap_or_default();
            let entry = Entry { name: object.name().to_owned(), value, attempt: cx.attempt, over: false };
            let _end = diary.begin(entry.clone());
            work(&entry, cx)
        })
    }

    /// Writes down that a run begins; it is over when what it gives is dropped.
    #[must_use]
    pub fn begin(&self, entry: Entry) -> Ending {
        let name = entry.name.clone();
        let mut pages = self.pages();
        if pages.running.contains(&name) {
            pages.twice.push(name.clone());
        }
        pages.running.push(name.clone());
        pages.most = pages.most.max(pages.running.len());
        pages.entries.push(entry);
        let at = pages.entries.len() - 1;
        drop(pages);
        self.0.1.notify_all();
        Ending { diary: self.clone(), name, at }
    }

    /// All runs.
    #[must_use]
    pub fn entries(&self) -> Vec<Entry> {
        self.pages().entries.clone()
    }

    /// The runs of one object.
    #[must_use]
    pub fn of(&self, name: &str) -> Vec<Entry> {
        self.entries().into_iter().filter(|e| e.name == name).collect()
    }

    /// How many runs of one object have ended.
    #[must_use]
    pub fn ended(&self, name: &str) -> usize {
        self.of(name).iter().filter(|e| e.over).count()
    }

    /// How many ran at the same time, at most.
    #[must_use]
    pub fn most(&self) -> usize {
        self.pages().most
    }

    /// Keys that ran twice at the same time.
    #[must_use]
    pub fn twice(&self) -> Vec<String> {
        self.pages().twice.clone()
    }

    /// Waits until what is written is as asked.
    ///
    /// # Panics
    /// When it does not become so.
    pub fn until(&self, what: &str, is: impl Fn(&[Entry]) -> bool) {
        let end = Instant::now() + LIMIT;
        let mut pages = self.pages();
        while !is(&pages.entries) {
            let left = end.saturating_duration_since(Instant::now());
            assert!(!left.is_zero(), "{what}: not within {LIMIT:?}; the last runs: {:#?}", {
                let from = pages.entries.len().saturating_sub(20);
                &pages.entries[from..]
            });
            pages = self.0.1.wait_timeout(pages, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Waits until a run of `name` that saw `value` is over.
    pub fn saw(&self, name: &str, value: &str) {
        let what = format!("{name} is reconciled with {value}");
        self.until(&what, |e| e.iter().any(|e| e.name == name && e.value == value && e.over));
    }

    /// Waits until `n` runs of `name` are over.
    pub fn ran(&self, name: &str, n: usize) {
        let what = format!("{n} runs of {name}");
        self.until(&what, |e| e.iter().filter(|e| e.name == name && e.over).count() >= n);
    }
}

/// Ends a run's entry.
#[derive(Debug)]
pub struct Ending {
    diary: Diary,
    name: String,
    at: usize,
}

impl Drop for Ending {
    fn drop(&mut self) {
        let mut pages = self.diary.pages();
        if let Some(at) = pages.running.iter().position(|n| *n == self.name) {
            pages.running.remove(at);
        }
        pages.entries[self.at].over = true;
        drop(pages);
        self.diary.0.1.notify_all();
    }
}

/// Something that runs wait for.
#[derive(Clone, Debug, Default)]
pub struct Gate(Arc<(Mutex<bool>, Condvar)>);

impl Gate {
    /// Waits until it is open, at most twice [`LIMIT`].
    pub fn pass(&self) {
        let open = self.0.0.lock().unwrap_or_else(PoisonError::into_inner);
        drop(self.0.1.wait_timeout_while(open, LIMIT * 2, |open| !*open));
    }

    /// Opens it for good.
    pub fn open(&self) {
        *self.0.0.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.0.1.notify_all();
    }

    /// Opens it when what it gives is dropped, so that a scene that fails leaves nobody waiting.
    #[must_use]
    pub fn opened_at_the_end(&self) -> Opening {
        Opening(self.clone())
    }
}

/// Opens a gate when it is dropped.
#[derive(Debug)]
pub struct Opening(Gate);

impl Drop for Opening {
    fn drop(&mut self) {
        self.0.open();
    }
}

/// The key of a scene's object.
#[must_use]
pub fn key(name: &str) -> Key {
    Key::namespaced(NAMESPACE, name)
}
