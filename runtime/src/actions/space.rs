//! `compact`: returns free space to the disk.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Answer, Context, Request};
use crate::{Error, Sandbox};

/// Takes no arguments.
#[derive(Clone, Copy, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Compact {}

/// The size of the database.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Compacted {
    /// The size before, in bytes.
    pub before_bytes: u64,
    /// The size after, in bytes.
    pub after_bytes: u64,
    /// Bytes of earlier versions, which remain until they are pruned.
    pub past_bytes: u64,
}

impl Compact {
    /// Compacts the database.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`Sandbox::compact`].
    pub fn compact(self, sandbox: &Sandbox) -> Result<Compacted, Error> {
        let (before_bytes, after_bytes) = sandbox.compact()?;
        Ok(Compacted { before_bytes, after_bytes, past_bytes: sandbox.info()?.past_used })
    }
}

impl Request for Compact {
    type Data = Compacted;

    fn run(self, context: &Context) -> Result<Answer, Error> {
        let compacted = self.compact(context.sandbox())?;
        let Compacted { before_bytes, after_bytes, past_bytes } = compacted;
        let text = format!("{before_bytes} bytes before, {after_bytes} after, {past_bytes} of them earlier versions");
        Ok(Answer::new(text, &compacted))
    }
}
