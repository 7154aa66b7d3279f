//! HTTP methods that an API server knows.

use core::fmt;

/// An HTTP method.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Method {
    /// Reads.
    Get,
    /// Creates.
    Post,
    /// Replaces.
    Put,
    /// Changes parts.
    Patch,
    /// Deletes.
    Delete,
}

impl Method {
    /// As it stands in a request line.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Get => "GET",
            Self::Post => "POST",
            Self::Put => "PUT",
            Self::Patch => "PATCH",
            Self::Delete => "DELETE",
        }
    }
}

impl fmt::Display for Method {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
