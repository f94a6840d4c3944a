//! From a path to a program: a guest's own, or a script with its `#!` line.

use std::sync::Arc;

use abi::Errno;
use abi::spawn::Request;
use abi::stat::{S_IFDIR, S_IFREG};
use sqlite_fs::Volume;
use sqlite_fs::path::Last;

use super::fault::Exec;
use super::state::Start;
use super::{Ended, Fault, Job};
use crate::host::Prepared;
use crate::programs;
use crate::vfs::{ROOT_NODE, TOOL, Thing};

/// Maximum nesting of script interpreters, as on Linux.
const MAX_INTERPRETERS: usize = 4;

/// Maximum length of a `#!` line, as on Linux.
const SHEBANG_BYTES: usize = 256;

/// A guest module, and the selected program in it.
type Program = (&'static guests::Guest, &'static str);

/// Returns the fault that replaces the calling process by another program. A program that cannot be run is an errno, while the
/// caller still exists.
pub(crate) fn exec(job: &Job, request: Request) -> Result<Ended, Fault> {
    let (prepared, start) = find(job, &request)?;
    Ok(Ended::Exec(Arc::new(Exec { actions: request.actions, prepared, start })))
}

/// Finds the program of a request and its arguments.
pub(crate) fn find(job: &Job, request: &Request) -> Result<(Prepared, Start), Fault> {
    let text = request.args.iter().chain(&request.env).map(Vec::len).sum::<usize>() as u64;
    if text > job.meter.limits().command_text.0 {
        return Err(Errno::TOOBIG.into());
    }
    let mut path = request.path.clone();
    let mut args = request.args.clone();
    for _ in 0..MAX_INTERPRETERS {
        let name = std::str::from_utf8(&path).map_err(|_| Errno::NOENT)?;
        let (node, _) = job.view.find(ROOT_NODE, name, Last::Follow)?;
        match job.view.thing(node) {
            Some(&Thing::Program(guest, program)) => {
                let args = as_tool(job, name, &args).unwrap_or(args);
                return started(job, request, (guest, program), args);
            }
            Some(Thing::Own) => {
                let prepared = job.view.own_program(node).ok_or(Errno::NOENT)?.clone();
                return Ok(own(request, prepared, args));
            }
            Some(_) => return Err(Errno::ACCES.into()),
            None => {}
        }
        let stat = job.view.attributes(node)?;
        if stat.kind() == S_IFDIR || stat.kind() != S_IFREG || stat.mode & 0o111 == 0 {
            return Err(Errno::ACCES.into());
        }
        let mut head = [0; SHEBANG_BYTES];
        let length = job.view.read(node, 0, &mut head)?;
        let head = head.get(..length).unwrap_or_default();
        if let Some(program) = abi::program::named(head) {
            return match original(job, program)? {
                Original::Guest(program) => started(job, request, program, args),
                Original::Own(prepared) => Ok(own(request, prepared, args)),
            };
        }
        let (interpreter, argument) = shebang(head).ok_or(Errno::NOEXEC)?;
        let mut new_args = vec![interpreter.to_vec()];
        new_args.extend(argument.map(<[u8]>::to_vec));
        new_args.push(path);
        new_args.extend(args.into_iter().skip(1));
        path = interpreter.to_vec();
        args = new_args;
    }
    Err(Errno::LOOP.into())
}

// The arguments of a command that is a function of the embedding program, in the form of the program `tool`: its name, and a JSON
// list.
fn as_tool(job: &Job, path: &str, args: &[Vec<u8>]) -> Option<Vec<Vec<u8>>> {
    let name = path.rsplit('/').next().filter(|name| job.view.is_tool(name))?;
    let words: Vec<_> = args.iter().skip(1).map(|word| String::from_utf8_lossy(word)).collect();
    let words = serde_json::to_string(&words).ok()?;
    Some(vec![TOOL.into(), name.into(), words.into_bytes()])
}

// A program that only this sandbox has.
fn own(request: &Request, prepared: Prepared, args: Vec<Vec<u8>>) -> (Prepared, Start) {
    (prepared, Start { args, env: request.env.clone(), cwd: request.cwd.clone() })
}

fn started(job: &Job, request: &Request, (guest, program): Program, args: Vec<Vec<u8>>) -> Result<(Prepared, Start), Fault> {
    let paused = job.meter.pause();
    let prepared = job.host.prepared(guest).map_err(|_| Errno::NOEXEC)?;
    drop(paused);
    // Only a module with many programs needs to know which one is selected.
    let args = if std::ptr::eq(guest, &guests::SHELL) { abi::program::arguments(program, args) } else { args };
    Ok((prepared, Start { args, env: request.env.clone(), cwd: request.cwd.clone() }))
}

/// The original of a copied file.
enum Original {
    Guest(Program),
    Own(Prepared),
}

// The program that a copied file names, if this sandbox has it.
fn original(job: &Job, name: &str) -> Result<Original, Errno> {
    for directory in [programs::DIRECTORY, "/usr/bin"] {
        let Ok((node, _)) = job.view.find(ROOT_NODE, &format!("{directory}/{name}"), Last::Follow) else { continue };
        match (job.view.thing(node), job.view.own_program(node)) {
            (_, Some(prepared)) => return Ok(Original::Own(prepared.clone())),
            (Some(&Thing::Program(guest, program)), _) => return Ok(Original::Guest((guest, program))),
            _ => {}
        }
    }
    Err(Errno::NOEXEC)
}

// `#! interpreter [one argument]`, as the kernel reads it.
fn shebang(head: &[u8]) -> Option<(&[u8], Option<&[u8]>)> {
    let line = head.strip_prefix(b"#!")?;
    let line = line.split(|&byte| byte == b'\n').next()?.trim_ascii();
    let end = line.iter().position(|byte| matches!(byte, b' ' | b'\t')).unwrap_or(line.len());
    let (interpreter, rest) = line.split_at_checked(end)?;
    let argument = rest.trim_ascii();
    (!interpreter.is_empty()).then_some((interpreter, (!argument.is_empty()).then_some(argument)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(head: &str, expected: Option<(&str, Option<&str>)>) {
        let found = shebang(head.as_bytes());
        let expected = expected.map(|(path, argument)| (path.as_bytes(), argument.map(str::as_bytes)));
        assert_eq!(found, expected, "{head:?}");
    }

    #[test]
    fn a_shebang_line_is_read_as_the_kernel_reads_it() {
        check("#!/bin/bash\necho", Some(("/bin/bash", None)));
        check("#! /usr/bin/env  python3 -u \n", Some(("/usr/bin/env", Some("python3 -u"))));
        check("#!\n", None);
        check("echo hi\n", None);
        check("", None);
    }
}
