//! Runs a command with a real Kubernetes API server beside it, or just the server.
//!
//! ```text
//! real-apiserver [--controllers] [--flag FLAG]... [-- COMMAND ARGUMENT...]
//! ```
//!
//! The command gets `KUBECONFIG` and `STEERSMAN_SERVER=real`; its exit status is this program's. Without a command the
//! server runs until standard input closes.

use std::env;
use std::io;
use std::process::{Command, ExitCode};

use steersman_tests::realapi::{Options, RealApi};

fn main() -> ExitCode {
    match run() {
        Ok(code) => code,
        Err(e) => {
            eprintln!("real-apiserver: {e}");
            ExitCode::from(2)
        }
    }
}

fn run() -> Result<ExitCode, String> {
    let mut options = Options::default();
    let mut command: Vec<String> = Vec::new();
    let mut args = env::args().skip(1);
    while let Some(arg) = args.next() {
        match arg.as_str() {
            "--controllers" => options.controllers = true,
            "--flag" => options.flags.push(args.next().ok_or("--flag needs a flag of kube-apiserver")?),
            flag if flag.starts_with("--flag=") => options.flags.push(flag["--flag=".len()..].to_owned()),
            "--help" | "-h" => {
                println!("usage: real-apiserver [--controllers] [--flag FLAG]... [-- COMMAND ARGUMENT...]");
                return Ok(ExitCode::SUCCESS);
            }
            "--" => command.extend(args.by_ref()),
            other if other.starts_with('-') => return Err(format!("unknown argument {other}")),
            other => {
                command.push(other.to_owned());
                command.extend(args.by_ref());
            }
        }
    }
    let server = RealApi::start(options)?;
    let Some((program, rest)) = command.split_first() else {
        println!("READY kubeconfig={}", server.kubeconfig().display());
        io::copy(&mut io::stdin(), &mut io::sink()).map_err(|e| e.to_string())?;
        return Ok(ExitCode::SUCCESS);
    };
    let status = Command::new(program)
        .args(rest)
        .env("KUBECONFIG", server.kubeconfig())
        .env("STEERSMAN_SERVER", "real")
        .status()
        .map_err(|e| format!("{program}: {e}"))?;
    // A command that a signal ended has no code; that is a failure too.
    Ok(status.code().and_then(|c| u8::try_from(c).ok()).map_or(ExitCode::FAILURE, ExitCode::from))
}
