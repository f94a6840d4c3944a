//! `list_skills`, `load_skill` and the actions on versions.

use runtime::Error;
use runtime::actions::{Answer, Request};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Context;
use crate::{Listed, Package, SkillDiff, VersionRow};

/// Maximum size of a text in a result.
const TEXT_BYTES: usize = 256 << 10;
/// Maximum number of skills on a page.
const PAGE: usize = 500;

/// Selects the skills to list.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ListSkills {
    /// List only skills whose name or description contains this text, ignoring case.
    #[serde(default)]
    pub search: Option<String>,
    /// List only skills whose names sort after this one: for the next page.
    #[serde(default)]
    pub after: Option<String>,
}

/// A list of skills.
#[derive(Debug, Serialize, JsonSchema)]
pub struct SkillList {
    /// The skills by name, at most 500.
    skills: Vec<Listed>,
    /// The total number of matching skills.
    total: usize,
    /// The value of `after` for the next page, if there are more.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
}

impl Request<Context> for ListSkills {
    type Data = SkillList;

    fn run(self, context: &Context) -> Result<Answer, Error> {
        let (catalog, after) = (context.skills().catalog(), self.after.unwrap_or_default());
        let (mut skills, total) = match self.search.as_deref().map(str::to_lowercase) {
            // One more than a page, to know whether there is another.
            None => catalog.page(&after, PAGE + 1)?,
            Some(search) => {
                let mut found = catalog.list()?;
                found.retain(|skill| {
                    skill.name.to_lowercase().contains(&search) || skill.description.to_lowercase().contains(&search)
                });
                let total = found.len();
                found.retain(|skill| skill.name > after);
                (found, total)
            }
        };
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

/// Returns a description without line breaks.
pub(super) fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Selects the skill to read.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LoadSkill {
    /// The name, or `name@version`.
    pub name: String,
    /// Read this file of the skill instead of its instructions.
    #[serde(default)]
    pub file: Option<String>,
}

/// The content of a skill.
#[derive(Debug, Serialize, JsonSchema)]
pub struct LoadedSkill {
    /// The name.
    name: String,
    /// The version.
    version: String,
    /// What the skill does and when to use it.
    description: String,
    /// The instructions, or the text of the file.
    content: String,
    /// The size of the content, in bytes.
    length: usize,
    /// The path of the skill in a sandbox that mounts skills.
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
        // `location` exists in a sandbox that mounts skills, also if the skill was pushed after that.
        context.skills().refresh()?;
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
        Some(_) => Err(Error::Invalid(format!("`{quoted}` is larger than {TEXT_BYTES} bytes"))),
        None => Err(Error::Invalid(format!("`{quoted}` is not UTF-8"))),
    }
}

/// Selects the skill whose versions to list.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SkillVersions {
    /// The name.
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

/// Selects the skill whose files to list.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SkillFiles {
    /// The name, or `name@version`.
    pub name: String,
    /// Also return the text of the file with this path.
    #[serde(default)]
    pub path: Option<String>,
}

/// Files of a skill.
#[derive(Debug, Serialize, JsonSchema)]
pub struct FileList {
    /// The files by path.
    files: Vec<SkillFile>,
}

/// A file of a skill.
#[derive(Debug, Serialize, JsonSchema)]
pub struct SkillFile {
    /// The path.
    path: String,
    /// The size, in bytes.
    size_bytes: usize,
    /// The SHA-256 of its content, in hexadecimal.
    sha256: String,
    /// Whether the file is executable.
    is_executable: bool,
    /// The text, if requested.
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

/// Selects the versions to compare.
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

/// Selects the version to use.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ActivateSkill {
    /// The skill.
    pub name: String,
    /// The version.
    pub version: String,
}

/// The active version.
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
        let active = context.skills().catalog().activate(&self.name, &self.version)?;
        let text = format!("{} {active} is active", self.name);
        Ok(Answer::new(text, &Activated { name: self.name, active }))
    }
}

/// Selects what to delete.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DeleteSkill {
    /// The name of a skill, which deletes all its versions, or `name@version`; `name@latest` is the active one.
    pub name: String,
}

/// The deleted versions.
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
