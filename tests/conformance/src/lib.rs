//! Servers, faults and recorded truth, for tests that run alike on the embedded and on a real API server.

pub mod cases;
pub mod hard;
pub mod https;
pub mod lens;
pub mod proxy;
pub mod realapi;
pub mod servers;
pub mod suite;
pub mod truth;
