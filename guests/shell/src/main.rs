//! One program with many names: the shell, and every utility of the sandbox.

use std::ffi::OsString;

fn main() {
    sys::init();
    let args: Vec<OsString> = std::env::args_os().collect();
    std::process::exit(sandlite_shell::run_by_name(args));
}
