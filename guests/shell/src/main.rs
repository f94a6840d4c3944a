//! One program with many names: the shell, and every utility of the sandbox.

use std::ffi::OsString;

/// `abi::PREPARE`: what is done here is done when the guest is built, and found done by every process.
#[cfg(target_arch = "wasm32")]
#[expect(unsafe_code, reason = "the build calls it by its name")]
#[unsafe(no_mangle)]
extern "C" fn sandlite_prepare() {
    sandlite_shell::prepare();
}

fn main() {
    sys::init();
    let args: Vec<OsString> = std::env::args_os().collect();
    std::process::exit(sandlite_shell::run_by_name(args));
}
