//! The `sandlite` command: everything a person does with a sandbox, from the terminal.
//!
//! Parses arguments, prints results and exits; the runtime does the work. It is a library because two programs use it: `sandlite`
//! (`cli/main.rs`) and the command of the Python package (`sdk/python`), which thereby share the code and one copy of the guests.

#![cfg_attr(
    not(test),
    warn(
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::panic,
        clippy::print_stdout,
        clippy::cast_possible_truncation,
        clippy::missing_errors_doc
    )
)]

mod args;
mod commands;
mod engine;
mod exit;
mod host_pip;
mod input;
mod interactive;
mod interrupt;
mod memory;
mod page;
mod printer;
mod progress;
mod remote;
mod time;

use std::ffi::OsString;
use std::path::PathBuf;

use args::Args;
use printer::Printer;

/// Returns freed memory of this process to the system.
pub fn give_memory_back() {
    memory::give_back();
}

/// Configures how this process allocates memory, for a program that does nothing else.
pub fn prepare_process() {
    memory::take_in_large_steps();
}

/// Sets the directory of compiled guests shipped with the program.
pub fn set_shipped(directory: PathBuf) {
    engine::set_shipped(directory);
}

/// Runs a command line, whose first word is the program's name, and returns the exit code.
pub fn run(words: Vec<OsString>) -> u8 {
    engine::start_early(&words);
    commands::self_test::set_word_count(words.len());
    let args = Args::from_words(words);
    let printer = Printer::new(args.global.json, args.global.verbose);
    engine::tell(&printer);
    let code = commands::run(&args, &printer).unwrap_or_else(|error| {
        printer.error(&error);
        exit::Code::Sandlite
    });
    printer.progress().clear();
    let code = if printer.is_unread() { exit::Code::Signal(exit::SIGPIPE) } else { code };
    code.into()
}
