//! The content of a fresh database. `build.rs` also reads this file to create the database that databases in memory start from,
//! so its statements cannot be in `store/write.rs`.

/// `SLFS`: marks a file as ours, so that a foreign one is imported and never adopted.
pub(crate) const APPLICATION_ID: i64 = 0x534C_4653;
/// Our format, in `user_version`; a higher one is rejected.
pub(crate) const FORMAT: i64 = 3;
/// Measured: 64 KiB rows read and write large files fastest.
pub(crate) const CHUNK_BYTES: usize = 64 * 1024;

/// The tables of a fresh database, except those of sessions, budgets and versions.
pub(crate) const TABLES: &str = include_str!("tables.sql");
/// The table of sessions, also for files created before there were any.
pub(crate) const SESSIONS: &str = include_str!("sessions.sql");
/// The table of budgets, also for files created before there were any.
pub(crate) const USAGE: &str = include_str!("usage.sql");

/// The table of versions, since format 2.
pub(crate) const VERSIONS: &str = include_str!("versions.sql");
/// The tables of the past. A file of format 2 has all of them, one of format 3 those that it needs.
pub(crate) const PAST: &str = include_str!("past.sql");

/// Returns the statements for a fresh database: its tables and optionally more, their initial rows, and its application ID.
pub(crate) fn fresh(now: i64, more: &str) -> String {
    let (seconds, nanos) = (now.div_euclid(1_000_000_000), now.rem_euclid(1_000_000_000));
    format!(
        "BEGIN IMMEDIATE; {TABLES} {SESSIONS} {USAGE} {VERSIONS} {more}
         INSERT INTO fs_config VALUES ('chunk_size','{CHUNK_BYTES}'), ('schema_version','0.4');
         INSERT INTO fs_inode (ino, mode, nlink, atime, mtime, ctime, atime_nsec, mtime_nsec, ctime_nsec)
           VALUES (1, {mode}, 2, {seconds}, {seconds}, {seconds}, {nanos}, {nanos}, {nanos});
         PRAGMA application_id={APPLICATION_ID}; PRAGMA user_version={FORMAT}; COMMIT;",
        mode = 0o40_755
    )
}
