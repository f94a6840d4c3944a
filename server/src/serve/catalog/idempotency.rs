//! Answers to requests that have an `Idempotency-Key`, kept for a day.

use rusqlite::{OptionalExtension as _, params};

use super::Catalog;
use crate::serve::clock::now;

/// How long a response is kept, in milliseconds.
const KEPT: i64 = 24 * 3_600_000;
/// Responses of one tenant that are kept.
const MOST: i64 = 100_000;

/// An answer that was kept.
#[derive(Debug)]
pub(crate) struct KeptAnswer {
    pub(crate) status: u16,
    /// Names and values as JSON.
    pub(crate) headers: String,
    pub(crate) body: Vec<u8>,
}

/// The state of an idempotency key.
#[derive(Debug)]
pub(crate) enum Begun {
    /// Nothing: the request is now under way.
    New,
    /// The same request is under way.
    UnderWay,
    /// The same request already has a response.
    Answered(KeptAnswer),
    /// Another request had this key.
    Mismatch,
}

/// Fingerprint, status, headers and body of a stored answer.
type Row = (Vec<u8>, Option<u16>, Option<String>, Option<Vec<u8>>);

impl Catalog {
    /// Begins a request. One that was under way before `started`, when the server was another process, counts as never begun.
    pub(crate) fn begin_request(&self, tenant: &str, key: &str, print: &[u8], started: i64) -> rusqlite::Result<Begun> {
        self.change(|transaction| {
            let at = now();
            let old = "DELETE FROM idempotency WHERE tenant = ?1 AND key = ?2
                       AND (created_at < ?3 OR (status IS NULL AND created_at < ?4))";
            transaction.prepare_cached(old)?.execute(params![tenant, key, at - KEPT, started])?;
            let known = "SELECT fingerprint, status, headers, body FROM idempotency WHERE tenant = ?1 AND key = ?2";
            let known: Option<Row> = transaction
                .prepare_cached(known)?
                .query_row([tenant, key], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?)))
                .optional()?;
            Ok(match known {
                Some((other, ..)) if other != print => Begun::Mismatch,
                Some((_, None, ..)) => Begun::UnderWay,
                Some((_, Some(status), headers, body)) => {
                    let (headers, body) = (headers.unwrap_or_default(), body.unwrap_or_default());
                    Begun::Answered(KeptAnswer { status, headers, body })
                }
                None => {
                    let sql = "INSERT INTO idempotency (tenant, key, fingerprint, created_at) VALUES (?1, ?2, ?3, ?4)";
                    transaction.prepare_cached(sql)?.execute(params![tenant, key, print, at])?;
                    Begun::New
                }
            })
        })
    }

    /// Stores a response; without one the request counts as never begun.
    pub(crate) fn end_request(&self, tenant: &str, key: &str, answer: Option<&KeptAnswer>) -> rusqlite::Result<()> {
        self.change(|transaction| match answer {
            Some(KeptAnswer { status, headers, body }) => {
                let sql = "UPDATE idempotency SET status = ?3, headers = ?4, body = ?5 WHERE tenant = ?1 AND key = ?2";
                transaction.prepare_cached(sql)?.execute(params![tenant, key, status, headers, body])
            }
            None => {
                let sql = "DELETE FROM idempotency WHERE tenant = ?1 AND key = ?2 AND status IS NULL";
                transaction.prepare_cached(sql)?.execute([tenant, key])
            }
        })
        .map(drop)
    }

    /// Removes old responses, and the oldest of a tenant that has too many.
    pub(crate) fn forget_answers(&self) -> rusqlite::Result<()> {
        self.forget_answers_beyond(MOST)
    }

    fn forget_answers_beyond(&self, most: i64) -> rusqlite::Result<()> {
        let oldest = now() - KEPT;
        self.change(|transaction| transaction.execute("DELETE FROM idempotency WHERE created_at < ?1", [oldest]))?;
        let sql = "SELECT tenant FROM idempotency GROUP BY tenant HAVING count(*) > ?1";
        let crowded: Vec<String> =
            self.read(|connection| connection.prepare_cached(sql)?.query_map([most], |row| row.get(0))?.collect())?;
        let sql = "DELETE FROM idempotency WHERE tenant = ?1 AND status IS NOT NULL AND created_at <=
                   (SELECT created_at FROM idempotency WHERE tenant = ?1 ORDER BY created_at DESC LIMIT 1 OFFSET ?2)";
        for tenant in crowded {
            self.change(|transaction| transaction.prepare_cached(sql)?.execute(params![tenant, most]))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use rusqlite::Connection;

    use super::*;

    #[test]
    fn a_tenant_keeps_its_newest_answers_and_what_is_under_way() {
        let catalog = Catalog::new(Connection::open_in_memory().unwrap()).unwrap();
        let answer = KeptAnswer { status: 204, headers: "[]".to_owned(), body: Vec::new() };
        for (at, key) in [(1, "under way"), (2, "old"), (3, "newer"), (4, "newest")] {
            catalog.begin_request("a", key, b"print", 0).unwrap();
            if key != "under way" {
                catalog.end_request("a", key, Some(&answer)).unwrap();
            }
            let moved = "UPDATE idempotency SET created_at = created_at + ?1 WHERE key = ?2";
            catalog.change(|to| to.execute(moved, params![at * 1000, key])).unwrap();
        }
        catalog.begin_request("b", "k", b"print", 0).unwrap();
        let keys = || -> Vec<String> {
            let sql = "SELECT key FROM idempotency ORDER BY tenant, created_at";
            catalog.read(|from| from.prepare(sql)?.query_map([], |row| row.get(0))?.collect()).unwrap()
        };
        catalog.forget_answers_beyond(4).unwrap();
        assert_eq!(keys().len(), 5);
        catalog.forget_answers_beyond(2).unwrap();
        assert_eq!(keys(), ["under way", "newer", "newest", "k"]);
    }
}
