//! `rm`.

use std::io;
use std::path::Path;

use super::chmod::children;
use super::links::confirmed;
use super::mode::kind;
use super::paths::{Must, resolve};
use crate::files::basename::last_component;
use crate::options::{self, May, No, Spec};
use crate::program::{Args, Outcome, Output, bytes, usage, warn};
use crate::quote;

const SPEC: Spec = Spec {
    short: "dfirvIR",
    long: &[
        ("force", No, 'f'),
        ("interactive", May, 'A'),
        ("one-file-system", No, 'x'),
        ("no-preserve-root", No, 'n'),
        ("preserve-root", May, 'p'),
        ("recursive", No, 'r'),
        ("dir", No, 'd'),
        ("verbose", No, 'v'),
        ("-presume-input-tty", No, 't'),
    ],
    help: "[OPTION]... [FILE]...",
};

#[derive(Clone, Copy, PartialEq)]
enum Ask {
    Never,
    /// Only for files that are write-protected, and only of a person.
    Protected,
    Once,
    Always,
}

struct Job {
    ask: Ask,
    force: bool,
    recursive: bool,
    directories: bool,
    verbose: bool,
    preserve_root: bool,
    person: bool,
    status: i32,
    out: Output,
}

/// Runs `rm`.
pub fn main(args: Args) -> Outcome {
    let given = options::parse(args, &SPEC)?;
    let mut job = Job {
        ask: Ask::Protected,
        force: false,
        recursive: false,
        directories: given.has('d'),
        verbose: given.has('v'),
        preserve_root: !given.has('n'),
        person: sys::is_terminal(0),
        status: 0,
        out: Output::new(),
    };
    for (letter, value) in &given.options {
        match letter {
            'f' => (job.force, job.ask) = (true, Ask::Never),
            'i' => (job.force, job.ask) = (false, Ask::Always),
            'I' => (job.force, job.ask) = (false, Ask::Once),
            'A' if value.is_empty() => (job.force, job.ask) = (false, Ask::Always),
            'A' => {
                let choices = [
                    ("never", Ask::Never),
                    ("no", Ask::Never),
                    ("none", Ask::Never),
                    ("once", Ask::Once),
                    ("always", Ask::Always),
                    ("yes", Ask::Always),
                ];
                job.ask = options::choose("--interactive", value, &choices)?;
                job.force = false;
            }
            'r' | 'R' => job.recursive = true,
            't' => job.person = true,
            _ => {}
        }
    }
    if given.operands.is_empty() {
        return if job.force { Ok(0) } else { Err(usage("missing operand")) };
    }
    if job.ask == Ask::Once {
        let count = given.operands.len();
        let noun = if count == 1 { "argument" } else { "arguments" };
        if (job.recursive || count > 3)
            && !confirmed(&format!("remove {count} {noun}{}?", if job.recursive { " recursively" } else { "" }))
        {
            return Ok(0);
        }
        job.ask = Ask::Protected;
    }
    for file in &given.operands {
        job.operand(Path::new(file));
    }
    Ok(job.status)
}

impl Job {
    fn complain(&mut self, text: String) {
        self.out.send();
        warn(text);
        self.status = 1;
    }

    fn operand(&mut self, path: &Path) {
        let last = last_component(bytes(path.as_os_str()));
        if self.recursive && matches!(last, b"." | b"..") {
            return self.complain(format!("refusing to remove '.' or '..' directory: skipping {}", quote::always(path)));
        }
        if self.recursive && self.preserve_root && resolve(path, Must::Exist, false).is_ok_and(|path| path == Path::new("/")) {
            self.complain(format!("it is dangerous to operate recursively on {}", quote::always(path)));
            return warn("use --no-preserve-root to override this failsafe");
        }
        match sys::stat(path, bytes(path.as_os_str()).ends_with(b"/")) {
            Ok(stat) => {
                self.remove(path, &stat);
            }
            Err(error) => {
                let missing = matches!(error.raw_os_error(), Some(sys::errno::ENOENT | sys::errno::ENOTDIR));
                if !(self.force && missing) {
                    self.complain(format!("cannot remove {}: {}", quote::always(path), sys::message(&error)));
                }
            }
        }
    }

    /// Removes one entry; returns whether it was removed.
    fn remove(&mut self, path: &Path, stat: &sys::Stat) -> bool {
        if stat.kind() == sys::stat::S_IFDIR {
            return self.remove_directory(path, stat);
        }
        if !self.may(path, stat, &format!("remove {}{}", if self.protected(stat) { "write-protected " } else { "" }, kind(stat)))
        {
            return false;
        }
        match std::fs::remove_file(path) {
            Ok(()) => {
                if self.verbose {
                    self.out.text(format!("removed {}\n", quote::always(path)));
                }
                true
            }
            Err(error) => {
                if !(self.force && error.kind() == io::ErrorKind::NotFound) {
                    self.complain(format!("cannot remove {}: {}", quote::always(path), sys::message(&error)));
                }
                false
            }
        }
    }

    fn protected(&self, stat: &sys::Stat) -> bool {
        stat.kind() != sys::stat::S_IFLNK && !sys::permits(stat, sys::Permission::Write)
    }

    fn may(&mut self, path: &Path, stat: &sys::Stat, action: &str) -> bool {
        let ask = match self.ask {
            Ask::Always => true,
            Ask::Protected => self.person && self.protected(stat),
            _ => false,
        };
        if ask {
            self.out.send();
        }
        !ask || confirmed(&format!("{action} {}?", quote::always(path)))
    }

    fn remove_directory(&mut self, path: &Path, stat: &sys::Stat) -> bool {
        let empty = || std::fs::read_dir(path).is_ok_and(|mut entries| entries.next().is_none());
        if !(self.recursive || self.directories && empty()) {
            let why = if self.directories { "Directory not empty" } else { "Is a directory" };
            self.complain(format!("cannot remove {}: {why}", quote::always(path)));
            return false;
        }
        if self.recursive && !empty() {
            if !self.may(path, stat, "descend into directory") {
                return false;
            }
            let names = match children(path) {
                Ok(names) => names,
                Err(error) => {
                    self.complain(format!("cannot remove {}: {}", quote::always(path), sys::message(&error)));
                    return false;
                }
            };
            let mut gone = true;
            for child in names {
                gone &= match sys::stat(&child, false) {
                    Ok(stat) => self.remove(&child, &stat),
                    Err(error) => {
                        self.complain(format!("cannot remove {}: {}", quote::always(&child), sys::message(&error)));
                        false
                    }
                };
            }
            if !gone {
                return false;
            }
        }
        if !self.may(path, stat, "remove directory") {
            return false;
        }
        match std::fs::remove_dir(path) {
            Ok(()) => {
                if self.verbose {
                    self.out.text(format!("removed directory {}\n", quote::always(path)));
                }
                true
            }
            Err(error) => {
                self.complain(format!("cannot remove {}: {}", quote::always(path), sys::message(&error)));
                false
            }
        }
    }
}
