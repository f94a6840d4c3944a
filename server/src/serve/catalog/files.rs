//! Files: their rows. The bytes of each are in the tenant's directory under the file's id, and are written before the row.

use rusqlite::{OptionalExtension as _, Row, Transaction, params};

use super::Catalog;
use crate::serve::clock::now;

/// A file.
#[derive(Clone, Debug)]
pub(crate) struct FileRow {
    pub(crate) id: String,
    pub(crate) tenant: String,
    pub(crate) session: Option<String>,
    pub(crate) execution: Option<String>,
    pub(crate) name: String,
    pub(crate) content_type: String,
    pub(crate) size_bytes: i64,
    pub(crate) version: i64,
    /// The first version of the file, if this is not it.
    pub(crate) parent: Option<String>,
    pub(crate) created_at: i64,
    pub(crate) updated_at: i64,
}

impl FileRow {
    /// Returns the first version of a file, made now.
    pub(crate) fn new(id: String, tenant: &str, name: &str, content_type: &str, size_bytes: i64) -> Self {
        let at = now();
        let (tenant, name, content_type) = (tenant.to_owned(), name.to_owned(), content_type.to_owned());
        Self {
            id,
            tenant,
            session: None,
            execution: None,
            name,
            content_type,
            size_bytes,
            version: 1,
            parent: None,
            created_at: at,
            updated_at: at,
        }
    }
}

/// Which files to list, newest first.
#[derive(Clone, Debug, Default)]
pub(crate) struct FileFilter {
    pub(crate) session: Option<String>,
    pub(crate) execution: Option<String>,
    pub(crate) limit: i64,
    pub(crate) offset: i64,
}

const COLUMNS: &str = "id, tenant, session, execution, name, content_type, size_bytes, version, parent, created_at, updated_at";

fn file(row: &Row<'_>) -> rusqlite::Result<FileRow> {
    Ok(FileRow {
        id: row.get(0)?,
        tenant: row.get(1)?,
        session: row.get(2)?,
        execution: row.get(3)?,
        name: row.get(4)?,
        content_type: row.get(5)?,
        size_bytes: row.get(6)?,
        version: row.get(7)?,
        parent: row.get(8)?,
        created_at: row.get(9)?,
        updated_at: row.get(10)?,
    })
}

pub(super) fn insert(transaction: &Transaction<'_>, row: &FileRow) -> rusqlite::Result<()> {
    let sql = format!("INSERT INTO file ({COLUMNS}) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)");
    transaction.prepare_cached(&sql)?.execute(params![
        row.id,
        row.tenant,
        row.session,
        row.execution,
        row.name,
        row.content_type,
        row.size_bytes,
        row.version,
        row.parent,
        row.created_at,
        row.updated_at
    ])?;
    Ok(())
}

impl Catalog {
    /// Adds files, all or none.
    pub(crate) fn add_files(&self, rows: &[FileRow]) -> rusqlite::Result<()> {
        if rows.is_empty() {
            return Ok(());
        }
        self.change(|transaction| rows.iter().try_for_each(|row| insert(transaction, row)))
    }

    /// Adds the next version of a file to those that exist; returns it with its number and its first version. `None` if there is no
    /// such file.
    pub(crate) fn add_version(&self, tenant: &str, of: &str, mut new: FileRow) -> rusqlite::Result<Option<FileRow>> {
        self.change(|transaction| {
            let sql = format!("SELECT {COLUMNS} FROM file WHERE tenant = ?1 AND id = ?2");
            let Some(old) = transaction.prepare_cached(&sql)?.query_row([tenant, of], file).optional()? else { return Ok(None) };
            let first = old.parent.clone().unwrap_or(old.id);
            let sql = "SELECT max(version) FROM file WHERE tenant = ?1 AND (id = ?2 OR parent = ?2)";
            let newest: i64 = transaction.prepare_cached(sql)?.query_row([tenant, &first], |row| row.get(0))?;
            new = FileRow {
                session: old.session,
                execution: old.execution,
                name: old.name,
                version: newest + 1,
                parent: Some(first),
                ..new
            };
            insert(transaction, &new)?;
            Ok(Some(new))
        })
    }

    /// Returns a file of a tenant.
    pub(crate) fn file(&self, tenant: &str, id: &str) -> rusqlite::Result<Option<FileRow>> {
        let sql = format!("SELECT {COLUMNS} FROM file WHERE tenant = ?1 AND id = ?2");
        self.read(|connection| connection.prepare_cached(&sql)?.query_row([tenant, id], file).optional())
    }

