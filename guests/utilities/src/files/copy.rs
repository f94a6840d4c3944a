//! Copying files and trees: what `cp`, `mv` across file systems and `install` do.

use std::collections::HashMap;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use sys::stat::{S_IFDIR, S_IFLNK, S_IFREG};
use sys::{OpenFlags, Stat};

use super::chmod::children;
use super::links::{Backup, confirmed, join};
use super::mkdir::base;
use super::mode::umask;
use super::paths::{Must, resolve};
use super::touch::set_times;
use crate::program::{BLOCK, Descriptor, Output, warn};
use crate::quote;

/// Which symbolic links of the source are followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Follow {
    /// None.
    Never,
    /// Those named by the user.
    Named,
    /// All.
    Always,
}

/// The treatment of an existing destination.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Clobber {
    /// Overwrite it.
    Yes,
    /// Ask.
    Ask,
    /// Leave it, silently.
    No,
}

/// Options of a copy.
pub struct Copy {
    /// Directories too.
    pub recursive: bool,
    /// Links.
    pub follow: Follow,
    /// Existing files.
    pub clobber: Clobber,
    /// Only over older files.
    pub update: bool,
    /// Remove a destination that cannot be opened.
    pub force: bool,
    /// Remove the existing destination before copying.
    pub remove_destination: bool,
    /// Permissions as they are.
    pub keep_mode: bool,
    /// Owners as they are.
    pub keep_owner: bool,
    /// Times as they are.
    pub keep_times: bool,
    /// Hard links among the copied files.
    pub keep_links: bool,
    /// Hard links instead of copies.
    pub hard_links: bool,
    /// Symbolic links instead of copies.
    pub symbolic_links: bool,
    /// Metadata without content.
    pub attributes_only: bool,
    /// Report each operation.
    pub verbose: bool,
    /// Called by `mv`: complaints say so.
    pub moving: bool,
    /// The treatment of overwritten files.
    pub backup: Backup,
    umask: u32,
    linked: HashMap<(u64, u64), PathBuf>,
    made: Vec<(u64, u64)>,
    out: Output,
}

impl Copy {
    /// Returns the options of plain copies of files.
    pub fn new() -> Self {
        Self {
            recursive: false,
            follow: Follow::Always,
            clobber: Clobber::Yes,
            update: false,
            force: false,
            remove_destination: false,
            keep_mode: false,
            keep_owner: false,
            keep_times: false,
            keep_links: false,
            hard_links: false,
            symbolic_links: false,
            attributes_only: false,
            verbose: false,
            moving: false,
            backup: Backup::None,
            umask: umask(),
            linked: HashMap::new(),
            made: Vec::new(),
            out: Output::new(),
        }
    }

    fn complain(&mut self, text: String) -> bool {
        self.out.send();
        warn(text);
        false
    }

    /// Says something on standard output, in its turn.
    pub fn say(&mut self, text: String) {
        self.out.text(text);
    }

    /// Copies one thing the user named; `false` after a complaint.
    pub fn copy(&mut self, source: &Path, destination: &Path) -> bool {
        self.one(source, destination, true)
    }

    fn one(&mut self, source: &Path, destination: &Path, named: bool) -> bool {
        let follow = self.follow == Follow::Always || (self.follow == Follow::Named && named);
        let stat = match sys::stat(source, follow) {
            Ok(stat) => stat,
            Err(error) => return self.complain(format!("cannot stat {}: {}", quote::always(source), sys::message(&error))),
        };
        let is_directory = stat.kind() == S_IFDIR;
        if is_directory && !self.recursive {
            return self.complain(format!("-r not specified; omitting directory {}", quote::always(source)));
        }
        let there = sys::stat(destination, false).ok();
        // An existing link is written through, unless links themselves are what is copied.
        let through = sys::stat(destination, true).ok();
        let mut backed_up = None;
        if let Some(there) = there {
            let target =
                if is_directory || stat.kind() == S_IFREG && !self.remove_destination { through.unwrap_or(there) } else { there };
            match self.may_replace(source, &stat, destination, &target) {
                Verdict::Go => {}
                Verdict::Skip => return true,
                Verdict::Fail => return false,
            }
            if !is_directory && there.kind() != S_IFDIR {
                match self.backup.make(destination) {
                    Ok(path) => backed_up = path,
                    Err(error) => {
                        return self.complain(format!("cannot backup {}: {}", quote::always(destination), sys::message(&error)));
                    }
                }
                let dangling = there.kind() == S_IFLNK && through.is_none();
                if backed_up.is_none() && dangling && stat.kind() == S_IFREG && !self.remove_destination && !self.force {
                    return self.complain(format!("not writing through dangling symlink {}", quote::always(destination)));
                }
                let must_go =
                    self.remove_destination || stat.kind() == S_IFLNK || self.hard_links || self.symbolic_links || dangling;
                if backed_up.is_none() && must_go && (self.force || self.remove_destination || stat.kind() == S_IFLNK) {
                    let _ = std::fs::remove_file(destination);
                }
            }
        }
        if self.verbose && !is_directory {
            self.tell(source, destination, backed_up.as_deref());
        }
        if self.keep_links && !is_directory && stat.nlink > 1 {
            if let Some(first) = self.linked.get(&(stat.dev, stat.ino)).cloned() {
                let _ = std::fs::remove_file(destination);
                return match sys::link(&first, destination) {
                    Ok(()) => true,
                    Err(error) => self.complain(format!(
                        "cannot create hard link {} to {}: {}",
                        quote::always(destination),
                        quote::always(&first),
                        sys::message(&error)
                    )),
                };
            }
            self.linked.insert((stat.dev, stat.ino), destination.to_owned());
        }
        let done = match stat.kind() {
            S_IFDIR => return self.directory(source, destination, &stat, there.is_none()),
            S_IFLNK => self.symbolic_link(source, destination),
            _ if self.hard_links => self.link(source, destination, follow),
            _ if self.symbolic_links => self.link_symbolically(source, destination),
            _ => self.content(source, destination, &stat),
        };
        done && self.attributes(destination, &stat, there.is_none() || backed_up.is_some())
    }

