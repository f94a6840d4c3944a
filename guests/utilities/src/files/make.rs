//! Making and unmaking: `mkdir`, `rmdir`, `mkfifo`, `mknod`, `mktemp`, `truncate`.

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};

use sys::OpenFlags;

use super::mode::{Change, umask};
use crate::basic::{directory, last_component};
use crate::options::{self, May, Needs, No, Spec};
use crate::program::{self, Args, Descriptor, Outcome, Output, bytes, fail, missing_operand, os, usage, warn};
use crate::quote;
use crate::size;

/// `mkdir`.
pub fn mkdir(args: Args) -> Outcome {
    let spec = Spec {
        short: "m:pvZ",
        long: &[("mode", Needs, 'm'), ("parents", No, 'p'), ("verbose", No, 'v'), ("context", May, 'Z')],
        help: "[OPTION]... DIRECTORY...",
    };
    let given = options::parse(args, &spec)?;
    if given.operands.is_empty() {
        return Err(missing_operand(None));
    }
    let mode = match given.value('m') {
        Some(text) => {
            let text = text.to_string_lossy();
            let change = Change::parse(&text).ok_or_else(|| fail(format!("invalid mode {}", quote::plain(text.as_ref()))))?;
            Some(change.apply(0o777, true, umask()))
        }
        None => None,
    };
    let mut out = Output::new();
    let mut status = 0;
    for name in &given.operands {
        let own = |error| (PathBuf::from(name), error);
        let made = if given.has('p') {
            make_parents(Path::new(name), given.has('v'), &mut out)
        } else {
            std::fs::create_dir(name).map(|()| true).map_err(own).inspect(|_| {
                if given.has('v') {
                    out.text(format!("{}: created directory {}\n", program::name(), quote::always(name)));
                }
            })
        };
        let done = made.and_then(|fresh| match mode {
            Some(mode) if fresh => sys::chmod(Path::new(name), true, mode).map_err(own),
            _ => Ok(()),
        });
        if let Err((at, error)) = done {
            out.send();
            warn(format!("cannot create directory {}: {}", quote::plain(at), sys::message(&error)));
            status = 1;
        }
    }
    Ok(status)
}

/// Makes a directory and those above it; tells whether the last one is new, or which one could not be made.
pub fn make_parents(path: &Path, verbose: bool, out: &mut Output) -> Result<bool, (PathBuf, io::Error)> {
    let is_directory = |path: &Path| sys::stat(path, true).is_ok_and(|stat| stat.kind() == sys::stat::S_IFDIR);
    if is_directory(path) {
        return Ok(false);
    }
    let text = bytes(path.as_os_str());
    let mut made = false;
    for end in (1..=text.len()).filter(|&end| end == text.len() || (text[end] == b'/' && text[end - 1] != b'/')) {
        let part = PathBuf::from(os(text[..end].to_vec()));
        if is_directory(&part) {
            made = false;
            continue;
        }
        match std::fs::create_dir(&part) {
            Ok(()) => {
                made = true;
                if verbose {
                    out.text(format!("{}: created directory {}\n", program::name(), quote::always(&part)));
                }
            }
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && end < text.len() => {
                return Err((part, io::Error::from_raw_os_error(sys::errno::ENOTDIR)));
            }
            Err(error) => return Err((part, error)),
        }
    }
    Ok(made)
}

