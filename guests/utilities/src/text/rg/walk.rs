//! The files that `rg` searches: a walk over directories in the order of names.
//!
//! The `ignore` crate decides which names are hidden or ignored. The walk is our own, because that crate's can neither follow
//! links nor compare files on this platform.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use ignore::{IncrementalIgnore, WalkBuilder};

use super::Settled;
use super::messages::{Messages, described};
use super::options::{Options, SortKey};

/// Something to search.
#[derive(Debug)]
pub(super) struct Haystack {
    /// Where it is, and how it is shown.
    pub path: PathBuf,
    /// It was named, so that it is searched whatever it is.
    pub explicit: bool,
}

impl Haystack {
    pub fn is_stdin(&self) -> bool {
        self.path.as_os_str() == "-"
    }
}

/// A file's place on its device, which identifies it.
type Identity = (u64, u64);

pub(super) struct Walk<'a> {
    options: &'a Options,
    messages: &'a Messages,
    /// No path was named, so that `./` is not shown.
    implied: bool,
    /// Ripgrep would use one thread.
    serial: bool,
    /// The file that standard output goes to, which is not searched.
    output: Option<Identity>,
    each: &'a mut dyn FnMut(Haystack) -> bool,
}

/// Hands every file that is to be searched to `each`, in order, until that returns false.
pub(super) fn walk(
    options: &Options,
    builder: &WalkBuilder,
    settled: &Settled,
    messages: &Messages,
    each: &mut dyn FnMut(Haystack) -> bool,
) {
    let Some((key, backwards)) = options.sort.filter(|&sort| sort != (SortKey::Path, false)) else {
        return Walk::new(options, settled, messages, each).paths(builder, &settled.paths);
    };
    let mut found = Vec::new();
    let mut collect = |haystack| {
        found.push(haystack);
        true
    };
    Walk::new(options, settled, messages, &mut collect).paths(builder, &settled.paths);
    sort(&mut found, key, backwards);
    for haystack in found {
        if !each(haystack) {
            break;
        }
    }
}

fn sort(found: &mut Vec<Haystack>, key: SortKey, backwards: bool) {
    let time = |haystack: &Haystack| {
        let data = fs::metadata(&haystack.path);
        data.and_then(|data| match key {
            SortKey::Accessed => data.accessed(),
            SortKey::Created => data.created().or_else(|_| data.modified()),
            SortKey::Path | SortKey::Modified => data.modified(),
        })
    };
    if key == SortKey::Path {
        found.sort_by(|one, other| other.path.cmp(&one.path));
        return;
    }
    let mut timed: Vec<_> = found.drain(..).map(|haystack| (time(&haystack).ok(), haystack)).collect();
    // A file without a time comes last.
    timed.sort_by(|(one, _), (other, _)| {
        let order = (one.is_none(), one).cmp(&(other.is_none(), other));
        if backwards { order.reverse() } else { order }
    });
    found.extend(timed.into_iter().map(|(_, haystack)| haystack));
}

impl<'a> Walk<'a> {
    fn new(options: &'a Options, settled: &Settled, messages: &'a Messages, each: &'a mut dyn FnMut(Haystack) -> bool) -> Self {
        let output = sys::fstat(1).ok().filter(|stat| options.mode.is_search() && stat.kind() == sys::stat::S_IFREG);
        let output = output.map(|stat| (stat.dev, stat.ino));
        Self { options, messages, implied: settled.implied, serial: settled.serial, output, each }
    }

    fn paths(&mut self, builder: &WalkBuilder, paths: &[PathBuf]) {
        // Only files found in directories can be ignored: a named file is searched.
        let mut rules = Vec::new();
        for (index, path) in paths.iter().enumerate() {
            if rules.is_empty() && path.is_dir() {
                rules = builder.build_matchers();
            }
            if !self.root(path, rules.get_mut(index)) {
                break;
            }
        }
    }

