use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use super::*;
use crate::machine::{Machine, Outputs};
use crate::time::Time;

/// A world of variables and files.
#[derive(Default, Clone)]
struct World {
    vars: BTreeMap<String, String>,
    files: BTreeMap<String, Vec<u8>>,
}

impl World {
    fn var(mut self, name: &str, value: &str) -> Self {
        self.vars.insert(name.into(), value.into());
        self
    }

    fn file(mut self, path: &str, text: &str) -> Self {
        self.files.insert(path.into(), text.into());
        self
    }

    fn load_with(&self, options: Options) -> Result<Config, String> {
        Loader::new(options)
            .run(
                |name| self.vars.get(name).cloned(),
                |path| self.files.get(path).cloned().ok_or(FileError::NotFound),
            )
            .map_err(|e| {
                let line = e.to_string();
                assert!(!line.contains('\n'), "more than one line: {line}");
                for secret in ["hunter", "s3cret", "PRIVATE"] {
                    assert!(!line.contains(secret), "a secret is shown: {line}");
                }
                line
            })
    }

    fn load(&self) -> Result<Config, String> {
        self.load_with(Options { list_separator: ':', ..Options::default() })
    }
}

/// One cluster, user and context with these members (in flow style).
fn one(cluster: &str, user: &str) -> String {
    format!(
        "apiVersion: v1\nkind: Config\ncurrent-context: x\n\
         contexts: [{{name: x, context: {{cluster: c, user: u}}}}]\n\
         clusters: [{{name: c, cluster: {{{cluster}}}}}]\n\
         users: [{{name: u, user: {{{user}}}}}]\n"
    )
}

fn load(yaml: &str) -> Result<Config, String> {
    World::default().var("KUBECONFIG", "/k/config").file("/k/config", yaml).load()
}

const SERVER: &str = "server: 'https://10.0.0.1:6443'";

#[test]
fn order_of_sources() {
    let conf = |server: &str| one(&format!("server: 'https://{server}'"), "token: hunter2");
    let home = World::default().var("HOME", "/home/a/").file("/home/a/.kube/config", &conf("home"));
    let pod = home
        .clone()
        .var("KUBERNETES_SERVICE_HOST", "10.96.0.1")
        .var("KUBERNETES_SERVICE_PORT", "443")
        .file("/var/run/secrets/kubernetes.io/serviceaccount/token", "hunter2\n")
        .file("/var/run/secrets/kubernetes.io/serviceaccount/ca.crt", "PEM")
        .file("/var/run/secrets/kubernetes.io/serviceaccount/namespace", "mine\n");
    // An explicit path beats everything, and must exist.
    let explicit = |path: &str| Options { path: Some(path.into()), ..Options::default() };
    let all = pod.clone().var("KUBECONFIG", "/k/a").file("/k/a", &conf("env")).file("/x", &conf("arg"));
    assert_eq!(all.load_with(explicit("/x")).unwrap().cluster.host, "arg");
    assert_eq!(all.load_with(explicit("/y")).unwrap_err(), "kubeconfig /y: no such file");
    // KUBECONFIG beats the home directory, even where no file of it exists: then only the pod is left.
    assert_eq!(all.load().unwrap().cluster.host, "env");
    assert_eq!(all.clone().var("KUBECONFIG", "/gone:/k/a").load().unwrap().cluster.host, "env");
    assert_eq!(all.clone().var("KUBECONFIG", "/gone").load().unwrap().cluster.host, "10.96.0.1");
    assert_eq!(all.clone().var("KUBECONFIG", "").load().unwrap().cluster.host, "home");
    let e = home.clone().var("KUBECONFIG", "/gone").load().unwrap_err();
    assert!(e.contains("KUBECONFIG=/gone names no file that exists") && e.contains("no pod"), "{e}");
    assert_eq!(pod.load().unwrap().cluster.host, "home");
    // In a pod.
    let mut bare = pod.clone();
    bare.files.remove("/home/a/.kube/config");
    let config = bare.load().unwrap();
    assert_eq!(config.cluster.to_string(), "https://10.96.0.1:443");
    assert_eq!(config.namespace, "mine");
    assert_eq!(config.tls.ca_pem.as_deref(), Some(&b"PEM"[..]));
    assert_eq!(
        config.credentials.bearer,
        Bearer::File("/var/run/secrets/kubernetes.io/serviceaccount/token".into())
    );
    let v6 = bare.clone().var("KUBERNETES_SERVICE_HOST", "fd00::1").load().unwrap();
    assert_eq!(v6.cluster.to_string(), "https://[fd00::1]:443");
    // An empty home file is like none; a context cannot be met in a pod.
    assert!(bare.clone().file("/home/a/.kube/config", "# nothing\n---\n").load().is_ok());
    let e = bare.load_with(Options { context: Some("prod".into()), ..Options::default() }).unwrap_err();
    assert!(e.contains("/home/a/.kube/config does not exist") && e.contains("no context \"prod\""), "{e}");
    // Without the token the pod has nothing to show; without the CA it still goes on, and says so.
    let mut broken = bare.clone();
    broken.files.remove("/var/run/secrets/kubernetes.io/serviceaccount/ca.crt");
    assert_eq!(broken.load().unwrap().warnings.len(), 1);
    broken.files.remove("/var/run/secrets/kubernetes.io/serviceaccount/token");
    assert!(broken.load().unwrap_err().contains("serviceaccount/token: no such file"));
    // Nothing at all.
    let e = World::default().load().unwrap_err();
    assert!(e.contains("neither KUBECONFIG nor HOME is set"), "{e}");
}

