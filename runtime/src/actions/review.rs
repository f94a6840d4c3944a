//! `changes` and `apply`: reviewing the changes of the sandbox, and applying them to a directory on this machine.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::Deserialize;

use super::versions::{Differences, absolute};
use super::{Answer, Context, Request};
use crate::Error;
use crate::versions::{Applied, Apply as Applying};

/// Maximum number of paths listed in a text.
const NAMED: usize = 1000;

/// Selects the changes to show.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ListChanges {
    /// A version: a run's number, `HEAD~3`, a checkpoint, `@{2 hours ago}`. Defaults to the directories that are mounted as
    /// overlays, else to the state before the first run.
    pub since: Option<String>,
    /// Show only these paths and everything below them.
    pub paths: Vec<String>,
    /// Return only names and sizes, without the differing lines.
    pub names_only: bool,
}

impl Request for ListChanges {
    type Data = Differences;

    fn run(self, context: &Context) -> Result<Answer, Error> {
        let paths = absolute(context, &self.paths)?;
        let versions = context.sandbox().versions();
        let compared = versions.changes_until(self.since.as_deref(), &paths, context.cancel())?;
        let differences = Differences::new(&compared, !self.names_only);
        Ok(Answer::new(differences.render(), &differences))
    }
}

/// Selects the changes to apply to a directory on this machine.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Apply {
    /// The directory on this machine.
    pub directory: PathBuf,
    /// The version since which changes are applied; defaults to the directory that is mounted as an overlay, else to the state
    /// before the first run.
    #[serde(default)]
    pub since: Option<String>,
    /// The corresponding directory in the sandbox; defaults to the overlay mount if there is exactly one, else to `/`.
    #[serde(default)]
    pub path: Option<String>,
    /// Return the changes and conflicts without applying anything.
    #[serde(default)]
    pub dry_run: bool,
}

impl Request for Apply {
    type Data = Applied;

    fn run(self, context: &Context) -> Result<Answer, Error> {
        let Self { directory, since, path, dry_run } = self;
        let apply = Applying { since, path, dry_run };
        let applied = context.sandbox().versions().apply_until(&directory, &apply, context.cancel())?;
        Ok(Answer::new(render(&applied), &applied))
    }
}

fn render(applied: &Applied) -> String {
    let mut lines: Vec<String> =
        applied.files.iter().take(NAMED).map(|file| format!("{} {}", file.kind.mark(), file.path)).collect();
    if applied.files.len() > NAMED {
        lines.push(format!("and {} more", applied.files.len() - NAMED));
    }
    lines.extend(applied.conflicts.iter().take(NAMED).map(|one| format!("conflict: {} ({})", one.path, one.reason)));
    lines.extend(applied.left_out.iter().take(NAMED).map(|one| format!("skipped: {} ({})", one.path, one.reason)));
    if applied.files.is_empty() && applied.conflicts.is_empty() {
        lines.push("nothing to apply".to_owned());
    }
    lines.join("\n")
}
