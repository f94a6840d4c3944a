//! The environment of a script: paths, variables, limits, and the command that starts it. Identical to Skillbox's contract.

use std::time::Duration;

use runtime::{ByteSize, Command, Limits, Overrides, Packages, Stream, WallTime};
use serde_json::Value;

use super::Request;
use super::prepared::Prepared;
use crate::manifest::{Manifest, Mode, parse_memory};
use crate::{Bounds, Error, Language};

/// The directory that scripts start in.
pub(super) const ROOT: &str = "/sandbox";
/// The skill's own files, read-only.
pub(super) const SCRIPTS: &str = "/sandbox/scripts";
/// The input and its files.
pub(super) const INPUT: &str = "/sandbox/input.json";
pub(super) const INPUT_FILES: &str = "/sandbox/input";
/// The output and its files.
pub(super) const OUT: &str = "/sandbox/out";
pub(super) const OUTPUT: &str = "/sandbox/out/output.json";
pub(super) const FILES: &str = "/sandbox/out/files";
/// The files of a session, in and out.
pub(super) const SESSION: &str = "/sandbox/session";
pub(super) const SESSION_OUT: &str = "/sandbox/out/session";

/// Directories that exist when a script starts.
pub(super) const DIRECTORIES: [&str; 6] = [INPUT_FILES, FILES, SESSION, SESSION_OUT, "/root", "/tmp"];

/// The required packages.
pub(super) const SITE_PACKAGES: &str = Packages::DIRECTORY;

/// Variables, and prefixes of variables, that a caller must not set.
const BLOCKED: [&str; 7] = ["PATH", "HOME", "LD_PRELOAD", "LD_LIBRARY_PATH", "PYTHONPATH", "NODE_PATH", "NODE_OPTIONS"];
const BLOCKED_PREFIXES: [&str; 2] = ["SANDBOX_", "SKILL_"];

/// The reason JavaScript is not supported.
pub(super) const NO_JAVASCRIPT: &str = "lang node cannot run: no JavaScript guest is installed";

/// Returns the timeout of a run: the skill's, lowered to the limits.
pub(super) fn timeout(manifest: &Manifest, bounds: &Bounds, limits: &Limits) -> Duration {
    manifest.timeout.unwrap_or(bounds.default_timeout).min(bounds.max_timeout).min(limits.wall.0)
}

/// Returns the memory of a run: the skill's, lowered to the limits. An excessive request gets the default.
pub(super) fn memory(manifest: &Manifest, bounds: &Bounds, limits: &Limits, is_scientific: bool) -> u64 {
    let asked = manifest.resources.memory.as_deref().and_then(parse_memory).filter(|bytes| *bytes <= bounds.max_memory);
    // The scientific Python alone exceeds the default.
    let default = if is_scientific { bounds.max_memory } else { bounds.default_memory };
    asked.unwrap_or(default).min(limits.memory.0)
}

/// Returns the reason a run must not start, if any.
pub(super) fn check(prepared: &Prepared, request: &Request) -> Result<(), String> {
    let is_blocked = |name: &str| {
        let upper = name.to_ascii_uppercase();
        BLOCKED.contains(&name) || BLOCKED_PREFIXES.iter().any(|prefix| upper.starts_with(prefix))
    };
    for (name, value) in &request.env {
        if is_blocked(name) {
            return Err(format!("env var {name:?} is not allowed"));
        }
        let reason = match (name.as_str(), value) {
            ("", _) => "its name is empty",
            (name, _) if name.contains('=') => "its name contains `=`",
            (name, _) if name.contains('\0') => "its name contains a zero byte",
            (_, value) if value.contains('\0') => "its value contains a zero byte",
            _ => continue,
        };
        return Err(format!("env var {name:?} cannot be set: {reason}"));
    }
    for (name, _) in &request.files {
        crate::package::check_file_path(name).map_err(|_| format!("invalid file name `{}`", runtime::actions::quoted(name)))?;
    }
    let input = request.input.as_deref().unwrap_or("{}");
    super::collect::check_json(input).map_err(|reason| format!("invalid input: not JSON: {reason}"))?;
    let Some(schema) = &prepared.input_schema else { return Ok(()) };
    let value = serde_json::from_str::<Value>(input).map_err(|error| error.to_string());
    value.and_then(|value| schema.check(&value)).map_err(|reason| format!("invalid input: {}", named(&reason, "the input")))
}

/// Rewords a schema error whose root is not the arguments of a tool.
pub(super) fn named(complaint: &str, root: &str) -> String {
    complaint.replacen("the arguments", root, 1)
}

// The longest text of a variable. A variable cannot be as long as a file; larger input is available only in the file.
fn room(prepared: &Prepared) -> usize {
    usize::try_from(prepared.sandbox.limits().command_text.0).unwrap_or(usize::MAX) / 4
}

/// Returns a note if the input is too long for its variable.
pub(super) fn note(prepared: &Prepared, request: &Request) -> Option<String> {
    let length = request.input.as_ref().map_or(0, String::len);
    (length > room(prepared)).then(|| format!("the input has {length} bytes, too many for SANDBOX_INPUT: it is only in {INPUT}"))
}

