//! `install`: copies with permissions.

use std::path::{Path, PathBuf};

use super::copy::Copy;
use super::links::{Backup, is_directory, target};
use super::mkdir::make_parents;
use super::mode::{Change, umask};
use crate::accounts::Accounts;
use crate::options::{self, May, Needs, No, Spec};
use crate::program::{self, Args, Outcome, Output, fail, usage, warn};
use crate::quote;

const SPEC: Spec = Spec {
    short: "bcCDdg:m:o:pst:S:TvZ",
    long: &[
        ("backup", May, 'B'),
        ("compare", No, 'C'),
        ("directory", No, 'd'),
        ("group", Needs, 'g'),
        ("mode", Needs, 'm'),
        ("owner", Needs, 'o'),
        ("preserve-timestamps", No, 'p'),
        ("strip", No, 's'),
        ("strip-program", Needs, 'P'),
        ("suffix", Needs, 'S'),
        ("target-directory", Needs, 't'),
        ("no-target-directory", No, 'T'),
        ("verbose", No, 'v'),
    ],
    help: "[OPTION]... [-T] SOURCE DEST",
};

/// Runs `install`.
pub fn main(args: Args) -> Outcome {
    let mut given = options::parse(args, &SPEC)?;
    let mode = match given.value('m') {
        Some(text) => {
            let text = text.to_string_lossy();
            let change = Change::parse(&text).ok_or_else(|| fail(format!("invalid mode {}", quote::plain(text.as_ref()))))?;
            change.apply(0, given.has('d'), umask())
        }
        None => 0o755,
    };
    let names = Accounts::read();
    let user = match given.value('o') {
        Some(name) => {
            names.user_id(&name.to_string_lossy()).ok_or_else(|| fail(format!("invalid user {}", quote::plain(name))))?
        }
        None => u32::MAX,
    };
    let group = match given.value('g') {
        Some(name) => {
            names.group_id(&name.to_string_lossy()).ok_or_else(|| fail(format!("invalid group {}", quote::plain(name))))?
        }
        None => u32::MAX,
    };
    let finish = |path: &Path| -> Result<(), i32> {
        if (user, group) != (u32::MAX, u32::MAX) {
            sys::chown(path, true, user, group)
                .map_err(|error| fail(format!("cannot change ownership of {}: {}", quote::always(path), sys::message(&error))))?;
        }
        sys::chmod(path, true, mode)
            .map_err(|error| fail(format!("cannot change permissions of {}: {}", quote::always(path), sys::message(&error))))
    };
    let mut status = 0;
    if given.operands.is_empty() {
        return Err(usage("missing file operand"));
    }
    if given.has('d') {
        for name in &given.operands {
            let mut out = Output::new();
            let done = make_parents(Path::new(name), given.has('v'), &mut out)
                .map_err(|(at, error)| fail(format!("cannot create directory {}: {}", quote::plain(at), sys::message(&error))));
            if done.map_or(true, |_| finish(Path::new(name)).is_err()) {
                status = 1;
            }
        }
        return Ok(status);
    }
    if given.has('D') {
        let parent = match given.value('t') {
            Some(directory) => Some(PathBuf::from(directory)),
            None => given.operands.last().and_then(|last| Path::new(last).parent()).map(Path::to_path_buf),
        };
        if let Some(parent) =
            parent.filter(|parent| !parent.as_os_str().is_empty() && given.operands.len() + usize::from(given.has('t')) > 1)
        {
            make_parents(&parent, given.has('v'), &mut Output::new())
                .map_err(|(at, error)| fail(format!("cannot create directory {}: {}", quote::plain(at), sys::message(&error))))?;
        }
    }
    if given.has('T') && given.operands.last().is_some_and(|last| is_directory(Path::new(last))) {
        let last = given.operands.pop().unwrap_or_default();
        return Err(fail(format!("cannot overwrite directory {} with non-directory", quote::always(last))));
    }
    let target = target(&given, false)?;
    let mut copy = Copy::new();
    copy.keep_times = given.has('p');
    copy.remove_destination = true;
    copy.verbose = given.has('v');
    copy.backup = Backup::from_options(&given)?;
    for source in &target.sources {
        let destination = target.path_for(Path::new(source));
        if is_directory(Path::new(source)) {
            warn(format!("omitting directory {}", quote::always(source)));
            status = 1;
            continue;
        }
        if given.has('C') && same(Path::new(source), &destination, mode) {
            continue;
        }
        if !copy.copy(Path::new(source), &destination) || finish(&destination).is_err() {
            status = program::failure();
        }
    }
    Ok(status)
}

fn same(source: &Path, destination: &Path, mode: u32) -> bool {
    let fits = sys::stat(destination, true).is_ok_and(|stat| stat.mode & 0o7777 == mode);
    fits && matches!((std::fs::read(source), std::fs::read(destination)), (Ok(a), Ok(b)) if a == b)
}
