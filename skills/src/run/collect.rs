//! The results of a run: its output, files, logs and status.

use std::io;

use runtime::{Command, ExitStatus, Found, LimitName, Output, Sandbox};
use serde::de::IgnoredAny;
use serde_json::Value;
use sha2::{Digest, Sha256};

use super::contract::{self, FILES, OUT, OUTPUT};
use super::prepared::Prepared;
use super::{Artifact, RunResult, Status};
use crate::package::hex;
use crate::{Error, format_duration};

/// Maximum size of the output, and maximum number of listed files.
const OUTPUT_BYTES: u64 = 16 << 20;
const MOST_FILES: usize = 1000;
/// Maximum depth of the output, as that of JSON values in this program.
const DEPTH_MAX: usize = 127;

/// The error of a run that was cancelled.
pub(super) const CANCELLED: &str = "execution was cancelled";

/// Runs a script and collects its results.
pub(super) fn run(sandbox: &Sandbox, prepared: &Prepared, command: Command, result: &mut RunResult) -> Result<(), Error> {
    let cancel = command.cancel();
    let output = sandbox.run(command)?;
    let (logs, is_cut) = logs(&output, prepared.log_bytes);
    result.logs = logs;
    if is_cut {
        result.notes.push(format!("the logs are cut after {} bytes", prepared.log_bytes));
    }
    result.usage = Some(output.usage.clone());
    result.limit = output.status.limit().map(|reached| reached.limit);
    let left = sandbox.fs().walk(OUT).unwrap_or_default();
    let is_special = |found: &Found| found.path == OUTPUT && !found.stat.is_file();
    let mut problem = left.iter().any(is_special).then(|| "output.json is not a regular file".to_owned());
    let mut unlisted = 0;
    for found in left.iter().filter(|found| found.stat.is_file()) {
        if found.path == OUTPUT {
            problem = read_output(sandbox, prepared, found.stat.size, result)?;
        } else if let Some(name) = found.path.strip_prefix(FILES).and_then(|name| name.strip_prefix('/')) {
            if name.ends_with(".keep") && found.stat.size == 0 {
                continue;
            }
            if result.files.len() == MOST_FILES {
                unlisted += 1;
                continue;
            }
            result.files.push(artifact(sandbox, name)?);
        }
    }
    if unlisted > 0 {
        result.notes.push(format!("more than {MOST_FILES} files; {unlisted} are not listed"));
    }
    (result.status, result.error) = ended(&output, cancel.is_killed(), prepared, problem);
    Ok(())
}

fn ended(output: &Output, is_killed: bool, prepared: &Prepared, problem: Option<String>) -> (Status, Option<String>) {
    match &output.status {
        _ if is_killed => (Status::Failed, Some(CANCELLED.to_owned())),
        ExitStatus::Limit(reached) if reached.limit == LimitName::Wall => {
            (Status::Timeout, Some(format!("execution timed out after {}", format_duration(prepared.timeout))))
        }
        ExitStatus::Limit(reached) => (Status::Failed, Some(reached.to_string())),
        status if !status.success() => (Status::Failed, Some(format!("command exited with code {}", status.code()))),
        _ => match problem {
            Some(problem) => (Status::Failed, Some(problem)),
            None => (Status::Success, None),
        },
    }
}

// Returns the problem of the output, if any.
fn read_output(sandbox: &Sandbox, prepared: &Prepared, size: u64, result: &mut RunResult) -> Result<Option<String>, Error> {
    if size > OUTPUT_BYTES {
        return Ok(Some(format!("output.json has {size} bytes; the maximum is {OUTPUT_BYTES}")));
    }
    let text = match json_text(sandbox.fs().read(OUTPUT)?) {
        Ok(text) => text,
        Err(reason) => return Ok(Some(format!("output.json is not JSON: {reason}"))),
    };
    let Some(compact) = compact(&text) else {
        return Ok(Some(format!("output.json is nested deeper than {DEPTH_MAX} levels")));
    };
    result.output = Some(compact);
    let Some(schema) = &prepared.output_schema else { return Ok(None) };
    let checked = serde_json::from_str::<Value>(&text).map_err(|error| error.to_string()).and_then(|value| schema.check(&value));
    Ok(checked.err().map(|reason| format!("invalid output: {}", contract::named(&reason, "the output"))))
}

