//! The tools: the sandbox's actions and those of the service, as the protocol lists and calls them.
//!
//! Names, descriptions and schemas are the runtime's (`runtime/src/actions.rs`); what needs more than one sandbox is in `snapshots.rs`.

mod call;
mod snapshots;

use std::sync::Arc;

use rmcp::model::{JsonObject, Tool, ToolAnnotations};
use runtime::actions::{Action, Audience, Context, Effect, actions};
use serde_json::{Value, json};

use super::Service;
use super::sandboxes::Named;

pub(super) use call::call;

/// Where a tool of the service takes place.
pub(super) struct Place {
    service: Service,
    named: Arc<Named>,
}

/// The actions of a sandbox that models are offered.
fn in_sandboxes() -> impl Iterator<Item = &'static Action<Context>> {
    actions().iter().filter(|action| action.audience == Audience::Models)
}

/// Every tool.
pub(super) fn all() -> Vec<Tool> {
    in_sandboxes().map(tool).chain(snapshots::ACTIONS.iter().map(tool)).collect()
}

/// Names of tools that need a right, as a sentence lists them.
pub(super) fn names(permission: runtime::actions::Permission) -> String {
    let in_sandboxes = in_sandboxes().map(|action| (action.permission, action.name));
    let all = in_sandboxes.chain(snapshots::ACTIONS.iter().map(|action| (action.permission, action.name)));
    let names: Vec<String> = all.filter(|(needed, _)| *needed == permission).map(|(_, name)| format!("`{name}`")).collect();
    match names.split_last() {
        Some((last, first)) if !first.is_empty() => format!("{} and {last}", first.join(", ")),
        _ => names.concat(),
    }
}

fn tool<C: 'static>(action: &Action<C>) -> Tool {
    let annotations = ToolAnnotations::with_title(action.title)
        .read_only(action.effect == Effect::Reads)
        .destructive(action.effect == Effect::Changes)
        .idempotent(action.is_idempotent)
        .open_world(false);
    let mut input = object((action.input)());
    // Every tool can be given another sandbox.
    input.entry("properties").or_insert_with(|| json!({}))["sandbox"] = json!({
        "type": "string",
        "description": "The name of a sandbox, as `fork` or `import_snapshot` returned it; defaults to `main`.",
    });
    let mut tool = Tool::new(action.name, action.description, Arc::new(input));
    tool.title = Some(action.title.to_owned());
    tool.output_schema = Some(Arc::new(object((action.output)())));
    tool.annotations = Some(annotations);
    tool
}

fn object(value: Value) -> JsonObject {
    if let Value::Object(object) = value { object } else { JsonObject::new() }
}
