//! `list_skills`, `load_skill` and the actions on versions.

use runtime::Error;
use runtime::actions::{Answer, Request};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Context;
use crate::{Listed, Package, SkillDiff, VersionRow};

/// Longest text of a skill that an answer has.
const TEXT_BYTES: usize = 256 << 10;
/// Most skills on a page.
const PAGE: usize = 500;

/// Which skills to list.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ListSkills {
    /// Only those whose name or description contains this text, in any case of letters.
    #[serde(default)]
    pub search: Option<String>,
    /// Only those whose names come after this one: for the next page.
    #[serde(default)]
    pub after: Option<String>,
}

/// Skills.
#[derive(Debug, Serialize, JsonSchema)]
pub struct SkillList {
    /// By name, at most 500.
    skills: Vec<Listed>,
    /// How many there are in all.
    total: usize,
    /// The name to give as `after` for the next page, if there are more.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
}

impl Request<Context> for ListSkills {
    type Data = SkillList;

    fn run(self, context: &Context) -> Result<Answer, Error> {
        let mut skills = context.skills().catalog().list()?;
        if let Some(search) = self.search.as_deref().map(str::to_lowercase) {
            skills.retain(|skill| {
                skill.name.to_lowercase().contains(&search) || skill.description.to_lowercase().contains(&search)
            });
        }
        let total = skills.len();
        if let Some(after) = &self.after {
            skills.retain(|skill| skill.name > *after);
        }
        let has_more = skills.len() > PAGE;
        skills.truncate(PAGE);
        let next = skills.last().filter(|_| has_more).map(|skill| skill.name.clone());
        let mut text: String =
            skills.iter().map(|skill| format!("{} {}: {}\n", skill.name, skill.version, one_line(&skill.description))).collect();
        if skills.is_empty() {
            text.push_str("no skills\n");
        }
        if let Some(next) = &next {
            text.push_str(&format!("[more: after={next:?}]\n"));
        }
        Ok(Answer::new(text.trim_end().to_owned(), &SkillList { skills, total, next }))
    }
}

/// A description without line breaks.
pub(super) fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Which skill to read.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LoadSkill {
    /// Its name, or `name@version`.
    pub name: String,
    /// The path of one of its files, to read that instead of the instructions.
    #[serde(default)]
    pub file: Option<String>,
}

/// What a skill says.
#[derive(Debug, Serialize, JsonSchema)]
pub struct LoadedSkill {
    /// Its name.
    name: String,
    /// Its version.
    version: String,
    /// What it does and when to use it.
    description: String,
    /// Its instructions, or the text of the file.
    content: String,
    /// How long that is, in bytes.
    length: usize,
    /// Where it is in a sandbox that shows skills.
    location: String,
    /// `executable` or `cognitive`.
    mode: String,
    /// The script that `run_skill` runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    entry: Option<String>,
    /// The JSON schema of its input.
    #[serde(skip_serializing_if = "Option::is_none")]
    input_schema: Option<serde_json::Value>,
    /// The JSON schema of its output.
    #[serde(skip_serializing_if = "Option::is_none")]
    output_schema: Option<serde_json::Value>,
    /// The paths of its files.
    files: Vec<String>,
}

impl Request<Context> for LoadSkill {
    type Data = LoadedSkill;

    fn run(self, context: &Context) -> Result<Answer, Error> {
        let package = context.skills().catalog().get(&self.name)?;
        let manifest = package.manifest();
        let (content, path) = match &self.file {
            None => (manifest.instructions.clone(), "SKILL.md"),
            Some(path) => (text_of(&package, path)?, path.as_str()),
        };
        let files: Vec<String> = package.files().iter().map(|file| file.path.clone()).collect();
        let mut text = content.clone();
        if self.file.is_none() {
            text = format!(
                "# Skill {} {}\n{}\n\n{content}\n\n[files: {}]",
                manifest.name,
                manifest.version,
                manifest.description,
                files.join(", ")
            );
            if let Some(schema) = &manifest.input_schema {
                text.push_str(&format!("\n[input schema: {schema}]"));
            }
        }
        let data = LoadedSkill {
            name: manifest.name.clone(),
            version: manifest.version.clone(),
            description: manifest.description.clone(),
            length: content.len(),
            location: format!("/skills/{}/{path}", manifest.name),
            content,
            mode: manifest.mode.as_str().to_owned(),
            entry: package.entry().map(str::to_owned),
            input_schema: manifest.input_schema.clone(),
            output_schema: manifest.output_schema.clone(),
            files,
        };
        Ok(Answer::new(text, &data))
    }
}