/// `rmdir`.
pub fn rmdir(args: Args) -> Outcome {
    let spec = Spec {
        short: "pv",
        long: &[("ignore-fail-on-non-empty", No, 'i'), ("parents", No, 'p'), ("path", No, 'p'), ("verbose", No, 'v')],
        help: "[OPTION]... DIRECTORY...",
    };
    let given = options::parse(args, &spec)?;
    if given.operands.is_empty() {
        return Err(missing_operand(None));
    }
    let mut out = Output::new();
    let mut status = 0;
    for name in &given.operands {
        let mut current = name.clone();
        loop {
            if given.has('v') {
                out.text(format!("{}: removing directory, {}\n", program::name(), quote::always(&current)));
            }
            if let Err(error) = std::fs::remove_dir(&current) {
                let not_empty = error.raw_os_error() == Some(sys::errno::ENOTEMPTY);
                if !(given.has('i') && not_empty) {
                    out.send();
                    let what = if current == *name { "failed to remove" } else { "failed to remove directory" };
                    warn(format!("{what} {}: {}", quote::always(&current), sys::message(&error)));
                    status = 1;
                }
                break;
            }
            let parent = directory(bytes(&current));
            if !given.has('p') || parent == b"." || parent == b"/" {
                break;
            }
            current = os(parent.to_vec());
        }
    }
    Ok(status)
}

/// The permissions that `-m` asks of a new node: with the mask left out only when they were asked for.
fn node_mode(given: &options::Given) -> Result<Option<u32>, i32> {
    let Some(text) = given.value('m') else { return Ok(None) };
    let text = text.to_string_lossy();
    let change = Change::parse(&text).ok_or_else(|| fail("invalid mode"))?;
    let mode = change.apply(0o666, false, umask());
    if mode & !0o777 != 0 { Err(fail("mode must specify only file permission bits")) } else { Ok(Some(mode)) }
}

fn make_fifo(path: &Path, mode: Option<u32>) -> io::Result<()> {
    sys::mkfifo(path, 0o666)?;
    mode.map_or(Ok(()), |mode| sys::chmod(path, true, mode))
}

/// `mkfifo`.
pub fn mkfifo(args: Args) -> Outcome {
    let spec = Spec { short: "m:Z", long: &[("mode", Needs, 'm'), ("context", May, 'Z')], help: "[OPTION]... NAME..." };
    let given = options::parse(args, &spec)?;
    if given.operands.is_empty() {
        return Err(missing_operand(None));
    }
    let mode = node_mode(&given)?;
    let mut status = 0;
    for name in &given.operands {
        if let Err(error) = make_fifo(Path::new(name), mode) {
            warn(format!("cannot create fifo {}: {}", quote::always(name), sys::message(&error)));
            status = 1;
        }
    }
    Ok(status)
}

/// `mknod`: the sandbox has no devices to name, but pipes.
pub fn mknod(args: Args) -> Outcome {
    let spec =
        Spec { short: "m:Z", long: &[("mode", Needs, 'm'), ("context", May, 'Z')], help: "[OPTION]... NAME TYPE [MAJOR MINOR]" };
    let given = options::parse(args, &spec)?;
    let mode = node_mode(&given)?;
    let [name, kind, numbers @ ..] = given.operands.as_slice() else { return Err(missing_operand(given.operands.last())) };
    let pipe = bytes(kind).starts_with(b"p");
    let wrong = |text: String, also: Option<&str>| {
        warn(text);
        if let Some(also) = also {
            let _ = sys::write_all(2, also.as_bytes());
        }
        program::hint();
        1
    };
    match numbers {
        [extra, rest @ ..] if pipe => {
            let also = (rest.len() == 1).then_some("Fifos do not have major and minor device numbers.\n");
            Err(wrong(format!("extra operand {}", quote::plain(extra)), also))
        }
        [] | [_] if !pipe => {
            let also = numbers.is_empty().then_some("Special files require major and minor device numbers.\n");
            Err(wrong(format!("missing operand after {}", quote::plain(numbers.last().unwrap_or(kind))), also))
        }
        [_, _, extra, ..] => Err(program::extra_operand(extra)),
        _ if pipe => match make_fifo(Path::new(name), mode) {
            Ok(()) => Ok(0),
            Err(error) => Err(fail(format!("{}: {}", quote::maybe(name), sys::message(&error)))),
        },
        _ if matches!(bytes(kind), b"b" | b"c" | b"u") => Err(fail(format!("{}: Operation not permitted", quote::maybe(name)))),
        _ => Err(usage(format!("invalid device type {}", quote::plain(kind)))),
    }
}

