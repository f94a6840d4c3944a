//! Random operations here and on a model that a page of code explains: they agree, and the rows keep every rule.

#![expect(clippy::disallowed_methods, reason = "a test makes files of its own, and measures or waits")]

mod model {
    pub mod state;
}

use std::collections::BTreeMap;

use model::state::{Model, NAMES, Outcome, QUOTA};
use proptest::collection::vec;
use proptest::prelude::*;
use sqlite_fs::{Change, ChangeKind, Database, Durability, FileType, FsError, ROOT, Savepoint, Transaction};

/// Sequences and their length: more than 100 000 operations.
const CASES: u32 = 1000;
const LENGTH: std::ops::Range<usize> = 1..240;

/// `SQLITE_FS_CASES=100000` searches longer.
fn cases() -> u32 {
    std::env::var("SQLITE_FS_CASES").ok().and_then(|text| text.parse().ok()).unwrap_or(CASES)
}

#[derive(Clone, Debug)]
enum Op {
    Create { dir: usize, name: usize, mode: u32 },
    Mkdir { dir: usize, name: usize },
    Symlink { dir: usize, name: usize, target: usize },
    Readlink { node: usize },
    Link { node: usize, dir: usize, name: usize },
    Unlink { dir: usize, name: usize },
    Rmdir { dir: usize, name: usize },
    Rename { dir: usize, name: usize, to: usize, new: usize },
    Lookup { dir: usize, name: usize },
    Parent { node: usize },
    Stat { node: usize },
    Write { node: usize, offset: u64, len: usize, byte: u8 },
    Append { node: usize, len: usize, byte: u8 },
    Truncate { node: usize, size: u64 },
    Read { node: usize, offset: u64, len: usize },
    Readdir { dir: usize, step: usize },
    Chmod { node: usize, mode: u32 },
    Times { node: usize, atime: i64, mtime: i64 },
    Hold { node: usize },
    Release { node: usize },
    Used,
    Changes,
    Save,
    Restore,
    Commit,
    Rollback,
}

fn offset() -> impl Strategy<Value = u64> {
    prop_oneof![
        4 => 0u64..200,
        2 => (0u64..4, 0u64..6).prop_map(|(chunk, near)| (chunk * 65_536 + near).saturating_sub(3)),
        1 => 0u64..400_000,
    ]
}

fn length() -> impl Strategy<Value = usize> {
    prop_oneof![4 => 0usize..300, 1 => Just(65_536usize), 1 => Just(131_072usize), 1 => 60_000usize..140_000]
}