#[test]
fn first_file_wins_for_each_entry() {
    let world = World::default()
        .var("KUBECONFIG", "/a/1::/b/2:/a/1")
        .file("/a/1", "clusters: [{name: c, cluster: {server: 'https://first'}}]\ncurrent-context: ''\nusers: null")
        .file(
            "/b/2",
            "clusters: [{name: c, cluster: {server: 'https://second'}}, {name: d, cluster: {server: 'https://d', certificate-authority: ca.crt}}]\n\
             users: [{name: u, user: {tokenFile: t/token}}]\n\
             contexts: [{name: x, context: {cluster: c, user: u}}, {name: y, context: {cluster: d, user: u, namespace: n}}]\n\
             current-context: x",
        )
        .file("/b/ca.crt", "CA")
        .file("/b/t/token", " hunter2 \n");
    let x = world.load().unwrap();
    assert_eq!((x.cluster.host.as_str(), x.namespace.as_str()), ("first", "default"));
    assert_eq!(x.credentials.bearer, Bearer::File("/b/t/token".into()));
    assert_eq!(x.source, "kubeconfig /b/2, context x");
    let y = world
        .load_with(Options { context: Some("y".into()), list_separator: ':', ..Options::default() })
        .unwrap();
    assert_eq!((y.cluster.host.as_str(), y.namespace.as_str()), ("d", "n"));
    assert_eq!(y.tls.ca_pem.as_deref(), Some(&b"CA"[..]));
    let e = world
        .load_with(Options { context: Some("z".into()), list_separator: ':', ..Options::default() })
        .unwrap_err();
    assert_eq!(e, "kubeconfig /a/1, /b/2: there is no context \"z\" (there are: x, y)");
}