fn text_of(package: &Package, path: &str) -> Result<String, Error> {
    let quoted = runtime::actions::quoted(path);
    let file = package.file(path).ok_or_else(|| {
        let name = &package.manifest().name;
        Error::Invalid(format!("unknown file `{quoted}` of skill `{name}`"))
    })?;
    match file.text() {
        Some(text) if text.len() <= TEXT_BYTES => Ok(text.to_owned()),
        Some(_) => Err(Error::Invalid(format!("`{quoted}` has more than {TEXT_BYTES} bytes"))),
        None => Err(Error::Invalid(format!("`{quoted}` is not text"))),
    }
}

/// Which skill's versions to list.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SkillVersions {
    /// Its name.
    pub name: String,
}

/// Versions of a skill.
#[derive(Debug, Serialize, JsonSchema)]
pub struct VersionList {
    /// The skill.
    name: String,
    /// Its versions, newest first.
    versions: Vec<VersionRow>,
}

impl Request<Context> for SkillVersions {
    type Data = VersionList;

    fn run(self, context: &Context) -> Result<Answer, Error> {
        let versions = context.skills().catalog().versions(&self.name)?;
        let line = |row: &VersionRow| {
            let mark = if row.active { " (active)" } else { "" };
            let replaced =
                if row.replaced.is_empty() { String::new() } else { format!("  replaced {}", row.replaced.join(", ")) };
            format!("{}{mark}  {}{replaced}", row.version, row.digest)
        };
        let text = versions.iter().map(line).collect::<Vec<_>>().join("\n");
        Ok(Answer::new(text, &VersionList { name: self.name, versions }))
    }
}

/// Which skill's files to list.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SkillFiles {
    /// Its name, or `name@version`.
    pub name: String,
    /// The path of one file, whose text is returned too.
    #[serde(default)]
    pub path: Option<String>,
}

/// Files of a skill.
#[derive(Debug, Serialize, JsonSchema)]
pub struct FileList {
    /// By path.
    files: Vec<SkillFile>,
}

/// A file of a skill.
#[derive(Debug, Serialize, JsonSchema)]
pub struct SkillFile {
    /// Its path.
    path: String,
    /// Its bytes.
    size_bytes: usize,
    /// The SHA-256 of its content, in hexadecimal.
    sha256: String,
    /// Whether it is a program.
    is_executable: bool,
    /// Its text, if it was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    content: Option<String>,
}

impl Request<Context> for SkillFiles {
    type Data = FileList;

    fn run(self, context: &Context) -> Result<Answer, Error> {
        let package = context.skills().catalog().get(&self.name)?;
        let content = self.path.as_deref().map(|path| text_of(&package, path)).transpose()?;
        let wanted = package.files().iter().filter(|file| self.path.as_ref().is_none_or(|path| *path == file.path));
        let files: Vec<SkillFile> = wanted
            .map(|file| SkillFile {
                path: file.path.clone(),
                size_bytes: file.content.len(),
                sha256: file.sha256(),
                is_executable: file.is_executable,
                content: content.clone(),
            })
            .collect();
        let list = || files.iter().map(|file| format!("{:>8}  {}", file.size_bytes, file.path)).collect::<Vec<_>>().join("\n");
        let text = content.unwrap_or_else(list);
        Ok(Answer::new(text, &FileList { files }))
    }
}

/// Which versions to compare.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DiffSkill {
    /// The skill.
    pub name: String,
    /// The older version.
    pub from: String,
    /// The newer version; defaults to the active one.
    #[serde(default)]
    pub to: Option<String>,
}

impl Request<Context> for DiffSkill {
    type Data = SkillDiff;

    fn run(self, context: &Context) -> Result<Answer, Error> {
        let diff = context.skills().catalog().diff(&self.name, &self.from, self.to.as_deref())?;
        Ok(Answer::new(diff.patch().trim_end().to_owned(), &diff))
    }
}

/// Which version to use.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ActivateSkill {
    /// The skill.
    pub name: String,
    /// The version.
    pub version: String,
}

/// The version that is used.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Activated {
    /// The skill.
    name: String,
    /// Its active version.
    active: String,
}

impl Request<Context> for ActivateSkill {
    type Data = Activated;

    fn run(self, context: &Context) -> Result<Answer, Error> {
        context.skills().catalog().activate(&self.name, &self.version)?;
        let text = format!("{} {} is active", self.name, self.version);
        Ok(Answer::new(text, &Activated { name: self.name, active: self.version }))
    }
}

/// What to delete.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DeleteSkill {
    /// The skill with all its versions, or one as `name@version`.
    pub name: String,
}

/// What was deleted.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Deleted {
    /// The versions.
    deleted: Vec<String>,
}

impl Request<Context> for DeleteSkill {
    type Data = Deleted;

    fn run(self, context: &Context) -> Result<Answer, Error> {
        let deleted = context.skills().catalog().delete(&self.name)?;
        let name = self.name.split('@').next().unwrap_or_default();
        Ok(Answer::new(format!("deleted {name} {}", deleted.join(", ")), &Deleted { deleted }))
    }
}
