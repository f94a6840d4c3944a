//! The same operations here and on the machine's own filesystem: every error number and the trees they leave agree.

#![expect(clippy::disallowed_methods, reason = "a test makes files of its own, and measures or waits")]

use std::collections::BTreeMap;
use std::path::Path;

use rustix::fd::OwnedFd;
use rustix::fs::{self as real, AtFlags, Dir, Mode, OFlags};
use rustix::io::Errno;
use rustix::thread::{CapabilitySet, capabilities, set_capabilities};
use sqlite_fs::path::{self, Last, Open};
use sqlite_fs::{Database, FsError, ROOT, Transaction};

const SEQUENCES: u64 = 600;
/// Sequences in which permissions count.
const MODE_SEQUENCES: u64 = 400;
const OPERATIONS: u32 = 80;
/// Directories above the working directory, for links that say `..`.
const ABOVE: &str = "s/t/u/v/x/y/z";

/// A small generator (splitmix64): the same cases every time.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit
    }

    fn chance(&mut self, one_in: u64) -> bool {
        self.below(one_in) == 0
    }

    fn pick<'a>(&mut self, from: &[&'a str]) -> &'a str {
        from[self.below(from.len() as u64) as usize]
    }
}

/// A path from the working directory.
fn some_path(random: &mut Random) -> String {
    if random.chance(60) {
        return random.pick(&["", ".", "..", "./", "../", "./.", "../w", "../w/", "../w/.", "../w/..", "a/../../w/b"]).to_owned();
    }
    let mut path = String::new();
    for part in 0..=random.below(3) {
        if part > 0 {
            path.push_str(random.pick(&["/", "/", "/", "//", "/./"]));
        }
        let name = random.pick(&["a", "b", "c", "d", "a", "b", "e", "l", "m", "."]);
        path.push_str(if random.chance(10) { "a/.." } else { name });
    }
    if random.chance(80) {
        path.push_str(&"x".repeat(if random.chance(2) { 255 } else { 254 }));
    }
    if random.chance(200) {
        path = "a/".repeat(2100);
    }
    if random.chance(8) {
        path.push('/');
    }
    path
}

#[derive(Debug)]
enum Op {
    Mkdir(String),
    Open(String, Open),
    Write(String, u64, usize),
    Append(String, usize),
    Truncate(String, u64),
    Unlink(String),
    Rmdir(String),
    Rename(String, String),
    Link(String, String),
    Symlink(String, String),
    Readlink(String),
    Stat(String),
    Lstat(String),
    Chmod(String, u32),
    Utimes(String, i64),
    List(String),
    Read(String),
}

/// A mode that may close a directory or a file even to its owner; every other one opens it again.
fn any_mode(random: &mut Random) -> u32 {
    let bits = random.below(0o1000) as u32;
    if random.chance(2) { bits | 0o700 } else { bits }
}

fn some_op(random: &mut Random, modes: bool) -> Op {
    let path = some_path(random);
    if modes && random.chance(6) {
        return Op::Chmod(path, any_mode(random));
    }
    match random.below(30) {
        0..=3 => Op::Mkdir(path),
        4..=8 => {
            let create = random.chance(2);
            let open = Open {
                write: random.chance(2),
                create,
                exclusive: create && random.chance(3),
                truncate: random.chance(3),
                // Kernels disagree about O_CREAT with O_DIRECTORY.
                directory: !create && random.chance(4),
                no_follow: random.chance(4),
            };
            Op::Open(path, open)
        }
        9..=11 => Op::Write(path, random.below(200_000), random.below(70_000) as usize),
        12 => Op::Append(path, random.below(5000) as usize),
        13 => Op::Truncate(path, random.below(150_000)),
        14..=15 => Op::Unlink(path),
        16 => Op::Rmdir(path),
        17..=20 => Op::Rename(path, some_path(random)),
        21..=22 => Op::Link(path, some_path(random)),
        23..=24 => {
            let target = random.pick(&["a", "b", "a/b", "../w/a", "l", "m", "l/", "b/", ".", "..", "", "nowhere", "a/l"]);
            Op::Symlink(target.to_owned(), path)
        }
        25 => Op::Readlink(path),
        26 => Op::Stat(path),
        27 => Op::Lstat(path),
        28 if random.chance(2) => Op::Chmod(path, 0o600 | (random.below(8) as u32)),
        28 => Op::Utimes(path, random.below(2_000_000_000_000_000_000) as i64),
        _ if random.chance(2) => Op::List(path),
        _ => Op::Read(path),
    }
}

