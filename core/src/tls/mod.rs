//! rustls settings from a resolved configuration, once for all executors (feature `tls`).

#[cfg(feature = "config")]
mod connect;
mod der;
mod verify;

#[cfg(test)]
mod tests;

#[cfg(feature = "config")]
pub use connect::ConnectError;

use alloc::format;
use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;

use rustls::client::WebPkiServerVerifier;
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, RootCertStore};

use crate::config::{Config, Scheme};
use crate::net::{NetError, NetErrorKind};

/// Why there can be no TLS: one line. Holds no key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsError(String);

impl fmt::Display for TlsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl core::error::Error for TlsError {}

/// The client's TLS settings: TLS 1.2 and 1.3 with ring, HTTP/1.1 by ALPN, the configuration's certificates or the
/// system's, the client certificate. Build it once for a configuration and share it.
///
/// A certificate that is listed among the trusted ones is accepted as the server's own, as Go does, as long as it names
/// the host and is within its dates.
///
/// # Errors
/// If a certificate or key cannot be read, if there is no certificate to trust, or if the system has none.
pub fn client_config(config: &Config) -> Result<Arc<ClientConfig>, TlsError> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider.clone())
        .with_safe_default_protocol_versions()
        .map_err(|e| TlsError(format!("TLS versions: {e}")))?
        .dangerous()
        .with_custom_certificate_verifier(verifier(config, &provider)?);
    let mut tls = match &config.credentials.client_cert {
        None => builder.with_no_client_auth(),
        Some(cert) => {
            let chain = certificates(&cert.cert_pem)
                .map_err(|e| TlsError(format!("the client certificate ({}): {e}", config.source)))?;
            if chain.is_empty() {
                return Err(TlsError(format!(
                    "the client certificate ({}): no PEM certificate in it",
                    config.source
                )));
            }
            // The parser's own errors quote the text, so they stay out.
            let key = PrivateKeyDer::from_pem_slice(cert.key_pem.expose().as_bytes()).map_err(|_| {
                TlsError(format!(
                    "the client key ({}): no PEM private key in it (PKCS#8, PKCS#1 or SEC1, not encrypted)",
                    config.source
                ))
            })?;
            builder
                .with_client_auth_cert(chain, key)
                .map_err(|e| TlsError(format!("the client certificate and key ({}): {e}", config.source)))?
        }
    };
    tls.alpn_protocols = alloc::vec![b"http/1.1".to_vec()];
    Ok(Arc::new(tls))
}

/// The name to ask for and to check: `tls-server-name`, else the host (a DNS name without its last dot, or an address).
///
/// # Errors
/// If it is neither a DNS name nor an IP address, or the scheme is not https.
pub fn server_name(config: &Config) -> Result<ServerName<'static>, TlsError> {
    if config.cluster.scheme != Scheme::Https {
        return Err(TlsError(format!("{} is not https", config.cluster)));
    }
    let (what, name) = match &config.tls.server_name {
        Some(name) => ("tls-server-name", name.as_str()),
        None => ("server", config.cluster.host.as_str()),
    };
    let trimmed = name.split('%').next().unwrap_or_default().trim_end_matches('.');
    ServerName::try_from(trimmed.to_string())
        .map_err(|_| TlsError(format!("{what}: {name:?} is neither a DNS name nor an IP address")))
}

/// What a failed handshake means, for a machine that asked for a connection; `address` stands in the text.
///
/// ```
/// use steersman_core::{net::NetErrorKind, tls::net_error};
/// let e = net_error("10.0.0.1:6443", &rustls::Error::HandshakeNotComplete);
/// assert_eq!(e.kind, NetErrorKind::Tls);
/// ```
#[must_use]
pub fn net_error(address: &str, error: &rustls::Error) -> NetError {
    use rustls::{CertificateError as Cert, Error};
    let hint = match error {
        Error::InvalidCertificate(Cert::UnknownIssuer) => {
            ": its certificate is not signed by a trusted authority (certificate-authority)"
        }
        Error::InvalidMessage(_) => ": it does not speak TLS; is the server plain http?",
        Error::AlertReceived(
            rustls::AlertDescription::CertificateRequired
            | rustls::AlertDescription::BadCertificate
            | rustls::AlertDescription::UnknownCA
            | rustls::AlertDescription::AccessDenied
            | rustls::AlertDescription::CertificateUnknown,
        ) => ": it refuses our client certificate, or wants one",
        _ => "",
    };
    NetError { kind: NetErrorKind::Tls, message: format!("TLS with {address}{hint}: {error}") }
}

fn certificates(pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, String> {
    CertificateDer::pem_slice_iter(pem).collect::<Result<_, _>>().map_err(|_| "broken PEM".to_string())
}

fn verifier(
    config: &Config,
    provider: &Arc<CryptoProvider>,
) -> Result<Arc<dyn rustls::client::danger::ServerCertVerifier>, TlsError> {
    if config.tls.insecure {
        return Ok(Arc::new(verify::AcceptAny::new(provider.clone())));
    }
    let mut roots = RootCertStore::empty();
    let mut listed = Vec::new();
    match &config.tls.ca_pem {
        Some(pem) => {
            let fail =
                |what: &str| TlsError(format!("the certificate authority ({}): {what}", config.source));
            listed = certificates(pem).map_err(|e| fail(&e))?;
            if listed.is_empty() {
                return Err(fail("no PEM certificate in it"));
            }
            // One that rustls cannot use (an old version, an odd algorithm) must not spoil the others.
            let (added, _) = roots.add_parsable_certificates(listed.iter().cloned());
            if added == 0 {
                return Err(fail("none of its certificates can be used"));
            }
        }
        None => {
            let system = rustls_native_certs::load_native_certs();
            let (added, _) = roots.add_parsable_certificates(system.certs);
            if added == 0 {
                let why = system.errors.first().map(|e| format!(": {e}")).unwrap_or_default();
                return Err(TlsError(format!(
                    "{} names no certificate authority, and the system has none{why}",
                    config.source
                )));
            }
        }
    }
    let inner = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider.clone())
        .build()
        .map_err(|e| TlsError(format!("the certificate authority: {e}")))?;
    Ok(Arc::new(verify::Listed::new(inner, listed)))
}
