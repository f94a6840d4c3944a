//! Describes a file that is not a Sandlite database, for a user who named it by mistake.
//!
//! Reads only the beginning of the file; SQLite decides whether it can be opened.

#![expect(clippy::disallowed_methods, reason = "the beginning of a file identifies it")]

use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use rusqlite::Connection;

/// Number of bytes read.
const BEGINNING: u64 = 512;
/// Maximum number of listed tables, and maximum length of a name.
const TABLES: usize = 3;
const NAME: usize = 40;

/// The first bytes of well-known file types.
const KINDS: [(&[u8], &str); 9] = [
    (b"SQLite format 3\0", "it is an SQLite database with a damaged header"),
    (b"\x1f\x8b", "it is a gzip archive"),
    (b"\xfd7zXZ\0", "it is an xz archive"),
    (b"\x28\xb5\x2f\xfd", "it is a Zstandard archive"),
    (b"PK\x03\x04", "it is a zip archive"),
    (b"\x7fELF", "it is a program"),
    (b"\0asm", "it is a WebAssembly module"),
    (b"%PDF-", "it is a PDF document"),
    (b"\x89PNG", "it is a PNG image"),
];

/// Describes a file that SQLite does not accept as a database.
pub(crate) fn file(path: &Path) -> String {
    let mut beginning = Vec::new();
    let read = File::open(path).and_then(|file| file.take(BEGINNING).read_to_end(&mut beginning));
    let is_text = |c: char| !c.is_control() || c.is_ascii_whitespace();
    // A character may be split at the end of the buffer.
    let text = match std::str::from_utf8(&beginning) {
        Ok(text) => Some(text),
        Err(error) if error.error_len().is_none() => std::str::from_utf8(&beginning[..error.valid_up_to()]).ok(),
        Err(_) => None,
    };
    let known = KINDS.iter().find(|(start, _)| beginning.starts_with(start)).map(|(_, kind)| *kind);
    match (known, text) {
        (Some(kind), _) => kind,
        (None, Some(text)) if read.is_ok() && text.chars().all(is_text) => "it is a text file",
        _ => "it is not an SQLite database",
    }
    .to_owned()
}

/// Returns whether a file has one byte: SQLite takes it for an empty one, and would overwrite it. (On macOS it writes such a byte
/// itself, where an empty file cannot be locked.)
pub(crate) fn has_one_byte(path: &Path) -> bool {
    // Without opening it: closing it would release the locks that this process has on it.
    !cfg!(target_os = "macos") && std::fs::metadata(path).is_ok_and(|metadata| metadata.len() == 1)
}

/// Describes a SQLite database whose application ID is not ours.
pub(crate) fn database(connection: &Connection) -> rusqlite::Result<String> {
    let mut query = connection.prepare("SELECT name FROM sqlite_schema WHERE type='table' ORDER BY rowid LIMIT ?1")?;
    let names: Vec<String> =
        query.query_map([TABLES as i64 + 1], |row| row.get::<_, String>(0))?.collect::<rusqlite::Result<_>>()?;
    let of_agentfs = "SELECT count(*)=2 FROM sqlite_schema WHERE type='table' AND name IN ('fs_inode', 'fs_dentry')";
    if connection.query_row(of_agentfs, [], |row| row.get(0))? {
        return Ok("it is a database of AgentFS or LocalSandbox".to_owned());
    }
    let shown = |name: &String| format!("`{}`", name.chars().filter(|c| !c.is_control()).take(NAME).collect::<String>());
    let listed: Vec<String> = names.iter().take(TABLES).map(shown).collect();
    let more = if names.len() > TABLES { ", …" } else { "" };
    Ok(match listed.len() {
        0 => "it is an SQLite database of another program".to_owned(),
        1 => format!("it is an SQLite database of another program, with the table {}", listed.concat()),
        _ => format!("it is an SQLite database of another program, with the tables {}{more}", listed.join(", ")),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_known_by_its_beginning() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("file");
        let check = |content: &[u8], expected: &str| {
            std::fs::write(&path, content).unwrap();
            assert_eq!(file(&path), expected, "{content:?}");
        };
        check(b"notes\nof mine\n", "it is a text file");
        check(&"é".repeat(300).as_bytes()[..511], "it is a text file");
        check(b"\x1f\x8b\x08\0", "it is a gzip archive");
        check(b"SQLite format 3\0????", "it is an SQLite database with a damaged header");
        check(b"\x01\x02\xff", "it is not an SQLite database");
    }

    #[test]
    fn a_database_is_known_by_its_tables() {
        let connection = Connection::open_in_memory().unwrap();
        let check = |expected: &str| assert_eq!(database(&connection).unwrap(), expected);
        check("it is an SQLite database of another program");
        connection.execute_batch("CREATE TABLE \"moz\n_places\"(x)").unwrap();
        check("it is an SQLite database of another program, with the table `moz_places`");
        connection.execute_batch("CREATE TABLE b(x); CREATE TABLE c(x); CREATE TABLE d(x)").unwrap();
        check("it is an SQLite database of another program, with the tables `moz_places`, `b`, `c`, …");
        connection.execute_batch("CREATE TABLE fs_inode(x); CREATE TABLE fs_dentry(x)").unwrap();
        check("it is a database of AgentFS or LocalSandbox");
    }
}
