//! Starting another program in one's place: the search through `PATH`, and `nohup`, `nice` and `stdbuf`, which do little else.

use std::ffi::{OsStr, OsString};
use std::io;
use std::path::{Path, PathBuf};

use sys::{OpenFlags, Permission, Request};

use crate::options::{self, Needs, No, Spec};
use crate::program::{Args, Descriptor, Outcome, Output, bytes, fail, os, set_failure, usage, warn};
use crate::quote;

/// Where a program is: as named when the name has a slash, else the first of `PATH`.
pub fn find(name: &OsStr, path: Option<&OsStr>) -> io::Result<PathBuf> {
    if bytes(name).contains(&b'/') {
        return executable(Path::new(name));
    }
    let path = path.map_or_else(|| b"/usr/local/bin:/usr/bin:/bin".to_vec(), |path| bytes(path).to_vec());
    let mut trouble = io::Error::from_raw_os_error(sys::errno::ENOENT);
    for directory in path.split(|&byte| byte == b':') {
        let directory = if directory.is_empty() { PathBuf::from(".") } else { PathBuf::from(os(directory.to_vec())) };
        match executable(&directory.join(name)) {
            Ok(found) => return Ok(found),
            Err(error) if error.raw_os_error() == Some(sys::errno::EACCES) => trouble = error,
            Err(_) => {}
        }
    }
    Err(trouble)
}

fn executable(path: &Path) -> io::Result<PathBuf> {
    let stat = sys::stat(path, true)?;
    if stat.kind() == sys::stat::S_IFDIR || !sys::permits(&stat, Permission::Execute) {
        return Err(io::Error::from_raw_os_error(sys::errno::EACCES));
    }
    if path.is_absolute() { Ok(path.to_owned()) } else { Ok(std::env::current_dir()?.join(path)) }
}

/// The environment of this process as `NAME=value`.
pub fn environment() -> Vec<Vec<u8>> {
    std::env::vars_os().map(|(name, value)| [bytes(&name), b"=", bytes(&value)].concat()).collect()
}

/// A request to start `words` with an environment, looked up along this process's `PATH`.
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

/// The interpreter line of a script, as words; the host starts programs only.
fn interpreter(path: &[u8]) -> Option<Vec<OsString>> {
    let mut input = Descriptor::read_only(Path::new(&os(path.to_vec()))).ok()?;
    let mut head = [0; 256];
    let n = input.fill(&mut head).ok()?;
    let line = head[..n].strip_prefix(b"#!")?;
    let line = line.split(|&byte| byte == b'\n').next()?.trim_ascii();
    let (program, argument) = match line.iter().position(|byte| matches!(byte, b' ' | b'\t')) {
        Some(at) => (&line[..at], line[at..].trim_ascii()),
        None => (line, &b""[..]),
    };
    let mut words = vec![os(program.to_vec())];
    if !argument.is_empty() {
        words.push(os(argument.to_vec()));
    }
    Some(words)
}

/// Makes a request for a script into one for its interpreter.
pub fn through_interpreter(mut request: Request) -> Request {
    // `#!` lines may name scripts in turn, but not for ever.
    for _ in 0..4 {
        let Some(words) = interpreter(&request.path) else { break };
        let script = std::mem::take(&mut request.path);
        let mut args: Vec<Vec<u8>> = words.iter().map(|word| bytes(word).to_vec()).collect();
        args.push(script);
        args.extend(request.args.drain(..).skip(1));
        request.path = bytes(&words[0]).to_vec();
        request.args = args;
    }
    request
}

/// Becomes another program; gives the status of the failure: 127 when it is not there, 126 when it cannot run.
pub fn become_program(words: &[OsString], env: Vec<Vec<u8>>, path: Option<&OsStr>, what: &str) -> i32 {
    let error = match request(words, env, path) {
        Ok(request) => sys::exec(&through_interpreter(request)),
        Err(error) => error,
    };
    warn(format!("{what}{}: {}", quote::plain(&words[0]), sys::message(&error)));
    if error.kind() == io::ErrorKind::NotFound { 127 } else { 126 }
}

