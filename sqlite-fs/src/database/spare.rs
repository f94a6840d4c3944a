//! Connections of forks that were closed, kept for the forks that are opened next: SQLite would parse the same tables again for each
//! of them, which takes longer than everything else.
//!
//! What is kept holds no rows: the database is emptied and the pages that SQLite has cached are freed. A connection is used again
//! only for a database whose tables are those that it knows, to the byte.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rusqlite::Connection;

use crate::memory::Memory;
use crate::memory::layer::Named;
use crate::patience::Patience;

/// Maximum number of databases whose connections are kept: each holds some hundred kilobytes.
const MOST: usize = 8;

/// Everything that SQLite knows of the tables of a database.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Tables {
    /// The number that changes with every change of the tables.
    cookie: i64,
    definitions: String,
}

impl Tables {
    /// Reads the tables of a database, unless they are these.
    pub(super) fn of(connection: &Connection, known: Option<Arc<Self>>) -> rusqlite::Result<Arc<Self>> {
        let cookie = cookie(connection)?;
        if let Some(known) = known.filter(|known| known.cookie == cookie) {
            return Ok(known);
        }
        let sql = "SELECT group_concat(quote(type)||quote(name)||quote(tbl_name)||rootpage||quote(sql), char(10))
                   FROM (SELECT * FROM sqlite_schema ORDER BY rowid)";
        let definitions = connection.prepare_cached(sql)?.query_row([], |row| row.get(0))?;
        Ok(Arc::new(Self { cookie, definitions }))
    }
}

fn cookie(connection: &Connection) -> rusqlite::Result<i64> {
    connection.prepare_cached("PRAGMA schema_version")?.query_row([], |row| row.get(0))
}

/// The connections of a database that was closed.
pub(super) struct Spare {
    pub(super) named: Named,
    pub(super) writer: Connection,
    pub(super) readers: Vec<(Connection, Patience)>,
    tables: Arc<Tables>,
}

static SPARES: Mutex<Vec<Spare>> = Mutex::new(Vec::new());

fn spares() -> MutexGuard<'static, Vec<Spare>> {
    SPARES.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns connections to a database with these tables, if there are any.
pub(super) fn take(tables: &Tables) -> Option<Spare> {
    let mut spares = spares();
    let at = spares.iter().rposition(|spare| *spare.tables == *tables)?;
    Some(spares.remove(at))
}

/// Keeps the connections of a database that is closed, unless its tables have changed.
pub(super) fn put(named: Named, mut writer: Connection, readers: Vec<(Connection, Patience)>, tables: Arc<Tables>) {
    let is_usable = writer.is_autocommit() && cookie(&writer).is_ok_and(|cookie| cookie == tables.cookie);
    if !is_usable || Arc::strong_count(&named.memory) > 1 + connections(readers.len()) {
        return;
    }
    // The next owner sets its own; until then nothing of this one is referenced.
    if writer.progress_handler(0, None::<fn() -> bool>).is_err() {
        return;
    }
    named.memory.replace_by(&Memory::empty());
    let freed = writer.release_memory().is_ok() && readers.iter().all(|(reader, _)| reader.release_memory().is_ok());
    if !freed {
        return;
    }
    let mut spares = spares();
    if spares.len() >= MOST {
        drop(spares.remove(0));
    }
    spares.push(Spare { named, writer, readers, tables });
}

// The references that the open connections have: one each, and that of the writer.
fn connections(readers: usize) -> usize {
    readers + 1
}

#[cfg(test)]
mod tests {
    use crate::database::Database;

    fn write(database: &Database, path: &str, content: &[u8]) {
        let transaction = database.begin(None).unwrap();
        transaction.fs().write(path, content).unwrap();
        transaction.commit().unwrap();
    }

    fn read(database: &Database, path: &str) -> Option<Vec<u8>> {
        let reader = database.reader().unwrap();
        reader.fs().exists(path).unwrap().then(|| reader.fs().read(path).unwrap())
    }

    fn base(content: &[u8]) -> Database {
        let database = Database::options().open().unwrap();
        write(&database, "/base", content);
        database
    }

    fn fork(of: &Database) -> Database {
        of.fork(Database::options()).unwrap()
    }

