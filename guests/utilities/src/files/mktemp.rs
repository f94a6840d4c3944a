//! `mktemp`: a file or a directory with a name of its own.

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};

use sys::OpenFlags;

use crate::options::{self, May, Needs, No, Spec};
use crate::program::{Args, Descriptor, Outcome, Output, bytes, fail, os, usage};
use crate::quote;

/// Letters for unpredictable names.
fn random_letters(count: usize, attempt: u64) -> Vec<u8> {
    const LETTERS: &[u8] = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
    let mut random = crate::text::shuf::Random::from_system(attempt);
    (0..count).map(|_| LETTERS[random.below(LETTERS.len() as u64) as usize]).collect()
}

/// Runs `mktemp`.
pub fn mktemp(args: Args) -> Outcome {
    let spec = Spec {
        short: "dp:qtuV",
        long: &[("directory", No, 'd'), ("dry-run", No, 'u'), ("quiet", No, 'q'), ("suffix", Needs, 's'), ("tmpdir", May, 'P')],
        help: "[OPTION]... [TEMPLATE]",
    };
    let given = options::parse(args, &spec)?;
    if let Some(extra) = given.operands.get(1) {
        let _ = extra;
        return Err(usage("too many templates"));
    }
    let environment = || std::env::var_os("TMPDIR").filter(|value| !value.is_empty());
    let implied = given.operands.is_empty();
    let template = given.operands.first().cloned().unwrap_or_else(|| "tmp.XXXXXXXXXX".into());
    let template = bytes(&template).to_vec();
    let explicit = given.options.iter().rev().find(|(letter, _)| matches!(letter, 'p' | 'P')).map(|(_, value)| value.clone());
    let tmpdir: Option<OsString> = if given.has('t') {
        environment().or_else(|| explicit.clone().filter(|value| !value.is_empty())).or_else(|| Some("/tmp".into()))
    } else if explicit.is_some() || implied {
        explicit.filter(|value| !value.is_empty()).or_else(environment).or_else(|| Some("/tmp".into()))
    } else {
        None
    };
    let shown = String::from_utf8_lossy(&template).into_owned();
    let (body, suffix) = match given.value('s') {
        Some(suffix) => {
            if template.last() != Some(&b'X') {
                return Err(fail(format!("with --suffix, template {} must end in X", quote::plain(&shown))));
            }
            (template.clone(), bytes(suffix).to_vec())
        }
        None => {
            let end = template.iter().rposition(|&byte| byte == b'X').map_or(0, |at| at + 1);
            (template[..end].to_vec(), template[end..].to_vec())
        }
    };
    if suffix.contains(&b'/') {
        return Err(fail(format!("invalid suffix {}, contains directory separator", quote::plain(os(suffix)))));
    }
    let count = body.iter().rev().take_while(|&&byte| byte == b'X').count();
    if count < 3 {
        return Err(fail(format!("too few X's in template {}", quote::plain(&shown))));
    }
    if let Some(dir) = &tmpdir {
        if given.has('t') && template.contains(&b'/') {
            return Err(fail(format!("invalid template, {}, contains directory separator", quote::plain(&shown))));
        }
        if template.starts_with(b"/") {
            return Err(fail(format!("invalid template, {}; with --tmpdir, it may not be absolute", quote::plain(&shown))));
        }
        let _ = dir;
    }
    let stem = &body[..body.len() - count];
    for attempt in 0..100 {
        let name = [stem, &random_letters(count, attempt), &suffix].concat();
        let path = match &tmpdir {
            Some(dir) => {
                let joint: &[u8] = if bytes(dir).ends_with(b"/") { b"" } else { b"/" };
                PathBuf::from(os([bytes(dir), joint, &name].concat()))
            }
            None => PathBuf::from(os(name)),
        };
        let made = if given.has('u') {
            if sys::stat(&path, false).is_ok() { Err(io::ErrorKind::AlreadyExists.into()) } else { Ok(()) }
        } else if given.has('d') {
            std::fs::create_dir(&path).and_then(|()| sys::chmod(&path, true, 0o700))
        } else {
            let flags = OpenFlags { read: true, write: true, create: true, exclusive: true, ..OpenFlags::default() };
            Descriptor::open(&path, flags, 0o600).and_then(|_| sys::chmod(&path, true, 0o600))
        };
        match made {
            Ok(()) => {
                Output::new().line(bytes(path.as_os_str()), b'\n');
                return Ok(0);
            }
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => {
                if given.has('q') {
                    return Err(1);
                }
                let full = match &tmpdir {
                    Some(dir) => Path::new(dir).join(&shown),
                    None => PathBuf::from(&shown),
                };
                let what = if given.has('d') { "directory" } else { "file" };
                return Err(fail(format!(
                    "failed to create {what} via template {}: {}",
                    quote::plain(full),
                    sys::message(&error)
                )));
            }
        }
    }
    Err(fail(format!("failed to create file via template {}: File exists", quote::plain(shown))))
}
