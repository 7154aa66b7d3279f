//! An embedded Kubernetes API server: enough of kube-apiserver, truthfully, to develop, test and simulate against.
//!
//! [`machine::ApiServer`] is the server as a pure state machine: requests, time and seeds in, answers and watch events
//! out. What it says, down to the words of its `Status` bodies, was taken from a real kube-apiserver 1.36. [`front::Server`] puts it on a loopback port with TLS
//! and writes a kubeconfig, so that `kubectl` and every client can use it.

#![forbid(unsafe_code)]

mod clock;
pub mod front;
mod json;
mod kinds;
pub mod machine;
mod patch;
mod protobuf;
pub mod resource;
mod selector;
mod status;
mod strategic;
mod validate;

pub use status::{Cause, Details, Failure};
