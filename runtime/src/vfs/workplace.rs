//! Changes to a host directory, all or none: for changes that the embedding program has reviewed and applies.
//!
//! Everything is reached name by name from the open directory, and no step follows a symbolic link, so nothing outside it is
//! touched (T-ISO-03). New files are first written to a private directory inside it; replaced files are kept there until all
//! changes are made. An error restores everything.

use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use cap_fs_ext::{DirExt as _, FollowSymlinks, OpenOptionsFollowExt as _, OpenOptionsSyncExt as _};
use cap_std::fs::{
    Dir, DirBuilder, DirBuilderExt as _, File, Metadata, MetadataExt as _, OpenOptions, OpenOptionsExt as _, Permissions,
    PermissionsExt as _,
};
use sqlite_fs::{FsError, Reader, Volume as _};

use super::directory::{HostDirectory, component, read_at};
use super::source::path_in;
use super::{Node, View};
use crate::Error;
use crate::random::Random;

/// The name of the directory for new and replaced files.
const STAGE: &str = ".sandlite-apply-";

/// Number of bytes copied and compared at once.
const PIECE: usize = 64 << 10;

/// The permissions of new files and directories: those chosen by a program of the sandbox are not used.
const FILE_MODE: u32 = 0o644;
const PROGRAM_MODE: u32 = 0o755;

/// A host directory that can be changed.
pub(crate) struct Workplace {
    directory: HostDirectory,
    path: PathBuf,
}

/// The content of a path in the directory.
pub(crate) enum There {
    /// Nothing.
    Nothing,
    /// A directory.
    Directory,
    /// A regular file.
    File(HostFile),
    /// A symbolic link, and its target.
    Link(String, Mark),
    /// Something that is not touched: a device, a pipe, a socket, or a path on another filesystem.
    Other,
}

/// A regular file of the directory.
pub(crate) struct HostFile {
    file: File,
    mark: Mark,
    /// Size in bytes.
    pub(crate) size: u64,
    /// Whether its owner may execute it.
    pub(crate) is_executable: bool,
}

/// The identity of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Mark {
    ino: u64,
    size: u64,
    mtime: (i64, i64),
    mode: u32,
}

impl Mark {
    fn of(metadata: &Metadata) -> Self {
        Self {
            ino: metadata.ino(),
            size: metadata.len(),
            mtime: (metadata.mtime(), metadata.mtime_nsec()),
            mode: metadata.mode(),
        }
    }
}

/// The new state of a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Becomes {
    /// Nothing: it is removed. A directory remains if it contains other files.
    Nothing,
    /// A directory.
    Directory,
    /// A regular file with the content of this node.
    File(Node, bool),
    /// A symbolic link.
    Link(String),
}

/// The state found at a path, as far as it must be unchanged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Was {
    Nothing,
    Directory,
    Leaf(Mark),
}

/// A changed path.
pub(crate) struct Planned {
    /// The path below the directory: plain names.
    pub(crate) relative: String,
    /// The state found there.
    pub(crate) was: Was,
    /// Its new state.
    pub(crate) becomes: Becomes,
}

impl There {
    /// Returns the state that must be unchanged; `None` if it is not touched.
    pub(crate) fn was(&self) -> Option<Was> {
        match self {
            Self::Nothing => Some(Was::Nothing),
            Self::Directory => Some(Was::Directory),
            Self::File(file) => Some(Was::Leaf(file.mark)),
            Self::Link(_, mark) => Some(Was::Leaf(*mark)),
            Self::Other => None,
        }
    }
}

impl HostFile {
    /// Returns whether it has the same bytes as a file of the sandbox.
    pub(crate) fn is_like(&self, view: &View<Reader>, node: Node, size: u64) -> Result<bool, FsError> {
        if size != self.size {
            return Ok(false);
        }
        let (mut left, mut right, mut offset) = (vec![0; PIECE], vec![0; PIECE], 0u64);
        loop {
            let (one, other) = (read_at(&self.file, offset, &mut left)?, view.read(node, offset, &mut right)?);
            if left.get(..one) != right.get(..other) {
                return Ok(false);
            }
            if one == 0 {
                return Ok(true);
            }
            offset += one as u64;
        }
    }
}

impl Workplace {
    /// Opens an existing directory. Sensitive ones are rejected as for mounts, and so are names that are hidden there: those of
    /// keys, and the sandbox's own database.
    pub(crate) fn open(mut directory: HostDirectory, path: &Path, database: Option<&Path>) -> Self {
        if let Some(file) = database {
            directory.hide(file);
        }
        Self { directory, path: path.to_owned() }
    }

