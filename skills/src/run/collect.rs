//! The results of a run: its output, files, logs and status.

use std::io;

use runtime::{Command, ExitStatus, LimitName, Output, Sandbox};
use serde_json::Value;
use sha2::{Digest, Sha256};

use super::contract::{self, FILES, OUT, OUTPUT};
use super::prepared::Prepared;
use super::{Artifact, RunResult, Status};
use crate::package::hex;
use crate::{Error, format_duration};

/// Maximum size of logs and of the output, and maximum number of listed files.
const LOG_BYTES: usize = 1 << 20;
const OUTPUT_BYTES: u64 = 16 << 20;
const MOST_FILES: usize = 1000;

/// Runs a script and collects its results.
pub(super) fn run(sandbox: &Sandbox, prepared: &Prepared, command: Command, result: &mut RunResult) -> Result<(), Error> {
    let cancel = command.cancel();
    let output = sandbox.run(command)?;
    result.logs = logs(&output);
    result.usage = Some(output.usage.clone());
    let left = sandbox.fs().walk(OUT).unwrap_or_default();
    let mut problem = None;
    let files = left.iter().filter(|found| found.stat.is_file());
    for found in files {
        if found.path == OUTPUT {
            problem = read_output(sandbox, prepared, found.stat.size, result)?;
        } else if let Some(name) = found.path.strip_prefix(FILES).and_then(|name| name.strip_prefix('/')) {
            if name.ends_with(".keep") && found.stat.size == 0 {
                continue;
            }
            if result.files.len() == MOST_FILES {
                result.notes.push(format!("more than {MOST_FILES} files; the rest are not listed"));
                break;
            }
            result.files.push(artifact(sandbox, name)?);
        }
    }
    (result.status, result.error) = ended(&output, cancel.is_killed(), prepared, problem);
    Ok(())
}

fn ended(output: &Output, is_killed: bool, prepared: &Prepared, problem: Option<String>) -> (Status, Option<String>) {
    match &output.status {
        _ if is_killed => (Status::Failed, Some("execution was cancelled".to_owned())),
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
    let bytes = sandbox.fs().read(OUTPUT)?;
    let value: Value = match serde_json::from_slice(&bytes) {
        Ok(value) => value,
        // Includes the position and the unexpected text.
        Err(error) => return Ok(Some(format!("output.json is not JSON: {error}"))),
    };
    let text = String::from_utf8_lossy(&bytes);
    result.output = Some(compact(&text));
    let complaint = prepared.output_schema.as_ref().and_then(|schema| schema.check(&value).err());
    Ok(complaint.map(|reason| format!("invalid output: {}", contract::named(&reason, "the output"))))
}

/// Removes insignificant white space from JSON text; numbers and strings are kept verbatim.
pub(crate) fn compact(json: &str) -> String {
    let (mut compact, mut in_text, mut escaped) = (String::with_capacity(json.len()), false, false);
    for letter in json.chars() {
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
    compact
}

fn logs(output: &Output) -> String {
    let mut logs = String::from_utf8_lossy(&output.stdout).into_owned();
    if !output.stderr.is_empty() {
        if !logs.is_empty() {
            logs.push('\n');
        }
        logs.push_str(&String::from_utf8_lossy(&output.stderr));
    }
    logs.truncate(logs.floor_char_boundary(LOG_BYTES));
    logs
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
        let check = |text: &str, expected: &str| assert_eq!(compact(text), expected);
        check("{ \"a b\" : [1, 2.50,\n\t-0.0] }\n", r#"{"a b":[1,2.50,-0.0]}"#);
        check(r#"{"big": 123456789012345678901234567890}"#, r#"{"big":123456789012345678901234567890}"#);
        check(r#"["a \" b", "c\\", "d e"]"#, r#"["a \" b","c\\","d e"]"#);
    }
}
