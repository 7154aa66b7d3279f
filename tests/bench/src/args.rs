//! The command line; small enough to need no library.

use crate::contestant::Resource;
use crate::peer::{self, Peer};
use crate::pods::Pods;
use crate::server;

/// What was asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Args {
    /// The events of a watch instead of a first state alone.
    pub watch: bool,
    /// A first state that is listed anew, and then is small.
    pub spike: bool,
    pub objects: u64,
    pub size: usize,
    /// Pods a page; 0 for one response.
    pub page_size: u64,
    pub streaming: bool,
    pub gzip: bool,
    /// Metadata alone.
    pub metadata: bool,
    pub events: u64,
    /// Events a second; 0 for as fast as they are taken.
    pub rate: u64,
    /// How many controllers share the pods.
    pub controllers: u64,
    /// Each reconcile asks for another one after an hour.
    pub requeue: bool,
    /// Each reconcile of ours decodes its object.
    pub parse: bool,
    /// Seconds after a list until it is asked what is held.
    pub after: u64,
    pub runs: usize,
    pub seed: u64,
    pub executors: Vec<String>,
    /// None if nothing was said of them.
    pub peers: Option<Vec<Peer>>,
    /// The least that the work can cost, too.
    pub limit: bool,
    /// Of `compare` alone: the contests by name, all if there is none.
    pub contests: Vec<String>,
    /// Of `scale` alone: how many pods, one after the other, and up to how many there are peers.
    pub sizes: Vec<u64>,
    pub peer_objects: u64,
    /// Take peers as they were built, and leave out those that were not.
    pub no_build: bool,
    /// Where the figures of every run go.
    pub json: Option<String>,
    /// Of `compare`, `real` and `scale`: where the chart goes.
    pub svg: Option<String>,
    /// Of the server: where its kubeconfig goes; of `real`: where the one of a cluster is.
    pub kubeconfig: Option<String>,
    /// What is listed and watched, and where: all namespaces if that is empty.
    pub resource: Resource,
    pub namespace: String,
    /// Events that were before.
    pub before: u64,
    /// Of `real` alone: what is asked for, all if there is none.
    pub resources: Vec<Resource>,
    /// The server speaks protobuf, too.
    pub protobuf: bool,
}

/// The text of `help`.
pub(crate) const HELP: &str = "\
Benchmarks of steersman side by side with its peers, on the same bytes, in turns; prints medians.

Usage: steersman-bench COMMAND [OPTIONS]

  list     from the start of a process to its first full state of all pods
  watch    the events of a watch, reconciled, after that
  compare  contests of all kinds, all executors, all peers and the limit, with the ratios to the best of the peers
  scale    the same watch with few and with many pods: what an event costs by the number of objects
  real     with a real kube-apiserver: the first state of 10000 ConfigMaps and of 10000 Pods, then 500 changes a second
  build    clean builds of the mirror controller on threads and of the same with kube-rs: time, size
  server   the server alone, until standard input ends; a line `go` lets one watch begin with its events, `expire N` ends all with
           410, and lists hold N pods from then on
  help     this

  --objects N        how many pods [list: 100000, else 10000 or fewer]
  --size BYTES       the JSON of one pod as an item of a list, managedFields included [5000]
  --page-size N      pods a page; 0 for one response [500]
  --streaming        streaming lists (sendInitialEvents) instead
  --gzip             the server compresses lists for those who ask for it
  --metadata         ask for the metadata of pods alone
  --events N         events of the watch [100000; real: 10000]
  --rate N           events a second; 0 for as fast as they are taken [0; real: 500]
  --controllers N    controllers in one process that share the pods of a watch, a part each [1; `sharing`: 200]
  --requeue          each reconcile asks for another one after an hour
  --parse            each reconcile of ours decodes its pod; the others have done so before
  --after SECONDS    of `spike`: from a list to its memory [10]
  --executor NAME    threads, smol; threads-compact, smol-compact (objects kept packed); or none; may be given several times
                     [threads and smol; `list`, `streaming` and `watch` of `compare` with threads-compact as well]
  --peer NAME        kube-rs (as it comes); kube-rs-lean, -current, -mimalloc, -dynamic, -shared (managedFields dropped; and
                     on one thread, with another allocator, with dynamic objects, several controllers on one stream);
                     client-go; controller-runtime; or none; may be given several times [compare, real: all, else none]
  --limit            also the least that the work can cost: TLS, the ends of frames, one pass for metadata, one copy
                     [compare: always]
  --contest NAME     of `compare`: list, streaming, metadata, watch, latency, idle, parse, timers, sharing or spike; may be given
                     several times [all]
  --sizes N,N,...    of `scale`: how many pods [1000,10000,100000]
  --peer-objects N   of `scale`: up to how many pods the peers take part, who need more memory [100000]
  --no-build         peers as they were built; those that were not are left out
  --runs N           how often each contestant runs, in turns [5; real: 3; build: 1]
  --seed N           of the pods [1]
  --json FILE        the figures of every run
  --svg FILE         of `compare`, `real` and `scale`: a chart
  --resource NAME    of `real`: configmaps or pods; may be given several times [both]
  --kubeconfig FILE  of `server`: where its kubeconfig goes; of `real`: a cluster instead of a server that is started
