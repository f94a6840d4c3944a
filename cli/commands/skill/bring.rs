//! `skill push`, `add`, `package`, `new` and `lint`.

use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::Context as _;
use runtime::{Error, Sources};
use serde_json::json;
use skills::{Finding, Needs, Package, Pushed, Severity, Skills, checks, lint as findings_of};

use crate::args::{NewLanguage, PushOptions, SkillAdd, SkillPush};
use crate::commands::{pip, write_whole};
use crate::exit::Code;
use crate::printer::{Hinted, Printer};

pub(super) fn push(skills: &Skills, args: &SkillPush, printer: &Printer) -> anyhow::Result<Code> {
    let package = Package::from_path(&args.path)?;
    let pushed = push_one(skills, &package, &args.options, printer)?;
    if printer.is_json() {
        printer.json(&json!(pushed));
    } else {
        tell(&pushed, printer);
    }
    Ok(Code::Success)
}

fn tell(pushed: &Pushed, printer: &Printer) {
    let Pushed { name, version, digest, active, unchanged, notes } = pushed;
    let what = if *unchanged { "unchanged" } else { "pushed" };
    let whether = if *active { "" } else { ", not active" };
    printer.line(&printer.foreign(&format!("{what} {name} {version} ({digest}{whether})")));
    for note in notes {
        printer.note(printer.foreign(note));
    }
}

fn push_one(skills: &Skills, package: &Package, options: &PushOptions, printer: &Printer) -> anyhow::Result<Pushed> {
    let mut trouble = None;
    let mut fetch = |words: &[String]| {
        printer.progress().spin("downloading packages");
        pip::fetch(words).map_err(|error| {
            let text = format!("{error:#}");
            trouble = Some(error);
            Error::Invalid(text)
        })
    };
    let sources = Sources {
        no_deps: false,
        find_links: options.find_links.iter().map(|directory| directory.to_string_lossy().into_owned()).collect(),
        offline: options.offline,
    };
    let pushed = skills.push(package, Needs { replace: options.replace, sources, pip: Some(&mut fetch) });
    match trouble {
        Some(error) => Err(error),
        None => Ok(pushed?),
    }
}

/// Maximum number of skills in a repository.
const MOST_SKILLS: usize = 200;
/// Maximum size of an archive that git writes, in bytes.
const ARCHIVE_BYTES: u64 = 50 << 20;

pub(super) fn add(skills: &Skills, args: &SkillAdd, printer: &Printer) -> anyhow::Result<Code> {
    let source = Source::parse(&args.source)?;
    let directories = source.skills()?;
    let mut all = Vec::new();
    for directory in &directories {
        let package = Package::from_zip(&source.archive(directory)?);
        let package = package.with_context(|| format!("cannot add `{}`", if directory.is_empty() { "." } else { directory }))?;
        let pushed = push_one(skills, &package, &args.options, printer)?;
        if !printer.is_json() {
            tell(&pushed, printer);
        }
        all.push(pushed);
    }
    if printer.is_json() {
        printer.json(&json!({ "added": all }));
    }
    Ok(Code::Success)
}

/// A directory in a git repository on this machine, at a commit.
#[derive(Debug, PartialEq, Eq)]
struct Source {
    repository: PathBuf,
    directory: String,
    commit: String,
}

impl Source {
    fn parse(text: &str) -> anyhow::Result<Self> {
        let hint = "use the form git:PATH[//DIR][@REF], such as git:../skills//pdf@v2";
        let invalid = || Hinted::error(format!("invalid source `{text}`"), hint);
        let path = text.strip_prefix("git:").filter(|path| !path.is_empty()).ok_or_else(invalid)?;
        let (path, commit) = match path.rsplit_once('@') {
            Some((path, commit)) if !commit.contains('/') || !commit.is_empty() && !path.is_empty() => (path, commit),
            _ => (path, "HEAD"),
        };
        let (repository, directory) = path.split_once("//").unwrap_or((path, ""));
        // Git would parse a name that starts with a dash as an option.
        if repository.is_empty() || commit.is_empty() || commit.starts_with('-') || directory.contains("..") {
            return Err(invalid());
        }
        let directory = directory.trim_matches('/').to_owned();
        Ok(Self { repository: repository.into(), directory, commit: commit.to_owned() })
    }

