//! `export_snapshot`, `import_snapshot`, `fork`, `list_sandboxes` and `drop_sandbox`.

#![expect(clippy::disallowed_methods, reason = "a snapshot leaves and arrives as a file")]

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use runtime::actions::{Action, Answer, Effect, Permission, Request};
use runtime::{Error, Sandbox};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::super::sandboxes::Named;
use super::Place;

/// The actions that need several sandboxes.
pub(super) static ACTIONS: [Action<Place>; 5] = [
    Action::new::<Export>("export_snapshot", "Save everything", EXPORT, Effect::Adds, Permission::Snapshots),
    Action::new::<Import>("import_snapshot", "Open a snapshot", IMPORT, Effect::Adds, Permission::Snapshots),
    Action::new::<Fork>("fork", "Fork the sandbox", FORK, Effect::Adds, Permission::Snapshots),
    Action::new::<List>("list_sandboxes", "List the sandboxes", LIST, Effect::Reads, Permission::Snapshots),
    Action::new::<Drop>("drop_sandbox", "Drop a sandbox", DROP, Effect::Changes, Permission::Snapshots),
];

const EXPORT: &str = "Saves everything (files, values, history) as a named snapshot; with `inline` it also returns the bytes.";
const IMPORT: &str = "Opens a snapshot as another sandbox and returns its name; pass it as `sandbox` to the other tools. The current sandbox is not changed.";
const FORK: &str = "Creates an independent copy of the sandbox and returns its name; pass it as `sandbox` to the other tools. \
Forks are deleted when the server exits; keep one with export_snapshot.";

const LIST: &str = "Lists the sandboxes: `main`, forks and opened snapshots.";
const DROP: &str = "Deletes a fork or an opened snapshot with all its content. `main` cannot be deleted.";

/// Maximum size of a snapshot that is returned inline.
const INLINE: u64 = 8 << 20;

/// Options for saving a snapshot.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Export {
    /// The name: A-Z a-z 0-9 _ -; generated if omitted.
    #[serde(default)]
    name: Option<String>,
    /// Also return its bytes as base64, if they are at most 8 MB.
    #[serde(default)]
    inline: bool,
    /// Save this version instead of the current state: a run's number, HEAD~3, a checkpoint, @{2 hours ago}.
    #[serde(default)]
    at: Option<String>,
}

/// A saved snapshot.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Exported {
    /// The name, for `import_snapshot`.
    name: String,
    /// The size, in bytes.
    size: u64,
    /// Whether the snapshot still exists after the server exits.
    kept: bool,
    /// The bytes in base64, if requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    content: Option<String>,
}

impl Request<Place> for Export {
    type Data = Exported;

    fn run(self, place: &Place) -> Result<Answer, Error> {
        Ok(export(&self, place).unwrap_or_else(|refused| refused))
    }
}

fn export(request: &Export, place: &Place) -> Result<Answer, Answer> {
    let sandboxes = place.service.sandboxes();
    let sandbox = of_version(place, request.at.as_deref())?;
    let (name, path) = sandboxes.new_snapshot(request.name.as_deref())?;
    sandbox.export(&path)?;
    let size = std::fs::metadata(&path).map_or(0, |metadata| metadata.len());
    let content = if request.inline && size <= INLINE { std::fs::read(&path).ok().map(|b| STANDARD.encode(b)) } else { None };
    let kept = sandboxes.keeps_snapshots();
    let mut text = format!("saved as {name} ({size} bytes)");
    if !kept {
        text.push_str("\n[deleted when the server exits: start the server with --db or --snapshots to keep snapshots]");
    }
    if request.inline && content.is_none() {
        text.push_str("\n[too large to return inline]");
    }
    let bytes = content.as_ref().map_or(0, String::len);
    Ok(Answer::with_bytes(bytes, text, &Exported { name, size, kept, content }))
}

