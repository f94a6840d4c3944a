//! The tables: AgentFS 0.4 as its SDKs 0.6.4 expect them, our own tables, and the settings of connections.
//!
//! AgentFS's engine rejects a file with triggers, virtual tables or generated columns, so there are none.

pub(crate) mod migrations;

use rusqlite::config::DbConfig;
use rusqlite::limits::Limit;
use rusqlite::{Connection, OptionalExtension};

use crate::budget;
use crate::error::Error;
use crate::format::{self, APPLICATION_ID, FORMAT};
use crate::options::Durability;
use crate::quota::Quota;
use crate::store::write;
use crate::{known, past, rows, stranger};

/// Measured: 16 KiB pages halve the cost of small files compared with SQLite's 4 KiB.
const PAGE_BYTES: u32 = 16 * 1024;
/// Size of SQLite's own cache for the writer, in KiB.
const WRITER_CACHE_KIB: i64 = 8 * 1024;
/// The same for the writer of a database in memory: its pages are in memory anyway, so a larger cache would hold them twice.
const MEMORY_CACHE_KIB: i64 = 1024;
/// The same for a reader.
const READER_CACHE_KIB: i64 = 2 * 1024;

/// SQLite's limits for values from a file and for our statements. The longest legitimate value is a command's output, 64 MB under
/// the most permissive preset; the other limits are several times what our own statements need.
const LIMITS: &[(Limit, i32)] = &[
    (Limit::SQLITE_LIMIT_LENGTH, 128 << 20),
    (Limit::SQLITE_LIMIT_SQL_LENGTH, 64 << 10),
    (Limit::SQLITE_LIMIT_COLUMN, 100),
    (Limit::SQLITE_LIMIT_EXPR_DEPTH, 100),
    (Limit::SQLITE_LIMIT_COMPOUND_SELECT, 10),
    (Limit::SQLITE_LIMIT_FUNCTION_ARG, 10),
    (Limit::SQLITE_LIMIT_ATTACHED, 1),
    (Limit::SQLITE_LIMIT_LIKE_PATTERN_LENGTH, 100),
    (Limit::SQLITE_LIMIT_VARIABLE_NUMBER, 32),
    (Limit::SQLITE_LIMIT_TRIGGER_DEPTH, 1),
    (Limit::SQLITE_LIMIT_WORKER_THREADS, 0),
];

/// Disables features that a hostile file could exploit, before anything is read.
pub(crate) fn harden(connection: &Connection) -> rusqlite::Result<()> {
    for (limit, value) in LIMITS {
        connection.set_limit(*limit, *value)?;
    }
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_TRIGGER, false)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_VIEW, false)?;
    // Otherwise a statement with `column=?` is recompiled each time a value is bound.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    connection.set_prepared_statement_cache_capacity(128);
    Ok(())
}

/// How long SQLite waits for a program that ignores our lock.
pub(crate) const BUSY: std::time::Duration = std::time::Duration::from_secs(5);

/// Configures the writing connection.
pub(crate) fn tune_writer(
    connection: &Connection,
    file: bool,
    durability: Durability,
    secure_delete: bool,
) -> rusqlite::Result<()> {
    harden(connection)?;
    let pages = format!("PRAGMA page_size={PAGE_BYTES};");
    let (first, synchronous, cache) = match (file, durability) {
        (false, _) => ("PRAGMA journal_mode=MEMORY;", "OFF", MEMORY_CACHE_KIB),
        (true, Durability::PowerSafe) => (&*pages, "FULL", WRITER_CACHE_KIB),
        (true, Durability::CrashSafe) => (&*pages, "NORMAL", WRITER_CACHE_KIB),
    };
    let secure_delete = if secure_delete { "ON" } else { "FAST" };
    connection.execute_batch(&format!(
        "{first} PRAGMA synchronous={synchronous};
         PRAGMA cache_size=-{cache}; PRAGMA cell_size_check=ON; PRAGMA mmap_size=0;
         PRAGMA temp_store=MEMORY; PRAGMA secure_delete={secure_delete};"
    ))?;
    connection.busy_timeout(BUSY)
}

/// Configures a reading connection.
pub(crate) fn tune_reader(connection: &Connection) -> rusqlite::Result<()> {
    harden(connection)?;
    connection.execute_batch(&format!(
        "PRAGMA cache_size=-{READER_CACHE_KIB}; PRAGMA cell_size_check=ON; PRAGMA mmap_size=0;
         PRAGMA temp_store=MEMORY; PRAGMA query_only=ON;"
    ))?;
    connection.busy_timeout(BUSY)
}

