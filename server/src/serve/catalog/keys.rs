//! API keys: shown once, kept as a digest, bound to a tenant, a role and perhaps a view (T-NET-06).

use std::time::Duration;

use rusqlite::{OptionalExtension as _, Row, params};
use serde::Serialize;
use sha2::{Digest as _, Sha256};

use super::{Catalog, new_id};
use crate::http::random_hex;
use crate::serve::clock::{now, rfc3339};

/// Characters of a key that are shown in lists.
const PREFIX: usize = 7;
/// How often the moment of the last use is written: not at every request.
const USED_EVERY: i64 = 60_000;

/// The rights of a key. Each role includes the previous ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Run skills; use sandboxes.
    Consumer,
    /// Also change the tenant's skills.
    Publisher,
    /// Also manage the tenant's keys and look at its audit log.
    Admin,
}

impl Role {
    /// Its name.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Consumer => "consumer",
            Self::Publisher => "publisher",
            Self::Admin => "admin",
        }
    }
}

impl std::str::FromStr for Role {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let roles = [Self::Consumer, Self::Publisher, Self::Admin];
        roles
            .into_iter()
            .find(|role| role.as_str() == name)
            .ok_or_else(|| format!("unknown role `{}`: expected admin, publisher or consumer", runtime::actions::quoted(name)))
    }
}

/// A key that was shown and found.
#[derive(Clone, Debug)]
pub(crate) struct Key {
    pub(crate) id: String,
    pub(crate) tenant: String,
    pub(crate) role: Role,
    /// The principal and its labels that the key's owner sees sandboxes as, `NAME` or `NAME:LABEL,LABEL`.
    pub(crate) view: Option<String>,
    /// Whether it may act for other tenants.
    pub(crate) is_service: bool,
    /// Whether its last use was not noted for a while.
    pub(crate) is_unnoted: bool,
}

/// A key to be created.
#[derive(Clone, Debug)]
pub struct NewKey {
    /// The tenant.
    pub tenant: String,
    /// The role.
    pub role: Role,
    /// The view, `NAME` or `NAME:LABEL,LABEL`.
    pub view: Option<String>,
    /// Its purpose.
    pub name: String,
    /// How long it is valid; `None` is forever.
    pub lifetime: Option<Duration>,
    /// Whether it may act for other tenants, which requests name with `X-Tenant-ID`.
    pub is_service: bool,
}

impl NewKey {
    // When it expires, in milliseconds since 1970.
    fn expires_at(&self, made_at: i64) -> Option<i64> {
        self.lifetime.map(|lifetime| made_at.saturating_add(i64::try_from(lifetime.as_millis()).unwrap_or(i64::MAX)))
    }
}

/// A key in a list: everything but the key.
#[derive(Clone, Debug, Serialize)]
pub struct KeyRow {
    /// Its id, which revokes it.
    pub id: String,
    /// The first characters of the key.
    pub prefix: String,
    /// The tenant.
    pub tenant: String,
    /// The role.
    pub role: String,
    /// The view, if it has one.
    pub view: Option<String>,
    /// Its purpose.
    pub name: String,
    /// Whether it may act for other tenants.
    pub service: bool,
    /// When it was made.
    pub created_at: String,
    /// When it expires.
    pub expires_at: Option<String>,
    /// When it was revoked.
    pub revoked_at: Option<String>,
    /// When it was used last, within a minute.
    pub last_used_at: Option<String>,
}

fn digest(text: &str) -> Vec<u8> {
    Sha256::digest(text.as_bytes()).to_vec()
}

fn row(row: &Row<'_>) -> rusqlite::Result<KeyRow> {
    let moment = |name: &str| row.get::<_, Option<i64>>(name).map(|at| at.map(rfc3339));
    Ok(KeyRow {
        id: row.get("id")?,
        prefix: row.get("prefix")?,
        tenant: row.get("tenant")?,
        role: row.get("role")?,
        view: row.get("view")?,
        name: row.get("name")?,
        service: row.get("service")?,
        created_at: rfc3339(row.get("created_at")?),
        expires_at: moment("expires_at")?,
        revoked_at: moment("revoked_at")?,
        last_used_at: moment("last_used_at")?,
    })
}

