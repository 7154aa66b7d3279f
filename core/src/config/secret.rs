//! Text that must never be seen.

use alloc::string::String;
use core::fmt;

/// A token or private key. Neither `Debug` nor anything else shows it; [`Secret::expose`] is the only way out, so that
/// every use can be found by its name. It has no serde form on purpose.
///
/// ```
/// use steersman_core::config::Secret;
/// let s = Secret::new("hunter2");
/// assert_eq!(format!("{s:?}"), "Secret(..)");
/// assert_eq!(s.expose(), "hunter2");
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Wraps it.
    #[must_use]
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The text itself.
    #[must_use]
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// A bearer token from the text of a file or a field: surrounding white space goes, and what is left must be one
    /// word of visible ASCII, since it becomes part of a header line.
    ///
    /// # Errors
    /// What is wrong with it; the text itself is not shown.
    pub fn token(text: &str) -> Result<Self, &'static str> {
        let token = text.trim();
        if token.is_empty() {
            Err("the token is empty")
        } else if !token.bytes().all(|b| b.is_ascii_graphic()) {
            Err("the token holds a blank, a control character or a character that is not ASCII")
        } else {
            Ok(Self::new(token))
        }
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(..)")
    }
}
