//! `skill list`, `show`, `files`, `diff` and `activate`.

use serde_json::{Map, Value, json};
use skills::{FileStatus, Skills, format_duration};

use super::{act, answer};
use crate::exit::Code;
use crate::printer::{Hinted, Printer};

pub(super) fn list(skills: &Skills, search: Option<&str>, printer: &Printer) -> anyhow::Result<Code> {
    let (mut after, mut all) = (Value::Null, Vec::new());
    loop {
        let page = answer(skills, "list_skills", &json!({ "search": search, "after": after }))?;
        anyhow::ensure!(!page.is_error, "{}", page.text);
        all.extend(page.data["skills"].as_array().cloned().unwrap_or_default());
        match page.data.get("next") {
            Some(next) if !next.is_null() => after = next.clone(),
            _ => break,
        }
    }
    if printer.is_json() {
        printer.json(&json!({ "skills": all }));
        return Ok(Code::Success);
    }
    let text = |skill: &Value, name: &str| skill[name].as_str().unwrap_or_default().to_owned();
    let width = |name: &str| all.iter().map(|skill| text(skill, name).chars().count()).max().unwrap_or_default().min(40);
    let (names, versions) = (width("name"), width("version"));
    for skill in &all {
        let about = text(skill, "description").split_whitespace().collect::<Vec<_>>().join(" ");
        let (name, version) = (text(skill, "name"), text(skill, "version"));
        printer.line(&printer.foreign(&format!("{name:<names$}  {version:<versions$}  {about}")));
    }
    Ok(Code::Success)
}

pub(super) fn show(skills: &Skills, name: &str, instructions: bool, printer: &Printer) -> anyhow::Result<Code> {
    let package = skills.catalog().get(name)?;
    let manifest = package.manifest();
    if instructions {
        if printer.is_json() {
            printer.json(&json!({ "name": manifest.name, "version": manifest.version, "instructions": manifest.instructions }));
        } else {
            manifest.instructions.lines().for_each(|line| printer.line(&printer.foreign(line)));
        }
        return Ok(Code::Success);
    }
    let mut shown = json!(manifest);
    let more = Map::from_iter([
        ("digest".to_owned(), json!(package.digest())),
        ("entry".to_owned(), json!(package.entry())),
        ("language".to_owned(), json!(package.language())),
        ("timeout".to_owned(), json!(manifest.timeout.map(format_duration))),
        ("requirements".to_owned(), json!(package.requirements())),
        ("files".to_owned(), json!(package.files().len())),
    ]);
    if let Some(fields) = shown.as_object_mut() {
        fields.extend(more.into_iter().filter(|(_, value)| !value.is_null()));
    }
    if printer.is_json() {
        printer.json(&shown);
        return Ok(Code::Success);
    }
    let order =
        ["name", "version", "description", "language", "entry", "mode", "timeout", "license", "compatibility", "requirements"];
    let fields = shown.as_object().cloned().unwrap_or_default();
    let named = order.iter().filter_map(|name| Some((*name, fields.get(*name)?)));
    let memory = fields.get("resources").and_then(|resources| resources.get("memory")).map(|memory| ("memory", memory));
    let rest = ["files", "digest"].iter().filter_map(|name| Some((*name, fields.get(*name)?)));
    for (name, value) in named.chain(memory).chain(rest) {
        let text = match value {
            Value::String(text) => text.split_whitespace().collect::<Vec<_>>().join(" "),
            Value::Array(items) => items.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(", "),
            other => other.to_string(),
        };
        if !text.is_empty() {
            printer.line(&printer.foreign(&format!("{name:<14}{text}")));
        }
    }
    Ok(Code::Success)
}

pub(super) fn files(skills: &Skills, name: &str, path: Option<&str>, printer: &Printer) -> anyhow::Result<Code> {
    if let Some(path) = path.filter(|_| !printer.is_json()) {
        let package = skills.catalog().get(name)?;
        let file = package.file(path).ok_or_else(|| {
            Hinted::error(
                format!("unknown file `{path}` of skill `{name}`"),
                format!("list its files with `sandlite skill files {name}`"),
            )
        })?;
        printer.bytes(&file.content)?;
        return Ok(Code::Success);
    }
    act(skills, "skill_files", &json!({ "name": name, "path": path }), printer)
}

pub(super) fn diff(skills: &Skills, from: &str, to: Option<&str>, printer: &Printer) -> anyhow::Result<Code> {
    let (name, from) = versioned(from)?;
    let to = match to.map(|to| to.split_once('@').map_or((name, to), |reference| reference)) {
        Some((other, _)) if other != name => {
            return Err(Hinted::error(
                format!("cannot compare skill `{name}` with another one, `{other}`"),
                "name two versions of one skill",
            ));
        }
        to => to.map(|(_, version)| version),
    };
    let diff = skills.catalog().diff(name, from, to)?;
    if printer.is_json() {
        printer.json(&json!(diff));
    } else {
        diff.patch().lines().for_each(|line| printer.line(&printer.foreign(line)));
    }
    let is_same = diff.files.iter().all(|file| file.status == FileStatus::Unchanged);
    Ok(if is_same { Code::Success } else { Code::Failure })
}

pub(super) fn activate(skills: &Skills, reference: &str, printer: &Printer) -> anyhow::Result<Code> {
    let (name, version) = versioned(reference)?;
    act(skills, "activate_skill", &json!({ "name": name, "version": version }), printer)
}

fn versioned(reference: &str) -> anyhow::Result<(&str, &str)> {
    reference
        .split_once('@')
        .ok_or_else(|| Hinted::error(format!("missing version in `{reference}`"), "use the form NAME@VERSION"))
}
