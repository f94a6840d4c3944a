//! The `sandlite` command: everything a person does with a sandbox, from the terminal.
//!
//! Parses, prints and exits; the library does the work.

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
mod time;

use std::process::ExitCode;

use args::Args;
use printer::Printer;

fn main() -> ExitCode {
    memory::take_in_large_steps();
    engine::start_early();
    let args = Args::from_command_line();
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
