//! The allowed schema objects of our files: each table and index with exactly the text that we, or AgentFS's SDKs, write.
//!
//! The schema of a file determines what SQLite does with it: a generated column, a default, a check or an index can be an
//! expression that takes any time and memory, and a trigger or a view acts. A file with any other definition of our tables is
//! therefore not opened (T-SNAP-01). Tables of other programs may exist; they are never touched.

use std::collections::{BTreeSet, HashSet};
use std::sync::OnceLock;

use rusqlite::Connection;
use rusqlite::types::ValueRef;

use crate::error::damaged;
use crate::schema::migrations::{FORMAT_1, UPGRADED};
use crate::{format, settings, whiteout};

/// Everything that creates a table or an index of ours. When you add one, add its text here. A table that older files lack is
/// created when they are upgraded; those of `format::TABLES` are in every file.
const OURS: &[&str] =
    &[format::TABLES, format::SESSIONS, format::USAGE, format::VERSIONS, format::PAST, whiteout::TABLE, settings::TABLE];

/// The objects that AgentFS's SDKs add to our files when they open them, and its command line's spelling of the table of
/// whiteouts.
const SDKS: &[&str] = &["CREATE INDEX idx_kv_store_created_at ON kv_store(created_at);
     CREATE INDEX idx_tool_calls_name ON tool_calls(name);
     CREATE INDEX idx_tool_calls_started_at ON tool_calls(started_at);
     CREATE TABLE fs_whiteout (path TEXT PRIMARY KEY, created_at INTEGER NOT NULL);"];

/// The statements above, by kind.
struct Known {
    /// Names of tables.
    tables: Vec<String>,
    /// Tables that every file has.
    required: Vec<String>,
    /// Tables that every file has since format 2.
    required_since_2: Vec<String>,
    /// Whole statements.
    texts: HashSet<String>,
    /// Statements of files of format 1, by table.
    texts_1: Vec<(String, String)>,
}

fn known() -> &'static Known {
    static KNOWN: OnceLock<Known> = OnceLock::new();
    KNOWN.get_or_init(|| {
        let texts: HashSet<String> = OURS.iter().chain(SDKS).chain([&UPGRADED]).flat_map(|text| statements(text)).collect();
        let tables_of = |text: &str| statements(text).filter_map(|text| table_of(&text).map(str::to_owned)).collect();
        let (required, required_since_2) = (tables_of(format::TABLES), tables_of(format::VERSIONS));
        let texts_1 = statements(FORMAT_1).filter_map(|text| Some((table_of(&text)?.to_owned(), text.clone()))).collect();
        let tables: BTreeSet<&str> = texts.iter().filter_map(|text| table_of(text)).collect();
        Known { tables: tables.into_iter().map(str::to_owned).collect(), required, required_since_2, texts, texts_1 }
    })
}

impl Known {
    /// Returns whether this definition of a table or an index is valid in files of a format.
    fn has(&self, name: &str, text: String, format: i64) -> bool {
        match self.texts_1.iter().find(|(table, _)| format == 1 && table == name) {
            Some((_, older)) => *older == text,
            None => self.texts.contains(&text),
        }
    }
}

/// Returns the names of our tables, in order.
pub(crate) fn tables() -> &'static [String] {
    &known().tables
}

/// Returns the single statements of a text, each normalized by [`spelled`].
fn statements(text: &str) -> impl Iterator<Item = String> {
    let code: String = text.lines().map(|line| line.split("--").next().unwrap_or_default()).collect::<Vec<_>>().join(" ");
    code.split(';').map(spelled).filter(|text| !text.is_empty()).collect::<Vec<_>>().into_iter()
}

/// Normalizes a statement: removes insignificant white space, case and `IF NOT EXISTS`. None of ours contains a quoted text that
/// this would change, except for one default, which is in lower case and without spaces.
fn spelled(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for word in text.split_ascii_whitespace() {
        // A space is kept only between two words.
        let joins = |letter: Option<char>| letter.is_some_and(|letter| letter.is_alphanumeric() || letter == '_');
        if joins(out.chars().next_back()) && joins(word.chars().next()) {
            out.push(' ');
        }
        out.push_str(&word.to_ascii_lowercase());
    }
    out.replace(" if not exists", "")
}

/// Returns the table that a statement creates.
fn table_of(text: &str) -> Option<&str> {
    text.strip_prefix("create table ")?.split('(').next()
}

/// Returns whether SQLite created an index with this name automatically.
fn is_automatic(name: &str, table: &str) -> bool {
    let number = name.strip_prefix("sqlite_autoindex_").and_then(|rest| rest.strip_prefix(table)?.strip_prefix('_'));
    number.is_some_and(|number| !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()))
}

