//! The smallest utilities: a few lines of behaviour each.

use std::ffi::OsString;
use std::path::Path;
use std::time::Duration;

use common::escape;

use crate::files::paths::{Must, resolve};
use crate::options::{self, Needs, No, Spec};
use crate::program::{self, Args, BLOCK, Outcome, Output, bytes, fail, missing_operand};
use crate::quote;

/// `true`.
pub fn r#true(_: Args) -> Outcome {
    Ok(0)
}

/// `false`.
pub fn r#false(_: Args) -> Outcome {
    Ok(1)
}

/// `echo`.
pub fn echo(args: Args) -> Outcome {
    let mut words = args.iter().skip(1).map(|arg| bytes(arg)).peekable();
    let (mut newline, mut escapes) = (true, false);
    while let Some(word) = words.peek() {
        let letters = match word.split_first() {
            Some((b'-', letters)) if !letters.is_empty() && letters.iter().all(|letter| b"neE".contains(letter)) => letters,
            _ => break,
        };
        for letter in letters {
            match letter {
                b'n' => newline = false,
                b'e' => escapes = true,
                _ => escapes = false,
            }
        }
        words.next();
    }
    let mut out = Output::new();
    let mut first = true;
    for word in words {
        if !first {
            out.byte(b' ');
        }
        first = false;
        if !escapes {
            out.put(word);
            continue;
        }
        let mut text = Vec::new();
        let more = escape::unescape(word, escape::ECHO, &mut text);
        out.put(&text);
        if !more {
            return Ok(0);
        }
    }
    if newline {
        out.byte(b'\n');
    }
    Ok(0)
}

/// `yes`.
pub fn yes(args: Args) -> Outcome {
    let given = options::parse(args, &Spec { short: "", long: &[], help: "[STRING]..." })?;
    let mut line = given.operands.iter().map(|word| bytes(word)).collect::<Vec<_>>().join(&b' ');
    if given.operands.is_empty() {
        line.push(b'y');
    }
    line.push(b'\n');
    let block = line.repeat((BLOCK / line.len()).max(1));
    loop {
        if let Err(error) = sys::write_all(1, &block) {
            return Err(fail(format!("standard output: {}", sys::message(&error))));
        }
    }
}

/// `printenv`.
pub fn printenv(args: Args) -> Outcome {
    program::set_failure(2);
    let spec = Spec { short: "+0", long: &[("null", No, '0')], help: "[OPTION]... [VARIABLE]..." };
    let given = options::parse(args, &spec)?;
    let end = if given.has('0') { 0 } else { b'\n' };
    let mut out = Output::new();
    if given.operands.is_empty() {
        for (name, value) in std::env::vars_os() {
            out.put(bytes(&name));
            out.byte(b'=');
            out.line(bytes(&value), end);
        }
        return Ok(0);
    }
    let mut status = 0;
    for name in &given.operands {
        match std::env::var_os(name).filter(|_| !bytes(name).contains(&b'=') && !name.is_empty()) {
            Some(value) => out.line(bytes(&value), end),
            None => status = 1,
        }
    }
    Ok(status)
}

/// `basename`.
pub fn basename(args: Args) -> Outcome {
    let spec =
        Spec { short: "+as:z", long: &[("multiple", No, 'a'), ("suffix", Needs, 's'), ("zero", No, 'z')], help: "NAME [SUFFIX]" };
    let mut given = options::parse(args, &spec)?;
    let end = if given.has('z') { 0 } else { b'\n' };
    let mut suffix = given.value('s').map(OsString::from);
    if given.operands.is_empty() {
        return Err(missing_operand(None));
    }
    if suffix.is_none() && !given.has('a') {
        if let Some(extra) = given.operands.get(2) {
            return Err(program::extra_operand(extra));
        }
        if given.operands.len() == 2 {
            suffix = given.operands.pop();
        }
    }
    let mut out = Output::new();
    for name in &given.operands {
        let mut base = last_component(bytes(name));
        if let Some(suffix) = &suffix
            && base.len() > suffix.len()
        {
            base = base.strip_suffix(bytes(suffix)).unwrap_or(base);
        }
        out.line(base, end);
    }
    Ok(0)
}

/// What follows the last slash, trailing slashes aside.
pub fn last_component(path: &[u8]) -> &[u8] {
    let end = path.iter().rposition(|&byte| byte != b'/').map_or(0, |at| at + 1);
    if end == 0 {
        return &path[..path.len().min(1)];
    }
    let start = path[..end].iter().rposition(|&byte| byte == b'/').map_or(0, |at| at + 1);
    &path[start..end]
}

/// What comes before the last component.
pub fn directory(path: &[u8]) -> &[u8] {
    let end = path.iter().rposition(|&byte| byte != b'/').map_or(0, |at| at + 1);
    if end == 0 {
        return if path.is_empty() { b"." } else { b"/" };
    }
    match path[..end].iter().rposition(|&byte| byte == b'/') {
        None => b".",
        Some(slash) => match path[..slash].iter().rposition(|&byte| byte != b'/') {
            None => b"/",
            Some(last) => &path[..=last],
        },
    }
}

/// `dirname`.
pub fn dirname(args: Args) -> Outcome {
    let spec = Spec { short: "z", long: &[("zero", No, 'z')], help: "[OPTION] NAME..." };
    let given = options::parse(args, &spec)?;
    if given.operands.is_empty() {
        return Err(missing_operand(None));
    }
    let mut out = Output::new();
    for name in &given.operands {
        out.line(directory(bytes(name)), if given.has('z') { 0 } else { b'\n' });
    }
    Ok(0)
}