    /// Returns the reason a path is never changed, if any.
    pub(crate) fn refuses(&self, relative: &str) -> Option<&'static str> {
        let (mut above, mut names) = (String::new(), relative.split('/'));
        names.find_map(|name| {
            if component(name).is_err() {
                return Some("its name is invalid");
            }
            if is_git(name) {
                return Some("it is in a git directory");
            }
            if self.directory.hides(&above, name) || name.starts_with(STAGE) {
                return Some("its name is reserved");
            }
            above = path_in(&above, name);
            None
        })
    }

    fn failed(&self, relative: &str, source: io::Error) -> Error {
        Error::HostFile { path: self.path.join(relative), source }
    }

    // The directory that a path is in, and its last name. No step follows a link.
    fn parent(&self, relative: &str) -> Result<(Dir, String), FsError> {
        let (above, name) = relative.rsplit_once('/').unwrap_or(("", relative));
        Ok((self.directory.descend(above)?, component(name)?.to_owned()))
    }

    /// Returns the state of a path.
    pub(crate) fn look(&self, relative: &str) -> Result<There, Error> {
        let (dir, name) = match self.parent(relative) {
            Ok(found) => found,
            Err(FsError::NoEntry) => return Ok(There::Nothing),
            // A parent directory is something else, for example a link: nothing below it is ours.
            Err(FsError::NotDirectory) => return Ok(There::Nothing),
            Err(error) => return Err(self.failed(relative, io::Error::other(error))),
        };
        let found = match dir.symlink_metadata(&name) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(There::Nothing),
            found => found.map_err(|source| self.failed(relative, source))?,
        };
        let kind = found.file_type();
        if kind.is_symlink() {
            let target = dir.read_link_contents(&name).map_err(|source| self.failed(relative, source))?;
            return Ok(There::Link(target.to_string_lossy().into_owned(), Mark::of(&found)));
        }
        if kind.is_dir() {
            return Ok(if self.directory.enter(&dir, &name).is_ok() { There::Directory } else { There::Other });
        }
        if !kind.is_file() {
            return Ok(There::Other);
        }
        let mut options = OpenOptions::new();
        options.read(true).follow(FollowSymlinks::No).nonblock(true);
        let file = dir.open_with(&name, &options).map_err(|source| self.failed(relative, source))?;
        let metadata = file.metadata().map_err(|source| self.failed(relative, source))?;
        if !metadata.is_file() {
            return Ok(There::Other);
        }
        let is_executable = metadata.mode() & 0o100 != 0;
        Ok(There::File(HostFile { file, mark: Mark::of(&metadata), size: metadata.len(), is_executable }))
    }

    /// Returns the names in a directory.
    pub(crate) fn names(&self, relative: &str) -> Result<Vec<String>, Error> {
        let list = || -> io::Result<Vec<String>> {
            let dir = self.directory.descend(relative).map_err(io::Error::other)?;
            dir.entries()?.map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned())).collect()
        };
        list().map_err(|source| self.failed(relative, source))
    }

    /// Makes all changes, or none: then the error has the reason, and the paths that could not be restored. The paths are sorted;
    /// each directory comes before its content. Returns the directories that remain because they contain other files.
    pub(crate) fn change(&self, view: &View<Reader>, planned: &[Planned]) -> Result<Vec<String>, Error> {
        let stage = Stage::make(self)?;
        let mut made = Made { place: self, stage: &stage, done: Vec::new(), kept: Vec::new() };
        let outcome = stage.fill(view, planned).and_then(|()| made.put_in_place(planned));
        match outcome {
            Ok(()) => {
                let kept = std::mem::take(&mut made.kept);
                stage.remove();
                Ok(kept)
            }
            Err(error) => Err(made.put_back(error)),
        }
    }
}

// Names under which git could find a repository, also on filesystems that ignore case or trailing dots.
fn is_git(name: &str) -> bool {
    // Characters that HFS+ ignores.
    let ignored = |c: char| matches!(c, '\u{200c}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{206a}'..='\u{206f}' | '\u{feff}');
    let plain: String = name.chars().filter(|c| !ignored(*c)).collect();
    let plain = plain.split(':').next().unwrap_or_default().trim_end_matches(['.', ' ']);
    plain.eq_ignore_ascii_case(".git") || plain.eq_ignore_ascii_case("git~1")
}

/// The directory for new and replaced files.
struct Stage<'a> {
    place: &'a Workplace,
    name: String,
    dir: Dir,
}

