//! A real control plane on loopback: etcd, kube-apiserver and, if wanted, kube-controller-manager, as child processes.
//!
//! `tests/realapi/build` makes the programs from their Go modules. They start in about three seconds, take some 300 MB, and
//! end with this process however it ends: each hangs on a pipe that only this process holds.

use std::fs;
use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose,
};
use serde_json::json;

use crate::https::{Client, Who};

/// The token of a member of `system:masters`.
pub const ADMIN_TOKEN: &str = "admin-token";
/// The token of a user `dev` (group `developers`) without any right.
pub const USER_TOKEN: &str = "dev-token";

/// Runs `$@` until it ends or the pipe on standard input closes, which the kernel does when the parent is gone.
const TETHER: &str = r#"exec 3<&0
"$@" </dev/null 3<&- & child=$!
(cat; kill -9 $child) <&3 >/dev/null 2>&1 &
exec 3<&-
wait $child"#;

/// How to start one.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Also run the garbage collector and the namespace, deployment, replica set and job controllers.
    pub controllers: bool,
    /// Further flags of kube-apiserver.
    pub flags: Vec<String>,
}

/// A running control plane.
#[derive(Debug)]
pub struct RealApi {
    dir: PathBuf,
    bin: PathBuf,
    options: Options,
    port: u16,
    etcd_port: u16,
    peer_port: u16,
    ca_pem: String,
    etcd: Option<Child>,
    api: Option<Child>,
    manager: Option<Child>,
}

/// Builds the programs where they are missing or of another version. The first time takes minutes; later a moment.
///
/// # Errors
/// When there is no Go, or the build fails; its own words went to standard error.
pub fn build() -> Result<PathBuf, String> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../realapi/build");
    let output = Command::new(&script)
        .stderr(Stdio::inherit())
        .output()
        .map_err(|e| format!("{}: {e}", script.display()))?;
    if !output.status.success() {
        return Err(format!("{} ended with {}", script.display(), output.status));
    }
    let last = String::from_utf8_lossy(&output.stdout).lines().last().unwrap_or_default().to_owned();
    Ok(PathBuf::from(last))
}

impl RealApi {
    /// Starts one in a directory of its own and waits until it is ready.
    ///
    /// # Errors
    /// When the programs cannot be built or started, or are not ready within three minutes: on an idle machine they take three seconds.
    pub fn start(options: Options) -> Result<Self, String> {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let bin = build()?;
        let dir = std::env::temp_dir().join(format!(
            "steersman-realapi-{}-{}",
            std::process::id(),
            COUNT.fetch_add(1, Ordering::Relaxed)
        ));
        drop(fs::remove_dir_all(&dir));
        fs::create_dir_all(&dir).map_err(|e| format!("{}: {e}", dir.display()))?;
        let ca_pem = write_credentials(&dir).map_err(|e| format!("{}: {e}", dir.display()))?;
        let mut server = Self {
            dir,
            bin,
            options,
            port: 0,
            etcd_port: 0,
            peer_port: 0,
            ca_pem,
            etcd: None,
            api: None,
            manager: None,
        };
        let mut last = String::new();
        for _ in 0..3 {
            // A free port may be taken by another process before the server binds it: then once more with others.
            let ports = free_ports(3).map_err(|e| e.to_string())?;
            (server.port, server.etcd_port, server.peer_port) = (ports[0], ports[1], ports[2]);
            server.write_kubeconfigs().map_err(|e| e.to_string())?;
            server.start_etcd()?;
            match server.start_api() {
                Ok(()) => {
                    if server.options.controllers {
                        server.start_manager()?;
                    }
                    return Ok(server);
                }
                Err(e) => last = e,
            }
            server.stop();
        }
        Err(last)
    }

    /// The address of the API server.
    #[must_use]
    pub fn addr(&self) -> SocketAddr {
        (Ipv4Addr::LOCALHOST, self.port).into()
    }

    /// The certificate authority, PEM.
    #[must_use]
    pub fn ca_pem(&self) -> &str {
        &self.ca_pem
    }

    /// A kubeconfig with the administrator's token. Beside it lie `kubeconfig.cert` (a client certificate of the
    /// administrator) and `kubeconfig.user` (the token of a user without rights).
    #[must_use]
    pub fn kubeconfig(&self) -> PathBuf {
        self.dir.join("kubeconfig")
    }

