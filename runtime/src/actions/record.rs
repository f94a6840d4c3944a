//! `record`: a step of the embedding program, as a row of the history.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Answer, Context, Request};
use crate::Error;

/// The step to record.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Record {
    /// The kind of step: 1 to 64 of a–z, 0–9 and _.
    pub name: String,
    /// A one-line summary.
    #[serde(default)]
    pub about: String,
    /// The content, stored as the output of the row: at most 8 MB.
    #[serde(default)]
    pub content: String,
}

/// A row of the history.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Recorded {
    /// Its number.
    pub run: i64,
}

impl Request for Record {
    type Data = Recorded;

    fn run(self, context: &Context) -> Result<Answer, Error> {
        let run = context.sandbox().record(&self.name, &self.about, &self.content)?;
        Ok(Answer::new(format!("recorded as {run}"), &Recorded { run }))
    }
}
