//! The directory of one run of the program, and whether that lives.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process;
use std::time::{SystemTime, UNIX_EPOCH};

use crate::files;

/// The file that a living process holds a lock on.
pub(crate) const LOCK: &str = "lock";
/// What the name of a directory begins with that is not locked yet.
const NEW: &str = "new-";
/// So many processes may begin in the same millisecond with the same number, as in containers that share a volume.
const TRIES: u32 = 100;

/// One run. Its lock ends with it, or with the process, however that ends.
#[derive(Debug)]
pub(crate) struct Run {
    path: PathBuf,
    _lock: fs::File,
}

/// Makes a directory that only its owner can look into: what is not masked is still nobody else's.
fn private(path: &Path, with_parents: bool) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.recursive(with_parents).create(path)
}

impl Run {
    /// Makes a directory in `path` that no other run has.
    pub(crate) fn begin(path: &Path) -> io::Result<Self> {
        private(path, true)?;
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let id = format!("{:013}-{}", since.as_millis(), process::id());
        let mut taken = io::Error::from(io::ErrorKind::AlreadyExists);
        for n in 1..=TRIES {
            let id = if n > 1 { format!("{id}~{n}") } else { id.clone() };
            match Self::begin_as(path, &id) {
                Ok(run) => return Ok(run),
                Err(e)
                    if matches!(
                        e.kind(),
                        io::ErrorKind::AlreadyExists | io::ErrorKind::DirectoryNotEmpty
                    ) =>
                {
                    taken = e;
                }
                Err(e) => return Err(e),
            }
        }
        Err(taken)
    }

    fn begin_as(path: &Path, id: &str) -> io::Result<Self> {
        // Others must not see it before it is locked.
        let (new, run) = (path.join(format!("{NEW}{id}")), path.join(format!("{}{id}", files::RUN)));
        if run.exists() {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        private(&new, false)?;
        let lock = fs::File::create_new(new.join(LOCK))?;
        if let Err(e) = lock.try_lock() {
            tracing::warn!(target: "steersman", run = %run.display(), error = %e, "no lock: old runs stay");
        }
        fs::rename(&new, &run).inspect_err(|_| drop(fs::remove_dir_all(&new)))?;
        Ok(Self { path: run, _lock: lock })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

/// Whether nobody writes into this run any more. One without a lock was never anyone's.
pub(crate) fn is_over(run: &Path) -> bool {
    match fs::File::open(run.join(LOCK)) {
        Ok(lock) => lock.try_lock().is_ok(),
        Err(e) => e.kind() == io::ErrorKind::NotFound,
    }
}
