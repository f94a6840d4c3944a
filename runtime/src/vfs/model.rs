//! Random changes to an overlay over each kind of source, beside the same changes to a copy of its lower side on Linux: the same
//! errors, the same tree.
#![allow(clippy::disallowed_methods, reason = "the other side of the comparison is a directory of the host")]

use std::collections::BTreeMap;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use sqlite_fs::{Database, FsError, Transaction};

use super::mounts::MountPoint;
use super::{CallbackSource, DatabaseSource, HostDirectory, ProvidedNode, Provider, Scope, Source, View, import_tree};

const STEPS: usize = 400;
const SEEDS: u64 = 40;
/// Those of the other sources: the overlay is the same.
const FEWER_SEEDS: u64 = 12;
const NAMES: [&str; 4] = ["a", "b", "c", "d"];

/// Numbers that look random: the same for the same seed.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 >> 16).unwrap_or(0) % sides
    }

    fn path(&mut self) -> String {
        let depth = 1 + self.roll(3);
        (0..depth).map(|_| format!("/{}", NAMES[self.roll(NAMES.len())])).collect()
    }
}

#[derive(Debug)]
enum Step {
    Write(String, Vec<u8>),
    Append(String, Vec<u8>),
    Truncate(String, u64),
    Mode(String, u32),
    Directory(String),
    RemoveFile(String),
    RemoveDirectory(String),
    RemoveAll(String),
    Rename(String, String),
    Symlink(String, String),
    Link(String, String),
}

impl Step {
    fn random(dice: &mut Dice) -> Self {
        let (path, number) = (dice.path(), dice.roll(1000));
        match dice.roll(16) {
            0..=2 => Self::Write(path, format!("text {number}\n").repeat(1 + number % 7).into_bytes()),
            3 => Self::Append(path, format!("more {number}\n").into_bytes()),
            4 => Self::Truncate(path, (number % 40) as u64),
            5 => Self::Mode(path, [0o644, 0o755, 0o600, 0o700][number % 4]),
            6 | 7 => Self::Directory(path),
            8 | 9 => Self::RemoveFile(path),
            10 => Self::RemoveDirectory(path),
            11 => Self::RemoveAll(path),
            12 | 13 => Self::Rename(path, dice.path()),
            14 => Self::Symlink(NAMES[number % 4].to_owned(), path),
            _ => Self::Link(path, dice.path()),
        }
    }

    fn in_sandbox(&self, view: &View<Transaction>) -> Result<(), FsError> {
        let fs = view.fs();
        let at = |path: &str| format!("/m{path}");
        let done = match self {
            Self::Write(path, bytes) => fs.write(&at(path), bytes),
            Self::Append(path, bytes) => fs.append(&at(path), bytes),
            Self::Truncate(path, size) => fs.truncate(&at(path), *size),
            Self::Mode(path, mode) => fs.set_permissions(&at(path), *mode),
            Self::Directory(path) => fs.create_dir(&at(path)),
            Self::RemoveFile(path) => fs.remove_file(&at(path)),
            Self::RemoveDirectory(path) => fs.remove_dir(&at(path)),
            Self::RemoveAll(path) => fs.remove_dir_all(&at(path)).map(drop),
            Self::Rename(from, to) => fs.rename(&at(from), &at(to)),
            Self::Symlink(target, path) => fs.symlink(target, &at(path)),
            Self::Link(from, to) => fs.hard_link(&at(from), &at(to)),
        };
        done.map_err(|error| error.fs_error().unwrap())
    }

