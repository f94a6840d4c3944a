//! `ln`, and the rules for where a file goes that `cp` and `mv` share.

use std::ffi::OsString;
use std::io::{self, BufRead};
use std::path::{Path, PathBuf};

use super::mkdir::base;
use super::paths::{Must, relative, resolve};
use crate::options::{self, Given, May, Needs, No, Spec};
use crate::program::{self, Args, Outcome, Output, bytes, fail, os, usage};
use crate::quote;

/// Where things go.
pub struct Target {
    /// What is linked, copied or moved.
    pub sources: Vec<OsString>,
    /// The directory or the new name.
    pub place: PathBuf,
    /// Whether `place` is a directory that receives the sources.
    pub into: bool,
}

/// Returns whether the path leads to a directory.
pub fn is_directory(path: &Path) -> bool {
    sys::stat(path, true).is_ok_and(|stat| stat.kind() == sys::stat::S_IFDIR)
}

/// Sorts operands into sources and target: `-t DIR`, `-T`, or by looking at the last one.
pub fn target(given: &Given, keep_link: bool) -> Result<Target, i32> {
    let mut sources = given.operands.clone();
    if sources.is_empty() {
        return Err(usage("missing file operand"));
    }
    if let Some(directory) = given.value('t') {
        if given.has('T') {
            return Err(fail("cannot combine --target-directory (-t) and --no-target-directory (-T)"));
        }
        let place = PathBuf::from(directory);
        if !is_directory(&place) {
            return Err(match sys::stat(&place, true) {
                Ok(_) => fail(format!("target directory {}: Not a directory", quote::always(&place))),
                Err(error) => fail(format!("target directory {}: {}", quote::always(&place), sys::message(&error))),
            });
        }
        return Ok(Target { sources, place, into: true });
    }
    if sources.len() == 1 {
        return Err(usage(format!("missing destination file operand after {}", quote::always(&sources[0]))));
    }
    let place = PathBuf::from(sources.pop().unwrap_or_default());
    if given.has('T') {
        if let Some(extra) = given.operands.get(2) {
            return Err(program::extra_operand(extra));
        }
        return Ok(Target { sources, place, into: false });
    }
    let link = keep_link && sys::stat(&place, false).is_ok_and(|stat| stat.kind() == sys::stat::S_IFLNK);
    let into = !link && is_directory(&place);
    if !into && sources.len() > 1 {
        return Err(match sys::stat(&place, true) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                fail(format!("target {}: No such file or directory", quote::always(&place)))
            }
            _ => fail(format!("target {}: Not a directory", quote::always(&place))),
        });
    }
    Ok(Target { sources, place, into })
}

impl Target {
    /// Returns the name a source gets.
    pub fn path_for(&self, source: &Path) -> PathBuf {
        if self.into { join(&self.place, &base(source)) } else { self.place.clone() }
    }
}

/// `directory/name`, as GNU spells it: no second slash.
pub fn join(directory: &Path, name: &Path) -> PathBuf {
    let mut joined = bytes(directory.as_os_str()).to_vec();
    if !joined.ends_with(b"/") {
        joined.push(b'/');
    }
    joined.extend_from_slice(bytes(name.as_os_str()));
    PathBuf::from(os(joined))
}

/// Asks on standard error; anything that begins with `y` is yes.
pub fn confirmed(question: &str) -> bool {
    let _ = sys::write_all(2, format!("{}: {question} ", program::name()).as_bytes());
    let mut answer = Vec::new();
    let _ = io::stdin().lock().read_until(b'\n', &mut answer);
    matches!(answer.first(), Some(b'y' | b'Y'))
}

/// The kind of backup of an overwritten file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Backup {
    /// Not at all.
    None,
    /// As `name~`.
    Simple(OsString),
    /// As `name.~1~`; `existing` only where numbers are in use already.
    Numbered { existing: bool, suffix: OsString },
}

impl Backup {
    /// Parses `-b`, `--backup[=CONTROL]` (letter `B`) and `-S`.
    pub fn from_options(given: &Given) -> Result<Self, i32> {
        if !(given.has('b') || given.has('B') || given.has('S')) {
            return Ok(Self::None);
        }
        let suffix = given
            .value('S')
            .map(OsString::from)
            .or_else(|| std::env::var_os("SIMPLE_BACKUP_SUFFIX"))
            .unwrap_or_else(|| "~".into());
        let control = given
            .value('B')
            .filter(|value| !value.is_empty())
            .map(OsString::from)
            .or_else(|| std::env::var_os("VERSION_CONTROL"));
        let existing = Self::Numbered { existing: true, suffix: suffix.clone() };
        let Some(control) = control else { return Ok(existing) };
        let choices =
            [("none", 0), ("off", 0), ("simple", 1), ("never", 1), ("existing", 2), ("nil", 2), ("numbered", 3), ("t", 3)];
        Ok(match options::choose("backup type", &control, &choices)? {
            0 => Self::None,
            1 => Self::Simple(suffix),
            2 => existing,
            _ => Self::Numbered { existing: false, suffix },
        })
    }

