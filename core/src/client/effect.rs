//! What the machines of this floor ask of an executor: the same five things, whatever they do with them.

use alloc::sync::Arc;

use super::{Bytes, Output};
use crate::net::ConnId;

/// Something to do with connections or files.
///
/// Each connection ends once: with `Close`, with `Release`, or with the executor's own `ConnectFailed`.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Effect {
    /// Make a connection and report it under this name.
    Connect {
        /// Its name.
        conn: ConnId,
        /// Whether one from the pool will do.
        may_reuse: bool,
    },
    /// Write these bytes, all of them, in order.
    Write {
        /// Where.
        conn: ConnId,
        /// What; it holds credentials.
        bytes: Bytes,
    },
    /// Close this connection; whatever is still reported of it is ignored.
    Close {
        /// Which.
        conn: ConnId,
    },
    /// This connection is healthy and no longer needed: a pool may have it. Close it instead if not all that was asked to
    /// be written has been.
    Release {
        /// Which.
        conn: ConnId,
    },
    /// Read this file.
    ReadFile {
        /// Its path.
        path: Arc<str>,
    },
}

/// The effect in an output of an exchange, or the output back if it is something else.
impl TryFrom<Output> for Effect {
    type Error = Output;

    fn try_from(output: Output) -> Result<Self, Output> {
        Ok(match output {
            Output::Connect { conn, may_reuse } => Self::Connect { conn, may_reuse },
            Output::Write { conn, bytes } => Self::Write { conn, bytes },
            Output::Close { conn } => Self::Close { conn },
            Output::Release { conn } => Self::Release { conn },
            Output::ReadFile { path } => Self::ReadFile { path },
            other => return Err(other),
        })
    }
}
