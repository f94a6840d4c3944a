//! One program with many names: the shell, and every utility of the sandbox.

use std::ffi::OsString;

#[cfg(target_arch = "wasm32")]
#[global_allocator]
static ALLOCATOR: sys::memory::Allocator = sys::memory::Allocator;

/// Not part of any guest: the tests refuse memory on purpose.
#[cfg(not(target_arch = "wasm32"))]
#[global_allocator]
static ALLOCATOR: sys::memory::refusing::Allocator = sys::memory::refusing::Allocator;

/// `abi::PREPARE`: what is done here is done when the guest is built, and found done by every process.
#[cfg(target_arch = "wasm32")]
#[expect(unsafe_code, reason = "the build calls it by its name")]
#[unsafe(no_mangle)]
extern "C" fn sandlite_prepare() {
    sandlite_shell::prepare();
}

fn main() {
    #[cfg(not(target_arch = "wasm32"))]
    sys::memory::report_overflow();
    sys::init();
    let args: Vec<OsString> = std::env::args_os().collect();
    std::process::exit(sandlite_shell::run_by_name(args));
}