    // Runs git on the repository without checking out or executing anything from it.
    fn git(&self, words: &[&str]) -> anyhow::Result<Vec<u8>> {
        let mut git = Command::new("git");
        git.arg("-C").arg(&self.repository).args(["-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null"]).args(words);
        let mut child = match git.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn() {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                return Err(Hinted::error("`git` is not installed on this machine", "push a directory or a zip file instead"));
            }
            child => child.context("cannot run `git`")?,
        };
        let mut bytes = Vec::new();
        if let Some(stdout) = child.stdout.take() {
            stdout.take(ARCHIVE_BYTES + 1).read_to_end(&mut bytes).context("cannot read from `git`")?;
        }
        if bytes.len() as u64 > ARCHIVE_BYTES {
            let _ = child.kill();
            let _ = child.wait();
            anyhow::bail!("`{}` is larger than {ARCHIVE_BYTES} bytes", self.directory);
        }
        let ended = child.wait_with_output().context("cannot run `git`")?;
        if !ended.status.success() {
            let text = String::from_utf8_lossy(&ended.stderr);
            let reason = text.lines().next().unwrap_or("no reason given").trim_start_matches("fatal: ").to_owned();
            anyhow::bail!("cannot read `{}` with git: {reason}", self.repository.display());
        }
        Ok(bytes)
    }

    // The directories with a SKILL.md, at the named path or below it.
    fn skills(&self) -> anyhow::Result<Vec<String>> {
        let listed = self.git(&["ls-tree", "-r", "-z", "--name-only", "--full-tree", "--end-of-options", &self.commit])?;
        let inside = |path: &str| self.directory.is_empty() || path.starts_with(&format!("{}/", self.directory));
        let mut found: Vec<String> = listed
            .split(|byte| *byte == 0)
            .filter_map(|path| std::str::from_utf8(path).ok())
            .filter(|path| inside(path) && (*path == "SKILL.md" || path.ends_with("/SKILL.md")))
            .map(|path| path.trim_end_matches("SKILL.md").trim_end_matches('/').to_owned())
            .collect();
        // A skill inside another skill is part of that skill.
        found.sort();
        let mut outer: Vec<String> = Vec::new();
        for directory in found {
            let is_part = outer.iter().any(|above| above.is_empty() || directory.starts_with(&format!("{above}/")));
            if !is_part {
                outer.push(directory);
            }
        }
        match outer.len() {
            0 => {
                Err(Hinted::error(format!("no SKILL.md in `{}`", self.repository.display()), "name the directory: git:PATH//DIR"))
            }
            many if many > MOST_SKILLS => {
                Err(Hinted::error(format!("{many} skills in `{}`", self.repository.display()), "name a directory: git:PATH//DIR"))
            }
            _ => Ok(outer),
        }
    }

    fn archive(&self, directory: &str) -> anyhow::Result<Vec<u8>> {
        self.git(&["archive", "--format=zip", "--end-of-options", &format!("{}:{directory}", self.commit)])
    }
}

pub(super) fn package(path: &Path, output: Option<&Path>, printer: &Printer) -> anyhow::Result<Code> {
    let package = Package::from_path(path)?;
    let manifest = package.manifest();
    let output = output.map_or_else(|| PathBuf::from(format!("{}-{}.zip", manifest.name, manifest.version)), Path::to_owned);
    let bytes = package.to_zip();
    write_whole(&output, &bytes)?;
    if printer.is_json() {
        printer.json(&json!({ "path": output, "bytes": bytes.len(), "digest": package.digest() }));
    } else {
        printer.line(&format!("wrote `{}` ({})", output.display(), crate::time::size(bytes.len() as u64)));
    }
    Ok(Code::Success)
}

pub(super) fn new(name: &str, language: NewLanguage, printer: &Printer) -> anyhow::Result<Code> {
    let directory = Path::new(name);
    let files = skills::template(name, language.into())?;
    std::fs::create_dir(directory).with_context(|| format!("cannot create `{name}`"))?;
    for file in &files {
        let path = directory.join(&file.path);
        if let Some(parent) = path.parent() {
            std::fs::create_dir_all(parent).with_context(|| format!("cannot create `{}`", parent.display()))?;
        }
        write_whole(&path, &file.content)?;
    }
    if printer.is_json() {
        printer.json(&json!({ "created": name, "files": files }));
    } else {
        files.iter().for_each(|file| printer.line(&format!("created {name}/{}", file.path)));
    }
    Ok(Code::Success)
}

pub(super) fn lint(path: &Path, security: bool, printer: &Printer) -> anyhow::Result<Code> {
    let findings = findings_of(path, security)?;
    let failed = findings.iter().any(|finding| finding.severity == Severity::Error);
    let code = if failed { Code::Failure } else { Code::Success };
    if printer.is_json() {
        printer.json(&json!({ "passed": !failed, "findings": findings }));
        return Ok(code);
    }
    printer.line(&format!("Linting {}", path.display()));
    for check in checks(&findings) {
        printer.line(&match &check.failure {
            None => format!("  PASS  {}", check.name),
            Some(reason) => printer.foreign(&format!("  FAIL  {}: {reason}", check.name)).into_owned(),
        });
    }
    findings.iter().for_each(|finding| print(finding, printer));
    if failed {
        printer.error(&anyhow::anyhow!("lint failed"));
    } else {
        printer.line("All checks passed");
    }
    Ok(code)
}

fn print(finding: &Finding, printer: &Printer) {
    let Finding { code, severity, file, line, message, remedy, matched, .. } = finding;
    let place = line.map_or_else(|| file.clone(), |line| format!("{file}:{line}"));
    let severity = match severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
    };
    let matched = matched.as_ref().map(|text| format!(": `{text}`")).unwrap_or_default();
    printer.line(&printer.foreign(&format!("{place}: {severity} [{code}] {message}{matched}")));
    printer.line(&printer.foreign(&format!("  remedy: {remedy}")));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_source_is_a_repository_a_directory_and_a_commit() {
        let check = |text: &str, repository: &str, directory: &str, commit: &str| {
            let expected = Source { repository: repository.into(), directory: directory.to_owned(), commit: commit.to_owned() };
            assert_eq!(Source::parse(text).unwrap(), expected, "{text}");
        };
        check("git:../skills", "../skills", "", "HEAD");
        check("git:/a/b//pdf/forms", "/a/b", "pdf/forms", "HEAD");
        check("git:.//pdf@v2", ".", "pdf", "v2");
        for text in ["../skills", "git:", "git:a//../b", "git:a@--upload-pack=x", "https://x"] {
            assert!(Source::parse(text).is_err(), "{text}");
        }
    }
}
