//! The one thread that writes.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, BufWriter, Write as _};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, TryRecvError};

use steersman_core::machine::Outputs;
use steersman_core::record::file::{Segments, Write};

use crate::files;

/// What it is told.
pub(crate) enum Message {
    Open {
        stem: Arc<str>,
        segments: Box<Segments>,
        over: Arc<AtomicBool>,
    },
    Record {
        stem: Arc<str>,
        record: Vec<u8>,
    },
    End {
        stem: Arc<str>,
        why: String,
    },
    /// Nobody is left who could record.
    Close {
        stem: Arc<str>,
    },
    Flush(Sender<()>),
}

struct Open {
    segments: Segments,
    file: Option<BufWriter<fs::File>>,
    over: Arc<AtomicBool>,
}

/// Writes until nobody is left who could tell it anything.
pub(crate) fn run(directory: &Path, inbox: &Receiver<Message>, waiting: &AtomicUsize) {
    let mut all: BTreeMap<Arc<str>, Open> = BTreeMap::new();
    let mut out = Outputs::new();
    loop {
        let message = match inbox.try_recv() {
            Ok(message) => message,
            Err(TryRecvError::Disconnected) => break,
            Err(TryRecvError::Empty) => {
                // A crash may come at any time.
                flush(&mut all);
                match inbox.recv() {
                    Ok(message) => message,
                    Err(_) => break,
                }
            }
        };
        let (stem, more) = match message {
            Message::Open { stem, segments, over } => {
                all.insert(stem, Open { segments: *segments, file: None, over });
                continue;
            }
            Message::Flush(done) => {
                flush(&mut all);
                // Whoever asked may have gone.
                let _ = done.send(());
                continue;
            }
            Message::Record { stem, record } => {
                let Some(open) = all.get_mut(&stem) else {
                    waiting.fetch_sub(record.len(), Ordering::Relaxed);
                    continue;
                };
                let bytes = record.len();
                let more = open.segments.push(record, &mut out);
                let result = out.drain().try_for_each(|write| open.perform(directory, &stem, write));
                waiting.fetch_sub(bytes, Ordering::Relaxed);
                (stem, result.map(|()| more))
            }
            Message::End { stem, why } => {
                let Some(open) = all.get_mut(&stem) else { continue };
                open.segments.end(&why, &mut out);
                let result = out.drain().try_for_each(|write| open.perform(directory, &stem, write));
                (stem, result.map(|()| false))
            }
            Message::Close { stem } => (stem, Ok(false)),
        };
        match more {
            Ok(true) => {}
            // The handle is closed here, or a process that lives long has none left.
            Ok(false) => {
                if let Some(mut open) = all.remove(&stem) {
                    open.over.store(true, Ordering::Relaxed);
                    open.flush(&stem);
                }
            }
            Err(e) => {
                failed(&stem, &e);
                if let Some(open) = all.remove(&stem) {
                    open.over.store(true, Ordering::Relaxed);
                }
            }
        }
    }
    flush(&mut all);
}

fn flush(all: &mut BTreeMap<Arc<str>, Open>) {
    all.retain(|stem, open| open.flush(stem));
}

fn failed(stem: &str, error: &io::Error) {
    tracing::error!(target: "steersman", recording = stem, error = %error, "the recording ends");
}

/// Makes a file that only its owner can read, wherever it is taken. One that is there already is somebody else's.
fn create(path: &Path) -> io::Result<fs::File> {
    let mut options = fs::OpenOptions::new();
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.write(true).create_new(true).open(path)
}

impl Open {
    /// Whether that went well.
    fn flush(&mut self, stem: &str) -> bool {
        let result = self.file.as_mut().map_or(Ok(()), io::Write::flush);
        if let Err(e) = &result {
            failed(stem, e);
            self.over.store(true, Ordering::Relaxed);
        }
        result.is_ok()
    }

    fn perform(&mut self, directory: &Path, stem: &str, write: Write) -> io::Result<()> {
        match write {
            Write::Begin(segment) => {
                if let Some(mut before) = self.file.take() {
                    before.flush()?;
                }
                let path = directory.join(files::name(stem, segment));
                let file = create(&path)
                    .map_err(|e| io::Error::new(e.kind(), format!("{}: {e}", path.display())))?;
                self.file = Some(BufWriter::with_capacity(64 * 1024, file));
                Ok(())
            }
            Write::Append(bytes) => self.file.as_mut().map_or(Ok(()), |file| file.write_all(&bytes)),
            Write::Remove(segment) => match fs::remove_file(directory.join(files::name(stem, segment))) {
                // Somebody tidied up.
                Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(()),
                result => result,
            },
        }
    }
}
