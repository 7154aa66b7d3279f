//! What a user gets who gives wrong input: one line that names the file or the host, holds no secret, and comes soon.

use std::fs;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use steersman_core::api::kinds::ConfigMap;
use steersman_core::api::{Api, List, ListParams};
use steersman_tests::realapi::kubeconfig;
use steersman_tests::servers::Servers;
use steersman_tests::suite::{Executor, Smol, Threads};

const SECRET: &str = "a-token-that-nobody-may-see";
/// With all its retries a call that is bound to fail has to end within this.
const SOON: Duration = Duration::from_secs(15);

/// A directory of its own, gone when it is dropped.
struct Dir(PathBuf);

impl Dir {
    fn new<E: Executor>(name: &str) -> Self {
        let executor = std::any::type_name::<E>().rsplit("::").next().unwrap_or_default();
        let dir = std::env::temp_dir()
            .join(format!("steersman-bad-input-{}-{executor}-{name}", std::process::id()));
        drop(fs::remove_dir_all(&dir));
        fs::create_dir_all(&dir).unwrap();
        Self(dir)
    }

    fn file(&self, name: &str, text: &str) -> PathBuf {
        let path = self.0.join(name);
        fs::write(&path, text).unwrap();
        path
    }

    /// A kubeconfig of `https://addr` that trusts `ca_pem` and shows [`SECRET`].
    fn kubeconfig(&self, addr: SocketAddr, ca_pem: &str) -> PathBuf {
        let ca = self.file("ca.crt", ca_pem).display().to_string();
        self.file("kubeconfig", &kubeconfig(&format!("https://{addr}"), &ca, &format!("{{token: {SECRET}}}")))
    }
}

impl Drop for Dir {
    fn drop(&mut self) {
        drop(fs::remove_dir_all(&self.0));
    }
}

/// The line that a user of this kubeconfig gets, from the client or from its first request.
fn line<E: Executor>(path: &Path) -> String {
    let path = path.to_owned();
    let (got, line) = mpsc::channel();
    thread::spawn(move || {
        let list = Api::<ConfigMap>::namespaced("default").list(&ListParams::default());
        let answer: Result<List<ConfigMap>, String> =
            E::client(&path).and_then(|c| E::send(&c, list).map_err(|e| e.to_string()));
        got.send(answer.map(|l| l.items.len())).unwrap();
    });
    line.recv_timeout(SOON).expect("an answer soon").expect_err("it cannot work")
}

fn check(line: &str, names: &[&str]) {
    println!("{line}");
    assert_eq!(line.lines().count(), 1, "{line}");
    assert!(!line.contains(SECRET), "{line}");
    assert!(line.len() < 500, "{line}");
    for name in names {
        assert!(line.contains(name), "{name} is not in: {line}");
    }
}

fn missing_kubeconfig<E: Executor>() {
    let dir = Dir::new::<E>("missing");
    let path = dir.0.join("nowhere");
    check(&line::<E>(&path), &[&path.display().to_string()]);
}

fn a_kubeconfig_that_is_none<E: Executor>() {
    let dir = Dir::new::<E>("none");
    for (n, text) in
        ["", "[1, 2", "users: [{name: x, user: {token: a-token-that-nobody-may-see}", "\u{0}\u{1}"]
            .into_iter()
            .enumerate()
    {
        let path = dir.file(&format!("kubeconfig-{n}"), text);
        check(&line::<E>(&path), &[&path.display().to_string()]);
    }
}

fn a_missing_ca_file<E: Executor>() {
    let dir = Dir::new::<E>("no-ca");
    let ca = dir.0.join("no-such-ca.crt").display().to_string();
    let user = format!("{{token: {SECRET}}}");
    let path = dir.file("kubeconfig", &kubeconfig("https://127.0.0.1:1", &ca, &user));
    check(&line::<E>(&path), &["no-such-ca.crt"]);
}

/// What has no end, or is no file at all, wherever a file is named.
fn files_that_are_none<E: Executor>() {
    let dir = Dir::new::<E>("odd-files");
    let folder = dir.0.display().to_string();
    for odd in ["/dev/zero", folder.as_str()] {
        let why = if odd == folder { "directory" } else { "longer than 4194304 bytes" };
        check(&line::<E>(Path::new(odd)), &[odd, why]);
        let path = dir.file("kubeconfig", &kubeconfig("https://127.0.0.1:1", odd, "{}"));
        check(&line::<E>(&path), &[odd, why]);
        let user = format!("{{tokenFile: {odd}}}");
        let path = dir.file("kubeconfig", &kubeconfig("https://127.0.0.1:1", "\"\"", &user));
        check(&line::<E>(&path), &[odd, why]);
    }
}

