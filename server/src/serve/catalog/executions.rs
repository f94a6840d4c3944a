//! Executions of skills: a row exists before the run begins, and is completed in one change.

use rusqlite::{OptionalExtension as _, Row, params};

use super::Catalog;
use crate::serve::clock::now;

/// An execution that is to begin.
#[derive(Clone, Debug)]
pub(crate) struct NewExecution {
    pub(crate) id: String,
    pub(crate) skill: String,
    pub(crate) version: String,
    pub(crate) session: Option<String>,
    /// The input as it was given, if one was.
    pub(crate) input: Option<String>,
}

/// How an execution ended.
#[derive(Clone, Debug, Default)]
pub(crate) struct Finished {
    /// `success`, `failed` or `timeout`.
    pub(crate) status: String,
    /// Compact JSON.
    pub(crate) output: Option<String>,
    pub(crate) logs: String,
    pub(crate) error: Option<String>,
    /// Names of the files that it left.
    pub(crate) files: Vec<String>,
    pub(crate) duration_ms: i64,
}

/// An execution.
#[derive(Clone, Debug)]
pub(crate) struct Execution {
    pub(crate) id: String,
    pub(crate) tenant: String,
    pub(crate) skill: String,
    pub(crate) version: String,
    pub(crate) input: Option<String>,
    /// How it ended; the status is `running` until then.
    pub(crate) ended: Finished,
    pub(crate) created_at: i64,
    pub(crate) finished_at: Option<i64>,
}

/// Which executions to list, newest first.
#[derive(Clone, Debug, Default)]
pub(crate) struct ExecutionFilter {
    pub(crate) skill: Option<String>,
    pub(crate) status: Option<String>,
    /// The moment and id of the last one that was seen.
    pub(crate) after: Option<(i64, String)>,
    pub(crate) limit: i64,
}

const COLUMNS: &str =
    "id, tenant, skill, version, status, input, output, logs, error, files, duration_ms, created_at, finished_at";
/// The same without the fields that can be long.
const SHORT: &str = "id, tenant, skill, version, status, NULL, NULL, '', error, files, duration_ms, created_at, finished_at";

fn execution(row: &Row<'_>) -> rusqlite::Result<Execution> {
    let files: String = row.get(9)?;
    Ok(Execution {
        id: row.get(0)?,
        tenant: row.get(1)?,
        skill: row.get(2)?,
        version: row.get(3)?,
        input: row.get(5)?,
        ended: Finished {
            status: row.get(4)?,
            output: row.get(6)?,
            logs: row.get(7)?,
            error: row.get(8)?,
            files: serde_json::from_str(&files).unwrap_or_default(),
            duration_ms: row.get(10)?,
        },
        created_at: row.get(11)?,
        finished_at: row.get(12)?,
    })
}

impl Catalog {
    /// Notes that an execution begins.
    pub(crate) fn begin_execution(&self, tenant: &str, new: &NewExecution) -> rusqlite::Result<()> {
        let sql = "INSERT INTO execution (id, tenant, skill, version, status, session, input, created_at)
                   VALUES (?1, ?2, ?3, ?4, 'running', ?5, ?6, ?7)";
        self.change(|transaction| {
            let values = params![new.id, tenant, new.skill, new.version, new.session, new.input, now()];
            transaction.prepare_cached(sql)?.execute(values)
        })?;
        Ok(())
    }

    /// Finishes an execution that is running; one that is not stays as it is.
    pub(crate) fn finish_execution(&self, tenant: &str, id: &str, ended: &Finished) -> rusqlite::Result<()> {
        let sql =
            "UPDATE execution SET status = ?3, output = ?4, logs = ?5, error = ?6, files = ?7, duration_ms = ?8, finished_at = ?9
                   WHERE id = ?1 AND tenant = ?2 AND status = 'running'";
        let files = serde_json::to_string(&ended.files).unwrap_or_else(|_| "[]".to_owned());
        self.change(|transaction| {
            let values =
                params![id, tenant, ended.status, ended.output, ended.logs, ended.error, files, ended.duration_ms, now()];
            transaction.prepare_cached(sql)?.execute(values)
        })?;
        Ok(())
    }

