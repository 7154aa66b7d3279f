//! A server that knows one list of pods and nothing else, so that what is measured is the client.
//!
//! It is a process of its own: its memory and its time do not count. TLS with its own authority, HTTP/1.1 as a real server
//! frames it (a list in large chunks, a watch with a chunk an event, flushed when nothing more waits), one thread a connection.

mod answer;
mod tls;

use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use rustls::{ServerConnection, StreamOwned};
use steersman_core::wire::http::{HttpLimits, IncomingHead, RequestDecoder, RequestEvent};

use crate::pods::Pods;

/// How long a watch is silent before it sends a bookmark.
const BOOKMARK_EVERY: Duration = Duration::from_secs(15);

/// How soon a silent watch notices that it has expired.
const POLL: Duration = Duration::from_millis(200);

/// What the server does.
#[derive(Debug)]
pub(crate) struct Options {
    pub pods: Pods,
    /// Events of each watch, once it was told to go.
    pub events: u64,
    /// Events a second; 0 for as fast as they are taken.
    pub rate: u64,
    /// Compress lists for clients that ask for it, as kube-apiserver does by default.
    pub gzip: bool,
    /// Pods a page, if pages are asked for; compressed pages are made before anybody asks.
    pub page_size: u64,
}

/// The first pod of a page, and the first that is not on it.
type Range = (u64, u64);

struct Server {
    options: Options,
    listed: Mutex<Listed>,
    /// Watches that may begin with their events.
    permits: Mutex<u64>,
    permitted: Condvar,
    /// Compressed pages by what was asked for: made once, since a real server's time is no part of this.
    pages: Mutex<BTreeMap<Range, Arc<[u8]>>>,
}

/// What lists hold now.
#[derive(Clone, Copy, Debug)]
struct Listed {
    /// How many of the pods there still are; they are spread evenly over those that there were.
    count: u64,
    /// How often that was said: open watches of an earlier time have expired.
    times: u64,
}

type Tls = StreamOwned<ServerConnection, TcpStream>;

/// Serves until standard input ends. Each line `go` lets one watch begin with its events; `expire N` ends all that are open with 410,
/// and lists hold N pods from then on. Says `ready`, and then when each first state was asked for, and each watch that was opened.
///
/// # Errors
/// When there is no port, or the kubeconfig cannot be written.
pub(crate) fn serve(options: Options, kubeconfig: &Path) -> io::Result<()> {
    let (config, ca) = tls::authority()?;
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    tls::write_kubeconfig(kubeconfig, &format!("https://{}", listener.local_addr()?), &ca)?;
    let server = Arc::new(Server {
        listed: Mutex::new(Listed { count: options.pods.count(), times: 0 }),
        options,
        permits: Mutex::new(0),
        permitted: Condvar::new(),
        pages: Mutex::new(BTreeMap::new()),
    });
    if server.options.gzip {
        server.compress_all()?;
    }
    println!("ready");
    let accepting = Arc::clone(&server);
    thread::spawn(move || {
        for socket in listener.incoming().flatten() {
            let (server, config) = (Arc::clone(&accepting), Arc::clone(&config));
            thread::spawn(move || {
                // A client that has seen enough goes away; that is no fault.
                let _ = ServerConnection::new(config).map_err(io::Error::other).and_then(|tls| {
                    socket.set_nodelay(true)?;
                    server.connection(StreamOwned::new(tls, socket))
                });
            });
        }
    });
    for line in io::stdin().lines() {
        let line = line?;
        if let Some(count) = line.strip_prefix("expire ").and_then(|n| n.parse::<u64>().ok()) {
            let mut listed = lock(&server.listed);
            listed.count = count.clamp(1, server.options.pods.count());
            listed.times += 1;
            lock(&server.pages).clear();
            continue;
        }
        *lock(&server.permits) += 1;
        server.permitted.notify_one();
    }
    Ok(())
}

impl Server {
    fn connection(&self, mut tls: Tls) -> io::Result<()> {
        let mut decoder = RequestDecoder::new(HttpLimits::default());
        let mut buffer = vec![0; 16 * 1024];
        loop {
            let n = match tls.read(&mut buffer) {
                Ok(0) => return Ok(()),
                Ok(n) => n,
                Err(e) if e.kind() == io::ErrorKind::UnexpectedEof => return Ok(()),
                Err(e) => return Err(e),
            };
            let mut input = &buffer[..n];
            while let Some(event) = decoder.next(&mut input).map_err(|e| io::Error::other(e.to_string()))? {
                if let RequestEvent::Request(request) = event {
                    self.answer(&request.head, &mut tls)?;
                }
            }
        }
    }

    /// Waits until a watch may begin.
    fn wait_for_permit(&self) {
        let mut permits = lock(&self.permits);
        while *permits == 0 {
            permits = self.permitted.wait(permits).unwrap_or_else(PoisonError::into_inner);
        }
        *permits -= 1;
    }

    /// Bookmarks until a watch that began at `times` has expired; an error when the client goes away before.
    fn idle(&self, times: u64, tls: &mut Tls, bookmark: &[u8]) -> io::Result<()> {
        tls.sock.set_read_timeout(Some(POLL))?;
        let mut sent = Instant::now();
        while lock(&self.listed).times == times {
            match tls.read(&mut [0; 64]) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(_) => {}
                Err(e) if matches!(e.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => {}
                Err(e) => return Err(e),
            }
            if sent.elapsed() >= BOOKMARK_EVERY {
                sent = Instant::now();
                tls.write_all(bookmark)?;
                tls.flush()?;
            }
        }
        tls.sock.set_read_timeout(None)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The value of a parameter of a query.
fn parameter<'a>(head: &'a IncomingHead, name: &str) -> Option<&'a str> {
    head.query().split('&').filter_map(|p| p.split_once('=')).find(|(n, _)| *n == name).map(|(_, v)| v)
}
