//! `/v1/skills`: skills are pushed, listed, read and deleted. A skill that was taken can be run at once.

use std::time::Instant;

use ::skills::{Error, File, Finding, Needs, Package, Severity, format_duration};
use axum::Json;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, Request, State};
use bytes::Bytes;
use http::StatusCode;
use http::header::CONTENT_TYPE;
use serde::Deserialize;
use serde_json::{Value, json};

use super::body;
use super::executions::{no_skill, require_name, require_version};
use super::patterns::Patterns;
use crate::serve::app::{App, Tenant};
use crate::serve::auth::Caller;
use crate::serve::catalog::{Role, new_id};
use crate::serve::path::Path;
use crate::serve::problem::Problem;

/// The status of every skill that was taken.
pub(super) const AVAILABLE: &str = "available";
/// Tiers of the scan.
const TIERS: u8 = 2;

/// How the text of a rejection by the scan begins, as in Skillbox.
const UPLOAD_REJECTED: &str = "upload rejected by security scan";

/// The result of a push, and its status: 201 for a new version, 200 for an existing one.
type Answer = Result<(StatusCode, Json<Value>), Problem>;

// The zip file of a request: raw, or the field `file` of a form.
async fn zip(app: &App, request: Request) -> Result<Bytes, Problem> {
    let most = app.config().skill_bytes;
    let kind = request.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    let kind = kind.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    let bytes = match kind.as_str() {
        "application/zip" | "application/x-zip-compressed" | "application/octet-stream" => {
            body::bytes(request.into_body(), most).await
        }
        "multipart/form-data" => match body::form(request, most).await {
            Ok(mut form) => form.file().map(|upload| upload.bytes),
            Err(problem) => Err(problem),
        },
        _ => {
            let message = "expected Content-Type application/zip or multipart/form-data";
            return Err(Problem::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "unsupported_media_type", message));
        }
    };
    let bytes = bytes.map_err(|problem| match problem.status {
        StatusCode::PAYLOAD_TOO_LARGE => too_large(),
        _ => problem,
    })?;
    if bytes.is_empty() {
        return Err(Problem::bad_request("empty zip data"));
    }
    Ok(bytes)
}

fn too_large() -> Problem {
    Problem::new(StatusCode::PAYLOAD_TOO_LARGE, "too_large", "skill zip exceeds maximum allowed size")
}

/// A rejected skill, in the format of Skillbox.
pub(super) fn refused(error: Error) -> Problem {
    let is_unsafe = matches!(error, Error::Unsafe(_));
    let hint = error.hint().filter(|_| matches!(error, Error::Requirements { .. })).map(|hint| format!("; {hint}"));
    let problem = Problem::from(error);
    let problem = Problem { message: format!("{}{}", problem.message, hint.unwrap_or_default()), ..problem };
    match is_unsafe {
        true => rejected(&problem.message, &["zip_bomb"]),
        false => problem,
    }
}

// The pattern that blocks a skill, if any: a built-in one, or one of the tenant.
fn scanned(app: &App, tenant: &str, package: &Package) -> Result<(), Problem> {
    let findings: Vec<Finding> =
        ::skills::scan(package.files()).into_iter().filter(|finding| finding.severity == Severity::Error).collect();
    let own = Patterns::of(app, tenant)?.search(package.files())?;
    let own = own.iter().filter(|found| found.blocks);
    let built_in = findings.first().map(|first| (first.message.as_str(), &first.file));
    let first = built_in.or_else(|| own.clone().next().map(|found| (found.description.as_str(), &found.file)));
    let Some((message, file)) = first else { return Ok(()) };
    let mut categories: Vec<&str> = findings.iter().filter_map(|finding| finding.category).collect();
    categories.extend(own.map(|found| found.category.as_str()));
    categories.sort_unstable();
    categories.dedup();
    let message = if message.is_empty() { "a pattern of the tenant matches" } else { message };
    Err(rejected(&format!("{message} in `{file}`"), &categories))
}

fn rejected(reason: &str, categories: &[&str]) -> Problem {
    let message = format!("{UPLOAD_REJECTED}: {reason}");
    let problem = Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "security_scan_failed", message);
    problem.with_details(json!({ "scan_id": new_id(), "categories": categories }))
}

/// Keeps a version. Other content under the same version replaces it only for admins; the old digest stays in the history.
pub(super) fn keep(app: &App, tenant: &Tenant, caller: &Caller, package: &Package) -> Result<StatusCode, Problem> {
    keep_or_replace(app, tenant, package, caller.role >= Role::Admin)
}