    /// Moves an existing file out of the way; returns its new name.
    pub fn make(&self, path: &Path) -> io::Result<Option<PathBuf>> {
        let numbered = |number: u64| PathBuf::from(os([bytes(path.as_os_str()), format!(".~{number}~").as_bytes()].concat()));
        let simple = |suffix: &OsString| PathBuf::from(os([bytes(path.as_os_str()), bytes(suffix)].concat()));
        let to = match self {
            Self::None => return Ok(None),
            Self::Simple(suffix) => simple(suffix),
            Self::Numbered { existing, suffix } => {
                let next = (1..).find(|&number| sys::stat(&numbered(number), false).is_err()).unwrap_or(1);
                if *existing && next == 1 { simple(suffix) } else { numbered(next) }
            }
        };
        std::fs::rename(path, &to)?;
        Ok(Some(to))
    }
}

const SPEC: Spec = Spec {
    short: "bdfFiLnPrsS:t:Tv",
    long: &[
        ("backup", May, 'B'),
        ("directory", No, 'd'),
        ("force", No, 'f'),
        ("interactive", No, 'i'),
        ("logical", No, 'L'),
        ("no-dereference", No, 'n'),
        ("physical", No, 'P'),
        ("relative", No, 'r'),
        ("symbolic", No, 's'),
        ("suffix", Needs, 'S'),
        ("target-directory", Needs, 't'),
        ("no-target-directory", No, 'T'),
        ("verbose", No, 'v'),
    ],
    help: "[OPTION]... [-T] TARGET LINK_NAME",
};

/// Runs `ln`.
pub fn ln(args: Args) -> Outcome {
    let mut given = options::parse(args, &SPEC)?;
    if given.has('r') && !given.has('s') {
        return Err(fail("cannot do --relative without --symbolic"));
    }
    if given.operands.len() == 1 && given.value('t').is_none() {
        if given.has('T') {
            return Err(usage(format!("missing destination file operand after {}", quote::always(&given.operands[0]))));
        }
        given.operands.push(".".into());
    }
    let target = target(&given, given.has('n'))?;
    let backup = Backup::from_options(&given)?;
    let mut out = Output::new();
    let mut status = 0;
    for source in &target.sources {
        let destination = target.path_for(Path::new(source));
        if let Err(code) = link(Path::new(source), &destination, &given, &backup, &mut out) {
            status = code;
        }
    }
    Ok(status)
}

fn link(source: &Path, destination: &Path, given: &Given, backup: &Backup, out: &mut Output) -> Result<(), i32> {
    let symbolic = given.has('s');
    if !symbolic {
        match sys::stat(source, given.has('L')) {
            Err(error) => return Err(fail(format!("failed to access {}: {}", quote::always(source), sys::message(&error)))),
            Ok(stat) if stat.kind() == sys::stat::S_IFDIR => {
                return Err(fail(format!("{}: hard link not allowed for directory", quote::maybe(source.as_os_str()))));
            }
            Ok(_) => {}
        }
    }
    let mut backed_up = None;
    if let Ok(there) = sys::stat(destination, false) {
        let force = given.options.iter().rev().find(|(letter, _)| matches!(letter, 'f' | 'i')).map(|(letter, _)| *letter);
        if force.is_some() || *backup != Backup::None {
            if there.kind() == sys::stat::S_IFDIR {
                return Err(fail(format!("{}: cannot overwrite directory", quote::maybe(destination.as_os_str()))));
            }
            if !symbolic
                && sys::stat(source, given.has('L')).is_ok_and(|stat| (stat.dev, stat.ino) == (there.dev, there.ino))
                && (there.nlink == 1
                    || super::paths::resolve(source, Must::Nothing, false).ok()
                        == super::paths::resolve(destination, Must::Nothing, false).ok())
            {
                return Err(fail(format!("{} and {} are the same file", quote::always(source), quote::always(destination))));
            }
            if force == Some('i') && !confirmed(&format!("replace {}?", quote::always(destination))) {
                return Ok(());
            }
            backed_up = backup
                .make(destination)
                .map_err(|error| fail(format!("cannot backup {}: {}", quote::always(destination), sys::message(&error))))?;
            if backed_up.is_none() {
                std::fs::remove_file(destination)
                    .map_err(|error| fail(format!("cannot remove {}: {}", quote::always(destination), sys::message(&error))))?;
            }
        }
    }
    let text: PathBuf = if symbolic && given.has('r') {
        let from = destination.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let resolved = |path: &Path| resolve(path, Must::Nothing, true);
        match (resolved(from), resolved(source)) {
            (Ok(from), Ok(to)) => relative(&from, &to).into(),
            _ => source.into(),
        }
    } else {
        source.into()
    };
    let done = if symbolic {
        rustix::fs::symlink(&text, destination).map_err(io::Error::from)
    } else if given.has('L') {
        resolve(source, Must::Exist, true).and_then(|real| sys::link(&real, destination))
    } else {
        sys::link(source, destination)
    };
    if let Err(error) = done {
        let kind = if symbolic { "symbolic" } else { "hard" };
        let exists = error.kind() == io::ErrorKind::AlreadyExists;
        let arrow = if exists || symbolic { String::new() } else { format!(" => {}", quote::always(source)) };
        return Err(fail(format!(
            "failed to create {kind} link {}{arrow}: {}",
            quote::always(destination),
            sys::message(&error)
        )));
    }
    if given.has('v') {
        let tail = backed_up.map_or(String::new(), |path| format!(" ~ {}", quote::always(path)));
        let arrow = if symbolic { "->" } else { "=>" };
        let line = match tail.as_str() {
            "" => format!("{} {arrow} {}\n", quote::always(destination), quote::always(&text)),
            tail => format!("{}{tail} {arrow} {}\n", quote::always(destination), quote::always(&text)),
        };
        out.text(line);
    }
    Ok(())
}
