//! The two API servers that every test must pass on, in one shape.

use std::fs;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use serde_json::json;
use steersman_apiserver::front::{self, Server};
use steersman_apiserver::resource::Resource;
use steersman_core::api::{ResourceType, Scope};

use crate::https::{Client, Who};
use crate::proxy::Proxy;
use crate::realapi::{self, RealApi};
use crate::truth::Stage;

/// Which API server a test runs on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Servers {
    /// `steersman_apiserver`, in this process.
    Embedded,
    /// etcd and kube-apiserver, as child processes.
    Real,
}

/// A running API server of its own, gone when it is dropped.
///
/// To disturb what it says on the way, put a [`Proxy`] before it: [`TestServer::kubeconfig_via`].
#[derive(Debug)]
pub struct TestServer {
    inner: Inner,
    /// Holds the kubeconfigs.
    dir: PathBuf,
}

enum Inner {
    Embedded(Box<Server>),
    Real(Box<RealApi>),
}

impl std::fmt::Debug for Inner {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Embedded(s) => write!(f, "embedded on {}", s.addr()),
            Self::Real(s) => write!(f, "real on {}", s.addr()),
        }
    }
}

impl Servers {
    /// The one that the environment asks for: `STEERSMAN_SERVER=real`, else the embedded one.
    ///
    /// # Panics
    /// When it asks for anything else.
    #[must_use]
    pub fn from_env() -> Self {
        match std::env::var("STEERSMAN_SERVER").as_deref() {
            Err(_) | Ok("" | "embedded") => Self::Embedded,
            Ok("real") => Self::Real,
            Ok(other) => panic!("STEERSMAN_SERVER is {other:?}; it can be `real` or `embedded`"),
        }
    }

    /// Starts one.
    ///
    /// # Panics
    /// When it does not start: a test cannot go on without it.
    #[must_use]
    pub fn start(self) -> TestServer {
        match self.try_start() {
            Ok(server) => server,
            Err(e) => panic!("the API server ({self:?}) does not start: {e}"),
        }
    }

    fn try_start(self) -> Result<TestServer, String> {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let inner = match self {
            Self::Embedded => Inner::Embedded(Box::new(
                Server::start(front::Options::default()).map_err(|e| e.to_string())?,
            )),
            Self::Real => Inner::Real(Box::new(RealApi::start(realapi::Options::default())?)),
        };
        let n = COUNT.fetch_add(1, Ordering::Relaxed);
        let dir = std::env::temp_dir().join(format!("steersman-server-{}-{n}", std::process::id()));
        drop(fs::remove_dir_all(&dir));
        let server = TestServer { inner, dir };
        fs::create_dir_all(&server.dir).map_err(|e| format!("{}: {e}", server.dir.display()))?;
        fs::write(server.dir.join("ca.crt"), server.ca_pem()).map_err(|e| e.to_string())?;
        server.write_kubeconfig("kubeconfig", server.addr()).map_err(|e| e.to_string())?;
        Ok(server)
    }

    /// Starts an embedded one.
    #[must_use]
    pub fn embedded() -> TestServer {
        Self::Embedded.start()
    }

    /// Starts a real one.
    #[must_use]
    pub fn real() -> TestServer {
        Self::Real.start()
    }
}

impl Drop for TestServer {
    fn drop(&mut self) {
        drop(fs::remove_dir_all(&self.dir));
    }
}

impl TestServer {
    /// Which one it is.
    #[must_use]
    pub fn which(&self) -> Servers {
        match &self.inner {
            Inner::Embedded(_) => Servers::Embedded,
            Inner::Real(_) => Servers::Real,
        }
    }

    /// The embedded one's own interface: faults, the machine itself.
    #[must_use]
    pub fn as_embedded(&self) -> Option<&Server> {
        match &self.inner {
            Inner::Embedded(s) => Some(s),
            Inner::Real(_) => None,
        }
    }

    /// Where it listens; the same after a restart.
    #[must_use]
    pub fn addr(&self) -> SocketAddr {
        match &self.inner {
            Inner::Embedded(s) => s.addr(),
            Inner::Real(s) => s.addr(),
        }
    }

    /// The certificate authority, PEM.
    #[must_use]
    pub fn ca_pem(&self) -> &str {
        match &self.inner {
            Inner::Embedded(s) => s.ca_pem(),
            Inner::Real(s) => s.ca_pem(),
        }
    }

    /// The token of an administrator.
    #[must_use]
    pub fn token(&self) -> &str {
        match &self.inner {
            Inner::Embedded(s) => s.token(),
            Inner::Real(_) => realapi::ADMIN_TOKEN,
        }
    }

    /// A kubeconfig of the administrator.
    #[must_use]
    pub fn kubeconfig(&self) -> PathBuf {
        self.dir.join("kubeconfig")
    }

