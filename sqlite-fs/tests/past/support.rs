//! Helpers for the tests of versions.

use sqlite_fs::{ChangeKind, Database, Reader, Transaction};

/// Commits a transaction and returns its version.
pub fn commit(database: &Database, work: impl FnOnce(&Transaction)) -> i64 {
    let transaction = database.begin(None).unwrap();
    work(&transaction);
    transaction.commit().unwrap();
    database.reader().unwrap().versions(None, 1).unwrap().first().map_or(-1, |version| version.number)
}

/// Writes a file in a separate version.
pub fn write(database: &Database, path: &str, text: &str) -> i64 {
    commit(database, |transaction| transaction.fs().write(path, text).unwrap())
}

/// Returns the text of a file, if it exists.
pub fn text(reader: &Reader, path: &str) -> Option<String> {
    reader.fs().exists(path).unwrap().then(|| reader.fs().read_to_string(path).unwrap())
}

/// Returns all changes between two versions.
pub fn changes(database: &Database, from: i64, to: Option<i64>) -> Vec<(String, ChangeKind)> {
    let (changes, is_complete) = database.reader().unwrap().changes(from, to).unwrap();
    assert!(is_complete);
    changes.into_iter().map(|change| (change.path, change.kind)).collect()
}
