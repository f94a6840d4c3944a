//! The tables of the catalog.

use rusqlite::{Connection, TransactionBehavior};

/// The version of the tables; a file with a newer one is refused.
const VERSION: i64 = 1;

/// Creates missing tables and indexes.
pub(super) fn create(connection: &mut Connection) -> rusqlite::Result<()> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let version: i64 = transaction.query_row("PRAGMA user_version", [], |row| row.get(0))?;
    if version > VERSION {
        return Err(super::fault(format!("the catalog has format {version}, this program knows {VERSION}")));
    }
    transaction.execute_batch(TABLES)?;
    // Older programs, to which every key is one of its tenant alone, can still use the tables.
    let service = "SELECT 1 FROM pragma_table_info('api_key') WHERE name = 'service'";
    if !transaction.prepare(service)?.exists([])? {
        transaction.execute_batch("ALTER TABLE api_key ADD COLUMN service INTEGER NOT NULL DEFAULT 0")?;
    }
    transaction.pragma_update(None, "user_version", VERSION)?;
    transaction.commit()
}

const TABLES: &str = "
CREATE TABLE IF NOT EXISTS setting (name TEXT PRIMARY KEY, value BLOB NOT NULL) STRICT;
CREATE TABLE IF NOT EXISTS tenant (
    name TEXT PRIMARY KEY, directory TEXT NOT NULL UNIQUE, quota TEXT, created_at INTEGER NOT NULL
) STRICT;
CREATE TABLE IF NOT EXISTS api_key (
    id TEXT PRIMARY KEY, hash BLOB NOT NULL UNIQUE, prefix TEXT NOT NULL, tenant TEXT NOT NULL, role TEXT NOT NULL, view TEXT,
    name TEXT NOT NULL, created_at INTEGER NOT NULL, expires_at INTEGER, revoked_at INTEGER, last_used_at INTEGER,
    service INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE TABLE IF NOT EXISTS audit (
    number INTEGER PRIMARY KEY AUTOINCREMENT, at INTEGER NOT NULL, tenant TEXT NOT NULL, key TEXT NOT NULL, method TEXT NOT NULL,
    path TEXT NOT NULL, status INTEGER NOT NULL, request TEXT NOT NULL
) STRICT;
CREATE INDEX IF NOT EXISTS audit_tenant ON audit (tenant, number);
CREATE TRIGGER IF NOT EXISTS audit_is_append_only BEFORE UPDATE ON audit BEGIN
    SELECT RAISE(ABORT, 'rows of the audit log cannot be changed');
END;
CREATE TABLE IF NOT EXISTS execution (
    id TEXT PRIMARY KEY, tenant TEXT NOT NULL, skill TEXT NOT NULL, version TEXT NOT NULL, status TEXT NOT NULL, session TEXT,
    input TEXT, output TEXT, logs TEXT NOT NULL DEFAULT '', error TEXT, files TEXT NOT NULL DEFAULT '[]', duration_ms INTEGER NOT NULL DEFAULT 0,
    created_at INTEGER NOT NULL, finished_at INTEGER
) STRICT;
CREATE INDEX IF NOT EXISTS execution_tenant ON execution (tenant, created_at);
CREATE INDEX IF NOT EXISTS execution_bytes ON execution
    (tenant, 512 + coalesce(length(CAST(input AS BLOB)), 0) + coalesce(length(CAST(output AS BLOB)), 0) + length(CAST(logs AS BLOB)));
CREATE INDEX IF NOT EXISTS execution_running ON execution (status) WHERE status = 'running';
CREATE TABLE IF NOT EXISTS file (
    id TEXT PRIMARY KEY, tenant TEXT NOT NULL, session TEXT, execution TEXT, name TEXT NOT NULL, content_type TEXT NOT NULL,
    size_bytes INTEGER NOT NULL, version INTEGER NOT NULL, parent TEXT, created_at INTEGER NOT NULL, updated_at INTEGER NOT NULL
) STRICT;
CREATE INDEX IF NOT EXISTS file_tenant ON file (tenant, created_at);
CREATE INDEX IF NOT EXISTS file_session ON file (tenant, session) WHERE session IS NOT NULL;
CREATE TABLE IF NOT EXISTS session (
    tenant TEXT NOT NULL, name TEXT NOT NULL, created_at INTEGER NOT NULL, used_at INTEGER NOT NULL, PRIMARY KEY (tenant, name)
) STRICT;
CREATE TABLE IF NOT EXISTS sandbox (
    id TEXT PRIMARY KEY, tenant TEXT NOT NULL, name TEXT, preset TEXT NOT NULL, options TEXT NOT NULL DEFAULT '{}',
    created_at INTEGER NOT NULL, used_at INTEGER NOT NULL, expires_at INTEGER
) STRICT;
CREATE INDEX IF NOT EXISTS sandbox_tenant ON sandbox (tenant, created_at, id);
CREATE UNIQUE INDEX IF NOT EXISTS sandbox_name ON sandbox (tenant, name) WHERE name IS NOT NULL;
CREATE INDEX IF NOT EXISTS sandbox_base ON sandbox (tenant, options ->> 'base') WHERE options <> '{}';
CREATE INDEX IF NOT EXISTS sandbox_expires ON sandbox (expires_at) WHERE expires_at IS NOT NULL;
CREATE TABLE IF NOT EXISTS idempotency (
    tenant TEXT NOT NULL, key TEXT NOT NULL, fingerprint BLOB NOT NULL, status INTEGER, headers TEXT, body BLOB, created_at INTEGER NOT NULL,
    PRIMARY KEY (tenant, key)
) STRICT;
CREATE INDEX IF NOT EXISTS idempotency_bytes ON idempotency (tenant, created_at, 512 + coalesce(length(body), 0));
CREATE TABLE IF NOT EXISTS spent (
    tenant TEXT NOT NULL, hour INTEGER NOT NULL, fuel INTEGER NOT NULL, runs INTEGER NOT NULL, PRIMARY KEY (tenant, hour)
) STRICT;
";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_catalog_from_before_service_keys_is_upgraded_and_no_key_of_it_becomes_one() {
        let mut connection = Connection::open_in_memory().unwrap();
        let old = TABLES.replace(",\n    service INTEGER NOT NULL DEFAULT 0", "");
        assert_ne!(old, TABLES);
        connection.execute_batch(&old).unwrap();
        let key = "INSERT INTO api_key (id, hash, prefix, tenant, role, name, created_at) VALUES ('k', x'00', 'sk-', 't', 'admin', '', 0)";
        connection.execute(key, []).unwrap();
        for _ in 0..2 {
            create(&mut connection).unwrap();
            let service: i64 = connection.query_row("SELECT service FROM api_key", [], |row| row.get(0)).unwrap();
            assert_eq!(service, 0);
        }
    }
}
