//! All invariants of a database, and the messages for violations.

use rusqlite::{Connection, Row};

use crate::database::Database;
use crate::error::{Error, Fault};
use crate::known;
use crate::past::{self, Table};
use crate::quota::Quota;

/// Maximum number of violations listed per rule.
const LISTED: usize = 20;

/// A violated rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// The rule's short name.
    pub rule: &'static str,
    /// The location of the violation.
    pub detail: String,
}

impl std::fmt::Display for Violation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.rule, self.detail)
    }
}

const ROOT_HAS_NO_NAME: &str = "root has no name";
const ONE_NAME: &str = "directory has one name";
const BELOW_ROOT: &str = "directory is below the root";
const SAVED: &str = "saved row belongs to a version";

/// A rule: its name, and a query that returns a text for each violation.
pub(crate) struct Rule {
    pub(crate) name: &'static str,
    query: &'static str,
}

/// The rules for files, ordered by dependency. `?1` is the chunk size, `?2` the maximum name length, `?3` the maximum depth.
pub(crate) const RULES: &[Rule] = &[
    Rule {
        name: "root is a directory",
        query: "SELECT 'inode 1 is missing or not a directory'
                WHERE NOT EXISTS (SELECT 1 FROM fs_inode WHERE ino=1 AND (mode & 61440)=16384)",
    },
    Rule { name: ROOT_HAS_NO_NAME, query: "SELECT 'entry ' || id FROM fs_dentry WHERE ino=1" },
    Rule {
        name: "inode values",
        query: "SELECT 'inode ' || ino FROM fs_inode WHERE ino<1 OR typeof(mode)<>'integer' OR mode NOT BETWEEN 0 AND 65535
                OR typeof(size)<>'integer' OR size<0 OR typeof(nlink)<>'integer' OR nlink<0
                OR typeof(uid)<>'integer' OR uid NOT BETWEEN 0 AND 4294967295
                OR typeof(gid)<>'integer' OR gid NOT BETWEEN 0 AND 4294967295 OR typeof(rdev)<>'integer'
                OR typeof(atime)<>'integer' OR typeof(mtime)<>'integer' OR typeof(ctime)<>'integer'
                OR typeof(atime_nsec)<>'integer' OR atime_nsec NOT BETWEEN 0 AND 999999999
                OR typeof(mtime_nsec)<>'integer' OR mtime_nsec NOT BETWEEN 0 AND 999999999
                OR typeof(ctime_nsec)<>'integer' OR ctime_nsec NOT BETWEEN 0 AND 999999999",
    },
    Rule {
        name: "file type",
        query: "SELECT 'inode ' || ino || ' has mode ' || printf('%o', mode) FROM fs_inode
                WHERE (mode & 61440) NOT IN (4096, 16384, 32768, 40960)",
    },
    Rule {
        name: "name",
        query: "SELECT 'entry ' || id FROM fs_dentry WHERE typeof(name)<>'text' OR name IN ('', '.', '..')
                OR instr(name, '/')>0 OR instr(name, char(0))>0 OR length(CAST(name AS BLOB))>?2",
    },
    Rule {
        name: "name is unique",
        query: "SELECT 'directory ' || parent_ino || ' has ' || name || ' twice' FROM fs_dentry
                GROUP BY parent_ino, name HAVING count(*)>1",
    },
    Rule {
        name: "entry leads to an inode",
        query: "SELECT 'entry ' || id FROM fs_dentry d WHERE NOT EXISTS (SELECT 1 FROM fs_inode i WHERE i.ino=d.ino)",
    },
    Rule {
        name: "entry is in a directory",
        query: "SELECT 'entry ' || id FROM fs_dentry d
                WHERE NOT EXISTS (SELECT 1 FROM fs_inode i WHERE i.ino=d.parent_ino AND (mode & 61440)=16384)",
    },
    Rule {
        name: "inode has a name",
        query: "SELECT 'inode ' || ino FROM fs_inode WHERE ino<>1 AND ino NOT IN (SELECT ino FROM fs_dentry)",
    },
    Rule {
        name: ONE_NAME,
        query: "SELECT 'directory ' || ino FROM fs_inode WHERE (mode & 61440)=16384
                AND ino IN (SELECT ino FROM fs_dentry GROUP BY ino HAVING count(*)>1)",
    },
    Rule {
        name: BELOW_ROOT,
        query: "WITH RECURSIVE below(ino, depth) AS (SELECT 1, 0 UNION SELECT d.ino, depth+1 FROM below
                  JOIN fs_dentry d ON d.parent_ino=below.ino JOIN fs_inode i ON i.ino=d.ino AND (i.mode & 61440)=16384
                  WHERE depth<=?3)
                SELECT 'directory ' || ino FROM fs_inode WHERE (mode & 61440)=16384 AND ino IN (SELECT ino FROM fs_dentry)
                  AND ino NOT IN (SELECT ino FROM below WHERE depth<=?3)",
    },
    Rule {
        name: "link count",
        query: "SELECT 'inode ' || i.ino || ' says ' || i.nlink || ', has ' || d.names FROM fs_inode i
                JOIN (SELECT ino, count(*) AS names FROM fs_dentry GROUP BY ino) d ON d.ino=i.ino
                WHERE (i.mode & 61440)<>16384 AND i.nlink<>d.names",
    },
    Rule {
        name: "symbolic link has a target",
        query: "SELECT 'inode ' || i.ino FROM fs_inode i LEFT JOIN fs_symlink s ON s.ino=i.ino
                WHERE (mode & 61440)=40960 AND (s.target IS NULL OR typeof(s.target)<>'text' OR s.target=''
                  OR instr(s.target, char(0))>0 OR length(CAST(s.target AS BLOB))>4095)",
    },
    Rule {
        name: "target belongs to a symbolic link",
        query: "SELECT 'inode ' || ino FROM fs_symlink s
                WHERE NOT EXISTS (SELECT 1 FROM fs_inode i WHERE i.ino=s.ino AND (i.mode & 61440)=40960)",
    },
    Rule {
        name: "data belongs to a file",
        query: "SELECT 'inode ' || ino FROM (SELECT DISTINCT ino FROM fs_data) d
                WHERE NOT EXISTS (SELECT 1 FROM fs_inode i WHERE i.ino=d.ino AND (i.mode & 61440)=32768)",
    },
    Rule {
        name: "chunk",
        query: "SELECT 'inode ' || ino || ' chunk ' || chunk_index FROM fs_data
                WHERE typeof(chunk_index)<>'integer' OR chunk_index<0 OR typeof(data)<>'blob' OR length(data)=0
                OR length(data)>?1",
    },
    Rule {
        name: "file is dense",
        query: "SELECT 'inode ' || i.ino FROM fs_inode i JOIN (SELECT ino, count(*) AS chunks, max(chunk_index) AS last,
                  sum(length(data)) AS bytes FROM fs_data GROUP BY ino) d ON d.ino=i.ino
                WHERE (i.mode & 61440)=32768 AND (d.chunks<>d.last+1 OR d.chunks<>(d.bytes+?1-1)/?1)",
    },
    Rule {
        name: "file size",
        query: "SELECT 'inode ' || i.ino || ' says ' || i.size || ', has ' || coalesce(d.bytes, 0) FROM fs_inode i
                LEFT JOIN (SELECT ino, sum(length(data)) AS bytes FROM fs_data GROUP BY ino) d ON d.ino=i.ino
                WHERE (i.mode & 61440)=32768 AND i.size<>coalesce(d.bytes, 0)",
    },
    Rule {
        name: "key and value",
        query: "SELECT 'key ' || quote(key) FROM kv_store
                WHERE typeof(key)<>'text' OR typeof(value)<>'text' OR NOT json_valid(value)",
    },
    Rule {
        name: "saved key and value",
        query: "SELECT 'row ' || id FROM sandlite_past_kv WHERE typeof(key)<>'text' OR state NOT IN (0, 1)
                OR (state=0 AND (typeof(value)<>'text' OR NOT json_valid(value)))",
    },
    Rule {
        name: "call",
        query: "SELECT 'call ' || id FROM tool_calls WHERE typeof(name)<>'text' OR typeof(started_at)<>'integer'
                OR status NOT IN ('pending', 'success', 'error')
                OR (coalesce(result, '')<>'' AND coalesce(error, '')<>'')",
    },
    Rule {
        name: "run belongs to a call",
        query: "SELECT 'run ' || id FROM sandlite_run WHERE id NOT IN (SELECT id FROM tool_calls)",
    },
    Rule {
        name: "version",
        query: "SELECT 'version ' || id FROM sandlite_version v WHERE typeof(time_ns)<>'integer' OR typeof(mark)<>'integer'
                OR mark<1 OR typeof(entries)<>'integer' OR entries<0 OR typeof(total)<>'integer' OR total<0
                OR typeof(outside)<>'integer' OR outside>id OR typeof(inodes)<>'blob' OR id NOT BETWEEN 0 AND 2147483646
                OR EXISTS (SELECT 1 FROM sandlite_version p WHERE p.id=v.id-1
                  AND (p.mark>v.mark OR p.entries>v.entries OR p.total>v.total))",
    },
    Rule {
        name: SAVED,
        query: "SELECT 'row ' || id FROM sandlite_past_dentry WHERE (id>>32)<=(SELECT min(id) FROM sandlite_version)
                OR (id>>32)>(SELECT max(id) FROM sandlite_version)",
    },
    Rule {
        name: SAVED,
        query: "SELECT 'row ' || id FROM sandlite_past_data WHERE (id>>32)<=(SELECT min(id) FROM sandlite_version)
                OR (id>>32)>(SELECT max(id) FROM sandlite_version)",
    },
    Rule {
        name: SAVED,
        query: "SELECT 'row ' || id FROM sandlite_past_symlink WHERE (id>>32)<=(SELECT min(id) FROM sandlite_version)
                OR (id>>32)>(SELECT max(id) FROM sandlite_version)",
    },
    Rule {
        name: SAVED,
        query: "SELECT 'row ' || id FROM sandlite_past_kv WHERE (id>>32)<=(SELECT min(id) FROM sandlite_version)
                OR (id>>32)>(SELECT max(id) FROM sandlite_version)",
    },
    Rule {
        name: SAVED,
        query: "SELECT 'row ' || id FROM sandlite_past_session WHERE (id>>32)<=(SELECT min(id) FROM sandlite_version)
                OR (id>>32)>(SELECT max(id) FROM sandlite_version)",
    },
    Rule {
        name: SAVED,
        query: "SELECT 'row ' || id FROM sandlite_past_whiteout WHERE (id>>32)<=(SELECT min(id) FROM sandlite_version)
                OR (id>>32)>(SELECT max(id) FROM sandlite_version)",
    },
    Rule {
        name: SAVED,
        query: "SELECT 'inode ' || (id>>31) FROM sandlite_past_inode
                WHERE (id & 2147483647)<=(SELECT min(id) FROM sandlite_version)
                OR (id & 2147483647)>(SELECT max(id) FROM sandlite_version)",
    },
    Rule {
        name: "label names a version",
        query: "SELECT 'label ' || quote(name) FROM sandlite_label WHERE version NOT IN (SELECT id FROM sandlite_version)",
    },
];

