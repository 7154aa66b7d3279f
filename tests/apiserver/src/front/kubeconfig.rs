//! Kubeconfigs that `kubectl` and every client library read.

use std::fs;
use std::io::{self, Write as _};
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::Server;

/// Whom a kubeconfig speaks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Who {
    /// The administrator, by token.
    Admin,
    /// An administrator, by client certificate.
    Certificate,
    /// The user `dev`, by token, without rights.
    User,
    /// Nobody.
    Anonymous,
}

pub(super) fn text(server: &Server, url: &str, who: Who) -> String {
    let user = match who {
        Who::Admin => format!("    token: {}\n", server.token()),
        Who::User => format!("    token: {}\n", server.user_token()),
        Who::Certificate => {
            let (cert, key) = server.client_certificate();
            format!(
                "    client-certificate-data: {}\n    client-key-data: {}\n",
                STANDARD.encode(cert),
                STANDARD.encode(key)
            )
        }
        Who::Anonymous => "    {}\n".to_owned(),
    };
    let ca = STANDARD.encode(server.ca_pem());
    format!(
        "apiVersion: v1
kind: Config
current-context: embedded
contexts:
- name: embedded
  context:
    cluster: embedded
    user: me
    namespace: default
clusters:
- name: embedded
  cluster:
    server: {url}
    certificate-authority-data: {ca}
users:
- name: me
  user:
{user}"
    )
}

pub(super) fn write(path: &Path, text: &str) -> io::Result<()> {
    let mut options = fs::OpenOptions::new();
    options.write(true).create(true).truncate(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)?.write_all(text.as_bytes())
}