fn bytes(offset: u64, len: usize) -> Vec<u8> {
    (0..len as u64).map(|i| ((offset + i) * 31 % 253) as u8).collect()
}

type Answer = Result<String, i32>;

/// One side of the comparison: ours.
struct Ours<'a> {
    transaction: &'a Transaction,
    cwd: u64,
}

impl Ours<'_> {
    fn run(&self, op: &Op) -> Answer {
        let t = self.transaction;
        let fs = t.fs().cwd(self.cwd);
        let errno = |error: FsError| error.errno();
        let find = |path: &str, last| {
            path::resolve(t, ROOT, self.cwd, path, last).and_then(|resolved| resolved.existing()).map_err(errno)
        };
        let open =
            |path: &str, open: Open| fs.open(path, &open, 0o644).map_err(|error| error.fs_error().expect("a file error").errno());
        let done = |result: Result<(), sqlite_fs::Error>| match result {
            Ok(()) => Ok(String::new()),
            Err(error) => Err(error.fs_error().expect("a file error").errno()),
        };
        let write = Open { write: true, create: true, ..Open::default() };
        match op {
            Op::Mkdir(path) => done(fs.create_dir(path)),
            Op::Open(path, flags) => open(path, *flags).map(|_| String::new()),
            Op::Write(path, offset, len) => {
                let ino = open(path, write)?;
                t.write(ino, *offset, &bytes(*offset, *len)).map(|n| n.to_string()).map_err(errno)
            }
            Op::Append(path, len) => {
                let ino = open(path, write)?;
                t.append(ino, &bytes(7, *len)).map(|end| end.to_string()).map_err(errno)
            }
            Op::Truncate(path, size) => {
                let ino = open(path, Open { write: true, ..Open::default() })?;
                t.truncate(ino, *size).map(|()| String::new()).map_err(errno)
            }
            Op::Unlink(path) => done(fs.remove_file(path)),
            Op::Rmdir(path) => done(fs.remove_dir(path)),
            Op::Rename(from, to) => done(fs.rename(from, to)),
            Op::Link(from, to) => done(fs.hard_link(from, to)),
            Op::Symlink(target, path) => done(fs.symlink(target, path)),
            Op::Readlink(path) => match find(path, Last::NoFollow)? {
                (ino, sqlite_fs::FileType::Symlink) => t.readlink(ino).map_err(errno),
                _ => Err(FsError::Invalid.errno()),
            },
            Op::Stat(path) => self.describe(find(path, Last::Follow)?.0).map_err(errno),
            Op::Lstat(path) => self.describe(find(path, Last::NoFollow)?.0).map_err(errno),
            Op::Chmod(path, mode) => t.chmod(find(path, Last::Follow)?.0, *mode).map(|()| String::new()).map_err(errno),
            Op::Utimes(path, time) => {
                let (ino, _) = find(path, Last::Follow)?;
                t.set_times(ino, Some(*time), Some(time + 1)).map_err(errno)?;
                let stat = t.stat(ino).map_err(errno)?;
                Ok(format!("{} {}", stat.atime, stat.mtime))
            }
            Op::List(path) => {
                let ino = open(path, Open { directory: true, ..Open::default() })?;
                let mut names: Vec<_> =
                    t.readdir(ino, 0, 10_000).map_err(errno)?.into_iter().map(|e| format!("{}:{:?}", e.name, e.kind)).collect();
                names.sort();
                Ok(names.join(" "))
            }
            Op::Read(path) => {
                let ino = open(path, Open::default())?;
                let mut buffer = vec![0; 400_000];
                let len = t.read(ino, 1000, &mut buffer).map_err(errno)?;
                Ok(format!("{len} {:?}", checksum(&buffer[..len])))
            }
        }
    }

    fn describe(&self, ino: u64) -> Result<String, FsError> {
        let stat = self.transaction.stat(ino)?;
        Ok(match stat.is_dir() {
            true => format!("{:o} {}", stat.mode, stat.nlink),
            false => format!("{:o} {} {}", stat.mode, stat.nlink, stat.size),
        })
    }

    fn tree(&self, dir: u64, prefix: &str, out: &mut BTreeMap<String, String>) {
        for entry in self.transaction.readdir(dir, 0, 100_000).unwrap() {
            let path = format!("{prefix}/{}", entry.name);
            let mut text = self.describe(entry.ino).unwrap();
            match entry.kind {
                sqlite_fs::FileType::Directory => self.tree(entry.ino, &path, out),
                sqlite_fs::FileType::Symlink => text += &self.transaction.readlink(entry.ino).unwrap(),
                // Nothing here makes one.
                sqlite_fs::FileType::Fifo | sqlite_fs::FileType::Device => {}
                sqlite_fs::FileType::File => {
                    let mut buffer = vec![0; 500_000];
                    let len = self.transaction.read(entry.ino, 0, &mut buffer).unwrap();
                    text += &format!(" {}", checksum(&buffer[..len]));
                }
            }
            out.insert(path, text);
        }
    }
}

