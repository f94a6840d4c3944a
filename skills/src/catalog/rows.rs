//! The tables of the catalog, and all SQL statements.

use std::time::{SystemTime, UNIX_EPOCH};

use rusqlite::{Connection, OptionalExtension as _, Result, Row, params};

use super::{Base, Listed, VersionRow};
use crate::package::{File, Package};

/// The schema version, stored as `user_version`.
const FORMAT: i64 = 1;

const TABLES: &str = "
CREATE TABLE skill (
    id INTEGER PRIMARY KEY,
    tenant TEXT NOT NULL,
    name TEXT NOT NULL,
    version TEXT NOT NULL,
    active INTEGER NOT NULL DEFAULT 0,
    description TEXT NOT NULL,
    lang TEXT NOT NULL,
    mode TEXT NOT NULL,
    has_script INTEGER NOT NULL,
    digest TEXT NOT NULL,
    size INTEGER NOT NULL,
    pushed INTEGER NOT NULL,
    scientific INTEGER NOT NULL DEFAULT 0,
    UNIQUE (tenant, name, version)
);
CREATE INDEX skill_active ON skill (tenant, name) WHERE active = 1;
CREATE TABLE skill_file (
    skill INTEGER NOT NULL REFERENCES skill (id) ON DELETE CASCADE,
    path TEXT NOT NULL,
    executable INTEGER NOT NULL,
    content BLOB NOT NULL,
    PRIMARY KEY (skill, path)
);
CREATE TABLE skill_base (
    skill INTEGER PRIMARY KEY REFERENCES skill (id) ON DELETE CASCADE,
    snapshot BLOB NOT NULL
);
CREATE TABLE skill_replaced (
    id INTEGER PRIMARY KEY,
    tenant TEXT NOT NULL,
    name TEXT NOT NULL,
    version TEXT NOT NULL,
    digest TEXT NOT NULL,
    replaced INTEGER NOT NULL
);
";

/// Creates the tables in a new database.
pub(super) fn create(connection: &mut Connection) -> Result<()> {
    let format = |connection: &Connection| connection.query_row("PRAGMA user_version", [], |row| row.get::<_, i64>(0));
    match format(connection)? {
        0 => {}
        FORMAT => return Ok(()),
        newer => return Err(unsupported(newer)),
    }
    let transaction = connection.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)?;
    // Another process may have created them first.
    if format(&transaction)? == 0 {
        transaction.execute_batch(TABLES)?;
        transaction.pragma_update(None, "user_version", FORMAT)?;
    }
    transaction.commit()
}

fn unsupported(format: i64) -> rusqlite::Error {
    let reason = format!("the catalog has format {format}, and this program supports {FORMAT}: use a newer version of it");
    rusqlite::Error::SqliteFailure(rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_NOTADB), Some(reason))
}

fn now() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_secs()).unwrap_or(i64::MAX)
}

/// Returns a version's row and digest, and whether it is active.
pub(super) fn digest(connection: &Connection, tenant: &str, name: &str, version: &str) -> Result<Option<(i64, String, bool)>> {
    let sql = "SELECT id, digest, active FROM skill WHERE tenant = ?1 AND name = ?2 AND version = ?3";
    let row = |row: &Row<'_>| Ok((row.get(0)?, row.get(1)?, row.get(2)?));
    connection.prepare_cached(sql)?.query_row(params![tenant, name, version], row).optional()
}

/// Returns the active version of a skill.
pub(super) fn active(connection: &Connection, tenant: &str, name: &str) -> Result<Option<String>> {
    let sql = "SELECT version FROM skill WHERE tenant = ?1 AND name = ?2 AND active = 1";
    connection.prepare_cached(sql)?.query_row(params![tenant, name], |row| row.get(0)).optional()
}

/// Returns the version in a row.
pub(super) fn version(connection: &Connection, id: i64) -> Result<String> {
    connection.prepare_cached("SELECT version FROM skill WHERE id = ?1")?.query_row([id], |row| row.get(0))
}

