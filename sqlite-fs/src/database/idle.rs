//! The memory of a database that is open and not in use.

use super::{Database, lock};

impl Database {
    /// Frees the memory that only saves time: idle readers, cached pages, rows and statements. Does nothing to a transaction that is
    /// running. The next operations take longer.
    pub fn release_memory(&self) {
        let idle = std::mem::take(&mut *lock(&self.shared.readers));
        drop(idle);
        if let Some(store) = &mut lock(&self.shared.writer.slot).store {
            store.release_memory();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn idle_readers(database: &Database) -> usize {
        lock(&database.shared.readers).len()
    }

    #[test]
    fn released_memory_costs_neither_rows_nor_a_running_transaction() {
        let directory = tempfile::tempdir().unwrap();
        let database = Database::options().path(directory.path().join("a.db")).open().unwrap();
        let write = |path: &str| {
            let transaction = database.begin(None).unwrap();
            transaction.fs().write(path, vec![7; 100_000]).unwrap();
            transaction.commit().unwrap();
        };
        write("/first");
        assert!(database.reader().unwrap().fs().exists("/first").unwrap());
        assert_eq!(idle_readers(&database), 1);
        database.release_memory();
        assert_eq!(idle_readers(&database), 0);
        let transaction = database.begin(None).unwrap();
        transaction.fs().write("/second", b"not committed yet").unwrap();
        database.release_memory();
        assert!(transaction.fs().exists("/first").unwrap() && transaction.fs().exists("/second").unwrap());
        transaction.commit().unwrap();
        database.release_memory();
        write("/third");
        let reader = database.reader().unwrap();
        assert!(["/first", "/second", "/third"].iter().all(|path| reader.fs().exists(path).unwrap()));
    }
}
