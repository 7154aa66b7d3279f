//! The least that a client of this server can do with rustls: as a contestant.
//!
//! TLS with the settings of the executors and their read size, the framing of HTTP, the ends of frames, one pass that finds the
//! fields of the metadata, one copy of each object without `managedFields`, which is kept. No table, no queue, no check of what
//! comes: nothing that a controller needs beyond it. One thread.

mod cut;
mod fields;

use std::io::{self, BufReader, Read, Write};
use std::net::TcpStream;
use std::ops::Range;
use std::sync::Arc;
use std::{fs, process, str, thread};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rustls::{ClientConnection, StreamOwned};
use steersman_core::config::{Cluster, Config};
use steersman_core::limits::READ_BYTES;
use steersman_core::tls;
use steersman_core::wire::http::{
    HttpEvent, HttpLimits, Method, RequestHead, ResponseContext, ResponseDecoder, write_request,
};

use crate::args::Args;
use crate::contestant::{Job, Meter, Reconciles, Resource};
use cut::Cutter;
use fields::Fields;

/// Whether it can do this: it has no controllers, and never lists again.
pub(crate) const fn takes(args: &Args) -> bool {
    !args.spike && !args.requeue && !args.parse && args.controllers == 1
}

/// Does the job and prints what it cost.
///
/// # Errors
/// One line that says what cannot be done.
pub(crate) fn run(job: &Job) -> Result<(), String> {
    let meter = Meter::start();
    if job.variant != "limit" || job.spike || job.requeue || job.parse || job.controllers > 1 {
        return Err(format!("this does not do the work of {}", job.variant));
    }
    if job.resource != Resource::Pods || !job.namespace.is_empty() {
        return Err("the server of this has pods alone, and all of them".to_owned());
    }
    let mut limit =
        Limit { job: job.clone(), server: Server::connect(&job.kubeconfig)?, kept: Kept::new(job) };
    match (job.watch, job.streaming) {
        (false, false) => limit.list()?,
        (false, true) => limit.watch(INITIAL, true, |_, _| {})?,
        (true, _) => return limit.reconcile(&meter),
    }
    meter.first_state();
    Ok(())
}

/// The parameters of a streaming list.
const INITIAL: &str =
    "watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true";

struct Limit {
    job: Job,
    server: Server,
    kept: Kept,
}

impl Limit {
    /// Takes every page.
    fn list(&mut self) -> Result<(), String> {
        let limit = self.job.page_size.map(|n| format!("limit={n}")).unwrap_or_default();
        let mut query = limit.clone();
        loop {
            let mut cutter = Cutter::list();
            self.server.ask(&self.job, &query)?;
            while self.server.read(|body| {
                cutter.feed(body, &mut |item| {
                    self.kept.add(item, &fields::of_item(item).ok_or("an item is not as it should be")?);
                    Ok(())
                })
            })? {}
            let head = String::from_utf8_lossy(&cutter.head);
            let Some((_, rest)) = head.split_once("\"continue\":\"") else { return Ok(()) };
            query = format!("{limit}&continue={}", rest.split('"').next().unwrap_or_default());
        }
    }

    /// Takes the frames of a watch: `each` has those of objects. With `initial` it ends with the first bookmark.
    fn watch(&mut self, query: &str, initial: bool, each: impl Fn(&[u8], &Fields)) -> Result<(), String> {
        let (mut cutter, mut ended) = (Cutter::watch(), false);
        self.server.ask(&self.job, query)?;
        while !ended {
            self.server.read(|body| {
                cutter.feed(body, &mut |frame| {
                    let fields = fields::of_frame(frame).ok_or("a frame is not as it should be")?;
                    // A bookmark has no name.
                    if fields.name.is_empty() {
                        ended = initial;
                    } else {
                        each(frame, &fields);
                        self.kept.add(frame, &fields);
                    }
                    Ok(())
                })
            })?;
        }
        Ok(())
    }

    /// Every object of the list counts as reconciled when the list is there, and every event when its fields are known.
    fn reconcile(mut self, meter: &Meter) -> Result<(), String> {
        let (reconciles, reached) = Reconciles::new(&self.job);
        let reconciles = Arc::new(reconciles);
        let counter = Arc::clone(&reconciles);
        thread::spawn(move || {
            let counted = |frame: &[u8], fields: &Fields| {
                let text = |at: &Range<usize>| str::from_utf8(&frame[at.clone()]).ok();
                counter.begin(text(&fields.event), text(&fields.sent));
            };
            let followed = if self.job.streaming {
                self.watch(INITIAL, false, counted)
            } else {
                self.list().and_then(|()| {
                    (0..self.job.objects).for_each(|_| counter.begin(None, None));
                    self.watch("watch=true", false, counted)
                })
            };
            if let Err(error) = followed {
                eprintln!("limit: {error}");
                process::exit(1);
            }
            // The connection stays until the process ends.
            thread::park();
        });
        reconciles.finish(&reached, meter, String::new);
        Ok(())
    }
}