/// Checks that a text is JSON; the reason includes its position. Only the grammar counts: numbers of any size and escapes of lone
/// surrogates, which Python writes for names that are not UTF-8, are JSON.
pub(super) fn check_json(text: &str) -> Result<(), String> {
    serde_json::from_str::<IgnoredAny>(text).map(drop).map_err(|error| error.to_string())
}

// Returns bytes as text if they are JSON.
fn json_text(bytes: Vec<u8>) -> Result<String, String> {
    let text = String::from_utf8(bytes).map_err(|error| {
        let valid = error.as_bytes().get(..error.utf8_error().valid_up_to()).unwrap_or_default();
        let line = valid.split(|byte| *byte == b'\n').count();
        let column = valid.iter().rev().take_while(|byte| **byte != b'\n').count() + 1;
        format!("invalid UTF-8 at line {line} column {column}")
    })?;
    check_json(&text)?;
    Ok(text)
}

/// Removes insignificant white space from JSON text; numbers and strings are kept verbatim. Returns `None` if it is nested too deeply.
fn compact(json: &str) -> Option<String> {
    let (mut compact, mut in_text, mut escaped) = (String::with_capacity(json.len()), false, false);
    let mut depth = 0usize;
    for letter in json.chars() {
        match letter {
            '[' | '{' if !in_text => depth += 1,
            ']' | '}' if !in_text => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth > DEPTH_MAX {
            return None;
        }
        if in_text {
            in_text = escaped || letter != '"';
            escaped = letter == '\\' && !escaped;
        } else if letter.is_ascii_whitespace() {
            continue;
        } else {
            in_text = letter == '"';
        }
        compact.push(letter);
    }
    Some(compact)
}

// Returns the logs, and whether they are longer than `most`.
fn logs(output: &Output, most: usize) -> (String, bool) {
    let mut logs = String::from_utf8_lossy(&output.stdout).into_owned();
    if !output.stderr.is_empty() {
        if !logs.is_empty() {
            logs.push('\n');
        }
        logs.push_str(&String::from_utf8_lossy(&output.stderr));
    }
    let is_cut = logs.len() > most;
    logs.truncate(logs.floor_char_boundary(most));
    (logs, is_cut)
}

fn artifact(sandbox: &Sandbox, name: &str) -> Result<Artifact, Error> {
    let mut sum = Sum(Sha256::new());
    let size = sandbox.fs().read_to(&format!("{FILES}/{name}"), &mut sum)?;
    Ok(Artifact { path: name.to_owned(), size, sha256: hex(&sum.0.finalize()) })
}

/// Hashes what is written to it.
struct Sum(Sha256);

impl io::Write for Sum {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.update(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_is_compacted_and_its_numbers_stay() {
        let check = |text: &str, expected: &str| assert_eq!(compact(text).as_deref(), Some(expected));
        check("{ \"a b\" : [1, 2.50,\n\t-0.0] }\n", r#"{"a b":[1,2.50,-0.0]}"#);
        check(r#"{"big": 123456789012345678901234567890}"#, r#"{"big":123456789012345678901234567890}"#);
        check(r#"["a \" b", "c\\", "d e"]"#, r#"["a \" b","c\\","d e"]"#);
        check(&"[".repeat(127), &"[".repeat(127));
        assert_eq!(compact(&"[".repeat(128)), None);
    }

    #[test]
    fn json_follows_the_grammar() {
        let check = |text: &[u8], expected: Result<(), &str>| {
            assert_eq!(json_text(text.to_vec()).map(drop), expected.map_err(str::to_owned), "{}", text.escape_ascii());
        };
        check(br#"{"a": ["\ud800", 1e999, 123456789012345678901234567890]}"#, Ok(()));
        check("[".repeat(1000).as_bytes(), Err("EOF while parsing a list at line 1 column 1000"));
        check(b"{\n \"a\": NaN}", Err("expected value at line 2 column 7"));
        check(b"[01]", Err("invalid number at line 1 column 3"));
        check(b"{} {}", Err("trailing characters at line 1 column 4"));
        check(b"[\n\"\xe9\"]", Err("invalid UTF-8 at line 2 column 2"));
        check(b"", Err("EOF while parsing a value at line 1 column 0"));
    }
}
