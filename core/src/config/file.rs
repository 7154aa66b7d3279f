//! Files, as far as machines see them.

use alloc::string::String;
use core::fmt;

/// Why a file could not be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FileError {
    /// It does not exist.
    NotFound,
    /// Anything else, as the system says it.
    Other(String),
}

impl fmt::Display for FileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotFound => f.write_str("no such file"),
            Self::Other(text) => f.write_str(text),
        }
    }
}

impl core::error::Error for FileError {}
