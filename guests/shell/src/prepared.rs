//! The part of a shell's initialization that does not call the host.
//!
//! `cargo xtask guests` calls [`prepare`] once, when the guest is built, and keeps the memory as it is then: every process in
//! a sandbox starts with this much done. On a developer's machine it is done at the start.

use std::cell::Cell;

use crate::shell::Shell;
use crate::state::variables::Attributes;

/// The version that scripts see.
pub(crate) const VERSION: &str = "5.2.15(1)-release";

/// The machine that scripts see.
pub(crate) const MACHINE: &str = "x86_64-pc-linux-gnu";

/// Set here, regardless of the environment.
pub(crate) const KEPT: &[&str] = &["IFS", "BASH_VERSINFO", "UID", "EUID", "PPID"];

/// Set here, but exported when the environment has them.
pub(crate) const EXPORTED_AT_MOST: &[&str] = &["OPTIND", "OPTERR", "BASH_VERSION"];

/// Room for the environment and a script's first variables, so that the table need not grow.
const MORE_VARIABLES: usize = 64;

/// Memory that a small command allocates: part of the image, so that it need not be requested.
const FIRST_HEAP: usize = 128 << 10;

thread_local! {
    static READY: Cell<Option<Box<Shell>>> = const { Cell::new(None) };
}

/// Prepares what the first shell of this process will need.
pub fn prepare() {
    sys::memory::report_overflow();
    READY.set(Some(Box::new(new())));
    // The standard library makes its buffer on first use.
    let _ = std::io::stdout();
    drop(std::hint::black_box(Vec::<u8>::with_capacity(FIRST_HEAP)));
}

/// Returns the prepared shell, or one prepared now.
pub(crate) fn take() -> Box<Shell> {
    READY.take().unwrap_or_else(|| Box::new(new()))
}

fn new() -> Shell {
    let mut shell = Shell::new("bash");
    shell.variables.reserve(MORE_VARIABLES);
    shell.bind_computed();
    let hostname = hostname();
    for (name, value) in [
        ("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"),
        ("TERM", "dumb"),
        ("SHELL", "/bin/bash"),
        ("HOSTNAME", hostname.as_str()),
        ("BASH", if cfg!(target_arch = "wasm32") { "/bin/bash" } else { "/usr/bin/bash" }),
        ("IFS", " \t\n"),
        ("PS4", "+ "),
        ("OPTIND", "1"),
        ("OPTERR", "1"),
        ("BASH_VERSION", VERSION),
        ("HOSTTYPE", "x86_64"),
        ("MACHTYPE", MACHINE),
        ("OSTYPE", "linux-gnu"),
    ] {
        shell.set_plain(name, value);
    }
    shell.set_array("BASH_VERSINFO", ["5", "2", "15", "1", "release", MACHINE].map(str::to_owned));
    shell.variables.entry("BASH_VERSINFO").attributes = Attributes::READONLY;
    let [uid, _] = sys::user_ids();
    for name in ["UID", "EUID", "PPID"] {
        shell.set_plain(name, uid.to_string());
        shell.variables.entry(name).attributes = Attributes::INTEGER.with(Attributes::READONLY);
    }
    shell
}

fn hostname() -> String {
    let file = if cfg!(target_arch = "wasm32") { None } else { std::fs::read_to_string("/etc/hostname").ok() };
    file.as_deref().unwrap_or(abi::ETC_HOSTNAME).trim().to_owned()
}
