//! Artifacts: the files that a run left, as rows of `/v1/files` and as one archive under an address that works for a while without a key.
//!
//! The archive is made when it is fetched: nothing is stored twice, and a file that was deleted is not in it.

use std::io::{self, Read as _, Write};
use std::sync::Arc;

use ::skills::RunResult;
use axum::Extension;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use axum::response::Response;
use flate2::Compression;
use flate2::write::GzEncoder;
use http::HeaderMap;
use http::header::HOST;
use serde::Deserialize;

use super::pieces::{self, Pieces};
use super::{body, files, store};
use crate::http::only;
use crate::listener::Place;
use crate::serve::app::{App, Tenant};
use crate::serve::catalog::{FileRow, new_id};
use crate::serve::clock::now;
use crate::serve::path::Path;
use crate::serve::problem::Problem;
use crate::serve::sandboxes::Download;

/// The address of an archive.
pub(super) const ROUTE: &str = "/artifacts/{id}/files.tar.gz";
/// A block of a tar archive.
const BLOCK: usize = 512;
/// Longest name in a plain header.
const NAME_BYTES: usize = 100;

/// How clients reach the server: as the settings say, or as this request did, whose host was checked.
pub(super) fn base_url(app: &App, headers: &HeaderMap) -> String {
    app.config()
        .public_url
        .clone()
        .unwrap_or_else(|| format!("{}://{}", app.config().scheme(), only(headers, &HOST).unwrap_or("localhost")))
}

fn signed(id: &str, expires: i64) -> String {
    format!("artifacts\n{id}\n{expires}")
}

/// An address of an execution's files that works for a while and needs no key.
pub(super) fn url(app: &App, base: &str, id: &str) -> String {
    let time = i64::try_from(app.config().artifact_time.as_millis()).unwrap_or(i64::MAX);
    let expires = now().saturating_add(time);
    format!("{base}/artifacts/{id}/files.tar.gz?expires={expires}&signature={}", app.sign(&signed(id, expires)))
}

/// Keeps the files that a run left; returns their names.
pub(super) fn keep(app: &App, tenant: &Tenant, execution: &str, result: &RunResult) -> Result<Vec<String>, Problem> {
    store::require_room(app, &tenant.name, result.files.iter().map(|file| file.size).sum())?;
    let mut rows = Vec::with_capacity(result.files.len());
    for file in &result.files {
        let id = new_id();
        let size = store::store(tenant, &id, |to| result.read_to(&file.path, to).map(drop))?;
        let row = FileRow::new(id, &tenant.name, &file.path, files::content_type(&file.path), size);
        rows.push(FileRow { execution: Some(execution.to_owned()), ..row });
    }
    app.catalog().add_files(&rows)?;
    Ok(rows.into_iter().map(|row| row.name).collect())
}

#[derive(Deserialize)]
pub(super) struct Signature {
    expires: i64,
    signature: String,
}

pub(super) async fn download(
    State(app): State<App>,
    Path(id): Path<String>,
    query: Result<Query<Signature>, QueryRejection>,
    place: Option<Extension<Arc<Place>>>,
) -> Result<Response, Problem> {
    let refused = || Problem::forbidden("the address is invalid or has expired: ask for the execution again");
    let Query(query) = query.map_err(|_| refused())?;
    if !app.is_signed(&signed(&id, query.expires), &query.signature) || query.expires <= now() {
        return Err(refused());
    }
    let name = format!("{id}.tar.gz");
    let found = app.blocking(move |app| {
        let Some(tenant) = app.catalog().tenant_of_signed(&id)? else { return Err(Problem::not_found("execution")) };
        Ok((app.tenant(&tenant)?, app.catalog().artifacts(&tenant, &id)?))
    });
    let (tenant, rows) = found.await?;
    // The tenant of a signed address has a share of the connections, like that of a key.
    if place.is_some_and(|Extension(place)| !place.admit(&tenant.name)) {
        return Err(Problem::limited("too many connections at a time", 1));
    }
    // A thread waits for the client: their number per tenant is limited (T-NET-08).
    let counted = Download::begin(&app, &tenant.name)?;
    let archive = pieces::body(move |to| {
        let written = archive(&tenant, &rows, to);
        drop(counted);
        written
    });
    Ok(body::download(&name, archive))
}

