//! The embedded API server as a program, for `kubectl` and for clients in other languages.

use std::io::{self, Read as _, Write as _};
use std::path::PathBuf;
use std::process::ExitCode;

use steersman_apiserver::front::{Options, Server, Who};
use steersman_apiserver::machine;
use steersman_apiserver::resource::Resource;
use steersman_core::api::{ResourceType, Scope};

const USAGE: &str = "\
usage: steersman-apiserver [options]
  --port N              port on 127.0.0.1 (default: a free one)
  --kubeconfig FILE     where to write the kubeconfig (default: ./kubeconfig); FILE.cert and FILE.user are written beside it
  --token T             the administrator's token (default: a random one)
  --register G/V/PLURAL/KIND/SCOPE[/status]
                        also serve this resource; SCOPE is namespaced or cluster, G is core for the core group
  --until-eof           end when standard input closes";

fn register(text: &str) -> Result<Resource, String> {
    let bad = || format!("--register {text}: expected GROUP/VERSION/PLURAL/KIND/SCOPE[/status]");
    let parts: Vec<&str> = text.split('/').collect();
    let [group, version, plural, kind, scope, rest @ ..] = parts.as_slice() else { return Err(bad()) };
    let scope = match scope.to_ascii_lowercase().as_str() {
        "namespaced" => Scope::Namespaced,
        "cluster" => Scope::Cluster,
        _ => return Err(format!("--register {text}: the scope is namespaced or cluster")),
    };
    if [version, plural, kind].iter().any(|p| p.is_empty()) {
        return Err(bad());
    }
    let group = if *group == "core" { "" } else { group };
    let own = |s: &str| std::borrow::Cow::Owned(s.to_owned());
    let of = ResourceType {
        group: own(group),
        version: own(version),
        plural: own(plural),
        kind: own(kind),
        scope,
    };
    match rest {
        [] => Ok(Resource::custom(of)),
        ["status"] => Ok(Resource::custom(of).with_status()),
        _ => Err(bad()),
    }
}

fn run() -> Result<(), String> {
    let mut options = Options { machine: machine::Options::default(), ..Options::default() };
    let (mut file, mut until_eof) = (PathBuf::from("kubeconfig"), false);
    let mut args = std::env::args().skip(1);
    while let Some(arg) = args.next() {
        let mut value = || args.next().ok_or_else(|| format!("{arg} needs a value\n{USAGE}"));
        match arg.as_str() {
            "--port" => {
                let text = value()?;
                options.port = text.parse().map_err(|_| format!("--port {text}: not a port"))?;
            }
            "--kubeconfig" => file = value()?.into(),
            "--token" => options.token = Some(value()?),
            "--register" => options.machine.resources.push(register(&value()?)?),
            "--until-eof" => until_eof = true,
            "--help" | "-h" => {
                println!("{USAGE}");
                return Ok(());
            }
            other => return Err(format!("unknown argument {other}\n{USAGE}")),
        }
    }
    let port = options.port;
    let server = Server::start(options).map_err(|e| format!("cannot listen on 127.0.0.1:{port}: {e}"))?;
    let write = |suffix: &str, text: &str| {
        let mut path = file.clone().into_os_string();
        path.push(suffix);
        std::fs::write(&path, text)
            .map_err(|e| format!("cannot write {}: {e}", PathBuf::from(&path).display()))
    };
    server.write_kubeconfig(&file).map_err(|e| format!("cannot write {}: {e}", file.display()))?;
    write(".cert", &server.kubeconfig_for(&server.url(), Who::Certificate))?;
    write(".user", &server.kubeconfig_for(&server.url(), Who::User))?;
    let mut out = io::stdout();
    let _ = writeln!(out, "READY kubeconfig={} url={}", file.display(), server.url());
    let _ = out.flush();
    if until_eof {
        let _ = io::stdin().read_to_end(&mut Vec::new());
        return Ok(());
    }
    loop {
        std::thread::park();
    }
}

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("steersman-apiserver: {message}");
            ExitCode::FAILURE
        }
    }
}