fn op() -> impl Strategy<Value = Op> {
    let node = 0usize..40;
    let name = 0usize..NAMES.len();
    prop_oneof![
        8 => (node.clone(), name.clone(), 0u32..0o7777).prop_map(|(dir, name, mode)| Op::Create { dir, name, mode }),
        5 => (node.clone(), name.clone()).prop_map(|(dir, name)| Op::Mkdir { dir, name }),
        2 => (node.clone(), name.clone(), name.clone()).prop_map(|(dir, name, target)| Op::Symlink { dir, name, target }),
        1 => node.clone().prop_map(|node| Op::Readlink { node }),
        3 => (node.clone(), node.clone(), name.clone()).prop_map(|(node, dir, name)| Op::Link { node, dir, name }),
        4 => (node.clone(), name.clone()).prop_map(|(dir, name)| Op::Unlink { dir, name }),
        2 => (node.clone(), name.clone()).prop_map(|(dir, name)| Op::Rmdir { dir, name }),
        5 => (node.clone(), name.clone(), node.clone(), name.clone())
            .prop_map(|(dir, name, to, new)| Op::Rename { dir, name, to, new }),
        2 => (node.clone(), name).prop_map(|(dir, name)| Op::Lookup { dir, name }),
        1 => node.clone().prop_map(|node| Op::Parent { node }),
        3 => node.clone().prop_map(|node| Op::Stat { node }),
        8 => (node.clone(), offset(), length(), any::<u8>())
            .prop_map(|(node, offset, len, byte)| Op::Write { node, offset, len, byte }),
        4 => (node.clone(), length(), any::<u8>()).prop_map(|(node, len, byte)| Op::Append { node, len, byte }),
        4 => (node.clone(), offset()).prop_map(|(node, size)| Op::Truncate { node, size }),
        5 => (node.clone(), offset(), length()).prop_map(|(node, offset, len)| Op::Read { node, offset, len }),
        2 => (node.clone(), 1usize..5).prop_map(|(dir, step)| Op::Readdir { dir, step }),
        1 => (node.clone(), 0u32..0o7777).prop_map(|(node, mode)| Op::Chmod { node, mode }),
        1 => (node.clone(), any::<i32>(), any::<i32>())
            .prop_map(|(node, a, m)| Op::Times { node, atime: i64::from(a) << 30, mtime: i64::from(m) << 30 }),
        2 => node.clone().prop_map(|node| Op::Hold { node }),
        2 => node.prop_map(|node| Op::Release { node }),
        1 => Just(Op::Used),
        1 => Just(Op::Changes),
        1 => Just(Op::Save),
        1 => Just(Op::Restore),
        2 => Just(Op::Commit),
        1 => Just(Op::Rollback),
    ]
}

/// Runs one operation on both sides; `None` for those that concern the whole transaction.
fn step(op: &Op, t: &Transaction, model: &mut Model) -> Option<(Outcome, Outcome)> {
    fn done<T>(result: Result<T, FsError>, ok: impl FnOnce(T) -> Outcome) -> Outcome {
        result.map_or_else(Outcome::Failed, ok)
    }
    let unit = |()| Outcome::Done;
    let ino = |model: &Model, node: usize| model.ino(node);
    Some(match *op {
        Op::Create { dir, name, mode } => {
            let dir = ino(model, dir);
            let made = t.create(dir, NAMES[name], mode, 5, 6);
            (done(made, Outcome::Number), model.create(dir, NAMES[name], mode, made.ok()))
        }
        Op::Mkdir { dir, name } => {
            let dir = ino(model, dir);
            let made = t.mkdir(dir, NAMES[name], 0o750, 5, 6);
            (done(made, Outcome::Number), model.mkdir(dir, NAMES[name], made.ok()))
        }
        Op::Symlink { dir, name, target } => {
            let dir = ino(model, dir);
            let made = t.symlink(dir, NAMES[name], NAMES[target], 5, 6);
            (done(made, Outcome::Number), model.symlink(dir, NAMES[name], NAMES[target], made.ok()))
        }
        Op::Readlink { node } => (done(t.readlink(ino(model, node)), Outcome::Text), model.readlink(ino(model, node))),
        Op::Link { node, dir, name } => {
            let (node, dir) = (ino(model, node), ino(model, dir));
            (done(t.link(node, dir, NAMES[name]), unit), model.link(node, dir, NAMES[name]))
        }
        Op::Unlink { dir, name } => {
            let dir = ino(model, dir);
            (done(t.unlink(dir, NAMES[name]), unit), model.unlink(dir, NAMES[name]))
        }
        Op::Rmdir { dir, name } => {
            let dir = ino(model, dir);
            (done(t.rmdir(dir, NAMES[name]), unit), model.rmdir(dir, NAMES[name]))
        }
        Op::Rename { dir, name, to, new } => {
            let (dir, to) = (ino(model, dir), ino(model, to));
            (done(t.rename(dir, NAMES[name], to, NAMES[new]), unit), model.rename(dir, NAMES[name], to, NAMES[new]))
        }
        Op::Lookup { dir, name } => {
            let dir = ino(model, dir);
            (done(t.lookup(dir, NAMES[name]), |(ino, _)| Outcome::Number(ino)), model.lookup(dir, NAMES[name]))
        }
        Op::Parent { node } => (done(t.parent(ino(model, node)), Outcome::Number), model.parent(ino(model, node))),
        Op::Stat { node } => {
            let ino = ino(model, node);
            (done(t.stat(ino), |stat| Outcome::Attributes(stat.mode, stat.nlink, stat.size)), model.stat(ino))
        }
        Op::Write { node, offset, len, byte } => {
            let (ino, bytes) = (ino(model, node), vec![byte; len]);
            (done(t.write(ino, offset, &bytes), |n| Outcome::Number(n as u64)), model.write(ino, offset, &bytes))
        }
        Op::Append { node, len, byte } => {
            let (ino, bytes) = (ino(model, node), vec![byte; len]);
            (done(t.append(ino, &bytes), Outcome::Number), model.append(ino, &bytes))
        }
        Op::Truncate { node, size } => {
            let ino = ino(model, node);
            (done(t.truncate(ino, size), unit), model.truncate(ino, size))
        }
        Op::Read { node, offset, len } => {
            let ino = ino(model, node);
            let mut buffer = vec![0xEE; len];
            let read = t.read(ino, offset, &mut buffer);
            (done(read, |n| Outcome::Bytes(buffer[..n].to_vec())), model.read(ino, offset, len))
        }
        Op::Readdir { dir, step } => {
            let ino = ino(model, dir);
            (done(list(t, ino, step), Outcome::Names), model.readdir(ino))
        }
        Op::Chmod { node, mode } => {
            let ino = ino(model, node);
            (done(t.chmod(ino, mode), unit), model.chmod(ino, mode))
        }
        Op::Times { node, atime, mtime } => {
            let ino = ino(model, node);
            (done(t.set_times(ino, Some(atime), Some(mtime)), unit), model.exists(ino))
        }
        Op::Hold { node } => (done(t.hold(ino(model, node)), unit), model.hold(ino(model, node))),
        Op::Release { node } => (done(t.release(ino(model, node)), unit), model.release(ino(model, node))),
        Op::Used => (done(t.used(), |used| Outcome::Usage(used.bytes, used.inodes)), model.used()),
        Op::Changes => (done(t.changes(), |_| Outcome::Done), Outcome::Done),
        Op::Save | Op::Restore | Op::Commit | Op::Rollback => return None,
    })
}

