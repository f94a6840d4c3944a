//! Schemas of Skillbox's routes, as its clients send and expect them.

use serde_json::{Value, json};

/// Returns the schema of a name; any value for a name that has none.
pub(super) fn schema_of(name: &str) -> Value {
    let of = |name: &str| json!({ "$ref": format!("#/components/schemas/{name}") });
    let text = || json!({ "type": "string" });
    let text_or_null = || json!({ "type": ["string", "null"] });
    let texts = || json!({ "type": "object", "additionalProperties": { "type": "string" } });
    let size = || json!({ "type": "integer", "minimum": 0 });
    let list = |of: Value| json!({ "type": "array", "items": of });
    let object =
        |required: &[&str], properties: Value| json!({ "type": "object", "required": required, "properties": properties });
    let mode = || json!({ "type": "string", "enum": ["executable", "cognitive"] });
    let skill_name = || json!({ "type": "string", "pattern": "^[A-Za-z0-9][A-Za-z0-9._-]{0,60}$" });
    let version = || json!({ "type": "string", "pattern": "^[0-9]{1,4}[.][0-9]{1,4}[.][0-9]{1,4}$" });
    let ended = || {
        json!({ "execution_id": text(), "status": { "type": "string", "enum": ["running", "success", "failed", "timeout"] }, "output": {},
            "files_url": text(), "files_list": list(text()), "logs": text(), "duration_ms": size(), "error": text_or_null() })
    };
    match name {
        "RunSkill" => object(
            &["skill"],
            json!({ "skill": skill_name(), "version": { "anyOf": [version(), { "const": "latest" }] }, "input": {}, "env": texts(),
                "input_files": list(text()), "session_id": { "type": "string", "maxLength": 255 }, "async": { "type": "boolean" } }),
        ),
        "RunResult" => object(&["execution_id", "status", "duration_ms", "error"], ended()),
        "Execution" => object(&["execution_id", "status"], {
            let mut properties = ended();
            for (name, schema) in [("skill_name", text()), ("skill_version", text()), ("tenant_id", text()), ("input", json!({}))]
            {
                properties[name] = schema;
            }
            properties["created_at"] = of("Moment");
            properties["finished_at"] = of("Moment");
            properties
        }),
        "Executions" => {
            object(&["items", "next_cursor"], json!({ "items": list(of("Execution")), "next_cursor": text_or_null() }))
        }
        "SkillFields" => object(
            &["name", "description", "code"],
            json!({ "name": skill_name(), "description": { "type": "string", "minLength": 1 }, "code": { "type": "string", "minLength": 1 },
                "lang": { "type": "string", "enum": ["python", "bash"] }, "instructions": text(), "version": version() }),
        ),
        "SkillFile" => object(&["path"], json!({ "path": text(), "content": text() })),
        "SkillFiles" => object(&["files"], json!({ "files": list(of("SkillFile")) })),
        "PushedSkill" => object(&["name", "version", "description", "lang", "mode", "status"], {
            json!({ "name": text(), "version": text(), "description": text(), "lang": text(), "mode": mode(), "status": text() })
        }),
        "Skills" => list(of("PushedSkill")),
        "Skill" => object(
            &["name", "version", "description", "lang", "mode", "resources"],
            json!({ "name": text(), "version": text(), "description": text(), "lang": text(), "mode": mode(), "image": text(),
                "instructions": text(), "timeout": text(), "resources": texts(), "input_schema": {} }),
        ),
        "SkillContents" => {
            list(object(&["path", "content", "size_bytes"], json!({ "path": text(), "content": text(), "size_bytes": size() })))
        }
        "SkillVersions" => {
            let finding = object(
                &["severity", "category", "description"],
                json!({ "severity": { "type": "string", "enum": ["BLOCK", "FLAG"] }, "category": text(), "file_path": text(),
                    "line": size(), "description": text(), "remediation": text() }),
            );
            list(object(
                &["version", "status", "active", "blocked", "uploaded_at"],
                json!({ "version": text(), "status": text(), "active": { "type": "boolean" }, "blocked": { "type": "boolean" },
                    "uploaded_at": of("Moment"), "digest": text(), "scan_summary": text(), "scan_findings": list(finding) }),
            ))
        }
        "SkillDiff" => {
            let line = object(&["op", "text"], json!({ "op": { "type": "string", "enum": ["+", "-", " "] }, "text": text() }));
            let status = json!({ "type": "string", "enum": ["added", "removed", "modified", "unchanged"] });
            let file = object(&["path", "status"], json!({ "path": text(), "status": status, "lines": list(line) }));
            object(&["name", "from", "to", "files"], json!({ "name": text(), "from": text(), "to": text(), "files": list(file) }))
        }
        "ActiveVersion" => object(&["name", "active"], json!({ "name": text(), "active": text() })),
        "RevisedSkill" => object(&["name", "version", "status"], json!({ "name": text(), "version": text(), "status": text() })),
        "ValidSkill" => object(
            &["valid", "skill_name", "skill_version", "scan_tier", "duration_ms"],
            json!({ "valid": { "const": true }, "skill_name": text(), "skill_version": text(), "scan_tier": size(), "duration_ms": size() }),
        ),
        "Version" => object(&["version"], json!({ "version": version() })),
        "File" => object(
            &["id", "name", "content_type", "size_bytes", "version", "created_at"],
            json!({ "id": text(), "name": text(), "content_type": text(), "size_bytes": size(), "version": size(),
                "created_at": of("Moment"), "updated_at": of("Moment") }),
        ),
        "Files" => list(of("File")),
        "ShellCommand" => {
            object(&["command"], json!({ "command": text(), "workdir": text(), "timeout_ms": { "type": "integer" } }))
        }
        "ShellOutput" => object(
            &["stdout", "stderr", "exit_code"],
            json!({ "stdout": text(), "stderr": text(), "exit_code": { "type": "integer" } }),
        ),
        "ShellContent" => object(&["content", "size"], json!({ "content": text(), "size": size() })),
        "ShellDone" => object(&["status"], json!({ "status": { "const": "ok" } })),
        "ShellUploaded" => {
            object(&["status", "path", "size"], json!({ "status": { "const": "ok" }, "path": text(), "size": size() }))
        }
        "ShellEntries" => {
            let entry =
                object(&["path", "is_dir", "size"], json!({ "path": text(), "is_dir": { "type": "boolean" }, "size": size() }));
            object(&["entries"], json!({ "entries": list(entry) }))
        }
        "ShellFiles" => object(&["files"], json!({ "files": list(text()) })),
        "ShellPath" => object(&["path"], json!({ "path": text() })),
        "ShellWrite" => object(&["path"], json!({ "path": text(), "content": text(), "append": { "type": "boolean" } })),
        "ShellList" => object(&["path"], json!({ "path": text(), "max_depth": { "type": "integer" } })),
        "ShellSkill" => object(&["skill"], json!({ "skill": skill_name(), "version": version() })),
        "ScannerConfig" => object(
            &[],
            json!({ "approval_policy": { "type": "string", "enum": ["auto", "none", "always"] }, "tier3_enabled": { "type": "boolean" } }),
        ),
        "ScannerPatterns" => {
            let pattern = json!({ "type": "object", "required": ["regex", "category"], "additionalProperties": false, "properties": {
                "regex": { "type": "string", "minLength": 1, "maxLength": 1000, "description": "Matched line by line, ignoring case." },
                "category": { "type": "string", "minLength": 1, "maxLength": 1000 }, "description": { "type": "string", "maxLength": 1000 } } });
            json!({ "type": "object", "required": ["version"], "additionalProperties": false, "properties": { "version": { "const": 1 },
                "block_patterns": list(pattern.clone()), "flag_patterns": list(pattern) } })
        }
        "Review" => object(
            &["action"],
            json!({ "action": { "type": "string", "enum": ["approve", "decline", "decline_forever", "reopen"] } }),
        ),
        _ => json!({}),
    }
}
