//! Opening a file: detection of its kind, and the preparation by a writer.

use std::path::Path;

use rusqlite::{Connection, OpenFlags};

use super::Source;
use crate::error::Error;
use crate::format::{self, FORMAT};
use crate::interrupt::Interrupter;
use crate::options::Options;
use crate::patience::Patience;
use crate::schema::{self, Found};
use crate::side::{Left, Side};
use crate::store::Store;
use crate::turn::Turn;
use crate::{calls, stranger};

// SQLite only reports that the file is not a database.
pub(super) fn described<T>(opened: Result<T, Error>, path: &Path) -> Result<T, Error> {
    opened.map_err(|error| match error {
        Error::NotADatabase => Error::Foreign { path: path.to_owned(), reason: stranger::file(path) },
        error => error,
    })
}

fn refuse(found: Found, path: Option<&Path>) -> Result<bool, Error> {
    let path = path.unwrap_or(Path::new(":memory:")).to_owned();
    match found {
        Found::Empty if stranger::has_one_byte(&path) => Err(Error::Foreign { reason: stranger::file(&path), path }),
        Found::Empty => Ok(true),
        Found::Ours => Ok(false),
        Found::TooNew(format) => Err(Error::TooNew { path, found: format, known: FORMAT }),
        Found::Foreign(reason) => Err(Error::Foreign { path, reason }),
        Found::Tampered(reason) => Err(Error::Tampered { path, reason }),
    }
}

pub(super) fn open_for_reading(source: &Source, path: &Path) -> Result<usize, Error> {
    let mut connection = source.connect(OpenFlags::SQLITE_OPEN_READ_ONLY)?;
    let patience = source.patience();
    patience.watch(&mut connection, || false)?;
    schema::harden(&connection)?;
    patience.explained(look_at(&connection, path))
}

fn look_at(connection: &Connection, path: &Path) -> Result<usize, Error> {
    if refuse(schema::inspect(connection)?, Some(path))? {
        return Err(Error::Foreign { path: path.to_owned(), reason: "it is empty".to_owned() });
    }
    schema::chunk_bytes(connection)
}

/// The database that a writer starts with.
pub(super) enum Start {
    /// A new database in memory, or a file that may be one.
    New,
    /// The copy of another database in memory.
    Copy,
    /// The same, through a connection that has been prepared for another one.
    Kept(Connection),
}

pub(super) fn open_for_writing(
    source: &Source,
    options: &Options,
    interrupter: &Interrupter,
    start: Start,
) -> Result<Store, Error> {
    let (mut side, left) = match options.path.as_deref().map(|path| Side::join(path, options.wait)).transpose()? {
        Some((side, left)) => (Some(side), left),
        None => (None, Some(Left::default())),
    };
    let is_new = matches!(start, Start::New);
    let mut connection = match start {
        Start::Kept(connection) => connection,
        Start::New | Start::Copy => source.connect(OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE)?,
    };
    let patience = source.patience();
    let watch = interrupter.clone();
    patience.watch(&mut connection, move || watch.stops_statement())?;
    let set_up = if is_new { set_up(&connection, options, left.as_ref(), &patience) } else { set_up_copy(&connection, options) };
    let (chunk_bytes, is_oversized) = patience.explained(set_up)?;
    if let (Some(side), Some(_)) = (&mut side, left) {
        side.share()?;
    }
    let turn = match (side, options.path.as_deref()) {
        (Some(side), Some(path)) => Some(Turn::new(side, path, &connection, options.wait)?),
        _ => None,
    };
    let mut store = Store::new(connection, chunk_bytes, options, interrupter.clone(), turn, patience);
    store.is_oversized = is_oversized;
    Ok(store)
}

/// Prepares a copy in memory of a database that was prepared. Returns its chunk size, and whether it exceeds its quota.
fn set_up_copy(connection: &Connection, options: &Options) -> Result<(usize, bool), Error> {
    schema::tune_writer(connection, false, options.durability, options.secure_delete)?;
    let is_oversized = schema::limit_pages(connection, &options.quota)?;
    Ok((schema::chunk_bytes(connection)?, is_oversized))
}

/// Creates a fresh database, or prepares an existing one. Returns its chunk size, and whether it exceeds its quota.
///
/// A process that joins others (`left` is absent) finds it prepared.
fn set_up(connection: &Connection, options: &Options, left: Option<&Left>, patience: &Patience) -> Result<(usize, bool), Error> {
    let path = options.path.as_deref();
    let now = || options.clock.now();
    schema::tune_writer(connection, path.is_some(), options.durability, options.secure_delete)?;
    if path.is_none() {
        schema::begin_at(connection, now())?;
    } else if refuse(schema::inspect(connection)?, path)? {
        schema::use_log(connection)?;
        schema::create(connection, now())?;
    } else if let Some(left) = left {
        patience.refill();
        // An export uses the plain journal mode, as does a file that another tool has changed.
        schema::use_log(connection)?;
        if left.unclean {
            schema::quick_check(connection)?;
        }
        schema::migrations::upgrade(connection)?;
        connection.execute_batch(format::SESSIONS)?;
        connection.execute_batch(format::USAGE)?;
        schema::after_visit(connection, now())?;
        if let Some(note) = &left.note {
            calls::recover(connection, note, now())?;
        }
    }
    let is_oversized = schema::limit_pages(connection, &options.quota)?;
    if path.is_some() {
        schema::limit_log(connection)?;
    }
    Ok((schema::chunk_bytes(connection)?, is_oversized))
}
