//! What ran against a real server, which was killed and forgot meanwhile, is replayed exactly.

use crate::suite::recorded::on_a_real_server;
use crate::suite::{Smol, Threads};

/// On threads.
pub fn on_threads() {
    on_a_real_server::<Threads>(true);
    on_a_real_server::<Threads>(false);
}

/// On smol.
pub fn on_smol() {
    on_a_real_server::<Smol>(true);
    on_a_real_server::<Smol>(false);
}
