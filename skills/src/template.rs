//! A new skill that runs: `sandlite skill new`.

use crate::Error;
use crate::manifest::is_name;
use crate::package::{File, SKILL_MD};

/// The kind of a new skill.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Template {
    /// A script in Python.
    #[default]
    Python,
    /// A script in bash.
    Bash,
    /// Only instructions.
    Instructions,
}

/// Returns the files of a new skill.
///
/// # Errors
///
/// Returns [`Error::Argument`] if the name is invalid.
pub fn template(name: &str, template: Template) -> Result<Vec<File>, Error> {
    if !is_name(name) {
        return Err(Error::Argument(format!(
            "invalid skill name `{}`: use lower-case letters, digits and hyphens",
            runtime::actions::quoted(name)
        )));
    }
    let (head, script) = match template {
        Template::Python => (SCRIPT_HEAD.replace("LANG", "python"), Some(("scripts/main.py", PYTHON))),
        Template::Bash => (SCRIPT_HEAD.replace("LANG", "bash"), Some(("scripts/main.sh", BASH))),
        Template::Instructions => (INSTRUCTIONS_HEAD.to_owned(), None),
    };
    let mut files = vec![File::new(SKILL_MD, head.replace("NAME", name))];
    files.extend(script.map(|(path, text)| File { is_executable: true, ..File::new(path, text) }));
    Ok(files)
}

const SCRIPT_HEAD: &str = "\
---
name: NAME
version: 1.0.0
description: Greets somebody by name. Use it when the user wants a greeting.
lang: LANG
timeout: 30s
input_schema:
  type: object
  properties:
    name:
      type: string
      description: Who is greeted
---

# NAME

Greets somebody.

## Input

- `name` (text, optional): who is greeted; defaults to `world`

## Output

- `greeting`: the greeting
";

const INSTRUCTIONS_HEAD: &str = "\
---
name: NAME
version: 1.0.0
description: Says how to do something. Use it when the user asks for that.
mode: cognitive
---

# NAME

1. Say what to do first.
2. Say what to do then.
";

const PYTHON: &str = r#""""Reads the input from SANDBOX_INPUT, writes the output to SANDBOX_OUTPUT; files go to SANDBOX_FILES_DIR."""
import json
import os

data = json.loads(os.environ["SANDBOX_INPUT"])
output = {"greeting": f"Hello, {data.get('name', 'world')}!"}
with open(os.environ["SANDBOX_OUTPUT"], "w") as file:
    json.dump(output, file)
"#;

const BASH: &str = r#"#!/bin/bash
# Reads the input from input.json, writes the output to SANDBOX_OUTPUT; files go to SANDBOX_FILES_DIR.
set -e
jq '{greeting: "Hello, \(.name // "world")!"}' input.json > "$SANDBOX_OUTPUT"
"#;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lint::lint_files;

    #[test]
    fn a_new_skill_has_no_findings() {
        for kind in [Template::Python, Template::Bash, Template::Instructions] {
            assert_eq!(lint_files(&template("my-skill", kind).unwrap(), Some("my-skill")), []);
            assert_eq!(crate::scan(&template("my-skill", kind).unwrap()), []);
        }
        assert!(template("../x", Template::Python).is_err());
    }
}
