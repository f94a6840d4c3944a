//! Where a path really leads: `readlink` and `realpath`.

use std::collections::VecDeque;
use std::ffi::{OsStr, OsString};
use std::io;
use std::path::{Path, PathBuf};

use crate::options::{self, Needs, No, Spec};
use crate::program::{Args, Outcome, Output, bytes, fail, missing_operand, os, usage, warn, warn_file};
use crate::quote;

/// Which parts of a path must be there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Must {
    /// All of them.
    Exist,
    /// All but the last.
    ExistButLast,
    /// None.
    Nothing,
}

/// Links followed before giving up, as Linux does.
const MOST_LINKS: u32 = 40;

/// Returns the absolute path without links, `.` and `..`; with `follow` off only the dots go.
pub fn resolve(path: &Path, must: Must, follow: bool) -> io::Result<PathBuf> {
    let text = bytes(path.as_os_str());
    if text.is_empty() {
        return Err(io::Error::from_raw_os_error(sys::errno::ENOENT));
    }
    let mut todo: VecDeque<Vec<u8>> = parts(text);
    let mut done: Vec<Vec<u8>> = Vec::new();
    if !text.starts_with(b"/") {
        let here = std::env::current_dir()?;
        let here = if follow { resolve(&here, Must::Nothing, true)? } else { here };
        done = parts(bytes(here.as_os_str())).into();
    }
    let wants_directory = text.ends_with(b"/");
    let mut links = 0;
    while let Some(part) = todo.pop_front() {
        match part.as_slice() {
            b"." => continue,
            b".." => {
                done.pop();
                continue;
            }
            _ => done.push(part),
        }
        let here = joined(&done);
        let last = todo.iter().all(|part| part == b".");
        let stat = match sys::stat(&here, false) {
            Ok(stat) => stat,
            Err(error) => match must {
                Must::Nothing => continue,
                Must::ExistButLast if last && error.kind() == io::ErrorKind::NotFound => continue,
                _ => return Err(error),
            },
        };
        if stat.kind() == sys::stat::S_IFLNK && follow {
            links += 1;
            if links > MOST_LINKS {
                if must == Must::Nothing {
                    continue;
                }
                return Err(io::Error::from_raw_os_error(sys::errno::ELOOP));
            }
            let target = std::fs::read_link(&here)?;
            let target = bytes(target.as_os_str());
            done.pop();
            if target.starts_with(b"/") {
                done.clear();
            }
            for part in parts(target).into_iter().rev() {
                todo.push_front(part);
            }
        } else if stat.kind() != sys::stat::S_IFDIR
            && stat.kind() != sys::stat::S_IFLNK
            && (!todo.is_empty() || wants_directory)
            && must != Must::Nothing
        {
            return Err(io::Error::from_raw_os_error(sys::errno::ENOTDIR));
        }
    }
    Ok(joined(&done))
}

fn parts(path: &[u8]) -> VecDeque<Vec<u8>> {
    path.split(|&byte| byte == b'/').filter(|part| !part.is_empty()).map(<[u8]>::to_vec).collect()
}

fn joined(parts: &[Vec<u8>]) -> PathBuf {
    let mut path = Vec::new();
    for part in parts {
        path.push(b'/');
        path.extend_from_slice(part);
    }
    if path.is_empty() {
        path.push(b'/');
    }
    PathBuf::from(os(path))
}

/// Returns the way from one absolute path to another.
pub fn relative(from: &Path, to: &Path) -> OsString {
    let (from, to) = (parts(bytes(from.as_os_str())), parts(bytes(to.as_os_str())));
    let common = from.iter().zip(&to).take_while(|(a, b)| a == b).count();
    let mut words: Vec<Vec<u8>> = vec![b"..".to_vec(); from.len() - common];
    words.extend(to.into_iter().skip(common));
    if words.is_empty() { ".".into() } else { os(words.join(&b'/')) }
}