fn checksum(bytes: &[u8]) -> u64 {
    bytes.iter().fold(1, |sum, &byte| (sum ^ u64::from(byte)).wrapping_mul(0x100_0000_01B3))
}

/// The other side: the machine.
struct Machine {
    cwd: OwnedFd,
}

impl Machine {
    fn open(&self, path: &str, open: Open) -> Result<OwnedFd, Errno> {
        let mut flags = if open.write { OFlags::RDWR } else { OFlags::RDONLY } | OFlags::CLOEXEC;
        flags.set(OFlags::CREATE, open.create);
        flags.set(OFlags::EXCL, open.exclusive);
        flags.set(OFlags::TRUNC, open.truncate);
        flags.set(OFlags::DIRECTORY, open.directory);
        flags.set(OFlags::NOFOLLOW, open.no_follow);
        real::openat(&self.cwd, path, flags, Mode::from_raw_mode(0o644))
    }

    fn run(&self, op: &Op) -> Answer {
        self.try_run(op).map_err(|errno| errno.raw_os_error())
    }

    fn try_run(&self, op: &Op) -> Result<String, Errno> {
        let cwd = &self.cwd;
        let write = Open { write: true, create: true, ..Open::default() };
        let empty = |()| String::new();
        match op {
            Op::Mkdir(path) => real::mkdirat(cwd, path.as_str(), Mode::from_raw_mode(0o755)).map(empty),
            Op::Open(path, open) => self.open(path, *open).map(|_| String::new()),
            Op::Write(path, offset, len) => {
                let fd = self.open(path, write)?;
                rustix::io::pwrite(&fd, &bytes(*offset, *len), *offset).map(|n| n.to_string())
            }
            Op::Append(path, len) => {
                let fd = self.open(path, write)?;
                let end = real::fstat(&fd)?.st_size as u64;
                rustix::io::pwrite(&fd, &bytes(7, *len), end).map(|n| (end + n as u64).to_string())
            }
            Op::Truncate(path, size) => {
                let fd = self.open(path, Open { write: true, ..Open::default() })?;
                real::ftruncate(&fd, *size).map(empty)
            }
            Op::Unlink(path) => real::unlinkat(cwd, path.as_str(), AtFlags::empty()).map(empty),
            Op::Rmdir(path) => real::unlinkat(cwd, path.as_str(), AtFlags::REMOVEDIR).map(empty),
            Op::Rename(from, to) => real::renameat(cwd, from.as_str(), cwd, to.as_str()).map(empty),
            Op::Link(from, to) => real::linkat(cwd, from.as_str(), cwd, to.as_str(), AtFlags::empty()).map(empty),
            Op::Symlink(target, path) => real::symlinkat(target.as_str(), cwd, path.as_str()).map(empty),
            Op::Readlink(path) => real::readlinkat(cwd, path.as_str(), Vec::new()).map(|target| target.into_string().unwrap()),
            Op::Stat(path) => real::statat(cwd, path.as_str(), AtFlags::empty()).map(|stat| describe(&stat)),
            Op::Lstat(path) => real::statat(cwd, path.as_str(), AtFlags::SYMLINK_NOFOLLOW).map(|stat| describe(&stat)),
            Op::Chmod(path, mode) => real::chmodat(cwd, path.as_str(), Mode::from_raw_mode(*mode), AtFlags::empty()).map(empty),
            Op::Utimes(path, time) => {
                let spec =
                    |ns: i64| real::Timespec { tv_sec: ns.div_euclid(1_000_000_000), tv_nsec: ns.rem_euclid(1_000_000_000) as _ };
                let times = real::Timestamps { last_access: spec(*time), last_modification: spec(time + 1) };
                real::utimensat(cwd, path.as_str(), &times, AtFlags::empty())?;
                let stat = real::statat(cwd, path.as_str(), AtFlags::empty())?;
                let join = |seconds: i64, nanos: u64| seconds * 1_000_000_000 + nanos as i64;
                Ok(format!("{} {}", join(stat.st_atime, stat.st_atime_nsec), join(stat.st_mtime, stat.st_mtime_nsec)))
            }
            Op::List(path) => {
                let fd = self.open(path, Open { directory: true, ..Open::default() })?;
                let mut names: Vec<_> = entries(&fd).into_iter().map(|(name, kind)| format!("{name}:{kind}")).collect();
                names.sort();
                Ok(names.join(" "))
            }
            Op::Read(path) => {
                let fd = self.open(path, Open::default())?;
                let mut buffer = vec![0; 400_000];
                let len = rustix::io::pread(&fd, &mut buffer[..], 1000)?;
                Ok(format!("{len} {:?}", checksum(&buffer[..len])))
            }
        }
    }