/// Creates a fresh database.
pub(crate) fn create(connection: &Connection, now: i64) -> rusqlite::Result<()> {
    connection.execute_batch(&format::fresh(now, ""))
}

/// Sets the creation time of a database that was copied from a fresh one.
pub(crate) fn begin_at(connection: &Connection, now: i64) -> rusqlite::Result<()> {
    write::set_root_times(connection, now)
}

/// Switches a file to the write-ahead log, if necessary.
///
/// The switch itself uses a rollback journal. If its removal were lost in a power failure, the journal would reappear and undo
/// the switch, and with it the later content of the log: `EXTRA` also syncs the directory.
pub(crate) fn use_log(connection: &Connection) -> rusqlite::Result<()> {
    let mode: String = connection.query_row("PRAGMA journal_mode", [], |row| row.get(0))?;
    if mode.eq_ignore_ascii_case("wal") {
        return Ok(());
    }
    let synchronous: i64 = connection.query_row("PRAGMA synchronous", [], |row| row.get(0))?;
    connection.execute_batch("PRAGMA synchronous=EXTRA; PRAGMA journal_mode=WAL;")?;
    connection.pragma_update(None, "synchronous", synchronous)
}

/// Corrects the changes of an honest foreign writer: inodes without a name (AgentFS's SDKs count a directory's links differently,
/// and keep the inode of one of ours when they remove it), and link counts. Returns the number of inodes without a name.
pub(crate) fn put_right(connection: &Connection) -> rusqlite::Result<usize> {
    let orphans = write::remove_nameless(connection)?;
    write::count_links(connection)?;
    Ok(orphans)
}

/// Corrects one of our files after one of AgentFS's SDKs had it open. The SDKs leave a trace: the indexes that they add, which
/// are removed so that the next visit is detected too.
pub(crate) fn after_visit(connection: &Connection, now: i64) -> Result<(), Error> {
    const VISITED: &str =
        "SELECT name FROM sqlite_schema WHERE type='index' AND tbl_name IN ('tool_calls', 'kv_store') AND sql NOT NULL";
    let mut statement = connection.prepare(VISITED)?;
    let indexes: Vec<String> = statement.query_map([], |row| row.get(0))?.collect::<Result<_, _>>()?;
    drop(statement);
    // Damaged rows of versions are reported when they are used.
    if indexes.is_empty() && !past::has_strangers(connection).unwrap_or(false) {
        return Ok(());
    }
    // Dropping an index walks its pages where it cannot be interrupted.
    quick_check(connection)?;
    let transaction = connection.unchecked_transaction()?;
    for index in indexes {
        transaction.execute_batch(&format!("DROP INDEX \"{}\"", index.replace('"', "\"\"")))?;
    }
    put_right(&transaction)?;
    budget::forget(&transaction)?;
    past::note_visit(&transaction, now)?;
    Ok(transaction.commit()?)
}

/// Checks the pages of our own tables and their indexes. Tables of other programs are not touched.
pub(crate) fn quick_check(connection: &Connection) -> Result<(), Error> {
    for table in known::tables() {
        if !rows::has_table(connection, table)? {
            continue;
        }
        let verdict: String = connection.query_row(&format!("PRAGMA main.quick_check({table})"), [], |row| row.get(0))?;
        if verdict != "ok" {
            return Err(Error::Damaged(verdict));
        }
    }
    Ok(())
}

/// Maximum size of one inode besides its name and its bytes: its row, and those of its first chunk.
const INODE_BYTES: u64 = 512;
/// Size of a file besides everything that is counted: its schema, half-empty b-trees, and pages between two uses.
const SPARE_BYTES: u64 = 16 << 20;
/// How far a file that is already above its ceiling may still grow, however often it is opened. Removing needs pages for split
/// b-trees and for lists of free pages, a few hundred in a tree of a million files; recording needs several times the output of
/// one call under the strict preset, 1 MB. Anything larger first has to free space in the file itself.
const GROWTH_BYTES: u64 = 16 << 20;

