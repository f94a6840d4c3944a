//! The list of all tenants' sandboxes, without their contents.

use rusqlite::{OptionalExtension as _, Row, params};

use super::Catalog;
use crate::serve::clock::now;

/// A sandbox's row.
#[derive(Clone, Debug)]
pub(crate) struct SandboxRow {
    pub(crate) id: String,
    pub(crate) tenant: String,
    pub(crate) name: Option<String>,
    pub(crate) preset: String,
    /// The id of the sandbox that it lies over.
    pub(crate) base: Option<String>,
    pub(crate) created_at: i64,
    pub(crate) used_at: i64,
    pub(crate) expires_at: Option<i64>,
}

/// Why a row was not added or changed.
#[derive(Debug)]
pub(crate) enum Taken {
    /// The tenant has a sandbox of this name.
    Name,
    /// The tenant has as many sandboxes as it may have.
    Quota,
    /// There is no such row.
    Missing,
}

const COLUMNS: &str = "id, tenant, name, preset, options, created_at, used_at, expires_at";

fn row(row: &Row<'_>) -> rusqlite::Result<SandboxRow> {
    let options: serde_json::Value = serde_json::from_str(&row.get::<_, String>(4)?).unwrap_or_default();
    Ok(SandboxRow {
        id: row.get(0)?,
        tenant: row.get(1)?,
        name: row.get(2)?,
        preset: row.get(3)?,
        base: options.get("base").and_then(|base| base.as_str()).map(str::to_owned),
        created_at: row.get(5)?,
        used_at: row.get(6)?,
        expires_at: row.get(7)?,
    })
}

fn is_taken(connection: &rusqlite::Connection, tenant: &str, name: &str, but: &str) -> rusqlite::Result<bool> {
    let sql = "SELECT 1 FROM sandbox WHERE tenant = ?1 AND name = ?2 AND id <> ?3";
    connection.prepare_cached(sql)?.exists([tenant, name, but])
}

impl Catalog {
    /// Adds a sandbox, if the tenant has fewer than `most`, none of its name, and still has the one that it lies over.
    pub(crate) fn add_sandbox(&self, new: &SandboxRow, most: u64) -> rusqlite::Result<Result<(), Taken>> {
        self.change(|transaction| {
            let count = "SELECT count(*) FROM sandbox WHERE tenant = ?1";
            let count: i64 = transaction.prepare_cached(count)?.query_row([&new.tenant], |row| row.get(0))?;
            if u64::try_from(count).unwrap_or(0) >= most {
                return Ok(Err(Taken::Quota));
            }
            if let Some(name) = &new.name
                && is_taken(transaction, &new.tenant, name, &new.id)?
            {
                return Ok(Err(Taken::Name));
            }
            if let Some(base) = &new.base {
                let sql = "SELECT 1 FROM sandbox WHERE tenant = ?1 AND id = ?2";
                if !transaction.prepare_cached(sql)?.exists([&new.tenant, base])? {
                    return Ok(Err(Taken::Missing));
                }
            }
            let options = new.base.as_ref().map_or_else(|| serde_json::json!({}), |base| serde_json::json!({ "base": base }));
            let sql = format!("INSERT INTO sandbox ({COLUMNS}) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)");
            let values = params![
                new.id,
                new.tenant,
                new.name,
                new.preset,
                options.to_string(),
                new.created_at,
                new.used_at,
                new.expires_at
            ];
            transaction.prepare_cached(&sql)?.execute(values)?;
            Ok(Ok(()))
        })
    }

    /// Returns a tenant's sandbox that has not expired.
    pub(crate) fn sandbox(&self, tenant: &str, id: &str) -> rusqlite::Result<Option<SandboxRow>> {
        let sql =
            format!("SELECT {COLUMNS} FROM sandbox WHERE id = ?2 AND tenant = ?1 AND (expires_at IS NULL OR expires_at > ?3)");
        self.read(|connection| connection.prepare_cached(&sql)?.query_row(params![tenant, id, now()], row).optional())
    }

    /// Returns a tenant's sandboxes in the order in which they were made, after the one with this moment and id; of one name, if it is given.
    pub(crate) fn sandboxes(
        &self,
        tenant: &str,
        name: Option<&str>,
        after: (i64, &str),
        limit: usize,
    ) -> rusqlite::Result<Vec<SandboxRow>> {
        let sql = format!(
            "SELECT {COLUMNS} FROM sandbox WHERE tenant = ?1 AND (?2 IS NULL OR name = ?2) AND (created_at, id) > (?3, ?4)
             AND (expires_at IS NULL OR expires_at > ?5) ORDER BY created_at, id LIMIT ?6"
        );
        self.read(|connection| {
            let limit = i64::try_from(limit).unwrap_or(i64::MAX);
            let values = params![tenant, name, after.0, after.1, now(), limit];
            connection.prepare_cached(&sql)?.query_map(values, row)?.collect()
        })
    }

