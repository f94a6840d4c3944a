//! Databases in memory: what a transaction spills before it ends, what that takes, and what comes back.

use std::sync::Arc;

use super::{content, file, memory};
use crate::{Database, FsError, MemoryBudget, ROOT};

/// More than SQLite's cache and ours together.
const MUCH: usize = 40 << 20;

fn resident(database: &Database) -> u64 {
    database.shared.memory().unwrap().resident()
}

#[test]
fn pages_written_before_the_commit_are_seen_only_after_it() {
    let database = memory();
    let transaction = database.begin(None).unwrap();
    let ino = file(&transaction, "a", &vec![7; MUCH]);
    assert!(resident(&database) > 20 << 20, "nothing was spilled");
    let reader = database.reader().unwrap();
    assert!(!reader.fs().exists("/a").unwrap());
    assert_eq!(content(&transaction, ino), vec![7; MUCH]);
    transaction.commit().unwrap();
    assert_eq!(reader.fs().read("/a").unwrap(), vec![7; MUCH]);
    assert_eq!(database.check().unwrap(), []);
}

#[test]
fn pages_written_before_a_rollback_are_taken_back() {
    let database = memory();
    let transaction = database.begin(None).unwrap();
    file(&transaction, "a", &vec![1; MUCH]);
    transaction.commit().unwrap();
    let transaction = database.begin(None).unwrap();
    transaction.fs().write("/a", vec![2; MUCH]).unwrap();
    file(&transaction, "b", &vec![3; MUCH]);
    drop(transaction);
    assert_eq!(database.check().unwrap(), []);
    assert_eq!(database.reader().unwrap().fs().read("/a").unwrap(), vec![1; MUCH]);
    assert!(!database.reader().unwrap().fs().exists("/b").unwrap());
    let transaction = database.begin(None).unwrap();
    let before = transaction.savepoint().unwrap();
    transaction.fs().write("/a", vec![4; MUCH]).unwrap();
    transaction.rollback_to(&before).unwrap();
    file(&transaction, "c", b"after");
    transaction.commit().unwrap();
    assert_eq!(database.check().unwrap(), []);
    assert_eq!(database.reader().unwrap().fs().read("/a").unwrap(), vec![1; MUCH]);
    assert_eq!(database.reader().unwrap().fs().read("/c").unwrap(), b"after");
}

/// T-DOS-03
#[test]
fn removed_files_give_their_memory_back() {
    let quota = crate::Quota { past: 0, ..crate::Quota::default() };
    let database = Database::options().quota(quota).open().unwrap();
    let transaction = database.begin(None).unwrap();
    file(&transaction, "a", &vec![1; MUCH]);
    file(&transaction, "kept", b"kept");
    transaction.commit().unwrap();
    assert!(resident(&database) >= MUCH as u64);
    let transaction = database.begin(None).unwrap();
    transaction.unlink(ROOT, "a").unwrap();
    transaction.commit().unwrap();
    assert!(resident(&database) < 4 << 20, "{}", resident(&database));
    let transaction = database.begin(None).unwrap();
    file(&transaction, "b", b"next");
    transaction.commit().unwrap();
    assert_eq!(database.reader().unwrap().fs().read("/kept").unwrap(), b"kept");
    assert_eq!(database.reader().unwrap().fs().read("/b").unwrap(), b"next");
    assert_eq!(database.check().unwrap(), []);
}

struct AtMost(u64);

impl MemoryBudget for AtMost {
    fn hold(&self, bytes: u64) -> bool {
        bytes <= self.0
    }
}

/// T-DOS-03
#[test]
fn files_stop_where_the_memory_budget_ends() {
    let database = memory();
    let transaction = database.begin(None).unwrap();
    transaction.set_memory_budget(Arc::new(AtMost(60 << 20))).unwrap();
    let ino = file(&transaction, "a", &vec![1; MUCH]);
    let refused = (0..10).find_map(|_| transaction.append(ino, &vec![1; 8 << 20]).err());
    assert_eq!(refused, Some(FsError::NoSpace));
    assert!(resident(&database) <= 60 << 20);
    transaction.truncate(ino, 0).unwrap();
    transaction.commit().unwrap();
    assert_eq!(database.check().unwrap(), []);
}

#[test]
fn a_database_in_a_file_is_forked_into_memory() {
    let dir = tempfile::tempdir().unwrap();
    let database = Database::options().path(dir.path().join("a.db")).open().unwrap();
    let transaction = database.begin(None).unwrap();
    file(&transaction, "a", b"here");
    transaction.commit().unwrap();
    let fork = database.fork(Database::options()).unwrap();
    assert_eq!(fork.reader().unwrap().fs().read("/a").unwrap(), b"here");
}