    /// Where its files, logs and data lie; gone when it is dropped.
    #[must_use]
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// A client with the administrator's token.
    #[must_use]
    pub fn client(&self) -> Client {
        Client::tls(self.addr(), self.ca_pem.clone(), Who::Token(ADMIN_TOKEN.to_owned()))
    }

    /// Kills the API server as a crash would, starts it again on the same port with the same data, and waits until it is ready.
    ///
    /// # Errors
    /// When it does not come back.
    pub fn restart(&mut self) -> Result<(), String> {
        kill(&mut self.api);
        self.start_api()
    }

    /// Kills the API server; connections to it end and new ones are refused until [`RealApi::restart`].
    pub fn kill_api(&mut self) {
        kill(&mut self.api);
    }

    /// Kills etcd; the API server lives on without its data until [`RealApi::revive_etcd`].
    pub fn kill_etcd(&mut self) {
        kill(&mut self.etcd);
    }

    /// Starts etcd again, on the same port with the data that lie there, and waits until it answers.
    ///
    /// # Errors
    /// When it does not come back within twenty seconds.
    pub fn revive_etcd(&mut self) -> Result<(), String> {
        self.start_etcd()?;
        let end = Instant::now() + Duration::from_secs(20);
        loop {
            match self.etcd_revision() {
                Ok(_) => return Ok(()),
                Err(e) if Instant::now() > end => return Err(e),
                Err(_) => pause(Duration::from_millis(20)),
            }
        }
    }

    /// Copies the data of etcd, which is away for a moment, as for a backup. Gives what [`RealApi::restore`] takes.
    ///
    /// # Errors
    /// When they cannot be copied, or etcd does not come back.
    pub fn back_up(&mut self) -> Result<PathBuf, String> {
        let copy = self.dir.join("backup");
        kill(&mut self.etcd);
        drop(fs::remove_dir_all(&copy));
        copy_dir(&self.dir.join("etcd"), &copy).map_err(|e| format!("{}: {e}", copy.display()))?;
        self.revive_etcd()?;
        Ok(copy)
    }

    /// Ends both, puts older data in the place of the present ones, and starts both again, as an administrator would after
    /// a disaster. What was written since the backup never was.
    ///
    /// # Errors
    /// When the data cannot be copied, or a server does not come back.
    pub fn restore(&mut self, backup: &Path) -> Result<(), String> {
        kill(&mut self.api);
        kill(&mut self.etcd);
        let data = self.dir.join("etcd");
        drop(fs::remove_dir_all(&data));
        copy_dir(backup, &data).map_err(|e| format!("{}: {e}", data.display()))?;
        self.revive_etcd()?;
        self.start_api()
    }

    /// Makes etcd forget every version before now, and restarts the API server, whose watch cache would still know them.
    /// A watch from any version before now is then answered with 410.
    ///
    /// # Errors
    /// When etcd does not answer or the API server does not come back.
    pub fn compact(&mut self) -> Result<(), String> {
        self.compact_etcd()?;
        self.restart()
    }

    /// Makes etcd forget every version before now. The API server goes on; what its watch cache holds it still knows, so
    /// this alone makes a difference where there is none (`--watch-cache=false`).
    ///
    /// # Errors
    /// When etcd does not answer.
    pub fn compact_etcd(&self) -> Result<(), String> {
        let revision = self.etcd_revision()?;
        self.ask_etcd("/v3/kv/compaction", &json!({ "revision": revision, "physical": true })).map(drop)
    }

    /// Writes `n` times something of no meaning into etcd, so that its revision, which all versions come from, is so much higher.
    ///
    /// # Errors
    /// When etcd does not answer.
    pub fn advance_etcd(&self, n: usize) -> Result<(), String> {
        let put = json!({ "key": BASE64.encode("none"), "value": "" });
        (0..n).try_for_each(|_| self.ask_etcd("/v3/kv/put", &put).map(drop))
    }

    fn etcd_revision(&self) -> Result<String, String> {
        let now = self.ask_etcd("/v3/kv/range", &json!({ "key": BASE64.encode("none") }))?;
        Ok(now["header"]["revision"].as_str().unwrap_or_default().to_owned())
    }

    fn ask_etcd(&self, path: &str, body: &serde_json::Value) -> Result<serde_json::Value, String> {
        let etcd = Client::plain((Ipv4Addr::LOCALHOST, self.etcd_port).into());
        let answer = etcd
            .send("POST", path, &[], Some(body.to_string().as_bytes()), Duration::from_secs(20))
            .map_err(|e| format!("etcd {path}: {e}"))?;
        match answer.status {
            200 => Ok(answer.json()),
            code => Err(format!("etcd {path}: {code} {}", String::from_utf8_lossy(&answer.body))),
        }
    }

