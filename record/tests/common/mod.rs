//! Recordings of each kind, and the program that reads them.

#![allow(dead_code, reason = "each test takes what it needs")]

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use steersman_core::api::{Api, ResourceType, Scope, kinds};
use steersman_core::auth::Authenticator;
use steersman_core::client::{Call, CallInput, Endpoint};
use steersman_core::config::{Cluster, Config};
use steersman_core::controller::{self, Controller, Outcome, SourceId, WatchSpec};
use steersman_core::machine::{Machine, Outputs};
use steersman_core::manager::{self, Manager};
use steersman_core::net::{ConnId, NetEvent};
use steersman_core::record::{Calls, Recorded};
use steersman_core::source::{Input, Options, Output, Source};
use steersman_core::time::Time;
use steersman_record::{Directory, program};

pub(crate) const CONFIGMAPS: ResourceType =
    ResourceType::new("", "v1", "configmaps", "ConfigMap", Scope::Namespaced);

/// A directory that is gone when it is dropped.
pub(crate) struct Place(pub(crate) PathBuf);

impl Place {
    pub(crate) fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("steersman-record-{}-{name}", std::process::id()));
        drop(fs::remove_dir_all(&path));
        Self(path)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        drop(fs::remove_dir_all(&self.0));
    }
}

/// Exit status, output, errors.
pub(crate) fn run(args: &[&str], path: &Path) -> (u8, String, String) {
    let args = args.iter().map(ToString::to_string).chain([path.display().to_string()]);
    let (mut out, mut errors) = (Vec::new(), Vec::new());
    let status = program::run(args, |_| None, &mut out, &mut errors);
    (status, String::from_utf8(out).unwrap(), String::from_utf8(errors).unwrap())
}

/// One line of a recording, made by the description of the format alone.
pub(crate) fn line(json: &str) -> String {
    let crc = !json.bytes().fold(!0_u32, |crc, byte| {
        (0..8).fold(
            crc ^ u32::from(byte),
            |crc, _| if crc & 1 == 1 { crc >> 1 ^ 0xEDB8_8320 } else { crc >> 1 },
        )
    });
    format!("{:08x} {crc:08x} {json}\n", json.len())
}

pub(crate) fn record_a_manager(directory: &Directory, steps: u64) -> PathBuf {
    let mut machine =
        Recorded::manager(Manager::with_counts(1, 1, manager::Config::default()), Some(directory));
    let mut out = Outputs::new();
    machine.handle(Time::ZERO, manager::Input::Start, &mut out);
    for n in 2..steps {
        machine.handle(Time::from_millis(n), manager::Input::Deadline, &mut out);
    }
    machine.handle(Time::from_secs(9), manager::Input::Stop, &mut out);
    directory.flush().unwrap();
    directory.path().join("manager")
}

fn endpoint() -> Arc<Endpoint> {
    Arc::new(Endpoint::new(&Config::new(Cluster::parse("https://kube").unwrap())))
}

/// A source whose servers begin with a plain list.
pub(crate) fn source(directory: &Directory, decode_job: Option<usize>) -> Recorded<Source> {
    let spec = WatchSpec::all(CONFIGMAPS);
    let mut options = Options { decode_job, ..Options::default() };
    options.watcher.streaming = false;
    let source = Source::new(&spec, options, endpoint(), Authenticator::none(), 5);
    Recorded::source(source, 5, &format!("source 0 {spec}"), Some(directory))
}

pub(crate) fn record_a_source(directory: &Directory) -> PathBuf {
    let mut source = source(directory, None);
    let mut out = Outputs::new();
    source.handle(Time::ZERO, Input::Start, &mut out);
    for (n, event) in [NetEvent::Connected { reused: false }, NetEvent::Eof].into_iter().enumerate() {
        source.handle(Time::from_secs(n as u64 + 1), Input::Net { conn: ConnId(1), event }, &mut out);
    }
    directory.flush().unwrap();
    directory.path().join("source-0-configmaps.v1.000000.rec")
}

fn answer(body: &str) -> String {
    let n = body.len();
    format!("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {n}\r\n\r\n{body}")
}

fn map(name: &str, version: u32) -> String {
    format!(
        r#"{{"apiVersion":"v1","kind":"ConfigMap","metadata":{{"name":"{name}","namespace":"prod","uid":"u-{name}","resourceVersion":"{version}"}}}}"#
    )
}

/// A recording of each kind of machine: a source that lists and watches, the controller that it feeds, a manager, calls.
pub(crate) fn one_of_each(directory: &Directory) -> Vec<PathBuf> {
    let mut source = source(directory, Some(0));
    let config = controller::Config::new("c", CONFIGMAPS);
    let mut controller = Recorded::controller(Controller::new(config, 3), 3, Some(directory));
    let calls = Calls::new(directory);
    let get = Api::<kinds::ConfigMap>::namespaced("prod").get_opt("b");
    let mut call = Calls::call(Some(&calls), Call::new(endpoint(), Authenticator::none(), get, 2), 2);
    let (mut said, mut told, mut answered) = (Outputs::new(), Outputs::new(), Outputs::new());
    let list = format!(
        r#"{{"kind":"ConfigMapList","apiVersion":"v1","metadata":{{"resourceVersion":"8"}},"items":[{},{}]}}"#,
        map("a", 5),
        map("b", 6)
    );
    let events =
        ["ADDED", "MODIFIED", "DELETED"].map(|e| format!(r#"{{"type":"{e}","object":{}}}"#, map("c", 9)));
    let watch = format!("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n{}\n", events.join("\n"));
    source.handle(Time::ZERO, Input::Start, &mut said);
    controller.handle(Time::ZERO, controller::Input::Start, &mut told);
    let mut conn = ConnId(1);
    for (n, bytes) in [answer(&list), watch].into_iter().enumerate() {
        let now = Time::from_secs(n as u64 + 1);
        for event in
            [NetEvent::Connected { reused: false }, NetEvent::Received(bytes.as_bytes()), NetEvent::Eof]
        {
            source.handle(now, Input::Net { conn, event }, &mut said);
            while !said.is_empty() {
                let outputs: Vec<_> = said.drain().collect();
                for output in outputs {
                    match output {
                        Output::Decode(job) => {
                            source.handle(now, Input::Decoded(job.decode_all()), &mut said);
                        }
                        Output::Delta(delta) => {
                            let input = controller::Input::Delta { source: SourceId(0), delta };
                            controller.handle(now, input, &mut told);
                        }
                        Output::Effect(steersman_core::client::Effect::Connect { conn: next, .. }) => {
                            conn = next
                        }
                        _ => {}
                    }
                }
            }
        }
        let runs: Vec<_> = told.drain().collect();
        for output in runs {
            if let controller::Output::Run(run) = output {
                let outcome = Outcome::Error("no".into());
                controller.handle(
                    now,
                    controller::Input::Done { id: run.id, outcome, started: now },
                    &mut told,
                );
            }
        }
    }
    controller.handle(Time::from_secs(9), controller::Input::Stop { grace: None }, &mut told);
    source.handle(Time::from_secs(9), Input::Stop, &mut said);
    call.handle(Time::ZERO, CallInput::Start, &mut answered);
    for event in [NetEvent::Connected { reused: true }, NetEvent::Received(answer(&map("b", 6)).as_bytes())] {
        call.handle(Time::ZERO, CallInput::Net { conn: ConnId(1), event }, &mut answered);
    }
    record_a_manager(directory, 5);
    ["source-0-configmaps.v1", "controller-c", "calls", "manager"]
        .map(|stem| directory.path().join(format!("{stem}.000000.rec")))
        .into()
}
