use alloc::boxed::Box;
use alloc::string::ToString;
use alloc::vec::Vec;
use alloc::{format, vec};

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair, date_time_ymd};
use rustls::pki_types::PrivateKeyDer;
use rustls::server::WebPkiClientVerifier;
use rustls::{ClientConnection, ServerConfig, ServerConnection};

use super::*;
use crate::config::{ClientCert, Cluster, Secret};

type Ca = CertifiedIssuer<'static, KeyPair>;

fn ca(name: &str) -> Ca {
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.distinguished_name.push(rcgen::DnType::CommonName, name);
    CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap()
}

/// A certificate signed by `ca`, and its key.
fn leaf(ca: &Ca, change: impl FnOnce(&mut CertificateParams)) -> (rcgen::Certificate, KeyPair) {
    let names = vec!["kube.example".to_string(), "10.0.0.1".to_string(), "fd00::1".to_string()];
    let mut params = CertificateParams::new(names).unwrap();
    change(&mut params);
    let key = KeyPair::generate().unwrap();
    (params.signed_by(&key, ca).unwrap(), key)
}

fn provider() -> Arc<CryptoProvider> {
    Arc::new(rustls::crypto::ring::default_provider())
}

fn server(leaf: &(rcgen::Certificate, KeyPair), clients: Option<&Ca>) -> ServerConfig {
    let builder =
        ServerConfig::builder_with_provider(provider()).with_safe_default_protocol_versions().unwrap();
    let builder = match clients {
        None => builder.with_no_client_auth(),
        Some(ca) => {
            let mut roots = RootCertStore::empty();
            roots.add(ca.der().clone()).unwrap();
            let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider()).build();
            builder.with_client_cert_verifier(verifier.unwrap())
        }
    };
    let key = PrivateKeyDer::Pkcs8(leaf.1.serialize_der().into());
    let mut config = builder.with_single_cert(vec![leaf.0.der().clone()], key).unwrap();
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    config
}

fn config(url: &str, ca_pem: &str) -> Config {
    let mut config = Config::new(Cluster::parse(url).unwrap());
    config.tls.ca_pem = Some(ca_pem.into());
    config
}

/// A handshake in memory; the server's error where the client has none.
fn shake(config: &Config, server: ServerConfig) -> Result<ClientConnection, rustls::Error> {
    let mut client = ClientConnection::new(client_config(config).unwrap(), server_name(config).unwrap())?;
    let mut server = ServerConnection::new(Arc::new(server))?;
    for _ in 0..8 {
        let mut bytes = Vec::new();
        client.write_tls(&mut bytes).unwrap();
        server.read_tls(&mut &bytes[..]).unwrap();
        let served = server.process_new_packets();
        let mut bytes = Vec::new();
        server.write_tls(&mut bytes).unwrap();
        client.read_tls(&mut &bytes[..]).unwrap();
        client.process_new_packets()?;
        served?;
    }
    assert!(!client.is_handshaking() && !server.is_handshaking());
    Ok(client)
}

#[test]
fn an_authority_and_every_kind_of_name() {
    let ca = ca("right");
    let leaf = leaf(&ca, |_| {});
    for url in
        ["https://kube.example:6443", "https://kube.example.", "https://10.0.0.1:6443", "https://[fd00::1]"]
    {
        let client = shake(&config(url, &ca.pem()), server(&leaf, None)).unwrap();
        assert_eq!(client.alpn_protocol(), Some(&b"http/1.1"[..]), "{url}");
    }
    for url in ["https://other.example", "https://10.0.0.2"] {
        let e = shake(&config(url, &ca.pem()), server(&leaf, None)).unwrap_err();
        assert!(matches!(e, rustls::Error::InvalidCertificate(_)), "{e}");
        let mut named = config(url, &ca.pem());
        named.tls.server_name = Some("kube.example".into());
        shake(&named, server(&leaf, None)).unwrap();
    }
}

#[test]
fn a_stranger_is_refused_unless_anything_goes() {
    let leaf = leaf(&ca("stranger"), |_| {});
    let mut config = config("https://kube.example:6443", &ca("right").pem());
    let e = shake(&config, server(&leaf, None)).unwrap_err();
    let e = net_error(&config.cluster.address(), &e);
    assert_eq!(e.kind, NetErrorKind::Tls);
    assert!(e.message.contains("kube.example:6443") && e.message.contains("trusted authority"), "{e}");
    config.tls = crate::config::TlsSettings { insecure: true, ..Default::default() };
    shake(&config, server(&leaf, None)).unwrap();
}

#[test]
fn bundles_with_text_and_other_line_ends() {
    let (a, b) = (ca("a"), ca("b"));
    let leaf = leaf(&b, |_| {});
    let pem = format!("Certificate:\n  Data: # a dump\n{}# next\n{}", a.pem(), b.pem()).replace('\n', "\r\n");
    shake(&config("https://kube.example", pem.trim_end()), server(&leaf, None)).unwrap();
}