    fn on_linux(&self, top: &Path) -> std::io::Result<()> {
        use std::fs;
        let at = |path: &str| top.join(&path[1..]);
        match self {
            Self::Write(path, bytes) => fs::write(at(path), bytes),
            Self::Append(path, bytes) => {
                fs::OpenOptions::new().append(true).create(true).open(at(path)).and_then(|mut file| file.write_all(bytes))
            }
            Self::Truncate(path, size) => rustix::fs::open(at(path), rustix::fs::OFlags::WRONLY, 0.into())
                .and_then(|file| rustix::fs::ftruncate(file, *size))
                .map_err(Into::into),
            Self::Mode(path, mode) => fs::set_permissions(at(path), fs::Permissions::from_mode(*mode)),
            Self::Directory(path) => fs::create_dir(at(path)),
            Self::RemoveFile(path) => fs::remove_file(at(path)),
            Self::RemoveDirectory(path) => fs::remove_dir(at(path)),
            Self::RemoveAll(path) => fs::remove_dir_all(at(path)),
            Self::Rename(from, to) => fs::rename(at(from), at(to)),
            Self::Symlink(target, path) => std::os::unix::fs::symlink(target, at(path)),
            Self::Link(from, to) => fs::hard_link(at(from), at(to)),
        }
    }
}

// The nodes of a tree, path by path: type and permissions, and the content or the target of a link.
type Picture = BTreeMap<String, (u32, Vec<u8>)>;

fn of_sandbox(view: &View<Transaction>) -> Picture {
    let fs = view.fs();
    let mut picture = Picture::new();
    for (path, stat) in fs.walk("/m").unwrap().into_iter().skip(1) {
        let content = match stat.file_type() {
            sqlite_fs::FileType::File => fs.read(&path).unwrap(),
            sqlite_fs::FileType::Symlink => fs.read_link(&path).unwrap().into_bytes(),
            _ => Vec::new(),
        };
        picture.insert(path["/m".len()..].to_owned(), (stat.mode, content));
    }
    picture
}

fn of_linux(top: &Path) -> Picture {
    let mut picture = Picture::new();
    let mut left = vec![top.to_owned()];
    while let Some(directory) = left.pop() {
        for entry in std::fs::read_dir(&directory).unwrap() {
            let path: PathBuf = entry.unwrap().path();
            let metadata = path.symlink_metadata().unwrap();
            let content = if metadata.is_symlink() {
                path.read_link().unwrap().into_os_string().into_string().unwrap().into_bytes()
            } else if metadata.is_dir() {
                left.push(path.clone());
                Vec::new()
            } else {
                std::fs::read(&path).unwrap()
            };
            let name = format!("/{}", path.strip_prefix(top).unwrap().to_str().unwrap());
            picture.insert(name, (metadata.permissions().mode(), content));
        }
    }
    picture
}

/// The kind of the lower side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Host,
    Database,
    Past,
    Function,
}

impl Kind {
    // A source that shows what is in a directory.
    fn source(self, lower: &Path) -> Arc<dyn Source> {
        let directory = HostDirectory::open(lower, true).unwrap();
        match self {
            Self::Host => Arc::new(directory),
            Self::Function => {
                let tree = provided(lower);
                Arc::new(CallbackSource::new(Provider::directory(move |_| Ok(tree.clone())), 1 << 20))
            }
            Self::Database | Self::Past => {
                let database = Database::options().open().unwrap();
                let view = View::of_run(database.begin(None).unwrap(), &Scope::default()).unwrap();
                import_tree(&directory, &view, "/").unwrap();
                view.into_transaction().commit().unwrap();
                let version = database.reader().unwrap().versions(None, 1).unwrap()[0].number;
                if self == Self::Database {
                    return Arc::new(DatabaseSource::new(database, None));
                }
                // Everything is something else since.
                let later = database.begin(None).unwrap();
                for name in NAMES {
                    let path = format!("/{name}");
                    let _ = later.fs().remove_dir_all(&path).map(drop).or_else(|_| later.fs().remove_file(&path));
                    later.fs().write(&path, b"later").unwrap();
                }
                later.commit().unwrap();
                Arc::new(DatabaseSource::new(database, Some(version)))
            }
        }
    }
}

fn provided(path: &Path) -> ProvidedNode {
    if path.is_file() {
        return ProvidedNode::file(std::fs::read(path).unwrap());
    }
    let entries = std::fs::read_dir(path).unwrap().map(|entry| entry.unwrap());
    ProvidedNode::directory(entries.map(|entry| (entry.file_name().into_string().unwrap(), provided(&entry.path()))))
}

