//! What the suite expects of its servers and of the proxy before them.

use std::sync::mpsc;
use std::time::Duration;

use serde_json::{Value, json};
use steersman_tests::https::Answer;
use steersman_tests::proxy::{Faults, Proxy};
use steersman_tests::servers::{Servers, TestServer};

const LIMIT: Duration = Duration::from_secs(20);

fn make(server: &TestServer, name: &str) -> Value {
    let path = "/api/v1/namespaces/default/configmaps";
    let (status, made) = server.ask("POST", path, Some(&json!({"metadata": {"name": name}})));
    assert_eq!(status, 201, "{made}");
    made
}

fn watch(server: &TestServer, version: &Value, seconds: u32) -> String {
    format!(
        "/api/v1/namespaces/default/configmaps?watch=true&resourceVersion={}&timeoutSeconds={seconds}&fieldSelector=metadata.name!%3Dkube-root-ca.crt",
        version["metadata"]["resourceVersion"]
            .as_str()
            .unwrap_or_else(|| panic!("{:?}: {version}", server.which()))
    )
}

fn types(answer: &Answer) -> Vec<String> {
    let lines = answer.body.split(|b| *b == b'\n').filter(|l| !l.is_empty());
    lines
        .map(|l| {
            serde_json::from_slice::<Value>(l)
                .map_or_else(|_| "cut".to_owned(), |v| v["type"].as_str().unwrap_or("?").to_owned())
        })
        .collect()
}

#[test]
fn a_restart_keeps_data_and_address_and_a_compaction_ends_old_versions() {
    let mut server = Servers::from_env().start();
    let (addr, a) = (server.addr(), make(&server, "a"));
    let b = make(&server, "b");
    server.restart().unwrap();
    assert_eq!(server.addr(), addr);
    assert_eq!(
        server.ask("GET", "/api/v1/namespaces/default/configmaps/b", None).1["metadata"]["uid"],
        b["metadata"]["uid"]
    );
    make(&server, "c");
    server.compact().unwrap();
    let gone = server.client().send("GET", &watch(&server, &a, 5), &[], None, LIMIT).unwrap();
    assert_eq!((gone.status, types(&gone)), (200, vec!["ERROR".to_owned()]));
    assert!(String::from_utf8_lossy(&gone.body).contains("\"code\":410"));
    make(&server, "d");
}

#[test]
fn the_proxy_carries_tls_and_cuts_a_watch_within_a_line() {
    let server = Servers::from_env().start();
    let proxy = Proxy::start(server.addr()).unwrap();
    let through = server.client().at(proxy.addr());
    let start = make(&server, "start");
    for n in 0..3 {
        make(&server, &format!("made-{n}"));
    }
    let whole = through.send("GET", &watch(&server, &start, 1), &[], None, LIMIT).unwrap();
    assert_eq!((types(&whole), whole.complete), (vec!["ADDED".to_owned(); 3], true));
    // The whole answer has passed once. Another one may be a little longer or shorter: signatures differ, and events may share
    // TLS records or not, at 22 bytes each. A cut well before the end, within an event or the handshake, leaves an answer that
    // is not complete.
    let bytes = proxy.stats().bytes_down;
    for cut in [bytes - 250, bytes - 500, bytes / 2] {
        proxy.next_connection(Faults::cut_down(cut));
        let answer = through.send("GET", &watch(&server, &start, 1), &[], None, LIMIT);
        assert!(answer.is_err() || !answer.unwrap().complete, "cut at {cut} of {bytes}");
    }
    assert_eq!(proxy.stats().ended_by_fault, 3);
    // Its kubeconfig names the proxy's port, the same authority and the administrator's token.
    let text = std::fs::read_to_string(server.kubeconfig_via(&proxy).unwrap()).unwrap();
    assert!(text.contains(&format!("https://127.0.0.1:{}\"", proxy.addr().port())), "{text}");
    assert!(text.contains(server.token()));
}

#[test]
fn a_killed_watch_ends_at_once() {
    let server = Servers::from_env().start();
    let proxy = Proxy::start(server.addr()).unwrap();
    let through = server.client().at(proxy.addr());
    let start = make(&server, "start");
    let target = watch(&server, &start, 600);
    let (seen, first) = mpsc::channel();
    let watcher = std::thread::spawn(move || {
        through.send_until("GET", &target, &[], None, Duration::from_secs(60), |so_far| {
            if so_far.body.ends_with(b"\n") {
                seen.send(()).unwrap();
            }
            false
        })
    });
    make(&server, "next");
    first.recv_timeout(LIMIT).unwrap();
    assert_eq!(proxy.reset_all(), 1);
    let began = std::time::Instant::now();
    let answer = watcher.join().unwrap();
    assert!(answer.is_err() || !answer.unwrap().complete);
    assert!(began.elapsed() < Duration::from_secs(10));
}
