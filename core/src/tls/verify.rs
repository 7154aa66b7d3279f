//! How a server's certificate is judged.

use alloc::sync::Arc;
use alloc::vec::Vec;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{WebPkiServerVerifier, verify_server_name};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{CertificateError, DigitallySignedStruct, Error, OtherError, SignatureScheme};

use super::der::validity;

/// webpki's verdict; and a certificate that the user listed is trusted for itself.
#[derive(Debug)]
pub(super) struct Listed {
    inner: Arc<WebPkiServerVerifier>,
    listed: Vec<CertificateDer<'static>>,
}

impl Listed {
    pub(super) const fn new(inner: Arc<WebPkiServerVerifier>, listed: Vec<CertificateDer<'static>>) -> Self {
        Self { inner, listed }
    }
}

/// Whether webpki stopped because it found no way to an authority; anything else (a wrong name, a wrong date, a bad
/// signature) is final.
fn about_the_issuer(e: &Error) -> bool {
    match e {
        Error::InvalidCertificate(CertificateError::UnknownIssuer) => true,
        // An authority's own certificate in the place of a server's has no variant of its own.
        Error::InvalidCertificate(CertificateError::Other(OtherError(_))) => true,
        _ => false,
    }
}

impl ServerCertVerifier for Listed {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let verdict = self.inner.verify_server_cert(end_entity, intermediates, name, ocsp, now);
        let Err(e) = &verdict else { return verdict };
        if !about_the_issuer(e) || !self.listed.iter().any(|c| c.as_ref() == end_entity.as_ref()) {
            return verdict;
        }
        // A certificate that webpki cannot parse stays refused with webpki's own words.
        let Ok(parsed) = ParsedCertificate::try_from(end_entity) else { return verdict };
        verify_server_name(&parsed, name)?;
        let now = i64::try_from(now.as_secs()).unwrap_or(i64::MAX);
        match validity(end_entity) {
            None => Err(Error::InvalidCertificate(CertificateError::BadEncoding)),
            Some((from, _)) if now < from => Err(Error::InvalidCertificate(CertificateError::NotValidYet)),
            Some((_, to)) if now > to => Err(Error::InvalidCertificate(CertificateError::Expired)),
            Some(_) => Ok(ServerCertVerified::assertion()),
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.inner.verify_tls12_signature(message, cert, dss)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.inner.verify_tls13_signature(message, cert, dss)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.inner.supported_verify_schemes()
    }
}

/// `insecure-skip-tls-verify`: any certificate will do, but the server must still hold its key.
#[derive(Debug)]
pub(super) struct AcceptAny(Arc<CryptoProvider>);

impl AcceptAny {
    pub(super) const fn new(provider: Arc<CryptoProvider>) -> Self {
        Self(provider)
    }
}

impl ServerCertVerifier for AcceptAny {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(message, cert, dss, &self.0.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, cert, dss, &self.0.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