    /// A kubeconfig that goes to another address, as through a proxy, with this token.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn kubeconfig_at(&self, addr: SocketAddr, token: &str) -> io::Result<PathBuf> {
        let file = self.dir.join(format!("kubeconfig.at-{}", addr.port()));
        let ca = self.dir.join("ca.crt").display().to_string();
        fs::write(&file, kubeconfig(&format!("https://{addr}"), &ca, &format!("{{token: {token}}}")))?;
        Ok(file)
    }

    fn write_kubeconfigs(&self) -> io::Result<()> {
        let dir = self.dir.display();
        for (file, user) in [
            ("kubeconfig", format!("{{token: {ADMIN_TOKEN}}}")),
            ("kubeconfig.user", format!("{{token: {USER_TOKEN}}}")),
            (
                "kubeconfig.cert",
                format!("{{client-certificate: {dir}/admin.crt, client-key: {dir}/admin.key}}"),
            ),
        ] {
            let server = format!("https://127.0.0.1:{}", self.port);
            fs::write(self.dir.join(file), kubeconfig(&server, &format!("{dir}/ca.crt"), &user))?;
        }
        Ok(())
    }

    fn start_etcd(&mut self) -> Result<(), String> {
        let (client, peer) =
            (format!("http://127.0.0.1:{}", self.etcd_port), format!("http://127.0.0.1:{}", self.peer_port));
        self.etcd = Some(self.spawn(
            "etcd",
            &[
                "--data-dir=etcd".to_owned(),
                format!("--listen-client-urls={client}"),
                format!("--advertise-client-urls={client}"),
                format!("--listen-peer-urls={peer}"),
                format!("--initial-advertise-peer-urls={peer}"),
                format!("--initial-cluster=default={peer}"),
                "--unsafe-no-fsync".to_owned(),
            ],
        )?);
        Ok(())
    }

    fn start_api(&mut self) -> Result<(), String> {
        let mut flags = vec![
            format!("--etcd-servers=http://127.0.0.1:{}", self.etcd_port),
            "--bind-address=127.0.0.1".to_owned(),
            format!("--secure-port={}", self.port),
        ];
        flags.extend(
            [
                "--tls-cert-file=server.crt",
                "--tls-private-key-file=server.key",
                "--client-ca-file=ca.crt",
                "--token-auth-file=tokens.csv",
                "--service-account-key-file=sa.pub",
                "--service-account-signing-key-file=sa.key",
                "--service-account-issuer=https://kubernetes.default.svc",
                "--authorization-mode=RBAC",
                "--service-cluster-ip-range=10.0.0.0/24",
                "--endpoint-reconciler-type=none",
                "--disable-admission-plugins=ServiceAccount",
            ]
            .map(str::to_owned),
        );
        flags.extend(self.options.flags.iter().cloned());
        let mut child = self.spawn("kube-apiserver", &flags)?;
        let client = self.client();
        let end = Instant::now() + Duration::from_secs(180);
        loop {
            let answer = client.send("GET", "/readyz", &[], None, Duration::from_secs(5));
            if answer.is_ok_and(|a| a.status == 200) {
                self.api = Some(child);
                return Ok(());
            }
            let ended = child.try_wait().map_err(|e| e.to_string())?;
            if ended.is_some() || Instant::now() > end {
                let log = fs::read_to_string(self.dir.join("kube-apiserver.log")).unwrap_or_default();
                let lines: Vec<&str> = log.lines().rev().take(5).collect();
                kill(&mut Some(child));
                return Err(format!("kube-apiserver is not ready ({ended:?}); its last lines: {lines:#?}"));
            }
            pause(Duration::from_millis(50));
        }
    }

    fn start_manager(&mut self) -> Result<(), String> {
        self.manager = Some(self.spawn(
            "kube-controller-manager",
            &[
                "--kubeconfig=kubeconfig".to_owned(),
                "--leader-elect=false".to_owned(),
                "--secure-port=0".to_owned(),
                "--controllers=garbage-collector-controller,namespace-controller,deployment-controller,replicaset-controller,job-controller".to_owned(),
            ],
        )?);
        Ok(())
    }

    fn spawn(&self, program: &str, args: &[String]) -> Result<Child, String> {
        let log = self.dir.join(format!("{program}.log"));
        let open = || fs::File::options().create(true).append(true).open(&log);
        let (out, err) = (open(), open());
        Command::new("sh")
            .args(["-c", TETHER, program])
            .arg(self.bin.join(program))
            .args(args)
            .current_dir(&self.dir)
            .stdin(Stdio::piped())
            .stdout(out.map_err(|e| e.to_string())?)
            .stderr(err.map_err(|e| e.to_string())?)
            .spawn()
            .map_err(|e| format!("{program}: {e}"))
    }

    fn stop(&mut self) {
        for child in [&mut self.manager, &mut self.api, &mut self.etcd] {
            kill(child);
        }
        drop(fs::remove_dir_all(self.dir.join("etcd")));
    }
}

