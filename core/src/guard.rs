//! Functions that users hand in may panic; what that costs is for the caller to keep small.

use alloc::string::String;

/// Runs a user's function; where the core has `std`, a panic in it becomes its message.
#[cfg(feature = "std")]
pub(crate) fn guarded<R>(f: impl FnOnce() -> R) -> Result<R, String> {
    // The caller drops what the function has half done, so nothing broken is seen afterwards.
    std::panic::catch_unwind(core::panic::AssertUnwindSafe(f)).map_err(|cause| panic_message(&*cause))
}

/// Runs a user's function.
#[cfg(not(feature = "std"))]
pub(crate) fn guarded<R>(f: impl FnOnce() -> R) -> Result<R, String> {
    Ok(f())
}

#[cfg(feature = "std")]
fn panic_message(cause: &(dyn core::any::Any + Send)) -> String {
    cause
        .downcast_ref::<&str>()
        .map(|s| String::from(*s))
        .or_else(|| cause.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| String::from("panic without a message"))
}
