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
    Open { stem: Arc<str>, segments: Segments, over: Arc<AtomicBool> },
    Record { stem: Arc<str>, record: Vec<u8> },
    End { stem: Arc<str>, why: String },
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
        let stem = match message {
            Message::Open { stem, segments, over } => {
                all.insert(stem, Open { segments, file: None, over });
                continue;
            }
            Message::Flush(done) => {
                flush(&mut all);
                // Whoever asked may have gone.
                let _ = done.send(());
                continue;
            }
            Message::Record { stem, record } => {
                waiting.fetch_sub(record.len(), Ordering::Relaxed);
                if let Some(open) = all.get_mut(&stem)
                    && !open.segments.push(record, &mut out)
                {
                    open.over.store(true, Ordering::Relaxed);
                }
                stem
            }
            Message::End { stem, why } => {
                if let Some(open) = all.get_mut(&stem) {
                    open.segments.end(&why, &mut out);
                }
                stem
            }
        };
        let Some(open) = all.get_mut(&stem) else { continue };
        let result = out.drain().try_for_each(|write| open.perform(directory, &stem, write));
        if let Err(e) = result {
            tracing::error!(target: "steersman", recording = &*stem, error = %e, "the recording ends");
            open.over.store(true, Ordering::Relaxed);
            all.remove(&stem);
        }
    }
    flush(&mut all);
}

fn flush(all: &mut BTreeMap<Arc<str>, Open>) {
    all.retain(|stem, open| match open.file.as_mut().map_or(Ok(()), io::Write::flush) {
        Ok(()) => true,
        Err(e) => {
            tracing::error!(target: "steersman", recording = &**stem, error = %e, "the recording ends");
            open.over.store(true, Ordering::Relaxed);
            false
        }
    });
}

/// Makes a file that only its owner can read, wherever it is taken.
fn create(path: &Path) -> io::Result<fs::File> {
    let mut options = fs::OpenOptions::new();
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.write(true).create(true).truncate(true).open(path)
}

impl Open {
    fn perform(&mut self, directory: &Path, stem: &str, write: Write) -> io::Result<()> {
        match write {
            Write::Begin(segment) => {
                if let Some(mut before) = self.file.take() {
                    before.flush()?;
                }
                let file = create(&directory.join(files::name(stem, segment)))?;
                self.file = Some(BufWriter::with_capacity(64 * 1024, file));
                Ok(())
            }
            Write::Append(bytes) => self.file.as_mut().map_or(Ok(()), |file| file.write_all(&bytes)),
            Write::Remove(segment) => fs::remove_file(directory.join(files::name(stem, segment))),
        }
    }
}