";

impl Args {
    /// Reads the options after the command.
    pub(crate) fn parse(watch: bool, words: impl Iterator<Item = String>) -> Result<Self, String> {
        Self::of(watch).read(words)
    }

    /// Reads the options of `real`.
    pub(crate) fn real(words: impl Iterator<Item = String>) -> Result<Self, String> {
        let few = Self { events: 10_000, rate: 500, runs: 3, protobuf: true, ..Self::of(true) };
        let mut args = few.read(words)?;
        if args.limit {
            return Err("--limit: there is none with a real server".to_owned());
        }
        args.peers.get_or_insert_with(|| peer::ALL.to_vec());
        if args.resources.is_empty() {
            args.resources = Resource::ALL.to_vec();
        }
        Ok(args)
    }

    /// Reads the options of `build`.
    pub(crate) fn build(words: impl Iterator<Item = String>) -> Result<Self, String> {
        Self { runs: 1, ..Self::of(false) }.read(words)
    }

    fn of(watch: bool) -> Self {
        Self {
            watch,
            spike: false,
            objects: if watch { 10_000 } else { 100_000 },
            size: 5_000,
            page_size: 500,
            streaming: false,
            gzip: false,
            metadata: false,
            events: if watch { 100_000 } else { 0 },
            rate: 0,
            controllers: 1,
            requeue: false,
            parse: false,
            after: 10,
            runs: 5,
            seed: 1,
            executors: Vec::new(),
            peers: None,
            limit: false,
            contests: Vec::new(),
            sizes: vec![1_000, 10_000, 100_000],
            peer_objects: 100_000,
            no_build: false,
            json: None,
            svg: None,
            kubeconfig: None,
            resource: Resource::Pods,
            namespace: String::new(),
            before: 0,
            resources: Vec::new(),
            protobuf: false,
        }
    }

    fn read(mut self, mut words: impl Iterator<Item = String>) -> Result<Self, String> {
        let args = &mut self;
        while let Some(name) = words.next() {
            let mut value = || words.next().ok_or_else(|| format!("{name} has no value"));
            fn number<T: std::str::FromStr>(name: &str, value: &str) -> Result<T, String> {
                value.parse().map_err(|_| format!("{name}: {value:?} is not a number"))
            }
            match name.as_str() {
                "--objects" => args.objects = number(&name, &value()?)?,
                "--size" => args.size = number(&name, &value()?)?,
                "--page-size" => args.page_size = number(&name, &value()?)?,
                "--streaming" => args.streaming = true,
                "--gzip" => args.gzip = true,
                "--metadata" => args.metadata = true,
                "--events" => args.events = number(&name, &value()?)?,
                "--rate" => args.rate = number(&name, &value()?)?,
                "--controllers" => args.controllers = number(&name, &value()?)?,
                "--requeue" => args.requeue = true,
                "--parse" => args.parse = true,
                "--after" => args.after = number(&name, &value()?)?,
                "--sizes" => {
                    args.sizes = value()?.split(',').map(|n| number(&name, n)).collect::<Result<_, _>>()?;
                }
                "--peer-objects" => args.peer_objects = number(&name, &value()?)?,
                "--runs" => args.runs = number(&name, &value()?)?,
                "--seed" => args.seed = number(&name, &value()?)?,
                "--executor" => match value()?.as_str() {
                    name @ ("threads" | "smol" | "threads-compact" | "smol-compact" | "none") => {
                        args.executors.push(name.to_owned())
                    }
                    other => {
                        let known = "threads, smol, threads-compact, smol-compact or none";
                        return Err(format!("--executor: {other:?} is not {known}"));
                    }
                },
                "--peer" => {
                    let (name, peers) = (value()?, args.peers.get_or_insert_default());
                    if name != "none" {
                        peers.push(Peer::of(&name)?);
                    }
                }
                "--limit" => args.limit = true,
                "--contest" => args.contests.push(value()?),
                "--no-build" => args.no_build = true,
                "--json" => args.json = Some(value()?),
                "--svg" => args.svg = Some(value()?),
                "--kubeconfig" => args.kubeconfig = Some(value()?),
                "--resource" => args.resources.push(Resource::of(&value()?)?),
                _ => return Err(format!("no option is called {name:?}; see `help`")),
            }
        }
        if args.executors.is_empty() {
            args.executors = vec!["threads".to_owned(), "smol".to_owned()];
        }
        args.executors.retain(|e| e != "none");
        let nothing = args.objects == 0 || args.sizes.is_empty() || args.sizes.contains(&0);
        if nothing || args.controllers == 0 || args.runs == 0 || (args.watch && args.events == 0) {
            return Err(
                "without objects, events, controllers and runs there is nothing to measure".to_owned()
            );
        }
        Ok(self)
    }

