//! `events` and `acknowledge_events`: the changes of each version, for a consumer that resumes where it stopped.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Answer, Context, Request};
use crate::Error;
use crate::versions::EventPage;

/// Maximum duration of a wait for an event.
const LONGEST: f64 = 60.0;

/// Selects the events to list.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Events {
    /// List events after this version; defaults to the version that the consumer acknowledged, or to the oldest version.
    pub after: Option<i64>,
    /// The name of a consumer whose position is stored.
    pub consumer: Option<String>,
    /// List only events at this path or below it.
    pub path: Option<String>,
    /// Wait up to this many seconds, at most 60, if there is no later version.
    pub wait: Option<f64>,
}

impl Request for Events {
    type Data = EventPage;

    fn run(self, context: &Context) -> Result<Answer, Error> {
        let sandbox = context.sandbox();
        let after = match (self.after, &self.consumer) {
            (Some(after), _) => Some(after),
            (None, Some(consumer)) => sandbox.cursor(consumer)?,
            (None, None) => None,
        };
        let path = self.path.as_deref().map(|path| sandbox.agent().absolute(path)).transpose()?;
        if let Some(seconds) = self.wait.filter(|seconds| *seconds > 0.0) {
            let most = Duration::from_secs_f64(seconds.min(LONGEST));
            sandbox.wait_for_version(after.unwrap_or(0), most, &context.cancel())?;
        }
        let page = sandbox.events_after(after, path.as_deref())?;
        let lines = page.events.iter().map(|event| format!("v{} {} {}", event.version, event.kind, event.path));
        let text = lines.collect::<Vec<_>>().join("\n");
        Ok(Answer::new(if text.is_empty() { "no events".to_owned() } else { text }, &page))
    }
}

/// The position to store.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AcknowledgeEvents {
    /// The consumer's name.
    pub consumer: String,
    /// The last version that it has processed; if omitted, the stored position is removed.
    #[serde(default)]
    pub version: Option<i64>,
}

/// A consumer's position.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Acknowledged {
    /// The consumer's name.
    pub consumer: String,
    /// The last version that it has processed.
    pub version: Option<i64>,
}

impl Request for AcknowledgeEvents {
    type Data = Acknowledged;

    fn run(self, context: &Context) -> Result<Answer, Error> {
        context.sandbox().acknowledge_until(&self.consumer, self.version, &context.cancel())?;
        let Self { consumer, version } = self;
        Ok(Answer::new(format!("stored the position of {consumer}"), &Acknowledged { consumer, version }))
    }
}
