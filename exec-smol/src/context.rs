//! What a reconcile may look at and use.

use steersman_core::controller;

use crate::Client;

/// The surroundings of one run; see [`steersman_core::controller::Context`].
pub type Context = controller::Context<Client>;
