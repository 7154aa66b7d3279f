//! Ends a task that waits.

use async_channel::{Receiver, Sender};

/// Shared between a waiting task and those who may stop it. Once raised it stays raised.
#[derive(Clone, Debug)]
pub(crate) struct Interrupt {
    /// Closing it raises the interrupt; nothing is ever sent.
    sender: Sender<()>,
    receiver: Receiver<()>,
}

impl Default for Interrupt {
    fn default() -> Self {
        let (sender, receiver) = async_channel::bounded(1);
        Self { sender, receiver }
    }
}

impl Interrupt {
    /// Wakes the waiting task now and for good.
    pub(crate) fn raise(&self) {
        self.sender.close();
    }

    pub(crate) fn is_raised(&self) -> bool {
        self.receiver.is_closed()
    }

    /// Ends when it is raised.
    pub(crate) async fn raised(&self) {
        let _ = self.receiver.recv().await;
    }
}
