//! The server's own certificate authority, and whom a client certificate names.

use std::io;
use std::sync::Arc;

use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer,
    KeyPair, KeyUsagePurpose,
};
use rustls::client::danger::HandshakeSignatureValid;
use rustls::crypto::CryptoProvider;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, UnixTime};
use rustls::server::WebPkiClientVerifier;
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::{DigitallySignedStruct, RootCertStore, ServerConfig, SignatureScheme};

use crate::machine::Identity;

/// A certificate authority with one server and one client certificate.
pub(super) struct Authority {
    ca_pem: String,
    ca: CertificateDer<'static>,
    server: CertificateDer<'static>,
    server_key: KeyPair,
    client_pem: String,
    client_key_pem: String,
}

fn named(pairs: &[(DnType, &str)]) -> DistinguishedName {
    let mut name = DistinguishedName::new();
    for (kind, value) in pairs {
        name.push(kind.clone(), *value);
    }
    name
}

impl Authority {
    pub(super) fn new() -> io::Result<Self> {
        Self::make().map_err(|e| io::Error::other(format!("cannot make certificates: {e}")))
    }

    fn make() -> Result<Self, rcgen::Error> {
        let ca_key = KeyPair::generate()?;
        let mut ca = CertificateParams::new(Vec::new())?;
        ca.distinguished_name = named(&[(DnType::CommonName, "steersman-apiserver-ca")]);
        ca.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        ca.key_usages =
            vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature, KeyUsagePurpose::CrlSign];
        let ca_cert = ca.self_signed(&ca_key)?;
        let issuer = Issuer::new(ca, ca_key);

        let server_key = KeyPair::generate()?;
        let names =
            ["127.0.0.1", "::1", "localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc"];
        let mut server = CertificateParams::new(names.map(str::to_owned))?;
        server.distinguished_name = named(&[(DnType::CommonName, "kube-apiserver")]);
        server.use_authority_key_identifier_extension = true;
        server.key_usages = vec![KeyUsagePurpose::DigitalSignature, KeyUsagePurpose::KeyEncipherment];
        server.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        let server_cert = server.signed_by(&server_key, &issuer)?;

        let client_key = KeyPair::generate()?;
        let mut client = CertificateParams::new(Vec::new())?;
        client.distinguished_name =
            named(&[(DnType::OrganizationName, "system:masters"), (DnType::CommonName, "cert-admin")]);
        client.use_authority_key_identifier_extension = true;
        client.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        client.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        let client_cert = client.signed_by(&client_key, &issuer)?;

        Ok(Self {
            ca_pem: ca_cert.pem(),
            ca: ca_cert.der().clone(),
            server: server_cert.der().clone(),
            server_key,
            client_pem: client_cert.pem(),
            client_key_pem: client_key.serialize_pem(),
        })
    }

    pub(super) fn ca_pem(&self) -> &str {
        &self.ca_pem
    }

    pub(super) fn client(&self) -> (&str, &str) {
        (&self.client_pem, &self.client_key_pem)
    }

    /// The server's settings, and the verifier that tells which client certificates to believe.
    pub(super) fn server_config(&self) -> io::Result<(Arc<ServerConfig>, Arc<dyn ClientCertVerifier>)> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut roots = RootCertStore::empty();
        roots.add(self.ca.clone()).map_err(io::Error::other)?;
        let strict = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&provider))
            .build()
            .map_err(io::Error::other)?;
        let lenient =
            Arc::new(AnyCertificate { strict: Arc::clone(&strict), provider: Arc::clone(&provider) });
        let key = PrivateKeyDer::try_from(self.server_key.serialize_der()).map_err(io::Error::other)?;
        let mut config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(io::Error::other)?
            .with_client_cert_verifier(lenient)
            .with_single_cert(vec![self.server.clone(), self.ca.clone()], key)
            .map_err(io::Error::other)?;
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok((Arc::new(config), strict))
    }
}

/// Lets every certificate through the handshake, as kube-apiserver does: one that it does not trust is a 401 later, not a
/// TLS alert. Possession of the key is checked all the same.
#[derive(Debug)]
struct AnyCertificate {
    strict: Arc<dyn ClientCertVerifier>,
    provider: Arc<CryptoProvider>,
}

impl ClientCertVerifier for AnyCertificate {
    fn client_auth_mandatory(&self) -> bool {
        false
    }

    fn root_hint_subjects(&self) -> &[rustls::DistinguishedName] {
        self.strict.root_hint_subjects()
    }

    fn verify_client_cert(
        &self,
        _end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _now: UnixTime,
    ) -> Result<ClientCertVerified, rustls::Error> {
        Ok(ClientCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        rustls::crypto::verify_tls12_signature(message, cert, dss, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        rustls::crypto::verify_tls13_signature(message, cert, dss, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}

/// A token that nobody can guess.
pub(super) fn random_token() -> io::Result<String> {
    let mut bytes = [0; 16];
    let random = rustls::crypto::ring::default_provider().secure_random;
    random.fill(&mut bytes).map_err(|_| io::Error::other("no randomness to be had"))?;
    Ok(bytes.iter().map(|b| format!("{b:02x}")).collect())
}

/// User (common name) and groups (organisations) of a certificate; `None` if it names no user.
pub(super) fn identity(certificate: &[u8]) -> Option<Identity> {
    // Certificate, TBSCertificate; version (tagged, optional), serial, algorithm, issuer, validity, subject.
    let (_, certificate, _) = der(certificate)?;
    let (_, mut rest, _) = der(certificate)?;
    if rest.first() == Some(&0xa0) {
        rest = der(rest)?.2;
    }
    for _ in 0..4 {
        rest = der(rest)?.2;
    }
    let (_, mut subject, _) = der(rest)?;
    let mut who = Identity::default();
    while !subject.is_empty() {
        let (_, set, after) = der(subject)?;
        subject = after;
        let (_, pair, _) = der(set)?;
        let (_, oid, value) = der(pair)?;
        let text = String::from_utf8_lossy(der(value)?.1).into_owned();
        match oid {
            [0x55, 4, 3] => who.user = text,
            [0x55, 4, 10] => who.groups.push(text),
            _ => {}
        }
    }
    if who.user.is_empty() {
        return None;
    }
    who.groups.push("system:authenticated".to_owned());
    Some(who)
}

/// Tag, contents, and what follows.
fn der(bytes: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let (&tag, rest) = bytes.split_first()?;
    let (&first, mut rest) = rest.split_first()?;
    let mut length = usize::from(first);
    if first >= 0x80 {
        let digits = usize::from(first & 0x7f);
        if digits == 0 || digits > 4 {
            return None;
        }
        length = rest.get(..digits)?.iter().fold(0, |n, b| n << 8 | usize::from(*b));
        rest = &rest[digits..];
    }
    Some((tag, rest.get(..length)?, rest.get(length..)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_certificate_names_user_and_groups() {
        let authority = Authority::new().unwrap();
        let pem = rustls::pki_types::pem::PemObject::from_pem_slice(authority.client().0.as_bytes());
        let cert: CertificateDer<'_> = pem.unwrap();
        let who = identity(&cert).unwrap();
        assert_eq!((who.user.as_str(), who.groups[0].as_str()), ("cert-admin", "system:masters"));
        for cut in 0..cert.len() {
            // Never a panic, whatever is missing.
            let _ = identity(&cert[..cut]);
        }
    }
}
