//! The manifest in a `SKILL.md`, in both dialects: Skillbox's and that of agentskills.io.

use std::time::Duration;

use serde::Serialize;
use serde_json::{Map, Value};

use crate::Error;
use crate::duration::parse_duration;
use crate::front_matter::{self, Document, Field, Yaml};
use crate::lint::{Finding, Severity};
use crate::version::is_version;

/// The default version.
pub(crate) const DEFAULT_VERSION: &str = "1.0.0";

/// Maximum lengths of the name and the description.
const NAME_BYTES: usize = 128;
const DESCRIPTION_CHARACTERS: usize = 1024;
const COMPATIBILITY_CHARACTERS: usize = 500;

/// Images that Skillbox allows; here they only select a language.
const IMAGES: [&str; 5] = ["python:3.12-slim", "python:3.11-slim", "node:20-slim", "node:22-slim", "bash:5"];

/// The language of a skill's script.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Language {
    /// Python.
    Python,
    /// JavaScript.
    Node,
    /// Bash.
    Bash,
}

impl Language {
    /// Returns the language of an entry point, by its extension.
    #[must_use]
    pub fn of_entry(entry: &str) -> Option<Self> {
        match entry.rsplit_once('.')?.1 {
            "py" => Some(Self::Python),
            "js" | "mjs" => Some(Self::Node),
            "sh" => Some(Self::Bash),
            _ => None,
        }
    }

    fn named(text: &str) -> Option<Self> {
        match text {
            "python" => Some(Self::Python),
            "node" | "nodejs" | "javascript" => Some(Self::Node),
            "bash" | "sh" | "shell" => Some(Self::Bash),
            _ => None,
        }
    }

    /// Returns the name.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Python => "python",
            Self::Node => "node",
            Self::Bash => "bash",
        }
    }
}

/// Whether a skill can be run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// It has a script, or runs the code in its input.
    #[default]
    Executable,
    /// It has only instructions.
    Cognitive,
}

impl Mode {
    /// Returns the name.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Executable => "executable",
            Self::Cognitive => "cognitive",
        }
    }
}

/// The requested resources.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Resources {
    /// Processors: stored, but without effect in WebAssembly.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu: Option<String>,
    /// Memory, such as `256Mi`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory: Option<String>,
}

/// The manifest of a skill.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Manifest {
    /// The skill's name.
    pub name: String,
    /// Its version; defaults to `1.0.0`.
    pub version: String,
    /// What it does and when to use it.
    pub description: String,
    /// The language, if specified.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lang: Option<Language>,
    /// The container image: stored, but without effect.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub image: Option<String>,
    /// The maximum duration of a run.
    #[serde(skip)]
    pub timeout: Option<Duration>,
    /// The requested resources.
    pub resources: Resources,
    /// Whether it can be run.
    pub mode: Mode,
    /// Its license.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub license: Option<String>,
    /// Its requirements on the environment, as text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub compatibility: Option<String>,
    /// Tools that it may use: stored, but never granted (T-SKL-05).
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub allowed_tools: Vec<String>,
    /// Additional metadata.
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub metadata: Map<String, Value>,
    /// The JSON schema of its input.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input_schema: Option<Value>,
    /// The JSON schema of its output.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output_schema: Option<Value>,
    /// The text below the front matter, trimmed.
    #[serde(skip)]
    pub instructions: String,
    /// The whole front matter in JSON.
    #[serde(skip)]
    pub front_matter: Map<String, Value>,
}

/// A manifest with its findings.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Read {
    pub(crate) manifest: Manifest,
    pub(crate) findings: Vec<Finding>,
    pub(crate) body_line: usize,
}

/// Returns whether a text is a valid skill name. It must also be valid as a file name.
///
/// ```
/// use sandlite_skills::is_name;
/// assert!(is_name("word-counter") && !is_name("../word-counter") && !is_name(""));
/// ```
#[must_use]
pub fn is_name(name: &str) -> bool {
    name.len() <= NAME_BYTES
        && name.starts_with(|first: char| first.is_ascii_alphanumeric())
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(&byte))
}

// The stricter rule of agentskills.io.
fn is_portable_name(name: &str) -> bool {
    (1..=64).contains(&name.len())
        && name.split('-').all(|word| !word.is_empty())
        && name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-')
}

