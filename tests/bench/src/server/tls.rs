//! Its own certificate authority, and a kubeconfig that trusts it.

use std::fs;
use std::io;
use std::path::Path;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair, KeyUsagePurpose};
use rustls::ServerConfig;
use rustls::crypto::ring;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

/// The settings of the server, and the authority's certificate as PEM.
pub(super) fn authority() -> io::Result<(Arc<ServerConfig>, String)> {
    let (ca, certificate, key) = certificates().map_err(io::Error::other)?;
    let key = PrivateKeyDer::try_from(key.serialize_der()).map_err(io::Error::other)?;
    let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(io::Error::other)?
        .with_no_client_auth()
        .with_single_cert(vec![certificate], key)
        .map_err(io::Error::other)?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok((Arc::new(config), ca))
}

fn certificates() -> Result<(String, CertificateDer<'static>, KeyPair), rcgen::Error> {
    let ca_key = KeyPair::generate()?;
    let mut ca = CertificateParams::new(Vec::new())?;
    ca.distinguished_name.push(DnType::CommonName, "steersman-bench-ca");
    ca.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    ca.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
    let ca_certificate = ca.self_signed(&ca_key)?;
    let issuer = Issuer::new(ca, ca_key);
    let key = KeyPair::generate()?;
    let mut server = CertificateParams::new(vec!["127.0.0.1".to_owned()])?;
    server.distinguished_name.push(DnType::CommonName, "kube-apiserver");
    let certificate = server.signed_by(&key, &issuer)?;
    Ok((ca_certificate.pem(), certificate.der().clone(), key))
}

/// A kubeconfig without credentials: nobody is asked for any.
pub(super) fn write_kubeconfig(path: &Path, url: &str, ca: &str) -> io::Result<()> {
    let ca = STANDARD.encode(ca);
    fs::write(
        path,
        format!(
            "apiVersion: v1
kind: Config
current-context: bench
contexts:
- name: bench
  context:
    cluster: bench
    user: bench
clusters:
- name: bench
  cluster:
    server: {url}
    certificate-authority-data: {ca}
users:
- name: bench
  user: {{}}
"
        ),
    )
}
