//! Each skill as a separate tool, and the list of skills in a tool's description.

use runtime::actions::shortened;
use serde::Serialize;
use serde_json::{Value, json};

use super::looking::one_line;
use crate::{Error, Skills};

/// Maximum size of a description, because a model reads all descriptions at every turn.
const LISTED_BYTES: usize = 8 << 10;
const ONE_BYTES: usize = 200;
const TOOL_BYTES: usize = 4 << 10;
/// Maximum number of skills offered as tools.
const MOST_TOOLS: usize = 200;

/// A skill as a tool.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ToolSpec {
    /// The tool's name.
    pub name: String,
    /// The skill.
    pub skill: String,
    /// The skill's description, an empty line, and its instructions.
    pub description: String,
    /// The JSON schema of its arguments.
    pub input_schema: Value,
    /// Whether the arguments are the skill's input; otherwise `input` is the only argument.
    pub is_input: bool,
}

/// Returns the skills that can be run as tools. Their names are the prefix followed by the skill's name, with `_` for `-` and
/// `.`.
///
/// # Errors
///
/// Returns [`Error::Catalog`] if the catalog cannot be read.
pub fn tools(skills: &Skills, prefix: &str) -> Result<Vec<ToolSpec>, Error> {
    let mut tools: Vec<ToolSpec> = Vec::new();
    for listed in skills.catalog().list()?.into_iter().filter(|skill| !skill.is_cognitive()).take(MOST_TOOLS) {
        let package = skills.catalog().get(&format!("{}@{}", listed.name, listed.version))?;
        let manifest = package.manifest();
        let description = [manifest.description.as_str(), manifest.instructions.as_str()].join("\n\n");
        let schema = manifest.input_schema.clone().filter(|schema| schema.get("type") == Some(&json!("object")));
        let is_input = schema.is_some();
        let name = format!("{prefix}{}", manifest.name.replace(['-', '.'], "_"));
        // Two skill names can map to the same tool name; the first one wins.
        if tools.iter().any(|tool| tool.name == name) {
            continue;
        }
        tools.push(ToolSpec {
            name,
            skill: manifest.name.clone(),
            description: shortened(description.trim().to_owned(), TOOL_BYTES),
            input_schema: schema.unwrap_or_else(|| {
                json!({
                    "type": "object",
                    "properties": { "input": { "type": "object", "description": "The skill's input, as described." } },
                })
            }),
            is_input,
        });
    }
    Ok(tools)
}

/// Returns a description followed by the names and descriptions of the skills, as far as they fit.
///
/// # Errors
///
/// Returns [`Error::Catalog`] if the catalog cannot be read.
pub fn described(description: &str, skills: &Skills) -> Result<String, Error> {
    let (mut text, list) = (description.to_owned(), skills.catalog().list()?);
    text.push_str("\n<available_skills>\n");
    for (shown, skill) in list.iter().enumerate() {
        let about = shortened(one_line(&skill.description), ONE_BYTES);
        let line =
            format!("<skill><name>{}</name><description>{}</description></skill>\n", escaped(&skill.name), escaped(&about));
        if text.len() + line.len() > LISTED_BYTES {
            text.push_str(&format!("<!-- {} more: list_skills -->\n", list.len() - shown));
            break;
        }
        text.push_str(&line);
    }
    text.push_str("</available_skills>");
    Ok(text)
}

// The text is untrusted, so it must not be able to end the list early.
fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}
