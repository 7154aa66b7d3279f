//! The last known state of one resource.

mod types;

pub use types::*;

/// A consistent view of a store at one moment, cheap to clone and to send to other threads.
#[derive(Clone, Debug, Default)]
pub struct Snapshot<T>(core::marker::PhantomData<T>);