    fn may_replace(&mut self, source: &Path, stat: &Stat, destination: &Path, target: &Stat) -> Verdict {
        let same = (stat.dev, stat.ino) == (target.dev, target.ino);
        if same && self.hard_links {
            return Verdict::Skip;
        }
        if same && self.backup == Backup::None && !(self.remove_destination && target.nlink > 1) {
            self.complain(format!("{} and {} are the same file", quote::always(source), quote::always(destination)));
            return Verdict::Fail;
        }
        let (from_directory, to_directory) = (stat.kind() == S_IFDIR, target.kind() == S_IFDIR);
        if from_directory && !to_directory {
            self.complain(format!(
                "cannot overwrite non-directory {} with directory {}",
                quote::always(destination),
                quote::always(source)
            ));
            return Verdict::Fail;
        }
        if from_directory {
            return Verdict::Go;
        }
        if to_directory {
            self.complain(format!("cannot overwrite directory {} with non-directory", quote::always(destination)));
            return Verdict::Fail;
        }
        if self.update && target.mtime >= stat.mtime {
            return Verdict::Skip;
        }
        match self.clobber {
            Clobber::No => Verdict::Skip,
            Clobber::Ask => {
                self.out.send();
                if confirmed(&format!("overwrite {}?", quote::always(destination))) { Verdict::Go } else { Verdict::Skip }
            }
            Clobber::Yes if self.made.contains(&(target.dev, target.ino)) && !self.moving => {
                self.complain(format!(
                    "will not overwrite just-created {} with {}",
                    quote::always(destination),
                    quote::always(source)
                ));
                Verdict::Fail
            }
            Clobber::Yes => Verdict::Go,
        }
    }

    fn tell(&mut self, source: &Path, destination: &Path, backup: Option<&Path>) {
        let tail = backup.map_or(String::new(), |path| format!(" (backup: {})", quote::always(path)));
        let verb = if self.moving { "copied " } else { "" };
        self.out.text(format!("{verb}{} -> {}{tail}\n", quote::always(source), quote::always(destination)));
    }

    fn directory(&mut self, source: &Path, destination: &Path, stat: &Stat, fresh: bool) -> bool {
        let paths = resolve(destination, Must::Nothing, true).ok().zip(resolve(source, Must::Exist, true).ok());
        if paths.as_ref().is_some_and(|(to, from)| to.starts_with(from)) {
            // GNU notices when it meets what it has just made: all else is copied by then.
            let below = paths.is_some_and(|(to, from)| to.parent() == Some(from.as_path()));
            let names = if fresh && below { children(source).unwrap_or_default() } else { Vec::new() };
            if fresh && below && std::fs::create_dir(destination).is_ok() {
                for child in names {
                    self.one(&child, &join(destination, &base(&child)), false);
                }
                self.attributes(destination, stat, fresh);
            }
            return self.complain(format!(
                "cannot copy a directory, {}, into itself, {}",
                quote::always(source),
                quote::always(destination)
            ));
        }
        if fresh {
            if let Err(error) = std::fs::create_dir(destination) {
                return self.complain(format!(
                    "cannot create directory {}: {}",
                    quote::always(destination),
                    sys::message(&error)
                ));
            }
            if self.verbose {
                self.tell(source, destination, None);
            }
        }
        let names = match children(source) {
            Ok(names) => names,
            Err(error) => return self.complain(format!("cannot access {}: {}", quote::always(source), sys::message(&error))),
        };
        let mut all = true;
        for child in names {
            all &= self.one(&child, &join(destination, &base(&child)), false);
        }
        self.attributes(destination, stat, fresh) && all
    }

