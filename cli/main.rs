//! The `sandlite` command: everything a person does with a sandbox, from the terminal.
//!
//! Parses, prints and exits; the library does the work.

mod args;
mod commands;
mod exit;
mod printer;

use std::process::ExitCode;

use clap::Parser as _;

use args::{Args, Verb};
use printer::Printer;

fn main() -> ExitCode {
    let args = Args::parse();
    let mut printer = Printer::new(args.global.json);
    let outcome = match args.verb {
        Verb::Bash(bash) => commands::bash::run(&args.global, &bash, &mut printer),
        Verb::Python(python) => commands::python::run(&args.global, &python, &mut printer),
        Verb::History(history) => commands::history::run(&args.global, &history, &mut printer),
        Verb::Export(export) => commands::export::run(&args.global, &export, &mut printer),
        Verb::Import(import) => commands::import::run(&args.global, &import, &mut printer),
        Verb::Presets(presets) => commands::presets::run(&presets, &mut printer),
    };
    match outcome {
        Ok(code) => code.into(),
        Err(error) => {
            printer.error(&error);
            exit::Code::Sandlite.into()
        }
    }
}