    fn tree(&self, dir: &OwnedFd, prefix: &str, out: &mut BTreeMap<String, String>) {
        for (name, kind) in entries(dir) {
            let path = format!("{prefix}/{name}");
            let mut text = describe(&real::statat(dir, &name, AtFlags::SYMLINK_NOFOLLOW).unwrap());
            match kind {
                "Directory" => {
                    real::chmodat(dir, &name, Mode::RWXU, AtFlags::empty()).unwrap();
                    let below = real::openat(dir, &name, OFlags::RDONLY, Mode::empty()).unwrap();
                    self.tree(&below, &path, out);
                }
                "Symlink" => text += real::readlinkat(dir, &name, Vec::new()).unwrap().to_str().unwrap(),
                _ => {
                    // It may have another name, under which its mode is still to be noted.
                    let mode = Mode::from_raw_mode(real::statat(dir, &name, AtFlags::empty()).unwrap().st_mode & 0o7777);
                    real::chmodat(dir, &name, Mode::RUSR, AtFlags::empty()).unwrap();
                    let file = real::openat(dir, &name, OFlags::RDONLY, Mode::empty()).unwrap();
                    real::chmodat(dir, &name, mode, AtFlags::empty()).unwrap();
                    let mut buffer = vec![0; 500_000];
                    let len = rustix::io::pread(&file, &mut buffer[..], 0).unwrap();
                    text += &format!(" {}", checksum(&buffer[..len]));
                }
            }
            out.insert(path, text);
        }
    }
}

fn describe(stat: &real::Stat) -> String {
    match stat.st_mode & 0o170_000 {
        0o040_000 => format!("{:o} {}", stat.st_mode, stat.st_nlink),
        _ => format!("{:o} {} {}", stat.st_mode, stat.st_nlink, stat.st_size),
    }
}