fn list(t: &Transaction, dir: u64, step: usize) -> Result<Vec<(String, u64)>, FsError> {
    let mut names = Vec::new();
    let mut cookie = 0;
    loop {
        let entries = t.readdir(dir, cookie, step)?;
        let Some(last) = entries.last() else { break };
        cookie = last.cookie;
        names.extend(entries.into_iter().map(|entry| (entry.name, entry.ino)));
    }
    names.sort();
    Ok(names)
}

fn run(database: &Database, ops: &[Op]) -> Result<(), TestCaseError> {
    let mut model = Model::new();
    let mut committed = model.clone();
    let mut transaction = Some(database.begin(None).unwrap());
    let mut saved: Option<(Savepoint, Model)> = None;
    let mut versions: Vec<(i64, Model)> = Vec::new();
    for op in ops {
        let t = transaction.as_ref().expect("always one open");
        if let Some((ours, expected)) = step(op, t, &mut model) {
            prop_assert_eq!(ours, expected, "{:?}", op);
            continue;
        }
        match op {
            Op::Save => saved = Some((t.savepoint().unwrap(), model.clone())),
            Op::Restore => {
                if let Some((savepoint, before)) = &saved {
                    t.rollback_to(savepoint).unwrap();
                    model = before.clone_with_holds_of(&model);
                }
            }
            Op::Commit => {
                check_changes(t, &committed, &model)?;
                transaction.take().expect("open").commit().unwrap();
                model.end();
                committed = model.clone();
                compare(database, &committed)?;
                let newest = database.reader().unwrap().versions(None, 1).unwrap();
                if let Some(newest) =
                    newest.first().filter(|newest| versions.last().is_none_or(|(last, _)| newest.number > *last))
                {
                    versions.push((newest.number, committed.clone()));
                }
                saved = None;
                transaction = Some(database.begin(None).unwrap());
            }
            _ => {
                drop(transaction.take());
                model = committed.clone();
                saved = None;
                transaction = Some(database.begin(None).unwrap());
            }
        }
    }
    drop(transaction);
    compare(database, &committed)?;
    compare_versions(database, &versions)
}

