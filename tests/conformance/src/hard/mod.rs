//! Scenes against a real API server under hard conditions.
//!
//! A scene starts a control plane with the flags it needs, and lets two executors, each with plain and with streaming lists,
//! follow the ConfigMaps of a namespace of its own while a [`Writer`] creates, changes and deletes them all the time. Then it
//! does what it is called after. A scene ends with the same questions for all: does the store equal the server, object by
//! object; was the last state of every object reconciled and every deletion told; did a version go back? And it asks whether
//! what it is about did happen, by what the watches told and what a [`Lens`] saw: a scene that does not reach its fault fails.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::json;
use steersman_core::backoff::Policy;
use steersman_core::source::Options;

use crate::lens::Lens;
use crate::realapi::{self, ADMIN_TOKEN, RealApi};
use crate::suite::{Smol, Threads};

pub mod ends;
pub mod first;
pub mod forgotten;
pub mod notes;
pub mod outages;
pub mod overload;
pub mod recorded;
mod subject;
mod writer;

pub use subject::Subject;
pub use writer::{Tally, Writer};

/// How long anything in a scene may take.
pub const LIMIT: Duration = Duration::from_secs(40);

/// Waits until `is` gives something.
///
/// # Panics
/// When it does not within [`LIMIT`]; says `what`, and what `state` then is.
pub fn until<T>(what: &str, state: impl Fn() -> String, is: impl FnMut() -> Option<T>) -> T {
    until_within(LIMIT, what, state, is)
}

/// The same within another limit.
///
/// # Panics
/// When it does not.
pub fn until_within<T>(
    limit: Duration,
    what: &str,
    state: impl Fn() -> String,
    mut is: impl FnMut() -> Option<T>,
) -> T {
    let end = Instant::now() + limit;
    loop {
        if let Some(found) = is() {
            return found;
        }
        assert!(Instant::now() < end, "{what}: not within {limit:?}; {}", state());
        thread::park_timeout(Duration::from_millis(5));
    }
}

/// How to follow.
#[derive(Clone, Copy, Debug)]
pub struct How {
    /// With whose rights.
    pub token: &'static str,
    /// Each through a lens, which is prepared by this; straight if none.
    pub lens: Option<fn(&Lens)>,
    /// Changes settings of the watch.
    pub settings: fn(&mut Options),
}

impl How {
    /// Straight, with default settings but for the pauses, as the administrator.
    #[must_use]
    pub const fn straight() -> Self {
        Self { token: ADMIN_TOKEN, lens: None, settings: |_| {} }
    }

    /// The same through a lens.
    #[must_use]
    pub const fn through_lenses() -> Self {
        Self { lens: Some(|_| {}), ..Self::straight() }
    }
}

/// A control plane, those who follow it, and who writes to it.
pub struct Scene {
    /// The control plane.
    pub api: RealApi,
    /// Those who follow.
    pub subjects: Vec<Subject>,
    name: &'static str,
    namespaces: Vec<String>,
    began: Instant,
}

impl Scene {
    /// Starts a control plane with these flags of kube-apiserver.
    ///
    /// # Panics
    /// When it does not start.
    #[must_use]
    pub fn new(name: &'static str, flags: &[&str]) -> Self {
        notes::begin();
        let began = Instant::now();
        let flags = flags.iter().map(|f| (*f).to_owned()).collect();
        let options = realapi::Options { flags, ..realapi::Options::default() };
        let api = RealApi::start(options).unwrap_or_else(|e| panic!("{name}: no server: {e}"));
        let mut scene = Self { api, subjects: Vec::new(), name, namespaces: Vec::new(), began };
        // One process plays many scenes, and what the watches tell is known by its path.
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let n = COUNT.fetch_add(1, Ordering::Relaxed);
        for who in ["threads-plain", "threads-streaming", "smol-plain", "smol-streaming"] {
            scene.namespaces.push(format!("scene-{n}-{who}"));
        }
        for namespace in &scene.namespaces {
            scene.make("/api/v1/namespaces", &json!({"metadata": {"name": namespace}}));
            let path = format!("/api/v1/namespaces/{namespace}/configmaps");
            scene.make(&path, &json!({"metadata": {"name": "anchor"}, "data": {"v": "start"}}));
        }
        scene
    }

