//! The bytes of a tenant's rows: input and output of its executions, stored responses, and files, however small.

use super::Catalog;

/// Sums of indices of `schema.rs`, which have the same expressions: no row is read. Each row also counts 512 bytes besides its texts.
const BYTES: &str = "SELECT
    (SELECT coalesce(sum(512 + coalesce(length(CAST(input AS BLOB)), 0) + coalesce(length(CAST(output AS BLOB)), 0)
        + length(CAST(logs AS BLOB))), 0) FROM execution WHERE tenant = ?1)
    + (SELECT coalesce(sum(512 + coalesce(length(body), 0)), 0) FROM idempotency WHERE tenant = ?1)
    + (SELECT 512 * count(*) FROM file WHERE tenant = ?1)";

impl Catalog {
    /// Returns the bytes of a tenant's rows. On a separate connection: many rows take a while, and other requests do not wait for it.
    pub(crate) fn bytes_of_rows(&self, tenant: &str) -> rusqlite::Result<u64> {
        let bytes: i64 = match &self.0.path {
            Some(path) => Self::reader(path)?.query_row(BYTES, [tenant], |row| row.get(0))?,
            None => self.read(|connection| connection.query_row(BYTES, [tenant], |row| row.get(0)))?,
        };
        Ok(u64::try_from(bytes).unwrap_or(0))
    }
}

#[cfg(test)]
mod tests {
    use rusqlite::Connection;

    use super::super::{Begun, FileRow, Finished, KeptAnswer, NewExecution};
    use super::*;

    #[test]
    fn a_tenants_rows_count_with_their_texts_and_no_longer_when_they_are_gone() {
        let directory = tempfile::tempdir().unwrap();
        for catalog in [Catalog::new(Connection::open_in_memory().unwrap()).unwrap(), Catalog::open(directory.path()).unwrap()] {
            let bytes = || catalog.bytes_of_rows("a").unwrap();
            assert_eq!(bytes(), 0);
            let (id, skill, version) = ("1".to_owned(), "s".to_owned(), "1.0.0".to_owned());
            let new = NewExecution { id, skill, version, session: None, input: Some("\u{fc}".repeat(500)) };
            catalog.begin_execution("a", &new).unwrap();
            assert_eq!(bytes(), 512 + 1000);
            let ended = Finished { output: Some("x".repeat(10)), logs: "y".repeat(20), ..Finished::default() };
            catalog.finish_execution("a", "1", &ended).unwrap();
            assert_eq!((bytes(), catalog.bytes_of_rows("b").unwrap()), (512 + 1030, 0));
            assert!(matches!(catalog.begin_request("a", "k", b"print", 0).unwrap(), Begun::New));
            let answer = KeptAnswer { status: 200, headers: "[]".to_owned(), body: vec![0; 100] };
            catalog.end_request("a", "k", Some(&answer)).unwrap();
            assert_eq!(bytes(), 512 + 1030 + 512 + 100);
            catalog.add_files(&[FileRow::new("1".to_owned(), "a", "empty", "text/plain", 0)]).unwrap();
            assert_eq!(bytes(), 512 + 1030 + 512 + 100 + 512);
            let all = "DELETE FROM execution; DELETE FROM idempotency; DELETE FROM file";
            catalog.change(|to| to.execute_batch(all)).unwrap();
            assert_eq!(bytes(), 0);
        }
    }

    #[test]
    fn no_row_is_read_to_count_its_bytes() {
        let catalog = Catalog::new(Connection::open_in_memory().unwrap()).unwrap();
        let sql = format!("EXPLAIN QUERY PLAN {BYTES}");
        let plan: Vec<String> =
            catalog.read(|connection| connection.prepare(&sql)?.query_map(["a"], |row| row.get(3))?.collect()).unwrap();
        for index in ["execution_bytes", "idempotency_bytes"] {
            assert!(plan.iter().any(|step| step.contains("USING") && step.contains(index)), "{plan:?}");
        }
    }
}
