//! Recordings as files of one directory.

use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{self, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{SystemTime, UNIX_EPOCH};

use steersman_core::record::file::{Bound, Header, Segments};
use steersman_core::record::{Recorder, Redaction, Sink};

use crate::files;
use crate::writer::{self, Message};

/// Most bytes that wait to be written. A disk that is slower than the machines for longer ends the recordings, not the program.
const QUEUE_BYTES: usize = 32 * 1024 * 1024;

/// Runs of the program whose recordings are kept.
const RUNS: usize = 5;

/// A directory of recordings. Each run of the program has a directory of its own in it, named after when it began, and in that
/// one file for each segment of each machine: `source-0-configmaps.v1.000000.rec`.
///
/// One thread writes; machines hand their records over and never wait. What a crash leaves can be read up to its last whole
/// record. The last clone to be dropped waits until all is written, as [`flush`](Self::flush) does.
///
/// ```no_run
/// use steersman_record::Directory;
/// use steersman_core::record::Redaction;
/// use steersman_core::record::file::{Bound, Keep};
/// # fn main() -> std::io::Result<()> {
/// let bound = Bound { segments: 32, keep: Keep::Beginning, ..Bound::default() };
/// let recordings = Directory::new("/var/lib/operator/recordings")?
///     .bound(bound)
///     .redact(Redaction::default().also("vaults"));
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Directory {
    inner: Arc<Inner>,
    bound: Bound,
    redaction: Redaction,
}

struct Inner {
    path: PathBuf,
    /// Taken when all is over, which ends the writer.
    sender: Mutex<Option<Sender<Message>>>,
    thread: Mutex<Option<JoinHandle<()>>>,
    waiting: Arc<AtomicUsize>,
    /// How often each name was used.
    names: Mutex<BTreeMap<String, usize>>,
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Makes a directory that only its owner can look into: what is not masked is still nobody else's.
fn private(path: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.recursive(true).create(path)
}

impl Directory {
    /// Makes the directory of this run in `path`, removes those of runs long ago, and starts the writer.
    ///
    /// # Errors
    /// Those of the file system; a system that gives no thread.
    pub fn new(path: impl AsRef<Path>) -> io::Result<Self> {
        let path = path.as_ref();
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let run = path.join(format!("{}{:013}-{}", files::RUN, since.as_millis(), std::process::id()));
        private(&run)?;
        files::forget_runs(path, RUNS);
        let (sender, inbox) = mpsc::channel();
        let waiting = Arc::new(AtomicUsize::new(0));
        let thread = thread::Builder::new().name("recorder".into()).spawn({
            let (path, waiting) = (run.clone(), Arc::clone(&waiting));
            move || writer::run(&path, &inbox, &waiting)
        })?;
        let inner = Inner {
            path: run,
            sender: Mutex::new(Some(sender)),
            thread: Mutex::new(Some(thread)),
            waiting,
            names: Mutex::default(),
        };
        Ok(Self { inner: Arc::new(inner), bound: Bound::default(), redaction: Redaction::default() })
    }

    /// How much of each recording is kept.
    #[must_use]
    pub const fn bound(mut self, bound: Bound) -> Self {
        self.bound = bound;
        self
    }

    /// What is masked, besides credentials.
    #[must_use]
    pub fn redact(mut self, redaction: Redaction) -> Self {
        self.redaction = redaction;
        self
    }

    /// Where the files of this run are.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.inner.path
    }

    /// Waits until everything recorded so far is in its file.
    pub fn flush(&self) {
        let (done, flushed) = mpsc::channel();
        if self.inner.send(Message::Flush(done)) {
            // A writer that has ended has written all.
            let _ = flushed.recv();
        }
    }
}

impl fmt::Debug for Directory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Directory")
            .field("path", &self.inner.path)
            .field("bound", &self.bound)
            .field("redaction", &self.redaction)
            .finish()
    }
}

impl Inner {
    fn send(&self, message: Message) -> bool {
        lock(&self.sender).as_ref().is_some_and(|sender| sender.send(message).is_ok())
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        drop(lock(&self.sender).take());
        if let Some(thread) = lock(&self.thread).take() {
            // It panicked, or it is done.
            let _ = thread.join();
        }
    }
}

impl Recorder for Directory {
    fn open(&self, header: Header) -> Arc<dyn Sink> {
        let stem = files::stem(&header.name);
        let number = {
            let mut names = lock(&self.inner.names);
            let used = names.entry(stem.clone()).or_default();
            *used += 1;
            *used
        };
        // A second manager in the same process.
        let stem = if number > 1 { format!("{stem}~{number}") } else { stem };
        let over = Arc::new(AtomicBool::new(false));
        let sink =
            File { inner: Arc::clone(&self.inner), stem: stem.as_str().into(), over: Arc::clone(&over) };
        self.inner.send(Message::Open {
            stem: stem.into(),
            segments: Segments::new(header, self.bound),
            over,
        });
        Arc::new(sink)
    }

    fn redaction(&self) -> Redaction {
        self.redaction.clone()
    }
}

/// One recording.
struct File {
    inner: Arc<Inner>,
    stem: Arc<str>,
    /// It takes no more.
    over: Arc<AtomicBool>,
}

impl Sink for File {
    fn record(&self, record: Vec<u8>) -> bool {
        if self.over.load(Ordering::Relaxed) {
            return false;
        }
        let stem = Arc::clone(&self.stem);
        let waiting = self.inner.waiting.fetch_add(record.len(), Ordering::Relaxed) + record.len();
        if waiting > QUEUE_BYTES {
            self.inner.waiting.fetch_sub(record.len(), Ordering::Relaxed);
            self.over.store(true, Ordering::Relaxed);
            let why = format!("the disk is too slow: {waiting} bytes wait to be written");
            self.inner.send(Message::End { stem, why });
            return false;
        }
        self.inner.send(Message::Record { stem, record })
    }
}
