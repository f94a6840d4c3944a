//! `run_skill`.

use std::collections::BTreeMap;

use runtime::actions::{Answer, Request, shortened};
use runtime::{Content, Error, Sandbox, Usage};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::Context;
use crate::{Artifact, RunResult, Status};

/// Maximum size of the logs in a result for a model.
const LOG_BYTES: usize = 20 << 10;

/// The least magnitude of an integer that may not be exact as a [`Value`].
const BITS_64: f64 = 9_223_372_036_854_775_808.0;
const ROUNDED_INPUT: &str = "numbers beyond 64 bits in the input are rounded to 15 digits: pass them as texts";
const ROUNDED_OUTPUT: &str = "numbers beyond 64 bits in the output are exact in its text, and rounded as a value";

/// Selects the skill to run.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RunSkill {
    /// The skill's name, or `name@version`.
    pub name: String,
    /// The input, as the skill's instructions describe it; defaults to {}.
    #[serde(default)]
    pub input: Option<Value>,
    /// Text files to create in /sandbox/input, by name.
    #[serde(default)]
    pub files: BTreeMap<String, String>,
    /// Paths of files in your sandbox to copy to /sandbox/input, under the last component of their names.
    #[serde(default)]
    pub sandbox_files: Vec<String>,
    /// The directory in your sandbox to copy the output files to.
    #[serde(default)]
    pub save_to: Option<String>,
    /// Environment variables to set.
    #[serde(default)]
    pub env: BTreeMap<String, String>,
    /// The name of a session: files that one run leaves are available to the next in /sandbox/session.
    #[serde(default)]
    pub session: Option<String>,
}

/// The result of a run.
#[derive(Debug, Serialize, JsonSchema)]
pub struct SkillRun {
    /// The ID of this run.
    run: String,
    /// The skill.
    skill: String,
    /// Its version.
    version: String,
    /// `success`, `failed` or `timeout`.
    status: Status,
    /// Its output.
    #[serde(skip_serializing_if = "Option::is_none")]
    output: Option<Value>,
    /// The output files.
    files: Vec<Artifact>,
    /// The printed output.
    logs: String,
    /// The reason if the run did not succeed.
    error: Option<String>,
    /// The duration.
    duration_ms: u64,
    /// The resource usage.
    #[serde(skip_serializing_if = "Option::is_none")]
    usage: Option<Usage>,
    /// Notes.
    notes: Vec<String>,
}

impl Request<Context> for RunSkill {
    type Data = SkillRun;

    fn run(self, context: &Context) -> Result<Answer, Error> {
        let mut request = crate::Request::new(self.name).cancelled_by(context.cancel());
        let is_rounded = self.input.as_ref().is_some_and(is_beyond_64_bits);
        if let Some(input) = self.input.filter(|input| !input.is_null()) {
            request = request.input(input.to_string());
        }
        for (name, text) in self.files {
            request = request.file(name, text);
        }
        for path in self.sandbox_files {
            let name = path.rsplit('/').next().unwrap_or_default().to_owned();
            request = request.file(name, context.sandbox()?.fs().read(&path)?);
        }
        for (name, value) in self.env {
            request = request.env(name, value);
        }
        if let Some(session) = self.session {
            request = request.session(session);
        }
        // Before anything runs, because the files would be lost otherwise.
        let target = self.save_to.map(|directory| Ok::<_, Error>((context.sandbox()?, directory))).transpose()?;
        let mut result = context.skills().run(request)?;
        if is_rounded {
            result.notes.push(ROUNDED_INPUT.to_owned());
        }
        let output = result.output.as_deref().and_then(|output| serde_json::from_str::<Value>(output).ok());
        if output.as_ref().is_some_and(is_beyond_64_bits) {
            result.notes.push(ROUNDED_OUTPUT.to_owned());
        }
        if let Some((sandbox, directory)) = target
            && let Err(error) = save(&mut result, sandbox, &directory)
        {
            // The script has run, so its output must not be lost with its files.
            result.notes.push(format!("its files were not copied to {directory}: {error}"));
        }
        Ok(answer(&result))
    }
}

// Whether a value has a number that is no longer exact: it was parsed as a fraction, and may have been written as an integer.
fn is_beyond_64_bits(value: &Value) -> bool {
    match value {
        Value::Number(number) => number.is_f64() && number.as_f64().is_some_and(|number| number.abs() >= BITS_64),
        Value::Array(items) => items.iter().any(is_beyond_64_bits),
        Value::Object(fields) => fields.values().any(is_beyond_64_bits),
        _ => false,
    }
}

fn save(result: &mut RunResult, sandbox: &Sandbox, directory: &str) -> Result<(), Error> {
    let mut files = Vec::new();
    for Artifact { path, .. } in &result.files {
        files.push((format!("{}/{path}", directory.trim_end_matches('/')), Content::from(result.read(path)?)));
    }
    if !files.is_empty() {
        result.notes.push(format!("copied {} files to {directory}", files.len()));
        sandbox.fs().write_all(files)?;
    }
    Ok(())
}

/// Formats a result for a model.
pub(super) fn answer(result: &RunResult) -> Answer {
    let text = text(result);
    let output = result.output.as_deref().and_then(|output| serde_json::from_str(output).ok());
    let data = SkillRun {
        run: result.id.clone(),
        skill: result.skill.clone(),
        version: result.version.clone(),
        status: result.status,
        output,
        files: result.files.clone(),
        logs: shortened(result.logs.clone(), LOG_BYTES),
        error: result.error.clone(),
        duration_ms: result.duration_ms,
        usage: result.usage.clone(),
        notes: result.notes.clone(),
    };
    Answer::new(text, &data).failed(result.status != Status::Success)
}

// The output verbatim; logs only if they are useful.
fn text(result: &RunResult) -> String {
    let mut text = String::new();
    if let Some(error) = &result.error {
        text.push_str(&format!("{}: {error}\n", result.status.as_str()));
    }
    if let Some(output) = &result.output {
        text.push_str(output);
        text.push('\n');
    }
    if !result.logs.trim().is_empty() && (result.output.is_none() || result.error.is_some()) {
        text.push_str(&format!("[logs]\n{}\n", shortened(result.logs.trim_end().to_owned(), LOG_BYTES)));
    }
    for Artifact { path, size, sha256 } in &result.files {
        text.push_str(&format!("[file {path}: {size} bytes, sha256 {sha256}]\n"));
    }
    for note in &result.notes {
        text.push_str(&format!("[{note}]\n"));
    }
    if text.is_empty() {
        text.push_str(result.status.as_str());
    }
    text.trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_beyond_64_bits_are_noticed() {
        let check = |json: &str, expected: bool| {
            assert_eq!(is_beyond_64_bits(&serde_json::from_str::<Value>(json).unwrap()), expected, "{json}");
        };
        check("[18446744073709551615, -9223372036854775808, 0.1, 1e9]", false);
        check("18446744073709551616", true);
        check(r#"{"a": [{"b": -9223372036854775809}]}"#, true);
        check(r#"{"123456789012345678901234567890": "123456789012345678901234567890"}"#, false);
    }
}
