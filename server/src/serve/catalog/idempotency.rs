//! Answers to requests that have an `Idempotency-Key`, kept for a day.

use rusqlite::{OptionalExtension as _, params};

use super::Catalog;
use crate::serve::clock::now;

/// How long a response is kept, in milliseconds.
const KEPT: i64 = 24 * 3_600_000;

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

    /// Removes old responses.
    pub(crate) fn forget_answers(&self) -> rusqlite::Result<()> {
        let oldest = now() - KEPT;
        self.change(|transaction| transaction.execute("DELETE FROM idempotency WHERE created_at < ?1", [oldest])).map(drop)
    }
}