    /// A kubeconfig that goes through a proxy. The server's certificate names the loopback address, whatever the port.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn kubeconfig_via(&self, proxy: &Proxy) -> io::Result<PathBuf> {
        self.write_kubeconfig(&format!("kubeconfig.via-{}", proxy.addr().port()), proxy.addr())
    }

    fn write_kubeconfig(&self, name: &str, addr: SocketAddr) -> io::Result<PathBuf> {
        let file = self.dir.join(name);
        let ca = self.dir.join("ca.crt");
        let user = format!("{{token: \"{}\"}}", self.token());
        fs::write(&file, realapi::kubeconfig(&format!("https://{addr}"), &ca.display().to_string(), &user))?;
        Ok(file)
    }

    /// A test client of the administrator, independent of the code under test.
    #[must_use]
    pub fn client(&self) -> Client {
        Client::tls(self.addr(), self.ca_pem(), Who::Token(self.token().to_owned()))
    }

    /// Asks as the administrator and gives the status and the JSON of the answer: what tests prepare and check with.
    ///
    /// # Panics
    /// When the server cannot be asked.
    pub fn ask(
        &self,
        method: &str,
        path: &str,
        body: Option<&serde_json::Value>,
    ) -> (u16, serde_json::Value) {
        let kind = if method == "PATCH" { "application/merge-patch+json" } else { "application/json" };
        let body = body.map(ToString::to_string);
        let headers = [("Content-Type", kind), ("Accept", "application/json")];
        let answer = self.client().send(
            method,
            path,
            &headers,
            body.as_deref().map(str::as_bytes),
            Duration::from_secs(30),
        );
        match answer {
            Ok(answer) => (answer.status, answer.json()),
            Err(e) => panic!("{method} {path}: {e}"),
        }
    }

    /// Registers the resource `widgets` of `example.com/v1` (kind `Widget`, namespaced, with a status subresource), and
    /// waits until it is served.
    ///
    /// # Errors
    /// When the server does not take it.
    pub fn register_widgets(&mut self) -> Result<(), String> {
        match &self.inner {
            Inner::Embedded(s) => {
                let of = ResourceType::new("example.com", "v1", "widgets", "Widget", Scope::Namespaced);
                s.register(Resource::custom(of).with_status());
                Ok(())
            }
            Inner::Real(_) => {
                let (status, answer) = self.ask(
                    "POST",
                    "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
                    Some(&json!({
                        "metadata": {"name": "widgets.example.com"},
                        "spec": {
                            "group": "example.com",
                            "scope": "Namespaced",
                            "names": {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"},
                            "versions": [{
                                "name": "v1", "served": true, "storage": true, "subresources": {"status": {}},
                                "schema": {"openAPIV3Schema": {
                                    "type": "object", "x-kubernetes-preserve-unknown-fields": true
                                }}
                            }]
                        }
                    })),
                );
                if status != 201 {
                    return Err(format!("the definition of widgets is refused: {answer}"));
                }
                for _ in 0..200 {
                    if self.ask("GET", "/apis/example.com/v1/widgets", None).0 == 200 {
                        return Ok(());
                    }
                    realapi::pause(Duration::from_millis(50));
                }
                Err("widgets are not served within ten seconds".to_owned())
            }
        }
    }

    /// Ends the server as a crash would and starts it again, on the same port, with the same data.
    ///
    /// # Errors
    /// When it does not come back.
    pub fn restart(&mut self) -> Result<(), String> {
        match &mut self.inner {
            Inner::Embedded(s) => s.restart().map_err(|e| e.to_string()),
            Inner::Real(s) => s.restart(),
        }
    }

    /// Makes the server forget every version before now: watches from there are answered with 410 from here on. Standing
    /// connections may end by it.
    ///
    /// # Errors
    /// When it fails.
    pub fn compact(&mut self) -> Result<(), String> {
        match &mut self.inner {
            Inner::Embedded(s) => {
                s.compact();
                Ok(())
            }
            Inner::Real(s) => s.compact(),
        }
    }
}

impl Stage for TestServer {
    fn admin(&self) -> Client {
        self.client()
    }

    fn who(&self, name: &str) -> Option<Who> {
        match (name, &self.inner) {
            ("nobody", _) => Some(Who::Nobody),
            ("wrong", _) => Some(Who::Token("not-a-token".to_owned())),
            ("user", Inner::Embedded(s)) => Some(Who::Token(s.user_token().to_owned())),
            ("user", Inner::Real(_)) => Some(Who::Token(realapi::USER_TOKEN.to_owned())),
            ("certificate", Inner::Embedded(s)) => {
                let (cert, key) = s.client_certificate();
                Some(Who::Certificate(cert.to_owned(), key.to_owned()))
            }
            ("certificate", Inner::Real(s)) => {
                let read = |file: &str| fs::read_to_string(s.dir().join(file)).ok();
                Some(Who::Certificate(read("admin.crt")?, read("admin.key")?))
            }
            _ => None,
        }
    }

    fn act(&mut self, what: &str) -> Result<(), String> {
        match what {
            "restart" => self.restart(),
            "compact" => self.compact(),
            "register widgets" => self.register_widgets(),
            _ => Err(format!("cannot {what}")),
        }
    }
}
