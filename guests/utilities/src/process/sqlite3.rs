//! `sqlite3`: the shell of SQLite on files in the sandbox.
//!
//! The database engine is the one inside the sandbox's Python, which starts in a millisecond; `sqlite3/shell.py` is the
//! command line around it. Without Python there is no `sqlite3`.

use std::ffi::OsString;

use common::getopt;
use sys::WaitStatus;

use crate::command;

const SHELL: &str = include_str!("sqlite3/shell.py");

/// Runs `sqlite3`.
pub fn sqlite3(args: Vec<OsString>) -> i32 {
    let mut command: Vec<Vec<u8>> = ["python3", "-I", "-S", "-c", SHELL].map(|text| text.as_bytes().to_vec()).to_vec();
    command.extend(getopt::bytes(args).into_iter().skip(1));
    match command::spawn(&command, Vec::new(), None).and_then(command::wait) {
        Ok(WaitStatus::Exited(status)) => i32::from(status),
        Ok(WaitStatus::Signaled(signal)) => 128 + i32::from(signal.number()),
        Err(_) => {
            warn!("sqlite3: not available: this sandbox has no python3, in which its SQLite lives");
            127
        }
    }
}
