//! Tenants, and the limits of their own that replace settings of the server (T-NET-08).
//!
//! Knows nothing of these settings: a limit that is missing here is the server's.

use rusqlite::{Connection, OptionalExtension as _, params};
use serde::{Deserialize, Serialize};

use super::{Catalog, fault, new_id};
use crate::serve::clock::{now, rfc3339};

/// The names of limits, as in `GET /v1/usage`.
const NAMES: &str = "concurrent, queue, requests_per_second, sandboxes, keys, bytes or fuel_per_hour";
/// Longest name of a tenant.
const LONGEST_NAME: usize = 64;

/// Limits of a tenant's own. A missing one is that of the server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Quota {
    /// Runs at a time, including those that sleep.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub concurrent: Option<u64>,
    /// Requests that may wait for their turn.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queue: Option<u64>,
    /// Requests in a second.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub requests_per_second: Option<u64>,
    /// Sandboxes, and sessions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sandboxes: Option<u64>,
    /// Keys, with those that were revoked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub keys: Option<u64>,
    /// Bytes of sandboxes, files and artifacts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
    /// Fuel in an hour.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fuel_per_hour: Option<u64>,
}

impl Quota {
    /// Sets a limit by its name; `None` is that of the server again.
    ///
    /// # Errors
    ///
    /// Returns a sentence if there is no such limit, or if the value is too small or too large for it.
    pub fn set(&mut self, name: &str, limit: Option<u64>) -> Result<(), String> {
        let (place, least) = match name {
            "concurrent" => (&mut self.concurrent, 1),
            "queue" => (&mut self.queue, 1),
            "requests_per_second" => (&mut self.requests_per_second, 1),
            "sandboxes" => (&mut self.sandboxes, 0),
            "keys" => (&mut self.keys, 0),
            "bytes" => (&mut self.bytes, 0),
            "fuel_per_hour" => (&mut self.fuel_per_hour, 0),
            _ => return Err(format!("unknown limit `{}`: expected {NAMES}", runtime::actions::quoted(name))),
        };
        let most = i64::MAX.unsigned_abs();
        if limit.is_some_and(|limit| !(least..=most).contains(&limit)) {
            return Err(format!("invalid `{name}`: expected {least} to {most}"));
        }
        *place = limit;
        Ok(())
    }
}

/// A tenant in a list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct TenantRow {
    /// Its name.
    pub name: String,
    /// When it was first used; `None` if it only has keys.
    pub created_at: Option<String>,
    /// Limits of its own.
    pub limits: Quota,
}

/// Returns whether a text can be the name of a tenant.
pub(crate) fn is_tenant(name: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    (1..=LONGEST_NAME).contains(&name.len()) && name.bytes().all(is_plain)
}

// Limits that a newer version of the program has stored are ignored.
fn parsed(text: Option<String>) -> rusqlite::Result<Quota> {
    text.map_or(Ok(Quota::default()), |text| serde_json::from_str(&text).map_err(|error| fault(error.to_string())))
}

fn stored(connection: &Connection, tenant: &str) -> rusqlite::Result<Quota> {
    let sql = "SELECT quota FROM tenant WHERE name = ?1";
    let found: Option<Option<String>> = connection.prepare_cached(sql)?.query_row([tenant], |row| row.get(0)).optional()?;
    parsed(found.flatten())
}

impl Catalog {
    /// Returns every tenant that was used or has a key, by name.
    pub(crate) fn tenants(&self) -> rusqlite::Result<Vec<TenantRow>> {
        let sql = "SELECT name, created_at, quota FROM tenant
                   UNION ALL SELECT DISTINCT tenant, NULL, NULL FROM api_key WHERE tenant NOT IN (SELECT name FROM tenant)
                   ORDER BY 1";
        self.read(|connection| {
            let mut statement = connection.prepare_cached(sql)?;
            let rows = statement.query_map([], |row| {
                let created_at = row.get::<_, Option<i64>>(1)?.map(rfc3339);
                Ok(TenantRow { name: row.get(0)?, created_at, limits: parsed(row.get(2)?)? })
            })?;
            rows.collect()
        })
    }

