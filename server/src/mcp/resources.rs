//! Files as resources: `sandlite:///path`, of the main sandbox.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rmcp::ErrorData;
use rmcp::model::{
    ListResourceTemplatesResult, ListResourcesResult, MetaObject, ReadResourceResult, Resource, ResourceContents,
    ResourceTemplate,
};
use runtime::actions::{quoted, shortened};
use runtime::{FsError, Sandbox};

use super::Service;

const SCHEME: &str = "sandlite://";
/// Maximum size of a resource.
const LARGEST: u64 = 1 << 20;

/// The key of notes about directories that cannot be read, in the metadata of a page.
const NOTES: &str = "sandlite/notes";

/// Maximum length of an error text.
const COMPLAINT: usize = 4 << 10;

/// Returns the URI of a file.
pub(super) fn uri_of(path: &str) -> String {
    let mut uri = SCHEME.to_owned();
    for byte in path.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'/' | b'.' | b'-' | b'_' | b'~' => uri.push(char::from(byte)),
            _ => uri.push_str(&format!("%{byte:02X}")),
        }
    }
    uri
}

/// Returns the path in a URI.
pub(super) fn path_of(uri: &str) -> Option<String> {
    let path = uri.strip_prefix(SCHEME)?;
    let mut bytes = Vec::with_capacity(path.len());
    let mut rest = path.bytes();
    while let Some(byte) = rest.next() {
        if byte == b'%' {
            let (high, low) = (char::from(rest.next()?).to_digit(16)?, char::from(rest.next()?).to_digit(16)?);
            bytes.push(u8::try_from(high * 16 + low).ok()?);
        } else {
            bytes.push(byte);
        }
    }
    String::from_utf8(bytes).ok().filter(|path| path.starts_with('/') && !path.contains('\0'))
}

/// Returns the URI template.
pub(super) fn templates() -> ListResourceTemplatesResult {
    let template = ResourceTemplate::new("sandlite://{+path}", "file")
        .with_title("A file in the sandbox")
        .with_description("The content of a file in the main sandbox, by absolute path");
    ListResourceTemplatesResult::with_all_items(vec![template])
}

/// Returns a page of files.
pub(super) async fn list(service: &Service, cursor: Option<String>) -> Result<ListResourcesResult, ErrorData> {
    let sandbox = service.sandboxes().main().clone();
    blocking(service, move || {
        let after = match cursor {
            None => None,
            Some(cursor) => Some(path_of(&cursor).ok_or_else(|| ErrorData::invalid_params("invalid cursor", None))?),
        };
        let page = sandbox.fs().page(after.as_deref()).map_err(internal)?;
        let next = page.files.last().filter(|_| page.more).map(|(path, _)| uri_of(path));
        let resources = page.files.iter().map(|(path, size)| resource(path, *size)).collect();
        let mut answer = ListResourcesResult::with_all_items(resources);
        answer.next_cursor = next;
        if !page.notes.is_empty() {
            let mut meta = MetaObject::new();
            meta.0.insert(NOTES.to_owned(), page.notes.into());
            answer.meta = Some(meta);
        }
        Ok(answer)
    })
    .await
}

fn resource(path: &str, size: u64) -> Resource {
    let name = path.rsplit('/').next().unwrap_or(path);
    Resource::new(uri_of(path), name).with_title(path).with_size(size).with_mime_type(mime_type(path))
}

/// Returns the content of a file.
pub(super) async fn read(service: &Service, uri: &str) -> Result<ReadResourceResult, ErrorData> {
    let Some(path) = path_of(uri) else {
        return Err(ErrorData::resource_not_found(format!("invalid URI `{}`: expected sandlite:///path", quoted(uri)), None));
    };
    let (sandbox, uri) = (service.sandboxes().main().clone(), uri.to_owned());
    blocking(service, move || {
        let content = content(&sandbox, &path, &uri)?;
        let contents = match String::from_utf8(content) {
            Ok(text) if !text.contains('\0') => ResourceContents::text(text, uri).with_mime_type(mime_type(&path)),
            Ok(text) => ResourceContents::blob(STANDARD.encode(text), uri).with_mime_type("application/octet-stream"),
            Err(error) => {
                ResourceContents::blob(STANDARD.encode(error.as_bytes()), uri).with_mime_type("application/octet-stream")
            }
        };
        Ok(ReadResourceResult::new(vec![contents]))
    })
    .await
}

fn content(sandbox: &Sandbox, path: &str, uri: &str) -> Result<Vec<u8>, ErrorData> {
    let failed = |error: runtime::Error| match error.fs_error() {
        Some(FsError::NoEntry | FsError::NotDirectory) => {
            ErrorData::resource_not_found(format!("unknown resource `{}`", quoted(uri)), None)
        }
        Some(_) => ErrorData::invalid_params(shortened(error.to_string(), COMPLAINT), None),
        None => internal(error),
    };
    let size = sandbox.fs().metadata(path).map_err(failed)?.size;
    if size > LARGEST {
        let text = format!("`{}` has {size} bytes: read it in parts with the tool `read_file`", quoted(path));
        return Err(ErrorData::invalid_params(text, None));
    }
    sandbox.fs().read(path).map_err(failed)
}

// No content type is guessed that a client would render: a web page from the sandbox stays text (T-NET-07).
fn mime_type(path: &str) -> &'static str {
    match path.rsplit_once('.').map(|(_, extension)| extension) {
        Some("json") => "application/json",
        Some("md") => "text/markdown",
        Some("csv") => "text/csv",
        Some("png") => "image/png",
        Some("jpg" | "jpeg") => "image/jpeg",
        Some("gz" | "zip" | "tar" | "xz" | "db" | "bin" | "whl" | "pdf") => "application/octet-stream",
        _ => "text/plain",
    }
}

fn internal(error: runtime::Error) -> ErrorData {
    ErrorData::internal_error(shortened(error.to_string(), COMPLAINT), None)
}

async fn blocking<T: Send + 'static>(
    service: &Service,
    work: impl FnOnce() -> Result<T, ErrorData> + Send + 'static,
) -> Result<T, ErrorData> {
    let _place = service.running().place().await;
    tokio::task::spawn_blocking(work).await.unwrap_or_else(|_| Err(ErrorData::internal_error("the call was aborted", None)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_and_paths_go_both_ways() {
        for path in ["/a/b.txt", "/with space", "/ümlaut%41", "/a?b#c"] {
            assert_eq!(path_of(&uri_of(path)).as_deref(), Some(path));
        }
        assert_eq!(uri_of("/a b"), "sandlite:///a%20b");
    }

    #[test]
    fn an_invalid_address_of_a_file_is_rejected() {
        for uri in ["file:///etc/passwd", "sandlite://host/x", "sandlite:///%zz", "sandlite:///%00", "sandlite:///%ff", ""] {
            assert_eq!(path_of(uri), None, "{uri}");
        }
    }
}
