//! A bash.
//!
//! [`syntax`] reads a script into the tree of [`ast`]; [`exec`] walks it; [`expand`] turns its words into fields;
//! [`state`] is what a shell knows; [`builtins`] are the commands it does itself. Processes, descriptors and files are
//! reached through the crate `sys`, so the same shell runs in a sandbox and on a developer's machine.

pub mod arith;
pub mod ast;
pub mod brace;
pub mod builtins;
pub mod exec;
pub mod expand;
pub mod interactive;
pub mod invoke;
mod prepared;
pub mod print;
pub mod quote;
mod session;
pub mod shell;
pub mod shown;
pub mod state;
pub mod syntax;

use std::ffi::OsString;

pub use common::bytes;
pub use prepared::prepare;

/// Runs the program that the arguments are for: the shell, or a utility.
#[must_use]
pub fn run_by_name(mut args: Vec<OsString>) -> i32 {
    let bytes: Vec<&[u8]> = args.iter().map(|arg| arg.as_encoded_bytes()).collect();
    let (base, given) = abi::program::meant(&bytes);
    let added = bytes.len() - given.len();
    args.drain(..added);
    let base: &'static str = base.leak();
    sys::memory::set_name(base);
    if let Some(utility) = utility(base) {
        if let Some(answer) = about(base, &args) {
            print!("{answer}");
            return 0;
        }
        return utility(args);
    }
    let texts: Vec<String> = args.iter().map(|arg| exec::from_os(arg)).collect();
    i32::from(invoke::run(&texts))
}

/// A utility: arguments, its own name first, to exit status.
type Utility = fn(Vec<OsString>) -> i32;

#[cfg(target_arch = "wasm32")]
fn utility(name: &str) -> Option<Utility> {
    match name {
        "bash" | "sh" | "rbash" => None,
        "sandlite" => Some(list_programs),
        name => utilities::find(name),
    }
}

/// Returns `--help` and `--version` of the utilities that leave them to us.
#[cfg(target_arch = "wasm32")]
fn about(name: &str, args: &[OsString]) -> Option<String> {
    utilities::about(name, args)
}

/// Returns why a program that people expect is not in the sandbox.
#[cfg(target_arch = "wasm32")]
fn why_absent(name: &str) -> Option<&'static str> {
    utilities::absent(name)
}

/// Runs `sandlite` inside the sandbox, which prints the names of all programs, one per line, as in `guests/programs.txt`.
#[cfg(target_arch = "wasm32")]
fn list_programs(_: Vec<OsString>) -> i32 {
    let own = ["bash", "sandlite", "sh"];
    let names: std::collections::BTreeSet<&str> = [&own[..], utilities::names()].concat().into_iter().collect();
    names.iter().for_each(|name| println!("{name}"));
    0
}

/// Returns no utility: on a developer's machine they are programs of that machine.
#[cfg(not(target_arch = "wasm32"))]
fn utility(_: &str) -> Option<Utility> {
    None
}

#[cfg(not(target_arch = "wasm32"))]
fn about(_: &str, _: &[OsString]) -> Option<String> {
    None
}

#[cfg(not(target_arch = "wasm32"))]
fn why_absent(_: &str) -> Option<&'static str> {
    None
}