    /// Returns the limits of a tenant's own.
    pub(crate) fn quota(&self, tenant: &str) -> rusqlite::Result<Quota> {
        self.read(|connection| stored(connection, tenant))
    }

    /// Changes limits of a tenant: all of them, or none if one is invalid. The tenant is added if it is new.
    pub(crate) fn change_quota(
        &self,
        tenant: &str,
        changes: &[(String, Option<u64>)],
    ) -> rusqlite::Result<Result<Quota, String>> {
        self.change(|transaction| {
            let mut quota = stored(transaction, tenant)?;
            for (name, limit) in changes {
                if let Err(reason) = quota.set(name, *limit) {
                    return Ok(Err(reason));
                }
            }
            let text = serde_json::to_string(&quota).map_err(|error| fault(error.to_string()))?;
            let text = (quota != Quota::default()).then_some(text);
            let sql = "INSERT INTO tenant (name, directory, quota, created_at) VALUES (?1, ?2, ?3, ?4)
                       ON CONFLICT (name) DO UPDATE SET quota = excluded.quota";
            transaction.prepare_cached(sql)?.execute(params![tenant, new_id(), text, now()])?;
            Ok(Ok(quota))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::{NewKey, Role};
    use super::*;

    fn changes(all: &[(&str, Option<u64>)]) -> Vec<(String, Option<u64>)> {
        all.iter().map(|(name, limit)| ((*name).to_owned(), *limit)).collect()
    }

    #[test]
    fn limits_of_a_tenant_are_changed_together_and_stay() {
        let directory = tempfile::tempdir().unwrap();
        let catalog = Catalog::open(directory.path()).unwrap();
        let set = |all: &[(&str, Option<u64>)]| catalog.change_quota("a", &changes(all)).unwrap();
        assert_eq!(catalog.quota("a").unwrap(), Quota::default());
        let wide = Quota { bytes: Some(5), queue: Some(1), ..Quota::default() };
        assert_eq!(set(&[("bytes", Some(5)), ("queue", Some(1))]), Ok(wide));
        for (name, limit) in [("queue", 0), ("requests_per_second", 0), ("concurrent", 0), ("bytes", u64::MAX), ("loops", 1)] {
            assert!(set(&[("bytes", Some(9)), (name, Some(limit))]).is_err(), "{name}");
        }
        assert_eq!(Catalog::open(directory.path()).unwrap().quota("a").unwrap(), wide);
        assert_eq!(set(&[("bytes", Some(0)), ("queue", None)]), Ok(Quota { bytes: Some(0), ..Quota::default() }));
        assert_eq!(set(&[("bytes", None)]), Ok(Quota::default()));
        assert_eq!(catalog.quota("b").unwrap(), Quota::default());
        // The directory of a tenant stays the same.
        let before = catalog.tenant_directory("a").unwrap();
        set(&[("keys", Some(7))]).unwrap();
        assert_eq!(catalog.tenant_directory("a").unwrap(), before);
    }

    #[test]
    fn tenants_with_keys_are_listed_before_their_first_request() {
        let catalog = Catalog::new(Connection::open_in_memory().unwrap()).unwrap();
        for tenant in ["new", "used", "new"] {
            let (tenant, name) = (tenant.to_owned(), String::new());
            catalog
                .create_key(&NewKey { tenant, role: Role::Consumer, view: None, name, lifetime: None, is_service: false }, None)
                .unwrap();
        }
        catalog.tenant_directory("used").unwrap();
        let listed = catalog.tenants().unwrap();
        let shown: Vec<(&str, bool)> = listed.iter().map(|row| (row.name.as_str(), row.created_at.is_some())).collect();
        assert_eq!(shown, [("new", false), ("used", true)]);
    }

    #[test]
    fn a_name_of_a_tenant_is_plain() {
        assert!(is_tenant("acme-1.eu_x") && is_tenant(&"a".repeat(64)));
        for name in ["", "a b", "a/b", "\u{fc}", &"a".repeat(65)] {
            assert!(!is_tenant(name), "{name}");
        }
    }
}
