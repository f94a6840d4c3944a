//! Sessions: a sandbox in a file that runs of skills share. Files that a run leaves in `out/session` and `out/files` are
//! available to the next.

use std::collections::HashMap;
use std::fs::TryLockError;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use runtime::{Cancel, Command, Content, Sandbox};

use super::contract::{self, FILES, INPUT, INPUT_FILES, OUT, SESSION, SESSION_OUT};
use super::prepared::Prepared;
use super::{Inner, Request, RunResult, collect};
use crate::Error;

/// The number of session locks from which on unused ones are dropped.
const MOST_TURNS: usize = 256;

/// The directory of sessions in a sandbox that contains the catalog: `ID/NAME`.
const KEPT: &str = "/var/lib/sandlite/sessions";

/// How long to wait before the lock of a session is tried again.
const PAUSE: Duration = Duration::from_millis(5);

/// The lock of each session: runs of one session are sequential.
pub(super) type Turns = HashMap<String, Arc<Mutex<()>>>;

/// Runs a skill in a session.
pub(super) fn run(
    inner: &Inner,
    prepared: &Prepared,
    id: &str,
    request: &Request,
    command: Command,
    result: &mut RunResult,
) -> Result<(), Error> {
    let name = contract::session_name(id)?;
    let turn = turn_of(inner, name);
    let _turn = turn.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(home) = inner.catalog.sandbox() {
        return run_beside(home, prepared, name, request, command, result);
    }
    let directory = inner.place()?.join("sessions");
    std::fs::create_dir_all(&directory).map_err(Error::host("create", &directory))?;
    let Some(_held) = lock(&directory.join(format!("{name}.lock")), &command.cancel())? else {
        result.error = Some(collect::CANCELLED.to_owned());
        return Ok(());
    };
    let sandbox = prepared.open_session(inner, &directory.join(format!("{name}.db")))?;
    let kept = files_in(&sandbox, SESSION)?;
    prepared.place(&sandbox, request, &kept)?;
    collect::run(&sandbox, prepared, command, result)?;
    keep(&sandbox, (&sandbox, SESSION), result);
    result.sandbox = Some(sandbox.fork()?);
    Ok(())
}

// Waits for other programs that run something in the session. Returns `None` if the run was cancelled meanwhile.
fn lock(path: &Path, cancel: &Cancel) -> Result<Option<std::fs::File>, Error> {
    let file = std::fs::File::create(path).map_err(Error::host("create", path))?;
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(Some(file)),
            Err(TryLockError::WouldBlock) if cancel.is_killed() => return Ok(None),
            Err(TryLockError::WouldBlock) => std::thread::sleep(PAUSE),
            Err(TryLockError::Error(error)) => return Err(Error::host("lock", path)(error)),
        }
    }
}

// Runs a skill of a catalog that is inside a sandbox, which keeps the files of the session.
fn run_beside(
    home: &Sandbox,
    prepared: &Prepared,
    name: &str,
    request: &Request,
    command: Command,
    result: &mut RunResult,
) -> Result<(), Error> {
    let place = format!("{KEPT}/{name}");
    let kept = files_in(home, &place)?;
    let request = kept.into_iter().fold(request.clone(), |request, (name, content)| request.kept(name, content));
    let sandbox = prepared.sandbox.fork()?;
    prepared.place(&sandbox, &request, &request.kept)?;
    collect::run(&sandbox, prepared, command, result)?;
    keep(&sandbox, (home, place.as_str()), result);
    result.sandbox = Some(sandbox);
    Ok(())
}

// The lock of a session. Unused ones are dropped, because the number of session names is unbounded.
fn turn_of(inner: &Inner, name: &str) -> Arc<Mutex<()>> {
    let mut turns = inner.sessions.lock().unwrap_or_else(PoisonError::into_inner);
    if turns.len() >= MOST_TURNS {
        turns.retain(|_, turn| Arc::strong_count(turn) > 1);
    }
    Arc::clone(turns.entry(name.to_owned()).or_default())
}

/// Removes the results and the input of the last run, and files or links with which its script may have replaced directories.
pub(super) fn clear(sandbox: &Sandbox) -> Result<(), Error> {
    let fs = sandbox.fs();
    let mut gone = Vec::new();
    for path in [OUT, INPUT_FILES, INPUT] {
        if fs.symlink_metadata(path).is_ok() {
            gone.push(path.to_owned());
        }
    }
    for path in [SESSION, "/root", "/tmp"] {
        if fs.symlink_metadata(path).is_ok_and(|stat| !stat.is_dir()) {
            gone.push(path.to_owned());
        }
    }
    if gone.is_empty() { Ok(()) } else { Ok(fs.remove_all(&gone)?) }
}

// Returns the files below a directory, by the last component of their names. A script may have removed the directory.
fn files_in(sandbox: &Sandbox, directory: &str) -> Result<Vec<(String, Vec<u8>)>, Error> {
    let mut files = Vec::new();
    if sandbox.fs().symlink_metadata(directory).is_err() {
        return Ok(files);
    }
    for found in sandbox.fs().walk(directory).unwrap_or_default() {
        let name = found.path.rsplit('/').next().unwrap_or_default();
        if found.stat.is_file() && name != ".keep" && found.path != directory {
            files.push((name.to_owned(), sandbox.fs().read(&found.path)?));
        }
    }
    Ok(files)
}

/// Files that a run stored for the next one.
pub(super) fn left(sandbox: &Sandbox) -> Result<Vec<(String, Vec<u8>)>, Error> {
    let mut left = files_in(sandbox, SESSION_OUT)?;
    left.extend(files_in(sandbox, FILES)?);
    Ok(left)
}

// Stores what the run left for the next one. The script has run, so a failure is a note.
fn keep(sandbox: &Sandbox, (home, place): (&Sandbox, &str), result: &mut RunResult) {
    let kept = left(sandbox).and_then(|left| {
        let files = left.into_iter().map(|(name, content)| (format!("{place}/{name}"), Content::from(content)));
        let files: Vec<_> = files.collect();
        if files.is_empty() { Ok(()) } else { Ok(home.fs().write_all(files)?) }
    });
    if let Err(error) = kept {
        result.notes.push(format!("its files are not kept for the session: {error}"));
    }
}
