//! Where the API server is and who we are: the resolved configuration, and the machine that finds it.
//!
//! The types need nothing; reading kubeconfigs (`Loader`) stands behind the feature `config`, since YAML needs `std`.

mod file;
mod secret;
mod server;

#[cfg(feature = "config")]
mod kubeconfig;
#[cfg(feature = "config")]
mod loader;
#[cfg(all(test, feature = "config"))]
mod tests;

pub use file::FileError;
#[cfg(feature = "std")]
pub use file::whole_file;
pub use secret::Secret;
pub use server::{Cluster, Scheme, ServerError};

#[cfg(feature = "config")]
pub use loader::{ConfigError, Input, Loader, Options, Output};

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use crate::limits::WireLimits;

/// Everything that is needed to talk to one cluster as one user. `Debug` shows no secret.
///
/// ```
/// use steersman_core::config::{Bearer, Cluster, Config, Secret};
/// let mut config = Config::new(Cluster::parse("https://10.0.0.1:6443/k8s/clusters/a").unwrap());
/// config.credentials.bearer = Bearer::Token(Secret::new("hunter2"));
/// assert_eq!(config.cluster.base_path, "/k8s/clusters/a");
/// assert!(!format!("{config:?}").contains("hunter2"));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Config {
    /// The API server.
    pub cluster: Cluster,
    /// How its certificate is checked.
    pub tls: TlsSettings,
    /// Who we are.
    pub credentials: Credentials,
    /// What is accepted from the server.
    pub limits: WireLimits,
    /// The namespace to work in where none is named: the context's, the service account's, or `default`.
    pub namespace: String,
    /// The name of the context; `None` in a cluster.
    pub context: Option<String>,
    /// Where this came from, for people: `kubeconfig /home/a/.kube/config, context prod`.
    pub source: String,
    /// What was odd but did not stop the load, one line each; an executor logs them.
    pub warnings: Vec<String>,
}

impl Config {
    /// A configuration without credentials, in the namespace `default`.
    #[must_use]
    pub fn new(cluster: Cluster) -> Self {
        Self {
            cluster,
            tls: TlsSettings::default(),
            credentials: Credentials::default(),
            limits: WireLimits::DEFAULT,
            namespace: "default".into(),
            context: None,
            source: "given by the program".into(),
            warnings: Vec::new(),
        }
    }
}

/// How the server's certificate is checked.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct TlsSettings {
    /// The certificates to trust, in PEM, any number, with any text between them. `None`: the system's.
    pub ca_pem: Option<Vec<u8>>,
    /// Accept any certificate. Never together with `ca_pem`.
    pub insecure: bool,
    /// The name to ask for and to check, where it is not the host (`tls-server-name`).
    pub server_name: Option<String>,
}

impl fmt::Debug for TlsSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TlsSettings")
            .field("ca_pem", &self.ca_pem.as_ref().map(Vec::len))
            .field("insecure", &self.insecure)
            .field("server_name", &self.server_name)
            .finish()
    }
}

/// Who we are. A token and a client certificate may be used together; the server decides which one counts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Credentials {
    /// What stands in the `Authorization` header.
    pub bearer: Bearer,
    /// What TLS shows.
    pub client_cert: Option<ClientCert>,
}

impl Credentials {
    /// Whether nothing at all is shown to the server (it then sees `system:anonymous`).
    #[must_use]
    pub fn is_none(&self) -> bool {
        self.bearer == Bearer::None && self.client_cert.is_none()
    }
}

/// A bearer token, or where one is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Bearer {
    /// None.
    #[default]
    None,
    /// A fixed one.
    Token(Secret),
    /// The path of a file that holds it and that others replace from time to time.
    File(String),
}

/// A client certificate.
#[derive(Clone, PartialEq, Eq)]
pub struct ClientCert {
    /// The certificate and its chain, PEM.
    pub cert_pem: Vec<u8>,
    /// Its private key, PEM: PKCS#8, PKCS#1 or SEC1.
    pub key_pem: Secret,
}

impl fmt::Debug for ClientCert {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientCert")
            .field("cert_pem", &self.cert_pem.len())
            .field("key_pem", &self.key_pem)
            .finish()
    }
}