/// Returns the command that starts a script, with its environment.
pub(super) fn command(prepared: &Prepared, request: &Request) -> Result<Command, String> {
    let command = program(prepared, request)?;
    let input = request.input.as_deref().unwrap_or("{}");
    let mut env = vec![
        ("SANDBOX_OUTPUT", OUTPUT.to_owned()),
        ("SANDBOX_FILES_DIR", format!("{FILES}/")),
        ("SANDBOX_INPUT_DIR", format!("{INPUT_FILES}/")),
        ("SANDBOX_SESSION_DIR", format!("{SESSION}/")),
        ("HOME", "/tmp".to_owned()),
    ];
    if prepared.has_packages {
        env.push(("PYTHONPATH", SITE_PACKAGES.to_owned()));
    }
    let room = room(prepared);
    let instructions = &prepared.package.manifest().instructions;
    for (name, text) in [("SANDBOX_INPUT", input), ("SKILL_INSTRUCTIONS", instructions.as_str())] {
        if text.len() <= room && !text.contains('\0') {
            env.push((name, text.to_owned()));
        }
    }
    let mut command = command.cwd(ROOT).cancelled_by(request.cancel.clone());
    for (name, value) in env {
        command = command.env(name, value);
    }
    for (name, value) in &request.env {
        command = command.env(name, value);
    }
    if let Some(sink) = &request.sink {
        for stream in [Stream::Stdout, Stream::Stderr] {
            let sink = sink.clone();
            command = command.on_output(stream, move |bytes| (sink.0)(bytes));
        }
    }
    let (wall, memory) = (Some(WallTime(prepared.timeout)), Some(ByteSize(prepared.memory)));
    Ok(command.limits(Overrides { wall, memory, ..Overrides::default() }))
}

fn program(prepared: &Prepared, request: &Request) -> Result<Command, String> {
    let (package, name) = (&prepared.package, &prepared.package.manifest().name);
    if package.manifest().mode == Mode::Cognitive {
        return Err(format!("skill `{name}` has mode cognitive: it has only instructions and cannot be run"));
    }
    let Some(entry) = package.entry() else {
        return code_runner(request).map(Command::python);
    };
    let script = format!("{SCRIPTS}/{entry}");
    match package.language() {
        Some(Language::Python) => Ok(Command::python_with([script])),
        Some(Language::Bash) => Ok(Command::bash_with([script])),
        Some(Language::Node) => Err(NO_JAVASCRIPT.to_owned()),
        None => Err(format!("unknown language of `{entry}`")),
    }
}

// A skill without a script runs the code in its input and can import its own files.
fn code_runner(request: &Request) -> Result<String, String> {
    let input: Value = serde_json::from_str(request.input.as_deref().unwrap_or("{}")).unwrap_or_default();
    let given = |name: &str| input.get(name).and_then(Value::as_str).map(str::to_owned);
    let code = given("code").or_else(|| given("input").as_deref().and_then(python_in));
    let Some(code) = code else {
        return Ok("print('No Python code found in the input')".to_owned());
    };
    let literal = serde_json::to_string(&code).map_err(|error| error.to_string())?;
    Ok(format!(
        "import sys\nsys.path.insert(0, {SCRIPTS:?})\nimport json\n\
         exec(compile(json.loads({literal:?}), '<code>', 'exec'), {{'__name__': '__main__'}})\n"
    ))
}

// Returns the last fenced block of a text, or the text itself if it looks like Python.
fn python_in(text: &str) -> Option<String> {
    let mut parts = text.split("```");
    parts.next();
    let mut blocks: Vec<(&str, &str)> = Vec::new();
    while let (Some(block), Some(_)) = (parts.next(), parts.next()) {
        let (language, code) = block.split_once('\n').unwrap_or(("", block));
        blocks.push((language.trim(), code.trim()));
    }
    let is_python = |language: &str| ["python", "python3", "py"].iter().any(|name| language.eq_ignore_ascii_case(name));
    let block =
        blocks.iter().rfind(|(language, _)| is_python(language)).or(blocks.iter().rfind(|(language, _)| language.is_empty()));
    if let Some((_, code)) = block {
        return Some((*code).to_owned());
    }
    let looks_like_code = ["import ", "from ", "def ", "class ", "print("].iter().any(|word| text.contains(word));
    looks_like_code.then(|| text.trim().to_owned())
}

/// Checks the name of a session, which becomes a file name.
pub(super) fn session_name(id: &str) -> Result<&str, Error> {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    let is_name = (1..=128).contains(&id.len()) && !id.starts_with('.') && id.bytes().all(is_plain);
    if is_name {
        return Ok(id);
    }
    let hint = "expected 1 to 128 of the characters A-Z a-z 0-9 . _ -";
    Err(Error::Argument(format!("invalid session `{}`: {hint}", runtime::actions::quoted(id))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_is_the_last_block_or_text_that_looks_like_code() {
        assert_eq!(python_in("Do it:\n```python\na = 1\n```\nor\n```python\nb = 2\n```\n").as_deref(), Some("b = 2"));
        assert_eq!(python_in("```\nx = 1\n```").as_deref(), Some("x = 1"));
        assert_eq!(python_in("```py\nx = 1\n```\n```json\n{}\n```").as_deref(), Some("x = 1"));
        assert_eq!(python_in("```json\n{}\n```").as_deref(), None);
        assert_eq!(python_in("print(1)").as_deref(), Some("print(1)"));
        assert_eq!(python_in("please help").as_deref(), None);
        assert_eq!(python_in("```python\nunclosed").as_deref(), None);
    }

    #[test]
    fn a_session_is_a_file_name_and_nothing_else() {
        for id in ["", "..", ".hidden", "a/b", "a\\b", "ä", &"x".repeat(129)] {
            assert!(session_name(id).is_err(), "{id:?}");
        }
        assert!(session_name("user-1_b.2").is_ok());
    }
}
