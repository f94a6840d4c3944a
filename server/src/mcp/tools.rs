//! The tools: the actions of the sandbox and of the service, as listed and called through the protocol.
//!
//! Names, descriptions and schemas come from the runtime (`runtime/src/actions.rs`); actions that need several sandboxes are in
//! `snapshots.rs`.

mod call;
mod snapshots;

use std::sync::Arc;

use rmcp::model::{JsonObject, Tool, ToolAnnotations};
use runtime::actions::{Action, Audience, Context, Effect, Permission, actions, quoted};
use serde_json::{Value, json};
use skills::actions::ToolSpec;

use super::Service;
use super::sandboxes::Named;
use crate::Error;

pub(super) use call::call;

/// The context of a tool of the service.
pub(super) struct Place {
    service: Service,
    named: Arc<Named>,
}

/// Returns the actions on a sandbox that are offered to models.
fn in_sandboxes() -> impl Iterator<Item = &'static Action<Context>> {
    actions().iter().filter(|action| action.audience == Audience::Models)
}

/// Returns the actions on skills that are offered to models, if there are skills.
fn on_skills() -> impl Iterator<Item = &'static Action<skills::actions::Context>> {
    skills::actions::actions().iter().filter(|action| action.audience == Audience::Models)
}

/// Returns the actions for programs, which are offered only by name: models rarely need them.
fn for_programs() -> impl Iterator<Item = &'static Action<Context>> {
    actions().iter().filter(|action| action.audience == Audience::Programs)
}

/// Returns every tool for models with its required permission.
fn rights() -> impl Iterator<Item = (Permission, &'static str)> {
    let in_sandboxes = in_sandboxes().map(|action| (action.permission, action.name));
    let own = snapshots::ACTIONS.iter().map(|action| (action.permission, action.name));
    in_sandboxes.chain(own).chain(on_skills().map(|action| (action.permission, action.name)))
}

/// Returns the tools with these names, in the order of the table, with actions for programs last; every tool for models if no
/// names are given.
pub(super) fn chosen(names: Option<&[String]>, has_skills: bool) -> Result<Vec<Tool>, Error> {
    let selectable = || rights().map(|(_, name)| name).chain(for_programs().map(|action| action.name));
    if let Some(unknown) = names.into_iter().flatten().find(|name| !selectable().any(|known| known == *name)) {
        let known = selectable().collect::<Vec<_>>().join(", ");
        return Err(Error::UnknownTool { name: quoted(unknown), known });
    }
    let is_chosen = |name: &str| names.is_none_or(|names| names.iter().any(|chosen| chosen == name));
    // Without a tool that creates sandboxes there is only one.
    let makes_sandboxes = is_chosen("fork") || is_chosen("import_snapshot");
    let in_sandboxes = in_sandboxes().filter(|action| is_chosen(action.name)).map(|action| tool(action, makes_sandboxes));
    let own = snapshots::ACTIONS.iter().filter(|action| is_chosen(action.name)).map(|action| tool(action, makes_sandboxes));
    let on_skills = on_skills().filter(|action| has_skills && is_chosen(action.name)).map(|action| tool(action, false));
    let for_programs = for_programs().filter(|action| names.is_some() && is_chosen(action.name));
    let for_programs = for_programs.map(|action| tool(action, makes_sandboxes));
    Ok(in_sandboxes.chain(own).chain(on_skills).chain(for_programs).collect())
}

/// The prefix of the name of a skill's tool.
pub(super) const SKILL_PREFIX: &str = "skill_";

/// Returns the current tools of a service, including the names of the skills and skills as tools.
pub(super) fn listed(service: &Service) -> Vec<Tool> {
    let mut tools = service.tools().to_vec();
    let Some(skills) = service.skills() else { return tools };
    for tool in tools.iter_mut().filter(|tool| tool.name == "load_skill") {
        let description = tool.description.clone().unwrap_or_default();
        // An unreadable catalog is reported by the calls.
        if let Ok(described) = skills::actions::described(&description, skills) {
            tool.description = Some(described.into());
        }
    }
    tools.extend(service.skill_tools().iter().map(skill_tool));
    tools
}

/// Returns the skill whose tool has this name.
pub(super) fn of_skill(service: &Service, name: &str) -> Option<Tool> {
    if !name.starts_with(SKILL_PREFIX) {
        return None;
    }
    service.skill_tools().iter().find(|spec| spec.name == name).map(skill_tool)
}

fn skill_tool(spec: &ToolSpec) -> Tool {
    let annotations = ToolAnnotations::with_title(spec.skill.clone()).read_only(false).destructive(false).open_world(false);
    let mut tool = Tool::new(spec.name.clone(), spec.description.clone(), Arc::new(object(spec.input_schema.clone())));
    tool.annotations = Some(annotations);
    tool
}

/// Formats the names of offered tools that require a permission as a list in a sentence.
pub(super) fn names(offered: &[Tool], permission: Permission) -> String {
    let names = rights().filter(|(needed, name)| *needed == permission && offered.iter().any(|tool| tool.name == *name));
    let names: Vec<String> = names.map(|(_, name)| format!("`{name}`")).collect();
    match names.split_last() {
        Some((last, first)) if !first.is_empty() => format!("{} and {last}", first.join(", ")),
        _ => names.concat(),
    }
}

/// Returns whether a tool with this name exists, offered or not.
pub(super) fn exists(name: &str) -> bool {
    rights().any(|(_, known)| known == name)
}

fn tool<C: 'static>(action: &Action<C>, takes_sandbox: bool) -> Tool {
    let annotations = ToolAnnotations::with_title(action.title)
        .read_only(action.effect == Effect::Reads)
        .destructive(action.effect == Effect::Changes)
        .idempotent(action.is_idempotent)
        .open_world(false);
    let mut input = object((action.input)());
    // Every tool accepts another sandbox.
    if takes_sandbox {
        input.entry("properties").or_insert_with(|| json!({}))["sandbox"] = json!({
            "type": "string",
            "description": "The name of a sandbox, as `fork` or `import_snapshot` returned it; defaults to `main`.",
        });
    }
    let mut tool = Tool::new(action.name, action.description, Arc::new(input));
    tool.title = Some(action.title.to_owned());
    tool.output_schema = Some(Arc::new(object((action.output)())));
    tool.annotations = Some(annotations);
    tool
}

fn object(value: Value) -> JsonObject {
    if let Value::Object(object) = value { object } else { JsonObject::new() }
}
