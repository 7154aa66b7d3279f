//! What the machines of this floor ask of an executor: the same five things, whatever they do with them.

use alloc::sync::Arc;

use super::Bytes;
use crate::config::FileError;
use crate::machine::Machine;
use crate::net::{ConnId, NetEvent};

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

/// What an executor tells a machine that works over connections.
#[derive(Clone, Copy, Debug)]
pub enum Happening<'a> {
    /// Something happened on a connection that was asked for.
    Net {
        /// Which.
        conn: ConnId,
        /// What.
        event: NetEvent<'a>,
    },
    /// A file that was asked for.
    File {
        /// Its path, as it was asked for.
        path: &'a str,
        /// All its bytes.
        result: Result<&'a [u8], &'a FileError>,
    },
    /// Time moved.
    Deadline,
}

/// A machine that works over connections. One loop of an executor drives them all: it performs the [`Effect`]s, reports
/// [`Happening`]s, and passes on whatever else comes out.
pub trait Driven: Machine {
    /// The input that tells of it.
    fn happened(happening: Happening<'_>) -> Self::Input<'_>;

    /// The effect in an output, or the output back if it is something else.
    ///
    /// # Errors
    /// The output, if it is no effect.
    fn effect(output: Self::Output) -> Result<Effect, Self::Output>;
}
