//! `mkdir` and `rmdir`: directories come and go.

use std::io;
use std::path::{Path, PathBuf};

use super::mode::{Change, umask};
use crate::files::basename::{directory, last_component};
use crate::options::{self, May, Needs, No, Spec};
use crate::program::{self, Args, Outcome, Output, bytes, fail, missing_operand, os, warn};
use crate::quote;

/// Runs `mkdir`.
pub fn mkdir(args: Args) -> Outcome {
    let spec = Spec {
        short: "m:pvZ",
        long: &[("mode", Needs, 'm'), ("parents", No, 'p'), ("verbose", No, 'v'), ("context", May, 'Z')],
        help: "[OPTION]... DIRECTORY...",
    };
    let given = options::parse(args, &spec)?;
    if given.operands.is_empty() {
        return Err(missing_operand(None));
    }
    let mode = match given.value('m') {
        Some(text) => {
            let text = text.to_string_lossy();
            let change = Change::parse(&text).ok_or_else(|| fail(format!("invalid mode {}", quote::plain(text.as_ref()))))?;
            Some(change.apply(0o777, true, umask()))
        }
        None => None,
    };
    let mut out = Output::new();
    let mut status = 0;
    for name in &given.operands {
        let own = |error| (PathBuf::from(name), error);
        let made = if given.has('p') {
            make_parents(Path::new(name), given.has('v'), &mut out)
        } else {
            std::fs::create_dir(name).map(|()| true).map_err(own).inspect(|_| {
                if given.has('v') {
                    out.text(format!("{}: created directory {}\n", program::name(), quote::always(name)));
                }
            })
        };
        let done = made.and_then(|fresh| match mode {
            Some(mode) if fresh => sys::chmod(Path::new(name), true, mode).map_err(own),
            _ => Ok(()),
        });
        if let Err((at, error)) = done {
            out.send();
            warn(format!("cannot create directory {}: {}", quote::plain(at), sys::message(&error)));
            status = 1;
        }
    }
    Ok(status)
}

/// Makes a directory and those above it; returns whether the last one is new, or the one that could not be created.
pub fn make_parents(path: &Path, verbose: bool, out: &mut Output) -> Result<bool, (PathBuf, io::Error)> {
    let is_directory = |path: &Path| sys::stat(path, true).is_ok_and(|stat| stat.kind() == sys::stat::S_IFDIR);
    if is_directory(path) {
        return Ok(false);
    }
    let text = bytes(path.as_os_str());
    let mut made = false;
    for end in (1..=text.len()).filter(|&end| end == text.len() || (text[end] == b'/' && text[end - 1] != b'/')) {
        let part = PathBuf::from(os(text[..end].to_vec()));
        if is_directory(&part) {
            made = false;
            continue;
        }
        match std::fs::create_dir(&part) {
            Ok(()) => {
                made = true;
                if verbose {
                    out.text(format!("{}: created directory {}\n", program::name(), quote::always(&part)));
                }
            }
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && end < text.len() => {
                return Err((part, io::Error::from_raw_os_error(sys::errno::ENOTDIR)));
            }
            Err(error) => return Err((part, error)),
        }
    }
    Ok(made)
}

/// Runs `rmdir`.
pub fn rmdir(args: Args) -> Outcome {
    let spec = Spec {
        short: "pv",
        long: &[("ignore-fail-on-non-empty", No, 'i'), ("parents", No, 'p'), ("path", No, 'p'), ("verbose", No, 'v')],
        help: "[OPTION]... DIRECTORY...",
    };
    let given = options::parse(args, &spec)?;
    if given.operands.is_empty() {
        return Err(missing_operand(None));
    }
    let mut out = Output::new();
    let mut status = 0;
    for name in &given.operands {
        let mut current = name.clone();
        loop {
            if given.has('v') {
                out.text(format!("{}: removing directory, {}\n", program::name(), quote::always(&current)));
            }
            if let Err(error) = std::fs::remove_dir(&current) {
                let not_empty = error.raw_os_error() == Some(sys::errno::ENOTEMPTY);
                if !(given.has('i') && not_empty) {
                    out.send();
                    let what = if current == *name { "failed to remove" } else { "failed to remove directory" };
                    warn(format!("{what} {}: {}", quote::always(&current), sys::message(&error)));
                    status = 1;
                }
                break;
            }
            let parent = directory(bytes(&current));
            if !given.has('p') || parent == b"." || parent == b"/" {
                break;
            }
            current = os(parent.to_vec());
        }
    }
    Ok(status)
}

/// Returns the last part of a path, as a path of its own.
pub fn base(path: &Path) -> PathBuf {
    PathBuf::from(os(last_component(bytes(path.as_os_str())).to_vec()))
}