/// `pwd`.
pub fn pwd(args: Args) -> Outcome {
    let spec = Spec { short: "LP", long: &[("logical", No, 'L'), ("physical", No, 'P')], help: "[OPTION]..." };
    let given = options::parse(args, &spec)?;
    if !given.operands.is_empty() {
        program::warn("ignoring non-option arguments");
    }
    let logical = given.options.last().is_some_and(|(letter, _)| *letter == 'L');
    if logical
        && let Some(pwd) = std::env::var_os("PWD")
        && Path::new(&pwd).is_absolute()
        && !bytes(&pwd).split(|&byte| byte == b'/').any(|part| part == b"." || part == b"..")
        && let (Ok(there), Ok(here)) = (sys::stat(Path::new(&pwd), true), sys::stat(Path::new("."), true))
        && (there.dev, there.ino) == (here.dev, here.ino)
    {
        Output::new().line(bytes(&pwd), b'\n');
        return Ok(0);
    }
    match resolve(Path::new("."), Must::Exist, true).or_else(|_| std::env::current_dir()) {
        Ok(path) => {
            Output::new().line(bytes(path.as_os_str()), b'\n');
            Ok(0)
        }
        Err(error) => Err(fail(sys::message(&error))),
    }
}

/// A time span such as `1.5m`; `None` when it is none.
pub fn duration(text: &str) -> Option<Duration> {
    let (number, scale) = match text.char_indices().next_back()? {
        (at, 's') => (&text[..at], 1.0),
        (at, 'm') => (&text[..at], 60.0),
        (at, 'h') => (&text[..at], 3600.0),
        (at, 'd') => (&text[..at], 86400.0),
        _ => (text, 1.0),
    };
    let trimmed = number.trim_start();
    if trimmed.starts_with("nan") || trimmed.starts_with("NaN") {
        return None;
    }
    let seconds: f64 = match text {
        "inf" | "infinity" => f64::INFINITY,
        _ => trimmed.parse().ok()?,
    };
    let seconds = seconds * scale;
    if seconds < 0.0 || (seconds == 0.0 && trimmed.starts_with('-')) {
        return None;
    }
    Some(Duration::try_from_secs_f64(seconds).unwrap_or(Duration::from_secs(u32::MAX.into())))
}

/// `sleep`.
pub fn sleep(args: Args) -> Outcome {
    let given = options::parse(args, &Spec { short: "", long: &[], help: "NUMBER[SUFFIX]..." })?;
    if given.operands.is_empty() {
        return Err(missing_operand(None));
    }
    let mut total = Duration::ZERO;
    let mut bad = false;
    for operand in &given.operands {
        match operand.to_str().and_then(duration) {
            Some(span) => total = total.saturating_add(span),
            None => {
                program::warn(format!("invalid time interval {}", quote::plain(operand)));
                bad = true;
            }
        }
    }
    if bad {
        program::hint();
        return Err(1);
    }
    if !total.is_zero() {
        std::thread::sleep(total);
    }
    Ok(0)
}

/// `link`.
pub fn link(args: Args) -> Outcome {
    let given = options::parse(args, &Spec { short: "", long: &[], help: "FILE1 FILE2" })?;
    let [from, to] = given.operands.as_slice() else {
        return Err(match given.operands.get(2) {
            Some(extra) => program::extra_operand(extra),
            None => missing_operand(given.operands.last()),
        });
    };
    sys::link(Path::new(from), Path::new(to)).map_err(|error| {
        fail(format!("cannot create link {} to {}: {}", quote::always(to), quote::always(from), sys::message(&error)))
    })?;
    Ok(0)
}

/// `unlink`.
pub fn unlink(args: Args) -> Outcome {
    let given = options::parse(args, &Spec { short: "", long: &[], help: "FILE" })?;
    let [file] = given.operands.as_slice() else {
        return Err(match given.operands.get(1) {
            Some(extra) => program::extra_operand(extra),
            None => missing_operand(None),
        });
    };
    std::fs::remove_file(file)
        .map_err(|error| fail(format!("cannot unlink {}: {}", quote::always(file), sys::message(&error))))?;
    Ok(0)
}

/// `sync`: the host commits when the command ends.
pub fn sync(args: Args) -> Outcome {
    let spec = Spec { short: "df", long: &[("data", No, 'd'), ("file-system", No, 'f')], help: "[OPTION] [FILE]..." };
    let given = options::parse(args, &spec)?;
    if given.has('d') && given.operands.is_empty() {
        return Err(program::usage("--data needs at least one argument"));
    }
    let mut status = 0;
    for file in &given.operands {
        if let Err(error) = sys::stat(Path::new(file), true) {
            status = fail(format!("error opening {}: {}", quote::always(file), sys::message(&error)));
        }
    }
    Ok(status)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_fall_apart_as_posix_says() {
        for (path, dir, base) in
            [("/a/b", "/a", "b"), ("a", ".", "a"), ("/", "/", "/"), ("a/b//", "a", "b"), ("//a", "/", "a"), ("a//b", "a", "b")]
        {
            assert_eq!(directory(path.as_bytes()), dir.as_bytes(), "dirname {path}");
            assert_eq!(last_component(path.as_bytes()), base.as_bytes(), "basename {path}");
        }
    }

    #[test]
    fn spans_have_units() {
        assert_eq!(duration("1.5m"), Some(Duration::from_secs(90)));
        assert_eq!(duration("x"), None);
        assert_eq!(duration("-1"), None);
    }
}