fn own_path() -> Option<OsString> {
    std::env::var_os("PATH")
}

/// `nohup`.
pub fn nohup(args: Args) -> Outcome {
    set_failure(125);
    let given = options::parse(args, &Spec { short: "+", long: &[], help: "COMMAND [ARG]..." })?;
    if given.operands.is_empty() {
        return Err(usage("missing operand"));
    }
    if sys::is_terminal(0)
        && let Ok(null) = Descriptor::read_only("/dev/null")
    {
        let _ = sys::dup2(null.fd(), 0);
    }
    if sys::is_terminal(1) {
        let flags = OpenFlags { write: true, create: true, append: true, ..OpenFlags::default() };
        match Descriptor::open("nohup.out", flags, 0o600) {
            Ok(file) => {
                let _ = sys::dup2(file.fd(), 1);
                warn("ignoring input and appending output to 'nohup.out'");
            }
            Err(error) => return Err(fail(format!("failed to open 'nohup.out': {}", sys::message(&error)))),
        }
    }
    if sys::is_terminal(2) {
        let _ = sys::dup2(1, 2);
    }
    let _ = sys::signal_action(sys::Signal::HUP, sys::Disposition::Ignore);
    Err(become_program(&given.operands, environment(), own_path().as_deref(), "failed to run command "))
}

/// `nice`: all processes of a sandbox are equally nice.
pub fn nice(mut args: Args) -> Outcome {
    set_failure(125);
    // `nice -5 command`: the old spelling.
    if let Some(first) = args.get(1).map(|arg| arg.to_string_lossy().into_owned())
        && first.len() > 1
        && first.starts_with('-')
        && first[1..].trim_start_matches(['-', '+']).bytes().all(|byte| byte.is_ascii_digit())
        && first != "--"
    {
        args[1] = format!("-n{}", &first[1..]).into();
    }
    let given =
        options::parse(args, &Spec { short: "+n:", long: &[("adjustment", Needs, 'n')], help: "[OPTION] [COMMAND [ARG]...]" })?;
    if let Some(value) = given.value('n')
        && value.to_string_lossy().trim().parse::<i64>().is_err()
    {
        return Err(fail(format!("invalid adjustment {}", quote::plain(value))));
    }
    if given.operands.is_empty() {
        if given.has('n') {
            return Err(usage("a command must be given with an adjustment"));
        }
        Output::new().text("0\n");
        return Ok(0);
    }
    Err(become_program(&given.operands, environment(), own_path().as_deref(), ""))
}

/// `stdbuf`: how a program buffers is its own business here; it is only started.
pub fn stdbuf(args: Args) -> Outcome {
    set_failure(125);
    let spec = Spec {
        short: "+i:o:e:",
        long: &[("input", Needs, 'i'), ("output", Needs, 'o'), ("error", Needs, 'e')],
        help: "OPTION... COMMAND",
    };
    let given = options::parse(args, &spec)?;
    if given.operands.is_empty() {
        return Err(usage("missing operand"));
    }
    if given.options.is_empty() {
        return Err(usage("you must specify a buffering mode option"));
    }
    Err(become_program(&given.operands, environment(), own_path().as_deref(), "failed to run command "))
}

/// `setsid`: a new process group is as far as a sandbox's sessions go.
pub fn setsid(args: Args) -> Outcome {
    let spec = Spec {
        short: "+cfw",
        long: &[("ctty", No, 'c'), ("fork", No, 'f'), ("wait", No, 'w')],
        help: "[options] <program> [arguments ...]",
    };
    let given = options::parse(args, &spec)?;
    if given.operands.is_empty() {
        return Err(usage("no command specified"));
    }
    let _ = sys::set_group(0, 0);
    Err(become_program(&given.operands, environment(), own_path().as_deref(), "failed to execute "))
}