impl Catalog {
    /// Makes a key, or keeps the one that is given, and returns its text and id. The text is not kept.
    pub(crate) fn create_key(&self, new: &NewKey, given: Option<&str>) -> rusqlite::Result<(String, String)> {
        let text = match given {
            Some(given) => given.to_owned(),
            None => format!("sk-{}", random_hex::<32>().map_err(|error| super::fault(error.to_string()))?),
        };
        let id = new_id();
        let sql = "INSERT INTO api_key (id, hash, prefix, tenant, role, view, name, created_at, expires_at, service)
                   VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)";
        let prefix: String = text.chars().take(PREFIX).collect();
        self.change(|transaction| {
            let (role, made_at) = (new.role.as_str(), now());
            let expires_at = new.expires_at(made_at);
            let values =
                params![id, digest(&text), prefix, new.tenant, role, new.view, new.name, made_at, expires_at, new.is_service];
            transaction.execute(sql, values)
        })?;
        Ok((text, id))
    }

    /// Returns the key of a text, if it is valid now. The look-up is by digest, so its duration reveals nothing about the text.
    pub(crate) fn find_key(&self, text: &str) -> rusqlite::Result<Option<Key>> {
        let at = now();
        let sql = "SELECT id, tenant, role, view, coalesce(last_used_at, 0), service FROM api_key
                   WHERE hash = ?1 AND revoked_at IS NULL AND (expires_at IS NULL OR expires_at > ?2)";
        self.read(|connection| {
            let mut statement = connection.prepare_cached(sql)?;
            let row = statement.query_row(params![digest(text), at], |row| {
                let role: String = row.get(2)?;
                let role = role.parse().map_err(super::fault)?;
                let is_unnoted = at - row.get::<_, i64>(4)? > USED_EVERY;
                let (id, tenant, view, is_service) = (row.get(0)?, row.get(1)?, row.get(3)?, row.get(5)?);
                Ok(Key { id, tenant, role, view, is_service, is_unnoted })
            });
            row.optional()
        })
    }

    /// Notes that a key is used now.
    pub(crate) fn use_key(&self, id: &str) -> rusqlite::Result<()> {
        let sql = "UPDATE api_key SET last_used_at = ?2 WHERE id = ?1";
        self.change(|transaction| transaction.execute(sql, params![id, now()])).map(drop)
    }

    /// Returns whether there is a key of this text, valid or not.
    pub(crate) fn knows_key(&self, text: &str) -> rusqlite::Result<bool> {
        self.read(|connection| connection.prepare_cached("SELECT 1 FROM api_key WHERE hash = ?1")?.exists([digest(text)]))
    }

    /// Returns whether a key that was found before counts now.
    pub(crate) fn is_valid_key(&self, id: &str) -> rusqlite::Result<bool> {
        let sql = "SELECT 1 FROM api_key WHERE id = ?1 AND revoked_at IS NULL AND (expires_at IS NULL OR expires_at > ?2)";
        self.read(|connection| connection.prepare_cached(sql)?.exists(params![id, now()]))
    }

    /// Returns the keys of a tenant, or of all, oldest first.
    pub(crate) fn list_keys(&self, tenant: Option<&str>) -> rusqlite::Result<Vec<KeyRow>> {
        self.read(|connection| {
            let sql = "SELECT * FROM api_key WHERE ?1 IS NULL OR tenant = ?1 ORDER BY created_at, id";
            connection.prepare_cached(sql)?.query_map([tenant], row)?.collect()
        })
    }

    /// Returns how many keys a tenant has, with those that were revoked.
    pub(crate) fn count_keys(&self, tenant: &str) -> rusqlite::Result<u64> {
        let sql = "SELECT count(*) FROM api_key WHERE tenant = ?1";
        let count: i64 = self.read(|connection| connection.prepare_cached(sql)?.query_row([tenant], |row| row.get(0)))?;
        Ok(u64::try_from(count).unwrap_or(0))
    }

    /// Revokes a key at once; `false` if the tenant has no such key.
    pub(crate) fn revoke_key(&self, tenant: Option<&str>, id: &str) -> rusqlite::Result<bool> {
        let sql = "UPDATE api_key SET revoked_at = coalesce(revoked_at, ?3) WHERE id = ?1 AND (?2 IS NULL OR tenant = ?2)";
        self.change(|transaction| Ok(transaction.execute(sql, params![id, tenant, now()])? > 0))
    }
}
