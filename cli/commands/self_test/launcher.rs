//! The command line of this program, to start it once more in another process.
//!
//! The command of the Python package runs inside Python, so the program alone is not enough: its arguments name the package.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use anyhow::Context as _;

/// The number of words on our command line, including the name.
static WORDS: OnceLock<usize> = OnceLock::new();

/// Records how many of the process's arguments are ours.
pub(crate) fn set_word_count(count: usize) {
    let _ = WORDS.set(count);
}

// The other process starts in another directory.
fn absolute(word: OsString) -> OsString {
    let path = Path::new(&word);
    if path.components().nth(1).is_none() || !path.exists() {
        return word;
    }
    std::path::absolute(path).map_or(word, PathBuf::into_os_string)
}

/// Returns the command that starts this program without arguments.
pub(super) fn command() -> anyhow::Result<Command> {
    let line = std::fs::read("/proc/self/cmdline").context("cannot read `/proc/self/cmdline`")?;
    let line = line.strip_suffix(b"\0").unwrap_or(&line);
    let words: Vec<OsString> = line.split(|byte| *byte == 0).map(|word| absolute(OsString::from_vec(word.to_vec()))).collect();
    // The words before our arguments are our own name.
    let before = words.len().saturating_sub(WORDS.get().map_or(0, |count| count.saturating_sub(1)));
    match words.get(..before) {
        Some([program, arguments @ ..]) if !arguments.is_empty() => {
            let mut command = Command::new(program);
            command.args(arguments);
            Ok(command)
        }
        // The first word is what the caller wrote, which need not be a path.
        _ => Ok(Command::new(std::env::current_exe().context("cannot find this program")?)),
    }
}
