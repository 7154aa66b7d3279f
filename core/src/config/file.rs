//! Files, as far as machines see them.

use alloc::string::String;
use core::fmt;

use serde::{Deserialize, Serialize};

use crate::limits::FILE_BYTES;

/// Why a file could not be read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum FileError {
    /// It does not exist.
    NotFound,
    /// It is longer than [`FILE_BYTES`].
    TooLong,
    /// It was to be read again and again, and is a pipe, a device or a directory.
    NotRegular,
    /// Anything else, as the system says it.
    Other(String),
}

impl fmt::Display for FileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotFound => f.write_str("no such file"),
            Self::TooLong => write!(f, "longer than {FILE_BYTES} bytes"),
            Self::NotRegular => f.write_str("no regular file, so it cannot be read again"),
            Self::Other(text) => f.write_str(text),
        }
    }
}

impl core::error::Error for FileError {}

#[cfg(feature = "std")]
impl From<&std::io::Error> for FileError {
    fn from(e: &std::io::Error) -> Self {
        match e.kind() {
            std::io::ErrorKind::NotFound => Self::NotFound,
            _ => Self::Other(alloc::string::ToString::to_string(e)),
        }
    }
}

/// The bytes of a file that an executor has opened, or could not open: all of them, if there are no more than
/// [`FILE_BYTES`]. What has no end, as `/dev/zero`, is read no further.
///
/// ```
/// use steersman_core::config::{FileError, whole_file};
/// assert_eq!(whole_file(Ok(&b"abc"[..])), Ok(b"abc".to_vec()));
/// assert_eq!(whole_file(Ok(std::io::repeat(0))), Err(FileError::TooLong));
/// let missing = std::io::Error::from(std::io::ErrorKind::NotFound);
/// assert_eq!(whole_file(Err::<&[u8], _>(missing)), Err(FileError::NotFound));
/// ```
///
/// # Errors
/// As the system has them; a longer file.
#[cfg(feature = "std")]
pub fn whole_file(opened: std::io::Result<impl std::io::Read>) -> Result<alloc::vec::Vec<u8>, FileError> {
    use std::io::Read;
    let mut bytes = alloc::vec::Vec::new();
    opened
        .and_then(|file| file.take(FILE_BYTES as u64 + 1).read_to_end(&mut bytes))
        .map_err(|e| FileError::from(&e))?;
    if bytes.len() > FILE_BYTES { Err(FileError::TooLong) } else { Ok(bytes) }
}