/// A list of changes has every path that differs, and no other. What is below a moved directory moved with it.
fn check_changes(t: &Transaction, before: &Model, after: &Model) -> Result<(), TestCaseError> {
    let (changes, is_complete) = t.changes().unwrap();
    prop_assert!(is_complete);
    let (before, after) = (before.tree(), after.tree());
    let (mut listed, mut moved) = (BTreeMap::new(), Vec::new());
    for Change { path, kind, .. } in changes.into_iter().filter(|change| change.path != "/") {
        let (old, new) = (before.get(&path), after.get(&path));
        match &kind {
            ChangeKind::Created => prop_assert!(old.is_none() && new.is_some(), "created {}", path),
            ChangeKind::Deleted => prop_assert!(old.is_some() && new.is_none(), "deleted {}", path),
            ChangeKind::Renamed { from } => {
                prop_assert_eq!(before.get(from).map(|old| old.0), new.map(|new| new.0), "{} -> {}", from, path);
                moved.extend([from.clone(), path.clone()]);
            }
            // Content of a file that moved with its directory.
            _ => prop_assert!(new.is_some(), "changed {}", path),
        }
        prop_assert!(listed.insert(path.clone(), kind).is_none(), "{} is listed twice", path);
    }
    for path in before.keys().chain(after.keys()) {
        let (old, new) = (before.get(path), after.get(path));
        let is_there = listed.contains_key(path) || moved.contains(path);
        if old.map(|old| old.0) != new.map(|new| new.0) {
            let is_below = moved.iter().any(|top| path.strip_prefix(top.as_str()).is_some_and(|rest| rest.starts_with('/')));
            prop_assert!(is_there || is_below, "{} leads elsewhere", path);
        } else if old.map(|old| (old.1, &old.3)) != new.map(|new| (new.1, &new.3)) {
            prop_assert!(is_there, "{} differs", path);
        }
    }
    Ok(())
}

/// Every version is what was committed then, and so is the state before the first.
fn compare_versions(database: &Database, versions: &[(i64, Model)]) -> Result<(), TestCaseError> {
    let listed = database.reader().unwrap().versions(None, usize::MAX).unwrap();
    let expected: Vec<i64> = versions.iter().rev().map(|(number, _)| *number).chain((!listed.is_empty()).then_some(0)).collect();
    prop_assert_eq!(listed.iter().map(|version| version.number).collect::<Vec<_>>(), expected);
    for (number, model) in versions.iter().map(|(number, model)| (*number, model)) {
        prop_assert_eq!(tree(database, number), model.tree(), "version {}", number);
    }
    compare_digests(database, versions)?;
    if !listed.is_empty() {
        prop_assert_eq!(tree(database, 0).len(), 0);
    }
    Ok(())
}