impl<'a> Stage<'a> {
    fn make(place: &'a Workplace) -> Result<Self, Error> {
        let mut random = [0; 8];
        Random::Machine.fill(&mut random).map_err(|source| place.failed("", source))?;
        let name = format!("{STAGE}{:016x}", u64::from_le_bytes(random));
        let make = || {
            let root = place.directory.top();
            root.create_dir_with(&name, DirBuilder::new().mode(0o700))?;
            root.open_dir_nofollow(&name)
        };
        let dir = make().map_err(|source| place.failed(&name, source))?;
        Ok(Self { place, name, dir })
    }

    // Writes all new files here.
    fn fill(&self, view: &View<Reader>, planned: &[Planned]) -> Result<(), Error> {
        for (number, one) in planned.iter().enumerate() {
            let failed = |source| self.place.failed(&one.relative, source);
            match &one.becomes {
                Becomes::File(node, is_program) => {
                    let mut options = OpenOptions::new();
                    options.write(true).create_new(true).follow(FollowSymlinks::No).mode(0o600);
                    let mut file = self.dir.open_with(new_name(number), &options).map_err(failed)?;
                    let (mut buffer, mut offset) = (vec![0; PIECE], 0u64);
                    loop {
                        let read = view.read(*node, offset, &mut buffer);
                        let read = read.map_err(|source| Error::file("apply", &one.relative, source))?;
                        let Some(piece) = buffer.get(..read).filter(|piece| !piece.is_empty()) else { break };
                        file.write_all(piece).map_err(failed)?;
                        offset += read as u64;
                    }
                    file.set_permissions(Permissions::from_mode(mode_of(one.was, *is_program))).map_err(failed)?;
                }
                Becomes::Link(target) => self.dir.symlink(target, new_name(number)).map_err(failed)?,
                Becomes::Nothing | Becomes::Directory => {}
            }
        }
        Ok(())
    }

    fn remove(self) {
        let _ = self.place.directory.top().remove_dir_all(&self.name);
    }
}

fn new_name(number: usize) -> String {
    format!("new-{number}")
}

fn old_name(number: usize) -> String {
    format!("old-{number}")
}

// An existing file keeps its permissions, except for those to execute it.
fn mode_of(was: Was, is_program: bool) -> u32 {
    match (was, is_program) {
        (Was::Leaf(mark), true) if mark.mode & 0o170_000 == 0o100_000 => mark.mode & 0o777 | (mark.mode & 0o444) >> 2,
        (Was::Leaf(mark), false) if mark.mode & 0o170_000 == 0o100_000 => mark.mode & 0o666,
        (_, true) => PROGRAM_MODE,
        (_, false) => FILE_MODE,
    }
}

/// A change to a path, to be reverted.
enum Done {
    /// It was moved to the stage.
    Moved(usize),
    /// A hard link to it is in the stage, and a new file in its place.
    Replaced(usize),
    /// A file or a link is new.
    Created,
    /// A directory was removed.
    DirectoryRemoved,
    /// A directory is new.
    DirectoryMade,
}

struct Made<'a> {
    place: &'a Workplace,
    stage: &'a Stage<'a>,
    done: Vec<(Done, String)>,
    kept: Vec<String>,
}