/// Parses a size such as `128Mi`, `1Gi` or a number of bytes.
pub(crate) fn parse_memory(text: &str) -> Option<u64> {
    let units = [("Ki", 10), ("Mi", 20), ("Gi", 30)];
    let unit = units.iter().find_map(|(unit, shift)| Some((text.strip_suffix(unit)?, *shift)));
    let (number, shift) = unit.unwrap_or((text, 0));
    let number: u64 = number.trim().parse().ok()?;
    number.checked_mul(1 << shift).filter(|bytes| *bytes > 0)
}

/// Parses a `SKILL.md`. Problems become findings; the manifest contains the valid parts.
pub(crate) fn read(text: &str) -> Read {
    match front_matter::read(text) {
        Ok(document) => Reading::new(&document).finish(document),
        Err(malformed) => Read {
            manifest: Manifest::default(),
            findings: vec![Finding::error("parse", "SKILL.md", Some(malformed.line), malformed.reason, PARSE_REMEDY)],
            body_line: 1,
        },
    }
}

/// Parses the front matter of a `SKILL.md`, whose fields need not be those of a skill.
///
/// ```
/// let head = sandlite_skills::read_front_matter("---\nname: pdf\ndescription: >-\n  Reads\n  PDF files.\n---\n# PDF\n")?;
/// assert_eq!(head["description"], "Reads PDF files.");
/// # Ok::<(), sandlite_skills::Error>(())
/// ```
///
/// # Errors
///
/// Returns [`Error::Argument`] if it is missing or not YAML.
pub fn read_front_matter(text: &str) -> Result<Map<String, Value>, Error> {
    let document = front_matter::read(text).map_err(|malformed| Error::Argument(malformed.reason))?;
    Ok(document.fields.into_iter().map(|field| (field.name, field.value.to_json())).collect())
}

const PARSE_REMEDY: &str = "start the file with `---`, lines such as `name: my-skill`, and `---`";

/// The fields parsed so far, and their findings.
struct Reading {
    manifest: Manifest,
    findings: Vec<Finding>,
    seen: Vec<&'static str>,
}

impl Reading {
    fn new(document: &Document) -> Self {
        let mut reading = Self { manifest: Manifest::default(), findings: Vec::new(), seen: Vec::new() };
        for field in &document.fields {
            reading.field(field);
            reading.manifest.front_matter.insert(field.name.clone(), field.value.to_json());
        }
        if let Some(line) = document.repaired {
            reading.warn("yaml", line, "the value contains an unquoted colon", "quote the value");
        }
        reading
    }

    fn error(&mut self, code: &'static str, line: usize, message: impl Into<String>, remedy: &str) {
        self.findings.push(Finding::error(code, "SKILL.md", Some(line), message, remedy));
    }

    fn warn(&mut self, code: &'static str, line: usize, message: impl Into<String>, remedy: &str) {
        self.findings
            .push(Finding { severity: Severity::Warning, ..Finding::error(code, "SKILL.md", Some(line), message, remedy) });
    }

    // Returns the text of a field, or adds a finding if it has another type.
    fn text(&mut self, code: &'static str, field: &Field) -> Option<String> {
        if field.value.is_null() {
            return None;
        }
        let text = field.value.text().map(|text| text.trim().to_owned());
        if text.is_none() {
            self.error(code, field.line, format!("`{}` must be a string", field.name), "write one value after the colon");
        }
        text.filter(|text| !text.is_empty())
    }

