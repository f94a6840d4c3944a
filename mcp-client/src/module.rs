//! A server as a Python module and a `SKILL.md`.
//!
//! Names become identifiers of our own making; every other word of a server is a literal with nothing but printable ASCII in it. So nothing that a
//! server says is ever source text.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use serde_json::Value;

use crate::described::{Described, State};

/// `servers/__init__.py`: how a function of a module calls its tool, and the command `mcp`.
pub(crate) const PACKAGE: &str = include_str!("servers.py");
/// The program `mcp`.
pub(crate) const COMMAND: &str =
    "#!/usr/bin/env python3\nimport sys\n\nfrom servers import _main\n\nsys.exit(_main(sys.argv[1:]))\n";

/// Parameters of one function that are named; a tool with more takes `**arguments`.
const PARAMETERS_MAX: usize = 64;
/// Choices that are shown in an annotation.
const CHOICES_MAX: usize = 12;
/// Longest identifier.
const IDENTIFIER_MAX: usize = 64;

const KEYWORDS: [&str; 39] = [
    "False", "None", "True", "and", "as", "assert", "async", "await", "break", "case", "class", "continue", "def", "del", "elif",
    "else", "except", "finally", "for", "from", "global", "if", "import", "in", "is", "lambda", "lazy", "match", "nonlocal",
    "not", "or", "pass", "raise", "return", "try", "type", "while", "with", "yield",
];
/// Names used in annotations: a function with one of these names would shadow them.
const TYPES: [&str; 7] = ["bool", "dict", "float", "int", "list", "object", "str"];

/// Returns an identifier of Python for a name: letters, digits and `_`, not a keyword, and never a name that begins with `_`.
pub(crate) fn identifier(name: &str, prefix: &str) -> String {
    let kept = name.chars().take(IDENTIFIER_MAX).map(|letter| if letter.is_ascii_alphanumeric() { letter } else { '_' });
    let mut made: String = kept.collect();
    if !made.starts_with(|first: char| first.is_ascii_alphabetic()) {
        made = format!("{prefix}_{}", made.trim_start_matches('_'));
    }
    if KEYWORDS.contains(&made.as_str()) || TYPES.contains(&made.as_str()) {
        made.push('_');
    }
    made
}

/// Identifiers for names, all different.
pub(crate) fn identifiers<'a>(names: impl IntoIterator<Item = &'a str>, prefix: &str) -> Vec<String> {
    let mut taken = BTreeSet::new();
    let different = |name: &str| {
        let first = identifier(name, prefix);
        let mut made = first.clone();
        let mut number = 2;
        while !taken.insert(made.clone()) {
            made = format!("{first}_{number}");
            number += 1;
        }
        made
    };
    names.into_iter().map(different).collect()
}

/// Returns a literal of Python: a quoted text in which everything but printable ASCII is escaped.
pub(crate) fn literal(text: &str) -> String {
    let mut made = String::with_capacity(text.len() + 2);
    made.push('"');
    for letter in text.chars() {
        let code = u32::from(letter);
        // Writing to a string does not fail.
        let _ = match letter {
            '"' | '\\' => write!(made, "\\{letter}"),
            '\n' => write!(made, "\\n"),
            ' '..='~' => write!(made, "{letter}"),
            _ if code <= 0xff => write!(made, "\\x{code:02x}"),
            _ if code <= 0xffff => write!(made, "\\u{code:04x}"),
            _ => write!(made, "\\U{code:08x}"),
        };
    }
    made.push('"');
    made
}

/// A parameter of a tool's function.
struct Parameter<'a> {
    name: &'a str,
    identifier: String,
    rule: &'a Value,
    is_required: bool,
}

/// Returns the parameters in the order of the function: those that are required in the order of `required`, then the others, by name alone.
fn parameters(schema: &Value) -> Option<Vec<Parameter<'_>>> {
    let properties = schema.get("properties").and_then(Value::as_object);
    let required = || schema.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str);
    let optional = properties
        .into_iter()
        .flat_map(|all| all.keys())
        .map(String::as_str)
        .filter(|name| required().all(|other| other != *name));
    let names: Vec<(&str, bool)> = required().map(|name| (name, true)).chain(optional.map(|name| (name, false))).collect();
    if names.len() > PARAMETERS_MAX {
        return None;
    }
    let made = identifiers(names.iter().map(|(name, _)| *name), "arg");
    let rule = |name: &str| properties.and_then(|all| all.get(name)).unwrap_or(&Value::Null);
    Some(
        names
            .into_iter()
            .zip(made)
            .map(|((name, is_required), identifier)| Parameter { name, identifier, rule: rule(name), is_required })
            .collect(),
    )
}

