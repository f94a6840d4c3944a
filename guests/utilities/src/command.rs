//! Starting other programs: found on `$PATH`, run through the host's spawn, waited for.

use std::io;
use std::path::Path;

use sys::{Action, Request, WaitStatus};

use crate::io as text_io;

/// Why a program could not be found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Missing {
    /// There is no such file.
    NotFound,
    /// There is one, but it may not be run.
    NotExecutable,
}

/// The file that running `name` runs: itself when it has a slash, else the first of that name on `$PATH`.
pub fn search(name: &[u8]) -> Result<Vec<u8>, Missing> {
    if name.contains(&b'/') {
        let full = absolute(name);
        return match executable(&full) {
            Some(true) => Ok(full),
            Some(false) => Err(Missing::NotExecutable),
            None => Err(Missing::NotFound),
        };
    }
    let mut missing = Missing::NotFound;
    for found in candidates(name) {
        match executable(&found) {
            Some(true) => return Ok(found),
            Some(false) => missing = Missing::NotExecutable,
            None => {}
        }
    }
    Err(missing)
}

/// Where `$PATH` says that `name` could be, in order.
#[must_use]
pub fn candidates(name: &[u8]) -> Vec<Vec<u8>> {
    if name.is_empty() {
        return Vec::new();
    }
    let path = text_io::env("PATH").unwrap_or_else(|| b"/usr/local/bin:/usr/bin:/bin".to_vec());
    path.split(|&byte| byte == b':')
        .map(|directory| {
            let mut full = if directory.is_empty() { b".".to_vec() } else { directory.to_vec() };
            full.push(b'/');
            full.extend_from_slice(name);
            absolute(&full)
        })
        .collect()
}

/// Whether the file may be run; `None` when there is none.
#[must_use]
pub fn executable(path: &[u8]) -> Option<bool> {
    let path = text_io::path(path);
    let stat = sys::stat(&path, true).ok()?;
    Some(stat.kind() == sys::stat::S_IFREG && sys::permits(&stat, sys::Permission::Execute))
}

/// The path from the root on.
#[must_use]
pub fn absolute(path: &[u8]) -> Vec<u8> {
    if path.starts_with(b"/") {
        return path.to_vec();
    }
    let mut full = working_directory();
    if !full.ends_with(b"/") {
        full.push(b'/');
    }
    full.extend_from_slice(path);
    full
}

/// The working directory.
#[must_use]
pub fn working_directory() -> Vec<u8> {
    std::env::current_dir().map_or_else(|_| b"/".to_vec(), |directory| text_io::path_bytes(&directory).to_vec())
}

/// Starts `args` (found as [`search`] says) with the changes to its descriptors; its process id.
pub fn spawn(args: &[Vec<u8>], actions: Vec<Action>, cwd: Option<&Path>) -> io::Result<u32> {
    let path = search(&args[0]).map_err(|missing| match missing {
        Missing::NotFound => io::Error::from(io::ErrorKind::NotFound),
        Missing::NotExecutable => io::Error::from(io::ErrorKind::PermissionDenied),
    })?;
    let env = std::env::vars_os()
        .map(|(name, value)| {
            let mut entry = name.into_encoded_bytes();
            entry.push(b'=');
            entry.extend_from_slice(value.as_encoded_bytes());
            entry
        })
        .collect();
    let cwd = cwd.map_or_else(working_directory, |path| text_io::path_bytes(path).to_vec());
    let mut request = Request { flags: 0, path, cwd, args: args.to_vec(), env, actions };
    match sys::spawn(&request) {
        Err(error) if is_exec_format(&error) => {
            interpret(&mut request);
            sys::spawn(&request)
        }
        result => result,
    }
}

fn is_exec_format(error: &io::Error) -> bool {
    text_io::strerror(error) == "Exec format error"
}

/// Turns a script into a call of its interpreter: what `#!` says, else the shell.
fn interpret(request: &mut Request) {
    let head = text_io::read_all(&request.path).unwrap_or_default();
    let line = head.split(|&byte| byte == b'\n').next().unwrap_or_default();
    let mut args = match line.strip_prefix(b"#!") {
        Some(line) => {
            let line = line.trim_ascii();
            let cut = line.iter().position(|byte| byte.is_ascii_whitespace());
            match cut {
                Some(at) => vec![line[..at].to_vec(), line[at..].trim_ascii().to_vec()],
                None => vec![line.to_vec()],
            }
        }
        None => vec![b"/bin/sh".to_vec()],
    };
    let interpreter = args[0].clone();
    args.push(request.path.clone());
    args.extend(request.args.iter().skip(1).cloned());
    request.args = args;
    request.path = interpreter;
}

/// A shell that runs `command`.
#[must_use]
pub fn shell(command: &[u8]) -> Vec<Vec<u8>> {
    vec![b"sh".to_vec(), b"-c".to_vec(), command.to_vec()]
}

/// Waits for a child to end.
pub fn wait(pid: u32) -> io::Result<WaitStatus> {
    loop {
        match sys::wait(pid.cast_signed(), 0) {
            Ok(Some(waited)) => return Ok(waited.status),
            Ok(None) => {}
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

/// A pipe that only this process holds: no child gets an end of it unless told.
pub fn pipe() -> io::Result<[u32; 2]> {
    let ends = sys::pipe()?;
    sys::set_close_on_exec(ends[0], true)?;
    sys::set_close_on_exec(ends[1], true)?;
    Ok(ends)
}

/// Reads what a descriptor gives; closed when dropped.
#[derive(Debug)]
pub struct Reader(pub u32);

impl io::Read for Reader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        sys::read(self.0, buffer)
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        let _ = sys::close(self.0);
    }
}

/// Starts a shell command whose output is read here.
pub fn reading(command: &[u8]) -> io::Result<(u32, Reader)> {
    let [read, write] = pipe()?;
    let pid = spawn(&shell(command), vec![Action::Dup { from: write, fd: 1 }], None);
    let _ = sys::close(write);
    Ok((pid?, Reader(read)))
}

/// Starts a shell command whose input is written here: its process id and the descriptor to write to.
pub fn writing(command: &[u8]) -> io::Result<(u32, u32)> {
    let [read, write] = pipe()?;
    let pid = spawn(&shell(command), vec![Action::Dup { from: read, fd: 0 }], None);
    let _ = sys::close(read);
    Ok((pid?, write))
}