fn entries(dir: &OwnedFd) -> Vec<(String, &'static str)> {
    let mut entries = Vec::new();
    // The descriptor itself: reopening `.` would require search permission.
    for entry in Dir::new(dir.try_clone().unwrap()).unwrap() {
        let entry = entry.unwrap();
        let name = entry.file_name().to_str().unwrap().to_owned();
        if name != "." && name != ".." {
            let kind = match entry.file_type() {
                real::FileType::Directory => "Directory",
                real::FileType::Symlink => "Symlink",
                _ => "File",
            };
            entries.push((name, kind));
        }
    }
    entries
}

/// On Linux root needs no permissions because it has these capabilities; without them it is an owner like others. They
/// are the calling thread's.
fn with_privileges(yes: bool) {
    let all = CapabilitySet::DAC_OVERRIDE | CapabilitySet::DAC_READ_SEARCH;
    let mut sets = capabilities(None).unwrap();
    let wanted = sets.permitted & all;
    sets.effective = if yes { sets.effective | wanted } else { sets.effective - wanted };
    set_capabilities(None, sets).unwrap();
}

/// The same operations on both sides; with `modes` as a user whose permission bits count.
fn compare(seed: u64, base: &Path, modes: bool) {
    let mut random = Random(seed);
    let top = base.join(seed.to_string());
    std::fs::create_dir_all(top.join(ABOVE).join("w")).unwrap();
    let machine =
        Machine { cwd: real::open(top.join(ABOVE).join("w"), OFlags::RDONLY | OFlags::DIRECTORY, Mode::empty()).unwrap() };
    let database = Database::options().open().unwrap();
    let mut transaction = database.begin(None).unwrap();
    transaction.fs().create_dir_all(&format!("{ABOVE}/w")).unwrap();
    let cwd = transaction.fs().metadata(&format!("{ABOVE}/w")).unwrap().ino;
    transaction.hold(cwd).unwrap();
    let mut log = Vec::new();
    for _ in 0..OPERATIONS {
        let op = some_op(&mut random, modes);
        if modes {
            transaction.obey_modes(true).unwrap();
        }
        if modes && random.chance(8) {
            // Closed, the working directory would end all other questions.
            transaction.chmod(cwd, 0o755).unwrap();
            real::fchmod(&machine.cwd, Mode::from_raw_mode(0o755)).unwrap();
        }
        let (ours, theirs) = (Ours { transaction: &transaction, cwd }.run(&op), machine.run(&op));
        log.push(format!("{op:?} -> {theirs:?}"));
        assert_eq!(ours, theirs, "seed {seed}, ours left, the machine's right, after\n{}", log.join("\n"));
        // A removed working directory lives as long as the transaction that holds it.
        if random.chance(25) && transaction.stat(cwd).unwrap().nlink > 0 {
            transaction.commit().unwrap();
            transaction = database.begin(None).unwrap();
            transaction.hold(cwd).unwrap();
        }
    }
    // Directories that were made inaccessible are opened again; below, `tree` does so after it has noted the modes.
    let above = top.join(ABOVE).join("w");
    for dir in above.ancestors().take_while(|dir| *dir != base).collect::<Vec<_>>().into_iter().rev() {
        real::chmod(dir, Mode::RWXU).unwrap();
    }
    let (mut ours, mut theirs) = (BTreeMap::new(), BTreeMap::new());
    Ours { transaction: &transaction, cwd }.tree(cwd, "", &mut ours);
    machine.tree(&machine.cwd, "", &mut theirs);
    assert_eq!(ours, theirs, "seed {seed}: the trees differ after\n{}", log.join("\n"));
    std::fs::remove_dir_all(&top).unwrap();
}

#[test]
fn every_error_is_that_of_linux() {
    let base = tempfile::tempdir().unwrap();
    for seed in 0..SEQUENCES {
        compare(seed, base.path(), false);
    }
}

#[test]
fn every_error_for_ordinary_users_is_that_of_linux() {
    let base = tempfile::tempdir().unwrap();
    with_privileges(false);
    for seed in 0..MODE_SEQUENCES {
        compare(seed, base.path(), true);
    }
    with_privileges(true);
}