impl Database {
    /// Checks everything that is committed and returns every violated rule; the list is empty if the database is intact.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Moved`] if the file was replaced or removed, and [`Error::Damaged`] if its pages cannot be read at all.
    pub fn check(&self) -> Result<Vec<Violation>, Error> {
        let reader = self.reader()?;
        let chunk_bytes = self.shared.chunk_bytes();
        let violations = reader.rows(|connection| {
            let mut violations = engine(connection)?;
            if violations.is_empty() {
                violations = schema_objects(connection)?;
                violations.extend(rules(connection, chunk_bytes, || reader.refill())?);
            }
            Ok(violations)
        })?;
        if !violations.is_empty() {
            return Ok(violations);
        }
        let wrong = self.check_digests()?.into_iter().take(LISTED);
        Ok(wrong.map(|detail| Violation { rule: "digest", detail }).collect())
    }
}

fn collect(
    rule: &'static str,
    rows: rusqlite::Rows<'_>,
    text: impl Fn(&Row<'_>) -> rusqlite::Result<String>,
) -> rusqlite::Result<Vec<Violation>> {
    let mut rows = rows;
    let mut violations = Vec::new();
    while let Some(row) = rows.next()? {
        violations.push(Violation { rule, detail: text(row)? });
    }
    Ok(violations)
}

/// Returns SQLite's own findings about the pages of our tables and their indexes. Tables of other programs are not checked.
fn engine(connection: &Connection) -> Result<Vec<Violation>, Fault> {
    let mut violations = Vec::new();
    for table in known::tables() {
        if crate::rows::has_table(connection, table)? {
            let mut statement = connection.prepare(&format!("PRAGMA main.integrity_check({table})"))?;
            violations.extend(collect("page structure", statement.query([])?, |row| row.get(0))?);
        }
    }
    violations.retain(|violation| violation.detail != "ok");
    violations.truncate(LISTED);
    Ok(violations)
}

/// Returns schema objects that nothing here creates and that other readers reject.
fn schema_objects(connection: &Connection) -> Result<Vec<Violation>, Fault> {
    let mut statement = connection.prepare(
        "SELECT type || ' ' || name FROM sqlite_schema WHERE type IN ('trigger', 'view') OR sql LIKE 'CREATE VIRTUAL%'",
    )?;
    Ok(collect("no active content", statement.query([])?, |row| row.get(0))?)
}

/// Checks the rules for rows; calls `before_each` before each of them.
pub(crate) fn rules(connection: &Connection, chunk_bytes: usize, before_each: impl Fn()) -> Result<Vec<Violation>, Fault> {
    let mut violations: Vec<Violation> = Vec::new();
    for rule in RULES {
        // The data it traverses is a tree only if the previous rules hold.
        if rule.name == BELOW_ROOT && violations.iter().any(|found| matches!(found.rule, ROOT_HAS_NO_NAME | ONE_NAME)) {
            continue;
        }
        // A read-only file of format 1 has no past, and one of ours need not have a label.
        if !has_tables_of(connection, rule.query)? {
            continue;
        }
        before_each();
        let mut statement = connection.prepare(&format!("{} LIMIT {LISTED}", rule.query))?;
        let values = [crate::rows::signed(chunk_bytes as u64), Quota::NAME_MAX as i64, i64::from(Quota::DEPTH_MAX)];
        for (index, value) in (1..=statement.parameter_count()).zip(values) {
            statement.raw_bind_parameter(index, value)?;
        }
        violations.extend(collect(rule.name, statement.raw_query(), detail)?);
    }
    Ok(violations)
}

/// Returns whether a file has the tables of the past that a query reads.
fn has_tables_of(connection: &Connection, query: &str) -> rusqlite::Result<bool> {
    let tables = Table::ALL.map(Table::name).into_iter().chain(["sandlite_version", past::LABELS]);
    for table in tables.filter(|table| query.contains(table)) {
        if !crate::rows::has_table(connection, table)? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Maximum number of characters shown of a detail, because a name or a key can have any length.
const DETAIL_LETTERS: usize = 200;

// A value of the wrong type makes the text NULL, and text need not be UTF-8; the rule is violated all the same.
fn detail(row: &Row<'_>) -> rusqlite::Result<String> {
    let text = row.get_ref(0)?.as_str_or_null().unwrap_or_default();
    Ok(text.map_or_else(|| "a row".to_owned(), |text| text.chars().take(DETAIL_LETTERS).collect()))
}