    fn field(&mut self, field: &Field) {
        let (line, manifest) = (field.line, &mut self.manifest);
        match field.name.as_str() {
            "name" => {
                let Some(name) = self.text("name", field) else { return };
                self.seen.push("name");
                if !is_name(&name) {
                    let message = format!(
                        "name {name:?} contains invalid characters (use alphanumeric, hyphens, underscores, dots; must start with alphanumeric)"
                    );
                    self.error("name", line, message, "choose a name such as `word-counter`");
                } else if !is_portable_name(&name) {
                    let message = format!("name `{name}` is not portable to other clients of agentskills.io");
                    self.warn("name", line, message, "use 1 to 64 lower-case letters, digits and single hyphens");
                }
                self.manifest.name = name;
            }
            "version" => {
                let Some(version) = self.text("version", field) else { return };
                self.seen.push("version");
                if !is_version(&version) {
                    let message = format!("version {version:?} must be semver (MAJOR.MINOR.PATCH)");
                    self.error("version", line, message, "write a version such as `1.0.0`");
                }
                self.manifest.version = version;
            }
            "description" => {
                let Some(description) = self.text("description", field) else { return };
                self.seen.push("description");
                if description.chars().count() > DESCRIPTION_CHARACTERS {
                    let message = format!("the description is longer than {DESCRIPTION_CHARACTERS} characters");
                    self.warn("description", line, message, "describe in one or two sentences what it does and when to use it");
                }
                self.manifest.description = description;
            }
            "lang" => {
                let Some(lang) = self.text("lang", field) else { return };
                self.manifest.lang = Language::named(&lang);
                if self.manifest.lang.is_none() {
                    let message = format!("lang {lang:?} is not supported (use python, node, or bash)");
                    self.error("lang", line, message, "remove `lang`: it is derived from the extension of the script");
                }
            }
            "image" => {
                let Some(image) = self.text("image", field) else { return };
                if !IMAGES.contains(&image.as_str()) {
                    let message = format!("image {image:?} is not in the default allowlist");
                    self.warn("image", line, message, "remove `image`: it has no effect in Sandlite");
                }
                self.manifest.image = Some(image);
            }
            "timeout" => {
                let Some(timeout) = self.text("timeout", field) else { return };
                self.manifest.timeout = parse_duration(&timeout).filter(|timeout| !timeout.is_zero());
                if self.manifest.timeout.is_none() {
                    self.error("timeout", line, format!("invalid timeout {timeout:?}"), "use a duration such as `30s` or `2m`");
                }
            }
            "resources" => self.resources(field),
            "mode" => match self.text("mode", field).as_deref() {
                None | Some("executable") => {}
                Some("cognitive") => self.manifest.mode = Mode::Cognitive,
                Some(mode) => {
                    let message = format!("mode {mode:?} is not supported (use executable or cognitive)");
                    self.error("mode", line, message, "remove `mode` unless the skill has only instructions");
                }
            },
            "license" => self.manifest.license = self.text("license", field),
            "compatibility" => {
                let text = self.text("compatibility", field);
                if text.as_ref().is_some_and(|text| text.chars().count() > COMPATIBILITY_CHARACTERS) {
                    let message = format!("the compatibility note is longer than {COMPATIBILITY_CHARACTERS} characters");
                    self.warn("compatibility", line, message, "shorten it");
                }
                self.manifest.compatibility = text;
            }
            "allowed-tools" => {
                manifest.allowed_tools = match &field.value {
                    Yaml::Scalar(text, _) => text.split([' ', ',']).filter(|tool| !tool.is_empty()).map(str::to_owned).collect(),
                    Yaml::List(tools) => tools.iter().filter_map(Yaml::text).map(str::to_owned).collect(),
                    Yaml::Map(_) => Vec::new(),
                };
            }
            "metadata" => match field.value.to_json() {
                Value::Object(metadata) => manifest.metadata = metadata,
                _ => self.warn("metadata", line, "`metadata` must be a map", "write `key: value` lines below it, indented"),
            },
            "input_schema" | "input-schema" => self.manifest.input_schema = self.schema(field),
            "output_schema" | "output-schema" => self.manifest.output_schema = self.schema(field),
            other => {
                let message = format!("unknown field `{other}`");
                self.warn("field", line, message, "move it below `metadata`, or remove it");
            }
        }
    }

    fn resources(&mut self, field: &Field) {
        let Yaml::Map(fields) = &field.value else {
            if !field.value.is_null() {
                self.error("resources", field.line, "`resources` must be a map", "write `memory: 256Mi` below it, indented");
            }
            return;
        };
        for (name, value) in fields {
            let text = value.text().map(str::to_owned);
            match (name.as_str(), text) {
                ("cpu", text) => self.manifest.resources.cpu = text,
                ("memory", Some(memory)) => {
                    if parse_memory(&memory).is_none() {
                        let message = format!("invalid memory {memory:?}");
                        self.error("resources", field.line, message, "use a size such as `256Mi` or `1Gi`");
                    }
                    self.manifest.resources.memory = Some(memory);
                }
                (other, _) => {
                    self.warn("resources", field.line, format!("unknown resource `{other}`"), "use `memory` and `cpu`");
                }
            }
        }
    }