impl Drop for RealApi {
    fn drop(&mut self) {
        self.stop();
        drop(fs::remove_dir_all(&self.dir));
    }
}

/// Closing the pipe kills the program; then its shell ends.
fn kill(child: &mut Option<Child>) {
    if let Some(mut child) = child.take() {
        drop(child.stdin.take());
        drop(child.wait());
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "a starting process says nothing; it has to be asked again and again"
)]
pub(crate) fn pause(length: Duration) {
    thread::sleep(length);
}

/// A kubeconfig of one cluster (`server` URL, CA file) and one user (the block in flow style), namespace `default`.
#[must_use]
pub fn kubeconfig(server: &str, ca_file: &str, user: &str) -> String {
    format!(
        "apiVersion: v1\nkind: Config\ncurrent-context: test\n\
         contexts: [{{name: test, context: {{cluster: test, user: me, namespace: default}}}}]\n\
         clusters: [{{name: test, cluster: {{server: \"{server}\", certificate-authority: {ca_file}}}}}]\n\
         users: [{{name: me, user: {user}}}]\n"
    )
}

fn copy_dir(from: &Path, to: &Path) -> io::Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy_dir(&entry.path(), &target)?;
        } else {
            fs::copy(entry.path(), target)?;
        }
    }
    Ok(())
}

fn free_ports(n: usize) -> io::Result<Vec<u16>> {
    let listeners =
        (0..n).map(|_| TcpListener::bind((Ipv4Addr::LOCALHOST, 0))).collect::<io::Result<Vec<_>>>()?;
    listeners.iter().map(|l| l.local_addr().map(|a| a.port())).collect()
}

/// A certificate authority, a server and a client certificate, the keys of service account tokens, and the token file.
fn write_credentials(dir: &Path) -> Result<String, Box<dyn std::error::Error>> {
    let mut params = CertificateParams::new(Vec::new())?;
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
    params.distinguished_name.push(DnType::CommonName, "test-ca");
    let key = KeyPair::generate()?;
    let ca_pem = params.self_signed(&key)?.pem();
    let issuer = Issuer::new(params, key);
    fs::write(dir.join("ca.crt"), &ca_pem)?;
    let names = ["127.0.0.1", "localhost", "kubernetes.default.svc"];
    for (file, names, subject, usage) in [
        (
            "server",
            &names[..],
            [("kube-apiserver", DnType::CommonName)].as_slice(),
            ExtendedKeyUsagePurpose::ServerAuth,
        ),
        (
            "admin",
            &[],
            &[("cert-admin", DnType::CommonName), ("system:masters", DnType::OrganizationName)],
            ExtendedKeyUsagePurpose::ClientAuth,
        ),
    ] {
        let mut params = CertificateParams::new(names.iter().map(|n| (*n).to_owned()).collect::<Vec<_>>())?;
        for (value, kind) in subject {
            params.distinguished_name.push(kind.clone(), *value);
        }
        params.extended_key_usages = vec![usage];
        let key = KeyPair::generate()?;
        fs::write(dir.join(format!("{file}.crt")), params.signed_by(&key, &issuer)?.pem())?;
        fs::write(dir.join(format!("{file}.key")), key.serialize_pem())?;
    }
    let service_accounts = KeyPair::generate()?;
    fs::write(dir.join("sa.key"), service_accounts.serialize_pem())?;
    fs::write(dir.join("sa.pub"), service_accounts.public_key_pem())?;
    fs::write(
        dir.join("tokens.csv"),
        format!("{ADMIN_TOKEN},admin,1,\"system:masters\"\n{USER_TOKEN},dev,2,\"developers\"\n"),
    )?;
    Ok(ca_pem)
}
