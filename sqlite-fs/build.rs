//! Creates the fresh database that every database in memory starts as a copy of.

#![expect(clippy::disallowed_methods, reason = "Cargo passes the output directory in the environment")]

#[path = "src/format.rs"]
mod format;

use std::error::Error;
use std::path::PathBuf;

/// A small page size: memory has no seek cost, a fresh database has mostly empty pages, and small ones are created faster.
const PAGE_BYTES: u32 = 4 * 1024;

fn main() -> Result<(), Box<dyn Error>> {
    for file in
        ["build.rs", "src/format.rs", "src/tables.sql", "src/sessions.sql", "src/usage.sql", "src/versions.sql", "src/past.sql"]
    {
        println!("cargo::rerun-if-changed={file}");
    }
    let path = PathBuf::from(std::env::var("OUT_DIR")?).join("fresh.db");
    if path.exists() {
        std::fs::remove_file(&path)?;
    }
    let connection = rusqlite::Connection::open(&path)?;
    connection.pragma_update(None, "page_size", PAGE_BYTES)?;
    // In memory the tables of the past exist from the start, because creating one later recompiles every statement.
    connection.execute_batch(&format::fresh(0, format::PAST))?;
    Ok(())
}
