//! `env`: a program in a changed environment.

use std::ffi::OsString;
use std::path::Path;

use crate::command::{self, environment, request};
use crate::options::{self, Needs, No, Spec};
use crate::program::{Args, Outcome, Output, bytes, fail, os, set_failure, usage, warn};
use crate::quote;

const SPEC: Spec = Spec {
    short: "+C:iS:u:v0",
    long: &[
        ("chdir", Needs, 'C'),
        ("debug", No, 'v'),
        ("ignore-environment", No, 'i'),
        ("null", No, '0'),
        ("split-string", Needs, 'S'),
        ("unset", Needs, 'u'),
    ],
    help: "[OPTION]... [-] [NAME=VALUE]... [COMMAND [ARG]...]",
};

/// Puts the words of `-S` strings where the option was.
fn expand_split(args: Args) -> Result<Args, i32> {
    let mut out: Args = Vec::new();
    let mut rest = args.into_iter();
    out.extend(rest.next());
    while let Some(arg) = rest.next() {
        let text = bytes(&arg);
        let attached = if let Some(value) = text.strip_prefix(b"--split-string=") {
            Some(value.to_vec())
        } else if text == b"--split-string" {
            Some(rest.next().map(|value| bytes(&value).to_vec()).unwrap_or_default())
        } else if let Some(value) =
            text.strip_prefix(b"-vS").or_else(|| text.strip_prefix(b"-iS").or_else(|| text.strip_prefix(b"-S")))
        {
            if text.starts_with(b"-i") {
                out.push("-i".into());
            }
            Some(if value.is_empty() {
                rest.next().map(|value| bytes(&value).to_vec()).unwrap_or_default()
            } else {
                value.to_vec()
            })
        } else {
            None
        };
        match attached {
            Some(string) => {
                out.extend(split(&string)?);
                out.extend(rest);
                return Ok(out);
            }
            None => {
                let ends = !text.starts_with(b"-") || text == b"--";
                let takes_value = matches!(text, b"-u" | b"-C" | b"--unset" | b"--chdir");
                out.push(arg);
                if takes_value {
                    out.extend(rest.next());
                }
                if ends {
                    out.extend(rest);
                    return Ok(out);
                }
            }
        }
    }
    Ok(out)
}

/// Splits as `env -S` does: blanks, quotes, backslashes, `${NAME}` and `#` comments.
fn split(text: &[u8]) -> Result<Vec<OsString>, i32> {
    let mut words = Vec::new();
    let mut word: Option<Vec<u8>> = None;
    let mut quote_mark = None;
    let mut at = 0;
    while let Some(&byte) = text.get(at) {
        at += 1;
        match (byte, quote_mark) {
            (b'\'' | b'"', None) => {
                quote_mark = Some(byte);
                word.get_or_insert_default();
            }
            (mark, Some(open)) if mark == open => quote_mark = None,
            (b' ' | b'\t' | b'\n' | 11 | 12 | b'\r', None) => words.extend(word.take().map(os)),
            (b'#', None) if word.is_none() => break,
            (b'\\', _) if quote_mark != Some(b'\'') || matches!(text.get(at), Some(b'\'' | b'\\')) => {
                let Some(&letter) = text.get(at) else { return Err(fail("invalid backslash at end of string in -S")) };
                at += 1;
                let literal = match letter {
                    b'f' => 12,
                    b'n' => b'\n',
                    b'r' => b'\r',
                    b't' => b'\t',
                    b'v' => 11,
                    b'_' if quote_mark.is_none() => {
                        words.extend(word.take().map(os));
                        continue;
                    }
                    b'_' => b' ',
                    b'c' if quote_mark.is_none() => break,
                    b'"' | b'#' | b'$' | b'\'' | b'\\' => letter,
                    b'c' => return Err(fail("'\\c' must not appear in double-quoted -S string")),
                    other => return Err(fail(format!("invalid sequence '\\{}' in -S", char::from(other)))),
                };
                word.get_or_insert_default().push(literal);
            }
            (b'$', mark) if mark != Some(b'\'') => {
                let end = text[at..].iter().position(|&byte| byte == b'}').map(|end| at + end);
                let is_name = |name: &[u8]| {
                    name.first().is_some_and(|byte| byte.is_ascii_alphabetic() || *byte == b'_')
                        && name.iter().all(|byte| byte.is_ascii_alphanumeric() || *byte == b'_')
                };
                let end = end.filter(|end| text.get(at + 1..*end).is_some_and(is_name));
                let (Some(b'{'), Some(end)) = (text.get(at), end) else {
                    return Err(fail(format!(
                        "only ${{VARNAME}} expansion is supported, error at: {}",
                        String::from_utf8_lossy(&text[at - 1..])
                    )));
                };
                if let Some(value) = std::env::var_os(os(text[at + 1..end].to_vec())) {
                    word.get_or_insert_default().extend_from_slice(bytes(&value));
                }
                at = end + 1;
            }
            (byte, _) => word.get_or_insert_default().push(byte),
        }
    }
    if quote_mark.is_some() {
        return Err(fail("no terminating quote in -S string"));
    }
    words.extend(word.map(os));
    Ok(words)
}

/// Runs `env`.
pub fn main(args: Args) -> Outcome {
    set_failure(125);
    let given = options::parse(expand_split(args)?, &SPEC)?;
    let mut operands = given.operands.clone();
    let mut env = if given.has('i') || operands.first().is_some_and(|first| first == "-") { Vec::new() } else { environment() };
    if operands.first().is_some_and(|first| first == "-") {
        operands.remove(0);
    }
    let same = |entry: &[u8], name: &[u8]| entry.strip_prefix(name).is_some_and(|rest| rest.starts_with(b"="));
    for (_, name) in given.options.iter().filter(|(letter, _)| *letter == 'u') {
        if name.is_empty() || bytes(name).contains(&b'=') {
            return Err(fail(format!("cannot unset {}: Invalid argument", quote::plain(name))));
        }
        env.retain(|entry| !same(entry, bytes(name)));
    }
    while let Some(first) = operands.first()
        && let Some(at) = bytes(first).iter().position(|&byte| byte == b'=')
    {
        let entry = bytes(first).to_vec();
        match env.iter_mut().find(|known| same(known, &entry[..at])) {
            Some(known) if at > 0 => *known = entry,
            _ => env.push(entry),
        }
        operands.remove(0);
    }
    if given.has('C') && operands.is_empty() {
        return Err(usage("must specify command with --chdir (-C)"));
    }
    if given.has('0') && !operands.is_empty() {
        return Err(usage("cannot specify --null (-0) with command"));
    }
    if operands.is_empty() {
        let mut out = Output::new();
        env.iter().for_each(|entry| out.line(entry, if given.has('0') { 0 } else { b'\n' }));
        return Ok(0);
    }
    if let Some(directory) = given.value('C') {
        std::env::set_current_dir(Path::new(directory)).map_err(|error| {
            fail(format!("cannot change directory to {}: {}", quote::always(directory), sys::message(&error)))
        })?;
    }
    let path = env.iter().find_map(|entry| entry.strip_prefix(b"PATH=")).map(|path| os(path.to_vec()));
    let error = request(&operands, env, path.as_deref()).map_or_else(|error| error, command::exec);
    warn(format!("{}: {}", quote::plain(&operands[0]), sys::message(&error)));
    let missing = error.kind() == std::io::ErrorKind::NotFound;
    if missing && bytes(&operands[0]).contains(&b' ') {
        warn("use -[v]S to pass options in shebang lines");
    }
    Err(if missing { 127 } else { 126 })
}
