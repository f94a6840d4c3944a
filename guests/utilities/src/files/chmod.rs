//! `chmod`.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use super::mode::{Change, permissions, umask};
use crate::options::{self, Needs, No, Spec};
use crate::program::{Args, Outcome, Output, bytes, fail, missing_operand, usage, warn};
use crate::quote;

const SPEC: Spec = Spec {
    short: "Rcfv",
    long: &[
        ("changes", No, 'c'),
        ("recursive", No, 'R'),
        ("no-preserve-root", No, 'N'),
        ("preserve-root", No, 'P'),
        ("quiet", No, 'f'),
        ("silent", No, 'f'),
        ("verbose", No, 'v'),
        ("reference", Needs, 'r'),
    ],
    help: "[OPTION]... MODE[,MODE]... FILE...",
};

struct Job {
    change: Change,
    recursive: bool,
    changes: bool,
    verbose: bool,
    silent: bool,
    umask: u32,
    /// The mode was written like an option (`-w`): what the umask withholds is worth a word.
    surprises: bool,
    status: i32,
    out: Output,
}

/// Runs `chmod`.
pub fn main(args: Args) -> Outcome {
    let mut rest = Vec::new();
    let mut dashed: Vec<String> = Vec::new();
    let mut ended = false;
    for arg in args {
        let text = bytes(&arg);
        ended |= text == b"--";
        let is_mode = !ended && text.len() > 1 && text[0] == b'-' && b"rwxXstugoa,+=01234567".contains(&text[1]);
        if is_mode { dashed.push(arg.to_string_lossy().into_owned()) } else { rest.push(arg) }
    }
    let mut given = options::parse(rest, &SPEC)?;
    let mut text = dashed.join(",");
    let reference = given.value('r').map(OsString::from);
    if reference.is_none() && text.is_empty() && !given.operands.is_empty() {
        text = given.operands.remove(0).to_string_lossy().into_owned();
        if given.operands.is_empty() {
            return Err(usage(format!("missing operand after {}", quote::plain(&text))));
        }
    }
    if given.operands.is_empty() {
        return Err(missing_operand(None));
    }
    let change = match reference {
        Some(file) => {
            let stat = sys::stat(Path::new(&file), true).map_err(|error| {
                fail(format!("failed to get attributes of {}: {}", quote::always(&file), sys::message(&error)))
            })?;
            Change::Octal { mode: stat.mode & 0o7777, explicit: true }
        }
        None => Change::parse(&text).ok_or_else(|| usage(format!("invalid mode: {}", quote::plain(&text))))?,
    };
    let mut job = Job {
        change,
        recursive: given.has('R'),
        changes: given.has('c'),
        verbose: given.has('v'),
        silent: given.has('f'),
        umask: umask(),
        surprises: !dashed.is_empty(),
        status: 0,
        out: Output::new(),
    };
    for file in &given.operands {
        if job.recursive
            && given.has('P')
            && super::paths::resolve(Path::new(file), super::paths::Must::Exist, true).is_ok_and(|path| path == Path::new("/"))
        {
            warn(format!("it is dangerous to operate recursively on {}", quote::always(file)));
            warn("use --no-preserve-root to override this failsafe");
            job.status = 1;
            continue;
        }
        job.change(Path::new(file), true);
    }
    Ok(job.status)
}

impl Job {
    fn change(&mut self, path: &Path, named: bool) {
        let stat = match sys::stat(path, named) {
            Ok(stat) => stat,
            Err(error) => {
                self.status = 1;
                let dangling = named && sys::stat(path, false).is_ok();
                if !self.silent {
                    let what = if dangling { "cannot operate on dangling symlink" } else { "cannot access" };
                    let why = if dangling { String::new() } else { format!(": {}", sys::message(&error)) };
                    warn(format!("{what} {}{why}", quote::always(path)));
                }
                return;
            }
        };
        if stat.kind() == sys::stat::S_IFLNK {
            return;
        }
        let is_directory = stat.kind() == sys::stat::S_IFDIR;
        let old = stat.mode & 0o7777;
        let new = self.change.apply(old, is_directory, self.umask);
        match sys::chmod(path, true, new) {
            Ok(()) => self.tell(path, old, new),
            Err(error) => {
                self.status = 1;
                if !self.silent {
                    warn(format!("changing permissions of {}: {}", quote::always(path), sys::message(&error)));
                }
                if self.verbose {
                    self.out.text(format!(
                        "failed to change mode of {} from {:04o} ({}) to {:04o} ({})\n",
                        quote::always(path),
                        old,
                        permissions(old),
                        new,
                        permissions(new)
                    ));
                }
            }
        }
        if self.surprises {
            let naive = self.change.apply(old, is_directory, 0);
            if new & !naive != 0 {
                warn(format!(
                    "{}: new permissions are {}, not {}",
                    quote::maybe(path.as_os_str()),
                    permissions(new),
                    permissions(naive)
                ));
                self.status = 1;
            }
        }
        if self.recursive && is_directory {
            self.enter(path);
        }
    }

    fn enter(&mut self, path: &Path) {
        match children(path) {
            Ok(names) => names.iter().for_each(|child| self.change(child, false)),
            Err(error) => {
                self.status = 1;
                if !self.silent {
                    warn(format!("cannot read directory {}: {}", quote::always(path), sys::message(&error)));
                }
            }
        }
    }

    fn tell(&mut self, path: &Path, old: u32, new: u32) {
        if !(self.verbose || (self.changes && old != new)) {
            return;
        }
        let name = quote::always(path);
        if old == new {
            self.out.text(format!("mode of {name} retained as {:04o} ({})\n", new, permissions(new)));
        } else {
            self.out.text(format!(
                "mode of {name} changed from {:04o} ({}) to {:04o} ({})\n",
                old,
                permissions(old),
                new,
                permissions(new)
            ));
        }
    }
}

/// Returns the entries of a directory as paths, sorted so that two runs say the same.
pub fn children(directory: &Path) -> std::io::Result<Vec<PathBuf>> {
    let mut paths =
        std::fs::read_dir(directory)?.map(|entry| entry.map(|entry| entry.path())).collect::<std::io::Result<Vec<_>>>()?;
    paths.sort();
    Ok(paths)
}