fn keep_or_replace(app: &App, tenant: &Tenant, package: &Package, replace: bool) -> Result<StatusCode, Problem> {
    if app.config().scans && app.catalog().scan_policy(&tenant.name)? == "auto" {
        scanned(app, &tenant.name, package)?;
    }
    app.require_room(&tenant.name, package.files().iter().map(|file| file.content.len() as u64).sum())?;
    let pushed = tenant.skills().push(package, Needs { replace, ..Needs::default() }).map_err(|error| match error {
        Error::Conflict { .. } => {
            Problem::conflict(format!("{error}; raise `version` in SKILL.md, or replace the content with an admin's key"))
        }
        error => refused(error),
    })?;
    app.stored_more(&tenant.name);
    Ok(if pushed.unchanged { StatusCode::OK } else { StatusCode::CREATED })
}

fn pushed(package: &Package) -> Value {
    let manifest = package.manifest();
    json!({
        "name": manifest.name, "version": manifest.version, "description": manifest.description,
        "lang": manifest.lang.map_or("", ::skills::Language::as_str), "mode": manifest.mode, "status": AVAILABLE,
    })
}

/// Whether an admin's push may replace the content of an existing version.
#[derive(Deserialize)]
pub(super) struct Pushing {
    replace: Option<bool>,
}

pub(super) async fn push(
    State(app): State<App>,
    caller: Caller,
    query: Result<Query<Pushing>, QueryRejection>,
    request: Request,
) -> Answer {
    caller.require(Role::Publisher)?;
    let replace = body::query(query)?.replace.unwrap_or(true) && caller.role >= Role::Admin;
    let zip = zip(&app, request).await?;
    app.blocking(move |app| {
        let package = Package::from_zip(&zip).map_err(refused)?;
        let status = keep_or_replace(app, &*app.tenant(&caller.tenant)?, &package, replace)?;
        Ok((status, Json(pushed(&package))))
    })
    .await
}

/// The server was started without the scan.
pub(super) fn scanner_disabled() -> Problem {
    Problem::new(StatusCode::SERVICE_UNAVAILABLE, "scanner_disabled", "the server was started without the security scan")
}

/// Checks and scans a skill, and keeps nothing.
pub(super) async fn validate(State(app): State<App>, caller: Caller, request: Request) -> Result<Json<Value>, Problem> {
    if !app.config().scans {
        return Err(scanner_disabled());
    }
    let zip = zip(&app, request).await?;
    app.blocking(move |app| {
        let began = Instant::now();
        let package = Package::from_zip(&zip).map_err(refused);
        let package = package.and_then(|package| scanned(app, &caller.tenant, &package).map(|()| package));
        let package = package.map_err(|problem| Problem {
            message: problem.message.replacen(UPLOAD_REJECTED, "validation rejected by security scan", 1),
            ..problem
        })?;
        let manifest = package.manifest();
        Ok(Json(json!({
            "valid": true, "skill_name": manifest.name, "skill_version": manifest.version, "scan_tier": TIERS,
            "duration_ms": u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX),
        })))
    })
    .await
}

#[derive(Deserialize)]
struct Fields {
    #[serde(default, deserialize_with = "body::or_default")]
    name: String,
    #[serde(default, deserialize_with = "body::or_default")]
    description: String,
    #[serde(default, deserialize_with = "body::or_default")]
    lang: String,
    #[serde(default, deserialize_with = "body::or_default")]
    code: String,
    #[serde(default, deserialize_with = "body::or_default")]
    instructions: String,
    #[serde(default, deserialize_with = "body::or_default")]
    version: String,
}

impl Fields {
    // The files of the skill, of this version.
    fn package(&self, version: &str) -> Result<Package, Problem> {
        let (lang, entry) = match self.lang.as_str() {
            "" | "python" => ("python", "main.py"),
            "bash" => ("bash", "run.sh"),
            "node" => ("node", "main.js"),
            other => {
                let other = runtime::actions::quoted(other);
                return Err(Problem::bad_request(format!("invalid `lang` `{other}`: expected python, bash or node")));
            }
        };
        // A text in JSON is a text in YAML.
        let (name, description) = (json!(self.name), json!(self.description));
        let skill = format!(
            "---\nname: {name}\ndescription: {description}\nlang: {lang}\nversion: \"{version}\"\n---\n\n{}\n",
            self.instructions
        );
        Package::from_files(vec![File::new("SKILL.md", skill), File::new(entry, self.code.as_str())]).map_err(refused)
    }
}

/// Makes a skill of a few texts. Without a version, a skill that exists gets its next one.
pub(super) async fn from_fields(State(app): State<App>, caller: Caller, request: Request) -> Answer {
    caller.require(Role::Publisher)?;
    let fields: Fields = body::json(request.into_body(), app.config().skill_bytes).await?;
    require_name(&fields.name)?;
    for (name, text) in [("description", &fields.description), ("code", &fields.code)] {
        if text.trim().is_empty() {
            return Err(Problem::bad_request(format!("invalid request body: {name} is required")));
        }
    }
    if !fields.version.is_empty() {
        require_version(&fields.version)?;
    }
    app.blocking(move |app| {
        let tenant = app.tenant(&caller.tenant)?;
        let package = match fields.version.as_str() {
            "" => match tenant.skills().catalog().find(&fields.name) {
                Ok(active) => {
                    let same = fields.package(&active.version)?;
                    match same.digest() == active.digest {
                        true => same,
                        false => fields.package(&super::versions::next(&tenant, &fields.name, &active.version)?)?,
                    }
                }
                Err(Error::UnknownSkill(_)) => fields.package("1.0.0")?,
                Err(error) => return Err(error.into()),
            },
            version => fields.package(version)?,
        };
        let status = keep(app, &tenant, &caller, &package)?;
        Ok((status, Json(pushed(&package))))
    })
    .await
}

