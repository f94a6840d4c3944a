//! The texts of errors, which are Skillbox's, and requests that its server takes although they are unusual.

use serde_json::{Value, json};

use super::{ECHO, skill};
use crate::http::Server;

#[test]
fn a_request_without_a_valid_key_receives_the_reason() {
    let server = Server::start(&[]);
    let check = |headers: &[(&str, &str)], status: u16, text: &str| {
        let answer = server.send("GET /v1/skills", None, headers, b"");
        assert_eq!((answer.status, answer.json()["message"].as_str()), (status, Some(text)), "{headers:?}");
    };
    check(&[], 401, "missing Authorization header");
    check(&[("Authorization", "Basic dXNlcjpwYXNz")], 401, "Authorization header must use Bearer scheme");
    check(&[("Authorization", "Bearer sk-unknown")], 401, "invalid or revoked API key");
    let key = format!("Bearer {}", server.key);
    let text = "X-Tenant-ID header does not match the API key's tenant";
    check(&[("Authorization", &key), ("X-Tenant-ID", "other")], 403, text);
    for tenant in ["", "default"] {
        let headers = [("Authorization", key.as_str()), ("X-Tenant-ID", tenant)];
        server.send("GET /v1/skills", None, &headers, b"").expect(200);
    }
}

#[test]
fn errors_of_requests_have_skillboxs_words() {
    let server = Server::start(&[]);
    server.push(&skill("echo", "1.0.0", ECHO)).expect(201);
    let check = |line: &str, body: &str, status: u16, code: &str, text: &str| {
        let headers = [("X-Session-ID", "s"), ("Content-Type", "application/json")];
        let answer = server.send(line, Some(&server.key), &headers, body.as_bytes());
        let (got, body) = (answer.error(), answer.json());
        let message = body["message"].as_str().unwrap_or_default();
        assert_eq!((got.0, got.1.as_str()), (status, code), "{line}: {body}");
        assert!(message.starts_with(text), "{line}: {message}");
    };
    let bad = |line: &str, body: &str, text: &str| check(line, body, 400, "bad_request", text);
    let none = |line: &str, body: &str, text: &str| check(line, body, 404, "not_found", text);
    bad("POST /v1/executions", "{}", "'skill' is required");
    bad("POST /v1/executions", "{", "invalid JSON body: ");
    bad("POST /v1/executions", r#"["echo", "1.0.0", null, null, null, false]"#, "invalid JSON body: expected an object");
    bad("POST /v1/executions", r#"{"skill": "a/b"}"#, "name \"a/b\" contains invalid characters");
    bad("POST /v1/executions", r#"{"skill": "echo", "version": "1"}"#, "version \"1\" must be semver (MAJOR.MINOR.PATCH)");
    none("POST /v1/executions", r#"{"skill": "none"}"#, "skill not found: none@latest");
    none("GET /v1/executions/x", "", "execution not found");
    none("GET /v1/skills/none/latest", "", "skill not found: none@latest");
    none("GET /v1/skills/echo/9.9.9", "", "skill not found: echo@9.9.9");
    bad("GET /v1/skills/echo/x", "", "version \"x\" must be semver (MAJOR.MINOR.PATCH)");
    none("GET /v1/skills/echo/latest/files?path=x", "", "file not found: x");
    none("DELETE /v1/skills/none/1.0.0", "", "skill not found: none@1.0.0");
    none("DELETE /v1/skills/none/latest", "", "skill not found: none@latest");
    none("DELETE /v1/skills/none", "", "skill not found: none");
    none("PUT /v1/skills/none/files", r#"{"path": "x"}"#, "skill not found: none");
    bad("PUT /v1/skills/echo/files", r#"{"path": "../x"}"#, "invalid file path: ../x");
    bad("PUT /v1/skills/echo/files-batch", r#"{"files": []}"#, "files must not be empty");
    bad("PUT /v1/skills/echo/active", r#"{"version": "x"}"#, "version \"x\" must be semver");
    none("PUT /v1/skills/echo/active", r#"{"version": "9.9.9"}"#, "version not found: echo@9.9.9");
    none("PUT /v1/skills/echo/active", r#"{"version": "latest"}"#, "version not found: echo@latest");
    bad("GET /v1/skills/echo/diff", "", "to version is required");
    none("GET /v1/skills/echo/diff?to=9.9.9", "", "version not found: echo@9.9.9");
    bad("POST /v1/files", "x", "missing 'file' field in multipart form");
    none("GET /v1/files/x", "", "file not found");
    none("GET /v1/sessions/none/files/x", "", "session not found");
    bad("POST /v1/sandbox/execute", "{}", "command is required");
    bad("POST /v1/sandbox/execute", "{", "invalid request body: ");
    bad(
        "POST /v1/sandbox/execute",
        r#"{"command": "ls", "workdir": "/etc"}"#,
        "invalid workdir: invalid sandbox path: must start with",
    );
    bad("POST /v1/sandbox/read-file", "{}", "path is required");
    check("POST /v1/sandbox/read-file", r#"{"path": "/sandbox/session/x"}"#, 400, "read_error", "failed to read file: ");
    check("POST /v1/sandbox/write-file", r#"{"path": "/etc/x"}"#, 400, "write_error", "failed to write file: ");
    check("POST /v1/sandbox/list-dir", r#"{"path": "/etc"}"#, 400, "list_error", "failed to list directory: ");
    bad("POST /v1/sandbox/upload-skill", "{}", "skill is required");
    check("POST /v1/sandbox/upload-skill", r#"{"skill": "none"}"#, 404, "skill_not_found", "skill not found: none@latest");
    none("DELETE /v1/sandbox/none", "", "sandbox not found or already destroyed");
    let without = server.post("/v1/sandbox/execute", &json!({ "command": "ls" }));
    assert_eq!(without.expect(400).json()["message"], "X-Session-ID header is required");
    let form = server.form("POST /v1/sandbox/upload-file", &[("X-Session-ID", "s")], &[], ("x", b"x"));
    assert_eq!(form.expect(400).json()["message"], "path form field is required");
    let unnamed = server.form("POST /v1/files", &[], &[], ("", b"x"));
    assert_eq!(unnamed.expect(400).json()["message"], "file name is required");
}

// Go's JSON takes `null` for the zero value of a type, and its lists take any number.
#[test]
fn null_is_a_members_default_and_another_limit_is_that_of_a_page() {
    let server = Server::start(&[]);
    let fields = json!({ "name": "made", "description": "d", "lang": "bash", "code": "echo \"[$A]\"", "version": null, "instructions": null });
    assert_eq!(server.post("/v1/skills/from-fields", &fields).expect(201).json()["version"], "1.0.0");
    let run =
        json!({ "skill": "made", "version": null, "env": { "A": null }, "input_files": null, "session_id": null, "async": null });
    assert_eq!(server.run(&run)["logs"], "[]\n");
    server.put("/v1/skills/made/files", &json!({ "path": "empty", "content": null })).expect(202);
    let shell =
        |action: &str, body: Value| server.with_json("POST", &format!("/v1/sandbox/{action}"), &[("X-Session-ID", "s")], &body);
    let write = json!({ "path": "/sandbox/session/x", "content": null, "append": null });
    shell("write-file", write).expect(200);
    shell("list-dir", json!({ "path": "/sandbox/session", "max_depth": null })).expect(200);
    server.form("POST /v1/files", &[], &[], ("x", b"x")).expect(201);
    for query in ["limit=0", "limit=-1", "limit=x", "limit=", "limit=99999999999999999999", "offset=-1", "offset=x"] {
        let listed = server.get(&format!("/v1/files?{query}")).expect(200).json();
        assert_eq!(listed.as_array().unwrap().len(), 1, "{query}");
    }
}

#[test]
fn a_variable_that_cannot_be_set_fails_the_run_with_the_reason() {
    let server = Server::start(&[]);
    server.push(&skill("echo", "1.0.0", ECHO)).expect(201);
    for (name, reason) in [("", "its name is empty"), ("A=B", "its name contains `=`")] {
        let result = server.run(&json!({ "skill": "echo", "env": { name: "x" } }));
        assert_eq!(result["status"], "failed", "{result}");
        assert!(result["error"].as_str().unwrap().contains(reason), "{result}");
    }
}

#[test]
fn a_session_may_have_letters_of_any_script() {
    let server = Server::start(&[]);
    let command = json!({ "command": "echo x > f" });
    server.with_json("POST", "/v1/sandbox/execute", &[("X-Session-ID", "\u{fc}ber uns")], &command).expect(200);
    server.delete("/v1/sandbox/%C3%BCber%20uns").expect(204);
    assert_eq!(server.get("/v1/sessions/%C3%BCber%20uns/files").expect(200).json()[0]["name"], "f");
}
