//! The server: one that is started for this, or a cluster that is there.

use std::sync::atomic::{AtomicU64, Ordering};
use std::{env, process, thread};

use serde_json::Value;
use steersman_core::api::{Method, Raw, Request};
use steersman_core::config;
use steersman_threads::Client;

use super::objects::{self, Objects};
use crate::args::Args;
use crate::contest::Process;
use crate::contestant::Resource;
use crate::program;

/// Requests at a time.
pub(super) const IN_FLIGHT: u64 = 8;

/// Answers to writes are of no interest; metadata are the least that there is.
const BRIEF: &str = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";

pub(super) struct Cluster {
    pub kubeconfig: String,
    pub objects: Folder,
    /// The server, if it is our own.
    server: Option<Process>,
}

/// A namespace that holds all objects.
pub(super) struct Folder {
    pub namespace: String,
    client: Client,
}

impl Cluster {
    /// A server of our own, unless there is a kubeconfig; and a namespace on it.
    ///
    /// # Errors
    /// If it does not start or refuses the namespace.
    pub(super) fn start(args: &Args) -> Result<Self, String> {
        let (kubeconfig, server) = match &args.kubeconfig {
            Some(kubeconfig) => (kubeconfig.clone(), None),
            None => {
                let me = env::current_exe().map_err(|e| e.to_string())?;
                let program = program::built(args, &me, "steersman-tests", &["real-apiserver".to_owned()])?;
                let server = Process::start("the API server", process::Command::new(&program[0]))?;
                let line = server.line()?;
                let kubeconfig = line.strip_prefix("READY kubeconfig=").ok_or_else(|| line.clone())?;
                (kubeconfig.to_owned(), Some(server))
            }
        };
        let options = config::Options { path: Some(kubeconfig.clone()), ..config::Options::default() };
        let client = Client::from_options(options).map_err(|e| e.to_string())?;
        let objects = Folder { namespace: format!("steersman-bench-{}", process::id()), client };
        let cluster = Self { kubeconfig, objects, server };
        let body = serde_json::json!({ "metadata": { "name": cluster.objects.namespace } });
        let body = body.to_string().into_bytes();
        cluster.objects.write(Method::Post, "/api/v1/namespaces", "application/json", body)?;
        Ok(cluster)
    }
}

impl Folder {
    /// Makes as many objects as were asked for, and tells how many bytes of JSON one has on average.
    ///
    /// # Errors
    /// If the server refuses one.
    pub(super) fn fill(&self, args: &Args, resource: Resource) -> Result<u64, String> {
        eprintln!("making {} {}", args.objects, resource.name());
        let objects = Objects::new(resource, &self.namespace, args.objects, args.size, args.seed)?;
        let (next, path) = (AtomicU64::new(0), self.path(resource));
        let make = || {
            loop {
                let n = next.fetch_add(1, Ordering::Relaxed);
                if n >= args.objects {
                    return Ok(());
                }
                let (object, status) = objects.number(n);
                self.write(Method::Post, &path, "application/json", object.to_string().into_bytes())?;
                if let Some(status) = status {
                    let path = format!("{path}/{}/status", objects::name(n));
                    self.patch(&path, status.to_string().into_bytes())?;
                }
            }
        };
        at_once(|_| make())?;
        let page = Request::<Raw>::new(Method::Get, format!("{path}?limit=100"));
        let page = self.client.send(page).map_err(|e| e.to_string())?;
        let page: Value = serde_json::from_slice(&page.0).map_err(|e| e.to_string())?;
        let sizes = page["items"].as_array().into_iter().flatten().map(|item| item.to_string().len() as u64);
        let (count, bytes) = sizes.fold((0, 0), |(count, sum), size| (count + 1, sum + size));
        Ok(bytes / u64::max(count, 1))
    }

    /// Where the objects of a kind are.
    pub(super) fn path(&self, resource: Resource) -> String {
        format!("/api/v1/namespaces/{}/{}", self.namespace, resource.name())
    }

    /// Merges a patch.
    pub(super) fn patch(&self, path: &str, body: Vec<u8>) -> Result<(), String> {
        self.write(Method::Patch, path, "application/merge-patch+json", body)
    }

    fn write(&self, method: Method, path: &str, content_type: &str, body: Vec<u8>) -> Result<(), String> {
        let request = Request::<Raw>::new(method, path).with_body(content_type, body).accept(BRIEF);
        self.client.send(request).map(drop).map_err(|e| e.to_string())
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        match self.server.take() {
            // It removes its files when its input ends.
            Some(server) => server.end(),
            None => {
                let path = format!("/api/v1/namespaces/{}", self.objects.namespace);
                if let Err(e) = self.objects.client.send(Request::<Raw>::new(Method::Delete, path)) {
                    eprintln!("the namespace {} stays: {e}", self.objects.namespace);
                }
            }
        }
    }
}

/// Does something several times at once; each is told which of them it is.
///
/// # Errors
/// The first error.
pub(super) fn at_once<T: Send>(work: impl Fn(u64) -> Result<T, String> + Sync) -> Result<Vec<T>, String> {
    let work = &work;
    thread::scope(|scope| {
        let all: Vec<_> = (0..IN_FLIGHT).map(|n| scope.spawn(move || work(n))).collect();
        let ended = |all: thread::ScopedJoinHandle<'_, Result<T, String>>| {
            all.join().unwrap_or_else(|_| Err("a thread has panicked".to_owned()))
        };
        all.into_iter().map(ended).collect()
    })
}