    /// Files of a tenant, newest first.
    pub(crate) fn files(&self, tenant: &str, filter: &FileFilter) -> rusqlite::Result<Vec<FileRow>> {
        let sql = format!(
            "SELECT {COLUMNS} FROM file WHERE tenant = ?1 AND (?2 IS NULL OR session = ?2) AND (?3 IS NULL OR execution = ?3)
             ORDER BY created_at DESC, version DESC, name LIMIT ?4 OFFSET ?5"
        );
        self.read(|connection| {
            let mut statement = connection.prepare_cached(&sql)?;
            let values = params![tenant, filter.session, filter.execution, filter.limit, filter.offset];
            statement.query_map(values, file)?.collect()
        })
    }

    /// Returns every version of a file, newest first; none if there is no such file.
    pub(crate) fn file_versions(&self, tenant: &str, id: &str) -> rusqlite::Result<Vec<FileRow>> {
        let Some(row) = self.file(tenant, id)? else { return Ok(Vec::new()) };
        let first = row.parent.unwrap_or(row.id);
        let sql = format!(
            "SELECT {COLUMNS} FROM file WHERE tenant = ?1 AND (id = ?2 OR parent = ?2) ORDER BY version DESC, created_at DESC"
        );
        self.read(|connection| connection.prepare_cached(&sql)?.query_map([tenant, &first], file)?.collect())
    }

    /// Returns the files that an execution left, as it left them.
    pub(crate) fn artifacts(&self, tenant: &str, execution: &str) -> rusqlite::Result<Vec<FileRow>> {
        let sql = format!(
            "SELECT {COLUMNS} FROM file WHERE tenant = ?1 AND execution = ?2 AND parent IS NULL AND session IS NULL ORDER BY name"
        );
        self.read(|connection| connection.prepare_cached(&sql)?.query_map([tenant, execution], file)?.collect())
    }

    /// Removes a file; `false` if there is none.
    pub(crate) fn remove_file(&self, tenant: &str, id: &str) -> rusqlite::Result<bool> {
        let sql = "DELETE FROM file WHERE tenant = ?1 AND id = ?2";
        self.change(|transaction| Ok(transaction.execute(sql, [tenant, id])? > 0))
    }

    /// Bytes of all files of a tenant.
    pub(crate) fn bytes_of_files(&self, tenant: &str) -> rusqlite::Result<i64> {
        let sql = "SELECT coalesce(sum(size_bytes), 0) FROM file WHERE tenant = ?1";
        self.read(|connection| connection.prepare_cached(sql)?.query_row([tenant], |row| row.get(0)))
    }

    /// Returns the files of a session by name.
    pub(crate) fn session_files(&self, tenant: &str, session: &str) -> rusqlite::Result<Vec<FileRow>> {
        let sql = format!("SELECT {COLUMNS} FROM file WHERE tenant = ?1 AND session = ?2 ORDER BY name, version");
        self.read(|connection| connection.prepare_cached(&sql)?.query_map([tenant, session], file)?.collect())
    }
}

#[cfg(test)]
mod tests {
    use rusqlite::Connection;

    use super::*;

    fn row(id: &str) -> FileRow {
        FileRow::new(id.to_owned(), "a", "x.txt", "text/plain", 3)
    }

    #[test]
    fn a_new_version_has_a_new_id_and_names_the_first() {
        let catalog = Catalog::new(Connection::open_in_memory().unwrap()).unwrap();
        catalog.add_files(&[row("1")]).unwrap();
        assert!(catalog.add_version("b", "1", row("2")).unwrap().is_none());
        catalog.add_version("a", "1", FileRow { name: "other".to_owned(), ..row("2") }).unwrap().unwrap();
        let third = catalog.add_version("a", "2", row("3")).unwrap().unwrap();
        assert_eq!((third.version, third.parent.as_deref(), third.name.as_str()), (3, Some("1"), "x.txt"));
        let versions: Vec<i64> = catalog.file_versions("a", "2").unwrap().iter().map(|row| row.version).collect();
        assert_eq!(versions, [3, 2, 1]);
        // A version from an older one is numbered after the newest.
        assert_eq!(catalog.add_version("a", "1", row("4")).unwrap().unwrap().version, 4);
        assert_eq!(catalog.bytes_of_files("a").unwrap(), 12);
        assert!(catalog.file("b", "1").unwrap().is_none() && !catalog.remove_file("b", "1").unwrap());
    }
}
