//! `mv`.

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};

use super::copy::{Clobber, Copy, Follow};
use super::links::{Backup, Target, confirmed, target};
use super::paths::{Must, resolve};
use crate::options::{self, May, Needs, No, Spec};
use crate::program::{Args, Outcome, Output, bytes, fail, os, usage, warn};
use crate::quote;

const SPEC: Spec = Spec {
    short: "bfint:uvS:TZ",
    long: &[
        ("backup", May, 'B'),
        ("force", No, 'f'),
        ("interactive", No, 'i'),
        ("no-clobber", No, 'n'),
        ("no-target-directory", No, 'T'),
        ("strip-trailing-slashes", No, 'z'),
        ("suffix", Needs, 'S'),
        ("target-directory", Needs, 't'),
        ("update", No, 'u'),
        ("verbose", No, 'v'),
        ("context", No, 'Z'),
    ],
    help: "[OPTION]... [-T] SOURCE DEST",
};

struct Job {
    clobber: Clobber,
    update: bool,
    verbose: bool,
    backup: Backup,
    out: Output,
}

/// Runs `mv`.
pub fn main(args: Args) -> Outcome {
    let given = options::parse(args, &SPEC)?;
    let target = target(&given, false)?;
    let clobber = given.options.iter().rev().find_map(|(letter, _)| match letter {
        'f' => Some(Clobber::Yes),
        'i' => Some(Clobber::Ask),
        'n' => Some(Clobber::No),
        _ => None,
    });
    let mut job = Job {
        clobber: clobber.unwrap_or(Clobber::Yes),
        update: given.has('u'),
        verbose: given.has('v'),
        backup: Backup::from_options(&given)?,
        out: Output::new(),
    };
    if clobber == Some(Clobber::No) && job.backup != Backup::None {
        return Err(usage("options --backup and --no-clobber are mutually exclusive"));
    }
    let mut status = 0;
    for source in &target.sources {
        if let Err(code) = job.one(source, &target) {
            status = code;
        }
    }
    Ok(status)
}

impl Job {
    fn complain(&mut self, text: String) -> Result<(), i32> {
        self.out.send();
        Err(fail(text))
    }

    fn one(&mut self, source: &OsString, target: &Target) -> Result<(), i32> {
        let mut name = bytes(source).to_vec();
        let slashed = name.len() > 1 && name.ends_with(b"/");
        while name.len() > 1 && name.ends_with(b"/") {
            name.pop();
        }
        let path = PathBuf::from(os(name));
        let shown = Path::new(source);
        let destination = target.path_for(&path);
        let stat = match sys::stat(&path, false) {
            Ok(stat) if slashed && stat.kind() != sys::stat::S_IFDIR && stat.kind() != sys::stat::S_IFLNK => {
                return self.complain(format!("cannot stat {}: Not a directory", quote::always(shown)));
            }
            Ok(stat) => stat,
            Err(error) => return self.complain(format!("cannot stat {}: {}", quote::always(shown), sys::message(&error))),
        };
        let is_directory = stat.kind() == sys::stat::S_IFDIR;
        let mut backed_up = None;
        if let Ok(there) = sys::stat(&destination, false) {
            let same = (stat.dev, stat.ino) == (there.dev, there.ino);
            let one_name = same
                && (is_directory
                    || there.nlink == 1
                    || resolve(&path, Must::Nothing, false).ok() == resolve(&destination, Must::Nothing, false).ok());
            if one_name && self.backup == Backup::None {
                return self.complain(format!("{} and {} are the same file", quote::always(shown), quote::always(&destination)));
            }
            if self.clobber == Clobber::No || (self.update && !is_directory && there.mtime >= stat.mtime) {
                return Ok(());
            }
            let onto_directory = there.kind() == sys::stat::S_IFDIR;
            if is_directory && !onto_directory && self.backup == Backup::None {
                return self.complain(format!(
                    "cannot overwrite non-directory {} with directory {}",
                    quote::always(&destination),
                    quote::always(shown)
                ));
            }
            if !is_directory && onto_directory {
                return self.complain(format!("cannot overwrite directory {} with non-directory", quote::always(&destination)));
            }
            if self.clobber == Clobber::Ask && !confirmed(&format!("overwrite {}?", quote::always(&destination))) {
                return Ok(());
            }
            backed_up = match self.backup.make(&destination) {
                Ok(path) => path,
                Err(error) => {
                    return self.complain(format!("cannot backup {}: {}", quote::always(&destination), sys::message(&error)));
                }
            };
            if same && backed_up.is_none() {
                // Two names of one file: rename would do nothing at all.
                return match std::fs::remove_file(&path) {
                    Ok(()) => Ok(()),
                    Err(error) => self.complain(format!("cannot remove {}: {}", quote::always(shown), sys::message(&error))),
                };
            }
        }
        if is_directory && inside(&path, &destination) {
            return self.complain(format!(
                "cannot move {} to a subdirectory of itself, {}",
                quote::always(shown),
                quote::always(&destination)
            ));
        }
        match std::fs::rename(&path, &destination) {
            Ok(()) => {
                if self.verbose {
                    let tail = backed_up.map_or(String::new(), |path| format!(" (backup: {})", quote::always(path)));
                    self.out.text(format!("renamed {} -> {}{tail}\n", quote::always(shown), quote::always(&destination)));
                }
                Ok(())
            }
            Err(error) if error.kind() == io::ErrorKind::CrossesDevices => self.across(&path, &destination, is_directory),
            Err(error) if below_a_file(&destination) => {
                self.complain(format!("cannot stat {}: {}", quote::always(&destination), sys::message(&error)))
            }
            Err(error) => self.complain(format!(
                "cannot move {} to {}: {}",
                quote::always(shown),
                quote::always(&destination),
                sys::message(&error)
            )),
        }
    }

    fn across(&mut self, source: &Path, destination: &Path, is_directory: bool) -> Result<(), i32> {
        let mut copy = Copy::new();
        (copy.recursive, copy.follow, copy.moving, copy.verbose) = (true, Follow::Never, true, self.verbose);
        (copy.keep_mode, copy.keep_owner, copy.keep_times, copy.keep_links) = (true, true, true, true);
        copy.remove_destination = true;
        if !copy.copy(source, destination) {
            return Err(1);
        }
        let removed = if is_directory { std::fs::remove_dir_all(source) } else { std::fs::remove_file(source) };
        removed.map_err(|error| {
            warn(format!("cannot remove {}: {}", quote::always(source), sys::message(&error)));
            1
        })
    }
}

/// Returns whether the destination lies below the source.
fn inside(source: &Path, destination: &Path) -> bool {
    let Ok(source) = resolve(source, Must::Exist, true) else { return false };
    resolve(destination, Must::Nothing, true).is_ok_and(|destination| destination != source && destination.starts_with(&source))
}

/// Returns whether what should be the path's directory is a file.
fn below_a_file(path: &Path) -> bool {
    std::fs::symlink_metadata(path).is_err_and(|error| error.kind() == io::ErrorKind::NotADirectory)
}