    fn schema(&mut self, field: &Field) -> Option<Value> {
        // A schema in JSON is usually written as a YAML block scalar.
        let value = match &field.value {
            Yaml::Scalar(text, _) => serde_json::from_str(text).unwrap_or(Value::Null),
            value => value.to_json(),
        };
        match runtime::JsonSchema::parse(&value) {
            Ok(_) => Some(value),
            Err(reason) => {
                let message = format!("invalid schema `{}`: {reason}", field.name);
                self.error("schema", field.line, message, "write a JSON schema (draft 2020-12) as YAML or as JSON text");
                None
            }
        }
    }

    fn finish(mut self, document: Document) -> Read {
        for (name, remedy) in [
            ("name", "add a line such as `name: word-counter`"),
            ("description", "add `description:` with what it does and when to use it"),
        ] {
            let has_wrong_type = self.findings.iter().any(|finding| finding.code == name);
            if !self.seen.contains(&name) && !has_wrong_type {
                self.error(name, 1, format!("{name} is required"), remedy);
            }
        }
        if !self.seen.contains(&"version") {
            self.manifest.version = DEFAULT_VERSION.to_owned();
        }
        self.manifest.instructions = document.body.trim().to_owned();
        self.findings.sort_by_key(|finding| finding.line);
        Read { manifest: self.manifest, findings: self.findings, body_line: document.body_line }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn findings(head: &str) -> Vec<(&'static str, Option<usize>)> {
        read(&format!("---\n{head}\n---\n")).findings.iter().map(|finding| (finding.code, finding.line)).collect()
    }

    #[test]
    fn both_dialects_are_read() {
        let skillbox = "---\nname: data-analysis\nversion: \"1.2.0\"\ndescription: Analyse CSV\nlang: python\nimage: python:3.12-slim\n\
            timeout: 1m30s\nresources:\n  memory: 256Mi\n  cpu: \"0.5\"\nmode: executable\n---\n\n# Text\n";
        let Read { manifest, findings, body_line } = read(skillbox);
        assert_eq!(findings, []);
        assert_eq!((manifest.version.as_str(), manifest.timeout), ("1.2.0", Some(Duration::from_secs(90))));
        assert_eq!(manifest.resources.memory.as_deref().and_then(parse_memory), Some(256 << 20));
        assert_eq!((manifest.instructions.as_str(), body_line), ("# Text", 13));
        let open = "---\nname: pdf\ndescription: |\n  Reads PDF files.\nlicense: MIT\ncompatibility: needs Python\n\
            allowed-tools: Bash(git:*) Read\nmetadata:\n  author: me\n  version: \"1.0\"\n---\n";
        let Read { manifest, findings, .. } = read(open);
        assert_eq!(findings, []);
        assert_eq!(manifest.allowed_tools, ["Bash(git:*)", "Read"]);
        assert_eq!((manifest.version.as_str(), manifest.description.as_str()), ("1.0.0", "Reads PDF files."));
        assert_eq!(Value::Object(manifest.metadata), json!({ "author": "me", "version": "1.0" }));
    }

    #[test]
    fn each_finding_has_its_field_and_line() {
        assert_eq!(findings("name: x\ndescription: y\nversion: 1.0"), [("version", Some(4))]);
        assert_eq!(findings("description: y"), [("name", Some(1))]);
        assert_eq!(findings("name: ../x\ndescription: y"), [("name", Some(2))]);
        assert_eq!(findings("name: [x]\ndescription: y"), [("name", Some(2))]);
        assert_eq!(findings("name: My_Skill\ndescription: y\nlang: ruby"), [("name", Some(2)), ("lang", Some(4))]);
        assert_eq!(findings("name: x\ndescription: y\ntimeout: 5\nmode: magic"), [("timeout", Some(4)), ("mode", Some(5))]);
        assert_eq!(findings("name: x\ndescription: y\nresources:\n  memory: lots"), [("resources", Some(4))]);
        assert_eq!(findings("name: x\ndescription: y\ninput_schema: {type: nothing}"), [("schema", Some(4))]);
        assert_eq!(findings("name: x\ndescription: y\nauthor: me"), [("field", Some(4))]);
    }

    #[test]
    fn a_schema_is_yaml_or_json_text() {
        let yaml = read("---\nname: x\ndescription: y\ninput_schema:\n  type: object\n  required: [text]\n---\n").manifest;
        let text = read("---\nname: x\ndescription: y\ninput_schema: '{\"type\": \"object\", \"required\": [\"text\"]}'\n---\n")
            .manifest;
        assert_eq!(yaml.input_schema, Some(json!({ "type": "object", "required": ["text"] })));
        assert_eq!(yaml.input_schema, text.input_schema);
    }
}
