//! Why an executor has no client.

use core::fmt;

use super::TlsError;
use crate::config::ConfigError;

/// Why there is no client, in one line. Holds no secret.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ConnectError {
    /// The configuration cannot be found or read.
    Config(ConfigError),
    /// Its TLS settings make no sense.
    Tls(TlsError),
}

impl From<ConfigError> for ConnectError {
    fn from(e: ConfigError) -> Self {
        Self::Config(e)
    }
}

impl From<TlsError> for ConnectError {
    fn from(e: TlsError) -> Self {
        Self::Tls(e)
    }
}

impl fmt::Display for ConnectError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Config(e) => e.fmt(f),
            Self::Tls(e) => e.fmt(f),
        }
    }
}

impl core::error::Error for ConnectError {}
