//! Kubeconfigs: what the loader makes of each context, next to what kubectl says.

use std::fs;
use std::path::Path;

use steersman_core::config::{Bearer, Loader, Options, whole_file};

use super::{Findings, brief};

/// Whether a file of the folder is a kubeconfig, and not a file that one names or what kubectl said.
pub(super) fn is_one(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    !name.ends_with(".txt") && !name.ends_with(".md") && !name.ends_with(".pem") && !name.ends_with(".crt")
}

pub(super) fn run(path: &Path) -> Findings {
    let mut found = Findings::default();
    let mut kubectl_says = path.as_os_str().to_owned();
    kubectl_says.push(".kubectl.txt");
    let kubectl = fs::read_to_string(kubectl_says).unwrap_or_default();
    found.say(format!("current: {}", load(path, None)));
    if let Some(said) = after(&kubectl, "client for current context: ") {
        found.say(format!("kubectl: {said}"));
    } else if let Some(line) = kubectl.lines().find(|l| l.contains("rc=1")) {
        found.say(format!("kubectl: {}", brief(line, 200)));
    }
    for (context, said) in kubectl.lines().filter_map(|line| {
        let (context, said) = line.strip_prefix("client for context ")?.split_once(": ")?;
        Some((context, said))
    }) {
        found.say(format!("{context}: {}", load(path, Some(context))));
        found.say(format!("kubectl: {said}"));
    }
    found
}

/// What follows `start` up to the next thing that kubectl was asked.
fn after(text: &str, start: &str) -> Option<String> {
    let at = text.find(start)? + start.len();
    let lines: Vec<_> =
        text[at..].lines().take_while(|l| !l.starts_with("client for") && !l.starts_with("   ")).collect();
    Some(brief(&lines.join(" "), 260))
}

fn load(path: &Path, context: Option<&str>) -> String {
    let options = Options {
        path: Some(path.to_string_lossy().into_owned()),
        context: context.map(str::to_owned),
        ..Options::default()
    };
    let result = Loader::new(options).run(|_| None, |path| whole_file(fs::File::open(path)));
    match result {
        Ok(config) => {
            let bearer = match &config.credentials.bearer {
                Bearer::None => "no token".to_owned(),
                Bearer::Token(_) => "a token".to_owned(),
                Bearer::File(path) => format!("token file {path}"),
                other => format!("{other:?}"),
            };
            let cert = if config.credentials.client_cert.is_some() { ", a certificate" } else { "" };
            let tls = &config.tls;
            let ca = match (tls.insecure, &tls.ca_pem) {
                (true, _) => ", insecure".to_owned(),
                (_, Some(pem)) => format!(", CA of {} bytes", pem.len()),
                _ => String::new(),
            };
            let name = tls.server_name.as_ref().map(|n| format!(", as {n}")).unwrap_or_default();
            let warnings: Vec<_> = config.warnings.iter().map(|w| format!("; warning: {w}")).collect();
            format!(
                "OK {} in {}, {bearer}{cert}{ca}{name}{}",
                config.cluster,
                config.namespace,
                warnings.concat()
            )
        }
        Err(e) => format!("error: {e}"),
    }
}
