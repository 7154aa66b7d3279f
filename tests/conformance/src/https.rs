//! A small blocking HTTP client, for tests only.
//!
//! It shares no line with the codec of the core: what it reads from a server is a second opinion. One request, one
//! connection, every wait with an end.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

/// Who asks.
#[derive(Clone)]
pub enum Who {
    /// No credential at all.
    Nobody,
    /// A bearer token.
    Token(String),
    /// A client certificate and its key, both PEM.
    Certificate(String, String),
}

/// A server and the trust to reach it.
#[derive(Clone)]
pub struct Client {
    addr: SocketAddr,
    ca_pem: Option<String>,
    who: Who,
}

/// What came back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The status code.
    pub status: u16,
    /// Header names in lower case, and values, as sent.
    pub headers: Vec<(String, String)>,
    /// The body without its transfer coding.
    pub body: Vec<u8>,
    /// Whether the body came to its proper end; a watch that is left early has not.
    pub complete: bool,
}

impl Answer {
    /// The first header of that name (lower case).
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(n, _)| n == name).map(|(_, v)| v.as_str())
    }

    /// The body as JSON, or null.
    #[must_use]
    pub fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.body).unwrap_or_default()
    }
}

impl Client {
    /// Plain HTTP, without TLS.
    #[must_use]
    pub fn plain(addr: SocketAddr) -> Self {
        Self { addr, ca_pem: None, who: Who::Nobody }
    }

    /// HTTPS, trusting only the authorities in `ca_pem`.
    #[must_use]
    pub fn tls(addr: SocketAddr, ca_pem: impl Into<String>, who: Who) -> Self {
        Self { addr, ca_pem: Some(ca_pem.into()), who }
    }

    /// The same server asked by someone else.
    #[must_use]
    pub fn as_who(&self, who: Who) -> Self {
        Self { who, ..self.clone() }
    }

    /// The same server reached at another address, as through a proxy.
    #[must_use]
    pub fn at(&self, addr: SocketAddr) -> Self {
        Self { addr, ..self.clone() }
    }

    /// Sends one request and reads the answer to its end, at most `limit` long.
    ///
    /// # Errors
    /// What the socket, TLS or a malformed answer say; a body that is cut short by the time limit is no error but an
    /// answer that is not complete.
    pub fn send(
        &self,
        method: &str,
        target: &str,
        headers: &[(&str, &str)],
        body: Option<&[u8]>,
        limit: Duration,
    ) -> io::Result<Answer> {
        self.send_until(method, target, headers, body, limit, |_| false)
    }

    /// The same, but leaves as soon as `enough` says so of the answer so far. That is how to leave a watch.
    ///
    /// # Errors
    /// As [`Client::send`].
    pub fn send_until(
        &self,
        method: &str,
        target: &str,
        headers: &[(&str, &str)],
        body: Option<&[u8]>,
        limit: Duration,
        enough: impl Fn(&Answer) -> bool,
    ) -> io::Result<Answer> {
        let end = Instant::now() + limit;
        let tcp = TcpStream::connect_timeout(&self.addr, limit)?;
        tcp.set_nodelay(true)?;
        tcp.set_write_timeout(Some(limit))?;
        let mut request =
            format!("{method} {target} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n", self.addr);
        if let Who::Token(token) = &self.who {
            request.push_str(&format!("Authorization: Bearer {token}\r\n"));
        }
        for (name, value) in headers {
            request.push_str(&format!("{name}: {value}\r\n"));
        }
        if let Some(body) = body {
            request.push_str(&format!("Content-Length: {}\r\n", body.len()));
        }
        request.push_str("\r\n");
        let mut bytes = request.into_bytes();
        bytes.extend_from_slice(body.unwrap_or_default());
        let socket = tcp.try_clone()?;
        if self.ca_pem.is_some() {
            let name = ServerName::IpAddress(self.addr.ip().into());
            let connection = ClientConnection::new(self.tls_config().map_err(other)?, name).map_err(other)?;
            exchange(StreamOwned::new(connection, tcp), &socket, &bytes, method, end, &enough)
        } else {
            exchange(tcp, &socket, &bytes, method, end, &enough)
        }
    }

