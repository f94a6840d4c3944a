//! Sessions: names that a tenant's runs share files under, and the policy of its scanner.

use rusqlite::{OptionalExtension as _, params};

use super::files::insert;
use super::{Catalog, FileRow};
use crate::serve::clock::now;

impl Catalog {
    /// Notes that a session is used, created if it is new.
    pub(crate) fn use_session(&self, tenant: &str, name: &str) -> rusqlite::Result<()> {
        let sql = "INSERT INTO session (tenant, name, created_at, used_at) VALUES (?1, ?2, ?3, ?3)
                   ON CONFLICT (tenant, name) DO UPDATE SET used_at = excluded.used_at";
        self.change(|transaction| transaction.prepare_cached(sql)?.execute(params![tenant, name, now()]))?;
        Ok(())
    }

    /// Returns whether a tenant has a session.
    pub(crate) fn has_session(&self, tenant: &str, name: &str) -> rusqlite::Result<bool> {
        let sql = "SELECT 1 FROM session WHERE tenant = ?1 AND name = ?2";
        self.read(|connection| Ok(connection.prepare_cached(sql)?.query_row([tenant, name], |_| Ok(())).optional()?.is_some()))
    }

    /// Sessions that were not used since a moment, with their tenants.
    pub(crate) fn sessions_unused_since(&self, at: i64) -> rusqlite::Result<Vec<(String, String)>> {
        let sql = "SELECT tenant, name FROM session WHERE used_at < ?1";
        self.read(|connection| connection.prepare_cached(sql)?.query_map([at], |row| Ok((row.get(0)?, row.get(1)?)))?.collect())
    }

    /// Removes a session that has no files and was not used since a moment.
    pub(crate) fn forget_session(&self, tenant: &str, name: &str, at: i64) -> rusqlite::Result<()> {
        let sql = "DELETE FROM session WHERE tenant = ?1 AND name = ?2 AND used_at < ?3
                   AND NOT EXISTS (SELECT 1 FROM file WHERE tenant = ?1 AND session = ?2)";
        self.change(|transaction| transaction.prepare_cached(sql)?.execute(params![tenant, name, at])).map(drop)
    }

    /// Returns how many sessions a tenant has.
    pub(crate) fn count_sessions(&self, tenant: &str) -> rusqlite::Result<i64> {
        let sql = "SELECT count(*) FROM session WHERE tenant = ?1";
        self.read(|connection| connection.prepare_cached(sql)?.query_row([tenant], |row| row.get(0)))
    }

    /// Removes a session with the rows of its files; the ids of the files, whose bytes can go, or `None` if there is no such session.
    pub(crate) fn remove_session(&self, tenant: &str, name: &str) -> rusqlite::Result<Option<Vec<String>>> {
        self.change(|transaction| {
            let removed = transaction.execute("DELETE FROM session WHERE tenant = ?1 AND name = ?2", [tenant, name])?;
            if removed == 0 {
                return Ok(None);
            }
            let sql = "DELETE FROM file WHERE tenant = ?1 AND session = ?2 RETURNING id";
            let ids = transaction.prepare_cached(sql)?.query_map([tenant, name], |row| row.get(0))?.collect::<Result<_, _>>()?;
            Ok(Some(ids))
        })
    }

