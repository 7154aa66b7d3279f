//! Benchmarks of steersman side by side with its peers: the same bytes from the same server, in turns, in one run.
//!
//! `cargo run --release -p steersman-bench -- help` tells what it can do; the README beside it tells what was measured.
//!
//! Three processes take part. The harness (`contest`) starts a server (`server`) that knows one list of pods, and then one
//! contestant after the other as a child of its own, so that each one's memory and CPU are its own. A contestant is any program
//! that keeps to the lines in `contestant`: one of ours (`bin`), a peer in a workspace of its own (`peers`), or the limit, which is
//! in this one (`limit`).

mod args;
mod build;
mod chart;
mod compare;
mod comparison;
mod contest;
mod contestant;
mod contests;
mod limit;
mod measure;
mod peer;
mod plot;
mod pods;
mod program;
mod real;
mod scale;
mod server;
mod table;

use std::env;
use std::io;
use std::path::Path;
use std::process::ExitCode;

use args::{Args, HELP};
use contestant::Job;

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("steersman-bench: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<(), String> {
    let mut words = env::args().skip(1);
    match words.next().as_deref() {
        Some("list") => contest::run(&Args::parse(false, words)?),
        Some("watch") => contest::run(&Args::parse(true, words)?),
        Some("real") => real::run(&Args::real(words)?),
        Some("build") => build::run(&Args::build(words)?),
        Some("compare") => compare::run(&words.collect::<Vec<_>>()),
        Some("scale") => scale::run(&Args::parse(true, words)?),
        // The other two processes.
        Some("limit") => limit::run(&Job::from_args(words)?),
        Some("server") => {
            let args = Args::parse(false, words)?;
            let kubeconfig = args.kubeconfig.as_deref().ok_or("--kubeconfig is missing")?;
            server::serve(args.server()?, Path::new(kubeconfig)).map_err(|e: io::Error| e.to_string())
        }
        None | Some("help" | "--help") => {
            print!("{HELP}");
            Ok(())
        }
        Some(other) => Err(format!(
            "no command is called {other:?}; there are: list, watch, compare, scale, real, build, server, help"
        )),
    }
}