/// Runs `readlink`.
pub fn readlink(args: Args) -> Outcome {
    let spec = Spec {
        short: "efmnqsvz",
        long: &[
            ("canonicalize", No, 'f'),
            ("canonicalize-existing", No, 'e'),
            ("canonicalize-missing", No, 'm'),
            ("no-newline", No, 'n'),
            ("quiet", No, 'q'),
            ("silent", No, 's'),
            ("verbose", No, 'v'),
            ("zero", No, 'z'),
        ],
        help: "[OPTION]... FILE...",
    };
    let given = options::parse(args, &spec)?;
    if given.operands.is_empty() {
        return Err(missing_operand(None));
    }
    let must = given.options.iter().rev().find_map(|(letter, _)| match letter {
        'f' => Some(Must::ExistButLast),
        'e' => Some(Must::Exist),
        'm' => Some(Must::Nothing),
        _ => None,
    });
    let mut end: &[u8] = if given.has('z') { b"\0" } else { b"\n" };
    if given.has('n') {
        if given.operands.len() > 1 {
            warn("ignoring --no-newline with multiple arguments");
        } else {
            end = b"";
        }
    }
    let mut out = Output::new();
    let mut status = 0;
    for file in &given.operands {
        let found = match must {
            Some(must) => resolve(Path::new(file), must, true),
            None => std::fs::read_link(file),
        };
        match found {
            Ok(path) => {
                out.put(bytes(path.as_os_str()));
                out.put(end);
            }
            Err(error) => {
                status = 1;
                if given.has('v') {
                    warn_file(file, &error);
                }
            }
        }
    }
    Ok(status)
}

/// Runs `realpath`.
pub fn realpath(args: Args) -> Outcome {
    let spec = Spec {
        short: "emqszLP",
        long: &[
            ("canonicalize-existing", No, 'e'),
            ("canonicalize-missing", No, 'm'),
            ("relative-to", Needs, 'r'),
            ("relative-base", Needs, 'b'),
            ("quiet", No, 'q'),
            ("strip", No, 's'),
            ("no-symlinks", No, 's'),
            ("zero", No, 'z'),
            ("logical", No, 'L'),
            ("physical", No, 'P'),
        ],
        help: "[OPTION]... FILE...",
    };
    let given = options::parse(args, &spec)?;
    if given.operands.is_empty() {
        return Err(usage("missing operand"));
    }
    let must = match given.options.iter().rev().find(|(letter, _)| matches!(letter, 'e' | 'm')) {
        Some(('e', _)) => Must::Exist,
        Some(_) => Must::Nothing,
        None => Must::ExistButLast,
    };
    let logical =
        given.options.iter().rev().find(|(letter, _)| matches!(letter, 'L' | 'P' | 's')).map_or('P', |(letter, _)| *letter);
    let find = |file: &OsStr| -> io::Result<PathBuf> {
        match logical {
            's' => resolve_text(Path::new(file), must),
            'L' => resolve(&resolve_text(Path::new(file), Must::Nothing)?, must, true),
            _ => resolve(Path::new(file), must, true),
        }
    };
    let directory = |letter: char| -> Result<Option<PathBuf>, i32> {
        let Some(dir) = given.value(letter) else { return Ok(None) };
        let path = find(dir).map_err(|error| {
            warn_file(dir, &error);
            1
        })?;
        if must == Must::Exist && !sys::stat(&path, true).is_ok_and(|stat| stat.kind() == sys::stat::S_IFDIR) {
            return Err(fail(format!("{}: Not a directory", quote::maybe(dir))));
        }
        Ok(Some(path))
    };
    let base = directory('b')?;
    let to = directory('r')?.or_else(|| base.clone());
    let to = match (&to, &base) {
        // Below the base or not relative at all.
        (Some(to), Some(base)) if !to.starts_with(base) => None,
        _ => to,
    };
    let mut out = Output::new();
    let mut status = 0;
    for file in &given.operands {
        match find(file) {
            Ok(path) => {
                let shown = match &to {
                    Some(to) if base.as_ref().is_none_or(|base| path.starts_with(base)) => relative(to, &path),
                    _ => path.into_os_string(),
                };
                out.line(bytes(&shown), if given.has('z') { 0 } else { b'\n' });
            }
            Err(error) => {
                status = 1;
                if !given.has('q') {
                    out.send();
                    warn_file(file, &error);
                }
            }
        }
    }
    Ok(status)
}

/// Resolves dots without looking through links, but still asks whether the parts are there.
fn resolve_text(path: &Path, must: Must) -> io::Result<PathBuf> {
    let clean = resolve(path, Must::Nothing, false)?;
    if must != Must::Nothing {
        let seen = sys::stat(&clean, must == Must::Exist);
        if let Err(error) = seen
            && (must == Must::Exist || clean.parent().is_some_and(|parent| sys::stat(parent, true).is_err()))
        {
            return Err(error);
        }
    }
    Ok(clean)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_way_between_paths() {
        for (from, to, way) in [("/a/b", "/a/c", "../c"), ("/a", "/a", "."), ("/", "/x", "x"), ("/a/b", "/", "../..")] {
            assert_eq!(relative(Path::new(from), Path::new(to)), way);
        }
    }
}
