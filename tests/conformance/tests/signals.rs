//! What SIGINT and SIGTERM do to a manager that runs by `run()`, and afterwards. Signals belong to a process, so each case is
//! one of its own: this program again, told by variables which case it is.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use serde_json::json;
use steersman_core::config::Options;
use steersman_core::controller::{Action, Builder, WatchSpec};
use steersman_core::object::Object;
use steersman_tests::servers::{Servers, TestServer};

const CASE: &str = "STEERSMAN_SIGNALS_CASE";
const KUBECONFIG: &str = "STEERSMAN_SIGNALS_KUBECONFIG";
/// For everything that has to happen on a busy machine.
const LIMIT: Duration = Duration::from_secs(60);
const SIGTERM: i32 = 15;

fn signal(pid: u32, name: &str) {
    let sent = Command::new("kill").arg(format!("-{name}")).arg(pid.to_string()).status().unwrap();
    assert!(sent.success());
}

/// The other side of a test: runs only where a case asks for it.
#[test]
fn child() {
    let Ok(case) = std::env::var(CASE) else { return };
    let options = Options { path: Some(std::env::var(KUBECONFIG).unwrap()), ..Options::default() };
    let (executor, case) = case.split_once(' ').unwrap();
    let reason = match executor {
        "threads" => threads(options),
        _ => smol(options, case),
    };
    say(&format!("exit {reason}"));
    if case == "afterwards" {
        say("over");
        // Only a signal ends this.
        loop {
            thread::park();
        }
    }
}

fn say(line: &str) {
    let mut out = std::io::stdout().lock();
    writeln!(out, "> {line}").unwrap();
    out.flush().unwrap();
}

/// Says that it runs, then waits for a line.
fn work() {
    say("runs");
    let mut line = String::new();
    std::io::stdin().lock().read_line(&mut line).unwrap();
}

fn controller() -> Builder<Object> {
    Builder::of(WatchSpec::all(steersman_core::api::kinds::NAMESPACES).fields("metadata.name=scene"))
}

fn threads(options: Options) -> String {
    use steersman_threads::{Client, Context, Manager};
    let controller = controller().run(|_: Arc<Object>, _: &Context| {
        work();
        Ok::<_, String>(Action::await_change())
    });
    Manager::new(Client::from_options(options).unwrap()).controller(controller).run().unwrap().to_string()
}

fn smol(options: Options, case: &str) -> String {
    use steersman_smol::{Client, Context, Manager, Spawner};
    let controller = controller().run(|_: Arc<Object>, _: Context| async {
        ::smol::unblock(work).await;
        Ok::<_, String>(Action::await_change())
    });
    let early = case == "early";
    let spawner = Spawner::new(move |task| {
        if early {
            signal(std::process::id(), "TERM");
        }
        ::smol::spawn(task).detach();
    });
    let manager = Manager::new(Client::from_options(options).unwrap(), spawner).controller(controller);
    ::smol::block_on(manager.run()).unwrap().to_string()
}

struct Case {
    _server: TestServer,
    child: Child,
    lines: mpsc::Receiver<String>,
}

fn lines(out: ChildStdout) -> mpsc::Receiver<String> {
    let (sender, lines) = mpsc::channel();
    thread::spawn(move || {
        for line in BufReader::new(out).lines().map_while(Result::ok) {
            // The harness of the child writes too, without a line's end.
            if let Some((_, line)) = line.split_once("> ")
                && sender.send(line.to_owned()).is_err()
            {
                return;
            }
        }
    });
    lines
}

impl Case {
    fn start(executor: &str, case: &str) -> Self {
        let server = Servers::embedded();
        let (status, answer) =
            server.ask("POST", "/api/v1/namespaces", Some(&json!({"metadata": {"name": "scene"}})));
        assert_eq!(status, 201, "{answer}");
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "child", "--nocapture", "--test-threads=1"])
            .env(CASE, format!("{executor} {case}"))
            .env(KUBECONFIG, server.kubeconfig())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = lines(child.stdout.take().unwrap());
        Self { _server: server, child, lines }
    }

    fn hears(&self, line: &str) {
        assert_eq!(self.lines.recv_timeout(LIMIT).as_deref(), Ok(line));
    }

    fn signal(&self, name: &str) {
        signal(self.child.id(), name);
    }

    fn let_go(&mut self) {
        self.child.stdin.take().unwrap().write_all(b"\n").unwrap();
    }

    fn end(mut self) -> ExitStatus {
        // When it has closed its side, it has ended.
        let mut last = Ok(String::new());
        while last.is_ok() {
            last = self.lines.recv_timeout(LIMIT);
        }
        assert_eq!(last, Err(RecvTimeoutError::Disconnected), "it does not end");
        self.child.wait().unwrap()
    }
}

impl Drop for Case {
    fn drop(&mut self) {
        let _ = self.child.kill();
    }
}

fn the_first_ends_it_in_order(executor: &str) {
    let mut case = Case::start(executor, "");
    case.hears("runs");
    case.signal("TERM");
    case.let_go();
    case.hears("exit stopped");
    assert!(case.end().success());
}

fn the_second_ends_it_at_once(executor: &str) {
    let case = Case::start(executor, "");
    case.hears("runs");
    // Of two that come before anybody looks the system makes one.
    case.signal("INT");
    case.signal("TERM");
    case.hears("exit killed");
    case.end();
}

fn afterwards_they_end_the_process_again(executor: &str) {
    let mut case = Case::start(executor, "afterwards");
    case.hears("runs");
    case.signal("TERM");
    case.let_go();
    case.hears("exit stopped");
    case.hears("over");
    case.signal("TERM");
    assert_eq!(case.end().signal(), Some(SIGTERM));
}

macro_rules! both {
    ($($case:ident),+ $(,)?) => {
        mod threads { $( #[test] fn $case() { super::$case("threads"); } )+ }
        mod smol { $( #[test] fn $case() { super::$case("smol"); } )+ }
    };
}

both!(the_first_ends_it_in_order, the_second_ends_it_at_once, afterwards_they_end_the_process_again);

/// A signal that comes while everything is being started ends it in order.
#[test]
fn smol_caught_before_anything_starts() {
    let mut case = Case::start("smol", "early");
    let first = case.lines.recv_timeout(LIMIT).unwrap();
    assert!(first.starts_with("exit "), "{first}");
    case.child.stdin.take();
    assert!(case.end().success());
}
