//! Servers, faults and recorded truth, for tests that run alike on the embedded and on a real API server.

pub mod proxy;
