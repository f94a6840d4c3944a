//! Starting other programs: found on `$PATH`, run through the host, waited for.

use std::convert::Infallible;
use std::ffi::{OsStr, OsString};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use sys::{Action, Permission, Request, WaitStatus};

use crate::program::{Descriptor, bytes, os, warn};
use crate::quote;

/// The directories that are searched for programs without a `$PATH`.
const DEFAULT_PATH: &[u8] = b"/usr/local/bin:/usr/bin:/bin";

/// Scripts whose interpreter is a script in turn: no chain is longer.
const MOST_INTERPRETERS: usize = 4;

/// Longest `#!` line.
const LONGEST_LINE: usize = 256;

/// Returns the file that running `name` runs: itself when it has a slash, else the first of that name on `path`.
///
/// # Errors
/// Returns `ENOENT` if there is none, and `EACCES` if there is one that may not be run.
pub fn find(name: &OsStr, path: Option<&OsStr>) -> io::Result<PathBuf> {
    if bytes(name).contains(&b'/') {
        return executable(Path::new(name));
    }
    let mut trouble = io::Error::from_raw_os_error(sys::errno::ENOENT);
    for candidate in candidates(name, path) {
        match executable(&candidate) {
            Ok(found) => return Ok(found),
            Err(error) if error.raw_os_error() == Some(sys::errno::EACCES) => trouble = error,
            Err(_) => {}
        }
    }
    Err(trouble)
}

/// Returns the possible locations of `name` along `path`, in order.
pub fn candidates(name: &OsStr, path: Option<&OsStr>) -> Vec<PathBuf> {
    if name.is_empty() {
        return Vec::new();
    }
    let path = path.map_or(DEFAULT_PATH, bytes);
    let directories = path.split(|&byte| byte == b':').map(|part| if part.is_empty() { &b"."[..] } else { part });
    directories.map(|directory| PathBuf::from(os(directory.to_vec())).join(name)).collect()
}

/// Returns the path from the root on of a file that may be run.
pub fn executable(path: &Path) -> io::Result<PathBuf> {
    let stat = sys::stat(path, true)?;
    if stat.kind() != sys::stat::S_IFREG || !sys::permits(&stat, Permission::Execute) {
        return Err(io::Error::from_raw_os_error(sys::errno::EACCES));
    }
    if path.is_absolute() { Ok(path.to_owned()) } else { Ok(std::env::current_dir()?.join(path)) }
}

/// Returns the variable `PATH` of this process.
pub fn own_path() -> Option<OsString> {
    std::env::var_os("PATH")
}

/// Returns the environment of this process as `NAME=value`.
pub fn environment() -> Vec<Vec<u8>> {
    std::env::vars_os().map(|(name, value)| [bytes(&name), b"=", bytes(&value)].concat()).collect()
}

/// Returns a request to start `words` with an environment, looked up along `path`.
pub fn request(words: &[OsString], env: Vec<Vec<u8>>, path: Option<&OsStr>) -> io::Result<Request> {
    let program = find(&words[0], path)?;
    Ok(Request {
        flags: 0,
        path: program.into_os_string().into_encoded_bytes(),
        cwd: std::env::current_dir()?.into_os_string().into_encoded_bytes(),
        args: words.iter().map(|word| bytes(word).to_vec()).collect(),
        env,
        actions: Vec::new(),
    })
}

/// Starts a program or a script as a child; returns its process id.
pub fn start(request: Request) -> io::Result<u32> {
    interpreted(request, sys::spawn)
}

/// Becomes a program or a script; returns why that failed.
pub fn exec(request: Request) -> io::Error {
    match interpreted(request, |request| Err::<Infallible, _>(sys::exec(request))) {
        Err(error) => error,
        Ok(never) => match never {},
    }
}

/// Starts what a request names: a program, a script with the interpreter of its `#!` line, or one without for the shell.
fn interpreted<T>(mut request: Request, start: impl Fn(&Request) -> io::Result<T>) -> io::Result<T> {
    for _ in 0..MOST_INTERPRETERS {
        let Some(words) = interpreter(&request.path) else { break };
        interpret(&mut request, words);
    }
    match start(&request) {
        Err(error) if error.raw_os_error() == Some(sys::errno::ENOEXEC) => {
            interpret(&mut request, vec![b"/bin/sh".to_vec()]);
            start(&request)
        }
        result => result,
    }
}

/// Returns the words of a script's `#!` line.
fn interpreter(path: &[u8]) -> Option<Vec<Vec<u8>>> {
    let mut head = Vec::new();
    let input = Descriptor::read_only(Path::new(&os(path.to_vec()))).ok()?;
    input.take(LONGEST_LINE as u64).read_to_end(&mut head).ok()?;
    let line = head.strip_prefix(b"#!")?.split(|&byte| byte == b'\n').next()?.trim_ascii();
    let at = line.iter().position(|byte| matches!(byte, b' ' | b'\t')).unwrap_or(line.len());
    let (program, argument) = line.split_at(at);
    let words = [program, argument.trim_ascii()];
    Some(words.into_iter().filter(|word| !word.is_empty()).map(<[u8]>::to_vec).collect())
}

fn interpret(request: &mut Request, mut words: Vec<Vec<u8>>) {
    let script = std::mem::take(&mut request.path);
    request.path = words.first().cloned().unwrap_or_default();
    words.push(script);
    words.extend(request.args.drain(..).skip(1));
    request.args = words;
}

/// Becomes another program; returns the status of the failure: 127 when it is not there, 126 when it cannot run.
pub fn become_program(words: &[OsString], what: &str) -> i32 {
    let error = request(words, environment(), own_path().as_deref()).map_or_else(|error| error, exec);
    warn(format!("{what}{}: {}", quote::plain(&words[0]), sys::message(&error)));
    if error.kind() == io::ErrorKind::NotFound { 127 } else { 126 }
}

/// Starts `args` with the changes to its descriptors; returns its process id.
pub fn spawn(args: &[Vec<u8>], actions: Vec<Action>, cwd: Option<&Path>) -> io::Result<u32> {
    let words: Vec<OsString> = args.iter().map(|word| os(word.clone())).collect();
    let mut request = request(&words, environment(), own_path().as_deref())?;
    request.actions = actions;
    if let Some(cwd) = cwd {
        request.cwd = bytes(cwd.as_os_str()).to_vec();
    }
    start(request)
}

/// Returns a shell that runs `command`.
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

/// Returns a pipe that only this process holds: no child inherits an end of it by default.
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

/// Starts a shell command whose input is written here and whose output is read here: its process id, and the descriptor to write to.
pub fn conversing(command: &[u8]) -> io::Result<(u32, u32, Reader)> {
    let [input, write] = pipe()?;
    let [read, output] = pipe()?;
    let pid = spawn(&shell(command), vec![Action::Dup { from: input, fd: 0 }, Action::Dup { from: output, fd: 1 }], None);
    let _ = sys::close(input);
    let _ = sys::close(output);
    Ok((pid?, write, Reader(read)))
}

/// Starts a shell command whose input is written here: its process id and the descriptor to write to.
pub fn writing(command: &[u8]) -> io::Result<(u32, u32)> {
    let [read, write] = pipe()?;
    let pid = spawn(&shell(command), vec![Action::Dup { from: read, fd: 0 }], None);
    let _ = sys::close(read);
    Ok((pid?, write))
}
