//! What every request to one server shares.

use alloc::string::String;

use serde::{Deserialize, Serialize};

use crate::config::Config;
use crate::limits::WireLimits;

/// What we call ourselves unless told otherwise.
pub const USER_AGENT: &str = concat!("steersman/", env!("CARGO_PKG_VERSION"));

/// What every request to one server shares. Made once for a configuration, then shared by all exchanges.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Endpoint {
    /// The `Host` header.
    pub host_header: String,
    /// Host and port, for messages.
    pub address: String,
    /// What stands before every path; empty, or begins with `/` and does not end with it.
    pub base_path: String,
    /// The `User-Agent` header; empty for none.
    pub user_agent: String,
    /// Whether answers that end may come as gzip, and streaming lists, which do not but begin with as much. On by default:
    /// servers compress large answers only (kube-apiserver: above 128 KiB), to a tenth and less. A plain watch never asks:
    /// its events are small, and whatever compresses them on the way may hold them back. What comes as gzip unasked is
    /// unfolded all the same.
    pub gzip: bool,
    /// What is accepted from it.
    pub limits: WireLimits,
}

impl Endpoint {
    /// The server of this configuration.
    #[must_use]
    pub fn new(config: &Config) -> Self {
        Self {
            host_header: config.cluster.host_header(),
            address: config.cluster.address(),
            base_path: config.cluster.base_path.clone(),
            user_agent: USER_AGENT.into(),
            gzip: true,
            limits: config.limits,
        }
    }

    /// The same with another `User-Agent`: servers count and limit by it.
    #[must_use]
    pub fn with_user_agent(mut self, user_agent: impl Into<String>) -> Self {
        self.user_agent = user_agent.into();
        self
    }

    /// The same with gzip asked for or not: on a fast network it costs more time than it saves.
    #[must_use]
    pub const fn with_gzip(mut self, gzip: bool) -> Self {
        self.gzip = gzip;
        self
    }

    /// The same with other limits.
    #[must_use]
    pub const fn with_limits(mut self, limits: WireLimits) -> Self {
        self.limits = limits;
        self
    }
}