#[derive(Deserialize)]
pub(super) struct Listing {
    status: Option<String>,
}

pub(super) async fn list(
    State(app): State<App>,
    caller: Caller,
    query: Result<Query<Listing>, QueryRejection>,
) -> Result<Json<Value>, Problem> {
    let status = body::query(query)?.status;
    if status.is_some_and(|status| !matches!(status.as_str(), "" | "all" | AVAILABLE)) {
        return Ok(Json(json!([])));
    }
    app.blocking(move |app| {
        let skills = app.tenant(&caller.tenant)?.skills().catalog().list()?;
        let rows = skills.into_iter().map(|skill| {
            json!({
                "name": skill.name, "version": skill.version, "description": skill.description, "lang": skill.lang,
                "mode": "executable", "status": AVAILABLE,
            })
        });
        Ok(Json(rows.collect()))
    })
    .await
}

/// The reference of a skill that a path names.
pub(super) fn reference(name: &str, version: &str) -> Result<String, Problem> {
    require_name(name)?;
    if version != "latest" {
        require_version(version)?;
    }
    Ok(format!("{name}@{version}"))
}

/// The same error with Skillbox's text, if it is that a skill or a version does not exist.
pub(super) fn named(error: Error, name: &str, version: &str) -> Problem {
    match error {
        Error::UnknownSkill(_) | Error::UnknownVersion { .. } => no_skill(name, version),
        error => error.into(),
    }
}

/// A version of a skill.
pub(super) fn find(app: &App, caller: &Caller, name: &str, version: &str) -> Result<Package, Problem> {
    let reference = reference(name, version)?;
    let found = app.tenant(&caller.tenant)?.skills().catalog().get(&reference);
    found.map_err(|error| named(error, name, version))
}

pub(super) async fn show(
    State(app): State<App>,
    caller: Caller,
    Path((name, version)): Path<(String, String)>,
) -> Result<Json<Value>, Problem> {
    app.blocking(move |app| {
        let package = find(app, &caller, &name, &version)?;
        let manifest = package.manifest();
        let mut shown = json!({
            "name": manifest.name, "version": manifest.version, "description": manifest.description,
            "lang": manifest.lang.map_or("", ::skills::Language::as_str), "resources": manifest.resources, "mode": manifest.mode,
        });
        let instructions = Some(manifest.instructions.clone()).filter(|text| !text.is_empty());
        let more = [
            ("image", manifest.image.clone()),
            // The documentation of Skillbox has the same text under another name.
            ("content", instructions.clone()),
            ("instructions", instructions),
            ("timeout", manifest.timeout.map(format_duration)),
        ];
        for (name, text) in more {
            if let (Some(text), Some(fields)) = (text, shown.as_object_mut()) {
                fields.insert(name.to_owned(), Value::String(text));
            }
        }
        // Not part of Skillbox: the schema of the form in the console.
        if let (Some(schema), Some(fields)) = (&manifest.input_schema, shown.as_object_mut()) {
            fields.insert("input_schema".to_owned(), schema.clone());
        }
        Ok(Json(shown))
    })
    .await
}

pub(super) async fn remove(
    State(app): State<App>,
    caller: Caller,
    Path((name, version)): Path<(String, String)>,
) -> Result<StatusCode, Problem> {
    caller.require(Role::Publisher)?;
    app.blocking(move |app| {
        let tenant = app.tenant(&caller.tenant)?;
        let catalog = tenant.skills().catalog();
        reference(&name, &version)?;
        // One version, also when it is named `latest`.
        let version = match version.as_str() {
            "latest" => catalog.find(&name).map_err(|error| named(error, &name, "latest"))?.version,
            _ => version,
        };
        catalog.delete(&format!("{name}@{version}")).map_err(|error| named(error, &name, &version))?;
        Ok(StatusCode::NO_CONTENT)
    })
    .await
}

pub(super) async fn remove_all(State(app): State<App>, caller: Caller, Path(name): Path<String>) -> Result<StatusCode, Problem> {
    caller.require(Role::Publisher)?;
    require_name(&name)?;
    app.blocking(move |app| {
        let deleted = app.tenant(&caller.tenant)?.skills().catalog().delete(&name);
        deleted.map_err(|error| match error {
            Error::UnknownSkill(_) => Problem::not_found_named("skill", &name),
            error => error.into(),
        })?;
        Ok(StatusCode::NO_CONTENT)
    })
    .await
}
