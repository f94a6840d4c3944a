//! Problems of a skill: every finding with its file, line and remedy.
//!
//! One function parses a manifest; a package with an error is rejected with the same message.

use std::path::Path;

use serde::Serialize;

use crate::manifest::{self, Language, Manifest, Mode, Read};
use crate::package::{self, ENTRIES, File, SKILL_MD, entry};
use crate::requirements::{Need, lines, need};
use crate::{Error, scan};

/// Recommended maximum number of lines of instructions.
const BODY_LINES: usize = 500;

/// The severity of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// The skill is rejected; Skillbox's BLOCK.
    Error,
    /// The skill should be reviewed; Skillbox's FLAG.
    Warning,
}

/// A problem of a skill.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// The name of a check such as `version`, or a code of the security scan such as `E005`.
    pub code: &'static str,
    /// The severity.
    pub severity: Severity,
    /// The category of the security scan, such as `suspicious_url`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub category: Option<&'static str>,
    /// The file.
    pub file: String,
    /// The line, from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<usize>,
    /// The problem.
    pub message: String,
    /// The remedy.
    pub remedy: String,
    /// The matched text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub matched: Option<String>,
}

impl Finding {
    pub(crate) fn error(
        code: &'static str,
        file: &str,
        line: Option<usize>,
        message: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Self {
        let (file, message, remedy) = (file.to_owned(), message.into(), remedy.into());
        Self { code, severity: Severity::Error, category: None, file, line, message, remedy, matched: None }
    }

    fn warning(
        code: &'static str,
        file: &str,
        line: Option<usize>,
        message: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Self {
        Self { severity: Severity::Warning, ..Self::error(code, file, line, message, remedy) }
    }
}

/// The checks that Skillbox's `skill lint` prints, in the same order.
pub const CHECKS: [&str; 5] = ["name", "version", "description", "entrypoint", "image"];

/// The outcome of one check.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Check {
    /// Its name.
    pub name: &'static str,
    /// The reason if it failed; `None` if it passed.
    pub failure: Option<String>,
}

/// Returns the outcomes of the checks as listed by Skillbox's `skill lint`: those that failed, or `parse` alone.
#[must_use]
pub fn checks(findings: &[Finding]) -> Vec<Check> {
    let failure = |name: &str| {
        let wrong = findings.iter().find(|finding| finding.code == name && finding.severity == Severity::Error);
        wrong.map(|finding| finding.message.clone())
    };
    for fatal in ["parse", "files"] {
        if let Some(reason) = failure(fatal) {
            return vec![Check { name: "parse", failure: Some(reason) }];
        }
    }
    let known = CHECKS.iter().map(|name| Check { name, failure: failure(name) });
    let others = findings.iter().filter(|finding| finding.severity == Severity::Error && !CHECKS.contains(&finding.code));
    let others = others.map(|finding| Check { name: finding.code, failure: Some(finding.message.clone()) });
    known.chain(others).collect()
}

/// Parses the manifest of a skill and returns it with its findings.
pub(crate) fn read(files: &[File]) -> (Manifest, Vec<Finding>) {
    let text = files.iter().find(|file| file.path == SKILL_MD).and_then(File::text).unwrap_or_default();
    let Read { manifest, findings, .. } = manifest::read(text);
    (manifest, findings)
}

/// Returns all problems of the skill at a path, which is a directory, a zip file or a `SKILL.md`; with `security` also the
/// findings of the security scan.
///
/// # Errors
///
/// Returns [`Error::Host`] if a file cannot be read.
pub fn lint(path: &Path, security: bool) -> Result<Vec<Finding>, Error> {
    let files = match package::files_of(path) {
        Ok(files) => files,
        Err(error @ (Error::Host { .. } | Error::Catalog(_) | Error::Runtime(_))) => return Err(error),
        Err(error) => return Ok(vec![refused(&path.display().to_string(), &error)]),
    };
    let directory = path.canonicalize().ok().filter(|path| path.is_dir());
    let directory = directory.as_deref().and_then(Path::file_name).map(|name| name.to_string_lossy().into_owned());
    let mut findings = lint_files(&files, directory.as_deref());
    if security {
        findings.extend(scan(&files));
    }
    Ok(findings)
}

fn refused(file: &str, error: &Error) -> Finding {
    let remedy = match error {
        Error::Invalid(reason) if reason == package::NO_SKILL_MD => {
            "add a SKILL.md; `sandlite skill new NAME` creates a skill to start from"
        }
        Error::TooLarge(_) => "remove files, or split the skill",
        _ => "remove or rename the named file",
    };
    Finding::error("files", file, None, error.to_string(), remedy)
}

/// Returns all problems of the files of a skill that is stored in a directory of this name.
pub(crate) fn lint_files(files: &[File], directory: Option<&str>) -> Vec<Finding> {
    if let Err(error) = package::check_files(files) {
        return vec![refused(SKILL_MD, &error)];
    }
    let text = files.iter().find(|file| file.path == SKILL_MD).and_then(File::text).unwrap_or_default();
    let Read { manifest, mut findings, body_line } = manifest::read(text);
    if findings.iter().any(|finding| finding.code == "parse") {
        return findings;
    }
    if directory.is_some_and(|directory| directory != manifest.name) && !manifest.name.is_empty() {
        let message = format!("name `{}` differs from the directory's name", manifest.name);
        findings.push(Finding::warning(
            "name",
            SKILL_MD,
            None,
            message,
            "rename the directory: other clients expect the same name",
        ));
    }
    let lines = manifest.instructions.lines().count();
    if lines > BODY_LINES {
        let message = format!("the instructions have {lines} lines");
        findings.push(Finding::warning(
            "body",
            SKILL_MD,
            Some(body_line),
            message,
            "move details into files below `references/`",
        ));
    }
    if manifest.instructions.is_empty() {
        let message = "no instructions after the front matter";
        findings.push(Finding::warning("body", SKILL_MD, Some(body_line), message, "describe input, output and an example"));
    }
    findings.extend(script(files, &manifest));
    findings.extend(requirements(files));
    findings
}

fn script(files: &[File], manifest: &Manifest) -> Option<Finding> {
    let entry = entry(files);
    match (entry, manifest.mode) {
        (None, Mode::Cognitive) => None,
        (None, Mode::Executable) => {
            let message =
                format!("no entrypoint found; expected one of: {}", ENTRIES.map(|name| format!("scripts/{name}")).join(", "));
            let remedy = "add a script, or set `mode: cognitive` if the skill has only instructions";
            Some(Finding::warning("entrypoint", SKILL_MD, None, message, remedy))
        }
        (Some(entry), Mode::Cognitive) => {
            let message = format!("`{entry}` is never run because the mode is cognitive");
            Some(Finding::warning("entrypoint", entry, None, message, "remove `mode: cognitive` or the script"))
        }
        (Some(entry), Mode::Executable) => {
            let language = manifest.lang.or_else(|| Language::of_entry(entry))?;
            let is_node = language == Language::Node;
            is_node.then(|| {
                let message = "lang node cannot run here: no JavaScript guest is installed";
                Finding::warning("lang", entry, None, message, "write the script in Python or bash")
            })
        }
    }
}

fn requirements(files: &[File]) -> Vec<Finding> {
    let Some(text) = files.iter().find(|file| file.path == "requirements.txt").and_then(File::text) else { return Vec::new() };
    let mut findings = Vec::new();
    for (number, line) in lines(text) {
        let at = Some(number);
        match need(&line) {
            Need::Pure | Need::Scientific => {}
            Need::Native(reason) => {
                let message = format!("`{line}` cannot run here: {reason}");
                let remedy = "use a pure-Python package, or one included in the scientific Python";
                findings.push(Finding::warning("requirements", "requirements.txt", at, message, remedy));
            }
            Need::Unreadable => {
                let message = format!("invalid requirement `{line}`");
                let remedy = "use a name with an optional version, such as `six==1.17.0`";
                findings.push(Finding::error("requirements", "requirements.txt", at, message, remedy));
            }
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    fn codes(files: &[(&str, &str)]) -> Vec<(&'static str, Severity)> {
        let files: Vec<File> = files.iter().map(|(path, text)| File::new(*path, *text)).collect();
        lint_files(&files, None).iter().map(|finding| (finding.code, finding.severity)).collect()
    }

    const HEAD: &str = "---\nname: x\ndescription: y\n---\ntext\n";

    #[test]
    fn a_good_skill_has_no_findings() {
        assert_eq!(codes(&[("SKILL.md", HEAD), ("scripts/main.py", "")]), []);
        assert_eq!(codes(&[("SKILL.md", "---\nname: x\ndescription: y\nmode: cognitive\n---\ntext\n")]), []);
    }

    #[test]
    fn findings_beyond_the_manifest_have_files_and_lines() {
        use Severity::{Error, Warning};
        assert_eq!(codes(&[("SKILL.md", HEAD)]), [("entrypoint", Warning)]);
        assert_eq!(codes(&[("SKILL.md", HEAD), ("main.js", "")]), [("lang", Warning)]);
        assert_eq!(codes(&[("SKILL.md", "---\nname: x\ndescription: y\n---\n"), ("main.py", "")]), [("body", Warning)]);
        assert_eq!(codes(&[("a.md", HEAD)]), [("files", Error)]);
        let remedy = |path: &str, text: &str| lint_files(&[File::new(path, text)], None)[0].remedy.clone();
        assert!(remedy("a.md", HEAD).starts_with("add a SKILL.md"));
        assert_eq!(remedy("../a", HEAD), "remove or rename the named file");
        assert_eq!(codes(&[("SKILL.md", "no head")]), [("parse", Error)]);
        let files = [("SKILL.md", HEAD), ("main.py", ""), ("requirements.txt", "# fine\nsix\n\ntorch==2\n-e .\n")];
        assert_eq!(codes(&files), [("requirements", Warning), ("requirements", Error)]);
        let files: Vec<File> = files.iter().map(|(path, text)| File::new(*path, *text)).collect();
        assert_eq!(lint_files(&files, Some("y")).iter().filter_map(|finding| finding.line).collect::<Vec<_>>(), [4, 5]);
    }

    #[test]
    fn the_checks_are_those_of_skillbox() {
        let findings = lint_files(&[File::new("SKILL.md", "---\nname: x\nversion: one\n---\n")], None);
        let checks = checks(&findings);
        let failed: Vec<&str> = checks.iter().filter(|check| check.failure.is_some()).map(|check| check.name).collect();
        assert_eq!(failed, ["version", "description"]);
        assert_eq!(checks.iter().map(|check| check.name).collect::<Vec<_>>(), CHECKS);
        let parse = super::checks(&lint_files(&[File::new("SKILL.md", "x")], None));
        assert_eq!(parse.iter().map(|check| check.name).collect::<Vec<_>>(), ["parse"]);
    }
}