// Writes an archive of files: relative names, mode 0644.
fn archive(tenant: &Tenant, rows: &[FileRow], to: &mut Pieces) -> io::Result<()> {
    let mut to = GzEncoder::new(to, Compression::fast());
    for row in rows {
        let file = store::open(tenant, &row.id).map_err(|problem| io::Error::other(problem.message))?;
        let size = u64::try_from(row.size_bytes).unwrap_or(0);
        to.write_all(&headers(&row.name, size, row.created_at / 1000))?;
        let copied = io::copy(&mut file.take(size), &mut to)?;
        if copied != size {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        to.write_all(&padding(size))?;
    }
    to.write_all(&[0; 2 * BLOCK])?;
    to.finish()?;
    Ok(())
}

fn padding(size: u64) -> Vec<u8> {
    let used = usize::try_from(size % BLOCK as u64).unwrap_or(0);
    vec![0; (BLOCK - used) % BLOCK]
}

// The headers of a file: one, or two before it with a name that does not fit (POSIX's pax format).
fn headers(name: &str, size: u64, modified: i64) -> Vec<u8> {
    let modified = u64::try_from(modified).unwrap_or(0);
    if name.len() <= NAME_BYTES && name.is_ascii() {
        return header(name, size, modified, b'0').to_vec();
    }
    let mut length = name.len() + " path=\n".len();
    // The length counts its own digits.
    length += (length + length.to_string().len()).to_string().len();
    let record = format!("{length} path={name}\n");
    let mut headers = header("PaxHeader", record.len() as u64, modified, b'x').to_vec();
    headers.extend(record.as_bytes());
    headers.extend(padding(record.len() as u64));
    headers.extend(header("long-name", size, modified, b'0'));
    headers
}

fn header(name: &str, size: u64, modified: u64, kind: u8) -> [u8; BLOCK] {
    let mut header = [0; BLOCK];
    let mut put = |at: usize, bytes: &[u8]| {
        if let Some(place) = header.get_mut(at..at + bytes.len()) {
            place.copy_from_slice(bytes);
        }
    };
    put(0, name.as_bytes());
    put(100, b"0000644\0");
    put(108, b"0000000\0");
    put(116, b"0000000\0");
    put(124, format!("{size:011o}\0").as_bytes());
    put(136, format!("{modified:011o}\0").as_bytes());
    put(148, b"        ");
    put(156, &[kind]);
    put(257, b"ustar\x0000");
    let sum: u32 = header.iter().map(|byte| u32::from(*byte)).sum();
    if let Some(place) = header.get_mut(148..156) {
        place.copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    }
    header
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_does_not_fit_has_a_record_that_counts_itself() {
        let name = format!("{}/\u{fc}.txt", "d".repeat(120));
        let headers = headers(&name, 5, 0);
        assert_eq!(headers.len(), 3 * BLOCK);
        let record = std::str::from_utf8(&headers[BLOCK..2 * BLOCK]).unwrap().trim_end_matches('\0');
        let (length, path) = record.split_once(' ').unwrap();
        assert_eq!((length.parse(), path), (Ok(record.len()), format!("path={name}\n").as_str()));
        for length in 85..105 {
            let headers = super::headers(&"\u{fc}".repeat(length / 2), 0, 0);
            let record = std::str::from_utf8(&headers[BLOCK..2 * BLOCK]).unwrap().trim_end_matches('\0');
            assert_eq!(record.split_once(' ').unwrap().0.parse(), Ok(record.len()));
        }
    }

    #[test]
    fn a_header_has_the_sum_of_its_bytes() {
        let header = header("a.txt", 511, 0, b'0');
        let mut blank = header;
        blank[148..156].copy_from_slice(b"        ");
        let sum: u32 = blank.iter().map(|byte| u32::from(*byte)).sum();
        assert_eq!(&header[148..156], format!("{sum:06o}\0 ").as_bytes());
        assert_eq!(&header[124..136], b"00000000777\0");
    }
}
