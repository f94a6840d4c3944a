//! Sessions: a sandbox in a file that runs of skills share. Files that a run leaves in `out/session` and `out/files` are
//! available to the next.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use runtime::{Command, Content, Sandbox};

use super::contract::{self, FILES, INPUT_FILES, OUT, SESSION, SESSION_OUT};
use super::prepared::Prepared;
use super::{Inner, Request, RunResult, collect};
use crate::Error;

/// The number of session locks from which on unused ones are dropped.
const MOST_TURNS: usize = 256;

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
    let directory = inner.place()?.join("sessions");
    std::fs::create_dir_all(&directory).map_err(Error::host("create", &directory))?;
    let sandbox = prepared.open_session(inner, &directory.join(format!("{name}.db")))?;
    clear(&sandbox)?;
    let kept = files_in(&sandbox, SESSION)?;
    prepared.place(&sandbox, request, &kept)?;
    collect::run(&sandbox, prepared, command, result)?;
    // The script has run, so its result is not an error.
    if let Err(error) = keep(&sandbox) {
        result.notes.push(format!("its files are not kept for the session: {error}"));
    }
    result.sandbox = Some(sandbox.fork()?);
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

// Removes the results and the input of the last run.
fn clear(sandbox: &Sandbox) -> Result<(), Error> {
    let fs = sandbox.fs();
    fs.remove_all(&[OUT.to_owned(), INPUT_FILES.to_owned()])?;
    Ok(fs.create_dirs(&[INPUT_FILES, FILES, SESSION_OUT].map(str::to_owned))?)
}

// Returns the files below a directory, by the last component of their names. A script may have removed the directory.
fn files_in(sandbox: &Sandbox, directory: &str) -> Result<Vec<(String, Vec<u8>)>, Error> {
    let mut files = Vec::new();
    for found in sandbox.fs().walk(directory).unwrap_or_default() {
        let name = found.path.rsplit('/').next().unwrap_or_default();
        if found.stat.is_file() && name != ".keep" {
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

// The next run continues with the files of this one.
fn keep(sandbox: &Sandbox) -> Result<(), Error> {
    let left = left(sandbox)?;
    if left.is_empty() {
        return Ok(());
    }
    let files = left.into_iter().map(|(name, content)| (format!("{SESSION}/{name}"), Content::from(content)));
    Ok(sandbox.fs().write_all(files.collect())?)
}
