//! The server's address: what users write, and what it means.

use alloc::borrow::ToOwned;
use alloc::format;
use alloc::string::{String, ToString};
use core::fmt;
use core::net::{IpAddr, Ipv6Addr};

/// `http` or `https`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scheme {
    /// Plain; credentials are not sent over it.
    Http,
    /// TLS.
    Https,
}

impl Scheme {
    /// 80 or 443.
    #[must_use]
    pub const fn default_port(self) -> u16 {
        match self {
            Self::Http => 80,
            Self::Https => 443,
        }
    }

    /// `http` or `https`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Http => "http",
            Self::Https => "https",
        }
    }
}

/// Where an API server is. Its `Display` is the URL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cluster {
    /// TLS or not.
    pub scheme: Scheme,
    /// A DNS name in lower case, or an IP address without brackets; an IPv6 zone stays (`fe80::1%eth0`), since the
    /// resolver needs it.
    pub host: String,
    /// The port; the scheme's own if none was named.
    pub port: u16,
    /// What stands before `/api` and `/apis`: empty, or begins with `/` and does not end with it.
    pub base_path: String,
}

/// Why an address is not one. Holds no part of the address that may be a secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerError(pub(crate) String);

impl fmt::Display for ServerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl core::error::Error for ServerError {}

fn bad<T>(text: impl Into<String>) -> Result<T, ServerError> {
    Err(ServerError(text.into()))
}

impl Cluster {
    /// Reads a URL, or `host` and `host:port`, which mean `https`.
    ///
    /// A query and a fragment are dropped (as client-go does); a user name in the URL is refused.
    ///
    /// # Errors
    /// If it is neither, with the reason.
    ///
    /// ```
    /// use steersman_core::config::Cluster;
    /// let c = Cluster::parse("https://[2001:db8::1]:8443/").unwrap();
    /// assert_eq!((c.host.as_str(), c.port, c.base_path.as_str()), ("2001:db8::1", 8443, ""));
    /// assert_eq!(c.host_header(), "[2001:db8::1]:8443");
    /// assert!(Cluster::parse("ftp://x").is_err());
    /// ```
    pub fn parse(text: &str) -> Result<Self, ServerError> {
        Self::parse_with_default(text, Scheme::Https)
    }

    /// The same, with the scheme that an address without one has.
    ///
    /// # Errors
    /// As [`Cluster::parse`].
    pub fn parse_with_default(text: &str, default: Scheme) -> Result<Self, ServerError> {
        if text.is_empty() {
            return bad("it is empty");
        }
        if text.bytes().any(|b| b <= b' ' || b == 0x7f) {
            return bad("it holds a blank or a control character");
        }
        let (scheme, rest) = match text.split_once("://") {
            None => (default, text),
            Some((s, rest)) if s.eq_ignore_ascii_case("https") => (Scheme::Https, rest),
            Some((s, rest)) if s.eq_ignore_ascii_case("http") => (Scheme::Http, rest),
            Some((s, _)) => {
                return bad(format!("the scheme `{}` is neither http nor https", s.escape_default()));
            }
        };
        let rest = rest.split(['?', '#']).next().unwrap_or_default();
        let (authority, path) = match rest.find('/') {
            Some(n) => rest.split_at(n),
            None => (rest, ""),
        };
        if authority.contains('@') {
            return bad("a user name in the address is not supported; put credentials under `users`");
        }
        let base_path = path.trim_end_matches('/').to_owned();
        if !base_path.bytes().all(|b| b.is_ascii_graphic()) {
            return bad("its path holds a character that must be percent-encoded");
        }
        let (host, port) = if let Some(inner) = authority.strip_prefix('[') {
            let Some((host, after)) = inner.split_once(']') else {
                return bad("a `[` without its `]`");
            };
            (ipv6(host)?, after)
        } else {
            let (host, after) = match authority.find(':') {
                Some(n) => authority.split_at(n),
                None => (authority, ""),
            };
            if after.len() > 1 && after[1..].contains(':') {
                return bad("an IPv6 address needs brackets: https://[::1]:6443");
            }
            (dns_or_ipv4(host)?, after)
        };
        let port = match port.strip_prefix(':') {
            None if port.is_empty() => scheme.default_port(),
            None => return bad("text after the `]`"),
            Some("") => scheme.default_port(),
            Some(digits) => match digits.parse::<u16>() {
                Ok(n) if n > 0 && digits.bytes().all(|b| b.is_ascii_digit()) => n,
                _ => {
                    return bad(format!(
                        "the port `{}` is not a number from 1 to 65535",
                        digits.escape_default()
                    ));
                }
            },
        };
        Ok(Self { scheme, host, port, base_path })
    }

    /// The value of the `Host` header: brackets where needed, no zone, no default port.
    #[must_use]
    pub fn host_header(&self) -> String {
        let host = self.host.split('%').next().unwrap_or_default();
        let host = if host.contains(':') { format!("[{host}]") } else { host.to_owned() };
        if self.port == self.scheme.default_port() { host } else { format!("{host}:{}", self.port) }
    }