impl Made<'_> {
    fn put_in_place(&mut self, planned: &[Planned]) -> Result<(), Error> {
        // Removals come first, from the leaves up, because another type of file may take their place.
        for (number, one) in planned.iter().enumerate().rev() {
            let failed = |source| self.place.failed(&one.relative, source);
            match (one.was, &one.becomes) {
                (Was::Leaf(mark), Becomes::Nothing | Becomes::Directory | Becomes::Link(_)) => {
                    self.move_away(number, &one.relative, mark).map_err(failed)?;
                }
                // A link, or anything else that is not a file, cannot be replaced in one step.
                (Was::Leaf(mark), Becomes::File(..)) if mark.mode & 0o170_000 != 0o100_000 => {
                    self.move_away(number, &one.relative, mark).map_err(failed)?;
                }
                (Was::Directory, Becomes::Nothing | Becomes::File(..) | Becomes::Link(_)) => {
                    let (dir, name) = self.parent(&one.relative).map_err(failed)?;
                    match dir.remove_dir(&name) {
                        Ok(()) => self.done.push((Done::DirectoryRemoved, one.relative.clone())),
                        Err(error) if is_not_empty(&error) && one.becomes == Becomes::Nothing => {
                            self.kept.push(one.relative.clone());
                        }
                        Err(error) => return Err(failed(error)),
                    }
                }
                _ => {}
            }
        }
        for (number, one) in planned.iter().enumerate() {
            let failed = |source| self.place.failed(&one.relative, source);
            match (one.was, &one.becomes) {
                (_, Becomes::Nothing) | (Was::Directory, Becomes::Directory) => {}
                (_, Becomes::Directory) => {
                    let (dir, name) = self.parent(&one.relative).map_err(failed)?;
                    dir.create_dir_with(&name, DirBuilder::new().mode(PROGRAM_MODE)).map_err(failed)?;
                    self.done.push((Done::DirectoryMade, one.relative.clone()));
                }
                (Was::Leaf(mark), Becomes::File(..)) if mark.mode & 0o170_000 == 0o100_000 => {
                    self.replace(number, &one.relative, mark).map_err(failed)?;
                }
                (_, Becomes::Link(target)) => {
                    let (dir, name) = self.parent(&one.relative).map_err(failed)?;
                    dir.symlink(target, &name).map_err(failed)?;
                    self.done.push((Done::Created, one.relative.clone()));
                }
                (_, Becomes::File(..)) => self.create(number, &one.relative).map_err(failed)?,
            }
        }
        Ok(())
    }

    fn parent(&self, relative: &str) -> io::Result<(Dir, String)> {
        self.place.parent(relative).map_err(io::Error::other)
    }

    fn move_away(&mut self, number: usize, relative: &str, mark: Mark) -> io::Result<()> {
        let (dir, name) = self.parent(relative)?;
        same(&dir.symlink_metadata(&name)?, mark)?;
        dir.rename(&name, &self.stage.dir, old_name(number))?;
        self.done.push((Done::Moved(number), relative.to_owned()));
        same(&self.stage.dir.symlink_metadata(old_name(number))?, mark)
    }

    // The path always has a file: the old one, then the new one.
    fn replace(&mut self, number: usize, relative: &str, mark: Mark) -> io::Result<()> {
        let (dir, name) = self.parent(relative)?;
        same(&dir.symlink_metadata(&name)?, mark)?;
        if dir.hard_link(&name, &self.stage.dir, old_name(number)).is_err() {
            // Not every filesystem supports links.
            self.move_away(number, relative, mark)?;
            return self.create(number, relative);
        }
        same(&self.stage.dir.symlink_metadata(old_name(number))?, mark)?;
        self.stage.dir.rename(new_name(number), &dir, &name)?;
        self.done.push((Done::Replaced(number), relative.to_owned()));
        Ok(())
    }

    // A file that has appeared there meanwhile is not replaced.
    fn create(&mut self, number: usize, relative: &str) -> io::Result<()> {
        let (dir, name) = self.parent(relative)?;
        match self.stage.dir.hard_link(new_name(number), &dir, &name) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => return Err(error),
            Err(_) => {
                if dir.symlink_metadata(&name).is_ok() {
                    return Err(io::ErrorKind::AlreadyExists.into());
                }
                self.stage.dir.rename(new_name(number), &dir, &name)?;
            }
        }
        self.done.push((Done::Created, relative.to_owned()));
        Ok(())
    }

    // Reverts the changes, last ones first, and reports the result.
    fn put_back(&mut self, error: Error) -> Error {
        let mut left = Vec::new();
        for (done, relative) in std::mem::take(&mut self.done).into_iter().rev() {
            let back = || -> io::Result<()> {
                let (dir, name) = self.parent(&relative)?;
                match done {
                    Done::Moved(number) | Done::Replaced(number) => self.stage.dir.rename(old_name(number), &dir, &name),
                    Done::Created => dir.remove_file(&name),
                    Done::DirectoryRemoved => dir.create_dir_with(&name, DirBuilder::new().mode(PROGRAM_MODE)),
                    Done::DirectoryMade => dir.remove_dir(&name),
                }
            };
            if back().is_err() {
                left.push(relative);
            }
        }
        if left.is_empty() {
            let _ = self.place.directory.top().remove_dir_all(&self.stage.name);
            return error;
        }
        let names = left.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
        let kept = self.place.path.join(&self.stage.name);
        Error::Invalid(format!(
            "{}; {names} could not be restored: the previous content is in `{}`",
            error.causes().join(": "),
            kept.display()
        ))
    }
}

fn is_not_empty(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::DirectoryNotEmpty)
}

fn same(metadata: &Metadata, mark: Mark) -> io::Result<()> {
    if Mark::of(metadata) == mark { Ok(()) } else { Err(io::Error::other("it was changed concurrently")) }
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "the test is the host")]
mod tests {
    use super::*;

