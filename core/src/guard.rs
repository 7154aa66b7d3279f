//! Functions that users hand in may panic; what that costs is for the caller to keep small.

use alloc::string::{String, ToString};
use core::any::Any;

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

/// What a panic said.
pub(crate) fn panic_message(cause: &(dyn Any + Send)) -> String {
    let text =
        cause.downcast_ref::<&str>().copied().or_else(|| cause.downcast_ref::<String>().map(String::as_str));
    text.unwrap_or("panic without a message").to_string()
}
