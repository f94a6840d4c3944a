//! Which executions are kept: not too old, not too many, and not with too many bytes.

use rusqlite::{Transaction, params};

use super::Catalog;

/// Limits for the stored results of a tenant.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Kept {
    /// Executions that began before this moment are removed.
    pub(crate) since: i64,
    /// Most executions.
    pub(crate) executions: i64,
    /// Most bytes of artifacts.
    pub(crate) bytes: i64,
}

/// Files of a run that were neither replaced nor put into a session: they are removed with their execution.
const ARTIFACT: &str = "tenant = ?1 AND execution IS NOT NULL AND session IS NULL AND parent IS NULL";

impl Catalog {
    /// Removes the executions of a tenant that are not kept, oldest first, with the rows of their artifacts, and then artifacts until
    /// their bytes fit; an execution that has lost them stays. Returns the ids of the files, whose bytes can go. One that runs is kept.
    pub(crate) fn prune_executions(&self, tenant: &str, kept: &Kept) -> rusqlite::Result<Vec<String>> {
        self.change(|transaction| {
            let sql = "DELETE FROM execution WHERE tenant = ?1 AND status <> 'running' AND (created_at < ?2 OR id IN (
                           SELECT id FROM execution WHERE tenant = ?1 ORDER BY created_at DESC, id DESC LIMIT -1 OFFSET ?3))";
            let removed = transaction.prepare_cached(sql)?.execute(params![tenant, kept.since, kept.executions])?;
            let mut files = match removed {
                0 => Vec::new(),
                _ => {
                    let sql = format!(
                        "DELETE FROM file WHERE {ARTIFACT}
                         AND NOT EXISTS (SELECT 1 FROM execution WHERE execution.id = file.execution) RETURNING id"
                    );
                    let ids = transaction.prepare_cached(&sql)?.query_map([tenant], |row| row.get(0))?.collect::<Result<_, _>>();
                    ids?
                }
            };
            files.extend(fit(transaction, tenant, kept.bytes)?);
            Ok(files)
        })
    }

    /// Returns whether there is a file of this id.
    pub(crate) fn knows_file(&self, id: &str) -> rusqlite::Result<bool> {
        self.read(|connection| connection.prepare_cached("SELECT 1 FROM file WHERE id = ?1")?.exists([id]))
    }
}

// Removes the artifacts of the oldest executions until the bytes of those that are left fit.
fn fit(transaction: &Transaction<'_>, tenant: &str, bytes: i64) -> rusqlite::Result<Vec<String>> {
    let sql =
        format!("SELECT execution, sum(size_bytes) FROM file WHERE {ARTIFACT} GROUP BY execution ORDER BY min(created_at) DESC");
    let of_executions: Vec<(String, i64)> =
        transaction.prepare_cached(&sql)?.query_map([tenant], |row| Ok((row.get(0)?, row.get(1)?)))?.collect::<Result<_, _>>()?;
    let (mut used, mut files) = (0i64, Vec::new());
    for (execution, size) in of_executions {
        used = used.saturating_add(size);
        if used <= bytes {
            continue;
        }
        let sql = format!("DELETE FROM file WHERE {ARTIFACT} AND execution = ?2 RETURNING id");
        let mut statement = transaction.prepare_cached(&sql)?;
        for id in statement.query_map([tenant, &execution], |row| row.get(0))? {
            files.push(id?);
        }
        let sql = "UPDATE execution SET files = '[]' WHERE tenant = ?1 AND id = ?2";
        transaction.prepare_cached(sql)?.execute([tenant, &execution])?;
    }
    Ok(files)
}

#[cfg(test)]
mod tests {
    use rusqlite::Connection;

    use super::super::{ExecutionFilter, FileFilter, FileRow, Finished, NewExecution};
    use super::*;

    const ALL: Kept = Kept { since: 0, executions: i64::MAX, bytes: i64::MAX };

    // Executions 1 to 4 of a tenant, each with a file of 10 bytes, began in this order; 4 is running.
    fn catalog() -> Catalog {
        let catalog = Catalog::new(Connection::open_in_memory().unwrap()).unwrap();
        for (at, id) in ["1", "2", "3", "4"].iter().enumerate() {
            let (skill, version) = ("s".to_owned(), "1.0.0".to_owned());
            catalog
                .begin_execution("a", &NewExecution { id: (*id).to_owned(), skill, version, session: None, input: None })
                .unwrap();
            let file = FileRow::new(format!("f{id}"), "a", "x", "text/plain", 10);
            let at = 1000 + i64::try_from(at).unwrap();
            catalog.add_files(&[FileRow { execution: Some((*id).to_owned()), created_at: at, ..file }]).unwrap();
            let files = vec!["x".to_owned()];
            if *id != "4" {
                catalog
                    .finish_execution("a", id, &Finished { status: "success".to_owned(), files, ..Finished::default() })
                    .unwrap();
            }
            catalog.change(|to| to.execute("UPDATE execution SET created_at = ?1 WHERE id = ?2", params![at, id])).unwrap();
        }
        catalog
    }

    fn left(catalog: &Catalog) -> String {
        let rows = catalog.executions("a", &ExecutionFilter { limit: 9, ..ExecutionFilter::default() }).unwrap();
        rows.iter().map(|row| format!("{}{}", row.id, if row.ended.files.is_empty() { "-" } else { "+" })).collect()
    }

    #[track_caller]
    fn check(kept: Kept, files: &[&str], expected: &str) {
        let catalog = catalog();
        assert!(catalog.prune_executions("b", &Kept { since: i64::MAX, executions: 0, bytes: 0 }).unwrap().is_empty());
        let mut removed = catalog.prune_executions("a", &kept).unwrap();
        removed.sort();
        assert_eq!((removed.iter().map(String::as_str).collect::<Vec<_>>(), left(&catalog).as_str()), (files.to_vec(), expected));
    }

    #[test]
    fn executions_are_kept_by_age_number_and_bytes_and_while_they_run() {
        check(ALL, &[], "4-3+2+1+");
        check(Kept { since: 1002, ..ALL }, &["f1", "f2"], "4-3+");
        check(Kept { executions: 3, ..ALL }, &["f1"], "4-3+2+");
        check(Kept { executions: 0, ..ALL }, &["f1", "f2", "f3"], "4-");
        check(Kept { bytes: 25, ..ALL }, &["f1", "f2"], "4-3+2-1-");
    }

    #[test]
    fn a_file_that_was_uploaded_replaced_or_put_into_a_session_is_not_an_artifact() {
        let catalog = catalog();
        let file = |id: &str| FileRow::new(id.to_owned(), "a", "x", "text/plain", 10);
        catalog.add_files(&[file("own"), FileRow { session: Some("s".to_owned()), ..file("shared") }]).unwrap();
        catalog.add_version("a", "f1", file("newer")).unwrap().unwrap();
        catalog.prune_executions("a", &Kept { since: i64::MAX, executions: 0, bytes: 0 }).unwrap();
        let rows = catalog.files("a", &FileFilter { limit: 9, ..FileFilter::default() }).unwrap();
        let mut ids: Vec<&str> = rows.iter().map(|row| row.id.as_str()).collect();
        ids.sort_unstable();
        assert_eq!(ids, ["newer", "own", "shared"]);
        assert!(catalog.knows_file("own").unwrap() && !catalog.knows_file("f1").unwrap());
    }
}