    fn tls_config(&self) -> Result<Arc<ClientConfig>, String> {
        let mut roots = RootCertStore::empty();
        for cert in CertificateDer::pem_slice_iter(self.ca_pem.as_deref().unwrap_or_default().as_bytes()) {
            roots.add(cert.map_err(|e| e.to_string())?).map_err(|e| e.to_string())?;
        }
        let builder = ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(|e| e.to_string())?
            .with_root_certificates(roots);
        let config = match &self.who {
            Who::Certificate(cert, key) => {
                let chain = CertificateDer::pem_slice_iter(cert.as_bytes())
                    .collect::<Result<Vec<_>, _>>()
                    .map_err(|e| e.to_string())?;
                let key = PrivateKeyDer::from_pem_slice(key.as_bytes()).map_err(|e| e.to_string())?;
                builder.with_client_auth_cert(chain, key).map_err(|e| e.to_string())?
            }
            _ => builder.with_no_client_auth(),
        };
        Ok(Arc::new(config))
    }
}

fn other(e: impl ToString) -> io::Error {
    io::Error::other(e.to_string())
}

fn exchange(
    mut stream: impl Read + Write,
    socket: &TcpStream,
    request: &[u8],
    method: &str,
    end: Instant,
    enough: &dyn Fn(&Answer) -> bool,
) -> io::Result<Answer> {
    stream.write_all(request)?;
    stream.flush()?;
    // With `Connection: close` the answer ends with the connection at the latest: read it all, then take it apart.
    let mut bytes = Vec::new();
    let mut buffer = vec![0; 64 * 1024];
    loop {
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() {
            break;
        }
        socket.set_read_timeout(Some(left))?;
        match stream.read(&mut buffer) {
            Ok(0) => break,
            Ok(n) => bytes.extend_from_slice(&buffer[..n]),
            Err(e) if e.kind() == ErrorKind::Interrupted => {}
            Err(e) if matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => break,
            // TLS without a farewell: the framing of the body says whether anything is missing.
            Err(e) if e.kind() == ErrorKind::UnexpectedEof => break,
            Err(e) if bytes.is_empty() => return Err(e),
            Err(_) => break,
        }
        if let Some(answer) = take_apart(&bytes, method)?
            && (answer.complete || enough(&answer))
        {
            return Ok(answer);
        }
    }
    take_apart(&bytes, method)?.ok_or_else(|| {
        io::Error::new(ErrorKind::UnexpectedEof, format!("no answer ({} bytes) to {method}", bytes.len()))
    })
}

/// The answer in `bytes`, complete or not; none while its head is not there.
fn take_apart(bytes: &[u8], method: &str) -> io::Result<Option<Answer>> {
    let mut room = [httparse::EMPTY_HEADER; 64];
    let mut head = httparse::Response::new(&mut room);
    let httparse::Status::Complete(length) = head.parse(bytes).map_err(other)? else { return Ok(None) };
    let status = head.code.unwrap_or_default();
    let headers: Vec<(String, String)> = head
        .headers
        .iter()
        .map(|h| (h.name.to_ascii_lowercase(), String::from_utf8_lossy(h.value).into_owned()))
        .collect();
    let rest = &bytes[length..];
    let find = |name: &str| headers.iter().find(|(n, _)| n == name).map(|(_, v)| v.as_str());
    let (body, complete) = if method == "HEAD" || status == 204 || status == 304 {
        (Vec::new(), true)
    } else if find("transfer-encoding").is_some_and(|v| v.eq_ignore_ascii_case("chunked")) {
        unchunk(rest)?
    } else if let Some(n) = find("content-length").and_then(|v| v.parse::<usize>().ok()) {
        (rest[..n.min(rest.len())].to_vec(), rest.len() >= n)
    } else {
        (rest.to_vec(), false)
    };
    Ok(Some(Answer { status, headers, body, complete }))
}

fn unchunk(mut rest: &[u8]) -> io::Result<(Vec<u8>, bool)> {
    let mut body = Vec::new();
    loop {
        let (at, size) = match httparse::parse_chunk_size(rest).map_err(|e| other(format!("{e:?}")))? {
            httparse::Status::Complete((at, size)) => (at, usize::try_from(size).map_err(other)?),
            httparse::Status::Partial => return Ok((body, false)),
        };
        rest = &rest[at..];
        if size == 0 {
            return Ok((body, rest.ends_with(b"\r\n")));
        }
        body.extend_from_slice(&rest[..size.min(rest.len())]);
        if rest.len() < size + 2 {
            return Ok((body, false));
        }
        rest = &rest[size + 2..];
    }
}