    /// Host and port for error messages and log lines: `10.0.0.1:6443`, always with the port.
    #[must_use]
    pub fn address(&self) -> String {
        if self.host.contains(':') {
            format!("[{}]:{}", self.host, self.port)
        } else {
            format!("{}:{}", self.host, self.port)
        }
    }
}

impl fmt::Display for Cluster {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://{}{}", self.scheme.as_str(), self.address(), self.base_path)
    }
}

/// `addr`, `addr%zone` or, as RFC 6874 writes it in URLs, `addr%25zone`.
fn ipv6(text: &str) -> Result<String, ServerError> {
    let (addr, zone) = match text.split_once('%') {
        None => (text, None),
        Some((addr, zone)) => (addr, Some(zone.strip_prefix("25").unwrap_or(zone))),
    };
    let Ok(addr) = addr.parse::<Ipv6Addr>() else {
        return bad(format!("`[{}]` is not an IPv6 address", text.escape_default()));
    };
    match zone {
        None => Ok(addr.to_string()),
        Some(z) if !z.is_empty() && z.bytes().all(|b| b.is_ascii_alphanumeric() || b"._-~".contains(&b)) => {
            Ok(format!("{addr}%{z}"))
        }
        Some(_) => bad("the zone of the IPv6 address makes no sense"),
    }
}

fn dns_or_ipv4(text: &str) -> Result<String, ServerError> {
    if text.is_empty() {
        return bad("it names no host");
    }
    if text.parse::<IpAddr>().is_ok() {
        return Ok(text.to_owned());
    }
    if !text.is_ascii() {
        return bad("the host name is not ASCII; write it in its xn-- form");
    }
    if text.len() > 254 || !text.bytes().all(|b| b.is_ascii_alphanumeric() || b"-._".contains(&b)) {
        return bad(format!("`{}` is not a host name", text.escape_default()));
    }
    Ok(text.to_ascii_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_users_write() {
        let table: &[(&str, Result<&str, &str>)] = &[
            ("https://k8s.example.com", Ok("https://k8s.example.com:443")),
            ("https://k8s.example.com/", Ok("https://k8s.example.com:443")),
            ("https://k8s.example.com//", Ok("https://k8s.example.com:443")),
            ("HTTPS://K8S.Example.COM:6443", Ok("https://k8s.example.com:6443")),
            ("k8s.example.com:6443", Ok("https://k8s.example.com:6443")),
            ("localhost", Ok("https://localhost:443")),
            ("http://127.0.0.1:8001", Ok("http://127.0.0.1:8001")),
            ("http://h", Ok("http://h:80")),
            ("https://h:", Ok("https://h:443")),
            ("https://h.example.com.:6443", Ok("https://h.example.com.:6443")),
            ("https://h/k8s/clusters/c-1/", Ok("https://h:443/k8s/clusters/c-1")),
            ("https://10.1.2.3:6443?a=b#c", Ok("https://10.1.2.3:6443")),
            ("https://[fe80::1%25eth0]", Ok("https://[fe80::1%eth0]:443")),
            ("https://[FE80::0:1]:1", Ok("https://[fe80::1]:1")),
            ("", Err("empty")),
            (" https://h:6443 ", Err("blank")),
            ("https://h\r\nX: y", Err("blank")),
            ("htto://h", Err("htto")),
            ("https://", Err("no host")),
            ("https://:6443", Err("no host")),
            ("https://h:99999", Err("99999")),
            ("https://h:0", Err("port")),
            ("https://h:+1", Err("port")),
            ("https://me:secret@h:6443", Err("user name")),
            ("https://ümlaut.example", Err("xn--")),
            ("https://[::1", Err("]")),
            ("https://[::1]x", Err("after")),
            ("https://[nonsense]", Err("IPv6")),
            ("https://::1:6443", Err("brackets")),
            ("https://a_b!c", Err("host name")),
            ("https://h/ü", Err("percent")),
        ];
        for (text, want) in table {
            match (Cluster::parse(text), want) {
                (Ok(got), Ok(want)) => assert_eq!(got.to_string(), *want, "{text}"),
                (Err(got), Err(want)) => {
                    assert!(got.0.contains(want), "{text}: {got}");
                    assert!(!got.0.contains("secret"), "{text}: {got}");
                }
                (got, want) => panic!("{text}: {got:?}, wanted {want:?}"),
            }
        }
    }

    #[test]
    fn host_header_has_no_zone_and_no_default_port() {
        for (text, want) in [
            ("https://h", "h"),
            ("https://h:443", "h"),
            ("http://h:443", "h:443"),
            ("https://[fe80::1%25eth0]:6443", "[fe80::1]:6443"),
        ] {
            assert_eq!(Cluster::parse(text).unwrap().host_header(), want);
        }
    }
}