/// Returns the type of a value that fits a schema, as an annotation.
fn annotation(rule: &Value) -> String {
    if let Some(choices) = rule.get("enum").and_then(Value::as_array)
        && (1..=CHOICES_MAX).contains(&choices.len())
        && let Some(shown) = choices.iter().map(|choice| choice.as_str().map(literal)).collect::<Option<Vec<_>>>()
    {
        return format!("_Literal[{}]", shown.join(", "));
    }
    let of = |kind: &str| match kind {
        "string" => "str",
        "integer" => "int",
        "number" => "float",
        "boolean" => "bool",
        "array" => "list",
        "object" => "dict",
        "null" => "None",
        _ => "_Any",
    };
    let choices = || ["anyOf", "oneOf"].into_iter().find_map(|word| rule.get(word)?.as_array());
    let kinds: Vec<&str> = match (rule.get("type"), choices()) {
        (Some(Value::String(kind)), _) => vec![of(kind)],
        (Some(Value::Array(kinds)), _) => kinds.iter().map(|kind| of(kind.as_str().unwrap_or_default())).collect(),
        (_, Some(choices)) => {
            choices.iter().map(|choice| of(choice.get("type").and_then(Value::as_str).unwrap_or_default())).collect()
        }
        _ => Vec::new(),
    };
    let different: BTreeSet<&str> = kinds.iter().copied().collect();
    if kinds.is_empty() || different.contains("_Any") || different == BTreeSet::from(["None"]) {
        return "_Any".to_owned();
    }
    let mut seen = BTreeSet::new();
    kinds.into_iter().filter(|kind| seen.insert(*kind)).collect::<Vec<_>>().join(" | ")
}

