//! The audit log: who asked for what, and what became of it. Rows are only added.

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

    /// The rows of a tenant before a number, newest first.
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
