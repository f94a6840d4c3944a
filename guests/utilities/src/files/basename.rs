//! `basename` and `dirname`: the two halves of a path.

use std::ffi::OsString;

use crate::options::{self, Needs, No, Spec};
use crate::program::{self, Args, Outcome, Output, bytes, missing_operand};

/// Runs `basename`.
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

/// Returns the text after the last slash, ignoring trailing slashes.
pub fn last_component(path: &[u8]) -> &[u8] {
    let end = path.iter().rposition(|&byte| byte != b'/').map_or(0, |at| at + 1);
    if end == 0 {
        return &path[..path.len().min(1)];
    }
    let start = path[..end].iter().rposition(|&byte| byte == b'/').map_or(0, |at| at + 1);
    &path[start..end]
}

/// Returns the text before the last component.
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

/// Returns a path without its first `count` directories; `None` when it has no more than those.
pub fn without_directories(path: &[u8], count: usize) -> Option<&[u8]> {
    let mut rest = path;
    for _ in 0..count {
        let slash = rest.iter().position(|&byte| byte == b'/')?;
        let next = rest[slash..].iter().position(|&byte| byte != b'/').map_or(rest.len(), |length| slash + length);
        rest = &rest[next..];
    }
    (!rest.is_empty()).then_some(rest)
}

/// Runs `dirname`.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn leading_directories_are_taken_off() {
        for (path, count, left) in
            [("a/b/c", 1, Some("b/c")), ("a//b", 1, Some("b")), ("/a", 1, Some("a")), ("a", 1, None), ("a/", 1, None)]
        {
            assert_eq!(without_directories(path.as_bytes(), count), left.map(str::as_bytes), "{path}");
        }
    }

    #[test]
    fn paths_are_split_as_posix_requires() {
        for (path, dir, base) in
            [("/a/b", "/a", "b"), ("a", ".", "a"), ("/", "/", "/"), ("a/b//", "a", "b"), ("//a", "/", "a"), ("a//b", "a", "b")]
        {
            assert_eq!(directory(path.as_bytes()), dir.as_bytes(), "dirname {path}");
            assert_eq!(last_component(path.as_bytes()), base.as_bytes(), "basename {path}");
        }
    }
}