    #[test]
    fn every_spelling_of_git_is_known() {
        for name in [".git", ".GIT", ".git.", ".git ", "git~1", "GIT~1", ".g\u{200c}it", ".git::$INDEX_ALLOCATION"] {
            assert!(is_git(name), "{name}");
        }
        for name in [".gitignore", "git", ".github", ".gitmodules"] {
            assert!(!is_git(name), "{name}");
        }
    }

    /// A directory, the sandbox's files, and a plan in which everything changes and the last file is not the one that was seen.
    fn planned(directory: &Path) -> (Workplace, View<Reader>, Vec<Planned>) {
        std::fs::create_dir(directory.join("goes")).unwrap();
        for name in ["becomes", "goes/file", "replaced", "zz"] {
            std::fs::write(directory.join(name), format!("old {name}")).unwrap();
        }
        let place = Workplace::open(HostDirectory::open(directory, false).unwrap(), directory, None);
        let database = sqlite_fs::Database::options().open().unwrap();
        let transaction = database.begin(None).unwrap();
        transaction.fs().write("/new", "new").unwrap();
        transaction.commit().unwrap();
        let view = View::new(database.reader().unwrap(), &super::super::Scope::default()).unwrap();
        let node = view.find(super::super::ROOT_NODE, "/new", sqlite_fs::path::Last::NoFollow).unwrap().0;
        let file = || Becomes::File(node, false);
        let planned = [
            ("becomes", Becomes::Directory),
            ("becomes/inside", file()),
            ("created", file()),
            ("goes", Becomes::Nothing),
            ("goes/file", Becomes::Nothing),
            ("link", Becomes::Link("created".to_owned())),
            ("replaced", file()),
            ("zz", file()),
        ];
        let planned = planned.map(|(relative, becomes)| {
            let was = place.look(relative).unwrap().was().unwrap();
            Planned { relative: relative.to_owned(), was, becomes }
        });
        (place, view, planned.into())
    }

    fn content(directory: &Path) -> Vec<(PathBuf, Option<String>)> {
        let (mut found, mut left) = (Vec::new(), vec![directory.to_owned()]);
        while let Some(at) = left.pop() {
            for entry in std::fs::read_dir(at).unwrap() {
                let path = entry.unwrap().path();
                found.push((path.strip_prefix(directory).unwrap().to_owned(), std::fs::read_to_string(&path).ok()));
                if path.is_dir() {
                    left.push(path);
                }
            }
        }
        found.sort();
        found
    }

    #[test]
    fn a_file_that_changes_at_the_last_moment_puts_everything_back() {
        let directory = tempfile::tempdir().unwrap();
        let (place, view, planned) = planned(directory.path());
        let before = content(directory.path());
        std::fs::write(directory.path().join("zz"), "another length").unwrap();
        let error = place.change(&view, &planned).unwrap_err();
        assert!(error.causes().join(": ").contains("changed concurrently"), "{error}");
        std::fs::write(directory.path().join("zz"), "old zz").unwrap();
        assert_eq!(content(directory.path()), before);
    }

    #[test]
    fn a_file_that_appears_at_the_last_moment_puts_everything_back() {
        let directory = tempfile::tempdir().unwrap();
        let (place, view, planned) = planned(directory.path());
        std::fs::write(directory.path().join("created"), "somebody's").unwrap();
        let before = content(directory.path());
        assert!(matches!(place.change(&view, &planned), Err(Error::HostFile { .. })));
        assert_eq!(content(directory.path()), before);
    }

    #[test]
    fn without_a_surprise_everything_is_in_its_place() {
        let directory = tempfile::tempdir().unwrap();
        let (place, view, planned) = planned(directory.path());
        assert_eq!(place.change(&view, &planned).unwrap(), [] as [String; 0]);
        let names: Vec<String> = content(directory.path()).iter().map(|(path, _)| path.display().to_string()).collect();
        assert_eq!(names, ["becomes", "becomes/inside", "created", "link", "replaced", "zz"]);
    }

    #[test]
    fn a_file_keeps_its_permissions_but_for_execution() {
        let was = |mode: u32| Was::Leaf(Mark { ino: 1, size: 1, mtime: (0, 0), mode: 0o100_000 | mode });
        assert_eq!(mode_of(was(0o600), true), 0o700);
        assert_eq!(mode_of(was(0o664), true), 0o775);
        assert_eq!(mode_of(was(0o4755), false), 0o644);
        assert_eq!((mode_of(Was::Nothing, true), mode_of(Was::Nothing, false)), (0o755, 0o644));
    }
}
