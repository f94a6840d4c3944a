//! `update`: moves an overlay over a database or a repository onto a newer version of it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Answer, Context, Request};
use crate::{Error, Side};

/// The side that wins a conflict.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Keep {
    /// The sandbox's own changes.
    Ours,
    /// The newer version.
    Theirs,
}

/// Selects the overlay and the version.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Update {
    /// The path of the overlay: `/` for the base of the whole sandbox.
    #[serde(default = "root")]
    pub path: String,
    /// The version of the underlying database: a run's number, a checkpoint, `HEAD`; for a git repository a commit, a branch or a
    /// tag. Defaults to the newest.
    #[serde(default)]
    pub to: Option<String>,
    /// The side that wins if both changed a path; by default such paths are reported and nothing is changed.
    #[serde(default)]
    pub keep: Option<Keep>,
}

fn root() -> String {
    "/".to_owned()
}

/// The result of an update.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Updated {
    /// The path of the overlay.
    pub path: String,
    /// The previous version.
    pub from: String,
    /// The new version.
    pub to: String,
    /// Number of the sandbox's own files, links and removed paths.
    pub changes: u64,
    /// Paths that both sides changed.
    pub conflicts: Vec<String>,
}

impl Request for Update {
    type Data = Updated;

    fn run(self, context: &Context) -> Result<Answer, Error> {
        let side = self.keep.map(|keep| match keep {
            Keep::Ours => Side::Ours,
            Keep::Theirs => Side::Theirs,
        });
        let done = context.sandbox().update_until(&self.path, self.to.as_deref(), side, context.cancel())?;
        let (from, to) = done.commits.unwrap_or_else(|| (format!("v{}", done.from), format!("v{}", done.to)));
        let updated = Updated { path: self.path, from, to, changes: done.changes as u64, conflicts: done.conflicts };
        let mut text = format!("{}: {} -> {}, {} own changes", updated.path, updated.from, updated.to, updated.changes);
        for path in &updated.conflicts {
            text.push_str(&format!("\nC {path}"));
        }
        Ok(Answer::new(text, &updated))
    }
}
