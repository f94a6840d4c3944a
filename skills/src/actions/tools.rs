//! Each skill as a separate tool, and the list of skills in a tool's description.

use std::collections::BTreeSet;

use runtime::actions::shortened;
use serde::Serialize;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use super::looking::one_line;
use crate::package::hex;
use crate::{Error, Listed, Skills};

/// Maximum size of a description, because a model reads all descriptions at every turn.
const LISTED_BYTES: usize = 8 << 10;
const ONE_BYTES: usize = 200;
const TOOL_BYTES: usize = 4 << 10;
/// Maximum number of skills offered as tools.
const MOST_TOOLS: usize = 200;
/// Maximum length of a tool's name in the interfaces of models.
const NAME_BYTES: usize = 64;

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

/// Returns the skills that can be run as tools, at most 200, or those with these names. The name of a tool is the prefix followed by the
/// skill's name, with `_` for `-` and `.`; a digest or a number at its end distinguishes it where that is too long or ambiguous.
///
/// # Errors
///
/// Returns [`Error::Catalog`] if the catalog cannot be read, [`Error::UnknownSkill`] if a named skill does not exist, and
/// [`Error::Argument`] if it has only instructions.
pub fn tools(skills: &Skills, prefix: &str, names: Option<&[String]>) -> Result<Vec<ToolSpec>, Error> {
    let catalog = skills.catalog();
    let chosen = match names {
        None => catalog.list()?.into_iter().filter(|skill| !skill.is_cognitive()).take(MOST_TOOLS).collect(),
        Some(names) => names.iter().map(|name| catalog.find(name)).collect::<Result<Vec<Listed>, Error>>()?,
    };
    if let Some(skill) = chosen.iter().find(|skill| skill.is_cognitive()) {
        return Err(Error::Argument(format!("skill `{}` has only instructions and cannot be a tool", skill.name)));
    }
    let mut taken = BTreeSet::new();
    let mut tools = Vec::with_capacity(chosen.len());
    for listed in chosen {
        let package = catalog.get(&format!("{}@{}", listed.name, listed.version))?;
        let manifest = package.manifest();
        let description = [manifest.description.as_str(), manifest.instructions.as_str()].join("\n\n");
        let schema = manifest.input_schema.clone().filter(|schema| schema.get("type") == Some(&json!("object")));
        let is_input = schema.is_some();
        tools.push(ToolSpec {
            name: tool_name(prefix, &manifest.name, &mut taken),
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

// A name that the interfaces of models accept, and that no tool before has.
fn tool_name(prefix: &str, skill: &str, taken: &mut BTreeSet<String>) -> String {
    let full = format!("{prefix}{}", skill.replace(['-', '.'], "_"));
    let first = if full.len() <= NAME_BYTES {
        full
    } else {
        let digest: String = hex(&Sha256::digest(skill)).chars().take(8).collect();
        let kept: String = full.chars().take(NAME_BYTES - digest.len() - 1).collect();
        format!("{kept}_{digest}")
    };
    let mut name = first.clone();
    let mut number = 2;
    while !taken.insert(name.clone()) {
        let end = format!("_{number}");
        let kept: String = first.chars().take(NAME_BYTES - end.len()).collect();
        name = kept + &end;
        number += 1;
    }
    name
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_tools_are_different_and_short_enough_for_every_model() {
        let mut taken = BTreeSet::new();
        let mut name = |skill: &str| tool_name("skill_", skill, &mut taken);
        assert_eq!([name("a-b"), name("a.b"), name("a_b")], ["skill_a_b", "skill_a_b_2", "skill_a_b_3"]);
        let long = [name(&"x".repeat(128)), name(&"x".repeat(127)), name(&"x".repeat(58))];
        assert!(long.iter().all(|name| name.len() == 64) && long[0] != long[1], "{long:?}");
        assert_eq!(long[2], format!("skill_{}", "x".repeat(58)));
    }
}
