//! Kinds of errors, and the errors themselves, from their documentation.

use std::fmt::Write as _;

use super::documented;

/// The page.
pub fn page() -> String {
    let mut page = String::from(
        "# Errors\n\nGenerated from `runtime/src/error.rs`, `sqlite-fs/src/error.rs` and `sdk/python` by `cargo xtask docs`.\n\n\
         A command that exits with 1, traps or reaches a limit is a result, not an error. An error means that Sandlite itself could not\n\
         do its work. `Error::kind` groups errors, `Error::hint` returns a remedy and `Error::causes` the chain of causes.\n",
    );
    let mut table = |title: &str, prefix: &str, file: &str, item: &str| {
        write!(page, "\n## {title}\n\n| name | meaning |\n|---|---|\n").unwrap();
        for (name, meaning) in documented(file, item) {
            writeln!(page, "| `{prefix}{name}` | {meaning} |").unwrap();
        }
    };
    table("Kinds", "ErrorKind::", "runtime/src/error/kind.rs", "pub enum ErrorKind");
    table("Errors of the runtime", "Error::", "runtime/src/error.rs", "pub enum Error");
    table("Errors of the database", "Error::", "sqlite-fs/src/error.rs", "pub enum Error");
    table("Errors of files", "FsError::", "sqlite-fs/src/error.rs", "pub enum FsError");
    page += "\n## Python\n\nThe exceptions of the Python package are in its [reference](python.md#exceptions).\n";
    page
}