    /// Returns how many sandboxes a tenant has.
    pub(crate) fn count_sandboxes(&self, tenant: &str) -> rusqlite::Result<u64> {
        let sql = "SELECT count(*) FROM sandbox WHERE tenant = ?1";
        let count: i64 = self.read(|connection| connection.prepare_cached(sql)?.query_row([tenant], |row| row.get(0)))?;
        Ok(u64::try_from(count).unwrap_or(0))
    }

    /// Returns the number of sandboxes of all tenants.
    pub(crate) fn count_all_sandboxes(&self) -> rusqlite::Result<u64> {
        let sql = "SELECT count(*) FROM sandbox";
        let count: i64 = self.read(|connection| connection.prepare_cached(sql)?.query_row([], |row| row.get(0)))?;
        Ok(u64::try_from(count).unwrap_or(0))
    }

    /// Sets name and end of a sandbox; `None` leaves one as it is.
    pub(crate) fn change_sandbox(
        &self,
        tenant: &str,
        id: &str,
        name: Option<Option<&str>>,
        expires_at: Option<Option<i64>>,
    ) -> rusqlite::Result<Result<(), Taken>> {
        self.change(|transaction| {
            if let Some(Some(name)) = name
                && is_taken(transaction, tenant, name, id)?
            {
                return Ok(Err(Taken::Name));
            }
            let sql =
                "UPDATE sandbox SET name = iif(?3, ?4, name), expires_at = iif(?5, ?6, expires_at) WHERE tenant = ?1 AND id = ?2";
            let values = params![tenant, id, name.is_some(), name.flatten(), expires_at.is_some(), expires_at.flatten()];
            let changed = transaction.prepare_cached(sql)?.execute(values)?;
            Ok(if changed == 0 { Err(Taken::Missing) } else { Ok(()) })
        })
    }

    /// Notes that a sandbox was used.
    pub(crate) fn use_sandbox(&self, id: &str) -> rusqlite::Result<()> {
        let sql = "UPDATE sandbox SET used_at = ?2 WHERE id = ?1";
        self.change(|transaction| transaction.prepare_cached(sql)?.execute(params![id, now()])).map(drop)
    }

    /// Removes a sandbox's row, unless another sandbox lies over it; returns the number of those, and whether there was such a row.
    pub(crate) fn remove_sandbox(&self, tenant: &str, id: &str) -> rusqlite::Result<(u64, bool)> {
        self.change(|transaction| {
            let above = "SELECT count(*) FROM sandbox WHERE tenant = ?1 AND options ->> 'base' = ?2 AND options <> '{}'";
            let above: i64 = transaction.prepare_cached(above)?.query_row([tenant, id], |row| row.get(0))?;
            if above > 0 {
                return Ok((u64::try_from(above).unwrap_or(1), true));
            }
            let sql = "DELETE FROM sandbox WHERE tenant = ?1 AND id = ?2";
            Ok((0, transaction.prepare_cached(sql)?.execute([tenant, id])? > 0))
        })
    }

    /// Sandboxes whose time is over and that no other lies over.
    pub(crate) fn expired_sandboxes(&self) -> rusqlite::Result<Vec<SandboxRow>> {
        let sql = format!(
            "SELECT {COLUMNS} FROM sandbox AS old WHERE expires_at <= ?1
             AND NOT EXISTS (SELECT 1 FROM sandbox WHERE tenant = old.tenant AND options ->> 'base' = old.id AND options <> '{{}}') LIMIT 1000"
        );
        self.read(|connection| connection.prepare_cached(&sql)?.query_map([now()], row)?.collect())
    }

    /// Returns the directories of all tenants, by name.
    pub(crate) fn tenant_names(&self) -> rusqlite::Result<Vec<String>> {
        self.read(|connection| connection.prepare_cached("SELECT name FROM tenant")?.query_map([], |row| row.get(0))?.collect())
    }

    /// Returns whether there is a row of this id, expired or not.
    pub(crate) fn knows_sandbox(&self, id: &str) -> rusqlite::Result<bool> {
        self.read(|connection| connection.prepare_cached("SELECT 1 FROM sandbox WHERE id = ?1")?.exists([id]))
    }
}

#[cfg(test)]
mod tests {
    use rusqlite::Connection;

    use super::*;

    #[test]
    fn a_sandbox_that_lies_over_a_removed_one_is_not_added() {
        let catalog = Catalog::new(Connection::open_in_memory().unwrap()).unwrap();
        let row = |id: &str, base: Option<&str>| SandboxRow {
            id: id.to_owned(),
            tenant: "a".to_owned(),
            name: None,
            preset: "normal".to_owned(),
            base: base.map(str::to_owned),
            created_at: 0,
            used_at: 0,
            expires_at: None,
        };
        assert!(catalog.add_sandbox(&row("below", None), 9).unwrap().is_ok());
        assert!(catalog.add_sandbox(&row("above", Some("below")), 9).unwrap().is_ok());
        assert_eq!(catalog.remove_sandbox("a", "below").unwrap(), (1, true));
        assert!(matches!(catalog.add_sandbox(&row("other", Some("gone")), 9).unwrap(), Err(Taken::Missing)));
        assert_eq!(catalog.count_sandboxes("a").unwrap(), 2);
    }
}