    /// Removes an execution that never began.
    pub(crate) fn forget_execution(&self, tenant: &str, id: &str) -> rusqlite::Result<()> {
        let sql = "DELETE FROM execution WHERE id = ?1 AND tenant = ?2 AND status = 'running'";
        self.change(|transaction| transaction.execute(sql, params![id, tenant]))?;
        Ok(())
    }

    /// Marks executions that were running when the server ended as failed; returns their number.
    pub(crate) fn interrupt_executions(&self, error: &str) -> rusqlite::Result<usize> {
        let sql = "UPDATE execution SET status = 'failed', error = ?1, finished_at = ?2 WHERE status = 'running'";
        self.change(|transaction| transaction.execute(sql, params![error, now()]))
    }

    /// Returns an execution of a tenant.
    pub(crate) fn execution(&self, tenant: &str, id: &str) -> rusqlite::Result<Option<Execution>> {
        let sql = format!("SELECT {COLUMNS} FROM execution WHERE tenant = ?1 AND id = ?2");
        self.read(|connection| connection.prepare_cached(&sql)?.query_row([tenant, id], execution).optional())
    }

    /// Returns the tenant of an execution whose id comes from an address that we signed, the only look-up without a tenant.
    pub(crate) fn tenant_of_signed(&self, id: &str) -> rusqlite::Result<Option<String>> {
        let sql = "SELECT tenant FROM execution WHERE id = ?1";
        self.read(|connection| connection.prepare_cached(sql)?.query_row([id], |row| row.get(0)).optional())
    }

    /// Executions of a tenant, newest first, without their inputs, outputs and logs.
    pub(crate) fn executions(&self, tenant: &str, filter: &ExecutionFilter) -> rusqlite::Result<Vec<Execution>> {
        let sql = format!(
            "SELECT {SHORT} FROM execution
             WHERE tenant = ?1 AND (?2 IS NULL OR skill = ?2) AND (?3 IS NULL OR status = ?3)
               AND (?4 IS NULL OR created_at < ?4 OR (created_at = ?4 AND id < ?5))
             ORDER BY created_at DESC, id DESC LIMIT ?6"
        );
        let (at, id) = filter.after.clone().map_or((None, None), |(at, id)| (Some(at), Some(id)));
        self.read(|connection| {
            let mut statement = connection.prepare_cached(&sql)?;
            let values = params![tenant, filter.skill, filter.status, at, id, filter.limit];
            statement.query_map(values, execution)?.collect()
        })
    }
}

#[cfg(test)]
mod tests {
    use rusqlite::Connection;

    use super::*;

    fn catalog(executions: &[(&str, &str)]) -> Catalog {
        let catalog = Catalog::new(Connection::open_in_memory().unwrap()).unwrap();
        for (tenant, id) in executions {
            let new = NewExecution {
                id: (*id).to_owned(),
                skill: "s".to_owned(),
                version: "1.0.0".to_owned(),
                session: None,
                input: None,
            };
            catalog.begin_execution(tenant, &new).unwrap();
        }
        catalog
    }

    #[test]
    fn an_execution_is_finished_once_and_only_by_its_tenant() {
        let catalog = catalog(&[("a", "1")]);
        let ended = |status: &str| Finished { status: status.to_owned(), ..Finished::default() };
        catalog.finish_execution("b", "1", &ended("success")).unwrap();
        assert_eq!(catalog.execution("a", "1").unwrap().unwrap().ended.status, "running");
        assert!(catalog.execution("b", "1").unwrap().is_none());
        catalog.finish_execution("a", "1", &ended("success")).unwrap();
        catalog.finish_execution("a", "1", &ended("failed")).unwrap();
        assert_eq!(catalog.execution("a", "1").unwrap().unwrap().ended.status, "success");
        assert_eq!(catalog.interrupt_executions("interrupted").unwrap(), 0);
    }

    #[test]
    fn pages_follow_each_other_and_show_one_tenant() {
        let catalog = catalog(&[("a", "1"), ("a", "2"), ("b", "3"), ("a", "4")]);
        let mut filter = ExecutionFilter { limit: 2, ..ExecutionFilter::default() };
        let mut seen = Vec::new();
        loop {
            let page = catalog.executions("a", &filter).unwrap();
            let Some(last) = page.last() else { break };
            filter.after = Some((last.created_at, last.id.clone()));
            seen.extend(page.into_iter().map(|execution| execution.id));
        }
        seen.sort();
        assert_eq!(seen, ["1", "2", "4"]);
    }
}