/// Letters for names nobody can guess twice.
fn random_letters(count: usize, attempt: u64) -> Vec<u8> {
    const LETTERS: &[u8] = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
    let mut random = crate::text::shuf::Random::from_system(attempt);
    (0..count).map(|_| LETTERS[random.below(LETTERS.len() as u64) as usize]).collect()
}

/// `mktemp`.
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

/// `truncate`.
pub fn truncate(args: Args) -> Outcome {
    let spec = Spec {
        short: "cor:s:",
        long: &[("no-create", No, 'c'), ("io-blocks", No, 'o'), ("reference", Needs, 'r'), ("size", Needs, 's')],
        help: "OPTION... FILE...",
    };
    let given = options::parse(args, &spec)?;
    let mut change = None;
    if let Some(text) = given.value('s') {
        let text = text.to_string_lossy();
        let trimmed = text.trim_start();
        let (sign, digits) = match trimmed.chars().next() {
            Some(sign @ ('+' | '-' | '<' | '>' | '/' | '%')) => (Some(sign), trimmed[1..].trim_start()),
            _ => (None, trimmed),
        };
        let value = size::parse(digits, "KkMmGgTtPEZY").map_err(|_| fail(format!("Invalid number: {}", quote::plain(digits))))?;
        if value == 0 && matches!(sign, Some('/' | '%')) {
            return Err(fail("division by zero"));
        }
        change = Some((sign, if given.has('o') { value.saturating_mul(4096) } else { value }));
    }
    let reference = match given.value('r') {
        Some(file) => Some(
            sys::stat(Path::new(file), true)
                .map_err(|error| fail(format!("cannot stat {}: {}", quote::always(file), sys::message(&error))))?
                .size,
        ),
        None => None,
    };
    match (change, reference) {
        (None, None) => {
            return Err(usage(format!("you must specify either {} or {}", quote::plain("--size"), quote::plain("--reference"))));
        }
        (Some((None, _)), Some(_)) => {
            return Err(usage(format!(
                "you must specify a relative {} with {}",
                quote::plain("--size"),
                quote::plain("--reference")
            )));
        }
        _ => {}
    }
    if given.operands.is_empty() {
        return Err(usage("missing file operand"));
    }
    let mut status = 0;
    for file in &given.operands {
        let flags = OpenFlags { write: true, create: !given.has('c'), ..OpenFlags::default() };
        let opened = match Descriptor::open(file, flags, 0o666) {
            Ok(opened) => opened,
            Err(error) => {
                if !(given.has('c') && error.kind() == io::ErrorKind::NotFound) {
                    warn(format!("cannot open {} for writing: {}", quote::always(file), sys::message(&error)));
                    status = 1;
                }
                continue;
            }
        };
        let now = reference.or_else(|| opened.stat().ok().map(|stat| stat.size)).unwrap_or(0);
        let target = match change {
            None => now,
            Some((None, value)) => value,
            Some((Some('+'), value)) => now.saturating_add(value),
            Some((Some('-'), value)) => now.saturating_sub(value),
            Some((Some('<'), value)) => now.min(value),
            Some((Some('>'), value)) => now.max(value),
            Some((Some('/'), value)) => now / value * value,
            Some((Some(_), value)) => now.div_ceil(value) * value,
        };
        if let Err(error) = sys::truncate_fd(opened.fd(), target) {
            warn(format!("failed to truncate {} at {target} bytes: {}", quote::always(file), sys::message(&error)));
            status = 1;
        }
    }
    Ok(status)
}

/// The last part of a path, as a path of its own.
pub fn base(path: &Path) -> PathBuf {
    PathBuf::from(os(last_component(bytes(path.as_os_str())).to_vec()))
}