    /// Makes files those of a session in place of others of the same names; the ids of these, whose bytes can go.
    pub(crate) fn keep_in_session(&self, tenant: &str, name: &str, rows: &[FileRow]) -> rusqlite::Result<Vec<String>> {
        let sql = "DELETE FROM file WHERE tenant = ?1 AND session = ?2 AND name = ?3 RETURNING id, version, created_at";
        self.change(|transaction| {
            let mut replaced = Vec::new();
            for row in rows {
                let old: Vec<(String, i64, i64)> = transaction
                    .prepare_cached(sql)?
                    .query_map([tenant, name, &row.name], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?
                    .collect::<Result<_, _>>()?;
                let version = old.iter().map(|(_, version, _)| *version).max().unwrap_or(0) + 1;
                let created_at = old.iter().map(|(.., at)| *at).min().unwrap_or(row.created_at);
                insert(transaction, &FileRow { session: Some(name.to_owned()), version, created_at, ..row.clone() })?;
                replaced.extend(old.into_iter().map(|(id, ..)| id));
            }
            Ok(replaced)
        })
    }

    /// Returns the mode that a tenant's admin chose for the scan of new skills: `auto` or `none`.
    pub(crate) fn scan_policy(&self, tenant: &str) -> rusqlite::Result<String> {
        let sql = "SELECT value FROM setting WHERE name = 'scan:' || ?1";
        let known: Option<Vec<u8>> =
            self.read(|connection| connection.prepare_cached(sql)?.query_row([tenant], |row| row.get(0)).optional())?;
        Ok(known.and_then(|value| String::from_utf8(value).ok()).unwrap_or_else(|| "none".to_owned()))
    }

    /// Returns the patterns that a tenant's admins have added to the scan, as they were stored.
    pub(crate) fn scan_patterns(&self, tenant: &str) -> rusqlite::Result<Option<String>> {
        let sql = "SELECT CAST(value AS TEXT) FROM setting WHERE name = 'patterns:' || ?1";
        self.read(|connection| connection.prepare_cached(sql)?.query_row([tenant], |row| row.get(0)).optional())
    }

    /// Stores them.
    pub(crate) fn set_scan_patterns(&self, tenant: &str, patterns: &str) -> rusqlite::Result<()> {
        let sql = "INSERT INTO setting (name, value) VALUES ('patterns:' || ?1, ?2)
                   ON CONFLICT (name) DO UPDATE SET value = excluded.value";
        self.change(|transaction| transaction.execute(sql, params![tenant, patterns.as_bytes()])).map(drop)
    }

    /// Changes it.
    pub(crate) fn set_scan_policy(&self, tenant: &str, policy: &str) -> rusqlite::Result<()> {
        let sql = "INSERT INTO setting (name, value) VALUES ('scan:' || ?1, ?2)
                   ON CONFLICT (name) DO UPDATE SET value = excluded.value";
        self.change(|transaction| transaction.execute(sql, params![tenant, policy.as_bytes()]))?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use rusqlite::Connection;

    use super::*;

    #[test]
    fn a_file_of_a_session_replaces_the_one_of_its_name() {
        let catalog = Catalog::new(Connection::open_in_memory().unwrap()).unwrap();
        let row = |id: &str, name: &str| FileRow::new(id.to_owned(), "a", name, "text/plain", 1);
        catalog.use_session("a", "s").unwrap();
        assert!(catalog.keep_in_session("a", "s", &[row("1", "x"), row("2", "y")]).unwrap().is_empty());
        assert_eq!(catalog.keep_in_session("a", "s", &[row("3", "x")]).unwrap(), ["1"]);
        let names = |session: &str| -> Vec<(String, i64)> {
            catalog.session_files("a", session).unwrap().into_iter().map(|row| (row.id, row.version)).collect()
        };
        assert_eq!(names("s"), [("3".to_owned(), 2), ("2".to_owned(), 1)]);
        assert!(catalog.remove_session("b", "s").unwrap().is_none() && !catalog.has_session("b", "s").unwrap());
        assert_eq!(catalog.remove_session("a", "s").unwrap().map(|ids| ids.len()), Some(2));
        assert!(names("s").is_empty());
    }

    #[test]
    fn a_session_is_forgotten_if_it_has_no_files_and_was_not_used() {
        let catalog = Catalog::new(Connection::open_in_memory().unwrap()).unwrap();
        for name in ["empty", "full"] {
            catalog.use_session("a", name).unwrap();
        }
        catalog.keep_in_session("a", "full", &[FileRow::new("1".to_owned(), "a", "x", "text/plain", 1)]).unwrap();
        let forget = |tenant: &str, at: i64| {
            ["empty", "full"].map(|name| {
                catalog.forget_session(tenant, name, at).unwrap();
                catalog.has_session("a", name).unwrap()
            })
        };
        assert_eq!(forget("a", 0), [true, true], "they were used since");
        assert_eq!(forget("b", i64::MAX), [true, true]);
        assert_eq!(forget("a", i64::MAX), [false, true]);
    }

    #[test]
    fn each_tenant_has_its_own_policy() {
        let catalog = Catalog::new(Connection::open_in_memory().unwrap()).unwrap();
        catalog.set_scan_policy("a", "auto").unwrap();
        assert_eq!((catalog.scan_policy("a").unwrap().as_str(), catalog.scan_policy("b").unwrap().as_str()), ("auto", "none"));
    }
}
