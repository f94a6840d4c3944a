//! `update`: an overlay over a database is moved onto a newer version of it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Answer, Context, Request};
use crate::{Error, Side};

/// Which side counts where both have changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Keep {
    /// The sandbox's own changes.
    Ours,
    /// The newer version.
    Theirs,
}

/// What to move, and where.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Update {
    /// Where the overlay is: `/` for the base of the whole sandbox.
    #[serde(default = "root")]
    pub path: String,
    /// The version of the database below: a run's number, a checkpoint, `HEAD`; defaults to the newest.
    #[serde(default)]
    pub to: Option<String>,
    /// What counts where both sides have changed a path; defaults to reporting those paths and changing nothing.
    #[serde(default)]
    pub keep: Option<Keep>,
}

fn root() -> String {
    "/".to_owned()
}

/// What was moved.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Updated {
    /// Where the overlay is.
    pub path: String,
    /// The version that it was on.
    pub from: String,
    /// The version that it is on.
    pub to: String,
    /// Files, links and removed paths of the sandbox's own.
    pub changes: u64,
    /// Paths that both sides had changed.
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
        let updated = Updated {
            path: self.path,
            from: format!("v{}", done.from),
            to: format!("v{}", done.to),
            changes: done.changes as u64,
            conflicts: done.conflicts,
        };
        let mut text = format!("{}: {} -> {}, {} own changes", updated.path, updated.from, updated.to, updated.changes);
        for path in &updated.conflicts {
            text.push_str(&format!("\nC {path}"));
        }
        Ok(Answer::new(text, &updated))
    }
}
