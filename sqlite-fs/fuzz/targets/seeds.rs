//! Writes valid files for the fuzzer to start from, into `corpus/import_db`.

use std::path::Path;

use sqlite_fs::{Database, Error, Export, NewCall, Outcome};

fn main() -> Result<(), Error> {
    let folder = Path::new("corpus/import_db");
    std::fs::create_dir_all(folder).map_err(|source| Error::Disk { path: folder.to_owned(), source })?;
    let database = Database::options().open()?;
    database.export(&folder.join("empty.db"), Export::default())?;
    let transaction = database.begin(None)?;
    transaction.fs().create_dir_all("/a/b")?;
    transaction.fs().write("/a/b/file", b"content")?;
    transaction.fs().symlink("b/file", "/a/link")?;
    transaction.kv().set("key", "1")?;
    let id = transaction.calls().begin(&NewCall { name: "bash", parameters: None, command: "ls" })?;
    transaction.calls().finish(id, &Outcome { stdout: b"out", ..Outcome::default() })?;
    transaction.commit()?;
    database.export(&folder.join("small.db"), Export::default())
}
