//! Schemas of the document: those of routes are written here, those of actions come with their tables.

mod skillbox;

use serde_json::{Map, Value, json};

/// The schemas that routes name.
pub(super) const NAMES: [&str; 53] = [
    "ActiveVersion",
    "Any",
    "ChangeSandbox",
    "ChangeTenant",
    "CreateKey",
    "CreateSandbox",
    "CreatedKey",
    "Event",
    "Events",
    "Execution",
    "Executions",
    "File",
    "Files",
    "ForkSandbox",
    "Job",
    "Jobs",
    "Moment",
    "Problem",
    "PushedSkill",
    "Review",
    "RevisedSkill",
    "RunResult",
    "RunSkill",
    "Sandbox",
    "Sandboxes",
    "ScannerConfig",
    "ScannerPatterns",
    "ShellCommand",
    "ShellContent",
    "ShellDone",
    "ShellEntries",
    "ShellFiles",
    "ShellList",
    "ShellOutput",
    "ShellPath",
    "ShellSkill",
    "ShellUploaded",
    "ShellWrite",
    "Skill",
    "SkillContents",
    "SkillDiff",
    "SkillFields",
    "SkillFile",
    "SkillFiles",
    "SkillVersions",
    "Skills",
    "Tenant",
    "Tenants",
    "Unpacked",
    "Usage",
    "ValidSkill",
    "Version",
    "WhoAmI",
];

