//! `write_file`: a whole file, if it is still the one that was read.

use std::borrow::Cow;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::Agent;
use crate::Error;
use crate::vfs::content;

/// How content is written down.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Encoding {
    /// As it is.
    #[default]
    Text,
    /// Bytes, in base64.
    Base64,
}

impl Encoding {
    /// The bytes of a content that is written down like this.
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

/// What to write where.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WriteFile {
    /// The file; the directories above it are created. Relative paths start in the sandbox's working directory.
    pub path: String,
    /// The whole new content.
    pub content: String,
    /// Whether `content` is text or base64.
    #[serde(default)]
    pub encoding: Encoding,
    /// Write only if the file still has this version, as `read_file` gave it; `none`: only if there is no such file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expected_version: Option<String>,
}

impl WriteFile {
    /// Writes text, whatever was there.
    #[must_use]
    pub fn text(path: impl Into<String>, content: impl Into<String>) -> Self {
        Self { path: path.into(), content: content.into(), ..Self::default() }
    }
}

/// What was written.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Written {
    /// The file.
    pub path: String,
    /// Whether it is new.
    pub created: bool,
    /// Its bytes.
    pub size: u64,
    /// Its version now.
    pub version: String,
}

impl Agent<'_> {
    /// Writes a whole file.
    ///
    /// # Errors
    ///
    /// [`Error::Stale`] when the file has another version than expected; when the path is a directory or the quota is used up.
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
    /// One line for a model.
    #[must_use]
    pub fn render(&self) -> String {
        let verb = if self.created { "created" } else { "wrote" };
        format!("{verb} {} ({} bytes, version {})", self.path, self.size, self.version)
    }
}
