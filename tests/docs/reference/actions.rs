//! The actions with their arguments and results, from the tables of the runtime and of skills.

use std::fmt::Write as _;

use runtime::actions::{Action, Audience};
use serde_json::Value;

use super::cell;

/// The page.
pub fn page() -> String {
    let mut page = String::from(
        "# Actions\n\nGenerated from the tables of actions by `cargo xtask docs`.\n\n\
         An action is an operation on one sandbox. The MCP server offers those for models as tools. `Sandbox.call_action` in Python,\n\
         `sandlite_runtime::actions` in Rust and `POST /v1/sandboxes/{id}/actions/{action}` of the server offer all of them.\n",
    );
    page += "\n## Sandboxes\n";
    runtime::actions::actions().iter().for_each(|action| add(&mut page, action));
    page += "\n## Skills\n";
    skills::actions::actions().iter().for_each(|action| add(&mut page, action));
    page
}

fn add<C>(page: &mut String, action: &Action<C>) {
    let word = |value: Value| value.as_str().unwrap_or_default().replace('_', " ");
    let audience = if action.audience == Audience::Models { "models and programs" } else { "programs only" };
    write!(page, "\n### `{}`\n\n{}\n\n", action.name, action.description).unwrap();
    writeln!(
        page,
        "Effect: {}. Permission: {}. For {audience}.{}",
        word(serde_json::to_value(action.effect).unwrap()),
        word(serde_json::to_value(action.permission).unwrap()),
        if action.is_idempotent { " Repeating it has no further effect." } else { "" },
    )
    .unwrap();
    table(page, "argument", &(action.input)());
    table(page, "result", &(action.output)());
}

fn table(page: &mut String, title: &str, schema: &Value) {
    let Some(properties) = schema["properties"].as_object().filter(|properties| !properties.is_empty()) else { return };
    let required: Vec<&str> = schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    write!(page, "\n| {title} | type | description |\n|---|---|---|\n").unwrap();
    for (name, property) in properties {
        let mark = if title == "argument" && required.contains(&name.as_str()) { " (required)" } else { "" };
        let description = cell(property["description"].as_str().unwrap_or_default());
        let default = Some(&property["default"]).filter(|value| !value.is_null() && title == "argument");
        let default = default.map(|value| format!(" Defaults to `{value}`.")).unwrap_or_default();
        writeln!(page, "| `{name}`{mark} | {} | {description}{default} |", kind(property)).unwrap();
    }
}

fn kind(schema: &Value) -> String {
    let choices = |list: &Value| {
        let kinds: Vec<String> = list.as_array().into_iter().flatten().map(kind).filter(|kind| kind != "null").collect();
        kinds.join(" or ")
    };
    if let Some(values) = schema["enum"].as_array() {
        return values.iter().map(|value| format!("`{value}`")).collect::<Vec<_>>().join(", ");
    }
    match &schema["type"] {
        _ if !schema["const"].is_null() => format!("`{}`", schema["const"]),
        _ if schema["anyOf"].is_array() => choices(&schema["anyOf"]),
        _ if schema["oneOf"].is_array() => choices(&schema["oneOf"]),
        Value::String(name) if name == "array" && schema["items"].is_object() => format!("array of {}", kind(&schema["items"])),
        Value::String(name) => name.clone(),
        Value::Array(names) => {
            let names: Vec<&str> = names.iter().filter_map(Value::as_str).filter(|name| *name != "null").collect();
            names.join(" or ")
        }
        _ => "any".to_owned(),
    }
}
