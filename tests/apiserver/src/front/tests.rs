//! The front on real sockets, asked by a client that shares nothing with it but TLS.

use std::io::{Read as _, Write as _};

use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, pem::PemObject as _};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

use super::*;

const CM: &str = "/api/v1/namespaces/default/configmaps";

type Stream = StreamOwned<ClientConnection, TcpStream>;

fn connect(server: &Server, certificate: Option<(&str, &str)>) -> Stream {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(server.ca_pem().as_bytes()).unwrap()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots);
    let config = match certificate {
        Some((cert, key)) => builder
            .with_client_auth_cert(
                vec![CertificateDer::from_pem_slice(cert.as_bytes()).unwrap()],
                PrivateKeyDer::from_pem_slice(key.as_bytes()).unwrap(),
            )
            .unwrap(),
        None => builder.with_no_client_auth(),
    };
    let name = ServerName::try_from("127.0.0.1").unwrap();
    let socket = TcpStream::connect(server.addr()).unwrap();
    socket.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    StreamOwned::new(ClientConnection::new(Arc::new(config), name).unwrap(), socket)
}

fn ask(stream: &mut Stream, method: &str, path: &str, token: &str, body: &str) {
    let auth = if token.is_empty() { String::new() } else { format!("Authorization: Bearer {token}\r\n") };
    let head = format!(
        "{method} {path} HTTP/1.1\r\nHost: x\r\n{auth}Content-Type: application/json\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes()).unwrap();
    stream.write_all(body.as_bytes()).unwrap();
}

/// Reads until `end` has come.
fn until(stream: &mut Stream, end: &str) -> String {
    let (mut text, mut buffer) = (String::new(), [0; 4096]);
    while !text.contains(end) {
        let n = stream.read(&mut buffer).unwrap_or(0);
        assert!(n > 0, "closed after {text:?}");
        text.push_str(std::str::from_utf8(&buffer[..n]).unwrap());
    }
    text
}

fn status(server: &Server, method: &str, path: &str, token: &str) -> String {
    let mut s = connect(server, None);
    ask(&mut s, method, path, token, "");
    let text = until(&mut s, "\r\n\r\n");
    text[9..12].to_owned()
}

#[test]
fn requests_share_a_connection_and_a_watch_is_told() {
    let server = Server::start(Options::default()).unwrap();
    let mut watch = connect(&server, None);
    ask(&mut watch, "GET", &format!("{CM}?watch=1&resourceVersion=0"), server.token(), "");
    until(&mut watch, "chunked\r\n");
    let mut s = connect(&server, None);
    for name in ["a", "b"] {
        ask(&mut s, "POST", CM, server.token(), &format!("{{\"metadata\":{{\"name\":\"{name}\"}}}}"));
        assert!(until(&mut s, "\r\n\r\n").starts_with("HTTP/1.1 201 Created\r\n"));
        assert!(until(&mut watch, &format!("\"name\":\"{name}\"")).contains("\"type\":\"ADDED\""));
    }
    // A client that goes away takes its watch along.
    drop(watch);
    assert!(server.wait_until(Duration::from_secs(20), |m| m.counters().watches == 0), "the watch stays");
}

#[test]
fn two_requests_in_one_write_are_both_answered() {
    let server = Server::start(Options::default()).unwrap();
    let mut s = connect(&server, None);
    let one = "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n";
    s.write_all(format!("{one}{one}").as_bytes()).unwrap();
    let text = until(&mut s, "ok");
    if text.matches("200 OK").count() < 2 {
        until(&mut s, "ok");
    }
}

#[test]
fn tokens_certificates_and_neither() {
    let server = Server::start(Options::default()).unwrap();
    assert_eq!(status(&server, "GET", CM, server.token()), "200");
    assert_eq!(status(&server, "GET", CM, server.user_token()), "403");
    assert_eq!(status(&server, "GET", CM, "wrong"), "401");
    assert_eq!(status(&server, "GET", CM, ""), "403");
    let mut s = connect(&server, Some(server.client_certificate()));
    ask(&mut s, "GET", CM, "", "");
    assert!(until(&mut s, "\r\n\r\n").starts_with("HTTP/1.1 200"));
    // A certificate of another authority.
    let other = Server::start(Options::default()).unwrap();
    let mut s = connect(&server, Some(other.client_certificate()));
    ask(&mut s, "GET", CM, "", "");
    assert!(until(&mut s, "\r\n\r\n").starts_with("HTTP/1.1 401"));
}

#[test]
fn a_restart_keeps_port_and_data() {
    let server = Server::start(Options::default()).unwrap();
    let mut s = connect(&server, None);
    ask(&mut s, "POST", CM, server.token(), "{\"metadata\":{\"name\":\"a\"}}");
    until(&mut s, "\r\n\r\n");
    let addr = server.addr();
    server.restart().unwrap();
    assert_eq!(s.read(&mut [0; 64]).unwrap_or(0), 0, "the old connection is closed");
    assert_eq!(server.addr(), addr);
    assert_eq!(status(&server, "GET", &format!("{CM}/a"), server.token()), "200");
    server.stop();
    assert!(TcpStream::connect(addr).is_err());
    server.resume().unwrap();
    assert_eq!(status(&server, "GET", &format!("{CM}/a"), server.token()), "200");
}

#[test]
fn nonsense_ends_only_its_connection() {
    let server = Server::start(Options::default()).unwrap();
    let mut plain = TcpStream::connect(server.addr()).unwrap();
    plain.write_all(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
    let mut rest = Vec::new();
    let _ = plain.read_to_end(&mut rest);
    let mut s = connect(&server, None);
    s.write_all(b"NONSENSE\x00\r\n\r\n").unwrap();
    assert!(until(&mut s, "\r\n\r\n").starts_with("HTTP/1.1 400"));
    assert_eq!(status(&server, "GET", "/readyz", ""), "200");
}