    /// Creates an object.
    ///
    /// # Panics
    /// When the server does not take it.
    pub fn make(&self, path: &str, object: &serde_json::Value) {
        let answer = self.api.client().send(
            "POST",
            path,
            &[("Content-Type", "application/json")],
            Some(object.to_string().as_bytes()),
            LIMIT,
        );
        let answer = answer.unwrap_or_else(|e| panic!("{path}: {e}"));
        assert_eq!(answer.status, 201, "{path}: {}", String::from_utf8_lossy(&answer.body));
    }

    /// The namespaces of those who follow, in the order of [`Scene::subjects`].
    #[must_use]
    pub fn namespaces(&self) -> &[String] {
        &self.namespaces
    }

    /// Begins to write. Some writes are done when it returns.
    #[must_use]
    pub fn write(&self, seed: u64) -> Writer {
        let writer = Writer::start(self.api.client(), self.namespaces.clone(), seed);
        writer.writes(40);
        writer
    }

    /// Lets all four follow.
    ///
    /// # Panics
    /// When they do not start.
    pub fn follow(&mut self, how: How) {
        type Start = fn(&'static str, String, &std::path::Path, Option<Lens>, Options) -> Subject;
        let all: [(_, Start, _); 4] = [
            ("threads, plain", Subject::start::<Threads>, false),
            ("threads, streaming", Subject::start::<Threads>, true),
            ("smol, plain", Subject::start::<Smol>, false),
            ("smol, streaming", Subject::start::<Smol>, true),
        ];
        for ((name, start, streaming), namespace) in all.into_iter().zip(self.namespaces.clone()) {
            let lens = how.lens.map(|prepare| {
                let lens = Lens::start(self.api.addr(), self.api.dir());
                let lens = lens.unwrap_or_else(|e| panic!("no lens: {e}"));
                prepare(&lens);
                lens
            });
            let addr = lens.as_ref().map_or_else(|| self.api.addr(), Lens::addr);
            let kubeconfig =
                self.api.kubeconfig_at(addr, how.token).unwrap_or_else(|e| panic!("no kubeconfig: {e}"));
            let mut options = Options::default();
            options.watcher.streaming = streaming;
            // Sooner again than on a real cluster, so that a scene is short.
            options.watcher.backoff =
                Policy { base: Duration::from_millis(50), cap: Duration::from_millis(500), jitter: 1.0 };
            (how.settings)(&mut options);
            self.subjects.push(start(name, namespace, &kubeconfig, lens, options));
        }
    }

    /// Does something for each of those who follow.
    pub fn each(&self, act: impl Fn(&Subject)) {
        self.subjects.iter().for_each(act);
    }

    /// Asks of all whether they saw everything. Nobody may write meanwhile.
    pub fn settle(&self) {
        self.each(|s| s.settle(&self.api));
    }

    /// Asks of those who use plain (`false`) or streaming (`true`) lists.
    pub fn each_that(&self, streaming: bool, act: impl Fn(&Subject)) {
        self.subjects.iter().filter(|s| s.streaming == streaming).for_each(act);
    }

    /// While nobody is connected, something is done.
    pub fn in_a_gap(&self, act: impl FnOnce(&RealApi)) {
        self.each(|s| s.lens().refuse());
        act(&self.api);
        self.each(|s| s.lens().accept());
    }

    /// Ends the writing, asks of all whether they saw everything, and ends it.
    pub fn finish(mut self, writer: Writer) {
        let tally = writer.finish();
        self.settle();
        let lines: Vec<String> = std::mem::take(&mut self.subjects).into_iter().map(Subject::stop).collect();
        let seconds = self.began.elapsed().as_secs_f32();
        println!("{}: {seconds:.1} s, {tally:?}\n  {}", self.name, lines.join("\n  "));
    }
}