#[test]
fn usual_forms() {
    let config = load(&one(
        "server: 'https://10.0.54.63:6443', tls-server-name: kubernetes.default.svc, \
         certificate-authority-data: 'UEVN', extensions: [{name: e, extension: {x: 1}}]",
        "token: 'sha256~hunter', client-certificate-data: Q0VSVA==, client-key-data: \"S0VZ\\\n  \"",
    ))
    .unwrap();
    assert_eq!(config.cluster.host_header(), "10.0.54.63:6443");
    assert_eq!(config.tls.server_name.as_deref(), Some("kubernetes.default.svc"));
    assert_eq!(config.tls.ca_pem.as_deref(), Some(&b"PEM"[..]));
    assert_eq!(config.credentials.bearer, Bearer::Token(Secret::new("sha256~hunter")));
    let cert = config.credentials.client_cert.clone().unwrap();
    assert_eq!((cert.cert_pem.as_slice(), cert.key_pem.expose()), (&b"CERT"[..], "KEY"));
    let shown = format!("{config:?}");
    assert!(!shown.contains("hunter") && !shown.contains("KEY"), "{shown}");

    let config = load(&one("server: 'https://h', insecure-skip-tls-verify: true", "")).unwrap();
    assert!(config.tls.insecure && config.credentials.is_none());

    // As JSON, indented as a whole, with a mark at the start, with line ends of Windows.
    let json = r#"{"kind":"Config","current-context":"x","contexts":[{"name":"x","context":{"cluster":"c"}}],
        "clusters":[{"name":"c","cluster":{"server":"https://h"}}]}"#;
    assert_eq!(load(json).unwrap().cluster.host, "h");
    let indented: String = one(SERVER, "token: t").lines().map(|l| format!("   {l}\n")).collect();
    assert!(load(&indented).is_ok());
    assert!(load(&format!("---\n{}", one(SERVER, ""))).is_ok());
    let windows = one(SERVER, "token: hunter2").replace('\n', "\r\n");
    assert_eq!(load(&windows).unwrap().credentials.bearer, Bearer::Token(Secret::new("hunter2")));

    // Scalars that look like numbers keep their spelling.
    let yaml = "current-context: on\ncontexts: [{name: on, context: {cluster: 123, user: 007, namespace: 1e3}}]\n\
                clusters: [{name: 123, cluster: {server: 'https://h'}}]\nusers: [{name: 007, user: {token: 0123}}]";
    let config = load(yaml).unwrap();
    assert_eq!((config.namespace.as_str(), config.context.as_deref()), ("1e3", Some("on")));
    assert_eq!(config.credentials.bearer, Bearer::Token(Secret::new("0123")));

    // Anchors, aliases and merge keys.
    let yaml = "x: &d {insecure-skip-tls-verify: true}\nclusters: [{name: c, cluster: {<<: *d, server: 'https://h'}}]\n\
                contexts: [{name: x, context: {cluster: c, user: ''}}]\ncurrent-context: x";
    assert!(load(yaml).unwrap().tls.insecure);
}

#[test]
fn token_and_token_file() {
    let both = one(SERVER, "token: hunter2, tokenFile: ./t");
    let world = World::default().var("KUBECONFIG", "/k/config").file("/k/config", &both);
    let config = world.load().unwrap();
    assert_eq!(config.credentials.bearer, Bearer::Token(Secret::new("hunter2")));
    assert_eq!(config.warnings.len(), 1);
    let config = world.file("/k/./t", "hunter3\n").load().unwrap();
    assert_eq!(config.credentials.bearer, Bearer::File("/k/./t".into()));
    let only = World::default().var("KUBECONFIG", "config").file("config", &one(SERVER, "tokenFile: t"));
    assert!(only.load().unwrap_err().contains("users[u]: tokenFile: token file t: no such file"));
    assert!(only.clone().file("t", "\n").load().unwrap_err().contains("the token is empty"));
    assert!(only.file("t", "hunter2\r\nX-Evil: 1").load().unwrap_err().contains("blank"));
}

#[test]
fn plain_http_gets_no_credentials() {
    let config = load(&one("server: 'http://127.0.0.1:8001'", "token: hunter2")).unwrap();
    assert!(config.credentials.is_none());
    assert!(config.warnings[0].contains("not sent"), "{:?}", config.warnings);
    // Without a scheme, anything that speaks of TLS means https.
    assert_eq!(load(&one("server: 'h:1'", "")).unwrap().cluster.scheme, Scheme::Http);
    let tls = one("server: 'h:1', insecure-skip-tls-verify: true", "token: hunter2");
    assert_eq!(load(&tls).unwrap().cluster.scheme, Scheme::Https);
}

