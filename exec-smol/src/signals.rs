//! SIGINT and SIGTERM: the first asks for an end in order, the second for one at once.

use std::io;
use std::thread;

use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use steersman_core::manager::Input;

use crate::manager::WeakHandle;

/// From now on, signals are told to the manager. They stay caught to the end of the process.
pub(crate) fn forward(handle: WeakHandle) -> io::Result<()> {
    let mut signals = Signals::new([SIGINT, SIGTERM])?;
    thread::Builder::new().name("signals".into()).spawn(move || {
        for (signal, input) in
            signals.forever().zip([Input::Stop].into_iter().chain(std::iter::repeat(Input::Kill)))
        {
            let Some(handle) = handle.upgrade() else { return };
            tracing::info!(target: "steersman", signal, "stopping");
            handle.tell(input);
        }
    })?;
    Ok(())
}
