//! Random changes of keys, sessions and files: every version shows what was committed then, whatever was rolled back and pruned.

use std::collections::BTreeMap;

use proptest::collection::vec;
use proptest::prelude::*;
use sqlite_fs::{Database, Keep, Reader, Savepoint, Transaction};

const CASES: u32 = 300;
const LENGTH: std::ops::Range<usize> = 1..160;
const KEYS: [&str; 4] = ["a", "b", "a/b", "ä"];
const SESSIONS: [&str; 3] = ["s", "t", "s/t"];
const PARTS: [&str; 2] = ["shell", "python"];
const FILES: [&str; 3] = ["x", "y", "z"];

#[derive(Clone, Debug)]
enum Op {
    Set { key: usize, value: u8 },
    Secret { key: usize, secret: bool },
    Delete { key: usize },
    Session { name: usize, part: usize, byte: u8 },
    End { name: usize },
    Write { file: usize, len: u8 },
    Remove { file: usize },
    Prune { keep: u8 },
    Save,
    Restore,
    Commit,
    Rollback,
}

fn op() -> impl Strategy<Value = Op> {
    let (key, name, file) = (0..KEYS.len(), 0..SESSIONS.len(), 0..FILES.len());
    prop_oneof![
        6 => (key.clone(), any::<u8>()).prop_map(|(key, value)| Op::Set { key, value }),
        2 => (key.clone(), any::<bool>()).prop_map(|(key, secret)| Op::Secret { key, secret }),
        3 => key.prop_map(|key| Op::Delete { key }),
        5 => (name.clone(), 0..PARTS.len(), 0u8..4).prop_map(|(name, part, byte)| Op::Session { name, part, byte }),
        2 => name.prop_map(|name| Op::End { name }),
        4 => (file.clone(), any::<u8>()).prop_map(|(file, len)| Op::Write { file, len }),
        2 => file.prop_map(|file| Op::Remove { file }),
        1 => (1u8..6).prop_map(|keep| Op::Prune { keep }),
        1 => Just(Op::Save),
        1 => Just(Op::Restore),
        7 => Just(Op::Commit),
        1 => Just(Op::Rollback),
    ]
}

/// Everything that a version shows. Keys have their value and their secrecy.
#[derive(Clone, Debug, Default, PartialEq)]
struct State {
    keys: BTreeMap<String, (String, bool)>,
    sessions: BTreeMap<(String, &'static str), Vec<u8>>,
    files: BTreeMap<String, Vec<u8>>,
}

impl State {
    fn of(reader: &Reader) -> Self {
        let mut state = Self::default();
        for key in reader.keys("").unwrap() {
            let value = reader.get(&key).unwrap().unwrap();
            state.keys.insert(key, (value.json, value.secret));
        }
        for name in reader.sessions().unwrap() {
            for part in PARTS {
                if let Some(content) = reader.session(&name, part).unwrap() {
                    state.sessions.insert((name.clone(), part), content);
                }
            }
            assert!(state.sessions.keys().any(|(known, _)| *known == name), "session {name} has no part");
        }
        for entry in reader.fs().list("/").unwrap() {
            let content = reader.fs().read(&format!("/{}", entry.name)).unwrap();
            state.files.insert(entry.name, content);
        }
        state
    }

