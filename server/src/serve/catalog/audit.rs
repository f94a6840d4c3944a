//! The audit log: who requested which change, and its result. Rows are only added, and removed by age and number alone.

use rusqlite::params;
use serde::Serialize;

use super::Catalog;
use crate::serve::clock::{now, rfc3339};

/// A row of the log.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct AuditRow {
    pub(crate) number: i64,
    pub(crate) at: String,
    /// The id of the key.
    pub(crate) key: String,
    pub(crate) method: String,
    pub(crate) path: String,
    pub(crate) status: u16,
    /// The id of the request.
    pub(crate) request: String,
}

impl Catalog {
    /// Adds a row.
    pub(crate) fn audit(&self, tenant: &str, row: [&str; 4], status: u16) -> rusqlite::Result<()> {
        let [key, method, path, request] = row;
        let sql = "INSERT INTO audit (at, tenant, key, method, path, status, request) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)";
        self.change(|transaction| {
            transaction.prepare_cached(sql)?.execute(params![now(), tenant, key, method, path, status, request])
        })?;
        Ok(())
    }

    /// Removes rows of a tenant that are older than `since`, or that are not among its newest `most`.
    pub(crate) fn prune_audit(&self, tenant: &str, since: i64, most: u64) -> rusqlite::Result<usize> {
        let sql = "DELETE FROM audit WHERE tenant = ?1 AND number <= max(
                     coalesce((SELECT max(number) FROM audit WHERE tenant = ?1 AND at < ?2), 0),
                     coalesce((SELECT number FROM audit WHERE tenant = ?1 ORDER BY number DESC LIMIT 1 OFFSET ?3), 0))";
        let most = i64::try_from(most).unwrap_or(i64::MAX);
        self.change(|transaction| transaction.prepare_cached(sql)?.execute(params![tenant, since, most]))
    }

    /// Returns the rows of a tenant before a number, newest first.
    pub(crate) fn audit_rows(&self, tenant: &str, before: i64, limit: usize) -> rusqlite::Result<Vec<AuditRow>> {
        let sql = "SELECT number, at, key, method, path, status, request FROM audit
                   WHERE tenant = ?1 AND number < ?2 ORDER BY number DESC LIMIT ?3";
        self.read(|connection| {
            let mut statement = connection.prepare_cached(sql)?;
            let rows = statement.query_map(params![tenant, before, i64::try_from(limit).unwrap_or(i64::MAX)], |row| {
                Ok(AuditRow {
                    number: row.get(0)?,
                    at: rfc3339(row.get(1)?),
                    key: row.get(2)?,
                    method: row.get(3)?,
                    path: row.get(4)?,
                    status: row.get(5)?,
                    request: row.get(6)?,
                })
            })?;
            rows.collect()
        })
    }
}

#[cfg(test)]
mod tests {
    use rusqlite::Connection;

    use super::*;

    fn paths(catalog: &Catalog, tenant: &str) -> Vec<String> {
        catalog.audit_rows(tenant, i64::MAX, 100).unwrap().into_iter().map(|row| row.path).collect()
    }

    #[test]
    fn no_row_can_be_changed() {
        let catalog = Catalog::new(Connection::open_in_memory().unwrap()).unwrap();
        catalog.audit("a", ["key", "PUT", "/x", "request"], 403).unwrap();
        for sql in ["UPDATE audit SET status = 200", "UPDATE OR REPLACE audit SET number = 7"] {
            let error = catalog.change(|transaction| transaction.execute(sql, [])).unwrap_err();
            assert!(error.to_string().contains("cannot be changed"), "{error}");
        }
        assert_eq!(catalog.audit_rows("a", i64::MAX, 9).unwrap().first().map(|row| row.status), Some(403));
    }

    #[test]
    fn old_rows_and_rows_beyond_the_limit_of_a_tenant_are_removed() {
        let catalog = Catalog::new(Connection::open_in_memory().unwrap()).unwrap();
        for number in 0..5 {
            catalog.audit("a", ["key", "PUT", &format!("/{number}"), "request"], 200).unwrap();
        }
        catalog.audit("b", ["key", "PUT", "/other", "request"], 200).unwrap();
        assert_eq!(catalog.prune_audit("a", 0, 5).unwrap(), 0);
        assert_eq!(catalog.prune_audit("a", 0, 2).unwrap(), 3);
        assert_eq!(paths(&catalog, "a"), ["/4", "/3"]);
        assert_eq!(catalog.prune_audit("a", now() + 1, 5).unwrap(), 2);
        assert_eq!((paths(&catalog, "a"), paths(&catalog, "b")), (vec![], vec!["/other".to_owned()]));
    }
}
