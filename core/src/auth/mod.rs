//! Who we are, in each request: tokens, and the files that hold them.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::sync::Arc;
use core::fmt;
use core::time::Duration;

use crate::config::{Bearer, Config, FileError, Scheme, Secret};
use crate::time::Time;

#[cfg(feature = "record")]
mod form;
#[cfg(test)]
mod tests;

#[cfg(feature = "record")]
pub use form::AuthForm;

/// A token that was read from a file is used for this long before the file is read again. client-go: a minute less ten
/// seconds (`transport/token_source.go`); service account tokens are replaced well before they end.
pub const TOKEN_FILE_AGE: Duration = Duration::from_secs(50);
/// After a failed read of the file, the old token is used for this long before the next try.
pub const TOKEN_FILE_RETRY: Duration = Duration::from_secs(10);
/// No token is longer; more could not stand in a header that servers accept.
const TOKEN_BYTES: usize = 64 * 1024;

/// Why there is no token to send. Holds no secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuthError(String);

impl fmt::Display for AuthError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl core::error::Error for AuthError {}

/// What to do before a request is sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ready {
    /// Send it, with this value of the `Authorization` header if there is one.
    Send(Option<Secret>),
    /// Read this file first and report it to [`Authenticator::file`].
    Read(Arc<str>),
}

/// Knows the token, or the file that holds it, and when that must be read again. Plain data: every machine has its own
/// copy, and an executor that starts a machine for each request shares what they learn with
/// [`Authenticator::learn`].
///
/// ```
/// use steersman_core::auth::{Authenticator, Ready};
/// use steersman_core::config::{Bearer, Cluster, Config, Secret};
/// use steersman_core::time::Time;
/// let mut config = Config::new(Cluster::parse("https://kube").unwrap());
/// config.credentials.bearer = Bearer::File("/t".into());
/// let mut auth = Authenticator::new(&config);
/// assert_eq!(auth.ready(Time::ZERO), Ready::Read("/t".into()));
/// auth.file(Time::ZERO, Ok(b"hunter2\n")).unwrap();
/// assert_eq!(auth.ready(Time::ZERO), Ready::Send(Some(Secret::new("Bearer hunter2"))));
/// ```
#[derive(Clone, Debug)]
pub struct Authenticator {
    source: Source,
}

#[derive(Clone, Debug)]
enum Source {
    None,
    Fixed(Secret),
    File { path: Arc<str>, token: Option<Token>, next_read: Time },
}

#[derive(Clone, Debug)]
struct Token {
    header: Secret,
    read_at: Time,
}

fn bearer(token: &Secret) -> Secret {
    Secret::new(format!("Bearer {}", token.expose()))
}

impl Authenticator {
    /// What the configuration says; over plain http nothing is ever sent, as with client-go.
    #[must_use]
    pub fn new(config: &Config) -> Self {
        let source = match &config.credentials.bearer {
            _ if config.cluster.scheme == Scheme::Http => Source::None,
            Bearer::None => Source::None,
            Bearer::Token(token) => Source::Fixed(bearer(token)),
            Bearer::File(path) => {
                Source::File { path: path.as_str().into(), token: None, next_read: Time::ZERO }
            }
        };
        Self { source }
    }

    /// No credentials, whatever happens.
    #[must_use]
    pub const fn none() -> Self {
        Self { source: Source::None }
    }

    /// Whether reading a file may give another token.
    #[must_use]
    pub const fn can_refresh(&self) -> bool {
        matches!(self.source, Source::File { .. })
    }

    /// What to do before a request is sent at `now`.
    #[must_use]
    pub fn ready(&self, now: Time) -> Ready {
        match &self.source {
            Source::None => Ready::Send(None),
            Source::Fixed(header) => Ready::Send(Some(header.clone())),
            Source::File { token: Some(token), next_read, .. } if now < *next_read => {
                Ready::Send(Some(token.header.clone()))
            }
            Source::File { path, .. } => Ready::Read(path.clone()),
        }
    }

    /// The file was read. If that failed and there is an older token, that one goes on being used.
    ///
    /// # Errors
    /// If there is no token at all.
    pub fn file(&mut self, now: Time, result: Result<&[u8], &FileError>) -> Result<(), AuthError> {
        let Source::File { path, token, next_read } = &mut self.source else { return Ok(()) };
        let read = match result {
            Err(e) => Err(e.to_string()),
            Ok(bytes) if bytes.len() > TOKEN_BYTES => Err(format!("longer than {TOKEN_BYTES} bytes")),
            Ok(bytes) => match core::str::from_utf8(bytes) {
                Err(_) => Err("it is not text".to_string()),
                Ok(text) => Secret::token(text).map_err(ToString::to_string),
            },
        };
        match read {
            Ok(secret) => {
                *token = Some(Token { header: bearer(&secret), read_at: now });
                *next_read = now + TOKEN_FILE_AGE;
                Ok(())
            }
            Err(e) if token.is_none() => Err(AuthError(format!("token file {path}: {e}"))),
            Err(_) => {
                *next_read = now + TOKEN_FILE_RETRY;
                Ok(())
            }
        }
    }

    /// The server answered 401 to a request that was sent at `sent_at`. A token that was read before then is forgotten.
    /// Whether another try may help.
    pub fn rejected(&mut self, sent_at: Time) -> bool {
        match &mut self.source {
            Source::None | Source::Fixed(_) => false,
            Source::File { token, .. } => {
                if token.as_ref().is_some_and(|t| t.read_at <= sent_at) {
                    *token = None;
                }
                true
            }
        }
    }

    /// Takes over what a copy of this has learned since: a token that was read later.
    pub fn learn(&mut self, other: &Self) {
        if let (
            Source::File { path, token, next_read },
            Source::File { path: path2, token: Some(theirs), next_read: next2 },
        ) = (&mut self.source, &other.source)
            && path == path2
            && token.as_ref().is_none_or(|ours| ours.read_at < theirs.read_at)
        {
            *token = Some(theirs.clone());
            *next_read = *next2;
        }
    }
}
