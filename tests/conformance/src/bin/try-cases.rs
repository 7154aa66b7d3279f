//! Tries the core on a folder of odd inputs and prints what becomes of each, next to what should.
//!
//! ```text
//! try-cases DIR
//! ```
//!
//! `DIR` may hold `http/` (whole answers as bytes), `watch/` (frames), `json/` (documents; error bodies in `status/`),
//! `kubeconfig/` (with what kubectl said in `*.kubectl.txt`), and `INDEX.md` with rows `| file | exercises | right |`.
//! Everything is tried whole, byte by byte and cut at every offset. The exit status is 1 if a file panics or gives
//! different results for different cuts.

use std::path::Path;
use std::process::ExitCode;
use std::{env, panic};

use steersman_tests::cases;

fn main() -> ExitCode {
    let mut args = env::args().skip(1);
    let (Some(dir), None) = (args.next(), args.next()) else {
        eprintln!("usage: try-cases DIR");
        return ExitCode::from(2);
    };
    // A panic is a finding here; where it was is in its own line.
    panic::set_hook(Box::new(|info| eprintln!("{info}")));
    match cases::try_all(Path::new(&dir)) {
        Ok(verdicts) => {
            print!("{}", cases::report(&verdicts));
            if verdicts.iter().all(|v| v.faults.is_empty()) { ExitCode::SUCCESS } else { ExitCode::FAILURE }
        }
        Err(e) => {
            eprintln!("try-cases: {e}");
            ExitCode::from(2)
        }
    }
}
