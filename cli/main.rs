//! The program `sandlite`. The implementation is in `cli/lib.rs`.

use std::process::ExitCode;

fn main() -> ExitCode {
    sandlite_cli::prepare_process();
    ExitCode::from(sandlite_cli::run(std::env::args_os().collect()))
}