/// The copies: as many as there are objects, the oldest making room.
struct Kept {
    objects: Vec<Box<[u8]>>,
    most: usize,
    next: usize,
}

impl Kept {
    fn new(job: &Job) -> Self {
        Self { objects: Vec::new(), most: usize::try_from(job.objects).unwrap_or(usize::MAX), next: 0 }
    }

    fn add(&mut self, json: &[u8], fields: &Fields) {
        let (all, managed) = (&fields.object, &fields.managed_fields);
        // (An object without them has an empty range at the very beginning.)
        let (before, after) = if managed.is_empty() {
            (&json[all.clone()], &[][..])
        } else {
            (&json[all.start..managed.start], &json[managed.end..all.end])
        };
        let mut copy = Vec::with_capacity(before.len() + after.len());
        copy.extend_from_slice(before);
        copy.extend_from_slice(after);
        let copy = copy.into_boxed_slice();
        if self.objects.len() < self.most {
            self.objects.push(copy);
        } else {
            self.objects[self.next] = copy;
            self.next = (self.next + 1) % self.most;
        }
    }
}

/// A socket that is asked for all that has come, as by the executors: TLS asks for a few KiB at a time.
struct Socket(BufReader<TcpStream>);

impl Read for Socket {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.0.read(buffer)
    }
}

impl Write for Socket {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.get_mut().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.get_mut().flush()
    }
}

/// A connection.
struct Server {
    stream: StreamOwned<ClientConnection, Socket>,
    address: String,
    decoder: ResponseDecoder,
    buffer: Vec<u8>,
}

impl Server {
    fn connect(kubeconfig: &str) -> Result<Self, String> {
        let text = fs::read_to_string(kubeconfig).map_err(|e| format!("{kubeconfig}: {e}"))?;
        let field = |name: &str| {
            let line = text.lines().find_map(|l| l.trim().strip_prefix(name));
            line.map(str::trim).ok_or_else(|| format!("{kubeconfig}: no {name}"))
        };
        let mut config = Config::new(Cluster::parse(field("server:")?).map_err(|e| e.to_string())?);
        let ca = STANDARD.decode(field("certificate-authority-data:")?).map_err(|e| e.to_string())?;
        config.tls.ca_pem = Some(ca);
        let settings = tls::client_config(&config).map_err(|e| e.to_string())?;
        let name = tls::server_name(&config).map_err(|e| e.to_string())?;
        let session = ClientConnection::new(settings, name).map_err(|e| e.to_string())?;
        let address = config.cluster.address();
        let socket = TcpStream::connect(&address).map_err(|e| format!("{address}: {e}"))?;
        socket.set_nodelay(true).map_err(|e| e.to_string())?;
        let socket = Socket(BufReader::with_capacity(READ_BYTES, socket));
        let decoder = ResponseDecoder::new(HttpLimits::default(), ResponseContext::default());
        Ok(Self { stream: StreamOwned::new(session, socket), address, decoder, buffer: vec![0; READ_BYTES] })
    }

    fn ask(&mut self, job: &Job, query: &str) -> Result<(), String> {
        let (list, object) = if job.metadata {
            let form = |kind: &str| format!("application/json;as={kind};g=meta.k8s.io;v=v1");
            (form("PartialObjectMetadataList"), form("PartialObjectMetadata"))
        } else {
            ("application/json".to_owned(), "application/json".to_owned())
        };
        let accept = if query.starts_with("watch") { object } else { list };
        let head = RequestHead {
            method: Method::Get,
            target: format!("/api/v1/pods?{query}"),
            headers: vec![("Accept".to_owned(), accept)],
        };
        let request = write_request(&head, &self.address, None).map_err(|e| e.to_string())?;
        self.decoder = ResponseDecoder::new(HttpLimits::default(), ResponseContext::default());
        self.stream.write_all(&request).and_then(|()| self.stream.flush()).map_err(|e| e.to_string())
    }

    /// Reads once; says whether the answer goes on.
    fn read(&mut self, mut body: impl FnMut(&[u8]) -> Result<(), String>) -> Result<bool, String> {
        let n = self.stream.read(&mut self.buffer).map_err(|e| e.to_string())?;
        if n == 0 {
            return Err("the server is gone".to_owned());
        }
        let mut input = &self.buffer[..n];
        while let Some(event) = self.decoder.next(&mut input).map_err(|e| e.to_string())? {
            match event {
                HttpEvent::Head(head) if head.status != 200 => return Err(format!("HTTP {}", head.status)),
                HttpEvent::Head(_) => {}
                HttpEvent::Body(bytes) => body(bytes)?,
                HttpEvent::End { .. } => return Ok(false),
            }
        }
        Ok(true)
    }
}
