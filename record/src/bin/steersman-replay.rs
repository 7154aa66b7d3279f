//! Makes the decisions of a recording again. `--help` tells the rest.

use std::io;
use std::process::ExitCode;

fn main() -> ExitCode {
    let args: Result<Vec<_>, _> = std::env::args_os().skip(1).map(std::ffi::OsString::into_string).collect();
    match args {
        Ok(args) => {
            steersman_record::program::run(args, |_| None, &mut io::stdout(), &mut io::stderr()).into()
        }
        Err(arg) => {
            eprintln!("steersman-replay: {} is not UTF-8", arg.display());
            ExitCode::from(2)
        }
    }
}