    fn symbolic_link(&mut self, source: &Path, destination: &Path) -> bool {
        let made =
            std::fs::read_link(source).and_then(|target| rustix::fs::symlink(&target, destination).map_err(io::Error::from));
        match made {
            Ok(()) => true,
            Err(error) => {
                self.complain(format!("cannot create symbolic link {}: {}", quote::always(destination), sys::message(&error)))
            }
        }
    }

    fn link(&mut self, source: &Path, destination: &Path, follow: bool) -> bool {
        let real = if follow { resolve(source, Must::Exist, true) } else { Ok(source.to_owned()) };
        match real.and_then(|real| sys::link(&real, destination)) {
            Ok(()) => true,
            Err(error) => self.complain(format!(
                "cannot create hard link {} to {}: {}",
                quote::always(destination),
                quote::always(source),
                sys::message(&error)
            )),
        }
    }

    fn link_symbolically(&mut self, source: &Path, destination: &Path) -> bool {
        let elsewhere = destination.parent().is_some_and(|parent| !matches!(parent.as_os_str().as_encoded_bytes(), b"" | b"."));
        if elsewhere && source.is_relative() {
            return self.complain(format!(
                "{}: can make relative symbolic links only in current directory",
                quote::maybe(destination.as_os_str())
            ));
        }
        match rustix::fs::symlink(source, destination).map_err(io::Error::from) {
            Ok(()) => true,
            Err(error) => self.complain(format!(
                "cannot create symbolic link {} to {}: {}",
                quote::always(destination),
                quote::always(source),
                sys::message(&error)
            )),
        }
    }

    fn content(&mut self, source: &Path, destination: &Path, stat: &Stat) -> bool {
        let mut input = match Descriptor::read_only(source) {
            Ok(input) => input,
            Err(error) => {
                return self.complain(format!("cannot open {} for reading: {}", quote::always(source), sys::message(&error)));
            }
        };
        let fresh = sys::stat(destination, true).is_err();
        let flags = OpenFlags { write: true, create: true, truncate: !self.attributes_only, ..OpenFlags::default() };
        let mode = stat.mode & 0o777;
        let mut opened = Descriptor::open(destination, flags, mode);
        if opened.is_err() && self.force && !fresh {
            let _ = std::fs::remove_file(destination);
            opened = Descriptor::open(destination, flags, mode);
        }
        let output = match opened {
            Ok(output) => output,
            Err(error) => {
                let trailing = destination.as_os_str().as_encoded_bytes().ends_with(b"/");
                let why = if trailing && fresh { "Not a directory".to_owned() } else { sys::message(&error) };
                let below_a_file = error.kind() == io::ErrorKind::NotADirectory && !trailing;
                let what = if below_a_file { "cannot stat" } else { "cannot create regular file" };
                return self.complain(format!("{what} {}: {why}", quote::always(destination)));
            }
        };
        if let Ok(stat) = output.stat() {
            self.made.push((stat.dev, stat.ino));
        }
        if self.attributes_only {
            return true;
        }
        let mut buffer = vec![0; BLOCK * 2];
        loop {
            let n = match input.read(&mut buffer) {
                Ok(0) => return true,
                Ok(n) => n,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return self.complain(format!("error reading {}: {}", quote::always(source), sys::message(&error))),
            };
            if let Err(error) = sys::write_all(output.fd(), &buffer[..n]) {
                return self.complain(format!("error writing {}: {}", quote::always(destination), sys::message(&error)));
            }
        }
    }

    fn attributes(&mut self, destination: &Path, stat: &Stat, fresh: bool) -> bool {
        if self.hard_links || self.symbolic_links {
            return true;
        }
        let is_link = stat.kind() == S_IFLNK;
        if self.keep_owner {
            // Ownership is given away by root only; GNU is as quiet about it.
            let _ = sys::chown(destination, !is_link, stat.uid, stat.gid)
                .or_else(|_| sys::chown(destination, !is_link, u32::MAX, stat.gid));
        }
        if !is_link {
            let wanted = if self.keep_mode { Some(stat.mode & 0o7777) } else { fresh.then_some(stat.mode & 0o777 & !self.umask) };
            if let Some(mode) = wanted
                && sys::stat(destination, true).is_ok_and(|there| there.mode & 0o7777 != mode)
                && let Err(error) = sys::chmod(destination, true, mode)
            {
                return self.complain(format!(
                    "preserving permissions for {}: {}",
                    quote::always(destination),
                    sys::message(&error)
                ));
            }
        }
        if self.keep_times
            && let Err(error) = set_times(destination, Some(stat.atime), Some(stat.mtime), !is_link)
        {
            return self.complain(format!("preserving times for {}: {}", quote::always(destination), sys::message(&error)));
        }
        true
    }
}

enum Verdict {
    Go,
    Skip,
    Fail,
}