    #[test]
    fn a_fork_sees_its_origin_and_nothing_of_forks_that_were_closed() {
        let (one, two) = (base(b"one"), base(&[2; 50_000]));
        for round in 0..60u32 {
            let (origin, content) = if round % 3 == 0 { (&two, vec![2; 50_000]) } else { (&one, b"one".to_vec()) };
            let made = fork(origin);
            assert_eq!(read(&made, "/base"), Some(content), "{round}");
            assert_eq!(read(&made, "/secret"), None, "{round}");
            write(&made, "/secret", format!("{round}").repeat(1 + round as usize * 100).as_bytes());
            write(&made, "/base", b"changed");
            // A fork of a fork, which is closed after it.
            let second = fork(&made);
            assert_eq!(read(&second, "/base").as_deref(), Some(&b"changed"[..]));
            drop(made);
            assert!(read(&second, "/secret").is_some());
        }
        assert_eq!((read(&one, "/base").as_deref(), read(&one, "/secret")), (Some(&b"one"[..]), None));
    }

    #[test]
    fn forks_are_made_while_the_origin_changes_and_beside_each_other() {
        let origin = base(b"0");
        std::thread::scope(|scope| {
            scope.spawn(|| (1..100u32).for_each(|number| write(&origin, "/base", number.to_string().as_bytes())));
            for _ in 0..3 {
                scope.spawn(|| {
                    let mut last = 0;
                    for _ in 0..40 {
                        let made = fork(&origin);
                        let number: u32 = String::from_utf8(read(&made, "/base").unwrap()).unwrap().parse().unwrap();
                        assert!(number >= last);
                        last = number;
                        write(&made, "/mine", &[7; 9000]);
                        assert_eq!(read(&made, "/mine"), Some(vec![7; 9000]));
                    }
                });
            }
        });
        assert_eq!(read(&origin, "/base").as_deref(), Some(&b"99"[..]));
    }

    #[test]
    fn tables_that_are_added_later_exist_in_forks() {
        let origin = base(b"x");
        drop(fork(&origin));
        // Made on first use, and unknown to connections that were kept.
        let changed = fork(&origin);
        changed
            .fill(|store| Ok(store.connection.execute_batch("CREATE TABLE other (n); INSERT INTO other VALUES (5)")?))
            .unwrap();
        for _ in 0..3 {
            let made = fork(&changed);
            let number = |database: &Database| {
                let mut found = Err(rusqlite::Error::InvalidQuery);
                let _ = database.fill(|store| {
                    found = store.connection.query_row("SELECT n FROM other", [], |row| row.get::<_, i64>(0));
                    Ok(())
                });
                found.ok()
            };
            assert_eq!(number(&made), Some(5));
            assert_eq!(number(&fork(&origin)), None);
            assert_eq!(read(&made, "/base").as_deref(), Some(&b"x"[..]));
        }
    }

    // Two states that SQLite's own numbers cannot tell apart: one commit each after the same state.
    #[test]
    fn states_with_the_same_number_are_distinguished() {
        let origin = base(b"first");
        for round in 0..10u8 {
            let closed = fork(&origin);
            write(&closed, "/base", &[b'f', round]);
            assert_eq!(read(&closed, "/base"), Some(vec![b'f', round]));
            drop(closed);
            write(&origin, "/base", &[b'o', round]);
            let made = fork(&origin);
            assert_eq!(read(&made, "/base"), Some(vec![b'o', round]));
            let transaction = made.begin(None).unwrap();
            assert_eq!(transaction.fs().read("/base").unwrap(), [b'o', round]);
        }
    }

    #[test]
    fn different_tables_with_the_same_number_are_distinguished() {
        let origins = ["one", "two"].map(|name| {
            let origin = base(b"x");
            let create = format!("CREATE TABLE {name} (n); INSERT INTO {name} VALUES ('{name}')");
            origin.fill(|store| Ok(store.connection.execute_batch(&create)?)).unwrap();
            (name, origin)
        });
        for _ in 0..3 {
            for (name, origin) in &origins {
                let made = fork(origin);
                let select = format!("SELECT n FROM {name}");
                let found = |database: &Database| {
                    let mut found = String::new();
                    let ask = |store: &crate::store::Store| {
                        found = store.connection.query_row(&select, [], |row| row.get(0))?;
                        Ok(())
                    };
                    database.fill(ask).unwrap();
                    found
                };
                assert_eq!(found(&made), *name);
            }
        }
    }

    #[test]
    fn versions_and_quotas_are_those_of_the_fork() {
        let origin = base(b"x");
        write(&origin, "/base", b"y");
        let quota = crate::Quota { bytes: 100_000, ..crate::Quota::default() };
        drop(origin.fork(Database::options().quota(quota)).unwrap());
        let made = origin.fork(Database::options().quota(quota)).unwrap();
        let transaction = made.begin(None).unwrap();
        assert!(transaction.fs().write("/large", vec![1; 200_000]).is_err());
        drop(transaction);
        assert_eq!(read(&made, "/base").as_deref(), Some(&b"y"[..]));
        let free = fork(&origin);
        write(&free, "/large", &[1; 200_000]);
    }
}