fn lower_side(top: &Path, dice: &mut Dice, kind: Kind) {
    for _ in 0..12 {
        let path = top.join(&dice.path()[1..]);
        let _ = match dice.roll(4) {
            0 => std::fs::create_dir_all(&path),
            // A function has no links.
            1 if kind == Kind::Function => Ok(()),
            1 => std::os::unix::fs::symlink(NAMES[dice.roll(4)], &path),
            _ => {
                std::fs::create_dir_all(path.parent().unwrap()).and_then(|()| std::fs::write(&path, format!("lower {path:?}\n")))
            }
        };
    }
}

fn run(kind: Kind, seed: u64) {
    let mut dice = Dice(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
    let lower = tempfile::tempdir().unwrap();
    let linux = tempfile::tempdir().unwrap();
    // The same random choices twice: two sides that are alike.
    let mut again = Dice(dice.0);
    lower_side(lower.path(), &mut dice, kind);
    lower_side(linux.path(), &mut again, kind);
    for path in of_linux(linux.path()).keys() {
        // The content of a file names its path; both sides must agree.
        let file = linux.path().join(&path[1..]);
        if file.symlink_metadata().unwrap().is_file() {
            std::fs::copy(lower.path().join(&path[1..]), file).unwrap();
        }
    }
    let untouched = of_linux(lower.path());

    let mounts = Arc::from([MountPoint { source: kind.source(lower.path()), path: "/m".to_owned(), overlay: true }]);
    let scope = Scope { mounts, ..Scope::default() };
    let database = Database::options().open().unwrap();
    let mut view = View::of_run(database.begin(None).unwrap(), &scope).unwrap();
    assert_eq!(of_sandbox(&view), untouched, "{kind:?}, seed {seed}, before anything");
    for number in 0..STEPS {
        let step = Step::random(&mut dice);
        let is_directory = |path: &str| linux.path().join(&path[1..]).symlink_metadata().is_ok_and(|found| found.is_dir());
        // The standard library removes a link or a file here; ours is for directories.
        if matches!(&step, Step::RemoveAll(path) if !is_directory(path)) {
            continue;
        }
        let ours = step.in_sandbox(&view);
        // As Linux's overlayfs: a directory that is on the lower side stays there. `mv` then copies.
        if ours == Err(FsError::CrossDevice) && matches!(&step, Step::Rename(from, _) if is_directory(from)) {
            continue;
        }
        let theirs = step.on_linux(linux.path()).map_err(|error| error.raw_os_error().unwrap());
        let ours = ours.map_err(|error| error.errno());
        assert_eq!(ours, theirs, "{kind:?}, seed {seed}, step {number}: {step:?}");
        if number % 20 == 19 {
            assert_eq!(of_sandbox(&view), of_linux(linux.path()), "{kind:?}, seed {seed}, after step {number}: {step:?}");
            // The next command has a view of its own.
            view.into_transaction().commit().unwrap();
            view = View::of_run(database.begin(None).unwrap(), &scope).unwrap();
            assert_eq!(of_sandbox(&view), of_linux(linux.path()), "{kind:?}, seed {seed}, after step {number}, in a new view");
        }
    }
    view.into_transaction().commit().unwrap();
    let now = View::new(database.reader().unwrap(), &scope).unwrap();
    let paths: Vec<String> =
        now.fs().walk("/m").unwrap().into_iter().skip(1).map(|(path, _)| path["/m".len()..].to_owned()).collect();
    assert_eq!(paths.len(), of_linux(linux.path()).len(), "{kind:?}, seed {seed}, as a reader sees it");
    assert_eq!(of_linux(lower.path()), untouched, "{kind:?}, seed {seed}: the host's files are as they were");
    assert_eq!(database.check().unwrap(), [], "{kind:?}, seed {seed}");
}

#[test]
fn an_overlay_behaves_as_a_directory_of_linux_would() {
    (1..=SEEDS).for_each(|seed| run(Kind::Host, seed));
}

#[test]
fn an_overlay_over_a_database_a_past_version_or_a_function_does_too() {
    for kind in [Kind::Database, Kind::Past, Kind::Function] {
        (1..=FEWER_SEEDS).for_each(|seed| run(kind, seed));
    }
}
