//! The messages of `rg` on standard error, and whether anything failed.

use std::cell::Cell;
use std::fmt::Arguments;
use std::io;

/// Which messages are wanted, and whether there was an error.
#[derive(Debug)]
pub(super) struct Messages {
    pub wanted: bool,
    pub about_ignore_files: bool,
    failed: Cell<bool>,
}

impl Messages {
    pub fn new(wanted: bool, about_ignore_files: bool) -> Self {
        Self { wanted, about_ignore_files, failed: Cell::new(false) }
    }

    /// Prints a message and sets the status of a failure.
    pub fn error(&self, text: Arguments<'_>) {
        self.failed.set(true);
        self.note(text);
    }

    /// Prints a message without changing the status.
    pub fn note(&self, text: Arguments<'_>) {
        if self.wanted {
            warn!("rg: {text}");
        }
    }

    /// Reports an error in a file of patterns to ignore.
    pub fn ignore_error(&self, text: Arguments<'_>) {
        if self.about_ignore_files {
            self.note(text);
        }
    }

    pub fn failed(&self) -> bool {
        self.failed.get()
    }
}

/// Returns an error as Rust shows it on Linux, with the number that it has there.
pub(super) fn described(error: &io::Error) -> String {
    use sys::errno::{EACCES, EINVAL, EISDIR, ELOOP, ENOENT, ENOTDIR, EPERM};
    let Some(raw) = error.raw_os_error() else { return error.to_string() };
    let known = [(EPERM, 1), (ENOENT, 2), (EACCES, 13), (ENOTDIR, 20), (EISDIR, 21), (EINVAL, 22), (ELOOP, 40)];
    let number = known.iter().find(|(ours, _)| *ours == raw).map_or(raw, |&(_, linux)| linux);
    format!("{} (os error {number})", sys::message(error))
}

/// The log of `--debug` and `--trace`.
#[derive(Debug)]
pub(super) struct Logger;

impl log::Log for Logger {
    fn enabled(&self, _: &log::Metadata<'_>) -> bool {
        true
    }

    fn log(&self, record: &log::Record<'_>) {
        let (file, line) = (record.file().unwrap_or_default(), record.line().unwrap_or_default());
        // The path of a crate's file on the build machine is meaningless here.
        let file = file.rsplit_once("/src/").map_or(file, |(_, file)| file);
        warn!("rg: {}|{}|{file}:{line}: {}", record.level(), record.target(), record.args());
    }

    fn flush(&self) {}
}