#[test]
fn a_listed_certificate_is_trusted_for_itself() {
    let ca = ca("unlisted");
    let good = leaf(&ca, |_| {});
    shake(&config("https://kube.example", &good.0.pem()), server(&good, None)).unwrap();
    // But not for another name, not for another certificate of the same authority, and not for ever.
    assert!(shake(&config("https://other.example", &good.0.pem()), server(&good, None)).is_err());
    assert!(shake(&config("https://kube.example", &leaf(&ca, |_| {}).0.pem()), server(&good, None)).is_err());
    for (from, to, want) in [(2001, 2002, "expired"), (2090, 2091, "not valid yet")] {
        let old = leaf(&ca, |p| {
            p.not_before = date_time_ymd(from, 1, 1);
            p.not_after = date_time_ymd(to, 1, 1);
        });
        let e = shake(&config("https://kube.example", &old.0.pem()), server(&old, None)).unwrap_err();
        assert!(e.to_string().contains(want), "{e}");
    }
    // An authority's own certificate as the server's.
    let own = leaf(&ca, |p| p.is_ca = IsCa::Ca(BasicConstraints::Unconstrained));
    shake(&config("https://kube.example", &own.0.pem()), server(&own, None)).unwrap();
    assert!(shake(&config("https://kube.example", &ca.pem()), server(&own, None)).is_err());
}

#[test]
fn client_certificates() {
    let (servers, clients) = (ca("servers"), ca("clients"));
    let identity = leaf(&servers, |_| {});
    let mut config = config("https://kube.example", &servers.pem());
    assert!(shake(&config, server(&identity, Some(&clients))).is_err());
    let me = leaf(&clients, |p| p.distinguished_name.push(rcgen::DnType::CommonName, "me"));
    config.credentials.client_cert =
        Some(ClientCert { cert_pem: me.0.pem().into(), key_pem: Secret::new(me.1.serialize_pem()) });
    shake(&config, server(&identity, Some(&clients))).unwrap();
}

#[test]
fn one_clear_line_for_each_fault() {
    let key = KeyPair::generate().unwrap().serialize_pem();
    let (cert, _) = leaf(&ca("a"), |_| {});
    type Change = Box<dyn Fn(&mut Config)>;
    let cases: Vec<(Change, &str)> = vec![
        (
            Box::new(|c| c.tls.ca_pem = Some(b"hunter2".to_vec())),
            "certificate authority (given by the program): no PEM",
        ),
        (
            Box::new(|c| {
                c.tls.ca_pem =
                    Some(b"-----BEGIN CERTIFICATE-----\naGk=\n-----END CERTIFICATE-----\n".to_vec());
            }),
            "none of its certificates can be used",
        ),
        (
            Box::new(|c| {
                c.tls.ca_pem = Some(b"-----BEGIN CERTIFICATE-----\n#\n-----END CERTIFICATE-----\n".to_vec())
            }),
            "broken PEM",
        ),
        (
            Box::new(|c| {
                c.credentials.client_cert =
                    Some(ClientCert { cert_pem: b"x".to_vec(), key_pem: Secret::new("hunter2") });
            }),
            "the client certificate (given by the program): no PEM certificate",
        ),
        (
            Box::new({
                let pem = cert.pem();
                move |c| {
                    let key_pem =
                        Secret::new("-----BEGIN PRIVATE KEY-----\nhunter2\n-----END PRIVATE KEY-----\n");
                    c.credentials.client_cert = Some(ClientCert { cert_pem: pem.clone().into(), key_pem });
                }
            }),
            "the client ",
        ),
        (
            Box::new({
                let pem = cert.pem();
                move |c| {
                    let key_pem = Secret::new(key.clone());
                    c.credentials.client_cert = Some(ClientCert { cert_pem: pem.clone().into(), key_pem });
                }
            }),
            "the client certificate and key",
        ),
    ];
    for (change, want) in cases {
        let mut config = config("https://kube.example", &cert.pem());
        change(&mut config);
        let e = client_config(&config).unwrap_err().to_string();
        assert!(e.contains(want), "{e}");
        assert!(!e.contains("hunter2") && !e.contains('\n'), "{e}");
    }
    let mut config = config("https://kube.example", "");
    config.tls.server_name = Some("not a name".into());
    assert!(server_name(&config).unwrap_err().to_string().contains("tls-server-name: \"not a name\""));
    config.cluster.scheme = Scheme::Http;
    assert!(server_name(&config).is_err());
    let v6 = Config::new(Cluster::parse("https://[fe80::1%25eth0]").unwrap());
    assert!(matches!(server_name(&v6).unwrap(), ServerName::IpAddress(_)));
}