/// Returns the digests of earlier content of a version, oldest first.
pub(super) fn replaced(connection: &Connection, tenant: &str, name: &str, version: &str) -> Result<Vec<String>> {
    let sql = "SELECT digest FROM skill_replaced WHERE tenant = ?1 AND name = ?2 AND version = ?3 ORDER BY id";
    connection.prepare_cached(sql)?.query_map(params![tenant, name, version], |row| row.get(0))?.collect()
}

/// Returns the time of a push, in seconds since 1970.
pub(super) fn pushed(connection: &Connection, id: i64) -> Result<i64> {
    connection.prepare_cached("SELECT pushed FROM skill WHERE id = ?1")?.query_row([id], |row| row.get(0))
}

/// Sets the time of a push, in seconds since 1970.
pub(super) fn set_pushed(connection: &Connection, tenant: &str, name: &str, version: &str, pushed: i64) -> Result<()> {
    let sql = "UPDATE skill SET pushed = ?4 WHERE tenant = ?1 AND name = ?2 AND version = ?3";
    connection.execute(sql, params![tenant, name, version, pushed]).map(drop)
}

/// Returns a version's row and digest; the active one if none is named.
pub(super) fn resolve(connection: &Connection, tenant: &str, name: &str, version: Option<&str>) -> Result<Option<(i64, String)>> {
    let sql = match version {
        Some(_) => "SELECT id, digest FROM skill WHERE tenant = ?1 AND name = ?2 AND version = ?3",
        None => "SELECT id, digest FROM skill WHERE tenant = ?1 AND name = ?2 AND active = 1 AND ?3 IS NULL",
    };
    let row = |row: &Row<'_>| Ok((row.get(0)?, row.get(1)?));
    connection.prepare_cached(sql)?.query_row(params![tenant, name, version], row).optional()
}

/// Adds a version with its files.
pub(super) fn insert(connection: &Connection, tenant: &str, package: &Package, digest: &str, base: Base<'_>) -> Result<i64> {
    let manifest = package.manifest();
    let size: usize = package.files().iter().map(|file| file.content.len()).sum();
    connection.execute(
        "INSERT INTO skill (tenant, name, version, description, lang, mode, has_script, digest, size, pushed, scientific)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)",
        params![
            tenant,
            manifest.name,
            manifest.version,
            manifest.description,
            manifest.lang.map_or("", |lang| lang.as_str()),
            manifest.mode.as_str(),
            package.entry().is_some(),
            digest,
            i64::try_from(size).unwrap_or(i64::MAX),
            now(),
            base.is_scientific,
        ],
    )?;
    let id = connection.last_insert_rowid();
    let mut insert =
        connection.prepare_cached("INSERT INTO skill_file (skill, path, executable, content) VALUES (?1, ?2, ?3, ?4)")?;
    for File { path, content, is_executable } in package.files() {
        insert.execute(params![id, path, is_executable, content])?;
    }
    if let Some(snapshot) = base.snapshot {
        connection.execute("INSERT INTO skill_base (skill, snapshot) VALUES (?1, ?2)", params![id, snapshot])?;
    }
    Ok(id)
}

/// Makes a version the active one of its skill.
pub(super) fn activate(connection: &Connection, tenant: &str, name: &str, id: i64) -> Result<()> {
    connection.execute("UPDATE skill SET active = 0 WHERE tenant = ?1 AND name = ?2 AND active = 1", params![tenant, name])?;
    connection.execute("UPDATE skill SET active = 1 WHERE id = ?1", [id]).map(drop)
}

/// Records the previous content of a version.
pub(super) fn replace(connection: &Connection, tenant: &str, name: &str, version: &str, digest: &str) -> Result<()> {
    let sql = "INSERT INTO skill_replaced (tenant, name, version, digest, replaced) VALUES (?1, ?2, ?3, ?4, ?5)";
    connection.execute(sql, params![tenant, name, version, digest, now()]).map(drop)
}

/// Removes a version with its files.
pub(super) fn remove(connection: &Connection, id: i64) -> Result<()> {
    connection.execute("DELETE FROM skill WHERE id = ?1", [id]).map(drop)
}