    fn root(&mut self, path: &Path, rules: Option<&mut IncrementalIgnore>) -> bool {
        if path.as_os_str() == "-" {
            return (self.each)(Haystack { path: path.to_owned(), explicit: true });
        }
        match fs::metadata(path) {
            Ok(data) if data.is_dir() => {
                let Some(rules) = rules else { return true };
                let Ok(stat) = sys::stat(path, true) else { return true };
                self.directory(path, Path::new(""), rules, &mut vec![(stat.dev, stat.ino, path.to_owned())])
            }
            Ok(_) => (self.each)(Haystack { path: path.to_owned(), explicit: true }),
            Err(error) => {
                self.unreachable(path, &error);
                true
            }
        }
    }

    /// Reports a path that leads nowhere, in the words that ripgrep has for it with one thread and with several.
    fn unreachable(&self, path: &Path, error: &io::Error) {
        let (path, reason) = (path.display(), described(error));
        match self.serial {
            true => self.messages.error(format_args!("{path}: IO error for operation on {path}: {reason}")),
            false => self.messages.error(format_args!("{path}: {reason}")),
        }
    }

    /// `above` has the directories that this one is in, and itself, from the root on.
    fn directory(
        &mut self,
        directory: &Path,
        relative: &Path,
        rules: &mut IncrementalIgnore,
        above: &mut Vec<(u64, u64, PathBuf)>,
    ) -> bool {
        if self.options.max_depth.is_some_and(|most| above.len() > most) {
            return true;
        }
        let names = match names(directory) {
            Ok(names) => names,
            Err(error) => {
                let (path, reason) = (directory.display(), described(&error));
                self.messages.error(format_args!("{path}: {reason}"));
                return true;
            }
        };
        for (name, kind) in names {
            let (path, relative) = (directory.join(&name), relative.join(&name));
            if !self.child(&path, &relative, kind, rules, above) {
                return false;
            }
        }
        true
    }

    fn child(
        &mut self,
        path: &Path,
        relative: &Path,
        mut kind: fs::FileType,
        rules: &mut IncrementalIgnore,
        above: &mut Vec<(u64, u64, PathBuf)>,
    ) -> bool {
        if kind.is_symlink() {
            if !self.options.follow {
                return true;
            }
            match fs::metadata(path) {
                Ok(data) => kind = data.file_type(),
                Err(error) => {
                    self.unreachable(path, &error);
                    return true;
                }
            }
        }
        let (matched, errors) = rules.matched_with_errors(relative, kind.is_dir());
        if let Some(errors) = errors {
            self.messages.ignore_error(format_args!("{errors}"));
        }
        if matched.is_ignore() {
            return true;
        }
        if kind.is_file() {
            if self.output.is_some() && self.output == identity(path) {
                return true;
            }
            let shown = if self.implied { path.strip_prefix("./").unwrap_or(path) } else { path };
            return (self.each)(Haystack { path: shown.to_owned(), explicit: false });
        }
        if !kind.is_dir() {
            return true;
        }
        let Ok(stat) = sys::stat(path, true) else { return true };
        if let Some((_, _, ancestor)) = above.iter().find(|known| (known.0, known.1) == (stat.dev, stat.ino)) {
            let (child, ancestor) = (path.display(), ancestor.display());
            self.messages.error(format_args!("File system loop found: {child} points to an ancestor {ancestor}"));
            return true;
        }
        if self.options.one_file_system && above.first().is_some_and(|root| root.0 != stat.dev) {
            return true;
        }
        above.push((stat.dev, stat.ino, path.to_owned()));
        let on = self.directory(path, relative, rules, above);
        above.pop();
        on
    }
}

fn names(directory: &Path) -> io::Result<Vec<(OsString, fs::FileType)>> {
    let mut names = Vec::new();
    for child in fs::read_dir(directory)? {
        let child = child?;
        names.push((child.file_name(), child.file_type()?));
    }
    // Names are unique, so that kinds, which have no order, are never compared.
    names.sort_by(|one, other| one.0.cmp(&other.0));
    Ok(names)
}

fn identity(path: &Path) -> Option<Identity> {
    sys::stat(path, true).ok().map(|stat| (stat.dev, stat.ino))
}
