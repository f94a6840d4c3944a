//! What each tenant has used: fuel and runs by the hour.

use rusqlite::{OptionalExtension as _, params};

use super::Catalog;
use crate::serve::clock::now;

/// Milliseconds of an hour.
pub(crate) const HOUR: i64 = 3_600_000;
/// Hours that are kept.
const KEPT: i64 = 48;

impl Catalog {
    /// Adds what a run has used.
    pub(crate) fn spend(&self, tenant: &str, fuel: u64) -> rusqlite::Result<()> {
        let sql = "INSERT INTO spent (tenant, hour, fuel, runs) VALUES (?1, ?2, ?3, 1)
                   ON CONFLICT DO UPDATE SET fuel = min(fuel + ?3, 4611686018427387904), runs = runs + 1";
        let fuel = i64::try_from(fuel).unwrap_or(i64::MAX / 2).min(i64::MAX / 2);
        self.change(|transaction| transaction.prepare_cached(sql)?.execute(params![tenant, now() / HOUR, fuel])).map(drop)
    }

    /// The fuel and the runs of a tenant in this hour.
    pub(crate) fn spent(&self, tenant: &str) -> rusqlite::Result<(u64, u64)> {
        let sql = "SELECT fuel, runs FROM spent WHERE tenant = ?1 AND hour = ?2";
        let found: Option<(i64, i64)> = self.read(|connection| {
            let mut statement = connection.prepare_cached(sql)?;
            statement.query_row(params![tenant, now() / HOUR], |row| Ok((row.get(0)?, row.get(1)?))).optional()
        })?;
        let (fuel, runs) = found.unwrap_or_default();
        Ok((u64::try_from(fuel).unwrap_or(0), u64::try_from(runs).unwrap_or(0)))
    }

    /// Forgets old hours.
    pub(crate) fn forget_spent(&self) -> rusqlite::Result<()> {
        let oldest = now() / HOUR - KEPT;
        self.change(|transaction| transaction.execute("DELETE FROM spent WHERE hour < ?1", [oldest])).map(drop)
    }
}