// The sandbox, or one of its versions.
fn of_version(place: &Place, at: Option<&str>) -> Result<Sandbox, Error> {
    let sandbox = &place.named.sandbox;
    at.map_or_else(|| Ok(sandbox.clone()), |at| sandbox.at(at))
}

/// Selects the snapshot to open.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Import {
    /// The name of a saved snapshot.
    #[serde(default)]
    snapshot: Option<String>,
    /// Alternatively, the bytes of a snapshot in base64 (from Sandlite, AgentFS or LocalSandbox).
    #[serde(default)]
    content: Option<String>,
    /// The name of the new sandbox; generated if omitted.
    #[serde(default)]
    name: Option<String>,
    /// Replace an existing sandbox with that name.
    #[serde(default)]
    replace: bool,
}

/// A sandbox that is ready to use.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Opened {
    /// The name: pass it as `sandbox` to the other tools.
    sandbox: String,
    /// Parts of the snapshot that were omitted or changed.
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

impl Request<Place> for Import {
    type Data = Opened;

    fn run(self, place: &Place) -> Result<Answer, Error> {
        Ok(import(&self, place).unwrap_or_else(|refused| refused))
    }
}

fn import(request: &Import, place: &Place) -> Result<Answer, Answer> {
    let sandboxes = place.service.sandboxes();
    let named = match (&request.snapshot, &request.content) {
        (Some(snapshot), None) => sandboxes.import(&sandboxes.snapshot(snapshot)?, request.name.as_deref(), request.replace)?,
        (None, Some(content)) => {
            let bytes = STANDARD
                .decode(content.trim_ascii())
                .map_err(|error| Answer::error(format!("error: invalid base64 in `content`: {error}")))?;
            let path = sandboxes.new_file("upload")?;
            let result = match std::fs::write(&path, bytes) {
                Ok(()) => sandboxes.import(&path, request.name.as_deref(), request.replace),
                Err(error) => Err(Answer::error(format!("error: cannot store the content: {error}"))),
            };
            let _ = std::fs::remove_file(&path);
            result?
        }
        _ => return Err(Answer::error("error: expected either `snapshot` or `content`")),
    };
    Ok(Opened::answer(&named))
}

/// Options for a fork.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Fork {
    /// The name of the fork: A-Z a-z 0-9 _ -; generated if omitted.
    #[serde(default)]
    name: Option<String>,
    /// Replace an existing sandbox with that name.
    #[serde(default)]
    replace: bool,
    /// Copy this version instead of the current state: a run's number, HEAD~3, a checkpoint, @{2 hours ago}.
    #[serde(default)]
    at: Option<String>,
}

impl Request<Place> for Fork {
    type Data = Opened;

    fn run(self, place: &Place) -> Result<Answer, Error> {
        let sandbox = of_version(place, self.at.as_deref())?;
        let fork = place.service.sandboxes().fork(&sandbox, self.name.as_deref(), self.replace);
        Ok(fork.map_or_else(|refused| refused, |fork| Opened::answer(&fork)))
    }
}

/// No arguments.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct List {}

/// The sandboxes.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Listed {
    /// Their names, to be passed as `sandbox` to the other tools; `main` first.
    sandboxes: Vec<String>,
}

impl Request<Place> for List {
    type Data = Listed;

    fn run(self, place: &Place) -> Result<Answer, Error> {
        let sandboxes = place.service.sandboxes().names();
        Ok(Answer::new(sandboxes.join("\n"), &Listed { sandboxes }))
    }
}

/// Selects the sandbox to delete.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Drop {
    /// The name, as returned by `fork`, `import_snapshot` or `list_sandboxes`.
    name: String,
}

/// A deleted sandbox.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Dropped {
    /// Its former name.
    dropped: String,
}

impl Request<Place> for Drop {
    type Data = Dropped;

    fn run(self, place: &Place) -> Result<Answer, Error> {
        let dropped = place.service.sandboxes().drop(&self.name);
        Ok(dropped
            .map_or_else(|refused| refused, |()| Answer::new(format!("dropped {}", self.name), &Dropped { dropped: self.name })))
    }
}