/// Returns the maximum number of pages of the file, the last line of defense behind the quota (T-DOS-07), effective even if our
/// own accounting is wrong. Small files, outputs and values can take up to twice their bytes in pages, names three times: they
/// are in two b-trees that are filled in random order.
pub(crate) fn page_ceiling(quota: &Quota, page_bytes: u64) -> u64 {
    let twice = [quota.bytes, quota.keys, quota.sessions, quota.history, quota.past].into_iter().fold(0, u64::saturating_add);
    let bytes = twice
        .saturating_mul(2)
        .saturating_add(quota.names.saturating_mul(3))
        .saturating_add(quota.inodes.saturating_mul(INODE_BYTES))
        .saturating_add(SPARE_BYTES);
    // SQLite's own maximum number of pages.
    (bytes / page_bytes.max(1)).min(0xFFFF_FFFE)
}

/// Sets the page limit, and returns whether the file already exceeds it.
pub(crate) fn limit_pages(connection: &Connection, quota: &Quota) -> rusqlite::Result<bool> {
    let number = |pragma: &str| connection.query_row(&format!("PRAGMA {pragma}"), [], |row| row.get::<_, i64>(0));
    let (page_bytes, pages) = (number("page_size")?.unsigned_abs(), number("page_count")?.unsigned_abs());
    let mut ceiling = page_ceiling(quota, page_bytes);
    let is_oversized = pages > ceiling;
    if is_oversized {
        // SQLite uses the file's own size if this is less.
        ceiling = first_oversized(connection, pages)?.saturating_add(GROWTH_BYTES / page_bytes.max(1)).min(0xFFFF_FFFE);
    }
    number(&format!("max_page_count={ceiling}"))?;
    Ok(is_oversized)
}

/// Returns the number of pages when the file was first found above its ceiling: from there it grows once, not at every open.
fn first_oversized(connection: &Connection, pages: u64) -> rusqlite::Result<u64> {
    let first: Option<Option<i64>> =
        connection.query_row("SELECT pages FROM sandlite_usage WHERE id=1", [], |row| row.get(0)).optional()?;
    match first.flatten().and_then(|first| u64::try_from(first).ok()).filter(|first| *first <= pages) {
        Some(first) => Ok(first),
        None => {
            connection.execute(
                "INSERT INTO sandlite_usage (id, pages) VALUES (1, ?1) ON CONFLICT (id) DO UPDATE SET pages=excluded.pages",
                [rows::signed(pages)],
            )?;
            Ok(pages)
        }
    }
}

/// Bytes of a log that remain on the disk after a checkpoint.
const LOG_KEPT_BYTES: u64 = 32 << 20;

/// Lets SQLite truncate a long log when it starts a new one.
pub(crate) fn limit_log(connection: &Connection) -> rusqlite::Result<()> {
    connection.query_row(&format!("PRAGMA journal_size_limit={LOG_KEPT_BYTES}"), [], |_| Ok(()))
}

/// The kind of a file.
pub(crate) enum Found {
    Empty,
    Ours,
    TooNew(i64),
    Foreign(String),
    Tampered(String),
}

/// Inspects a file without changing it.
pub(crate) fn inspect(connection: &Connection) -> rusqlite::Result<Found> {
    let number = |pragma: &str| connection.query_row(&format!("PRAGMA {pragma}"), [], |row| row.get::<_, i64>(0));
    let id = number("application_id")?;
    if id == 0 && !connection.prepare("SELECT 1 FROM sqlite_schema LIMIT 1")?.exists([])? {
        return Ok(Found::Empty);
    }
    if id != APPLICATION_ID {
        return stranger::database(connection).map(Found::Foreign);
    }
    let format = number("user_version")?;
    if format > FORMAT {
        return Ok(Found::TooNew(format));
    }
    let encoding: String = connection.query_row("PRAGMA encoding", [], |row| row.get(0))?;
    if encoding != "UTF-8" {
        return Ok(Found::Tampered(format!("its text is in {encoding}")));
    }
    Ok(known::stranger(connection, format)?.map_or(Found::Ours, Found::Tampered))
}

/// Returns the chunk size of the file.
pub(crate) fn chunk_bytes(connection: &Connection) -> Result<usize, Error> {
    let text: Option<String> =
        connection.query_row("SELECT value FROM fs_config WHERE key='chunk_size'", [], |row| row.get(0)).optional()?;
    text.and_then(|text| text.parse::<usize>().ok())
        .filter(|bytes| (1..=1 << 24).contains(bytes))
        .ok_or_else(|| Error::Damaged("`fs_config` has no valid `chunk_size`".to_owned()))
}