/// A pipe can be a kubeconfig, but not a file that is read again and again: to open it would never end.
fn a_pipe_for_a_token<E: Executor>() {
    let dir = Dir::new::<E>("pipe");
    let token = dir.file("token", SECRET);
    let ca = dir.file("ca.crt", Servers::embedded().ca_pem()).display().to_string();
    let user = format!("{{tokenFile: {}}}", token.display());
    let text = kubeconfig("https://127.0.0.1:1", &ca, &user);
    let path = dir.0.join("kubeconfig");
    assert!(Command::new("mkfifo").arg(&path).status().unwrap().success());
    let writer = thread::spawn({
        let path = path.clone();
        move || fs::write(path, text).unwrap()
    });
    let client = E::client(&path).unwrap();
    writer.join().unwrap();
    fs::remove_file(&token).unwrap();
    assert!(Command::new("mkfifo").arg(&token).status().unwrap().success());
    let (got, answer) = mpsc::channel();
    thread::spawn(move || {
        let list = Api::<ConfigMap>::namespaced("default").list(&ListParams::default());
        got.send(E::send(&client, list).unwrap_err().to_string()).unwrap();
    });
    let line = answer.recv_timeout(SOON).expect("an answer soon");
    check(&line, &[&token.display().to_string(), "no regular file"]);
}

fn a_wrong_ca<E: Executor>() {
    let (server, other) = (Servers::from_env().start(), Servers::embedded());
    let dir = Dir::new::<E>("wrong-ca");
    let path = dir.kubeconfig(server.addr(), other.ca_pem());
    check(&line::<E>(&path), &[&server.addr().to_string(), "certificate"]);
}

fn a_refused_token<E: Executor>() {
    let server = Servers::from_env().start();
    let dir = Dir::new::<E>("token");
    let path = dir.kubeconfig(server.addr(), server.ca_pem());
    check(&line::<E>(&path), &[&server.addr().to_string(), "401"]);
}

/// Nobody listens.
fn a_closed_port<E: Executor>() {
    // A free port might be taken by another test meanwhile; this one is nobody's.
    let addr = SocketAddr::from((Ipv4Addr::LOCALHOST, 1));
    let dir = Dir::new::<E>("closed");
    let path = dir.kubeconfig(addr, Servers::embedded().ca_pem());
    check(&line::<E>(&path), &[&addr.to_string(), "refused"]);
}

/// Answers every connection with the same bytes once something has come.
fn plain_server(answer: &'static [u8]) -> SocketAddr {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let addr = listener.local_addr().unwrap();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { return };
            thread::spawn(move || {
                drop(stream.read(&mut [0; 4096]));
                drop(stream.write_all(answer));
            });
        }
    });
    addr
}

const PAGE: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 47\r\n\r\n\
    <html>\n<body>\nWelcome to nginx\n</body>\n</html>\n\n";
const GATEWAY: &[u8] = b"HTTP/1.1 502 Bad Gateway\r\nContent-Type: text/html\r\nContent-Length: 43\r\n\r\n\
    <html>\n<body>\nBad Gateway\n</body>\n</html>\n\n\n";

/// A server without TLS where the kubeconfig says `https`.
fn a_port_without_tls<E: Executor>() {
    let addr = plain_server(b"HTTP/1.0 400 Bad Request\r\n\r\nClient sent a TLS hello to an HTTP server.\n");
    let dir = Dir::new::<E>("no-tls");
    let path = dir.kubeconfig(addr, Servers::embedded().ca_pem());
    check(&line::<E>(&path), &[&addr.to_string()]);
}

/// A web server that is none of Kubernetes, with a page where a list was asked for.
fn a_web_page<E: Executor>() {
    let dir = Dir::new::<E>("page");
    for answer in [PAGE, GATEWAY] {
        let addr = plain_server(answer);
        let path = dir.file("kubeconfig", &kubeconfig(&format!("http://{addr}"), "\"\"", "{}"));
        check(&line::<E>(&path), &[&addr.to_string()]);
    }
}

/// The same through a server that does speak TLS. The embedded one alone can be made to say so.
fn a_web_page_over_tls<E: Executor>() {
    use steersman_apiserver::machine::{Fault, FaultKind};
    let server = Servers::embedded();
    let embedded = server.as_embedded().unwrap();
    embedded.inject(Fault {
        verb: None,
        resource: Some("configmaps".to_owned()),
        skip: 0,
        times: 20,
        then: FaultKind::Raw {
            code: 200,
            content_type: "text/html".to_owned(),
            body: b"<html>\n<body>\nHello\n</body>\n</html>\n".to_vec(),
        },
    });
    check(&line::<E>(&server.kubeconfig()), &[&server.addr().to_string()]);
}

macro_rules! both {
    ($($case:ident),+ $(,)?) => {
        mod threads { $( #[test] fn $case() { super::$case::<super::Threads>(); } )+ }
        mod smol { $( #[test] fn $case() { super::$case::<super::Smol>(); } )+ }
    };
}

both!(
    missing_kubeconfig,
    a_kubeconfig_that_is_none,
    a_missing_ca_file,
    files_that_are_none,
    a_pipe_for_a_token,
    a_wrong_ca,
    a_refused_token,
    a_closed_port,
    a_port_without_tls,
    a_web_page,
    a_web_page_over_tls,
);
