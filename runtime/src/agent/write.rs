//! `write_file`: writes a whole file, if it has not changed since it was read.

use std::borrow::Cow;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::Agent;
use crate::Error;
use crate::vfs::content;

/// The encoding of content.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Encoding {
    /// Plain text.
    #[default]
    Text,
    /// Bytes in base64.
    Base64,
}

impl Encoding {
    /// Decodes content.
    pub(crate) fn decode(self, content: &str) -> Result<Cow<'_, [u8]>, Error> {
        match self {
            Self::Text => Ok(Cow::Borrowed(content.as_bytes())),
            Self::Base64 => STANDARD
                .decode(content.trim_ascii())
                .map(Cow::Owned)
                .map_err(|error| Error::Invalid(format!("invalid base64 content: {error}"))),
        }
    }
}

/// Selects what to write.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WriteFile {
    /// The file; missing parent directories are created. Relative paths start in the sandbox's working directory.
    pub path: String,
    /// The whole new content.
    pub content: String,
    /// Whether `content` is text or base64.
    #[serde(default)]
    pub encoding: Encoding,
    /// Write only if the file still has this version, as returned by `read_file`; `none`: only if the file does not exist.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expected_version: Option<String>,
}

impl WriteFile {
    /// Creates a request that writes text unconditionally.
    #[must_use]
    pub fn text(path: impl Into<String>, content: impl Into<String>) -> Self {
        Self { path: path.into(), content: content.into(), ..Self::default() }
    }
}

/// The result of a write.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Written {
    /// The file.
    pub path: String,
    /// Whether it is new.
    pub created: bool,
    /// Its size, in bytes.
    pub size: u64,
    /// The new version.
    pub version: String,
}

impl Agent<'_> {
    /// Writes a whole file.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Stale`] if the file has another version than expected, and an error if the path is a directory or the
    /// quota is exhausted.
    pub fn write(&self, request: &WriteFile) -> Result<Written, Error> {
        let path = self.absolute(&request.path)?;
        let bytes: &[u8] = &request.encoding.decode(&request.content)?;
        let parameters = json!({ "path": path, "contentLength": bytes.len() });
        self.changing("write_file", &path, parameters, |files| {
            if let Some(expected) = &request.expected_version {
                content::expect(files.view(), &path, expected)?;
            }
            let created = files.write(&path, bytes)?;
            Ok(Written { path: path.clone(), created, size: bytes.len() as u64, version: content::version(bytes) })
        })
    }
}

impl Written {
    /// Formats one line for a model.
    #[must_use]
    pub fn render(&self) -> String {
        let verb = if self.created { "created" } else { "wrote" };
        format!("{verb} {} ({} bytes, version {})", self.path, self.size, self.version)
    }
}