    /// The server's part of it.
    pub(crate) fn server(&self) -> Result<server::Options, String> {
        Ok(server::Options {
            pods: Pods::new(self.objects, self.size, self.seed)?,
            events: self.events,
            rate: self.rate,
            gzip: self.gzip,
            page_size: self.page_size,
        })
    }

    /// The server's options as words.
    pub(crate) fn server_words(&self) -> Vec<String> {
        let mut words = Vec::new();
        for (name, value) in [
            ("--objects", self.objects),
            ("--size", self.size as u64),
            ("--page-size", self.page_size),
            ("--events", self.events),
            ("--rate", self.rate),
            ("--seed", self.seed),
        ] {
            words.extend([name.to_owned(), value.to_string()]);
        }
        if self.gzip {
            words.push("--gzip".to_owned());
        }
        words
    }

    /// A contestant's options as words.
    pub(crate) fn job_words(&self, variant: &str, kubeconfig: &str) -> Vec<String> {
        let (objects, events) = (self.objects.to_string(), self.events.to_string());
        let (page_size, streaming) = (self.page_size.to_string(), self.streaming.to_string());
        let (metadata, protobuf) = (self.metadata.to_string(), self.protobuf.to_string());
        let (before, controllers) = (self.before.to_string(), self.controllers.to_string());
        let (requeue, parse) = (self.requeue.to_string(), self.parse.to_string());
        [
            match (self.spike, self.watch) {
                (true, _) => "spike",
                (false, true) => "watch",
                (false, false) => "list",
            },
            "--kubeconfig",
            kubeconfig,
            "--resource",
            self.resource.name(),
            "--namespace",
            &self.namespace,
            "--objects",
            &objects,
            "--events",
            &events,
            "--before",
            &before,
            "--page-size",
            &page_size,
            "--streaming",
            &streaming,
            "--metadata",
            &metadata,
            "--protobuf",
            &protobuf,
            "--controllers",
            &controllers,
            "--requeue",
            &requeue,
            "--parse",
            &parse,
            "--variant",
            variant,
        ]
        .map(str::to_owned)
        .to_vec()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contestant::Job;

    fn parse(watch: bool, line: &str) -> Result<Args, String> {
        Args::parse(watch, line.split_whitespace().map(str::to_owned))
    }

    #[test]
    fn what_is_said_to_others_is_what_was_asked_for() {
        let args =
            parse(true, "--objects 7 --rate 3 --gzip --streaming --metadata --page-size 0 --executor smol --controllers 3 --requeue --parse")
                .unwrap();
        let server = parse(true, &args.server_words().join(" ")).unwrap();
        assert_eq!((server.objects, server.rate, server.gzip, server.page_size), (7, 3, true, 0));
        let job = Job::from_args(args.job_words("smol", "f").into_iter()).unwrap();
        assert!(job.watch && job.streaming && job.metadata && job.page_size.is_none());
        assert_eq!((job.objects, job.variant.as_str(), job.kubeconfig.as_str()), (7, "smol", "f"));
        assert_eq!((job.controllers, job.requeue, job.parse, job.spike), (3, true, true, false));
    }

    #[test]
    fn nonsense_is_named() {
        for (line, named) in [
            ("--objects x", "\"x\""),
            ("--executor tokio", "\"tokio\""),
            ("--peer java", "\"java\""),
            ("--seed", "--seed"),
            ("--fast", "\"--fast\""),
            ("--runs 0", "nothing to measure"),
            ("--resource secrets", "\"secrets\""),
        ] {
            let error = parse(false, line).unwrap_err();
            assert!(error.contains(named), "{error}");
        }
    }
}