/// Returns the schema of a name.
pub(super) fn schema_of(name: &str) -> Value {
    let of = |name: &str| json!({ "$ref": format!("#/components/schemas/{name}") });
    let text = || json!({ "type": "string" });
    let name_or_null = || json!({ "type": ["string", "null"] });
    let size = || json!({ "type": "integer", "minimum": 0 });
    let object =
        |required: &[&str], properties: Value| json!({ "type": "object", "required": required, "properties": properties });
    let closed = |properties: Value| json!({ "type": "object", "additionalProperties": false, "properties": properties });
    let new_name = || json!({ "type": ["string", "null"], "minLength": 1, "maxLength": 128 });
    let ttl = || json!({ "type": ["integer", "null"], "minimum": 1, "maximum": 316_224_000 });
    let page = |of: Value| {
        object(
            &["items", "next_cursor"],
            json!({ "items": { "type": "array", "items": of }, "next_cursor": { "type": ["string", "null"] } }),
        )
    };
    match name {
        "Problem" => object(&["error", "message"], json!({ "error": text(), "message": text(), "details": {} })),
        "Moment" => json!({ "type": "string", "format": "date-time" }),
        "Sandbox" => object(
            &["id", "name", "preset", "created_at", "used_at", "expires_at", "bytes"],
            json!({ "id": text(), "name": name_or_null(), "preset": preset(), "created_at": of("Moment"), "used_at": of("Moment"),
                "expires_at": { "type": ["string", "null"], "format": "date-time" }, "bytes": size() }),
        ),
        "Sandboxes" => page(of("Sandbox")),
        "CreateSandbox" => closed(json!({
            "name": new_name(),
            "preset": { "type": ["string", "null"], "enum": ["strict", "normal", "permissive", null], "description": "What runs may use, never more than the server allows; defaults to normal." },
            "files": { "type": "object", "description": "Paths and contents. Relative paths start in the working directory.",
                "additionalProperties": { "anyOf": [text(), { "type": "object", "required": ["base64"], "additionalProperties": false, "properties": { "base64": text() } }] } },
            "base": { "type": ["string", "null"], "description": "The id of a sandbox that this one lies over; it cannot be deleted meanwhile." },
            "snapshot": { "type": ["string", "null"], "description": "The id of a sandbox to copy." },
            "policy": { "type": ["string", "null"], "description": "A policy as TOML, stored with the sandbox." },
            "ttl_seconds": ttl(),
        })),
        "ChangeSandbox" => closed(json!({ "name": new_name(), "ttl_seconds": ttl() })),
        "ForkSandbox" => closed(
            json!({ "name": new_name(), "at": { "type": ["string", "null"], "description": "A version to fork from." }, "ttl_seconds": ttl() }),
        ),
        "Job" => object(
            &["job", "status"],
            json!({ "job": text(), "action": text(), "status": { "type": "string", "enum": ["running", "done", "failed", "cancelled"] },
                "result": {}, "error": of("Problem"), "created_at": of("Moment"), "finished_at": { "type": ["string", "null"], "format": "date-time" } }),
        ),
        "Jobs" => page(of("Job")),
        "Event" => object(
            &["version", "path", "kind"],
            json!({ "version": { "type": "integer" }, "run": { "type": ["integer", "null"] }, "time": { "type": "integer" }, "path": text(), "kind": text(),
                "from": name_or_null(), "type": name_or_null(), "size": size(), "hash": name_or_null() }),
        ),
        "Events" => object(
            &["events", "version", "more"],
            json!({ "events": { "type": "array", "items": of("Event") }, "version": { "type": "integer" }, "more": { "type": "boolean" } }),
        ),
        "Unpacked" => object(&["entries"], json!({ "entries": size() })),
        "Usage" => object(
            &["sandboxes", "bytes", "fuel_this_hour", "runs_this_hour", "hours", "limits"],
            json!({ "sandboxes": size(), "bytes": size(), "fuel_this_hour": size(), "runs_this_hour": size(),
                "hours": { "type": "array", "items": object(&["at", "fuel", "runs"], json!({ "at": of("Moment"), "fuel": size(), "runs": size() })) }, "limits": { "type": "object" } }),
        ),
        "WhoAmI" => object(
            &["tenant", "role", "key", "view"],
            json!({ "tenant": text(), "role": text(), "key": text(), "view": name_or_null() }),
        ),
        "CreateKey" => json!({ "type": "object", "required": ["role"], "additionalProperties": false, "properties": {
            "role": { "type": "string", "enum": ["consumer", "publisher", "admin"] }, "name": { "type": "string", "maxLength": 128 },
            "view": { "type": ["string", "null"] }, "expires": { "type": ["string", "null"], "description": "How long it counts, such as 24h." } } }),
        "Tenant" => object(
            &["name", "created_at", "limits", "effective"],
            json!({ "name": text(), "created_at": { "type": ["string", "null"], "format": "date-time" },
                "limits": { "type": "object", "description": "Limits of its own." },
                "effective": { "type": "object", "description": "The same, with the server's limits where it has none." } }),
        ),
        "Tenants" => json!({ "type": "array", "items": of("Tenant") }),
        "ChangeTenant" => {
            let limit = |least: u64| json!({ "type": ["integer", "null"], "minimum": least, "maximum": i64::MAX });
            closed(json!({ "concurrent": limit(1), "queue": limit(1), "requests_per_second": limit(1),
                "sandboxes": limit(0), "keys": limit(0), "bytes": limit(0), "fuel_per_hour": limit(0) }))
        }
        "CreatedKey" => object(&["id", "key"], json!({ "id": text(), "key": text() })),
        name => skillbox::schema_of(name),
    }
}

fn preset() -> Value {
    json!({ "type": "string", "enum": ["strict", "normal", "permissive"] })
}

/// The definitions that schemas of actions bring along, under names of their own.
#[derive(Default)]
pub(super) struct Schemas(Map<String, Value>);

impl Schemas {
    /// Moves the definitions of an action's schema to the document's own place for them.
    pub(super) fn hoist(&mut self, action: &str, mut schema: Value) -> Value {
        if let Some(fields) = schema.as_object_mut() {
            fields.remove("$schema");
            if let Some(Value::Object(definitions)) = fields.remove("$defs") {
                for (name, mut definition) in definitions {
                    rename(&mut definition, action);
                    self.0.insert(format!("{action}.{name}"), definition);
                }
            }
        }
        rename(&mut schema, action);
        schema
    }

    pub(super) fn into_components(self) -> Map<String, Value> {
        self.0
    }
}

fn rename(schema: &mut Value, action: &str) {
    match schema {
        Value::Object(fields) => {
            if let Some(Value::String(reference)) = fields.get_mut("$ref")
                && let Some(name) = reference.strip_prefix("#/$defs/")
            {
                *reference = format!("#/components/schemas/{action}.{name}");
            }
            fields.values_mut().for_each(|value| rename(value, action));
        }
        Value::Array(values) => values.iter_mut().for_each(|value| rename(value, action)),
        _ => {}
    }
}