/// Returns the reason a file is not opened, if its schema differs from what we or AgentFS's SDKs write.
pub(crate) fn stranger(connection: &Connection, format: i64) -> rusqlite::Result<Option<String>> {
    let known = known();
    let since = if format > 1 { &known.required_since_2[..] } else { &[] };
    let (mut missing, mut pages): (HashSet<&str>, HashSet<i64>) =
        (known.required.iter().chain(since).map(String::as_str).collect(), HashSet::new());
    let mut statement = connection.prepare("SELECT type, name, tbl_name, sql, rootpage FROM sqlite_schema")?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let text = |column| row.get_ref(column)?.as_str().map_err(|_| damaged("a name in the schema is not text"));
        let (kind, name, table) = (text(0)?, text(1)?.to_ascii_lowercase(), text(2)?.to_ascii_lowercase());
        let page = row.get_ref(4)?.as_i64_or_null()?.unwrap_or(0);
        let shared = page != 0 && !pages.insert(page);
        let is_ours = |name: &String| known.tables.contains(name) || name.starts_with("sandlite_");
        if name.starts_with("sqlite_stat") && name != "sqlite_stat1" {
            return Ok(Some(format!("it has the statistics `{name}`")));
        }
        if !is_ours(&name) && !is_ours(&table) {
            continue;
        }
        let expected = match row.get_ref(3)? {
            ValueRef::Null => kind == "index" && is_automatic(&name, &table),
            value => value.as_str().is_ok_and(|sql| known.has(&name, spelled(sql), format)) && matches!(kind, "table" | "index"),
        };
        if !expected || shared {
            return Ok(Some(format!("its {kind} `{}` has an unexpected definition", name.escape_debug())));
        }
        missing.remove(name.as_str());
    }
    Ok(missing.iter().min().map(|table| format!("it has no table `{table}`")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdict(sql: &str) -> Option<String> {
        let connection = Connection::open_in_memory().unwrap();
        connection.execute_batch(&format!("{} {}", format::fresh(0, format::PAST), whiteout::TABLE)).unwrap();
        connection.execute_batch(sql).unwrap();
        stranger(&connection, format::FORMAT).unwrap()
    }

    fn refused(sql: &str, why: &str) {
        let found = verdict(sql).unwrap_or_default();
        assert!(found.contains(why), "{sql}: {found:?}");
    }

    #[test]
    fn a_new_file_and_one_that_an_sdk_opened_have_the_known_schema() {
        assert_eq!(verdict(""), None);
        assert_eq!(verdict(&SDKS[0].replace("CREATE TABLE", "CREATE TABLE IF NOT EXISTS")), None);
        assert_eq!(verdict("DROP TABLE fs_whiteout; DROP TABLE sandlite_session;"), None);
    }

    #[test]
    fn tables_of_other_programs_are_not_touched() {
        let own = "CREATE TABLE mine (a, b AS (a || 'x'), CHECK (a <> 1)); CREATE INDEX i ON mine(b) WHERE a > 2;
                   CREATE TABLE fs_origin (delta_ino INTEGER PRIMARY KEY, base_ino INTEGER NOT NULL);
                   CREATE VIEW look AS SELECT * FROM fs_inode;";
        assert_eq!(verdict(own), None);
    }

    /// T-SNAP-01
    #[test]
    fn unknown_objects_on_our_tables_are_rejected() {
        refused("ALTER TABLE fs_inode ADD COLUMN x AS (hex(zeroblob(200000000)))", "`fs_inode`");
        refused("ALTER TABLE kv_store ADD COLUMN x DEFAULT 'y'", "`kv_store`");
        refused("ALTER TABLE fs_data ADD COLUMN x CHECK (hex(zeroblob(9)) <> '')", "`fs_data`");
        refused("CREATE INDEX mine ON fs_dentry(name)", "`mine`");
        refused("CREATE INDEX mine ON fs_dentry(hex(name))", "`mine`");
        refused("CREATE INDEX idx_tool_calls_name ON tool_calls(name) WHERE hex(name) > ''", "`idx_tool_calls_name`");
        refused("CREATE TRIGGER t AFTER INSERT ON tool_calls BEGIN SELECT 1; END", "trigger `t`");
        refused("DROP TABLE kv_store; CREATE VIEW kv_store AS SELECT 1 AS key, 2 AS value", "view `kv_store`");
        refused("DROP TABLE kv_store; CREATE TABLE KV_Store (key TEXT PRIMARY KEY) WITHOUT ROWID", "`kv_store`");
        refused("DROP TABLE tool_calls; CREATE VIRTUAL TABLE tool_calls USING fts5(name)", "`tool_calls`");
        refused("CREATE TABLE sandlite_future (x)", "`sandlite_future`");
        refused("DROP TABLE sandlite_run", "no table `sandlite_run`");
    }

    #[test]
    fn a_table_is_written_as_its_format_has_it() {
        let connection = Connection::open_in_memory().unwrap();
        connection.execute_batch(&format::fresh(0, "")).unwrap();
        assert!(stranger(&connection, 1).unwrap().unwrap().contains("`sandlite_run`"));
        connection.execute_batch(&format!("DROP TABLE sandlite_run; {FORMAT_1}")).unwrap();
        assert_eq!(stranger(&connection, 1).unwrap(), None);
        assert!(stranger(&connection, 2).unwrap().unwrap().contains("`sandlite_run`"));
        assert_eq!(verdict(&format!("DROP TABLE sandlite_run; {UPGRADED}")), None);
        refused("DROP TABLE sandlite_version", "no table `sandlite_version`");
        assert_eq!(verdict("DROP TABLE sandlite_past_data; DROP TABLE sandlite_label;"), None);
    }

    #[test]
    fn two_tables_on_one_page_are_refused() {
        let lie = "PRAGMA writable_schema=ON;
                   UPDATE sqlite_schema SET rootpage=(SELECT rootpage FROM sqlite_schema WHERE name='fs_inode') WHERE name='tool_calls';";
        refused(lie, "has an unexpected definition");
    }

    #[test]
    fn case_and_spaces_do_not_matter_but_words_do() {
        assert_eq!(spelled("CREATE  TABLE IF NOT EXISTS\n a ( b TEXT ,\tc INTEGER )"), "create table a(b text,c integer)");
        assert_ne!(spelled("CREATE TABLE a(b TEXT)"), spelled("CREATE TABLE a(bTEXT)"));
    }
}