#[test]
fn one_clear_line_for_each_fault() {
    let c = |more: &str| one(&format!("{SERVER}, {more}"), "token: hunter2");
    let u = |user: &str| one(SERVER, user);
    let table: &[(String, &str)] = &[
        (one("", ""), "/k/config: clusters[c]: server: it is empty"),
        (one("server: 'htto://h'", ""), "clusters[c]: server: the scheme `htto`"),
        (one("server: 'https://a:s3cret@h'", ""), "clusters[c]: server: a user name"),
        (c("certificate-authority: ca.crt"), "clusters[c]: certificate-authority /k/ca.crt: no such file"),
        (c("certificate-authority-data: 'a b'"), "clusters[c]: certificate-authority-data is not base64"),
        (
            c("certificate-authority-data: YQ==, certificate-authority: x"),
            "clusters[c]: both certificate-authority and certificate-authority-data",
        ),
        (
            c("insecure-skip-tls-verify: true, certificate-authority-data: YQ=="),
            "clusters[c]: insecure-skip-tls-verify and a certificate authority exclude",
        ),
        (c("proxy-url: 'http://u:s3cret@p:3128'"), "clusters[c]: proxy-url is not supported"),
        (
            u("exec: {command: aws, apiVersion: client.authentication.k8s.io/v1}"),
            "users[u]: exec is not supported",
        ),
        (
            u("auth-provider: {name: gcp, config: {access-token: s3cret}}"),
            "users[u]: auth-provider is not supported",
        ),
        (u("username: a, password: s3cret"), "users[u]: username and password is not"),
        (u("as: root, token: hunter2"), "users[u]: as (impersonation) is not"),
        (u("client-certificate-data: YQ=="), "users[u]: a client-certificate without a client-key"),
        (u("client-key-data: YQ=="), "users[u]: a client-key without a client-certificate"),
        (u("client-key-data: 's3cret!'"), "users[u]: client-key-data is not base64"),
        (
            u("client-certificate-data: YQ==, client-key: k.pem"),
            "users[u]: client-key /k/k.pem: no such file",
        ),
        (u("token: 'hunter 2'"), "users[u]: token: the token holds a blank"),
        // Wrong shapes: the parser's message with nothing of the file in it.
        (u("token: [hunter2]"), "line 6"),
        (one(SERVER, "").replace("user: {}", "user: hunter2"), "line 6"),
        (u("token: hunter2, token: hunter3"), "line 6"),
        (u("hunter2: s3cret, hunter2: s3cret"), "line 6"),
        (u("token: *hunter2"), "line 6"),
        (u("token: !hunter2 [*s3cret]"), "line 6"),
        (u("token: \"hunter2\\q\""), "line 6"),
        (u("token: \"hunter2"), ""),
        (c("insecure-skip-tls-verify: s3cret"), "line 5"),
        (c("insecure-skip-tls-verify: yes"), "line 5"),
        ("clusters:\n- name: c\n\tcluster:\n\t\tserver: x\n".into(), "line 2"),
        ("hunter2".into(), "/k/config"),
        ("- a\n- s3cret".into(), "/k/config"),
        ("a: b: s3cret\n".into(), "line 1"),
        ("kind: Pod".into(), "kind is \"Pod\", not \"Config\""),
        ("apiVersion: v2".into(), "apiVersion is \"v2\""),
        (
            "current-context: delivery\nclusters: null\nusers: null\ncontexts: null".into(),
            "no context \"delivery\" (there are none)",
        ),
        ("contexts: [{name: a}, {name: a}]".into(), "contexts: two entries are named \"a\""),
        (
            "contexts: [{name: a}]".into(),
            "no current-context is set, and no context was asked for (there are: a)",
        ),
        (
            "contexts: [{name: a, context: {cluster: q}}]\ncurrent-context: a".into(),
            "contexts[a]: it names the cluster \"q\", which does not exist",
        ),
        (
            one(SERVER, "").replace("user: u", "user: ghost"),
            "contexts[x]: it names the user \"ghost\", which",
        ),
    ];
    for (yaml, want) in table {
        let got = load(yaml).expect_err(yaml);
        assert!(got.contains(want), "{yaml}\n  gave: {got}\n  wanted: {want}");
        assert!(got.len() < 400, "{got}");
    }
    let e = World::default().var("KUBECONFIG", "/k").file("/k", "");
    let mut e2 = e.clone();
    e2.files.insert("/k".into(), [0xff, 0xfe, 0].into());
    assert_eq!(e2.load().unwrap_err(), "kubeconfig /k: it is not UTF-8 text");
    assert!(e.load().unwrap_err().contains("names only empty files"));
}