    /// Makes a change here and in a transaction.
    fn apply(&mut self, op: &Op, transaction: &Transaction) {
        match *op {
            Op::Set { key, value } => {
                let (key, value) = (KEYS[key], value.to_string());
                transaction.kv().set(key, &value).unwrap();
                let secret = self.keys.get(key).is_some_and(|(_, secret)| *secret);
                self.keys.insert(key.to_owned(), (value, secret));
            }
            Op::Secret { key, secret } => {
                if let Some(value) = self.keys.get_mut(KEYS[key]) {
                    transaction.kv().set_secret(KEYS[key], secret).unwrap();
                    value.1 = secret;
                }
            }
            Op::Delete { key } => {
                assert_eq!(transaction.kv().delete(KEYS[key]).unwrap(), self.keys.remove(KEYS[key]).is_some());
            }
            Op::Session { name, part, byte } => {
                transaction.sessions().set(SESSIONS[name], PARTS[part], &[byte]).unwrap();
                self.sessions.insert((SESSIONS[name].to_owned(), PARTS[part]), vec![byte]);
            }
            Op::End { name } => {
                let before = self.sessions.len();
                self.sessions.retain(|(known, _), _| known != SESSIONS[name]);
                assert_eq!(transaction.sessions().remove(SESSIONS[name]).unwrap(), self.sessions.len() < before);
            }
            Op::Write { file, len } => {
                // Of two such contents, the shorter one is the beginning of the other.
                let content = vec![7_u8; usize::from(len)];
                transaction.fs().write(&format!("/{}", FILES[file]), &content).unwrap();
                self.files.insert(FILES[file].to_owned(), content);
            }
            Op::Remove { file } => {
                if self.files.remove(FILES[file]).is_some() {
                    transaction.fs().remove_file(&format!("/{}", FILES[file])).unwrap();
                }
            }
            Op::Prune { .. } | Op::Save | Op::Restore | Op::Commit | Op::Rollback => {}
        }
    }
}

/// The versions that exist are these, and show these states.
fn compare(database: &Database, versions: &[(i64, State)], oldest: i64) -> Result<(), TestCaseError> {
    let listed = database.reader().unwrap().versions(None, usize::MAX).unwrap();
    let kept: Vec<&(i64, State)> = versions.iter().filter(|(number, _)| *number >= oldest).collect();
    let expected: Vec<i64> = kept.iter().rev().map(|(number, _)| *number).collect();
    prop_assert_eq!(listed.iter().map(|version| version.number).collect::<Vec<_>>(), expected);
    for (number, state) in kept {
        prop_assert_eq!(&State::of(&database.reader_at(*number).unwrap()), state, "version {}", number);
    }
    prop_assert_eq!(database.check().unwrap(), vec![]);
    Ok(())
}

fn run(ops: &[Op]) -> Result<(), TestCaseError> {
    let database = Database::options().open().unwrap();
    let mut transaction = database.begin(None).unwrap();
    // The state and the oldest version that is kept.
    let mut now = (State::default(), 0_i64);
    let mut committed = now.clone();
    let mut saved: Option<(Savepoint, (State, i64))> = None;
    let mut versions: Vec<(i64, State)> = Vec::new();
    for op in ops {
        match op {
            Op::Prune { keep } => {
                transaction.prune(&Keep { versions: Some(u64::from(*keep)), ..Keep::default() }).unwrap();
                if let Some((newest, _)) = versions.last() {
                    now.1 = now.1.max(newest + 1 - i64::from(*keep));
                }
            }
            Op::Save => saved = Some((transaction.savepoint().unwrap(), now.clone())),
            Op::Restore => {
                if let Some((savepoint, before)) = &saved {
                    transaction.rollback_to(savepoint).unwrap();
                    now = before.clone();
                }
            }
            Op::Commit => {
                transaction.commit().unwrap();
                committed = now.clone();
                saved = None;
                let newest = database.reader().unwrap().versions(None, 1).unwrap().first().map_or(0, |version| version.number);
                if newest > versions.last().map_or(0, |(number, _)| *number) {
                    if versions.is_empty() {
                        versions.push((0, State::default()));
                    }
                    versions.push((newest, committed.0.clone()));
                }
                transaction = database.begin(None).unwrap();
            }
            Op::Rollback => {
                drop(transaction);
                now = committed.clone();
                saved = None;
                transaction = database.begin(None).unwrap();
            }
            change => now.0.apply(change, &transaction),
        }
    }
    drop(transaction);
    prop_assert_eq!(&State::of(&database.reader().unwrap()), &committed.0);
    compare(&database, &versions, committed.1)?;
    compare(&database.fork(Database::options()).unwrap(), &versions, committed.1)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: CASES, max_shrink_iters: 10_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_version_shows_the_keys_and_sessions_of_its_commit(ops in vec(op(), LENGTH)) {
        run(&ops)?;
    }
}
