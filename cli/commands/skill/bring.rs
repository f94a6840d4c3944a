//! `skill push`, `add`, `package`, `new` and `lint`.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use runtime::{Error, FileType, Mount, Sandbox, Sources};
use serde_json::json;
use skills::{File, Finding, Needs, Package, Pushed, Severity, Skills, checks, lint as findings_of};

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
/// Maximum size of a skill in a repository, in bytes, and maximum number of its files, as for archives.
const SKILL_BYTES: u64 = 50 << 20;
const MOST_FILES: usize = 500;
/// The path of the repository in the sandbox that reads it.
const REPOSITORY: &str = "/repository";

pub(super) fn add(skills: &Skills, args: &SkillAdd, printer: &Printer) -> anyhow::Result<Code> {
    let mut all = Vec::new();
    for package in packages(&args.source)? {
        let pushed = push_one(skills, &package?, &args.options, printer)?;
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

/// Returns the skills of a git repository on this machine, each read when it is asked for.
pub(super) fn packages(source: &str) -> anyhow::Result<impl Iterator<Item = anyhow::Result<Package>>> {
    let source = Source::parse(source)?;
    let sandbox = source.open()?;
    let directories = source.skills(&sandbox)?;
    Ok(directories.into_iter().map(move |directory| {
        let package = archive(&sandbox, &directory).and_then(|bytes| Ok(Package::from_zip(&bytes)?));
        package.with_context(|| format!("cannot add `{}`", if directory.is_empty() { "." } else { &directory }))
    }))
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
        // No reference starts with a dash.
        if repository.is_empty() || commit.is_empty() || commit.starts_with('-') || directory.contains("..") {
            return Err(invalid());
        }
        let directory = directory.trim_matches('/').to_owned();
        Ok(Self { repository: repository.into(), directory, commit: commit.to_owned() })
    }

    // Mounts the commit. Git itself would run the programs that the settings and attributes of a repository name (T-SKL-05).
    fn open(&self) -> anyhow::Result<Sandbox> {
        let mut named = self.repository.clone().into_os_string();
        named.push("@");
        named.push(&self.commit);
        let opened = crate::engine::give(Sandbox::builder()).mount(Mount::git(named, REPOSITORY)).open();
        opened.map_err(|error| match error {
            Error::Mount { reason, .. } => {
                anyhow::anyhow!("cannot read the git repository `{}`: {reason}", self.repository.display())
            }
            error => error.into(),
        })
    }

    // The directories with a SKILL.md, at the named path or below it.
    fn skills(&self, sandbox: &Sandbox) -> anyhow::Result<Vec<String>> {
        let fs = sandbox.fs();
        let is_there = fs.metadata(&place(&self.directory)).is_ok_and(|stat| stat.is_dir());
        let (mut found, mut left) = (Vec::new(), Vec::from_iter(is_there.then(|| self.directory.clone())));
        while let Some(directory) = left.pop() {
            let entries = fs.list(&place(&directory))?;
            // A skill inside another skill is part of that skill.
            if entries.iter().any(|entry| entry.name == "SKILL.md" && entry.kind != FileType::Directory) {
                found.push(directory);
                continue;
            }
            let below = entries.into_iter().filter(|entry| entry.kind == FileType::Directory);
            left.extend(below.map(|entry| format!("{directory}/{}", entry.name).trim_start_matches('/').to_owned()));
        }
        found.sort();
        match found.len() {
            0 => {
                Err(Hinted::error(format!("no SKILL.md in `{}`", self.repository.display()), "name the directory: git:PATH//DIR"))
            }
            many if many > MOST_SKILLS => {
                Err(Hinted::error(format!("{many} skills in `{}`", self.repository.display()), "name a directory: git:PATH//DIR"))
            }
            _ => Ok(found),
        }
    }
}

// The path of a directory of the repository in the sandbox.
fn place(directory: &str) -> String {
    format!("{REPOSITORY}/{directory}").trim_end_matches('/').to_owned()
}

// Packs a directory of the repository as a zip file, which is checked like any other.
fn archive(sandbox: &Sandbox, directory: &str) -> anyhow::Result<Vec<u8>> {
    let (fs, top) = (sandbox.fs(), place(directory));
    let (mut files, mut bytes) = (Vec::new(), 0);
    for found in fs.walk(&top)? {
        let path = found.path.strip_prefix(&top).unwrap_or_default().trim_start_matches('/');
        let kind = found.stat.file_type();
        anyhow::ensure!(kind != FileType::Symlink, "unsafe archive: `{path}` is a symbolic link");
        if kind != FileType::File {
            continue;
        }
        bytes += found.stat.size;
        anyhow::ensure!(bytes <= SKILL_BYTES, "it is larger than {SKILL_BYTES} bytes");
        anyhow::ensure!(files.len() < MOST_FILES, "it has more than {MOST_FILES} files");
        let content = fs.read(&found.path)?;
        files.push(File { path: path.to_owned(), content, is_executable: found.stat.mode & 0o111 != 0 });
    }
    Ok(skills::pack(&files))
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
    if directory.exists() {
        return Err(Hinted::error(format!("`{name}` already exists"), "choose another name, or remove the directory first"));
    }
    std::fs::create_dir(directory).with_context(|| format!("cannot create `{name}`"))?;
    for file in &files {
        let path = directory.join(&file.path);
        if let Some(parent) = path.parent() {
            std::fs::create_dir_all(parent).with_context(|| format!("cannot create `{}`", parent.display()))?;
        }
        write_whole(&path, &file.content)?;
        if file.is_executable {
            let mode = Permissions::from_mode(0o755);
            std::fs::set_permissions(&path, mode).with_context(|| format!("cannot make `{}` executable", path.display()))?;
        }
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