/// Two versions have one digest if and only if they have one tree, in whatever order the digests are computed.
fn compare_digests(database: &Database, versions: &[(i64, Model)]) -> Result<(), TestCaseError> {
    // From the middle on and back: from the base forward, and from the base back.
    let (older, newer) = versions.split_at(versions.len() / 2);
    let mut seen: BTreeMap<String, Vec<(String, u32, Vec<u8>)>> = BTreeMap::new();
    for (number, model) in newer.iter().chain(older.iter().rev()) {
        let digest = database.version_digest(*number, None).unwrap();
        let root = database.reader_at(*number).unwrap().fs().metadata("/").unwrap().mode;
        let below = model.tree().into_iter().map(|(path, (_, mode, _, content))| (path, mode, content));
        let tree: Vec<_> = std::iter::once(("/".to_owned(), root, Vec::new())).chain(below).collect();
        prop_assert!(seen.iter().all(|(other, known)| (*other == digest) == (*known == tree)), "version {}", number);
        seen.insert(digest, tree);
    }
    prop_assert_eq!(database.check().unwrap(), vec![]);
    Ok(())
}

/// The files of a version, found by listing.
fn tree(database: &Database, version: i64) -> BTreeMap<String, (u64, u32, u32, Vec<u8>)> {
    let reader = database.reader_at(version).unwrap();
    let mut tree = BTreeMap::new();
    for (path, stat) in reader.fs().walk("/").unwrap().into_iter().filter(|(path, _)| path != "/") {
        let content = match stat.file_type() {
            FileType::Directory => Vec::new(),
            FileType::Symlink => reader.fs().read_link(&path).unwrap().into_bytes(),
            _ => reader.fs().read(&path).unwrap(),
        };
        assert!(stat.is_dir() || content.len() as u64 == stat.size, "{path}");
        tree.insert(path, (stat.ino, stat.mode, stat.nlink, content));
    }
    tree
}

/// A reader sees the committed model, and the rows satisfy every rule.
fn compare(database: &Database, model: &Model) -> Result<(), TestCaseError> {
    prop_assert_eq!(database.check().unwrap(), vec![]);
    let reader = database.reader().unwrap();
    let used = reader.used().unwrap();
    prop_assert_eq!(Outcome::Usage(used.bytes, used.inodes), model.used());
    // A fork brings rows and no sums: its own are counted.
    prop_assert_eq!(database.fork(Database::options()).unwrap().reader().unwrap().used().unwrap(), used);
    for (path, bytes) in model.files() {
        prop_assert_eq!(reader.fs().read(&path).unwrap(), bytes, "{}", path);
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(), max_shrink_iters: 20_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn operations_behave_like_the_model(ops in vec(op(), LENGTH), cache in prop_oneof![Just(8 << 20), 0usize..20_000]) {
        run(&Database::options().quota(QUOTA).cache(cache).open().unwrap(), &ops)?;
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, max_shrink_iters: 2_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_file_does_the_same_and_keeps_it(ops in vec(op(), LENGTH)) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("model.db");
        let options = Database::options().path(&path).quota(QUOTA).durability(Durability::CrashSafe);
        let database = options.clone().open().unwrap();
        run(&database, &ops)?;
        let before = database.reader().unwrap().fs().list("/").unwrap();
        let nlink = database.reader().unwrap().fs().metadata("/").unwrap().nlink;
        drop(database);
        let database = options.open().unwrap();
        prop_assert_eq!(database.check().unwrap(), vec![]);
        prop_assert_eq!(database.reader().unwrap().fs().list("/").unwrap(), before);
        prop_assert_eq!(database.begin(None).unwrap().stat(ROOT).unwrap().nlink, nlink);
    }
}

/// Found by the search above: the target of an open, unlinked link was counted as bytes of a file.
#[test]
fn an_open_unlinked_symlink_takes_no_bytes() {
    let ops = [
        Op::Symlink { dir: 0, name: 6, target: 0 },
        Op::Mkdir { dir: 0, name: 0 },
        Op::Commit,
        Op::Create { dir: 0, name: 0, mode: 0 },
        Op::Rollback,
        Op::Hold { node: 16 },
        Op::Unlink { dir: 0, name: 6 },
        Op::Create { dir: 0, name: 0, mode: 0 },
        Op::Used,
    ];
    run(&Database::options().quota(QUOTA).open().unwrap(), &ops).unwrap();
}
