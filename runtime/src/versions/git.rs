//! Versions as commits: exports a sandbox to a git repository, and imports a git repository as versions.
//!
//! Objects, packs and bundles are in the crate `git`; this module converts versions to commits (`export.rs`) and back
//! (`import.rs`).

mod export;
mod import;

use std::path::Path;

use git::{Id, Signature};
use serde_json::{Value, json};

use super::LoggedVersion;
use crate::history::Run;

pub use export::{GitExport, GitExported, GitForm};
pub use import::{GitImport, GitImported};

/// The name of an imported commit's history row.
pub(super) const IMPORTED: &str = "git_import";

/// The author of a commit if the history has none: runs have no author.
const AUTHOR: (&str, &str) = ("Sandlite", "sandlite@localhost");

/// Maximum size of a message.
const MESSAGE_BYTES: usize = 64 << 10;

/// A version as a commit.
struct Described {
    author: Signature,
    committer: Signature,
    message: String,
}

/// The row of an imported commit contains its author, date and message.
fn parameters_of(id: Id, commit: &git::Commit) -> Value {
    let git::Commit { author, message, .. } = commit;
    json!({
        "commit": id.to_string(),
        "author": author.name,
        "email": author.email,
        "date": author.seconds,
        "zone": author.zone,
        "message": message,
    })
}

fn imported(run: &Run) -> Option<(Signature, String)> {
    let parameters = run.parameters.as_ref().filter(|_| run.name == IMPORTED)?;
    let word = |key: &str| parameters.get(key).and_then(Value::as_str).map(str::to_owned);
    let zone = word("zone").filter(|zone| zone.len() == 5 && zone.is_ascii()).unwrap_or_else(|| "+0000".to_owned());
    let seconds = parameters.get("date").and_then(Value::as_i64).unwrap_or(0);
    Some((Signature { name: word("author")?, email: word("email")?, seconds, zone }, word("message")?))
}

fn is_imported(run: &Run) -> bool {
    imported(run).is_some()
}

/// A checkpoint as a commit. An imported commit keeps its hash when it is exported again.
fn settle(logged: &LoggedVersion, said: Option<(String, i64)>) -> Described {
    let (author, text) = match (logged.run.as_ref().and_then(imported), said) {
        (Some(imported), _) => imported,
        (None, Some((text, seconds))) => (signature(seconds), text),
        (None, None) => (signature(logged.version.time / 1_000_000_000), format!("Version {}", logged.version.number)),
    };
    Described { committer: author.clone(), author, message: format!("{}\n", shortened(&text)) }
}

fn shortened(text: &str) -> String {
    let mut message = text.trim().to_owned();
    if message.len() > MESSAGE_BYTES {
        message.truncate(message.floor_char_boundary(MESSAGE_BYTES));
        message.push('…');
    }
    message
}

fn signature(seconds: i64) -> Signature {
    let (name, email) = AUTHOR;
    Signature { name: name.to_owned(), email: email.to_owned(), seconds, zone: "+0000".to_owned() }
}

fn describe(logged: &LoggedVersion, is_first: bool) -> Described {
    let committer = signature(logged.version.time / 1_000_000_000);
    let number = logged.version.number;
    let run = logged.run.as_ref();
    let (author, text) = match run.and_then(imported) {
        Some((author, message)) => (author, message),
        None => {
            let text = match (logged.made_by(), run) {
                ("run", Some(run)) if !run.command.trim().is_empty() => run.command.clone(),
                ("outside", _) => format!("Changes by another program (version {number})"),
                _ if is_first => format!("State at version {number}"),
                _ => format!("Version {number}"),
            };
            (committer.clone(), text)
        }
    };
    let mut message = shortened(&text);
    message.push('\n');
    if let Some(run) = run {
        message.push('\n');
        if let Some(code) = run.exit_code {
            message += &format!("Exit-Status: {code}\n");
        }
        message += &format!("Sandlite-Run: {}\n", run.id);
    }
    Described { author, committer, message }
}

impl GitForm {
    /// Returns the form for a path: a bundle for `x.bundle`, a bare repository for `x.git`, else one with a working tree.
    #[must_use]
    pub fn of(path: &Path) -> Self {
        match path.extension().and_then(|extension| extension.to_str()) {
            Some("bundle") => Self::Bundle,
            Some("git") => Self::Bare,
            _ => Self::Repository,
        }
    }
}
