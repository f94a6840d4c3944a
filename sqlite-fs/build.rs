//! Makes the empty database that every database in memory is a copy of.

use std::error::Error;
use std::path::PathBuf;

/// As `MEMORY_PAGE_BYTES` in `src/schema.rs`.
const PAGE_BYTES: u32 = 4 * 1024;

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=src/tables.sql");
    println!("cargo::rerun-if-changed=src/sessions.sql");
    let path = PathBuf::from(std::env::var("OUT_DIR")?).join("empty.db");
    if path.exists() {
        std::fs::remove_file(&path)?;
    }
    let connection = rusqlite::Connection::open(&path)?;
    connection.pragma_update(None, "page_size", PAGE_BYTES)?;
    connection.execute_batch(include_str!("src/tables.sql"))?;
    connection.execute_batch(include_str!("src/sessions.sql"))?;
    Ok(())
}
