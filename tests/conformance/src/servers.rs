//! The two API servers that every test must pass on, in one shape.

use std::fs;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use serde_json::json;

use crate::https::{Client, Who};
use crate::proxy::Proxy;
use crate::realapi::{self, RealApi};
use crate::truth::Stage;

/// Which API server a test runs on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Servers {
    /// etcd and kube-apiserver, as child processes.
    Real,
}

/// A running API server of its own, gone when it is dropped.
#[derive(Debug)]
pub struct TestServer(Inner);

#[derive(Debug)]
enum Inner {
    Real(Box<RealApi>),
}

impl Servers {
    /// What `STEERSMAN_SERVER` names: `real`, or the embedded one.
    #[must_use]
    pub fn from_env() -> Self {
        Self::Real
    }

    /// Starts one.
    ///
    /// # Panics
    /// When it does not start: a test cannot go on without it.
    #[must_use]
    pub fn start(self) -> TestServer {
        match self {
            Self::Real => match RealApi::start(realapi::Options::default()) {
                Ok(server) => TestServer(Inner::Real(Box::new(server))),
                Err(e) => panic!("the real API server does not start: {e}"),
            },
        }
    }

    /// Starts a real one.
    #[must_use]
    pub fn real() -> TestServer {
        Self::Real.start()
    }
}

impl TestServer {
    /// Which one it is.
    #[must_use]
    pub fn which(&self) -> Servers {
        match &self.0 {
            Inner::Real(_) => Servers::Real,
        }
    }

    /// Where it listens; the same after a restart.
    #[must_use]
    pub fn addr(&self) -> SocketAddr {
        match &self.0 {
            Inner::Real(s) => s.addr(),
        }
    }

    /// The certificate authority, PEM.
    #[must_use]
    pub fn ca_pem(&self) -> &str {
        match &self.0 {
            Inner::Real(s) => s.ca_pem(),
        }
    }

    /// The token of an administrator.
    #[must_use]
    pub fn token(&self) -> &str {
        match &self.0 {
            Inner::Real(_) => realapi::ADMIN_TOKEN,
        }
    }

    /// A kubeconfig of the administrator.
    #[must_use]
    pub fn kubeconfig(&self) -> PathBuf {
        self.dir().join("kubeconfig")
    }

    /// A kubeconfig that goes through a proxy. The server's certificate names the loopback address, whatever the port.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn kubeconfig_via(&self, proxy: &Proxy) -> io::Result<PathBuf> {
        let port = proxy.addr().port();
        let (ca, file) = (self.dir().join("proxy-ca.crt"), self.dir().join(format!("kubeconfig.via-{port}")));
        fs::write(&ca, self.ca_pem())?;
        let user = format!("{{token: \"{}\"}}", self.token());
        let server = format!("https://127.0.0.1:{port}");
        fs::write(&file, realapi::kubeconfig(&server, &ca.display().to_string(), &user))?;
        Ok(file)
    }

    fn dir(&self) -> PathBuf {
        match &self.0 {
            Inner::Real(s) => s.dir().to_owned(),
        }
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
        match &mut self.0 {
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
        match &mut self.0 {
            Inner::Real(s) => s.restart(),
        }
    }

    /// Makes the server forget every version before now: watches from there are answered with 410 from here on. Standing
    /// connections may end by it.
    ///
    /// # Errors
    /// When it fails.
    pub fn compact(&mut self) -> Result<(), String> {
        match &mut self.0 {
            Inner::Real(s) => s.compact(),
        }
    }
}

impl Stage for TestServer {
    fn admin(&self) -> Client {
        self.client()
    }

    fn who(&self, name: &str) -> Option<Who> {
        let read = |file: &str| fs::read_to_string(self.dir().join(file)).ok();
        match (name, &self.0) {
            ("nobody", _) => Some(Who::Nobody),
            ("wrong", _) => Some(Who::Token("not-a-token".to_owned())),
            ("user", Inner::Real(_)) => Some(Who::Token(realapi::USER_TOKEN.to_owned())),
            ("certificate", Inner::Real(_)) => Some(Who::Certificate(read("admin.crt")?, read("admin.key")?)),
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
