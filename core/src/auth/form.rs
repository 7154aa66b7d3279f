//! What a recording knows of an authenticator: everything but the token.

use alloc::format;
use alloc::string::String;

use serde::{Deserialize, Serialize};

use super::{Authenticator, Source, Token};
use crate::config::Secret;
use crate::limits::FILE_BYTES;
use crate::time::Time;

/// An [`Authenticator`] without its secret. What is made of it decides as the original does and sends a placeholder.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum AuthForm {
    /// No credentials.
    None,
    /// A fixed token.
    Fixed {
        /// Its length.
        length: usize,
    },
    /// A file that holds a token.
    File {
        /// Its path.
        path: String,
        /// When the token that is known was read, and its length.
        token: Option<(Time, usize)>,
        /// When the file is to be read again.
        next_read: Time,
    },
}

fn length(header: &Secret) -> usize {
    header.expose().strip_prefix("Bearer ").unwrap_or_default().len()
}

/// As long as the token, so that what a server sends back of it is found and hidden in a replay as it was then.
fn placeholder(length: usize) -> Secret {
    // Longer ones are not taken; a file may say any number.
    Secret::new(format!("Bearer {}", "x".repeat(length.min(FILE_BYTES))))
}

impl From<&Authenticator> for AuthForm {
    fn from(auth: &Authenticator) -> Self {
        match &auth.source {
            Source::None => Self::None,
            Source::Fixed(header) => Self::Fixed { length: length(header) },
            Source::File { path, token, next_read } => Self::File {
                path: String::from(&**path),
                token: token.as_ref().map(|token| (token.read_at, length(&token.header))),
                next_read: *next_read,
            },
        }
    }
}

impl From<&AuthForm> for Authenticator {
    fn from(form: &AuthForm) -> Self {
        let source = match form {
            AuthForm::None => Source::None,
            AuthForm::Fixed { length } => Source::Fixed(placeholder(*length)),
            AuthForm::File { path, token, next_read } => Source::File {
                path: path.as_str().into(),
                token: token.map(|(read_at, length)| Token { header: placeholder(length), read_at }),
                next_read: *next_read,
            },
        };
        Self { source }
    }
}
