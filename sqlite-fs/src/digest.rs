//! A digest of everything a snapshot says, so that one who gets it can tell whether it is the one that was sent (T-SNAP-07).
//!
//! Rows are hashed by what they mean, in an order of their own (paths, keys, numbers of calls): how SQLite laid them out, and
//! inode numbers, which an import gives anew, do not matter. Who vouches for a digest is the caller's business: it is short
//! enough to be signed by any tool, or to be sent another way than the file.

use std::collections::HashMap;

use rusqlite::Connection;

use crate::calls::{Call, Filter};
use crate::copy::Export;
use crate::database::Database;
use crate::error::Error;
use crate::fs::Volume;
use crate::node::{FileType, Ino};
use crate::reader::Reader;

/// Hashed at a time.
const STEP_BYTES: usize = 256 << 10;
/// Permissions that an import does not take over.
const SET_IDS: u32 = 0o6000;
/// Calls looked at together.
const CALLS_PER_STEP: usize = 256;

impl Database {
    /// The digest of what [`export`](Self::export) with the same settings writes, in 64 hexadecimal letters; the last
    /// committed state. An import checks it: [`Import::digest`](crate::Import::digest).
    ///
    /// ```
    /// # use sqlite_fs::{Database, Export, Import};
    /// # let directory = std::env::temp_dir().join(format!("sqlite-fs-digest-{}", std::process::id()));
    /// # std::fs::create_dir(&directory).unwrap();
    /// # let file = directory.join("snapshot.db");
    /// # let database = Database::options().open()?;
    /// database.export(&file, Export::default())?;
    /// let digest = database.digest(Export::default())?;
    /// let expect = Import { digest: Some(digest), ..Import::default() };
    /// Database::import(&file, Database::options(), &expect)?;
    /// # std::fs::remove_dir_all(directory).unwrap();
    /// # Ok::<(), sqlite_fs::Error>(())
    /// ```
    pub fn digest(&self, export: Export) -> Result<String, Error> {
        self.reader()?.digest(export)
    }
}

/// Values one after another, each with its length, so that no two lists of them look alike.
#[derive(Default)]
struct Words(blake3::Hasher);

impl Words {
    fn bytes(&mut self, bytes: &[u8]) {
        self.number(bytes.len() as u64);
        self.0.update(bytes);
    }

    fn number(&mut self, number: u64) {
        self.0.update(&number.to_le_bytes());
    }

    // An import takes an empty text for none.
    fn maybe(&mut self, text: Option<&str>) {
        self.bytes(text.unwrap_or_default().as_bytes());
    }
}

impl Reader {
    fn digest(&self, export: Export) -> Result<String, Error> {
        let mut words = Words::default();
        self.digest_files(&mut words)?;
        self.digest_keys(&mut words, export.secrets)?;
        self.rows(|connection| Ok(digest_beside(connection, &mut words)?))?;
        if export.history {
            self.digest_calls(&mut words)?;
        }
        Ok(words.0.finalize().to_hex().to_string())
    }

    fn digest_files(&self, words: &mut Words) -> Result<(), Error> {
        // Which paths are one file.
        let mut known: HashMap<Ino, u64> = HashMap::new();
        let mut buffer = vec![0; STEP_BYTES];
        for (path, stat) in self.fs().walk("/")? {
            let next = known.len() as u64;
            words.bytes(path.as_bytes());
            words.number(u64::from(stat.mode & !SET_IDS));
            words.number(u64::from(stat.uid));
            words.number(u64::from(stat.gid));
            words.number(stat.mtime.cast_unsigned());
            match stat.file_type() {
                FileType::Directory => {}
                // Its mode says what it is, and there is nothing in it.
                FileType::Fifo => {}
                FileType::Symlink => words.bytes(self.fs().read_link(&path)?.as_bytes()),
                FileType::File => match known.get(&stat.ino) {
                    Some(first) => words.number(*first),
                    None => {
                        known.insert(stat.ino, next);
                        words.number(next);
                        words.number(stat.size);
                        let mut offset = 0;
                        while offset < stat.size {
                            let length = Volume::read(self, stat.ino, offset, &mut buffer).map_err(Error::from)?;
                            if length == 0 {
                                break;
                            }
                            words.0.update(buffer.get(..length).unwrap_or_default());
                            offset += length as u64;
                        }
                    }
                },
            }
        }
        Ok(())
    }

    fn digest_keys(&self, words: &mut Words, secrets: bool) -> Result<(), Error> {
        for key in self.keys("")? {
            if let Some(value) = self.get(&key)?.filter(|value| secrets || !value.secret) {
                words.bytes(key.as_bytes());
                words.bytes(value.json.as_bytes());
            }
        }
        Ok(())
    }

    fn digest_calls(&self, words: &mut Words) -> Result<(), Error> {
        let mut filter = Filter { limit: CALLS_PER_STEP, output: true, ..Filter::default() };
        loop {
            let calls = self.calls(&filter)?;
            let Some(last) = calls.last() else { return Ok(()) };
            filter.before = Some(last.id);
            for call in &calls {
                digest_call(words, call);
            }
        }
    }
}

/// What sessions go on from, and what an overlay hides.
fn digest_beside(connection: &Connection, words: &mut Words) -> rusqlite::Result<()> {
    for (table, sql) in [
        ("sandlite_session", "SELECT name, part, state FROM sandlite_session ORDER BY name, part"),
        ("fs_whiteout", "SELECT path FROM fs_whiteout ORDER BY path"),
    ] {
        // A file may be older than the table, or never have been part of an overlay.
        if !connection.table_exists(None, table)? {
            continue;
        }
        let mut statement = connection.prepare(sql)?;
        let columns = statement.column_count();
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            for column in 0..columns {
                let value = row.get_ref(column)?;
                words.bytes(value.as_bytes().or_else(|_| value.as_str().map(str::as_bytes))?);
            }
        }
    }
    Ok(())
}

fn digest_call(words: &mut Words, call: &Call) {
    words.number(call.id.cast_unsigned());
    words.bytes(call.name.as_bytes());
    for text in [&call.parameters, &call.result, &call.error] {
        words.maybe(text.as_deref());
    }
    if let Some(run) = &call.run {
        words.bytes(run.command.as_bytes());
        words.bytes(&run.stdout);
        words.bytes(&run.stderr);
        words.maybe(run.exit_code.map(|code| code.to_string()).as_deref());
        for text in [&run.limit, &run.usage, &run.changes] {
            words.maybe(text.as_deref());
        }
    }
}