/// Removes every version of a skill.
pub(super) fn remove_all(connection: &Connection, tenant: &str, name: &str) -> Result<()> {
    connection.execute("DELETE FROM skill WHERE tenant = ?1 AND name = ?2", params![tenant, name])?;
    connection.execute("DELETE FROM skill_replaced WHERE tenant = ?1 AND name = ?2", params![tenant, name]).map(drop)
}

/// The columns of a [`Listed`].
const LISTED: &str =
    "SELECT name, version, description, lang, mode, has_script, digest FROM skill WHERE tenant = ?1 AND active = 1";

fn listed(row: &Row<'_>) -> Result<Listed> {
    Ok(Listed {
        name: row.get(0)?,
        version: row.get(1)?,
        description: row.get(2)?,
        lang: row.get(3)?,
        mode: row.get(4)?,
        has_script: row.get(5)?,
        digest: row.get(6)?,
    })
}

/// Returns the active version of each skill by name: those whose names sort after `after`, at most `most`.
pub(super) fn list(connection: &Connection, tenant: &str, after: &str, most: i64) -> Result<Vec<Listed>> {
    let sql = format!("{LISTED} AND name > ?2 ORDER BY name LIMIT ?3");
    connection.prepare_cached(&sql)?.query_map(params![tenant, after, most], listed)?.collect()
}

/// Returns the number of skills.
pub(super) fn count(connection: &Connection, tenant: &str) -> Result<usize> {
    let sql = "SELECT count(*) FROM skill WHERE tenant = ?1 AND active = 1";
    let count: i64 = connection.prepare_cached(sql)?.query_row([tenant], |row| row.get(0))?;
    Ok(usize::try_from(count).unwrap_or(usize::MAX))
}

/// Returns the active version of one skill.
pub(super) fn find(connection: &Connection, tenant: &str, name: &str) -> Result<Option<Listed>> {
    let sql = format!("{LISTED} AND name = ?2");
    connection.prepare_cached(&sql)?.query_row([tenant, name], listed).optional()
}

/// Returns the versions of a skill in unspecified order.
pub(super) fn versions(connection: &Connection, tenant: &str, name: &str) -> Result<Vec<VersionRow>> {
    let sql = "SELECT version, active, digest, size, pushed FROM skill WHERE tenant = ?1 AND name = ?2";
    let version = |row: &Row<'_>| {
        Ok(VersionRow {
            version: row.get(0)?,
            active: row.get(1)?,
            digest: row.get(2)?,
            size_bytes: u64::try_from(row.get::<_, i64>(3)?).unwrap_or(0),
            uploaded_at: row.get(4)?,
            replaced: Vec::new(),
        })
    };
    let mut found: Vec<VersionRow> =
        connection.prepare_cached(sql)?.query_map(params![tenant, name], version)?.collect::<Result<_>>()?;
    let sql = "SELECT version, digest FROM skill_replaced WHERE tenant = ?1 AND name = ?2 ORDER BY id";
    let mut replaced = connection.prepare_cached(sql)?;
    for row in replaced.query_map(params![tenant, name], |row| Ok((row.get::<_, String>(0)?, row.get::<_, String>(1)?)))? {
        let (version, digest) = row?;
        if let Some(found) = found.iter_mut().find(|found| found.version == version) {
            found.replaced.push(digest);
        }
    }
    Ok(found)
}

/// Returns the files of a version, by path.
pub(super) fn files(connection: &Connection, id: i64) -> Result<Vec<File>> {
    let sql = "SELECT path, content, executable FROM skill_file WHERE skill = ?1 ORDER BY path";
    let file = |row: &Row<'_>| Ok(File { path: row.get(0)?, content: row.get(1)?, is_executable: row.get(2)? });
    connection.prepare_cached(sql)?.query_map([id], file)?.collect()
}

/// Returns the base snapshot of a version, and whether it requires the scientific Python.
pub(super) fn base(connection: &Connection, id: i64) -> Result<(Option<Vec<u8>>, bool)> {
    let snapshot = connection.query_row("SELECT snapshot FROM skill_base WHERE skill = ?1", [id], |row| row.get(0)).optional()?;
    let is_scientific = connection.query_row("SELECT scientific FROM skill WHERE id = ?1", [id], |row| row.get(0))?;
    Ok((snapshot, is_scientific))
}
