//! Usage of each tenant: fuel and runs by the hour.

use rusqlite::{OptionalExtension as _, params};

use super::Catalog;
use crate::serve::clock::now;

/// Milliseconds of an hour.
pub(crate) const HOUR: i64 = 3_600_000;
/// Hours that are kept.
const KEPT: i64 = 48;

impl Catalog {
    /// Adds the usage of a run.
    pub(crate) fn spend(&self, tenant: &str, fuel: u64) -> rusqlite::Result<()> {
        let sql = "INSERT INTO spent (tenant, hour, fuel, runs) VALUES (?1, ?2, ?3, 1)
                   ON CONFLICT DO UPDATE SET fuel = min(fuel + ?3, 4611686018427387904), runs = runs + 1";
        let fuel = i64::try_from(fuel).unwrap_or(i64::MAX / 2).min(i64::MAX / 2);
        self.change(|transaction| transaction.prepare_cached(sql)?.execute(params![tenant, now() / HOUR, fuel])).map(drop)
    }

    /// Returns the fuel and the runs of a tenant in this hour.
    pub(crate) fn spent(&self, tenant: &str) -> rusqlite::Result<(u64, u64)> {
        let sql = "SELECT fuel, runs FROM spent WHERE tenant = ?1 AND hour = ?2";
        let found: Option<(i64, i64)> = self.read(|connection| {
            let mut statement = connection.prepare_cached(sql)?;
            statement.query_row(params![tenant, now() / HOUR], |row| Ok((row.get(0)?, row.get(1)?))).optional()
        })?;
        let (fuel, runs) = found.unwrap_or_default();
        Ok((u64::try_from(fuel).unwrap_or(0), u64::try_from(runs).unwrap_or(0)))
    }

    /// Returns the hours of a tenant that are kept, oldest first: when each began, its fuel and its runs. Hours without a run are left out.
    pub(crate) fn spent_by_hour(&self, tenant: &str) -> rusqlite::Result<Vec<(i64, i64, i64)>> {
        let sql = "SELECT hour, fuel, runs FROM spent WHERE tenant = ?1 AND hour > ?2 ORDER BY hour";
        self.read(|connection| {
            let mut statement = connection.prepare_cached(sql)?;
            let rows =
                statement.query_map(params![tenant, now() / HOUR - KEPT], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?;
            rows.map(|row| row.map(|(hour, fuel, runs): (i64, i64, i64)| (hour.saturating_mul(HOUR), fuel, runs))).collect()
        })
    }

    /// Forgets old hours.
    pub(crate) fn forget_spent(&self) -> rusqlite::Result<()> {
        let oldest = now() / HOUR - KEPT;
        self.change(|transaction| transaction.execute("DELETE FROM spent WHERE hour < ?1", [oldest])).map(drop)
    }
}

#[cfg(test)]
mod tests {
    use rusqlite::Connection;

    use super::*;

    #[test]
    fn hours_are_listed_for_their_tenant_while_they_are_kept() {
        let catalog = Catalog::new(Connection::open_in_memory().unwrap()).unwrap();
        catalog.spend("a", 5).unwrap();
        catalog.spend("a", 7).unwrap();
        catalog.spend("b", 1).unwrap();
        let hour = now() / HOUR;
        for ago in [2, KEPT] {
            let sql = "INSERT INTO spent (tenant, hour, fuel, runs) VALUES ('a', ?1, 3, 1)";
            catalog.change(|transaction| transaction.execute(sql, [hour - ago])).unwrap();
        }
        assert_eq!(catalog.spent_by_hour("a").unwrap(), [((hour - 2) * HOUR, 3, 1), (hour * HOUR, 12, 2)]);
    }
}
