//! Recordings as files of one directory.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::fmt;
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use steersman_core::limits;
use steersman_core::record::file::{Bound, Header, Segments};
use steersman_core::record::{Recorder, Redaction, Sink};

use crate::files;
use crate::run::Run;
use crate::writer::{self, Message};

/// Runs of the program whose recordings are kept.
const RUNS: usize = 5;

/// A directory of recordings. Each run of the program has a directory of its own in it, named after when it began, and in that
/// one file for each segment of each machine: `source-0-configmaps.v1.000000.rec`.
///
/// One thread writes; machines hand their records over and never wait. Where the disk is slower than the machines for longer, so
/// that more than [`limits::RECORDING_QUEUE`] waits, the recordings end and say so, not the program. What a crash leaves can be
/// read up to its last whole record. The last clone to be dropped waits until all is written, as [`flush`](Self::flush) does, and
/// no longer.
///
/// The last five runs are kept, and all whose process lives: it holds a lock on the file `lock` in the run's directory, which the
/// system takes back when it ends. Where a file system has no locks, no run is removed.
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
    run: Run,
    /// Taken when all is over, which ends the writer.
    sender: Mutex<Option<Sender<Message>>>,
    /// Says nothing, and is cut off when the writer has ended.
    ended: Mutex<Receiver<Infallible>>,
    waiting: Arc<AtomicUsize>,
    /// How long to wait for the disk.
    patience: Duration,
    /// How often each name was used.
    names: Mutex<BTreeMap<String, usize>>,
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Directory {
    /// Makes the directory of this run in `path`, removes those of runs long ago, and starts the writer.
    ///
    /// # Errors
    /// Those of the file system; a system that gives no thread.
    pub fn new(path: impl AsRef<Path>) -> io::Result<Self> {
        let run = Run::begin(path.as_ref())?;
        files::forget_runs(path.as_ref(), RUNS);
        let path = run.path().to_owned();
        let write =
            move |inbox: &Receiver<Message>, waiting: &AtomicUsize| writer::run(&path, inbox, waiting);
        Self::written_by(run, write, limits::RECORDING_FLUSH)
    }

    fn written_by(
        run: Run,
        write: impl FnOnce(&Receiver<Message>, &AtomicUsize) + Send + 'static,
        patience: Duration,
    ) -> io::Result<Self> {
        let (sender, inbox) = mpsc::channel();
        let (end, ended) = mpsc::channel();
        let waiting = Arc::new(AtomicUsize::new(0));
        thread::Builder::new().name("recorder".into()).spawn({
            let waiting = Arc::clone(&waiting);
            move || {
                // However it ends.
                let _end = end;
                write(&inbox, &waiting);
            }
        })?;
        let inner = Inner {
            run,
            sender: Mutex::new(Some(sender)),
            ended: Mutex::new(ended),
            waiting,
            patience,
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
        self.inner.run.path()
    }

    /// Waits until everything recorded so far is in its file, [`limits::RECORDING_FLUSH`] at most.
    ///
    /// # Errors
    /// The disk took longer. What waits may still be written.
    pub fn flush(&self) -> io::Result<()> {
        let (done, flushed) = mpsc::channel();
        // A writer that has ended has written all.
        if self.inner.send(Message::Flush(done))
            && flushed.recv_timeout(self.inner.patience) == Err(RecvTimeoutError::Timeout)
        {
            return Err(io::Error::new(io::ErrorKind::TimedOut, self.inner.late()));
        }
        Ok(())
    }
}

impl fmt::Debug for Directory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Directory")
            .field("path", &self.path())
            .field("bound", &self.bound)
            .field("redaction", &self.redaction)
            .finish()
    }
}

impl Inner {
    fn send(&self, message: Message) -> bool {
        lock(&self.sender).as_ref().is_some_and(|sender| sender.send(message).is_ok())
    }

    fn late(&self) -> String {
        let (bytes, patience) = (self.waiting.load(Ordering::Relaxed), self.patience);
        format!(
            "{}: the disk takes too long: {bytes} bytes still wait after {patience:?}",
            self.run.path().display()
        )
    }

    /// Takes this many bytes more into the queue. An error: so many wait already, which is too many.
    fn queue(&self, bytes: usize) -> Result<usize, usize> {
        self.waiting.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |waiting| {
            (waiting <= limits::RECORDING_QUEUE).then_some(waiting + bytes)
        })
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        drop(lock(&self.sender).take());
        if lock(&self.ended).recv_timeout(self.patience) == Err(RecvTimeoutError::Timeout) {
            tracing::error!(target: "steersman", "{}; the recordings are left unfinished", self.late());
        }
    }
}

impl Recorder for Directory {
    fn open(&self, header: Header) -> Arc<dyn Sink> {
        let stem = files::stem(&header.name);
        let number = {
            let mut names = lock(&self.inner.names);
            let used = names.entry(stem.to_ascii_lowercase()).or_default();
            *used += 1;
            *used
        };
        // A second manager in the same process, or a name that differs in what some file systems do not tell apart.
        let stem = if number > 1 { format!("{stem}~{number}") } else { stem };
        let over = Arc::new(AtomicBool::new(false));
        let sink =
            File { inner: Arc::clone(&self.inner), stem: stem.as_str().into(), over: Arc::clone(&over) };
        self.inner.send(Message::Open {
            stem: stem.into(),
            segments: Box::new(Segments::new(header, self.bound)),
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
        if let Err(waiting) = self.inner.queue(record.len()) {
            self.over.store(true, Ordering::Relaxed);
            let most = limits::RECORDING_QUEUE;
            let why = format!("the disk is too slow: {waiting} bytes wait to be written, more than {most}");
            self.inner.send(Message::End { stem, why });
            return false;
        }
        self.inner.send(Message::Record { stem, record })
    }
}

/// The machine is gone, and so is its file's handle once all is written.
impl Drop for File {
    fn drop(&mut self) {
        self.inner.send(Message::Close { stem: Arc::clone(&self.stem) });
    }
}

#[cfg(test)]
mod tests;
