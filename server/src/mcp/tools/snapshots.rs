//! `export_snapshot`, `import_snapshot` and `fork`.

#![expect(clippy::disallowed_methods, reason = "a snapshot leaves and arrives as a file")]

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rmcp::model::JsonObject;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::super::Service;
use super::super::answer::Answer;
use super::super::sandboxes::Named;
use super::{on_a_thread, parse};

/// The largest snapshot whose bytes are part of an answer.
const INLINE: u64 = 8 << 20;

/// How to save a snapshot.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Export {
    /// Its name: A-Z a-z 0-9 _ -; made up unless told.
    #[serde(default)]
    name: Option<String>,
    /// Also return its bytes as base64, if they are at most 8 MB.
    #[serde(default)]
    inline: bool,
}

/// A saved snapshot.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Exported {
    /// Its name, for `import_snapshot`.
    name: String,
    /// Its bytes.
    size: u64,
    /// Whether it is still there when the server has ended.
    kept: bool,
    /// The bytes in base64, if asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    content: Option<String>,
}

pub(super) async fn export(service: &Service, named: Arc<Named>, arguments: JsonObject) -> Answer {
    let request: Export = match parse(arguments) {
        Ok(request) => request,
        Err(answer) => return answer,
    };
    let owned = service.clone();
    on_a_thread(service, move || {
        let (name, path) = owned.sandboxes().new_snapshot(request.name.as_deref())?;
        named.sandbox.export(&path)?;
        let size = std::fs::metadata(&path).map_or(0, |metadata| metadata.len());
        let content = if request.inline && size <= INLINE { std::fs::read(&path).ok().map(|b| STANDARD.encode(b)) } else { None };
        let kept = owned.sandboxes().keeps_snapshots();
        let mut text = format!("saved as {name} ({size} bytes)");
        if !kept {
            text.push_str("\n[it is gone when the server ends: start it with --db or --snapshots to keep snapshots]");
        }
        if request.inline && content.is_none() {
            text.push_str("\n[too large to be returned here]");
        }
        let bytes = content.as_ref().map_or(0, String::len);
        Ok(Answer::with_bytes(bytes, text, &Exported { name, size, kept, content }))
    })
    .await
}

/// Which snapshot to open.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Import {
    /// The name of a saved snapshot.
    #[serde(default)]
    snapshot: Option<String>,
    /// Instead: the bytes of a snapshot in base64 (Sandlite's, AgentFS's or LocalSandbox's).
    #[serde(default)]
    content: Option<String>,
    /// The new sandbox's name; made up unless told.
    #[serde(default)]
    name: Option<String>,
    /// Replace a sandbox of that name.
    #[serde(default)]
    replace: bool,
}

/// A sandbox that can be used now.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Opened {
    /// Its name: give it as `sandbox` to the other tools.
    sandbox: String,
    /// What of the snapshot was left out or changed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    notes: Vec<String>,
}

impl Opened {
    fn answer(named: &Named) -> Answer {
        let mut text = format!("use it with sandbox=\"{}\"", named.name);
        let notes = named.sandbox.import_notes().to_vec();
        for note in &notes {
            text.push_str(&format!("\n[{note}]"));
        }
        Answer::new(text, &Self { sandbox: named.name.clone(), notes })
    }
}

pub(super) async fn import(service: &Service, arguments: JsonObject) -> Answer {
    let request: Import = match parse(arguments) {
        Ok(request) => request,
        Err(answer) => return answer,
    };
    let owned = service.clone();
    on_a_thread(service, move || {
        let sandboxes = owned.sandboxes();
        let named = match (&request.snapshot, &request.content) {
            (Some(snapshot), None) => {
                sandboxes.import(&sandboxes.snapshot(snapshot)?, request.name.as_deref(), request.replace)?
            }
            (None, Some(content)) => {
                let bytes = STANDARD
                    .decode(content.trim_ascii())
                    .map_err(|error| Answer::error(format!("error: the content is not base64: {error}")))?;
                let path = sandboxes.new_file("upload")?;
                let written = std::fs::write(&path, bytes);
                let result = match written {
                    Ok(()) => sandboxes.import(&path, request.name.as_deref(), request.replace),
                    Err(error) => Err(Answer::error(format!("error: the content cannot be stored: {error}"))),
                };
                let _ = std::fs::remove_file(&path);
                result?
            }
            _ => return Err(Answer::error("error: give either `snapshot` or `content`")),
        };
        Ok(Opened::answer(&named))
    })
    .await
}

/// How to fork.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Fork {
    /// The fork's name: A-Z a-z 0-9 _ -; made up unless told.
    #[serde(default)]
    name: Option<String>,
    /// Replace a sandbox of that name.
    #[serde(default)]
    replace: bool,
}

pub(super) async fn fork(service: &Service, named: Arc<Named>, arguments: JsonObject) -> Answer {
    let request: Fork = match parse(arguments) {
        Ok(request) => request,
        Err(answer) => return answer,
    };
    let owned = service.clone();
    on_a_thread(service, move || {
        let fork = owned.sandboxes().fork(&named.sandbox, request.name.as_deref(), request.replace)?;
        Ok(Opened::answer(&fork))
    })
    .await
}