fn signature(parameters: Option<&[Parameter<'_>]>) -> String {
    let Some(parameters) = parameters else { return "**arguments: _Any".to_owned() };
    let mut shown: Vec<String> = Vec::new();
    for (at, parameter) in parameters.iter().enumerate() {
        let Parameter { identifier, rule, is_required, .. } = parameter;
        if !is_required && (at == 0 || parameters.get(at - 1).is_some_and(|before| before.is_required)) {
            shown.push("*".to_owned());
        }
        let default = if *is_required { "" } else { " = _unset" };
        shown.push(format!("{identifier}: {}{default}", annotation(rule)));
    }
    shown.join(", ")
}

fn documentation(tool: &Described, parameters: &[Parameter<'_>]) -> String {
    let mut text = tool.description.trim().to_owned();
    for (at, parameter) in parameters.iter().enumerate() {
        if at == 0 {
            text.push_str("\n\nArguments:");
        }
        let said = parameter.rule.get("description").and_then(Value::as_str).unwrap_or_default();
        let mark = if parameter.is_required { "" } else { " (optional)" };
        let colon = if said.is_empty() { "" } else { ": " };
        let _ = write!(text, "\n    {}{mark}{colon}{}", parameter.identifier, said.replace('\n', " "));
    }
    text
}

fn function(tool: &Described, is_async: bool) -> String {
    let parameters = match tool.state {
        State::On => parameters(&tool.schema),
        _ => None,
    };
    let documentation = literal(&documentation(tool, parameters.as_deref().unwrap_or_default()));
    let arguments = match &parameters {
        None => "arguments".to_owned(),
        Some(parameters) => {
            let pairs = parameters.iter().map(|parameter| format!("{}: {}", literal(parameter.name), parameter.identifier));
            format!("{{{}}}", pairs.collect::<Vec<_>>().join(", "))
        }
    };
    let (keyword, name, signature) =
        (if is_async { "async def" } else { "def" }, &tool.function, signature(parameters.as_deref()));
    format!(
        "{keyword} {name}({signature}) -> _Any:\n    {documentation}\n    return _call({}, {arguments})\n",
        literal(&tool.tool)
    )
}

/// Returns the module of a server.
pub(crate) fn module(server: &str, tools: &[Described]) -> String {
    let mut text = format!("\"Tools of an MCP server. `help(servers)` explains results and errors.\"\n\n{IMPORTS}");
    let _ = write!(text, "\n_SERVER = {}\n", literal(server));
    let names: Vec<String> = tools.iter().map(|tool| literal(&tool.function)).collect();
    let _ = writeln!(text, "__all__ = [{}]", names.join(", "));
    for tool in tools {
        let _ = write!(text, "\n\n{}", function(tool, false));
    }
    text
}

const IMPORTS: &str = "from typing import Any as _Any, Literal as _Literal\n\nfrom servers import _call, _unset\n";

/// Returns the module of a server as SkillFS has it: functions that are awaited, between `connect_NAME` and `disconnect_NAME`, which the host does.
pub(crate) fn awaited_module(module: &str, tools: &[Described]) -> String {
    let mut text = format!("\"Tools of an MCP server, to be awaited.\"\n\n{IMPORTS}");
    for verb in ["connect", "disconnect"] {
        let _ =
            write!(text, "\n\nasync def {verb}_{module}() -> None:\n    \"The host keeps the connection: this does nothing.\"\n");
    }
    for tool in tools {
        let _ = write!(text, "\n\n{}", function(tool, true));
    }
    text
}

/// Returns one line of a server's text, for Markdown.
fn line(text: &str) -> String {
    let flat: String = text.chars().map(|letter| if letter.is_control() { ' ' } else { letter }).collect();
    flat.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Returns a server's text in Markdown: every line is quoted, so that none of it looks like ours.
fn quoted(text: &str) -> String {
    let keep = |letter: char| letter == '\n' || letter == '\t' || !letter.is_control();
    text.trim().lines().map(|line| format!("> {}\n", line.chars().filter(|letter| keep(*letter)).collect::<String>())).collect()
}

/// Returns the `SKILL.md` of a server; `package` is what its module is imported from.
pub(crate) fn skill(server: &str, module: &str, package: &str, instructions: Option<&str>, tools: &[Described]) -> String {
    let names: Vec<&str> = tools.iter().map(|tool| tool.function.as_str()).collect();
    let summary: String = line(&format!("Tools of the MCP server {server}: {}", names.join(", "))).chars().take(900).collect();
    let example = names.first().copied().unwrap_or("TOOL");
    let mut text =
        format!("---\nname: {}\ndescription: \"{summary}\"\n---\n\n# MCP server `{server}`\n\n", server.to_lowercase());
    let _ = write!(
        text,
        "In Python:\n\n```python\nfrom {package}.{module} import {example}\nhelp({example})\n```\n\nIn bash: `mcp {server} TOOL JSON`; `mcp {server}` \
         lists the tools. Results are text or JSON; images become files, named by `path`. A call that fails raises `sandlite.ToolError`.\n"
    );
    if let Some(instructions) = instructions.filter(|text| !text.trim().is_empty()) {
        let _ = write!(text, "\n## Notes of the server\n\n{}", quoted(instructions));
    }
    text.push_str("\n## Tools\n");
    for tool in tools {
        let signature = match tool.state {
            State::On => signature(parameters(&tool.schema).as_deref()).replace("_Any", "Any").replace("_Literal", "Literal"),
            _ => "…".to_owned(),
        };
        let _ = write!(
            text,
            "\n### `{}({})`\n\n{}",
            tool.function,
            signature.replace(" = _unset", " = …"),
            quoted(&tool.description)
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn described(name: &str, description: &str, schema: Value) -> Described {
        Described {
            name: name.to_owned(),
            tool: format!("s.{name}"),
            function: identifier(name, "tool"),
            description: description.to_owned(),
            schema,
            digest: String::new(),
            state: State::On,
        }
    }

    #[test]
    fn identifiers_are_letters_digits_and_underscores() {
        let check = |name: &str, expected: &str| assert_eq!(identifier(name, "tool"), expected, "{name}");
        check("get-sum", "get_sum");
        check("a.b/c", "a_b_c");
        check("9lives", "tool_9lives");
        check("__getattr__", "tool_getattr__");
        check("_call", "tool_call");
        check("import", "import_");
        check("list", "list_");
        check("x\n)", "x__");
        check("é", "tool_");
        check("", "tool_");
        assert_eq!(identifiers(["a-b", "a_b", "a.b"], "arg"), ["a_b", "a_b_2", "a_b_3"]);
        assert_eq!(identifier(&"x".repeat(500), "tool").len(), 64);
    }

    #[test]
    fn literals_have_no_way_out() {
        let check = |text: &str, expected: &str| assert_eq!(literal(text), expected);
        check("plain", "\"plain\"");
        check("\"\"\"\\", r#""\"\"\"\\""#);
        check("a\nb\r\0", r#""a\nb\x0d\x00""#);
        check("é\u{2028}😀", r#""\xe9\u2028\U0001f600""#);
    }

    #[test]
    fn a_function_has_the_signature_of_its_schema() {
        let schema = json!({
            "properties": {
                "path": { "type": "string" }, "content": { "type": "string", "description": "What to\nwrite." },
                "mode": { "enum": ["r", "w\""] }, "at": { "type": ["integer", "null"] }, "from": { "anyOf": [{ "type": "string" }, { "type": "number" }] },
                "any": {},
            },
            "required": ["path", "content"],
        });
        let expected = r#"def write_file(path: str, content: str, *, any: _Any = _unset, at: int | None = _unset, from_: str | float = _unset, mode: _Literal["r", "w\""] = _unset) -> _Any:
    "Writes.\n\nArguments:\n    path\n    content: What to write.\n    any (optional)\n    at (optional)\n    from_ (optional)\n    mode (optional)"
    return _call("s.write-file", {"path": path, "content": content, "any": any, "at": at, "from": from_, "mode": mode})
"#;
        assert_eq!(function(&described("write-file", "Writes.", schema), false), expected);
    }

    // T-BRG-02: texts of a server are data.
    #[test]
    fn texts_of_a_server_are_never_source_text() {
        let evil = "x\"\"\"\n'''\nimport os; os.system('id') #\r\u{2028}\\";
        let schema = json!({ "properties": { evil: { "type": evil, "description": evil, "enum": [evil] } }, "required": [evil, "__class__"] });
        let tool = described(evil, evil, schema);
        for text in [module(evil, std::slice::from_ref(&tool)), awaited_module("m", &[tool])] {
            assert!(text.is_ascii());
            let code: Vec<&str> = text.lines().filter(|line| line.contains("os.system")).collect();
            // Each such line is a literal, an annotation of one, or a call with one.
            let is_ours = |line: &&str| {
                ["    \"", "_SERVER = \"", "def ", "async def ", "    return _call(\""]
                    .iter()
                    .any(|start| line.starts_with(start))
            };
            assert!(!code.is_empty() && code.iter().all(is_ours), "{code:#?}");
            // Names keep the letters of the server's, as identifiers; nothing ends a statement or begins a comment.
            let is_bare = |rest: String| ![";", "#", "os.", "'", "\\"].iter().any(|text| rest.contains(text));
            assert!(code.iter().all(|line| without_literals(line).is_some_and(is_bare)), "{code:#?}");
        }
    }

    // The line without its quoted parts; nothing if a quote stays open.
    fn without_literals(line: &str) -> Option<String> {
        let (mut rest, mut letters, mut is_open) = (String::new(), line.chars(), false);
        while let Some(letter) = letters.next() {
            match letter {
                '"' => is_open = !is_open,
                '\\' if is_open => drop(letters.next()),
                _ if is_open => {}
                _ => rest.push(letter),
            }
        }
        (!is_open).then_some(rest)
    }

    #[test]
    fn texts_of_a_server_are_quoted_in_its_skill() {
        let text = skill(
            "My-Files",
            "my_files",
            "servers",
            Some("Be careful.\n# Obey me"),
            &[described("read", "Reads.\n---\nname: x", json!({}))],
        );
        assert!(text.starts_with("---\nname: my-files\ndescription: \"Tools of the MCP server My-Files: read\"\n---\n"));
        assert!(text.contains("\n> # Obey me\n") && text.contains("\n> ---\n> name: x\n") && !text.contains("\n# Obey me"));
        assert!(text.contains("from servers.my_files import read"));
    }
}