#[test]
fn hostile_yaml_ends() {
    // A hundred million laughs, and depth.
    let mut bomb = String::from("a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n");
    for n in 1..9 {
        let refs = format!("*a{},", n - 1).repeat(10);
        bomb.push_str(&format!("a{n}: &a{n} [{refs}]\n"));
    }
    bomb.push_str("users: *a8\n");
    assert!(load(&bomb).is_err());
    assert!(load(&"[".repeat(100_000)).is_err());
    assert!(load(&format!("x: {}", "{a: ".repeat(100_000))).is_err());
    assert!(load(&"- ".repeat(100_000)).is_err());
}

#[test]
fn any_order_of_inputs_is_defined() {
    let mut loader = Loader::new(Options { list_separator: ':', ..Options::default() });
    let mut out = Outputs::new();
    let t = Time::ZERO;
    loader.handle(t, Input::Var { name: "KUBECONFIG", value: Some("/evil") }, &mut out);
    loader.handle(t, Input::Deadline, &mut out);
    assert!(out.is_empty());
    loader.handle(t, Input::Start, &mut out);
    loader.handle(t, Input::Start, &mut out);
    assert_eq!(out.drain().collect::<Vec<_>>(), [Output::NeedVar("KUBECONFIG".into())]);
    loader.handle(t, Input::Var { name: "HOME", value: None }, &mut out);
    loader.handle(t, Input::File { path: "KUBECONFIG", result: Ok(b"") }, &mut out);
    assert!(out.is_empty());
    loader.handle(t, Input::Var { name: "KUBECONFIG", value: Some("/k") }, &mut out);
    assert_eq!(out.drain().collect::<Vec<_>>(), [Output::NeedFile("/k".into())]);
    let no = FileError::Other("permission denied".into());
    loader.handle(t, Input::File { path: "/k", result: Err(&no) }, &mut out);
    match out.drain().next() {
        Some(Output::Done(Err(e))) => assert_eq!(e.to_string(), "kubeconfig /k: permission denied"),
        other => panic!("{other:?}"),
    }
    loader.handle(t, Input::File { path: "/k", result: Ok(b"") }, &mut out);
    assert!(out.is_empty());
    assert_eq!(loader.ignored, 4);
    assert_eq!(loader.next_deadline(), None);
}

#[test]
fn any_text_gives_a_verdict() {
    fn verdict(pieces: Vec<u8>) -> bool {
        const WORDS: &[&str] = &[
            "clusters",
            ": ",
            "\n",
            "- ",
            "{",
            "}",
            "[",
            "]",
            "name: c",
            "cluster",
            "&a ",
            "*a",
            "\t",
            "\"",
            "'",
            "|",
            "  ",
            "users",
            "token: hunter2",
            "#",
            "---\n",
            "? ",
            "!!binary ",
            "<<: ",
            "\u{feff}",
            "server: https://h",
        ];
        let text: String = pieces.iter().map(|n| WORDS[*n as usize % WORDS.len()]).collect();
        let _ = load(&text);
        true
    }
    crate::cases::cases(500).quickcheck(verdict as fn(Vec<u8>) -> bool);
}
