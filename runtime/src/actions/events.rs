//! `events` and `acknowledge_events`: what each version changed, for a consumer that resumes where it stopped.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Answer, Context, Request};
use crate::Error;
use crate::versions::EventPage;

/// The longest wait for an event.
const LONGEST: f64 = 60.0;

/// Which events to list.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Events {
    /// List events after this version; defaults to what the consumer has acknowledged, or to the oldest version.
    pub after: Option<i64>,
    /// The name of a consumer whose place is stored.
    pub consumer: Option<String>,
    /// List only events at or below this path.
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

/// What a consumer has handled.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AcknowledgeEvents {
    /// The consumer's name.
    pub consumer: String,
    /// The last version that it has handled; it is forgotten if omitted.
    #[serde(default)]
    pub version: Option<i64>,
}

/// A consumer's place.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Acknowledged {
    /// The consumer's name.
    pub consumer: String,
    /// The last version that it has handled.
    pub version: Option<i64>,
}

impl Request for AcknowledgeEvents {
    type Data = Acknowledged;

    fn run(self, context: &Context) -> Result<Answer, Error> {
        context.sandbox().acknowledge(&self.consumer, self.version)?;
        let Self { consumer, version } = self;
        Ok(Answer::new(format!("stored the place of {consumer}"), &Acknowledged { consumer, version }))
    }
}
